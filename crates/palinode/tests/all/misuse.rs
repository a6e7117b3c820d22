//! A `Var` outside its scope, on another thread or with another tape's: a panic that names both, and nothing
//! is broken by it.

use palinode::{Tape, Var, grad};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `f` says when it panics.
fn message(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("this should panic");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
        .unwrap()
}

/// The names of the tapes in a message, such as `tape 1.0`.
fn tapes(message: &str) -> Vec<String> {
    message
        .match_indices("tape ")
        .filter_map(|(at, _)| {
            let name = message[at + 5..].split(' ').next()?;
            name.split_once('.')?.1.parse::<u32>().ok().map(|_| name.to_string())
        })
        .collect()
}

/// A `Var` that left its closure.
fn leaked() -> Var<f64> {
    let mut kept = None;
    grad(|x| *kept.insert(x[0]), &[1.0]).unwrap();
    kept.unwrap()
}

#[test]
fn outside_its_scope() {
    let var = leaked();
    let said = message(|| {
        let _ = var * 2.0;
    });
    assert!(said.contains("no tape is open") && said.contains("misuse::outside_its_scope"), "{said}");
    assert_eq!(tapes(&said).len(), 1, "{said}");

    // Inside another recording the message names that one too.
    let said = message(|| {
        let _ = grad(|_| var.sin(), &[1.0]);
    });
    let names = tapes(&said);
    assert!(said.contains("only tape") && names.len() == 2 && names[0] != names[1], "{said}");
}

#[test]
fn with_a_var_of_another_tape() {
    type Mix = fn(Var<f64>, Var<f64>) -> Var<f64>;
    let mixes: [Mix; 4] = [|a, b| a + b, |a, b| a * b, |a, b| a.powf(b), |a, b| [a, b].iter().sum()];
    for mix in mixes {
        let said = message(|| {
            let _ =
                grad(|outer| Var::lift(grad(|inner| mix(inner[0], outer[0]), &[2.0]).unwrap()[0]), &[1.0]);
        });
        let names = tapes(&said);
        assert!(said.contains(" met a Var of ") && names.len() == 2 && names[0] != names[1], "{said}");
        assert!(said.contains("Var::lift"), "the message says what to do: {said}");
    }
}

#[test]
fn on_another_thread() {
    let said = message(|| {
        let _ = grad(
            |x| {
                let x = x[0];
                let worker = std::thread::Builder::new().name("worker".into());
                let result = worker.spawn(move || x * x).unwrap().join();
                result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            },
            &[1.0],
        );
    });
    assert!(said.contains("used on thread 'worker'") && said.contains("no tape is open"), "{said}");
    assert!(said.contains("misuse::on_another_thread"), "{said}");
    assert_eq!(tapes(&said).len(), 1, "{said}");

    // Where that thread records a tape of its own, both are named.
    let said = message(|| {
        let _ = grad(
            |x| {
                let x = x[0];
                let result = std::thread::spawn(move || grad(|y| y[0] + x, &[1.0]).unwrap()).join();
                Var::lift(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))[0])
            },
            &[1.0],
        );
    });
    let names = tapes(&said);
    assert!(names.len() == 2 && names[0] != names[1], "{said}");
}

#[test]
fn a_var_from_elsewhere_as_the_result() {
    let var = leaked();
    let said = message(|| {
        let _ = grad(|_| var, &[1.0]);
    });
    assert_eq!(tapes(&said).len(), 2, "{said}");
}

#[test]
fn a_tape_is_usable_after_a_panic() {
    let mut tape = Tape::new();
    for round in 0..100 {
        // More rounds than there are open scopes on a thread: each must have been closed.
        message(|| {
            let _ = tape.record(&[1.0, 2.0], |x: &[Var<f64>]| {
                let y = x[0] * x[1] + x[0];
                if y > 0.0 {
                    panic!("stop in round {round}");
                }
                y
            });
        });
        let (value, gradient) = tape.value_and_grad(|x| x[0] * x[1] + x[0], &[3.0, 4.0]).unwrap();
        assert_eq!((value, gradient), (15.0, vec![5.0, 3.0]));
    }
    let var = leaked();
    message(|| {
        let _ = tape.record(&[1.0], |x: &[Var<f64>]| x[0] + var);
    });
    assert_eq!(tape.value_and_grad(|x| x[0].sin(), &[0.0]).unwrap(), (0.0, vec![1.0]));
}

#[test]
fn nested_types_have_tapes_of_their_own() {
    let var = leaked();
    let said = message(|| {
        let _ = grad(|outer| grad(|inner| inner[0] * Var::lift(var), &[outer[0]]).unwrap()[0], &[2.0]);
    });
    assert!(tapes(&said).len() >= 2, "{said}");
}

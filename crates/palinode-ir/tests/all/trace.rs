//! Generic Rust code as a program.

use palinode_core::{Dual, Real, Scalar, grad};
use palinode_ir::interp::{Datum, run};
use palinode_ir::trace::TraceError;
use palinode_ir::{Program, Traced, transform};

fn body<S: Real>(x: &[S]) -> S {
    let mut state = x[0];
    for k in 0..4 {
        state = if state > 1.0 { state.sqrt() * x[1] } else { state * 1.7 + x[1].sin() * f64::from(k) };
    }
    [state, x[1]].iter().map(|&x| x * x).sum::<S>()
}

#[test]
fn a_traced_program_gives_the_same_value_and_gradient() {
    let point = [0.4, 0.9];
    let f = |x: &[Traced]| vec![body(x)];
    let trace = Program::trace(f, &point);
    assert!(!trace.decisions.is_empty());
    let nearby = [0.41, 0.88];
    assert_eq!(trace.run(&nearby).unwrap(), [body(&nearby)]);
    let gradient = transform::grad(&trace.program, &[0]).unwrap();
    let found = run(&gradient, &[Datum::vector(nearby.to_vec())]).unwrap();
    let expected = grad(body, &nearby).unwrap();
    let (value, guarded) = trace.value_and_grad(&nearby).unwrap();
    assert_eq!((value, &guarded[..]), (body(&nearby), found[0].as_vector().unwrap()));
    for (found, expected) in guarded.iter().zip(&expected) {
        assert!((found - expected).abs() <= 1e-14 * expected.abs(), "{found} instead of {expected}");
    }
}

#[test]
fn another_way_is_refused() {
    let trace = Program::trace(|x| vec![body(x)], &[0.4, 0.9]);
    let error = trace.run(&[1.5, 0.9]).unwrap_err();
    let TraceError::OtherWay { number, decision } = &error else { panic!("{error}") };
    assert_eq!((*number, decision.outcome), (0, false));
    assert_eq!(trace.value_and_grad(&[1.5, 0.9]).unwrap_err(), error);
    assert_eq!(trace.run(&[0.4]).unwrap_err().code(), "PAL0101");
    assert!(error.to_string().starts_with("PAL0280"), "{error}");
}

#[test]
fn a_conversion_to_a_plain_number_is_guarded() {
    let trace = Program::trace(|x| vec![x[0] * x[0].to_f64().round()], &[2.0]);
    assert_eq!(trace.run(&[2.0]).unwrap(), [4.0]);
    assert!(trace.run(&[2.5]).is_err());
}

/// Every way from a traced number to a plain one, text included: at another point the trace answers as the
/// code does, or refuses.
#[test]
fn no_way_out_of_a_trace_replays_an_old_number() {
    type Way = fn(Traced) -> f64;
    let ways: [(&str, Way); 9] = [
        ("to_f64", |x| x.to_f64()),
        ("peek", |x| x.peek().unwrap()),
        ("text", |x| format!("{x}").parse().unwrap()),
        ("text with digits", |x| format!("{x:.3}").parse().unwrap()),
        ("debug text", |x| {
            let text = format!("{x:?}");
            text.strip_prefix("Traced(").and_then(|text| text.strip_suffix(')')).unwrap().parse().unwrap()
        }),
        ("a dual's to_f64", |x| Dual::new(x, Traced::from_f64(1.0)).to_f64()),
        ("a dual's peek", |x| Dual::lift(x).peek().unwrap()),
        ("a dual's text", |x| {
            // Value, and tangent after it.
            Dual::lift(x).to_string().split(' ').next().unwrap().parse().unwrap()
        }),
        ("a dual against infinity", |x| if Dual::lift(x) < f64::INFINITY { 1.0 } else { 2.0 }),
    ];
    for (name, way) in ways {
        // As a factor, and as what a branch is taken by.
        let code = |x: &[Traced]| {
            let plain = way(x[0]);
            vec![x[1] * plain, if plain > 1.5 { x[1].sin() } else { x[1].exp() }]
        };
        let outputs = |x: f64, y: f64| [y * x, if x > 1.5 { y.sin() } else { y.exp() }];
        let trace = Program::trace(code, &[2.0, 0.5]);
        if name == "a dual against infinity" {
            // Its answer is the same for every finite number; a guard may be stricter, and is.
            assert!(trace.run(&[f64::INFINITY, 0.5]).is_err(), "{name}");
            continue;
        }
        assert_eq!(trace.run(&[2.0, 0.7]).unwrap(), outputs(2.0, 0.7), "{name}");
        for other in [2.5, 1.0, -2.0, 0.0, f64::NAN, f64::INFINITY] {
            let error = trace.run(&[other, 0.5]).expect_err(name);
            assert_eq!(error.code(), "PAL0280", "{name} at {other}");
            assert!(trace.value_and_grad(&[other, 0.5]).is_err(), "{name} at {other}");
        }
    }
}

/// What is equal to itself only, or to more than itself.
#[test]
fn a_guard_on_nan_or_zero_means_that_number() {
    let code = |x: &[Traced]| vec![Traced::from_f64(x[0].to_f64().signum()) * x[1]];
    let at_nan = Program::trace(code, &[f64::NAN, 1.0]);
    assert!(at_nan.run(&[f64::NAN, 2.0]).unwrap()[0].is_nan());
    assert_eq!(at_nan.run(&[3.0, 2.0]).unwrap_err().code(), "PAL0280");
    for (zero, other) in [(0.0, -0.0), (-0.0, 0.0)] {
        let trace = Program::trace(code, &[zero, 1.0]);
        assert_eq!(trace.run(&[zero, 2.0]).unwrap(), [2.0 * f64::signum(zero)]);
        assert_eq!(trace.run(&[other, 2.0]).unwrap_err().code(), "PAL0280");
    }
}

/// Drivers look whether inputs are finite; that is no decision of the program's, so a traced gradient can be
/// run elsewhere.
#[test]
fn a_gradient_inside_a_trace_is_not_fixed_to_its_point() {
    let code = |x: &[Traced]| grad(|y| y[0] * y[1].sin(), &[x[0], x[1]]).unwrap();
    let trace = Program::trace(code, &[2.0, 0.5]);
    let found = trace.run(&[3.0, 0.25]).unwrap();
    let expected = [0.25f64.sin(), 3.0 * 0.25f64.cos()];
    assert!(
        found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-15),
        "{found:?}"
    );
}

#[test]
fn a_number_of_a_trace_is_known_on_no_other_thread() {
    let mut kept = None;
    Program::trace(|x| vec![*kept.insert(x[0] * x[0])], &[2.0]);
    let kept = kept.unwrap();
    // Both are the first trace of their thread.
    let other = std::thread::spawn(move || {
        let used = |code: fn(Traced, Traced) -> Traced| {
            std::panic::catch_unwind(|| Program::trace(|x| vec![code(x[0], kept)], &[1.0])).is_err()
        };
        [used(|x, kept| x + kept), used(|_, kept| kept), used(|x, kept| if x < kept { x } else { kept })]
    });
    assert_eq!(other.join().unwrap(), [true; 3]);
}

/// A trace in the destructor of a thread-local, in whatever order they are run.
#[test]
fn a_trace_while_the_thread_ends() {
    struct Last(std::sync::mpsc::Sender<Vec<f64>>);
    impl Drop for Last {
        fn drop(&mut self) {
            let trace = Program::trace(|x| vec![x[0] * x[0]], &[2.0]);
            self.0.send(trace.run(&[3.0]).unwrap()).unwrap();
        }
    }
    thread_local! {
        static FIRST: std::cell::Cell<Option<Last>> = const { std::cell::Cell::new(None) };
        static SECOND: std::cell::Cell<Option<Last>> = const { std::cell::Cell::new(None) };
    }
    let (send, received) = std::sync::mpsc::channel();
    let work = move || {
        FIRST.set(Some(Last(send.clone())));
        Program::trace(|x| vec![x[0].sin()], &[2.0]);
        SECOND.set(Some(Last(send)));
    };
    std::thread::spawn(work).join().unwrap();
    assert_eq!(received.iter().collect::<Vec<_>>(), [[9.0], [9.0]]);
}

#[test]
#[should_panic(expected = "a 4294967296 by 4294967296 matrix of 0 elements")]
fn a_matrix_whose_size_wraps_is_none() {
    palinode_ir::interp::Tensor::<f64>::matrix(1 << 32, 1 << 32, Vec::new());
}

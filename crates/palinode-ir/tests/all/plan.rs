//! Plans predict what runs do.

use palinode_core::{Budget, Dual};
use palinode_ir::interp::{Code, Datum, Limits, Tensor};
use palinode_ir::plan::{
    Because, FitError, Lifetimes, Prediction, StateKind, fit_gradient, lifetimes, narrow_kept,
    narrowing_error, predict,
};
use palinode_ir::transform::{Choice, Recompute, Storage};
use palinode_ir::{Narrow, Op, interp, pal, passes, transform, verify};

use crate::agree::{flat, run_on};
use crate::pal::defaults as given;
use crate::peak::bits;
use crate::random::Random;
use crate::random::generate::source;
use crate::random_programs::{compiled, from_environment};

fn of_gradient(source: &str) -> Prediction {
    let model = pal::compile(source).expect("compiles");
    let inputs = given(&model);
    let wrt: Vec<usize> = (0..inputs.len()).collect();
    let program = passes::simplify(&transform::value_and_grad(&model.program, &wrt).expect("differentiates"));
    predict(&program, &inputs, 8).expect("is known")
}

fn chain(rounds: usize) -> String {
    format!("param x = 0.5\nvar y = x\nfor i in 0..{rounds} {{ y = sin(y) * 1.1 }}\nloss y")
}

#[test]
fn a_long_loop_is_not_walked_to_its_end() {
    let short = of_gradient(&chain(1000));
    let long = of_gradient(&chain(1_000_000_000));
    assert!(short.exact && long.exact);
    assert_eq!(long.growth[0].rounds, 1_000_000_000);
    assert_eq!(long.growth[0].bytes_per_round, short.growth[0].bytes_per_round);
    let bytes = long.growth[0].bytes_per_round * 1_000_000_000;
    assert!(long.peak >= bytes && long.peak < bytes + (1 << 20), "{long:?}");
}

/// A log goes on where the loop before it ended, with the same pattern.
#[test]
fn logs_of_loops_in_loops_are_known() {
    for outer in [3, 40] {
        let plan = of_gradient(&format!(
            "param w: [2] = [0.7, 0.4]\nvar a = w\nfor i in 0..{outer} {{\n for j in 0..66 by 2 {{ a = 0.4 * cumsum(a) }}\n}}\nloss y = sum(a)"
        ));
        assert!(plan.exact && !plan.is_quick, "{plan:?}");
    }
}

/// Whatever is kept or computed again, the gradient has the same bits.
#[test]
fn storage_does_not_change_the_gradient() {
    let count = from_environment("PALINODE_PROGRAMS", 50);
    let mut kept_less = 0;
    for seed in 0..count {
        let Ok(case) = compiled(&source(seed)) else { continue };
        let mut sizes = Vec::new();
        let mut expected: Option<Vec<u64>> = None;
        for recompute in Recompute::ALL {
            let program = transform::value_and_grad_stored(&case.program, &case.wrt, &recompute.into())
                .expect("differentiates");
            let Ok(found) = run_on(&program, &case.inputs, "the gradient") else { break };
            let bits: Vec<u64> = flat(&found).iter().map(|x| x.to_bits()).collect();
            sizes.push(program.count(|inst| inst.op == Op::Push));
            match &expected {
                None => expected = Some(bits),
                Some(expected) => assert_eq!(&bits, expected, "{recompute:?}\n{}", source(seed).text()),
            }
        }
        kept_less += usize::from(sizes.first() > sizes.last());
    }
    println!("{kept_less} of {count} programs keep less when more is computed again");
    assert!(kept_less * 4 > count as usize);
}

/// A perceptron, small.
fn perceptron(layers: usize) -> (pal::Model, Vec<Datum<f64>>) {
    let (width, batch) = (6, 4);
    let mut source = format!("input x: [{batch}, {width}]\n");
    (0..layers).for_each(|layer| source += &format!("param w{layer}: [{width}, {width}]\n"));
    source += "var h = x\n";
    (0..layers).for_each(|layer| source += &format!("h = tanh(h @ w{layer})\n"));
    source += "loss y = sum(h * h)\n";
    let mut sequence = Random::new(7);
    let mut array = |shape: [usize; 2]| {
        let data = (0..shape[0] * shape[1]).map(|_| sequence.signed()).collect();
        Datum::Real(Tensor { shape: shape.to_vec(), data })
    };
    let mut inputs = vec![array([batch, width])];
    inputs.extend((0..layers).map(|_| array([width, width])));
    (pal::compile(&source).expect("compiles"), inputs)
}

/// The budget is kept, the gradient does not depend on it, and the smallest that a refusal names works.
#[test]
fn every_budget_gives_the_same_gradient() {
    let (model, inputs) = perceptron(6);
    let wrt: Vec<usize> = (1..inputs.len()).collect();
    let fit = |bytes: usize| {
        fit_gradient(&model.program, &wrt, &inputs, 8, &Storage::default(), Budget::from(bytes))
    };
    let Err(FitError::TooSmall { smallest, .. }) = fit(100) else { panic!("100 bytes are not enough") };
    let all = fit(usize::MAX - 1).expect("fits").store_all;
    let expected = run_on(&fit(all.bytes()).expect("fits").program, &inputs, "the gradient").unwrap();
    let (mut work, mut peaks) = (f64::INFINITY, Vec::new());
    for part in 0..=10 {
        let budget = smallest.bytes() + (all.bytes() - smallest.bytes()) * part / 10;
        let plan = fit(budget).expect("fits");
        assert!(plan.prediction.heap <= budget as u64);
        assert!(plan.overhead <= work, "more memory, more work: {} after {work}", plan.overhead);
        work = plan.overhead;
        peaks.push(plan.prediction.peak);
        assert_eq!(verify(&plan.program), Ok(()));
        let limits = Limits { budget: Budget::from(budget), ..Limits::default() };
        let (found, stats) =
            Code::new(&plan.program).run_with_stats(&inputs, &limits).expect("runs within it");
        let of_plan = (plan.prediction.peak, plan.prediction.heap);
        assert_eq!((stats.peak_bytes as u64, stats.heap_bytes as u64), of_plan);
        assert_eq!(flat(&found), flat(&expected));
    }
    assert!(peaks[0] * 4 < peaks[10] * 3, "{peaks:?}");
    assert!(
        matches!(fit(smallest.bytes() - 1), Err(FitError::TooSmall { smallest: again, .. }) if again == smallest)
    );
}

#[test]
fn an_ample_budget_gives_the_gradient_of_no_budget() {
    let source = "param a = [1, 2, 3, 4]
        var u = a
        for i in 0..100 { u = u - 0.1 * u * (concat(u[1..], u[..1]) - 0.5) }
        loss total = sum(u)";
    let model = pal::compile(source).expect("compiles");
    let (inputs, ample) = (given(&model), Budget::from(1 << 30));
    let fitted = fit_gradient(&model.program, &[0], &inputs, 8, &Storage::default(), ample).expect("fits");
    assert_eq!(fitted.prediction.heap, of_gradient(source).heap);
    assert!(fitted.keeps_everything() && fitted.recompute == Recompute::default());
}

fn of_value(source: &str) -> Prediction {
    let model = pal::compile(source).expect("compiles");
    predict(&passes::simplify(&model.program), &given(&model), 8).expect("is known")
}

/// Where an array is copied, the plan names the read that forces it.
#[test]
fn copies_are_named() {
    // Both versions are needed.
    let forked =
        of_value("param x: [4] = [1, 2, 3, 4]\nvar a = x * 2\nvar b = a\nb[0] = 5\nloss y = dot(a, b)");
    assert_eq!(forked.copies.len(), 1, "{forked:?}");
    let Because::Use { op, .. } = forked.copies[0].because else { panic!("{forked:?}") };
    assert_eq!((op, forked.copies[0].times, forked.copies[0].elements), ("matmul", 1, 4));
    // Only the new one is.
    let chained = of_value(
        "param x: [4] = [1, 2, 3, 4]\nvar a = x * 2\nlet s = sum(a)\na[0] = 5\nloss y = s + sum(a * a)",
    );
    assert_eq!(chained.copies, []);
    // Each round starts from the same array.
    let rounds = of_value(
        "param x: [4] = [1, 2, 3, 4]\nvar s = 0\nfor i in 0..40 {\n var a = x\n a[i % 4] = 0\n s += sum(a * a)\n}\nloss s",
    );
    assert_eq!(rounds.copies.len(), 1);
    assert!(matches!(rounds.copies[0].because, Because::NextRound { .. }), "{rounds:?}");
    assert_eq!((rounds.copies[0].times, rounds.copies[0].elements), (40, 160));
    // The first round of a loop copies what is needed after it.
    let started = of_value(
        "param x: [9] = [1, 2, 3, 4, 5, 6, 7, 8, 9]\nvar a = x * 2\nvar b = a\nfor i in 0..9 { b[i] = b[i] + i }\nloss y = dot(a, b)",
    );
    assert_eq!((started.copies.len(), started.copies[0].times), (1, 1), "{started:?}");
    assert!(matches!(started.copies[0].because, Because::Use { op: "matmul", .. }), "{started:?}");
}

/// Versions share memory unless both are needed, and each has the shape it has.
#[test]
fn lifetimes_know_shapes_and_shared_memory() {
    let rows = |source: &str| {
        let model = pal::compile(source).expect("compiles");
        let program = passes::simplify(&model.program);
        let prediction = predict(&program, &given(&model), 8).expect("is known");
        let found = lifetimes(&program, &prediction, &[StateKind::Persistent], false);
        assert!(found.rows.iter().all(|row| row.shape.is_some()), "{found:?}");
        found
    };
    let buffers = |found: &Lifetimes| {
        let mut all: Vec<_> = found.rows.iter().map(|row| row.buffer).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    let start = "param x: [2, 3] = [[1, 2, 3], [4, 5, 6]]\nvar a = x * 2\n";
    let chained = rows(&format!("{start}a[0, 1] = 5\na[1, 1] = 6\nlet s = sum(a)\nloss y = s"));
    assert_eq!((buffers(&chained), chained.arena), (2, 96), "{chained:?}");
    assert_eq!(chained.rows[0].shape, Some(vec![2, 3]));
    let forked = rows(&format!("{start}var b = a\nb[0, 1] = 5\nlet s = sum(a * b)\nloss y = s"));
    assert_eq!(buffers(&forked), 4, "{forked:?}");
    // A loop takes over what it starts from only if nothing needs it afterwards.
    let looped = "var b = a\nfor i in 0..9 { b[0, i % 3] = i }\n";
    let taken = rows(&format!("{start}{looped}let s = sum(b)\nloss y = s"));
    assert_eq!(buffers(&taken), 2, "{taken:?}");
    let needed = rows(&format!("{start}{looped}let s = sum(a * b)\nloss y = s"));
    assert_eq!(buffers(&needed), 4, "{needed:?}");
}

/// A recurrent network, small.
fn recurrent() -> (pal::Model, Vec<Datum<f64>>) {
    let (width, steps) = (7, 40);
    let source = format!(
        "param w: [{width}, {width}]\nparam u: [{width}]\nvar h = zeros({width})\nvar s = 0\n\
         for t in 0..{steps} {{\n  h = tanh(w @ h + sin(t) * u)\n  s += sum(h * h)\n}}\nloss s\n"
    );
    let mut sequence = Random::new(11);
    let mut array = |shape: &[usize]| {
        let data = (0..shape.iter().product()).map(|_| 0.5 * sequence.signed()).collect();
        Datum::Real(Tensor { shape: shape.to_vec(), data })
    };
    let inputs = vec![array(&[width, width]), array(&[width])];
    (pal::compile(&source).expect("compiles"), inputs)
}

/// Fewer bits take less memory, and the error is that of the format. Names choose what is narrowed.
#[test]
fn arrays_can_wait_in_fewer_bits() {
    let (deep, deep_inputs) = perceptron(6);
    let (long, long_inputs) = recurrent();
    for (model, inputs, first) in [(deep, deep_inputs, 1), (long, long_inputs, 0)] {
        let wrt: Vec<usize> = (first..inputs.len()).collect();
        let gradient = |storage: &Storage| {
            let made =
                transform::value_and_grad_stored(&model.program, &wrt, storage).expect("differentiates");
            let made = narrow_kept(&passes::simplify(&made), storage);
            assert_eq!(verify(&made), Ok(()));
            let peak = predict(&made, &inputs, 8).expect("is known").peak;
            (run_on(&made, &inputs, "the gradient").unwrap(), peak, made)
        };
        let exact = Storage::from(Recompute::Nothing);
        let (expected, all, _) = gradient(&exact);
        let mut before = all;
        for (narrow, unit) in [(Narrow::F32, 2.0_f64.powi(-24)), (Narrow::Bf16, 2.0_f64.powi(-9))] {
            let storage = Storage { narrow: Some(narrow), ..exact.clone() };
            let (found, peak, program) = gradient(&storage);
            assert!(peak < before, "{narrow:?} takes {peak} after {before}");
            before = peak;
            assert_eq!(found[0], expected[0], "the value is not touched");
            let error = narrowing_error(&expected[1..], &found[1..]);
            assert!(error > 0.0 && error < 20.0 * unit, "{narrow:?}: {error} for {unit}");
            // What was rounded has no derivative.
            assert_eq!(transform::vjp(&program, &wrt).unwrap_err().code(), "PAL0277");
            let duals: Vec<Datum<Dual<f64>>> =
                inputs.iter().map(|datum| datum.map(|x| Dual::new(x, 1.0))).collect();
            assert_eq!(interp::run(&program, &duals).unwrap_err().code(), "PAL0276");
        }
        let named = |name: &str| Storage {
            choices: [(name.to_string(), Choice::Narrow(Narrow::Bf16))].into(),
            ..exact.clone()
        };
        assert!(gradient(&named("h")).1 < all);
        assert_eq!(gradient(&named("nothing")).1, all);
    }
}

/// In place or copied, values and gradients have the same bits; and in place is worth it.
#[test]
fn in_place_and_copied_arrays_give_the_same_bits() {
    let count = from_environment("PALINODE_PROGRAMS", 50);
    let limits = Limits { steps: 20_000_000, ..Limits::default() };
    let (mut compared, mut copied_less) = (0, 0);
    for seed in 0..count {
        let Ok(case) = compiled(&source(seed)) else { continue };
        let gradient = transform::value_and_grad(&case.program, &case.wrt).expect("differentiates");
        for program in [passes::simplify(&gradient), gradient] {
            let in_place = Code::new(&program).run_with_stats(&case.inputs, &limits);
            let copied = Code::always_copying(&program).run_with_stats(&case.inputs, &limits);
            let (Ok((found, few)), Ok((expected, many))) = (in_place, copied) else { continue };
            assert_eq!(bits(&found), bits(&expected), "{}", source(seed).text());
            assert!(few.elements_copied <= many.elements_copied);
            compared += 1;
            copied_less += usize::from(few.elements_copied < many.elements_copied);
        }
    }
    println!("{compared} gradients compared, {copied_less} copy less in place");
    assert!(compared > count && copied_less * 2 > compared as usize);
}

/// A variable that is to be computed again is not kept, nor what its rule makes of it.
#[test]
fn variables_are_computed_again_by_name() {
    let (model, inputs) = {
        let source = "param w: [7, 7]\nparam u: [7]\nvar h = zeros(7)\nvar s = 0\n\
                      for t in 0..40 {\n  let z = w @ h + sin(t) * u\n  h = tanh(z)\n  s += sum(h * h)\n}\nloss s\n";
        (pal::compile(source).expect("compiles"), recurrent().1)
    };
    let gradient = |storage: &Storage| {
        let made =
            transform::value_and_grad_stored(&model.program, &[0, 1], storage).expect("differentiates");
        let made = passes::simplify(&made);
        let found = run_on(&made, &inputs, "the gradient").unwrap();
        (flat(&found), predict(&made, &inputs, 8).expect("is known").peak)
    };
    let named = |name: &str| Storage {
        choices: [(name.to_string(), Choice::Recompute)].into(),
        ..Storage::default()
    };
    let (expected, all) = gradient(&Storage::default());
    for name in ["z", "h"] {
        let (found, peak) = gradient(&named(name));
        assert_eq!(found, expected, "{name}");
        assert!(peak < all, "`{name}` again takes {peak} after {all}");
    }
    assert_eq!(gradient(&named("nothing")), (expected, all));
}

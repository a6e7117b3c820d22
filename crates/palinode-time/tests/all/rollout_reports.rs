//! What reports say of a gradient holds: of windows, of decisions in steps, of sizes; and what went wrong is
//! blamed on what did it.

use crate::models::{Affine, Altering, CHAOTIC, Hidden, Lorenz, Rnn, bits};
use palinode_core::{Key, Real, Snapshot, Var};
use palinode_macros::step;
use palinode_time::{Error, Gradient, MemoryStore, Repeat, Rollout, Step, StepRule, Verdict};

/// x <- A x + b with a dense matrix: the parameters are its rows and b.
#[step(Linear)]
fn linear<S: Real>(x: &mut Vec<S>, p: &Vec<S>) {
    let n = x.len();
    let row = |i: usize| (0..n).map(|j| p[i * n + j] * x[j]).sum::<S>() + p[n * n + i];
    *x = (0..n).map(row).collect();
}

/// The truncated gradient says in its own direction what it says, and the exact one what the report claims.
fn says_what_holds<St: Step>(
    make: impl Fn() -> Rollout<'static, St>,
    gradient: impl Fn(&Rollout<'static, St>) -> Gradient<St>,
    windows: &[u64],
    tolerance: f64,
) -> Vec<f64> {
    // By initial state and parameters.
    let list = |gradient: &Gradient<St>| {
        let inputs: usize = gradient.inputs.iter().map(|input| Snapshot::lengths(input).0).sum();
        let bits = bits(gradient);
        bits[1..bits.len() - inputs].iter().map(|&word| f64::from_bits(word)).collect::<Vec<f64>>()
    };
    let exact = list(&gradient(&make()));
    let mut parts = Vec::new();
    for &window in windows {
        let silent = gradient(&make().truncate(window));
        let truncation = silent.report.truncation.expect("it was cut");
        assert_eq!(truncation.exact_part, None);
        let text = silent.report.to_string();
        assert!(text.contains("not the exact gradient") && !text.contains("missing"), "{text}");
        let cut = gradient(&make().truncate(window).verify());
        assert_eq!(list(&cut), list(&silent));
        let list = list(&cut);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let part = cut.report.truncation.expect("it was cut").exact_part.expect("it was asked for");
        let expected = dot(&exact, &list) / dot(&list, &list);
        assert!(
            (part - expected).abs() <= tolerance * (1.0 + expected.abs()),
            "{window}: {part:e}, {expected:e}"
        );
        // What it says of the rest: at least so much is missing.
        let missing: Vec<f64> = exact.iter().zip(&list).map(|(a, b)| a - b).collect();
        let least = dot(&list, &list).sqrt() * (part - 1.0).abs();
        assert!(dot(&missing, &missing).sqrt() >= least * (1.0 - tolerance) - tolerance, "{window}");
        parts.push(part);
    }
    parts
}

#[test]
fn windows_say_only_what_holds() {
    // A contraction: all but a little is inside the window.
    let along =
        |run: &Rollout<'static, Affine>| run.value_and_grad_along(&1.0, &[0.9, 0.5], |_, x| *x).unwrap();
    let last = |run: &Rollout<'static, Affine>| run.value_and_grad(&1.0, &[0.9, 0.5], |x| *x).unwrap();
    let parts = says_what_holds(|| Rollout::new(Affine).steps(300), last, &[10, 40, 200], 1e-12);
    assert!(parts[0] > 1.2 && (parts[2] - 1.0).abs() < 1e-6, "{parts:?}");
    says_what_holds(|| Rollout::new(Affine).steps(300), along, &[3, 10, 299], 1e-12);
    // An oscillator that keeps its size: nearly all is missing, however small its norms are inside the
    // window.
    let (c, s) = (0.1_f64.cos(), 0.1_f64.sin());
    let turn = vec![c, -s, s, c, 0.01, 0.0];
    let turned =
        move |run: &Rollout<'static, Linear>| run.value_and_grad(&vec![1.0, 0.0], &turn, |x| x[0]).unwrap();
    let parts = says_what_holds(|| Rollout::new(Linear).steps(1000), turned, &[31, 47, 63, 500], 1e-9);
    assert!(parts[..3].iter().all(|part| *part > 10.0), "{parts:?}");
    // A chaotic system: nearly all is missing.
    let chaos =
        |run: &Rollout<'static, Lorenz>| run.value_and_grad(&[1.0, 1.0, 25.0], &CHAOTIC, |x| x[2]).unwrap();
    let parts = says_what_holds(|| Rollout::new(Lorenz).steps(20_000), chaos, &[100, 2000], 1e-3);
    assert!(parts[0].abs() > 1e3, "{parts:?}");
}

#[test]
fn windows_of_networks_and_of_linear_systems_at_random_say_only_what_holds() {
    let (key, mut drawn) = (Key::from_seed(7), 0);
    let mut random = move || {
        drawn += 1;
        key.uniform(drawn) * 2.0 - 1.0
    };
    // Networks of three gains: fading, neither, exploding.
    for gain in [0.5, 1.0, 3.0] {
        let n = 6;
        let weights: Vec<f64> = (0..n * n).map(|_| gain * random()).collect();
        let params = (weights, vec![0.1; n]);
        let run = |run: &Rollout<'static, Rnn>| {
            run.value_and_grad(&vec![0.1; n], &params, |h| h.iter().copied().sum()).unwrap()
        };
        let make = || Rollout::new(Rnn).steps(80).input([0.01, -0.01]);
        says_what_holds(make, run, &[5, 30], 1e-7);
    }
    for case in 0..20 {
        let n = 1 + case % 4;
        let size = [0.3, 0.8, 1.1, 1.6][case / 5];
        let params: Vec<f64> = (0..n * n + n).map(|_| size * random()).collect();
        let start: Vec<f64> = (0..n).map(|_| random()).collect();
        let make = || Rollout::new(Linear).steps(60);
        let last = |run: &Rollout<'static, Linear>| run.value_and_grad(&start, &params, |x| x[0]).unwrap();
        says_what_holds(make, last, &[1, 7, 50], 1e-8);
        let along = |run: &Rollout<'static, Linear>| {
            let loss = |k: u64, x: &Vec<Var<f64>>| x[0] * (k % 3) as f64;
            run.value_and_grad_along(&start, &params, loss).unwrap()
        };
        says_what_holds(make, along, &[2, 7, 50], 1e-8);
    }
    // A gradient of zero has no direction to say something about.
    let run = Rollout::new(Affine).steps(20).truncate(5).verify();
    let none = run.value_and_grad(&1.0, &[0.9, 0.5], |x| *x * 0.0).unwrap();
    assert_eq!(none.report.truncation.expect("it was cut").exact_part, None);
}

/// Burns a tenth at every step, as long as there is fuel.
#[step(Rocket)]
fn rocket<S: Real>([height, speed, fuel]: &mut [S; 3], thrust: &S) {
    if *fuel > 0.0 {
        *speed += *thrust / (*fuel + 1.0);
        *fuel -= 0.1;
    }
    *speed -= 0.01;
    *height += *speed;
}

/// By the tape of a dual number at a time: slow, and a rule.
impl StepRule for Rocket {
    fn reverse<S: Real>(
        &self,
        [_, _, fuel]: &[S; 3],
        thrust: &S,
        _: &(),
        [height, speed, of_fuel]: &mut [S; 3],
        of_thrust: &mut S,
        _: &mut (),
    ) {
        *speed += *height;
        if *fuel > 0.0 {
            let mass = *fuel + 1.0;
            *of_thrust += *speed / mass;
            *of_fuel -= *speed * *thrust / (mass * mass);
        }
    }
}

#[test]
fn decisions_in_steps_are_counted_and_the_closest_is_named() {
    let flown = |fuel: f64, make: &dyn Fn() -> Rollout<'static, Rocket>| {
        make().steps(300).value_and_grad(&[0.0, 0.0, fuel], &0.02, |x| x[0]).unwrap().report
    };
    let ways: [&dyn Fn() -> Rollout<'static, Rocket>; 4] = [
        &|| Rollout::new(Rocket),
        &|| Rollout::new(Rocket).tape_only().record_at_once(1),
        &|| Rollout::new(Rocket).budget("24KiB"),
        &|| Rollout::new(Rocket).verify(),
    ];
    for make in ways {
        // After ten steps 1.4e-16 of the fuel are left, by rounding alone.
        let report = flown(1.0, make);
        let closest = report.decisions.closest.expect("it was compared");
        assert_eq!((report.decisions.count, closest.first_step, closest.last_step), (300, 10, 10));
        assert!(closest.at_rounding && closest.margin > 0.0 && closest.margin < 1e-15, "{closest:?}");
        let text = report.to_string();
        assert!(
            text.contains("300 decisions in steps, the closest by 1.4e-16 in step 10: rounding decides it"),
            "{text}"
        );
        // A third of a tenth of fuel is no accident.
        let report = flown(1.03, make);
        let closest = report.decisions.closest.expect("it was compared");
        assert!(!closest.at_rounding && (closest.margin - 0.03).abs() < 1e-12, "{closest:?}");
        assert!(closest.first_step <= 10 && 10 <= closest.last_step, "{closest:?}");
        assert!(!report.to_string().contains("rounding decides"), "{report}");
    }
    let by_rule = Rollout::new(Rocket).by_rule().steps(300).value_and_grad(&[0.0, 0.0, 1.0], &0.02, |x| x[0]);
    let decisions = by_rule.unwrap().report.decisions;
    let closest = decisions.closest.expect("it was compared");
    assert_eq!((decisions.count, closest.first_step, closest.last_step), (300, 10, 10));
    assert!(closest.at_rounding);
    let nested = Rollout::new(Repeat::new(Rocket, 3)).steps(100).nested();
    let nested = nested.value_and_grad(&[0.0, 0.0, 1.0], &0.02, |x| x[0]).unwrap().report.decisions;
    let closest = nested.closest.expect("it was compared");
    assert_eq!((nested.count, closest.first_step, closest.last_step, closest.at_rounding), (300, 3, 3, true));
    // Nothing decided, nothing said.
    let smooth = Rollout::new(Affine).steps(50).value_and_grad(&1.0, &[0.9, 0.5], |x| *x).unwrap();
    assert_eq!((smooth.report.decisions.count, smooth.report.decisions.closest), (0, None));
    assert!(!smooth.report.to_string().contains("decision"), "{}", smooth.report);
}

#[cfg(feature = "ir")]
#[test]
fn decisions_in_programs_are_counted() {
    use palinode_ir::interp::Datum;
    let source = "
        param thrust = 0.02
        input fuel = 1
        input speed = 0
        var s = speed - 0.01
        var f = fuel
        if fuel > 0 {
            s += thrust
            f -= 0.1
        }
        output next_fuel = f
        output next_speed = s
    ";
    let step = palinode_time::ProgramStep::from_source(source).expect("a program that is a step");
    let state = step.state(&[("fuel", Datum::real(1.0)), ("speed", Datum::real(0.0))]).unwrap();
    let params = step.params(&[]).unwrap();
    let loss = |state: &palinode_time::ProgramValues<Var<f64>>| state[0].as_real().expect("a number");
    for by_rule in [false, true] {
        let run = palinode_time::ProgramStep::from_source(source).expect("as above").rollout().steps(30);
        let report = if by_rule {
            run.by_rule().value_and_grad(&state, &params, loss).unwrap().report
        } else {
            run.value_and_grad(&state, &params, loss).unwrap().report
        };
        let closest = report.decisions.closest.expect("it was compared");
        assert_eq!(
            (report.decisions.count, closest.first_step, closest.last_step),
            (30, 10, 10),
            "{by_rule}"
        );
        assert!(closest.at_rounding);
    }
}

#[test]
fn health_is_right_beyond_the_range_of_squares() {
    let run = |steps| Rollout::new(Affine).steps(steps);
    for (slope, steps, verdict) in [
        (0.5, 1000, Verdict::Vanishing),
        (2.0, 1000, Verdict::Exploding),
        (2.0, 7, Verdict::Growing),
        (1.001, 300, Verdict::Steady),
        (1.1, 300, Verdict::Exploding),
        (0.9, 300, Verdict::Vanishing),
    ] {
        for run in [run(steps), run(steps).truncate(steps)] {
            let report = run.value_and_grad(&0.0, &[slope, 0.0], |x| *x).unwrap().report;
            let rate = report.health.growth_rate().expect("enough steps");
            assert!((rate - f64::ln(slope)).abs() < 1e-9, "{slope}, {steps}: {rate}");
            assert_eq!(report.health.verdict(), verdict, "{slope}, {steps}: {}", report.health);
        }
    }
    // Until it overflows: what is advised exists.
    let of = |run: Rollout<'_, Affine>| run.value_and_grad(&0.0, &[2.0, 0.0], |x| *x).map(|_| ());
    let error = of(run(1100)).unwrap_err();
    assert!(matches!(error, Error::NonFiniteCotangent { .. }) && error.code() == "PAL0526", "{error}");
    assert!(error.to_string().contains("(.truncate), or clip (.clip)"), "{error}");
    assert!(of(run(1100).truncate(500)).is_ok() && of(run(1100).clip(1e6)).is_ok());
}

#[test]
fn a_store_that_changes_a_bit_is_blamed_and_not_the_step() {
    let run = |steps| Rollout::new(Affine).steps(steps).record_at_once(1).tape_only().budget("16KiB");
    let flipping = |flipped: Option<u64>| {
        run(200).store(move || {
            Altering(MemoryStore::new(), move |step, reals: &mut Vec<u64>, _: &mut Vec<u64>| {
                reals[0] ^= u64::from(flipped == Some(step));
            })
        })
    };
    // As long as nothing is flipped, nothing is said.
    let whole = flipping(None).value_and_grad(&1.0, &[0.9, 0.5], |x| *x).unwrap();
    assert_eq!(bits(&whole), bits(&run(200).value_and_grad(&1.0, &[0.9, 0.5], |x| *x).unwrap()));
    let flipped = flipping(Some(0)).value_and_grad(&1.0, &[0.9, 0.5], |x| *x).expect_err("a bit is flipped");
    assert_eq!(flipped.code(), "PAL0511", "{flipped}");
    let says = "the snapshot before step 0 is damaged: the store gave back other words";
    assert!(flipped.to_string().contains(says), "{flipped}");
    // The second store, whatever the budget leaves for the first.
    let codes = (14..40).map(|kib| {
        let second = run(2000).budget(&*format!("{kib}KiB")).second_store(20, || {
            let flip = |_, reals: &mut Vec<u64>, _: &mut Vec<u64>| reals[0] ^= 1;
            Ok(Altering(MemoryStore::new(), flip))
        });
        second.value_and_grad(&1.0, &[0.9, 0.5], |x| *x).map_or_else(|error| error.code(), |_| "right")
    });
    let codes: Vec<&str> = codes.collect();
    assert!(codes.contains(&"PAL0511") && !codes.contains(&"PAL0521"), "{codes:?}");
    // The step is blamed where it is the step.
    let hidden = Rollout::new(Hidden::default()).steps(200).record_at_once(1).tape_only().budget("16KiB");
    let hidden = hidden.store(MemoryStore::new).value_and_grad(&1.0, &0.9, |x| *x);
    assert_eq!(hidden.expect_err("hidden state").code(), "PAL0521");
}

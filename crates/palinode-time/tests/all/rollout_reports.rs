//! What reports say of a gradient holds: of windows, of decisions in steps, of sizes; and what went wrong is
//! blamed on what did it.

use crate::models::{Affine, Lorenz, Rnn};
use palinode_core::{Key, Real, Snapshot, SnapshotError, SnapshotStore, Var};
use palinode_time::{Error, Gradient, MemoryStore, Number, Repeat, Rollout, Step, StepRule, Verdict};

/// x <- A x + b with a dense matrix: the parameters are its rows and b.
struct Linear;

impl Step for Linear {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = Vec<S>;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, x: &mut Vec<S>, p: &Vec<S>, _: &()) {
        let n = x.len();
        let row = |i: usize| (0..n).map(|j| p[i * n + j] * x[j]).sum::<S>() + p[n * n + i];
        *x = (0..n).map(row).collect();
    }
}

/// The truncated gradient says in its own direction what it says, and the exact one what the report claims.
fn says_what_holds<St: Step>(
    make: impl Fn() -> Rollout<'static, St>,
    gradient: impl Fn(&Rollout<'static, St>) -> Gradient<St>,
    list: impl Fn(&Gradient<St>) -> Vec<f64>,
    windows: &[u64],
    tolerance: f64,
) -> Vec<f64> {
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
    let along = |run: &Rollout<'static, Affine>| {
        run.value_and_grad_along(&1.0, &[0.9, 0.5], |_, x| *x).expect("a gradient")
    };
    let last =
        |run: &Rollout<'static, Affine>| run.value_and_grad(&1.0, &[0.9, 0.5], |x| *x).expect("a gradient");
    let numbers = |g: &Gradient<Affine>| vec![g.initial, g.params[0], g.params[1]];
    let parts = says_what_holds(|| Rollout::new(Affine).steps(300), last, numbers, &[10, 40, 200], 1e-12);
    assert!(parts[0] > 1.2 && (parts[2] - 1.0).abs() < 1e-6, "{parts:?}");
    says_what_holds(|| Rollout::new(Affine).steps(300), along, numbers, &[3, 10, 299], 1e-12);
    // An oscillator that keeps its size: nearly all is missing, however small its norms are inside the
    // window.
    let (c, s) = (0.1_f64.cos(), 0.1_f64.sin());
    let turn = vec![c, -s, s, c, 0.01, 0.0];
    let turned = move |run: &Rollout<'static, Linear>| {
        run.value_and_grad(&vec![1.0, 0.0], &turn, |x| x[0]).expect("a gradient")
    };
    let numbers = |g: &Gradient<Linear>| [&g.initial[..], &g.params].concat();
    let parts =
        says_what_holds(|| Rollout::new(Linear).steps(1000), turned, numbers, &[31, 47, 63, 500], 1e-9);
    assert!(parts[..3].iter().all(|part| *part > 10.0), "{parts:?}");
    // A chaotic system: nearly all is missing.
    let chaos = |run: &Rollout<'static, Lorenz>| {
        run.value_and_grad(&[1.0, 1.0, 25.0], &[10.0, 28.0, 8.0 / 3.0], |x| x[2]).expect("a gradient")
    };
    let numbers = |g: &Gradient<Lorenz>| [g.initial, g.params].concat();
    let parts = says_what_holds(|| Rollout::new(Lorenz).steps(20_000), chaos, numbers, &[100, 2000], 1e-3);
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
            run.value_and_grad(&vec![0.1; n], &params, |h| h.iter().copied().sum()).expect("a gradient")
        };
        let make = || Rollout::new(Rnn).steps(80).input([0.01, -0.01]);
        let numbers = |g: &Gradient<Rnn>| [&g.initial[..], &g.params.0, &g.params.1].concat();
        says_what_holds(make, run, numbers, &[5, 30], 1e-7);
    }
    for case in 0..20 {
        let n = 1 + case % 4;
        let size = [0.3, 0.8, 1.1, 1.6][case / 5];
        let params: Vec<f64> = (0..n * n + n).map(|_| size * random()).collect();
        let start: Vec<f64> = (0..n).map(|_| random()).collect();
        let numbers = |g: &Gradient<Linear>| [&g.initial[..], &g.params].concat();
        let make = || Rollout::new(Linear).steps(60);
        let last = |run: &Rollout<'static, Linear>| {
            run.value_and_grad(&start, &params, |x| x[0]).expect("a gradient")
        };
        says_what_holds(make, last, numbers, &[1, 7, 50], 1e-8);
        let along = |run: &Rollout<'static, Linear>| {
            let loss = |k: u64, x: &Vec<Var<f64>>| x[0] * (k % 3) as f64;
            run.value_and_grad_along(&start, &params, loss).expect("a gradient")
        };
        says_what_holds(make, along, numbers, &[2, 7, 50], 1e-8);
    }
    // A gradient of zero has no direction to say something about.
    let run = Rollout::new(Affine).steps(20).truncate(5).verify();
    let none = run.value_and_grad(&1.0, &[0.9, 0.5], |x| *x * 0.0).expect("a gradient");
    assert_eq!(none.report.truncation.expect("it was cut").exact_part, None);
}

/// Burns a tenth at every step, as long as there is fuel.
struct Rocket;

impl Step for Rocket {
    type State<S: Number> = [S; 3];
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, [height, speed, fuel]: &mut [S; 3], thrust: &S, _: &()) {
        if *fuel > 0.0 {
            *speed += *thrust / (*fuel + 1.0);
            *fuel -= 0.1;
        }
        *speed -= 0.01;
        *height += *speed;
    }
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
        make().steps(300).value_and_grad(&[0.0, 0.0, fuel], &0.02, |x| x[0]).expect("a gradient").report
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
    let decisions = by_rule.expect("a gradient").report.decisions;
    let closest = decisions.closest.expect("it was compared");
    assert_eq!((decisions.count, closest.first_step, closest.last_step), (300, 10, 10));
    assert!(closest.at_rounding);
    let nested = Rollout::new(Repeat::new(Rocket, 3)).steps(100).nested();
    let nested =
        nested.value_and_grad(&[0.0, 0.0, 1.0], &0.02, |x| x[0]).expect("a gradient").report.decisions;
    let closest = nested.closest.expect("it was compared");
    assert_eq!((nested.count, closest.first_step, closest.last_step, closest.at_rounding), (300, 3, 3, true));
    // Nothing decided, nothing said.
    let smooth =
        Rollout::new(Affine).steps(50).value_and_grad(&1.0, &[0.9, 0.5], |x| *x).expect("a gradient");
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
    let state = step.state(&[("fuel", Datum::real(1.0)), ("speed", Datum::real(0.0))]).expect("a state");
    let params = step.params(&[]).expect("parameters");
    let loss = |state: &palinode_time::ProgramValues<Var<f64>>| state[0].as_real().expect("a number");
    for by_rule in [false, true] {
        let run = palinode_time::ProgramStep::from_source(source).expect("as above").rollout().steps(30);
        let report = if by_rule {
            run.by_rule().value_and_grad(&state, &params, loss).expect("a gradient").report
        } else {
            run.value_and_grad(&state, &params, loss).expect("a gradient").report
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
    for (slope, steps, verdict) in
        [(0.5, 1000, Verdict::Vanishing), (2.0, 1000, Verdict::Exploding), (2.0, 7, Verdict::Growing)]
    {
        for window in [None, Some(steps)] {
            let run = Rollout::new(Affine).steps(steps);
            let run = window.map_or_else(|| run, |window| Rollout::new(Affine).steps(steps).truncate(window));
            let report = run.value_and_grad(&0.0, &[slope, 0.0], |x| *x).expect("a gradient").report;
            let rate = report.health.growth_rate().expect("enough steps");
            assert!((rate - f64::ln(slope)).abs() < 1e-9, "{slope}, {steps}: {rate}");
            assert_eq!(report.health.verdict(), verdict, "{slope}, {steps}: {}", report.health);
        }
    }
    // Until it overflows: what is advised exists.
    let overflow = Rollout::new(Affine).steps(1100).value_and_grad(&0.0, &[2.0, 0.0], |x| *x).map(|_| ());
    let Err(error @ Error::NonFiniteCotangent { .. }) = overflow else { panic!("{overflow:?}") };
    assert_eq!(error.code(), "PAL0526");
    assert!(error.to_string().contains("(.truncate), or clip (.clip)"), "{error}");
    let cut = Rollout::new(Affine).steps(1100).truncate(500).value_and_grad(&0.0, &[2.0, 0.0], |x| *x);
    let clipped = Rollout::new(Affine).steps(1100).clip(1e6).value_and_grad(&0.0, &[2.0, 0.0], |x| *x);
    assert!(cut.is_ok() && clipped.is_ok());
}

/// Gives back the snapshots of one step, or of all, with a bit flipped.
struct Flips(MemoryStore, Option<u64>);

impl SnapshotStore for Flips {
    fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.0.put(slot, step, snapshot)
    }
    fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError> {
        self.0.get(slot, step, into)?;
        if self.1.is_none_or(|flipped| flipped == step) {
            into.reals_mut()[0] ^= 1;
        }
        Ok(())
    }
    fn free(&mut self, slot: u32) {
        self.0.free(slot);
    }
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
    fn heap_bytes_for(&self, slots: usize, reals: usize, plain: usize) -> usize {
        self.0.heap_bytes_for(slots, reals, plain)
    }
}

/// Counts its calls where nobody sees it.
struct Hidden(std::cell::Cell<u32>);

impl Step for Hidden {
    type State<S: Number> = S;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, x: &mut S, a: &S, _: &()) {
        self.0.set(self.0.get() + 1);
        *x = *a * *x + f64::from(self.0.get());
    }
}

#[test]
fn a_store_that_changes_a_bit_is_blamed_and_not_the_step() {
    let run = |flipped: u64| {
        let run = Rollout::new(Affine).steps(200).record_at_once(1).tape_only().budget("16KiB");
        run.store(move || Flips(MemoryStore::new(), Some(flipped)))
    };
    // As long as nothing is flipped, nothing is said.
    let whole = run(u64::MAX).value_and_grad(&1.0, &[0.9, 0.5], |x| *x).expect("a gradient");
    let bits = Rollout::new(Affine)
        .steps(200)
        .tape_only()
        .value_and_grad(&1.0, &[0.9, 0.5], |x| *x)
        .expect("a gradient");
    assert_eq!(whole.params, bits.params);
    let flipped = run(0).value_and_grad(&1.0, &[0.9, 0.5], |x| *x).map(|_| ()).expect_err("a bit is flipped");
    assert_eq!(flipped.code(), "PAL0511", "{flipped}");
    assert!(
        flipped
            .to_string()
            .contains("the snapshot before step 0 is damaged: the store gave back other words"),
        "{flipped}"
    );
    // The second store, whatever the budget leaves for the first.
    let codes = (14..40).map(|kib| format!("{kib}KiB")).map(|budget| {
        let second = Rollout::new(Affine).steps(2000).record_at_once(1).tape_only().budget(&*budget);
        let second = second.second_store(20, || Ok(Flips(MemoryStore::new(), None)));
        second.value_and_grad(&1.0, &[0.9, 0.5], |x| *x).map_or_else(|error| error.code(), |_| "right")
    });
    let codes: Vec<&str> = codes.collect();
    assert!(codes.contains(&"PAL0511") && !codes.contains(&"PAL0521"), "{codes:?}");
    // The step is blamed where it is the step.
    let hidden = Rollout::new(Hidden(std::cell::Cell::new(0)))
        .steps(200)
        .record_at_once(1)
        .tape_only()
        .budget("16KiB");
    let hidden = hidden.store(MemoryStore::new).value_and_grad(&1.0, &0.9, |x| *x).map(|_| ());
    assert_eq!(hidden.expect_err("hidden state").code(), "PAL0521");
}

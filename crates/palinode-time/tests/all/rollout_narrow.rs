//! Narrow steps go by forward numbers and everything else by the tape: the same gradients, and never a
//! formula that is not the step's.

use crate::models::{self, Affine, CHAOTIC, Heat, Lorenz, Rnn, bits, wave};
use palinode_core::{Real, Var};
use palinode_macros::step;
use palinode_time::{Gradient, Number, PlainInput, Repeat, Rollout, Schedule, Step};
use proptest::prelude::*;

/// The gradients differ by rounding at most, relative to their largest number; tells in how many directions
/// the first went.
fn agrees<St: Step>(ours: &Gradient<St>, taped: &Gradient<St>) -> Option<usize> {
    assert_eq!(ours.value.to_bits(), taped.value.to_bits(), "values do not depend on how partials are found");
    assert_eq!(taped.report.directions, None);
    let numbers = |gradient| bits(gradient).into_iter().skip(1).map(f64::from_bits).collect::<Vec<f64>>();
    let (a, b) = (numbers(ours), numbers(taped));
    let scale = b.iter().fold(0.0_f64, |largest, c| largest.max(c.abs()));
    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
        assert!((a - b).abs() <= 1e-11 * scale, "number {i}: {a} and {b} of {scale}");
    }
    ours.report.directions
}

/// Both ways, with a loss of the last state and along the way.
fn directions<St: Step>(
    make: impl Fn() -> Rollout<'static, St>,
    initial: &St::State<f64>,
    params: &St::Params<f64>,
    loss: impl Fn(&St::State<Var<f64>>) -> Var<f64>,
) -> Option<usize> {
    let last = |run: Rollout<'static, St>| run.value_and_grad(initial, params, &loss).unwrap();
    let along = |run: Rollout<'static, St>| {
        run.value_and_grad_along(initial, params, |_, state| loss(state)).unwrap()
    };
    let found = agrees(&last(make()), &last(make().tape_only()));
    assert_eq!(agrees(&along(make()), &along(make().tape_only())), found);
    found
}

#[allow(clippy::ptr_arg)] // a loss is given the state as it is
fn squares(u: &Vec<Var<f64>>) -> Var<f64> {
    u.iter().map(|&u| u * u).sum()
}

/// A ring in which each number meets its neighbours and a parameter.
#[step(Ring)]
fn ring<S: Real>(u: &mut Vec<S>, k: &S) {
    let (n, old) = (u.len(), u.clone());
    for i in 0..n {
        u[i] = old[i] - *k * old[i] * (old[(i + 1) % n] - old[(i + n - 1) % n]).sin();
    }
}

#[test]
fn narrow_steps_have_the_gradients_of_the_tape() {
    let lorenz = || Rollout::new(Lorenz).steps(300);
    assert_eq!(directions(lorenz, &[1.0, 1.0, 1.0], &CHAOTIC, models::squares), Some(6));
    assert_eq!(directions(|| Rollout::new(Affine).steps(40), &0.5, &[0.9, 0.1], |x| *x), Some(3));
    let sources = || (0..60).map(|i| (i as f64 * 0.1).cos() * 0.05);
    let each = || Rollout::new(Heat).inputs(sources());
    assert_eq!(directions(each, &wave(20), &0.2, squares), Some(5), "three neighbours, parameter, source");
    assert_eq!(directions(|| Rollout::new(Heat).steps(60).input(0.03), &wave(20), &0.2, squares), Some(5));
    for (n, expected) in [(5, 6), (6, 7), (9, 4), (10, 5), (30, 4), (100, 5)] {
        let found = directions(|| Rollout::new(Ring).steps(25), &wave(n), &0.1, squares);
        assert_eq!(found, Some(expected), "a ring of {n}");
    }
    let nested = || Rollout::new(Repeat::new(Ring, 7).snapshots(2)).steps(5).nested();
    let flat = Rollout::new(Ring).steps(35).value_and_grad(&wave(30), &0.1, squares).unwrap();
    let nested = nested().value_and_grad(&wave(30), &0.1, squares).unwrap();
    assert_eq!(bits(&nested), bits(&flat));
    assert_eq!((nested.report.directions, flat.report.directions), (Some(4), Some(4)));
}

#[test]
fn wide_steps_are_recorded() {
    let (n, h) = (5, vec![0.1; 5]);
    let weights: Vec<f64> = (0..n * n).map(|i| (i as f64 * 1.3).sin() * 0.4).collect();
    let make = || Rollout::new(Rnn).inputs((0..40).map(|i| [(i as f64).sin(), (i as f64).cos()]));
    assert_eq!(directions(make, &h, &(weights, vec![0.05; n]), squares), None);
}

#[test]
fn second_derivatives_go_by_forward_numbers_too() {
    let initial = wave(12);
    let along: Vec<f64> = (0..12).map(|i| (i as f64 * 0.3).cos()).collect();
    let loss = |u: &Vec<Var<palinode_core::Dual<f64>>>| u.iter().map(|&u| u * u * u).sum();
    let run = |run: Rollout<'static, Ring>| {
        run.steps(30).budget("64KiB").hvp(&initial, &0.1, (&along, &0.5), loss).unwrap()
    };
    let ((ours, our_product), (taped, product)) =
        (run(Rollout::new(Ring)), run(Rollout::new(Ring).tape_only()));
    assert_eq!(agrees(&ours, &taped), Some(4));
    agrees(&our_product, &product);
}

/// Each number meets another one, which depends on what the numbers are.
#[derive(Clone, Copy, Debug)]
enum Chosen {
    /// By a comparison.
    If,
    /// By a selection, which is no comparison of the program's own.
    Select,
    /// By rounding.
    Convert,
    /// By a look at it.
    Peek,
    /// By how it is written.
    Display,
    Debug,
    /// Where one depends on nothing: a recording cannot tell, because it keeps partials of zero.
    Vanishes,
    CarriesNothing,
    /// Where a quotient is not finite: from zeros, at first everywhere.
    Finite,
}

impl Step for Chosen {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, u: &mut Vec<S>, k: &S, _: &()) {
        let (n, old) = (u.len(), u.clone());
        for i in 0..n {
            let [one, two, three, five] = [1, 2, 3, 5].map(|distance| old[(i + distance) % n]);
            let (scaled, above) = (old[i] * 7.0, (one - 0.5).max(S::zero()));
            let either = |first: bool| if first { two } else { five };
            let at = |number: f64| old[number.abs() as usize % n];
            let other = match self {
                Chosen::If => either(one > 0.5),
                Chosen::Select => S::select(S::from_f64(0.5).less(one), two, five),
                Chosen::Convert => at(scaled.to_f64()),
                Chosen::Peek => at(scaled.peek().unwrap_or(0.0)),
                Chosen::Display => at(scaled.to_string().parse().expect("a number")),
                Chosen::Debug => at(f64::from(format!("{scaled:?}").contains('-'))),
                Chosen::Vanishes => either(above.vanishes()),
                Chosen::CarriesNothing => either(above.carries_nothing()),
                Chosen::Finite => Some(one / three).filter(|quotient| quotient.is_finite()).unwrap_or(five),
            };
            u[i] = old[i] * 0.5 + *k * other.sin() + 0.1;
        }
    }
}

#[test]
fn a_step_that_decides_by_its_numbers_or_looks_at_them_is_recorded_each_time() {
    use Chosen::*;
    for how in [If, Select, Convert, Peek, Display, Debug, Vanishes, CarriesNothing] {
        let found = directions(|| Rollout::new(how).steps(40), &wave(12), &0.3, squares);
        assert_eq!(found, None, "{how:?}");
    }
    // Its quotients of zeros are guarded at this point only, which is accepted here.
    let finite = || directions(|| Rollout::new(Finite).steps(40), &vec![0.0; 12], &0.3, squares);
    assert_eq!(palinode_core::decision::accept_points(finite), None);
}

/// Counts its steps, and takes another neighbour at each of three.
#[step(Alternating)]
fn alternating<S: Real>((u, steps): &mut (Vec<S>, PlainInput<u64>), k: &S) {
    let (n, old) = (u.len(), u.clone());
    let distance = 1 + (steps.0 % 3) as usize;
    for i in 0..n {
        u[i] = old[i] + *k * (old[(i + distance) % n] - old[i]);
    }
    steps.0 += 1;
}

/// A step as long as its input says, which goes the other way if that is negative.
#[step(Timed)]
fn timed<S: Real>(u: &mut Vec<S>, k: &S, dt: f64) {
    let (n, old) = (u.len(), u.clone());
    let distance = if dt < 0.0 { n - 1 } else { 1 };
    for i in 0..n {
        u[i] = old[i] + *k * (old[(i + distance) % n] - old[i]) * dt.abs();
    }
}

#[test]
fn a_step_that_counts_or_is_set_otherwise_is_recorded_each_time() {
    let u = wave(12);
    let make = || Rollout::new(Alternating).steps(20);
    assert_eq!(directions(make, &(u.clone(), PlainInput(0)), &0.3, |(u, _)| squares(u)), None);
    let changing = || Rollout::new(Timed).inputs((0..20).map(|i| if i == 11 { -0.5 } else { 0.5 }));
    assert_eq!(directions(changing, &u, &0.3, squares), None);
    let same = || Rollout::new(Timed).inputs((0..20).map(|_| 0.5));
    assert_eq!(directions(same, &u, &0.3, squares), Some(3));
    assert_eq!(directions(|| Rollout::new(Timed).steps(20).input(-0.5), &u, &0.3, squares), Some(3));
}

/// One number after the other by a formula of its own.
#[derive(Clone, Debug)]
struct Formulas(Vec<(u8, usize, usize, usize)>);

impl Step for Formulas {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = Vec<S>;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, u: &mut Vec<S>, p: &Vec<S>, _: &()) {
        let old = u.clone();
        for (u, &(kind, a, b, c)) in u.iter_mut().zip(&self.0) {
            let (x, y, k) = (old[a % old.len()], old[b % old.len()], p[c % p.len()]);
            *u = match kind % 6 {
                0 => x * y * 0.5 + k * 0.1,
                1 => (x * k).sin() - y * 0.3,
                2 => (x - y).tanh() + x * 0.2,
                3 => x / (y * y + 2.0),
                4 => x.max(y) * 0.7 + k.exp() * 0.05,
                _ => S::from_f64(0.3),
            };
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn random_formulas_agree_with_the_tape(
        formulas in prop::collection::vec((any::<u8>(), 0..40_usize, 0..40_usize, 0..3_usize), 1..40),
        params in prop::collection::vec(-1.0..1.0, 1..3),
        steps in 1..20_u64,
    ) {
        let initial: Vec<f64> = (0..formulas.len()).map(|i| (i as f64 * 1.7).cos()).collect();
        let make = || Rollout::new(Formulas(formulas.clone())).steps(steps);
        let taped = make().tape_only().value_and_grad(&initial, &params, squares).unwrap();
        let ours = make().value_and_grad(&initial, &params, squares).unwrap();
        agrees(&ours, &taped);
        for snapshots in [1, 3] {
            let some = make().schedule(Schedule::Binomial { snapshots });
            let some = some.value_and_grad(&initial, &params, squares).unwrap();
            prop_assert_eq!(bits(&some), bits(&ours));
        }
    }
}

/// Sums of no terms, of one and of more.
#[step(Sums)]
fn sums<S: Real>(u: &mut Vec<S>, k: &S) {
    let old = u.clone();
    for i in 0..u.len() {
        let few: S = (0..i % 3).map(|j| old[(i + j) % old.len()]).sum();
        u[i] = few * *k;
    }
}

#[test]
fn sums_of_no_terms_have_the_same_sign_in_every_number() {
    let initial = wave(12);
    let run = || Rollout::new(Sums).steps(9).schedule(Schedule::Binomial { snapshots: 2 }).record_at_once(2);
    assert_eq!(directions(run, &initial, &0.3, squares), Some(3));
    let gradient = run().value_and_grad(&initial, &0.3, squares).unwrap();
    assert!(!gradient.report.advanced_by_recording);
}

/// A loop that stops by its state, a window, a hash of every state: none of them changes how partials are
/// found.
#[test]
fn every_way_to_run_a_narrow_loop_agrees_with_the_tape() {
    let until = || Rollout::new(Ring).until(|u| u[1] < 0.3).at_most(10_000);
    let window = || Rollout::new(Ring).steps(40).truncate(7);
    let verified = || Rollout::new(Ring).steps(40).budget("1MiB").verify();
    for make in [until, window, verified] {
        assert_eq!(directions(make, &wave(15), &0.1, squares), Some(4));
    }
}

#[cfg(feature = "ir")]
#[test]
fn a_program_that_stops_gradients_or_solves_equations_is_recorded_each_time() {
    use palinode_ir::interp::Datum;
    use palinode_time::{ProgramStep, ProgramValues};
    let switch = "
        input u: [n]
        param k = 0.3
        var v = u
        for i in 0..n - 5 {
            v[i] = u[i] + k * (if stop_gradient(u[i + 1]) > 0.2 then u[i + 2] else u[i + 5])
        }
        output next_u = v
    ";
    let equation = "
        input u: [n]
        param k = 0.1
        var x = u
        fixed_point x { x = u + k * sin(x) + k * u[0] }
        output next_u = x
    ";
    for (name, source) in [("stopped", switch), ("equation", equation)] {
        let make = || ProgramStep::from_source(source).unwrap_or_else(|error| panic!("{error}"));
        let (step, u) = (make(), (0..12).map(|i| f64::from(i).sin() * 0.4).collect::<Vec<f64>>());
        let state = step.state(&[("u", Datum::vector(u))]).unwrap();
        let params = step.params(&[]).unwrap();
        let loss = |state: &ProgramValues<Var<f64>>| {
            let reals = state.data().iter().filter_map(Datum::as_vector).flatten();
            reals.fold(Var::lift(0.0), |sum, &x| sum + x * x)
        };
        let ours = make().rollout().steps(5).value_and_grad(&state, &params, loss).unwrap();
        let taped = make().rollout().steps(5).tape_only().value_and_grad(&state, &params, loss);
        assert_eq!(agrees(&ours, &taped.unwrap()), None, "{name}");
    }
}

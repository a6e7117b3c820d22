//! Gradients of rollouts: against closed forms, and bit for bit the same for every schedule, tier and budget.

use crate::models::{
    Affine, CHAOTIC, Changing, Heat, Hidden, Lorenz, Rnn, SCHEDULES, Shape, bits, smallest, squares, wave,
};
use palinode_core::{Real, Var};
use palinode_macros::step;
use palinode_time::{Error, Rollout, Schedule, Step};

/// Every kind of schedule, and the ends of their ranges.
fn schedules() -> impl Iterator<Item = Schedule> {
    let ends = [
        Schedule::Periodic { every: 1 },
        Schedule::Periodic { every: 100_000 },
        Schedule::Binomial { snapshots: 1000 },
        Schedule::Mixed { places: 1 },
        Schedule::Mixed { places: 40 },
    ];
    SCHEDULES.into_iter().chain(ends)
}

/// Every schedule and several budgets, with a loss of the last state and one along the way.
fn agrees_with_itself<St: Step>(
    make: impl Fn() -> Rollout<'static, St>,
    initial: &St::State<f64>,
    params: &St::Params<f64>,
    loss: impl Fn(&St::State<Var<f64>>) -> Var<f64>,
) {
    let last = |run: Rollout<'static, St>| run.value_and_grad(initial, params, &loss).unwrap();
    let along = |run: Rollout<'static, St>| {
        run.value_and_grad_along(initial, params, |step, state| loss(state) * (step as f64).sqrt()).unwrap()
    };
    let (of_last, of_all) = (bits(&last(make())), bits(&along(make())));
    assert!(of_last.iter().all(|&word| f64::from_bits(word).is_finite()));
    for schedule in schedules() {
        assert_eq!(bits(&last(make().schedule(schedule))), of_last, "{schedule:?}");
        assert_eq!(bits(&along(make().schedule(schedule))), of_all, "{schedule:?}, along");
    }
    let smallest = smallest(make().budget(1).value_and_grad(initial, params, &loss));
    for more in [0, 100, 1000, 10_000, 1_000_000] {
        let gradient = last(make().budget(smallest + more));
        assert_eq!(bits(&gradient), of_last, "{more} bytes more than the least");
        assert!(gradient.report.peak_bytes <= smallest + more, "{} of {}", gradient.report, smallest + more);
    }
    let refused = make().budget(smallest - 1).value_and_grad(initial, params, &loss);
    assert!(matches!(refused, Err(Error::BudgetTooSmall { .. })));
    assert_eq!(bits(&last(make().verify())), of_last);
    for at_once in [1, 2, 3, 10, 1000] {
        for schedule in [Schedule::Best, Schedule::StoreAll, Schedule::Binomial { snapshots: 2 }] {
            let run = make().schedule(schedule).record_at_once(at_once);
            assert_eq!(bits(&last(run)), of_last, "{schedule:?}, {at_once} steps at once");
        }
    }
}

#[test]
fn lorenz_has_the_same_bits_under_every_schedule() {
    agrees_with_itself(|| Rollout::new(Lorenz).steps(213), &[1.0, 1.0, 1.0], &CHAOTIC, squares);
}

#[test]
fn heat_with_a_source_has_the_same_bits_under_every_schedule() {
    let sources = || (0..60).map(|i| (i as f64 * 0.1).cos() * 0.05);
    let make = || Rollout::new(Heat).steps(60).inputs(sources());
    agrees_with_itself(make, &wave(20), &0.2, |u| u.iter().map(|&u| u * u).sum());
    let once = || Rollout::new(Heat).steps(60).input(0.03);
    agrees_with_itself(once, &wave(20), &0.2, |u| u.iter().map(|&u| u * u).sum());
}

#[test]
fn a_recurrent_network_has_the_same_bits_under_every_schedule() {
    let n = 5;
    let weights: Vec<f64> = (0..n * n).map(|i| (i as f64 * 1.3).sin() * 0.4).collect();
    let bias: Vec<f64> = (0..n).map(|i| i as f64 * 0.05).collect();
    let make = || Rollout::new(Rnn).inputs((0..40).map(|i| [(i as f64).sin(), (i as f64).cos()]));
    agrees_with_itself(make, &vec![0.0; n], &(weights, bias), |h| h.iter().map(|&h| h * h).sum());
}

#[test]
fn a_state_that_changes_its_shape_has_the_same_bits_under_every_schedule() {
    let make = || Rollout::new(Changing).steps(50);
    let initial = Shape::List(vec![0.5, 0.25], 4);
    let loss = |shape: &Shape<Var<f64>>| match shape {
        Shape::List(items, _) => items.iter().copied().sum(),
        Shape::Sum { total, .. } => *total,
    };
    agrees_with_itself(make, &initial, &0.7, loss);
}

#[cfg(feature = "nalgebra")]
#[test]
fn a_library_that_computes_otherwise_with_plain_numbers_has_the_same_bits_under_every_schedule() {
    use crate::models::Product;
    use nalgebra::DMatrix;
    let a = DMatrix::from_fn(8, 8, |i, j| ((i * 17 + j) as f64 * 0.37).sin() * 0.25);
    let x = DMatrix::from_fn(8, 8, |i, j| ((i + 3 * j) as f64 * 0.11).cos());
    let make = || Rollout::new(Product).steps(30);
    agrees_with_itself(make, &x, &a, |x| x.iter().copied().sum());
    let gradient = make().value_and_grad(&x, &a, |x| x.iter().copied().sum()).unwrap();
    assert!(!gradient.report.advanced_by_recording, "passive numbers take the path of recorded ones");
}

#[test]
fn a_gradient_is_the_closed_form() {
    // dx_T/db = (1 - a^T)/(1 - a), dx_T/dx0 = a^T, dx_T/da = T a^(T-1) x0 + b d/da[(1 - a^T)/(1 - a)].
    let (a, b, x0) = (0.97, 0.3, 1.5);
    for steps in [0, 1, 2, 10, 500] {
        let t = steps as f64;
        let run = Rollout::new(Affine).steps(steps).schedule(Schedule::Binomial { snapshots: 3 });
        let gradient = run.value_and_grad(&x0, &[a, b], |x| *x).unwrap();
        let power = a.powf(t);
        let series = (1.0 - power) / (1.0 - a);
        let by_a = if steps == 0 {
            0.0
        } else {
            t * a.powf(t - 1.0) * x0
                + b * ((1.0 - power) / (1.0 - a).powi(2) - t * a.powf(t - 1.0) / (1.0 - a))
        };
        let close = |found: f64, exact: f64| (found - exact).abs() <= 1e-12 * exact.abs().max(1.0);
        assert!(close(gradient.value, power * x0 + b * series), "{steps}: {gradient:?}");
        assert!(close(gradient.initial, power), "{steps}: {gradient:?}");
        assert!(
            close(gradient.params[0], by_a) && close(gradient.params[1], series),
            "{steps}: {gradient:?}"
        );
    }
}

#[test]
fn a_gradient_agrees_with_finite_differences() {
    let sum = |u: &Vec<Var<f64>>| u.iter().map(|&u| u * u).sum();
    let loss_of = |initial: &[f64], k: f64, sources: &[f64]| -> f64 {
        let run = Rollout::new(Heat).inputs(sources.iter().copied());
        run.run(&initial.to_vec(), &k).unwrap().iter().map(|u| u * u).sum()
    };
    let (initial, sources) = (wave(8), (0..20).map(|i| 0.01 * i as f64).collect::<Vec<f64>>());
    let run = Rollout::new(Heat).inputs(sources.iter().copied());
    let run = run.schedule(Schedule::Binomial { snapshots: 3 });
    let gradient = run.value_and_grad(&initial, &0.2, sum).unwrap();
    let h = 1e-6;
    let check = |found: f64, up: f64, down: f64| {
        let difference = (up - down) / (2.0 * h);
        assert!((found - difference).abs() < 1e-8, "{found} and {difference}");
    };
    check(gradient.params, loss_of(&initial, 0.2 + h, &sources), loss_of(&initial, 0.2 - h, &sources));
    let moved = |list: &[f64], i: usize, h: f64| {
        let mut list = list.to_vec();
        list[i] += h;
        list
    };
    for i in 0..8 {
        let loss = |h| loss_of(&moved(&initial, i, h), 0.2, &sources);
        check(gradient.initial[i], loss(h), loss(-h));
    }
    for i in 0..20 {
        let loss = |h| loss_of(&initial, 0.2, &moved(&sources, i, h));
        check(gradient.inputs[i], loss(h), loss(-h));
    }
}

#[test]
fn inputs_that_are_missing_are_named() {
    let of = |run: Rollout<'_, Heat>| run.value_and_grad(&vec![0.0; 4], &0.1, |u| u[1]).unwrap_err();
    assert_eq!(of(Rollout::new(Heat).steps(3)), Error::NoInput);
    let few = Rollout::new(Heat).steps(3).inputs([0.0, 1.0]);
    assert_eq!(of(few), Error::TooFewInputs { inputs: 2, steps: 3 });
}

#[test]
fn a_cotangent_that_overflows_names_the_step() {
    let run = Rollout::new(Affine).steps(3000).schedule(Schedule::Binomial { snapshots: 30 });
    let error = run.value_and_grad(&0.0, &[2.0, 0.0], |x| *x).expect_err("2^3000 is too large");
    let Error::NonFiniteCotangent { step, cause, .. } = error else { panic!("{error}") };
    assert!((1976 - 64..1977).contains(&step), "2^1024 is not finite: {step}"); // known to as many steps as are recorded at once
    assert!(cause.contains("grown"), "{cause}");
}

#[test]
fn hidden_state_is_found() {
    let run = |schedule| Rollout::new(Hidden::default()).steps(40).schedule(schedule).record_at_once(2);
    for schedule in SCHEDULES.into_iter().filter(|schedule| *schedule != Schedule::StoreAll) {
        for run in [run(schedule), run(schedule).verify()] {
            let error = run.value_and_grad(&1.0, &1.0, |x| *x).expect_err("hidden state");
            assert!(matches!(error, Error::Diverged { .. }), "{schedule:?}: {error}");
            assert!(error.to_string().contains("move that into the state"));
        }
    }
    // What is not computed twice does not differ, unless it is verified.
    assert!(run(Schedule::StoreAll).value_and_grad(&1.0, &1.0, |x| *x).is_ok());
    let error =
        run(Schedule::StoreAll).verify().value_and_grad(&1.0, &1.0, |x| *x).expect_err("hidden state");
    assert_eq!(error, Error::Diverged { step: 0 });
}

#[test]
fn the_report_fits_into_a_line() {
    let run = Rollout::new(Lorenz).steps(10_000).budget("16KiB");
    let gradient =
        run.value_and_grad(&[1.0, 1.0, 1.0], &[10.0, 10.0, 8.0 / 3.0], |[x, y, z]| *x + *y + *z).unwrap();
    let text = gradient.report.to_string();
    assert!(text.starts_with("10,000 steps · "), "{text}");
    assert!(text.contains("of 16 KiB"), "{text}");
    assert_eq!(gradient.report.forward, gradient.report.optimum, "{text}");
    assert!(gradient.report.peak_bytes <= 16384, "{text}");
}

/// What crosses from step to step is the same node twice, a parameter, an input, a constant, or untouched.
#[step(Sharing)]
fn sharing<S: Real>(state: &mut [S; 6], [p, q]: &[S; 2], input: &S) {
    let [a, b, c, d, e, f] = *state;
    let shared = (a * b + c * *p).sin() + d * *q;
    *state = [shared, shared, *p, S::from_f64(0.75), e, b * 0.5 + f * e * *input];
    if a.peek().is_some_and(|a| a > 0.3) {
        state[2] = *input;
        state[3] = shared;
    }
}

#[test]
fn what_is_shared_between_steps_has_the_same_bits_under_every_schedule() {
    let make = || Rollout::new(Sharing).steps(37).inputs((0..37).map(|i| (i as f64 * 0.3).cos()));
    let initial = [0.3, -0.4, 0.5, 1.1, 0.9, -0.2];
    let loss = |s: &[Var<f64>; 6]| s.iter().zip(1..).map(|(&x, i)| x * x * f64::from(i)).sum();
    agrees_with_itself(make, &initial, &[0.8, 0.6], loss);
    agrees_with_itself(|| Rollout::new(Sharing).steps(37).input(0.4), &initial, &[0.8, 0.6], loss);
}

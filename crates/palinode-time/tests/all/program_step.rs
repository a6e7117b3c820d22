//! Steps that are programs: against the same steps in Rust, against the tape, and bit for bit the same for
//! every schedule.

use crate::models::{Heat, SCHEDULES, bits, smallest, wave};
use palinode_core::{Real, Snapshot, Var};
use palinode_ir::interp::{Datum, Limits};
use palinode_ir::{FunctionBuilder, Type};
use palinode_macros::step;
use palinode_time::{
    Differentiate, Error, Gradient, ProgramStep, ProgramStepError, ProgramValues, Repeat, Rollout, Taped,
};

const OSCILLATOR: &str = "
    param stiffness = 4
    param friction = 0.1
    input position = 1
    input velocity = 0.25
    input dt = 0.01
    let force = -stiffness * position - friction * velocity
    output next_velocity = velocity + force * dt
    output next_position = position + next_velocity * dt
";

/// The same step in Rust.
#[step(Oscillator)]
fn swing<S: Real>([position, velocity]: &mut [S; 2], [stiffness, friction]: &[S; 2], dt: &S) {
    let force = -*stiffness * *position - *friction * *velocity;
    *velocity += force * *dt;
    *position += *velocity * *dt;
}

const HEAT: &str = "
    input u: [n]
    param conductivity = 0.2
    input source
    var rod = u
    for i in 1..n - 1 {
        rod[i] = u[i] + conductivity * (u[i - 1] - u[i] * 2 + u[i + 1])
    }
    rod[1] += source
    output next_u = rod
";

/// Everything at once: a loop inside the step, a branch, a matrix, an integer in the state.
const NETWORK: &str = "
    input h: [n]
    input w: [n, n]
    input round: int = 0
    param bias: [n]
    param rate = 0.01
    input x: [n]
    var z = w @ h + bias
    if round % 3 == 0 { z += x }
    var out = z
    var k = 0
    while k < n {
        out[k] = tanh(z[k])
        k += 1
    }
    output next_round = round + 1
    output next_w = w + rate * outer(out, h)
    output next_h = out
";

fn step_of(source: &str) -> ProgramStep {
    ProgramStep::from_source(source).unwrap_or_else(|error| panic!("{error}"))
}

fn sources() -> Vec<f64> {
    (0..60).map(|i| (f64::from(i) * 0.1).cos() * 0.05).collect()
}

/// A rollout, its initial state and parameters.
type Case<How = Taped> = (Rollout<'static, ProgramStep, How>, ProgramValues<f64>, ProgramValues<f64>);

fn heat() -> Case {
    let step = step_of(HEAT);
    let state = step.state(&[("u", Datum::vector(wave(20)))]).unwrap();
    let params = step.params(&[]).unwrap();
    let input = |&source: &f64| step.input(&[("source", Datum::real(source))]).unwrap();
    let inputs: Vec<ProgramValues<f64>> = sources().iter().map(input).collect();
    (step.rollout().steps(60).inputs(inputs), state, params)
}

fn oscillator() -> Case {
    let step = step_of(OSCILLATOR);
    let (state, params) = (step.state(&[]).unwrap(), step.params(&[]).unwrap());
    (step.rollout().steps(200), state, params)
}

fn network() -> Case {
    let n = 4;
    let wave =
        |count: usize, pace: f64| (0..count).map(|i| (i as f64 * pace).sin() * 0.4).collect::<Vec<_>>();
    let step = step_of(NETWORK);
    let state =
        step.state(&[("h", Datum::vector(wave(n, 1.1))), ("w", Datum::matrix(n, n, wave(n * n, 1.7)))]);
    let params = step.params(&[("bias", Datum::vector(wave(n, 0.3)))]);
    let inputs: Vec<ProgramValues<f64>> = (0..25)
        .map(|at| step.input(&[("x", Datum::vector(wave(n, f64::from(at) * 0.1)))]).unwrap())
        .collect();
    (step.rollout().steps(25).inputs(inputs), state.unwrap(), params.unwrap())
}

/// The sum of squares of everything real in a state.
fn energy<S: Real>(state: &ProgramValues<S>) -> S {
    let reals = state.data().iter().filter_map(Datum::as_vector).flatten();
    reals.fold(S::zero(), |sum, &x| sum + x * x)
}

/// Everything real, in one list.
fn reals(values: &ProgramValues<f64>) -> impl Iterator<Item = f64> {
    values.data().iter().filter_map(Datum::as_vector).flatten().copied()
}

/// Everything real of a gradient.
fn numbers(gradient: &Gradient<ProgramStep>) -> Vec<f64> {
    [&gradient.initial, &gradient.params].into_iter().chain(&gradient.inputs).flat_map(reals).collect()
}

fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    for (at, (x, y)) in found.iter().zip(expected).enumerate() {
        assert!((x - y).abs() <= tolerance * scale, "number {at}: {x} and {y}");
    }
}

#[test]
fn a_program_goes_the_way_of_the_same_step_in_rust() {
    let (run, state, params) = oscillator();
    let found = run.run(&state, &params).unwrap();
    let expected = Rollout::new(Oscillator).steps(200).input(0.01).run(&[1.0, 0.25], &[4.0, 0.1]).unwrap();
    assert_eq!([found.real(0), found.real(1)].map(f64::to_bits), expected.map(f64::to_bits));

    let (run, state, params) = heat();
    let found = run.run(&state, &params).unwrap();
    let expected = Rollout::new(Heat).steps(60).inputs(sources()).run(&wave(20), &0.2).unwrap();
    let to_bits = |list: &[f64]| list.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(to_bits(found.elements(0)), to_bits(&expected));
}

#[test]
fn its_gradient_is_that_of_the_same_step_in_rust() {
    let (run, state, params) = heat();
    let by_rule = run.by_rule().value_and_grad(&state, &params, energy).unwrap();
    let rust = Rollout::new(Heat).steps(60).inputs(sources());
    let rust = rust.value_and_grad(&wave(20), &0.2, |u| u.iter().map(|&u| u * u).sum()).unwrap();
    assert_eq!(by_rule.value.to_bits(), rust.value.to_bits());
    let expected = [&rust.initial[..], &[rust.params], &rust.inputs].concat();
    assert_close(&numbers(&by_rule), &expected, 1e-13);

    let (run, state, params) = oscillator();
    let by_rule = run.by_rule().value_and_grad(&state, &params, energy).unwrap();
    let rust = Rollout::new(Oscillator).steps(200).input(0.01);
    let rust = rust.value_and_grad(&[1.0, 0.25], &[4.0, 0.1], |[x, v]| *x * *x + *v * *v).unwrap();
    let expected = [&rust.initial[..], &rust.params, &rust.inputs].concat();
    assert_close(&numbers(&by_rule), &expected, 1e-12);
}

#[test]
fn the_rule_agrees_with_the_tape_and_with_finite_differences() {
    for make in [oscillator, heat, network] {
        let (run, state, params) = make();
        run.check_rule(&state, &params, 20).expect("the rule is right");
        let by_tape = run.value_and_grad(&state, &params, energy).unwrap();
        let by_rule = make().0.by_rule().value_and_grad(&state, &params, energy).unwrap();
        assert_eq!(by_rule.value.to_bits(), by_tape.value.to_bits());
        assert_close(&numbers(&by_rule), &numbers(&by_tape), 1e-12);

        let value = |state: &ProgramValues<f64>, params: &ProgramValues<f64>| {
            energy(&make().0.run(state, params).unwrap())
        };
        let differences = |values: &ProgramValues<f64>, value: &dyn Fn(&ProgramValues<f64>) -> f64| {
            let moved = |entry: usize, by: f64| {
                let mut at = 0;
                shifted(values, |x| {
                    at += 1;
                    if at == entry + 1 { x + by } else { x }
                })
            };
            let h = 1e-5;
            let slope = |entry| (value(&moved(entry, h)) - value(&moved(entry, -h))) / (2.0 * h);
            (0..reals(values).count()).map(slope).collect::<Vec<f64>>()
        };
        let expected = [
            differences(&state, &|state| value(state, &params)),
            differences(&params, &|params| value(&state, params)),
        ]
        .concat();
        assert_close(&numbers(&by_rule)[..expected.len()], &expected, 1e-7);
    }
}

/// The same values with every real changed, in order.
fn shifted(values: &ProgramValues<f64>, mut number: impl FnMut(f64) -> f64) -> ProgramValues<f64> {
    let mut snapshot = Snapshot::of(values);
    snapshot.reals_mut().iter_mut().for_each(|word| *word = number(f64::from_bits(*word)).to_bits());
    snapshot.loaded()
}

fn same_bits<How: Differentiate<ProgramStep>>(make: impl Fn() -> Case<How>) {
    let gradient =
        |change: &dyn Fn(Rollout<'static, ProgramStep, How>) -> Rollout<'static, ProgramStep, How>| {
            let (run, state, params) = make();
            change(run).value_and_grad(&state, &params, energy)
        };
    let reference = bits(&gradient(&|run| run).unwrap());
    assert!(reference.iter().all(|&word| f64::from_bits(word).is_finite()));
    for schedule in SCHEDULES {
        let found = gradient(&|run| run.schedule(schedule)).unwrap();
        assert_eq!(bits(&found), reference, "{schedule:?}");
    }
    assert_eq!(bits(&gradient(&|run| run.verify()).unwrap()), reference);
    let smallest = smallest(gradient(&|run| run.budget(1)));
    for more in [0, 1000, 100_000] {
        let found = gradient(&|run| run.budget(smallest + more)).unwrap();
        assert_eq!(bits(&found), reference, "{more} bytes more than the least");
        assert!(found.report.peak_bytes <= smallest + more, "{} of {}", found.report, smallest + more);
    }
    let refused = gradient(&|run| run.budget(smallest - 1));
    assert!(matches!(refused, Err(Error::BudgetTooSmall { .. })));
}

#[test]
fn every_schedule_gives_the_same_bits() {
    for make in [oscillator, heat, network] {
        same_bits(make);
        same_bits(|| {
            let (run, state, params) = make();
            (run.by_rule(), state, params)
        });
    }
}

#[test]
fn loops_with_a_condition_nests_and_losses_along_the_way_work() {
    let (run, state, params) = oscillator();
    let along = |step: u64, state: &ProgramValues<Var<f64>>| energy(state) * (step as f64).sqrt();
    let by_tape = run.value_and_grad_along(&state, &params, along).unwrap();
    let by_rule = oscillator().0.by_rule().value_and_grad_along(&state, &params, along).unwrap();
    assert_close(&numbers(&by_rule), &numbers(&by_tape), 1e-12);

    let until = || step_of(OSCILLATOR).rollout().until(|state| state.real(0) < 0.0);
    let by_tape = until().value_and_grad(&state, &params, energy).unwrap();
    let by_rule = until().by_rule().value_and_grad(&state, &params, energy).unwrap();
    assert!(by_tape.report.steps > 10 && by_tape.report.stop.is_some());
    assert_close(&numbers(&by_rule), &numbers(&by_tape), 1e-12);

    let step = step_of(OSCILLATOR);
    let input = step.input(&[]).expect("the default");
    let nested = Rollout::new(Repeat::new(step, 20)).steps(10).input(input).nested();
    let nested = nested.value_and_grad(&state, &params, energy).unwrap();
    let flat = oscillator().0.value_and_grad(&state, &params, energy).unwrap();
    assert_eq!(nested.value.to_bits(), flat.value.to_bits());
    assert_close(nested.params.elements(0), flat.params.elements(0), 1e-12);
}

#[test]
fn second_order_goes_through_the_rule() {
    let (run, state, params) = network();
    let direction = (&shifted(&state, |x| (x * 7.0).cos()), &shifted(&params, |x| (x * 5.0).sin()));
    let (by_tape, tape_product) = run.hvp(&state, &params, direction, energy).unwrap();
    let (by_rule, rule_product) = network().0.by_rule().hvp(&state, &params, direction, energy).unwrap();
    assert_close(&numbers(&by_rule), &numbers(&by_tape), 1e-12);
    assert_close(&numbers(&rule_product), &numbers(&tape_product), 1e-11);
    // Forwards, streaming, it is the product of gradient and direction.
    let (_, derivative) = network().0.jvp(&state, &params, direction, energy).unwrap();
    let pairs = [(&by_rule.initial, direction.0), (&by_rule.params, direction.1)];
    let product: f64 = pairs.iter().flat_map(|(g, d)| reals(g).zip(reals(d))).map(|(g, d)| g * d).sum();
    assert_close(&[product], &[derivative], 1e-12);
}

#[test]
fn a_derivative_given_by_hand_that_is_wrong_is_found() {
    let with_slope = |slope: &str| {
        let source = format!(
            "fn square(x.0: f64) -> (f64) tangent rule {{
               v1 = mul x.0, x.0
               yield v1
             }}
             fn rule(x.0: f64, dx.1: f64) -> (f64) {{
               v2 = const {slope}
               v3 = mul x.0, v2
               v4 = mul v3, dx.1
               yield v4
             }}
             entry fn main(x.0: f64) -> (f64) outputs (next_x) {{
               v1 = call square(x.0)
               yield v1
             }}"
        );
        let program = palinode_ir::text::parse(&source).unwrap_or_else(|error| panic!("{error:?}"));
        let step = ProgramStep::from_program(&program, &[]).expect("a step");
        let state = step.state(&[("x", Datum::real(0.9))]).unwrap();
        step.rollout().steps(3).check_rule(&state, &ProgramValues::default(), 3)
    };
    with_slope("2.0").expect("the rule is right");
    let wrong = with_slope("-2.0").expect_err("its sign is wrong");
    assert!(matches!(wrong, Error::WrongRule { what: "state", position: 0, step: 0, .. }), "{wrong}");
}

#[test]
fn integers_are_kept_and_not_differentiated_by() {
    let (run, state, params) = network();
    let step = step_of(NETWORK);
    assert_eq!(step.state_names(), ["h", "w", "round"]);
    assert_eq!((step.param_names(), step.input_names()), (vec!["bias", "rate"], vec!["x"]));
    let last = run.run(&state, &params).unwrap();
    assert_eq!(last[2].as_int(), Some(25));
    let gradient = run.by_rule().value_and_grad(&state, &params, energy).unwrap();
    assert_eq!(gradient.initial[2].as_int(), Some(0));
    assert_eq!(gradient.initial[1].shape(), [4, 4]);
}

#[test]
fn a_program_built_by_hand_is_a_step() {
    let mut b = FunctionBuilder::new("affine");
    let (a, x, by) = (b.param("a", Type::REAL), b.param("x", Type::REAL), b.param("by", Type::REAL));
    let product = b.mul(a, x);
    let next = b.add(product, by);
    let program = b.finish_program(&[next], &["x"]).expect("a program"); // an output may have the name of the state itself
    let step = ProgramStep::from_program(&program, &["a"]).expect("a step");
    let state = step.state(&[("x", Datum::real(1.5))]).unwrap();
    let params = step.params(&[("a", Datum::real(0.5))]).unwrap();
    let input = step.input(&[("by", Datum::real(1.0))]).unwrap();
    let run = step.rollout().steps(3).input(input).by_rule();
    let gradient = run.value_and_grad(&state, &params, |state| state.real(0)).unwrap();
    // x3 = a^3 x + by (1 + a + a^2)
    assert_eq!(gradient.value, 0.125 * 1.5 + 1.75);
    assert_eq!(gradient.initial.real(0), 0.125);
    assert_eq!(gradient.params.real(0), 3.0 * 0.25 * 1.5 + 1.0 + 2.0 * 0.5);
    assert_eq!(gradient.inputs[0].real(0), 1.75);
}

/// Fails at step 7: its table has seven entries.
const SHORT: &str = "
    input x = 1
    input at: int = 0
    param table: [_] = [1, 2, 3, 4, 5, 6, 7]
    output next_x = x * 0.9 + table[at]
    output next_at = at + 1
";

#[test]
fn a_run_that_fails_names_the_step_whatever_drives_it() {
    let step = step_of(SHORT);
    let (state, params) = (step.state(&[]).unwrap(), step.params(&[]).unwrap());
    let make = || step_of(SHORT).rollout().steps(20);
    let check = |error: Option<Error>| match error {
        Some(Error::StepFailed { step: 7, reason }) => assert!(reason.contains("PAL0"), "{reason}"),
        other => panic!("not the failure of step 7: {other:?}"),
    };
    check(make().run(&state, &params).err());
    let endless = || step_of(SHORT).rollout().until(|state| state.real(0) < 0.0);
    check(endless().run(&state, &params).err());
    check(make().jvp(&state, &params, (&state, &params), energy).err());
    check(make().check_rule(&state, &params, 20).err());
    check(make().hvp(&state, &params, (&state, &params), energy).err());
    check(make().by_rule().hvp(&state, &params, (&state, &params), energy).err());
    for schedule in SCHEDULES {
        check(make().schedule(schedule).value_and_grad(&state, &params, energy).err());
        check(make().schedule(schedule).verify().value_and_grad(&state, &params, energy).err());
        check(make().schedule(schedule).by_rule().value_and_grad(&state, &params, energy).err());
        check(make().schedule(schedule).record_at_once(5).value_and_grad(&state, &params, energy).err());
    }
    check(endless().value_and_grad(&state, &params, energy).err());
    check(endless().by_rule().value_and_grad(&state, &params, energy).err());
    let inner = Rollout::new(Repeat::new(step_of(SHORT), 3)).steps(5).input(ProgramValues::default());
    let failed = inner.nested().value_and_grad(&state, &params, energy).err();
    assert!(matches!(failed, Some(Error::StepFailed { step: 2, .. })), "{failed:?}");

    // The same rollout works afterwards with what it can do.
    let run = make().steps(20);
    check(run.run(&state, &params).err());
    let longer = step.params(&[("table", Datum::vector(vec![0.5; 20]))]).unwrap();
    run.value_and_grad(&state, &longer, energy).unwrap();
}

#[test]
fn a_step_that_runs_too_long_or_changes_its_shape_fails() {
    let endless = "input x = 1\nvar y = x\nwhile y > 0 { y += 1 }\noutput next_x = y";
    let step = step_of(endless).limits(Limits { steps: 1000, ..Limits::default() });
    let state = step.state(&[]).unwrap();
    let failed = step.rollout().steps(2).run(&state, &ProgramValues::default()).expect_err("too long");
    assert_eq!(failed.code(), "PAL0534");
    assert!(failed.to_string().contains("1000"), "{failed}");

    let step = step_of("input x: [_]\noutput next_x = x[1..len(x)]");
    let state = step.state(&[("x", Datum::vector(vec![1.0; 5]))]).unwrap();
    let failed = step.rollout().steps(2).run(&state, &ProgramValues::default()).expect_err("it shrinks");
    assert!(matches!(&failed, Error::StepFailed { step: 0, reason } if reason.contains("[5]")), "{failed}");

    let step = step_of("input x: [n]\nparam k: [n]\noutput next_x = x * sum(k)");
    let state = step.state(&[("x", Datum::vector(vec![1.0; 5]))]).unwrap();
    let params = step.params(&[("k", Datum::vector(vec![1.0; 4]))]).unwrap();
    let failed = step.rollout().steps(2).run(&state, &params).expect_err("the lengths differ");
    assert!(failed.to_string().contains("length `n`"), "{failed}");
}

#[test]
fn a_program_that_is_no_step_is_refused() {
    let refused = |source: &str| ProgramStep::from_source(source).expect_err("it is no step");
    let cases = [
        ("output next_x = sni(x)", "PAL0530"),
        ("param k = 1\noutput y = k", "PAL0531"),
        ("input x = 1\nloss l = x", "PAL0531"),
        ("input x = 1\noutput x\noutput next_x = x + 1", "PAL0531"),
        ("input x = 1\noutput next_x = [x, x]", "PAL0532"),
        ("input x = 1\noutput next_x = 1 > 2", "PAL0532"),
    ];
    for (source, code) in cases {
        let error = refused(source);
        assert_eq!(error.code(), code, "{source}: {error}");
        assert!(error.to_string().starts_with(code), "{error}");
    }
    assert!(
        matches!(refused("input x = 1\nloss l = x"), ProgramStepError::NotAState { output } if output == "l")
    );

    let mut b = FunctionBuilder::new("main");
    let x = b.param("x", Type::REAL);
    let program = b.finish_program(&[x], &["x"]).expect("a program");
    let error = ProgramStep::from_program(&program, &["k"]).expect_err("there is no k");
    assert_eq!(error.code(), "PAL0531");
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let step = step_of("input x: [3]\ninput t: ms = 5\nparam k: [_]\noutput next_x = x * sum(k) * t");
    assert_eq!(step.input(&[]).expect("the default").real(0), 0.005); // in SI
    let cases: [&[(&str, Datum<f64>)]; 4] = [
        &[("y", Datum::real(1.0))],
        &[],
        &[("x", Datum::real(1.0))],
        &[("x", Datum::vector(vec![1.0, 2.0]))],
    ];
    for given in cases {
        let error = step.state(given).expect_err("it does not fit");
        assert_eq!(error.code(), "PAL0533", "{error}");
        assert_eq!(Error::from(error).code(), "PAL0533");
    }
    let run = step_of(HEAT).rollout().steps(3); // its input has no default
    let (_, state, params) = heat();
    assert_eq!(run.run(&state, &params).expect_err("no input"), Error::NoInput);
    // Lists of the wrong values are errors, not mixed up.
    let failed = oscillator().0.run(&state, &params).expect_err("the state of another step");
    assert_eq!(failed.code(), "PAL0534");
}

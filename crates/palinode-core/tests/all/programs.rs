//! Random programs over every row of the rule table.
//!
//! Input: random indices. Output: a straight-line program that stays inside every operation's domain and away
//! from kinks at its own point, to be evaluated over any number.
//!
//! A program is calibrated once in `f64`: arguments get constant scales (powers of two, so exact) and shifts.
//! These are part of the program afterwards, so that every number type evaluates the very same function.

use palinode_core::rules::{Domain, Row};
use palinode_core::{DoubleDouble, Scalar};
use proptest::prelude::*;

/// How an argument is brought into a domain: `(scale * v)` or its square, plus a shift.
#[derive(Clone, Copy, Debug)]
struct Fit {
    from: usize,
    scale: f64,
    squared: bool,
    shift: f64,
}

#[derive(Clone, Debug)]
struct Step {
    op: Row,
    parameter: i32,
    args: Vec<Fit>,
}

/// A random program with the point it was calibrated at.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) point: Vec<f64>,
    steps: Vec<Step>,
    outputs: Vec<usize>,
}

/// How far from a kink the calibrated arguments stay.
const MARGIN: f64 = 1e-3;

impl Program {
    /// Evaluates the program; the last operation of each output is a product with 1.
    pub(crate) fn run<S: Scalar>(&self, x: &[S]) -> Vec<S> {
        let mut values = x.to_vec();
        for step in &self.steps {
            let args: Vec<S> = step.args.iter().map(|fit| fit.apply(&values)).collect();
            values.push(step.op.value(step.parameter, &args));
        }
        self.outputs.iter().map(|&k| values[k] * S::one()).collect()
    }

    /// Evaluates the program for one output, so that it can be differentiated as a scalar function.
    pub(crate) fn first<S: Scalar>(&self, x: &[S]) -> S {
        self.run(x)[0]
    }

    pub(crate) fn point_in<S: Scalar>(&self) -> Vec<S> {
        self.point.iter().map(|&v| S::from_f64(v)).collect()
    }
}

impl Fit {
    fn apply<S: Scalar>(&self, values: &[S]) -> S {
        let scaled = values[self.from] * S::from_f64(self.scale);
        let bent = if self.squared { scaled * scaled } else { scaled };
        bent + S::from_f64(self.shift)
    }
}

/// The largest magnitude of an argument: functions that grow fast or have poles get smaller ones.
fn largest(op: Row, domain: Domain) -> f64 {
    match (op.name(), domain) {
        (_, Domain::UnitClosed | Domain::UnitOpen) => 0.75,
        ("tan", _) => 1.0,
        ("exp" | "exp2" | "exp_m1" | "sinh" | "cosh" | "tanh" | "erf" | "erfc" | "powf", _) => 2.0,
        _ => 4.0,
    }
}

fn fit(op: Row, domain: Domain, from: usize, value: f64) -> Fit {
    let largest = largest(op, domain);
    let mut scale = 1.0;
    while (value * scale).abs() > largest {
        scale /= 2.0;
    }
    let plain = Fit { from, scale, squared: false, shift: 0.0 };
    match domain {
        Domain::Reals | Domain::UnitClosed | Domain::UnitOpen => plain,
        Domain::NonZero if (value * scale).abs() < 0.25 => {
            Fit { shift: if value < 0.0 { -0.5 } else { 0.5 }, ..plain }
        }
        Domain::NonZero => plain,
        Domain::Positive | Domain::NonNegative | Domain::GammaFinite => {
            Fit { squared: true, shift: 0.5, ..plain }
        }
        Domain::AtLeastOne => Fit { squared: true, shift: 1.25, ..plain },
        Domain::AboveMinusOne => Fit { squared: true, shift: -0.5, ..plain },
    }
}

/// Whether the arguments come near a point without a derivative.
fn near_kink(op: Row, args: &[f64]) -> bool {
    let small = |v: f64| v.abs() < MARGIN;
    let whole = |v: f64| small(v - v.round());
    match (op.name(), args) {
        ("cbrt", &[x]) => small(x),
        // Other vertical slopes are at the end of a domain, which `fit` keeps away from.
        (_, _) if op.kinks().iter().all(|kink| kink.kind == palinode_core::rules::KinkKind::Vertical) => {
            false
        }
        ("abs" | "signum" | "relu", &[x]) => small(x),
        ("floor" | "ceil" | "trunc" | "fract" | "round", &[x]) => whole(2.0 * x),
        ("copysign", &[x, y]) => small(x) || small(y),
        ("min" | "max", &[x, y]) => small(x - y),
        ("clamp", &[x, y, w]) => small(x - y) || small(x - w) || small(y - w),
        ("rem", &[x, y]) => whole(x / y),
        ("hypot", &[x, y]) => small(x.hypot(y)),
        ("atan2", &[x, y]) => small(x) || small(x.hypot(y)),
        ("powf", &[x, _]) => small(x),
        ("select_nonzero", &[x, _, _]) => small(x),
        (name, _) => panic!("tests/all/programs.rs does not know how to stay away from the kinks of {name}"),
    }
}

/// Builds a program from raw choices: (operation, parameter, arguments) per step.
fn calibrate(point: Vec<f64>, choices: &[(usize, i32, [usize; 3])], outputs: usize) -> Program {
    let mut values = point.clone();
    let mut steps = Vec::new();
    for &(op, parameter, sources) in choices {
        let mut op = Row::ALL[op % Row::ALL.len()];
        let build = |op: Row| -> Vec<Fit> {
            let domains = op.domains().iter().zip(sources);
            // Later values are likelier, so that programs get deep.
            let source = |k: usize| values.len() - 1 - (k * k / 7) % values.len();
            domains.map(|(&domain, k)| fit(op, domain, source(k), values[source(k)])).collect()
        };
        let mut args = build(op);
        let at = |args: &[Fit]| -> Vec<f64> { args.iter().map(|fit| fit.apply(&values)).collect() };
        if near_kink(op, &at(&args)) {
            op = Row::Sin;
            args = build(op);
        }
        let parameter = if op == Row::Polygamma { parameter.rem_euclid(4) } else { parameter };
        let value = op.value(parameter, &at(&args));
        assert!(value.is_finite(), "{} at {:?}", op.name(), at(&args));
        steps.push(Step { op, parameter, args });
        values.push(value);
    }
    let last = values.len() - 1;
    Program { point, steps, outputs: (0..outputs).map(|k| last - (k * 2) % values.len()).collect() }
}

/// Programs of up to four inputs, twenty operations and three outputs.
pub(crate) fn program() -> impl Strategy<Value = Program> {
    let step = (0..Row::ALL.len(), -3..5i32, [0..12usize, 0..12usize, 0..12usize]);
    (prop::collection::vec(-2.0..2.0f64, 1..=4), prop::collection::vec(step, 2..20), 1..=3usize)
        .prop_map(|(point, steps, outputs)| calibrate(point, &steps, outputs))
}

/// The gradient of the first output in double-double, by forward numbers.
pub(crate) fn precise_gradient(program: &Program) -> Vec<DoubleDouble> {
    use palinode_core::Dual;
    let x: Vec<DoubleDouble> = program.point_in();
    let along = |i: usize| -> Vec<Dual<DoubleDouble>> {
        let unit = |k: usize| DoubleDouble::from(i32::from(k == i));
        x.iter().enumerate().map(|(k, &v)| Dual::new(v, unit(k))).collect()
    };
    (0..x.len()).map(|i| program.first(&along(i)).tangent).collect()
}

#[test]
fn random_programs_reach_every_operation() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..400 {
        let program = program().new_tree(&mut runner).expect("a program").current();
        seen.extend(program.steps.iter().map(|step| step.op.name()));
    }
    let missing: Vec<&str> =
        Row::ALL.iter().map(|op| op.name()).filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "never generated: {missing:?}");
}

//! The checkers: any rule against any samples, in every mode of differentiation.
//!
//! Input: a rule (a row of the table or a planted bug) and the reference samples of an operation. Output:
//! what is wrong, as [`Finding`]s that name the operation, the region, the mode and the partial, and how far
//! off the worst result was.
//!
//! Invariant: rows and planted bugs go through the same functions here; nothing looks at which it is.

use crate::budget;
use crate::leaf::{Leaf, same_bits, ulps};
use crate::reference::Sample;
use palinode_core::rules::{Kink, Row, Rule, RuleVisitor};
use palinode_core::{Differentiable, DoubleDouble, Dual, DualN, Jet, Scalar, Tape, Var};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Something wrong with a rule.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) op: String,
    pub(crate) place: String,
    pub(crate) leaf: &'static str,
    pub(crate) mode: &'static str,
    /// `value`, `dx`, `dxy`, ...
    pub(crate) what: String,
    pub(crate) expected: String,
    pub(crate) got: String,
    pub(crate) note: String,
}

impl Finding {
    /// What was found with numbers over `S`: [expected, got].
    pub(crate) fn of<S: Leaf>(
        op: &str,
        place: String,
        mode: &'static str,
        what: String,
        [expected, got]: [f64; 2],
        note: String,
    ) -> Finding {
        let (expected, got) = (format!("{expected:e}"), format!("{got:e}"));
        Finding { op: op.into(), place, leaf: S::NAME, mode, what, expected, got, note }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { place, leaf, mode, what, expected, got, note, .. } = self;
        write!(f, "{place}, {leaf}, {mode}: {what} is {got} instead of {expected} ({note})")
    }
}

/// What checkers found, and the worst error of each operation, number type and mode.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) findings: Vec<Finding>,
    pub(crate) worst: BTreeMap<(&'static str, String, &'static str), f64>,
    /// How many results of each operation and order of derivative were compared with a bound that says
    /// something: one that neither zero nor twice the truth would pass.
    pub(crate) telling: BTreeMap<(&'static str, String, usize), usize>,
}

impl Report {
    /// Panics with everything that was found.
    #[track_caller]
    pub(crate) fn expect_clean(&self) {
        let shown: Vec<String> = self.findings.iter().take(60).map(Finding::to_string).collect();
        assert!(shown.is_empty(), "{} findings:\n{}", self.findings.len(), shown.join("\n"));
    }

    /// The worst errors in ulp: a line per operation, a column per mode.
    pub(crate) fn table(&self, leaf: &'static str) -> String {
        let mut text = format!("{leaf:<15}");
        for mode in MODES {
            text += &format!("{mode:>11}");
        }
        let ops: std::collections::BTreeSet<&String> =
            self.worst.keys().filter(|(l, _, _)| *l == leaf).map(|(_, op, _)| op).collect();
        for op in ops {
            text += &format!("\n{op:<15}");
            for mode in MODES {
                let worst = self.worst.get(&(leaf, op.clone(), mode));
                text += &worst.map_or(format!("{:>11}", "-"), |ulps| format!("{ulps:>11.2}"));
            }
        }
        text
    }
}

/// Every way that a derivative is taken here.
pub(crate) const MODES: [&str; 14] = [
    "value",
    "partial",
    "dual",
    "dual_n",
    "var",
    "var alone",
    "traced",
    "sweep fwd",
    "dual dual",
    "var dual",
    "dual var",
    "var var",
    "jet",
    "jet method",
];

const NAMES: [&str; 3] = ["x", "y", "w"];

fn partial_name(i: usize) -> String {
    format!("d{}", NAMES[i])
}

fn second_name(i: usize, j: usize) -> String {
    format!("d{}{}", NAMES[i], NAMES[j])
}

/// A rule as a function over one number.
type Over<D> = Box<dyn Fn(&[D]) -> D>;

/// A rule as functions over plain numbers, and over those of first order that every promise is about. The
/// checkers are compiled once for each number, not for each rule.
#[allow(clippy::type_complexity)]
pub(crate) struct FirstOrder<S: Leaf> {
    name: &'static str,
    kinks: &'static [Kink],
    uses_z: &'static [bool],
    value: Over<S>,
    value_and_dx: Box<dyn Fn(&[S]) -> (S, S)>,
    partial: Box<dyn Fn(usize, &[S], S) -> S>,
    dual: Over<Dual<S>>,
    var: Over<Var<S>>,
}

/// A rule as functions over every number that is built on `S`: all that the checkers need to know about it.
pub(crate) struct Lifted<S: Leaf> {
    first: FirstOrder<S>,
    dual_n: Over<DualN<S, 3>>,
    dual_dual: Over<Dual<Dual<S>>>,
    jet: Over<Jet<S, 2>>,
    /// The same through the method or operator of that name: products and quotients of jets have their own
    /// recurrences.
    jet_method: Over<Jet<S, 2>>,
    nested_tapes: Option<NestedTapes<S>>,
}

/// Tapes in second order. They take most of the time to compile.
struct NestedTapes<S: Leaf> {
    var_dual: Over<Var<Dual<S>>>,
    dual_var: Over<Dual<Var<S>>>,
    var_var: Over<Var<Var<S>>>,
}

/// What is made of a rule.
pub(crate) trait OfRule: Sized {
    fn of<R: Rule>(rule: R) -> Self;
    /// Of the rule of a row.
    fn of_row(row: Row, parameter: i32) -> Self {
        row.visit(parameter, Lift(PhantomData))
    }
}

struct Lift<T>(PhantomData<T>);

impl<T: OfRule> RuleVisitor for Lift<T> {
    type Output = T;
    fn visit<R: Rule>(self, rule: R) -> T {
        T::of(rule)
    }
}

impl<S: Leaf> OfRule for NestedTapes<S> {
    fn of<R: Rule>(rule: R) -> Self {
        NestedTapes {
            var_dual: Box::new(move |args| rule.apply(args)),
            dual_var: Box::new(move |args| rule.apply(args)),
            var_var: Box::new(move |args| rule.apply(args)),
        }
    }
}

impl<S: Leaf> OfRule for FirstOrder<S> {
    fn of<R: Rule>(rule: R) -> Self {
        FirstOrder {
            name: R::NAME,
            kinks: R::KINKS,
            uses_z: R::USES_Z,
            value: Box::new(move |args| rule.value(args)),
            value_and_dx: Box::new(move |args| rule.value_and_dx(args)),
            partial: Box::new(move |which, args, z| rule.partial(which, args, z)),
            dual: Box::new(move |args| rule.apply(args)),
            var: Box::new(move |args| rule.apply(args)),
        }
    }
}

impl<S: Leaf> OfRule for Lifted<S> {
    fn of<R: Rule>(rule: R) -> Self {
        Lifted {
            first: FirstOrder::of(rule),
            dual_n: Box::new(move |args| rule.apply(args)),
            dual_dual: Box::new(move |args| rule.apply(args)),
            jet: Box::new(move |args| rule.apply(args)),
            jet_method: Box::new(move |args| rule.value(args)),
            // Not `then`: only a branch on a constant leaves the other side uncompiled.
            nested_tapes: if S::NESTED_TAPES { Some(NestedTapes::of(rule)) } else { None },
        }
    }
}

/// Notes results of one sample.
struct Noting<'a, S> {
    sample: &'a Sample,
    name: &'static str,
    report: &'a mut Report,
    leaf: PhantomData<S>,
}

impl<S: Leaf> Noting<'_, S> {
    fn note(
        &mut self,
        order: usize,
        mode: &'static str,
        what: String,
        got: S,
        expected: DoubleDouble,
        allowed: budget::Allowed,
    ) {
        let target = expected.hi().abs();
        let budget::Allowed { ulp, size, floor, epsilon } = match got.bound() {
            Some(bound) => budget::known::<S>(bound, target, allowed),
            None => budget::compounded(allowed),
        };
        let size = size.max(target);
        let error = ulps(got, expected, size, floor, epsilon);
        let scale = if target == 0.0 { 1.0 } else { target };
        if (ulp * epsilon * size).max(floor) <= scale / 2.0 {
            *self.report.telling.entry((S::NAME, self.name.to_string(), order)).or_insert(0) += 1;
        }
        let worst = self.report.worst.entry((S::NAME, self.name.to_string(), mode)).or_insert(0.0);
        *worst = worst.max(error);
        if error > ulp {
            let (place, numbers) = (self.sample.describe(), [expected.hi(), got.wide().hi()]);
            let note = format!("{error:.2} ulp, {ulp:.2} allowed");
            self.report.findings.push(Finding::of::<S>(self.name, place, mode, what, numbers, note));
        }
    }

    fn first(&mut self, mode: &'static str, i: usize, got: S) {
        if let Some(expected) = self.sample.first[i] {
            self.note(1, mode, partial_name(i), got, expected, budget::first::<S>(self.sample, i));
        }
    }

    fn second(&mut self, mode: &'static str, i: usize, j: usize, got: S) {
        if let Some(expected) = self.sample.second[i][j] {
            self.note(2, mode, second_name(i, j), got, expected, budget::second::<S>(self.sample, i, j));
        }
    }
}

/// Value and derivatives of first and second order in every mode, at one sample.
pub(crate) fn against_reference<S: Leaf>(rule: &Lifted<S>, sample: &Sample, report: &mut Report) {
    if S::ROUNDS_ARGUMENTS {
        if let Some(rounded) = at_rounded_arguments::<S>(sample) {
            compare(rule, &rounded, report);
        }
    } else if S::holds(sample.fits_f32) {
        compare(rule, sample, report);
    }
}

/// The sample at arguments that `S` holds, with results from the row of the table in double-double, which is
/// itself held to the reference: from the row of that name, not from the rule under test, which may be wrong.
/// `None` where the results are not numbers, or `S` has too few bits for them.
fn at_rounded_arguments<S: Leaf>(sample: &Sample) -> Option<Sample> {
    let args: Vec<DoubleDouble> = sample.args.iter().map(|&v| S::from_f64(v).wide()).collect();
    let n = args.len();
    let finite = |number: DoubleDouble| number.hi().is_finite().then_some(number);
    let op = Row::named(&sample.op).unwrap_or_else(|| panic!("{} is no row of the table", sample.op));
    let derivative = |i: usize, j: usize| {
        let seeded = |k: usize| Dual::new(Dual::new(args[k], unit(k, j)), Dual::lift(unit(k, i)));
        op.visit(sample.parameter, Apply(&(0..n).map(seeded).collect::<Vec<_>>()))
    };
    let rounded = Sample {
        args: args.iter().map(|x| x.hi()).collect(),
        value: finite(op.visit(sample.parameter, Apply(&args)))?,
        first: (0..n).map(|i| finite(derivative(i, i).tangent.value)).collect(),
        second: (0..n).map(|i| (0..n).map(|j| finite(derivative(i, j).tangent.tangent)).collect()).collect(),
        ..sample.clone()
    };
    let reach = budget::reach(&rounded);
    S::epsilon_at(reach * reach).map(|_| rounded)
}

/// Applies the rule of a row.
pub(crate) struct Apply<'a, D>(pub(crate) &'a [D]);

impl<D: Differentiable> RuleVisitor for Apply<'_, D> {
    type Output = D;
    fn visit<R: Rule>(self, rule: R) -> D {
        rule.apply(self.0)
    }
}

fn unit<S: Scalar>(k: usize, i: usize) -> S {
    if k == i { S::one() } else { S::zero() }
}

fn compare<S: Leaf>(rule: &Lifted<S>, sample: &Sample, report: &mut Report) {
    let args: Vec<S> = sample.args.iter().map(|&v| S::from_f64(v)).collect();
    let n = args.len();
    let mut noting = Noting { sample, name: rule.first.name, report, leaf: PhantomData };
    let z = (rule.first.value)(&args);
    noting.note(0, "value", "value".into(), z, sample.value, budget::value::<S>(sample));

    let all =
        DualN::variables(core::array::from_fn::<S, 3, _>(|k| args.get(k).copied().unwrap_or(S::zero())));
    let dual_n = (rule.dual_n)(&all[..n]);
    for i in 0..n {
        noting.first("partial", i, (rule.first.partial)(i, &args, z));
        let seeded: Vec<Dual<S>> = (0..n).map(|k| Dual::new(args[k], unit(k, i))).collect();
        noting.first("dual", i, (rule.first.dual)(&seeded).tangent);
        noting.first("dual_n", i, dual_n.tangents[i]);
    }

    let one = [S::one()];
    let mut tape = Tape::new();
    let mut record = tape.record(&args, |x| (rule.first.var)(x)).expect("it fits");
    let gradient = record.reverse(&one).expect("lengths").to_vec();
    for i in 0..n {
        noting.first("var", i, gradient[i]);
        let tangents: Vec<S> = (0..n).map(|k| unit(k, i)).collect();
        noting.first("sweep fwd", i, record.forward(&tangents).expect("lengths")[0]);
        let mut alone = Tape::new();
        let mut record = alone
            .record(&args[i..=i], |x| {
                let mixed: Vec<Var<S>> =
                    (0..n).map(|k| if k == i { x[0] } else { Var::lift(args[k]) }).collect();
                (rule.first.var)(&mixed)
            })
            .expect("it fits");
        noting.first("var alone", i, record.reverse(&one).expect("lengths")[0]);
    }
    let mut traced = Tape::traced();
    let mut record = traced.record(&args, |x| (rule.first.var)(x)).expect("it fits");
    for (i, &got) in record.reverse(&one).expect("lengths").iter().enumerate() {
        noting.first("traced", i, got);
    }
    second_order(rule, &args, &mut noting);
}

fn second_order<S: Leaf>(rule: &Lifted<S>, args: &[S], noting: &mut Noting<'_, S>) {
    let n = args.len();
    for i in 0..n {
        for j in 0..n {
            let seeded = |k: usize| Dual::new(Dual::new(args[k], unit(k, j)), Dual::lift(unit(k, i)));
            let seeded: Vec<_> = (0..n).map(seeded).collect();
            noting.second("dual dual", i, j, (rule.dual_dual)(&seeded).tangent.tangent);
        }
        let along = |k: usize| if k == i { Jet::variable(args[k]) } else { Jet::lift(args[k]) };
        let curve: Vec<Jet<S, 2>> = (0..n).map(along).collect();
        for (mode, f) in [("jet", &rule.jet), ("jet method", &rule.jet_method)] {
            let z = f(&curve).derivatives();
            noting.first(mode, i, z[1]);
            noting.second(mode, i, i, z[2]);
        }
    }
    if S::NESTED_TAPES
        && let Some(rule) = &rule.nested_tapes
    {
        second_order_on_tapes(rule, args, noting);
    }
}

fn second_order_on_tapes<S: Leaf>(rule: &NestedTapes<S>, args: &[S], noting: &mut Noting<'_, S>) {
    let n = args.len();
    for i in 0..n {
        let seeded: Vec<Dual<S>> = (0..n).map(|k| Dual::new(args[k], unit(k, i))).collect();
        let mut tape = Tape::new();
        let mut record = tape.record(&seeded, |x| (rule.var_dual)(x)).expect("it fits");
        for (j, got) in record.reverse(&[Dual::one()]).expect("lengths").iter().enumerate() {
            noting.second("var dual", i, j, got.tangent);
        }
        let mut tape = Tape::new();
        let record = tape.record(args, |x| {
            let seeded: Vec<_> = (0..n).map(|k| Dual::new(x[k], unit(k, i))).collect();
            (rule.dual_var)(&seeded).tangent
        });
        for (j, &got) in record.expect("it fits").reverse(&[S::one()]).expect("lengths").iter().enumerate() {
            noting.second("dual var", i, j, got);
        }
    }
    let mut outer = Tape::new();
    let mut record = outer
        .record(args, |x| {
            let mut inner = Tape::new();
            let mut record = inner.record(x, |y| (rule.var_var)(y)).expect("it fits");
            record.reverse(&[Var::one()]).expect("lengths").to_vec()
        })
        .expect("it fits");
    for i in 0..n {
        let seed: Vec<S> = (0..n).map(|k| unit(k, i)).collect();
        for (j, &got) in record.reverse(&seed).expect("lengths").iter().enumerate() {
            noting.second("var var", i, j, got);
        }
    }
}

/// What the table promises bit by bit: `together` is the value and the partial, a partial without `via z`
/// does not look at the value, and every kink gives what its row says in every first-order mode.
pub(crate) fn promises<S: Leaf>(rule: &FirstOrder<S>, samples: &[Sample], report: &mut Report) {
    let mut note = |place: String, mode: &'static str, what: String, got: S, expected: S, note: &str| {
        if !same_bits(got, expected) {
            let numbers = [expected, got].map(|number| number.wide().hi());
            report.findings.push(Finding::of::<S>(rule.name, place, mode, what, numbers, note.into()));
        }
    };
    let kinks = rule.kinks.iter().map(|kink| kink.at.to_vec());
    let points =
        samples.iter().filter(|s| S::holds(s.fits_f32)).map(|sample| sample.args.clone()).chain(kinks);
    for args in points {
        let place = format!("{} {args:?}", rule.name);
        let args: Vec<S> = args.iter().map(|&v| S::from_f64(v)).collect();
        let z = (rule.value)(&args);
        if args.len() == 1 {
            let (value, dx) = (rule.value_and_dx)(&args);
            note(place.clone(), "together", "value".into(), value, z, "together must have the bits of value");
            let expected = (rule.partial)(0, &args, z);
            note(place.clone(), "together", "dx".into(), dx, expected, "together must have the bits of dx");
        }
        for i in (0..args.len()).filter(|&i| !rule.uses_z[i]) {
            let expected = (rule.partial)(i, &args, z);
            let blind = (rule.partial)(i, &args, S::from_f64(f64::NAN));
            let why = "a partial that is not via z must not look at z";
            note(place.clone(), "z = NaN", partial_name(i), blind, expected, why);
        }
    }
    for kink in rule.kinks {
        let args: Vec<S> = kink.at.iter().map(|&v| S::from_f64(v)).collect();
        let place = format!("{} kink {:?}", rule.name, kink.at);
        let z = (rule.value)(&args);
        let n = args.len();
        let mut tape = Tape::new();
        let mut record = tape.record(&args, |x| (rule.var)(x)).expect("it fits");
        let gradient = record.reverse(&[S::one()]).expect("lengths").to_vec();
        for i in 0..n {
            let expected = S::from_f64(kink.gives[i]);
            let why = "the convention of the row";
            note(place.clone(), "partial", partial_name(i), (rule.partial)(i, &args, z), expected, why);
            let seeded: Vec<Dual<S>> = (0..n).map(|k| Dual::new(args[k], unit(k, i))).collect();
            // -0 and 0 are one slope: a sum with the other arguments' zeros makes it +0.
            let plus_zero = |v: S| if v.equal(S::zero()) { S::zero() } else { v };
            let dual = (rule.dual)(&seeded).tangent;
            note(place.clone(), "dual", partial_name(i), plus_zero(dual), plus_zero(expected), why);
            note(place.clone(), "var", partial_name(i), plus_zero(gradient[i]), plus_zero(expected), why);
        }
    }
}

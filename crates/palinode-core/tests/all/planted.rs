//! Planted bugs: each must be caught by the checkers of the real rules, and named.
//!
//! A bug is a rule of its own, with the name of the row it spoils, or a leaf number that forgets the strong
//! zero. The unspoilt rules go through the same function and must come out clean.

use crate::bounded::Bounded;
use crate::check::{Finding, FirstOrder, Lifted, OfRule, Report, against_reference, promises};
use crate::leaf::Leaf;
use crate::reference::samples;
use crate::rules::samples_next_to_one;
use crate::strong_zero;
use palinode_core::rules::{self, Binary, Kink, One, Row, Rule, Ternary, Three, Two, Unary};
use palinode_core::{Constant, Differentiable, DoubleDouble, Posit16, Scalar, functions_by_row};

/// Everything that the checkers say about a rule, in `f64`.
fn examine<R: Rule>(rule: R) -> Vec<Finding> {
    examine_in::<f64, R>(rule)
}

fn examine_in<S: Leaf, R: Rule>(rule: R) -> Vec<Finding> {
    let (mut report, lifted) = (Report::default(), Lifted::<S>::of(rule));
    for sample in samples(R::NAME) {
        against_reference(&lifted, sample, &mut report);
    }
    if S::ROUNDS_ARGUMENTS {
        let op = Row::named(R::NAME).expect("a row");
        samples_next_to_one(&op).for_each(|sample| against_reference(&lifted, &sample, &mut report));
    }
    promises(&FirstOrder::<S>::of(rule), samples(R::NAME), &mut report);
    assert!(!samples(R::NAME).is_empty(), "{} has no samples to be caught with", R::NAME);
    report.findings
}

/// The bug must be found in this mode and partial, in a place whose description contains `place`; and the
/// finding says what was expected and what came.
#[track_caller]
fn caught<R: Rule>(bug: R, mode: &str, what: &str, place: &str) -> Vec<Finding> {
    let found = examine(bug);
    let named =
        found.iter().find(|f| f.op == R::NAME && f.mode == mode && f.what == what && f.place.contains(place));
    let named =
        named.unwrap_or_else(|| panic!("{}: not caught in {mode}, {what}, {place}: {found:?}", R::NAME));
    println!("caught: {named}");
    assert!(named.to_string().contains(R::NAME) && !named.expected.is_empty() && !named.got.is_empty());
    found
}

/// The bug must also be found where numbers have few bits: in this partial, on posits of 8 and of 16 bits, in
/// the modes that nest and that do not.
#[track_caller]
fn caught_on_posits<R: Rule>(bug: R, what: &str) {
    fn on<S: Leaf, R: Rule>(bug: R, what: &str) {
        let found = examine_in::<S, R>(bug);
        let modes: &[&str] =
            if what.len() == 2 { &["partial", "dual", "var"] } else { &["dual dual", "jet"] };
        // Jets have no mixed derivatives.
        for mode in modes.iter().filter(|mode| **mode != "jet" || what == "dxx") {
            let named = found.iter().find(|f| f.mode == *mode && f.what == what);
            let all: Vec<String> = found.iter().take(9).map(Finding::to_string).collect();
            let named =
                named.unwrap_or_else(|| panic!("{} on {}: {what} in {mode}: {all:?}", R::NAME, S::NAME));
            println!("caught: {named}");
        }
    }
    on::<Bounded<i8>, R>(bug, what);
    on::<Posit16, R>(bug, what);
}

/// The bug is caught in these modes, partials and places, and the rule that it spoils is clean. What was
/// found in the last of them comes back.
#[track_caller]
fn planted<R: Rule, B: Rule>(rule: R, bug: B, found: &[[&str; 3]]) -> Vec<Finding> {
    clean(rule);
    found.iter().fold(Vec::new(), |_, &[mode, what, place]| caught(bug, mode, what, place))
}

#[track_caller]
fn clean<R: Rule>(rule: R) {
    let found = examine(rule);
    assert!(found.is_empty(), "{}: {}", R::NAME, found[0]);
}

macro_rules! unary_bug {
    ($Bug:ident spoils $name:literal: value $value:expr; dx $dx:expr; $($item:item)*) => {
        #[derive(Clone, Copy)]
        struct $Bug;
        impl Unary for $Bug {
            const NAME: &'static str = $name;
            fn value<S: Scalar>(self, x: S) -> S {
                let value: fn(S) -> S = $value;
                value(x)
            }
            fn dx<S: Scalar>(self, x: S, z: S) -> S {
                let dx: fn(S, S) -> S = $dx;
                dx(x, z)
            }
            $($item)*
        }
    };
}

macro_rules! binary_bug {
    ($Bug:ident spoils $name:literal: value $value:expr; dx $dx:expr; dy $dy:expr; $($item:item)*) => {
        #[derive(Clone, Copy)]
        struct $Bug;
        impl Binary for $Bug {
            const NAME: &'static str = $name;
            fn value<S: Scalar>(self, x: S, y: S) -> S {
                let value: fn(S, S) -> S = $value;
                value(x, y)
            }
            fn dx<S: Scalar>(self, x: S, y: S, z: S) -> S {
                let dx: fn(S, S, S) -> S = $dx;
                dx(x, y, z)
            }
            fn dy<S: Scalar>(self, x: S, y: S, z: S) -> S {
                let dy: fn(S, S, S) -> S = $dy;
                dy(x, y, z)
            }
            $($item)*
        }
    };
}

unary_bug! { FlippedSign spoils "cos": value |x| x.cos(); dx |x, _| x.sin(); }
unary_bug! { WrongBranch spoils "abs": value |x| x.abs(); dx |_, _| S::one(); }
unary_bug! { WrongSideAtTheKink spoils "relu": value |x| x.relu();
    dx |x, _| S::select(x.less(S::zero()), S::zero(), S::one());
    const KINKS: &'static [Kink] = rules::Relu::KINKS;
}
unary_bug! { CancelsWhenSaturated spoils "tanh": value |x| x.tanh(); dx |_, z| S::one() - z * z; }
unary_bug! { WrongSideSaturates spoils "logistic": value |x| x.logistic(); dx |_, z| z * (S::one() - z); }
unary_bug! { DropsATerm spoils "tan": value |x| x.tan(); dx |_, z| z * z; }
unary_bug! { DropsAFactor spoils "erf": value |x| x.erf(); dx |x, _| S::constant(Constant::TwoOverSqrtPi) * (-x).exp(); }
unary_bug! { WrongConstant spoils "log10": value |x| x.log10(); dx |x, _| (x * S::constant(Constant::Ln2)).recip(); }
unary_bug! { StaleResult spoils "exp": value |x| x.exp(); dx |_, z| z; const DX_USES_Z: bool = false; }
unary_bug! { TornPair spoils "sin": value |x| x.sin(); dx |x, _| x.cos();
    fn value_and_dx<S: Scalar>(self, x: S) -> (S, S) { (x.sin(), x.cos() * x.cos() / x.cos()) }
}
unary_bug! { WrongSecondOrderOnly spoils "asin": value |x| x.asin();
    dx |x, _| ((S::one() - x) * (S::one() + x)).sqrt().recip();
}
unary_bug! { FrozenPartial spoils "sqrt": value |x| x.sqrt();
    // The right number with no derivative of its own: only nesting can see it.
    dx |x, _| S::from_f64(0.5 / x.peek().unwrap_or(f64::NAN).sqrt());
}
/// The number without what it depends on: right where it is used, wrong when that is differentiated.
fn frozen<S: Scalar>(x: S) -> S {
    S::from_f64(x.peek().unwrap_or(f64::NAN))
}
unary_bug! { WrongFactorInSecondOrder spoils "exp": value |x| x.exp(); dx |_, z| (z + frozen(z)) * S::half(); }
unary_bug! { WrongSignInSecondOrder spoils "sinh": value |x| x.sinh(); dx |x, _| frozen(x.cosh()) * S::from_int(2) - x.cosh(); }
unary_bug! { MissingTermInSecondOrder spoils "tan": value |x| x.tan(); dx |_, z| S::one() + z * frozen(z); }
unary_bug! { MissingFactor spoils "exp2": value |x| x.exp2(); dx |_, z| z; }
binary_bug! { SwappedArguments spoils "atan2": value |x, y| x.atan2(y);
    dx |x, y, _| -x / (x * x + y * y);
    dy |x, y, _| y / (x * x + y * y);
}
binary_bug! { SwappedPartials spoils "sub": value |x, y| x - y; dx |_, _, _| -S::one(); dy |_, _, _| S::one(); }
binary_bug! { ForgetsTheExponent spoils "powf": value |x, y| x.powf(y);
    dx |x, y, _| x.powf(y - S::one());
    dy |x, _, z| z.strong_mul(x.ln());
}
binary_bug! { WeakZero spoils "powf": value |x, y| x.powf(y);
    dx |x, y, _| y.strong_mul(x.powf(y - S::one()));
    dy |x, _, z| z * x.ln();
    const KINKS: &'static [Kink] = rules::Powf::KINKS;
}
binary_bug! { RoundsAcross spoils "rem": value |x, y| x % y; dx |_, _, _| S::one(); dy |x, y, _| -(x / y).round(); }

#[derive(Clone, Copy)]
struct ForgetsTheAddend;
impl Ternary for ForgetsTheAddend {
    const NAME: &'static str = "mul_add";
    fn value<S: Scalar>(self, x: S, y: S, w: S) -> S {
        x.mul_add(y, w)
    }
    fn dx<S: Scalar>(self, _: S, y: S, _: S, _: S) -> S {
        y
    }
    fn dy<S: Scalar>(self, x: S, _: S, _: S, _: S) -> S {
        x
    }
    fn dw<S: Scalar>(self, _: S, _: S, _: S, _: S) -> S {
        S::zero()
    }
}

#[test]
fn a_flipped_sign() {
    let modes = ["partial", "dual", "dual_n", "var", "var alone", "traced", "sweep fwd", "jet"];
    planted(One(rules::Cos {}), One(FlippedSign), &modes.map(|mode| [mode, "dx", "quadrant1+"]));
}

#[test]
fn a_wrong_branch() {
    let found = planted(One(rules::Abs {}), One(WrongBranch), &[["partial", "dx", "moderate-"]]);
    assert!(
        found.iter().all(|f| f.place.contains("-]") || f.place.contains("kink")),
        "the right branch is right"
    );
    planted(One(rules::Relu {}), One(WrongSideAtTheKink), &[["partial", "dx", "kink [0.0]"]]);
}

#[test]
fn a_saturated_region() {
    let saturated = [["partial", "dx", "saturated+"]];
    let found = planted(One(rules::Tanh {}), One(CancelsWhenSaturated), &saturated);
    assert!(found.iter().all(|f| !f.place.contains("tiny")), "the form is right elsewhere");
    let found = planted(One(rules::Logistic {}), One(WrongSideSaturates), &saturated);
    assert!(found.iter().all(|f| !f.place.contains("saturated-]")), "the form is right on the other side");
}

#[test]
fn a_swapped_argument() {
    planted(Two(rules::Atan2 {}), Two(SwappedArguments), &[["partial", "dx", "+-"], ["var", "dy", "-+"]]);
    planted(Two(rules::Subtract {}), Two(SwappedPartials), &[["dual", "dy", "--"]]);
}

#[test]
fn a_dropped_term_factor_or_constant() {
    planted(One(rules::Tan {}), One(DropsATerm), &[["partial", "dx", "tiny+"]]);
    planted(One(rules::Erf {}), One(DropsAFactor), &[["partial", "dx", "moderate-"]]);
    planted(One(rules::Log10 {}), One(WrongConstant), &[["partial", "dx", "above1"]]);
    planted(Two(rules::Powf {}), Two(ForgetsTheExponent), &[["partial", "dx", "positive_fraction"]]);
    planted(Three(rules::MulAdd {}), Three(ForgetsTheAddend), &[["var", "dw", ""]]);
    planted(Two(rules::Remainder {}), Two(RoundsAcross), &[["partial", "dy", ""]]);
}

#[test]
fn a_stale_result_and_a_torn_pair() {
    planted(One(rules::Exp {}), One(StaleResult), &[["z = NaN", "dx", "exp"], ["jet", "dx", "moderate+"]]);
    planted(One(rules::Sin {}), One(TornPair), &[["together", "dx", "sin"]]);
}

#[test]
fn a_partial_that_is_wrong_only_when_differentiated() {
    let found = planted(One(rules::Asin {}), One(WrongSecondOrderOnly), &[["dual dual", "dxx", "tiny+"]]);
    assert!(found.iter().all(|f| f.what == "dxx"), "the first order is right");
    let modes = ["dual dual", "var dual", "dual var", "var var", "jet"];
    let found = planted(One(rules::Sqrt {}), One(FrozenPartial), &modes.map(|mode| [mode, "dxx", "above1"]));
    assert!(found.iter().all(|f| f.what == "dxx"), "the first order is right");
}

/// First order: sign, factor, constant, term, argument, partial. Second order: factor, sign, term,
/// everything.
#[test]
fn bugs_in_few_bits() {
    caught_on_posits(One(FlippedSign), "dx");
    caught_on_posits(One(MissingFactor), "dx");
    caught_on_posits(One(WrongConstant), "dx");
    caught_on_posits(One(DropsATerm), "dx");
    caught_on_posits(Two(SwappedArguments), "dy");
    caught_on_posits(Two(SwappedPartials), "dx");
    caught_on_posits(Two(ForgetsTheExponent), "dx");
    caught_on_posits(Two(ForgetsTheExponent), "dxx");
    caught_on_posits(Two(ForgetsTheExponent), "dxy");
    caught_on_posits(Three(ForgetsTheAddend), "dw");
    caught_on_posits(One(WrongFactorInSecondOrder), "dxx");
    caught_on_posits(One(WrongSignInSecondOrder), "dxx");
    caught_on_posits(One(MissingTermInSecondOrder), "dxx");
    caught_on_posits(One(FrozenPartial), "dxx");
    caught(One(WrongFactorInSecondOrder), "dual dual", "dxx", "moderate");
}

#[test]
fn a_missing_strong_zero() {
    planted(Two(rules::Powf {}), Two(WeakZero), &[["partial", "dy", "kink [0.0, 0.5]"]]);

    assert!(strong_zero::findings::<f64>().is_empty());
    let found = strong_zero::findings::<Weak>();
    for (place, mode) in [
        ("0 * inf", "strong_mul"),
        ("NaN * 0", "strong_scale"),
        ("-0 * NaN", "strong_add"),
        ("0 * inf", "strong_combine"),
        ("sqrt(relu(x))", "reverse"),
        ("sqrt(relu(x))", "dual_n"),
        ("sqrt(abs(x))", "traced reverse"),
        ("min(x, sqrt(y))", "forward"),
        ("min(x, sqrt(y))", "forward_many"),
        ("sqrt(abs(x))", "reverse_many, idle lane"),
        ("rule select(1, x, sqrt(y))", "traced reverse"),
        ("sqrt(relu(x))", "unasked outputs"),
        ("sqrt(relu(x))", "unasked outputs, lanes"),
        ("sqrt(abs(x))", "reverse of 0"),
    ] {
        let named = found.iter().find(|f| f.place == place && f.mode == mode);
        println!("caught: {}", named.unwrap_or_else(|| panic!("{place} in {mode} is not caught")));
    }
}

/// An `f64` whose strong product is a plain product.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Weak(f64);

macro_rules! weak_operators {
    ($($Trait:ident $method:ident;)*) => {
        $(impl core::ops::$Trait for Weak {
            type Output = Weak;
            fn $method(self, other: Weak) -> Weak {
                Weak(core::ops::$Trait::$method(self.0, other.0))
            }
        })*
    };
}
weak_operators! { Add add; Sub sub; Mul mul; Div div; Rem rem; }

impl core::ops::Neg for Weak {
    type Output = Weak;
    fn neg(self) -> Weak {
        Weak(-self.0)
    }
}

impl Weak {
    fn apply(row: Row, parameter: i32, args: &[Weak]) -> Weak {
        match (row, args) {
            (Row::StrongMul, &[a, b]) => a * b,
            _ => Weak(row.value(parameter, &args.iter().map(|x| x.0).collect::<Vec<_>>())),
        }
    }
}

impl Scalar for Weak {
    type Bool = bool;
    fn strong_add_to(self, a: Weak, sum: Weak) -> Weak {
        sum + self * a
    }
    fn from_int(n: i32) -> Weak {
        Weak(f64::from(n))
    }
    fn constant(name: Constant) -> Weak {
        Weak(f64::constant(name))
    }
    fn from_f64(v: f64) -> Weak {
        Weak(v)
    }
    fn glance(self) -> Option<f64> {
        Some(self.0)
    }
    fn less(self, other: Weak) -> bool {
        self.0 < other.0
    }
    fn less_eq(self, other: Weak) -> bool {
        self.0 <= other.0
    }
    fn equal(self, other: Weak) -> bool {
        self.0 == other.0
    }
    fn select(condition: bool, if_true: Weak, if_false: Weak) -> Weak {
        if condition { if_true } else { if_false }
    }
    functions_by_row!();
}

impl Differentiable for Weak {}

impl Leaf for Weak {
    const NAME: &'static str = "weak f64";
    const EPSILON: f64 = f64::EPSILON;
    const SMALLEST: f64 = 5e-324;
    const LARGEST: f64 = f64::MAX;
    fn wide(self) -> DoubleDouble {
        DoubleDouble::from(self.0)
    }
    fn bits(self) -> [u64; 2] {
        [self.0.to_bits(), 0]
    }
}

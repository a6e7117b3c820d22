//! [`Bounded`]: a posit that knows how wrong it may be.
//!
//! Input: a computation, on posits. Output: the same posits, bit for bit, each with a bound of its distance
//! to what the computation gives in exact arithmetic: the running error of every rounding on the way, each
//! carried through all that follows. Where numbers have few bits, counting roundings ([`crate::budget`])
//! bounds nothing: ten roundings of three bits each may be anything. What really happened in them is known,
//! and much less.
//!
//! How a bound is made: the operation is done in double-double at the posits, which tells the rounding, and
//! at the ends of what the arguments may be, which tells the spread. Ends are enough: every function here is
//! monotone or convex in each argument, between poles. A rounding counts at most for half the gap to the next
//! posit, so that wrong arithmetic does not widen its own bound.
//!
//! Known limits: comparisons look at the posits. A rule that takes another branch than it would exactly must
//! be right on both.

use crate::leaf::Leaf;
use palinode_core::rules::Row;
use palinode_core::{Constant, Differentiable, DoubleDouble, Posit, PositWidth, Scalar, functions_by_row};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounded<W: PositWidth> {
    pub(crate) posit: Posit<W>,
    /// How far the exact result may be, at most.
    pub(crate) error: f64,
}

/// What double-double may be off by, relatively, with a margin.
const DOUBLE_DOUBLE: f64 = 1.0 / (1u128 << 96) as f64;

fn wide(v: f64) -> DoubleDouble {
    DoubleDouble::from(v)
}

/// The largest distance from `at` among results; infinite if one is not a number.
fn spread(at: DoubleDouble, results: impl IntoIterator<Item = DoubleDouble>) -> f64 {
    let distance = |result: DoubleDouble| {
        let distance = (result - at).abs().hi();
        if distance.is_nan() { f64::INFINITY } else { distance }
    };
    results.into_iter().map(distance).fold(0.0, f64::max)
}

impl<W: PositWidth> Bounded<W> {
    fn exact(posit: Posit<W>) -> Self {
        Bounded { posit, error: 0.0 }
    }

    fn wide(self) -> DoubleDouble {
        self.posit.to_double_double()
    }

    /// The smallest and the largest that the exact number may be.
    fn ends(self) -> [DoubleDouble; 2] {
        [self.wide() - wide(self.error), self.wide() + wide(self.error)]
    }

    /// Whether the exact number may be zero, or have the other sign.
    fn may_vanish(self) -> bool {
        self.error >= self.wide().abs().hi()
    }

    /// A result that was rounded from `exact`, with what the errors of arguments add.
    fn rounded(posit: Posit<W>, exact: DoubleDouble, spread: f64) -> Self {
        let got = posit.to_double_double();
        let rounding = (got - exact).abs().hi();
        let size = posit.abs();
        let at_an_end = size == Posit::MAX || size == Posit::MIN_POSITIVE || size.is_zero();
        let rounding = if at_an_end {
            rounding
        } else {
            let below = -(-posit).next_up();
            let gap = spread_of_two(posit.next_up().to_double_double(), below.to_double_double(), got);
            rounding.min(gap / 2.0)
        };
        let error = rounding + spread + exact.abs().hi() * DOUBLE_DOUBLE;
        Bounded { posit, error: if error.is_nan() { f64::INFINITY } else { error } }
    }

    fn through_two(
        self,
        other: Self,
        posit: Posit<W>,
        precise: impl Fn(DoubleDouble, DoubleDouble) -> DoubleDouble,
    ) -> Self {
        let exact = precise(self.wide(), other.wide());
        let corners = self.ends().into_iter().flat_map(|x| other.ends().map(|y| (x, y)));
        Self::rounded(posit, exact, spread(exact, corners.map(|(x, y)| precise(x, y))))
    }

    /// The bound that only a pole between the ends, or another branch, makes worthless.
    fn unless(self, crosses: bool) -> Self {
        Bounded { error: if crosses { f64::INFINITY } else { self.error }, ..self }
    }

    /// A row of the rule table.
    fn apply(row: Row, parameter: i32, args: &[Self]) -> Self {
        let (x, last) = (args[0], args[args.len() - 1]);
        if row == Row::StrongMul && (x.vanishes() || last.vanishes()) {
            return Self::exact(Posit::ZERO);
        }
        let posits: Vec<Posit<W>> = args.iter().map(|arg| arg.posit).collect();
        let at: Vec<DoubleDouble> = args.iter().map(|arg| arg.wide()).collect();
        let precise = |args: &[DoubleDouble]| row.value(parameter, args);
        let exact = precise(&at);
        let by_ends = || {
            let corners = args.iter().fold(vec![vec![]], |corners: Vec<Vec<DoubleDouble>>, arg| {
                let longer =
                    corners.iter().flat_map(|corner| arg.ends().map(|end| [&corner[..], &[end]].concat()));
                longer.collect()
            });
            spread(exact, corners.iter().map(|corner| precise(corner)))
        };
        let spread = match row {
            _ if args.iter().all(|arg| arg.error == 0.0) => 0.0,
            // Neither monotone nor convex: |sin''| <= 1.
            Row::Sin => x.error * (at[0].cos().abs().hi() + x.error / 2.0),
            Row::Cos => x.error * (at[0].sin().abs().hi() + x.error / 2.0),
            _ => by_ends(),
        };
        let imprecise = match row {
            // Double-double rounds the product, which may cancel against the addend.
            Row::MulAdd => ((at[0] * at[1]).abs().hi() + at[2].abs().hi()) * DOUBLE_DOUBLE,
            // Digamma crosses zero among terms of size 1, where double-double is accurate against these.
            Row::Polygamma => DOUBLE_DOUBLE,
            _ => 0.0,
        };
        let [low, high] = x.ends();
        let crosses = match row {
            Row::Recip => x.may_vanish(),
            Row::Powi => parameter < 0 && x.may_vanish(),
            Row::Powf => x.error > 0.0 && x.may_vanish(),
            Row::Atan2 => x.error > 0.0 && x.may_vanish() && (at[1].hi() < 0.0 || last.may_vanish()),
            // It grows from pole to pole.
            Row::Tan => low.tan() > exact || high.tan() < exact || x.error > 1.0,
            Row::Lgamma | Row::Polygamma => low.hi().floor() != high.hi().floor() && low.hi() < 0.0,
            _ => false,
        };
        Self::rounded(row.value(parameter, &posits), exact, spread + imprecise).unless(crosses)
    }
}

/// The larger distance of two neighbours.
fn spread_of_two(above: DoubleDouble, below: DoubleDouble, at: DoubleDouble) -> f64 {
    // Next to the ends of the range one neighbour is NaR: the other, of a smaller gap, is not the one that
    // counts.
    spread(at, [above, below])
}

macro_rules! operators {
    ($($Trait:ident $method:ident;)*) => {
        $(impl<W: PositWidth> core::ops::$Trait for Bounded<W> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                let posit = core::ops::$Trait::$method(self.posit, other.posit);
                self.through_two(other, posit, |x, y| core::ops::$Trait::$method(x, y))
            }
        })*
    };
}
operators! { Add add; Sub sub; Mul mul; }

impl<W: PositWidth> core::ops::Div for Bounded<W> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        self.through_two(other, self.posit / other.posit, |x, y| x / y).unless(other.may_vanish())
    }
}

impl<W: PositWidth> core::ops::Rem for Bounded<W> {
    type Output = Self;
    fn rem(self, other: Self) -> Self {
        let times = |x: DoubleDouble, y: DoubleDouble| (x / y).trunc().hi();
        let whole = times(self.wide(), other.wide());
        let corners = self.ends().into_iter().flat_map(|x| other.ends().map(|y| times(x, y)));
        let jumps = other.may_vanish() || corners.into_iter().any(|k| k != whole);
        self.through_two(other, self.posit % other.posit, |x, y| x % y).unless(jumps)
    }
}

impl<W: PositWidth> core::ops::Neg for Bounded<W> {
    type Output = Self;
    fn neg(self) -> Self {
        Bounded { posit: -self.posit, ..self }
    }
}

impl<W: PositWidth> PartialEq for Bounded<W> {
    fn eq(&self, other: &Self) -> bool {
        self.posit == other.posit
    }
}

impl<W: PositWidth> PartialOrd for Bounded<W> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        self.posit.partial_cmp(&other.posit)
    }
}

impl<W: PositWidth> Scalar for Bounded<W> {
    type Bool = bool;

    fn from_int(n: i32) -> Self {
        Self::rounded(Posit::from_int(n), DoubleDouble::from(n), 0.0)
    }
    fn constant(name: Constant) -> Self {
        Self::rounded(Posit::constant(name), DoubleDouble::constant(name), 0.0)
    }
    fn from_f64(v: f64) -> Self {
        // Data: what the computation is exact for is the posit that it becomes.
        Self::exact(Posit::from_f64(v))
    }
    fn glance(self) -> Option<f64> {
        self.posit.peek()
    }
    fn less(self, other: Self) -> bool {
        self.posit.less(other.posit)
    }
    fn less_eq(self, other: Self) -> bool {
        self.posit.less_eq(other.posit)
    }
    fn equal(self, other: Self) -> bool {
        self.posit.equal(other.posit)
    }
    fn select(condition: bool, if_true: Self, if_false: Self) -> Self {
        if condition { if_true } else { if_false }
    }
    fn vanishes(self) -> bool {
        // What vanishes is left out, as a tape leaves out factors that are 1 less nothing. A zero that was
        // rounded must stay, or its error is left out, too.
        self.posit.is_zero() && self.error == 0.0
    }
    fn strong_add_to(self, a: Self, sum: Self) -> Self {
        // As it stands, but a zero that was rounded is not left out of the bound.
        let posit = self.posit.strong_add_to(a.posit, sum.posit);
        let both = sum + self.strong_mul(a);
        assert_eq!(posit, both.posit, "a strong sum is a sum of strong products");
        both
    }
    functions_by_row!();
}

impl<W: PositWidth> Differentiable for Bounded<W> {}

impl<W: PositWidth> Leaf for Bounded<W> {
    const NAME: &'static str = <Posit<W> as Leaf>::NAME;
    const EPSILON: f64 = <Posit<W> as Leaf>::EPSILON;
    const SMALLEST: f64 = <Posit<W> as Leaf>::SMALLEST;
    const LARGEST: f64 = <Posit<W> as Leaf>::LARGEST;
    const ROUNDS_ARGUMENTS: bool = true;
    const NESTED_TAPES: bool = false;
    fn wide(self) -> DoubleDouble {
        self.posit.to_double_double()
    }
    fn bits(self) -> [u64; 2] {
        self.posit.bits()
    }
    fn bound(self) -> Option<f64> {
        Some(self.error)
    }
}

#[test]
fn bounds_hold_and_are_not_much_more() {
    // ((1/3)^2 - 0.1) * e^(1/3), step by step.
    fn of<W: PositWidth>() {
        let n = |n: i32| Bounded::<W>::from_int(n);
        let third = n(1) / n(3);
        let difference = third * third - n(1) / n(10);
        let found = difference * third.exp();
        let [one, three, ten] = [1, 3, 10].map(DoubleDouble::from);
        let exact = (one / (three * three) - one / ten) * (one / three).exp();
        let error = (found.wide() - exact).abs().hi();
        assert!(error <= found.error, "{error:e} {found:?}");
        // Four roundings of what is next to 1/9, magnified nine times by the difference, and a few of the
        // result.
        let few = 64.0 * <Posit<W> as Leaf>::EPSILON * exact.abs().hi();
        assert!(found.error < few, "{found:?} {few:e}");
    }
    of::<i16>();
    of::<i32>();
    of::<i64>();
    // What may be anything says so.
    let third = Bounded::<i8>::from_int(1) / Bounded::from_int(3);
    let nothing = third - third;
    assert!(nothing.posit.is_zero() && nothing.error > 0.0);
    assert_eq!((Bounded::from_int(1) / nothing).error, f64::INFINITY);
    assert_eq!(nothing.strong_mul(Bounded::exact(Posit::ZERO)).error, 0.0);
    assert!(nothing.strong_mul(third).error > 0.0);
}

//! What a partial looks at, found by asking the rule itself.
//!
//! Input: a row of the rule table (or a user's rule). Output: for each partial, whether it is a constant, one
//! of the arguments as it is, or computed from some of them. So the list of what an operation must keep for
//! the reverse sweep is never written down a second time.
//!
//! The rule's text runs once on [`Probe`]s, which compute nothing and remember where they come from.
//! Comparisons are unknown, so both sides of a choice count: the answer may name too much, never too little.

use crate::rules::{Row, functions_by_row};
use core::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Rem, Sub};
use palinode_num::{Constant, Logic, Scalar};

/// Where a value inside a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// This whole number, whatever the arguments.
    Integer(i32),
    /// Argument number so many, unchanged; the result counts as the one after the last.
    Argument(u8),
    /// Something computed from the arguments whose bits are set.
    Computed(u8),
}

impl Probe {
    /// The arguments that it depends on, a bit each.
    pub(crate) fn mask(self) -> u8 {
        match self {
            Probe::Integer(_) => 0,
            Probe::Argument(which) => 1 << which,
            Probe::Computed(mask) => mask,
        }
    }

    fn with(self, other: Probe) -> Probe {
        Probe::Computed(self.mask() | other.mask())
    }

    fn apply(_: Row, _: i32, args: &[Probe]) -> Probe {
        Probe::Computed(args.iter().fold(0, |mask, arg| mask | arg.mask()))
    }
}

/// An unknown truth value, with the arguments that it depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unknown(u8);

impl Logic for Unknown {
    fn known(self) -> Option<bool> {
        None
    }
}

macro_rules! operators {
    ($($Trait:ident $method:ident,)*) => {$(
        impl $Trait for Probe {
            type Output = Probe;
            fn $method(self, other: Probe) -> Probe {
                self.with(other)
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div, Rem rem,);

impl Neg for Probe {
    type Output = Probe;
    fn neg(self) -> Probe {
        match self {
            Probe::Integer(n) => n.checked_neg().map_or(Probe::Computed(0), Probe::Integer),
            other => Probe::Computed(other.mask()),
        }
    }
}

impl Unknown {
    /// Whatever is computed from two conditions depends on what both depend on.
    fn with(self, other: Unknown) -> Unknown {
        Unknown(self.0 | other.0)
    }
}

impl BitAnd for Unknown {
    type Output = Unknown;
    fn bitand(self, other: Unknown) -> Unknown {
        self.with(other)
    }
}

impl BitOr for Unknown {
    type Output = Unknown;
    fn bitor(self, other: Unknown) -> Unknown {
        self.with(other)
    }
}

impl Not for Unknown {
    type Output = Unknown;
    fn not(self) -> Unknown {
        self
    }
}

impl Scalar for Probe {
    type Bool = Unknown;

    fn from_int(n: i32) -> Probe {
        Probe::Integer(n)
    }
    fn constant(_: Constant) -> Probe {
        Probe::Computed(0)
    }
    fn from_f64(_: f64) -> Probe {
        Probe::Computed(0)
    }
    fn glance(self) -> Option<f64> {
        None
    }
    fn less(self, other: Probe) -> Unknown {
        Unknown(self.mask() | other.mask())
    }
    fn less_eq(self, other: Probe) -> Unknown {
        Unknown(self.mask() | other.mask())
    }
    fn equal(self, other: Probe) -> Unknown {
        Unknown(self.mask() | other.mask())
    }
    fn select(condition: Unknown, if_true: Probe, if_false: Probe) -> Probe {
        Probe::Computed(condition.0 | if_true.mask() | if_false.mask())
    }
    functions_by_row!();
}

#[cfg(test)]
mod tests {
    use super::Probe::{self, Argument, Computed, Integer};
    use crate::rules::{Powi, Row, Unary};

    fn partials(op: Row) -> Vec<Probe> {
        let n = op.arity();
        let args: Vec<Probe> = (0..n as u8).map(Argument).collect();
        (0..n).map(|which| op.partial(3, which, &args, Argument(n as u8))).collect()
    }

    #[test]
    fn rows_say_what_their_partials_look_at() {
        assert_eq!(partials(Row::Add), [Integer(1), Integer(1)]);
        assert_eq!(partials(Row::Subtract), [Integer(1), Integer(-1)]);
        assert_eq!(partials(Row::Negate), [Integer(-1)]);
        assert_eq!(partials(Row::Multiply), [Argument(1), Argument(0)]);
        assert_eq!(partials(Row::MulAdd), [Argument(1), Argument(0), Integer(1)]);
        assert_eq!(partials(Row::Exp), [Argument(1)]);
        assert_eq!(partials(Row::Floor), [Integer(0)]);
        assert_eq!(partials(Row::Sin), [Computed(0b1)]);
        assert_eq!(partials(Row::Sqrt), [Computed(0b10)]);
        assert_eq!(partials(Row::Relu), [Computed(0b1)]);
        assert_eq!(partials(Row::Tanh), [Computed(0b11)]);
        assert_eq!(partials(Row::Divide), [Computed(0b10), Computed(0b110)]);
        assert_eq!(Powi { n: 0 }.dx(Argument(0), Argument(1)), Integer(0));
    }

    /// What a partial is said not to look at can be anything.
    #[test]
    fn what_is_not_named_does_not_matter() {
        for &op in Row::ALL {
            let n = op.arity();
            let at: Vec<f64> = [0.3, 0.7, 0.9][..n].to_vec();
            let z = op.value(3, &at);
            for (which, probe) in partials(op).into_iter().enumerate() {
                let exact = op.partial(3, which, &at, z);
                let hide = |argument: usize, x: f64| {
                    if probe.mask() & 1 << argument == 0 { f64::NAN } else { x }
                };
                let hidden: Vec<f64> = at.iter().enumerate().map(|(k, &x)| hide(k, x)).collect();
                let found = op.partial(3, which, &hidden, hide(n, z));
                assert_eq!(found.to_bits(), exact.to_bits(), "{} by argument {which}", op.name());
                match probe {
                    Integer(k) => assert_eq!(exact, f64::from(k), "{}", op.name()),
                    Argument(k) => assert_eq!(exact, if (k as usize) < n { at[k as usize] } else { z }),
                    Computed(_) => {}
                }
            }
        }
    }
}

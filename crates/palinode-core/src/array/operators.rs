//! Operators and functions of arrays, each the row of the rule table of its name.
//!
//! Input: arrays, owned or borrowed, `Var`s and `f64`s on either side. Output: an array. There is no
//! derivative here.

use super::Array;
use super::elementwise::ArrayOperand;
use crate::rules::{Add as AddRule, Divide, Multiply, Negate, Relu, Remainder, Subtract};
use crate::tape::Var;
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};
use palinode_num::Scalar;

macro_rules! operators {
    ($($Trait:ident $method:ident $Assign:ident $assign:ident $Rule:ident,)*) => {$(
        operators! { @owned_or_borrowed $Trait $method $Rule, Array<S> }
        operators! { @owned_or_borrowed $Trait $method $Rule, &Array<S> }
        operators! { @number $Trait $method $Rule, f64, |x| Var::lift(S::from_f64(x)) }
        operators! { @number $Trait $method $Rule, Var<S>, |x| x }

        impl<'a, S: Scalar, T: Into<ArrayOperand<'a, S>>> $Assign<T> for Array<S> {
            #[track_caller]
            fn $assign(&mut self, other: T) {
                self.zip_with_in_place($Rule {}, other);
            }
        }

        impl<S: Scalar> $Assign<Array<S>> for Array<S> {
            #[track_caller]
            fn $assign(&mut self, other: Array<S>) {
                self.zip_with_in_place($Rule {}, &other);
            }
        }
    )*};
    (@owned_or_borrowed $Trait:ident $method:ident $Rule:ident, $Left:ty) => {
        impl<'a, S: Scalar, T: Into<ArrayOperand<'a, S>>> $Trait<T> for $Left {
            type Output = Array<S>;
            #[track_caller]
            fn $method(self, other: T) -> Array<S> {
                self.zip_with($Rule {}, other)
            }
        }

        impl<S: Scalar> $Trait<Array<S>> for $Left {
            type Output = Array<S>;
            #[track_caller]
            fn $method(self, other: Array<S>) -> Array<S> {
                self.zip_with($Rule {}, &other)
            }
        }
    };
    (@number $Trait:ident $method:ident $Rule:ident, $Left:ty, |$x:ident| $left:expr) => {
        impl<S: Scalar> $Trait<&Array<S>> for $Left {
            type Output = Array<S>;
            #[track_caller]
            fn $method(self, other: &Array<S>) -> Array<S> {
                let $x = self;
                other.with_left($Rule {}, $left)
            }
        }
    };
}
operators! {
    Add add AddAssign add_assign AddRule,
    Sub sub SubAssign sub_assign Subtract,
    Mul mul MulAssign mul_assign Multiply,
    Div div DivAssign div_assign Divide,
    Rem rem RemAssign rem_assign Remainder,
}

macro_rules! negated {
    ($($Array:ty)*) => {$(
        impl<S: Scalar> Neg for $Array {
            type Output = Array<S>;
            #[track_caller]
            fn neg(self) -> Array<S> {
                self.map(Negate {})
            }
        }
    )*};
}
negated!(Array<S> &Array<S>);

macro_rules! functions {
    ({}
     operators1 { $($operators1:tt)* }
     operators2 { $($operators2:tt)* }
     functions1 { $($(#[$doc1:meta])* $F1:ident : $f1:ident($x1:ident in $X1:ident) -> $z1:ident { $($body1:tt)* })* }
     parametric1 { $($(#[$docp:meta])* $P:ident { $p:ident : $pt:ty } : $fp:ident($xp:ident in $Xp:ident) -> $zp:ident { $($bodyp:tt)* })* }
     functions2 { $($(#[$doc2:meta])* $F2:ident : $f2:ident($x2:ident in $X2:ident, $y2:ident in $Y2:ident) -> $z2:ident { $($body2:tt)* })* }
     structural2 { $($structural2:tt)* }
     functions3 { $($(#[$doc3:meta])* $F3:ident : $f3:ident($x3:ident in $X3:ident, $y3:ident in $Y3:ident, $w3:ident in $W3:ident) -> $z3:ident { $($body3:tt)* })* }
     structural3 { $($structural3:tt)* }
    ) => {
        /// The functions of the rule table, element by element.
        impl<S: Scalar> Array<S> {
            $($(#[$doc1])*
            #[track_caller]
            pub fn $f1(&self) -> Array<S> {
                self.map(crate::rules::$F1 {})
            })*
            $($(#[$docp])*
            #[track_caller]
            pub fn $fp(&self, $p: $pt) -> Array<S> {
                self.map(crate::rules::$P { $p })
            })*
            $($(#[$doc2])*
            #[track_caller]
            pub fn $f2<'a>(&self, $y2: impl Into<ArrayOperand<'a, S>>) -> Array<S> {
                self.zip_with(crate::rules::$F2 {}, $y2)
            })*
            $($(#[$doc3])*
            #[track_caller]
            pub fn $f3<'a, 'b>(
                &self,
                $y3: impl Into<ArrayOperand<'a, S>>,
                $w3: impl Into<ArrayOperand<'b, S>>,
            ) -> Array<S> {
                self.zip_with_two(crate::rules::$F3 {}, $y3, $w3)
            })*
        }
    };
}
crate::rules::rule_table! { functions! {} }

impl<S: Scalar> Array<S> {
    /// `max(x, 0)` of every element, in place. Its slope depends on the old values, which are kept.
    #[track_caller]
    pub fn relu_in_place(&mut self) {
        self.map_in_place(Relu {});
    }
}

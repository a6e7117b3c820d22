//! The rows of the rule table as plain data: one [`Row`] per row, to list, look up and evaluate.
//!
//! Input: a row's name and argument values. Output: what the row says. Everything here is generated from
//! the table, so an [`Row`] without a rule, or a rule without an [`Row`], cannot exist.

use super::table::{self, rule_table};
use super::{Binary, Domain, Kink, One, Rule, RuleVisitor, Ternary, Three, Two, Unary};
use palinode_num::Scalar;

macro_rules! define_rows {
    ({}
     operators1 { $($a:tt)* }
     operators2 { $($b:tt)* }
     functions1 { $($c:tt)* }
     parametric1 { $($d:tt)* }
     functions2 { $($e:tt)* }
     structural2 { $($h:tt)* }
     functions3 { $($f:tt)* }
     structural3 { $($g:tt)* }
    ) => {
        define_rows! { @rows [$($a)* $($c)* $($d)*] [$($b)* $($e)* $($h)*] [$($f)* $($g)*] }
    };

    (@rows
        [$($(#[$doc1:meta])* $U:ident $({ $p:ident : $pt:ty })? : $m1:ident($x1:ident in $X1:ident) -> $z1:ident { $($body1:tt)* })*]
        [$($(#[$doc2:meta])* $B:ident : $m2:ident($x2:ident in $X2:ident, $y2:ident in $Y2:ident) -> $z2:ident { $($body2:tt)* })*]
        [$($(#[$doc3:meta])* $T:ident : $m3:ident($x3:ident in $X3:ident, $y3:ident in $Y3:ident, $w3:ident in $W3:ident) -> $z3:ident { $($body3:tt)* })*]
    ) => {
        /// A row of the rule table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Row {
            $($(#[$doc1])* $U,)*
            $($(#[$doc2])* $B,)*
            $($(#[$doc3])* $T,)*
        }

        impl Row {
            /// Every row, in the table's order within its number of arguments.
            pub const ALL: &'static [Row] = &[$(Row::$U,)* $(Row::$B,)* $(Row::$T,)*];

            /// The name that the table, tapes and programs use.
            pub fn name(self) -> &'static str {
                match self {
                    $(Row::$U => <table::$U as Unary>::NAME,)*
                    $(Row::$B => <table::$B as Binary>::NAME,)*
                    $(Row::$T => <table::$T as Ternary>::NAME,)*
                }
            }

            /// The domain of each argument.
            pub fn domains(self) -> &'static [Domain] {
                match self {
                    $(Row::$U => &[Domain::$X1],)*
                    $(Row::$B => &[Domain::$X2, Domain::$Y2],)*
                    $(Row::$T => &[Domain::$X3, Domain::$Y3, Domain::$W3],)*
                }
            }

            /// The points without a derivative and what is given there.
            pub fn kinks(self) -> &'static [Kink] {
                match self {
                    $(Row::$U => <table::$U as Unary>::KINKS,)*
                    $(Row::$B => <table::$B as Binary>::KINKS,)*
                    $(Row::$T => <table::$T as Ternary>::KINKS,)*
                }
            }

            /// Calls `visitor` with the rule itself. `parameter` is the whole number of `powi` and
            /// `polygamma`; other rows ignore it.
            pub fn visit<V: RuleVisitor>(self, parameter: i32, visitor: V) -> V::Output {
                let _ = parameter;
                match self {
                    $(Row::$U => visitor.visit(One(table::$U { $($p: parameter as $pt)? })),)*
                    $(Row::$B => visitor.visit(Two(table::$B {})),)*
                    $(Row::$T => visitor.visit(Three(table::$T {})),)*
                }
            }
        }
    };
}
rule_table! { define_rows! {} }

/// The methods of [`Scalar`] that are rows, inside an `impl Scalar`, by
/// `Self::apply(row, parameter, arguments)`: for numbers that note what is done with them. It must be in
/// scope by its own name.
#[doc(hidden)]
#[macro_export]
macro_rules! functions_by_row {
    () => {
        $crate::rule_table! { functions_by_row! {} }
    };
    ({}
     operators1 { $($operators1:tt)* }
     operators2 { $($operators2:tt)* }
     functions1 { $($functions1:tt)* }
     parametric1 { $($parametric1:tt)* }
     functions2 { $($functions2:tt)* }
     structural2 { $($structural2:tt)* }
     functions3 { $($functions3:tt)* }
     structural3 { $($structural3:tt)* }
    ) => {
        functions_by_row! { @methods $($functions1)* $($parametric1)* $($functions2)* $($structural2)* $($functions3)* }
    };
    (@methods $(
        $(#[$doc:meta])* $row:ident $({ $n:ident: $number:ty })? :
        $method:ident($x:ident in $X:ident $(, $y:ident in $Y:ident)*) -> $z:ident { $($body:tt)* }
    )*) => {$(
        fn $method(self $(, $n: $number)? $(, $y: Self)*) -> Self {
            let parameter: i64 = 0 $(+ i64::from($n))?;
            let parameter = i32::try_from(parameter).unwrap_or(i32::MAX);
            Self::apply($crate::rules::Row::$row, parameter, &[self $(, $y)*])
        }
    )*};
}
pub(crate) use functions_by_row;

impl Row {
    /// The number of arguments.
    pub fn arity(self) -> usize {
        self.domains().len()
    }

    /// The row with this name.
    pub fn named(name: &str) -> Option<Row> {
        Row::ALL.iter().copied().find(|row| row.name() == name)
    }

    /// The value for these arguments.
    ///
    /// # Panics
    /// If the number of arguments is not [`Row::arity`].
    pub fn value<S: Scalar>(self, parameter: i32, args: &[S]) -> S {
        self.check_arity(args.len());
        self.visit(parameter, Value(args))
    }

    /// The partial by argument number `which`; `z` is the value.
    ///
    /// # Panics
    /// If the number of arguments is not [`Row::arity`] or there is no argument `which`.
    pub fn partial<S: Scalar>(self, parameter: i32, which: usize, args: &[S], z: S) -> S {
        self.check_arity(args.len());
        assert!(which < args.len(), "{} has no argument number {which}", self.name());
        self.visit(parameter, Partial { which, args, z })
    }

    fn check_arity(self, given: usize) {
        assert_eq!(given, self.arity(), "{} takes {} arguments, not {given}", self.name(), self.arity());
    }
}

struct Value<'a, S>(&'a [S]);

impl<S: Scalar> RuleVisitor for Value<'_, S> {
    type Output = S;
    fn visit<R: Rule>(self, rule: R) -> S {
        rule.value(self.0)
    }
}

struct Partial<'a, S> {
    which: usize,
    args: &'a [S],
    z: S,
}

impl<S: Scalar> RuleVisitor for Partial<'_, S> {
    type Output = S;
    fn visit<R: Rule>(self, rule: R) -> S {
        rule.partial(self.which, self.args, self.z)
    }
}

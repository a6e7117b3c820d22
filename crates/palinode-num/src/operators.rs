//! What follows from a number's own `+ - * / %` and order: operators and comparisons with `f64`s on either
//! side, which are rounded to the number first (infinities and NaN are compared as floats are), assignments,
//! sums and products of iterators, term by term.

macro_rules! operators_with_f64 {
    ([$($generics:tt)*] $Number:ty) => {
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Add add AddAssign add_assign);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Sub sub SubAssign sub_assign);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Mul mul MulAssign mul_assign);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Div div DivAssign div_assign);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Rem rem RemAssign rem_assign);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Sum sum Add::add zero);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Product product Mul::mul one);

        impl<$($generics)*> PartialEq<f64> for $Number {
            #[inline]
            fn eq(&self, other: &f64) -> bool {
                self.partial_cmp(other) == Some(core::cmp::Ordering::Equal)
            }
        }
        impl<$($generics)*> PartialOrd<f64> for $Number {
            #[inline]
            fn partial_cmp(&self, other: &f64) -> Option<core::cmp::Ordering> {
                use $crate::scalar::Scalar;
                match other.is_finite() {
                    true => self.partial_cmp(&<Self as Scalar>::from_f64(*other)),
                    // Posits have no such number to compare with.
                    false if <Self as Scalar>::LANES == 1 => self.glance()?.partial_cmp(other),
                    false => self.partial_cmp(&<Self as Scalar>::from_f64(*other)),
                }
            }
        }
        impl<$($generics)*> PartialEq<$Number> for f64 {
            #[inline]
            fn eq(&self, other: &$Number) -> bool {
                other == self
            }
        }
        impl<$($generics)*> PartialOrd<$Number> for f64 {
            #[inline]
            fn partial_cmp(&self, other: &$Number) -> Option<core::cmp::Ordering> {
                other.partial_cmp(self).map(core::cmp::Ordering::reverse)
            }
        }
    };
    ([$($generics:tt)*] $Number:ty, $operator:ident $method:ident $assign:ident $assign_method:ident) => {
        impl<$($generics)*> core::ops::$operator<f64> for $Number {
            type Output = Self;
            #[inline]
            fn $method(self, other: f64) -> Self {
                self.$method(<Self as $crate::scalar::Scalar>::from_f64(other))
            }
        }
        impl<$($generics)*> core::ops::$operator<$Number> for f64 {
            type Output = $Number;
            #[inline]
            fn $method(self, other: $Number) -> $Number {
                <$Number as $crate::scalar::Scalar>::from_f64(self).$method(other)
            }
        }
        impl<$($generics)*> core::ops::$assign for $Number {
            #[inline]
            fn $assign_method(&mut self, other: Self) {
                *self = self.$method(other);
            }
        }
        impl<$($generics)*> core::ops::$assign<f64> for $Number {
            #[inline]
            fn $assign_method(&mut self, other: f64) {
                *self = self.$method(other);
            }
        }
    };
    ([$($generics:tt)*] $Number:ty, $of_all:ident $method:ident $Operator:ident::$operator:ident $start:ident) => {
        impl<$($generics)*> core::iter::$of_all for $Number {
            fn $method<I: Iterator<Item = Self>>(numbers: I) -> Self {
                numbers.fold(<Self as $crate::scalar::Scalar>::$start(), core::ops::$Operator::$operator)
            }
        }
        impl<'a, $($generics)*> core::iter::$of_all<&'a $Number> for $Number {
            fn $method<I: Iterator<Item = &'a $Number>>(numbers: I) -> Self {
                numbers.copied().$method()
            }
        }
    };
}
pub(crate) use operators_with_f64;

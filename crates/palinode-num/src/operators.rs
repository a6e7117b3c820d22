//! What follows from a number's own `+ - * / %`: operators with `f64`s on either side, which are rounded to
//! the number first, assignments, sums and products of iterators, term by term.

macro_rules! operators_with_f64 {
    ([$($generics:tt)*] $Number:ty) => {
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Add add AddAssign add_assign);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Sub sub SubAssign sub_assign);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Mul mul MulAssign mul_assign);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Div div DivAssign div_assign);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Rem rem RemAssign rem_assign);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Sum sum Add::add zero);
        $crate::operators::operators_with_f64!([$($generics)*] $Number, Product product Mul::mul one);
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

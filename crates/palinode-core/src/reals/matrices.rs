//! nalgebra's matrices, of fixed and of dynamic size.

use super::{Reals, Sink, Source};
use nalgebra::{ArrayStorage, Const, Dim, Dyn, Matrix, OMatrix, Scalar, VecStorage};

impl<S: Scalar + Reals<S>, const R: usize, const C: usize> Reals<S>
    for Matrix<S, Const<R>, Const<C>, ArrayStorage<S, R, C>>
{
    #[inline]
    fn save(&self, to: &mut impl Sink<S>) {
        S::save_slice(self.as_slice(), to);
    }
    #[inline]
    fn load(from: &mut impl Source<S>) -> Self {
        Matrix::from_array_storage(ArrayStorage(core::array::from_fn(|_| {
            core::array::from_fn(|_| S::load(from))
        })))
    }
    #[inline]
    fn reload(&mut self, from: &mut impl Source<S>) {
        S::reload_slice(self.as_mut_slice(), from);
    }
}

macro_rules! dynamic {
    ($($Rows:ty, $Columns:ty, |$rows:ident, $columns:ident| ($r:expr, $c:expr);)*) => {$(
        impl<S: Scalar + Reals<S>> Reals<S> for Matrix<S, $Rows, $Columns, VecStorage<S, $Rows, $Columns>> {
            fn save(&self, to: &mut impl Sink<S>) {
                to.word(self.nrows() as u64);
                to.word(self.ncols() as u64);
                S::save_slice(self.as_slice(), to);
            }
            fn load(from: &mut impl Source<S>) -> Self {
                let ($rows, $columns) = (from.word() as usize, from.word() as usize);
                OMatrix::from_iterator_generic($r, $c, (0..$rows * $columns).map(|_| S::load(from)))
            }
            fn reload(&mut self, from: &mut impl Source<S>) {
                let ($rows, $columns) = (from.word() as usize, from.word() as usize);
                if self.shape() == ($rows, $columns) {
                    S::reload_slice(self.as_mut_slice(), from);
                } else {
                    *self = OMatrix::from_iterator_generic($r, $c, (0..$rows * $columns).map(|_| S::load(from)));
                }
            }
            fn heap_bytes(&self) -> usize {
                self.len() * size_of::<S>()
            }
        }
    )*};
}
dynamic! {
    Dyn, Dyn, |rows, columns| (Dyn(rows), Dyn(columns));
    Dyn, Const<1>, |rows, columns| (Dyn(rows), Const::<1>::from_usize(columns));
    Const<1>, Dyn, |rows, columns| (Const::<1>::from_usize(rows), Dyn(columns));
}

//! nalgebra's matrices, of fixed and of dynamic size.

use super::{Reals, Sink, Source, read_until};
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

/// The entries of a matrix, column by column; none if there are not so many.
fn read<S: Reals<S>>(rows: usize, columns: usize, from: &mut impl Source<S>) -> Option<Vec<S>> {
    let mut items = Vec::new();
    // More than can be counted are more than there are.
    let count = rows.saturating_mul(columns);
    read_until(&mut items, count, from);
    (items.len() == count).then_some(items)
}

macro_rules! dynamic {
    ($($Rows:ty, $Columns:ty, |$rows:ident, $columns:ident| ($r:expr, $c:expr), nothing ($no_r:expr, $no_c:expr);)*) => {$(
        impl<S: Scalar + Reals<S>> Reals<S> for Matrix<S, $Rows, $Columns, VecStorage<S, $Rows, $Columns>> {
            fn save(&self, to: &mut impl Sink<S>) {
                to.word(self.nrows() as u64);
                to.word(self.ncols() as u64);
                S::save_slice(self.as_slice(), to);
            }
            fn load(from: &mut impl Source<S>) -> Self {
                let mut matrix = OMatrix::from_iterator_generic($no_r, $no_c, []);
                matrix.reload(from);
                matrix
            }
            fn reload(&mut self, from: &mut impl Source<S>) {
                let ($rows, $columns) = (from.word() as usize, from.word() as usize);
                if self.shape() == ($rows, $columns) {
                    S::reload_slice(self.as_mut_slice(), from);
                    return;
                }
                *self = match read($rows, $columns, from) {
                    Some(items) => OMatrix::from_iterator_generic($r, $c, items),
                    None => OMatrix::from_iterator_generic($no_r, $no_c, []),
                };
            }
            fn heap_bytes(&self) -> usize {
                self.len() * size_of::<S>()
            }
        }
    )*};
}
dynamic! {
    Dyn, Dyn, |rows, columns| (Dyn(rows), Dyn(columns)), nothing (Dyn(0), Dyn(0));
    Dyn, Const<1>, |rows, columns| (Dyn(rows), Const::<1>::from_usize(columns)), nothing (Dyn(0), Const::<1>);
    Const<1>, Dyn, |rows, columns| (Const::<1>::from_usize(rows), Dyn(columns)), nothing (Const::<1>, Dyn(0));
}

//! The numbers that dense linear algebra runs on: plain ones compute, derivative numbers lift what their
//! inner number does. Both come from the list of operations in `kernel.rs`.

use super::kernel::{Kernel, operations};
use super::results::{
    Eigenvalues, Factored, Found, Lu, MatrixFunction, Polar, Qr, Svd, SymmetricEigen, Triangle,
};
use super::{dense, determinant, eigenvalues, factors, function, matmul, plain, polar, pseudo_inverse, svd};
use super::{symmetric_eigen, systems};
use crate::error::Error;
use crate::tape::Var;
use crate::{Dual, DualN, Passive, matrix};
use nalgebra::{DMatrix, DVector};
use palinode_num::{Accumulator, DoubleDouble, Posit, PositWidth};
use std::sync::Arc;

macro_rules! plain_kernel {
    ([[$($generics:tt)*] $F:ty]
        $($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $result:ty = $plain:path, $lifted:path;)*
    ) => {
        impl<$($generics)*> Kernel for $F {
            type Factored = Arc<matrix::Lu<$F>>;

            fn epsilon() -> f64 {
                matrix::epsilon::<$F>()
            }
            fn magnitude(self) -> f64 {
                plain::value_of(self).abs()
            }
            fn factored_bytes(factored: &Self::Factored) -> usize {
                size_of::<matrix::Lu<$F>>()
                    + factored.from.capacity() * size_of::<usize>()
                    + dense::bytes::<$F>(factored.factors.data.capacity())
            }
            $(fn $name($($arg: $ty),*) -> Result<$result, Error> {
                $plain($($arg),*)
            })*
        }
    };
}
operations!(plain_kernel [[] f32]);
operations!(plain_kernel [[] f64]);
operations!(plain_kernel [[] DoubleDouble]);
operations!(plain_kernel [[W: PositWidth] Posit<W>]);

macro_rules! lifted_kernel {
    ([[$($generics:tt)*] $T:ty, $magnitude:expr]
        $($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $result:ty = $plain:path, $lifted:path;)*
    ) => {
        impl<$($generics)*> Kernel for $T {
            type Factored = Factored<Self, S::Factored>;

            fn epsilon() -> f64 {
                S::epsilon()
            }
            fn magnitude(self) -> f64 {
                let components: fn(Self) -> f64 = $magnitude;
                components(self)
            }
            fn factored_bytes(factored: &Self::Factored) -> usize {
                systems::factored_bytes::<Self>(factored)
            }
            $(fn $name($($arg: $ty),*) -> Result<$result, Error> {
                $lifted($($arg),*)
            })*
        }
    };
}
operations!(lifted_kernel [[S: Kernel] Dual<S>, |x| x.value.magnitude().max(x.tangent.magnitude())]);
operations!(lifted_kernel [[S: Kernel, const N: usize] DualN<S, N>, |x| {
    x.value.magnitude().max(dense::largest(x.tangents.iter()))
}]);
operations!(lifted_kernel [[S: Kernel] Var<S>, |x| x.primal().magnitude().max(dense::largest(&x.partials()))]);
operations!(lifted_kernel [[S: Kernel] Passive<S>, |x| x.primal().magnitude()]);

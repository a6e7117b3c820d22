//! `num-dual`: forward mode with a statically sized gradient (`DualSVec64<N>`), through its `gradient`
//! function.

use super::{Gradient, Refusal, by_input_count};
use crate::num::Num;
use crate::problem::Problem;
use crate::{functions, operators_with_constants};
use ::num_dual::{DualNum, DualSVec64, gradient};
use nalgebra::SVector;

macro_rules! through_dual_num {
    ($x:expr, $name:ident) => {
        DualNum::$name(&$x)
    };
}

impl<const N: usize> Num for DualSVec64<N> {
    operators_with_constants!();
    functions!(self, through_dual_num: recip sin exp ln tanh sqrt);
    #[inline]
    fn cst(c: f64) -> Self {
        Self::from_re(c)
    }
    #[inline]
    fn relu(self) -> Self {
        if self.re > 0.0 { self } else { Self::cst(0.0) }
    }
    #[inline]
    fn pick_max(self, other: Self) -> Self {
        if other.re > self.re { other } else { self }
    }
}

/// All tangents in one pass.
pub fn forward<P: Problem>(p: &P) -> Result<Gradient<'_>, Refusal> {
    by_input_count!(p, forward_n)
}

fn forward_n<P: Problem, const N: usize>(p: &P) -> Gradient<'_> {
    Box::new(|x| {
        let at = SVector::<f64, N>::from_column_slice(x);
        let (_, g) = gradient(|v: SVector<DualSVec64<N>, N>| p.eval(v.as_slice()), &at);
        g.as_slice().to_vec()
    })
}

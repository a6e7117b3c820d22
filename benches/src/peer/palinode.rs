//! Palinode: the dynamic tape (`Var`), whose memory is kept between calls, and forward mode (`DualN`).

use super::{Gradient, Refusal, by_input_count};
use crate::num::Num;
use crate::problem::Problem;
use crate::{functions, operators_with_constants};
use ::palinode::num::Lanes;
use ::palinode::prelude::{DualN, Tape, Var};

macro_rules! own {
    ($x:expr, $name:ident) => {
        $x.$name()
    };
}

macro_rules! num_for {
    ([$($generics:tt)*] $t:ty, nary $nary:expr, |$x:ident, $y:ident| $larger:expr) => {
        impl<$($generics)*> Num for $t {
            const NARY: bool = $nary;

            operators_with_constants!();
            functions!(self, own: recip sin exp ln tanh sqrt relu);
            #[inline]
            fn cst(c: f64) -> Self {
                Self::from_f64(c)
            }
            #[inline]
            fn sub_from(self, c: f64) -> Self {
                c - self
            }
            #[inline]
            fn pick_max(self, other: Self) -> Self {
                let ($x, $y) = (self, other);
                $larger
            }
            #[inline]
            fn sum(terms: impl Iterator<Item = Self>) -> Self {
                terms.sum()
            }
        }
    };
}

num_for!([] Var<f64>, nary true, |x, y| if y > x { y } else { x });
num_for!([const N: usize] DualN<f64, N>, nary false, |x, y| if y > x { y } else { x });
// A comparison would split lanes.
num_for!([const N: usize] Var<Lanes<N>>, nary true, |x, y| x.max(y));

/// Records and sweeps back in the memory of one tape.
pub fn var<P: Problem>(p: &P) -> Result<Gradient<'_>, Refusal> {
    let mut tape = Tape::new();
    Ok(Box::new(move |x| match tape.value_and_grad(|v| p.eval(v), x) {
        Ok((_, gradient)) => gradient,
        Err(error) => panic!("{error}"),
    }))
}

/// All tangents in one pass.
pub fn dual_n<P: Problem>(p: &P) -> Result<Gradient<'_>, Refusal> {
    by_input_count!(p, dual_n_of)
}

fn dual_n_of<P: Problem, const N: usize>(p: &P) -> Gradient<'_> {
    Box::new(|x| {
        let at: [f64; N] = std::array::from_fn(|i| x[i]);
        p.eval(&DualN::variables(at)).tangents.to_vec()
    })
}

//! Palinode: the dynamic tape (`Var`), whose memory is kept between calls, and forward mode (`DualN`).

use super::{Gradient, Refusal, by_input_count};
use crate::num::Num;
use crate::problem::Problem;
use ::palinode::prelude::{DualN, Tape, Var};

macro_rules! num_for {
    ([$($generics:tt)*] $t:ty, nary $nary:expr) => {
        impl<$($generics)*> Num for $t {
            const NARY: bool = $nary;

            #[inline]
            fn cst(c: f64) -> Self {
                Self::lift(c)
            }
            #[inline]
            fn plus(self, c: f64) -> Self {
                self + c
            }
            #[inline]
            fn minus(self, c: f64) -> Self {
                self - c
            }
            #[inline]
            fn times(self, c: f64) -> Self {
                self * c
            }
            #[inline]
            fn sub_from(self, c: f64) -> Self {
                c - self
            }
            #[inline]
            fn recip(self) -> Self {
                self.recip()
            }
            #[inline]
            fn sin(self) -> Self {
                self.sin()
            }
            #[inline]
            fn exp(self) -> Self {
                self.exp()
            }
            #[inline]
            fn ln(self) -> Self {
                self.ln()
            }
            #[inline]
            fn tanh(self) -> Self {
                self.tanh()
            }
            #[inline]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline]
            fn relu(self) -> Self {
                self.relu()
            }
            #[inline]
            fn pick_max(self, other: Self) -> Self {
                if other > self { other } else { self }
            }
            #[inline]
            fn sum(terms: impl Iterator<Item = Self>) -> Self {
                terms.sum()
            }
        }
    };
}

num_for!([] Var<f64>, nary true);
num_for!([const N: usize] DualN<f64, N>, nary false);

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

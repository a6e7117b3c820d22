//! `ad_trait`: reverse mode (`adr`) and forward mode with as many tangents as inputs (`adfn<N>`).
//!
//! The calls are those of its `ReverseAD` and `ForwardADMulti` engines, without their wrapper. `adr` records
//! on a thread-local graph; resetting it keeps the memory, so every recording after the first reuses it.

use super::{Gradient, Refusal, by_input_count};
use crate::functions;
use crate::num::Num;
use crate::problem::Problem;
use ::ad_trait::AD;
use ::ad_trait::forward_ad::adfn::adfn;
use ::ad_trait::reverse_ad::adr::adr;

/// `AD`'s elementary functions come from its supertraits, which are in scope only through the bound.
mod via_ad {
    use ::ad_trait::AD;

    macro_rules! unary {
        ($($f:ident)*) => { $(#[inline] pub(super) fn $f<T: AD>(x: T) -> T { x.$f() })* };
    }
    unary!(sin exp ln tanh sqrt recip);

    #[inline]
    pub(super) fn relu<T: AD>(x: T) -> T {
        x.max(T::constant(0.0))
    }
}

macro_rules! through_ad {
    ($x:expr, $name:ident) => {
        via_ad::$name($x)
    };
}

macro_rules! num_for {
    ([$($params:tt)*] $t:ty) => {
        impl<$($params)*> Num for $t {
            functions!(self, through_ad: recip sin exp ln tanh sqrt relu);
            #[inline]
            fn cst(c: f64) -> Self {
                <$t as AD>::constant(c)
            }
            #[inline]
            fn pick_max(self, other: Self) -> Self {
                if other.value() > self.value() { other } else { self }
            }
        }
    };
}

num_for!([] adr);
num_for!([const N: usize] adfn<N>);

/// Records on the thread's graph and sweeps back.
pub fn reverse<P: Problem>(p: &P) -> Result<Gradient<'_>, Refusal> {
    Ok(Box::new(|x| {
        let v: Vec<adr> = x.iter().enumerate().map(|(i, &xi)| adr::new_variable(xi, i == 0)).collect();
        let adjoints = p.eval(&v).get_backwards_mode_grad();
        v.iter().map(|v| adjoints.wrt(v)).collect()
    }))
}

/// All tangents in one pass.
pub fn forward<P: Problem>(p: &P) -> Result<Gradient<'_>, Refusal> {
    by_input_count!(p, forward_n)
}

fn forward_n<P: Problem, const N: usize>(p: &P) -> Gradient<'_> {
    Box::new(|x| {
        let v: [adfn<N>; N] = std::array::from_fn(|i| {
            let mut tangent = [0.0; N];
            tangent[i] = 1.0;
            adfn::new(x[i], tangent)
        });
        p.eval(&v).tangent_as_vec()
    })
}

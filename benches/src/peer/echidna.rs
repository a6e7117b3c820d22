//! `echidna`: the Adept-style tape (`grad`) and the bytecode tape (`record`, `gradient_with_buf`).
//!
//! `grad` takes its tape from a thread-local pool, so every call after the first reuses it. The bytecode tape
//! has no reuse across recordings; its documented use is to record once and evaluate often, so it appears
//! twice: recording every time, and replaying a tape recorded, and optimised as its documentation recommends,
//! before timing.

use super::{Gradient, Refusal};
use crate::num::Num;
use crate::problem::Problem;
use crate::{functions, operators_with_constants};
use ::echidna::{BReverse, Reverse};
use num_traits::Float;

/// Its common subexpression pass keeps a hash map over all entries: skipped beyond this many, as memory would
/// be the map's and not the tape's. (Only nchain is longer, and it has nothing to share.)
const OPTIMIZE_UP_TO: usize = 20_000_000;

macro_rules! through_float {
    ($x:expr, $name:ident) => {
        Float::$name($x)
    };
}

macro_rules! num_for {
    ($t:ident) => {
        impl Num for $t<f64> {
            operators_with_constants!();
            functions!(self, through_float: recip sin exp ln tanh sqrt);
            #[inline]
            fn cst(c: f64) -> Self {
                $t::constant(c)
            }
            #[inline]
            fn sub_from(self, c: f64) -> Self {
                c - self
            }
            #[inline]
            fn relu(self) -> Self {
                Float::max(self, $t::constant(0.0))
            }
            #[inline]
            fn pick_max(self, other: Self) -> Self {
                if other > self { other } else { self }
            }
        }
    };
}

num_for!(Reverse);
num_for!(BReverse);

/// Records on the pooled tape and sweeps back.
pub fn reverse<P: Problem>(p: &P) -> Result<Gradient<'_>, Refusal> {
    Ok(Box::new(|x| ::echidna::grad(|v: &[Reverse<f64>]| p.eval(v), x)))
}

/// Records a bytecode tape and sweeps back over the values it holds from recording.
pub fn bytecode<P: Problem>(p: &P) -> Result<Gradient<'_>, Refusal> {
    Ok(Box::new(|x| {
        let (tape, _) = ::echidna::record(|v: &[BReverse<f64>]| p.eval(v), x);
        tape.reverse_seeded(&[1.0])
    }))
}

/// Evaluates a recorded bytecode tape and sweeps back, in kept buffers.
pub fn bytecode_replay<P: Problem>(p: &P) -> Result<Gradient<'_>, Refusal> {
    let (mut tape, _) = ::echidna::record(|v: &[BReverse<f64>]| p.eval(v), &p.inputs());
    if tape.num_ops() <= OPTIMIZE_UP_TO {
        tape.optimize();
    }
    let mut adjoints = Vec::new();
    Ok(Box::new(move |x| tape.gradient_with_buf(x, &mut adjoints)))
}

//! One step of a loop, written once over any number.
//!
//! Input: a state, parameters and what enters at this step. Output: the state, changed in place. The driver chooses the number: a
//! [`Passive`](palinode_core::Passive) to advance, a [`Var`](palinode_core::Var) to record, a [`Dual`](palinode_core::Dual) for
//! sensitivities.

use palinode_core::{Limits, Plain, Real, Reals, Sink, Source};

/// What a number must be to go through a [`Step`]: a [`Real`] that other crates' generic code accepts too.
///
/// Write your own functions over `S: Real`; where a step calls nalgebra (feature `nalgebra`), over `S: Number`.
#[cfg(not(feature = "nalgebra"))]
pub trait Number: Real + Limits + Reals<Self> + Send + Sync {}
#[cfg(not(feature = "nalgebra"))]
impl<S: Real + Limits + Reals<S> + Send + Sync> Number for S {}

/// What a number must be to go through a [`Step`]: a [`Real`] that other crates' generic code accepts too.
///
/// Write your own functions over `S: Real`; where a step calls nalgebra, over `S: Number`.
#[cfg(feature = "nalgebra")]
pub trait Number:
    Real + Limits + Reals<Self> + Send + Sync + nalgebra::RealField + palinode_core::linalg::LinearAlgebra
{
}
#[cfg(feature = "nalgebra")]
impl<S> Number for S where
    S: Real + Limits + Reals<S> + Send + Sync + nalgebra::RealField + palinode_core::linalg::LinearAlgebra
{
}

/// One step of a loop: a pure function of state, parameters and input that changes the state in place.
///
/// The attribute `#[step]` on a generic function writes this; here it is by hand:
///
/// ```
/// use palinode_time::{Number, Step};
///
/// struct Damped;
/// impl Step for Damped {
///     type State<S: Number> = [S; 2]; // position, velocity
///     type Params<S: Number> = S; // damping
///     type Input<S: Number> = ();
///     fn step<S: Number>(&self, [x, v]: &mut [S; 2], damping: &S, _: &()) {
///         *v += (-*x - *damping * *v) * 0.01;
///         *x += *v * 0.01;
///     }
/// }
/// ```
///
/// A step must compute the same from the same arguments each time: it is run again when its state is needed again. Random keys, counters and
/// caches belong into the state.
pub trait Step {
    /// What changes from step to step.
    type State<S: Number>: Reals<S>;
    /// What stays the same and is differentiated by.
    type Params<S: Number>: Reals<S>;
    /// What enters at one step; `()` if nothing does.
    type Input<S: Number>: Reals<S>;

    /// Takes one step.
    fn step<S: Number>(&self, state: &mut Self::State<S>, params: &Self::Params<S>, input: &Self::Input<S>);
}

/// An argument of a step that holds nothing to differentiate by: a step size, an index, a table of constants.
///
/// `#[step]` makes one of every argument whose type does not name the number:
/// `dt: f64` as the third argument gives `type Input<S> = PlainInput<f64>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainInput<P>(pub P);

impl<P> From<P> for PlainInput<P> {
    fn from(value: P) -> Self {
        PlainInput(value)
    }
}

impl<S, P: Plain> Reals<S> for PlainInput<P> {
    #[inline]
    fn save(&self, to: &mut impl Sink<S>) {
        self.0.save(&mut |word| to.word(word));
    }
    #[inline]
    fn load(from: &mut impl Source<S>) -> Self {
        PlainInput(P::load(&mut || from.word()))
    }
    #[inline]
    fn reload(&mut self, from: &mut impl Source<S>) {
        self.0.reload(&mut || from.word());
    }
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

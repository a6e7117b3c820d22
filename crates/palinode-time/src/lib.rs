//! Palinode over time: gradients of loops of any length inside a budget.
//!
//! Input: a step, written once over any number, a state and parameters. Output: the gradient of a loss of
//! what the loop reaches, in the bytes that were allowed.
//!
//! | part | holds |
//! |---|---|
//! | [`Step`], [`Number`] | one step of a loop, over any number |
//! | [`Rollout`], [`Gradient`], [`RolloutReport`] | loops of steps and their gradients, inside a budget |
//! | [`StepRule`], [`ReversibleStep`] | steps that bring their own reverse, or can be undone |
//! | `ProgramStep` (feature `ir`) | steps that are programs, `.pal` source among them |
//! | [`Notes`] | what a step tells its rollout: that it failed, what memory it took |
//! | [`Health`] | whether a gradient vanishes or explodes in the reverse sweep |
//! | [`implicit`] | fixed points and roots, differentiated by the equation they satisfy |
//! | [`forward_gradient`], [`Directions`], [`ForwardDescent`] | unbiased gradients without a tape |
//! | [`Batch`] | gradients summed over samples, the same bits on any number of threads |
//! | `ProgramBatch` (feature `ir`) | one program over many inputs, likewise |
//! | [`MemoryStore`], [`DiskStore`], [`CompressedStore`], [`LossyStore`] | where snapshots are kept |
//!
//! Absent from this package: the terminal, derivative formulas, global state (but a counter that names runs
//! on disk).

mod batch;
mod error;
mod forward_gradient;
mod health;
pub mod implicit;
#[cfg(feature = "ir")]
mod program_batch;
#[cfg(feature = "ir")]
mod program_step;
mod rollout;
mod step;
mod store;

pub use batch::{Batch, BatchGradient};
pub use error::Error;
pub use forward_gradient::{
    Directions, Draw, EstimateError, ForwardDescent, ForwardGradient, GradientEstimate, OwnDirection,
    Perturbed, Progress, estimate_gradient, estimate_gradient_in, forward_gradient, forward_gradient_in,
};
pub use health::{Health, Verdict};
pub use implicit::number::Number;
#[cfg(feature = "ir")]
pub use program_batch::{ProgramBatch, SampleError, spread};
#[cfg(feature = "ir")]
pub use program_step::{ProgramStep, ProgramStepError, ProgramValues};
pub use rollout::{
    Closest, Differentiate, Direction, Gradient, Inner, Looped, Repeat, Rollout, RolloutReport, Ruled,
    Schedule, StepDecisions, StopMargin, Taped, Truncation,
};
pub use step::{Notes, PlainInput, ReversibleStep, Step, StepRule};
pub use store::{CompressedStore, DiskStore, LossyStore, MemoryStore};

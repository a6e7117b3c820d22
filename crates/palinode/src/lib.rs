//! Palinode: exact gradients of programs with memory and state, in stable Rust.
//!
//! This is the package to depend on. It holds no logic: it names what the others make. What most programs
//! need is in [`prelude`], and the rest in modules by what it is about.
//!
//! ```
//! use palinode::prelude::*;
//!
//! // Any closure, any control flow: the tape follows what runs.
//! let (y, g) = value_and_grad(|x| {
//!     let mut state = x[0];
//!     while state < 100.0 {
//!         state = state * x[1] + 1.0;
//!     }
//!     state
//! }, &[2.0, 3.0])?;
//! assert_eq!((y, g), (202.0, vec![81.0, 250.0]));
//! # Ok::<(), palinode::Error>(())
//! ```

pub use palinode_core::{
    Array, Budget, Dual, Error, Real, Scalar, Tape, Var, check, check_gradient, decision, dense, grad,
    hessian, jacobian, matrix, rules, schedule, value_and_grad,
};
/// Programs: pure single assignment with structured loops, the `.pal` language, transforms, an interpreter.
#[cfg(feature = "ir")]
pub use palinode_ir as ir;
/// Engines that run programs by machine code.
#[cfg(feature = "native")]
pub use palinode_native as native;

/// A program ready to run: by machine code where that pays if the feature `native` is on, by the interpreter
/// otherwise. The bits of the results are the same.
///
/// ```
/// use palinode::ir::interp::{Datum, Limits};
/// use palinode::ir::{pal, transform};
///
/// let model = pal::compile("param k = 0.5\nvar x = 1.0\nfor i in 0..100 { x = sin(k * x) + 1 }\nloss y = x").unwrap();
/// let gradient = transform::value_and_grad(&model.program, &[0]).unwrap();
/// let code = palinode::code(&gradient);
/// let results = code.run(&[Datum::real(0.5)], &Limits::default()).unwrap();
/// assert_eq!(results[0].as_real().map(|y| (y * 1e6).round()), Some(1775724.0));
/// ```
#[cfg(all(feature = "ir", not(feature = "native")))]
pub use palinode_ir::interp::code;
/// ```
/// use palinode::{prelude::*, time::PlainInput};
///
/// #[derive(Reals)]
/// struct Pendulum<S> {
///     angle: S,
///     speed: S,
/// }
///
/// /// Semi-implicit Euler.
/// #[step]
/// fn swing<S: Real>(p: &mut Pendulum<S>, length: &S, dt: f64) {
///     p.speed -= p.angle.sin() / *length * (9.81 * dt);
///     p.angle += p.speed * dt;
/// }
///
/// // `swing` is now a value, to be given to a rollout,
/// let mut state = Pendulum { angle: 0.1, speed: 0.0 };
/// swing.step(&mut state, &1.0, &PlainInput(0.01));
/// // and the function is `swing::call`.
/// swing::call(&mut state, &1.0, 0.01);
/// assert!(state.speed < 0.0);
///
/// #[step(Decay)]
/// fn decay<S: Real>(x: &mut S, rate: S) {
///     *x *= S::one() - rate;
/// }
///
/// // `Decay` is the step, and `decay` is still the function.
/// let mut x = 1.0;
/// decay(&mut x, 0.25);
/// Decay.step(&mut x, &0.25, &());
/// assert_eq!(x, 0.5625);
/// ```
///
/// A step changes its state and returns nothing:
///
/// ```compile_fail
/// # use palinode::prelude::*;
/// #[step]
/// fn next<S: Real>(x: &mut S) -> S {
///     *x
/// }
/// ```
#[cfg(feature = "time")]
#[doc(inline)]
pub use palinode_macros::step;
#[cfg(feature = "native")]
pub use palinode_native::code;
/// Loops: rollouts inside a budget, snapshot stores, implicit functions; batches and estimators.
#[cfg(feature = "time")]
pub use palinode_time as time;

/// What macros write paths to.
#[doc(hidden)]
pub use palinode_core as __core;
#[cfg(feature = "nalgebra")]
pub use palinode_core::linalg;

/// Numbers without derivatives: double-doubles, posits and quires, ways to add up, random keys.
pub mod num {
    pub use palinode_core::FormatLimits;
    pub use palinode_num::*;
}

/// From a closure and a point to a derivative.
pub mod drivers {
    pub use palinode_core::{
        InputGroups, Looked, MOST_GROUPS, PerLane, Samples, Sparse, check_gradient, derivatives, grad,
        hessian, hvp, in_lanes, jacobian, jvp, sparse_hessian, sparse_jacobian, value_and_grad,
        value_and_grad_batch, vjp,
    };
}

/// Numbers that carry their derivatives along: one direction, many, many orders, none.
pub mod forward {
    pub use palinode_core::{Dual, DualN, Jet, Operand, Passive, Tangents};
}

/// The dynamic tape: recordings, their sweeps, tables and compressed forms; operations with rules of their
/// own.
pub mod tape {
    pub use palinode_core::{
        Boundary, CompressedRecord, Compression, CompressionReport, CompressionStep, CustomRule, MAX_NODES,
        Narrowing, Outputs, Partials, Record, Size, Table, TableRow, Tape, Var, custom, custom_rule,
    };
}

/// Arrays on the tape: in place, with views.
pub mod array {
    pub use palinode_core::{Array, ArrayCounts, ArrayOperand, Position, WhenOverwritten};
}

/// Values with numbers inside as words, where such words are kept, and derives for values of your own.
pub mod snapshot {
    pub use palinode_core::{
        Bits, Plain, Reals, Sink, Snapshot, SnapshotError, SnapshotStore, SnapshotWords, Source, StoreStats,
    };
    /// ```
    /// use palinode::snapshot::Plain;
    ///
    /// #[derive(Plain, Debug, PartialEq)]
    /// enum Order {
    ///     Keep,
    ///     Buy { what: String, units: u32 },
    /// }
    ///
    /// let order = Order::Buy { what: "tea".into(), units: 12 };
    /// let mut words = Vec::new();
    /// order.save(&mut |word| words.push(word));
    /// let mut words = words.into_iter();
    /// assert_eq!(Order::load(&mut || words.next().unwrap()), order);
    /// ```
    #[cfg(feature = "time")]
    #[doc(inline)]
    pub use palinode_macros::Plain;
    /// ```
    /// use palinode::snapshot::{Plain, Reals, Snapshot};
    ///
    /// #[derive(Reals, Debug, PartialEq)]
    /// struct Ball<S> {
    ///     position: [S; 2],
    ///     contact: Contact<S>,
    ///     bounces: u32,
    ///     colour: Colour,
    /// }
    ///
    /// #[derive(Reals, Debug, PartialEq)]
    /// enum Contact<S> {
    ///     Flying,
    ///     Rolling { friction: S },
    /// }
    ///
    /// #[derive(Plain, Debug, PartialEq)]
    /// enum Colour {
    ///     Red,
    ///     Green,
    /// }
    ///
    /// let rolling = Contact::Rolling { friction: 0.1 };
    /// let ball = Ball { position: [1.0, 2.0], contact: rolling, bounces: 3, colour: Colour::Green };
    /// let kept = Snapshot::of(&ball);
    /// assert_eq!(kept.reals().len(), 3);
    /// assert_eq!(kept.plain(), [1, 3, 1]); // rolling, three bounces, green
    ///
    /// let mut other = Ball { position: [0.0; 2], contact: Contact::Flying, bounces: 0, colour: Colour::Red };
    /// kept.restore(&mut other);
    /// assert_eq!(other, ball);
    /// ```
    ///
    /// A type without a type parameter has no number to find, and a field cannot be a reference:
    ///
    /// ```compile_fail
    /// #[derive(palinode::snapshot::Reals)]
    /// struct Point {
    ///     x: f64,
    /// }
    /// ```
    ///
    /// ```compile_fail
    /// #[derive(palinode::snapshot::Reals)]
    /// struct View<'a, S> {
    ///     numbers: &'a [S],
    /// }
    /// ```
    #[cfg(feature = "time")]
    #[doc(inline)]
    pub use palinode_macros::Reals;
}

/// How many bytes something may take, as text and back.
pub mod budget {
    pub use palinode_core::{Budget, BudgetMistake, IntoBudget};
}

/// What most programs need: `use palinode::prelude::*`.
///
/// Errors are not in it: there is one of tapes, [`Error`], and one of loops, `palinode::time::Error`, which
/// holds the other, and whoever imports all of `palinode::time` means that one.
pub mod prelude {
    pub use palinode_core::{
        Array, Budget, Dual, DualN, Jet, Real, Scalar, Tape, Var, check_gradient, derivatives, grad, hessian,
        hvp, jacobian, jvp, sparse_hessian, sparse_jacobian, value_and_grad, vjp,
    };
    #[cfg(feature = "time")]
    pub use palinode_macros::{Plain, Reals, step};
    #[cfg(feature = "time")]
    pub use palinode_time::{Gradient, Number, Rollout, Step};
}

/// The README and the book: their code blocks run as doctests. `build.rs` lists those that have any.
#[cfg(doctest)]
mod documents {
    include!(concat!(env!("OUT_DIR"), "/documents.rs"));
}

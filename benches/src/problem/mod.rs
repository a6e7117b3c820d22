//! The problems, each written once over `Num`. Each type says what it computes, from where, and why those
//! numbers.

mod gmm;
mod loops;
mod lstm;
mod mlp;

use crate::num::Num;

pub use gmm::Gmm;
pub use loops::{Logistic, Lorenz, Nchain, Rosenbrock};
pub use lstm::Lstm;
pub use mlp::Mlp;

/// How large to build a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The published sizes.
    Full,
    /// About a tenth or less of the work, for continuous integration.
    Quick,
    /// Small enough for finite differences in a test.
    Test,
}

impl Size {
    /// The entry for this size.
    pub fn pick<T>(self, full: T, quick: T, test: T) -> T {
        match self {
            Size::Full => full,
            Size::Quick => quick,
            Size::Test => test,
        }
    }
}

/// A scalar function of several inputs whose gradient is wanted.
pub trait Problem: Sync + Sized {
    /// The name to filter rows by.
    const NAME: &'static str;
    /// What one iteration is, for the per-iteration figures.
    const UNIT: &'static str;

    /// Builds the problem with its fixed data.
    fn new(size: Size) -> Self;
    /// The sizes, for the table.
    fn describe(&self) -> String;
    /// Where the gradient is taken.
    fn inputs(&self) -> Vec<f64>;
    /// Iterations in one evaluation.
    fn iterations(&self) -> usize;
    /// The function.
    fn eval<T: Num>(&self, x: &[T]) -> T;
    /// The same problem with fewer iterations, for a peer whose tape of the whole would not fit.
    fn smaller(&self) -> Option<Self> {
        None
    }
}

/// Something to do with every problem in turn.
pub trait Visitor {
    /// Called once per problem.
    fn visit<P: Problem>(&mut self, size: Size);
}

macro_rules! rows {
    ($($problem:ident)*) => {
        /// The table's rows, in order.
        pub fn for_each(visitor: &mut impl Visitor, size: Size) {
            $(visitor.visit::<$problem>(size);)*
        }

        /// The row names, in order.
        pub const NAMES: &[&str] = &[$($problem::NAME),*];
    };
}
rows!(Logistic Nchain Lorenz Gmm Lstm Rosenbrock Mlp);

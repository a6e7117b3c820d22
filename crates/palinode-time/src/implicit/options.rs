//! How an equation is solved, and how the linear system of its derivative is.

use super::error::ImplicitError;

/// How a solution is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SolverMethod {
    /// `x <- f(x)`, again and again; converges if the map brings points closer together.
    Picard,
    /// Picard with the last so many steps combined (Anderson 1965): fewer steps, and many maps on which
    /// Picard fails.
    Anderson {
        /// How many steps are remembered.
        memory: usize,
    },
    /// Newton's method, with shorter steps where a full one would not bring the residual down.
    Newton,
}

/// How the linear system of a derivative, or of a Newton step, is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinearMethod {
    /// Directly up to 100 unknowns, by products beyond; up to 2000 unknowns directly after all, where a
    /// quarter as many products do not get there.
    Automatic,
    /// The matrix is formed and factored: `n` sweeps, `n^2` numbers; sees every singular matrix.
    Direct,
    /// GMRES on products with the recorded map: as many sweeps as it takes, no matrix.
    Krylov,
}

/// How to solve: the method, its limits, and those of the derivative.
///
/// ```
/// use palinode_time::implicit::{LinearMethod, Solver};
///
/// let solver = Solver::anderson(5).tolerance(1e-10).iterations(500).linear(LinearMethod::Krylov).linear_tolerance(1e-8);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Solver {
    pub(super) method: SolverMethod,
    pub(super) tolerance: f64,
    pub(super) iterations: usize,
    pub(super) damping: f64,
    pub(super) linear: LinearOptions,
}

/// The limits of a linear system.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearOptions {
    pub(super) method: LinearMethod,
    pub(super) tolerance: f64,
    pub(super) directions: usize,
    pub(super) products: usize,
}

impl LinearOptions {
    /// Up to how many unknowns the automatic choice is to form the matrix at once: that takes a few
    /// milliseconds, and sees every singular matrix (measured: ADR 0035).
    const DIRECT: usize = 100;
    /// And up to how many where products did not get there: 32 MB, some seconds.
    const DIRECT_AFTER_ALL: usize = 2000;

    /// Whether a system of this size is solved directly.
    pub(super) fn is_direct(&self, unknowns: usize) -> bool {
        match self.method {
            LinearMethod::Automatic => unknowns <= Self::DIRECT,
            LinearMethod::Direct => true,
            LinearMethod::Krylov => false,
        }
    }

    /// How many directions and products may be taken: where there is another way, no more than cost little
    /// beside it.
    pub(super) fn directions_and_products(&self, unknowns: usize) -> (usize, usize) {
        let few = if self.is_direct_after_all(unknowns) { unknowns.div_ceil(4) } else { usize::MAX };
        (self.directions.min(few), self.products.min(few))
    }

    /// Whether one that products did not solve is solved directly after all.
    pub(super) fn is_direct_after_all(&self, unknowns: usize) -> bool {
        self.method == LinearMethod::Automatic && unknowns <= Self::DIRECT_AFTER_ALL
    }
}

impl Solver {
    fn of(method: SolverMethod, iterations: usize) -> Self {
        let linear = LinearOptions {
            method: LinearMethod::Automatic,
            tolerance: 1e-10,
            directions: 200,
            products: 2000,
        };
        Solver { method, tolerance: 1e-12, iterations, damping: 1.0, linear }
    }

    /// `x <- f(x)`.
    pub fn picard() -> Self {
        Self::of(SolverMethod::Picard, 10_000)
    }

    /// Picard with so many steps remembered; 3 to 10 are usual.
    pub fn anderson(memory: usize) -> Self {
        Self::of(SolverMethod::Anderson { memory }, 1000)
    }

    /// Newton's method.
    pub fn newton() -> Self {
        Self::of(SolverMethod::Newton, 100)
    }

    /// When to stop: the residual (for Newton the next step, which estimates the error) is at most this times
    /// `1 + max |x|`. 1e-12 if not said.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// How many iterations there may be.
    pub fn iterations(mut self, most: usize) -> Self {
        self.iterations = most;
        self
    }

    /// What part of a step of Picard or Anderson is taken, between 0 and 1. Less than 1 helps where the
    /// iteration swings.
    pub fn damping(mut self, part: f64) -> Self {
        self.damping = part;
        self
    }

    /// How the linear system of the derivative is solved.
    pub fn linear(mut self, method: LinearMethod) -> Self {
        self.linear.method = method;
        self
    }

    /// How small the residual of the derivative's linear system must be, relative to its right side. 1e-10 if
    /// not said.
    pub fn linear_tolerance(mut self, tolerance: f64) -> Self {
        self.linear.tolerance = tolerance;
        self
    }

    /// How many products GMRES may take in all (2000), and how many directions it may keep at a time (200).
    pub fn krylov(mut self, products: usize, directions: usize) -> Self {
        (self.linear.products, self.linear.directions) = (products, directions);
        self
    }

    /// An error if a limit makes no sense.
    pub(super) fn check(&self) -> Result<(), ImplicitError> {
        let refuse = |what, value, must| Err(ImplicitError::Option { what, value, must });
        for (what, value) in [("tolerance", self.tolerance), ("linear tolerance", self.linear.tolerance)] {
            if !(value > 0.0 && value < 1.0) {
                return refuse(what, value, "be above 0 and below 1");
            }
        }
        if !(self.damping > 0.0 && self.damping <= 1.0) {
            return refuse("damping", self.damping, "be above 0 and at most 1");
        }
        if self.linear.products == 0 || self.linear.directions == 0 {
            return refuse("number of products or directions", 0.0, "be at least 1");
        }
        Ok(())
    }
}

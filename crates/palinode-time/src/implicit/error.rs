//! Why there is no solution, or no derivative of it.

use thiserror::Error;

/// A solution or its derivative that could not be given. Every code has a page in `docs/book/errors`.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ImplicitError {
    /// The iterations ran out.
    #[error(
        "PAL0540: {method} did not converge: after {iterations} iterations the residual is {residual:.3e} (smallest so far {smallest:.3e}), \
         above the tolerance of {tolerance:.1e}; {advice}"
    )]
    NotConverged {
        /// "Picard", "Anderson" or "Newton".
        method: &'static str,
        /// How many iterations there were.
        iterations: usize,
        /// The residual, or Newton's step, at the end, relative to `1 + max |x|`.
        residual: f64,
        /// The smallest of them on the way.
        smallest: f64,
        /// What it should have become.
        tolerance: f64,
        /// What to do.
        advice: &'static str,
    },
    /// The iteration left the finite numbers.
    #[error(
        "PAL0541: {method} diverged: at iteration {iteration} component {component} is {value}; {}",
        after_divergence(method, *iteration)
    )]
    Diverged {
        /// "Picard", "Anderson" or "Newton".
        method: &'static str,
        /// Which iteration, from 0.
        iteration: usize,
        /// Which component, from 0.
        component: usize,
        /// What it is.
        value: f64,
    },
    /// The matrix of the derivative's linear system is singular, or so nearly that its answer cannot be
    /// trusted.
    #[error(
        "PAL0542: the solution has no {which} here: {}; the equation does not determine the solution at this point (a fold, a free \
         direction): add what determines it, or move off that point",
        evidence(*condition, *residual, *tolerance, *products)
    )]
    NoDerivative {
        /// "derivative" or "adjoint".
        which: &'static str,
        /// Of the scaled matrix, if it was factored; infinite if it is singular.
        condition: Option<f64>,
        /// What the residual of the system came to, relative to its right side; 1 if nothing was tried.
        residual: f64,
        /// What was asked for.
        tolerance: f64,
        /// How many products with the map's Jacobian it took.
        products: usize,
    },
    /// GMRES did not get there, and nothing says that the matrix is singular.
    #[error(
        "PAL0548: the linear system of the {which} was not solved: GMRES came to a relative residual of {residual:.1e} with {products} products, above the tolerance of {tolerance:.1e}; \
         that says nothing about the equation: factor its matrix (LinearMethod::Direct, {unknowns} x {unknowns} numbers), or allow more products or directions (.krylov)"
    )]
    LinearNotConverged {
        /// "derivative", "adjoint" or "Newton step".
        which: &'static str,
        /// What the residual of the system came to, relative to its right side.
        residual: f64,
        /// What was asked for.
        tolerance: f64,
        /// How many products with the map's Jacobian it took.
        products: usize,
        /// How many unknowns there are.
        unknowns: usize,
    },
    /// The solution is not known well enough for its derivative: within its error the linear system changes
    /// altogether.
    #[error(
        "PAL0542: the solution has no {which} here that can be trusted: it is known to {error:.1e}, and over that distance the linear system of its derivative \
         changes {}; at a fold, where solutions meet, there is no derivative; elsewhere ask for a smaller tolerance, or start nearer",
        by_part(*change)
    )]
    Undetermined {
        /// "derivative" or "adjoint".
        which: &'static str,
        /// How far it may be from the solution: Newton's step from there, rounding errors included.
        error: f64,
        /// By what part the matrix of the linear system changes over that step, in its direction.
        change: f64,
    },
    /// Newton met a matrix that it cannot divide by.
    #[error(
        "PAL0543: at Newton's iteration {iteration} (residual {residual:.3e}) {evidence}; start elsewhere, remove what is \
         redundant among the equations, or use Anderson"
    )]
    SingularJacobian {
        /// Which iteration, from 0.
        iteration: usize,
        /// The residual there.
        residual: f64,
        /// What shows it: a condition number, or what products came to.
        evidence: String,
    },
    /// There are not as many equations as unknowns.
    #[error("PAL0544: the {what} gives {found} numbers for {expected} unknowns; it must give {expected}")]
    Length {
        /// "map" or "residual".
        what: &'static str,
        /// How many unknowns there are.
        expected: usize,
        /// How many numbers came back.
        found: usize,
    },
    /// A limit makes no sense.
    #[error("PAL0545: the {what} is {value}; it must {must}")]
    Option {
        /// Which limit.
        what: &'static str,
        /// What was given.
        value: f64,
        /// What it must be.
        must: &'static str,
    },
    /// A partial derivative of the equation is infinite or NaN at the solution.
    #[error(
        "PAL0546: the equation has no finite derivative at the solution (a partial is {value}): it has a vertical slope there (sqrt at 0, a \
         division by 0); write it another way, or move off that point"
    )]
    NotSmooth {
        /// The partial.
        value: f64,
    },
    /// A closure uses a recorded number that it was not given.
    #[error(
        "PAL0547: the {what} uses a recorded number (`Var`) from outside, by which it would not be differentiated; pass it in `p`, or its value if it \
         is a constant (`x.primal()`)"
    )]
    Captured {
        /// "map" or "residual".
        what: &'static str,
    },
    /// A recording of the equation failed.
    #[error(transparent)]
    Tape(#[from] palinode_core::Error),
}

impl ImplicitError {
    /// The code, such as `PAL0540`; `docs/book/errors/PAL0540.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            ImplicitError::NotConverged { .. } => "PAL0540",
            ImplicitError::Diverged { .. } => "PAL0541",
            ImplicitError::NoDerivative { .. } | ImplicitError::Undetermined { .. } => "PAL0542",
            ImplicitError::SingularJacobian { .. } => "PAL0543",
            ImplicitError::Length { .. } => "PAL0544",
            ImplicitError::Option { .. } => "PAL0545",
            ImplicitError::NotSmooth { .. } => "PAL0546",
            ImplicitError::Captured { .. } => "PAL0547",
            ImplicitError::LinearNotConverged { .. } => "PAL0548",
            ImplicitError::Tape(error) => error.code(),
        }
    }
}

/// What helps against a search that left the finite numbers.
fn after_divergence(method: &str, iteration: usize) -> &'static str {
    match (iteration, method) {
        (0, _) => "the start, or the equation there, is not finite: start where it is",
        (_, "Newton") => "start nearer to the solution, or transform the unknown so that it stays bounded",
        _ => "start nearer to the solution, damp the iteration, or use Newton",
    }
}

/// What shows that a matrix is singular.
pub(super) fn evidence(condition: Option<f64>, residual: f64, tolerance: f64, products: usize) -> String {
    let left =
        format!("a relative residual of {residual:.1e} is left, above the tolerance of {tolerance:.1e}");
    let is = match condition {
        Some(number) if residual == 1.0 => {
            format!("singular to working precision (condition number {number:.1e})")
        }
        Some(number) => format!("nearly singular (condition number {number:.1e}): {left}"),
        None => format!("singular: after all directions that {products} products reach, {left}"),
    };
    format!("the matrix of its linear system is {is}")
}

fn by_part(change: f64) -> String {
    if change < 1.0 { format!("by {:.0} %", change * 100.0) } else { "altogether".into() }
}

/// What a sweep that meets it returns.
impl From<ImplicitError> for palinode_core::Error {
    fn from(error: ImplicitError) -> Self {
        match error {
            ImplicitError::Tape(error) => error,
            error => palinode_core::Error::OfRule { code: error.code(), text: error.to_string() },
        }
    }
}

//! What can go wrong, each with a code, the place, the cause and the next step.

use crate::budget::{Budget, BudgetMistake};
use thiserror::Error;

/// A mistake or a limit that a caller can do something about. Every code has a page in `docs/book/errors`.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Two things that must have the same length do not.
    #[error("PAL0101: {what} has length {found}, not {expected}; pass {expected}")]
    Length {
        /// What has the wrong length.
        what: &'static str,
        /// How many it should have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// A matrix has a shape for which the operation is not defined.
    #[error("PAL0101: {what} is {rows} by {columns}; it must {must}")]
    Shape {
        /// Which matrix.
        what: &'static str,
        /// How many rows it has.
        rows: usize,
        /// How many columns it has.
        columns: usize,
        /// "be square" and the like.
        must: &'static str,
    },
    /// An input, or an entry of a direction or of output cotangents, is infinite or NaN, so no derivative
    /// exists there.
    #[error("PAL0102: {what} {position} is {value}; a derivative needs finite inputs: check what was passed")]
    NonFiniteInput {
        /// "input", "direction" or "output cotangent".
        what: &'static str,
        /// Which of them, from 0.
        position: usize,
        /// What it is.
        value: f64,
    },
    /// The function's value is infinite or NaN.
    #[error(
        "PAL0103: output {position} is {value} at this point; a derivative there says nothing: \
         keep the inputs inside the function's domain"
    )]
    NonFiniteOutput {
        /// Which output, from 0.
        position: usize,
        /// What it is.
        value: f64,
    },
    /// A derivative is infinite or NaN although the value is finite.
    #[error(
        "PAL0104: the derivative of output {output} with respect to input {input} is {value}: the function has a vertical \
         slope or an undefined derivative here (sqrt at 0, a division by 0 on the way); move off that point"
    )]
    NonFiniteDerivative {
        /// Which output, from 0.
        output: usize,
        /// Which input, from 0.
        input: usize,
        /// What the derivative is.
        value: f64,
    },
    /// What was asked for instead of a single partial derivative is infinite or NaN although the value is
    /// finite.
    #[error(
        "PAL0104: the {what} {position} is {value}: the function has a vertical slope or an undefined \
         derivative here (sqrt at 0, a division by 0 on the way); move off that point"
    )]
    NonFiniteDerivativeOf {
        /// "directional derivative of output" (`jvp`), "cotangent of input" (`vjp`), "derivative of order"
        /// (`derivatives`) and so on.
        what: &'static str,
        /// Which output or input, from 0, or which order.
        position: usize,
        /// What the derivative is.
        value: f64,
    },
    /// A second derivative is infinite or NaN although the gradient is finite.
    #[error(
        "PAL0104: the second derivative by inputs {first} and {second} is {value}: the slope itself has a vertical \
         slope or no derivative here; move off that point"
    )]
    NonFiniteSecondDerivative {
        /// The one input, from 0.
        first: usize,
        /// The other input, from 0.
        second: usize,
        /// What the derivative is.
        value: f64,
    },
    /// The recording needed more nodes than the tape may have.
    #[error(
        "PAL0105: the recording needs more than {limit} nodes; record shorter pieces, or raise the limit \
         (at most 2147483647)"
    )]
    TapeFull {
        /// The most nodes the tape may have.
        limit: u32,
    },
    /// The allocator refused memory.
    #[error(
        "PAL0106: no memory for another {bytes} bytes of tape; record shorter pieces or free memory elsewhere"
    )]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
    /// The tape's own budget was reached.
    #[error(
        "PAL0107: at node {node} the recording needs {needed} bytes, more than the {limit} allowed ({limit_text}); raise the \
         budget, record shorter pieces, or compress them", limit_text = Budget::from(*limit)
    )]
    ByteLimit {
        /// The most bytes the tape may hold.
        limit: usize,
        /// What it would have to hold to go on from here, at least.
        needed: usize,
        /// How many nodes have been recorded.
        node: u32,
    },
    /// A text that should say how many bytes does not.
    #[error(
        "PAL0108: `{text}` is not a budget: {why}; write bytes as 4096, 64KiB, 1.5 MiB, 2GB or unlimited"
    )]
    NotABudget {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: BudgetMistake,
    },
    /// Partials of this number cannot be kept in fewer bytes, because it is more than a plain number.
    #[error("PAL0109: partials of duals and nested numbers cannot be narrowed: keep them exact")]
    NotPlain,
    /// A partial is too large for the narrow form that was asked for.
    #[error(
        "PAL0109: a partial is {value:e}, which no f32 or bf16 can hold: keep partials exact, or scale the problem"
    )]
    PartialTooLarge {
        /// The partial.
        value: f64,
    },
    /// An input to differentiate by does not exist.
    #[error("PAL0101: there is no input {input} among {inputs}; they count from 0")]
    NoSuchInput {
        /// The input asked for.
        input: usize,
        /// How many there are.
        inputs: usize,
    },
    /// An input to differentiate by is listed twice.
    #[error("PAL0101: input {input} is listed twice; list each input once")]
    InputTwice {
        /// The input.
        input: usize,
    },
    /// A decomposition's derivative does not exist because eigenvalues or singular values coincide.
    #[error(
        "PAL0110: {what} {first} and {second} coincide ({value}) up to rounding, so a single one has no derivative; \
         differentiate a symmetric function of them (their sum, product, ...), the values without their vectors \
         forward in one direction, or symmetric_eigenpair of one that coincides with no other"
    )]
    Degenerate {
        /// "eigenvalues" or "singular values".
        what: &'static str,
        /// The first of the pair.
        first: usize,
        /// The second of the pair.
        second: usize,
        /// Their common value.
        value: f64,
    },
    /// A matrix that must be invertible is not.
    #[error(
        "PAL0111: {what}: the matrix is singular (pivot {pivot} is {value}); remove redundant rows or columns, or regularise"
    )]
    Singular {
        /// The operation.
        what: &'static str,
        /// Which pivot failed, from 0.
        pivot: usize,
        /// Its value.
        value: f64,
    },
    /// A matrix that must be symmetric positive definite is not.
    #[error(
        "PAL0112: {what}: the matrix is not positive definite; add a multiple of the identity, or check how it was built"
    )]
    NotPositiveDefinite {
        /// The operation.
        what: &'static str,
    },
    /// Eigenvalues of a matrix that is not symmetric coincide, so that a single one has no derivative.
    #[error(
        "PAL0122: eigenvalues {first} and {second} coincide as far as rounding can tell ({re} {im:+}i), so a single one has no derivative; \
         differentiate their sum (the trace) or product (the determinant), symmetric_eigenvalues if the matrix is symmetric, or move \
         the point"
    )]
    EigenvaluesCoincide {
        /// The first of the pair.
        first: usize,
        /// The second of the pair.
        second: usize,
        /// The real part of one of them.
        re: f64,
        /// Its imaginary part.
        im: f64,
    },
    /// The pseudo-inverse jumps where the rank of its matrix changes.
    #[error(
        "PAL0123: pseudo_inverse: the matrix has rank {rank} of {full}, and where the rank changes the pseudo-inverse jumps; differentiate \
         forward in a direction that keeps the rank, remove redundant rows or columns, or regularise: solve(A'A + t I, A')"
    )]
    RankChanges {
        /// How many singular values are not zero.
        rank: usize,
        /// How many there are.
        full: usize,
    },
    /// A matrix has no principal square root.
    #[error(
        "PAL0124: square_root: the matrix has the eigenvalue {eigenvalue}, so it has no principal square root; check how it was built, or add a \
         multiple of the identity"
    )]
    NoPrincipalRoot {
        /// The eigenvalue on the negative half of the real axis.
        eigenvalue: f64,
    },
    /// A matrix that should be symmetric is not.
    #[error(
        "PAL0125: {what} is not symmetric: entry ({row}, {column}) is {value}, its mirror image {mirrored}; check how it was built, or pass \
         (A + A^T) / 2"
    )]
    NotSymmetric {
        /// Which matrix.
        what: &'static str,
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// What is there.
        value: f64,
        /// What is on the other side of the diagonal.
        mirrored: f64,
    },
    /// A half turn has two scaled axes and no derivative.
    #[error(
        "PAL0126: the rotation is a half turn (the cosine of half its angle is {cosine:e}), where the scaled axis jumps to its negative; differentiate \
         the matrix or the quaternion itself, or move the point"
    )]
    HalfTurn {
        /// The cosine of half the angle.
        cosine: f64,
    },
    /// A matrix or quaternion is no rotation.
    #[error(
        "PAL0126: this is not a rotation: {what} is {value}; normalise it, or take the factor q of polar"
    )]
    NotARotation {
        /// What was looked at.
        what: &'static str,
        /// What it is.
        value: f64,
    },
    /// A matrix holds an entry that is infinite or NaN.
    #[error(
        "PAL0114: entry ({row}, {column}) of {what} is {value}; a decomposition needs finite entries: \
         check what was computed before"
    )]
    NonFiniteEntry {
        /// Which matrix.
        what: &'static str,
        /// Its row, from 0.
        row: usize,
        /// Its column, from 0.
        column: usize,
        /// What it is.
        value: f64,
    },
    /// An array was overwritten while a reverse rule still needs what it held, on a tape that forbids it.
    #[error(
        "PAL0115: `{written_by}` at {written_at} overwrites an array that the reverse rule of `{needed_by}` at {needed_at} \
         still needs; write to a copy, move the write before that operation, or let the tape copy \
         (WhenOverwritten::Copy)"
    )]
    Overwritten {
        /// The operation that needs the old values.
        needed_by: &'static str,
        /// Where it is in the program.
        needed_at: &'static core::panic::Location<'static>,
        /// The operation that writes.
        written_by: &'static str,
        /// Where it is in the program.
        written_at: &'static core::panic::Location<'static>,
    },
    /// A comparison went as it does at this point and nowhere beside it, and so did the derivative.
    #[error(
        "PAL0119: {}, comes out this way only at this point, so the derivative is not that of the function: entry {part} is {here:?} here, and {} and {} on the two sides. Use an operation that knows its own \
         derivative (such as those of `linalg`), move the point a little, or accept it: `decision::accept_points(|| ...)`", compared(*decision, *left, *right), sides[0], sides[1]
    )]
    OfPoint {
        /// Which comparison of active values it is, from 1, in the order in which they are made.
        decision: usize,
        /// What was compared.
        left: f64,
        /// What it was compared with; NaN if it was not compared, but looked at (`is_nan`).
        right: f64,
        /// Which number of the derivative, from 0: an entry of a gradient, of a Jacobian row by row, an order
        /// and so on.
        part: usize,
        /// What it is at the point.
        here: f64,
        /// What it is on both sides, extrapolated to the point; twice the same if it exists on one side only.
        sides: [f64; 2],
    },
    /// A comparison may go as it does at this point only, and beside it nothing can be computed.
    #[error(
        "PAL0119: {}, may come out this way only at this point, and nothing can be computed near it: the closure panics or fails there, or has no finite \
         derivative. Make it computable near the point, move the point a little, or accept it: `decision::accept_points(|| ...)`", compared(*decision, *left, *right)
    )]
    OfPointAlone {
        /// Which comparison of active values it is, from 1, in the order in which they are made.
        decision: usize,
        /// What was compared.
        left: f64,
        /// What it was compared with; NaN if it was not compared, but looked at.
        right: f64,
    },
    /// A comparison went as it does at this point and nowhere beside it, and what followed is infinite or
    /// NaN, which it is not near the point.
    #[error(
        "PAL0119: {}, comes out this way only at this point, and the result is infinite or NaN; near the point it is finite. Use an operation that knows its own \
         derivative (such as those of `linalg`), or move the point a little", compared(*decision, *left, *right)
    )]
    UndefinedAtPoint {
        /// Which comparison of active values it is, from 1, in the order in which they are made.
        decision: usize,
        /// What was compared.
        left: f64,
        /// What it was compared with; NaN if it was not compared, but looked at.
        right: f64,
    },
    /// An inner forward driver was given numbers of an outer one of the same type.
    #[error(
        "PAL0120: the closure of this `{driver}` uses a `{number}` of the `{number}` driver around it: their derivatives would be confused. Run the \
         inner one over the outer number, which makes its closure one over a nested type (`Dual<{number}>` and the like), and `lift` into it what comes from \
         outside; or pass the primal (`value`) if it should be a constant"
    )]
    Confused {
        /// The inner driver.
        driver: &'static str,
        /// The number that both have seeded.
        number: String,
    },
    /// A schedule cannot be made with such an argument.
    #[error("PAL0501: {what} is {value}; it must {must}")]
    ScheduleArgument {
        /// Which argument.
        what: &'static str,
        /// What was passed.
        value: f64,
        /// "be at least 1" and the like.
        must: &'static str,
    },
    /// No schedule keeps as little as was asked for.
    #[error(
        "PAL0502: {bytes} bytes are not enough for any schedule of this loop; the smallest that works is {smallest} bytes"
    )]
    ScheduleBudget {
        /// The bytes (or snapshots) that were given.
        bytes: u64,
        /// The fewest that work.
        smallest: u64,
    },
    /// A schedule would need a table, or snapshots, beyond what is sensible.
    #[error(
        "PAL0504: {what} for {steps} steps would need too large a plan; use a binomial schedule, which needs none, or \
         larger periods"
    )]
    PlanTooLarge {
        /// How many steps the loop has.
        steps: u64,
        /// What was asked for.
        what: &'static str,
    },
    /// The rule of a custom operation has no derivative to give, for a reason of its own.
    #[error("{text}")]
    OfRule {
        /// The code of that reason.
        code: &'static str,
        /// What happened and what to do, the code first.
        text: String,
    },
    /// A driver was given numbers of several samples that do not decide alike.
    #[error(
        "PAL0127: lane {lane} decides differently from others, or is to be looked at by itself, and the driver \
         cannot split lanes; run the samples with `in_lanes`"
    )]
    LanesApart {
        /// The first lane that does.
        lane: usize,
    },
    /// An iterative decomposition did not converge.
    #[error("PAL0113: {what} did not converge; check the matrix for NaN or extreme scales")]
    NoConvergence {
        /// The operation.
        what: &'static str,
    },
}

impl Error {
    /// The code, such as `PAL0101`; `docs/book/errors/PAL0101.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Length { .. }
            | Error::Shape { .. }
            | Error::NoSuchInput { .. }
            | Error::InputTwice { .. } => "PAL0101",
            Error::NonFiniteInput { .. } => "PAL0102",
            Error::NonFiniteOutput { .. } => "PAL0103",
            Error::NonFiniteDerivative { .. }
            | Error::NonFiniteDerivativeOf { .. }
            | Error::NonFiniteSecondDerivative { .. } => "PAL0104",
            Error::TapeFull { .. } => "PAL0105",
            Error::OutOfMemory { .. } => "PAL0106",
            Error::ByteLimit { .. } => "PAL0107",
            Error::NotABudget { .. } => "PAL0108",
            Error::NotPlain | Error::PartialTooLarge { .. } => "PAL0109",
            Error::Degenerate { .. } => "PAL0110",
            Error::Singular { .. } => "PAL0111",
            Error::NotPositiveDefinite { .. } => "PAL0112",
            Error::NoConvergence { .. } => "PAL0113",
            Error::NonFiniteEntry { .. } => "PAL0114",
            Error::EigenvaluesCoincide { .. } => "PAL0122",
            Error::RankChanges { .. } => "PAL0123",
            Error::NoPrincipalRoot { .. } => "PAL0124",
            Error::NotSymmetric { .. } => "PAL0125",
            Error::HalfTurn { .. } | Error::NotARotation { .. } => "PAL0126",
            Error::LanesApart { .. } => "PAL0127",
            Error::Overwritten { .. } => "PAL0115",
            Error::OfPoint { .. } | Error::OfPointAlone { .. } | Error::UndefinedAtPoint { .. } => "PAL0119",
            Error::Confused { .. } => "PAL0120",
            Error::ScheduleArgument { .. } => "PAL0501",
            Error::ScheduleBudget { .. } => "PAL0502",
            Error::PlanTooLarge { .. } => "PAL0504",
            Error::OfRule { code, .. } => code,
        }
    }
}

/// An error that says what has the wrong length, unless the lengths agree.
pub(crate) fn same_length(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

/// What was decided: a comparison, or a look at what kind of number a value is, which has nothing that it is
/// compared with.
fn compared(decision: usize, left: f64, right: f64) -> String {
    if right.is_nan() {
        format!("comparison {decision} of active values, a look at {left:?} by itself")
    } else {
        format!("comparison {decision} of active values, {left:?} with {right:?}")
    }
}

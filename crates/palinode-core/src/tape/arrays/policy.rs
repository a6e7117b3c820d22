//! What happens to a value that a reverse rule still needs when the program overwrites it.

/// What a tape does when an array is written to while a rule still needs what it held.
///
/// Every choice gives the same gradient, bit by bit, or an error; they differ in memory and time.
/// Set it with [`Tape::set_when_overwritten`](crate::Tape::set_when_overwritten).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenOverwritten {
    /// Copy the array first, exactly then. An array nobody needs is written in place.
    #[default]
    Copy,
    /// The recording ends in [`Error::Overwritten`](crate::Error::Overwritten), which names both places in
    /// the program.
    Forbid,
    /// The reference that the others are tested against: every write goes to a new copy, needed or not, with
    /// cotangents of its own. A write costs the whole array, forwards and backwards.
    AlwaysCopy,
    /// Write in place, and compute the old values again in the reverse sweep, from the arguments of the
    /// elementwise operation that made them. Copy where there is no such operation, or its arguments are
    /// gone.
    Recompute,
}

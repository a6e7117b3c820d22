//! What transforms and passes make, checked.

use crate::program::Program;
use crate::text::print;
use crate::verify::verify;

/// [`verify`] where invalidity is a mistake of our own: after each transform, in debug builds and tests.
///
/// # Panics
/// If the program is invalid.
pub(crate) fn verified(program: Program, after: &str) -> Program {
    if cfg!(debug_assertions)
        && let Err(invalid) = verify(&program)
    {
        panic!("{after} made an invalid program: {invalid}\n{}", print(&program));
    }
    program
}

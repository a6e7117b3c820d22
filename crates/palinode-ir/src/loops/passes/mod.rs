//! Loop form -> a better one that computes the same bits.
//!
//! Lowering gives every array memory of its own and a loop of its own. The passes, in the order in which
//! [`improve`] runs them:
//!
//! | file | does |
//! |---|---|
//! | `defer` | outer products that rounds add to a matrix are added after the loop, as one product |
//! | `gather` | updates of one buffer at shifted places become one loop over the places |
//! | `fuse` | loops over the same elements become one; what one stores is not loaded by the next |
//! | `rows` | what a round makes and copies into its row of a log is made there |
//! | `over` | results are stored over an operand that nothing needs afterwards |
//! | `dead` | what nothing reads is not stored, and not computed |
//! | `finite` | numbers are checked only where no later check would see them |
//! | `share` | buffers that are not needed at the same time share memory |
//!
//! `touch` says what a statement reads and changes, `rewrite` puts operands and indices in the place of
//! registers.
//!
//! Invariants: every pass keeps every addition in its order, every stop (though another one may come first),
//! every step, and every comparison that the hook for decisions sees; not the order of comparisons of
//! different loops.

mod dead;
mod defer;
mod finite;
mod fuse;
mod gather;
mod over;
mod rewrite;
mod rows;
mod share;
pub(super) mod touch;

pub(super) use touch::Touch;

use super::form::LoopForm;

/// A pass.
type Pass = fn(&mut LoopForm);

/// The passes by name, in their order.
pub const PASSES: [(&str, Pass); 8] = [
    ("defer", defer::run),
    ("gather", gather::run),
    ("fuse", fuse::run),
    ("rows", rows::run),
    ("over", over::run),
    ("dead", dead::run),
    ("finite", finite::run),
    ("share", share::run),
];

/// Runs all passes; in debug builds the verifier looks at what each makes.
pub fn improve(form: &mut LoopForm) {
    for (name, pass) in PASSES {
        pass(form);
        if cfg!(debug_assertions)
            && let Err(error) = super::verify(form)
        {
            panic!("the pass `{name}` made a wrong loop form: {error}\n{form}");
        }
    }
}

//! Simplification: program -> program that gives the same results.
//!
//! | pass | what it does |
//! |---|---|
//! | [`inline`] | calls of functions that are neither recursive nor have a tangent rule become their bodies |
//! | [`unfuse`] | fused operations become elementwise instructions again |
//! | [`fold`] | operations on literals, branches and loops that are decided by a literal, values that loops only pass on |
//! | [`dims`] | lengths of arrays from where they come from |
//! | [`identities`] | `x * 1`, `a[i] = x; a[i]`, a fill in a sum ... |
//! | [`cse`] | what is computed twice is computed once |
//! | [`dce`] | what nobody needs |
//! | [`hoist`] | loop invariants, out of the loop |
//! | [`unroll`] | short loops of known length, written out |
//! | [`fuse_loops`] | neighbouring loops of one length, run as one |
//! | [`schedule`] | reads of an array before the update that consumes it |
//! | [`fuse`] | chains of elementwise array operations, in one go |
//! | [`simplify`] | all of the above but `inline`, until nothing changes |
//!
//! **What "the same results" means.** If the program runs without an error on some inputs, so does the result, and every
//! result is the same number, bit by bit (one NaN is as good as another). There is one exception: the *sign of a zero* that comes out of a strong
//! product (which only derivative code contains) is not kept; see [`identities`]. Errors may vanish together with the instruction that
//! would have raised them, if nothing else needs it; none is added. A loop that does not end may vanish likewise. Which of several
//! errors is reported first may change.
//!
//! Literals are folded as `f64`: on another number type (double-double, posits) `1.0 / 3.0` is then the `f64` nearest to a third.
//! Named constants stay named.
//!
//! Invariants: each pass is a pure function, deterministic, takes time about linear in the size of the program, and its result is
//! verified in debug builds. Values keep their names and instructions their spans. Nothing here knows about derivatives but the strong product.

mod copy;
mod cse;
mod dce;
mod dims;
mod facts;
mod fold;
mod fuse;
mod fuse_loops;
mod hoist;
mod identities;
mod inline;
mod memory;
mod rewrite;
mod schedule;
mod shape;
mod unroll;

pub use cse::cse;
pub use dce::dce;
pub use dims::dims;
pub use fold::fold;
pub use fuse::{fuse, unfuse};
pub use fuse_loops::fuse_loops;
pub use hoist::hoist;
pub use identities::identities;
pub use inline::inline;
pub use schedule::schedule;
pub use unroll::unroll;

use crate::program::Program;

/// A program to a program.
pub type Pass = fn(&Program) -> Program;

/// Every pass by its name, in the order of the module's table.
pub const ALL: &[(&str, Pass)] = &[
    ("inline", inline),
    ("unfuse", unfuse),
    ("fold", fold),
    ("dims", dims),
    ("identities", identities),
    ("cse", cse),
    ("dce", dce),
    ("hoist", hoist),
    ("unroll", unroll),
    ("fuse_loops", fuse_loops),
    ("schedule", schedule),
    ("fuse", fuse),
    ("simplify", simplify),
];

/// What one round of [`simplify`] does, in order.
const ROUND: &[(&str, Pass)] = &[
    ("fold", fold),
    ("dims", dims),
    ("identities", identities),
    ("cse", cse),
    ("dce", dce),
    ("hoist", hoist),
    ("unroll", unroll),
    ("fuse_loops", fuse_loops),
];

/// The passes in the order in which [`simplify`] runs them, the rounds once: to show the program after each.
pub fn pipeline() -> &'static [(&'static str, Pass)] {
    const PIPELINE: &[(&str, Pass)] = &[
        ("unfuse", unfuse),
        ROUND[0],
        ROUND[1],
        ROUND[2],
        ROUND[3],
        ROUND[4],
        ROUND[5],
        ROUND[6],
        ROUND[7],
        ("schedule", schedule),
        ("fuse", fuse),
        ("dce", dce),
    ];
    PIPELINE
}

/// How often [`simplify`] goes round at most. Each round opens chances for the next, as a rule for two or three.
const MAX_ROUNDS: usize = 8;

/// The standard pipeline, until nothing changes or 8 rounds are done.
pub fn simplify(program: &Program) -> Program {
    let mut program = unfuse(program);
    for _ in 0..MAX_ROUNDS {
        let next = ROUND.iter().fold(program.clone(), |program, (_, pass)| pass(&program));
        let settled = next == program;
        program = next;
        if settled {
            break;
        }
    }
    dce(&fuse(&schedule(&program)))
}

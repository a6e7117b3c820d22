//! Simplification: program -> program that gives the same results.
//!
//! | pass | what it does |
//! |---|---|
//! | [`inline`] | calls of functions that are neither recursive nor have a tangent rule become their bodies |
//! | [`unfuse`] | fused operations become elementwise instructions again |
//! | [`fold`] | operations on literals, branches and loops that are decided by a literal, values that loops only pass on |
//! | [`dims`] | lengths of arrays from where they come from |
//! | [`counted`] | what changes by the same amount in every round of a loop, from the number of the round |
//! | [`logs`] | entries of logs that follow from the number of the round |
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
//! **What "the same results" means.** If the program runs without an error on some inputs, so does the
//! result, and every result is the same number, bit by bit (one NaN is as good as another). There is one
//! exception: the *sign of a zero* that comes out of a strong product (which only derivative code contains)
//! is not kept; see [`identities`]. Errors may vanish together with the instruction that would have raised
//! them, if nothing else needs it; none is added. A loop that does not end may vanish likewise. Which of
//! several errors is reported first may change.
//!
//! Literals are folded as `f64`: on another number type (double-double, posits) `1.0 / 3.0` is then the `f64`
//! nearest to a third. Named constants stay named.
//!
//! Invariants: each pass is a pure function, deterministic, takes time about linear in the size of the
//! program, and its result is verified in debug builds. Values keep their names and instructions their spans.
//! Nothing here knows about derivatives but the strong product.

mod copy;
mod counted;
pub(crate) mod cse;
pub(crate) mod dce;
mod dims;
mod facts;
mod fold;
mod fuse;
mod fuse_loops;
mod hoist;
mod identities;
mod inline;
mod logs;
mod memory;
mod rewrite;
mod schedule;
pub(crate) mod shape;
mod unroll;

pub use counted::counted;
pub use cse::cse;
pub use dce::dce;
pub use dims::dims;
pub use fold::fold;
pub use fuse::{fuse, unfuse};
pub use fuse_loops::fuse_loops;
pub use hoist::hoist;
pub use identities::identities;
pub use inline::inline;
pub use logs::logs;
pub use schedule::schedule;
pub use unroll::unroll;

use crate::checked::verified;
use crate::fast::FastSet;
use crate::program::{Function, Program};
pub(crate) use dce::without_dead;

/// A program to a program.
pub type Pass = fn(&Program) -> Program;

/// Every pass by its name, in the order of the module's table, which is that of [`simplify`].
pub const ALL: &[(&str, Pass)] = &[
    ("inline", inline),
    ("unfuse", unfuse),
    ("fold", fold),
    ("dims", dims),
    ("counted", counted),
    ("logs", logs),
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

/// What a pass does to one function.
type Step = fn(&mut Function);

/// A pass that looks at one function at a time.
fn each(program: &Program, name: &str, step: Step) -> Program {
    let mut program = program.clone();
    program.functions.iter_mut().for_each(step);
    verified(program, name)
}

/// What one round of [`simplify`] does to each function, in order.
const ROUND: &[(&str, Step)] = &[
    ("fold", fold::fold_function),
    ("dims", dims::dims_function),
    ("counted", counted::counted_function),
    ("logs", logs::logs_function),
    ("identities", identities::identities_function),
    ("cse", cse::cse_function),
    ("dce", dce::dce_function),
    ("hoist", hoist::hoist_function),
    ("unroll", unroll::unroll_function),
    ("fuse_loops", fuse_loops::fuse_loops_function),
];

/// The passes in the order in which [`simplify`] runs them, the rounds once: to show the program after each.
pub fn pipeline() -> impl Iterator<Item = (&'static str, Pass)> {
    let of_simplify = |(name, _): &(&str, Pass)| !matches!(*name, "inline" | "simplify");
    ALL.iter().copied().filter(of_simplify).chain([("dce", dce as Pass)])
}

/// How often [`simplify`] goes round at most. Each round opens chances for the next, as a rule for two or
/// three.
const MAX_ROUNDS: usize = 8;

/// The standard pipeline, until nothing changes or 8 rounds are done.
pub fn simplify(program: &Program) -> Program {
    let mut program = unfuse(program);
    // What a round left as it was, by its fingerprint: it is not looked at again.
    let mut settled: FastSet<u64> = FastSet::default();
    for _ in 0..MAX_ROUNDS {
        let before: Vec<u64> = program.functions.iter().map(Function::fingerprint).collect();
        let open: Vec<bool> = before.iter().map(|fingerprint| !settled.contains(fingerprint)).collect();
        if !open.contains(&true) {
            break;
        }
        for (name, step) in ROUND {
            let functions = program.functions.iter_mut().zip(&open);
            functions.filter(|(_, open)| **open).for_each(|(function, _)| step(function));
            program = verified(program, name);
        }
        for (function, before) in program.functions.iter().zip(before) {
            if function.fingerprint() == before {
                settled.insert(before);
            }
        }
        program = verified(dce::without_unneeded(program), "dce");
    }
    for step in [schedule::schedule_function, fuse::fuse_function, dce::dce_function] {
        program.functions.iter_mut().for_each(step);
    }
    verified(dce::without_unneeded(program), "simplify")
}

/// What is done, in order, to integers and truth values: lengths, positions, conditions.
const DISCRETE: &[Step] = &[
    |function| rewrite::rewrite(function, &mut rewrite::Discrete(fold::Fold)),
    dims::dims_function,
    counted::counted_function,
    logs::logs_function,
    |function| rewrite::rewrite(function, &mut rewrite::Discrete(identities::Identities)),
    |function| {
        cse::share(function, &|function, value, _| !function.ty(value).is_real());
        function.renumber();
    },
    dce::dce_function,
    hoist::hoist_function,
];

/// How often this is done at most.
const MAX_DISCRETE_ROUNDS: usize = 4;

/// The program as transforms want it: no calls that can be inlined, no fused operations, nothing dead;
/// lengths and positions known as well as can be, and invariants outside their loops, because what never
/// changes is not kept; reads before the updates that consume their array. What derivatives go through stays
/// as it is, so that their bits do.
pub(crate) fn prepared(program: Program) -> Program {
    let mut program = inline::inlined(program);
    program.functions.iter_mut().for_each(fuse::unfuse_function);
    program = without_dead(program);
    for function in &mut program.functions {
        for _ in 0..MAX_DISCRETE_ROUNDS {
            let before = function.fingerprint();
            DISCRETE.iter().for_each(|step| step(function));
            if function.fingerprint() == before {
                break;
            }
        }
        schedule::schedule_function(function);
    }
    verified(program, "prepared")
}

//! The peers: one file per derivative crate.
//!
//! A peer turns a problem into a `Gradient`: a closure from inputs to the gradient. Whatever its crate lets a
//! user keep between calls (a pooled tape, a recorded program, a buffer) is kept inside; making it is not
//! timed, calling it is.

pub mod ad_trait;
pub mod echidna;
pub mod num_dual;
pub mod palinode;
pub mod tally;

use crate::problem::Problem;

/// A prepared gradient: inputs to gradient.
pub type Gradient<'a> = Box<dyn FnMut(&[f64]) -> Vec<f64> + 'a>;

/// Why a peer does not do a problem, in a few words for the table.
pub type Refusal = String;

/// How a peer computes, which decides whom it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Records the run and sweeps back, every time: any control flow.
    Reverse,
    /// Recorded once, before timing; evaluates that record anew and sweeps back: fixed control flow only.
    Replay,
    /// Carries tangents forward, all directions at once.
    Forward,
}

/// One column of the comparison.
pub struct Peer<P> {
    /// Name in the table.
    pub name: &'static str,
    /// How it computes.
    pub kind: Kind,
    /// Prepares it for a problem.
    pub prepare: for<'a> fn(&'a P) -> Result<Gradient<'a>, Refusal>,
}

/// Names the bars look up.
pub mod name {
    #![allow(missing_docs)]
    pub const ECHIDNA_REVERSE: &str = "echidna Reverse";
    pub const NUM_DUAL: &str = "num-dual DualSVec";
    pub const PALINODE_VAR: &str = "palinode Var";
    pub const PALINODE_DUAL: &str = "palinode DualN";
}

/// Every peer, in the table's order.
pub fn all<P: Problem>() -> Vec<Peer<P>> {
    vec![
        Peer { name: name::PALINODE_VAR, kind: Kind::Reverse, prepare: palinode::var },
        Peer { name: name::PALINODE_DUAL, kind: Kind::Forward, prepare: palinode::dual_n },
        Peer { name: name::ECHIDNA_REVERSE, kind: Kind::Reverse, prepare: echidna::reverse },
        Peer { name: "echidna bytecode", kind: Kind::Reverse, prepare: echidna::bytecode },
        Peer { name: "echidna bytecode replay", kind: Kind::Replay, prepare: echidna::bytecode_replay },
        Peer { name: "ad_trait adr", kind: Kind::Reverse, prepare: ad_trait::reverse },
        Peer { name: "ad_trait adfn", kind: Kind::Forward, prepare: ad_trait::forward },
        Peer { name: name::NUM_DUAL, kind: Kind::Forward, prepare: num_dual::forward },
    ]
}

/// Forward mode is compared where all directions fit in one pass; beyond that it would only measure the input
/// count.
fn too_many_inputs(n: usize) -> Refusal {
    format!("forward mode: {n} inputs")
}

/// Calls `$run::<N>($problem)` for the input counts forward mode is compared at.
macro_rules! by_input_count {
    ($problem:expr, $run:ident) => {{
        let problem = $problem;
        match $crate::problem::Problem::inputs(problem).len() {
            2 => Ok($run::<_, 2>(problem)),
            3 => Ok($run::<_, 3>(problem)),
            6 => Ok($run::<_, 6>(problem)),
            n => Err($crate::peer::too_many_inputs(n)),
        }
    }};
}
use by_input_count;

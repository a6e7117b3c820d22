//! The integration tests of `palinode-ir`, in one binary.

mod accumulators;
mod agree;
mod agree_precisely;
mod calls;
mod counting;
mod emit;
mod facts;
mod implicit;
mod inplace;
mod interp;
mod interp_arrays;
mod loops;
mod pal;
mod passes_derivatives;
mod passes_files;
mod passes_random;
mod peak;
mod plan;
mod plan_hard;
mod planted_liveness;
mod planted_loops;
mod planted_transforms;
mod posits;
mod random;
mod random_programs;
mod scale;
mod sums;
mod sweeps;
mod text;
mod trace;
mod traffic;
mod transform;

/// How long vectors of random sources are.
const LENGTH: usize = 3;

/// Whether expected texts are written anew instead of compared.
fn is_blessed() -> bool {
    std::env::var_os("PALINODE_BLESS").is_some()
}

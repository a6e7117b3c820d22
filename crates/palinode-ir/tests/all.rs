//! The integration tests of `palinode-ir`, in one binary.

#[path = "all/accumulators.rs"]
mod accumulators;
#[path = "all/agree.rs"]
mod agree;
#[path = "all/agree_precisely.rs"]
mod agree_precisely;
#[path = "all/calls.rs"]
mod calls;
#[path = "all/facts.rs"]
mod facts;
#[path = "all/implicit.rs"]
mod implicit;
#[path = "all/inplace.rs"]
mod inplace;
#[path = "all/interp.rs"]
mod interp;
#[path = "all/interp_arrays.rs"]
mod interp_arrays;
#[path = "all/pal.rs"]
mod pal;
#[path = "all/passes_derivatives.rs"]
mod passes_derivatives;
#[path = "all/passes_files.rs"]
mod passes_files;
#[path = "all/passes_generator.rs"]
mod passes_generator;
#[path = "all/passes_random.rs"]
mod passes_random;
#[path = "all/plan.rs"]
mod plan;
#[path = "all/plan_hard.rs"]
mod plan_hard;
#[path = "all/planted_transforms.rs"]
mod planted_transforms;
#[path = "all/posits.rs"]
mod posits;
#[path = "all/random/mod.rs"]
mod random;
#[path = "all/random_programs.rs"]
mod random_programs;
#[path = "all/sweeps.rs"]
mod sweeps;
#[path = "all/text.rs"]
mod text;
#[path = "all/trace.rs"]
mod trace;
#[path = "all/transform.rs"]
mod transform;

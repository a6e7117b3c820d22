//! The integration tests of `palinode-ir`, in one binary.

#[path = "all/interp.rs"]
mod interp;
#[path = "all/interp_arrays.rs"]
mod interp_arrays;
#[path = "all/text.rs"]
mod text;

//! The integration tests of `palinode-native`, in one binary.

mod examples;
mod hostile;
mod programs;
/// The generators of random programs are those of `palinode-ir`.
#[allow(dead_code)]
#[path = "../../../palinode-ir/tests/all/random/mod.rs"]
mod random;
mod support;

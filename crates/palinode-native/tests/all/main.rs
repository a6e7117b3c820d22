//! The integration tests of `palinode-native`, in one binary.

mod compiling;
/// The allocator of these tests is that of `palinode-ir`.
#[allow(dead_code)]
#[path = "../../../palinode-ir/tests/all/counting.rs"]
mod counting;
/// Texts that are damaged, and forms run statement by statement, as in the tests of `palinode-ir`.
#[path = "../../../palinode-ir/tests/all/loops/damage.rs"]
mod damage;
mod decisions;
#[path = "../../../palinode-ir/tests/all/loops/direct.rs"]
mod direct;
mod elements;
mod errors;
mod examples;
mod forms;
mod hostile;
mod kinds;
mod memory;
mod programs;
/// The generators of random programs are those of `palinode-ir`.
#[allow(dead_code)]
#[path = "../../../palinode-ir/tests/all/random/mod.rs"]
mod random;
mod rustc;
mod support;
mod sweeps;
mod threads;
mod worth;

/// How long vectors of random sources are: rows of pairs, and one more.
const LENGTH: usize = 5;

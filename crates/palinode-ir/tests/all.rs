//! The integration tests of `palinode-ir`, in one binary.

#[path = "all/text.rs"]
mod text;

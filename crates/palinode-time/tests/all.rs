//! All integration tests of `palinode-time`, in one binary.

#[path = "all/batch.rs"]
mod batch;
#[path = "all/forward_gradient.rs"]
mod forward_gradient;

//! Posits and quires. The long run: `cargo test --release -p palinode-num posit -- --ignored`; that of functions: see `functions.rs`.

#[path = "posit/arithmetic.rs"]
mod arithmetic;
#[path = "posit/convert.rs"]
mod convert;
#[path = "posit/exact.rs"]
mod exact;
#[path = "posit/functions.rs"]
mod functions;
#[path = "posit/quire.rs"]
mod quire;

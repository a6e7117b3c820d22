//! Posits and quires. The long run: `cargo test --release -p palinode-num posit -- --ignored`; that of
//! functions: see `functions.rs`.

mod arithmetic;
mod convert;
mod exact;
mod functions;
mod quire;

//! The command as people use it: every test starts the binary.

mod checking;
mod engines;
mod examples;
mod files;
mod json;
mod memory;
mod output;
mod transcript;

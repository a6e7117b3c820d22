//! The command as people use it: every test starts the binary.

#[path = "all/checking.rs"]
mod checking;
#[path = "all/examples.rs"]
mod examples;
#[path = "all/files.rs"]
mod files;
#[path = "all/json.rs"]
mod json;
#[path = "all/memory.rs"]
mod memory;
#[path = "all/output.rs"]
mod output;
#[path = "all/transcript.rs"]
mod transcript;

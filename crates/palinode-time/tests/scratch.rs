//! Scratch.
#[path = "all/sides.rs"]
mod sides;

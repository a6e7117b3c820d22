//! Simplification: program -> program.

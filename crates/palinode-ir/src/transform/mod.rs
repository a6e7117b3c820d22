//! Differentiation: program -> program.

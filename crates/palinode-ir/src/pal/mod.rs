//! The `.pal` language: source -> program, with diagnostics.

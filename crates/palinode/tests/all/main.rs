//! What users meet, through the facade alone.
//!
//! `third_*` differentiate crates that nobody here wrote, unmodified, and compare with closed forms or finite
//! differences; the rest are laws of nesting, of tape scopes and of the decision hook.

mod check;
mod confusion;
mod decisions;
mod ergonomics;
mod misuse;
mod nested_points;
mod nesting;
mod point_laws;
mod point_sides;
mod point_undefined;
mod points;
mod structured;
mod third_fft;
mod third_kalman;
mod third_nalgebra;
mod third_nalgebra_spectra;
mod third_ode;
mod third_qp;
mod traits;

//! What users meet, through the facade alone.
//!
//! `third_*` differentiate crates that nobody here wrote, unmodified, and compare with closed forms or finite
//! differences; the rest are laws of nesting, of tape scopes and of the decision hook.

#[path = "all/check.rs"]
mod check;
#[path = "all/confusion.rs"]
mod confusion;
#[path = "all/decisions.rs"]
mod decisions;
#[path = "all/ergonomics.rs"]
mod ergonomics;
#[path = "all/misuse.rs"]
mod misuse;
#[path = "all/nested_points.rs"]
mod nested_points;
#[path = "all/nesting.rs"]
mod nesting;
#[path = "all/point_laws.rs"]
mod point_laws;
#[path = "all/point_sides.rs"]
mod point_sides;
#[path = "all/point_undefined.rs"]
mod point_undefined;
#[path = "all/points.rs"]
mod points;
#[path = "all/structured.rs"]
mod structured;
#[path = "all/third_fft.rs"]
mod third_fft;
#[path = "all/third_kalman.rs"]
mod third_kalman;
#[path = "all/third_nalgebra.rs"]
mod third_nalgebra;
#[path = "all/third_nalgebra_spectra.rs"]
mod third_nalgebra_spectra;
#[path = "all/third_ode.rs"]
mod third_ode;
#[path = "all/third_qp.rs"]
mod third_qp;
#[path = "all/traits.rs"]
mod traits;

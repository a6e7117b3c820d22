//! The named constants as pairs of `f64`s.
//!
//! Written by `reference/constants.py`: change that file, not this one.

use core::f64::consts;

pub(super) const PI: (f64, f64) = (consts::PI, 1.2246467991473532e-16);

pub(super) const E: (f64, f64) = (consts::E, 1.4456468917292502e-16);

pub(super) const LN_2: (f64, f64) = (consts::LN_2, 2.3190468138462996e-17);

pub(super) const LN_10: (f64, f64) = (consts::LN_10, -2.1707562233822494e-16);

pub(super) const TWO_OVER_SQRT_PI: (f64, f64) = (consts::FRAC_2_SQRT_PI, 1.533545961316588e-17);

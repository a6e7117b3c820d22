//! What compression did, as numbers and as a table.

use super::Partials;
use crate::budget::Budget;
use crate::tape::Size;
use core::fmt;
use palinode_num::Scalar;

/// The recording after one step of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressionStep {
    /// What was done: `recorded`, `what matters`, `chains fused`, `f32 partials` and the like.
    pub name: &'static str,
    /// How large it is then, with a cotangent for each node and what custom operations saved.
    pub size: Size,
}

/// What narrow partials do to the derivatives of one recording: narrow and exact sweeps, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Narrowing {
    /// How partials are kept.
    pub partials: Partials,
    /// The largest absolute difference.
    pub absolute: f64,
    /// The largest difference, each relative to the largest derivative of its sweep.
    pub relative: f64,
    /// Partials that are not zero and became zero.
    pub underflows: usize,
    /// Whether each output was swept by itself, so that by linearity the differences of any sweep are known;
    /// otherwise all outputs together, with cotangents of 1.
    pub each_output: bool,
}

impl Narrowing {
    /// Takes the derivatives of one sweep into account.
    pub(super) fn see<S: Scalar>(&mut self, exact: &[S], narrow: &[S]) {
        let shown = |x: S| x.peek().unwrap_or(f64::NAN);
        let (mut largest, mut difference) = (0.0_f64, 0.0_f64);
        for (&exact, &narrow) in exact.iter().zip(narrow) {
            let (exact, narrow) = (shown(exact), shown(narrow));
            largest = largest.max(exact.abs());
            // Where both are the same infinity, or both NaN, narrowing has changed nothing.
            if exact.to_bits() != narrow.to_bits() && !(exact.is_nan() && narrow.is_nan()) {
                let apart = (exact - narrow).abs();
                difference = difference.max(if apart.is_nan() { f64::INFINITY } else { apart });
            }
        }
        self.absolute = self.absolute.max(difference);
        if difference > 0.0 {
            self.relative = self.relative.max(difference / largest);
        }
    }
}

/// What compression did; `Display` prints a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CompressionReport {
    /// The steps in order; the first is the recording as it was.
    pub steps: Vec<CompressionStep>,
    /// The error that narrow partials cause; none if partials are exact.
    pub narrowing: Option<Narrowing>,
}

impl fmt::Display for CompressionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
        writeln!(f, "{:<width$}  {:>10}  {:>10}  {:>11}", "", "nodes", "edges", "bytes")?;
        for CompressionStep { name, size } in &self.steps {
            let bytes = Budget::from(size.bytes).rounded();
            writeln!(f, "{name:<width$}  {:>10}  {:>10}  {bytes:>11}", size.nodes, size.edges)?;
        }
        if let Some(narrowing) = &self.narrowing {
            let (absolute, relative) = (narrowing.absolute, narrowing.relative);
            writeln!(
                f,
                "{} change derivatives by at most {absolute:.1e}, relatively {relative:.1e}",
                narrowing.partials.name()
            )?;
        }
        Ok(())
    }
}

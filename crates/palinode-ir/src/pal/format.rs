//! Source -> the same source, laid out.

use crate::diagnostic::Diagnostic;

/// Lays a source out.
///
/// # Errors
/// What keeps it from being read.
pub fn format(source: &str) -> Result<String, Vec<Diagnostic>> {
    Ok(source.to_string())
}

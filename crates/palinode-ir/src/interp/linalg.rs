//! Placeholder.
use super::Stats;
use super::error::RunErrorKind;
use super::value::Val;
use crate::op::Linalg;
use palinode_core::Real;

pub(super) fn apply<R: Real>(
    kind: Linalg,
    _args: &[Val<R>],
    _out: &mut Vec<Val<R>>,
    _stats: &mut Stats,
) -> Result<(), RunErrorKind> {
    Err(RunErrorKind::NoConvergence { op: kind.name() })
}

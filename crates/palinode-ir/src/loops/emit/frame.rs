//! What a fused loop reaches: the arrays, or parts of arrays, that its function is given.

use std::collections::HashMap;

use super::super::form::{Buf, Index, Reg, Stmt};
use super::super::verify::Unproven;

/// Terms of an index.
type Terms = Vec<(Reg, i64)>;

/// A fused loop that is being written as a function.
pub(super) struct Frame {
    pub(super) parts: Vec<Part>,
    /// The places of statements' arrays among the parts.
    pub(super) of: HashMap<(Buf, Terms), usize>,
    pub(super) axes: Vec<Reg>,
    pub(super) may_stop: bool,
}

/// Elements of a buffer: all, or those that the loop reaches from a place on that it does not change.
pub(super) struct Part {
    pub(super) buf: Buf,
    /// What does not depend on the counters.
    pub(super) fixed: Terms,
    pub(super) is_whole: bool,
    pub(super) least: i64,
    pub(super) most: i64,
    pub(super) is_changed: bool,
    pub(super) name: String,
}

impl Part {
    pub(super) fn length(&self, whole: u64) -> u64 {
        if self.is_whole { whole } else { (self.most - self.least + 1) as u64 }
    }
}

/// The terms of an index that the counters of a loop change, and the others.
pub(super) fn split(index: &Index, axes: &[Reg]) -> (Terms, Terms) {
    index.terms.iter().partition(|term| axes.contains(&term.0))
}

impl Frame {
    /// What the accesses of a loop reach.
    pub(super) fn of(axes: &[(Reg, i64, i64)], body: &[Stmt], unproven: &Unproven) -> Frame {
        let counters: Vec<Reg> = axes.iter().map(|axis| axis.0).collect();
        let mut frame =
            Frame { parts: Vec::new(), of: HashMap::new(), axes: counters.clone(), may_stop: false };
        // What is changed comes first.
        for is_changed in [true, false] {
            for stmt in body {
                let (buf, at) = match stmt {
                    Stmt::Store { buf, at, .. } if is_changed => (*buf, at),
                    Stmt::Load { buf, at, .. } if !is_changed => (*buf, at),
                    _ => continue,
                };
                let (varying, mut fixed) = split(at, &counters);
                let (mut least, mut most) = (at.constant, at.constant);
                for (reg, factor) in varying {
                    let (_, from, to) = axes[counters.iter().position(|&axis| axis == reg).expect("an axis")];
                    let ends = [from.saturating_mul(factor), (to - 1).saturating_mul(factor)];
                    least = least.saturating_add(ends[0].min(ends[1]));
                    most = most.saturating_add(ends[0].max(ends[1]));
                }
                let is_whole = unproven.contains(stmt) || fixed.is_empty();
                if is_whole {
                    fixed.clear();
                }
                // What is changed is read at the same place only, and may be stored to elsewhere.
                let parts = &mut frame.parts;
                let at = *frame.of.entry((buf, fixed.clone())).or_insert_with(|| {
                    parts.push(Part { buf, fixed, is_whole, least, most, is_changed, name: String::new() });
                    parts.len() - 1
                });
                let part = &mut frame.parts[at];
                (part.least, part.most) = (part.least.min(least), part.most.max(most));
            }
        }
        frame
    }
}

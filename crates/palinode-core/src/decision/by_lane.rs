//! The hook for numbers of several samples ([`Lanes`](palinode_num::Lanes)).
//!
//! Input: what the hook sees, of a group of samples. Output: samples for which it is suspicious leave the
//! group, to be run alone: there the hook sees one number, and what is looked at around it is that sample's.
//! So nothing suspicious is ever noted of a group.
//!
//! What is counted of a group is what each of its samples decides, with the smallest of their margins.

use super::{Asked, KEPT, Suspicion, keep, noted, suspicion};
use palinode_num::{Scalar, lanes};

/// Comparisons with a larger distance than this are not suspicious.
const FAR: f64 = 2.0 * super::TINY;

#[inline]
pub(super) fn compared<N: Scalar>(a: N, b: N, asked: Asked, active: [bool; 2]) {
    let distance = |lane: usize| match (a.glance_at(lane), b.glance_at(lane)) {
        (Some(a), Some(b)) => (a - b).abs(),
        _ => f64::INFINITY,
    };
    let mut all_far = true;
    for lane in 0..N::LANES {
        let distance = distance(lane);
        all_far &= (distance > FAR) & (distance < f64::INFINITY);
    }
    if !all_far {
        closely(a, b, active);
    }
    if KEPT.get() != 0 {
        let least = (0..N::LANES).min_by(|&i, &j| distance(i).total_cmp(&distance(j))).unwrap_or(0);
        keep(a.glance_at(least), b.glance_at(least), asked, Suspicion::None);
    }
}

#[cold]
#[inline(never)]
fn closely<N: Scalar>(a: N, b: N, active: [bool; 2]) {
    if !noted::is_looked_for() {
        return;
    }
    lanes::leave_if(|lane| {
        let (Some(a), Some(b)) = (a.glance_at(lane), b.glance_at(lane)) else { return false };
        // What is active in one sample need not be in another. So it is taken for suspicious if it can be.
        let active = if a.is_finite() && b.is_finite() { [true; 2] } else { active };
        suspicion(a, b, active) != Suspicion::None
    });
}

/// A number was looked at; in this case that is suspicious.
#[inline]
pub(super) fn looked_at<N: Scalar>(value: N, is_suspicious: impl Fn(f64) -> bool) {
    if noted::is_looked_for() {
        lanes::leave_if(|lane| value.glance_at(lane).is_some_and(&is_suspicious));
    }
}

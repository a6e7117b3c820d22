//! Mixed places of equal sizes in closed form: with `s` places, each of which holds a snapshot or the
//! residuals of a step.
//!
//! A schedule is a tree. Its root is the whole loop; a stretch is divided into a left part, over which it is
//! advanced once more, and a right part, for which a slot less is free; a leaf is recorded as a whole. A leaf
//! that was reached by `q` left and `b` right turns holds up to `s - b + 1` steps, each advanced over `q`
//! times. Let `cum(q)` be the steps that leaves with at most `q` left turns hold; the advances are the sum
//! over `q` of what of `n` is beyond `cum(q)`. To divide such a leaf makes `cum(q)` less by one and each
//! further `cum` more by `s - b`, which is at least one: it never costs more than it saves while
//! `cum(q + 1) < n`. So all leaves with fewer than `r - 2` left turns are divided, where `r` is the least
//! number with `C(s + r, s) >= n`, and of those with `r - 2` as few as are enough: those with the fewest
//! right turns first, of which there are `C(b + r - 2, b)` that add `s - b` each. If `k` are divided, the
//! forward evaluations are `r n - C(s + r - 2, s + 1) - C(s + r - 1, s) + k`.

use super::binomial::{mul_div, repetitions};

/// How far to advance over a stretch that is too long to be recorded as a whole: more than `places + 1`
/// steps, with a slot at least.
pub(super) fn split(steps: u64, places: u64) -> u64 {
    let (r, before) = repetitions(steps, places);
    if r == 2 {
        return (steps - places).min(places + 1); // the left part is a leaf, and not full unless the right part is divided
    }
    // What the left part holds if no leaf with r - 2 left turns is divided: C(s + r - 2, s).
    let mut left = mul_div(before, r - 1, places + r - 1);
    let mut missing = steps - before;
    let mut leaves = 1;
    for turns in 0..places {
        let adds = places - turns;
        let in_left = mul_div(leaves, r - 2, turns + r - 2);
        let divided = missing.div_ceil(adds);
        if divided <= leaves {
            // As many of them as there are in the left part, where more places are free.
            return left + if divided <= in_left { missing } else { in_left * adds };
        }
        missing -= leaves * adds;
        left += in_left * adds;
        leaves = mul_div(leaves, turns + r - 1, turns + 1);
    }
    unreachable!("all leaves together hold C(s + r, s) steps")
}

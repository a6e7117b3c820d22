//! In which order the way back through a loop computes states again, if it may keep only so many of them.
//!
//! Input: the number of rounds and of slots. Output: a stream of actions. The binomial schedule: no other advances less often.

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Computes the state of round `to` from that of round `from`, which is the current one.
    Advance { from: u64, to: u64 },
    /// Keeps the current state.
    Snapshot { slot: usize },
    /// Makes the state of a slot the current one.
    Restore { slot: usize },
    /// Forgets the state of a slot.
    Free { slot: usize },
    /// Goes back through a round; its state is the current one, and is not needed any more.
    Reverse { step: u64 },
}

/// Rounds `lo..hi`, of which the first state is in `slot`; so many slots are left for it, this one included.
#[derive(Clone, Copy, Debug)]
struct Segment {
    lo: u64,
    hi: u64,
    slot: usize,
    slots: u64,
    /// Whether the first state is the current one.
    at_first: bool,
}

/// The binomial schedule.
#[derive(Clone, Debug)]
pub(crate) struct Binomial {
    segments: Vec<Segment>,
    pending: std::collections::VecDeque<Action>,
}

/// The schedule for `n` rounds with so many slots, at least one.
pub(crate) fn binomial(n: u64, slots: u64) -> Binomial {
    let mut pending = std::collections::VecDeque::new();
    let mut segments = Vec::new();
    match n {
        0 => {}
        1 => pending.push_back(Action::Reverse { step: 0 }),
        _ => {
            pending.push_back(Action::Snapshot { slot: 0 });
            segments.push(Segment { lo: 0, hi: n, slot: 0, slots: slots.max(1), at_first: true });
        }
    }
    Binomial { segments, pending }
}

/// How many rounds `s` slots reverse if no round is advanced through more than `r` times.
fn reach(s: u64, r: u64) -> u64 {
    let mut product = 1u128;
    for at in 1..=u128::from(s.min(r)) {
        product = product * (u128::from(s.max(r)) + at) / at;
        if product > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    product as u64
}

/// How many rounds the binomial schedule advances through in all.
pub(crate) fn advances(n: u64, slots: u64) -> u64 {
    if n <= 1 {
        return 0;
    }
    if slots <= 1 {
        return n.saturating_mul(n - 1) / 2;
    }
    let r = repetitions(n, slots);
    // r n - C(s + r, r - 1)
    r.saturating_mul(n) - reach(slots + 1, r - 1)
}

/// The most times that a round is advanced through.
fn repetitions(length: u64, slots: u64) -> u64 {
    let (mut low, mut high) = (0, 1);
    while reach(slots, high) < length {
        low = high;
        high *= 2;
    }
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if reach(slots, middle) < length { low = middle } else { high = middle }
    }
    high
}

/// How many of `length` rounds come before the next snapshot.
fn split(length: u64, slots: u64) -> u64 {
    if slots == 1 {
        return length - 1;
    }
    let high = repetitions(length, slots);
    let before = reach(slots, high - 1).min(length.saturating_sub(reach(slots - 1, high - 1)));
    before.clamp(1, length - 1)
}

impl Iterator for Binomial {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        if let Some(action) = self.pending.pop_front() {
            return Some(action);
        }
        let segment = self.segments.last_mut()?;
        let Segment { lo, hi, slot, slots, .. } = *segment;
        if !core::mem::replace(&mut segment.at_first, true) {
            if hi - lo == 1 {
                self.segments.pop();
                self.pending.extend([Action::Free { slot }, Action::Reverse { step: lo }]);
            }
            return Some(Action::Restore { slot });
        }
        let middle = lo + split(hi - lo, slots);
        segment.hi = middle;
        segment.at_first = false;
        if hi - middle == 1 {
            self.pending.push_back(Action::Reverse { step: middle });
        } else {
            self.pending.push_back(Action::Snapshot { slot: slot + 1 });
            let (slot, slots) = (slot + 1, slots - 1);
            self.segments.push(Segment { lo: middle, hi, slot, slots, at_first: true });
        }
        Some(Action::Advance { from: lo, to: middle })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_those_of_the_literature() {
        let total = |n: u64, slots: u64| {
            let advances: u64 = binomial(n, slots)
                .map(|action| if let Action::Advance { from, to } = action { to - from } else { 0 })
                .sum();
            assert_eq!(super::advances(n, slots), advances);
            n + advances
        };
        for (n, totals) in
            [(10, [25, 23, 19, 19]), (100, [590, 416, 322, 268]), (1000, [13155, 7284, 4636, 3472])]
        {
            assert_eq!([3, 5, 10, 30].map(|slots| total(n, slots)), totals, "{n} rounds");
        }
    }
}

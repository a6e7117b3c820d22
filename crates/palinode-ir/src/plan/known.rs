//! The integers of a vector, as far as they are known: those at its head one by one, the rest by a pattern.
//!
//! A loop that appends to a log appends the same numbers in each round, or numbers that grow by the same
//! step. So a log of a thousand million entries is known from its first three rounds.

/// The number of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(pub(super) u32);

/// What a register of the imagined run holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Thing {
    Unset,
    Real,
    /// An integer or truth value, if it is known.
    Int(Option<i64>),
    /// An integer that depends on data but is not negative and not larger than this.
    UpTo(i64),
    Array(Id),
}

impl Thing {
    pub(super) fn int(self) -> Option<i64> {
        match self {
            Thing::Int(value) => value,
            Thing::Unset | Thing::Real | Thing::UpTo(_) | Thing::Array(_) => None,
        }
    }

    /// The most that an integer can be, if that is known.
    pub(super) fn most(self) -> Option<i64> {
        match self {
            Thing::Int(value) => value,
            Thing::UpTo(most) => Some(most),
            Thing::Unset | Thing::Real | Thing::Array(_) => None,
        }
    }

    pub(super) fn id(self) -> Option<Id> {
        match self {
            Thing::Array(id) => Some(id),
            Thing::Unset | Thing::Real | Thing::Int(_) | Thing::UpTo(_) => None,
        }
    }
}

/// Known integers. Truth values are 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ints {
    head: Vec<Option<i64>>,
    /// After the head: the entries of one round, and by how much each grows from round to round.
    pattern: Vec<(i64, i64)>,
    length: u64,
    /// Whether the entries are only bounds: not negative, and not larger.
    at_most: bool,
}

impl Ints {
    pub(super) fn new(head: Vec<Option<i64>>) -> Ints {
        let length = head.len() as u64;
        Ints { head, pattern: Vec::new(), length, at_most: false }
    }

    pub(super) fn get(&self, at: i64) -> Thing {
        let entry = u64::try_from(at).ok().filter(|&at| at < self.length).and_then(|at| self.entry(at));
        match entry {
            Some(most) if self.at_most => Thing::UpTo(most),
            entry => Thing::Int(entry),
        }
    }

    fn entry(&self, at: u64) -> Option<i64> {
        match at.checked_sub(self.head.len() as u64) {
            None => self.head[usize::try_from(at).ok()?],
            Some(beyond) => {
                let period = self.pattern.len() as u64;
                let (first, step) = *self.pattern.get(usize::try_from(beyond.checked_rem(period)?).ok()?)?;
                first.checked_add(step.checked_mul(i64::try_from(beyond / period).ok()?)?)
            }
        }
    }

    /// With one more entry; nothing if it does not follow the pattern.
    pub(super) fn pushed(mut self, entry: Thing) -> Option<Ints> {
        let value = self.admitted(entry)?;
        if self.pattern.is_empty() {
            self.head.push(value);
        } else if self.entry(self.length) != value {
            return None;
        }
        self.length += 1;
        Some(self)
    }

    /// What to note of an entry. If one is only bounded, all count as bounds.
    fn admitted(&mut self, entry: Thing) -> Option<Option<i64>> {
        let is_bound = |value: &Option<i64>| value.is_none_or(|value| value >= 0);
        if matches!(entry, Thing::UpTo(_)) && !self.at_most {
            let rises = self.pattern.iter().all(|&(first, step)| first >= 0 && step >= 0);
            self.at_most = rises && self.head.iter().all(is_bound);
            self.at_most.then_some(())?;
        }
        let value = entry.most();
        (!self.at_most || is_bound(&value)).then_some(value)
    }

    /// With another entry in a place of the head.
    pub(super) fn with(mut self, at: Option<i64>, entry: Thing) -> Option<Ints> {
        let value = self.admitted(entry)?;
        *self.head.get_mut(usize::try_from(at?).ok()?)? = value;
        Some(self)
    }

    /// As if so many more rounds had passed that append `per_round` entries each, like the last two.
    pub(super) fn after(mut self, per_round: u64, rounds: u64) -> Option<Ints> {
        let period = usize::try_from(per_round).ok().filter(|&period| period > 0)?;
        if !self.pattern.is_empty() {
            // What the last rounds appended followed the pattern, and goes on so.
            let goes_on = self.pattern.len() == period || self.is_constant();
            self.length = self.length.saturating_add(per_round.saturating_mul(rounds));
            return goes_on.then_some(self);
        }
        let last = self.head.len().checked_sub(period)?;
        let before = last.checked_sub(period)?;
        for at in 0..period {
            let (old, new) = (self.head[before + at]?, self.head[last + at]?);
            let step = new.checked_sub(old)?;
            self.pattern.push((new.checked_add(step)?, step));
        }
        self.length = self.length.saturating_add(per_round.saturating_mul(rounds));
        Some(self)
    }

    /// What is known if it is either of two.
    pub(super) fn or(&self, other: &Ints) -> Option<Ints> {
        let longer = if self.length >= other.length { self } else { other };
        let same = self.at_most == other.at_most || self.length == 0 || other.length == 0;
        let constant = self.is_constant() && other.is_constant();
        let one = self.entry(0).is_none_or(|a| other.entry(0).is_none_or(|b| a == b));
        (self == other || (constant && same && one)).then(|| longer.clone())
    }

    /// The largest entry, if all are known and none is negative.
    pub(super) fn most(&self) -> Option<i64> {
        let ends = self.pattern.iter().enumerate().flat_map(|(at, &(first, _))| {
            let (period, beyond) = (self.pattern.len() as u64, self.length - self.head.len() as u64);
            let rounds = beyond.saturating_sub(at as u64).div_ceil(period);
            let last = rounds
                .checked_sub(1)
                .map(|last| self.entry(self.head.len() as u64 + last * period + at as u64));
            [Some(first), last.unwrap_or(Some(first))]
        });
        let all: Option<Vec<i64>> = self.head.iter().copied().chain(ends).collect();
        all?.into_iter().try_fold(0, |most, entry| (entry >= 0).then(|| most.max(entry)))
    }

    /// Whether all entries are known and the same.
    pub(super) fn is_constant(&self) -> bool {
        let first = self.entry(0);
        let same = |value: Option<i64>| value.is_some() && value == first;
        self.head.iter().all(|&value| same(value))
            && self.pattern.iter().all(|&(value, step)| step == 0 && same(Some(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_goes_on() {
        // Each round appends 7 and a position that moves by 8.
        let ints = Ints::new([7, 0, 7, 8, 7, 16].map(Some).to_vec());
        let ints = ints.after(2, 1000).unwrap();
        assert_eq!(ints.length, 2006);
        assert_eq!((ints.get(6).int(), ints.get(7).int()), (Some(7), Some(24)));
        let some = [2004, 2005, 2006].map(|at| ints.get(at).int());
        assert_eq!(some, [Some(7), Some(8 * 1002), None]);
        let ints = ints.pushed(Thing::Int(Some(7))).unwrap().pushed(Thing::Int(Some(8 * 1003))).unwrap();
        assert_eq!(ints.get(2007), Thing::Int(Some(8 * 1003)));
        assert_eq!(ints.clone().pushed(Thing::Int(Some(8))), None);
        // A later loop that appends what follows the pattern goes on with it; one of another period does not.
        let more = ints.clone().after(2, 10).unwrap();
        assert_eq!((more.length, more.get(2027).int()), (2028, Some(8 * 1013)));
        assert_eq!(ints.after(3, 10), None);
        let same = Ints::new(vec![Some(4); 3]).after(1, 10).unwrap().after(2, 10).unwrap();
        assert_eq!((same.length, same.is_constant()), (33, true));
    }

    #[test]
    fn the_largest_entry_is_found() {
        assert_eq!(
            Ints::new([7, 0, 7, 8, 7, 16].map(Some).to_vec()).after(2, 1000).unwrap().most(),
            Some(8 * 1002)
        );
        assert_eq!(Ints::new([9, 8, 7].map(Some).to_vec()).after(1, 4).unwrap().most(), Some(9));
        assert_eq!(Ints::new([9, 8, 7].map(Some).to_vec()).after(1, 8).unwrap().most(), None);
        assert_eq!(Ints::new(vec![Some(9), None]).most(), None);
    }

    #[test]
    fn one_bound_makes_all_entries_bounds() {
        let ints = Ints::new([7, 9].map(Some).to_vec()).pushed(Thing::UpTo(4)).unwrap();
        assert_eq!([0, 2].map(|at| ints.get(at)), [Thing::UpTo(7), Thing::UpTo(4)]);
        assert_eq!(ints.pushed(Thing::Int(Some(-1))), None);
        assert_eq!(Ints::new(vec![Some(-3)]).pushed(Thing::UpTo(4)), None);
    }

    #[test]
    fn constants_are_told_apart_from_others() {
        assert!(Ints::new(vec![Some(4); 3]).after(1, 10).unwrap().is_constant());
        assert!(!Ints::new([4, 4, 5].map(Some).to_vec()).is_constant());
        assert!(!Ints::new(vec![Some(4), None]).is_constant());
        assert!(!Ints::new([0, 1, 2].map(Some).to_vec()).after(1, 10).unwrap().is_constant());
    }
}

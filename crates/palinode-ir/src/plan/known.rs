//! The integers of a vector, as far as they are known: those at its head one by one, the rest by a pattern.
//!
//! A loop that appends to a log appends the same numbers in each round, or numbers that grow by the same step. So a log of a thousand million
//! entries is known from its first three rounds.

/// Known integers. Truth values are 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ints {
    head: Vec<Option<i64>>,
    /// After the head: the entries of one round, and by how much each grows from round to round.
    pattern: Vec<(i64, i64)>,
    length: u64,
}

impl Ints {
    pub(super) fn new(head: Vec<Option<i64>>) -> Ints {
        let length = head.len() as u64;
        Ints { head, pattern: Vec::new(), length }
    }

    pub(super) fn get(&self, at: i64) -> Option<i64> {
        let at = u64::try_from(at).ok().filter(|&at| at < self.length)?;
        self.entry(at)
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
    pub(super) fn pushed(mut self, value: Option<i64>) -> Option<Ints> {
        if self.pattern.is_empty() {
            self.head.push(value);
        } else if self.entry(self.length) != value {
            return None;
        }
        self.length += 1;
        Some(self)
    }

    /// With another entry in a place of the head.
    pub(super) fn with(mut self, at: Option<i64>, value: Option<i64>) -> Option<Ints> {
        *self.head.get_mut(usize::try_from(at?).ok()?)? = value;
        Some(self)
    }

    /// As if so many more rounds had passed that append `per_round` entries each, like the last two.
    pub(super) fn after(mut self, per_round: u64, rounds: u64) -> Option<Ints> {
        let period =
            usize::try_from(per_round).ok().filter(|&period| period > 0 && self.pattern.is_empty())?;
        let last = self.head.len().checked_sub(period)?;
        let before = last.checked_sub(period)?;
        for at in 0..period {
            let (old, new) = (self.head[before + at]?, self.head[last + at]?);
            let step = new.checked_sub(old)?;
            self.pattern.push((new.checked_add(step)?, step));
        }
        self.length += per_round * rounds;
        Some(self)
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
        assert_eq!((ints.get(6), ints.get(7)), (Some(7), Some(24)));
        assert_eq!((ints.get(2004), ints.get(2005), ints.get(2006)), (Some(7), Some(8 * 1002), None));
        let ints = ints.pushed(Some(7)).unwrap().pushed(Some(8 * 1003)).unwrap();
        assert_eq!(ints.get(2007), Some(8 * 1003));
        assert_eq!(ints.pushed(Some(8)), None);
    }

    #[test]
    fn constants_are_told_from_others() {
        assert!(Ints::new(vec![Some(4); 3]).after(1, 10).unwrap().is_constant());
        assert!(!Ints::new([4, 4, 5].map(Some).to_vec()).is_constant());
        assert!(!Ints::new(vec![Some(4), None]).is_constant());
        assert!(!Ints::new([0, 1, 2].map(Some).to_vec()).after(1, 10).unwrap().is_constant());
    }
}

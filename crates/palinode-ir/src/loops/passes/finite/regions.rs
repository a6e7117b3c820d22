//! Elements of buffers of which the run is sure to see if they are not finite.
//!
//! Going backwards over statements, a load that is seen adds elements to those of its buffer, and a store
//! takes them away: what was there before is gone. What cannot be told apart counts as not seen.

use crate::fast::FastMap;

use crate::loops::form::{Buf, Buffer, Index, Matrix, Place, Reg};

/// More regions of a buffer are not followed.
const MOST: usize = 64;

/// Elements `constant + sum of factor * k` of a buffer, for each `k` in its range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Region {
    constant: i64,
    /// Factors, largest first, which are positive, and ranges, which are not empty.
    axes: Vec<(i64, i64, i64)>,
}

impl Region {
    /// What an index reaches in a loop over elements; `None` if it depends on something else.
    pub(in super::super) fn of(at: &Index, counters: &[(Reg, i64, i64)]) -> Option<Region> {
        let mut axes = Vec::with_capacity(at.terms.len());
        for &(reg, factor) in &at.terms {
            let &(_, from, to) = counters.iter().find(|counter| counter.0 == reg)?;
            if factor <= 0 || from >= to {
                return None;
            }
            axes.push((factor, from, to));
        }
        axes.sort_unstable_by_key(|axis| core::cmp::Reverse(axis.0));
        Some(Region { constant: at.constant, axes }.shifted())
    }

    pub(super) fn of_place(place: &Place) -> Option<Region> {
        let count = i64::try_from(place.elements()).ok().filter(|&count| count > 0)?;
        Some(Region { constant: place.at.known()?, axes: vec![(1, 0, count)] }.shifted())
    }

    pub(super) fn of_matrix(matrix: &Matrix) -> Option<Region> {
        let mut axes = Vec::new();
        for (count, step) in matrix.sizes.into_iter().zip(matrix.steps) {
            let (count, step) = (i64::try_from(count).ok()?, i64::try_from(step).ok()?);
            if count == 0 {
                return None;
            }
            if step > 0 {
                axes.push((step, 0, count));
            }
        }
        axes.sort_unstable_by_key(|axis| core::cmp::Reverse(axis.0));
        // Rows one after another are one run.
        if let [(outer, _, rows), (1, _, columns)] = axes[..]
            && outer == columns
        {
            axes = vec![(1, 0, rows * columns)];
        }
        Some(Region { constant: matrix.at.known()?, axes }.shifted())
    }

    /// Neighbours have one way to say where they are.
    fn shifted(mut self) -> Region {
        if let [(1, from, to)] = &mut self.axes[..] {
            (*from, *to) = (*from + self.constant, *to + self.constant);
            self.constant = 0;
        }
        self
    }

    /// Whether it is all elements of a buffer of this length, in which it lies.
    pub(in super::super) fn is_all_of(&self, length: u64) -> bool {
        are_different(self.axes.iter().rev().copied()) && self.elements() == length
    }

    fn elements(&self) -> u64 {
        self.axes.iter().map(|&(_, from, to)| (to - from) as u64).product()
    }

    /// The ranges of another one with the same factors in the coordinates of this one, if there are such.
    fn coordinates(&self, other: &Region) -> Option<Vec<(i64, i64)>> {
        if self.axes.len() != other.axes.len() || self.axes.iter().zip(&other.axes).any(|(a, b)| a.0 != b.0) {
            return None;
        }
        let mut rest = other.constant - self.constant;
        let ranges = other
            .axes
            .iter()
            .map(|&(factor, from, to)| {
                let by = (rest as f64 / factor as f64).round() as i64;
                rest -= by * factor;
                (from + by, to + by)
            })
            .collect();
        (rest == 0).then_some(ranges)
    }

    fn contains(&self, other: &Region) -> bool {
        let inside = |ranges: Vec<(i64, i64)>| {
            ranges.iter().zip(&self.axes).all(|(range, axis)| axis.1 <= range.0 && range.1 <= axis.2)
        };
        self.coordinates(other).is_some_and(inside)
    }

    fn is_apart_from(&self, other: &Region) -> bool {
        let apart = |ranges: Vec<(i64, i64)>| {
            let both = ranges.iter().zip(&self.axes);
            let is_elsewhere = both.clone().any(|(range, axis)| range.1 <= axis.1 || axis.2 <= range.0);
            let hull = both.map(|(range, axis)| (axis.0, axis.1.min(range.0), axis.2.max(range.1)));
            is_elsewhere && are_different(hull.rev())
        };
        self.coordinates(other).is_some_and(apart)
    }
}

/// Whether different coordinates are different elements: each factor is larger than what the smaller ones
/// reach. From the smallest.
fn are_different(axes: impl Iterator<Item = (i64, i64, i64)>) -> bool {
    let mut reach = 0;
    for (factor, from, to) in axes {
        if factor <= reach {
            return false;
        }
        reach += factor * (to - from - 1);
    }
    true
}

/// What is seen of a buffer.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// All elements but these.
    AllBut(Vec<Region>),
    /// These.
    Only(Vec<Region>),
}

/// What is seen of each buffer; nothing of those that are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Places(FastMap<Buf, Part>);

impl Places {
    /// From here on backwards all of a buffer is seen.
    pub(super) fn see_all(&mut self, buf: Buf) {
        self.0.insert(buf, Part::AllBut(Vec::new()));
    }

    /// The elements of a region are seen; of an unknown one, nothing is.
    pub(super) fn see(&mut self, buffers: &[Buffer], buf: Buf, region: Option<Region>) {
        let Some(region) = region else { return };
        match self.0.entry(buf).or_insert_with(|| Part::Only(Vec::new())) {
            Part::AllBut(hidden) => hidden.retain(|hidden| !region.contains(hidden)),
            Part::Only(parts) => {
                if parts.len() >= MOST || parts.iter().any(|part| part.contains(&region)) {
                    return;
                }
                parts.retain(|part| !region.contains(part));
                parts.push(region);
                if are_all(parts, buffers[buf.index()].length) {
                    self.see_all(buf);
                }
            }
        }
    }

    /// What the elements of a region held is gone; those of an unknown one may be any.
    pub(super) fn hide(&mut self, buf: Buf, region: Option<Region>) {
        let Some(part) = self.0.get_mut(&buf) else { return };
        match (part, region) {
            (Part::AllBut(hidden), Some(region)) if hidden.len() < MOST => {
                hidden.retain(|hidden| !region.contains(hidden));
                hidden.push(region);
            }
            (Part::Only(parts), Some(region)) => parts.retain(|part| part.is_apart_from(&region)),
            (Part::AllBut(_) | Part::Only(_), _) => {
                self.0.remove(&buf);
            }
        }
    }

    /// Whether all elements of a region are seen.
    pub(super) fn are_seen(&self, buf: Buf, region: Option<&Region>) -> bool {
        match (self.0.get(&buf), region) {
            (Some(Part::AllBut(hidden)), Some(region)) => {
                hidden.iter().all(|hidden| hidden.is_apart_from(region))
            }
            (Some(Part::AllBut(hidden)), None) => hidden.is_empty(),
            (Some(Part::Only(parts)), Some(region)) => parts.iter().any(|part| part.contains(region)),
            (Some(Part::Only(_)), None) | (None, _) => false,
        }
    }

    pub(super) fn swap(&mut self, a: Buf, b: Buf) {
        let (of_a, of_b) = (self.0.remove(&a), self.0.remove(&b));
        self.0.extend(of_b.map(|part| (a, part)));
        self.0.extend(of_a.map(|part| (b, part)));
    }

    pub(super) fn retain(&mut self, keeps: impl Fn(Buf) -> bool) {
        self.0.retain(|&buf, _| keeps(buf));
    }

    /// What is seen both here and there.
    pub(super) fn meet(&mut self, other: &Places) {
        let mut both = FastMap::default();
        for (buf, part) in self.0.drain() {
            match (part, other.0.get(&buf)) {
                (Part::AllBut(mut hidden), Some(Part::AllBut(more))) => {
                    for region in more {
                        if !hidden.iter().any(|hidden| hidden.contains(region)) {
                            hidden.push(region.clone());
                        }
                    }
                    // In one order, so that what is the same looks the same.
                    hidden.sort_unstable();
                    both.insert(buf, Part::AllBut(hidden));
                }
                (Part::Only(mut parts), Some(Part::Only(others))) => {
                    parts.retain(|part| others.iter().any(|other| other.contains(part)));
                    both.insert(buf, Part::Only(parts));
                }
                (Part::Only(mut parts), Some(Part::AllBut(hidden))) => {
                    parts.retain(|part| hidden.iter().all(|hidden| hidden.is_apart_from(part)));
                    both.insert(buf, Part::Only(parts));
                }
                (Part::AllBut(hidden), Some(Part::Only(parts))) => {
                    let mut parts = parts.clone();
                    parts.retain(|part| hidden.iter().all(|hidden| hidden.is_apart_from(part)));
                    both.insert(buf, Part::Only(parts));
                }
                (Part::AllBut(_) | Part::Only(_), None) => {}
            }
        }
        self.0 = both;
    }
}

/// Whether regions are all elements of a buffer: as many, and no element twice.
fn are_all(parts: &[Region], length: u64) -> bool {
    let Some(last) = parts.last() else { return false };
    let family: Vec<&Region> = parts.iter().filter(|part| last.coordinates(part).is_some()).collect();
    let once = family.iter().enumerate().all(|(at, a)| {
        are_different(a.axes.iter().rev().copied()) && family[..at].iter().all(|b| a.is_apart_from(b))
    });
    once && family.iter().map(|part| part.elements()).sum::<u64>() == length
}

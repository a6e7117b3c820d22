//! The best place to divide a stretch of steps, for the dynamic programs of mixed and two-tier schedules.
//!
//! Input: what the right part costs by its length, then, one length after the other, what the left part
//! costs. Output: for each length the least sum, the length of the left part there, and a number that no
//! division is below.
//!
//! - **A bound first.** The costs are not convex, but nearly: the least sum of their hulls (the largest
//!   convex functions below them) is found in a few moves from that of the length before, and no division
//!   costs less. If costs are whole numbers of some unit, the next of those. Most often what was best for the
//!   length before, or one step more, costs just that, and nothing else is looked at.
//! - **Then only where the hulls leave hope**, which is between two places.
//! - **And there only kinks.** Let `g(i) = left(i) + right(n - i)`. Where neither `left` at `i` nor `right`
//!   at `n - i` has a slope that rises, `g` is no lower at `i` than at both its neighbours unless it is flat,
//!   and then it is as low at the next such place or at an end. So the least sum is at an end, at a place
//!   where the slope of `left` rises, or at one where that of `right` does. Where kinks are many, all places
//!   are tried, many at a time.
//!
//! If that takes too long, no more than the first of these is done: the sums found are those of real
//! divisions, and hulls of bounds give a bound again. It does not get worse from one slot to the next: the
//! hull of the least sums is the least sum of the hulls.

use super::hull::Hull;

/// Lists of two costs, with the places at which their slopes rise, and their hulls.
pub(super) struct Division {
    /// The cost of the right part of `n` steps, at `longest - n`: so that both lists are read in one
    /// direction.
    right: Vec<f64>,
    /// The cost of the left part of `n` steps: to advance over it, and to come back for it.
    left: Vec<f64>,
    right_kinks: Vec<u32>,
    left_kinks: Vec<u32>,
    right_hull: Hull,
    left_hull: Hull,
    /// The right part has so many steps or more.
    least_right: usize,
    /// The left part for which the sum of the hulls was least, and the pieces about it.
    middle: usize,
    near: (usize, usize),
    /// The left part that was found last.
    last: usize,
    /// All costs are whole numbers of this; 0 if of nothing.
    unit: f64,
    /// Sums looked at, in places of a list that is read from one end to the other, and the most there may be.
    work: u64,
    most_work: u64,
}

/// How much is looked at in a second, or less.
pub(super) const A_SECOND: u64 = 1 << 28;

/// To look at a kink takes as long as to look at so many places one after the other, and to look for a bound.
const KINK: usize = 2;
pub(super) const BOUND: u64 = 32;

/// A division of a stretch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best {
    /// Infinite if it cannot be divided.
    pub(super) cost: f64,
    /// No division costs less.
    pub(super) bound: f64,
    /// The length of the left part, 0 if it cannot be divided.
    pub(super) left: usize,
}

impl Division {
    /// For stretches of at most so many steps, whose costs are whole numbers of `unit` (0: of nothing).
    pub(super) fn new(longest: usize, unit: f64, most_work: u64) -> Division {
        let list = || Vec::with_capacity(longest + 1);
        let kinks = || Vec::with_capacity(longest + 1);
        let hull = || Hull::with_capacity(longest + 1);
        Division {
            right: list(),
            left: list(),
            right_kinks: kinks(),
            left_kinks: kinks(),
            right_hull: hull(),
            left_hull: hull(),
            least_right: 1,
            middle: 1,
            near: (0, 0),
            last: 0,
            unit,
            work: 0,
            most_work,
        }
    }

    /// The heap bytes held.
    pub(super) fn bytes_for(longest: usize) -> usize {
        2 * ((longest + 1) * (size_of::<f64>() + size_of::<u32>()) + Hull::bytes_for(longest + 1))
    }

    /// From here on the right part of `n` steps, `least` or more, costs `costs[n]` and not less than
    /// `bounds[n]`, and no cost of a left part is known. Costs are finite up to some length.
    pub(super) fn begin(&mut self, costs: &[f64], bounds: &[f64], least: usize) {
        self.right.clear();
        self.right.extend(costs.iter().rev());
        self.right_kinks.clear();
        self.right_hull.clear();
        for n in least..costs.len() {
            if costs[n] == f64::INFINITY {
                break;
            }
            self.right_hull.push(n, bounds[n]);
            if n >= 2 && n + 1 < costs.len() && costs[n + 1] - costs[n] > costs[n] - costs[n - 1] {
                self.right_kinks.push(n as u32);
            }
        }
        self.left_kinks.clear();
        self.left_hull.clear();
        self.left.clear();
        self.left.push(f64::INFINITY); // a left part has a step at least
        (self.least_right, self.middle, self.near, self.last) = (least, 1, (0, 0), 0);
    }

    /// The next longer left part costs this, and not less than `bound`.
    pub(super) fn push(&mut self, cost: f64, bound: f64) {
        self.left_hull.push(self.left.len(), bound);
        self.left.push(cost);
        if let [.., before, here, after] = self.left[1..]
            && after - here > here - before
        {
            self.left_kinks.push(self.left.len() as u32 - 2);
        }
    }

    /// The least cost of a stretch of `n` steps that is divided. All shorter left parts have been pushed;
    /// `hint` is a left part that may be good, or 0.
    pub(super) fn best(&mut self, n: usize, hint: usize) -> Best {
        let mut best = Best { cost: f64::INFINITY, bound: f64::INFINITY, left: 0 };
        let Some((shortest, longest)) = self.lefts(n) else { return best };
        let bound = self.least_of_hulls(n, shortest, longest);
        self.work += BOUND;
        for left in [self.last, self.last + 1, self.middle, hint] {
            if (shortest..=longest).contains(&left) {
                self.look(n, left, &mut best);
            }
        }
        let hope = self.hope(best.cost);
        if bound > hope {
            best.bound = best.cost;
        } else if self.work < self.most_work {
            let (from, to) = self.hopeful(n, bound, hope, shortest, longest);
            self.search(n, from, to, &mut best);
            best.bound = best.cost;
        } else if self.unit > 0.0 {
            best.bound = best.cost.min((bound / self.unit - ROUNDING).ceil() * self.unit);
        } else {
            best.bound = best.cost.min(bound);
        }
        self.last = best.left;
        best
    }

    /// What no division of `n` steps costs less than.
    pub(super) fn bound(&mut self, n: usize) -> f64 {
        self.lefts(n).map_or(f64::INFINITY, |(shortest, longest)| self.least_of_hulls(n, shortest, longest))
    }

    /// How long the left part of `n` steps may be: both parts are known, and the right one has as many steps
    /// as it must.
    fn lefts(&self, n: usize) -> Option<(usize, usize)> {
        let shortest = n.saturating_sub(self.right_hull.end()).max(1);
        let longest = n.saturating_sub(self.least_right).min(self.left.len() - 1);
        (shortest <= longest && self.right_hull.end() > 0).then_some((shortest, longest))
    }

    /// The right part of `n` steps, more than all before, costs not less than `bound`.
    pub(super) fn push_right(&mut self, n: usize, bound: f64) {
        if n >= self.least_right {
            self.right_hull.push(n, bound);
        }
    }

    /// What is below `cost` costs at most this, but for rounding.
    fn hope(&self, cost: f64) -> f64 {
        cost - (self.unit * (1.0 - ROUNDING)).max(cost * 1e-12)
    }

    #[inline]
    fn look(&self, n: usize, left: usize, best: &mut Best) {
        let sum = self.left[left] + self.right[self.right.len() - 1 - n + left];
        if sum < best.cost {
            (best.cost, best.left) = (sum, left);
        }
    }

    /// The least sum of the two hulls, for left parts of this many steps; moves there from where it was last.
    fn least_of_hulls(&mut self, n: usize, shortest: usize, longest: usize) -> f64 {
        let mut left = self.middle.clamp(shortest, longest);
        let (left_hull, right_hull, near) = (&self.left_hull, &self.right_hull, &mut self.near);
        while left < longest {
            near.0 = left_hull.after(left, near.0);
            near.1 = right_hull.before(n - left, near.1);
            if left_hull.slope(near.0) >= right_hull.slope(near.1) {
                break;
            }
            let far = (left_hull.place(near.0 + 1) - left).min(n - left - right_hull.place(near.1));
            left += far.min(longest - left);
        }
        while left > shortest {
            near.0 = left_hull.before(left, near.0);
            near.1 = right_hull.after(n - left, near.1);
            if left_hull.slope(near.0) <= right_hull.slope(near.1) {
                break;
            }
            let far = (left - left_hull.place(near.0)).min(right_hull.place(near.1 + 1) - (n - left));
            left -= far.min(left - shortest);
        }
        self.middle = left;
        left_hull.value(left, near.0) + right_hull.value(n - left, near.1)
    }

    /// The shortest and the longest left part for which the sum of the hulls, `least` in the middle, is not
    /// above `hope`.
    fn hopeful(&self, n: usize, least: f64, hope: f64, shortest: usize, longest: usize) -> (usize, usize) {
        let (left_hull, right_hull) = (&self.left_hull, &self.right_hull);
        let (mut from, mut sum, mut near) = (self.middle, least, self.near);
        while from > shortest {
            near = (left_hull.before(from, near.0), right_hull.after(n - from, near.1));
            let far = (from - left_hull.place(near.0)).min(right_hull.place(near.1 + 1) - (n - from));
            let far = far.min(from - shortest);
            let steps = within(&mut sum, right_hull.slope(near.1) - left_hull.slope(near.0), far, hope);
            from -= steps;
            if steps < far {
                break;
            }
        }
        let (mut to, mut sum, mut near) = (self.middle, least, self.near);
        while to < longest {
            near = (left_hull.after(to, near.0), right_hull.before(n - to, near.1));
            let far = (left_hull.place(near.0 + 1) - to).min(n - to - right_hull.place(near.1));
            let far = far.min(longest - to);
            let steps = within(&mut sum, left_hull.slope(near.0) - right_hull.slope(near.1), far, hope);
            to += steps;
            if steps < far {
                break;
            }
        }
        (from, to)
    }

    /// Looks at the left parts of `from..=to` steps, as far as need be.
    fn search(&mut self, n: usize, from: usize, to: usize, best: &mut Best) {
        let between = |kinks: &[u32], from: usize, to: usize| {
            let first = kinks.partition_point(|&kink| (kink as usize) < from);
            first..first + kinks[first..].partition_point(|&kink| kink as usize <= to)
        };
        let lefts = between(&self.left_kinks, from, to);
        let rights = between(&self.right_kinks, n - to, n - from);
        let kinks = lefts.len() + rights.len();
        if kinks * KINK < to - from + 1 {
            self.work += (kinks * KINK) as u64;
            self.look(n, from, best);
            self.look(n, to, best);
            self.left_kinks[lefts].iter().for_each(|&left| self.look(n, left as usize, best));
            self.right_kinks[rights].iter().for_each(|&right| self.look(n, n - right as usize, best));
        } else {
            self.work += (to - from + 1) as u64;
            let first = self.right.len() - 1 - n; // the right part of `n` steps, beside a left one of none
            let (lefts, rights) = (&self.left[from..=to], &self.right[first + from..=first + to]);
            let least = least_sum(lefts, rights);
            if least < best.cost {
                let place = lefts.iter().zip(rights).position(|(left, right)| left + right == least);
                (best.cost, best.left) = (least, place.map_or(best.left, |place| from + place));
            }
        }
    }
}

/// A part of a unit: more than what rounding does to a sum.
const ROUNDING: f64 = 1e-3;

/// How many of the next `far` places have a sum of at most `hope`, if it rises by `rise` from one to the
/// next; `sum` becomes that of the last of them.
fn within(sum: &mut f64, rise: f64, far: usize, hope: f64) -> usize {
    let end = *sum + rise * far as f64;
    if end <= hope {
        *sum = end;
        return far;
    }
    // The end is above: there is a rise.
    (((hope - *sum) / rise) as usize).min(far - 1)
}

/// The least sum of two numbers at the same place; in lanes, because the order of comparisons binds the
/// compiler.
fn least_sum(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut least = [f64::INFINITY; LANES];
    let (mut a, mut b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (a, b) in a.by_ref().zip(b.by_ref()) {
        for lane in 0..LANES {
            let sum = a[lane] + b[lane];
            least[lane] = if sum < least[lane] { sum } else { least[lane] };
        }
    }
    let rest = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a + b);
    rest.chain(least).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers below `most`.
    fn numbers(seed: u64, most: u64) -> impl FnMut() -> f64 {
        let mut random = palinode_num::Draws::new(seed);
        move || random.below(most as usize) as f64
    }

    /// Costs of any form, in wholes and in halves: with a search the least sum is found, without one it lies
    /// between bound and cost.
    #[test]
    fn the_least_sum_is_found_or_bounded() {
        const LONGEST: usize = 90;
        let mut unsearched = 0;
        for case in 0..60 {
            let (unit, least) = (if case % 2 == 0 { 1.0 } else { 0.5 }, 1 + case as usize % 3);
            for (given, most_work) in [(unit, u64::MAX), (unit, 0), (0.0, u64::MAX), (0.0, 0)] {
                let mut number = numbers(case, 1 + case % 40);
                let mut sums = |slope: f64| {
                    let rise = |n: usize| slope * n as f64 * n as f64 / 16.0;
                    (0..=LONGEST).map(|n| (rise(n).floor() + number()) * unit).collect::<Vec<f64>>()
                };
                let (right, left) = (sums(f64::from(case as u32 % 5)), sums(1.0));
                let mut division = Division::new(LONGEST, given, most_work);
                division.begin(&right, &right, least);
                for n in 1..=LONGEST {
                    let best = division.best(n, 0);
                    let all = (1..=n.saturating_sub(least)).map(|i| left[i] + right[n - i]);
                    let sum = all.fold(f64::INFINITY, f64::min);
                    assert!(best.bound <= sum && sum <= best.cost, "{case} {n}: {sum}, {best:?}");
                    if most_work > 0 {
                        assert_eq!((best.cost, best.bound), (sum, sum), "{case} {n}");
                    }
                    unsearched += usize::from(best.bound < best.cost);
                    division.push(left[n], left[n]);
                }
            }
        }
        assert!(unsearched > 1000, "{unsearched}: bounds were not put to the test");
    }
}

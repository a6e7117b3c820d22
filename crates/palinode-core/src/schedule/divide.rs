//! The best place to divide a stretch of steps, for the dynamic programs of mixed and two-tier schedules.
//!
//! Input: what the right part costs by its length, then, one length after the other, what the left part costs. Output: for
//! each length the least sum, and the length of the left part there.
//!
//! Only kinks are tried. Let `g(i) = left(i) + right(n - i)`. Where neither `left` at `i` nor `right` at `n - i` has a slope that rises,
//! `g` is no lower at `i` than at both its neighbours unless it is flat, and then it is as low at the next such place or at an end. So the
//! least sum is at an end, at a place where the slope of `left` rises, or at one where that of `right` does. These costs are
//! made of few lines, and their kinks are few; where they are not, all places are tried, many at a time.

/// Lists of two costs, with the places at which their slopes rise.
pub(super) struct Division {
    /// The cost of the right part of `n` steps, at `longest - n`: so that both lists are read in one direction.
    right: Vec<f64>,
    /// The cost of the left part of `n` steps: to advance over it, and to come back for it.
    left: Vec<f64>,
    right_kinks: Vec<u32>,
    left_kinks: Vec<u32>,
    /// So many of `right_kinks` are below the length that was asked for last.
    below: usize,
    /// Sums looked at, in places of a list that is read from one end to the other.
    work: u64,
}

/// How much is looked at in a second, or a little less.
pub(super) const A_SECOND: u64 = 5 << 28;

/// To look at a kink takes as long as to look at so many places one after the other.
const KINK: usize = 2;

impl Division {
    /// For stretches of at most so many steps.
    pub(super) fn new(longest: usize) -> Division {
        let list = || Vec::with_capacity(longest + 1);
        let kinks = || Vec::with_capacity(longest + 1);
        Division { right: list(), left: list(), right_kinks: kinks(), left_kinks: kinks(), below: 0, work: 0 }
    }

    /// The heap bytes held.
    pub(super) fn bytes_for(longest: usize) -> usize {
        (longest + 1) * 2 * (size_of::<f64>() + size_of::<u32>())
    }

    /// How much was looked at so far; [`A_SECOND`] takes about one.
    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// From here on the right part of `n` steps costs `costs[n]`, and no cost of a left part is known.
    pub(super) fn begin(&mut self, costs: &[f64]) {
        self.right.clear();
        self.right.extend(costs.iter().rev());
        self.right_kinks.clear();
        let rises = |n: &usize| costs[n + 1] - costs[*n] > costs[*n] - costs[n - 1];
        let last = costs.len().saturating_sub(1);
        self.right_kinks.extend((2..last).filter(rises).map(|n| n as u32));
        self.left_kinks.clear();
        self.left.clear();
        self.left.push(f64::INFINITY); // a left part has a step at least
        self.below = 0;
    }

    /// The next longer left part costs this.
    pub(super) fn push(&mut self, cost: f64) {
        self.left.push(cost);
        if let [.., before, here, after] = self.left[1..]
            && after - here > here - before
        {
            self.left_kinks.push(self.left.len() as u32 - 2);
        }
    }

    /// The least cost of a stretch of `n` steps that is divided, the right part having `least_right` steps or more, and the length of the left part.
    /// Infinite if it cannot be. All shorter left parts have been pushed, and no shorter stretch is asked for later.
    pub(super) fn best(&mut self, n: usize, least_right: usize) -> (f64, usize) {
        let mut best = (f64::INFINITY, 0);
        let Some(longest) = n.checked_sub(least_right).filter(|&left| left > 0) else { return best };
        while self.right_kinks.get(self.below).is_some_and(|&kink| (kink as usize) < n) {
            self.below += 1;
        }
        let first = self.right.len() - 1 - n; // the right part of `n` steps, beside a left one of none
        let kinks = self.left_kinks.len() + self.below;
        if kinks * KINK < longest {
            self.work += (kinks * KINK) as u64;
            let mut look = |left: usize| {
                let sum = self.left[left] + self.right[first + left];
                if sum < best.0 {
                    best = (sum, left);
                }
            };
            look(1);
            look(longest);
            self.left_kinks
                .iter()
                .map(|&left| left as usize)
                .filter(|&left| left <= longest)
                .for_each(&mut look);
            let rights = self.right_kinks[..self.below].iter().map(|&right| right as usize);
            rights.filter(|&right| right >= least_right).for_each(|right| look(n - right));
        } else {
            self.work += longest as u64;
            let (lefts, rights) = (&self.left[1..=longest], &self.right[first + 1..=first + longest]);
            let least = least_sum(lefts, rights);
            if least < f64::INFINITY {
                let place = lefts.iter().zip(rights).position(|(left, right)| left + right == least);
                best = (least, place.map_or(0, |place| place + 1));
            }
        }
        best
    }
}

/// The least sum of two numbers at the same place; in lanes, because the order of comparisons binds the compiler.
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

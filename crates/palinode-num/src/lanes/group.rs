//! Which lanes of a thread are still together.
//!
//! Input: a run, and every question in it that has one answer for all lanes. Output: the run's result, and
//! which lanes left it on the way.
//!
//! A question is answered as most of the lanes that are left would answer it. The others leave: what is
//! computed in their lanes from then on means nothing, and decides nothing. Lanes that went the same way
//! until they left, in this run or in another one, have the same [`Left::Path`], so that they can go on
//! together.
//!
//! Invariants: lanes are at most [`MOST`]; a group that everyone has left follows the last one who did; a run
//! in which the same lanes are left at the end as at the beginning was answered as each lane would alone.

use core::cell::{Cell, RefCell};

/// The largest number of lanes.
const MOST: usize = 64;

/// How a lane left its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It went another way: a fingerprint of all that it decided until then, its own last answer included.
    Path(u64),
    /// Something there must be looked at more closely than a group can: it is to be run alone.
    Alone,
}

/// Who is together.
#[derive(Clone, Copy)]
struct Group {
    is_open: bool,
    /// Whether all lanes hold one sample, which lane 0 stands for.
    is_alone: bool,
    /// A bit for each lane that is still here.
    here: u64,
    /// Who decides if nobody is.
    last: u32,
}

const CLOSED: Group = Group { is_open: false, is_alone: false, here: 0, last: 0 };

thread_local! {
    static GROUP: Cell<Group> = const { Cell::new(CLOSED) };
    /// A fingerprint of what was decided in the group.
    static PATH: Cell<u64> = const { Cell::new(0) };
    static LEFT: RefCell<Vec<(usize, Left)>> = const { RefCell::new(Vec::new()) };
}

fn bits(answers: &[bool]) -> u64 {
    answers.iter().enumerate().fold(0, |bits, (lane, &holds)| bits | (u64::from(holds) << lane))
}

fn lanes_of(bits: u64) -> impl Iterator<Item = usize> {
    (0..MOST).filter(move |lane| bits >> lane & 1 == 1)
}

#[inline(always)]
fn after(path: u64, answer: u64) -> u64 {
    (path ^ answer.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd134_2543_de82_ef95).rotate_left(29)
}

/// Opens a group for a run; closes it also on a panic.
fn opened<R>(group: Group, f: impl FnOnce() -> R) -> R {
    struct Close;
    impl Drop for Close {
        fn drop(&mut self) {
            GROUP.set(CLOSED);
        }
    }
    assert!(!GROUP.get().is_open, "palinode: a group of lanes is opened inside another one");
    PATH.set(0);
    LEFT.with_borrow_mut(Vec::clear);
    let _close = Close;
    GROUP.set(group);
    f()
}

/// Runs `f` on a group of `lanes` lanes, and says which of them left it, and how.
///
/// ```
/// use palinode_num::{Lanes, lanes};
///
/// let x = Lanes([1.0, -2.0, 3.0, 4.0]);
/// let (size, left) = lanes::together(4, || if x < 0.0 { -x } else { x });
/// assert_eq!((size.lane(0), size.lane(2), size.lane(3)), (1.0, 3.0, 4.0));
/// assert_eq!(left[0].0, 1); // that lane is to be run again
/// ```
///
/// # Panics
/// If a group is open on this thread already, or there are more than 64 lanes.
pub fn together<R>(lanes: usize, f: impl FnOnce() -> R) -> (R, Vec<(usize, Left)>) {
    assert!((1..=MOST).contains(&lanes), "a group has 1 to {MOST} lanes, not {lanes}");
    let here = u64::MAX >> (MOST - lanes);
    let result = opened(Group { is_open: true, is_alone: false, here, last: 0 }, f);
    (result, LEFT.take())
}

/// Runs `f` on lanes that all hold one sample: whatever is asked, lane 0 answers.
///
/// # Panics
/// If a group is open on this thread already.
pub fn alone<R>(f: impl FnOnce() -> R) -> R {
    opened(Group { is_open: true, is_alone: true, here: 1, last: 0 }, f)
}

/// Whether a group of several samples is open on this thread.
#[inline]
pub fn is_grouped() -> bool {
    let group = GROUP.get();
    group.is_open && !group.is_alone
}

/// Whether no group is open on this thread, so that lanes cannot be split.
#[inline]
pub fn are_apart() -> bool {
    !GROUP.get().is_open
}

/// The lanes for which this holds, and that are still here, leave to be run alone; says whether any did.
#[doc(hidden)]
pub fn leave_if(holds: impl Fn(usize) -> bool) -> bool {
    let group = GROUP.get();
    if !group.is_open || group.is_alone {
        return false;
    }
    let leaving = lanes_of(group.here).filter(|&lane| holds(lane)).fold(0, |bits, lane| bits | 1 << lane);
    leave(group, leaving, |_| Left::Alone);
    leaving != 0
}

/// The answer of most lanes that are here; the others leave.
#[inline(always)]
pub(super) fn decide<const N: usize>(answers: &[bool; N]) -> bool {
    let yes: usize = answers.iter().map(|&holds| usize::from(holds)).sum();
    if yes == 0 || yes == N {
        PATH.set(after(PATH.get(), u64::from(yes == N)));
        return yes == N;
    }
    decide_apart(bits(answers), N)
}

#[cold]
#[inline(never)]
fn decide_apart(yes: u64, lanes: usize) -> bool {
    let group = GROUP.get();
    if !group.is_open {
        refuse(yes.min(!yes & (u64::MAX >> (MOST - lanes))));
    }
    let (for_it, against) = (group.here & yes, group.here & !yes);
    let answer = match for_it.count_ones().cmp(&against.count_ones()) {
        core::cmp::Ordering::Less => false,
        core::cmp::Ordering::Greater => true,
        // As the first one says: a decision must not depend on who else is in the group more than it has to.
        core::cmp::Ordering::Equal if group.here != 0 => for_it.trailing_zeros() < against.trailing_zeros(),
        core::cmp::Ordering::Equal => yes >> group.last & 1 == 1,
    };
    let path = PATH.get();
    leave(group, if answer { against } else { for_it }, |_| Left::Path(after(path, u64::from(!answer))));
    PATH.set(after(path, u64::from(answer)));
    answer
}

/// The number that is in all lanes which are here: that of the first one. The others leave.
#[inline(always)]
pub(super) fn common<const N: usize>(numbers: &[f64; N]) -> f64 {
    let first = numbers[0].to_bits();
    if numbers.iter().all(|number| number.to_bits() == first) {
        return numbers[0];
    }
    common_apart(numbers)
}

#[cold]
#[inline(never)]
fn common_apart(numbers: &[f64]) -> f64 {
    let group = GROUP.get();
    let of = |lane: usize| numbers[lane].to_bits();
    if !group.is_open {
        refuse(bits(&numbers.iter().map(|number| number.to_bits() != of(0)).collect::<Vec<_>>()));
    }
    let first = lanes_of(group.here).next().unwrap_or(group.last as usize);
    let others = lanes_of(group.here).filter(|&lane| of(lane) != of(first));
    let path = PATH.get();
    leave(group, others.fold(0, |bits, lane| bits | 1 << lane), |lane| Left::Path(after(path, of(lane))));
    PATH.set(after(path, of(first)));
    numbers[first]
}

fn leave(group: Group, leaving: u64, how: impl Fn(usize) -> Left) {
    if leaving == 0 {
        return;
    }
    LEFT.with_borrow_mut(|left| left.extend(lanes_of(leaving).map(|lane| (lane, how(lane)))));
    let here = group.here & !leaving;
    // If they were the last ones, one of them goes on deciding, so that the run ends as its own would.
    let last = if here == 0 { group.here.trailing_zeros() } else { group.last };
    GROUP.set(Group { here, last, ..group });
}

#[cold]
fn refuse(others: u64) -> ! {
    let others: Vec<String> = lanes_of(others).map(|lane| lane.to_string()).collect();
    panic!(
        "palinode: PAL0127: lanes decide differently (here lane {} from the others), and no group is open that \
         could be split; run the samples with `in_lanes`",
        others.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lanes, Logic, Scalar};

    #[test]
    fn most_lanes_decide_and_those_that_leave_decide_nothing_more() {
        let x = Lanes([1.0, 2.0, 3.0, -4.0]);
        let ((first, second), left) = together(4, || {
            let first = x.less(Lanes::zero()).decided();
            // Lane 3 would make it two against two.
            (first, x.less(Lanes::splat(1.5)).decided())
        });
        assert_eq!((first, second), (Some(false), Some(false)));
        assert_eq!(left.iter().map(|&(lane, _)| lane).collect::<Vec<_>>(), [3, 0]);
    }

    #[test]
    fn who_went_the_same_way_has_the_same_path() {
        let way = |x: [f64; 3]| {
            together(3, || {
                let x = Lanes(x);
                let _ = x.less(Lanes::splat(9.0)).decided();
                x.less(Lanes::zero()).decided()
            })
            .1
        };
        let (one, two, other) = (way([1.0, 2.0, -3.0]), way([-1.0, 2.0, 3.0]), way([-1.0, -2.0, 3.0]));
        assert_eq!((one.len(), one[0].1), (1, two[0].1));
        assert_ne!(one[0].1, other[0].1);
    }

    #[test]
    fn everyone_may_leave_and_the_run_still_ends() {
        let x = Lanes([0.0, 1.0]);
        let (rounds, left) = together(2, || {
            assert!(leave_if(|_| true));
            let (mut rounds, mut at) = (0, x);
            while at.less(Lanes::splat(3.0)).decided() == Some(true) {
                at += Lanes::one();
                rounds += 1;
            }
            rounds
        });
        assert_eq!((rounds, left.len()), (3, 2));
        assert!(left.iter().all(|&(_, how)| how == Left::Alone));
    }

    #[test]
    fn a_plain_number_of_lanes_is_the_first_ones() {
        let (number, left) = together(3, || Lanes([1.0, 2.0, 1.0]).glance());
        assert_eq!((number, left.len(), left[0].0), (Some(1.0), 1, 1));
        assert_eq!(Lanes([5.0; 3]).glance(), Some(5.0));
        assert!(std::panic::catch_unwind(|| Lanes([1.0, 2.0]).glance()).is_err());
    }
}

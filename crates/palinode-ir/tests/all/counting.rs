//! The allocator of these tests. It counts for each thread: calls, and bytes live and at most; apart for
//! arrays, whose buffers are aligned to 64 bytes as nothing else is, for everything else, and for all.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[derive(Clone, Copy)]
pub(crate) struct Count {
    pub(crate) calls: usize,
    pub(crate) live: usize,
    pub(crate) peak: usize,
}

/// Which of the counts.
pub(crate) const ARRAYS: usize = 0;
pub(crate) const OTHERS: usize = 1;
pub(crate) const ALL: usize = 2;

/// How many threads measure. While there are none, nothing but arrays is counted: every allocation of every
/// test comes here, and counting was a quarter of their time.
static MEASURING: AtomicUsize = AtomicUsize::new(0);

/// Where counts of bytes begin of which not all are counted, so that they stay above zero.
const SOME: usize = 1 << 40;

const fn none(live: usize) -> Cell<Count> {
    Cell::new(Count { calls: 0, live, peak: 0 })
}

thread_local! {
    static COUNTS: [Cell<Count>; 3] = const { [none(0), none(SOME), none(SOME)] };
}

fn count(layout: Layout, change: impl Fn(&mut Count)) {
    let kind = if layout.align() == 64 { ARRAYS } else { OTHERS };
    if kind == OTHERS && MEASURING.load(Relaxed) == 0 {
        return;
    }
    COUNTS.with(|counts| {
        let one = |cell: &Cell<Count>| {
            let mut count = cell.get();
            change(&mut count);
            cell.set(count);
        };
        one(&counts[kind]);
        one(&counts[ALL]);
    });
}

/// Others are counted while this is there.
struct Measuring;

impl Measuring {
    fn new() -> Self {
        MEASURING.fetch_add(1, Relaxed);
        Self
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        MEASURING.fetch_sub(1, Relaxed);
    }
}

struct Counting;

#[allow(unsafe_code)] // a global allocator cannot be had without it
// SAFETY: every call is handed to the system allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout, |count| {
            count.calls += 1;
            count.live = count.live.wrapping_add(layout.size());
            if count.live > count.peak {
                count.peak = count.live;
            }
        });
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // What another thread has allocated may be freed here.
        count(layout, |count| count.live = count.live.saturating_sub(layout.size()));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

pub(crate) fn live_arrays() -> usize {
    COUNTS.with(|counts| counts[ARRAYS].get().live)
}

/// What `f` takes of each kind: calls, and bytes at most beyond those that were there before.
pub(crate) fn measured<T>(f: impl FnOnce() -> T) -> (T, [Count; 3]) {
    let counts = || COUNTS.with(|counts| [ARRAYS, OTHERS, ALL].map(|which| counts[which].get()));
    let before = counts();
    COUNTS.with(|counts| {
        for (cell, count) in counts.iter().zip(before) {
            cell.set(Count { peak: count.live, ..count });
        }
    });
    let result = {
        let _measuring = Measuring::new();
        f()
    };
    let mut taken = counts();
    for (taken, before) in taken.iter_mut().zip(before) {
        taken.calls -= before.calls;
        taken.peak -= before.live;
    }
    (result, taken)
}

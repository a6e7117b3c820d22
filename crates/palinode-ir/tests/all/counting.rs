//! The allocator of these tests. It counts for each thread: calls, and bytes live and at most; apart for
//! arrays, whose buffers are aligned to 64 bytes as nothing else is, for everything else, and for all.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

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

thread_local! {
    static COUNTS: [Cell<Count>; 3] = const { [const { Cell::new(Count { calls: 0, live: 0, peak: 0 }) }; 3] };
}

/// Every allocation of every test comes here: an iterator and a call of `max` were a tenth of their time.
fn count(layout: Layout, change: impl Fn(&mut Count)) {
    let kind = if layout.align() == 64 { ARRAYS } else { OTHERS };
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
    let result = f();
    let mut taken = counts();
    for (taken, before) in taken.iter_mut().zip(before) {
        taken.calls -= before.calls;
        taken.peak -= before.live;
    }
    (result, taken)
}

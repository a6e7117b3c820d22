//! An allocator that counts what is live, the most there was, and calls.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

pub(crate) static LIVE: AtomicIsize = AtomicIsize::new(0);
pub(crate) static PEAK: AtomicIsize = AtomicIsize::new(0);
pub(crate) static CALLS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[allow(unsafe_code)] // a global allocator cannot be had without it
// SAFETY: every call is handed to the system allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        let live = LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed) + layout.size() as isize;
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result, the most bytes above the start, and the calls of the allocator.
pub(crate) fn measured<R>(run: impl FnOnce() -> R) -> (R, usize, usize) {
    let (live, calls) = (LIVE.load(Ordering::Relaxed), CALLS.load(Ordering::Relaxed));
    PEAK.store(live, Ordering::Relaxed);
    let result = run();
    (result, (PEAK.load(Ordering::Relaxed) - live) as usize, CALLS.load(Ordering::Relaxed) - calls)
}

//! The command's allocator: it counts the heap, for the lines about memory, and keeps some megabytes for the
//! time when there is no more.
//!
//! Arrays that find no memory are errors, which say what to do. But when the last array has taken all but
//! some bytes, the next small allocation finds none, and Rust ends the process without a word. A reserve is
//! given back then: enough to say what happened. Pieces of arrays may be small enough to eat it up, so there
//! is a second one, for what only words need.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use peak_alloc::PeakAlloc;

/// What each reserve keeps: much more than an error and its text take, and more than the megabyte by which
/// the system's allocator grows.
const KEPT: Layout = Layout::new::<[u8; 2 << 20]>();

/// The largest allocations for which a reserve is given back, and the reserve.
static RESERVES: [(usize, AtomicPtr<u8>); 2] =
    [(1 << 16, AtomicPtr::new(ptr::null_mut())), (1 << 10, AtomicPtr::new(ptr::null_mut()))];

/// The allocator of the process.
#[global_allocator]
pub(crate) static MEMORY: Memory = Memory;

pub(crate) struct Memory;

impl Memory {
    /// Sets the reserves aside.
    #[allow(unsafe_code)]
    pub(crate) fn keep_reserves(&self) {
        for (_, reserve) in &RESERVES {
            // SAFETY: the layout has a size.
            reserve.store(unsafe { System.alloc(KEPT) }, Ordering::Relaxed);
        }
    }

    pub(crate) fn current_usage(&self) -> usize {
        PeakAlloc.current_usage()
    }

    pub(crate) fn peak_usage(&self) -> usize {
        PeakAlloc.peak_usage()
    }

    pub(crate) fn reset_peak_usage(&self) {
        PeakAlloc.reset_peak_usage();
    }
}

/// Once more after a reserve was given back, if something small found no memory and there is a reserve.
#[allow(unsafe_code)]
fn or_from_reserve(mut found: *mut u8, size: usize, again: impl Fn() -> *mut u8) -> *mut u8 {
    for (largest, reserve) in &RESERVES {
        if !found.is_null() || size > *largest {
            return found;
        }
        let kept = reserve.swap(ptr::null_mut(), Ordering::Relaxed);
        if !kept.is_null() {
            // SAFETY: it was allocated so by `keep_reserves`, and the swap gives it to one thread only.
            unsafe { System.dealloc(kept, KEPT) };
            found = again();
        }
    }
    found
}

// SAFETY: every call goes to an allocator that keeps the contract, with what the caller gave; a later call
// follows ones that gave nothing and changed nothing.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        let alloc = || unsafe { PeakAlloc.alloc(layout) };
        or_from_reserve(alloc(), layout.size(), alloc)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        let alloc = || unsafe { PeakAlloc.alloc_zeroed(layout) };
        or_from_reserve(alloc(), layout.size(), alloc)
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's; where it gave nothing, the old block is as it was.
        let realloc = || unsafe { PeakAlloc.realloc(old, layout, size) };
        or_from_reserve(realloc(), size, realloc)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { PeakAlloc.dealloc(old, layout) }
    }
}

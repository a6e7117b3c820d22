//! Counting allocator: live bytes, peak bytes and number of allocations of the process.
//!
//! It forwards `alloc_zeroed` and `realloc` to the system, because replacing them by alloc-and-fill would
//! touch pages a peer never touches and copy what the kernel can remap: both would slow the peers we compare
//! with.
//!
//! A grown buffer counts as its new size only (large ones are remapped, not copied), a favour to peers whose
//! tape is a growing `Vec`.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// The allocator to install with `#[global_allocator]`.
pub struct CountingAllocator;

fn grew(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

// SAFETY: every call is forwarded unchanged to `System`, which upholds the contract; only counters are added.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: the caller's obligations are exactly `System::alloc`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        LIVE.fetch_sub(layout.size(), Relaxed);
        grew(new_size);
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

/// Bytes allocated now.
pub fn live() -> usize {
    LIVE.load(Relaxed)
}

/// The most bytes allocated at once since `reset_peak`.
pub fn peak() -> usize {
    PEAK.load(Relaxed)
}

/// Forgets the peak.
pub fn reset_peak() {
    PEAK.store(live(), Relaxed);
}

/// Allocations (and reallocations) so far.
pub fn calls() -> usize {
    CALLS.load(Relaxed)
}

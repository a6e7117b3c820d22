//! How a `Var` finds its tape: a stamp that names one open scope on one thread.
//!
//! Input: a stamp. Output: the pointer that the scope was opened with, or a panic that names both sides.
//! `scope.rs` knows what it points to.
//!
//! A thread-local table holds an entry per open scope. A stamp carries its entry and a number that is never
//! used twice, so one comparison of the entry's stamp with the handle's says at once: this scope, still
//! open, on this thread. Constants carry stamp 0, which entry 0 always matches.
//!
//! Invariants, on which the `unsafe` of `scope.rs` relies: a pointer is found from when its scope is opened
//! to when it is closed, on the thread that opened it, by its own stamp and no other, and not while it is
//! busy.

use core::cell::Cell;
use std::sync::{Mutex, MutexGuard};

const TRACED: u64 = 1;
/// An entry's place in the stamp is its offset in the table, so that finding it takes one instruction.
const ENTRY_SHIFT: u32 = size_of::<Entry>().trailing_zeros();
const ENTRY_BITS: u32 = 6;
const ENTRIES: usize = 1 << ENTRY_BITS;
const COUNT_SHIFT: u32 = ENTRY_SHIFT + ENTRY_BITS;
const COUNT_BITS: u32 = 33;
const BLOCK_SHIFT: u32 = COUNT_SHIFT + COUNT_BITS;

/// What an entry holds while its recorder is being written to: no stamp, because its low bits are set.
const BUSY: u64 = u64::MAX;

/// Names one recording scope; zero for constants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

struct Entry {
    stamp: Cell<u64>,
    recorder: Cell<*mut ()>,
}

thread_local! {
    static OPEN: [Entry; ENTRIES] =
        const { [const { Entry { stamp: Cell::new(0), recorder: Cell::new(core::ptr::null_mut()) } }; ENTRIES] };
    /// The block of numbers that this thread takes its stamps from, and how many of it are used.
    static NEXT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// The names of the threads that own the blocks (block `b` belongs to thread `owners[b - 1]`), and the blocks
/// of threads that have ended, with how many of their numbers are used.
struct Blocks {
    owners: Vec<String>,
    free: Vec<(u64, u64)>,
}

static BLOCKS: Mutex<Blocks> = Mutex::new(Blocks { owners: Vec::new(), free: Vec::new() });

fn blocks() -> MutexGuard<'static, Blocks> {
    BLOCKS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// How many blocks have ever been needed at once.
#[cfg(test)]
pub(super) fn blocks_in_use() -> usize {
    blocks().owners.len()
}

/// Gives the thread's block back when the thread ends, so that any number of threads can come and go.
struct Lease;

impl Drop for Lease {
    fn drop(&mut self) {
        let (block, used) = NEXT.replace((0, 0));
        if used < 1 << COUNT_BITS {
            blocks().free.push((block, used));
        }
    }
}

thread_local! {
    static LEASE: Lease = const { Lease };
}

fn this_thread() -> String {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) => format!("'{name}'"),
        None => format!("{:?}", thread.id()),
    }
}

/// A number that no other scope of this process has had.
fn fresh_number() -> u64 {
    let (mut block, mut used) = NEXT.get();
    if block == 0 || used == 1 << COUNT_BITS {
        let mut blocks = blocks();
        (block, used) = blocks.free.pop().unwrap_or_else(|| {
            blocks.owners.push(String::new());
            (blocks.owners.len() as u64, 0)
        });
        blocks.owners[block as usize - 1] = this_thread();
        assert!(
            block < 1 << (64 - BLOCK_SHIFT),
            "palinode: more threads record tapes at once than can be numbered"
        );
        if LEASE.try_with(|_| ()).is_err() {
            // The thread is ending and its destructors record: nobody would give the block back later.
            if used + 1 < 1 << COUNT_BITS {
                blocks.free.push((block, used + 1));
            }
            return block << BLOCK_SHIFT | used << COUNT_SHIFT;
        }
    }
    NEXT.set((block, used + 1));
    block << BLOCK_SHIFT | used << COUNT_SHIFT
}

impl Stamp {
    pub(crate) const NONE: Stamp = Stamp(0);

    #[inline(always)]
    fn entry(self) -> usize {
        (self.0 >> ENTRY_SHIFT) as usize % ENTRIES
    }

    /// Whether every operation is to be recorded with its name and values.
    #[inline(always)]
    pub(crate) fn is_traced(self) -> bool {
        self.0 & TRACED != 0
    }

    /// The scope that two operands share.
    #[inline(always)]
    pub(crate) fn join(self, other: Stamp) -> Stamp {
        if self == other || other == Stamp::NONE {
            self
        } else if self == Stamp::NONE {
            other
        } else {
            different_tapes(self, other)
        }
    }

    /// Panics unless the scope is open on this thread.
    #[inline(always)]
    pub(crate) fn check(self) {
        if OPEN.with(|open| open[self.entry()].stamp.get()) != self.0 {
            not_open_here(self)
        }
    }

    /// Whether the scope is open on this thread.
    pub(crate) fn is_open(self) -> bool {
        OPEN.with(|open| open[self.entry()].stamp.get()) == self.0
    }

    /// The pointer of an open scope of this thread; panics if the scope is not open here.
    #[inline(always)]
    pub(super) fn recorder(self) -> *mut () {
        OPEN.with(|open| {
            let entry = &open[self.entry()];
            if entry.stamp.get() != self.0 {
                not_open_here(self)
            }
            entry.recorder.get()
        })
    }

    /// A scope of this thread, with this pointer, until it is closed.
    ///
    /// # Panics
    /// If 63 scopes are open on this thread already.
    pub(super) fn opened(recorder: *mut (), traced: bool) -> Stamp {
        let number = fresh_number();
        OPEN.with(|open| {
            let entry = (1..ENTRIES).find(|&entry| open[entry].stamp.get() == 0).unwrap_or_else(|| {
                panic!(
                    "palinode: {} tapes are being recorded on this thread at once; that is the limit",
                    ENTRIES - 1
                )
            });
            let stamp = number | if traced { TRACED } else { 0 } | (entry as u64) << ENTRY_SHIFT;
            open[entry].stamp.set(stamp);
            open[entry].recorder.set(recorder);
            Stamp(stamp)
        })
    }

    /// Nobody finds the scope any more.
    pub(super) fn close(self) {
        OPEN.with(|open| {
            let entry = &open[self.entry()];
            entry.stamp.set(0);
            entry.recorder.set(core::ptr::null_mut());
        });
    }

    /// Runs `f` with the pointer of an open scope, which nobody else finds meanwhile.
    pub(super) fn busy<R>(self, f: impl FnOnce(*mut ()) -> R) -> R {
        /// Opens the entry again, also on a panic.
        struct Busy<'a> {
            entry: &'a Entry,
            stamp: u64,
        }
        impl Drop for Busy<'_> {
            fn drop(&mut self) {
                self.entry.stamp.set(self.stamp);
            }
        }
        self.check();
        OPEN.with(|open| {
            let entry = &open[self.entry()];
            let recorder = entry.recorder.get();
            assert!(!recorder.is_null(), "palinode: a constant has no tape");
            let _busy = Busy { entry, stamp: entry.stamp.replace(BUSY) };
            f(recorder)
        })
    }

    /// How messages call the scope.
    fn describe(self) -> String {
        let blocks = blocks();
        let block = (self.0 >> BLOCK_SHIFT) as usize;
        let count = (self.0 >> COUNT_SHIFT) & ((1 << COUNT_BITS) - 1);
        let owner = blocks.owners.get(block.wrapping_sub(1)).map_or("?", String::as_str);
        format!("tape {block}.{count} (thread {owner})")
    }
}

#[cold]
#[inline(never)]
fn different_tapes(a: Stamp, b: Stamp) -> ! {
    panic!(
        "palinode: a Var of {} met a Var of {}. An operation takes Vars of one tape; to use an outer value in an \
         inner gradient, differentiate over the nested type and lift the outer value with Var::lift.",
        a.describe(),
        b.describe()
    )
}

#[cold]
#[inline(never)]
fn not_open_here(stamp: Stamp) -> ! {
    if OPEN.with(|entries| entries[stamp.entry()].stamp.get()) == BUSY {
        panic!(
            "palinode: a Var was used while its tape was being written to. A number's own methods and \
             CustomRule::name must not compute with Vars of the tape that calls them."
        )
    }
    let open: Vec<String> = OPEN.with(|entries| {
        let stamps = entries.iter().map(|entry| entry.stamp.get()).filter(|&s| s != 0);
        stamps.map(|s| Stamp(s).describe()).collect()
    });
    let here = match open.as_slice() {
        [] => "no tape is open".to_string(),
        open => format!("only {} is open", open.join(", ")),
    };
    panic!(
        "palinode: a Var of {} was used on thread {}, where {here}. A Var lives inside the closure that records \
         its tape, on that thread; take plain numbers out of it instead.",
        stamp.describe(),
        this_thread()
    )
}

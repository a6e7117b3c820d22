//! How a `Var` finds its tape: a stamp that names one open scope on one thread.
//!
//! Input: a stamp. Output: the recorder that is being recorded into, or a panic that names both sides.
//!
//! A thread-local table holds a slot per open scope. A stamp carries its slot and a number that is never
//! used twice, so one comparison of the slot's stamp with the handle's says at once: this scope, still
//! open, on this thread. Constants carry stamp 0, which slot 0 always matches.
//!
//! Invariants: a stamp stands for one `Recorder<S>` with one `S` (a `Var<S>` gets its stamp only from a scope of
//! an `Recorder<S>`, and whatever carries a stamp is invariant in `S`: see [`Invariant`]); a slot's pointer is valid for exactly as long as its
//! stamp is there.

#![allow(unsafe_code)] // named in ARCHITECTURE.md: turns a slot's pointer back into the recorder it came from

use super::arena::OpenNode;
use super::recorder::Recorder;
use core::cell::Cell;
use palinode_num::Scalar;
use std::sync::{Mutex, MutexGuard};

const TRACED: u64 = 1;
/// A slot's place in the stamp is its offset in the table, so that finding it takes one instruction.
const SLOT_SHIFT: u32 = size_of::<Slot>().trailing_zeros();
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const COUNT_SHIFT: u32 = SLOT_SHIFT + SLOT_BITS;
const COUNT_BITS: u32 = 33;
const BLOCK_SHIFT: u32 = COUNT_SHIFT + COUNT_BITS;

/// What a slot holds while its recorder is being written to: no stamp, because its low bits are set.
const BUSY: u64 = u64::MAX;

/// What carries a stamp of a `Recorder<S>` has one of these: it cannot become the same thing over a subtype or supertype of `S`. Two types that differ
/// in lifetimes only (`for<'a> fn(&'a ())` and `fn(&'static ())`, say) can be different numbers, and the stamp would lead one to the recorder of the
/// other.
///
/// ```
/// fn shortened<'a>(x: Option<&'static str>) -> Option<&'a str> { x } // what is covariant can
/// ```
/// ```compile_fail
/// fn shortened<'a>(x: palinode_core::Var<&'static str>) -> palinode_core::Var<&'a str> { x }
/// ```
/// ```compile_fail
/// fn shortened<'a>(x: palinode_core::Array<&'static str>) -> palinode_core::Array<&'a str> { x }
/// ```
/// ```compile_fail
/// fn shortened<'a>(x: palinode_core::Boundary<&'static str>) -> palinode_core::Boundary<&'a str> { x }
/// ```
/// ```compile_fail
/// fn shortened<'a>(x: palinode_core::Tape<&'static str>) -> palinode_core::Tape<&'a str> { x }
/// ```
/// ```compile_fail
/// fn shortened<'a, 't>(x: palinode_core::Record<'t, &'static str>) -> palinode_core::Record<'t, &'a str> { x }
/// ```
/// ```compile_fail
/// fn shortened<'a, 't>(x: palinode_core::ArrayOperand<'t, &'static str>) -> palinode_core::ArrayOperand<'t, &'a str> { x }
/// ```
pub(crate) type Invariant<S> = core::marker::PhantomData<fn(S) -> S>;

/// Names one recording scope; zero for constants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

struct Slot {
    stamp: Cell<u64>,
    recorder: Cell<*mut ()>,
}

thread_local! {
    static OPEN: [Slot; SLOTS] =
        const { [const { Slot { stamp: Cell::new(0), recorder: Cell::new(core::ptr::null_mut()) } }; SLOTS] };
    /// The block of numbers that this thread takes its stamps from, and how many of it are used.
    static NEXT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// The names of the threads that own the blocks (block `b` belongs to thread `owners[b - 1]`), and the blocks of threads
/// that have ended, with how many of their numbers are used.
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
    fn slot(self) -> usize {
        (self.0 >> SLOT_SHIFT) as usize % SLOTS
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
        if OPEN.with(|open| open[self.slot()].stamp.get()) != self.0 {
            not_open_here(self)
        }
    }

    /// Whether the scope is open on this thread.
    pub(crate) fn is_open(self) -> bool {
        OPEN.with(|open| open[self.slot()].stamp.get()) == self.0
    }

    /// The recorder of an open scope of this thread; panics if the scope is not open here.
    #[inline(always)]
    pub(crate) fn recorder<S: 'static>(self) -> *mut Recorder<S> {
        OPEN.with(|open| {
            let slot = &open[self.slot()];
            if slot.stamp.get() != self.0 {
                not_open_here(self)
            }
            slot.recorder.get().cast()
        })
    }

    /// [`Stamp::check`], and the way to the recorder for the rest of this operation.
    #[inline(always)]
    pub(crate) fn open<S: 'static>(self) -> Open<S> {
        Open(self.recorder())
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
    if OPEN.with(|slots| slots[stamp.slot()].stamp.get()) == BUSY {
        panic!(
            "palinode: a Var was used while its tape was being written to. A number's own methods and \
             CustomRule::name must not compute with Vars of the tape that calls them."
        )
    }
    let open: Vec<String> = OPEN.with(|slots| {
        let stamps = slots.iter().map(|slot| slot.stamp.get()).filter(|&s| s != 0);
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

/// An open recording: while it lives, Vars with its stamp reach the recorder.
pub(crate) struct Scope<'a, S> {
    stamp: Stamp,
    recorder: core::marker::PhantomData<&'a mut Recorder<S>>,
}

impl<'a, S: 'static> Scope<'a, S> {
    /// Opens a scope on this thread.
    ///
    /// # Panics
    /// If 63 scopes are open on this thread already.
    pub(crate) fn open(recorder: &'a mut Recorder<S>, traced: bool) -> Self {
        let number = fresh_number();
        let stamp = OPEN.with(|open| {
            let slot = (1..SLOTS).find(|&slot| open[slot].stamp.get() == 0).unwrap_or_else(|| {
                panic!(
                    "palinode: {} tapes are being recorded on this thread at once; that is the limit",
                    SLOTS - 1
                )
            });
            let stamp = number | if traced { TRACED } else { 0 } | (slot as u64) << SLOT_SHIFT;
            open[slot].stamp.set(stamp);
            open[slot].recorder.set(core::ptr::from_mut(recorder).cast());
            Stamp(stamp)
        });
        Scope { stamp, recorder: core::marker::PhantomData }
    }

    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }
}

impl<S> Drop for Scope<'_, S> {
    fn drop(&mut self) {
        OPEN.with(|open| {
            let slot = &open[self.stamp.slot()];
            slot.stamp.set(0);
            slot.recorder.set(core::ptr::null_mut());
        });
    }
}

/// The recorder of a scope that was open on this thread when the operation at hand began. A scope cannot end inside an
/// operation, so within it no second check is needed; it must not be kept beyond.
#[derive(Clone, Copy)]
pub(crate) struct Open<S>(*mut Recorder<S>);

impl<S: Scalar> Open<S> {
    /// Appends a node.
    #[inline(always)]
    pub(crate) fn push<const N: usize>(self, parents: [u32; N], partials: [S; N]) -> u32 {
        debug_assert!(!self.0.is_null(), "a constant has no tape");
        // SAFETY: as in `with_recorder`: the scope is still open (see the type), and `push` calls no method of `S`, so
        // nothing reaches this recorder meanwhile.
        unsafe { (*self.0).arena.push(parents, partials) }
    }

    /// Adds edges to an open node; see [`Arena::extend`](super::arena::Arena::extend).
    #[inline(always)]
    pub(crate) fn extend(self, node: OpenNode, one: S, first: (u32, S), second: (u32, S)) -> OpenNode {
        debug_assert!(!self.0.is_null(), "a constant has no tape");
        // SAFETY: as in `push`; `one` is passed in so that `extend` calls no method of `S` either.
        unsafe { (*self.0).arena.extend(node, one, first, second) }
    }

    /// Takes a node with few edges back; see [`Recorder::take_back`].
    #[inline(never)]
    pub(crate) fn take_back(self, node: OpenNode, zero: S) -> Option<[(u32, S); 2]> {
        debug_assert!(!self.0.is_null(), "a constant has no tape");
        // SAFETY: as in `extend`: `zero` is passed in so that no method of `S` is called.
        unsafe { (*self.0).take_back(node, zero) }
    }
}

/// Runs `f` with the recorder of an open scope.
///
/// While it runs the scope counts as busy: whatever `f` calls (a number type of the user's, a custom rule) panics if it
/// uses a `Var` of this scope, instead of reaching the same recorder a second time.
pub(crate) fn with_recorder<S: 'static, R>(stamp: Stamp, f: impl FnOnce(&mut Recorder<S>) -> R) -> R {
    /// Opens the slot again, also on a panic.
    struct Busy<'a> {
        slot: &'a Slot,
        stamp: u64,
    }
    impl Drop for Busy<'_> {
        fn drop(&mut self) {
            self.slot.stamp.set(self.stamp);
        }
    }
    stamp.check();
    OPEN.with(|open| {
        let slot = &open[stamp.slot()];
        let recorder = slot.recorder.get().cast::<Recorder<S>>();
        assert!(!recorder.is_null(), "palinode: a constant has no tape");
        let _busy = Busy { slot, stamp: slot.stamp.replace(BUSY) };
        // SAFETY: the scope is open on this thread (`check`), so the pointer is that of the `&mut Recorder<S>` which the
        // scope borrows, with the same `S` (module invariant). Nothing else uses it now: while the slot is
        // busy every other way to it fails its check, and `Open` does not outlive its operation.
        f(unsafe { &mut *recorder })
    })
}

//! The buffers of an imagined run: how many bytes each has, who holds it, and how many are live at once.
//!
//! Input: what a run would allocate, share and release, in order. Output: live and peak bytes. Mirrors the
//! memory model that `interp` states; no element is ever computed, except integers and truth values that
//! lengths and loops depend on.

use std::rc::Rc;

use crate::interp::{bookkeeping, store_rule};
use crate::op::FuncId;
use crate::plan::known::{Id, Ints, Thing};
use crate::program::Value;
use crate::types::Elem;

/// Lengths, as far as they are known.
pub(super) type Shape = Vec<Option<u64>>;

/// An array of the imagined run.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) elem: Elem,
    /// Lengths, as far as they are known.
    pub(super) shape: Shape,
    /// Whether the lengths are bounds: a branch on data decides them.
    pub(super) at_most: bool,
    /// Integers and truth values of a vector, as far as they are known.
    pub(super) ints: Option<Ints>,
    /// With how many elements it was made: beyond them it grows by chunks.
    pub(super) made: u64,
    pub(super) bytes: u64,
    /// What describes it.
    pub(super) beside: u64,
    /// Which array it is: they are numbered as they are made. What follows a branch on data and differs
    /// between its sides is a new one.
    pub(super) born: u64,
    /// Whether it depends on data with how many elements it was made.
    pub(super) uneven: bool,
    /// Whether it has changed its length since: then it may be in chunks, and have as much room as any that
    /// long.
    pub(super) loose: bool,
    /// The value that it holds: the latest that was defined in it.
    pub(super) value: Option<(FuncId, Value)>,
}

impl Buffer {
    /// How many elements it has, if that is known.
    pub(super) fn elements(&self) -> Option<u64> {
        elements(&self.shape)
    }

    /// Whether it has grown beyond the buffer that it was made with.
    pub(super) fn in_chunks(&self) -> bool {
        self.elements().is_some_and(|elements| elements > self.made || (self.loose && elements > 0))
    }
}

/// More elements than can be counted are as many as can be.
pub(super) fn elements(shape: &[Option<u64>]) -> Option<u64> {
    shape.iter().try_fold(1u64, |product, &length| Some(product.saturating_mul(length?)))
}

/// A number that tells sequences of numbers apart, with one more of them.
pub(super) fn mixed(sequence: u64, next: u64) -> u64 {
    (sequence ^ next).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_add(1)
}

/// What an imagined run has cost so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Shared between the sides of a branch until one of them changes something.
    buffers: Vec<Option<Rc<Buffer>>>,
    /// How many hold each of them.
    holders: Vec<u32>,
    free: Vec<u32>,
    pub(super) live: u64,
    pub(super) peak: u64,
    /// What is taken besides elements, and the most of all.
    beside: u64,
    pub(super) heap: u64,
    /// The bytes among these, of either kind, that belong to no buffer.
    reserved: (u64, u64),
    /// What has been charged for registers, which is never given back.
    frames: u64,
    pub(super) allocations: u64,
    /// How many arrays have got a number.
    births: u64,
    /// About how much work has been done, in additions.
    pub(super) work: f64,
    /// Sums up the sizes of fresh arrays, so that two rounds of a loop can be compared.
    pub(super) trace: u64,
    real_bytes: usize,
}

impl Ledger {
    pub(super) fn new(real_bytes: usize) -> Ledger {
        Ledger { real_bytes, ..Ledger::default() }
    }

    pub(super) fn real_bytes(&self) -> usize {
        self.real_bytes
    }

    pub(super) fn element_bytes(&self, elem: Elem) -> u64 {
        elem.bytes(self.real_bytes) as u64
    }

    /// Takes memory for so many elements, held once.
    pub(super) fn allocate(&mut self, elem: Elem, shape: Vec<Option<u64>>, count: u64) -> Id {
        let bytes = count.saturating_mul(self.element_bytes(elem));
        self.trace = mixed(self.trace, bytes);
        self.allocations += 1;
        let born = self.birth();
        let buffer = Buffer {
            elem,
            shape,
            at_most: false,
            ints: None,
            made: count,
            bytes,
            beside: bookkeeping::ARRAY,
            born,
            uneven: false,
            loose: false,
            value: None,
        };
        self.charge_both(bytes, bookkeeping::ARRAY);
        self.place(Rc::new(buffer), 1)
    }

    fn birth(&mut self) -> u64 {
        self.births += 1;
        self.births - 1
    }

    fn place(&mut self, buffer: Rc<Buffer>, holders: u32) -> Id {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.buffers.push(None);
                self.holders.push(0);
                self.buffers.len() as u32 - 1
            }
        };
        (self.buffers[id as usize], self.holders[id as usize]) = (Some(buffer), holders);
        Id(id)
    }

    fn charge_both(&mut self, bytes: u64, beside: u64) {
        self.live = self.live.saturating_add(bytes);
        self.peak = self.peak.max(self.live);
        self.beside = self.beside.saturating_add(beside);
        self.heap = self.heap.max(self.live.saturating_add(self.beside));
    }

    fn discharge_both(&mut self, bytes: u64, beside: u64) {
        self.live = self.live.saturating_sub(bytes);
        self.beside = self.beside.saturating_sub(beside);
    }

    /// Counts bytes that belong to no buffer, until they are given back: elements, and what is taken besides.
    pub(super) fn reserve(&mut self, bytes: u64, beside: u64) {
        self.reserved.0 = self.reserved.0.saturating_add(bytes);
        self.reserved.1 = self.reserved.1.saturating_add(beside);
        self.charge_both(bytes, beside);
    }

    pub(super) fn give_back(&mut self, bytes: u64, beside: u64) {
        self.reserved.0 = self.reserved.0.saturating_sub(bytes);
        self.reserved.1 = self.reserved.1.saturating_sub(beside);
        self.discharge_both(bytes, beside);
    }

    /// Sees to it that so much is charged for registers.
    pub(super) fn charge_frames(&mut self, bytes: u64) {
        let more = bytes.saturating_sub(self.frames);
        self.frames += more;
        self.charge_both(0, more);
    }

    pub(super) fn get(&self, id: Id) -> &Buffer {
        self.shared(id)
    }

    pub(super) fn shared(&self, id: Id) -> &Rc<Buffer> {
        self.buffers[id.0 as usize].as_ref().expect("a buffer that someone holds")
    }

    pub(super) fn get_mut(&mut self, id: Id) -> &mut Buffer {
        Rc::make_mut(self.buffers[id.0 as usize].as_mut().expect("a buffer that someone holds"))
    }

    pub(super) fn hold(&mut self, id: Id) {
        self.holders[id.0 as usize] += 1;
    }

    pub(super) fn holders(&self, id: Id) -> u32 {
        self.holders[id.0 as usize]
    }

    pub(super) fn is_held_once(&self, id: Id) -> bool {
        self.is_held(id, 1)
    }

    /// Whether it has exactly so many holders.
    pub(super) fn is_held(&self, id: Id, holders: usize) -> bool {
        self.holders(id) as usize == holders
    }

    pub(super) fn release(&mut self, id: Id) {
        let holders = &mut self.holders[id.0 as usize];
        *holders -= 1;
        if *holders == 0 {
            let &Buffer { bytes, beside, .. } = self.get(id);
            self.discharge_both(bytes, beside);
            self.buffers[id.0 as usize] = None;
            self.free.push(id.0);
        }
    }

    /// Makes a vector longer by so many elements, as `push` does.
    pub(super) fn grow(&mut self, id: Id, more: u64) {
        if let Some(length) = self.get(id).shape[0] {
            self.set_length(id, length.saturating_add(more));
        }
    }

    /// Changes the length of a vector, as `resize` does.
    pub(super) fn resize(&mut self, id: Id, length: u64) {
        self.get_mut(id).ints = None;
        self.set_length(id, length);
    }

    fn set_length(&mut self, id: Id, length: u64) {
        let size = self.element_bytes(self.get(id).elem);
        let buffer = self.get_mut(id);
        buffer.shape[0] = Some(length);
        // What may be shorter may have been cut to nothing, and grown again from there.
        buffer.loose |= buffer.uneven || (buffer.at_most && buffer.made > 0);
        if length == 0 {
            buffer.made = 0;
        }
        let (held, chunks) = if buffer.loose {
            (store_rule::held_at_most(length), store_rule::chunks_held(0, length))
        } else {
            let made = buffer.made;
            (store_rule::elements_held(made, length), store_rule::chunks_held(made, length))
        };
        let before = (buffer.bytes, buffer.beside);
        let after = (held.saturating_mul(size), bookkeeping::array(chunks));
        (buffer.bytes, buffer.beside) = after;
        self.discharge_both(before.0, before.1);
        self.charge_both(after.0, after.1);
    }

    /// What follows either of two courses, with no array yet.
    pub(super) fn after_either(a: &Ledger, b: &Ledger) -> Ledger {
        Ledger {
            buffers: Vec::new(),
            holders: Vec::new(),
            free: Vec::new(),
            live: a.reserved.0,
            peak: a.peak.max(b.peak),
            beside: a.reserved.1.saturating_add(a.frames.max(b.frames)),
            heap: a.heap.max(b.heap),
            reserved: a.reserved,
            frames: a.frames.max(b.frames),
            allocations: a.allocations.max(b.allocations),
            births: a.births.max(b.births),
            work: a.work.max(b.work),
            trace: mixed(a.trace, b.trace),
            real_bytes: a.real_bytes,
        }
    }

    /// Counts an array that was made elsewhere as live, held by nothing yet; a new one if it differs between
    /// two courses.
    pub(super) fn adopt(&mut self, mut buffer: Rc<Buffer>, differs: bool) -> Id {
        if differs {
            Rc::make_mut(&mut buffer).born = self.birth();
        }
        self.charge_both(buffer.bytes, buffer.beside);
        self.place(buffer, 0)
    }

    /// Another array like one that others hold too, for one of its holders.
    pub(super) fn set_apart(&mut self, id: Id) -> Id {
        let apart = self.adopt(Rc::clone(self.shared(id)), true);
        self.hold(apart);
        self.release(id);
        apart
    }

    /// The buffers that are live, by age.
    pub(super) fn survivors(&self) -> Vec<&Buffer> {
        let mut found: Vec<&Buffer> = self.buffers.iter().flatten().map(|buffer| &**buffer).collect();
        found.sort_by_key(|buffer| buffer.born);
        found
    }
}

impl Thing {
    /// Whether it is only bounded, or its lengths are.
    pub(super) fn is_at_most(self, ledger: &Ledger) -> bool {
        match self {
            Thing::UpTo(_) => true,
            Thing::Array(id) => ledger.get(id).at_most,
            Thing::Unset | Thing::Real | Thing::Int(_) => false,
        }
    }

    /// The lengths of an array; nothing for a scalar.
    pub(super) fn shape(self, ledger: &Ledger) -> Shape {
        match self {
            Thing::Array(id) => ledger.get(id).shape.clone(),
            Thing::Unset | Thing::Real | Thing::Int(_) | Thing::UpTo(_) => Vec::new(),
        }
    }
}

#[derive(Clone)]
pub(super) struct State {
    pub(super) ledger: Ledger,
    /// The registers of the functions that are running, outermost first. They hold all arrays that are live
    /// between two instructions.
    pub(super) frames: Vec<Vec<Thing>>,
    /// What the snapshots of the sweeps that are running hold, outermost sweep first.
    pub(super) snapshots: Vec<Vec<Thing>>,
}

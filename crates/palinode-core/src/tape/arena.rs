//! The tape's memory: an append-only arena of edges in chunks.
//!
//! Input: nodes, each a short list of (parent, partial). Output: the same edges in the same order, for the
//! sweeps in `sweep.rs`.
//!
//! A node is the run of edges from one marked [`FIRST`] to the next; it has no header, its number is its
//! position. An edge is a partial and a parent, in two parallel arrays, so one costs `size_of::<S>() + 4`
//! bytes. Node 0 is a sink that no one reads: leaves have one edge to it with partial 0.
//!
//! Invariants: a parent's number is below its node's; a node's edges lie in one chunk; chunks are never moved
//! or freed while recording, and are used again by the next recording. The arena does not know `Var`, rules
//! or values.
//!
//! The first of these is what the sweeps rest on, so it is held here, where edges are written, and nowhere
//! else: `push`, `push_many` and `extend` compare the highest parent with the node before the edges count
//! ([0027](../../../../docs/adr/0027-the-gate-of-edges.md)). Whoever records, by mistake or on purpose, a
//! handle of another recording gets a panic and never a sweep out of bounds.
//!
//! Known limit: at most 2^31 - 1 nodes.

#![allow(unsafe_code)] // named in ARCHITECTURE.md; `tests.rs` compares with a safe twin

use crate::error::Error;
use core::cmp::Reverse;
use palinode_num::Scalar;
use std::collections::BinaryHeap;

/// Marks the first edge of a node in its parent word.
pub(crate) const FIRST: u32 = 1 << 31;
/// The node that leaves point to; nobody reads it.
pub(crate) const SINK: u32 = 0;
/// The only parent word of a leaf.
pub(crate) const LEAF: u32 = SINK | FIRST;
/// What a push gives after a failure: any number but [`SINK`], which would make its handle a constant.
const NOWHERE: u32 = 1;
/// The most nodes any tape can hold.
pub const MAX_NODES: u32 = FIRST - 1;

/// The first chunk is small so that small tapes are; later ones double up to a fixed size.
const FIRST_CHUNK: usize = 256;
const LARGEST_CHUNK: usize = 1 << 16;

/// A run of edges. Their number is `used`; the vectors' own length stays 0.
struct Chunk<S> {
    partials: Vec<S>,
    parents: Vec<u32>,
    used: usize,
    /// The number of the first node in it.
    first_node: u32,
}

impl<S> Chunk<S> {
    /// The edges that it can hold.
    fn capacity(&self) -> usize {
        self.partials.capacity().min(self.parents.capacity())
    }
}

/// A node that may still get edges; see [`Arena::extend`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenNode {
    node: u32,
    end: usize,
}

impl OpenNode {
    /// No node yet.
    pub(crate) const NONE: OpenNode = OpenNode { node: SINK, end: usize::MAX };

    pub(crate) fn number(self) -> u32 {
        self.node
    }
}

#[cold]
#[inline(never)]
fn not_below(parent: u32, node: u32) -> ! {
    panic!(
        "palinode: node {node} of a tape cannot depend on node {parent}, which does not come before it: a Var of another recording \
         was used here, unnoticed until now. That is a mistake of palinode; please report it."
    )
}

/// See the module's documentation.
pub(crate) struct Arena<S> {
    // What the hot path touches: where to write, how far, and the next node's number.
    partials: *mut S,
    parents: *mut u32,
    len: usize,
    space: usize,
    next_node: u32,

    current: usize,
    chunks: Vec<Chunk<S>>,
    node_limit: u32,
    byte_limit: usize,
    /// Bytes that the tape needs besides, such as for its list of inputs.
    set_aside: usize,
    /// Bytes of a cotangent in the sweep that will come.
    cotangent: usize,
    failure: Option<Error>,
}

// SAFETY: the raw pointers point into `chunks`, which the arena owns; they are used through `&mut self` only.
unsafe impl<S: Send> Send for Arena<S> {}

impl<S: Scalar> Arena<S> {
    pub(crate) fn set_byte_limit(&mut self, bytes: usize) {
        self.byte_limit = bytes;
    }

    pub(crate) fn new(node_limit: u32, byte_limit: usize) -> Self {
        Arena {
            partials: core::ptr::NonNull::dangling().as_ptr(),
            parents: core::ptr::NonNull::dangling().as_ptr(),
            len: 0,
            space: 0,
            next_node: 1,
            current: 0,
            chunks: Vec::new(),
            node_limit: node_limit.min(MAX_NODES),
            byte_limit,
            set_aside: 0,
            cotangent: size_of::<S>(),
            failure: None,
        }
    }

    /// The bytes of a cotangent in the sweep that will come; at least those of a number.
    pub(crate) fn cotangent_bytes(&self) -> usize {
        self.cotangent
    }

    pub(crate) fn set_cotangent_bytes(&mut self, bytes: usize) {
        self.cotangent = bytes.max(size_of::<S>());
    }

    /// Gives all memory back.
    pub(crate) fn release(&mut self) {
        self.chunks = Vec::new();
        self.clear();
    }

    /// Forgets the recording and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.next_node = 1;
        self.failure = None;
        self.set_aside = 0;
        for chunk in &mut self.chunks {
            chunk.used = 0;
        }
        self.len = 0;
        self.space = 0;
        self.current = 0;
        if !self.chunks.is_empty() {
            self.enter_chunk(0);
        }
    }

    /// The number that the next node gets; one more than the last node's.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn next_node(&self) -> u32 {
        self.next_node
    }

    /// Counts bytes outside the arena towards its limit.
    pub(crate) fn set_aside(&mut self, bytes: usize) {
        self.set_aside += bytes;
    }

    /// Takes back what was counted and is not needed any more.
    pub(crate) fn put_back(&mut self, bytes: usize) {
        self.set_aside = self.set_aside.saturating_sub(bytes);
    }

    /// The error that says so many bytes in all are more than allowed.
    fn too_many(&self, needed: usize) -> Error {
        Error::ByteLimit { limit: self.byte_limit, needed, node: self.next_node - 1 }
    }

    /// An error if so many bytes in all are more than allowed.
    pub(crate) fn afford(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.byte_limit { Err(self.too_many(bytes)) } else { Ok(()) }
    }

    /// An error if the recording is incomplete, or if what has been set aside leaves too little for its
    /// cotangents.
    pub(crate) fn check_limits(&self) -> Result<(), Error> {
        match &self.failure {
            Some(error) => Err(error.clone()),
            None => self.afford(self.bytes() + self.set_aside + self.next_node as usize * self.cotangent),
        }
    }

    /// Why the recording is incomplete, if it is.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// Appends a node with these edges and gives its number.
    ///
    /// After a failure the number means nothing; the recording is never swept.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn push<const N: usize>(&mut self, parents: [u32; N], partials: [S; N]) -> u32 {
        const { assert!(N > 0) };
        let highest = parents.iter().fold(SINK, |highest, &parent| highest.max(parent));
        // One test for two rare things.
        if (self.space - self.len < N) | (highest >= self.next_node) && !self.make_space(N, highest) {
            return NOWHERE;
        }
        for k in 0..N {
            let mark = if k == 0 { FIRST } else { 0 };
            // SAFETY: `space` is within the capacity of both vectors of the current chunk and
            // `len + k < space`.
            unsafe {
                self.parents.add(self.len + k).write(parents[k] | mark);
                self.partials.add(self.len + k).write(partials[k]);
            }
        }
        self.len += N;
        self.next_node += 1;
        self.next_node - 1
    }

    /// Appends a node with as many edges as the iterator gives, at most `most`; a leaf if it gives none.
    ///
    /// Nothing counts until the last edge is written, so a panic in the iterator leaves no half node behind.
    pub(crate) fn push_many(&mut self, most: usize, edges: impl Iterator<Item = (u32, S)>) -> u32 {
        if self.space - self.len < most.max(1) && !self.make_space(most.max(1), SINK) {
            return NOWHERE;
        }
        let (mut end, mut highest) = (self.len, SINK);
        for (parent, partial) in edges.take(most) {
            highest = highest.max(parent);
            let mark = if end == self.len { FIRST } else { 0 };
            // SAFETY: `take` keeps the number of edges within the space that was made, which is within the
            // capacity of both vectors of the current chunk; the iterator cannot reach this arena, which is
            // borrowed.
            unsafe {
                self.parents.add(end).write(parent | mark);
                self.partials.add(end).write(partial);
            }
            end += 1;
        }
        if end == self.len {
            return self.push([SINK], [S::zero()]);
        }
        if highest >= self.next_node {
            not_below(highest, self.next_node)
        }
        self.len = end;
        self.next_node += 1;
        // Fewer edges than there was space made for may leave space for too many nodes.
        self.keep_node_limit();
        self.next_node - 1
    }

    /// Adds one edge, or two unless the second's parent is [`SINK`], to a node that is still the last one.
    /// Otherwise they become a new node, which also points to the one given, if any. `one` is the number 1.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn extend(&mut self, open: OpenNode, one: S, first: (u32, S), second: (u32, S)) -> OpenNode {
        let highest = first.0.max(second.0);
        if !self.is_last(open) || (self.space - self.len < 2) | (highest >= open.node) {
            return self.extend_slowly(open, one, first, second);
        }
        // SAFETY: two more edges fit into `space`, which is within the capacity of both vectors of the
        // current chunk. The second may be written and not counted.
        unsafe {
            self.parents.add(self.len).write(first.0);
            self.partials.add(self.len).write(first.1);
            // A partial of several samples is not written for nothing.
            if const { S::LANES == 1 } || second.0 != SINK {
                self.parents.add(self.len + 1).write(second.0);
                self.partials.add(self.len + 1).write(second.1);
            }
        }
        self.len += 1 + usize::from(second.0 != SINK);
        OpenNode { node: open.node, end: self.len }
    }

    /// Takes a node that is still the last one back, if it has no more than two edges, and gives these; one
    /// to [`SINK`] with partial `zero` stands for none.
    pub(crate) fn take_back(&mut self, open: OpenNode, zero: S) -> Option<[(u32, S); 2]> {
        if self.failure.is_some() || !self.is_last(open) {
            return None;
        }
        let (_, parents, partials) = self.chunk(self.current);
        let edges = match *parents {
            [.., only] if only & FIRST != 0 => [(only & !FIRST, partials[parents.len() - 1]), (SINK, zero)],
            [.., first, second] if first & FIRST != 0 => {
                [(first & !FIRST, partials[parents.len() - 2]), (second, partials[parents.len() - 1])]
            }
            _ => return None,
        };
        self.len -= if edges[1].0 == SINK { 1 } else { 2 };
        self.next_node -= 1;
        // Two edges less leave space for two nodes, and only one was taken back.
        self.keep_node_limit();
        Some(edges)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_last(&self, open: OpenNode) -> bool {
        open.end == self.len && open.node + 1 == self.next_node
    }

    #[inline(never)]
    fn extend_slowly(&mut self, open: OpenNode, one: S, first: (u32, S), second: (u32, S)) -> OpenNode {
        if self.failure.is_none() && self.is_last(open) && self.capacity() - self.len >= 2 {
            let highest = first.0.max(second.0);
            if highest >= open.node {
                not_below(highest, open.node)
            }
            // Only the node limit has kept `space` small, and this is no new node.
            self.space = self.len + 2;
            let extended = self.extend(open, one, first, second);
            self.keep_node_limit();
            return extended;
        }
        // Written out: a list to pick from would be one more copy, which is not cheap for several samples.
        let node = match (open.node, second.0) {
            (SINK, SINK) => self.push([first.0], [first.1]),
            (SINK, _) => self.push([first.0, second.0], [first.1, second.1]),
            (node, SINK) => self.push([node, first.0], [one, first.1]),
            (node, _) => self.push([node, first.0, second.0], [one, first.1, second.1]),
        };
        OpenNode { node, end: self.len }
    }

    /// Makes space for one more node with so many edges, in this chunk or another; false if there can be
    /// none.
    ///
    /// # Panics
    /// If the highest of its parents is not below it.
    #[cold]
    #[inline(never)]
    fn make_space(&mut self, edges: usize, highest: u32) -> bool {
        if self.failure.is_some() {
            // Nodes are not counted any more, and what there is of them is never swept.
            return false;
        }
        if highest >= self.next_node {
            not_below(highest, self.next_node)
        }
        if self.nodes_left() == 0 {
            return self.fail(Error::TapeFull { limit: self.node_limit });
        }
        if self.capacity() - self.len >= edges {
            // Only the node limit has kept `space` small.
            self.space = self.len + edges;
            return true;
        }
        self.leave_chunk();
        let mut next = if self.chunks.is_empty() { 0 } else { self.current + 1 };
        // A chunk that is too small for this node stays empty.
        while next < self.chunks.len() && self.chunks[next].capacity() < edges {
            self.chunks[next].first_node = self.next_node;
            next += 1;
        }
        if next == self.chunks.len()
            && let Err(error) = self.add_chunk(edges)
        {
            return self.fail(error);
        }
        self.enter_chunk(next);
        self.space = self.space.max(edges);
        true
    }

    /// How many more nodes there may be.
    fn nodes_left(&self) -> usize {
        (self.node_limit + 1 - self.next_node) as usize
    }

    /// The edges that the current chunk can hold.
    fn capacity(&self) -> usize {
        self.chunks.get(self.current).map_or(0, Chunk::capacity)
    }

    /// Takes back space that would allow more nodes than the limit: a node has at least one edge, so while
    /// the space is no larger than the number of nodes left, the hot path need not count nodes.
    #[inline]
    fn keep_node_limit(&mut self) {
        self.space = self.space.min(self.len.saturating_add(self.nodes_left()));
    }

    /// Ends the recording with an error that is not the arena's own.
    pub(crate) fn refuse(&mut self, error: Error) {
        self.fail(error);
    }

    fn fail(&mut self, error: Error) -> bool {
        self.failure = Some(error);
        self.len = 0;
        self.space = 0;
        false
    }

    fn leave_chunk(&mut self) {
        if let Some(chunk) = self.chunks.get_mut(self.current) {
            chunk.used = self.len;
        }
    }

    fn enter_chunk(&mut self, index: usize) {
        let chunk = &mut self.chunks[index];
        chunk.first_node = self.next_node;
        self.current = index;
        self.partials = chunk.partials.as_mut_ptr();
        self.parents = chunk.parents.as_mut_ptr();
        self.len = 0;
        self.space = chunk.capacity();
        self.keep_node_limit();
    }

    fn add_chunk(&mut self, edges: usize) -> Result<(), Error> {
        let edge = size_of::<S>() + size_of::<u32>();
        let usual = FIRST_CHUNK.checked_shl(self.chunks.len() as u32).unwrap_or(LARGEST_CHUNK);
        // The sweep will need a cotangent for the node at hand. One more chunk is one more entry in their
        // list, which grows by one for that reason.
        let so_far = self.bytes() + size_of::<Chunk<S>>() + (self.next_node as usize + 1) * self.cotangent;
        let left = self.byte_limit.saturating_sub(so_far + self.set_aside);
        if left / edge < edges {
            return Err(self.too_many(so_far + self.set_aside + edges * edge));
        }
        // A node has at least one edge, so edges are allowed for with a cotangent each, unless only this node
        // fits.
        let affordable = left / (edge + self.cotangent);
        let size = usual.clamp(FIRST_CHUNK, LARGEST_CHUNK).min(affordable).max(edges);
        let no_memory = |_| Error::OutOfMemory { bytes: size * edge };
        let mut chunk = Chunk { partials: Vec::new(), parents: Vec::new(), used: 0, first_node: 0 };
        chunk.partials.try_reserve_exact(size).map_err(no_memory)?;
        chunk.parents.try_reserve_exact(size).map_err(no_memory)?;
        self.chunks.try_reserve_exact(1).map_err(no_memory)?;
        self.chunks.push(chunk);
        Ok(())
    }

    /// The heap bytes that the edges hold, used or kept for the next recording.
    pub(crate) fn bytes(&self) -> usize {
        let of_chunk = |chunk: &Chunk<S>| {
            chunk.partials.capacity() * size_of::<S>() + chunk.parents.capacity() * size_of::<u32>()
        };
        self.chunks.iter().map(of_chunk).sum::<usize>() + self.chunks.capacity() * size_of::<Chunk<S>>()
    }

    /// Heap bytes that are enough for these edges on a new arena, with any limit that leaves so many.
    ///
    /// Chunks become smaller as the limit comes near, each takes more than half of what was left, so there
    /// are few more than the usual ones. Each has its entry in the list. Its end is lost to a node that was
    /// too long for it, each time another one; and a sum may go on in a new node there, with an edge and a
    /// cotangent more.
    pub(crate) fn enough_bytes(&self) -> usize {
        let edge = size_of::<S>() + size_of::<u32>();
        let edges = self.edges();
        let at_most_largest = edges.min(LARGEST_CHUNK);
        let doubling = (1 + at_most_largest / FIRST_CHUNK).ilog2() as usize;
        let shrinking = (1 + at_most_largest).ilog2() as usize;
        let chunks = edges / LARGEST_CHUNK + doubling + shrinking + 2;
        let mut longest = BinaryHeap::new();
        for (_, words, _) in self.filled() {
            for rest in words.split(|word| word & FIRST != 0).skip(1) {
                longest.push(Reverse(rest.len()));
                if longest.len() > chunks {
                    longest.pop();
                }
            }
        }
        let lost: usize = longest.iter().map(|Reverse(rest)| rest * edge).sum();
        edges * edge + lost + chunks * (size_of::<Chunk<S>>() + edge + self.cotangent)
    }

    /// The number of edges recorded.
    pub(crate) fn edges(&self) -> usize {
        self.filled().map(|(_, parents, _)| parents.len()).sum()
    }

    /// The chunks that hold edges: first node, parents, partials.
    pub(crate) fn filled(&self) -> impl DoubleEndedIterator<Item = (u32, &[u32], &[S])> {
        (0..self.chunk_count()).map(|index| self.chunk(index))
    }

    /// How many chunks the recording reaches into.
    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks.len().min(self.current + 1)
    }

    /// One chunk: first node, parents, partials.
    pub(crate) fn chunk(&self, index: usize) -> (u32, &[u32], &[S]) {
        let chunk = &self.chunks[index];
        let used = if index == self.current { self.len } else { chunk.used };
        // SAFETY: the first `used` edges of a chunk have been written, and `used` is within both capacities.
        unsafe {
            (
                chunk.first_node,
                core::slice::from_raw_parts(chunk.parents.as_ptr(), used),
                core::slice::from_raw_parts(chunk.partials.as_ptr(), used),
            )
        }
    }

    /// Every node from the last: its number, the words of its parents, its partials.
    pub(crate) fn nodes_down(&self) -> impl Iterator<Item = (u32, &[u32], &[S])> {
        let runs = self.filled().rev().flat_map(|(_, parents, mut partials)| {
            parents.chunk_by(|_, &next| next & FIRST == 0).rev().map(move |words| {
                let (rest, own) = partials.split_at(partials.len() - words.len());
                partials = rest;
                (words, own)
            })
        });
        (1..self.next_node).rev().zip(runs).map(|(node, (words, partials))| (node, words, partials))
    }

    /// Every node in order: its number, the words of its parents, its partials.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (u32, &[u32], &[S])> {
        self.filled().flat_map(|(first_node, parents, mut partials)| {
            let nodes = (first_node..).zip(parents.chunk_by(|_, &next| next & FIRST == 0));
            nodes.map(move |(node, words)| {
                (node, words, partials.split_off(..words.len()).expect("a partial for each parent"))
            })
        })
    }

    /// Shows every node in order, with its parents, while the answer is true; allocates nothing.
    pub(crate) fn for_each_parents(
        &self,
        mut see: impl FnMut(u32, &mut dyn Iterator<Item = u32>) -> bool,
    ) -> bool {
        self.nodes().all(|(node, words, _)| see(node, &mut words.iter().map(|word| word & !FIRST)))
    }
}

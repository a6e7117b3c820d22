//! Formulas -> loops: elementwise operations, and arrays that are others at other indices.
//!
//! A loop computes all elements of one formula. Where a formula contains concatenations, its box of indices
//! is split until each part meets one of their parts only. Functions that no machine has an instruction for
//! (`exp`, `tanh`) are computed separately: their arguments go to a short buffer, a kernel goes over it, and
//! the loop reads it.

use std::rc::Rc;

use palinode_core::rules;

use super::super::form::{Buf, Index, Kind, Operand, Place, Reg, Role, Stmt, Way};
use super::value::{Along, Arr, Def, Handle, Map, Single, Val, Whole, row_major};
use super::{Lower, Refusal, plain_for};
use crate::fast::FastMap;
use crate::op::Op;
use crate::types::{Elem, Type};

/// A formula that costs at most so many additions is computed wherever it is used.
pub(super) const CHEAP: u32 = 3;

/// How many elements a function is applied to at once.
const BLOCK: i64 = 512;

/// From this length on an axis is worth a kernel.
const LONG: i64 = 8;

/// An array on its way into a buffer: the element at the indices `i` is stored, or added, at
/// `first + sum of strides[j] * i[j]`. No place comes twice.
#[derive(Clone, Copy)]
pub(super) struct Transfer<'a> {
    pub(super) array: &'a Arr,
    pub(super) buf: Buf,
    pub(super) first: &'a Index,
    pub(super) strides: &'a [i64],
    pub(super) adds: bool,
}

/// A box of indices: for each axis the first, and one past the last.
type Region = Vec<(i64, i64)>;

/// A part of a box whose elements are computed together: some indices of one axis, all of the axes after it,
/// one of the axes before it.
struct Tile<'a> {
    /// The indices along the axes before.
    idx: &'a [Index],
    /// The box in which the indices of tiles like this run.
    region: Region,
    /// Where the tile begins along the axes from that one on, and how long it is there.
    starts: Vec<Index>,
    lengths: Vec<i64>,
}

impl Tile<'_> {
    fn elements(&self) -> i64 {
        self.lengths.iter().product()
    }
}

/// Where a box must be split: the axis, and the first index of the second part.
struct Split(usize, i64);

/// Why elements could not be written: their box must be split, or they have no loop form.
enum Failed {
    Split(Split),
    Refused(Refusal),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Failed {
        Failed::Refused(refusal)
    }
}

/// The body of an `Each` that is being written.
struct Body {
    /// The indices of its element, and the box in which they run.
    idx: Vec<Index>,
    region: Region,
    /// The number of its element in the tile, if functions are computed separately.
    number: Option<Index>,
    /// What has been loaded.
    loaded: FastMap<(Buf, Index), Operand>,
    /// What the formulas inside have given.
    done: FastMap<(*const Map, Vec<Index>), Single>,
    /// Where results of functions wait, by formula: at the number in the tile.
    scratch: Scratch,
}

type Scratch = FastMap<*const Map, Buf>;

impl Lower<'_> {
    /// An elementwise operation.
    pub(super) fn elementwise(&mut self, op: &Op, ty: Type, args: Vec<Val>) -> Result<Val, Refusal> {
        if ty.is_scalar() {
            let singles: Vec<Single> = args.into_iter().map(single).collect();
            let traps = self.form.traps && op.facts().computes;
            let result = self.apply(op, ty, &singles)?;
            if let (true, Single::Real(a)) = (traps, &result) {
                self.emit(Stmt::Finite { a: *a });
            }
            return Ok(Val::Single(result));
        }
        let mut args = args;
        for arg in &mut args {
            if let Val::Log(_) = arg {
                *arg = Val::Array(self.array_of(arg)?);
            }
        }
        let mut shapes = args.iter().filter_map(|arg| match arg {
            Val::Array(array) => Some(Rc::clone(&array.shape)),
            Val::Single(_) | Val::Log(_) => None,
        });
        let shape = shapes.next().expect("typing: an array operand");
        if shapes.any(|other| other != shape) {
            self.emit(Stmt::Stop);
            // The lengths of the result do not matter any more.
            return Ok(Val::Array(Arr {
                elem: ty.elem,
                shape,
                def: Def::Filled(Single::nothing(Kind::of(ty.elem))),
            }));
        }
        if let (Op::StopGradient | Op::Convert(Elem::F64), [Val::Array(array)]) = (op, &args[..])
            && (array.elem.is_real() == ty.elem.is_real() || matches!(op, Op::StopGradient))
        {
            return Ok(Val::Array(Arr { elem: ty.elem, ..array.clone() }));
        }
        let cost = own_cost(op)
            + args
                .iter()
                .map(|arg| if let Val::Array(array) = arg { array.cost() } else { 0 })
                .fold(0, u32::saturating_add);
        let map = Map { op: op.clone(), ty: ty.with_rank(0), args, cost };
        Ok(Val::Array(Arr { elem: ty.elem, shape, def: Def::Map(Rc::new(map)) }))
    }

    /// An array, of a value that is one; logs have a length that is known.
    pub(super) fn array_of(&mut self, val: &Val) -> Result<Arr, Refusal> {
        match val {
            Val::Array(array) => Ok(array.clone()),
            Val::Log(log) => match log.length.index.known() {
                Some(n) => Ok(Arr::whole(log.elem, vec![n as usize].into(), Rc::clone(&log.handle))),
                None => self.refuse("a whole vector whose length is not known"),
            },
            Val::Single(_) => unreachable!("typing: an array"),
        }
    }

    /// The elements in memory, one after another, whatever else needs that memory.
    pub(super) fn place_of(&mut self, val: &Val) -> Result<Place, Refusal> {
        let array = self.array_of(val)?;
        let shape = array.shape.to_vec();
        let stays = array.contiguous().is_some_and(|(handle, _)| self.stays_in_place(handle));
        let stored = if stays { array } else { self.copied(array, None)? };
        let (handle, first) = stored.contiguous().expect("it was stored so");
        let place = Place { buf: handle.buf, at: first.clone(), shape };
        self.hold(handle);
        Ok(place)
    }

    /// Whether memory may be pointed to: only loads and stores check how long a growing buffer is.
    pub(super) fn stays_in_place(&self, handle: &Handle) -> bool {
        self.form.buffers[handle.buf.index()].role != Role::Growing
    }

    /// Keeps memory from being used again before the instruction is done.
    pub(super) fn hold(&mut self, handle: &Rc<Handle>) {
        self.held.push(Rc::clone(handle));
    }

    /// The array in memory of its own, or as it is if it is in memory.
    pub(super) fn stored(&mut self, array: Arr, name: Option<std::sync::Arc<str>>) -> Result<Arr, Refusal> {
        if matches!(array.def, Def::Stored { .. }) {
            return Ok(array);
        }
        self.copied(array, name)
    }

    /// The elements in fresh memory.
    pub(super) fn copied(&mut self, array: Arr, name: Option<std::sync::Arc<str>>) -> Result<Arr, Refusal> {
        let handle = self.allocate(array.kind(), array.elements());
        let buffer = &mut self.form.buffers[handle.buf.index()];
        if buffer.name.is_none() {
            buffer.name = name;
        }
        let to = Place::first(handle.buf, array.shape.to_vec());
        self.fill(&to, &array)?;
        Ok(Arr::whole(array.elem, Rc::clone(&array.shape), handle))
    }

    /// Computes all elements into this place, whose memory none of them reads.
    pub(super) fn fill(&mut self, to: &Place, array: &Arr) -> Result<(), Refusal> {
        let strides = row_major(&to.shape);
        self.write_all(Transfer { array, buf: to.buf, first: &to.at, strides: &strides, adds: false })
    }

    /// Stores, or adds, every element.
    pub(super) fn write_all(&mut self, transfer: Transfer<'_>) -> Result<(), Refusal> {
        let Transfer { array, strides, .. } = transfer;
        if array.elements() == 0 {
            return Ok(());
        }
        // Rows of what is in one piece everywhere are one long row.
        if array.shape.len() > 1 && *strides == *row_major(&array.shape) && is_flat(array) {
            return self.write_boxes(Transfer { array: &flattened(array), strides: &[1], ..transfer });
        }
        self.write_boxes(transfer)
    }

    fn write_boxes(&mut self, transfer: Transfer<'_>) -> Result<(), Refusal> {
        let array = transfer.array;
        let whole: Region = array.shape.iter().map(|&n| (0, n as i64)).collect();
        let mut boxes = vec![whole];
        while let Some(region) = boxes.pop() {
            match self.in_block(|lower| lower.write_box(transfer, &region)) {
                Ok(stmts) => self.emit_all(stmts),
                Err(Failed::Refused(refusal)) => return Err(refusal),
                Err(Failed::Split(Split(axis, at))) => {
                    let (mut low, mut high) = (region.clone(), region);
                    low[axis].1 = at;
                    high[axis].0 = at;
                    boxes.push(high);
                    boxes.push(low);
                }
            }
        }
        Ok(())
    }

    /// The loops for one box.
    fn write_box(&mut self, transfer: Transfer<'_>, region: &Region) -> Result<(), Failed> {
        let mut functions = Vec::new();
        find_functions(transfer.array, &mut functions);
        let lengths: Vec<i64> = region.iter().map(|&(from, to)| to - from).collect();
        if functions.is_empty() || lengths.iter().product::<i64>() < LONG {
            let counters: Vec<Reg> = region.iter().map(|&(from, to)| self.counter(from, to - 1)).collect();
            let idx = counters.iter().map(|&counter| Index::reg(counter)).collect();
            let mut body = Body::new(idx, region.clone(), None, Scratch::default());
            let body = self.in_block(|lower| lower.element(transfer, &mut body))?;
            let axes = counters.into_iter().zip(region).map(|(reg, &(from, to))| (reg, from, to)).collect();
            self.emit(Stmt::Each { axes, body });
            return Ok(());
        }
        // As many of the last axes as are short stay whole, the one before them is cut into blocks, and the
        // others are gone through one by one.
        let (mut cut, mut inside) = (lengths.len() - 1, 1);
        while cut > 0 && inside * lengths[cut] <= BLOCK {
            inside *= lengths[cut];
            cut -= 1;
        }
        let block = (BLOCK / inside).max(1);
        let (outer, (from, to)) = (&region[..cut], region[cut]);
        let counters: Vec<Reg> = outer.iter().map(|&(from, to)| self.counter(0, to - from - 1)).collect();
        let idx: Vec<Index> = counters
            .iter()
            .zip(outer)
            .map(|(&counter, &(from, _))| Index { constant: from, terms: vec![(counter, 1)] })
            .collect();
        let tile = |start: Index, range: (i64, i64), length: i64| {
            let mut of = region.clone();
            of[cut] = range;
            let rest = region[cut + 1..].iter();
            Tile {
                idx: &idx,
                region: of,
                starts: core::iter::once(start)
                    .chain(rest.clone().map(|&(from, _)| Index::constant(from)))
                    .collect(),
                lengths: core::iter::once(length).chain(rest.map(|&(from, to)| to - from)).collect(),
            }
        };
        let blocks = (to - from) / block;
        let mut stmts = self.in_block(|lower| {
            let mut done = from;
            if blocks > 1 {
                done = from + blocks * block;
                let number = lower.counter(0, blocks - 1);
                let start = Index { constant: from, terms: vec![(number, block)] };
                let tile = tile(start, (from, done), block);
                let body = lower.in_block(|lower| lower.tile(transfer, &tile, &functions))?;
                lower.emit(plain_for(number, blocks, body));
            }
            if done < to {
                let tile = tile(Index::constant(done), (done, to), to - done);
                lower.tile(transfer, &tile, &functions)?;
            }
            Ok::<(), Failed>(())
        })?;
        for (&counter, &(from, to)) in counters.iter().zip(outer).rev() {
            stmts = vec![plain_for(counter, to - from, stmts)];
        }
        self.emit_all(stmts);
        Ok(())
    }

    /// A tile in which functions occur: each is computed separately, innermost first.
    fn tile(&mut self, transfer: Transfer<'_>, tile: &Tile<'_>, functions: &[Rc<Map>]) -> Result<(), Failed> {
        let Transfer { array, buf, first, strides, adds } = transfer;
        let mut scratch = Scratch::default();
        let mut kept = Vec::new();
        // A function of the whole formula is computed where its values go.
        let last = match (&array.def, functions.last()) {
            (Def::Map(map), Some(last)) if Rc::ptr_eq(map, last) => {
                // A kernel runs only where it is known to stay inside.
                let is_known =
                    first.known().is_some() && self.form.buffers[buf.index()].role == Role::Workspace;
                let are_together = row_major_of(&tile.lengths)
                    .zip(strides[tile.idx.len()..].iter().copied())
                    .zip(&tile.lengths);
                let are_together = are_together.into_iter().all(|((a, b), &length)| a == b || length == 1);
                !adds && is_known && array.elem == Elem::F64 && are_together
            }
            _ => false,
        };
        for (number, map) in functions.iter().enumerate() {
            let Op::Map(rule) = map.op else { unreachable!("functions are rows") };
            let is_last = last && number + 1 == functions.len();
            let (axes, mut body) = self.begin_tile(tile, scratch.clone());
            let idx = body.idx.clone();
            let (home, at, begin) = if is_last {
                let begin: Vec<Index> = tile.idx.iter().chain(&tile.starts).cloned().collect();
                (buf, self.address(first, strides, &idx)?, self.address(first, strides, &begin)?)
            } else {
                let handle = self.allocate(Kind::Real, tile.elements() as usize);
                let home = handle.buf;
                kept.push(handle);
                (home, body.number.clone().expect("an element of a tile"), Index::constant(0))
            };
            let stmts = self.in_block(|lower| {
                let argument = lower.arg(&map.args[0], &idx, &mut body)?;
                let from = lower.operand(&argument);
                lower.emit(Stmt::Store { buf: home, at, from });
                Ok::<(), Failed>(())
            })?;
            self.emit(Stmt::Each { axes, body: stmts });
            let place = Place { buf: home, at: begin, shape: vec![tile.elements() as usize] };
            self.emit(Stmt::Function { rule, place: place.clone() });
            if is_last {
                if self.form.traps {
                    self.emit(Stmt::AllFinite { place });
                }
                return Ok(());
            }
            scratch.insert(Rc::as_ptr(map), home);
        }
        let (axes, mut body) = self.begin_tile(tile, scratch);
        let body = self.in_block(|lower| lower.element(transfer, &mut body))?;
        self.emit(Stmt::Each { axes, body });
        Ok(())
    }

    /// The axes of a loop over a tile, and its body.
    fn begin_tile(&mut self, tile: &Tile<'_>, scratch: Scratch) -> (Vec<(Reg, i64, i64)>, Body) {
        let mut axes = Vec::new();
        let mut idx = tile.idx.to_vec();
        let mut number = Index::constant(0);
        for ((start, &length), stride) in
            tile.starts.iter().zip(&tile.lengths).zip(row_major_of(&tile.lengths))
        {
            let counter = self.counter(0, length - 1);
            axes.push((counter, 0, length));
            let along = Index::reg(counter);
            idx.push(start.plus(&along, 1).expect("an index inside"));
            number = number.plus(&along, stride).expect("a number in a tile");
        }
        (axes, Body::new(idx, tile.region.clone(), Some(number), scratch))
    }

    /// Stores, or adds, one element.
    fn element(&mut self, transfer: Transfer<'_>, body: &mut Body) -> Result<(), Failed> {
        let Transfer { array, buf, first, strides, adds } = transfer;
        let idx = body.idx.clone();
        let at = self.address(first, strides, &idx)?;
        let mut element = self.at(array, &idx, body)?;
        if adds {
            let old = self.register(Kind::Real);
            self.emit(Stmt::Load { to: old, buf, at: at.clone() });
            let more = self.operand(&element);
            let sum = self.map(rules::Row::Add.into(), vec![Operand::Reg(old), more], array.elem);
            element = Single::Real(sum);
        }
        let from = self.operand(&element);
        if self.form.traps && adds {
            self.emit(Stmt::Finite { a: from });
        }
        self.emit(Stmt::Store { buf, at, from });
        Ok(())
    }

    fn address(&self, first: &Index, strides: &[i64], idx: &[Index]) -> Result<Index, Refusal> {
        let mut at = first.clone();
        for (index, &stride) in idx.iter().zip(strides) {
            match at.plus(index, stride) {
                Some(sum) => at = sum,
                None => return self.refuse("an array that does not fit into memory"),
            }
        }
        Ok(at)
    }

    /// The element of an array at these indices, computed here.
    fn at(&mut self, array: &Arr, idx: &[Index], body: &mut Body) -> Result<Single, Failed> {
        match &array.def {
            Def::Stored { handle, first, strides } => {
                let at = self.address(first, strides, idx)?;
                if let Some(&known) = body.loaded.get(&(handle.buf, at.clone())) {
                    return Ok(self.as_single(known, array.elem));
                }
                let to = self.register(array.kind());
                self.emit(Stmt::Load { to, buf: handle.buf, at: at.clone() });
                body.loaded.insert((handle.buf, at), Operand::Reg(to));
                Ok(self.single(to))
            }
            Def::Filled(single) => Ok(single.clone()),
            Def::Iota => {
                let n = array.shape[0] as i64;
                Ok(Single::Whole(Whole { index: idx[0].clone(), least: 0, most: n - 1 }))
            }
            Def::Map(map) => {
                let key = (Rc::as_ptr(map), idx.to_vec());
                if let Some(known) = body.done.get(&key) {
                    return Ok(known.clone());
                }
                if let Some(&buf) = body.scratch.get(&Rc::as_ptr(map)) {
                    let at = body.number.clone().expect("an element of a tile");
                    let to = self.register(Kind::Real);
                    self.emit(Stmt::Load { to, buf, at });
                    let found = self.rounded(to, map.ty.elem);
                    if self.form.traps {
                        self.emit(Stmt::Finite { a: found });
                    }
                    let found = Single::Real(found);
                    body.done.insert(key, found.clone());
                    return Ok(found);
                }
                let mut args = Vec::with_capacity(map.args.len());
                for arg in &map.args {
                    args.push(self.arg(arg, idx, body)?);
                }
                let found = self.apply(&map.op, map.ty, &args)?;
                if let (true, Single::Real(a)) = (self.form.traps && map.op.facts().computes, &found) {
                    self.emit(Stmt::Finite { a: *a });
                }
                body.done.insert(key, found.clone());
                Ok(found)
            }
            Def::Moved { source, axes } => {
                let mut inner = Vec::with_capacity(axes.len());
                for Along { start, by } in axes.iter() {
                    let index = match by {
                        Some((axis, step)) => start.plus(&idx[*axis], *step),
                        None => Some(start.clone()),
                    };
                    match index {
                        Some(index) => inner.push(index),
                        None => {
                            return Err(self
                                .refuse::<()>("indices that overflow")
                                .expect_err("refused")
                                .into());
                        }
                    }
                }
                self.at(source, &inner, body)
            }
            Def::Concat { axis, parts } => {
                let (part, before) = self.part(*axis, parts, &idx[*axis], body)?;
                let mut inner = idx.to_vec();
                inner[*axis] = idx[*axis].offset(-before).expect("an index inside");
                self.at(&parts[part], &inner, body)
            }
        }
    }

    fn as_single(&self, operand: Operand, elem: Elem) -> Single {
        match (operand, Kind::of(elem)) {
            (Operand::Reg(reg), _) => self.single(reg),
            (operand, Kind::Real) => Single::Real(operand),
            (operand, Kind::Int | Kind::Bool) => Single::Truth(operand),
        }
    }

    fn arg(&mut self, arg: &Val, idx: &[Index], body: &mut Body) -> Result<Single, Failed> {
        match arg {
            Val::Single(single) => Ok(single.clone()),
            Val::Array(array) => self.at(array, idx, body),
            Val::Log(_) => unreachable!("logs have become arrays"),
        }
    }

    /// Which part of a concatenation an index meets, and what is before it; or where to split the box so that
    /// it meets only one.
    fn part(
        &mut self,
        axis: usize,
        parts: &[Arr],
        index: &Index,
        body: &Body,
    ) -> Result<(usize, i64), Failed> {
        let Some((low, high)) = body.range(index) else {
            return Err(self.refuse::<()>("a part of a concatenation").expect_err("refused").into());
        };
        let mut before = 0;
        for (number, part) in parts.iter().enumerate() {
            let length = part.shape[axis] as i64;
            let after = before + length;
            if low < after {
                if high < after {
                    return Ok((number, before));
                }
                return Err(Failed::Split(body.split(index, after)));
            }
            before = after;
        }
        unreachable!("an index is inside of the array")
    }

    /// The element of an array of one, as a scalar.
    pub(super) fn only_element(&mut self, array: Arr) -> Result<Val, Refusal> {
        let array = if array.is_computed() { self.stored(array, None)? } else { array };
        let idx = vec![Index::constant(0); array.shape.len()];
        let region = array.shape.iter().map(|_| (0, 1)).collect();
        let mut body = Body::new(idx.clone(), region, None, Scratch::default());
        match self.at(&array, &idx, &mut body) {
            Ok(single) => Ok(Val::Single(single)),
            Err(Failed::Refused(refusal)) => Err(refusal),
            Err(Failed::Split(_)) => unreachable!("one element is in one part"),
        }
    }

    /// Before a buffer is changed, computes the values that still read it.
    pub(super) fn settle(&mut self, buf: Buf) -> Result<(), Refusal> {
        if matches!(self.form.buffers[buf.index()].role, Role::Input(_)) {
            return Ok(());
        }
        let mut pending = core::mem::take(&mut self.frame_mut().pending);
        let mut at = self.frame().innermost;
        while at < pending.len() {
            let value = pending[at];
            match &self.frame().env[value.index()] {
                Some(Val::Array(array)) if !matches!(array.def, Def::Filled(_) | Def::Iota) => {
                    if self.owned(array).is_some() || !array.reads(buf) {
                        at += 1;
                        continue;
                    }
                    self.compute(value, None)?;
                }
                _ => {}
            }
            pending.swap_remove(at);
        }
        pending.append(&mut self.frame_mut().pending);
        self.frame_mut().pending = pending;
        Ok(())
    }

    /// Whether memory may be changed in place by its last user.
    pub(super) fn may_change(&self, handle: &Rc<Handle>) -> bool {
        let role = self.form.buffers[handle.buf.index()].role;
        !matches!(role, Role::Input(_)) && self.is_unique(handle)
    }
}

impl Body {
    fn new(idx: Vec<Index>, region: Region, number: Option<Index>, scratch: Scratch) -> Body {
        Body { idx, region, number, loaded: FastMap::default(), done: FastMap::default(), scratch }
    }

    /// An index as `start + step * i`, where `i` is the index along an axis of the box.
    fn along(&self, index: &Index) -> Option<(i64, Option<(usize, i64)>)> {
        if let Some(n) = index.known() {
            return Some((n, None));
        }
        for (axis, own) in self.idx.iter().enumerate() {
            let Some(&(reg, factor)) = own.terms.first() else { continue };
            let Ok(at) = index.terms.binary_search_by_key(&reg, |term| term.0) else { continue };
            let step = index.terms[at].1 / factor;
            if let Some(start) = index.plus(own, -step)?.known() {
                return Some((start, Some((axis, step))));
            }
        }
        None
    }

    /// The least and the largest value of an index, if it depends on one axis of the box at most.
    fn range(&self, index: &Index) -> Option<(i64, i64)> {
        let (start, Some((axis, step))) = self.along(index)? else {
            return index.known().map(|n| (n, n));
        };
        let (from, to) = self.region[axis];
        let ends = [start + step * from, start + step * (to - 1)];
        Some((ends[0].min(ends[1]), ends[0].max(ends[1])))
    }

    /// Where the box is split so that an index passes `border` only between the parts.
    fn split(&self, index: &Index, border: i64) -> Split {
        let Some((start, Some((axis, step)))) = self.along(index) else {
            unreachable!("an index that takes one value passes nothing")
        };
        // The first index along the axis on the other side.
        let at = if step > 0 {
            -(start - border).div_euclid(step)
        } else {
            (border - 1 - start).div_euclid(step) + i64::from((border - 1 - start).rem_euclid(step) != 0)
        };
        let (from, to) = self.region[axis];
        Split(axis, at.clamp(from + 1, to - 1))
    }
}

/// The distances between neighbours along each axis of a box whose elements lie in row-major order.
fn row_major_of(lengths: &[i64]) -> impl Iterator<Item = i64> {
    (0..lengths.len()).map(|axis| lengths[axis + 1..].iter().product())
}

fn single(val: Val) -> Single {
    match val {
        Val::Single(single) => single,
        Val::Array(_) | Val::Log(_) => unreachable!("typing: a scalar"),
    }
}

/// About how many additions an operation costs for an element.
fn own_cost(op: &Op) -> u32 {
    match op {
        Op::Map(rule) if Way::of(*rule) == Way::Function => 40,
        Op::Map(rule) if matches!(rule.row, rules::Row::Divide | rules::Row::Recip | rules::Row::Sqrt) => 4,
        _ => 1,
    }
}

/// Functions of one argument inside a formula, innermost first, each once.
fn find_functions(array: &Arr, found: &mut Vec<Rc<Map>>) {
    match &array.def {
        Def::Map(map) => {
            for arg in &map.args {
                if let Val::Array(array) = arg {
                    find_functions(array, found);
                }
            }
            let is_function =
                matches!(map.op, Op::Map(rule) if Way::of(rule) == Way::Function && rule.row.arity() == 1);
            if is_function
                && matches!(map.args[..], [Val::Array(_)])
                && !found.iter().any(|other| Rc::ptr_eq(other, map))
            {
                found.push(Rc::clone(map));
            }
        }
        Def::Stored { .. } | Def::Filled(_) | Def::Iota => {}
        // What is computed there is at other indices: the function is called for each element.
        Def::Moved { .. } => {}
        Def::Concat { .. } => {}
    }
}

/// Whether the elements of everything inside lie one after another, so that rows need not be told apart.
fn is_flat(array: &Arr) -> bool {
    match &array.def {
        Def::Stored { .. } => array.contiguous().is_some(),
        Def::Filled(_) => true,
        Def::Map(map) => map.args.iter().all(|arg| match arg {
            Val::Array(array) => is_flat(array),
            Val::Single(_) => true,
            Val::Log(_) => false,
        }),
        Def::Iota | Def::Moved { .. } | Def::Concat { .. } => false,
    }
}

/// The same elements along one axis.
fn flattened(array: &Arr) -> Arr {
    let shape: Rc<[usize]> = [array.elements()].into();
    let def = match &array.def {
        Def::Stored { handle, first, .. } => {
            Def::Stored { handle: Rc::clone(handle), first: first.clone(), strides: [1].into() }
        }
        Def::Map(map) => {
            let flat = |arg: &Val| match arg {
                Val::Array(array) => Val::Array(flattened(array)),
                other => other.clone(),
            };
            Def::Map(Rc::new(Map {
                op: map.op.clone(),
                ty: map.ty,
                args: map.args.iter().map(flat).collect(),
                cost: map.cost,
            }))
        }
        def => def.clone(),
    };
    Arr { elem: array.elem, shape, def }
}

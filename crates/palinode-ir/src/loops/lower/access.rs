//! Reading, writing and adding at places.
//!
//! A read is the same memory at other indices. A write changes the array where it is, if nothing else needs
//! it as it was; otherwise a copy.

use std::rc::Rc;
use std::sync::Arc;

use palinode_core::rules;

use super::super::form::{Buf, Index, Kind, Operand, Reg, Stmt};
use super::array::Transfer;
use super::value::{Along, Arr, Def, Handle, Log, Single, Val, Whole, row_major};
use super::{Lower, Refusal, plain_for};
use crate::op::{Axis, IntOp};
use crate::types::Type;

/// Where an access goes along one axis of an array.
struct Reach {
    /// The first index.
    start: Index,
    /// The step, and how many indices there are; `None` if the axis disappears.
    steps: Option<(i64, usize)>,
}

/// A range of indices along an axis.
struct Range {
    start: Whole,
    count: usize,
    step: i64,
    /// From the first index to the last.
    reach: i64,
}

/// An access, axis by axis; loops go through the lists of indices.
struct Region {
    reached: Vec<Reach>,
    /// The axes with lists, the lists, and the registers that hold an index inside of the loops.
    lists: Vec<(usize, Arr, Reg)>,
}

impl Lower<'_> {
    /// An access with operands that are known to be inside, or are checked here; `None` if it is certain to
    /// fail.
    fn region(
        &mut self,
        places: &[Axis],
        operands: &[Val],
        shape: &[usize],
    ) -> Result<Option<Region>, Refusal> {
        let mut rest = operands;
        let mut region = Region { reached: Vec::new(), lists: Vec::new() };
        for (axis, (place, &length)) in places.iter().zip(shape).enumerate() {
            let (mine, others) = rest.split_at(place.operands());
            rest = others;
            let reach = match place {
                Axis::All => Reach { start: Index::constant(0), steps: Some((1, length)) },
                Axis::At => {
                    let Some(start) = self.within(&whole(&mine[0]), 0, length) else { return Ok(None) };
                    Reach { start, steps: None }
                }
                Axis::Range => {
                    let Some(Range { start, count, step, reach }) = self.index_range(mine)? else {
                        return Ok(None);
                    };
                    let first = match count {
                        0 => Some(Index::constant(0)),
                        _ => self.within(&start, reach, length),
                    };
                    let Some(first) = first else { return Ok(None) };
                    Reach { start: first, steps: Some((step, count)) }
                }
                Axis::List => {
                    let list = self.array_of(&mine[0])?;
                    let list = if list.is_computed() { self.stored(list, None)? } else { list };
                    let reg = self.counter(0, (length as i64 - 1).max(0));
                    let count = list.shape[0];
                    region.lists.push((axis, list, reg));
                    Reach { start: Index::reg(reg), steps: Some((0, count)) }
                }
            };
            region.reached.push(reach);
        }
        Ok(Some(region))
    }

    /// The range that operands describe; `None` if its length is negative or its reach overflows.
    fn index_range(&self, operands: &[Val]) -> Result<Option<Range>, Refusal> {
        let (start, count, step) = (whole(&operands[0]), whole(&operands[1]), whole(&operands[2]));
        let (Some(count), Some(step)) = (count.index.known(), step.index.known()) else {
            return self.refuse("a range whose length or step depends on numbers");
        };
        let Ok(count) = usize::try_from(count) else { return Ok(None) };
        let reach = (count as i64 - 1).max(0).checked_mul(step);
        Ok(reach.map(|reach| Range { start, count, step, reach }))
    }

    /// An index that is inside of an axis together with the one `reach` further on: unchanged if that is
    /// certain, otherwise checked when the program runs; `None` if it cannot be.
    fn within(&mut self, at: &Whole, reach: i64, length: usize) -> Option<Index> {
        // Both ends are inside if the lower one is inside of an axis that is shorter by the reach.
        let length = (length as i64).checked_sub(i64::try_from(reach.unsigned_abs()).ok()?)?;
        let below = reach.min(0);
        let low = self.integer(IntOp::Add, at, &Whole::known(below));
        if low.most < 0 || low.least >= length {
            return None;
        }
        let inside = if low.least >= 0 && low.most < length {
            low.index
        } else {
            let from = self.whole(&low);
            // A register that nothing else sets.
            let to = self.counter(0, length - 1);
            self.emit(Stmt::Move { to, from });
            self.emit(Stmt::Within { a: Operand::Reg(to), length: Operand::Int(length) });
            Index::reg(to)
        };
        inside.offset(-below)
    }

    /// The elements that the axes name; `None` if that is certain to fail.
    pub(super) fn read(&mut self, places: &[Axis], args: Vec<Val>) -> Result<Option<Val>, Refusal> {
        let mut args = args;
        if let Val::Log(log) = &args[0]
            && log.length.index.known().is_none()
        {
            match places {
                [Axis::At] => return self.read_log(log, &args[1]).map(Some),
                [Axis::Range] => return self.read_log_range(log, &args[1..]),
                _ => {}
            }
        }
        let array = self.array_of(&args[0])?;
        args[0] = Val::Single(Single::Whole(Whole::known(0)));
        // The elements that are left out may fail.
        let array = if array.is_computed() { self.stored(array, None)? } else { array };
        let Some(region) = self.region(places, &args[1..], &array.shape)? else { return Ok(None) };
        if !region.lists.is_empty() {
            return self.gather(&array, region).map(Some);
        }
        let part = self.part_of(&array, &region)?;
        if part.shape.is_empty() { self.only_element(part).map(Some) } else { Ok(Some(Val::Array(part))) }
    }

    /// Reads an element of a log.
    fn read_log(&mut self, log: &Log, at: &Val) -> Result<Val, Refusal> {
        let at = whole(at);
        let a = self.whole(&at);
        let length = self.whole(&log.length);
        self.emit(Stmt::Within { a, length });
        let to = self.register(Kind::of(log.elem));
        self.emit(Stmt::Load { to, buf: log.handle.buf, at: at.index });
        Ok(Val::Single(self.single(to)))
    }

    /// A range of a log, as a view.
    fn read_log_range(&mut self, log: &Log, operands: &[Val]) -> Result<Option<Val>, Refusal> {
        let Some(Range { start, count, step, reach }) = self.index_range(operands)? else { return Ok(None) };
        let mut first = Index::constant(0);
        if count > 0 {
            let length = self.whole(&log.length);
            let last = self.integer(IntOp::Add, &start, &Whole::known(reach));
            for end in [&start, &last] {
                let a = self.whole(end);
                self.emit(Stmt::Within { a, length });
            }
            first = start.index;
        }
        let def = Def::Stored { handle: Rc::clone(&log.handle), first, strides: [step].into() };
        Ok(Some(Val::Array(Arr { elem: log.elem, shape: [count].into(), def })))
    }

    /// A part of an array, as a view of it.
    fn part_of(&mut self, array: &Arr, region: &Region) -> Result<Arr, Refusal> {
        let shape: Rc<[usize]> =
            region.reached.iter().filter_map(|reach| reach.steps.map(|(_, count)| count)).collect();
        match &array.def {
            Def::Stored { handle, first, strides } => {
                let (first, strides) = self.shifted(first, strides, region)?;
                let def = Def::Stored { handle: Rc::clone(handle), first, strides: strides.into() };
                Ok(Arr { elem: array.elem, shape, def })
            }
            Def::Filled(_) => Ok(Arr { shape, ..array.clone() }),
            _ => {
                let mut axis = 0;
                let along = region.reached.iter().map(|reach| {
                    let by = reach.steps.map(|(step, _)| {
                        axis += 1;
                        (axis - 1, step)
                    });
                    Along { start: reach.start.clone(), by }
                });
                let along: Rc<[Along]> = along.collect();
                // Where in a concatenation a place is must be known when the loop is written.
                let known = along.iter().all(|along| along.start.known().is_some());
                let source = if known { array.clone() } else { self.copied(array.clone(), None)? };
                if !known {
                    return self.part_of(&source, region);
                }
                Ok(Arr { elem: array.elem, shape, def: Def::Moved { source: Rc::new(source), axes: along } })
            }
        }
    }

    /// The place of the first element of a region, and the strides of its axes that stay.
    fn shifted(&self, first: &Index, strides: &[i64], region: &Region) -> Result<(Index, Vec<i64>), Refusal> {
        let (mut at, mut own) = (first.clone(), Vec::new());
        for (reach, &stride) in region.reached.iter().zip(strides) {
            let Some(sum) = at.plus(&reach.start, stride) else {
                return self.refuse("an array that does not fit into memory");
            };
            at = sum;
            if let Some((step, _)) = reach.steps {
                own.push(step * stride);
            }
        }
        Ok((at, own))
    }

    /// Elements that lists name, in new memory.
    fn gather(&mut self, array: &Arr, region: Region) -> Result<Val, Refusal> {
        let array = if matches!(array.def, Def::Stored { .. }) {
            array.clone()
        } else {
            self.copied(array.clone(), None)?
        };
        let part = self.part_of(&array, &region)?;
        let shape = Rc::clone(&part.shape);
        let handle = self.allocate(array.kind(), shape.iter().product());
        let made = Arr::whole(array.elem, Rc::clone(&shape), Rc::clone(&handle));
        let (first, strides) = (&Index::constant(0), &row_major(&shape)[..]);
        let transfer = Transfer { array: &part, buf: handle.buf, first, strides, adds: false };
        self.through(region, transfer, &array.shape)?;
        Ok(Val::Array(made))
    }

    /// Runs through the lists of a region; inside, everything that an element of each list names is
    /// transferred. Along the axes of lists, the strides on both sides are those of the lists.
    fn through(&mut self, region: Region, transfer: Transfer<'_>, lengths: &[usize]) -> Result<(), Refusal> {
        let stays: Vec<usize> =
            (0..region.reached.len()).filter(|&axis| region.reached[axis].steps.is_some()).collect();
        let of_result = |axis: usize| stays.iter().position(|&own| own == axis).expect("a list stays");
        let (mut part, mut at, mut strides) =
            (transfer.array.clone(), transfer.first.clone(), transfer.strides.to_vec());
        let mut loops = Vec::new();
        // From the last list to the first, so that the numbers of earlier axes stay valid.
        let mut lists = region.lists;
        lists.sort_by_key(|&(axis, ..)| core::cmp::Reverse(axis));
        for (axis, list, reg) in lists {
            let own = of_result(axis);
            let count = part.shape[own];
            if count == 0 {
                return Ok(());
            }
            let number = self.counter(0, count as i64 - 1);
            at = at.plus(&Index::reg(number), strides[own]).expect("a place inside");
            strides.remove(own);
            let mut shape = part.shape.to_vec();
            shape.remove(own);
            part = match &part.def {
                Def::Stored { handle, first, strides } => {
                    let step = strides[own];
                    let first = first.plus(&Index::reg(number), step).expect("a place inside");
                    let mut strides = strides.to_vec();
                    strides.remove(own);
                    let def = Def::Stored { handle: Rc::clone(handle), first, strides: strides.into() };
                    Arr { elem: part.elem, shape: shape.into(), def }
                }
                Def::Filled(_) => Arr { shape: shape.into(), ..part.clone() },
                _ => unreachable!("what lists go through is stored"),
            };
            loops.push((number, count, list, reg, lengths[axis]));
        }
        let innermost = Transfer { array: &part, first: &at, strides: &strides, ..transfer };
        let mut stmts = self.in_block(|lower| lower.write_all(innermost))?;
        for (number, count, list, reg, length) in loops {
            let body = self.in_block(|lower| {
                lower.move_named(&list, number, reg, length)?;
                lower.emit_all(stmts);
                Ok(())
            })?;
            stmts = vec![plain_for(number, count as i64, body)];
        }
        self.emit_all(stmts);
        Ok(())
    }

    /// Stops unless a list names places of an axis, each only once.
    fn distinct(&mut self, list: &Arr, length: usize) -> Result<(), Refusal> {
        let count = list.elements();
        if count < 2 {
            return Ok(());
        }
        if length == 0 {
            self.emit(Stmt::Stop);
            return Ok(());
        }
        let marks = self.allocate(Kind::Bool, length);
        let clear = self.counter(0, length as i64 - 1);
        let none = Stmt::Store { buf: marks.buf, at: Index::reg(clear), from: Operand::Bool(false) };
        self.emit(Stmt::Each { axes: vec![(clear, 0, length as i64)], body: vec![none] });
        let number = self.counter(0, count as i64 - 1);
        let body = self.in_block(|lower| {
            let place = lower.counter(0, length as i64 - 1);
            lower.move_named(list, number, place, length)?;
            let (old, is_new) = (lower.register(Kind::Bool), lower.register(Kind::Bool));
            let at = Index::reg(place);
            lower.emit(Stmt::Load { to: old, buf: marks.buf, at: at.clone() });
            lower.emit(Stmt::Not { to: is_new, a: Operand::Reg(old) });
            lower.emit(Stmt::Holds { a: Operand::Reg(is_new) });
            lower.emit(Stmt::Store { buf: marks.buf, at, from: Operand::Bool(true) });
            Ok(())
        })?;
        self.emit(plain_for(number, count as i64, body));
        Ok(())
    }

    /// Moves the index that a list has at a number to a register, and stops unless it is inside of its axis.
    fn move_named(&mut self, list: &Arr, number: Reg, to: Reg, length: usize) -> Result<(), Refusal> {
        let from = self.element_at_index(list, number)?;
        self.emit(Stmt::Move { to, from });
        self.emit(Stmt::Within { a: Operand::Reg(to), length: Operand::Int(length as i64) });
        Ok(())
    }

    /// An element of a vector of integers.
    fn element_at_index(&mut self, list: &Arr, number: Reg) -> Result<Operand, Refusal> {
        let (least, most) = self.ranges[number.index()];
        let at = Val::Single(Single::Whole(Whole { index: Index::reg(number), least, most }));
        let found = self.read(&[Axis::At], vec![Val::Array(list.clone()), at])?;
        let Some(Val::Single(single)) = found else { unreachable!("the counter of a list is inside") };
        Ok(self.operand(&single))
    }

    /// An array with `x` in some places, or added there; `None` if that is certain to fail.
    pub(super) fn update(
        &mut self,
        places: &[Axis],
        mut args: Vec<Val>,
        ty: Type,
        adds: bool,
    ) -> Result<Option<Val>, Refusal> {
        let operands = args.split_off(2);
        let x = args.pop().expect("what is written");
        let base = self.array_of(&args.pop().expect("an array"))?;
        let Some(region) = self.region(places, &operands, &base.shape)? else { return Ok(None) };
        drop(operands);
        let shape: Rc<[usize]> =
            region.reached.iter().filter_map(|reach| reach.steps.map(|(_, count)| count)).collect();
        let x = match x {
            Val::Single(single) => Arr { elem: ty.elem, shape: Rc::clone(&shape), def: Def::Filled(single) },
            other => {
                let x = self.array_of(&other)?;
                if x.shape != shape {
                    return Ok(None);
                }
                x
            }
        };
        if !adds {
            // A place twice is an error, which the interpreter names.
            let is_list = |axis: usize| region.lists.iter().any(|list| list.0 == axis);
            let is_twice = |(axis, reach): (usize, &Reach)| {
                matches!(reach.steps, Some((0, n)) if n > 1) && !is_list(axis)
            };
            if region.reached.iter().enumerate().any(is_twice) {
                return Ok(None);
            }
            for (axis, list, _) in &region.lists {
                self.distinct(list, base.shape[*axis])?;
            }
        }
        // What is read from the array is read before it is changed.
        let overlaps = matches!(&base.def, Def::Stored { handle, .. } if x.reads(handle.buf));
        let in_memory = matches!(x.def, Def::Stored { .. } | Def::Filled(_));
        let x = if overlaps || (!region.lists.is_empty() && !in_memory) { self.copied(x, None)? } else { x };
        let (base, handle) = self.changeable(base, None)?;
        let Def::Stored { first, strides, .. } = &base.def else { unreachable!("made so") };
        let (first, own) = self.shifted(first, strides, &region)?;
        let transfer = Transfer { array: &x, buf: handle.buf, first: &first, strides: &own, adds };
        if !region.lists.is_empty() {
            // The stride along the axis of a list is that of `x` only: the place is in the register of the
            // list.
            self.through(region, transfer, &base.shape)?;
        } else if shape.is_empty() {
            self.change_element(handle.buf, first, &x, ty, adds);
        } else if adds && region.reached.iter().any(|reach| matches!(reach.steps, Some((0, n)) if n > 1)) {
            // Everything is added to one place, so the order matters.
            return self.refuse("adding to one place many times, by a range with step 0");
        } else {
            self.write_all(transfer)?;
        }
        Ok(Some(Val::Array(base)))
    }

    fn change_element(&mut self, buf: Buf, at: Index, x: &Arr, ty: Type, adds: bool) {
        let Def::Filled(single) = &x.def else { unreachable!("typing: a scalar") };
        let mut from = self.operand(single);
        if adds {
            let old = self.register(Kind::Real);
            self.emit(Stmt::Load { to: old, buf, at: at.clone() });
            from = self.map(rules::Row::Add.into(), vec![Operand::Reg(old), from], ty.elem);
            if self.form.traps {
                self.emit(Stmt::Finite { a: from });
            }
        }
        self.emit(Stmt::Store { buf, at, from });
    }

    /// The array in memory that may be changed: its own, or a copy.
    pub(super) fn changeable(
        &mut self,
        base: Arr,
        name: Option<Arc<str>>,
    ) -> Result<(Arr, Rc<Handle>), Refusal> {
        if let Some(handle) = self.owned(&base) {
            self.settle(handle.buf)?;
            drop(handle);
            if let Some((handle, _)) = base.contiguous()
                && self.may_change(handle)
            {
                let handle = Rc::clone(handle);
                return Ok((base, handle));
            }
        }
        self.copied_apart(base, name)
    }

    /// The elements in fresh memory, and its handle.
    pub(super) fn copied_apart(
        &mut self,
        array: Arr,
        name: Option<Arc<str>>,
    ) -> Result<(Arr, Rc<Handle>), Refusal> {
        let copied = self.copied(array, name)?;
        let handle = Rc::clone(copied.contiguous().expect("it was stored so").0);
        Ok((copied, handle))
    }

    /// The memory of an array that fills it.
    pub(super) fn owned(&self, array: &Arr) -> Option<Rc<Handle>> {
        let (handle, first) = array.contiguous()?;
        let length = self.form.buffers[handle.buf.index()].length;
        (first.known() == Some(0) && length == array.elements() as u64).then(|| Rc::clone(handle))
    }
}

fn whole(operand: &Val) -> Whole {
    let Val::Single(Single::Whole(whole)) = operand else { unreachable!("typing: an integer") };
    whole.clone()
}

//! Reading, writing and adding at places.
//!
//! A read is the same memory at other indices. A write changes the array where it is, if nothing else needs
//! it as it was; otherwise a copy.

use std::rc::Rc;

use palinode_core::rules;

use super::super::form::{Buf, Index, Kind, Operand, Reg, Stmt};
use super::value::{Along, Arr, Def, Handle, Log, Single, Val, Whole};
use super::{Lower, Refusal};
use crate::op::{Axis, IntOp};
use crate::types::Type;

/// Where an access goes along one axis of an array.
struct Reach {
    /// The first index.
    start: Index,
    /// The step, and how many there are; nothing if the axis disappears.
    steps: Option<(i64, usize)>,
}

/// An access, axis by axis; a list of indices is what a loop goes through.
struct Region {
    reached: Vec<Reach>,
    /// The axes with lists, the indices in them, and the registers in which an index is inside of the loops.
    lists: Vec<(usize, Arr, Reg)>,
}

impl Lower<'_> {
    /// An access with operands that are known to be inside, or are checked here; nothing if it fails for
    /// sure.
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
            let whole = |at: usize| match &mine[at] {
                Val::Single(Single::Whole(whole)) => whole.clone(),
                _ => unreachable!("typing: an integer"),
            };
            let reach = match place {
                Axis::All => Reach { start: Index::constant(0), steps: Some((1, length)) },
                Axis::At => {
                    let Some(start) = self.within(&whole(0), 0, length) else { return Ok(None) };
                    Reach { start, steps: None }
                }
                Axis::Range => {
                    let (start, count, step) = (whole(0), whole(1), whole(2));
                    let (Some(count), Some(step)) = (count.index.known(), step.index.known()) else {
                        return self.refuse("a range whose length or step depends on numbers");
                    };
                    let Ok(count) = usize::try_from(count) else { return Ok(None) };
                    let mut first = Index::constant(0);
                    if count > 0 {
                        let Some(reach) = (count as i64 - 1).checked_mul(step) else { return Ok(None) };
                        let Some(start) = self.within(&start, reach, length) else { return Ok(None) };
                        first = start;
                    }
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

    /// An index that is inside, and so is what `reach` is away from it: as it is, if that is certain, else
    /// checked when the program runs; nothing if it cannot be.
    fn within(&mut self, at: &Whole, reach: i64, length: usize) -> Option<Index> {
        // Both ends are inside if the lower one is, of what is shorter by the reach.
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

    /// The elements that the axes name; nothing if that fails for sure.
    pub(super) fn read(&mut self, places: &[Axis], args: Vec<Val>) -> Result<Option<Val>, Refusal> {
        let mut args = args;
        if let (Val::Log(log), [Axis::At]) = (&args[0], places)
            && log.length.index.known().is_none()
        {
            let log = log.clone();
            return self.read_log(&log, &args[1]).map(Some);
        }
        if let (Val::Log(log), [Axis::Range]) = (&args[0], places)
            && log.length.index.known().is_none()
        {
            let log = log.clone();
            return self.read_log_range(&log, &args[1..]);
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
        let Val::Single(Single::Whole(at)) = at else { unreachable!("typing: an integer") };
        let a = self.whole(at);
        let length = self.whole(&log.length);
        self.emit(Stmt::Within { a, length });
        let to = self.register(Kind::of(log.elem));
        self.emit(Stmt::Load { to, buf: log.handle.buf, at: at.index.clone() });
        Ok(Val::Single(self.single(to)))
    }

    /// A range of a log, as a view.
    fn read_log_range(&mut self, log: &Log, operands: &[Val]) -> Result<Option<Val>, Refusal> {
        let whole = |at: usize| match &operands[at] {
            Val::Single(Single::Whole(whole)) => whole.clone(),
            _ => unreachable!("typing: an integer"),
        };
        let (start, count, step) = (whole(0), whole(1), whole(2));
        let (Some(count), Some(step)) = (count.index.known(), step.index.known()) else {
            return self.refuse("a range whose length or step depends on numbers");
        };
        let Ok(count) = usize::try_from(count) else { return Ok(None) };
        let mut first = Index::constant(0);
        if count > 0 {
            let Some(reach) = (count as i64 - 1).checked_mul(step) else { return Ok(None) };
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
        let Def::Stored { strides, .. } = &made.def else { unreachable!("made so") };
        self.through(region, &part, handle.buf, &Index::constant(0), strides, &array.shape, false)?;
        Ok(Val::Array(made))
    }

    /// Runs through the lists of a region; inside, everything that an element of each list names goes from a
    /// part to a place. Along axes of lists, strides of the part and the place are those of the lists.
    #[allow(clippy::too_many_arguments)] // a region, a source and a target
    fn through(
        &mut self,
        region: Region,
        part: &Arr,
        buf: Buf,
        first: &Index,
        strides: &[i64],
        lengths: &[usize],
        adds: bool,
    ) -> Result<(), Refusal> {
        let stays: Vec<usize> =
            (0..region.reached.len()).filter(|&axis| region.reached[axis].steps.is_some()).collect();
        let of_result = |axis: usize| stays.iter().position(|&own| own == axis).expect("a list stays");
        let (mut part, mut at, mut strides) = (part.clone(), first.clone(), strides.to_vec());
        let mut loops = Vec::new();
        // From the last list on, so that the numbers of the axes before stay.
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
        self.blocks.push(Vec::new());
        if part.elements() > 0 {
            self.write_all(buf, &at, &strides, &part, adds)?;
        }
        let mut stmts = self.blocks.pop().expect("just pushed");
        for (number, count, list, reg, length) in loops {
            self.blocks.push(Vec::new());
            let named = self.element_at_index(&list, number)?;
            self.emit(Stmt::Move { to: reg, from: named });
            self.emit(Stmt::Within { a: Operand::Reg(reg), length: Operand::Int(length as i64) });
            let mut body = self.blocks.pop().expect("just pushed");
            body.append(&mut stmts);
            let rounds = Operand::Int(count as i64);
            stmts = vec![Stmt::For { counter: number, rounds, descending: false, counts: false, body }];
        }
        self.blocks.last_mut().expect("a block is being written").append(&mut stmts);
        Ok(())
    }

    /// Stops unless a list names places of an axis, none of them twice.
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
        self.blocks.push(Vec::new());
        let named = self.element_at_index(list, number)?;
        let place = self.counter(0, length as i64 - 1);
        self.emit(Stmt::Move { to: place, from: named });
        self.emit(Stmt::Within { a: Operand::Reg(place), length: Operand::Int(length as i64) });
        let (old, is_new) = (self.register(Kind::Bool), self.register(Kind::Bool));
        let at = Index::reg(place);
        self.emit(Stmt::Load { to: old, buf: marks.buf, at: at.clone() });
        self.emit(Stmt::Not { to: is_new, a: Operand::Reg(old) });
        self.emit(Stmt::Holds { a: Operand::Reg(is_new) });
        self.emit(Stmt::Store { buf: marks.buf, at, from: Operand::Bool(true) });
        let body = self.blocks.pop().expect("just pushed");
        let rounds = Operand::Int(count as i64);
        self.emit(Stmt::For { counter: number, rounds, descending: false, counts: false, body });
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

    /// An array with `x` in some places, or added there; nothing if that fails for sure.
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
        let (base, handle) = self.changeable(base)?;
        let Def::Stored { first, strides, .. } = &base.def else { unreachable!("made so") };
        let (first, own) = self.shifted(first, strides, &region)?;
        if !region.lists.is_empty() {
            // The stride along the axis of a list is that of `x` only: the place is in the register of the
            // list.
            self.through(region, &x, handle.buf, &first, &own, &base.shape, adds)?;
        } else if shape.is_empty() {
            self.change_element(handle.buf, first, &x, ty, adds);
        } else if adds && region.reached.iter().any(|reach| matches!(reach.steps, Some((0, n)) if n > 1)) {
            // Everything is added to one place, in order: no loop of any order.
            return self.refuse("adding to one place again and again by a range without a step");
        } else {
            self.write_all(handle.buf, &first, &own, &x, adds)?;
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
    pub(super) fn changeable(&mut self, base: Arr) -> Result<(Arr, Rc<Handle>), Refusal> {
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
        let copied = self.copied(base, None)?;
        let handle = Rc::clone(copied.contiguous().expect("it was stored so").0);
        Ok((copied, handle))
    }

    /// The memory of an array that is all of what is in it.
    pub(super) fn owned(&self, array: &Arr) -> Option<Rc<Handle>> {
        let (handle, first) = array.contiguous()?;
        let length = self.form.buffers[handle.buf.index()].length;
        (first.known() == Some(0) && length == array.elements() as u64).then(|| Rc::clone(handle))
    }
}

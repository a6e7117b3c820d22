//! What one operation does to the memory of an imagined run: which arrays it takes over, changes, copies and
//! makes.

use smallvec::SmallVec;

use super::{Walk, Walked};
use crate::interp::{store_rule, workspace};
use crate::liveness::InstMarks;
use crate::op::{Axis, Op};
use crate::plan::buffers::{Buffer, Shape, elements};
use crate::plan::known::{Id, Ints, Thing};
use crate::plan::sizes::result_shapes;
use crate::plan::{Copied, PlanError, copies, ints};
use crate::program::{Inst, Value};
use crate::types::{Elem, Type};
use crate::work;

impl Walk<'_> {
    /// Any operation but loops, branches and calls.
    pub(super) fn operation(&mut self, inst: &Inst, marks: &InstMarks) -> Walked {
        let program = self.program;
        let function = program.function(self.function);
        let ty = |value: Value| function.ty(value);
        let result = inst.results[0];
        let sizes: SmallVec<[u64; 4]> = inst.args.iter().map(|&arg| self.size(self.get(arg))).collect();
        if inst.args.iter().all(|&arg| ty(arg).is_scalar()) && ty(result).is_scalar() {
            self.state.ledger.work += work::work(inst, 1, &sizes);
            if matches!(inst.op, Op::Fused) {
                return self.fused_scalars(inst);
            }
            let args: SmallVec<[Thing; 4]> = inst.args.iter().map(|&arg| self.get(arg)).collect();
            self.set(result, ints::scalar(&inst.op, &args, ty(result)));
            return Ok(());
        }
        self.flatten(inst)?;
        let mut args = self.fetch(&inst.args, &marks.dies);
        if let Op::Dim(axis) = inst.op {
            let length = args[0].shape(self.ledger())[usize::from(axis)].map(|length| length as i64);
            let thing = match length {
                Some(most) if args[0].is_at_most(self.ledger()) => Thing::UpTo(most),
                length => Thing::Int(length),
            };
            self.drop_all(&args);
            self.set(result, thing);
            return Ok(());
        }
        let workspace = self.workspace(inst, &args)?;
        self.state.ledger.reserve(workspace, 0);
        self.stop_at_peak()?;
        let results = match &inst.op {
            Op::Write(_) => {
                // Places are checked before the array is copied.
                self.state.ledger.give_back(workspace, 0);
                vec![self.changed(inst, &mut args)?]
            }
            op if op.consumes() == Some(0) => vec![self.changed(inst, &mut args)?],
            Op::Reshape => vec![self.reshaped(inst, &mut args)?],
            Op::Fused => self.fused(inst, marks, &mut args)?,
            _ => self.made(inst, &mut args)?,
        };
        if !matches!(inst.op, Op::Write(_)) {
            self.state.ledger.give_back(workspace, 0);
        }
        self.drop_all(&args);
        let made = results.iter().map(|&thing| self.size(thing)).max().unwrap_or(1);
        self.state.ledger.work += work::work(inst, made, &sizes);
        self.define(inst, &results);
        Ok(())
    }

    /// Brings operands into one buffer where the operation needs that.
    fn flatten(&mut self, inst: &Inst) -> Walked {
        for (at, &arg) in inst.args.iter().enumerate() {
            if let Thing::Array(id) = self.get(arg)
                && !store_rule::takes_chunks(&inst.op, at)
                && self.ledger().get(id).in_chunks()
            {
                let flat = self.copy(id, inst.span)?;
                self.set(arg, Thing::Array(flat));
            }
        }
        Ok(())
    }

    /// What the kernel takes while it runs.
    fn workspace(&self, inst: &Inst, args: &[Thing]) -> Walked<u64> {
        if !inst.op.facts().works_apart {
            return Ok(0);
        }
        let mut shapes: Vec<Vec<usize>> = Vec::new();
        for arg in args {
            let known: Option<Vec<usize>> =
                arg.shape(self.ledger()).iter().map(|&n| Some(n? as usize)).collect();
            let (what, span) = ("the length of an array", inst.span);
            shapes.push(known.ok_or(PlanError::DependsOnData { what, span })?);
        }
        let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
        let real = self.ledger().element_bytes(Elem::F64) as usize;
        Ok(workspace::workspace(&inst.op, &shapes, real) as u64)
    }

    /// The results of a fused loop: over operands that die and that nothing else holds, or fresh.
    fn fused(&mut self, inst: &Inst, marks: &InstMarks, args: &mut [Thing]) -> Walked<Vec<Thing>> {
        let function = self.program.function(self.function);
        let values = &inst.args;
        let taken = |at: usize| marks.dies[at] && !values[at + 1..].contains(&values[at]);
        let arrays: Vec<usize> = (0..args.len()).filter(|&at| matches!(args[at], Thing::Array(_))).collect();
        let lent: Vec<(Elem, bool)> =
            arrays.iter().map(|&at| (function.ty(values[at]).elem, taken(at))).collect();
        let kinds: Vec<Elem> = inst.results.iter().map(|&result| function.ty(result).elem).collect();
        let shapes = result_shapes(&inst.op, args, inst.results.len(), self.ledger());
        let at_most = args.iter().any(|arg| arg.is_at_most(self.ledger()));
        let mut results = Vec::new();
        for ((&elem, over), shape) in kinds.iter().zip(store_rule::fused_reuses(&lent, &kinds)).zip(shapes) {
            let Some(at) = over.map(|at| arrays[at]) else {
                let id = self.allocate(elem, shape, inst.span)?;
                self.state.ledger.get_mut(id).at_most = at_most;
                results.push(Thing::Array(id));
                continue;
            };
            let Thing::Array(mut id) = args[at] else { unreachable!("it is an array") };
            // An operand that is named twice is in one register: its other uses see what becomes of that.
            let others: Vec<usize> = (0..at).filter(|&other| values[other] == values[at]).collect();
            if !self.ledger().is_held(id, 1 + others.len()) {
                id = self.copy(id, inst.span)?;
            }
            args[at] = Thing::Unset;
            self.drop_all(&others.iter().map(|&other| args[other]).collect::<Vec<_>>());
            others.iter().for_each(|&other| args[other] = Thing::Unset);
            self.state.ledger.get_mut(id).ints = None;
            results.push(Thing::Array(id));
        }
        Ok(results)
    }

    /// How many elements something has; 1 for a scalar.
    pub(super) fn size(&self, thing: Thing) -> u64 {
        match thing {
            Thing::Array(id) => self.ledger().get(id).elements().unwrap_or(0),
            Thing::Unset | Thing::Real | Thing::Int(_) | Thing::UpTo(_) => 1,
        }
    }

    /// A fused operation on scalars only is its block.
    fn fused_scalars(&mut self, inst: &Inst) -> Walked {
        let function = self.program.function(self.function);
        for &result in &inst.results {
            let thing = if function.ty(result).is_real() { Thing::Real } else { Thing::Int(None) };
            self.set(result, thing);
        }
        Ok(())
    }

    /// `write`, `add_at`, `push`, `resize`: in place if nothing else holds the array.
    fn changed(&mut self, inst: &Inst, args: &mut [Thing]) -> Walked<Thing> {
        let Thing::Array(mut id) = args[0] else { unreachable!("the verifier: an array is changed") };
        let shapes = result_shapes(&inst.op, args, 1, self.ledger());
        args[0] = Thing::Unset;
        if !self.ledger().is_held_once(id) {
            self.note_copy(inst, id);
            id = self.copy(id, inst.span)?;
        }
        match &inst.op {
            Op::Push => self.pushed(inst, id, &args[1..])?,
            Op::Resize => {
                let is_bound = args[1].is_at_most(self.ledger());
                self.resized(inst, id, &shapes[0], is_bound)?;
            }
            op => {
                let at = match (op, &*args) {
                    (Op::Write(axes), [_, x, index]) if axes[..] == [Axis::At] => Some((index.int(), *x)),
                    _ => None,
                };
                let buffer = self.state.ledger.get_mut(id);
                buffer.ints = buffer.ints.take().and_then(|ints| {
                    let (index, value) = at?;
                    ints.with(index, value)
                });
            }
        }
        Ok(Thing::Array(id))
    }

    fn pushed(&mut self, inst: &Inst, id: Id, added: &[Thing]) -> Walked {
        for thing in added {
            let more = elements(&thing.shape(self.ledger()));
            let span = inst.span;
            let more = more.ok_or(PlanError::DependsOnData { what: "the length of an array", span })?;
            self.state.ledger.grow(id, more);
            self.stop_at_peak()?;
            let is_bound = thing.id().is_some() && thing.is_at_most(self.ledger());
            let buffer = self.state.ledger.get_mut(id);
            buffer.at_most |= is_bound;
            if buffer.elem == Elem::Int || buffer.elem == Elem::Bool {
                let known = buffer.ints.take();
                if thing.id().is_none() {
                    // Where the entry goes is not known if the length is not.
                    let fits = |ints: &Ints| !buffer.at_most || ints.is_constant();
                    let pushed = known.filter(fits).and_then(|ints| ints.pushed(*thing));
                    buffer.ints = pushed.filter(fits);
                }
            }
        }
        Ok(())
    }

    fn resized(&mut self, inst: &Inst, id: Id, shape: &Shape, is_bound: bool) -> Walked {
        let span = inst.span;
        let length = elements(shape);
        let length = length.ok_or(PlanError::DependsOnData { what: "the length of an array", span })?;
        self.state.ledger.resize(id, length);
        self.state.ledger.get_mut(id).at_most = is_bound;
        self.stop_at_peak()
    }

    fn reshaped(&mut self, inst: &Inst, args: &mut [Thing]) -> Walked<Thing> {
        let is_scalar = self.program.function(self.function).ty(inst.results[0]).is_scalar();
        let (Thing::Array(mut id), false) = (args[0], is_scalar) else {
            return Ok(self.made(inst, args)?[0]);
        };
        let shape = result_shapes(&inst.op, args, 1, self.ledger()).remove(0);
        args[0] = Thing::Unset;
        if !self.ledger().is_held_once(id) {
            id = self.copy(id, inst.span)?;
        }
        let is_bound = args.iter().any(|arg| arg.is_at_most(&self.state.ledger));
        let buffer = self.state.ledger.get_mut(id);
        buffer.at_most |= is_bound;
        buffer.shape = shape;
        buffer.ints = None;
        Ok(Thing::Array(id))
    }

    /// Fresh results, or one in the memory of an operand that nothing else needs.
    fn made(&mut self, inst: &Inst, args: &mut [Thing]) -> Walked<Vec<Thing>> {
        let function = self.program.function(self.function);
        let shapes = result_shapes(&inst.op, args, inst.results.len(), self.ledger());
        let free: Vec<Option<Elem>> = args
            .iter()
            .map(|arg| match arg {
                Thing::Array(id) if self.ledger().is_held_once(*id) => Some(self.ledger().get(*id).elem),
                Thing::Array(_) | Thing::Unset | Thing::Real | Thing::Int(_) | Thing::UpTo(_) => None,
            })
            .collect();
        if !function.ty(inst.results[0]).is_scalar()
            && let Some(at) = store_rule::reuses(&inst.op, function.ty(inst.results[0]).elem, &free)
            && let Thing::Array(id) = args[at]
        {
            self.state.ledger.get_mut(id).ints = None;
            args[at] = Thing::Unset;
            return Ok(vec![Thing::Array(id)]);
        }
        let mut results = Vec::new();
        for (&result, shape) in inst.results.iter().zip(shapes) {
            let ty = function.ty(result);
            results.push(if ty.is_scalar() {
                self.read_scalar(inst, args, ty)
            } else {
                let id = self.allocate(ty.elem, shape, inst.span)?;
                let at_most = args.iter().any(|arg| arg.is_at_most(self.ledger()));
                let ints = known_ints(&inst.op, args, self.ledger().get(id));
                let buffer = self.state.ledger.get_mut(id);
                (buffer.ints, buffer.at_most) = (ints, at_most);
                Thing::Array(id)
            });
        }
        Ok(results)
    }

    fn read_scalar(&mut self, inst: &Inst, args: &[Thing], ty: Type) -> Thing {
        if ty.is_real() {
            return Thing::Real;
        }
        let (Op::Read(axes), [Thing::Array(id), index]) = (&inst.op, args) else { return Thing::Int(None) };
        let Some(ints) = self.ledger().get(*id).ints.as_ref().filter(|_| axes[..] == [Axis::At]) else {
            return Thing::Int(None);
        };
        match index.int() {
            Some(at) => ints.get(at),
            // All the same, wherever it is.
            None if ints.is_constant() => ints.get(0),
            None => match ints.most() {
                Some(most) => {
                    self.exact = false;
                    Thing::UpTo(most)
                }
                None => Thing::Int(None),
            },
        }
    }

    fn note_copy(&mut self, inst: &Inst, id: Id) {
        let elements = self.ledger().get(id).elements().unwrap_or(0);
        let key = (self.function, inst.results[0]);
        let function = self.program.function(self.function);
        let entry = self.copies.entry(key).or_insert_with(|| {
            let because = copies::reason(function, inst.results[0]);
            Copied { value: key, span: inst.span, because, times: 0, elements: 0 }
        });
        entry.times += 1;
        entry.elements += elements;
    }
}

/// The integers of a vector that an operation makes, where that is simple.
fn known_ints(op: &Op, args: &[Thing], made: &Buffer) -> Option<Ints> {
    const MOST: u64 = 1 << 20;
    let count = made.elements().filter(|&count| count <= MOST && made.shape.len() == 1)?;
    match (op, made.elem) {
        (Op::Iota, _) => Some(Ints::new((0..count as i64).map(Some).collect())),
        (Op::Broadcast(_), Elem::Int | Elem::Bool) => Some(Ints::new(vec![args[0].int(); count as usize])),
        _ => None,
    }
}

//! The loop over the instructions.
//!
//! It allocates nothing of its own; arrays are moved between registers, and changed in place when nothing
//! else holds them.

use palinode_core::{Real, rules};

use super::{Failure, Frame, Machine, Observer};
use crate::interp::code::Ins;
use crate::interp::error::RunErrorKind;
use crate::interp::scalar_ops::{compare_reals, integer, overflow};
use crate::interp::store::Store;
use crate::interp::store_rule::Event;
use crate::interp::trap;
use crate::interp::value::{Array, from_int, round32, stop, to_int};
use crate::op::{Comparison, IntOp};

#[cold]
#[inline(never)]
fn out_of_range(index: i64, axis: usize, length: usize) -> RunErrorKind {
    RunErrorKind::IndexOutOfRange { index, axis, length }
}

/// The error of an index into a rank-1 array.
#[cold]
#[inline(never)]
fn outside<T: Copy>(store: &Store<T>, i: i64) -> RunErrorKind {
    out_of_range(i, 0, store.len())
}

/// An element of a rank-1 array.
#[inline(always)]
fn element<T: Copy>(store: &Store<T>, i: i64) -> Result<T, RunErrorKind> {
    // A negative index becomes a huge one.
    store.get(i as usize).ok_or_else(|| outside(store, i))
}

/// The place of an element of a rank-1 array.
#[inline(always)]
fn element_mut<T: Copy>(store: &mut Store<T>, i: i64) -> Result<&mut T, RunErrorKind> {
    let at = i as usize;
    if at >= store.len() {
        return Err(outside(store, i));
    }
    Ok(store.get_mut(at).expect("it is inside"))
}

/// The offset of an element of a matrix.
#[inline(always)]
fn offset2<T: Copy>(store: &Store<T>, i: i64, j: i64) -> Result<usize, RunErrorKind> {
    let (rows, columns) = (store.shape[0], store.shape[1]);
    let (row, column) = (i as usize, j as usize);
    if row >= rows {
        Err(out_of_range(i, 0, rows))
    } else if column >= columns {
        Err(out_of_range(j, 1, columns))
    } else {
        Ok(row * columns + column)
    }
}

impl<R: Real> Machine<'_, R> {
    /// Runs until the outermost frame returns; its registers are left in place.
    ///
    /// A recorded run counts its instructions and notes what loops and branches do; one that is not has no
    /// code for it.
    pub(super) fn execute<const RECORDED: bool>(
        &mut self,
        mut frame: Frame,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        let functions = self.functions;
        let trapping = self.limits.trap_nonfinite;
        // Steps until the next look at the limits; `allowed` was the number at the last one.
        let (mut allowed, mut fuel) = (0u64, 0u64);
        'frames: loop {
            let function = &functions[frame.function];
            let code = &function.code[..];
            let mut next = frame.next;
            let mut at;
            macro_rules! checked {
                ($result:expr) => {
                    match $result {
                        Ok(value) => value,
                        Err(kind) => return Err(Failure { kind, function: frame.function, at }),
                    }
                };
            }
            macro_rules! step {
                () => {
                    if fuel == 0 {
                        fuel = checked!(self.refill(&mut allowed, observer));
                    }
                    fuel -= 1;
                };
            }
            'windows: loop {
                let [reals, ints, bools, arrays] = function.sizes;
                let r = &mut self.reals[frame.bases[0]..][..reals];
                let n = &mut self.ints[frame.bases[1]..][..ints];
                let t = &mut self.bools[frame.bases[2]..][..bools];
                let v = &mut self.arrays[frame.bases[3]..][..arrays];
                let memory = &mut self.memory;
                macro_rules! real {
                    ($d:expr, $row:expr, [$($x:expr),+], $value:expr) => {{
                        let value: R = $value;
                        if trapping {
                            checked!(trap::check_row($row, &[$($x),+], value));
                        }
                        r[$d as usize] = value;
                    }};
                }
                macro_rules! loop_step {
                    () => {
                        if fuel == 0 {
                            // Looking at the limits needs the whole machine: come back here afterwards.
                            fuel = checked!(self.refill(&mut allowed, observer));
                            fuel -= 1;
                            continue 'windows;
                        }
                        fuel -= 1;
                    };
                }
                loop {
                    at = next;
                    next += 1;
                    if RECORDED {
                        memory.stats.instructions += 1;
                    }
                    match code[at] {
                        Ins::Add { d, a, b } => {
                            let (x, y) = (r[a as usize], r[b as usize]);
                            real!(d, rules::Row::Add, [x, y], x + y);
                        }
                        Ins::Sub { d, a, b } => {
                            let (x, y) = (r[a as usize], r[b as usize]);
                            real!(d, rules::Row::Subtract, [x, y], x - y);
                        }
                        Ins::Mul { d, a, b } => {
                            let (x, y) = (r[a as usize], r[b as usize]);
                            real!(d, rules::Row::Multiply, [x, y], x * y);
                        }
                        Ins::Div { d, a, b } => {
                            let (x, y) = (r[a as usize], r[b as usize]);
                            real!(d, rules::Row::Divide, [x, y], x / y);
                        }
                        Ins::StrongMul { d, a, b } => {
                            let (x, y) = (r[a as usize], r[b as usize]);
                            real!(d, rules::Row::StrongMul, [x, y], x.strong_mul(y));
                        }
                        Ins::Neg { d, a } => r[d as usize] = -r[a as usize],
                        Ins::Map1 { row, d, a, parameter } => {
                            let x = r[a as usize];
                            real!(d, row, [x], row_value(row, parameter, &[x]));
                        }
                        Ins::Map2 { row, d, a, b } => {
                            let (x, y) = (r[a as usize], r[b as usize]);
                            real!(d, row, [x, y], row_value(row, 0, &[x, y]));
                        }
                        Ins::Map3 { row, d, a, b, c } => {
                            let (x, y, w) = (r[a as usize], r[b as usize], r[c as usize]);
                            real!(d, row, [x, y, w], row_value(row, 0, &[x, y, w]));
                        }
                        Ins::Round32 { d, a } => {
                            let x = r[a as usize];
                            let rounded = round32(x);
                            if trapping {
                                checked!(trap::check_named("rounding to f32", &[x], rounded));
                            }
                            r[d as usize] = rounded;
                        }
                        Ins::Stop { d, a } => r[d as usize] = stop(r[a as usize]),
                        Ins::SelectReal { d, c, a, b } => {
                            r[d as usize] = if t[c as usize] { r[a as usize] } else { r[b as usize] };
                        }
                        Ins::SelectInt { d, c, a, b } => {
                            n[d as usize] = if t[c as usize] { n[a as usize] } else { n[b as usize] };
                        }
                        Ins::SelectBool { d, c, a, b } => {
                            t[d as usize] = if t[c as usize] { t[a as usize] } else { t[b as usize] };
                        }
                        Ins::LessReal { d, a, b } => {
                            t[d as usize] = compare_reals(Comparison::Less, r[a as usize], r[b as usize]);
                        }
                        Ins::LessEqReal { d, a, b } => {
                            t[d as usize] = compare_reals(Comparison::LessEq, r[a as usize], r[b as usize]);
                        }
                        Ins::EqualReal { d, a, b } => {
                            t[d as usize] = compare_reals(Comparison::Equal, r[a as usize], r[b as usize]);
                        }
                        Ins::LessInt { d, a, b } => t[d as usize] = n[a as usize] < n[b as usize],
                        Ins::LessEqInt { d, a, b } => t[d as usize] = n[a as usize] <= n[b as usize],
                        Ins::EqualInt { d, a, b } => t[d as usize] = n[a as usize] == n[b as usize],
                        Ins::IntAdd { d, a, b } => {
                            let (x, y) = (n[a as usize], n[b as usize]);
                            n[d as usize] =
                                checked!(x.checked_add(y).ok_or_else(|| overflow(IntOp::Add, x, y)));
                        }
                        Ins::IntSub { d, a, b } => {
                            let (x, y) = (n[a as usize], n[b as usize]);
                            n[d as usize] =
                                checked!(x.checked_sub(y).ok_or_else(|| overflow(IntOp::Sub, x, y)));
                        }
                        Ins::IntMul { d, a, b } => {
                            let (x, y) = (n[a as usize], n[b as usize]);
                            n[d as usize] =
                                checked!(x.checked_mul(y).ok_or_else(|| overflow(IntOp::Mul, x, y)));
                        }
                        Ins::IntOther { op, d, a, b } => {
                            n[d as usize] = checked!(integer(op, n[a as usize], n[b as usize]));
                        }
                        Ins::And { d, a, b } => t[d as usize] = t[a as usize] & t[b as usize],
                        Ins::Or { d, a, b } => t[d as usize] = t[a as usize] | t[b as usize],
                        Ins::Not { d, a } => t[d as usize] = !t[a as usize],
                        Ins::RealToInt { d, a } => n[d as usize] = checked!(to_int(r[a as usize])),
                        Ins::IntToReal { d, a } => r[d as usize] = from_int(n[a as usize]),

                        Ins::MoveReal { d, a } => r[d as usize] = r[a as usize],
                        Ins::MoveInt { d, a } => n[d as usize] = n[a as usize],
                        Ins::MoveBool { d, a } => t[d as usize] = t[a as usize],
                        Ins::TakeArray { d, a } => {
                            v[d as usize] = core::mem::replace(&mut v[a as usize], Array::Empty);
                        }
                        Ins::ShareArray { d, a } => v[d as usize] = v[a as usize].clone(),
                        Ins::Release { a } => v[a as usize] = Array::Empty,

                        Ins::Jump { to } => next = to as usize,
                        Ins::JumpIfNot { c, to } => {
                            if RECORDED {
                                memory.ledger.note_decision(frame.function, at, t[c as usize]);
                            }
                            if !t[c as usize] {
                                next = to as usize;
                            }
                        }
                        Ins::JumpBack { to } => {
                            next = to as usize;
                            loop_step!();
                        }
                        Ins::ForUp { k, n: count, end } => {
                            n[k as usize] = 0;
                            if RECORDED {
                                memory.ledger.note(Event::Rounds(n[count as usize].max(0) as u64));
                            }
                            if n[count as usize] <= 0 {
                                next = end as usize;
                            }
                        }
                        Ins::ForDown { k, n: count, end } => {
                            let last = n[count as usize].saturating_sub(1);
                            n[k as usize] = last;
                            if RECORDED {
                                memory.ledger.note(Event::Rounds((last + 1).max(0) as u64));
                            }
                            if last < 0 {
                                next = end as usize;
                            }
                        }
                        Ins::NextUp { k, n: count, body } => {
                            let round = n[k as usize] + 1;
                            n[k as usize] = round;
                            if round < n[count as usize] {
                                next = body as usize;
                            }
                            loop_step!();
                        }
                        Ins::NextDown { k, body } => {
                            let round = n[k as usize] - 1;
                            n[k as usize] = round;
                            if round >= 0 {
                                next = body as usize;
                            }
                            loop_step!();
                        }

                        Ins::ReadReal1 { d, a, i } => {
                            r[d as usize] = checked!(element(v[a as usize].reals(), n[i as usize]));
                        }
                        Ins::ReadReal2 { d, a, i, j } => {
                            let store = v[a as usize].reals();
                            let place = checked!(offset2(store, n[i as usize], n[j as usize]));
                            r[d as usize] = store.data()[place];
                        }
                        Ins::ReadInt1 { d, a, i } => {
                            n[d as usize] = checked!(element(v[a as usize].ints(), n[i as usize]));
                        }
                        Ins::ReadInt2 { d, a, i, j } => {
                            let store = v[a as usize].ints();
                            let place = checked!(offset2(store, n[i as usize], n[j as usize]));
                            n[d as usize] = store.data()[place];
                        }
                        Ins::ReadBool1 { d, a, i } => {
                            t[d as usize] = checked!(element(v[a as usize].bools(), n[i as usize]));
                        }
                        Ins::WriteReal1 { a, i, x } => {
                            let store = checked!(v[a as usize].reals_mut("write", memory));
                            *checked!(element_mut(store, n[i as usize])) = r[x as usize];
                        }
                        Ins::WriteReal2 { a, i, j, x } => {
                            let store = checked!(v[a as usize].reals_mut("write", memory));
                            let place = checked!(offset2(store, n[i as usize], n[j as usize]));
                            store.data_mut()[place] = r[x as usize];
                        }
                        Ins::WriteInt1 { a, i, x } => {
                            let store = checked!(v[a as usize].ints_mut("write", memory));
                            *checked!(element_mut(store, n[i as usize])) = n[x as usize];
                        }
                        Ins::WriteInt2 { a, i, j, x } => {
                            let store = checked!(v[a as usize].ints_mut("write", memory));
                            let place = checked!(offset2(store, n[i as usize], n[j as usize]));
                            store.data_mut()[place] = n[x as usize];
                        }
                        Ins::WriteBool1 { a, i, x } => {
                            let store = checked!(v[a as usize].bools_mut("write", memory));
                            *checked!(element_mut(store, n[i as usize])) = t[x as usize];
                        }
                        Ins::AddAt1 { a, i, x } => {
                            let store = checked!(v[a as usize].reals_mut("add_at", memory));
                            let place = checked!(element_mut(store, n[i as usize]));
                            let (old, more) = (*place, r[x as usize]);
                            *place = old + more;
                            if trapping {
                                checked!(trap::check_named("add_at", &[old, more], old + more));
                            }
                        }
                        Ins::AddAt2 { a, i, j, x } => {
                            let store = checked!(v[a as usize].reals_mut("add_at", memory));
                            let place = checked!(offset2(store, n[i as usize], n[j as usize]));
                            let place = &mut store.data_mut()[place];
                            let (old, more) = (*place, r[x as usize]);
                            *place = old + more;
                            if trapping {
                                checked!(trap::check_named("add_at", &[old, more], old + more));
                            }
                        }
                        Ins::PushReal { a, x } => {
                            let log = checked!(v[a as usize].reals_mut("push", memory));
                            checked!(log.push(r[x as usize], memory));
                        }
                        Ins::PushReals { a, list, count } => {
                            let log = checked!(v[a as usize].reals_mut("push", memory));
                            let slots = &function.lists[list as usize..][..count as usize];
                            for &slot in slots {
                                checked!(log.push(r[slot as usize], memory));
                            }
                        }
                        Ins::PushInt { a, x } => {
                            let log = checked!(v[a as usize].ints_mut("push", memory));
                            checked!(log.push(n[x as usize], memory));
                        }
                        Ins::PushBool { a, x } => {
                            let log = checked!(v[a as usize].bools_mut("push", memory));
                            checked!(log.push(t[x as usize], memory));
                        }
                        Ins::Dim { d, a, axis } => {
                            n[d as usize] = v[a as usize].shape()[axis as usize] as i64;
                        }

                        Ins::Fused { site, k, n: count, end } => {
                            let site = &function.fused[site as usize];
                            let elements = checked!(self.start_fused(&frame, site));
                            let done = checked!(self.by_strips(&frame, site, elements));
                            if RECORDED {
                                self.memory.stats.instructions += site.instructions * done as u64;
                            }
                            // What is left is done place by place: all, or from where something is wrong.
                            self.ints[frame.bases[1] + k as usize] = done;
                            self.ints[frame.bases[1] + count as usize] = elements;
                            if done == elements {
                                next = end as usize;
                            }
                            continue 'windows;
                        }
                        Ins::NextElement { k, n: count, body } => {
                            let element = n[k as usize] + 1;
                            n[k as usize] = element;
                            if element < n[count as usize] {
                                next = body as usize;
                            }
                        }
                        Ins::LoadReal { d, a, k } => {
                            r[d as usize] = v[a as usize].reals().data()[n[k as usize] as usize];
                        }
                        Ins::LoadInt { d, a, k } => {
                            n[d as usize] = v[a as usize].ints().data()[n[k as usize] as usize];
                        }
                        Ins::LoadBool { d, a, k } => {
                            t[d as usize] = v[a as usize].bools().data()[n[k as usize] as usize];
                        }
                        Ins::StoreReal { a, k, x } => {
                            let place = n[k as usize] as usize;
                            let store = checked!(v[a as usize].reals_mut("fused", memory));
                            store.data_mut()[place] = r[x as usize];
                        }
                        Ins::StoreInt { a, k, x } => {
                            let place = n[k as usize] as usize;
                            let store = checked!(v[a as usize].ints_mut("fused", memory));
                            store.data_mut()[place] = n[x as usize];
                        }
                        Ins::StoreBool { a, k, x } => {
                            let place = n[k as usize] as usize;
                            let store = checked!(v[a as usize].bools_mut("fused", memory));
                            store.data_mut()[place] = t[x as usize];
                        }

                        Ins::SweepStart { site } => {
                            checked!(self.sweep_start(&frame, site as usize));
                            continue 'windows;
                        }
                        Ins::SweepNext { site } => {
                            next = checked!(self.sweep_next(&frame, site as usize, observer));
                            continue 'windows;
                        }
                        Ins::General { site } => {
                            checked!(self.general(&frame, site as usize));
                            continue 'windows;
                        }
                        Ins::Call { site } => {
                            step!();
                            let site = &function.calls[site as usize];
                            if self.callers.len() >= self.limits.depth as usize {
                                let kind = RunErrorKind::DepthLimit { limit: self.limits.depth };
                                return Err(Failure { kind, function: frame.function, at });
                            }
                            checked!(self.charge_frame(site.callee as usize, self.callers.len() + 2));
                            let callee = self.enter(site.callee as usize);
                            for (&operand, &place) in
                                site.operands.iter().zip(&functions[callee.function].params)
                            {
                                self.transfer(&frame, operand, &callee, place);
                            }
                            frame.next = next;
                            self.callers.push(frame);
                            frame = callee;
                            continue 'frames;
                        }
                        Ins::Return => {
                            let Some(caller) = self.callers.pop() else {
                                self.memory.stats.steps += allowed - fuel;
                                return Ok(());
                            };
                            // The call is the instruction before the one to go on with.
                            let calling = &functions[caller.function];
                            let Ins::Call { site } = calling.code[caller.next - 1] else {
                                unreachable!("a frame is made by a call")
                            };
                            let places = &calling.calls[site as usize].results;
                            for (&operand, &place) in function.results.iter().zip(places) {
                                self.transfer(&frame, operand, &caller, place);
                            }
                            self.leave(&frame);
                            frame = caller;
                            continue 'frames;
                        }
                    }
                }
            }
        }
    }
}

/// The value of a row of the rule table, out of the way of the inner loop.
#[inline(never)]
fn row_value<R: Real>(row: rules::Row, parameter: i32, args: &[R]) -> R {
    row.value(parameter, args)
}

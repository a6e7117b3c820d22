//! The search for a solution, as a loop: Picard, Anderson, Newton.
//!
//! Input: an equation, its map, and the map with tangents by its unknowns. Output: a function from a start
//! and what the map reads to the solution. The loop ends when the residual (Picard, Anderson) or the step
//! (Newton) is small against `1 + max |x|`, when the rounds are used up, or when a number is not finite;
//! [`Op::Settled`] tells which.
//!
//! Papers: Anderson (1965), as in Walker and Ni (2011), with the normal equations of steps scaled to length
//! 1; Newton with the sufficient decrease of Armijo.

use super::{Equation, Writer};
use crate::op::{Axis, Comparison, FuncId, IntOp, Logical, Op, Reduction, Search};
use crate::program::{Function, Value};
use crate::types::Type;
use palinode_core::rules::Row;

/// How many steps Anderson remembers.
const MEMORY: i64 = 5;
/// What is added to the diagonal of Anderson's equations: steps that differ by less than its root count as
/// one.
const RIDGE: f64 = 1e-10;
/// The part of a step's length by which the residual must fall at least.
const DECREASE: f64 = 1e-4;
/// How often a step is halved at most.
const HALVINGS: i64 = 40;

/// What every search carries: the point, the last change, what it should become, the rounds so far and
/// whether there is no way on.
struct State {
    x: Value,
    change: Value,
    bound: Value,
    rounds: Value,
    stuck: Value,
}

impl State {
    fn of(values: &[Value]) -> State {
        let &[x, change, bound, rounds, stuck] = &values[..5] else { unreachable!("five values") };
        State { x, change, bound, rounds, stuck }
    }
}

pub(super) fn function(equation: &Equation, map: &Function, by_unknowns: FuncId) -> Function {
    let (mut w, unknowns) = Writer::new(equation, map, "search", by_unknowns);
    if equation.search == Search::Anderson {
        // Its memory is made of vectors.
        w.is_number = false;
    }
    let start = w.flat(&unknowns);
    // Anything above nothing lets the first round begin. Not infinity, which posits do not have.
    let (far, none) = (w.b.real(1.0), w.b.real(0.0));
    let (first, no) = (w.b.int(0), w.b.bool(false));
    let mut initial = vec![start, far, none, first, no];
    if equation.search == Search::Anderson {
        initial.extend(w.no_memory(start));
    }
    let types: Vec<Type> = initial.iter().map(|&value| w.b.ty(value)).collect();

    let params = w.b.open(&types);
    let state = State::of(&params);
    let far = w.b.compare(Comparison::Less, state.bound, state.change);
    let most = w.b.int(equation.rounds);
    let early = w.b.compare(Comparison::Less, state.rounds, most);
    let free = w.b.emit(Op::Logical(Logical::Not), &[state.stuck]);
    let goes_on = w.b.emit(Op::Logical(Logical::And), &[far, early]);
    let goes_on = w.b.emit(Op::Logical(Logical::And), &[goes_on, free]);
    let head = w.b.close(&[goes_on]);

    let params = w.b.open(&types);
    let next = match equation.search {
        Search::Picard => w.picard(&State::of(&params)),
        Search::Anderson => w.anderson(&State::of(&params), &params[5..]),
        Search::Newton => w.newton(&State::of(&params)),
    };
    let body = w.b.close(&next);
    let last = w.b.emit_blocks(Op::While { keep: None }, &initial, vec![head, body], &types);
    let State { x, change, bound, rounds, .. } = State::of(&last);
    let one = w.b.int(1);
    let vector = if w.is_number { w.b.fill(x, &[one]) } else { x };
    let vector = w.b.emit(Op::Settled(equation.search), &[vector, change, bound, rounds]);
    w.is_number = false;
    let found = w.apart(vector);
    w.finish(&found)
}

impl Writer<'_> {
    /// How small a change must be at `x`.
    fn bound(&mut self, x: Value) -> Value {
        let (one, tolerance) = (self.b.real(1.0), self.b.real(self.equation.tolerance));
        let size = self.size(x);
        let scale = self.b.add(one, size);
        self.b.mul(tolerance, scale)
    }

    fn after(&mut self, rounds: Value) -> Value {
        let one = self.b.int(1);
        self.b.integer(IntOp::Add, rounds, one)
    }

    fn not(&mut self, a: Value) -> Value {
        self.b.emit(Op::Logical(Logical::Not), &[a])
    }

    fn and(&mut self, a: Value, b: Value) -> Value {
        self.b.emit(Op::Logical(Logical::And), &[a, b])
    }

    /// The point stays where its residual was found small.
    fn picard(&mut self, now: &State) -> Vec<Value> {
        let (residual, next) = self.residual(now.x);
        let (change, bound) = (self.size(residual), self.bound(now.x));
        let done = self.b.compare(Comparison::LessEq, change, bound);
        let x = self.b.select(done, now.x, next);
        let rounds = self.after(now.rounds);
        vec![x, change, bound, rounds, now.stuck]
    }

    /// Anderson's memory at the start: differences of points and of steps by columns, the last point and the
    /// last step.
    fn no_memory(&mut self, start: Value) -> [Value; 4] {
        let (most, least, zero) = (self.b.int(MEMORY), self.b.int(1), self.b.real(0.0));
        // More steps than unknowns depend on one another.
        let columns = self.b.integer(IntOp::Min, self.count, most);
        let columns = self.b.integer(IntOp::Max, columns, least);
        let points = self.b.fill(zero, &[self.count, columns]);
        let steps = self.b.fill(zero, &[self.count, columns]);
        let last = self.b.fill(zero, &[self.count]);
        [points, steps, start, last]
    }

    fn anderson(&mut self, now: &State, memory: &[Value]) -> Vec<Value> {
        let &[points, steps, last_x, last_step] = memory else { unreachable!("four values") };
        let (residual, next) = self.residual(now.x);
        let step = self.b.sub(next, now.x);
        let (change, bound) = (self.size(residual), self.bound(now.x));
        let done = self.b.compare(Comparison::LessEq, change, bound);

        // The latest differences take the place of the oldest.
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let columns = self.b.dim(points, 1);
        let is_later = self.b.compare(Comparison::Less, zero, now.rounds);
        let place = Op::Write(vec![Axis::All, Axis::At]);
        let remembered = self.b.if_else(
            is_later,
            |b| {
                let before = b.integer(IntOp::Sub, now.rounds, one);
                let at = b.integer(IntOp::Rem, before, columns);
                let moved = b.sub(now.x, last_x);
                let turned = b.sub(step, last_step);
                let points = b.emit(place.clone(), &[points, moved, at]);
                vec![points, b.emit(place, &[steps, turned, at])]
            },
            |_| vec![points, steps],
        );
        let (points, steps) = (remembered[0], remembered[1]);

        // The combination of steps, each scaled to length 1, that comes nearest to the last one.
        let squares = self.b.mul(steps, steps);
        let squares = self.b.emit(Op::Reduce(Reduction::Sum, vec![0]), &[squares]);
        let lengths = self.b.map(Row::Sqrt, &[squares]);
        let none = self.b.real(0.0);
        let known = self.b.emit(Op::StopGradient, &[lengths]);
        let is_there = self.b.compare(Comparison::Less, none, known);
        let one = self.b.real(1.0);
        let lengths = self.b.select(is_there, lengths, one);
        let inverse = self.b.map(Row::Recip, &[lengths]);
        let scales = self.b.select(is_there, inverse, none);
        let spread = self.b.emit(Op::Broadcast(vec![1]), &[scales, self.count, columns]);
        let units = self.b.mul(steps, spread);
        let product = |b: &mut crate::builder::FunctionBuilder, x: Value, y: Value, transposed: bool| {
            b.emit(Op::MatMul { a_transposed: transposed, b_transposed: false, strong: false }, &[x, y])
        };
        let matrix = product(&mut self.b, units, units, true);
        let right = product(&mut self.b, units, step, true);
        let numbers = self.b.emit(Op::Iota, &[columns]);
        let rows = self.b.emit(Op::Broadcast(vec![0]), &[numbers, columns, columns]);
        let others = self.b.emit(Op::Broadcast(vec![1]), &[numbers, columns, columns]);
        let diagonal = self.b.compare(Comparison::Equal, rows, others);
        let ridge = self.b.real(RIDGE);
        let ridge = self.b.select(diagonal, ridge, none);
        let matrix = self.b.add(matrix, ridge);
        let weights = self.solve(matrix, right, true);
        let weights = self.b.mul(weights, scales);
        let both = self.b.add(points, steps);
        let back = product(&mut self.b, both, weights, false);
        let mixed = self.b.sub(next, back);
        let x = self.b.select(done, now.x, mixed);
        let rounds = self.after(now.rounds);
        vec![x, change, bound, rounds, now.stuck, points, steps, now.x, step]
    }

    /// The step estimates the error, whatever the scale of the residual. The last one is taken if that does
    /// not make things worse.
    fn newton(&mut self, now: &State) -> Vec<Value> {
        let (residual, _) = self.residual(now.x);
        let before = self.size(residual);
        let none = self.b.real(0.0);
        let is_exact = self.b.compare(Comparison::Equal, before, none);
        let vector = self.b.ty(residual);
        self.b.open(&[]);
        let still = if self.is_number { none } else { self.b.fill(none, &[self.count]) };
        let still = self.b.close(&[still]);
        self.b.open(&[]);
        let matrix = self.partials(now.x);
        let step = self.solve(matrix, residual, true);
        let step = self.b.close(&[step]);
        let step = self.b.emit_blocks(Op::If, &[is_exact], vec![still, step], &[vector])[0];
        let (change, bound) = (self.size(step), self.bound(now.x));
        let is_last = self.b.compare(Comparison::LessEq, change, bound);

        let one = self.b.real(1.0);
        let after = self.size_at(now.x, step, one);
        let zero = self.b.int(0);
        let types = [Type::REAL, Type::REAL, Type::INT];
        let params = self.b.open(&types);
        let falls = self.falls(before, params[1], params[0]);
        let falls_not = self.not(falls);
        let most = self.b.int(HALVINGS);
        let early = self.b.compare(Comparison::Less, params[2], most);
        let search = self.not(is_last);
        let goes_on = self.and(falls_not, early);
        let goes_on = self.and(goes_on, search);
        let head = self.b.close(&[goes_on]);
        let params = self.b.open(&types);
        let half = self.b.real(0.5);
        let part = self.b.mul(params[0], half);
        let size = self.size_at(now.x, step, part);
        let tries = self.after(params[2]);
        let body = self.b.close(&[part, size, tries]);
        let found =
            self.b.emit_blocks(Op::While { keep: None }, &[one, after, zero], vec![head, body], &types);

        let way = self.b.mul(step, found[0]);
        let x = self.b.sub(now.x, way);
        let is_no_worse = self.b.compare(Comparison::LessEq, found[1], before);
        let falls = self.falls(before, found[1], found[0]);
        let is_taken = self.b.emit(Op::Logical(Logical::Or), &[is_no_worse, falls]);
        let x = self.b.select(is_taken, x, now.x);
        let fails = self.not(is_taken);
        let goes_on = self.not(is_last);
        let stuck = self.and(fails, goes_on);
        let rounds = self.after(now.rounds);
        vec![x, change, bound, rounds, stuck]
    }

    /// The size of the residual a part of a step further.
    fn size_at(&mut self, x: Value, step: Value, part: Value) -> Value {
        let way = self.b.mul(step, part);
        let x = self.b.sub(x, way);
        let (residual, _) = self.residual(x);
        self.size(residual)
    }

    /// Whether the residual has fallen by a part of what a step of this length promises.
    fn falls(&mut self, before: Value, after: Value, part: Value) -> Value {
        let (one, decrease) = (self.b.real(1.0), self.b.real(DECREASE));
        let least = self.b.mul(decrease, part);
        let factor = self.b.sub(one, least);
        let enough = self.b.mul(before, factor);
        self.b.compare(Comparison::LessEq, after, enough)
    }
}

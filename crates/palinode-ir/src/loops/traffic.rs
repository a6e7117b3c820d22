//! What a run of a loop form computes, and what it moves between buffers and registers.
//!
//! Input: a loop form. Output: a row for every loop of the source, with the loops inside it and its reverse
//! sweep, and what the whole program does. What is in registers moves nothing; matrices of a product count
//! once, however often a kernel goes through them; sorts and factorisations count what they move, but no
//! arithmetic.
//!
//! Where a branch depends on data, the side that moves more counts. Where the number of rounds does, one
//! round counts, and the row says so.

use core::ops::{Add, AddAssign, Mul};

use palinode_core::rules::Row;

use super::form::{Buf, Given, Kept, LoopForm, Matrix, Operand, Place, Stmt, Taken, Way};
use super::sweep::{Sweep, SweepStep};
use crate::types::Span;

/// What is computed and moved. Numbers that do not fit are the largest that do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Additions, subtractions, multiplications, divisions, square roots and comparisons of reals.
    pub flops: u64,
    /// Elementary functions: sines, exponentials, powers.
    pub functions: u64,
    /// Bytes that are read from buffers.
    pub read: u64,
    /// Bytes that are written to buffers.
    pub written: u64,
}

impl Traffic {
    /// Bytes that are read or written.
    pub fn bytes(self) -> u64 {
        self.read.saturating_add(self.written)
    }

    /// Flops per byte; none if nothing is moved. An elementary function counts as `of_function` flops.
    pub fn intensity(self, of_function: f64) -> Option<f64> {
        let work = self.flops as f64 + of_function * self.functions as f64;
        (self.bytes() > 0).then(|| work / self.bytes() as f64)
    }
}

impl Add for Traffic {
    type Output = Traffic;
    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            flops: self.flops.saturating_add(other.flops),
            functions: self.functions.saturating_add(other.functions),
            read: self.read.saturating_add(other.read),
            written: self.written.saturating_add(other.written),
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        *self = *self + other;
    }
}

impl Mul<u64> for Traffic {
    type Output = Traffic;
    fn mul(self, times: u64) -> Traffic {
        Traffic {
            flops: self.flops.saturating_mul(times),
            functions: self.functions.saturating_mul(times),
            read: self.read.saturating_mul(times),
            written: self.written.saturating_mul(times),
        }
    }
}

/// What a loop of the source does in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopTraffic {
    /// The loop.
    pub span: Span,
    /// How often its rounds run, forwards, backwards, and again from snapshots.
    pub rounds: u64,
    /// What they do, with what is inside.
    pub traffic: Traffic,
    /// Whether a number of rounds in it depends on data: of those, one counts.
    pub at_least: bool,
}

/// A longer sweep is not followed step by step; its rounds count as if each were advanced once.
const MOST_FOLLOWED: i64 = 10_000_000;

impl LoopForm {
    /// What the loops of the source do, in the order of the source, and what the program does in all.
    pub fn traffic(&self) -> (Vec<LoopTraffic>, LoopTraffic) {
        let mut count = Count { form: self, rows: Vec::new() };
        let (traffic, at_least) = count.block(&self.body, 1);
        count.rows.sort_by_key(|row| (row.span.start, core::cmp::Reverse(row.span.end)));
        (count.rows, LoopTraffic { span: Span::NONE, rounds: 1, traffic, at_least })
    }
}

struct Count<'f> {
    form: &'f LoopForm,
    rows: Vec<LoopTraffic>,
}

/// Of one execution; whether there may be more.
type Counted = (Traffic, bool);

impl Count<'_> {
    fn block(&mut self, stmts: &[Stmt], times: u64) -> Counted {
        stmts.iter().fold((Traffic::default(), false), |(sum, more), stmt| {
            let (traffic, again) = self.stmt(stmt, times);
            (sum + traffic, more | again)
        })
    }

    /// A loop's rounds are noted with the loop, which runs so many times.
    fn note(&mut self, counter: super::Reg, rounds: u64, times: u64, (traffic, at_least): Counted) {
        let Some(&(_, span)) = self.form.spans.iter().find(|(reg, _)| *reg == counter) else { return };
        let (rounds, traffic) = (rounds.saturating_mul(times), traffic * times);
        match self.rows.iter_mut().find(|row| row.span == span) {
            Some(row) => {
                row.rounds = row.rounds.saturating_add(rounds);
                row.traffic += traffic;
                row.at_least |= at_least;
            }
            None => self.rows.push(LoopTraffic { span, rounds, traffic, at_least }),
        }
    }

    fn stmt(&mut self, stmt: &Stmt, times: u64) -> Counted {
        match stmt {
            Stmt::For { counter, rounds, body, .. } => {
                let (rounds, known) = known(rounds);
                let (traffic, more) = self.block(body, times.saturating_mul(rounds));
                let all = (traffic * rounds, more | !known);
                self.note(*counter, rounds, times, all);
                all
            }
            Stmt::Sweep { counter, rounds, room, state, advance, turn, back } => {
                let (rounds, known) = known(rounds);
                let steps = steps(rounds, *room, turn.is_some());
                let mut sum = self.state(state) * steps.copies;
                let mut more = !known;
                let turn = turn.as_ref().map(|turn| (turn, 1));
                for (block, count) in [(advance, steps.advanced), (back, rounds)].into_iter().chain(turn) {
                    let (traffic, again) = self.block(block, times.saturating_mul(count));
                    sum += traffic * count;
                    more |= again;
                }
                self.note(*counter, steps.advanced.saturating_add(rounds), times, (sum, more));
                (sum, more)
            }
            Stmt::While { condition, body, .. } => {
                let (condition, _) = self.block(condition, times);
                let (body, _) = self.block(body, times);
                (condition + body, true)
            }
            Stmt::If { then, other, .. } => {
                let (then, other) = (self.block(then, times), self.block(other, times));
                let larger = if then.0.bytes() >= other.0.bytes() { then.0 } else { other.0 };
                (larger, then.1 | other.1)
            }
            Stmt::Each { axes, body } => {
                let count =
                    axes.iter().fold(1, |all: u64, &(_, from, to)| all.saturating_mul(from.abs_diff(to)));
                let (traffic, more) = self.block(body, times.saturating_mul(count));
                (traffic * count, more)
            }
            simple => (self.simple(simple), false),
        }
    }

    fn bytes(&self, buf: Buf) -> u64 {
        self.form.buffers[buf.index()].kind.bytes() as u64
    }

    fn place(&self, place: &Place) -> u64 {
        self.bytes(place.buf).saturating_mul(place.elements() as u64)
    }

    fn matrix(&self, matrix: &Matrix) -> u64 {
        matrix.sizes.iter().fold(self.bytes(matrix.buf), |all, &n| all.saturating_mul(n as u64))
    }

    /// A snapshot of a state, taken or restored.
    fn state(&self, state: &[Kept]) -> Traffic {
        let bytes = state.iter().map(|kept| match kept {
            Kept::Scalar { snapshots, .. } => self.bytes(*snapshots),
            Kept::Array { buf, count, .. } => self.bytes(*buf).saturating_mul(*count as u64),
        });
        let bytes = bytes.sum();
        Traffic { read: bytes, written: bytes, ..Traffic::default() }
    }

    fn simple(&self, stmt: &Stmt) -> Traffic {
        let read = |bytes: u64| Traffic { read: bytes, ..Traffic::default() };
        let written = |bytes: u64| Traffic { written: bytes, ..Traffic::default() };
        let flops = |flops: u64| Traffic { flops, ..Traffic::default() };
        match stmt {
            Stmt::Map { rule, .. } => match (Way::of(*rule), rule.row) {
                (Way::Function, Row::MulAdd) => flops(2),
                (Way::Function, _) => Traffic { functions: 1, ..Traffic::default() },
                (Way::Arithmetic, _) => flops(1),
            },
            Stmt::Compare { .. } => flops(1),
            Stmt::Load { buf, .. } => read(self.bytes(*buf)),
            Stmt::Store { buf, .. } => written(self.bytes(*buf)),
            Stmt::Function { place, .. } => Traffic {
                functions: place.elements() as u64,
                read: self.place(place),
                written: self.place(place),
                flops: 0,
            },
            Stmt::AllFinite { place } => read(self.place(place)),
            Stmt::Reduce { from, to, .. } => {
                read(self.place(from)) + flops(from.elements() as u64) + self.taken(to)
            }
            Stmt::Product { a, b, to, adds, .. } => {
                let products = a.sizes[0] as u64 * a.sizes[1] as u64 * b.sizes[1] as u64;
                let again = if *adds { self.place(to) } else { 0 };
                read(self.matrix(a) + self.matrix(b) + again) + written(self.place(to)) + flops(2 * products)
            }
            Stmt::Dots { a, x, to, .. } => {
                let products = a.sizes[0] as u64 * a.sizes[1] as u64;
                read(self.matrix(a) + self.place(x)) + flops(2 * products) + self.taken(to)
            }
            Stmt::Kernel { given, taken, .. } => {
                let given = given.iter().map(|given| match given {
                    Given::Scalar(_) => 0,
                    Given::Array(place) => self.place(place),
                });
                taken.iter().fold(read(given.sum()), |sum, taken| sum + self.taken(taken))
            }
            Stmt::Move { .. } | Stmt::Round32 { .. } | Stmt::Int { .. } | Stmt::Index { .. } => {
                Traffic::default()
            }
            Stmt::And { .. } | Stmt::Or { .. } | Stmt::Not { .. } | Stmt::Select { .. } => Traffic::default(),
            Stmt::Truncate { .. } | Stmt::Convert { .. } | Stmt::Finite { .. } => Traffic::default(),
            Stmt::Within { .. } | Stmt::Holds { .. } | Stmt::Stop | Stmt::Step => Traffic::default(),
            // Memory changes hands, nothing is moved.
            Stmt::Swap { .. } | Stmt::Reserve { .. } => Traffic::default(),
            Stmt::For { .. }
            | Stmt::While { .. }
            | Stmt::If { .. }
            | Stmt::Each { .. }
            | Stmt::Sweep { .. } => {
                unreachable!("it has blocks")
            }
        }
    }

    fn taken(&self, taken: &Taken) -> Traffic {
        let written = match taken {
            Taken::Scalar(_) => 0,
            Taken::Array(place) => self.place(place),
        };
        Traffic { written, ..Traffic::default() }
    }
}

/// How many rounds, and whether that is known: one counts if it is not.
fn known(rounds: &Operand) -> (u64, bool) {
    match rounds {
        Operand::Int(rounds) => (u64::try_from(*rounds).unwrap_or(0), true),
        Operand::Reg(_) | Operand::Real(_) | Operand::Bool(_) => (1, false),
    }
}

/// What a sweep does besides going backwards.
struct Steps {
    advanced: u64,
    copies: u64,
}

fn steps(rounds: u64, room: u64, turns: bool) -> Steps {
    let Some(rounds) = i64::try_from(rounds).ok().filter(|&rounds| rounds <= MOST_FOLLOWED) else {
        return Steps { advanced: rounds, copies: 0 };
    };
    let none = Steps { advanced: 0, copies: 0 };
    Sweep::new(rounds, room, turns).fold(none, |Steps { advanced, copies }, step| match step {
        SweepStep::Advance(from, to) => Steps { advanced: advanced + (to - from), copies },
        SweepStep::Keep(_) | SweepStep::Restore(_) => Steps { advanced, copies: copies + 1 },
        SweepStep::Back(_) | SweepStep::Turn => Steps { advanced, copies },
    })
}

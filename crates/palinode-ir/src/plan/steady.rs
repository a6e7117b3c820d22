//! When the rounds of a loop are alike, so that a few of them stand for all.
//!
//! Two questions. Of the walk ([`Round`]): did two rounds allocate the same, did what they carry change by
//! the same, and is it arranged in memory the same way afterwards? Of the text ([`courses`]): does nothing
//! that depends on the round's number decide a length, a number of rounds or a branch, and are the integers
//! that go from round to round sums of each other and of constant multiples?
//!
//! Then every later round is like these. For the memory that is clear: a round finds the same arrangement
//! and takes the same decisions. For integers: let *d* be how much each changed. A linear round turns *d*
//! into *A d* plus a constant; once that is *d*, it stays *d*. Of any other function (a quotient, a
//! remainder, a minimum) the first rounds prove nothing: such an integer may not decide, and is not known
//! after the loop.

use std::collections::{HashMap, HashSet};

use crate::op::{IntOp, Length, Lengths, Literal, Op, lengths, reached};
use crate::plan::buffers::Ledger;
use crate::plan::known::Thing;
use crate::program::{Block, Function, Inst, Value};

/// How something goes on from round to round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Course {
    /// It is the same in each round, or depends on data in each.
    #[default]
    Same,
    /// It is a linear function of the round's number and of what is carried. Of an array: so is every entry
    /// that is appended.
    Line,
    /// Anything else.
    Free,
}

/// What is known of a value. Real numbers are data: of arrays of them only the length counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fact {
    length: Course,
    contents: Course,
}

impl Fact {
    fn or(self, other: Fact) -> Fact {
        Fact { length: self.length.max(other.length), contents: self.contents.max(other.contents) }
    }
}

/// How the contents of what a `for` carries go on, if its rounds are alike. `changes` are what the last two
/// rounds changed of lengths and integers; `constant` says of an array of integers from around the loop
/// whether all its entries are the same; `forgot`, that the round's number is any up to the last, the same in
/// each round.
pub(super) fn courses(
    function: &Function,
    body: &Block,
    changes: &[Option<i64>],
    constant: &dyn Fn(Value) -> bool,
    forgot: bool,
) -> Option<Vec<Course>> {
    let assume = |((&param, &next), &change): ((&Value, &Value), &Option<i64>)| {
        let ty = function.ty(param);
        let moves = match change {
            Some(0) => Course::Same,
            Some(_) => Course::Line,
            None => Course::Free,
        };
        match (ty.is_scalar(), ty.is_real()) {
            (true, true) => Fact::default(),
            (true, false) => Fact { contents: moves, ..Fact::default() },
            (false, true) => Fact { length: moves, ..Fact::default() },
            (false, false) => {
                let contents = if param == next { Course::Same } else { Course::Line };
                Fact { length: moves, contents }
            }
        }
    };
    let carried = &body.params[1..];
    let mut assumed: Vec<Fact> = carried.iter().zip(&body.results).zip(changes).map(assume).collect();
    let captured = body.captures().into_iter().filter(|&value| constant(value)).collect();
    let mut check = Check { function, facts: HashMap::new(), constant: captured };
    loop {
        check.set(body.params[0], Fact { contents: counter(forgot), ..Fact::default() });
        carried.iter().zip(&assumed).for_each(|(&param, &fact)| check.set(param, fact));
        check.block(body)?;
        let mut holds = true;
        for (assumed, &next) in assumed.iter_mut().zip(&body.results) {
            let next = check.fact(next);
            // An integer that did not change and is linear does not change (see above); a length must be
            // shown to stay.
            let contents = if next.contents == Course::Free { Course::Free } else { assumed.contents };
            let now = Fact { length: assumed.length.max(next.length), contents };
            holds &= now == *assumed;
            *assumed = now;
        }
        if holds {
            return Some(assumed.iter().map(|fact| fact.contents).collect());
        }
    }
}

/// The number of a round.
fn counter(forgot: bool) -> Course {
    if forgot { Course::Same } else { Course::Line }
}

/// Whether the rounds of a sweep are alike if the lengths of its state stay what they are: nothing that
/// differs from round to round decides anything.
pub(super) fn sweeps_alike(function: &Function, inst: &Inst, forgot: bool) -> bool {
    let mut check = Check { function, facts: HashMap::new(), constant: HashSet::new() };
    let line = Fact { contents: Course::Line, ..Fact::default() };
    for block in &inst.blocks[..2] {
        check.set(block.params[0], Fact { contents: counter(forgot), ..Fact::default() });
    }
    let integer = |&arg: &Value| if function.ty(arg).is_real() { Fact::default() } else { line };
    let first = inst.args[1..].iter().map(integer).collect();
    let state = inst.blocks[0].results.len();
    check.swept(inst, first).is_some_and(|all| {
        // Of an array of integers the contents may change in the rounds, and of other arrays nothing is known
        // anyway.
        all[..state].iter().all(|fact| fact.length == Course::Same)
    })
}

struct Check<'a> {
    function: &'a Function,
    facts: HashMap<Value, Fact>,
    /// Arrays of integers from around the loop, all of them the same.
    constant: HashSet<Value>,
}

/// Nothing if a decision differs from round to round.
type Alike = Option<()>;

impl Check<'_> {
    fn fact(&self, value: Value) -> Fact {
        self.facts.get(&value).copied().unwrap_or_default()
    }

    fn contents(&self, value: Value) -> Course {
        self.fact(value).contents
    }

    /// Notes what matters of a value.
    fn set(&mut self, value: Value, fact: Fact) {
        let ty = self.function.ty(value);
        let length = if ty.is_scalar() { Course::Same } else { fact.length };
        let contents = if ty.is_real() { Course::Same } else { fact.contents };
        self.facts.insert(value, Fact { length, contents });
    }

    fn block(&mut self, block: &Block) -> Alike {
        block.insts.iter().try_for_each(|inst| self.inst(inst))
    }

    fn inst(&mut self, inst: &Inst) -> Alike {
        if decides(self.function, inst).iter().any(|&value| self.fact(value) != Fact::default()) {
            return None;
        }
        match &inst.op {
            // Its own counter runs alike in every round of ours.
            Op::For { .. } => self.repeated(inst, &inst.args[1..], 1),
            Op::While { .. } => self.repeated(inst, &inst.args, 0),
            Op::Sweep { .. } => {
                let state = inst.blocks[0].results.len();
                let first: Vec<Fact> = inst.args[1..].iter().map(|&arg| self.fact(arg)).collect();
                let all = self.swept(inst, first)?;
                inst.results.iter().zip(&all[state..]).for_each(|(&result, &fact)| self.set(result, fact));
                // What else the turn gives.
                if let Some(turn) = inst.blocks.get(2) {
                    let more = inst.results.iter().zip(&turn.results).skip(inst.blocks[1].results.len());
                    more.for_each(|(&result, &given)| self.set(result, self.fact(given)));
                }
                Some(())
            }
            Op::If => {
                inst.blocks.iter().try_for_each(|side| self.block(side))?;
                for (at, &result) in inst.results.iter().enumerate() {
                    let sides = inst.blocks.iter().map(|side| self.fact(side.results[at]));
                    let either = sides.fold(Fact::default(), Fact::or);
                    self.set(result, either);
                }
                Some(())
            }
            op => {
                let fact = self.operation(op, inst);
                inst.results.iter().for_each(|&result| self.set(result, fact));
                Some(())
            }
        }
    }

    /// What is known of the state and the cotangents of a sweep, whatever the round, if they, or the state
    /// and what its turn is given, start with this.
    fn swept(&mut self, inst: &Inst, mut carried: Vec<Fact>) -> Option<Vec<Fact>> {
        let (advance, back, turn) = (&inst.blocks[0], &inst.blocks[1], inst.blocks.get(2));
        let state = advance.results.len();
        let given = if turn.is_some() { carried.split_off(state) } else { Vec::new() };
        carried.resize(state + back.results.len(), Fact::default());
        loop {
            let begins = |this: &mut Self, block: &Block, params: &[Value], carried: &[Fact]| {
                params.iter().zip(carried).for_each(|(&param, &fact)| this.set(param, fact));
                this.block(block)
            };
            begins(self, advance, &advance.params[1..], &carried)?;
            if let Some(turn) = turn {
                begins(self, turn, &turn.params, &[&carried[..state], &given].concat())?;
                for (fact, &found) in carried[state..].iter_mut().zip(&turn.results) {
                    *fact = fact.or(self.fact(found));
                }
            }
            begins(self, back, &back.params[1..], &carried)?;
            let next = advance.results.iter().chain(&back.results);
            let next: Vec<Fact> =
                carried.iter().zip(next).map(|(&fact, &next)| fact.or(self.fact(next))).collect();
            if next == carried {
                return Some(carried);
            }
            carried = next;
        }
    }

    fn repeated(&mut self, inst: &Inst, args: &[Value], counters: usize) -> Alike {
        let mut carried: Vec<Fact> = args.iter().map(|&arg| self.fact(arg)).collect();
        let body = inst.blocks.last()?;
        loop {
            for block in &inst.blocks {
                let params = block.params.iter().skip(counters);
                params.zip(&carried).for_each(|(&param, &fact)| self.set(param, fact));
                self.block(block)?;
            }
            if matches!(inst.op, Op::While { .. }) && self.contents(inst.blocks[0].results[0]) != Course::Same
            {
                return None;
            }
            let next: Vec<Fact> =
                carried.iter().zip(&body.results).map(|(&fact, &next)| fact.or(self.fact(next))).collect();
            if next == carried {
                break;
            }
            carried = next;
        }
        inst.results.iter().zip(carried).for_each(|(&result, fact)| self.set(result, fact));
        Some(())
    }

    /// What is known of the results of an operation. A length that an integer gives is the same in each
    /// round, else it would decide.
    fn operation(&self, op: &Op, inst: &Inst) -> Fact {
        let all = inst.args.iter().fold(Fact::default(), |all, &arg| all.or(self.fact(arg)));
        let first = inst.args.first().map_or(Fact::default(), |&arg| self.fact(arg));
        let if_same = |course: Course| if course == Course::Same { Course::Same } else { Course::Free };
        let ranks: Vec<u8> = inst.args.iter().map(|&arg| self.function.ty(arg).rank).collect();
        let length = match lengths(op, &ranks) {
            Lengths::Each(each) => {
                let course = |length: &Length| match length {
                    Length::Of(arg, _) => self.fact(inst.args[*arg]).length,
                    Length::Int(_) => Course::Same,
                    Length::Sum(_) | Length::Elements | Length::Words(_) | Length::Least => all.length,
                };
                each.iter().flatten().map(course).max().unwrap_or_default()
            }
            Lengths::Alike | Lengths::Inside => all.length,
        };
        let contents = match op {
            Op::Dim(_) => first.length,
            Op::Int(IntOp::Add | IntOp::Sub) | Op::Push | Op::Concat(_) => all.contents,
            Op::Int(IntOp::Mul) => {
                let moving = inst.args.iter().filter(|&&arg| self.contents(arg) != Course::Same).count();
                if moving > 1 { Course::Free } else { all.contents }
            }
            Op::Select if first.contents == Course::Same => all.contents,
            Op::Read(_) if self.constant.contains(&inst.args[0]) => Course::Same,
            Op::Broadcast(_)
            | Op::Reshape
            | Op::Permute(_)
            | Op::StopGradient
            | Op::Settled(_)
            | Op::Convert(_) => first.contents,
            Op::Fused => {
                let mut uses = Course::Same;
                inst.for_each_use(&mut |value| uses = uses.max(self.contents(value)));
                if_same(uses)
            }
            // Quotients, comparisons, elements of lists: if something changes there, it is no line. (Of real
            // numbers a plan knows nothing.)
            _ => if_same(all.contents),
        };
        Fact { length, contents }
    }
}

/// The operands that decide a length, a number of rounds or a branch.
fn decides(function: &Function, inst: &Inst) -> Vec<Value> {
    let is_array = |arg: &Value| !function.ty(*arg).is_scalar();
    let named = |each: &[Length]| {
        let int = |length: &Length| if let Length::Int(arg) = length { Some(inst.args[*arg]) } else { None };
        each.iter().filter_map(int).collect()
    };
    match &inst.op {
        Op::For { .. } => inst.args[..1].to_vec(),
        // Its condition is inside.
        Op::While { .. } => Vec::new(),
        // The lengths of the state decide how many snapshots there are.
        Op::Sweep { .. } => {
            let state = inst.args[1..=inst.blocks[0].results.len()].iter().copied();
            inst.args[..1].iter().copied().chain(state.filter(is_array)).collect()
        }
        // A callee may use any of them. A branch on data is walked both ways, whatever the round; one on the
        // round's number is not.
        Op::Call(_) | Op::If => inst.args.to_vec(),
        Op::Write(places) | Op::AddAt(places) => named(&reached(places, 2)),
        op => {
            let ranks: Vec<u8> = inst.args.iter().map(|&arg| function.ty(arg).rank).collect();
            match lengths(op, &ranks) {
                Lengths::Alike => Vec::new(),
                Lengths::Each(each) => named(&each.concat()),
                Lengths::Inside => unreachable!("`{}` decides something of its own", op.name()),
            }
        }
    }
}

/// The first lengths of arrays, and integers as they are.
pub(super) fn measured(carried: &[Thing], ledger: &Ledger) -> Vec<Option<i64>> {
    let one = |thing: &Thing| match thing {
        Thing::Array(id) => ledger.get(*id).shape.first().copied().flatten().map(|length| length as i64),
        Thing::Int(value) => *value,
        Thing::Unset | Thing::Real | Thing::UpTo(_) => None,
    };
    carried.iter().map(one).collect()
}

/// Whether something that is known would not be after a jump.
pub(super) fn forgets(carried: &[Thing], courses: &[Course], ledger: &Ledger) -> bool {
    carried.iter().zip(courses).any(|(thing, &course)| match thing {
        Thing::Int(value) => value.is_some() && course == Course::Free,
        Thing::Array(id) => ledger.get(*id).ints.is_some() && course == Course::Free,
        Thing::Unset | Thing::Real | Thing::UpTo(_) => false,
    })
}

/// The instruction of a block that makes a value.
fn made_by(block: &Block, value: Value) -> Option<&Inst> {
    block.insts.iter().find(|inst| inst.results.contains(&value))
}

/// How much is added to a parameter at most to get a value, if nothing else is done with it, whichever way
/// branches go: a count. `constant` knows integers that do not change.
pub(super) fn most_added(
    block: &Block,
    value: Value,
    param: Value,
    constant: &dyn Fn(Value) -> Option<i64>,
) -> Option<i64> {
    if value == param {
        return Some(0);
    }
    let inst = made_by(block, value)?;
    match &inst.op {
        Op::Int(IntOp::Add) => {
            let [a, b] = [inst.args[0], inst.args[1]];
            let known = |value: Value| match made_by(block, value).map(|inst| &inst.op) {
                Some(Op::Const(Literal::Int(n))) => Some(*n),
                Some(_) => None,
                None => constant(value),
            };
            let (of, each) = match (known(a), known(b)) {
                (None, Some(each)) => (a, each),
                (Some(each), None) => (b, each),
                _ => return None,
            };
            most_added(block, of, param, constant)?.checked_add(Some(each).filter(|&each| each >= 0)?)
        }
        Op::If => {
            let at = inst.results.iter().position(|&result| result == value)?;
            let side = |side: &Block| {
                let found = side.results[at];
                // What a side hands on from around it.
                let of = if made_by(side, found).is_some() { side } else { block };
                most_added(of, found, param, constant)
            };
            Some(side(&inst.blocks[0])?.max(side(&inst.blocks[1])?))
        }
        _ => None,
    }
}

/// How a carried array lies in memory.
#[derive(Debug, PartialEq)]
pub(super) struct Place {
    /// The first of the carried values that is in the same buffer.
    with: usize,
    holders: u32,
    /// Which array it is, if something around the loop holds it too.
    outside: Option<u64>,
    made: u64,
    in_chunks: bool,
    /// Whether its lengths, what it was made with and its room are bounds.
    bounds: [bool; 3],
    /// All lengths but the first.
    lengths: Vec<Option<u64>>,
}

/// How carried values lie in memory: nothing for scalars.
pub(super) type Places = Vec<Option<Place>>;

/// How these lie in memory.
pub(super) fn places(carried: &[Thing], ledger: &Ledger) -> Places {
    let place = |thing: &Thing| {
        let Thing::Array(id) = thing else { return None };
        let buffer = ledger.get(*id);
        let with = carried.iter().position(|other| other == thing)?;
        let inside = carried.iter().filter(|other| *other == thing).count();
        Some(Place {
            with,
            holders: ledger.holders(*id),
            outside: (ledger.holders(*id) as usize > inside).then_some(buffer.born),
            made: buffer.made,
            in_chunks: buffer.in_chunks(),
            bounds: [buffer.at_most, buffer.uneven, buffer.loose],
            lengths: buffer.shape[1..].to_vec(),
        })
    };
    carried.iter().map(place).collect()
}

/// What a round did.
#[derive(Debug, PartialEq)]
pub(super) struct Round {
    /// The sizes of its fresh arrays, summed up.
    trace: u64,
    /// By how much each carried length or integer changed.
    pub(super) changes: Vec<Option<i64>>,
    /// Where it leaves what it carries.
    places: Places,
}

impl Round {
    pub(super) fn new(shapes: &[Option<i64>], after: &[Thing], ledger: &Ledger) -> Round {
        let now = measured(after, ledger);
        let change =
            |(old, new): (&Option<i64>, &Option<i64>)| old.zip(*new).map(|(old, new)| new.wrapping_sub(old));
        Round {
            trace: ledger.trace,
            changes: shapes.iter().zip(&now).map(change).collect(),
            places: places(after, ledger),
        }
    }

    /// Makes as if so many more such rounds had passed. `adds` says how much a round adds at most to what is
    /// carried at some place, if it does nothing else with it.
    pub(super) fn jump(
        &self,
        rounds: u64,
        carried: &mut [Thing],
        courses: &[Course],
        adds: &dyn Fn(usize) -> Option<i64>,
        ledger: &mut Ledger,
    ) {
        for (at, ((thing, &change), &course)) in
            carried.iter_mut().zip(&self.changes).zip(courses).enumerate()
        {
            match thing {
                Thing::Array(id) => {
                    let each = change.and_then(|change| u64::try_from(change).ok()).unwrap_or(0);
                    if each > 0 {
                        ledger.grow(*id, each.saturating_mul(rounds));
                    }
                    let buffer = ledger.get_mut(*id);
                    buffer.ints = buffer.ints.take().and_then(|ints| match course {
                        Course::Same => Some(ints),
                        Course::Line if each > 0 => ints.after(each, rounds),
                        Course::Line | Course::Free => None,
                    });
                }
                Thing::Int(value) => {
                    let moved = change.and_then(|change| change.checked_mul(i64::try_from(rounds).ok()?));
                    let moved = moved.filter(|_| course != Course::Free);
                    *value = value.zip(moved).and_then(|(value, moved)| value.checked_add(moved));
                }
                Thing::UpTo(most) => {
                    let more = adds(at).and_then(|each| each.checked_mul(i64::try_from(rounds).ok()?));
                    let most = more.and_then(|more| most.checked_add(more));
                    *thing = most.map_or(Thing::Int(None), Thing::UpTo);
                }
                Thing::Unset | Thing::Real => {}
            }
        }
    }

    /// The bytes by which one round makes the carried arrays longer.
    pub(super) fn growth(&self, carried: &[Thing], ledger: &Ledger) -> u64 {
        let one = |(thing, change): (&Thing, &Option<i64>)| match (thing, change) {
            (Thing::Array(id), Some(change)) if *change > 0 => {
                *change as u64 * ledger.element_bytes(ledger.get(*id).elem)
            }
            _ => 0,
        };
        carried.iter().zip(&self.changes).map(one).sum()
    }
}

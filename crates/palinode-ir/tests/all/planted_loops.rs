//! Loop forms with a planted bug are caught: by the verifier, or because a run of them differs from that of
//! the interpreter.
//!
//! A bug is a rewrite of a form, the way a mistake in `loops::lower` or in a pass would have made it. It is
//! put wherever it fits. The forms are those of the examples, of random programs and of a few that go wrong
//! on purpose, with their gradients; each bug must be caught on some of them, and in the way that is expected
//! of it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::loops::direct::{self, Ended};
use crate::pal::examples;
use crate::peak::bits;
use crate::random::Random;
use crate::random::generate::source;
use crate::random::programs::{self, Kind as Family};
use crate::random_programs::compiled;
use palinode_core::rules::Row;
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::loops::{
    self, Buf, Index, Kind, LoopForm, Operand, Place, Port, Reg, Role, Stmt, Taken, verify,
};
use palinode_ir::{Comparison, IntOp, Keep, Linalg, Op, Program, Reduction, pal, passes, text, transform};

const STEPS: u64 = 100_000;

/// Runs of more statements than this are left out.
const FUEL: i64 = 20_000;

/// A program, what the interpreter makes of it, and its form.
struct Case {
    inputs: Vec<Datum<f64>>,
    /// The bits of its results and its steps; nothing if it stops.
    expected: Option<(Vec<Datum<u64>>, u64)>,
    form: LoopForm,
}

/// How a bug shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Law {
    /// The verifier refuses the form.
    Verifier,
    /// Other bits.
    Bits,
    /// Another number of steps.
    Steps,
    /// It stops, and the interpreter does not: the run is slow, but right.
    Stops,
    /// It goes on, and the interpreter stops.
    GoesOn,
}

/// How a form differs from the interpreter; nothing if it does not, or takes too long.
fn judged(case: &Case, form: &LoopForm) -> Option<Law> {
    let ran = catch_unwind(AssertUnwindSafe(|| direct::run(form, &case.inputs, STEPS as i64, FUEL)));
    match ran.expect("what the verifier has proven holds") {
        Err(Ended::Refused(_)) => Some(Law::Verifier),
        Err(Ended::Long) => None,
        Err(Ended::Stopped) => case.expected.is_some().then_some(Law::Stops),
        Ok((outputs, steps)) => match &case.expected {
            None => Some(Law::GoesOn),
            Some((expected, _)) if bits(&outputs) != *expected => Some(Law::Bits),
            Some((_, expected)) => (steps as u64 != *expected).then_some(Law::Steps),
        },
    }
}

fn cases_of(program: &Program, inputs: &[Datum<f64>], wrt: &[usize], found: &mut Vec<Case>) {
    let kept = transform::keeping(program, &|_| Some(Keep::Snapshots(3)));
    let mut all = vec![passes::simplify(&passes::inline(program))];
    for program in [program, &kept] {
        all.extend(transform::value_and_grad(program, wrt).ok().map(|gradient| passes::simplify(&gradient)));
    }
    for program in all {
        let lower = |traps: bool| loops::lower(&program, inputs, traps);
        for (traps, form) in
            [(true, loops::lower_plainly(&program, inputs, true)), (true, lower(true)), (false, lower(false))]
        {
            let limits = Limits { steps: STEPS, trap_nonfinite: traps, ..Limits::default() };
            let ran = Code::new(&program).run_with_stats(inputs, &limits).ok();
            let expected = ran.map(|(outputs, stats)| (bits(&outputs), stats.steps));
            let Ok(form) = form else { continue };
            let case = Case { inputs: inputs.to_vec(), expected, form };
            // What stops where the interpreter does not, or takes long, says nothing.
            let is_short = !matches!(
                direct::run(&case.form, &case.inputs, STEPS as i64, FUEL / 2),
                Err(Ended::Long | Ended::Refused(_))
            );
            if is_short && judged(&case, &case.form).is_none() {
                found.push(case);
            }
        }
    }
}

/// Programs that no example and no random program is: they go wrong, or sum much.
const SPECIAL: [&str; 8] = [
    // A zero that wins.
    "entry fn main(a: f64[_], x: f64) -> (f64) outputs (y) {
  zero = const 0i
  b = read a[zero]
  y = strong_mul b, x
  yield y
}",
    // An infinity that the result does not show.
    "entry fn main(x: f64) -> (f64) outputs (y) {
  a = mul x, x
  b = exp a
  one = const 1.0
  y = div one, b
  yield y
}",
    // An overflow that the result does not show.
    "entry fn main(x: f64) -> (f64) outputs (y) {
  n = const 70i
  three = const 3i
  t = for k in n (p: int = three) {
    q = imul p, three
    r = iadd q, k
    yield r
  }
  zero = const 0i
  u = imin t, zero
  v = convert<f64> u
  y = add v, x
  yield y
}",
    // The same with sums only.
    "entry fn main(l: int[_]) -> (int) outputs (y) {
  zero = const 0i
  x = read l[zero]
  a = iadd x, x
  b = imin a, zero
  yield b
}",
    // A list that names an element twice.
    "entry fn main(a: f64[_], l: int[_], x: f64) -> (f64[_]) outputs (y) {
  b = write a[@l], x
  yield b
}",
    // An element that is not there, and its neighbour.
    "entry fn main(a: f64[_], l: int[_], x: f64) -> (f64) outputs (y) {
  zero = const 0i
  i = read l[zero]
  b = read a[i]
  y = mul b, x
  yield y
}",
    // A sum of many, in single precision.
    "entry fn main(a: f64[_], l: int[_], x: f64) -> (f64, f32) outputs (y, z) {
  n = const 700i
  i = iota n
  r = convert<f64> i
  s = mul r, x
  t = sin s
  y = reduce_sum<0> t
  w = convert<f32> y
  z = mul w, w
  yield y, z
}",
    // A vector that grows beyond what was reserved first.
    "entry fn main(x: f64) -> (f64) outputs (y) {
  zero = const 0i
  none = const 0.0
  empty = broadcast<> none, zero
  big = const 1e9
  l, e = while (p: f64[_] = empty, z: f64 = x) {
    g = less z, big
    yield g
  } do (o: f64[_], w: f64) {
    c = const 1.2
    q = mul w, c
    m = push o, w
    yield m, q
  }
  i = const 90i
  y = read l[i]
  yield y
}",
];

fn cases() -> Vec<Case> {
    let mut found = Vec::new();
    for text in SPECIAL {
        let program = text::parse(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let inputs: Vec<Datum<f64>> = [
            Datum::vector((0..20).map(|k| 0.3 * f64::from(k) - 2.0).collect()),
            Datum::Int(palinode_ir::interp::Tensor { shape: vec![3], data: vec![i64::MAX / 2 + 7, 5, 5] }),
            Datum::real(30.0),
        ]
        .into_iter()
        .collect();
        let types = program.main().param_types();
        let fitting: Vec<Datum<f64>> =
            types.iter().map(|ty| inputs.iter().find(|x| x.ty() == *ty).expect("an input").clone()).collect();
        let mut few = fitting.clone();
        for input in &mut few {
            if let Datum::Int(tensor) = input {
                tensor.data = vec![19, 5, 5];
            }
            if input.ty() == palinode_ir::Type::REAL {
                *input = Datum::real(0.7);
            }
        }
        cases_of(&program, &fitting, &[], &mut found);
        cases_of(&program, &few, &[], &mut found);
        // Zeros, and what they win over.
        for input in &mut few {
            match input {
                Datum::Real(tensor) if tensor.shape.is_empty() => *input = Datum::real(f64::INFINITY),
                Datum::Real(tensor) => tensor.data.fill(0.0),
                Datum::Int(_) | Datum::Bool(_) => {}
            }
        }
        cases_of(&program, &few, &[], &mut found);
    }
    for (_, source) in examples::examples() {
        let model = pal::compile(&source).expect("it compiles");
        let inputs = examples::inputs(&model);
        let wrt: Vec<usize> =
            (0..inputs.len()).filter(|&at| model.arguments[at].role == pal::Role::Param).collect();
        cases_of(&model.program, &inputs, &wrt, &mut found);
    }
    for seed in 0..40 {
        let case = compiled(&source(seed)).expect("it compiles");
        cases_of(&case.program, &case.inputs, &case.wrt, &mut found);
        let program = programs::program(seed, 12, Family::Strong);
        let inputs = programs::inputs(&mut Random::new(seed));
        let wrt: Vec<usize> = (0..inputs.len()).filter(|&at| matches!(inputs[at], Datum::Real(_))).collect();
        cases_of(&program, &inputs, &wrt, &mut found);
    }
    found
}

/// Calls `f` with every block, innermost last; whether it changed any.
fn blocks(stmts: &mut Vec<Stmt>, f: &mut dyn FnMut(&mut Vec<Stmt>) -> bool) -> bool {
    let mut changed = f(stmts);
    for stmt in stmts {
        for block in stmt.blocks_mut() {
            changed |= blocks(block, f);
        }
    }
    changed
}

/// The same with every statement.
fn each(form: &mut LoopForm, f: &mut dyn FnMut(&mut Stmt) -> bool) -> bool {
    blocks(&mut form.body, &mut |stmts| stmts.iter_mut().fold(false, |changed, stmt| f(stmt) | changed))
}

fn dropped(form: &mut LoopForm, is_it: &dyn Fn(&Stmt) -> bool) -> bool {
    blocks(&mut form.body, &mut |stmts| {
        let count = stmts.len();
        stmts.retain(|stmt| !is_it(stmt));
        stmts.len() != count
    })
}

fn wrong_stride(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Load { at, .. } => match at.terms.iter_mut().find(|term| term.1 > 1) {
            Some(term) => {
                term.1 -= 1;
                true
            }
            None => false,
        },
        _ => false,
    })
}

fn transposed_factor(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Product { a, .. } | Stmt::Dots { a, .. } if a.sizes[0] > 1 && a.sizes[1] > 1 => {
            a.steps.swap(0, 1);
            true
        }
        _ => false,
    })
}

/// `over` does not look at who else reads the old version.
fn over_without_looking(form: &mut LoopForm) -> bool {
    blocks(&mut form.body, &mut |stmts| {
        let Some(at) = stmts.iter().position(|stmt| matches!(stmt, Stmt::Swap { .. })) else { return false };
        let Stmt::Swap { a, b } = stmts.remove(at) else { unreachable!("just found") };
        for stmt in stmts.iter_mut() {
            rename(stmt, b, a);
        }
        true
    })
}

fn rename(stmt: &mut Stmt, from: Buf, to: Buf) {
    stmt.for_each_buffer(&mut |buf| {
        if *buf == from {
            *buf = to;
        }
    });
    for block in stmt.blocks_mut() {
        block.iter_mut().for_each(|stmt| rename(stmt, from, to));
    }
}

fn looks_dropped(form: &mut LoopForm) -> bool {
    dropped(form, &|stmt| matches!(stmt, Stmt::Finite { .. } | Stmt::AllFinite { .. }))
}

/// Integers are computed like places.
fn overflow_unseen(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Int { op: IntOp::Add, to, a: Operand::Reg(a), b: Operand::Reg(b) } => {
            let index = Index::reg(*a).plus(&Index::reg(*b), 1).expect("small");
            *stmt = Stmt::Index { to: *to, index };
            true
        }
        Stmt::Int { op: IntOp::Mul, to, a: Operand::Reg(a), b: Operand::Int(n) }
        | Stmt::Int { op: IntOp::Mul, to, a: Operand::Int(n), b: Operand::Reg(a) }
            if *n != 0 =>
        {
            *stmt = Stmt::Index { to: *to, index: Index::reg(*a).times(*n).expect("small") };
            true
        }
        _ => false,
    })
}

/// The box of a split loop ends one row too early.
fn short_range(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Each { axes, .. } => match axes.first_mut() {
            Some(axis) if axis.2 - axis.1 > 1 => {
                axis.2 -= 1;
                true
            }
            _ => false,
        },
        _ => false,
    })
}

/// A box begins one row too early: the row of the box before it is done twice.
fn overlapping_range(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Each { axes, .. } => match axes.first_mut() {
            Some(axis) if axis.1 > 0 => {
                axis.1 -= 1;
                true
            }
            _ => false,
        },
        _ => false,
    })
}

/// Rounds read what the round before them wrote down, not what this one did.
fn stale_row(form: &mut LoopForm) -> bool {
    fn inside(stmts: &mut [Stmt], counters: &mut Vec<Reg>) -> bool {
        let mut changed = false;
        for stmt in stmts {
            if let Stmt::For { counter, .. } = stmt {
                counters.push(*counter);
            }
            let is_for = matches!(stmt, Stmt::For { .. });
            if let Stmt::Load { at, .. } = stmt
                && let Some(&(_, factor)) = at.terms.iter().find(|term| counters.contains(&term.0))
                && let Some(stale) = at.offset(factor)
            {
                *at = stale;
                changed = true;
            }
            for block in stmt.blocks_mut() {
                changed |= inside(block, counters);
            }
            if is_for {
                counters.pop();
            }
        }
        changed
    }
    inside(&mut form.body, &mut Vec::new())
}

fn exchange_forgotten(form: &mut LoopForm) -> bool {
    dropped(form, &|stmt| matches!(stmt, Stmt::Swap { .. }))
}

fn exchanged_twice(form: &mut LoopForm) -> bool {
    blocks(&mut form.body, &mut |stmts| {
        let Some(at) = stmts.iter().position(|stmt| matches!(stmt, Stmt::Swap { .. })) else { return false };
        stmts.insert(at, stmts[at].clone());
        true
    })
}

fn accumulator_lost(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Product { adds, .. } => core::mem::replace(adds, false),
        _ => false,
    })
}

fn log_too_short(form: &mut LoopForm) -> bool {
    let mut changed = false;
    for buffer in &mut form.buffers {
        if buffer.role == Role::Workspace && buffer.length > 1 {
            buffer.length -= 1;
            changed = true;
        }
    }
    changed
}

fn reserved_too_little(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Reserve { length, .. } => {
            *length = length.offset(-1).expect("small");
            true
        }
        _ => false,
    })
}

/// A sum from the first element to the last one.
fn plain_order(form: &mut LoopForm) -> bool {
    let LoopForm { body, registers, .. } = form;
    blocks(body, &mut |stmts| {
        let is_sum = |stmt: &Stmt| matches!(stmt, Stmt::Reduce { kind: Reduction::Sum, from, to: Taken::Scalar(_) } if from.elements() > 1);
        let Some(at) = stmts.iter().position(is_sum) else { return false };
        let Stmt::Reduce { from, to: Taken::Scalar(to), .. } = stmts[at].clone() else {
            unreachable!("found")
        };
        let fresh = |kind: Kind, registers: &mut Vec<Kind>| {
            registers.push(kind);
            Reg(registers.len() as u32 - 1)
        };
        let (counter, x) = (fresh(Kind::Int, registers), fresh(Kind::Real, registers));
        let place = from.at.plus(&Index::reg(counter), 1).expect("small");
        let body = vec![
            Stmt::Load { to: x, buf: from.buf, at: place },
            Stmt::Map { rule: Row::Add.into(), to, args: vec![Operand::Reg(to), Operand::Reg(x)] },
        ];
        let rounds = Operand::Int(from.elements() as i64);
        let sum = Stmt::For { counter, rounds, descending: false, counts: false, body };
        stmts.splice(at..=at, [Stmt::Move { to, from: Operand::Real(0.0) }, sum]);
        true
    })
}

fn stored(stmt: &Stmt) -> Option<Buf> {
    let Stmt::Each { body, .. } = stmt else { return None };
    body.iter().find_map(|stmt| if let Stmt::Store { buf, .. } = stmt { Some(*buf) } else { None })
}

fn touched(stmt: &Stmt, wanted: Buf) -> bool {
    let (mut stmt, mut found) = (stmt.clone(), false);
    stmt.for_each_buffer(&mut |buf| found |= *buf == wanted);
    found || stmt.blocks().into_iter().flatten().any(|stmt| touched(stmt, wanted))
}

/// A loop is joined to a later one, beyond who reads what it makes.
fn beyond_a_reader(form: &mut LoopForm) -> bool {
    blocks(&mut form.body, &mut |stmts| {
        let found =
            (1..stmts.len()).find(|&at| stored(&stmts[at - 1]).is_some_and(|buf| touched(&stmts[at], buf)));
        if let Some(at) = found {
            stmts.swap(at - 1, at);
        }
        found.is_some()
    })
}

fn twice_allowed(form: &mut LoopForm) -> bool {
    dropped(form, &|stmt| matches!(stmt, Stmt::Holds { .. }))
}

fn wrong_direction(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::For { descending, .. } => {
            *descending = !*descending;
            true
        }
        _ => false,
    })
}

fn steps_uncounted(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::For { counts, .. } => core::mem::replace(counts, false),
        _ => false,
    })
}

fn calls_uncounted(form: &mut LoopForm) -> bool {
    dropped(form, &|stmt| matches!(stmt, Stmt::Step))
}

fn weak_products(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Product { strong, .. } | Stmt::Dots { strong, .. } => core::mem::replace(strong, false),
        Stmt::Map { rule, .. } if rule.row == Row::StrongMul => {
            *rule = Row::Multiply.into();
            true
        }
        _ => false,
    })
}

fn other_choice(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Select { a, b, .. } => {
            core::mem::swap(a, b);
            true
        }
        _ => false,
    })
}

fn other_branch(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::If { then, other, .. } => {
            core::mem::swap(then, other);
            true
        }
        _ => false,
    })
}

fn ties_hold(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Compare { op, .. } if *op == Comparison::Less => {
            *op = Comparison::LessEq;
            true
        }
        _ => false,
    })
}

fn state_forgotten(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Sweep { state, .. } => state.pop().is_some(),
        _ => false,
    })
}

fn turn_forgotten(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Sweep { turn, .. } => turn.take().is_some(),
        _ => false,
    })
}

fn one_snapshot_more(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Sweep { room, state, .. } if !state.is_empty() => {
            *room += 1;
            true
        }
        _ => false,
    })
}

/// Two buffers that are needed at the same time get one memory.
fn shared_too_early(form: &mut LoopForm) -> bool {
    for b in 1..form.buffers.len() {
        let alike = |a: &usize| {
            let (x, y) = (&form.buffers[*a], &form.buffers[b]);
            (x.kind, x.length, x.role) == (y.kind, y.length, Role::Workspace) && x.role == y.role
        };
        if let Some(a) = (0..b).find(alike) {
            let (from, to) = (Buf(b as u32), Buf(a as u32));
            form.body.iter_mut().for_each(|stmt| rename(stmt, from, to));
            for port in &mut form.outputs {
                if let Port::Array(Place { buf, .. }) = port
                    && *buf == from
                {
                    *buf = to;
                }
            }
            return true;
        }
    }
    false
}

fn wrong_system(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Kernel { op: Op::Linalg(Linalg::Solve { transposed }), .. } => {
            *transposed = !*transposed;
            true
        }
        Stmt::Kernel { op: Op::Linalg(Linalg::SolveTriangular { transposed, .. }), .. } => {
            *transposed = !*transposed;
            true
        }
        _ => false,
    })
}

fn rounding_forgotten(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match *stmt {
        Stmt::Round32 { to, a } => {
            *stmt = Stmt::Move { to, from: a };
            true
        }
        _ => false,
    })
}

/// What is stored is not what was made, but what was there before.
fn update_lost(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| {
        let Stmt::Each { body, .. } = stmt else { return false };
        let mut changed = false;
        for at in 0..body.len() {
            let Stmt::Store { buf, at: place, .. } = body[at].clone() else { continue };
            let before = body[..at].iter().find_map(|stmt| match stmt {
                Stmt::Load { to, buf: from, at } if *from == buf && *at == place => Some(*to),
                _ => None,
            });
            if let (Some(reg), Stmt::Store { from, .. }) = (before, &mut body[at]) {
                *from = Operand::Reg(reg);
                changed = true;
            }
        }
        changed
    })
}

fn least_for_largest(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Reduce { kind, .. } if *kind == Reduction::Max => {
            *kind = Reduction::Min;
            true
        }
        _ => false,
    })
}

fn one_round_less(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::For { rounds: Operand::Int(n), counts: false, .. } if *n > 0 => {
            *n -= 1;
            true
        }
        _ => false,
    })
}

/// A product of the rounds is done behind the loop, but nobody wrote down its factors.
fn deferred_without_log(form: &mut LoopForm) -> bool {
    blocks(&mut form.body, &mut |stmts| {
        for at in 0..stmts.len() {
            let Stmt::For { body, .. } = &mut stmts[at] else { continue };
            let adds = |stmt: &Stmt| matches!(stmt, Stmt::Product { adds: true, .. });
            if let Some(inner) = body.iter().position(adds) {
                let product = body.remove(inner);
                stmts.insert(at + 1, product);
                return true;
            }
        }
        false
    })
}

/// Each bug, and how it may show itself.
type Bug = (&'static str, fn(&mut LoopForm) -> bool, &'static [Law]);

const BUGS: [Bug; 35] = {
    use Law::{Bits, GoesOn, Steps, Stops, Verifier};
    [
        ("rows are a step too close", wrong_stride, &[Bits]),
        ("a factor lies the other way", transposed_factor, &[Bits, Verifier]),
        ("over an operand that others read", over_without_looking, &[Bits, Verifier]),
        ("infinities are not looked at", looks_dropped, &[GoesOn]),
        ("integers wrap", overflow_unseen, &[GoesOn]),
        ("a range ends too early", short_range, &[Bits]),
        ("a range begins too early", overlapping_range, &[Bits, Stops]),
        ("a row of a log is stale", stale_row, &[Bits, Stops]),
        ("buffers are not exchanged", exchange_forgotten, &[Bits]),
        ("buffers are exchanged twice", exchanged_twice, &[Bits]),
        ("a product begins anew", accumulator_lost, &[Bits]),
        ("memory is an element too short", log_too_short, &[Verifier, Stops]),
        ("one element too few is reserved", reserved_too_little, &[Stops]),
        ("a sum in plain order", plain_order, &[Bits]),
        ("a loop goes beyond a reader", beyond_a_reader, &[Bits]),
        ("an element is written twice", twice_allowed, &[GoesOn]),
        ("rounds in the other direction", wrong_direction, &[Bits]),
        ("rounds are not counted", steps_uncounted, &[Steps]),
        ("calls are not counted", calls_uncounted, &[Steps]),
        ("zeros do not win", weak_products, &[Bits, Stops]),
        ("the other of two", other_choice, &[Bits]),
        ("the other branch", other_branch, &[Bits]),
        ("ties hold", ties_hold, &[Bits]),
        ("a part of a state is not kept", state_forgotten, &[Bits]),
        ("a sweep does not turn", turn_forgotten, &[Bits]),
        ("a snapshot without memory", one_snapshot_more, &[Verifier]),
        ("memory is shared too early", shared_too_early, &[Bits, Verifier]),
        ("a system is not transposed", wrong_system, &[Bits]),
        ("no rounding to single precision", rounding_forgotten, &[Bits]),
        ("an update is lost", update_lost, &[Bits]),
        ("the least for the largest", least_for_largest, &[Bits]),
        ("a round less", one_round_less, &[Bits]),
        ("a product is deferred without a log", deferred_without_log, &[Verifier]),
        ("an index is off by one", off_by_one, &[Bits, Stops]),
        ("a shared value is that of another loop", stale_register, &[Bits, Verifier]),
    ]
};

fn off_by_one(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| match stmt {
        Stmt::Load { at, .. } if !at.terms.is_empty() => {
            *at = at.offset(1).expect("small");
            true
        }
        _ => false,
    })
}

/// What a joined loop has loaded is taken for something else that was loaded.
fn stale_register(form: &mut LoopForm) -> bool {
    each(form, &mut |stmt| {
        let Stmt::Each { body, .. } = stmt else { return false };
        let loads: Vec<usize> = (0..body.len()).filter(|&at| matches!(body[at], Stmt::Load { .. })).collect();
        let [first, second, ..] = loads[..] else { return false };
        let (Stmt::Load { to: known, .. }, Stmt::Load { to, .. }) =
            (body[first].clone(), body[second].clone())
        else {
            unreachable!("they load")
        };
        body[second] = Stmt::Move { to, from: Operand::Reg(known) };
        true
    })
}

#[test]
fn every_bug_in_a_loop_form_is_caught_and_nothing_else() {
    let cases = cases();
    assert!(cases.len() > 300, "{} forms", cases.len());
    assert!(cases.iter().filter(|case| case.expected.is_none()).count() > 3, "some go wrong");
    for case in &cases {
        assert!(verify(&case.form).is_ok(), "{}", case.form);
    }
    let mut missed = Vec::new();
    for (what, spoil, ways) in BUGS {
        let (mut spoilt, mut caught) = (0, std::collections::BTreeMap::<Law, usize>::new());
        for case in &cases {
            let mut form = case.form.clone();
            if spoil(&mut form) {
                spoilt += 1;
                if let Some(law) = judged(case, &form) {
                    *caught.entry(law).or_default() += 1;
                }
            }
            // Often enough.
            if spoilt > 60 && !caught.is_empty() {
                break;
            }
        }
        println!("{what:<40} {spoilt:>4} forms, caught {caught:?}");
        if !ways.iter().any(|way| caught.contains_key(way)) {
            missed.push(format!("{what}: {caught:?} in {spoilt} forms"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

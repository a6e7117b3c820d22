//! Loops that end when something has converged, as loops of so many rounds as a run took.
//!
//! Input: a program, and how often each `while` of it went round in a run
//! ([`crate::interp::Code::count_rounds`]). Output: a program that does the same with the inputs of that run,
//! bit by bit, and of which a plan can be made before it runs again: nothing in it goes on for as long as
//! data decide. Derivatives of both are the same, too: a derivative is that of the rounds that were run.
//!
//! A `while` that always took the same number of rounds becomes a `for` of that number. Of one that took now
//! more, now fewer, each round up to the most is gone through only if the condition still holds; once it does
//! not, nothing changes any more, so that it does not hold again.

use crate::checked::verified;
use crate::fast::FastMap;
use crate::interp::Rounds;
use crate::op::{Literal, Op};
use crate::program::{Block, Function, Inst, Program};
use crate::types::{Span, Type};

/// The program with loops of known length instead of those that were counted. For other inputs than those of
/// the run it may compute something else.
///
/// ```
/// use palinode_ir::interp::{Code, Datum, Limits, run};
/// use palinode_ir::{pal, transform};
///
/// let program = pal::compile("param x0 = 0.3\nvar x = x0\nwhile x < 5 { x = 2 * x }\nloss x").unwrap().program;
/// let inputs = [Datum::real(0.3)];
/// let (rounds, _) = Code::new(&program).count_rounds(&inputs, &Limits::default()).unwrap();
/// assert_eq!((rounds[0].least, rounds[0].most), (5, 5));
/// assert_eq!(run(&transform::with_rounds(&program, &rounds), &inputs), run(&program, &inputs));
/// ```
pub fn with_rounds(program: &Program, rounds: &[Rounds]) -> Program {
    let mut program = program.clone();
    for function in &mut program.functions {
        function.rewrite(|function, body| replace(function, body, rounds));
    }
    verified(program, "with_rounds")
}

fn replace(function: &mut Function, block: &mut Block, rounds: &[Rounds]) {
    let mut out = Vec::with_capacity(block.insts.len());
    for mut inst in core::mem::take(&mut block.insts) {
        inst.blocks.iter_mut().for_each(|inner| replace(function, inner, rounds));
        let counted = rounds.iter().find(|counted| counted.span == inst.span);
        let (Op::While { keep }, Some(counted)) = (&inst.op, counted) else {
            out.push(inst);
            continue;
        };
        let op = Op::For { descending: false, keep: *keep };
        let (count, k) = (function.fresh(Type::INT, None), function.fresh(Type::INT, None));
        let literal = Literal::Int(i64::try_from(counted.most).unwrap_or(i64::MAX));
        out.push(Inst::new(Op::Const(literal), Vec::new(), vec![count], inst.span));
        let mut blocks = inst.blocks.into_iter();
        let (head, body) = (blocks.next().expect("a condition"), blocks.next().expect("a body"));
        let mut round = if counted.least == counted.most {
            body
        } else {
            while_it_holds(function, head, body, inst.span)
        };
        round.params.insert(0, k);
        inst.args.insert(0, count);
        out.push(Inst { op, blocks: vec![round], ..inst });
    }
    block.insts = out;
}

/// A round that changes nothing if the condition does not hold.
fn while_it_holds(function: &mut Function, head: Block, mut body: Block, span: Span) -> Block {
    let Block { params, mut insts, results } = head;
    let same: FastMap<_, _> = body.params.iter().copied().zip(params.iter().copied()).collect();
    body.substitute(&same);
    let then = Block { params: Vec::new(), ..body };
    let otherwise = Block { params: Vec::new(), insts: Vec::new(), results: params.clone() };
    let next: Vec<_> = params.iter().map(|&param| function.fresh(function.ty(param), None)).collect();
    insts.push(Inst {
        op: Op::If,
        args: results.into(),
        blocks: vec![then, otherwise],
        results: next.clone().into(),
        span,
    });
    Block { params, insts, results: next }
}

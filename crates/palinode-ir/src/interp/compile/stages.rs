//! Blocks of fused operations -> stages on strips.
//!
//! A strip is used again as soon as nothing needs what is in it: the fewer there are, the longer they may be.

use super::Lower;
use crate::fast::FastMap;
use crate::interp::code::{Kind, Stage, Stages, Term};
use crate::op::Op;
use crate::program::{Block, Value};
use crate::types::Elem;

/// Strips of one kind.
#[derive(Default)]
struct Strips {
    made: u32,
    free: Vec<u32>,
}

impl Strips {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        })
    }
}

impl Lower<'_> {
    /// The stages of a block whose parameters `params` stand for elements of array operands. Registers of
    /// constants and of the other parameters are there already.
    pub(super) fn stages(&self, block: &Block, params: &[Value]) -> Stages {
        let mut made = Stages::default();
        let mut strips = [Strips::default(), Strips::default(), Strips::default()];
        let mut terms: FastMap<Value, Term> =
            params.iter().zip(0..).map(|(&param, number)| (param, Term::Operand(number))).collect();
        let mut last: FastMap<Value, usize> = FastMap::default();
        for (at, inst) in block.insts.iter().enumerate() {
            last.extend(inst.args.iter().map(|&arg| (arg, at)));
        }
        last.extend(block.results.iter().map(|&result| (result, usize::MAX)));
        for (at, inst) in block.insts.iter().enumerate() {
            if matches!(inst.op, Op::Const(_)) {
                continue;
            }
            let term = |&arg: &Value| terms.get(&arg).copied().unwrap_or_else(|| Term::Same(self.slot(arg)));
            let args = inst.args.iter().map(term).collect();
            let of = self.ty(*inst.args.last().expect("what is no constant has an operand"));
            let (result, to) = (inst.results[0], self.kind(inst.results[0]));
            let strip = strips[to as usize].take();
            terms.insert(result, Term::Strip(strip));
            let is_single = self.ty(result).elem == Elem::F32;
            let rounds = match inst.op {
                Op::Map(_) => is_single,
                Op::Convert(_) => is_single && of.elem != Elem::F32,
                _ => false,
            };
            made.compares_reals |= matches!(inst.op, Op::Compare(_)) && of.is_real();
            made.list.push(Stage { op: inst.op.clone(), args, from: Kind::of(of), to, strip, rounds });
            // Only now, so that a result is in no strip of an operand.
            for (&value, term) in &terms {
                if let Term::Strip(number) = *term
                    && last.get(&value).is_none_or(|&last| last == at)
                {
                    strips[self.kind(value) as usize].free.push(number);
                }
            }
            terms.retain(|value, term| {
                !matches!(term, Term::Strip(_)) || last.get(value).is_some_and(|&last| last > at)
            });
        }
        made.results = block
            .results
            .iter()
            .map(|result| self.result_strip(*result, &terms, &mut strips, &mut made.list))
            .collect();
        made.strips = strips.map(|strips| strips.made);
        made
    }

    /// The strip of a result: of what is no strip a copy.
    fn result_strip(
        &self,
        result: Value,
        terms: &FastMap<Value, Term>,
        strips: &mut [Strips; 3],
        list: &mut Vec<Stage>,
    ) -> u32 {
        let term = terms.get(&result).copied().unwrap_or_else(|| Term::Same(self.slot(result)));
        if let Term::Strip(strip) = term {
            return strip;
        }
        let kind = self.kind(result);
        let strip = strips[kind as usize].take();
        // Of plain numbers that is a copy.
        list.push(Stage {
            op: Op::StopGradient,
            args: [term].into_iter().collect(),
            from: kind,
            to: kind,
            strip,
            rounds: false,
        });
        strip
    }
}

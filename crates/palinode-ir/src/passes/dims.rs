//! Lengths, from where they come from.
//!
//! `dim` of an array becomes the literal or integer that the array was made with, as far as [`super::shape`]
//! can tell: through updates, elementwise operations, reads, reshapes, reductions, branches and loops that
//! keep lengths. Where nothing is known but the array that the length belongs to, all `dim`s of it become
//! one, taken right where that array is born: so asking for the length of a version never counts as a use
//! after the update that consumes it. Transforms ask for lengths all the time (`zeros(dim a)`).
//!
//! A `dim` of a `concat` becomes a sum of lengths. A `reshape` or `resize` to the lengths that the array has
//! anyway disappears.

use super::each;
use super::shape::{Len, Shapes};
use crate::fast::FastMap;
use crate::op::{IntOp, Literal, Op};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::{Span, Type};

/// Finds lengths.
pub fn dims(program: &Program) -> Program {
    each(program, "dims", dims_function)
}

pub(super) fn dims_function(function: &mut Function) {
    if !function.has_arrays() {
        return;
    }
    let (mut found, concats) = find(function);
    add_sums(function, &mut found, concats);
    function.rewrite(|function, body| Writer { function, found }.block(body));
}

/// What is to be done.
#[derive(Default)]
struct Found {
    /// What stands for a value.
    stands: FastMap<Value, Value>,
    /// `dim`s that are literals.
    literals: FastMap<Value, i64>,
    /// For an array the axes whose lengths are taken where it is born, with the value of the length.
    born: FastMap<Value, Vec<(u8, Value, Span)>>,
    /// Lengths of `concat`s that are asked for: the lengths to add.
    sums: FastMap<Value, Vec<Value>>,
    /// Terms of these that are literals.
    literal_terms: FastMap<Value, i64>,
}

/// For the result of a `concat` and its axis the lengths to add.
type Concats = FastMap<(Value, u8), Vec<Len>>;

fn find(function: &Function) -> (Found, Concats) {
    let shapes = Shapes::of(function);
    let mut concats = FastMap::default();
    let mut found = Found::default();
    function.body.for_each_inst(&mut |inst| match &inst.op {
        Op::Concat(axis) => {
            let parts = inst.args.iter().map(|&part| shapes.len(part, *axis)).collect();
            concats.insert((inst.results[0], *axis), parts);
        }
        Op::Dim(axis) => {
            let result = inst.results[0];
            match shapes.len(inst.args[0], *axis) {
                Len::Literal(number) => {
                    found.literals.insert(result, number);
                }
                Len::Value(value) => {
                    found.stands.insert(result, value);
                }
                Len::Axis(array, axis) => {
                    let born = found.born.entry(array).or_default();
                    match born.iter().find(|(other, ..)| *other == axis) {
                        Some((_, shared, _)) => {
                            found.stands.insert(result, *shared);
                        }
                        None => born.push((axis, result, inst.span)),
                    }
                }
            }
        }
        Op::Reshape => {
            let same = function.ty(inst.args[0]).rank == function.ty(inst.results[0]).rank
                && (0..)
                    .zip(&inst.args[1..])
                    .all(|(axis, &n)| shapes.len(inst.args[0], axis) == shapes.int(n));
            if same {
                found.stands.insert(inst.results[0], inst.args[0]);
            }
        }
        Op::Resize if shapes.len(inst.args[0], 0) == shapes.int(inst.args[1]) => {
            found.stands.insert(inst.results[0], inst.args[0]);
        }
        _ => {}
    });
    (found, concats)
}

/// Makes sums of the lengths of `concat`s that are asked for; the lengths to add are taken where their arrays
/// are born, too.
fn add_sums(function: &mut Function, found: &mut Found, concats: Concats) {
    let mut asked: Vec<(Value, u8, Value, Span)> = found
        .born
        .iter()
        .flat_map(|(&array, born)| born.iter().map(move |&(axis, n, span)| (array, axis, n, span)))
        .collect();
    // In the order of the text, whatever the order of the table.
    asked.sort_unstable_by_key(|&(_, _, length, _)| length);
    while let Some((array, axis, length, span)) = asked.pop() {
        let Some(parts) = concats.get(&(array, axis)) else { continue };
        let mut terms = Vec::with_capacity(parts.len());
        for &part in parts {
            terms.push(match part {
                Len::Value(value) => value,
                Len::Literal(number) => {
                    let literal = function.fresh(Type::INT, None);
                    found.literal_terms.insert(literal, number);
                    literal
                }
                Len::Axis(part, axis) => {
                    let born = found.born.entry(part).or_default();
                    match born.iter().find(|(other, ..)| *other == axis) {
                        Some((_, shared, _)) => *shared,
                        None => {
                            let term = function.fresh(Type::INT, None);
                            born.push((axis, term, span));
                            asked.push((part, axis, term, span));
                            term
                        }
                    }
                }
            });
        }
        found.sums.insert(length, terms);
    }
}

struct Writer<'a> {
    function: &'a mut Function,
    found: Found,
}

impl Writer<'_> {
    fn resolve(&self, values: &mut [Value]) {
        for value in values {
            // A reshape of a reshape, or a length that was a length.
            while let Some(&stands) = self.found.stands.get(value) {
                *value = stands;
            }
        }
    }

    fn block(&mut self, block: &mut Block) {
        let mut out = Vec::with_capacity(block.insts.len());
        for &param in &block.params {
            self.born(param, &mut out);
        }
        for mut inst in core::mem::take(&mut block.insts) {
            self.resolve(&mut inst.args);
            inst.blocks.iter_mut().for_each(|block| self.block(block));
            let result = inst.results.first().copied();
            if let Some(&number) = result.and_then(|result| self.found.literals.get(&result)) {
                out.push(Inst::new(Op::Const(Literal::Int(number)), Vec::new(), inst.results, inst.span));
                continue;
            }
            let gone = matches!(inst.op, Op::Dim(_))
                || result.is_some_and(|result| self.found.stands.contains_key(&result));
            if gone {
                continue;
            }
            let results = inst.results.clone();
            out.push(inst);
            results.iter().for_each(|&result| self.born(result, &mut out));
        }
        block.insts = out;
        self.resolve(&mut block.results);
    }

    /// The lengths of an array that is there from here on.
    fn born(&mut self, array: Value, out: &mut Vec<Inst>) {
        for (axis, length, span) in self.found.born.remove(&array).unwrap_or_default() {
            match self.found.sums.remove(&length) {
                None => out.push(Inst::new(Op::Dim(axis), vec![array], vec![length], span)),
                Some(terms) => self.sum(terms, length, span, out),
            }
        }
    }

    /// `length` as the sum of other lengths.
    fn sum(&mut self, mut terms: Vec<Value>, length: Value, span: Span, out: &mut Vec<Inst>) {
        self.resolve(&mut terms);
        for term in &terms {
            if let Some(number) = self.found.literal_terms.remove(term) {
                out.push(Inst::new(Op::Const(Literal::Int(number)), Vec::new(), vec![*term], span));
            }
        }
        let mut sum = terms[0];
        for (at, &term) in terms.iter().enumerate().skip(1) {
            let next = if at + 1 == terms.len() { length } else { self.function.fresh(Type::INT, None) };
            out.push(Inst::new(Op::Int(IntOp::Add), vec![sum, term], vec![next], span));
            sum = next;
        }
    }
}

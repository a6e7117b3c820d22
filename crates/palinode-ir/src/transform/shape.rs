//! Where the lengths of arrays come from.
//!
//! Input: a function. Output: for an array, another one of the same shape that was there earlier (outside a
//! loop, before an update), or the integer values that are its lengths. So the reverse half of a program can
//! make zeros of the right shape from a length that is known anyway, instead of keeping one per round.

use std::cell::RefCell;

use crate::fast::FastMap;
use crate::op::Op;
use crate::program::{Block, Function, Value};
use crate::transform::activity::carried;

/// What is known of an array's shape.
#[derive(Clone, Debug)]
enum Origin {
    /// That of each of these arrays.
    SameAs(Vec<Value>),
    /// These lengths.
    Lengths(Vec<Value>),
    /// A carried value: the initial one and the next one; the block's parameter stands for it inside.
    Carried { init: Value, param: Value, next: Value },
}

/// The origins of the shapes of a function's arrays.
pub(crate) struct Shapes {
    origins: FastMap<Value, Origin>,
    /// Roots that were found: thousands of versions of an array, one made from the other, have one.
    roots: RefCell<FastMap<Value, Root>>,
}

/// The earliest thing that has the shape of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// This array.
    Array(Value),
    /// These lengths.
    Lengths(Vec<Value>),
}

impl Shapes {
    pub(crate) fn of(function: &Function) -> Shapes {
        let mut shapes = Shapes { origins: FastMap::default(), roots: RefCell::default() };
        shapes.block(function, &function.body);
        // Inside a loop it was not yet known what the loop carries.
        shapes.roots.take();
        shapes
    }

    fn block(&mut self, function: &Function, block: &Block) {
        for inst in &block.insts {
            for inner in &inst.blocks {
                self.block(function, inner);
            }
            match &inst.op {
                Op::Write(_) | Op::AddAt(_) => {
                    self.origins.insert(inst.results[0], Origin::SameAs(vec![inst.args[0]]));
                }
                Op::Broadcast(_) | Op::Reshape => {
                    self.origins.insert(inst.results[0], Origin::Lengths(inst.args[1..].to_vec()));
                }
                Op::For { .. } | Op::While { .. } => {
                    let (init, params, body) = carried(inst);
                    for (at, (&init, &param)) in init.iter().zip(params).enumerate() {
                        let origin = Origin::Carried { init, param, next: body.results[at] };
                        self.origins.insert(param, origin.clone());
                        self.origins.insert(inst.results[at], origin);
                    }
                }
                Op::If => {
                    for (at, &result) in inst.results.iter().enumerate() {
                        let [yes, no] = [0, 1].map(|side| self.root(inst.blocks[side].results[at]));
                        if function.ty(result).rank > 0 && yes == no {
                            // What is the same on both sides was there before.
                            self.origins.insert(
                                result,
                                match yes {
                                    Root::Array(array) => Origin::SameAs(vec![array]),
                                    Root::Lengths(lengths) => Origin::Lengths(lengths),
                                },
                            );
                        }
                    }
                }
                op if op.is_elementwise() => {
                    let rank = function.ty(inst.results[0]).rank;
                    let is_alike = |arg: &Value| rank > 0 && function.ty(*arg).rank == rank;
                    let alike: Vec<Value> = inst.args.iter().copied().filter(is_alike).collect();
                    if !alike.is_empty() {
                        self.origins.insert(inst.results[0], Origin::SameAs(alike));
                    }
                }
                _ => {}
            }
        }
    }

    /// Something earlier with the shape of `array`.
    pub(crate) fn root(&self, array: Value) -> Root {
        self.follow(array, &mut Vec::new()).0
    }

    /// The root, and the first of `assumed` that it rests on (beyond the last if on none). `assumed`:
    /// parameters of loops, outermost first, whose invariance is being established.
    fn follow(&self, array: Value, assumed: &mut Vec<Value>) -> (Root, usize) {
        let mut array = array;
        // What has the same root, from one to the next.
        let mut way = Vec::new();
        let mut rests_on = usize::MAX;
        let root = loop {
            if let Some(known) = self.roots.borrow().get(&array) {
                break known.clone();
            }
            let (init, param, next) = match self.origins.get(&array) {
                None => break Root::Array(array),
                Some(Origin::Lengths(lengths)) => break Root::Lengths(lengths.clone()),
                Some(Origin::SameAs(others)) => {
                    way.push(array);
                    array = others[0];
                    continue;
                }
                Some(&Origin::Carried { init, param, next }) => (init, param, next),
            };
            if let Some(at) = assumed.iter().position(|&other| other == param) {
                rests_on = rests_on.min(at);
                break Root::Array(param);
            }
            assumed.push(param);
            let (next, rest) = self.follow(next, assumed);
            assumed.pop();
            if rest < assumed.len() {
                rests_on = rests_on.min(rest);
            }
            // A value that is the parameter itself, or has lengths that do not change, keeps its shape.
            if next != Root::Array(param) {
                break Root::Array(array);
            }
            way.push(array);
            array = init;
        };
        if rests_on == usize::MAX {
            self.roots.borrow_mut().extend(way.into_iter().map(|value| (value, root.clone())));
        }
        (root, rests_on)
    }

    /// The first array of the shape of `array`, itself included, that `accepts`.
    pub(crate) fn alike(&self, array: Value, accepts: &dyn Fn(Value) -> Option<Value>) -> Option<Value> {
        if let Some(found) = accepts(array) {
            return Some(found);
        }
        match self.origins.get(&array)? {
            Origin::SameAs(others) => others.iter().find_map(|&other| self.alike(other, accepts)),
            Origin::Lengths(_) => Some(array),
            // Only if the loop is known to keep the shape.
            Origin::Carried { init, param, .. } if self.root(*param) != Root::Array(*param) => {
                self.alike(*init, accepts)
            }
            Origin::Carried { .. } => None,
        }
    }
}

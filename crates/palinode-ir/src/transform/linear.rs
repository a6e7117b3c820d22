//! Whether a function is linear in some of its arguments, as transposition takes for granted.
//!
//! Input: a function and the arguments that are marked. Output: the first operation that breaks linearity, if
//! one does: a product of two linear values, a comparison of one, a sum with something known that is not
//! zero.

use std::cell::RefCell;

use palinode_core::rules::Row;

use crate::fast::{FastMap, FastSet, Marks};
use crate::op::{FuncId, Linear, Literal, Op};
use crate::passes;
use crate::program::{Block, Function, Inst, Program, Value};
use crate::transform::TransformError;
use crate::transform::activity::{active, carried};

/// Checks that every tangent rule of the program is linear in its tangents.
pub(crate) fn check_rules(program: &Program) -> Result<(), TransformError> {
    if program.functions.iter().all(|function| function.tangent_rule.is_none()) {
        return Ok(());
    }
    let program = &passes::unfuse(program);
    for function in &program.functions {
        if let Some(rule) = function.tangent_rule {
            let rule = program.function(rule);
            let known = function.body.params.len();
            let linear: Vec<bool> = (0..rule.body.params.len()).map(|at| at >= known).collect();
            check(&program.functions, rule, &linear)?;
        }
    }
    Ok(())
}

/// Checks that `function` is linear in the marked arguments.
pub(crate) fn check(
    functions: &[Function],
    function: &Function,
    linear: &[bool],
) -> Result<(), TransformError> {
    check_once(functions, function, linear, &RefCell::new(FastSet::default()))
}

/// Calls that have been looked at, or are being.
type Seen = RefCell<FastSet<(FuncId, Vec<bool>)>>;

fn check_once(
    functions: &[Function],
    function: &Function,
    linear: &[bool],
    seen: &Seen,
) -> Result<(), TransformError> {
    let params = function.body.params.iter().zip(linear);
    let seeds: Vec<Value> = params.filter(|(_, linear)| **linear).map(|(&param, _)| param).collect();
    let check = Check {
        functions,
        linear: active(functions, function, &seeds),
        zeros: Zeros { functions, around: Vec::new(), known: FastMap::default(), leaned: usize::MAX }
            .of(function),
        seen,
    };
    check.block(&function.body)
}

struct Check<'a> {
    functions: &'a [Function],
    linear: Marks,
    /// Values that are zero whatever the arguments are.
    zeros: FastSet<Value>,
    seen: &'a Seen,
}

/// Finds values that are zero whatever the arguments are: literal zeros, what linear operations make of them,
/// and calls that give them.
struct Zeros<'a> {
    functions: &'a [Function],
    /// The functions that are being looked at, outermost first. A call of one of them is taken to give no
    /// zeros.
    around: Vec<FuncId>,
    /// The results that are zero, of functions that have been looked at.
    known: FastMap<FuncId, Vec<bool>>,
    /// The outermost of `around` that was met again.
    leaned: usize,
}

impl Zeros<'_> {
    fn called(&mut self, callee: FuncId) -> Vec<bool> {
        if let Some(known) = self.known.get(&callee) {
            return known.clone();
        }
        let function = &self.functions[callee.index()];
        if let Some(at) = self.around.iter().position(|&around| around == callee) {
            self.leaned = self.leaned.min(at);
            return vec![false; function.body.results.len()];
        }
        let outer = core::mem::replace(&mut self.leaned, usize::MAX);
        self.around.push(callee);
        let zero = self.of(function);
        self.around.pop();
        let found: Vec<bool> = function.body.results.iter().map(|result| zero.contains(result)).collect();
        // What rests on the assumption about a function further out is no answer for later.
        if self.leaned >= self.around.len() {
            self.known.insert(callee, found.clone());
            self.leaned = outer;
        } else {
            self.leaned = self.leaned.min(outer);
        }
        found
    }

    fn of(&mut self, function: &Function) -> FastSet<Value> {
        let mut zero: FastSet<Value> = FastSet::default();
        function.body.for_each_inst(&mut |inst| {
            let is = |at: usize| zero.contains(&inst.args[at]);
            let gives = match &inst.op {
                Op::Const(Literal::Real(value)) => *value == 0.0,
                Op::Call(callee) => {
                    let given = self.called(*callee);
                    let pairs = inst.results.iter().zip(given);
                    zero.extend(pairs.filter(|(_, given)| *given).map(|(&result, _)| result));
                    false
                }
                // Zero by zero is not zero.
                Op::Map(rule) if rule.row == Row::Divide => false,
                op => match op.facts().linear {
                    Linear::No => false,
                    Linear::Jointly(from, to) => (from..to.min(inst.args.len())).all(is),
                    Linear::Each { strong } => strong && (is(0) || is(1)),
                    Linear::WithEach { strong } => strong && is(0) && (is(1) || is(2)),
                },
            };
            if gives {
                zero.extend(&inst.results);
            }
        });
        zero
    }
}

impl Check<'_> {
    fn refuse(inst: &Inst) -> Result<(), TransformError> {
        Err(TransformError::NotLinear { op: inst.op.name().to_string(), span: inst.span })
    }

    fn is(&self, value: Value) -> bool {
        self.linear.contains(&value)
    }

    /// Whether what is added to something linear is linear too, or zero.
    fn fits(&self, value: Value) -> bool {
        self.is(value) || self.zeros.contains(&value)
    }

    fn all_fit(&self, values: &[Value]) -> bool {
        values.iter().all(|&value| self.fits(value))
    }

    /// For each place that holds something linear, what goes there fits.
    fn carried_fit(&self, places: &[Value], values: &[Value]) -> bool {
        places.iter().zip(values).all(|(&place, &value)| !self.is(place) || self.fits(value))
    }

    fn block(&self, block: &Block) -> Result<(), TransformError> {
        block.insts.iter().try_for_each(|inst| self.inst(inst))
    }

    fn inst(&self, inst: &Inst) -> Result<(), TransformError> {
        let args = &inst.args;
        let uses = args.iter().any(|&arg| self.is(arg));
        let gives = inst.results.iter().any(|&result| self.is(result));
        let holds = match &inst.op {
            Op::For { .. } | Op::While { .. } => {
                let (init, params, body) = carried(inst);
                for block in &inst.blocks {
                    self.block(block)?;
                }
                self.carried_fit(params, init)
                    && self.carried_fit(params, &body.results)
                    && self.head_is_known(inst)
            }
            Op::If => {
                for block in &inst.blocks {
                    self.block(block)?;
                }
                inst.blocks.iter().all(|block| self.carried_fit(&inst.results, &block.results))
            }
            // A rule is checked by itself; tangents that are zero may be among those that it takes.
            Op::Call(callee) if uses && self.known_of_rule(*callee).is_some() => {
                let (known, tangents) = args.split_at(self.known_of_rule(*callee).unwrap_or(0));
                known.iter().all(|&arg| !self.is(arg)) && self.all_fit(tangents)
            }
            Op::Call(callee) => {
                let linear: Vec<bool> = args.iter().map(|&arg| self.is(arg)).collect();
                if uses && self.seen.borrow_mut().insert((*callee, linear.clone())) {
                    check_once(self.functions, &self.functions[callee.index()], &linear, self.seen)?;
                }
                true
            }
            _ if !uses => true,
            // What is known must not look at what is linear, but for its shape.
            Op::Dim(_) => true,
            _ if !gives => false,
            op => match op.facts().linear {
                Linear::No => false,
                Linear::Jointly(from, to) => args
                    .iter()
                    .enumerate()
                    .all(|(at, &arg)| if (from..to).contains(&at) { self.fits(arg) } else { !self.is(arg) }),
                Linear::Each { .. } => self.is(args[0]) != self.is(args[1]),
                Linear::WithEach { .. } => self.fits(args[0]) && self.is(args[1]) != self.is(args[2]),
            },
        };
        if holds { Ok(()) } else { Check::refuse(inst) }
    }

    /// How many arguments a tangent rule takes before the tangents.
    fn known_of_rule(&self, rule: FuncId) -> Option<usize> {
        let ruled = self.functions.iter().find(|function| function.tangent_rule == Some(rule))?;
        Some(ruled.body.params.len())
    }

    /// The condition of a `while` uses nothing linear: its parameters are those of the body, under other
    /// names.
    fn head_is_known(&self, inst: &Inst) -> bool {
        if !matches!(inst.op, Op::While { .. }) {
            return true;
        }
        let (head, body) = (&inst.blocks[0], &inst.blocks[1]);
        let linear: FastSet<Value> = head
            .params
            .iter()
            .zip(&body.params)
            .filter(|(_, param)| self.is(**param))
            .map(|(&param, _)| param)
            .collect();
        let mut known = true;
        head.for_each_use(&mut |value| known &= !linear.contains(&value) && !self.is(value));
        known
    }
}

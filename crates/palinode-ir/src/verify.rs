//! The verifier. It runs after every transform in debug builds and tests, and after parsing and building
//! always.
//!
//! A program that passes satisfies:
//!
//! 1. every value is defined exactly once, by a parameter or an instruction, and has an entry in its
//!    function's table;
//! 2. every use is preceded by its definition in the same block or one around it (no use outside the block);
//! 3. operand and result types agree with [`crate::typing`];
//! 4. loops: `for` has `1 + n` operands, one block with an `int` and `n` carried parameters, `n` block
//!    results and `n` results of the same types; `while` has `n` operands, a condition block that gives one
//!    `bool`, and a body likewise; `sweep` has a number, a state and cotangents as operands, a block that
//!    maps a counter and a state to a state, and one that maps a counter, a state and cotangents to
//!    cotangents, which are its results;
//! 5. `if` has a `bool` operand and two blocks without parameters whose results have the types of its own
//!    results;
//! 6. `fused` has one block of elementwise scalar instructions, a parameter for each operand, captures
//!    nothing, and its results have the rank of its operands;
//! 7. calls agree with the callee's types; function names are unique and not empty; the entry exists;
//! 8. a tangent rule takes the arguments and a tangent for each real one, and gives a tangent for each real
//!    result;
//! 9. the program names as many outputs as its entry has results.
//!
//! It does not check lengths (they are known when the program runs) nor that recursion terminates.

use std::fmt;

use crate::fast::{FastMap, FastSet};
use crate::op::Op;
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::Type;
use crate::typing::result_types;

/// Why a program is not one: everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// A sentence for each.
    pub problems: Vec<String>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PAL0240: not a valid program")?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for Invalid {}

/// Checks the invariants that the module's documentation lists.
///
/// # Errors
/// All violations.
pub fn verify(program: &Program) -> Result<(), Invalid> {
    let mut problems = Vec::new();
    let mut names = FastSet::default();
    for function in &program.functions {
        if function.name.is_empty() || !names.insert(&function.name) {
            problems.push(format!("the name `{}` of a function is empty or used twice", function.name));
        }
        let mut check =
            Check { program, function, visible: FastMap::default(), defined: 0, problems: Vec::new() };
        check.function();
        problems.extend(check.problems.into_iter().map(|what| format!("in `{}`: {what}", function.name)));
    }
    match program.functions.get(program.entry.index()) {
        None => problems.push(format!("the entry is function {}, which does not exist", program.entry.0)),
        Some(main) if main.body.results.len() != program.outputs.len() => problems.push(format!(
            "{} outputs are named, but `{}` has {} results",
            program.outputs.len(),
            main.name,
            main.body.results.len()
        )),
        Some(_) => {}
    }
    if problems.is_empty() { Ok(()) } else { Err(Invalid { problems }) }
}

struct Check<'a> {
    program: &'a Program,
    function: &'a Function,
    /// The values in scope; false once their block is left.
    visible: FastMap<Value, bool>,
    defined: usize,
    problems: Vec<String>,
}

impl Check<'_> {
    fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.problems.push(otherwise());
        }
    }

    fn function(&mut self) {
        self.block(&self.function.body);
        let (table, defined) = (self.function.values.len(), self.defined);
        self.require(table == defined, || format!("{table} values are listed, {defined} are defined"));
        if let Some(rule) = self.function.tangent_rule {
            self.tangent_rule(rule);
        }
    }

    fn tangent_rule(&mut self, rule: crate::op::FuncId) {
        let Some(rule) = self.program.functions.get(rule.index()) else {
            self.problems.push(format!("its tangent rule is function {}, which does not exist", rule.0));
            return;
        };
        let reals = |types: Vec<Type>| types.into_iter().filter(|ty| ty.is_real());
        let params = self.function.param_types();
        let expected: Vec<Type> = params.iter().copied().chain(reals(params.clone())).collect();
        let results: Vec<Type> = reals(self.function.result_types()).collect();
        let fits = rule.param_types() == expected && rule.result_types() == results;
        self.require(fits, || {
            let list = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
            format!("its tangent rule `{}` must map ({}) to ({})", rule.name, list(&expected), list(&results))
        });
    }

    fn define(&mut self, value: Value) {
        let listed = value.index() < self.function.values.len();
        self.require(listed, || format!("v{} is not in the table of values", value.0));
        let again = self.visible.insert(value, true).is_some();
        self.require(!again, || format!("v{} is defined twice", value.0));
        self.defined += 1;
    }

    fn uses(&mut self, values: &[Value]) -> Option<Vec<Type>> {
        let mut types = Vec::new();
        for &value in values {
            match self.visible.get(&value) {
                Some(true) if value.index() < self.function.values.len() => {
                    types.push(self.function.ty(value))
                }
                Some(true) => {}
                Some(false) => self.problems.push(format!("v{} is used outside its block", value.0)),
                None => self.problems.push(format!("v{} is used before it is defined", value.0)),
            }
        }
        (types.len() == values.len()).then_some(types)
    }

    fn block(&mut self, block: &Block) -> Option<Vec<Type>> {
        let mut own: Vec<Value> = block.params.clone();
        block.params.iter().for_each(|&param| self.define(param));
        for inst in &block.insts {
            self.inst(inst);
            inst.results.iter().for_each(|&result| self.define(result));
            own.extend(&inst.results);
        }
        let results = self.uses(&block.results);
        for value in own {
            self.visible.insert(value, false);
        }
        results
    }

    fn types(&self, values: &[Value]) -> Vec<Type> {
        let table = &self.function.values;
        values.iter().filter_map(|value| table.get(value.index())).map(|info| info.ty).collect()
    }

    fn inst(&mut self, inst: &Inst) {
        let name = inst.op.name();
        let args = self.uses(&inst.args);
        let blocks: Vec<Option<Vec<Type>>> = inst.blocks.iter().map(|block| self.block(block)).collect();
        let results = self.types(&inst.results);
        let expected_blocks = inst.op.blocks();
        if inst.blocks.len() != expected_blocks {
            self.problems.push(format!("`{name}` has {} blocks, not {expected_blocks}", inst.blocks.len()));
            return;
        }
        // A value that is used out of place has been reported, and its type says nothing.
        let (Some(args), Some(given)) = (args, blocks.into_iter().collect::<Option<Vec<_>>>()) else {
            return;
        };
        let params: Vec<Vec<Type>> = inst.blocks.iter().map(|block| self.types(&block.params)).collect();
        match inst.op {
            Op::For { .. } => {
                let carried = args.get(1..).unwrap_or_default();
                let fits = args.first() == Some(&Type::INT)
                    && params[0].first() == Some(&Type::INT)
                    && params[0].get(1..) == Some(carried)
                    && given[0] == carried
                    && results == carried;
                self.require(fits, || "the types of a `for` and its block differ".to_string());
            }
            Op::While { .. } => {
                let fits = params[0] == args && params[1] == args && given[1] == args && results == args;
                self.require(fits, || "the types of a `while` and its blocks differ".to_string());
                self.require(given[0] == [Type::BOOL], || "the condition of a `while` gives one bool".into());
            }
            Op::Sweep { turns, .. } => {
                let state = params[0].get(1..).unwrap_or_default();
                let cotangents = params[1].get(1 + state.len()..).unwrap_or_default();
                let around = if turns {
                    params[2].get(..state.len()) == Some(state)
                        && args == [&[Type::INT], &params[2][..]].concat()
                        && given[2].get(..cotangents.len()) == Some(cotangents)
                        && results == given[2]
                } else {
                    args == [&[Type::INT], state, cotangents].concat() && results == cotangents
                };
                let fits = params[..2].iter().all(|params| params.first() == Some(&Type::INT))
                    && params[1].get(1..1 + state.len()) == Some(state)
                    && given[0] == state
                    && given[1] == cotangents
                    && around;
                self.require(fits, || "the types of a `sweep` and its blocks differ".to_string());
            }
            Op::If => {
                self.require(args == [Type::BOOL], || "`if` takes one bool".to_string());
                let fits = params.iter().all(Vec::is_empty) && given.iter().all(|types| *types == results);
                self.require(fits, || "the types of an `if` and its blocks differ".to_string());
            }
            Op::Call(callee) => match self.program.functions.get(callee.index()) {
                None => self.problems.push(format!("a call of function {}, which does not exist", callee.0)),
                Some(callee) => {
                    let fits = callee.param_types() == args && callee.result_types() == results;
                    self.require(fits, || format!("the types of a call of `{}` differ", callee.name));
                }
            },
            Op::Fused => self.fused(inst, &args, &given[0], &results),
            _ => match result_types(&inst.op, &args) {
                Err(mismatch) => self.problems.push(mismatch),
                Ok(types) => self.require(types == results, || {
                    format!("`{name}` gives {types:?}, but its results are {results:?}")
                }),
            },
        }
    }

    fn fused(&mut self, inst: &Inst, args: &[Type], given: &[Type], results: &[Type]) {
        let block = &inst.blocks[0];
        let rank = args.iter().map(|ty| ty.rank).max().unwrap_or(0);
        let scalars: Vec<Type> = args.iter().map(|ty| ty.with_rank(0)).collect();
        let fits = self.types(&block.params) == scalars
            && args.iter().all(|ty| ty.rank == rank || ty.rank == 0)
            && given.iter().map(|ty| ty.with_rank(rank)).eq(results.iter().copied());
        self.require(fits, || "the types of a `fused` and its block differ".to_string());
        self.require(block.captures().is_empty(), || "a `fused` block captures values".to_string());
        let plain = block.insts.iter().all(|inst| inst.op.is_elementwise());
        self.require(plain, || "a `fused` block holds something that is not elementwise".to_string());
    }
}

//! Which values depend on what, by a derivative.
//!
//! Input: a function and some of its values. Output: every value through which a derivative can flow from
//! them ([`active`]), or to the results ([`useful`]). Loops are followed until nothing changes.

use std::cell::{Cell, RefCell};

use crate::fast::{FastMap, Marks};
use crate::op::{FuncId, Op};
use crate::program::{Block, Function, Inst, Value, Values};
use crate::transform::symbol::is_flat;

/// The operands whose change changes the results to first order, if both are real.
pub(crate) fn differentiable_operands(inst: &Inst) -> Values {
    let args = &inst.args;
    assert!(inst.blocks.is_empty(), "instructions with blocks are followed inside");
    match &inst.op {
        Op::Map(rule) => {
            (0..args.len()).filter(|&which| !is_flat(*rule, which)).map(|which| args[which]).collect()
        }
        op if op.facts().cuts => Values::new(),
        _ => args.clone(),
    }
}

/// The real values of `function` that depend on `seeds`; `functions` are those that it may call.
pub(crate) fn active(functions: &[Function], function: &Function, seeds: &[Value]) -> Marks {
    let callees = Callees {
        functions,
        known: RefCell::new(FastMap::default()),
        grown: Cell::new(false),
        working: Cell::new(false),
    };
    reached(function, seeds, &callees)
}

fn reached(function: &Function, seeds: &[Value], callees: &Callees<'_>) -> Marks {
    let real = |value: &Value| function.ty(*value).is_real();
    let reached = seeds.iter().copied().filter(real).collect();
    let mut flow = Flow { function, reached, changed: false, callees: Some(callees) };
    loop {
        flow.changed = false;
        flow.down(&function.body);
        if !flow.changed {
            return flow.reached;
        }
    }
}

/// For a function and its marked arguments, the results that depend on them.
type Dependent = FastMap<(FuncId, Vec<bool>), Vec<bool>>;

/// Which results of a function depend on which arguments.
struct Callees<'a> {
    functions: &'a [Function],
    known: RefCell<Dependent>,
    /// An entry of `known` was added or has grown since this was last looked at.
    grown: Cell<bool>,
    /// The answers are being worked out: what is asked meanwhile is answered by what is known so far.
    working: Cell<bool>,
}

impl Callees<'_> {
    /// The results that depend on the marked arguments. Every call that is met is first taken to depend on
    /// nothing; then all answers grow together until they explain each other. (One at a time would keep
    /// answers that were found under an assumption which did not last: functions may call each other, and
    /// themselves with other arguments marked.)
    fn dependent(&self, callee: FuncId, args: &[bool]) -> Vec<bool> {
        let key = (callee, args.to_vec());
        let known = self.known.borrow().get(&key).cloned();
        let settled = known.is_some() && !self.grown.get();
        match known {
            Some(found) if self.working.get() || settled => return found,
            Some(_) => {}
            None => {
                let nothing = vec![false; self.functions[callee.index()].body.results.len()];
                self.known.borrow_mut().insert(key.clone(), nothing.clone());
                self.grown.set(true);
                if self.working.get() {
                    return nothing;
                }
            }
        }
        self.working.set(true);
        while self.grown.replace(false) {
            let keys: Vec<(FuncId, Vec<bool>)> = self.known.borrow().keys().cloned().collect();
            for (callee, args) in keys {
                let found = self.once(callee, &args);
                let before = self.known.borrow_mut().insert((callee, args), found.clone());
                if before.as_ref() != Some(&found) {
                    self.grown.set(true);
                }
            }
        }
        self.working.set(false);
        self.known.borrow()[&key].clone()
    }

    /// The answer that follows from what is known so far.
    fn once(&self, callee: FuncId, args: &[bool]) -> Vec<bool> {
        let function = &self.functions[callee.index()];
        if function.tangent_rule.is_some() {
            // A rule given by hand may have slopes where the body has none.
            return function.result_types().iter().map(|ty| ty.is_real()).collect();
        }
        let params = function.body.params.iter().zip(args);
        let seeds: Vec<Value> = params.filter(|(_, marked)| **marked).map(|(&param, _)| param).collect();
        let values = reached(function, &seeds, self);
        function.body.results.iter().map(|result| values.contains(result)).collect()
    }
}

/// The values on which `results` depend.
pub(crate) fn useful(function: &Function, results: &[Value]) -> Marks {
    let reached = results.iter().copied().collect();
    let mut flow = Flow { function, reached, changed: false, callees: None };
    loop {
        flow.changed = false;
        flow.up(&function.body);
        if !flow.changed {
            return flow.reached;
        }
    }
}

struct Flow<'a> {
    function: &'a Function,
    reached: Marks,
    changed: bool,
    callees: Option<&'a Callees<'a>>,
}

impl Flow<'_> {
    fn has(&self, value: Value) -> bool {
        self.reached.contains(&value)
    }

    /// Whether it is news.
    fn reach(&mut self, value: Value) -> bool {
        self.function.ty(value).is_real() && self.reached.insert(value)
    }

    /// `to` depends on `from`.
    fn pass_down(&mut self, from: &[Value], to: &[Value]) -> bool {
        let mut news = false;
        for (&from, &to) in from.iter().zip(to) {
            news |= self.has(from) && self.reach(to);
        }
        news
    }

    /// `from` is needed by `to`.
    fn pass_up(&mut self, from: &[Value], to: &[Value]) -> bool {
        self.pass_down(to, from)
    }

    fn down(&mut self, block: &Block) {
        for inst in &block.insts {
            match &inst.op {
                Op::For { .. } | Op::While { .. } => {
                    let (init, params, body) = carried(inst);
                    self.pass_down(init, params);
                    self.down(body);
                    // Only what the next round hands to this text again can make another walk necessary.
                    self.changed |= self.pass_down(&body.results, params);
                    self.pass_down(params, &inst.results);
                }
                Op::Sweep { .. } => {
                    let Swept { state, seeds, advance, back, turn } = swept(inst);
                    let (states, cotangents) = back.params[1..].split_at(state.len());
                    self.pass_down(state, &advance.params[1..]);
                    self.down(advance);
                    self.changed |= self.pass_down(&advance.results, &advance.params[1..]);
                    self.pass_down(&advance.params[1..], states);
                    if let Some(turn) = turn {
                        self.pass_down(states, &turn.params);
                        self.pass_down(seeds, &turn.params[states.len()..]);
                        self.down(turn);
                        self.pass_down(&turn.results, cotangents);
                        self.pass_down(&turn.results, &inst.results);
                    } else {
                        self.pass_down(seeds, cotangents);
                    }
                    self.down(back);
                    self.changed |= self.pass_down(&back.results, cotangents);
                    self.pass_down(cotangents, &inst.results);
                }
                Op::If => {
                    for block in &inst.blocks {
                        self.down(block);
                        self.pass_down(&block.results, &inst.results);
                    }
                }
                Op::Fused => {
                    let block = &inst.blocks[0];
                    self.pass_down(&inst.args, &block.params);
                    self.down(block);
                    self.pass_down(&block.results, &inst.results);
                }
                Op::Call(callee) => {
                    let args: Vec<bool> = inst.args.iter().map(|&arg| self.has(arg)).collect();
                    let Some(callees) = self.callees.filter(|_| args.contains(&true)) else { continue };
                    let dependent = callees.dependent(*callee, &args);
                    for (&result, dependent) in inst.results.iter().zip(dependent) {
                        if dependent {
                            self.reach(result);
                        }
                    }
                }
                _ => {
                    if differentiable_operands(inst).iter().any(|&arg| self.has(arg)) {
                        inst.results.iter().for_each(|&result| {
                            self.reach(result);
                        });
                    }
                }
            }
        }
    }

    fn up(&mut self, block: &Block) {
        for inst in block.insts.iter().rev() {
            match &inst.op {
                Op::For { .. } | Op::While { .. } => {
                    let (init, params, body) = carried(inst);
                    self.pass_up(&body.results, &inst.results);
                    self.pass_up(&body.results, params);
                    self.up(body);
                    self.changed |= self.pass_up(&body.results, params);
                    self.pass_up(params, &inst.results);
                    self.pass_up(init, params);
                }
                Op::Sweep { .. } => {
                    let Swept { state, seeds, advance, back, turn } = swept(inst);
                    let (states, cotangents) = back.params[1..].split_at(state.len());
                    self.pass_up(&back.results, &inst.results);
                    self.pass_up(&back.results, cotangents);
                    self.up(back);
                    self.changed |= self.pass_up(&back.results, cotangents);
                    self.pass_up(cotangents, &inst.results);
                    self.pass_up(&advance.params[1..], states);
                    if let Some(turn) = turn {
                        self.pass_up(&turn.results, cotangents);
                        let more = cotangents.len();
                        self.pass_up(&turn.results[more..], &inst.results[more..]);
                        self.up(turn);
                        self.pass_up(&advance.params[1..], &turn.params);
                        self.pass_up(seeds, &turn.params[states.len()..]);
                    } else {
                        self.pass_up(seeds, cotangents);
                    }
                    self.pass_up(&advance.results, &advance.params[1..]);
                    self.up(advance);
                    self.changed |= self.pass_up(&advance.results, &advance.params[1..]);
                    self.pass_up(state, &advance.params[1..]);
                }
                Op::If => {
                    for block in &inst.blocks {
                        self.pass_up(&block.results, &inst.results);
                        self.up(block);
                    }
                }
                Op::Fused => {
                    let block = &inst.blocks[0];
                    self.pass_up(&block.results, &inst.results);
                    self.up(block);
                    self.pass_up(&inst.args, &block.params);
                }
                _ => {
                    if inst.results.iter().any(|&result| self.has(result)) {
                        differentiable_operands(inst).into_iter().for_each(|arg| {
                            self.reach(arg);
                        });
                    }
                }
            }
        }
    }
}

/// The initial values, the block parameters and the body of a loop, carried values only.
pub(crate) fn carried(inst: &Inst) -> (&[Value], &[Value], &Block) {
    match inst.op {
        Op::While { .. } => (&inst.args, &inst.blocks[1].params, &inst.blocks[1]),
        _ => (&inst.args[1..], &inst.blocks[0].params[1..], &inst.blocks[0]),
    }
}

/// The parts of a sweep.
pub(crate) struct Swept<'a> {
    /// The initial state.
    pub(crate) state: &'a [Value],
    /// The initial cotangents, or what the turn is given besides the state.
    pub(crate) seeds: &'a [Value],
    pub(crate) advance: &'a Block,
    pub(crate) back: &'a Block,
    pub(crate) turn: Option<&'a Block>,
}

pub(crate) fn swept(inst: &Inst) -> Swept<'_> {
    let (advance, back) = (&inst.blocks[0], &inst.blocks[1]);
    let (state, seeds) = inst.args[1..].split_at(advance.results.len());
    Swept { state, seeds, advance, back, turn: inst.blocks.get(2) }
}

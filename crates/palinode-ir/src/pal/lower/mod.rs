//! Syntax tree -> program: names, types, single assignment and structured control in one walk.
//!
//! A body is lowered by *attempts*. What an attempt finds out too late (a variable that starts as `0` is
//! assigned a real later, what a recursive function returns) is kept as a *fact* of its instance, the attempt
//! is thrown away and another is made. Facts only grow, so this ends. A value that could not be lowered is
//! poison: nothing is reported about it again.
//!
//! | part | does |
//! |---|---|
//! | `body` | one attempt at a body: variables, scopes, blocks |
//! | `stmt`, `control`, `loops` | statements; branches, early exits; loops |
//! | `equation` | fixed points and roots |
//! | `expr`, `operator`, `builtin`, `array` | expressions |
//! | `view` | places in arrays: elements, parts, views of views |
//! | `call` | functions of the source, one instance for each list of argument types |
//! | `declare` | params, inputs, lengths, constants and their defaults |

mod array;
mod body;
mod builtin;
mod call;
mod control;
mod declare;
mod equation;
mod expr;
mod loops;
mod operator;
mod place;
mod state;
mod stmt;
mod value;
mod view;

use super::names::Mentions;
use super::syntax::ast::{Annotation, Function, Stmt, StmtKind};
use super::{Argument, Output};
use crate::builder::ProgramBuilder;
use crate::diagnostic::Diagnostic;
use crate::implicit::{self, Equation};
use crate::op::FuncId;
use crate::program::Program;
use crate::types::{Span, Type};
use body::Body;
use declare::Global;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use value::annotated;

/// How many levels of syntax may be open at once, all functions on the way together.
const MAX_LEVELS: u16 = 600;
/// How many attempts at bodies may be made in all.
const MAX_ATTEMPTS: u32 = 5000;

/// What is found out about a body while it is lowered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// What it returns.
    pub(crate) results: Option<Vec<Type>>,
    /// The variables that start as integers but are assigned reals: where they are defined, and where that
    /// happens.
    pub(crate) promoted: HashMap<Span, Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// No attempt has been finished.
    Open,
    /// Being lowered, at this height of the stack of bodies.
    Active(usize),
    Done,
    /// It has mistakes; they have been reported.
    Failed,
}

/// A function of the source for certain types of arguments.
struct Instance {
    id: FuncId,
    source: usize,
    name: String,
    /// What it takes, passed globals included.
    params: Vec<Type>,
    facts: Facts,
    status: Status,
    /// When the last attempt was made, by [`Module::epoch`].
    tried: Option<u32>,
    /// The lowest body of the stack whose results it needs.
    waits_for: Option<usize>,
    /// Of the last attempt.
    problems: Vec<Diagnostic>,
}

struct Source<'a> {
    function: &'a Function,
    /// The globals that it uses, itself or through what it calls: they are passed along.
    captures: Vec<usize>,
    called: bool,
}

#[derive(Default)]
struct Module<'a> {
    sources: Vec<Source<'a>>,
    source_of: HashMap<Arc<str>, usize>,
    globals: Vec<Global<'a>>,
    global_of: HashMap<Arc<str>, usize>,
    arguments: Vec<Argument>,
    instances: Vec<Instance>,
    instance_of: HashMap<(usize, Vec<Type>), usize>,
    used_names: HashSet<Arc<str>>,
    builder: ProgramBuilder,
    /// Fixed points and roots, by the instance and the place where they stand.
    equations: Vec<((Option<usize>, Span), Equation)>,
    problems: Vec<Diagnostic>,
    /// Names that statements which could not be read would have defined.
    broken: HashSet<Arc<str>>,
    /// The variables of the top level, which functions do not see.
    variables: HashMap<Arc<str>, Span>,
    /// Counts facts.
    epoch: u32,
    attempts: u32,
    levels: u16,
    height: usize,
    /// The instances that were finished, in order.
    completed: Vec<usize>,
    copies: bool,
}

pub(crate) struct Lowered {
    pub(crate) program: Program,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) outputs: Vec<Output>,
}

/// Lowers a file. Nothing comes back if there are errors. With `copies`, a variable that is given another's
/// value becomes an instruction of its own (a `fused` that does nothing), so that the assignment can be
/// shown.
pub(crate) fn lower(stmts: &[Stmt], copies: bool, problems: &mut Vec<Diagnostic>) -> Option<Lowered> {
    let mut module = Module::new(stmts, copies);
    let id = module.builder.reserve();
    let outputs = module.main(id, stmts);
    module.uncalled(stmts);
    let instances = core::mem::take(&mut module.instances);
    problems.extend(instances.into_iter().flat_map(|instance| instance.problems));
    problems.append(&mut module.problems);
    if outputs.is_empty() && !problems.iter().any(Diagnostic::is_error) {
        let end = stmts.last().map_or(Span::NONE, |stmt| stmt.span);
        let message = "the program computes nothing: it has no `loss` and no `output`";
        let help = "end it with `loss name = ...` or `output name`";
        problems.push(Diagnostic::error("PAL0216", end, message).help(help));
    }
    if problems.iter().any(Diagnostic::is_error) {
        return None;
    }
    let names: Vec<&str> = outputs.iter().map(|output| &*output.name).collect();
    match module.builder.finish(id, &names) {
        Ok(program) => {
            let equations: Vec<Equation> =
                module.equations.into_iter().map(|(_, equation)| equation).collect();
            let program = implicit::define(program, &equations);
            Some(Lowered { program, arguments: module.arguments, outputs })
        }
        Err(invalid) => {
            let message = "the compiler made an invalid program; this is a bug in Palinode";
            problems.push(Diagnostic::error("PAL0239", Span::NONE, message).note(invalid.to_string()));
            None
        }
    }
}

impl<'a> Module<'a> {
    fn new(stmts: &'a [Stmt], copies: bool) -> Module<'a> {
        let mut module = Module { copies, ..Module::default() };
        module.collect_functions(stmts);
        module.collect_globals(stmts);
        module.collect_captures();
        module
    }

    fn collect_functions(&mut self, stmts: &'a [Stmt]) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Function(function) => {
                    let name = function.name.text.clone();
                    if let Some(&before) = self.source_of.get(&name) {
                        let first = self.sources[before].function.name.span;
                        let problem = defined_twice(&name, function.name.span, first);
                        let help = "a function works for every type of argument: one is enough, or choose another name";
                        self.problems.push(problem.help(help));
                        continue;
                    }
                    self.source_of.insert(name, self.sources.len());
                    self.sources.push(Source { function, captures: Vec::new(), called: false });
                }
                StmtKind::Bind { names, .. } => {
                    self.variables.extend(names.iter().map(|name| (name.text.clone(), name.span)));
                }
                StmtKind::Broken(names) => self.broken.extend(names.iter().map(|name| name.text.clone())),
                _ => {}
            }
        }
    }

    /// Which globals each function uses, also through others.
    fn collect_captures(&mut self) {
        let mentions: Vec<Mentions> =
            self.sources.iter().map(|source| Mentions::of(&source.function.body.stmts)).collect();
        let mut uses: Vec<HashSet<usize>> = Vec::new();
        for (source, mentions) in self.sources.iter().zip(&mentions) {
            let own = |name: &Arc<str>| source.function.params.iter().any(|(param, _)| param.text == *name);
            let names = mentions.names.iter().filter(|name| !own(name));
            uses.push(names.flat_map(|name| self.passed_for(name)).collect());
        }
        let calls: Vec<Vec<usize>> = mentions
            .iter()
            .map(|mentions| {
                mentions.calls.iter().filter_map(|name| self.source_of.get(name).copied()).collect()
            })
            .collect();
        loop {
            let mut grown = false;
            for at in 0..uses.len() {
                for &callee in &calls[at] {
                    let more: Vec<usize> = uses[callee].difference(&uses[at]).copied().collect();
                    grown |= !more.is_empty();
                    uses[at].extend(more);
                }
            }
            if !grown {
                break;
            }
        }
        for (source, uses) in self.sources.iter_mut().zip(uses) {
            source.captures = uses.into_iter().collect();
            source.captures.sort_unstable();
        }
    }

    /// The top-level statements are the entry.
    fn main(&mut self, id: FuncId, stmts: &'a [Stmt]) -> Vec<Output> {
        let mut facts = Facts::default();
        loop {
            let mut body = Body::new(self, "main", None, facts.clone());
            body.enter_main();
            let outputs = body.top_level(stmts);
            let done = body.finish_main(&outputs);
            if let Some(promoted) = done.again
                && self.may_try_again()
            {
                facts.promoted.extend(promoted);
                continue;
            }
            self.problems.extend(done.problems);
            self.builder.define(id, done.function);
            return outputs.into_iter().map(|(output, _)| output).collect();
        }
    }

    fn may_try_again(&mut self) -> bool {
        self.attempts += 1;
        self.attempts < MAX_ATTEMPTS
    }

    fn too_complex(&self, span: Span) -> Diagnostic {
        Diagnostic::error("PAL0223", span, "the types of this program are too complex to infer")
            .help("declare what functions take and return, `fn f(x: [n]) -> real { ... }`")
    }

    /// Functions that nothing calls. Without declared types only what does not depend on types is reported.
    fn uncalled(&mut self, stmts: &'a [Stmt]) {
        let uncalled: Vec<usize> = (0..self.sources.len()).filter(|&at| !self.sources[at].called).collect();
        if uncalled.is_empty() {
            return;
        }
        let mut scratch = Module::new(stmts, false);
        for at in uncalled {
            let function = self.sources[at].function;
            let name = &function.name;
            let message = format!("`{}` is never called", name.text);
            self.problems.push(Diagnostic::warning("PAL0232", name.span, message));
            let declared = function.params.iter().all(|(_, annotation)| annotation.is_some());
            let guess = |annotation: &Option<Annotation>| annotation.as_ref().map_or(Type::REAL, annotated);
            let types = function.params.iter().map(|(_, annotation)| guess(annotation)).collect();
            let instance = scratch.instance(at, types);
            if scratch.instances[instance].status == Status::Open {
                scratch.instantiate(instance, name.span);
            }
            let found = core::mem::take(&mut scratch.instances[instance].problems);
            let sure = |problem: &Diagnostic| declared || ANY_TYPE.contains(&problem.code);
            self.problems.extend(found.into_iter().filter(|problem| problem.is_error() && sure(problem)));
        }
    }
}

/// Mistakes whatever the types are.
const ANY_TYPE: &[&str] = &["PAL0205", "PAL0206", "PAL0207", "PAL0208", "PAL0217"];

pub(crate) fn defined_twice(name: &str, again: Span, first: Span) -> Diagnostic {
    Diagnostic::error("PAL0207", again, format!("`{name}` is defined twice"))
        .and(first, "first defined here")
        .help("to change a variable leave out `let` or `var`; otherwise choose another name")
}

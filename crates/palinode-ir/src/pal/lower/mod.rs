//! Syntax tree -> program: names, types, single assignment and structured control in one walk.
//!
//! A body is lowered by *attempts*. What an attempt finds out too late (a variable that starts as `0` is assigned a real later,
//! what a recursive function returns) is kept as a *fact* of its instance, the attempt is thrown away and another is made.
//! Facts only grow, so this ends. A value that could not be lowered is poison: nothing is reported about it again.
//!
//! | part | does |
//! |---|---|
//! | `body` | one attempt at a body: variables, scopes, blocks |
//! | `stmt`, `control` | statements; loops, branches and early exits |
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
mod expr;
mod operator;
mod stmt;
mod value;
mod view;

pub(crate) use builtin::rule_alias;

use super::names::{self, Mentions};
use super::syntax::ast::{Function, Stmt, StmtKind};
use super::{Argument, Output};
use crate::builder::ProgramBuilder;
use crate::diagnostic::Diagnostic;
use crate::op::FuncId;
use crate::program::Program;
use crate::types::{Span, Type};
use body::Body;
use declare::Global;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// How many levels of syntax may be open at once, all functions on the way together.
const MAX_LEVELS: u16 = 600;
/// How many attempts at bodies may be made in all.
const MAX_ATTEMPTS: u32 = 5000;

/// What is found out about a body while it is lowered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// What it returns.
    pub(crate) results: Option<Vec<Type>>,
    /// The variables that start as integers but are assigned reals: where they are defined, and where that happens.
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

struct Module<'a> {
    sources: Vec<Source<'a>>,
    source_of: HashMap<Rc<str>, usize>,
    globals: Vec<Global<'a>>,
    global_of: HashMap<Rc<str>, usize>,
    arguments: Vec<Argument>,
    instances: Vec<Instance>,
    instance_of: HashMap<(usize, Vec<Type>), usize>,
    used_names: HashSet<Rc<str>>,
    builder: ProgramBuilder,
    problems: Vec<Diagnostic>,
    /// Names that statements which could not be read would have defined.
    broken: HashSet<Rc<str>>,
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

/// Lowers a file. Nothing comes back if there are errors. With `copies`, a variable that is given another's value becomes an
/// instruction of its own (a `fused` that does nothing), so that the assignment can be shown.
pub(crate) fn lower(stmts: &[Stmt], copies: bool, problems: &mut Vec<Diagnostic>) -> Option<Lowered> {
    let mut module = Module {
        sources: Vec::new(),
        source_of: HashMap::new(),
        globals: Vec::new(),
        global_of: HashMap::new(),
        arguments: Vec::new(),
        instances: Vec::new(),
        instance_of: HashMap::new(),
        used_names: HashSet::new(),
        builder: ProgramBuilder::new(),
        problems: Vec::new(),
        broken: HashSet::new(),
        epoch: 0,
        attempts: 0,
        levels: 0,
        height: 0,
        completed: Vec::new(),
        copies,
    };
    module.collect_functions(stmts);
    module.collect_globals(stmts);
    module.collect_captures();
    let id = module.builder.reserve();
    let outputs = module.main(id, stmts);
    module.uncalled();
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
        Ok(program) => Some(Lowered { program, arguments: module.arguments, outputs }),
        Err(invalid) => {
            let message = "the front end made an invalid program; this is a bug of Palinode";
            problems.push(Diagnostic::error("PAL0239", Span::NONE, message).note(invalid.to_string()));
            None
        }
    }
}

impl<'a> Module<'a> {
    fn collect_functions(&mut self, stmts: &'a [Stmt]) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Function(function) => {
                    let name = function.name.text.clone();
                    if let Some(&before) = self.source_of.get(&name) {
                        let first = self.sources[before].function.name.span;
                        self.problems.push(defined_twice(&name, function.name.span, first));
                        continue;
                    }
                    self.source_of.insert(name, self.sources.len());
                    self.sources.push(Source { function, captures: Vec::new(), called: false });
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
            let own = |name: &Rc<str>| source.function.params.iter().any(|(param, _)| param.text == *name);
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
        Diagnostic::error("PAL0223", span, "the types of this program are too complex to find out")
            .help("say what functions take and return, `fn f(x: [n]) -> real { ... }`")
    }

    /// Functions that nothing calls have no types; at least their names are checked.
    fn uncalled(&mut self) {
        for source in &self.sources {
            if source.called {
                continue;
            }
            let name = &source.function.name;
            let problem =
                Diagnostic::warning("PAL0232", name.span, format!("`{}` is never called", name.text))
                    .note("what it does is checked when it is called");
            self.problems.push(problem);
            let mentions = Mentions::of(&source.function.body.stmts);
            for call in &mentions.calls {
                if !self.source_of.contains_key(call) && !builtin::exists(call) && !self.broken.contains(call)
                {
                    let mut candidates: Vec<&str> = builtin::all().collect();
                    candidates.extend(self.source_of.keys().map(|name| &**name));
                    let mut problem = Diagnostic::error(
                        "PAL0206",
                        name.span,
                        format!("`{}` calls `{call}`, which does not exist", name.text),
                    );
                    problem.help =
                        names::closest(call, candidates).map(|best| format!("did you mean `{best}`?"));
                    self.problems.push(problem);
                }
            }
        }
    }
}

pub(crate) fn defined_twice(name: &str, again: Span, first: Span) -> Diagnostic {
    Diagnostic::error("PAL0207", again, format!("`{name}` is defined twice"))
        .and(first, "first defined here")
        .help("to change a variable leave out `let` or `var`; otherwise choose another name")
}

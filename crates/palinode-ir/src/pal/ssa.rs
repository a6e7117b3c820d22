//! Source -> each line with the single assignments it became.
//!
//! Each variable's versions are numbered from 0 in the order of definition. A variable that a loop carries is
//! a `phi` of its value before the loop and its value after the round before; after the loop its name is the
//! same `phi`. A variable that a branch assigns is a `phi` of both sides, shown where the branch ends.

use super::lower;
use super::syntax;
use super::syntax::ast::{Stmt, StmtKind};
use crate::diagnostic::Diagnostic;
use crate::op::{Axis, Literal, Op};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::Span;
use palinode_core::Constant;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsaLine {
    /// Its number, from 1.
    pub number: usize,
    /// As it is written.
    pub source: String,
    /// What it became.
    pub assignments: Vec<String>,
}

/// Shows the lowering beside the source.
///
/// ```
/// let lines = palinode_ir::pal::ssa("param a = 3\nvar x = a\nx = x * x\nx = x + 1\noutput x").unwrap();
/// assert_eq!(lines[1].assignments, ["x0 = a0"]);
/// assert_eq!(lines[2].assignments, ["x1 = mul x0 x0"]);
/// assert_eq!(lines[3].assignments, ["x2 = add x1 1"]);
/// ```
///
/// # Errors
/// What [`super::compile`] finds wrong.
pub fn ssa(source: &str) -> Result<Vec<SsaLine>, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let stmts = syntax::parse(source, &mut problems);
    let lowered = lower::lower(&stmts, true, &mut problems);
    super::tidy(&mut problems);
    let Some(lowered) = lowered else { return Err(problems) };
    let mut ends = HashMap::new();
    branch_ends(&stmts, &mut ends);
    let starts = source.match_indices('\n').map(|(at, _)| at + 1).collect();
    let mut show = Show { starts, program: &lowered.program, ends, lines: BTreeMap::new() };
    for argument in &lowered.arguments {
        let role = if argument.role == super::Role::Param { "param" } else { "input" };
        show.put(argument.span, format!("{} = {role}", version(&argument.name, 0)));
    }
    // A function that is used with several types is shown for the first.
    let mut seen = HashSet::new();
    // Of an equation only its block is in the source, not its search and its derivative.
    let is_written = |name: &str| !name.contains('.') || name.ends_with(".map");
    for function in lowered.program.functions.iter().filter(|function| is_written(&function.name)) {
        let place = first_span(&function.body);
        if seen.insert(place) || place.is_none() {
            show.function(function);
        }
    }
    let lines = source.lines().enumerate().map(|(at, text)| SsaLine {
        number: at + 1,
        source: text.to_string(),
        assignments: show.lines.remove(&(at + 1)).unwrap_or_default(),
    });
    Ok(lines.collect())
}

fn first_span(block: &Block) -> Span {
    block.insts.first().map_or(Span::NONE, |inst| inst.span)
}

/// Where the branches end, by the places of their conditions.
fn branch_ends(stmts: &[Stmt], ends: &mut HashMap<Span, Span>) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::If { arms, otherwise } => {
                for (condition, block) in arms {
                    ends.insert(condition.span, Span { start: stmt.span.end.saturating_sub(1), ..stmt.span });
                    branch_ends(&block.stmts, ends);
                }
                otherwise.iter().for_each(|block| branch_ends(&block.stmts, ends));
            }
            StmtKind::For { body, .. } | StmtKind::While { body, .. } => branch_ends(&body.stmts, ends),
            StmtKind::Equation(equation) => branch_ends(&equation.body.stmts, ends),
            StmtKind::Function(function) => branch_ends(&function.body.stmts, ends),
            _ => {}
        }
    }
}

/// `x0`; a name that ends with a digit is kept apart from its number.
fn version(name: &str, number: usize) -> String {
    let apart = if name.ends_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
    format!("{name}{apart}{number}")
}

struct Show<'a> {
    /// Where the lines after the first start.
    starts: Vec<usize>,
    program: &'a Program,
    ends: HashMap<Span, Span>,
    lines: BTreeMap<usize, Vec<String>>,
}

/// How the values of a function are called.
struct Names<'f> {
    function: &'f Function,
    of: HashMap<Value, String>,
    count: HashMap<String, usize>,
    /// What temporaries are called.
    temporary: &'static str,
}

impl Names<'_> {
    fn new(function: &Function) -> Names<'_> {
        let used: HashSet<&str> = function.values.iter().filter_map(|info| info.name.as_deref()).collect();
        let temporary =
            ["t", "tmp", "temporary"].into_iter().find(|name| !used.contains(name)).unwrap_or("tt");
        Names { function, of: HashMap::new(), count: HashMap::new(), temporary }
    }

    fn define(&mut self, value: Value) -> String {
        let name = self.function.name_of(value).map_or(self.temporary, |name| &**name).to_string();
        let count = self.count.entry(name.clone()).or_default();
        let text = version(&name, *count);
        *count += 1;
        self.of.insert(value, text.clone());
        text
    }

    fn get(&self, value: Value) -> String {
        self.of.get(&value).cloned().unwrap_or_else(|| "?".into())
    }

    fn list(&self, values: &[Value], between: &str) -> String {
        values.iter().map(|&value| self.get(value)).collect::<Vec<_>>().join(between)
    }
}

impl Show<'_> {
    /// The number of the line on which a place is, from 1.
    fn line(&self, span: Span) -> usize {
        self.starts.partition_point(|&start| start <= span.start as usize) + 1
    }

    fn put(&mut self, span: Span, text: String) {
        let line = self.line(span);
        self.lines.entry(line).or_default().push(text);
    }

    fn function(&mut self, function: &Function) {
        let mut names = Names::new(function);
        function.body.params.iter().for_each(|&param| drop(names.define(param)));
        self.block(&mut names, &function.body);
    }

    fn block(&mut self, names: &mut Names<'_>, block: &Block) {
        block.insts.iter().for_each(|inst| self.inst(names, inst));
    }

    fn inst(&mut self, names: &mut Names<'_>, inst: &Inst) {
        let results = &inst.results;
        match &inst.op {
            Op::Const(literal) if names.function.name_of(results[0]).is_none() => {
                names.of.insert(results[0], literal_text(*literal));
            }
            Op::For { descending, .. } => {
                let block = &inst.blocks[0];
                let n = names.get(inst.args[0]);
                let k = names.define(block.params[0]);
                let order = if *descending { " reversed" } else { "" };
                self.put(inst.span, format!("for {k} in 0..{n}{order}"));
                let head = self.shown(inst.span);
                self.carried(names, inst, &block.params[1..], &[]);
                self.block(names, block);
                self.phis(names, inst, head, &inst.args[1..], &block.params[1..], &block.results);
            }
            Op::While { .. } => {
                let [test, body] = &inst.blocks[..] else { return };
                let head = self.shown(inst.span);
                self.carried(names, inst, &test.params, &body.params);
                self.block(names, test);
                self.put(inst.span, format!("while {}", names.get(test.results[0])));
                self.block(names, body);
                self.phis(names, inst, head, &inst.args, &test.params, &body.results);
            }
            Op::If => {
                self.put(inst.span, format!("if {}", names.get(inst.args[0])));
                inst.blocks.iter().for_each(|block| self.block(names, block));
                let end = self.ends.get(&inst.span).copied().unwrap_or(inst.span);
                for (at, &result) in results.iter().enumerate() {
                    let sides: Vec<String> =
                        inst.blocks.iter().map(|block| names.get(block.results[at])).collect();
                    let name = names.define(result);
                    self.put(end, format!("{name} = phi {}", sides.join(" ")));
                }
            }
            // A copy; see `lower`.
            Op::Fused => {
                let from = names.get(inst.args[0]);
                let name = names.define(results[0]);
                self.put(inst.span, format!("{name} = {from}"));
            }
            _ => {
                let what = self.operation(names, inst);
                let list: Vec<String> = results.iter().map(|&result| names.define(result)).collect();
                self.put(inst.span, format!("{} = {what}", list.join(", ")));
            }
        }
    }

    /// How much is shown beside a line so far.
    fn shown(&self, span: Span) -> usize {
        self.lines.get(&self.line(span)).map_or(0, Vec::len)
    }

    /// Names what a loop carries: its parameters, and its results, which are the same `phi`.
    fn carried(&mut self, names: &mut Names<'_>, inst: &Inst, params: &[Value], twins: &[Value]) {
        for (at, &param) in params.iter().enumerate() {
            let twin = twins.get(at).copied();
            let source = twin.filter(|&twin| names.function.name_of(twin).is_some()).unwrap_or(param);
            let name = names.define(source);
            for same in [Some(param), twin, Some(inst.results[at])].into_iter().flatten() {
                names.of.insert(same, name.clone());
            }
        }
    }

    /// Shows the `phi`s at the head of a loop, once the names of its body are known.
    fn phis(
        &mut self,
        names: &Names<'_>,
        inst: &Inst,
        head: usize,
        args: &[Value],
        params: &[Value],
        next: &[Value],
    ) {
        let line = self.line(inst.span);
        let one = |((&start, &param), &next): ((&Value, &Value), &Value)| {
            format!("{} = phi {} {}", names.get(param), names.get(start), names.get(next))
        };
        let lines: Vec<String> = args.iter().zip(params).zip(next).map(one).collect();
        self.lines.entry(line).or_default().splice(head..head, lines);
    }

    fn operation(&self, names: &Names<'_>, inst: &Inst) -> String {
        let name = inst.op.name();
        let args = names.list(&inst.args, " ");
        match &inst.op {
            Op::Const(literal) => literal_text(*literal),
            Op::Map(rule) if rule.is_parametric() => format!("{name} {args} {}", rule.parameter),
            Op::Convert(elem) => format!("{elem} {args}"),
            Op::Dim(axis) => format!("length {args} {axis}"),
            Op::Read(axes) => {
                format!("{}[{}]", names.get(inst.args[0]), places(names, axes, &inst.args[1..]))
            }
            Op::Write(axes) => {
                let (a, x) = (names.get(inst.args[0]), names.get(inst.args[1]));
                format!("update {a}[{}] {x}", places(names, axes, &inst.args[2..]))
            }
            Op::AddAt(axes) => {
                let (a, x) = (names.get(inst.args[0]), names.get(inst.args[1]));
                format!("add_at {a}[{}] {x}", places(names, axes, &inst.args[2..]))
            }
            Op::Call(callee) => {
                let function = &self.program.function(*callee).name;
                format!("{function}({})", names.list(&inst.args, ", "))
            }
            _ if args.is_empty() => name.to_string(),
            _ => format!("{name} {args}"),
        }
    }
}

fn places(names: &Names<'_>, axes: &[Axis], operands: &[Value]) -> String {
    let mut rest = operands.iter().map(|&value| names.get(value));
    let mut next = || rest.next().unwrap_or_default();
    let one = |axis: &Axis| match axis {
        Axis::At => next(),
        Axis::Range => {
            let (start, len, step) = (next(), next(), next());
            let by = if step == "1" { String::new() } else { format!(" by {step}") };
            format!("{len} from {start}{by}")
        }
        Axis::All => "..".to_string(),
        Axis::List => next(),
    };
    axes.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn literal_text(literal: Literal) -> String {
    match literal {
        Literal::Real(value) if value == value.trunc() && value.abs() < 1e15 => format!("{value}"),
        Literal::Real(value) => format!("{value:?}"),
        Literal::Named(Constant::Pi) => "pi".into(),
        Literal::Named(name) => format!("{name:?}"),
        Literal::Int(value) => value.to_string(),
        Literal::Bool(value) => value.to_string(),
    }
}

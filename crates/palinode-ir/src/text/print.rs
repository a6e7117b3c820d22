//! Program -> text. Invalid programs print too (messages about our own mistakes show them); what is missing
//! is `?`.

use std::collections::HashMap;
use std::fmt::Write;

use super::name::{encode, label};
use super::operation::{Form, constant_name, form};
use crate::op::{Axis, Keep, Literal, Op};
use crate::program::{Block, Function, Inst, Program, Value};

/// The text form of a program; [`crate::text::parse()`] reads it back.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    for (at, function) in program.functions.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let mut labels = HashMap::new();
        let mut number = 0;
        function.body.for_each_definition(&mut |value| {
            let name = function.values.get(value.index()).and_then(|info| info.name.as_deref());
            labels.entry(value).or_insert_with(|| label(name, number));
            number += 1;
        });
        let mut printer = Printer { program, function, labels, out };
        printer.function(at == program.entry.index());
        out = printer.out;
    }
    out
}

struct Printer<'a> {
    program: &'a Program,
    function: &'a Function,
    /// The word of each value; numbers follow the order of definition.
    labels: HashMap<Value, String>,
    out: String,
}

impl Printer<'_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn value(&self, value: Option<&Value>) -> &str {
        value.and_then(|value| self.labels.get(value)).map_or("?", String::as_str)
    }

    fn list(&self, values: &[Value]) -> String {
        values.iter().map(|value| self.value(Some(value))).collect::<Vec<_>>().join(", ")
    }

    fn ty(&self, value: Value) -> String {
        self.function.values.get(value.index()).map_or("?".to_string(), |info| info.ty.to_string())
    }

    fn typed(&self, values: &[Value]) -> String {
        let one = |value: &Value| format!("{}: {}", self.value(Some(value)), self.ty(*value));
        values.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn function_name(&self, at: usize) -> String {
        self.program.functions.get(at).map_or("?".to_string(), |function| encode(&function.name))
    }

    fn function(&mut self, is_entry: bool) {
        let function = self.function;
        let keyword = if is_entry { "entry fn" } else { "fn" };
        let params = self.typed(&function.body.params);
        let types: Vec<String> = function.body.results.iter().map(|&value| self.ty(value)).collect();
        let _ = write!(self.out, "{keyword} {}({params}) -> ({})", encode(&function.name), types.join(", "));
        if is_entry {
            let outputs: Vec<String> = self.program.outputs.iter().map(|name| encode(name)).collect();
            let _ = write!(self.out, " outputs ({})", outputs.join(", "));
        }
        if let Some(rule) = function.tangent_rule {
            let _ = write!(self.out, " tangent {}", self.function_name(rule.index()));
        }
        self.put(" {\n");
        self.block(&function.body, 1);
        self.put("}\n");
    }

    fn block(&mut self, block: &Block, depth: usize) {
        let indent = "  ".repeat(depth);
        for inst in &block.insts {
            self.put(&indent);
            self.inst(inst, depth);
            self.put("\n");
        }
        let results = self.list(&block.results);
        let _ = writeln!(self.out, "{}", format!("{indent}yield {results}").trim_end());
    }

    fn braces(&mut self, block: Option<&Block>, depth: usize) {
        self.put("{\n");
        if let Some(block) = block {
            self.block(block, depth + 1);
        }
        self.put(&"  ".repeat(depth));
        self.put("}");
    }

    fn inst(&mut self, inst: &Inst, depth: usize) {
        if !inst.results.is_empty() {
            let results = self.list(&inst.results);
            let _ = write!(self.out, "{results} = ");
        }
        self.put(inst.op.name());
        let args = self.list(&inst.args);
        let arg = |at: usize| inst.args.get(at);
        match &inst.op {
            Op::Const(literal) => {
                let _ = write!(self.out, " {}", literal_text(*literal));
            }
            Op::Map(rule) => {
                if rule.is_parametric() {
                    let _ = write!(self.out, "<{}>", rule.parameter);
                }
                let _ = write!(self.out, " {args}");
            }
            Op::Convert(elem) => {
                let _ = write!(self.out, "<{elem}> {args}");
            }
            Op::Dim(axis) | Op::Concat(axis) => {
                let _ = write!(self.out, "<{axis}> {args}");
            }
            Op::Broadcast(axes) | Op::Permute(axes) | Op::Reduce(_, axes) => {
                let axes: Vec<String> = axes.iter().map(u8::to_string).collect();
                let _ = write!(self.out, "<{}> {args}", axes.join(","));
            }
            Op::Read(axes) => {
                let places = self.places(axes, inst.args.get(1..).unwrap_or_default());
                let text = format!(" {}[{places}]", self.value(arg(0)));
                self.put(&text);
            }
            Op::Write(axes) | Op::AddAt(axes) => {
                let places = self.places(axes, inst.args.get(2..).unwrap_or_default());
                let text = format!(" {}[{places}], {}", self.value(arg(0)), self.value(arg(1)));
                self.put(&text);
            }
            Op::MatMul { a_transposed, b_transposed, .. } => {
                let mark = |transposed: bool| if transposed { "'" } else { "" };
                let (a, b) = (self.value(arg(0)), self.value(arg(1)));
                let text = format!(" {a}{}, {b}{}", mark(*a_transposed), mark(*b_transposed));
                self.put(&text);
            }
            Op::Call(callee) => {
                let _ = write!(self.out, " {}({args})", self.function_name(callee.index()));
            }
            Op::For { descending, keep } => {
                let block = inst.blocks.first();
                let direction = if *descending { "down " } else { "" };
                let k = self.value(block.and_then(|block| block.params.first()));
                let keep = kept_text(*keep);
                let text =
                    format!("{keep} {k} in {direction}{} ({}) ", self.value(arg(0)), self.carried(inst, 1));
                self.put(&text);
                self.braces(block, depth);
            }
            Op::While { keep } => {
                let text = format!("{} ({}) ", kept_text(*keep), self.carried(inst, 0));
                self.put(&text);
                self.braces(inst.blocks.first(), depth);
                let body = inst.blocks.get(1);
                let text = format!(" do ({}) ", self.typed(body.map_or(&[], |block| &block.params)));
                self.put(&text);
                self.braces(body, depth);
            }
            Op::Sweep { keep, .. } => {
                let (advance, back, turn) = (inst.blocks.first(), inst.blocks.get(1), inst.blocks.get(2));
                let counter =
                    |block: Option<&Block>| self.value(block.and_then(|block| block.params.first()));
                let state = advance.map_or(0, |block| block.params.len().saturating_sub(1));
                let text = format!(
                    "{} {} in {} ({}) ",
                    kept_text(Some(*keep)),
                    counter(advance),
                    self.value(arg(0)),
                    self.carried(inst, 1)
                );
                let params = back.map_or(&[][..], |block| block.params.get(1..).unwrap_or_default());
                let (state, rest) = params.split_at(state.min(params.len()));
                let others = inst.args.get(1 + state.len()..).unwrap_or_default();
                let cotangents = if turn.is_some() { self.typed(rest) } else { self.initial(rest, others) };
                let between = format!(" back {} ({}) ({cotangents}) ", counter(back), self.typed(state));
                let turning = turn.map(|block| {
                    let (state, given) = block.params.split_at(state.len().min(block.params.len()));
                    format!(" turn ({}) ({}) ", self.typed(state), self.initial(given, others))
                });
                self.put(&text);
                self.braces(advance, depth);
                if let Some(turning) = turning {
                    self.put(&turning);
                    self.braces(turn, depth);
                }
                self.put(&between);
                self.braces(back, depth);
            }
            Op::If => {
                let _ = write!(self.out, " {args} ");
                self.braces(inst.blocks.first(), depth);
                self.put(" else ");
                self.braces(inst.blocks.get(1), depth);
            }
            Op::Fused => {
                let text = format!(" ({}) ", self.carried(inst, 0));
                self.put(&text);
                self.braces(inst.blocks.first(), depth);
            }
            op => {
                debug_assert!(
                    matches!(form(op), Form::Plain),
                    "`{}` is written in a way of its own",
                    op.name()
                );
                let _ = write!(self.out, " {args}");
            }
        }
    }

    /// `param: type = operand` for the parameters of the first block, without the first `skip`.
    fn carried(&self, inst: &Inst, skip: usize) -> String {
        let params = inst.blocks.first().and_then(|block| block.params.get(skip..)).unwrap_or_default();
        self.initial(params, inst.args.get(skip..).unwrap_or_default())
    }

    fn initial(&self, params: &[Value], operands: &[Value]) -> String {
        let one = |(at, param): (usize, &Value)| {
            let (name, ty) = (self.value(Some(param)), self.ty(*param));
            format!("{name}: {ty} = {}", self.value(operands.get(at)))
        };
        params.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    }

    fn places(&self, axes: &[Axis], operands: &[Value]) -> String {
        let mut rest = operands.iter();
        let mut next = || self.value(rest.next());
        let one = |axis: &Axis| match axis {
            Axis::At => next().to_string(),
            Axis::Range => format!("{}:+{}:{}", next(), next(), next()),
            Axis::All => ":".to_string(),
            Axis::List => format!("@{}", next()),
        };
        axes.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// ` snapshots 3` or ` bytes 65536`.
fn kept_text(keep: Option<Keep>) -> String {
    match keep {
        None => String::new(),
        Some(Keep::Snapshots(snapshots)) => format!(" snapshots {snapshots}"),
        Some(Keep::Bytes(bytes)) => format!(" bytes {bytes}"),
    }
}

pub(crate) fn literal_text(literal: Literal) -> String {
    match literal {
        Literal::Real(value) if value.is_nan() => format!("nan:{:016x}", value.to_bits()),
        Literal::Real(value) => format!("{value:?}"),
        Literal::Named(name) => constant_name(name).to_string(),
        Literal::Int(value) => format!("{value}i"),
        Literal::Bool(value) => value.to_string(),
    }
}

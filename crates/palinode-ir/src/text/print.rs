//! Program -> text.

use std::fmt::Write;

use palinode_core::Constant;

use crate::op::{Axis, Literal, Op};
use crate::program::{Block, Function, Inst, Program, Value};

/// The text form of a program; [`crate::text::parse`] reads it back.
pub fn print(program: &Program) -> String {
    let mut printer = Printer { program, out: String::new() };
    for (at, function) in program.functions.iter().enumerate() {
        if at > 0 {
            printer.out.push('\n');
        }
        printer.function(function, at == program.entry.index());
    }
    printer.out
}

struct Printer<'a> {
    program: &'a Program,
    out: String,
}

impl Printer<'_> {
    fn value(&self, function: &Function, value: Value) -> String {
        match function.name_of(value) {
            Some(name) => format!("{name}.{}", value.0),
            None => format!("v{}", value.0),
        }
    }

    fn list(&self, function: &Function, values: &[Value]) -> String {
        values.iter().map(|&value| self.value(function, value)).collect::<Vec<_>>().join(", ")
    }

    fn typed(&self, function: &Function, values: &[Value]) -> String {
        let one = |&value: &Value| format!("{}: {}", self.value(function, value), function.ty(value));
        values.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn function(&mut self, function: &Function, is_entry: bool) {
        let keyword = if is_entry { "entry fn" } else { "fn" };
        let params = self.typed(function, &function.body.params);
        let types: Vec<String> = function.result_types().iter().map(ToString::to_string).collect();
        let _ = write!(self.out, "{keyword} {}({params}) -> ({})", function.name, types.join(", "));
        if is_entry {
            let _ = write!(self.out, " outputs ({})", self.program.outputs.join(", "));
        }
        if let Some(rule) = function.tangent_rule {
            let _ = write!(self.out, " tangent {}", self.program.function(rule).name);
        }
        self.out.push_str(" {\n");
        self.block(function, &function.body, 1);
        self.out.push_str("}\n");
    }

    fn block(&mut self, function: &Function, block: &Block, depth: usize) {
        let indent = "  ".repeat(depth);
        for inst in &block.insts {
            self.out.push_str(&indent);
            self.inst(function, inst, depth);
            self.out.push('\n');
        }
        let results = self.list(function, &block.results);
        let _ = writeln!(self.out, "{}", format!("{indent}yield {results}").trim_end());
    }

    fn braces(&mut self, function: &Function, block: &Block, depth: usize) {
        self.out.push_str("{\n");
        self.block(function, block, depth + 1);
        self.out.push_str(&"  ".repeat(depth));
        self.out.push('}');
    }

    fn inst(&mut self, function: &Function, inst: &Inst, depth: usize) {
        if !inst.results.is_empty() {
            let results = self.list(function, &inst.results);
            let _ = write!(self.out, "{results} = ");
        }
        self.out.push_str(inst.op.name());
        let args = |this: &Self, args: &[Value]| this.list(function, args);
        match &inst.op {
            Op::Const(literal) => {
                let _ = write!(self.out, " {}", literal_text(*literal));
            }
            Op::Map(rule) => {
                if rule.is_parametric() {
                    let _ = write!(self.out, "<{}>", rule.parameter);
                }
                let _ = write!(self.out, " {}", args(self, &inst.args));
            }
            Op::Convert(elem) => {
                let _ = write!(self.out, "<{elem}> {}", args(self, &inst.args));
            }
            Op::Dim(axis) | Op::Concat(axis) => {
                let _ = write!(self.out, "<{axis}> {}", args(self, &inst.args));
            }
            Op::Broadcast(axes) | Op::Permute(axes) | Op::Reduce(_, axes) => {
                let axes: Vec<String> = axes.iter().map(u8::to_string).collect();
                let _ = write!(self.out, "<{}> {}", axes.join(","), args(self, &inst.args));
            }
            Op::Read(axes) => {
                let places = self.places(function, axes, &inst.args[1..]);
                let _ = write!(self.out, " {}[{places}]", self.value(function, inst.args[0]));
            }
            Op::Write(axes) | Op::AddAt(axes) => {
                let places = self.places(function, axes, &inst.args[2..]);
                let (a, x) = (self.value(function, inst.args[0]), self.value(function, inst.args[1]));
                let _ = write!(self.out, " {a}[{places}], {x}");
            }
            Op::MatMul { a_transposed, b_transposed } => {
                let mark = |transposed: bool| if transposed { "'" } else { "" };
                let (a, b) = (self.value(function, inst.args[0]), self.value(function, inst.args[1]));
                let _ = write!(self.out, " {a}{}, {b}{}", mark(*a_transposed), mark(*b_transposed));
            }
            Op::Call(callee) => {
                let name = self.program.functions.get(callee.index()).map_or("?", |f| &*f.name);
                let _ = write!(self.out, " {name}({})", args(self, &inst.args));
            }
            Op::For { descending } => {
                let block = &inst.blocks[0];
                let direction = if *descending { "down " } else { "" };
                let (k, n) = (self.value(function, block.params[0]), self.value(function, inst.args[0]));
                let _ = write!(self.out, " {k} in {direction}{n} ({}) ", self.carried(function, inst, 0, 1));
                self.braces(function, block, depth);
            }
            Op::While => {
                let _ = write!(self.out, " ({}) ", self.carried(function, inst, 0, 0));
                self.braces(function, &inst.blocks[0], depth);
                let _ = write!(self.out, " do ({}) ", self.typed(function, &inst.blocks[1].params));
                self.braces(function, &inst.blocks[1], depth);
            }
            Op::If => {
                let _ = write!(self.out, " {} ", args(self, &inst.args));
                self.braces(function, &inst.blocks[0], depth);
                self.out.push_str(" else ");
                self.braces(function, &inst.blocks[1], depth);
            }
            Op::Fused => {
                let _ = write!(self.out, " ({}) ", self.carried(function, inst, 0, 0));
                self.braces(function, &inst.blocks[0], depth);
            }
            Op::Int(_)
            | Op::Compare(_)
            | Op::Logical(_)
            | Op::Select
            | Op::StopGradient
            | Op::Iota
            | Op::Reshape
            | Op::Push
            | Op::Resize
            | Op::Outer
            | Op::Linalg(_) => {
                let _ = write!(self.out, " {}", args(self, &inst.args));
            }
        }
    }

    /// `param: type = operand` for the parameters of a block, without the first `skip`.
    fn carried(&self, function: &Function, inst: &Inst, block: usize, skip: usize) -> String {
        let params = &inst.blocks[block].params[skip..];
        let one = |(&param, &arg): (&Value, &Value)| {
            let (name, ty) = (self.value(function, param), function.ty(param));
            format!("{name}: {ty} = {}", self.value(function, arg))
        };
        params.iter().zip(&inst.args[skip..]).map(one).collect::<Vec<_>>().join(", ")
    }

    fn places(&self, function: &Function, axes: &[Axis], operands: &[Value]) -> String {
        let mut rest = operands.iter().map(|&value| self.value(function, value));
        let mut next = || rest.next().unwrap_or_default();
        let one = |axis: &Axis| match axis {
            Axis::At => next(),
            Axis::Range => format!("{}:+{}:{}", next(), next(), next()),
            Axis::All => ":".to_string(),
            Axis::List => format!("@{}", next()),
        };
        axes.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn literal_text(literal: Literal) -> String {
    match literal {
        Literal::Real(value) if value.is_nan() => format!("nan:{:016x}", value.to_bits()),
        Literal::Real(value) => format!("{value:?}"),
        Literal::Named(name) => constant_name(name).to_string(),
        Literal::Int(value) => format!("{value}i"),
        Literal::Bool(value) => value.to_string(),
    }
}

/// How the text form calls a named constant.
pub(crate) fn constant_name(name: Constant) -> &'static str {
    match name {
        Constant::Pi => "pi",
        Constant::E => "e",
        Constant::Ln2 => "ln2",
        Constant::Ln10 => "ln10",
        Constant::TwoOverSqrtPi => "two_over_sqrt_pi",
        _ => "unknown",
    }
}

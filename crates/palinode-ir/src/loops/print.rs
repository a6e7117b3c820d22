//! Loop form -> text, for people and for tests; [`parse`](super::parse()) reads it.
//!
//! ```text
//! loops main(r0, b0[0][4]) -> (b1[0][4]) traps {
//!   real: r0 r2-r3
//!   int: r1
//!   b0: real[4] input 0
//!   b1: real[4] workspace (y)
//!   each r1 in 0..4 {
//!     r2 = b0[r1]
//!     r3 = mul r2, r0
//!     b1[r1] = r3
//!   }
//! }
//! ```

use core::fmt::{self, Display, Formatter, Write as _};

use super::form::{
    Buf, Given, Index, Kept, Kind, LoopForm, Matrix, Operand, Place, Port, Reg, Role, Stmt, Taken,
};
use super::names::{Begins, Makes, Wholes};
use crate::op::{Literal, Rule};
use crate::text::{encode, literal_text};

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl Display for Buf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Reg(reg) => write!(f, "{reg}"),
            Operand::Real(value) => f.write_str(&literal_text(Literal::Real(*value))),
            Operand::Int(n) => f.write_str(&literal_text(Literal::Int(*n))),
            Operand::Bool(value) => f.write_str(&literal_text(Literal::Bool(*value))),
        }
    }
}

impl Display for Index {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for (reg, factor) in &self.terms {
            match (is_first, factor) {
                (true, 1) => write!(f, "{reg}")?,
                (true, -1) => write!(f, "-{reg}")?,
                (true, _) => write!(f, "{factor}*{reg}")?,
                (false, 1) => write!(f, " + {reg}")?,
                (false, -1) => write!(f, " - {reg}")?,
                (false, _) if *factor < 0 => write!(f, " - {}*{reg}", factor.unsigned_abs())?,
                (false, _) => write!(f, " + {factor}*{reg}")?,
            }
            is_first = false;
        }
        match self.constant {
            n if is_first => write!(f, "{n}"),
            0 => Ok(()),
            n if n < 0 => write!(f, " - {}", n.unsigned_abs()),
            n => write!(f, " + {n}"),
        }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]{:?}", self.buf, self.at, self.shape)
    }
}

impl Display for Matrix {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ([rows, columns], [down, along]) = (self.sizes, self.steps);
        write!(f, "{}[{}][{rows} by {down}, {columns} by {along}]", self.buf, self.at)
    }
}

impl Display for Taken {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Taken::Scalar(reg) => write!(f, "{reg}"),
            Taken::Array(place) => write!(f, "{place}"),
        }
    }
}

impl Display for Kept {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Scalar { reg, snapshots } => write!(f, "{reg} in {snapshots}"),
            Kept::Array { buf, count, snapshots } => write!(f, "{buf}[{count}] in {snapshots}"),
        }
    }
}

impl Display for Given {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Given::Scalar(operand) => write!(f, "{operand}"),
            Given::Array(place) => write!(f, "{place}"),
        }
    }
}

impl Display for Port {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Port::Scalar(operand) => write!(f, "{operand}"),
            Port::Array(place) => write!(f, "{place}"),
        }
    }
}

fn listed<T: Display>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

impl Display for LoopForm {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let traps = if self.traps { " traps" } else { "" };
        writeln!(
            f,
            "loops {}({}) -> ({}){traps} {{",
            encode(&self.name),
            listed(&self.inputs),
            listed(&self.outputs)
        )?;
        for kind in Kind::ALL {
            f.write_str(&registers_of(kind, &self.registers))?;
        }
        for (number, buffer) in self.buffers.iter().enumerate() {
            let role = match buffer.role {
                Role::Input(number) => format!("input {number}"),
                Role::Workspace => "workspace".into(),
                Role::Growing => "growing".into(),
            };
            let name = buffer.name.as_ref().map(|name| format!(" ({})", encode(name))).unwrap_or_default();
            writeln!(f, "  b{number}: {}[{}] {role}{name}", buffer.kind.name(), buffer.length)?;
        }
        let mut text = String::new();
        print_block(&self.body, 1, &mut text);
        f.write_str(&text)?;
        writeln!(f, "}}")
    }
}

/// So long are lines of registers, about.
const WIDTH: usize = 100;

/// Lines of all registers of a kind: `  real: r0 r4-r9`.
fn registers_of(kind: Kind, registers: &[Kind]) -> String {
    let (mut lines, mut line, mut at) = (String::new(), String::new(), 0);
    for run in registers.chunk_by(|a, b| a == b) {
        let (first, last) = (at, at + run.len() - 1);
        at += run.len();
        if run[0] != kind {
            continue;
        }
        let _ = match run.len() {
            1 => write!(line, " r{first}"),
            _ => write!(line, " r{first}-r{last}"),
        };
        if line.len() > WIDTH {
            let _ = writeln!(lines, "  {}:{line}", kind.name());
            line.clear();
        }
    }
    if !line.is_empty() {
        let _ = writeln!(lines, "  {}:{line}", kind.name());
    }
    lines
}

fn named_rule(rule: &Rule) -> String {
    let parameter = if rule.is_parametric() { format!("<{}>", rule.parameter) } else { String::new() };
    format!("{}{parameter}", rule.row.name())
}

/// How the text of a statement begins.
pub(super) fn first_line(stmt: &Stmt) -> String {
    let mut text = String::new();
    print(stmt, 0, &mut text);
    text.lines().next().unwrap_or_default().to_string()
}

fn print_block(stmts: &[Stmt], depth: usize, out: &mut String) {
    for stmt in stmts {
        print(stmt, depth, out);
    }
}

fn print(stmt: &Stmt, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    let mut line = |text: String| {
        let _ = writeln!(out, "{pad}{}", text.trim_end());
    };
    match stmt {
        Stmt::Move { to, from } => line(format!("{to} = {from}")),
        Stmt::Map { rule, to, args } => line(format!("{to} = {} {}", named_rule(rule), listed(args))),
        Stmt::Round32 { to, a } => line(format!("{to} = {} {a}", Makes::Round32.name())),
        Stmt::Int { op, to, a, b } => line(format!("{to} = {} {a}, {b}", op.name())),
        Stmt::Index { to, index } => line(format!("{to} = {} {index}", Makes::Index.name())),
        Stmt::Compare { op, to, a, b } => line(format!("{to} = {} {a}, {b}", op.name())),
        Stmt::And { to, a, b } => line(format!("{to} = {} {a}, {b}", Makes::And.name())),
        Stmt::Or { to, a, b } => line(format!("{to} = {} {a}, {b}", Makes::Or.name())),
        Stmt::Not { to, a } => line(format!("{to} = {} {a}", Makes::Not.name())),
        Stmt::Select { to, holds, a, b } => {
            line(format!("{to} = {} {holds}, {a}, {b}", Makes::Select.name()));
        }
        Stmt::Truncate { to, a } => line(format!("{to} = {} {a}", Makes::Truncate.name())),
        Stmt::Convert { to, a } => line(format!("{to} = {} {a}", Makes::Convert.name())),
        Stmt::Load { to, buf, at } => line(format!("{to} = {buf}[{at}]")),
        Stmt::Store { buf, at, from } => line(format!("{buf}[{at}] = {from}")),
        Stmt::Finite { a } => line(format!("{} {a}", Begins::Finite.name())),
        Stmt::AllFinite { place } => line(format!("{} {place}", Begins::Finite.name())),
        Stmt::Within { a, length } => line(format!("{} {a}, {length}", Begins::Within.name())),
        Stmt::Holds { a } => line(format!("{} {a}", Begins::Holds.name())),
        Stmt::Stop => line(Begins::Stop.name().into()),
        Stmt::Step => line(Begins::Step.name().into()),
        Stmt::For { counter, rounds, descending, counts, body } => {
            let down = if *descending { "down " } else { "" };
            let steps = if *counts { " steps" } else { "" };
            line(format!("{} {counter} in {down}{rounds}{steps} {{", Begins::For.name()));
            print_block(body, depth + 1, out);
            let _ = writeln!(out, "{pad}}}");
        }
        Stmt::While { condition, holds, body } => {
            line(format!("{} {{", Begins::While.name()));
            print_block(condition, depth + 1, out);
            let _ = writeln!(out, "{pad}}} {holds} {{");
            print_block(body, depth + 1, out);
            let _ = writeln!(out, "{pad}}}");
        }
        Stmt::If { holds, then, other } => {
            line(format!("{} {holds} {{", Begins::If.name()));
            print_block(then, depth + 1, out);
            if !other.is_empty() {
                let _ = writeln!(out, "{pad}}} else {{");
                print_block(other, depth + 1, out);
            }
            let _ = writeln!(out, "{pad}}}");
        }
        Stmt::Sweep { counter, rounds, room, state, advance, turn, back } => {
            let state = listed(state);
            line(format!("{} {counter} in {rounds} snapshots {room} ({state}) {{", Begins::Sweep.name()));
            print_block(advance, depth + 1, out);
            if let Some(turn) = turn {
                let _ = writeln!(out, "{pad}}} turn {{");
                print_block(turn, depth + 1, out);
            }
            let _ = writeln!(out, "{pad}}} back {{");
            print_block(back, depth + 1, out);
            let _ = writeln!(out, "{pad}}}");
        }
        Stmt::Each { axes, body } => {
            let axes: Vec<String> =
                axes.iter().map(|(reg, from, to)| format!("{reg} in {from}..{to}")).collect();
            line(format!("{} {} {{", Begins::Each.name(), axes.join(", ")));
            print_block(body, depth + 1, out);
            let _ = writeln!(out, "{pad}}}");
        }
        Stmt::Function { rule, place } => line(format!("{place} = {} itself", named_rule(rule))),
        Stmt::Reduce { kind, from, to } => line(format!("{to} = {} {from}", kind.name())),
        Stmt::Product { strong, a, b, to, adds } => {
            let sign = if *adds { "+=" } else { "=" };
            let name = if *strong { Wholes::StrongProduct } else { Wholes::Product }.name();
            line(format!("{to} {sign} {name} {a}, {b}"));
        }
        Stmt::Dots { strong, a, x, to } => {
            let name = if *strong { Wholes::StrongDots } else { Wholes::Dots }.name();
            line(format!("{to} = {name} {a}, {x}"));
        }
        Stmt::Kernel { op, single, given, taken } => {
            let single = if *single { "f32 " } else { "" };
            let (taken, name) = (listed(taken), Wholes::Kernel.name());
            line(format!("{taken} = {name} {single}{} {}", op.name(), listed(given)).trim_start().into());
        }
        Stmt::Swap { a, b } => line(format!("{} {a}, {b}", Begins::Swap.name())),
        Stmt::Reserve { buf, length } => line(format!("{} {buf}, {length}", Begins::Reserve.name())),
    }
}

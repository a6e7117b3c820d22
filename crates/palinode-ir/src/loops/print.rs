//! Loop form -> text, for people and for tests.

use core::fmt::{self, Display, Formatter, Write as _};

use super::form::{
    Buf, Given, Index, Kept, Kind, LoopForm, Matrix, Operand, Place, Port, Reg, Role, Stmt, Taken,
};

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
            Operand::Real(value) => write!(f, "{value:?}"),
            Operand::Int(n) => write!(f, "{n}i"),
            Operand::Bool(value) => write!(f, "{value}"),
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

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Real => "real",
            Kind::Int => "int",
            Kind::Bool => "bool",
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
            self.name,
            listed(&self.inputs),
            listed(&self.outputs)
        )?;
        for (number, buffer) in self.buffers.iter().enumerate() {
            let role = match buffer.role {
                Role::Input(number) => format!("input {number}"),
                Role::Workspace => "workspace".into(),
                Role::Growing => "growing".into(),
            };
            let name = buffer.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            writeln!(f, "  b{number}: {}[{}] {role}{name}", buffer.kind.name(), buffer.length)?;
        }
        let mut text = String::new();
        print_block(&self.body, 1, &mut text);
        f.write_str(&text)?;
        writeln!(f, "}}")
    }
}

fn print_block(stmts: &[Stmt], depth: usize, out: &mut String) {
    for stmt in stmts {
        print(stmt, depth, out);
    }
}

fn print(stmt: &Stmt, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    let mut line = |text: String| {
        let _ = writeln!(out, "{pad}{text}");
    };
    match stmt {
        Stmt::Move { to, from } => line(format!("{to} = {from}")),
        Stmt::Map { rule, to, args } => {
            let parameter =
                if rule.is_parametric() { format!("<{}>", rule.parameter) } else { String::new() };
            line(format!("{to} = {}{parameter} {}", rule.row.name(), listed(args)));
        }
        Stmt::Round32 { to, a } => line(format!("{to} = round32 {a}")),
        Stmt::Int { op, to, a, b } => line(format!("{to} = {} {a}, {b}", op.name())),
        Stmt::Index { to, index } => line(format!("{to} = {index}")),
        Stmt::Compare { op, to, a, b } => line(format!("{to} = {} {a}, {b}", op.name())),
        Stmt::And { to, a, b } => line(format!("{to} = and {a}, {b}")),
        Stmt::Or { to, a, b } => line(format!("{to} = or {a}, {b}")),
        Stmt::Not { to, a } => line(format!("{to} = not {a}")),
        Stmt::Select { to, holds, a, b } => line(format!("{to} = select {holds}, {a}, {b}")),
        Stmt::Truncate { to, a } => line(format!("{to} = truncate {a}")),
        Stmt::Convert { to, a } => line(format!("{to} = convert {a}")),
        Stmt::Load { to, buf, at } => line(format!("{to} = {buf}[{at}]")),
        Stmt::Store { buf, at, from } => line(format!("{buf}[{at}] = {from}")),
        Stmt::Finite { a } => line(format!("finite {a}")),
        Stmt::AllFinite { place } => line(format!("finite {place}")),
        Stmt::Within { a, length } => line(format!("within {a}, {length}")),
        Stmt::Holds { a } => line(format!("holds {a}")),
        Stmt::Stop => line("stop".into()),
        Stmt::Step => line("step".into()),
        Stmt::For { counter, rounds, descending, counts, body } => {
            let down = if *descending { "down " } else { "" };
            let steps = if *counts { " steps" } else { "" };
            line(format!("for {counter} in {down}{rounds}{steps} {{"));
            print_block(body, depth + 1, out);
            let _ = writeln!(out, "{pad}}}");
        }
        Stmt::While { condition, holds, body } => {
            line("while {".into());
            print_block(condition, depth + 1, out);
            let _ = writeln!(out, "{pad}}} {holds} {{");
            print_block(body, depth + 1, out);
            let _ = writeln!(out, "{pad}}}");
        }
        Stmt::If { holds, then, other } => {
            line(format!("if {holds} {{"));
            print_block(then, depth + 1, out);
            if !other.is_empty() {
                let _ = writeln!(out, "{pad}}} else {{");
                print_block(other, depth + 1, out);
            }
            let _ = writeln!(out, "{pad}}}");
        }
        Stmt::Sweep { counter, rounds, room, state, advance, back } => {
            line(format!("sweep {counter} in {rounds} snapshots {room} ({}) {{", listed(state)));
            print_block(advance, depth + 1, out);
            let _ = writeln!(out, "{pad}}} back {{");
            print_block(back, depth + 1, out);
            let _ = writeln!(out, "{pad}}}");
        }
        Stmt::Each { axes, body } => {
            let axes: Vec<String> =
                axes.iter().map(|(reg, from, to)| format!("{reg} in {from}..{to}")).collect();
            line(format!("each {} {{", axes.join(", ")));
            print_block(body, depth + 1, out);
            let _ = writeln!(out, "{pad}}}");
        }
        Stmt::Function { rule, place } => line(format!("{place} = {} itself", rule.row.name())),
        Stmt::Reduce { kind, from, to } => line(format!("{to} = {} {from}", kind.name())),
        Stmt::Product { strong, a, b, to, adds } => {
            let (sign, name) =
                (if *adds { "+=" } else { "=" }, if *strong { "strong_matmul" } else { "matmul" });
            line(format!("{to} {sign} {name} {a}, {b}"));
        }
        Stmt::Dots { strong, a, x, to } => {
            line(format!("{to} = {} {a}, {x}", if *strong { "strong_dots" } else { "dots" }));
        }
        Stmt::Kernel { op, given, taken, .. } => {
            line(format!("{} = {} {}", listed(taken), op.name(), listed(given)));
        }
        Stmt::Swap { a, b } => line(format!("swap {a}, {b}")),
        Stmt::Reserve { buf, length } => line(format!("reserve {buf}, {length}")),
    }
}

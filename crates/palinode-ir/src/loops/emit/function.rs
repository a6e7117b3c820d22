//! What is around a loop form: its memory, what it is given, what it gives.

use std::collections::HashSet;
use std::sync::Arc;

use palinode_core::rules::Row;

use super::super::form::{Buf, Kind, LoopForm, Operand, Port, Reg, Role, Stmt};
use super::super::passes::touch::Touch;
use super::super::verify::{Unproven, verify};
use super::language::Language;
use super::support::Needs;
use super::uses::Uses;
use super::write::Writer;
use super::{Options, Task};
use crate::op::Rule;

/// A buffer, parameter or result.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// How many elements; none of a scalar.
    pub(super) length: Option<u64>,
    /// The axes of an array.
    pub(super) shape: Vec<usize>,
    /// What it is, as an expression; of results.
    pub(super) value: String,
    /// Whether the form looks at it; of parameters.
    pub(super) is_used: bool,
}

/// The parts of a function, without what the languages put around them.
pub(super) struct Function {
    /// Arrays of the workspace.
    pub(super) workspace: Vec<Field>,
    pub(super) params: Vec<Field>,
    pub(super) results: Vec<Field>,
    /// Inputs that are known, with their values.
    pub(super) known: Vec<(String, i64)>,
    /// Arrays that are exchanged with others.
    pub(super) exchanged: HashSet<String>,
    /// Fused loops.
    pub(super) loops: Vec<String>,
    pub(super) body: Vec<String>,
    pub(super) has_notes: bool,
    /// Whether it notes how suspicious comparisons are.
    pub(super) suspects: bool,
    pub(super) counts: bool,
}

impl Function {
    /// The names of what a task gives, as fields.
    pub(super) fn result_names(task: &Task<'_>) -> Vec<String> {
        let mut taken = HashSet::new();
        let mut one = |name: &Arc<str>| {
            let plain = super::names::identifier(name);
            let (mut name, mut number) = (plain.clone(), 2);
            while !taken.insert(name.clone()) {
                name = format!("{plain}_{number}");
                number += 1;
            }
            name
        };
        task.outputs.iter().map(&mut one).collect()
    }
}

/// The text of a form; the names of its fused loops begin with the prefix.
pub(super) fn function(
    task: &Task<'_>,
    options: &Options<'_>,
    watches: bool,
    language: &dyn Language,
    prefix: &str,
    needs: &mut Needs,
) -> Function {
    let form = without_dead(task.form, watches);
    let unproven = verify(&form).expect("`supported` has looked at it");
    let mut writer = Writer::new(&form, &unproven, language, options, watches, &task.inputs);
    writer.prefix = prefix.into();
    let all = Touch::join_of(&form.body);
    let mut params = Vec::new();
    let mut known = Vec::new();
    let touched = |buf: Buf| all.reads.contains(&buf) || all.writes.contains(&buf);
    let given_back =
        |buf: Buf| form.outputs.iter().any(|port| matches!(port, Port::Array(place) if place.buf == buf));
    for (port, name) in form.inputs.iter().zip(&task.inputs) {
        params.push(match port {
            Port::Scalar(Operand::Reg(reg)) => Field {
                name: writer.names.register(*reg),
                kind: form.registers[reg.index()],
                length: None,
                shape: Vec::new(),
                value: String::new(),
                is_used: writer.uses.of[reg.index()].reads > 0,
            },
            Port::Scalar(Operand::Int(n)) => {
                known.push((name.to_string(), *n));
                continue;
            }
            Port::Scalar(_) => continue,
            Port::Array(place) => Field {
                name: writer.names.buffer(place.buf).to_string(),
                kind: form.buffers[place.buf.index()].kind,
                length: Some(form.buffers[place.buf.index()].length),
                shape: place.shape.clone(),
                value: String::new(),
                is_used: touched(place.buf) || given_back(place.buf),
            },
        });
    }
    writer.block(&form.body);
    writer.declarations((0, usize::MAX));
    writer.look();
    let mut results = Vec::new();
    for (port, name) in form.outputs.iter().zip(Function::result_names(task)) {
        results.push(match port {
            Port::Scalar(operand) => Field {
                name,
                kind: form.kind(*operand),
                length: None,
                shape: Vec::new(),
                value: writer.operand(*operand).text,
                is_used: true,
            },
            Port::Array(place) => {
                let count = place.elements() as u64;
                let is_all = place.at.known() == Some(0) && form.buffers[place.buf.index()].length == count;
                let from = if is_all { None } else { Some(writer.place(&place.at)) };
                Field {
                    name,
                    kind: form.buffers[place.buf.index()].kind,
                    length: Some(count),
                    shape: place.shape.clone(),
                    value: language.part(writer.names.buffer(place.buf), from.as_deref(), false),
                    is_used: true,
                }
            }
        });
    }
    let workspace = form
        .buffers
        .iter()
        .enumerate()
        .filter(|&(at, buffer)| {
            let buf = Buf(at as u32);
            buffer.role == Role::Workspace && (touched(buf) || given_back(buf))
        })
        .map(|(at, buffer)| Field {
            name: writer.names.buffer(Buf(at as u32)).to_string(),
            kind: buffer.kind,
            length: Some(buffer.length),
            shape: Vec::new(),
            value: String::new(),
            is_used: true,
        })
        .collect();
    let mut exchanged = HashSet::new();
    find_exchanged(&form.body, &mut |buf| {
        exchanged.insert(writer.names.buffer(buf).to_string());
    });
    needs.join(&writer.needs);
    Function {
        workspace,
        params,
        results,
        known,
        exchanged,
        counts: writer.needs.counts,
        has_notes: writer.has_notes,
        suspects: writer.suspects,
        loops: writer.functions,
        body: writer.out,
    }
}

fn find_exchanged(stmts: &[Stmt], found: &mut dyn FnMut(Buf)) {
    for stmt in stmts {
        if let Stmt::Swap { a, b } = stmt {
            found(*a);
            found(*b);
        }
        stmt.blocks().into_iter().for_each(|block| find_exchanged(block, found));
    }
}

/// The form without statements that set what nobody reads, of which nothing else is to be seen.
fn without_dead(form: &LoopForm, watches: bool) -> LoopForm {
    let mut form = form.clone();
    without_powers_of_zero(&mut form.body);
    loop {
        let uses = Uses::of(&form);
        let unproven = verify(&form).expect("`supported` has looked at it");
        let is_dead = |stmt: &Stmt| match stmt {
            Stmt::Each { body, .. } => body.is_empty(),
            Stmt::If { then, other, .. } => then.is_empty() && other.is_empty(),
            _ => is_pure(stmt, watches, &unproven).is_some_and(|reg| uses.of[reg.index()].reads == 0),
        };
        if !remove_dead(&mut form.body, &is_dead) {
            return form;
        }
    }
}

/// `x^0` reads nothing.
fn without_powers_of_zero(stmts: &mut [Stmt]) {
    for stmt in stmts {
        if let Stmt::Map { rule: Rule { row: Row::Powi, parameter: 0 }, to, .. } = stmt {
            *stmt = Stmt::Move { to: *to, from: Operand::Real(1.0) };
        }
        stmt.blocks_mut().into_iter().for_each(|block| without_powers_of_zero(block));
    }
}

/// What a statement sets, if it does nothing else.
fn is_pure(stmt: &Stmt, watches: bool, unproven: &Unproven) -> Option<Reg> {
    match stmt {
        Stmt::Move { to, .. }
        | Stmt::Map { to, .. }
        | Stmt::Round32 { to, .. }
        | Stmt::Index { to, .. }
        | Stmt::And { to, .. }
        | Stmt::Or { to, .. }
        | Stmt::Not { to, .. }
        | Stmt::Select { to, .. }
        | Stmt::Convert { to, .. } => Some(*to),
        Stmt::Compare { to, .. } if !watches => Some(*to),
        Stmt::Load { to, .. } if !unproven.contains(stmt) => Some(*to),
        _ => None,
    }
}

fn remove_dead(stmts: &mut Vec<Stmt>, is_dead: &dyn Fn(&Stmt) -> bool) -> bool {
    let before = stmts.len();
    stmts.retain(|stmt| !is_dead(stmt));
    let mut removed = stmts.len() < before;
    for stmt in stmts {
        for block in stmt.blocks_mut() {
            removed |= remove_dead(block, is_dead);
        }
    }
    removed
}

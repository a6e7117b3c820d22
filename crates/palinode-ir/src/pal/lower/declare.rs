//! Params, inputs, the lengths they bring along, and constants: what every body can see.

use super::value::{annotated, describe};
use super::{Module, defined_twice};
use crate::diagnostic::Diagnostic;
use crate::pal::constant;
use crate::pal::syntax::ast::{Annotation, Expr, ExprKind, Length, Name, Scalar, Stmt, StmtKind};
use crate::pal::{Argument, Default, LengthSpec, Role};
use crate::types::{Elem, Span, Type};
use std::collections::HashMap;
use std::sync::Arc;

pub(super) struct Global<'a> {
    pub(super) name: Arc<str>,
    pub(super) span: Span,
    pub(super) kind: GlobalKind<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum GlobalKind<'a> {
    /// A param or an input, by its number.
    Argument(usize),
    /// The length of an argument along an axis.
    Length {
        argument: usize,
        axis: u8,
    },
    Const(&'a Expr),
}

impl<'a> Module<'a> {
    pub(super) fn collect_globals(&mut self, stmts: &'a [Stmt]) {
        let mut constants = HashMap::new();
        for stmt in stmts {
            if let StmtKind::Const { name, value } = &stmt.kind {
                self.global(name, GlobalKind::Const(value));
                constants.insert(name.text.clone(), value);
            }
        }
        for stmt in stmts {
            if let StmtKind::Argument { is_param, name, annotation, default } = &stmt.kind {
                let role = if *is_param { Role::Param } else { Role::Input };
                let argument =
                    self.argument(role, name, annotation.as_ref(), default.as_ref(), &constants, stmt.span);
                self.global(name, GlobalKind::Argument(self.arguments.len()));
                self.arguments.push(argument);
            }
        }
        self.lengths();
    }

    fn global(&mut self, name: &Name, kind: GlobalKind<'a>) {
        if let Some(&before) = self.global_of.get(&name.text) {
            let (a, b) = (self.globals[before].span, name.span);
            let (first, again) = if a.start <= b.start { (a, b) } else { (b, a) };
            self.problems.push(defined_twice(&name.text, again, first));
            return;
        }
        self.global_of.insert(name.text.clone(), self.globals.len());
        self.globals.push(Global { name: name.text.clone(), span: name.span, kind });
    }

    fn argument(
        &mut self,
        role: Role,
        name: &Name,
        annotation: Option<&Annotation>,
        default: Option<&Expr>,
        constants: &HashMap<Arc<str>, &Expr>,
        span: Span,
    ) -> Argument {
        let value = default.and_then(|expr| match constant::evaluate(expr, constants) {
            Ok(value) => Some((value, expr)),
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        });
        let declared_unit = annotation.and_then(|annotation| annotation.unit.clone());
        let written_unit = default.and_then(constant::unit_of).cloned();
        let unit = declared_unit.or_else(|| written_unit.clone());
        let ty = match annotation {
            Some(annotation) if annotation.elem.is_some() || annotation.shape.is_some() => {
                annotated(annotation)
            }
            _ => {
                let rank = value.as_ref().map_or(0, |(value, _)| value.shape().len());
                Type::array(Elem::F64, rank.min(usize::from(u8::MAX)) as u8)
            }
        };
        self.check_kind(role, name, annotation, ty);
        let lengths = match annotation.and_then(|annotation| annotation.shape.as_ref()) {
            Some(shape) => shape.iter().map(|length| self.length_spec(length, constants)).collect(),
            None => vec![LengthSpec::Any; usize::from(ty.rank)],
        };
        let default = value.map(|(value, expr)| {
            self.check_default(&value, expr, ty, &lengths);
            match (&unit, written_unit) {
                // The evaluator gives SI; a default is kept in the declared unit.
                (Some(unit), Some(_)) => scaled(value, expr, unit),
                _ => value,
            }
        });
        Argument { name: name.text.clone(), role, ty, default, unit, lengths, span }
    }

    fn check_kind(&mut self, role: Role, name: &Name, annotation: Option<&Annotation>, ty: Type) {
        let Some(Annotation { elem: Some((scalar, span)), .. }) = annotation else { return };
        let problem = match (scalar, role) {
            (Scalar::Bool, _) => Diagnostic::error("PAL0209", *span, "an argument is real or an integer")
                .help("use an integer and compare it, `flag == 1`"),
            (Scalar::Int, Role::Param) => {
                Diagnostic::error("PAL0209", *span, format!("`{}` cannot be {}", name.text, describe(ty)))
                    .note("params are what is differentiated with respect to")
                    .help(format!("declare it as data: `input {}: int`", name.text))
            }
            _ => return,
        };
        self.problems.push(problem);
    }

    fn length_spec(&mut self, length: &Length, constants: &HashMap<Arc<str>, &Expr>) -> LengthSpec {
        match length {
            Length::Known(n, span) => usize::try_from(*n).map(LengthSpec::Known).unwrap_or_else(|_| {
                self.problems.push(Diagnostic::error("PAL0211", *span, "a length is not negative"));
                LengthSpec::Any
            }),
            Length::Any => LengthSpec::Any,
            Length::Named(name) => match constants.get(&name.text) {
                None => LengthSpec::Named(name.text.clone()),
                Some(expr) => match constant::evaluate(expr, constants) {
                    Ok(Default::Scalar(n)) if n >= 0.0 && n == n.trunc() => LengthSpec::Known(n as usize),
                    _ => {
                        let message = format!("the constant `{}` is not a length", name.text);
                        let problem = Diagnostic::error("PAL0211", name.span, message);
                        self.problems.push(problem.help("a length is a whole number that is not negative"));
                        LengthSpec::Any
                    }
                },
            },
        }
    }

    fn check_default(&mut self, value: &Default, expr: &Expr, ty: Type, lengths: &[LengthSpec]) {
        let shape = value.shape();
        // A single number fills an array of known lengths.
        if shape.len() != usize::from(ty.rank) {
            let message = format!("the default has {} axes, the declaration {}", shape.len(), ty.rank);
            let mut problem = Diagnostic::error("PAL0210", expr.span, message);
            if shape.is_empty() {
                problem.help = Some("write the elements, `[1, 2, 3]`, or `fill(1, 3)`".into());
            }
            self.problems.push(problem);
            return;
        }
        for (axis, (found, length)) in shape.iter().zip(lengths).enumerate() {
            if let LengthSpec::Known(n) = length
                && n != found
            {
                let message =
                    format!("the default has length {found} along axis {axis}, the declaration says {n}");
                self.problems.push(Diagnostic::error("PAL0211", expr.span, message));
            }
        }
        if ty.elem == Elem::Int && value.data().iter().any(|x| *x != x.trunc()) {
            let problem = Diagnostic::error("PAL0209", expr.span, "the default of an integer is not whole");
            self.problems.push(problem);
        }
    }

    /// Names of lengths become integers of the program, unless something else already has the name.
    fn lengths(&mut self) {
        for argument in 0..self.arguments.len() {
            for axis in 0..self.arguments[argument].lengths.len() {
                let LengthSpec::Named(name) = self.arguments[argument].lengths[axis].clone() else {
                    continue;
                };
                let span = self.arguments[argument].span;
                match self.global_of.get(&name).map(|&at| (self.globals[at].kind, self.globals[at].span)) {
                    None => {
                        self.global_of.insert(name.clone(), self.globals.len());
                        let kind = GlobalKind::Length { argument, axis: axis as u8 };
                        self.globals.push(Global { name, span, kind });
                    }
                    Some((GlobalKind::Argument(other), first)) if self.arguments[other].ty != Type::INT => {
                        let message =
                            format!("`{name}` is {}, not a length", describe(self.arguments[other].ty));
                        let problem = Diagnostic::error("PAL0209", span, message).and(first, "declared here");
                        self.problems.push(problem.help("choose another name for the length"));
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Counts a param or an input as used; a length counts for its array.
    pub(super) fn use_global(&mut self, name: &Arc<str>) {
        let Some(&at) = self.global_of.get(name) else { return };
        let argument = match self.globals[at].kind {
            GlobalKind::Argument(index) | GlobalKind::Length { argument: index, .. } => index,
            GlobalKind::Const(_) => return,
        };
        self.used_names.insert(self.arguments[argument].name.clone());
    }

    /// The globals that must be passed to a function which mentions `name`.
    pub(super) fn passed_for(&self, name: &Arc<str>) -> Option<usize> {
        let at = *self.global_of.get(name)?;
        match self.globals[at].kind {
            GlobalKind::Argument(_) | GlobalKind::Length { .. } => Some(at),
            GlobalKind::Const(_) => None,
        }
    }

    /// The type of a global that is passed.
    pub(super) fn passed_type(&self, at: usize) -> Type {
        match self.globals[at].kind {
            GlobalKind::Argument(index) => self.arguments[index].ty,
            GlobalKind::Length { .. } | GlobalKind::Const(_) => Type::INT,
        }
    }
}

/// A default that was written with units, in the declared unit. A number in the very same unit keeps its
/// digits.
fn scaled(value: Default, expr: &Expr, unit: &crate::pal::Unit) -> Default {
    fn exact(expr: &Expr, unit: &crate::pal::Unit, out: &mut Vec<f64>) -> bool {
        match &expr.kind {
            ExprKind::Quantity(x, own) if own == unit => {
                out.push(*x);
                true
            }
            ExprKind::Unary(_, inner) => {
                let start = out.len();
                let same = exact(inner, unit, out);
                out[start..].iter_mut().for_each(|x| *x = -*x);
                same
            }
            ExprKind::List(items) => items.iter().all(|item| exact(item, unit, out)),
            _ => false,
        }
    }
    let mut digits = Vec::new();
    let same = exact(expr, unit, &mut digits) && digits.len() == value.data().len();
    match value {
        Default::Scalar(x) => Default::Scalar(if same { digits[0] } else { unit.from_si(x) }),
        Default::Array { shape, data } => {
            let data = if same { digits } else { data.into_iter().map(|x| unit.from_si(x)).collect() };
            Default::Array { shape, data }
        }
    }
}

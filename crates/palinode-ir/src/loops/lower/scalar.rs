//! Operations on scalars, of the program and of elements; integers and their ranges.

use palinode_core::rules::Row;

use super::super::form::{Index, Kind, Operand, Reg, Stmt};
use super::value::{Single, Whole};
use super::{ANY, Lower, Refusal};
use crate::interp::scalar_ops::integer;
use crate::op::{Comparison, IntOp, Logical, Op, Rule};
use crate::types::{Elem, Type};

impl Lower<'_> {
    /// A scalar as an operand.
    pub(super) fn operand(&mut self, single: &Single) -> Operand {
        match single {
            Single::Real(operand) | Single::Truth(operand) => *operand,
            Single::Whole(whole) => self.whole(whole),
        }
    }

    pub(super) fn whole(&mut self, whole: &Whole) -> Operand {
        if let Some(n) = whole.index.known() {
            return Operand::Int(n);
        }
        if let (0, [(reg, 1)]) = (whole.index.constant, &whole.index.terms[..]) {
            return Operand::Reg(*reg);
        }
        let to = self.counter(whole.least, whole.most);
        self.emit(Stmt::Index { to, index: whole.index.clone() });
        Operand::Reg(to)
    }

    fn real(&mut self, single: &Single) -> Operand {
        let Single::Real(operand) = single else { unreachable!("typing: a real") };
        *operand
    }

    /// The result of an elementwise operation on scalars.
    pub(super) fn apply(&mut self, op: &Op, ty: Type, args: &[Single]) -> Result<Single, Refusal> {
        Ok(match op {
            Op::Map(rule) => {
                let args = args.iter().map(|arg| self.real(arg)).collect();
                Single::Real(self.map(*rule, args, ty.elem))
            }
            Op::Int(op) => {
                let [Single::Whole(a), Single::Whole(b)] = args else { unreachable!("typing: two integers") };
                Single::Whole(self.integer(*op, a, b))
            }
            Op::Compare(op) => Single::Truth(self.compare(*op, &args[0], &args[1])),
            Op::Logical(op) => {
                let truths: Vec<Operand> = args.iter().map(|arg| self.operand(arg)).collect();
                Single::Truth(self.logical(*op, &truths))
            }
            Op::Select => {
                let holds = self.operand(&args[0]);
                match holds {
                    Operand::Bool(true) => args[1].clone(),
                    Operand::Bool(false) => args[2].clone(),
                    _ => self.select(holds, &args[1], &args[2]),
                }
            }
            Op::Convert(to) => self.convert(*to, &args[0]),
            Op::StopGradient => args[0].clone(),
            op => return self.refuse(format!("`{}` of scalars", op.name())),
        })
    }

    pub(super) fn map(&mut self, rule: Rule, args: Vec<Operand>, elem: Elem) -> Operand {
        let to = self.register(Kind::Real);
        // A strong product of finite numbers is a product, and others stop a run that traps.
        let is_plain = self.form.traps && rule.row == Row::StrongMul;
        let rule = if is_plain { Row::Multiply.into() } else { rule };
        self.emit(Stmt::Map { rule, to, args });
        self.rounded(to, elem)
    }

    /// The real in a register, rounded if it is of single precision.
    pub(super) fn rounded(&mut self, reg: Reg, elem: Elem) -> Operand {
        if elem != Elem::F32 {
            return Operand::Reg(reg);
        }
        let to = self.register(Kind::Real);
        self.emit(Stmt::Round32 { to, a: Operand::Reg(reg) });
        Operand::Reg(to)
    }

    fn convert(&mut self, to: Elem, a: &Single) -> Single {
        match (a, to) {
            (Single::Real(a), Elem::F64) => Single::Real(*a),
            (Single::Real(a), Elem::F32) => {
                let to = self.register(Kind::Real);
                self.emit(Stmt::Round32 { to, a: *a });
                Single::Real(Operand::Reg(to))
            }
            (Single::Real(a), Elem::Int | Elem::Bool) => {
                let to = self.register(Kind::Int);
                self.emit(Stmt::Truncate { to, a: *a });
                self.single(to)
            }
            (Single::Whole(whole), Elem::F64 | Elem::F32) => {
                let a = self.whole(whole);
                let reg = self.register(Kind::Real);
                self.emit(Stmt::Convert { to: reg, a });
                Single::Real(self.rounded(reg, to))
            }
            (Single::Whole(_) | Single::Truth(_), _) => a.clone(),
        }
    }

    fn select(&mut self, holds: Operand, a: &Single, b: &Single) -> Single {
        let to = self.register(a.kind());
        if let (Single::Whole(a), Single::Whole(b)) = (a, b) {
            self.ranges[to.index()] = (a.least.min(b.least), a.most.max(b.most));
        }
        let (a, b) = (self.operand(a), self.operand(b));
        self.emit(Stmt::Select { to, holds, a, b });
        self.single(to)
    }

    fn compare(&mut self, op: Comparison, a: &Single, b: &Single) -> Operand {
        if let (Single::Whole(a), Single::Whole(b)) = (a, b) {
            let known = match op {
                Comparison::Less if a.most < b.least => Some(true),
                Comparison::Less if a.least >= b.most => Some(false),
                Comparison::LessEq if a.most <= b.least => Some(true),
                Comparison::LessEq if a.least > b.most => Some(false),
                Comparison::Equal if a.most < b.least || b.most < a.least => Some(false),
                Comparison::Equal if a.index.known().is_some() && a.index == b.index => Some(true),
                Comparison::Less | Comparison::LessEq | Comparison::Equal => None,
            };
            if let Some(known) = known {
                return Operand::Bool(known);
            }
        }
        let (a, b) = (self.operand(a), self.operand(b));
        let to = self.register(Kind::Bool);
        self.emit(Stmt::Compare { op, to, a, b });
        Operand::Reg(to)
    }

    pub(super) fn logical(&mut self, op: Logical, args: &[Operand]) -> Operand {
        match (op, args) {
            (Logical::Not, [Operand::Bool(a)]) => return Operand::Bool(!a),
            (Logical::And, [Operand::Bool(true), b] | [b, Operand::Bool(true)]) => return *b,
            (Logical::And, [Operand::Bool(false), _] | [_, Operand::Bool(false)]) => {
                return Operand::Bool(false);
            }
            (Logical::Or, [Operand::Bool(false), b] | [b, Operand::Bool(false)]) => return *b,
            (Logical::Or, [Operand::Bool(true), _] | [_, Operand::Bool(true)]) => return Operand::Bool(true),
            (Logical::And | Logical::Or | Logical::Not, _) => {}
        }
        let to = self.register(Kind::Bool);
        self.emit(match op {
            Logical::And => Stmt::And { to, a: args[0], b: args[1] },
            Logical::Or => Stmt::Or { to, a: args[0], b: args[1] },
            Logical::Not => Stmt::Not { to, a: args[0] },
        });
        Operand::Reg(to)
    }

    /// Integer arithmetic: by ranges where nothing can overflow, checked otherwise.
    pub(super) fn integer(&mut self, op: IntOp, a: &Whole, b: &Whole) -> Whole {
        if let (Some(x), Some(y)) = (a.index.known(), b.index.known()) {
            match integer(op, x, y) {
                Ok(n) => return Whole::known(n),
                Err(_) => self.emit(Stmt::Stop),
            }
        }
        let exact = match op {
            IntOp::Add => sum(a, b, 1),
            IntOp::Sub => sum(a, b, -1),
            IntOp::Mul => match (a.index.known(), b.index.known()) {
                (_, Some(factor)) => multiple(a, factor),
                (Some(factor), _) => multiple(b, factor),
                _ => None,
            },
            IntOp::Min if a.most <= b.least => Some(a.clone()),
            IntOp::Min if b.most <= a.least => Some(b.clone()),
            IntOp::Max if a.least >= b.most => Some(a.clone()),
            IntOp::Max if b.least >= a.most => Some(b.clone()),
            IntOp::Div | IntOp::Rem | IntOp::Min | IntOp::Max => None,
        };
        if let Some(exact) = exact {
            return exact;
        }
        let (least, most) = self.range(op, a, b);
        let (a, b) = (self.whole(a), self.whole(b));
        let to = self.counter(least, most);
        self.emit(Stmt::Int { op, to, a, b });
        Whole { index: Index::reg(to), least, most }
    }

    fn range(&self, op: IntOp, a: &Whole, b: &Whole) -> (i64, i64) {
        let corners = |f: fn(i64, i64) -> Option<i64>| -> (i64, i64) {
            let all = [f(a.least, b.least), f(a.least, b.most), f(a.most, b.least), f(a.most, b.most)];
            match all.into_iter().collect::<Option<Vec<i64>>>() {
                Some(all) => {
                    (all.iter().copied().min().unwrap_or(ANY.0), all.into_iter().max().unwrap_or(ANY.1))
                }
                None => ANY,
            }
        };
        match op {
            IntOp::Mul => corners(i64::checked_mul),
            IntOp::Min => (a.least.min(b.least), a.most.min(b.most)),
            IntOp::Max => (a.least.max(b.least), a.most.max(b.most)),
            IntOp::Rem if b.least > 0 => (0, b.most - 1),
            // The quotient by a positive number is nearest to 0 at the largest divisor.
            IntOp::Div if b.least > 0 => (a.least.min(0), a.most.max(0)),
            IntOp::Add | IntOp::Sub | IntOp::Div | IntOp::Rem => ANY,
        }
    }
}

/// `a + factor * b`, if no number overflows on the way.
pub(super) fn sum(a: &Whole, b: &Whole, factor: i64) -> Option<Whole> {
    let b = multiple(b, factor)?;
    let (least, most) = (a.least.checked_add(b.least)?, a.most.checked_add(b.most)?);
    Some(Whole { index: a.index.plus(&b.index, 1)?, least, most })
}

/// A multiple, if it does not overflow.
pub(super) fn multiple(a: &Whole, factor: i64) -> Option<Whole> {
    let (x, y) = (a.least.checked_mul(factor)?, a.most.checked_mul(factor)?);
    Some(Whole { index: a.index.times(factor)?, least: x.min(y), most: x.max(y) })
}

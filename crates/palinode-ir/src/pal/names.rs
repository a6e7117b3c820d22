//! What a piece of syntax mentions, assigns and leaves.

use super::syntax::ast::{Block, Expr, ExprKind, Index, Over, Range, Stmt, StmtKind};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The names that are assigned in a block and not defined there, in alphabetical order. Names of views
/// defined in the block count as the names that they are views of. Of each, whether it is assigned as a
/// whole, so that its lengths may change.
pub(crate) fn assigned(block: &Block) -> BTreeMap<Arc<str>, bool> {
    let mut scan = AssignedScan { locals: vec![BTreeMap::new()], found: BTreeMap::new() };
    scan.block(block);
    scan.found
}

struct AssignedScan {
    /// Names defined in the open blocks. A view of something outside carries the name of that.
    locals: Vec<BTreeMap<Arc<str>, Option<Arc<str>>>>,
    found: BTreeMap<Arc<str>, bool>,
}

impl AssignedScan {
    fn block(&mut self, block: &Block) {
        self.locals.push(BTreeMap::new());
        block.stmts.iter().for_each(|stmt| self.stmt(stmt));
        self.locals.pop();
    }

    fn define(&mut self, name: &Arc<str>, outside: Option<Arc<str>>) {
        self.locals.last_mut().expect("a block is open").insert(name.clone(), outside);
    }

    /// The name outside that a name stands for; none if it is local.
    fn outside(&self, name: &Arc<str>) -> Option<Arc<str>> {
        match self.locals.iter().rev().find_map(|names| names.get(name)) {
            Some(local) => local.clone(),
            None => Some(name.clone()),
        }
    }

    fn assign(&mut self, target: &Expr) {
        let Some(name) = root(target) else { return };
        if let Some(outside) = self.outside(name) {
            let whole = matches!(target.kind, ExprKind::Name(_)) && outside == *name;
            *self.found.entry(outside).or_default() |= whole;
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Assign { targets, .. } => targets.iter().for_each(|target| self.assign(target)),
            StmtKind::Bind { names, .. } | StmtKind::Broken(names) => {
                names.iter().for_each(|name| self.define(&name.text, None));
            }
            StmtKind::Const { name, .. }
            | StmtKind::Argument { name, .. }
            | StmtKind::Output { name, .. } => {
                self.define(&name.text, None);
            }
            StmtKind::Alias { name, target } => {
                let outside = root(target).and_then(|base| self.outside(base));
                self.define(&name.text, outside);
            }
            StmtKind::For { name, body, .. } => {
                self.locals.push(BTreeMap::from([(name.text.clone(), None)]));
                self.block(body);
                self.locals.pop();
            }
            StmtKind::While { body, .. } => self.block(body),
            StmtKind::Equation(equation) => {
                self.block(&equation.body);
                for name in &equation.unknowns {
                    if let Some(outside) = self.outside(&name.text) {
                        self.found.entry(outside).or_default();
                    }
                }
            }
            StmtKind::If { arms, otherwise } => {
                arms.iter().for_each(|(_, block)| self.block(block));
                otherwise.iter().for_each(|block| self.block(block));
            }
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_)
            | StmtKind::Function(_)
            | StmtKind::Value(_) => {}
        }
    }
}

/// The name that an element, a part or a transpose belongs to.
pub(crate) fn root(expr: &Expr) -> Option<&Arc<str>> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name),
        ExprKind::Index(inner, _) | ExprKind::Transpose(inner) => root(inner),
        ExprKind::Call(name, args) if &*name.text == "transpose" && args.len() == 1 => root(&args[0]),
        _ => None,
    }
}

/// How control can leave a block other than at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exits {
    pub(crate) breaks: bool,
    pub(crate) continues: bool,
    pub(crate) returns: bool,
}

impl Exits {
    pub(crate) fn any(self) -> bool {
        self.breaks || self.continues || self.returns
    }

    fn or(self, other: Exits) -> Exits {
        Exits {
            breaks: self.breaks || other.breaks,
            continues: self.continues || other.continues,
            returns: self.returns || other.returns,
        }
    }
}

pub(crate) fn exits(stmts: &[Stmt]) -> Exits {
    stmts.iter().map(exits_of).fold(Exits::default(), Exits::or)
}

pub(crate) fn exits_of(stmt: &Stmt) -> Exits {
    match &stmt.kind {
        StmtKind::Break => Exits { breaks: true, ..Exits::default() },
        StmtKind::Continue => Exits { continues: true, ..Exits::default() },
        StmtKind::Return(_) => Exits { returns: true, ..Exits::default() },
        StmtKind::If { arms, otherwise } => {
            let blocks = arms.iter().map(|(_, block)| block).chain(otherwise);
            blocks.map(|block| exits(&block.stmts)).fold(Exits::default(), Exits::or)
        }
        StmtKind::For { body, .. } | StmtKind::While { body, .. } => {
            Exits { returns: exits(&body.stmts).returns, ..Exits::default() }
        }
        _ => Exits::default(),
    }
}

/// Whether the end of these statements can never be reached.
pub(crate) fn always_exits(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => true,
        StmtKind::If { arms, otherwise: Some(otherwise) } => {
            arms.iter().all(|(_, block)| always_exits(&block.stmts)) && always_exits(&otherwise.stmts)
        }
        _ => false,
    })
}

/// Whether some statement could not be read.
pub(crate) fn is_broken(stmts: &[Stmt]) -> bool {
    let mut found = false;
    for stmt in stmts {
        let mut look = |stmt: &Stmt| found |= matches!(stmt.kind, StmtKind::Broken(_));
        look(stmt);
        walk_stmt(stmt, &mut |_| {}, &mut look);
    }
    found
}

/// The names and the functions that a body mentions.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    pub(crate) names: HashSet<Arc<str>>,
    pub(crate) calls: HashSet<Arc<str>>,
}

impl Mentions {
    pub(crate) fn of(stmts: &[Stmt]) -> Mentions {
        let mut found = Mentions::default();
        found.stmts(stmts);
        found
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            walk_stmt(stmt, &mut |expr| self.expr(expr), &mut |_| {});
            if let StmtKind::Output { name, value: None, .. } = &stmt.kind {
                self.names.insert(name.text.clone());
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(name) => {
                self.names.insert(name.clone());
            }
            ExprKind::Call(name, _) => {
                self.calls.insert(name.text.clone());
            }
            _ => {}
        }
    }
}

/// Calls `each` with every expression below a statement, inner blocks included, and `inner` with every inner
/// statement. Functions defined inside are left out.
pub(crate) fn walk_stmt(stmt: &Stmt, each: &mut dyn FnMut(&Expr), inner: &mut dyn FnMut(&Stmt)) {
    let mut block = |block: &Block, each: &mut dyn FnMut(&Expr)| {
        for stmt in &block.stmts {
            inner(stmt);
            walk_stmt(stmt, each, inner);
        }
    };
    match &stmt.kind {
        StmtKind::Argument { default, .. } => default.iter().for_each(|expr| walk(expr, each)),
        StmtKind::Const { value, .. } | StmtKind::Value(value) | StmtKind::Alias { target: value, .. } => {
            walk(value, each)
        }
        StmtKind::Bind { values, .. } | StmtKind::Return(values) => {
            values.iter().for_each(|expr| walk(expr, each))
        }
        StmtKind::Assign { targets, values, .. } => {
            targets.iter().chain(values).for_each(|expr| walk(expr, each))
        }
        StmtKind::For { over, body, .. } => {
            match over {
                Over::Range { range, .. } => walk_range(range, each),
                Over::Array(expr) => walk(expr, each),
            }
            block(body, each);
        }
        StmtKind::While { condition, body, .. } => {
            walk(condition, each);
            block(body, each);
        }
        StmtKind::Equation(equation) => block(&equation.body, each),
        StmtKind::If { arms, otherwise } => {
            for (condition, body) in arms {
                walk(condition, each);
                block(body, each);
            }
            otherwise.iter().for_each(|body| block(body, each));
        }
        StmtKind::Output { value, .. } => value.iter().for_each(|expr| walk(expr, each)),
        StmtKind::Break | StmtKind::Continue | StmtKind::Function(_) | StmtKind::Broken(_) => {}
    }
}

/// The budgets of loops, those of functions included.
pub(crate) fn budgets(stmts: &[Stmt]) -> Vec<super::LoopBudget> {
    fn look(stmt: &Stmt, found: &mut Vec<super::LoopBudget>) {
        match &stmt.kind {
            StmtKind::For { budget: Some(budget), .. } | StmtKind::While { budget: Some(budget), .. } => {
                let &super::syntax::ast::LoopBudget { bytes, span } = budget;
                found.push(super::LoopBudget { bytes, span, of: stmt.span });
            }
            StmtKind::Function(function) => all(&function.body.stmts, found),
            _ => {}
        }
    }
    fn all(stmts: &[Stmt], found: &mut Vec<super::LoopBudget>) {
        for stmt in stmts {
            look(stmt, found);
            walk_stmt(stmt, &mut |_| {}, &mut |inner| look(inner, found));
        }
    }
    let mut found = Vec::new();
    all(stmts, &mut found);
    found
}

fn walk_range(range: &Range, each: &mut dyn FnMut(&Expr)) {
    [&range.lo, &range.hi, &range.by].into_iter().flatten().for_each(|expr| walk(expr, each));
}

/// Calls `each` with the expression and every one below it.
pub(crate) fn walk(expr: &Expr, each: &mut dyn FnMut(&Expr)) {
    each(expr);
    match &expr.kind {
        ExprKind::Int(_)
        | ExprKind::Real(_)
        | ExprKind::Quantity(..)
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::Error => {}
        ExprKind::List(items) | ExprKind::Call(_, items) => items.iter().for_each(|item| walk(item, each)),
        ExprKind::Unary(_, inner) | ExprKind::Transpose(inner) => walk(inner, each),
        ExprKind::Chain(first, rest) => {
            walk(first, each);
            rest.iter().for_each(|(_, operand)| walk(operand, each));
        }
        ExprKind::Index(inner, indices) => {
            walk(inner, each);
            for index in indices {
                match index {
                    Index::At(expr) => walk(expr, each),
                    Index::Range(range) => walk_range(range, each),
                }
            }
        }
        ExprKind::Choice(c, a, b) => {
            walk(c, each);
            walk(a, each);
            walk(b, each);
        }
    }
}

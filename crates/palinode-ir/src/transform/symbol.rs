//! Rules on symbols: the rule table's partials as instructions of a program.
//!
//! Input: a row, its operands and its result. Output: instructions that compute a partial, or the news that
//! it is 0, 1 or -1. A [`Symbol`] is a number that remembers how it was made; running a row's partial on
//! symbols writes down its formula, so the table stays the only place where a derivative is stated.
//!
//! The expressions live in a thread-local list while one partial is evaluated. Formulas are kept (by thread),
//! because a long program asks for the same few thousands of times; a formula depends on nothing but the row.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Rem, Sub};
use std::sync::Arc;

use palinode_core::rules::Row;
use palinode_core::{Constant, Logic, Scalar, functions_by_row};

use crate::builder::FunctionBuilder;
use crate::fast::FastMap;
use crate::op::{Comparison, Literal, Logical, Op, Rule};
use crate::program::Value;
use crate::types::Elem;

/// A partial of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partial {
    Zero,
    One,
    MinusOne,
    Value(Value),
}

/// The partial of `rule` by operand `which`, as instructions of `builder`; `result` is the operation's value.
pub(crate) fn partial(
    builder: &mut FunctionBuilder,
    rule: Rule,
    which: usize,
    args: &[Value],
    result: Value,
) -> Partial {
    let formula = formula(rule, which, args.len());
    match formula.root() {
        Expression::Literal(Literal::Real(value)) if *value == 0.0 => return Partial::Zero,
        Expression::Literal(Literal::Real(1.0)) => return Partial::One,
        Expression::Literal(Literal::Real(-1.0)) => return Partial::MinusOne,
        _ => {}
    }
    let elem = builder.ty(result).elem;
    let written = vec![None; formula.expressions.len()];
    let mut writer = Writer { builder, formula: &formula, args, result, elem, written };
    Partial::Value(writer.value(formula.root))
}

/// Whether the partial is 0 everywhere.
pub(crate) fn is_flat(rule: Rule, which: usize) -> bool {
    let formula = formula(rule, which, rule.row.arity());
    matches!(formula.root(), Expression::Literal(Literal::Real(value)) if *value == 0.0)
}

/// How a partial is computed.
struct Formula {
    root: usize,
    expressions: Vec<Expression>,
}

impl Formula {
    fn root(&self) -> &Expression {
        &self.expressions[self.root]
    }
}

/// How many formulas are kept: there are fewer rows, but powers have as many exponents as a source names.
const KEPT: usize = 4096;

fn formula(rule: Rule, which: usize, arity: usize) -> Arc<Formula> {
    let key = (rule, which, arity);
    if let Some(found) = known_formulas(|known| known.get(&key).cloned()).flatten() {
        return found;
    }
    EXPRESSIONS.take();
    let args: Vec<Symbol> = (0..arity).map(|at| Symbol(note(Expression::Operand(at)))).collect();
    let result = Symbol(note(Expression::Result));
    let root = rule.row.partial(rule.parameter, which, &args, result).0 as usize;
    let formula = Arc::new(Formula { root, expressions: ManuallyDrop::into_inner(EXPRESSIONS.take()) });
    known_formulas(|known| {
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key, Arc::clone(&formula));
    });
    formula
}

/// Nothing is kept any more when the thread ends.
fn known_formulas<R>(f: impl FnOnce(&mut FastMap<(Rule, usize, usize), Arc<Formula>>) -> R) -> Option<R> {
    FORMULAS.try_with(|known| f(&mut known.borrow_mut())).ok()
}

thread_local! {
    /// Empty but while a formula is evaluated, so that there is nothing to drop when a thread ends and
    /// destructors can still differentiate.
    static EXPRESSIONS: RefCell<ManuallyDrop<Vec<Expression>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
    static FORMULAS: RefCell<FastMap<(Rule, usize, usize), Arc<Formula>>> = RefCell::default();
}

#[derive(Clone, Debug)]
enum Expression {
    Operand(usize),
    Result,
    Literal(Literal),
    Apply(Op, Vec<u32>),
}

fn note(expression: Expression) -> u32 {
    EXPRESSIONS.with_borrow_mut(|all| {
        all.push(expression);
        (all.len() - 1) as u32
    })
}

struct Writer<'a> {
    builder: &'a mut FunctionBuilder,
    formula: &'a Formula,
    args: &'a [Value],
    result: Value,
    elem: Elem,
    written: Vec<Option<Value>>,
}

impl Writer<'_> {
    fn value(&mut self, at: usize) -> Value {
        if let Some(value) = self.written[at] {
            return value;
        }
        let formula = self.formula;
        let value = match &formula.expressions[at] {
            Expression::Operand(which) => self.args[*which],
            Expression::Result => self.result,
            Expression::Literal(literal) => {
                let value = self.builder.literal(*literal);
                if self.elem == Elem::F64 { value } else { self.builder.convert(self.elem, value) }
            }
            Expression::Apply(op, parts) => {
                let parts: Vec<Value> = parts.iter().map(|&part| self.value(part as usize)).collect();
                self.builder.emit(op.clone(), &parts)
            }
        };
        self.written[at] = Some(value);
        value
    }
}

/// A number that is an expression.
#[derive(Clone, Copy, Debug)]
struct Symbol(u32);

/// A truth value that is an expression.
#[derive(Clone, Copy, Debug)]
struct Truth(u32);

impl Symbol {
    fn literal(self) -> Option<f64> {
        EXPRESSIONS.with_borrow(|all| match all[self.0 as usize] {
            Expression::Literal(Literal::Real(value)) => Some(value),
            _ => None,
        })
    }

    fn apply(row: Row, parameter: i32, args: &[Symbol]) -> Symbol {
        if let Some(values) = args.iter().map(|arg| arg.literal()).collect::<Option<Vec<f64>>>() {
            return Symbol(note(Expression::Literal(Literal::Real(row.value(parameter, &values)))));
        }
        let parts = args.iter().map(|arg| arg.0).collect();
        Symbol(note(Expression::Apply(Op::Map(Rule { row, parameter }), parts)))
    }

    fn compare(op: Comparison, a: Symbol, b: Symbol) -> Truth {
        Truth(note(Expression::Apply(Op::Compare(op), vec![a.0, b.0])))
    }
}

impl Logic for Truth {
    fn known(self) -> Option<bool> {
        None
    }
}

impl BitAnd for Truth {
    type Output = Truth;
    fn bitand(self, other: Truth) -> Truth {
        Truth(note(Expression::Apply(Op::Logical(Logical::And), vec![self.0, other.0])))
    }
}

impl BitOr for Truth {
    type Output = Truth;
    fn bitor(self, other: Truth) -> Truth {
        Truth(note(Expression::Apply(Op::Logical(Logical::Or), vec![self.0, other.0])))
    }
}

impl Not for Truth {
    type Output = Truth;
    fn not(self) -> Truth {
        Truth(note(Expression::Apply(Op::Logical(Logical::Not), vec![self.0])))
    }
}

macro_rules! operators {
    ($($Trait:ident::$method:ident = $row:ident),*) => {$(
        impl $Trait for Symbol {
            type Output = Symbol;
            fn $method(self, other: Symbol) -> Symbol {
                Symbol::apply(Row::$row, 0, &[self, other])
            }
        }
    )*};
}
operators! { Add::add = Add, Sub::sub = Subtract, Mul::mul = Multiply, Div::div = Divide, Rem::rem = Remainder }

impl Neg for Symbol {
    type Output = Symbol;
    fn neg(self) -> Symbol {
        Symbol::apply(Row::Negate, 0, &[self])
    }
}

impl Scalar for Symbol {
    type Bool = Truth;

    fn from_int(n: i32) -> Self {
        Symbol(note(Expression::Literal(Literal::Real(f64::from(n)))))
    }
    fn constant(name: Constant) -> Self {
        Symbol(note(Expression::Literal(Literal::Named(name))))
    }
    fn from_f64(v: f64) -> Self {
        Symbol(note(Expression::Literal(Literal::Real(v))))
    }
    fn glance(self) -> Option<f64> {
        None
    }
    fn less(self, other: Self) -> Truth {
        Symbol::compare(Comparison::Less, self, other)
    }
    fn less_eq(self, other: Self) -> Truth {
        Symbol::compare(Comparison::LessEq, self, other)
    }
    fn equal(self, other: Self) -> Truth {
        Symbol::compare(Comparison::Equal, self, other)
    }
    fn select(condition: Truth, if_true: Self, if_false: Self) -> Self {
        Symbol(note(Expression::Apply(Op::Select, vec![condition.0, if_true.0, if_false.0])))
    }
    functions_by_row!();
}

//! Functions of the language: names, argument counts, and those that work element by element.
//!
//! Every row of the rule table is a function by its own name; the rest is listed here. What makes, measures and moves arrays
//! is in `array`.

use super::body::Body;
use super::operator::common_lens;
use super::value::{Known, Val, describe};
use crate::diagnostic::Diagnostic;
use crate::op::{IntOp, Op, Rule};
use crate::pal::syntax::ast::{Expr, Name};
use crate::types::{Elem, Span, Type};
use crate::typing;
use palinode_core::rules;

/// A function that is not a row of the rule table, and how many arguments it takes.
pub(super) const FUNCTIONS: &[(&str, usize, usize)] = &[
    ("pow", 2, 2),
    ("square", 1, 1),
    ("powi", 2, 2),
    ("polygamma", 2, 2),
    ("digamma", 1, 1),
    ("trigamma", 1, 1),
    ("floor", 1, 1),
    ("ceil", 1, 1),
    ("round", 1, 1),
    ("trunc", 1, 1),
    ("int", 1, 1),
    ("real", 1, 1),
    ("abs", 1, 1),
    ("min", 1, MANY),
    ("max", 1, MANY),
    ("select", 3, 3),
    ("stop_gradient", 1, 1),
    ("zeros", 1, MANY),
    ("ones", 1, MANY),
    ("fill", 2, MANY),
    ("eye", 1, 1),
    ("range", 1, 2),
    ("iota", 1, 1),
    ("linspace", 3, 3),
    ("len", 1, 2),
    ("shape", 1, 1),
    ("sum", 1, 2),
    ("mean", 1, 2),
    ("min_axis", 2, 2),
    ("max_axis", 2, 2),
    ("prod", 1, 1),
    ("cumsum", 1, 1),
    ("argmin", 1, 1),
    ("argmax", 1, 1),
    ("any", 1, 1),
    ("all", 1, 1),
    ("count", 1, 1),
    ("logsumexp", 1, 1),
    ("softmax", 1, 1),
    ("dot", 2, 2),
    ("norm", 1, 1),
    ("outer", 2, 2),
    ("matmul", 2, 2),
    ("transpose", 1, 1),
    ("reshape", 2, MANY),
    ("flatten", 1, 1),
    ("reverse", 1, 1),
    ("concat", 1, MANY),
    ("vcat", 1, MANY),
    ("hcat", 1, MANY),
    ("append", 2, MANY),
    ("broadcast", 2, MANY),
    ("repeat_rows", 2, 2),
    ("repeat_columns", 2, 2),
    ("diag", 1, 1),
    ("trace", 1, 1),
    ("solve", 2, 2),
    ("solve_lower", 2, 2),
    ("solve_upper", 2, 2),
    ("inv", 1, 1),
    ("det", 1, 1),
    ("logdet", 1, 1),
    ("cholesky", 1, 1),
    ("qr", 1, 1),
    ("eigh", 1, 1),
    ("svd", 1, 1),
];

const MANY: usize = usize::MAX;

/// Everyday names of rows of the rule table.
const ALIASES: &[(&str, &str)] = &[
    ("log", "ln"),
    ("log1p", "ln_1p"),
    ("expm1", "exp_m1"),
    ("sigmoid", "logistic"),
    ("sign", "signum"),
    ("arcsin", "asin"),
    ("arccos", "acos"),
    ("arctan", "atan"),
    ("arctan2", "atan2"),
    ("arcsinh", "asinh"),
    ("arccosh", "acosh"),
    ("arctanh", "atanh"),
    ("fma", "mul_add"),
];

/// What a function of other languages is called here.
pub(super) fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "print" | "println" | "printf" | "disp" => "output x",
        "length" | "size" | "numel" => "len",
        "average" => "mean",
        "mod" | "fmod" => "a % b",
        "power" => "pow",
        "where" | "ifelse" | "cond" => "select",
        "arange" => "range",
        "array" | "vector" | "matrix" => "[1, 2, 3]",
        "identity" => "eye",
        "inverse" => "inv",
        "chol" => "cholesky",
        "eig" => "eigh",
        "product" => "prod",
        "float" | "double" | "f64" => "real",
        "integer" | "i64" => "int",
        "push" => "append",
        "detach" => "stop_gradient",
        "expit" => "sigmoid",
        "gammaln" | "loggamma" => "lgamma",
        "psi" => "digamma",
        "tile" | "repmat" => "broadcast",
        _ => return None,
    })
}

/// What to do instead of calling a function of other languages that has no place in a model.
pub(super) fn absent(name: &str) -> Option<&'static str> {
    Some(match name {
        "random" | "rand" | "randn" | "randint" | "uniform" | "normal" | "gauss" | "gaussian" | "choice"
        | "sample" | "shuffle" | "seed" | "noise" => {
            "a model has no random numbers: take them as an input, `input noise: [n]`, and give it with --data or --set"
        }
        "time" | "now" | "clock" | "date" => "a model has no clock: take the time as an input",
        "read" | "open" | "load" | "readline" | "fopen" => {
            "a model reads no files: declare an `input`, and give it with --data"
        }
        "grad" | "gradient" | "jacobian" | "hessian" | "jvp" | "vjp" => {
            "derivatives of a model are taken from outside: `palinode grad`, `jvp`, `hessian`"
        }
        "sort" | "argsort" | "sorted" | "median" | "quantile" | "unique" => {
            "there is no sorting; compare elements in a loop, or order the data before"
        }
        "assert" | "error" | "throw" | "raise" | "exit" | "panic" => {
            "a model cannot stop itself: give what should hold as an output, and look at it"
        }
        _ => return None,
    })
}

/// The row that an everyday name stands for.
pub(crate) fn rule_alias(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|alias| alias.0 == name).map(|alias| alias.1)
}

/// The row of the rule table that a function is.
fn row(name: &str) -> Option<rules::Row> {
    let row = rules::Row::named(rule_alias(name).unwrap_or(name))?;
    let structural = matches!(row, rules::Row::StrongMul | rules::Row::Select);
    (!structural).then_some(row)
}

pub(super) fn exists(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.0 == name) || row(name).is_some()
}

/// The names of all functions.
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    let rows = rules::Row::ALL.iter().map(|row| row.name()).filter(|name| row(name).is_some());
    FUNCTIONS.iter().map(|function| function.0).chain(ALIASES.iter().map(|alias| alias.0)).chain(rows)
}

impl Body<'_, '_> {
    pub(super) fn builtin(
        &mut self,
        name: &Name,
        args: &[Expr],
        vals: &[Val],
        span: Span,
    ) -> Option<Vec<Val>> {
        let function = FUNCTIONS.iter().find(|function| function.0 == &*name.text);
        let Some(&(text, least, most)) = function else {
            return self.row_function(name, args, vals, span).map(|val| vec![val]);
        };
        self.check_count(text, least, most, vals.len(), span)?;
        let spans: Vec<Span> = args.iter().map(|arg| arg.span).collect();
        if let Some(result) = self.elementwise(text, vals, &spans) {
            return result.map(|val| vec![val]);
        }
        self.array_function(text, vals, &spans, span)
    }

    fn check_count(&mut self, name: &str, least: usize, most: usize, found: usize, span: Span) -> Option<()> {
        if (least..=most).contains(&found) {
            return Some(());
        }
        let s = |n: usize| if n == 1 { "" } else { "s" };
        let expected = match most {
            _ if least == most => format!("{least} argument{}", s(least)),
            MANY => format!("at least {least} argument{}", s(least)),
            _ => format!("{least} to {most} arguments"),
        };
        self.error(Diagnostic::error("PAL0212", span, format!("`{name}` takes {expected}, not {found}")))
    }

    fn row_function(&mut self, name: &Name, args: &[Expr], vals: &[Val], span: Span) -> Option<Val> {
        let row = row(&name.text)?;
        self.check_count(&name.text, row.arity(), row.arity(), vals.len(), span)?;
        let spans: Vec<Span> = args.iter().map(|arg| arg.span).collect();
        self.check_numbers(&name.text, vals, &spans)?;
        Some(self.rule(row, &vals.iter().collect::<Vec<_>>()))
    }

    /// Numbers whose ranks go together.
    pub(super) fn check_numbers(&mut self, name: &str, vals: &[Val], spans: &[Span]) -> Option<()> {
        for (val, place) in vals.iter().zip(spans) {
            if val.ty.elem == Elem::Bool {
                let message = format!("`{name}` needs numbers, not {}", describe(val.ty));
                let problem = Diagnostic::error("PAL0209", *place, message);
                return self.error(problem.help("`select(c, 1, 0)` makes a number of a truth value"));
            }
        }
        let Some(first) = (0..vals.len()).find(|&at| vals[at].ty.rank > 0) else { return Some(()) };
        for at in 0..vals.len() {
            self.spread(name, &vals[first], &vals[at], (spans[first], spans[at]))?;
        }
        Some(())
    }

    /// Functions that treat every element alike; none if the function is not one.
    fn elementwise(&mut self, name: &str, vals: &[Val], spans: &[Span]) -> Option<Option<Val>> {
        let one = &vals[0];
        let result = match name {
            "pow" | "square" | "floor" | "ceil" | "round" | "trunc" | "int" | "real" | "abs" | "digamma"
            | "trigamma" => {
                if self.check_numbers(name, vals, spans).is_none() {
                    return Some(None);
                }
                match name {
                    "pow" => self.power(&vals[0], &vals[1]),
                    "square" if one.ty.elem == Elem::Int => self.int(IntOp::Mul, one, one),
                    "square" => self.rule(rules::Row::Multiply, &[one, one]),
                    "floor" => self.rounded(rules::Row::Floor, one),
                    "ceil" => self.rounded(rules::Row::Ceil, one),
                    "round" => self.rounded(rules::Row::Round, one),
                    "trunc" | "int" => self.rounded(rules::Row::Trunc, one),
                    "real" => self.realized(one),
                    "digamma" => self.rule(Rule { row: rules::Row::Polygamma, parameter: 0 }, &[one]),
                    "trigamma" => self.rule(Rule { row: rules::Row::Polygamma, parameter: 1 }, &[one]),
                    _ if one.ty.elem == Elem::Int => {
                        let negative = self.int(IntOp::Sub, &Val::int(0), one);
                        self.int(IntOp::Max, one, &negative)
                    }
                    _ => self.rule(rules::Row::Abs, &[one]),
                }
            }
            "powi" => return Some(self.with_parameter(rules::Row::Powi, &vals[0], &vals[1], spans[1])),
            "polygamma" => {
                return Some(self.with_parameter(rules::Row::Polygamma, &vals[1], &vals[0], spans[0]));
            }
            "min" | "max" if vals.len() > 1 => {
                if self.check_numbers(name, vals, spans).is_none() {
                    return Some(None);
                }
                self.extreme(name == "max", vals)
            }
            "select" => return Some(self.select(vals, spans)),
            "stop_gradient" if one.ty.is_real() => {
                self.emit(Op::StopGradient, &[one]).with_lens(one.lens.clone())
            }
            "stop_gradient" => one.clone(),
            _ => return None,
        };
        Some(Some(result))
    }

    /// A whole number: rounded as the row says, then an integer.
    fn rounded(&mut self, row: rules::Row, val: &Val) -> Val {
        if val.ty.elem == Elem::Int {
            return val.clone();
        }
        // Conversion truncates by itself.
        let rounded = if row == rules::Row::Trunc { val.clone() } else { self.rule(row, &[val]) };
        self.emit(Op::Convert(Elem::Int), &[&rounded]).with_lens(val.lens.clone())
    }

    fn with_parameter(&mut self, row: rules::Row, val: &Val, parameter: &Val, place: Span) -> Option<Val> {
        let smallest = if row == rules::Row::Polygamma { 0 } else { i64::from(i32::MIN) };
        match parameter.known_int() {
            Some(n) if (smallest..=i64::from(i32::MAX - 2)).contains(&n) => {
                self.check_numbers(row.name(), core::slice::from_ref(val), &[place])?;
                Some(self.rule(Rule { row, parameter: n as i32 }, &[val]))
            }
            _ => {
                let message = format!("`{}` needs a whole number that is written in the program", row.name());
                let mut problem = Diagnostic::error("PAL0220", place, message);
                if row == rules::Row::Powi {
                    problem.help = Some("`x ^ y` takes any exponent".into());
                }
                self.error(problem)
            }
        }
    }

    fn extreme(&mut self, largest: bool, vals: &[Val]) -> Val {
        let integers = vals.iter().all(|val| val.ty.elem == Elem::Int);
        let mut result = vals[0].clone();
        for val in &vals[1..] {
            result = match (integers, largest) {
                (true, true) => self.int(IntOp::Max, &result, val),
                (true, false) => self.int(IntOp::Min, &result, val),
                (false, true) => self.rule(rules::Row::Max, &[&result, val]),
                (false, false) => self.rule(rules::Row::Min, &[&result, val]),
            };
        }
        result
    }

    fn select(&mut self, vals: &[Val], spans: &[Span]) -> Option<Val> {
        let (c, a, b) = (&vals[0], &vals[1], &vals[2]);
        if c.ty.elem != Elem::Bool {
            let message = format!("the condition of `select` is a truth value, not {}", describe(c.ty));
            return self.error(
                Diagnostic::error("PAL0209", spans[0], message).help("compare first, for example `x > 0`"),
            );
        }
        if (a.ty.elem == Elem::Bool) != (b.ty.elem == Elem::Bool) {
            let problem = Diagnostic::error("PAL0209", spans[1], "`select` chooses between two of one kind")
                .saying(describe(a.ty))
                .and(spans[2], describe(b.ty));
            return self.error(problem);
        }
        let ranked = vals.iter().position(|val| val.ty.rank > 0).unwrap_or(0);
        for at in 0..3 {
            self.spread("select", &vals[ranked], &vals[at], (spans[ranked], spans[at]))?;
        }
        let (a, b) = if a.ty.elem == b.ty.elem {
            (a.clone(), b.clone())
        } else {
            (self.realized(a), self.realized(b))
        };
        let lens = if c.ty.rank > 0 { c.lens.clone() } else { common_lens(&a, &b) };
        Some(self.emit(Op::Select, &[c, &a, &b]).with_lens(lens))
    }

    /// A whole number that is written in the program, below `limit`.
    pub(super) fn axis(&mut self, val: &Val, rank: u8, span: Span) -> Option<u8> {
        match val.known {
            Some(Known::Int(axis)) if (0..i64::from(rank)).contains(&axis) => Some(axis as u8),
            Some(Known::Int(axis)) => {
                let message = format!("there is no axis {axis}: the array has {rank}, counted from 0");
                self.error(Diagnostic::error("PAL0210", span, message))
            }
            _ => self.error(Diagnostic::error(
                "PAL0220",
                span,
                "an axis is a number that is written in the program",
            )),
        }
    }

    /// Applies an operation, or reports why the operands do not fit it.
    pub(super) fn checked(&mut self, op: Op, args: &[&Val], span: Span) -> Option<Vec<Val>> {
        let types: Vec<Type> = args.iter().map(|arg| arg.ty).collect();
        if let Err(mismatch) = typing::result_types(&op, &types) {
            return self.error(Diagnostic::error("PAL0209", span, mismatch));
        }
        self.b.at(span);
        let args = self.operands(args);
        let values = self.b.emit_all(op, &args);
        Some(values.into_iter().map(|value| Val::new(value, self.b.ty(value))).collect())
    }
}

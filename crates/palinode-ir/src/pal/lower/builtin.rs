//! Functions of the language: names, argument counts, and those that work element by element.
//!
//! Every row of the rule table is a function by its own name; the rest is listed here. What makes, measures
//! and moves arrays is in `array`.

use super::body::Body;
use super::operator::common_lens;
use super::value::{Known, Val, describe};
use crate::diagnostic::Diagnostic;
use crate::op::{IntOp, Linalg, Op, Reduction, Rule};
use crate::pal::spelling::{ALIASES, rule_alias};
use crate::pal::syntax::ast::{Expr, Name};
use crate::types::{Elem, Span, Type};
use crate::typing;
use palinode_core::rules;

/// A call of a function, with what its arguments are.
pub(super) struct Call<'a> {
    pub(super) name: &'static str,
    pub(super) vals: &'a [Val],
    pub(super) spans: &'a [Span],
    pub(super) span: Span,
}

/// What a function becomes.
enum Lowering {
    /// Of numbers whose ranks go together, element by element.
    Numbers(fn(&mut Body<'_, '_>, &[Val]) -> Val),
    One(fn(&mut Body<'_, '_>, &Call<'_>) -> Option<Val>),
    Many(fn(&mut Body<'_, '_>, &Call<'_>) -> Option<Vec<Val>>),
    Dense(Linalg),
}

use Lowering::{Dense, Many, Numbers, One};

/// The functions that are not rows of the rule table: the name, the fewest and the most arguments, and what
/// becomes of it.
const FUNCTIONS: &[(&str, usize, usize, Lowering)] = &[
    ("pow", 2, 2, Numbers(|b, v| b.power(&v[0], &v[1]))),
    ("square", 1, 1, Numbers(|b, v| b.product(&v[0], &v[0]))),
    ("powi", 2, 2, One(|b, c| b.with_parameter(rules::Row::Powi, &c.vals[0], &c.vals[1], c.spans[1]))),
    (
        "polygamma",
        2,
        2,
        One(|b, c| b.with_parameter(rules::Row::Polygamma, &c.vals[1], &c.vals[0], c.spans[0])),
    ),
    ("digamma", 1, 1, Numbers(|b, v| b.rule(Rule { row: rules::Row::Polygamma, parameter: 0 }, &[&v[0]]))),
    ("trigamma", 1, 1, Numbers(|b, v| b.rule(Rule { row: rules::Row::Polygamma, parameter: 1 }, &[&v[0]]))),
    ("floor", 1, 1, Numbers(|b, v| b.rounded(rules::Row::Floor, &v[0]))),
    ("ceil", 1, 1, Numbers(|b, v| b.rounded(rules::Row::Ceil, &v[0]))),
    ("round", 1, 1, Numbers(|b, v| b.rounded(rules::Row::Round, &v[0]))),
    ("trunc", 1, 1, Numbers(|b, v| b.rounded(rules::Row::Trunc, &v[0]))),
    ("int", 1, 1, Numbers(|b, v| b.rounded(rules::Row::Trunc, &v[0]))),
    ("real", 1, 1, Numbers(|b, v| b.realized(&v[0]))),
    ("abs", 1, 1, Numbers(|b, v| b.absolute(&v[0]))),
    ("min", 1, MANY, One(|b, c| b.extreme(Reduction::Min, c))),
    ("max", 1, MANY, One(|b, c| b.extreme(Reduction::Max, c))),
    ("select", 3, 3, One(|b, c| b.select(c.vals, c.spans))),
    ("stop_gradient", 1, 1, One(|b, c| Some(b.stopped(&c.vals[0])))),
    ("zeros", 1, MANY, One(|b, c| b.filled(&Val::real(0.0), c.vals, c.spans, c.span))),
    ("ones", 1, MANY, One(|b, c| b.filled(&Val::real(1.0), c.vals, c.spans, c.span))),
    ("fill", 2, MANY, One(|b, c| b.filled_with(c))),
    ("eye", 1, 1, One(|b, c| b.eye(c))),
    ("range", 1, 2, One(|b, c| b.range(c))),
    ("iota", 1, 1, One(|b, c| b.range(c))),
    ("linspace", 3, 3, One(|b, c| b.linspace(c))),
    ("len", 1, 2, One(|b, c| b.len(c))),
    ("shape", 1, 1, Many(|b, c| b.shape(c))),
    ("sum", 1, 2, One(|b, c| b.reduction(Reduction::Sum, c))),
    ("mean", 1, 2, One(|b, c| b.mean(c))),
    ("min_axis", 2, 2, One(|b, c| b.reduction(Reduction::Min, c))),
    ("max_axis", 2, 2, One(|b, c| b.reduction(Reduction::Max, c))),
    ("prod", 1, 1, One(|b, c| b.product_of_all(c))),
    ("cumsum", 1, 1, One(|b, c| b.running_sum(c))),
    ("argmin", 1, 1, One(|b, c| b.place_of(Reduction::Min, c))),
    ("argmax", 1, 1, One(|b, c| b.place_of(Reduction::Max, c))),
    ("any", 1, 1, One(|b, c| b.any(c, true))),
    ("all", 1, 1, One(|b, c| b.all(c))),
    ("count", 1, 1, One(|b, c| b.count(c))),
    ("logsumexp", 1, 1, One(|b, c| b.logsumexp(c))),
    ("softmax", 1, 1, One(|b, c| b.softmax(c))),
    ("dot", 2, 2, One(|b, c| b.dot(c))),
    ("norm", 1, 1, One(|b, c| b.norm(c))),
    ("outer", 2, 2, One(|b, c| b.outer(c))),
    ("matmul", 2, 2, One(|b, c| b.matmul(&c.vals[0], &c.vals[1], (c.spans[0], c.spans[1]), c.span))),
    ("transpose", 1, 1, One(|b, c| b.transposed(c))),
    ("reshape", 2, MANY, One(|b, c| b.reshaped(c))),
    ("flatten", 1, 1, One(|b, c| b.flattened(c))),
    ("reverse", 1, 1, One(|b, c| b.reversed(c))),
    ("concat", 1, MANY, One(|b, c| b.concat(0, c))),
    ("vcat", 1, MANY, One(|b, c| b.concat(0, c))),
    ("hcat", 1, MANY, One(|b, c| b.concat(1, c))),
    ("append", 2, MANY, One(|b, c| b.append(c))),
    ("broadcast", 2, MANY, One(|b, c| b.broadcast(c))),
    ("repeat_rows", 2, 2, One(|b, c| b.repeat(1, c))),
    ("repeat_columns", 2, 2, One(|b, c| b.repeat(0, c))),
    ("diag", 1, 1, One(|b, c| b.diag(c))),
    ("trace", 1, 1, One(|b, c| b.trace(c))),
    ("solve", 2, 2, Dense(Linalg::Solve { transposed: false })),
    ("solve_lower", 2, 2, Dense(Linalg::SolveTriangular { lower: true, transposed: false })),
    ("solve_upper", 2, 2, Dense(Linalg::SolveTriangular { lower: false, transposed: false })),
    ("inv", 1, 1, Dense(Linalg::Inverse)),
    ("det", 1, 1, Dense(Linalg::Determinant)),
    ("logdet", 1, 1, Dense(Linalg::LogDet)),
    ("cholesky", 1, 1, Dense(Linalg::Cholesky)),
    ("qr", 1, 1, Dense(Linalg::Qr)),
    ("eigh", 1, 1, Dense(Linalg::SymmetricEigen)),
    ("svd", 1, 1, Dense(Linalg::Svd)),
];

const MANY: usize = usize::MAX;

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

/// The row of the rule table that a function is.
fn row(name: &str) -> Option<rules::Row> {
    let row = rules::Row::named(rule_alias(name).unwrap_or(name))?;
    let structural = matches!(row, rules::Row::StrongMul | rules::Row::Select);
    (!structural).then_some(row)
}

pub(super) fn exists(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.0 == name) || row(name).is_some()
}

/// The names of all functions of the language, some of which are different names of one.
pub fn functions() -> impl Iterator<Item = &'static str> {
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
        let Some((name, least, most, lowering)) = function else {
            return self.row_function(name, args, vals, span).map(|val| vec![val]);
        };
        self.check_count(name, *least, *most, vals.len(), span)?;
        let spans: Vec<Span> = args.iter().map(|arg| arg.span).collect();
        let call = Call { name, vals, spans: &spans, span };
        match lowering {
            Numbers(lower) => {
                self.check_numbers(name, vals, &spans)?;
                Some(vec![lower(self, vals)])
            }
            One(lower) => lower(self, &call).map(|val| vec![val]),
            Many(lower) => lower(self, &call),
            Dense(kind) => self.linalg(*kind, &call),
        }
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

    fn product(&mut self, a: &Val, b: &Val) -> Val {
        match a.ty.elem {
            Elem::Int => self.int(IntOp::Mul, a, b),
            _ => self.rule(rules::Row::Multiply, &[a, b]),
        }
    }

    fn absolute(&mut self, val: &Val) -> Val {
        if val.ty.elem != Elem::Int {
            return self.rule(rules::Row::Abs, &[val]);
        }
        let negative = self.int(IntOp::Sub, &Val::int(0), val);
        self.int(IntOp::Max, val, &negative)
    }

    fn stopped(&mut self, val: &Val) -> Val {
        if val.ty.is_real() {
            self.emit(Op::StopGradient, &[val]).with_lens(val.lens.clone())
        } else {
            val.clone()
        }
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

    /// The smallest or largest of several numbers, or of the elements of an array.
    fn extreme(&mut self, kind: Reduction, call: &Call<'_>) -> Option<Val> {
        if call.vals.len() == 1 {
            return self.reduction(kind, call);
        }
        self.check_numbers(call.name, call.vals, call.spans)?;
        let integers = call.vals.iter().all(|val| val.ty.elem == Elem::Int);
        let (int, row) = match kind {
            Reduction::Max => (IntOp::Max, rules::Row::Max),
            _ => (IntOp::Min, rules::Row::Min),
        };
        let mut result = call.vals[0].clone();
        for val in &call.vals[1..] {
            result = if integers { self.int(int, &result, val) } else { self.rule(row, &[&result, val]) };
        }
        Some(result)
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

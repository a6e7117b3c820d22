//! A program as a tree, and its text.
//!
//! Vectors have [`LENGTH`] elements and matrices [`LENGTH`] rows and columns, so every combination is well
//! typed and every index is in range; what varies is the control flow, the mutation and the operations.

use std::fmt::{self, Write};

/// The length of vectors and the size of matrices.
pub(crate) const LENGTH: usize = crate::LENGTH;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Literal(f64),
    Name(String),
    Element(String, Index),
    Cell(String, Index, Index),
    /// A loop counter as a number.
    Counter(String),
    Negate(Box<Scalar>),
    Binary(&'static str, Box<Scalar>, Box<Scalar>),
    /// A function by name.
    Call(String, Vec<Scalar>),
    /// A power with a whole exponent.
    Power(Box<Scalar>, i32),
    /// A function of vectors that gives a number.
    Fold(&'static str, Vec<Vector>),
    /// A function of a matrix that gives a number.
    OfMatrix(&'static str, Box<Matrix>),
    Choice(Box<Condition>, Box<Scalar>, Box<Scalar>),
    StopGradient(Box<Scalar>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Vector {
    Name(String),
    List(Vec<Scalar>),
    Fill(Box<Scalar>),
    Call(String, Vec<Vector>),
    Binary(&'static str, Box<Vector>, Box<Vector>),
    Scaled(Box<Scalar>, Box<Vector>),
    MatVec(Box<Matrix>, Box<Vector>),
    Row(String, Index),
    Column(String, Index),
    Gather(String, [usize; LENGTH]),
    /// The last element in front.
    Rotated(String),
    Choice(Box<Condition>, Box<Vector>, Box<Vector>),
    /// `solve`, `solve_lower` or `solve_upper` with a matrix that is far from singular.
    Solve(&'static str, Box<Matrix>, Box<Vector>),
    /// So many numbers that stand at equal distances, from one to another.
    Between(Box<Scalar>, Box<Scalar>),
    SumAxis(Box<Matrix>, usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Matrix {
    Name(String),
    Outer(Box<Vector>, Box<Vector>),
    Product(Box<Matrix>, Box<Matrix>),
    Transposed(Box<Matrix>),
    Call(String, Box<Matrix>),
    Binary(&'static str, Box<Matrix>, Box<Matrix>),
    Reshaped(Box<Vector>),
    Cholesky(Box<Matrix>),
    Inverse(Box<Matrix>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Index {
    Fixed(usize),
    /// A counter, shifted and taken around.
    Counter(String, usize),
    /// A counter, but not beyond the end.
    Clamped(String),
    /// Half a counter, taken around.
    Halved(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    Compare(&'static str, Box<Scalar>, Box<Scalar>),
    /// A counter is a multiple of this.
    Divides(String, usize),
    Both(Box<Condition>, Box<Condition>),
    Either(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stmt {
    VarScalar(String, Scalar),
    VarVector(String, Vector),
    VarMatrix(String, Matrix),
    /// `let` names `= qr(..)`, `eigh(..)` or `svd(..)` of a matrix whose factors are well separated.
    Factors(&'static str, Vec<String>, Matrix),
    /// An array that grows: its name, one element.
    VarList(String, Scalar),
    /// One more element at its end.
    Append(String, Scalar),
    /// Its first element leaves, if it has more than one.
    DropFirst(String),
    Assign(String, &'static str, Scalar),
    AssignVector(String, &'static str, Vector),
    AssignMatrix(String, Matrix),
    SetElement(String, Index, &'static str, Scalar),
    SetCell(String, Index, Index, &'static str, Scalar),
    SetRow(String, Index, Vector),
    SetSlice(String, usize, usize, Scalar),
    /// Writes some elements, none twice.
    SetList(String, Vec<usize>, &'static str, Scalar),
    /// Another name for a part of an array.
    Alias(String, View),
    /// Writes through an alias.
    SetAlias(String, usize, &'static str, Scalar),
    /// All elements of an alias.
    FillAlias(String, Scalar),
    /// What one name holds, into another of as many elements.
    Copy(String, String),
    /// Two names change their values.
    Swap(String, String),
    /// From a number on, by steps of a size.
    For {
        counter: String,
        from: usize,
        by: usize,
        rounds: Rounds,
        downwards: bool,
        body: Vec<Stmt>,
    },
    /// At most `most` rounds, while `name` is below a bound.
    While {
        name: String,
        count: String,
        bound: f64,
        most: usize,
        body: Vec<Stmt>,
    },
    If(Condition, Vec<Stmt>, Vec<Stmt>),
    /// Ends the loop around it.
    Break,
    /// Ends a round of the loop around it.
    Continue,
    /// Ends the function around it.
    Return(Scalar),
}

/// A part of an array under a name of its own. Writes go through to the array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum View {
    /// A vector from an element on.
    From(String, usize),
    /// Every second element of a vector.
    EverySecond(String),
    /// A row or a column of a matrix.
    Row(String, usize),
    Column(String, usize),
    /// A row of a transpose: a column.
    OfTranspose(String, usize),
    /// A part of another view.
    Of(String, usize, usize),
    /// Two elements of a vector.
    Two(String, [usize; 2]),
    /// A matrix, transposed.
    Transposed(String),
}

/// How often a loop runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rounds {
    Fixed(usize),
    /// As often as another counter says: a triangular loop.
    Counter(String),
    /// As long as a vector.
    Length(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) params: Vec<String>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) result: Scalar,
    pub(crate) recursion: Recursion,
}

/// How a function comes back to itself. The last parameter counts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recursion {
    No,
    /// With its other arguments in their places.
    Straight,
    /// With its arguments moved on by one place.
    Rotated,
    /// By way of another function, which moves them back.
    Mutual,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    /// Scalar parameters and their values.
    pub(crate) scalars: Vec<(String, f64)>,
    pub(crate) vectors: Vec<(String, [f64; LENGTH])>,
    pub(crate) matrices: Vec<(String, [[f64; LENGTH]; LENGTH])>,
    pub(crate) functions: Vec<Function>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) loss: Scalar,
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Index::Fixed(at) => write!(f, "{at}"),
            Index::Counter(counter, shift) => write!(f, "({counter} + {shift}) % {LENGTH}"),
            Index::Clamped(counter) => write!(f, "min({counter}, {})", LENGTH - 1),
            Index::Halved(counter) => write!(f, "({counter} // 2) % {LENGTH}"),
        }
    }
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Literal(value) if *value < 0.0 => write!(f, "({value:?})"),
            Scalar::Literal(value) => write!(f, "{value:?}"),
            Scalar::Name(name) => f.write_str(name),
            Scalar::Element(name, at) => write!(f, "{name}[{at}]"),
            Scalar::Cell(name, row, column) => write!(f, "{name}[{row}, {column}]"),
            Scalar::Counter(name) => write!(f, "(0.25 * {name})"),
            Scalar::Negate(x) => write!(f, "(-{x})"),
            Scalar::Binary(op, x, y) => write!(f, "({x} {op} {y})"),
            Scalar::Call(name, args) => write!(f, "{name}({})", list(args)),
            Scalar::Power(x, n) if *n < 0 => write!(f, "({x})^({n})"),
            Scalar::Power(x, n) => write!(f, "({x})^{n}"),
            Scalar::Fold(name, args) => write!(f, "{name}({})", list(args)),
            Scalar::OfMatrix(name, a) => write!(f, "{name}({a})"),
            Scalar::Choice(c, x, y) => write!(f, "(if {c} then {x} else {y})"),
            Scalar::StopGradient(x) => write!(f, "stop_gradient({x})"),
        }
    }
}

impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Vector::Name(name) => f.write_str(name),
            Vector::List(items) => write!(f, "[{}]", list(items)),
            Vector::Fill(x) => write!(f, "fill({x}, {LENGTH})"),
            Vector::Call(name, args) => write!(f, "{name}({})", list(args)),
            Vector::Binary(op, x, y) => write!(f, "({x} {op} {y})"),
            Vector::Scaled(s, x) => write!(f, "({s} * {x})"),
            Vector::MatVec(a, x) => write!(f, "({a} @ {x})"),
            Vector::Row(a, at) => write!(f, "{a}[{at}, ..]"),
            Vector::Column(a, at) => write!(f, "{a}[.., {at}]"),
            Vector::Gather(x, at) => write!(f, "{x}[[{}]]", list(at)),
            Vector::Rotated(x) => write!(f, "concat({x}[{}..{LENGTH}], {x}[0..{}])", LENGTH - 1, LENGTH - 1),
            Vector::Choice(c, x, y) => write!(f, "(if {c} then {x} else {y})"),
            Vector::Solve(name, a, x) => write!(f, "{name}({}, {x})", WellBehaved(a)),
            Vector::Between(x, y) => write!(f, "linspace({x}, {y}, {LENGTH})"),
            Vector::SumAxis(a, axis) => write!(f, "sum({a}, {axis})"),
        }
    }
}

/// A matrix with only a diagonal.
fn diagonal(entry: impl Fn(usize) -> f64) -> [[f64; LENGTH]; LENGTH] {
    let mut rows = [[0.0; LENGTH]; LENGTH];
    rows.iter_mut().enumerate().for_each(|(at, row)| row[at] = entry(at));
    rows
}

/// A symmetric positive definite matrix made from another one.
struct WellBehaved<'a>(&'a Matrix);

impl fmt::Display for WellBehaved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let a = self.0;
        write!(f, "({:?} + tanh({a}) @ transpose(tanh({a})))", diagonal(|_| 2.0))
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Matrix::Name(name) => f.write_str(name),
            Matrix::Outer(x, y) => write!(f, "outer({x}, {y})"),
            Matrix::Product(a, b) => write!(f, "({a} @ {b})"),
            Matrix::Transposed(a) => write!(f, "transpose({a})"),
            Matrix::Call(name, a) => write!(f, "{name}({a})"),
            Matrix::Binary(op, a, b) => write!(f, "({a} {op} {b})"),
            Matrix::Reshaped(x) => {
                let rows = vec![x.to_string(); LENGTH].join(", ");
                write!(f, "reshape(concat({rows}), {LENGTH}, {LENGTH})")
            }
            Matrix::Cholesky(a) => write!(f, "cholesky({})", WellBehaved(a)),
            Matrix::Inverse(a) => write!(f, "inv({})", WellBehaved(a)),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Compare(op, x, y) => write!(f, "{x} {op} {y}"),
            Condition::Divides(counter, by) => write!(f, "{counter} % {by} == 0"),
            Condition::Both(a, b) => write!(f, "({a}) and ({b})"),
            Condition::Either(a, b) => write!(f, "({a}) or ({b})"),
            Condition::Not(a) => write!(f, "not ({a})"),
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            View::From(base, from) => write!(f, "{base}[{from}..{LENGTH}]"),
            View::EverySecond(base) => write!(f, "{base}[0..{LENGTH} by 2]"),
            View::Row(base, at) => write!(f, "{base}[{at}, ..]"),
            View::Column(base, at) => write!(f, "{base}[.., {at}]"),
            View::OfTranspose(base, at) => write!(f, "{base}'[{at}, ..]"),
            View::Of(base, from, to) => write!(f, "{base}[{from}..{to}]"),
            View::Two(base, at) => write!(f, "{base}[[{}]]", list(at)),
            View::Transposed(base) => write!(f, "{base}'"),
        }
    }
}

impl Stmt {
    fn print(&self, out: &mut String, depth: usize) {
        let indent = "    ".repeat(depth);
        let _ = match self {
            Stmt::VarScalar(name, value) => writeln!(out, "{indent}var {name} = {value}"),
            Stmt::VarVector(name, value) => writeln!(out, "{indent}var {name} = {value}"),
            Stmt::VarMatrix(name, value) => writeln!(out, "{indent}var {name} = {value}"),
            Stmt::Factors(name, parts, a) => {
                let symmetric =
                    if *name == "eigh" { format!(" + transpose(tanh({a}))") } else { String::new() };
                let apart = format!("{:?}", diagonal(|at| [2.0, 5.0, 9.0, 14.0, 20.0][at]));
                writeln!(
                    out,
                    "{indent}let {} = {name}({apart} + 0.2 * (tanh({a}){symmetric}))",
                    parts.join(", ")
                )
            }
            Stmt::VarList(name, value) => writeln!(out, "{indent}var {name} = [{value}]"),
            Stmt::Append(name, value) => writeln!(out, "{indent}{name} = concat({name}, [{value}])"),
            Stmt::DropFirst(name) => {
                writeln!(out, "{indent}if len({name}) > 1 {{ {name} = {name}[1..len({name})] }}")
            }
            Stmt::Assign(name, op, value) => writeln!(out, "{indent}{name} {op} {value}"),
            Stmt::AssignVector(name, op, value) => writeln!(out, "{indent}{name} {op} {value}"),
            Stmt::AssignMatrix(name, value) => writeln!(out, "{indent}{name} = {value}"),
            Stmt::SetElement(name, at, op, value) => writeln!(out, "{indent}{name}[{at}] {op} {value}"),
            Stmt::SetCell(name, row, column, op, value) => {
                writeln!(out, "{indent}{name}[{row}, {column}] {op} {value}")
            }
            Stmt::SetRow(name, at, value) => writeln!(out, "{indent}{name}[{at}, ..] = {value}"),
            Stmt::SetSlice(name, lo, hi, value) => writeln!(out, "{indent}{name}[{lo}..{hi}] = {value}"),
            Stmt::SetList(name, places, op, value) => {
                writeln!(out, "{indent}{name}[[{}]] {op} {value}", list(places))
            }
            Stmt::Alias(name, view) => writeln!(out, "{indent}alias {name} = {view}"),
            Stmt::SetAlias(name, at, op, value) => writeln!(out, "{indent}{name}[{at}] {op} {value}"),
            Stmt::FillAlias(name, value) => writeln!(out, "{indent}{name}[..] = {value}"),
            Stmt::Copy(to, from) => writeln!(out, "{indent}{to} = {from}"),
            Stmt::Swap(a, b) => writeln!(out, "{indent}{a}, {b} = {b}, {a}"),
            Stmt::For { counter, from, by, rounds, downwards, body } => {
                let end = match rounds {
                    Rounds::Fixed(n) => (from + n).to_string(),
                    Rounds::Counter(name) => name.clone(),
                    Rounds::Length(name) => format!("len({name})"),
                };
                let by = if *by > 1 { format!(" by {by}") } else { String::new() };
                let reversed = if *downwards { " reversed" } else { "" };
                let _ = writeln!(out, "{indent}for {counter} in {from}..{end}{by}{reversed} {{");
                print_all(body, out, depth + 1);
                writeln!(out, "{indent}}}")
            }
            Stmt::While { name, count, bound, most, body } => {
                let _ = writeln!(out, "{indent}var {count} = 0");
                let _ = writeln!(out, "{indent}while {name} < {bound:?} and {count} < {most} {{");
                let _ = writeln!(out, "{indent}    {count} += 1");
                print_all(body, out, depth + 1);
                writeln!(out, "{indent}}}")
            }
            Stmt::If(condition, yes, no) => {
                let _ = writeln!(out, "{indent}if {condition} {{");
                print_all(yes, out, depth + 1);
                if !no.is_empty() {
                    let _ = writeln!(out, "{indent}}} else {{");
                    print_all(no, out, depth + 1);
                }
                writeln!(out, "{indent}}}")
            }
            Stmt::Break => writeln!(out, "{indent}break"),
            Stmt::Continue => writeln!(out, "{indent}continue"),
            Stmt::Return(value) => writeln!(out, "{indent}return {value}"),
        };
    }
}

fn print_all(stmts: &[Stmt], out: &mut String, depth: usize) {
    stmts.iter().for_each(|stmt| stmt.print(out, depth));
}

impl Source {
    /// The program as text.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for (name, value) in &self.scalars {
            let _ = writeln!(out, "param {name} = {value:?}");
        }
        for (name, value) in &self.vectors {
            let _ = writeln!(out, "param {name}: [{LENGTH}] = {value:?}");
        }
        for (name, value) in &self.matrices {
            let _ = writeln!(out, "param {name}: [{LENGTH}, {LENGTH}] = {value:?}");
        }
        print_all(&self.body, &mut out, 0);
        let _ = writeln!(out, "loss y = {}", self.loss);
        for function in &self.functions {
            let mut params = function.params.clone();
            if function.recursion != Recursion::No {
                params.push("depth: int".to_string());
            }
            let _ = writeln!(out, "fn {}({}) {{", function.name, params.join(", "));
            if function.recursion != Recursion::No {
                let _ = writeln!(out, "    if depth <= 0 {{ return {} }}", function.params[0]);
            }
            print_all(&function.body, &mut out, 1);
            let mut args = vec![function.result.to_string()];
            args.extend(function.params[1..].iter().cloned());
            let partner = format!("{}_back", function.name);
            let (callee, moved) = match function.recursion {
                Recursion::No => {
                    let _ = writeln!(out, "    return {}", function.result);
                    let _ = writeln!(out, "}}");
                    continue;
                }
                Recursion::Straight => (&function.name, false),
                Recursion::Rotated => (&function.name, true),
                Recursion::Mutual => (&partner, true),
            };
            args.rotate_left(usize::from(moved));
            let _ = writeln!(out, "    return 0.7 * {callee}({}, depth - 1)", args.join(", "));
            if function.recursion == Recursion::Mutual {
                let mut back = function.params.clone();
                back.rotate_right(1);
                let _ = writeln!(out, "}}\nfn {partner}({}) {{", params.join(", "));
                let last = &function.params[function.params.len() - 1];
                let _ = writeln!(
                    out,
                    "    return {}({}, depth) + 0.1 * sin({last})",
                    function.name,
                    back.join(", ")
                );
            }
            let _ = writeln!(out, "}}");
        }
        out
    }
}

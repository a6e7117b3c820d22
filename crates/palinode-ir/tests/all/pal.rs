//! The `.pal` language: programs that run, compared with what they must give.

mod errors;
pub(crate) mod examples;
mod fuzz;
mod hessians;
mod random;

use palinode_ir::interp::{Datum, RunErrorKind, Tensor, run};
use palinode_ir::pal::{self, Model};
use palinode_ir::{Elem, text, verify};

pub(crate) fn compile(source: &str) -> Model {
    pal::compile(source).unwrap_or_else(|problems| {
        let text: String = problems.iter().map(|problem| problem.plain(source)).collect();
        panic!("{text}")
    })
}

/// Numbers of an argument, in its unit, as the entry takes them.
fn datum(argument: &pal::Argument, shape: Vec<usize>, data: &[f64]) -> Datum<f64> {
    let scale = |x: &f64| argument.unit.as_ref().map_or(*x, |unit| unit.to_si(*x));
    match argument.ty.elem {
        Elem::Int => Datum::Int(Tensor { shape, data: data.iter().map(|x| *x as i64).collect() }),
        _ => Datum::Real(Tensor { shape, data: data.iter().map(scale).collect() }),
    }
}

/// The defaults, as the entry takes them.
pub(crate) fn defaults(model: &Model) -> Vec<Datum<f64>> {
    let one = |argument: &pal::Argument| {
        let default = argument.default.as_ref().expect("a default");
        datum(argument, default.shape().to_vec(), default.data())
    };
    model.arguments.iter().map(one).collect()
}

/// Every element of every output, as `f64`.
pub(crate) fn flat(outputs: &[Datum<f64>]) -> Vec<f64> {
    let one = |output: &Datum<f64>| -> Vec<f64> {
        match output {
            Datum::Real(tensor) => tensor.data.clone(),
            Datum::Int(tensor) => tensor.data.iter().map(|x| *x as f64).collect(),
            Datum::Bool(tensor) => tensor.data.iter().map(|x| f64::from(u8::from(*x))).collect(),
        }
    };
    outputs.iter().flat_map(one).collect()
}

fn outputs(source: &str) -> Vec<f64> {
    let model = compile(source);
    verify(&model.program).unwrap();
    let again = text::parse(&text::print(&model.program)).expect("the printed program parses");
    assert_eq!(text::print(&again), text::print(&model.program));
    let given = run(&model.program, &defaults(&model)).unwrap_or_else(|error| panic!("{error}\n{source}"));
    for (output, datum) in model.outputs.iter().zip(&given) {
        assert_eq!(output.ty, datum.ty(), "the type of `{}`", output.name);
    }
    flat(&given)
}

#[track_caller]
fn gives(source: &str, expected: &[f64]) {
    let found = outputs(source);
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
    let fits = found.len() == expected.len() && found.iter().zip(expected).all(close);
    assert!(fits, "gives {found:?}, not {expected:?}\n{source}");
}

#[test]
fn assignments_are_a_sequence_of_versions() {
    gives("var x = 1\n x = x + 2\n x = x * 3\n output x", &[9.0]);
    gives("param x = 3\n var y = x * x\n y = y + 1\n loss z = y", &[10.0]);
    gives("var p = 1\n var q = 2.5\n p, q = q, p\n output p\n output q", &[2.5, 1.0]);
    gives("var a = 1; var b = 2; let t = a; a = b; b = t; output a; output b", &[2.0, 1.0]);
    gives("var x = 10\n x += 1; x -= 2; x *= 3; x /= 2\n output x", &[13.5]);
}

#[test]
fn integers_stay_integers_until_reals_come() {
    gives("var s = 0\n for i in 0..5 { s += i }\n output s\n output h = s / 4", &[10.0, 2.5]);
    gives("var s = 0\n for i in 0..2 { s = s + 0.5 }\n output s", &[1.0]);
    gives(
        "var a = 0\n var b = 0\n var c = 0\n c = b\n b = a\n a = 0.5\n output a\n output b\n output c",
        &[0.5, 0.0, 0.0],
    );
    gives(
        "output a = 7 // 2\n output b = -7 // 2\n output c = -7 % 3\n output d = -7.5 % 3",
        &[3.0, -4.0, 2.0, 1.5],
    );
    gives(
        "output a = 2^10\n output b = 2^-1\n output c = -2^2\n output d = 2^0.5",
        &[1024.0, 0.5, -4.0, 2f64.sqrt()],
    );
    gives(
        "output a = floor(2.7)\n output b = ceil(2.2)\n output c = round(2.5)\n output d = int(-2.7)",
        &[2., 3., 3., -2.],
    );
    gives(
        "let a = [5, 6, 7]\n let i = floor(1.9)\n output e = a[i]\n output f = abs(-3)\n output g = max(1, 5, 2)",
        &[6., 3., 5.],
    );
    gives("const n = 3\n param x = 2\n output y = x^n\n output z = 1 / n", &[8.0, 1.0 / 3.0]);
}

#[test]
fn units_scale_literals_and_declarations() {
    gives("const dt = 1 [ms]\n output dt", &[0.001]);
    gives(
        "output a = 72 [km/h]\n output b = 2 [bar]\n output c = 5 [percent]\n output d = 7 [ms]",
        &[20.0, 2e5, 0.05, 0.007],
    );
    gives(
        "output a = 180 [deg]\n output b = 3 [kg*m/s^2]\n output c = 1 [1/min]",
        &[core::f64::consts::PI, 3.0, 1.0 / 60.0],
    );
    gives("param v: km/h = 36\n output w = v", &[10.0]);
    gives("param t = 5 [ms]\n output u = t", &[0.005]);
    gives("const g: m/s^2 = 9.81\n output g", &[9.81]);
    let model = compile("param v: km/h = 36\n param t: s = 5 [ms]\n loss l = v * t");
    let unit = model.arguments[0].unit.as_ref().unwrap();
    assert_eq!(&*unit.text, "km/h");
    assert!((unit.scale() - 1.0 / 3.6).abs() < 1e-15);
    assert_eq!(model.arguments[0].default, Some(pal::Default::Scalar(36.0)));
    assert_eq!(model.arguments[1].default, Some(pal::Default::Scalar(0.005)));
}

#[test]
fn branches() {
    let source = "param x = X\n var y = 0\n if x > 2 { y = x } else if x > 1 { y = 10 * x } else { y = 100 }\n output y";
    gives(&source.replace('X', "3"), &[3.0]);
    gives(&source.replace('X', "1.5"), &[15.0]);
    gives(&source.replace('X', "0"), &[100.0]);
    gives(
        "param x = 3\n output y = if x > 2 then 1 else 0.5\n output z = if not (x > 2) then x else -x",
        &[1.0, -3.0],
    );
    gives(
        "param x = 3\n var y = 1\n if x > 0 { if x > 5 { y = 2 } else { let t = x\n y = t * y } }\n output y",
        &[3.0],
    );
    gives(
        "output a = true and false\n output b = true or false\n output c = true == false\n output d = 1 != 2",
        &[0., 1., 0., 1.],
    );
}

#[test]
fn loops() {
    gives("var s = 0\n for i in 0..10 by 3 { s = 10 * s + i }\n output s", &[369.0]);
    gives("var s = 0\n for i in 1..4 { s = 10 * s + i }\n output s", &[123.0]);
    gives("var s = 0\n for i in 1..4 reversed { s = 10 * s + i }\n output s", &[321.0]);
    gives("var s = 0\n for i in (0..5) by 2 reversed { s = 10 * s + i }\n output s", &[420.0]);
    gives("var s = 0\n for i in 5..0 by -2 { s = 10 * s + i }\n output s", &[531.0]);
    gives("var s = 7\n for i in 5..2 { s = 0 }\n output s", &[7.0]);
    gives("var s = 0\n for x in [1, 2.5, 3] { s = 10 * s + x }\n output s", &[128.0]);
    gives("var s = 0\n for r in [[1, 2], [3, 4]] { s = 10 * s + sum(r) }\n output s", &[37.0]);
    gives(
        "var s = 0\n for i in 0..3 { for j in 0..i { s += 10 * i + j } }\n output s",
        &[10.0 + 20.0 + 21.0],
    );
    gives("var n = 100\n var k = 0\n while n > 1 { n = n // 2\n k += 1 }\n output k", &[6.0]);
    gives(
        "var n = 27\n var k = 0\n while n > 1 { if n % 2 == 0 { n = n // 2 } else { n = 3 * n + 1 }\n k += 1 }\n output k",
        &[111.0],
    );
    // The inner loop's number of rounds is the variable that it changes.
    gives("var s = 3\n for i in 0..3 { for j in 0..s { s += 1 } }\n output s", &[24.0]);
    // Parallel moves: a cycle of three needs a spare register; two cycles share it, with copies of what
    // moves.
    gives("var a, b = 0, 1\n for i in 0..10 { a, b = b, a + b }\n output a\n output b", &[55.0, 89.0]);
    gives(
        "var a, b, c = 0, 1, 2\n for i in 0..10 { a, b, c = b, c, a }\n output a\n output b\n output c",
        &[1., 2., 0.],
    );
    gives(
        "var a, b, c, d, e, f = 0, 1, 2, 3, 0, 0\n for i in 0..10 { a, b, c, d, e, f = b, a, d, c, b, d }\n output r = [a, b, c, d, e, f]",
        &[0., 1., 2., 3., 0., 2.],
    );
    gives(
        "var x = 1\n for i in 0..3 { let y = x * 2\n x = y }\n for i in 0..2 { let y = x + 1\n x = y }\n output x",
        &[10.0],
    );
}

#[test]
fn early_exits() {
    gives("var s = 0\n for i in 0..10 { if i == 3 { break }\n s += i }\n output s", &[3.0]);
    gives("var s = 0\n for i in 0..10 reversed { if i == 7 { break }\n s += i }\n output s", &[17.0]);
    gives("var s = 0\n for i in 0..6 { if i % 2 == 0 { continue }\n s += i }\n output s", &[9.0]);
    gives(
        "var s = 0\n var i = 0\n while true { i += 1\n if i > 100 { break }\n if i % 3 != 0 { continue }\n s += i }\n output s",
        &[1683.0],
    );
    // Two arms go on: flags.
    let flags = "var s = 0
        for i in 0..8 {
            if i < 3 { if i == 1 { continue } s += 100 } else { if i == 6 { break } s += 10 }
            s += 1
        }
        output s";
    gives(flags, &[2.0 * 101.0 + 3.0 * 11.0]);
    // The inner loop is left, the outer goes on.
    gives("var s = 0\n for i in 0..3 { for j in 0..5 { if j > i { break }\n s += 1 } }\n output s", &[6.0]);
    gives("let a = [3, 1, 0, 5]\n var i = 0\n while i < 4 and a[i] != 0 { i += 1 }\n output i", &[2.0]);
    // The right side of `and` is not evaluated beyond the end.
    gives("let a = [3, 1]\n var i = 0\n while i < 2 and a[i] != 0 { i += 1 }\n output i", &[2.0]);
}

#[test]
fn functions() {
    gives(
        "fn sq(x) { return x * x }\n output a = sq(3)\n output b = sq(1.5)\n output c = sum(sq([1, 2]))",
        &[9., 2.25, 5.],
    );
    gives("output f = fact(5)\n fn fact(n) { if n <= 1 { return 1 }\n return n * fact(n - 1) }", &[120.0]);
    gives(
        "fn fib(n: int) -> int { if n < 2 { return n } else { return fib(n - 1) + fib(n - 2) } }\n output f = fib(10)",
        &[55.0],
    );
    gives(
        "fn both(x, y) { return x + y, x * y }\n let s, p = both(2, 3.5)\n output s\n output p",
        &[5.5, 7.0],
    );
    gives(
        "fn find(a, t) { for i in 0..len(a) { if a[i] == t { return i } }\n return -1 }\n let a = [4, 5, 6]\n output i = find(a, 6)\n output j = find(a, 7)",
        &[2.0, -1.0],
    );
    gives(
        "fn sign3(x) { if x > 0 { return 1 } else if x < 0 { return -1 }\n return 0 }\n output a = sign3(2)\n output b = sign3(-2)\n output c = sign3(0)",
        &[1., -1., 0.],
    );
    gives(
        "param k = 3\n const c = 2\n fn f(x) { return k * x + c }\n fn g(x) { return f(x) + f(1) }\n output y = g(2)",
        &[13.0],
    );
    gives("param a: [n] = [1, 2, 3]\n fn mean_of() { return sum(a) / n }\n output m = mean_of()", &[2.0]);
    gives(
        "fn even(n) { if n == 0 { return true }\n return odd(n - 1) }\n fn odd(n) { if n == 0 { return false }\n return even(n - 1) }\n output e = even(10)\n output o = even(7)",
        &[1., 0.],
    );
    gives(
        "fn half(x, n) { if n == 0 { return x }\n return half(x / 2, n - 1) }\n output h = half(8, 3)",
        &[1.0],
    );
    gives("fn len2(v: [n]) { return n * n }\n output y = len2([1, 2, 3])", &[9.0]);
    // A return inside two loops, with an array as the result.
    let nested = "fn first(m, t) {
            for i in 0..len(m) {
                for j in 0..len(m, 1) {
                    if m[i, j] > t { return [i, j] }
                }
            }
            return [-1, -1]
        }
        let m = [[1, 2], [3, 4]]
        output a = first(m, 2.5)
        output b = first(m, 9)";
    gives(nested, &[1., 0., -1., -1.]);
    // Returns in the middle, several arms going on.
    let middle = "fn f(x) {
            var y = x
            if x > 0 { if x > 10 { return 1000 }
                y += 1 } else { if x < -10 { return -1000 }
                y -= 1 }
            y *= 2
            return y
        }
        output a = f(20)\n output b = f(3)\n output c = f(-20)\n output d = f(-3)";
    gives(middle, &[1000., 8., -1000., -8.]);
    gives(
        "fn fill2(n) { var a = zeros(n)\n for i in 0..n { a[i] = i * i }\n return a }\n output a = fill2(4)",
        &[0., 1., 4., 9.],
    );
}

#[test]
fn arrays() {
    gives("var a = zeros(3)\n a[1] = 5\n a[2] += 2\n a[0] -= 1\n a[2] *= 4\n output a", &[-1., 5., 8.]);
    gives("var a = [0, 0, 0]\n a[0] = 1\n output a", &[1., 0., 0.]);
    gives("var a = [0, 0]\n a[0] = 0.5\n output a", &[0.5, 0.]);
    gives(
        "let m = [[1, 2, 3], [4, 5, 6]]\n output r = m[1, ..]\n output c = m[.., 2]\n output p = m[0, 1..3]\n output e = m[1, 0]",
        &[4., 5., 6., 3., 6., 2., 3., 4.],
    );
    gives("var m = zeros(2, 3)\n m[1, ..] = [7, 8, 9]\n m[.., 0] = 1\n output m", &[1., 0., 0., 1., 8., 9.]);
    gives(
        "let a = range(10)\n output b = a[1..8 by 3]\n output c = a[7..]\n output d = a[..2]\n output e = a[5..5]",
        &[1., 4., 7., 7., 8., 9., 0., 1.],
    );
    gives("let a = [10, 20, 30]\n let i = [2, 0, 0]\n output b = a[i]", &[30., 10., 10.]);
    gives("var a = zeros(3)\n let i = [2, 0, 2]\n a[i] += 1\n output a", &[1., 0., 2.]);
    gives(
        "let a = [[1, 2], [3, 4]]\n let x = [1, 1]\n output y = a @ x\n output z = a' @ x\n output t = a'\n output d = a @ a",
        &[3., 7., 4., 6., 1., 3., 2., 4., 7., 10., 15., 22.],
    );
    gives("output a = [1, 2] * 2 + [0.5, 1]", &[2.5, 5.0]);
    gives(
        "let a = [3, 1, 2.5]\n output s = sum(a)\n output m = mean(a)\n output h = max(a)\n output l = min(a)\n output p = prod(a)\n output i = argmax(a)\n output j = argmin(a)",
        &[6.5, 6.5 / 3., 3., 1., 7.5, 0., 1.],
    );
    gives(
        "let m = [[1, 2], [3, 4]]\n output a = sum(m, 0)\n output b = sum(m, 1)\n output c = max_axis(m, 0)\n output d = mean(m, 1)",
        &[4., 6., 3., 7., 3., 4., 1.5, 3.5],
    );
    gives(
        "output a = sum([1, 2, 3])\n output b = max([1, 5, 2])\n output c = cumsum([1, 2, 3])\n output d = reverse([1, 2, 3])",
        &[6., 5., 1., 3., 6., 3., 2., 1.],
    );
    gives(
        "output a = concat([1, 2], [3])\n output b = hcat([[1], [2]], [[3], [4]])\n output c = append([1, 2], 3, 4)",
        &[1., 2., 3., 1., 3., 2., 4., 1., 2., 3., 4.],
    );
    gives(
        "let v = [1, 2]\n output a = broadcast(v, 2, 2)\n output b = repeat_columns(v, 2)\n output c = fill(7, 2)\n output d = ones(1, 2)",
        &[1., 2., 1., 2., 1., 1., 2., 2., 7., 7., 1., 1.],
    );
    gives(
        "output a = eye(2)\n output b = diag([1, 2])\n output c = diag([[1, 2], [3, 4]])\n output t = trace([[1, 2], [3, 4]])",
        &[1., 0., 0., 1., 1., 0., 0., 2., 1., 4., 5.],
    );
    gives(
        "output a = linspace(0, 1, 5)\n output b = reshape(range(4), 2, 2)\n output c = len([[1, 2, 3]], 1)",
        &[0., 0.25, 0.5, 0.75, 1., 0., 1., 2., 3., 3.],
    );
    gives(
        "let a = [1, -2, 3]\n output p = select(a > 0, a, 0)\n output n = count(a > 0)\n output y = any(a > 2)\n output z = all(a > 2)",
        &[1., 0., 3., 2., 1., 0.],
    );
    gives(
        "let n, m = shape([[1, 2, 3], [4, 5, 6]])\n output n\n output m\n output k = norm([3, 4])\n output d = dot([1, 2], [3, 4])",
        &[2., 3., 5., 11.],
    );
    gives(
        "let v = [1, 2]\n output s = [v, 2 * v]\n output o = outer(v, v)",
        &[1., 2., 2., 4., 1., 2., 2., 4.],
    );
    gives("output l = logsumexp([1000, 1000]) - 1000\n output s = softmax([0, 0])", &[2f64.ln(), 0.5, 0.5]);
}

#[test]
fn linear_algebra() {
    gives(
        "let a = [[2, 0], [0, 4]]\n output x = solve(a, [2, 4])\n output i = inv(a)\n output d = det(a)\n output l = logdet(a)",
        &[1., 1., 0.5, 0., 0., 0.25, 8., 8f64.ln()],
    );
    gives(
        "let l = cholesky([[4, 2], [2, 5]])\n output l\n output x = solve_lower(l, [2, 3])",
        &[2., 0., 1., 2., 1., 1.],
    );
    gives("let w, v = eigh([[1, 0], [0, 3]])\n output w", &[1., 3.]);
    gives("let q, r = qr([[3, 0], [4, 5]])\n output e = q @ r", &[3., 0., 4., 5.]);
    gives(
        "let u, s, v = svd([[0, 2], [1, 0]])\n output s\n output e = u @ diag(s) @ v'",
        &[2., 1., 0., 2., 1., 0.],
    );
}

#[test]
fn views_read_and_write_through() {
    gives(
        "param x: [6] = [1, 1, 1, 1, 1, 1]\n var a = x\n alias tail = a[3..6]\n tail[0] *= 2\n a[3] += tail[0]\n loss s = sum(a * a)",
        &[21.0],
    );
    // Two names for one buffer.
    gives(
        "var buffer = zeros(2)\n alias a = buffer\n alias b = buffer\n a[0] = 1\n b[1] = 2\n output c = b[0]\n output buffer",
        &[1., 1., 2.],
    );
    // A view of a view, a strided one, a row, and a transposed one.
    gives(
        "var a = range(10)\n alias b = a[2..8]\n alias c = b[1..5 by 2]\n c[1] = 100\n output c\n output a",
        &[3., 100., 0., 1., 2., 3., 4., 100., 6., 7., 8., 9.],
    );
    gives(
        "var m = zeros(2, 3)\n alias r = m[1, ..]\n r[2] = 5\n r += 1\n output m",
        &[0., 0., 0., 1., 1., 6.],
    );
    gives(
        "var m = zeros(2, 3)\n alias t = m'\n t[2, 0] = 5\n t[.., 1] = [7, 8, 9]\n output m\n output t",
        &[0., 0., 5., 7., 8., 9., 0., 7., 0., 8., 5., 9.],
    );
    // Overlapping views.
    gives(
        "var a = [1, 2, 3, 4]\n alias l = a[0..3]\n alias r = a[1..4]\n r = l\n output a\n output l",
        &[1., 1., 2., 3., 1., 1., 2.],
    );
    // Reading before writing keeps the old value.
    gives(
        "var a = [1, 2]\n alias b = a[0..1]\n let old = b[0]\n a[0] = 9\n output old\n output b",
        &[1., 9.],
    );
    // Through a list of indices.
    gives(
        "var a = zeros(4)\n let i = [3, 1]\n alias b = a[i]\n b[0] = 7\n b[1] += 2\n output a\n output b",
        &[0., 2., 0., 7., 7., 2.],
    );
    // A view that is written in a loop carries its base.
    gives(
        "var a = zeros(5)\n alias b = a[1..4]\n for i in 0..len(b) { b[i] = i + 1 }\n output a",
        &[0., 1., 2., 3., 0.],
    );
    gives(
        "var a = zeros(4)\n for i in 0..2 { alias p = a[2 * i..2 * i + 2]\n p[0] = i + 1\n p[1] = 10 * p[0] }\n output a",
        &[1., 10., 2., 20.],
    );
    gives("var a = [1, 2, 3]\n a[..] = 0\n a[1..] += 2\n output a", &[0., 2., 2.]);
}

#[test]
fn what_lies_outside_a_view_is_refused() {
    for source in [
        "input i: int = 3\n let a = range(10)\n alias b = a[2..5]\n output x = b[i]",
        "input i: int = -1\n let a = range(10)\n alias b = a[2..5]\n output x = b[i]",
        "input i: int = 4\n let a = range(10)\n alias b = a[2..5]\n output x = b[1..i]",
        "input i: int = 3\n let a = range(10)\n alias b = a[2..5]\n let j = [i]\n output x = b[j]",
        "input i: int = 3\n var a = zeros(10)\n alias b = a[2..5]\n b[i] = 1\n output a",
    ] {
        let model = compile(source);
        let error = run(&model.program, &defaults(&model)).unwrap_err();
        assert!(
            matches!(
                error.kind,
                RunErrorKind::IndexOutOfRange { .. } | RunErrorKind::RangeOutOfBounds { .. }
            ),
            "{error:?}\n{source}"
        );
        assert!(!error.span.is_none(), "{source}");
    }
}

#[test]
fn the_seeds_kepler_and_drag() {
    let m: f64 = 1.2;
    let mut e = m;
    for _ in 0..50 {
        e -= (e - 0.3 * e.sin() - m) / (1.0 - 0.3 * e.cos());
    }
    gives(
        "param M = 1.2\nparam e = 0.3\nvar E = M\nwhile abs(E - e * sin(E) - M) > 1e-12 {\n    E -= (E - e * sin(E) - M) / (1 - e * cos(E))\n}\noutput E",
        &[e],
    );
}

#[test]
fn lines_go_on_where_they_must() {
    gives(
        "let a = 1 +\n  2\nlet b = a\n  * 3\n  - 1\nlet c = (b\n + 1)\noutput c\noutput d = if c > 0\n then 1\n else 2",
        &[9.0, 1.0],
    );
    gives("let v = [1,\n 2,\n 3,\n]\nif sum(v) > 3 { } \n else { }\noutput v", &[1., 2., 3.]);
}

#[test]
fn arguments_say_what_they_are() {
    let model = compile(
        "param w: [n, 3] = zeros(2, 3)\ninput x: [n] m/s\ninput k: int = 2\ninput idx: int [_]\nloss l = sum(w) + sum(x) + k + n + sum(idx)",
    );
    let names: Vec<String> =
        model.arguments.iter().map(|argument| format!("{} {}", argument.name, argument.ty)).collect();
    assert_eq!(names, ["w f64[_,_]", "x f64[_]", "k int", "idx int[_]"]);
    use pal::LengthSpec::{Any, Known, Named};
    assert_eq!(model.arguments[0].lengths, [Named("n".into()), Known(3)]);
    assert_eq!(model.arguments[1].lengths, [Named("n".into())]);
    assert_eq!(model.arguments[3].lengths, [Any]);
    assert_eq!(model.arguments[0].default.as_ref().unwrap().shape(), [2, 3]);
    assert!(model.outputs[0].is_loss);
    assert!(model.warnings.is_empty());
}

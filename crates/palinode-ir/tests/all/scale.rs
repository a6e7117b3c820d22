//! Long sources: what they take grows with their length, and nothing runs out of stack.
//!
//! Work is counted in allocations, which are the same in every run: four times the source may take four times
//! as many, and a few for the growth of tables. What scans without allocating is found by the clock, with
//! wide bounds and several tries. `PALINODE_TERMS=100000` makes the flat chains that long.

use crate::counting::{ALL, measured};
use crate::pal::{compile as compiled, defaults as inputs};
use std::time::{Duration, Instant};

use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{Program, pal, passes, text, transform};

/// What `f` takes: allocations, bytes at most beyond what was there, time.
fn effort<T>(f: impl FnOnce() -> T) -> (T, usize, usize, Duration) {
    let start = Instant::now();
    let (result, taken) = measured(f);
    (result, taken[ALL].calls, taken[ALL].peak, start.elapsed())
}

/// Runs `f` on a stack of 2 MiB, which is what threads have.
fn on_a_small_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, f).expect("a thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn numbers(program: &Program, inputs: &[Datum<f64>]) -> Vec<f64> {
    let found = Code::new(program).run(inputs, &Limits::default()).expect("runs");
    found.iter().filter_map(Datum::as_vector).flatten().copied().collect()
}

/// A source of a size.
type Source = fn(usize) -> String;

/// Sources that grow with a number, and the number to start from.
fn sources() -> Vec<(&'static str, usize, Source)> {
    fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
        (0..count).map(line).collect()
    }
    vec![
        ("statements", 250, |n| {
            let body =
                lines(n, |at| if at % 2 == 0 { "y = y * 0.9 + sin(x)\n" } else { "z = z + x * y\n" }.into());
            format!("param x = 0.3\nvar y = x\nvar z = 1.0 * x\n{body}loss end = y + z\n")
        }),
        ("names", 250, |n| {
            let body = lines(n, |at| format!("let a{} = a{at} + sin(a{} * 0.5)\n", at + 1, at / 2));
            format!("param x = 0.3\nlet a0 = x\n{body}loss a{n}\n")
        }),
        ("terms", 250, |n| format!("param x = 0.3\nloss y = x{}\n", lines(n, |at| format!(" + {at}.5 * x")))),
        ("functions", 50, |n| {
            let functions =
                lines(n, |at| format!("fn f{at}(u) {{ let v = sin(u) * {at}.5\n return v + u }}\n"));
            let calls = lines(n, |at| format!("y = y * 0.5 + f{at}(y) / (1.0 + f{}(x))\n", at / 2));
            format!("param x = 0.3\nvar y = x\n{functions}{calls}loss y\n")
        }),
        ("loops", 50, |n| {
            let body = lines(n, |at| format!("for i in 0..30 {{ y = sin(y) + x * i }}\nlet b{at} = y\n"));
            format!("param x = 0.3\nvar y = x\n{body}loss y\n")
        }),
        ("branches", 50, |n| {
            let body = lines(n, |at| {
                format!("if y > 0.{at} {{ y = sin(y) - x }} else {{ y = y + x }}\nlet b{at} = y\n")
            });
            format!("param x = 0.3\nvar y = x\n{body}loss y\n")
        }),
        ("arrays", 100, |n| {
            let body = lines(n, |at| match at % 3 {
                0 => format!("a[{}] = sin(a[{}])\n", at % 8, (at + 3) % 8),
                1 => "a = 0.5 * a + x\n".to_string(),
                _ => format!("a[{}] += x[{}] * sum(a)\n", at % 7, at % 5),
            });
            format!("param x: [8] = [1, 2, 3, 4, 5, 6, 7, 8]\nvar a = 1.0 * x\n{body}loss end = sum(a * a)\n")
        }),
        ("a long body", 100, |n| {
            let body = lines(n, |at| format!("y = sin(y) * 0.9 + x * {at}.5\nz = z * y\n"));
            format!("param x = 0.3\nvar y = x\nvar z = x\nfor i in 0..10 {{\n{body}}}\nloss end = y + z\n")
        }),
        ("elements", 250, |n| {
            format!(
                "param x = 0.3\nlet a = [0.5{}]\nloss end = x * sum(a)\n",
                lines(n, |at| format!(", {at}.5 * x"))
            )
        }),
    ]
}

/// Everything that stands between a source and its gradient, and what is shown of it.
fn gradient(source: &str) -> Program {
    let model = compiled(source);
    pal::ssa(source).expect("is shown");
    pal::format(source).expect("is laid out");
    text::parse(&text::print(&model.program)).expect("reads back");
    let gradient = transform::value_and_grad(&model.program, &[0]).expect("is differentiable");
    let gradient = passes::simplify(&gradient);
    Code::new(&gradient);
    gradient
}

#[test]
fn the_work_grows_with_the_source() {
    for (name, size, source) in sources() {
        // The first one fills tables that stay.
        gradient(&source(size));
        let (_, one, ..) = effort(|| gradient(&source(size)));
        let (_, four, ..) = effort(|| gradient(&source(4 * size)));
        assert!(four < 5 * one, "{name}: {one} allocations for {size}, {four} for four times as many");
        let ratio = || {
            let time = |size: usize| effort(|| gradient(&source(size))).3;
            time(4 * size).as_secs_f64() / time(size).as_secs_f64()
        };
        // A quadratic part that matters brings it near 16; other processes may bring it anywhere, for once.
        let best = (0..5).map(|_| ratio()).find(|&ratio| ratio < 8.0);
        assert!(best.is_some(), "{name}: four times the source takes more than eight times as long");
    }
}

#[test]
fn the_memory_of_a_statement() {
    let (_, source) =
        sources().into_iter().map(|(name, _, source)| (name, source)).next().expect("statements");
    let count = 8000;
    let (_, _, peak, _) = effort(|| gradient(&source(count)));
    // A statement is three instructions, its gradient six: some 20 at a time with the copies that passes
    // make, of 140 bytes.
    assert!(peak / count < 6000, "{} bytes for each statement", peak / count);
}

#[test]
fn flat_chains_of_any_length() {
    // In debug builds every pass is verified: what recurses by terms is out of stack at a tenth of this.
    let count: usize = std::env::var("PALINODE_TERMS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let source = format!("param x = 0.5\nloss y = x{}\n", " + x * 0.5".repeat(count));
    on_a_small_stack(|| {
        let model = compiled(&source);
        assert_eq!(pal::format(&source).expect("is laid out"), source);
        assert_eq!(numbers(&model.program, &inputs(&model)), [0.5 + 0.25 * count as f64]);
        let gradient = passes::simplify(&transform::grad(&model.program, &[0]).expect("is differentiable"));
        assert_eq!(numbers(&gradient, &inputs(&model)), [1.0 + 0.5 * count as f64]);
        let printed = text::print(&model.program);
        assert_eq!(text::parse(&printed).expect("reads back").size(), model.program.size());
    });
    // Other operators, lists, arguments, conditions; the value of each by hand.
    let count = count / 5;
    let product = format!("param x = 0.5\nloss y = x{}", " * 1.0".repeat(count));
    let mixed = format!("param x = 0.5\nloss y = x{}", " + x - x".repeat(count));
    let quotient = format!("param x = 0.5\nloss y = 2 * x{}", " / 1.0".repeat(count));
    let condition =
        format!("param x = 0.5\nvar y = x\nif x > 0{} {{ y = 2 * x }}\nloss y", " and x < 1".repeat(count));
    let list = format!("param x = 0.5\nloss y = sum([x{}])", ", 0.0".repeat(count));
    let constant = format!("const c = 0.5{}\nparam x = c\nloss y = 1.0 * x", " + 0.0".repeat(count));
    let default = format!("param x = 0.5{}\nloss y = 1.0 * x", " + 0.0".repeat(count));
    let statements = [
        (product, 0.5),
        (mixed, 0.5),
        (quotient, 1.0),
        (condition, 1.0),
        (list, 0.5),
        (constant, 0.5),
        (default, 0.5),
    ];
    for (source, expected) in statements {
        on_a_small_stack(|| {
            let model = compiled(&source);
            let program = passes::simplify(
                &transform::value_and_grad(&model.program, &[0]).expect("is differentiable"),
            );
            let found = numbers(&program, &inputs(&model));
            assert_eq!(found[0], expected, "{}", &source[..60]);
            assert_eq!(found[1], if expected == 1.0 { 2.0 } else { 1.0 }, "{}", &source[..60]);
        });
    }
}

#[test]
fn many_parameters_of_a_function() {
    let count = 3000;
    let list = |name: &str| (0..count).map(|at| format!("{name}{at}")).collect::<Vec<_>>().join(", ");
    let arguments = (0..count).map(|at| format!("x * {at}")).collect::<Vec<_>>().join(", ");
    let sum = (0..count).map(|at| format!("u{at}")).collect::<Vec<_>>().join(" + ");
    let source = format!("param x = 0.5\nfn f({}) {{ return {sum} }}\nloss y = f({arguments})\n", list("u"));
    let model = on_a_small_stack(|| {
        let model = compiled(&source);
        let program = passes::simplify(&transform::grad(&model.program, &[0]).expect("is differentiable"));
        numbers(&program, &inputs(&model))
    });
    assert_eq!(model, [(count * (count - 1) / 2) as f64]);
}

/// Sources that nest `n` deep, each in its own way.
fn nests() -> Vec<(&'static str, Source)> {
    vec![
        ("brackets", |n| format!("param x = 0.5\nloss y = {}x{}", "(".repeat(n), ")".repeat(n))),
        ("sums in brackets", |n| {
            format!("param x = 0.5\nloss y = {}x{}", "(0.1 + ".repeat(n), ")".repeat(n))
        }),
        ("signs", |n| format!("param x = 0.5\nloss y = {}x", "- ".repeat(n))),
        ("nots", |n| {
            format!("param x = 0.5\nvar y = x\nif {} x > 0 {{ y = 2 * x }}\nloss y", "not ".repeat(n))
        }),
        ("powers", |n| format!("param x = 0.5\nloss y = x{}", "^1.0".repeat(n))),
        ("lists", |n| format!("param x = 0.5\nloss y = sum({}x{})", "[".repeat(n), "]".repeat(n))),
        ("calls", |n| format!("param x = 0.5\nloss y = {}x{}", "sin(".repeat(n), ")".repeat(n))),
        ("indices", |n| format!("param x: [1] = [0.5]\nloss y = sum(x{})", "[0..1]".repeat(n))),
        ("indices in indices", |n| {
            format!("param x: [1] = [0.5]\nlet i = [0]\nloss y = x[{}0{}]", "i[".repeat(n), "]".repeat(n))
        }),
        ("transposes", |n| format!("param x: [1, 1] = [[0.5]]\nloss y = sum(x{})", "'".repeat(n))),
        ("choices", |n| format!("param x = 0.5\nloss y = {}x", "if x > 1 then 0.0 else ".repeat(n))),
        ("branches", |n| {
            format!(
                "param x = 0.5\nvar y = x\n{}y = 2 * x{}\nloss y",
                "if x > 0 {\n".repeat(n),
                "\n}".repeat(n)
            )
        }),
        ("arms", |n| {
            format!(
                "param x = 0.5\nvar y = x\nif x > 1 {{ y = x }}{}\nloss y",
                " else if x > 2 { y = 3 * x }".repeat(n)
            )
        }),
        ("loops", |n| {
            let heads: String = (0..n).map(|at| format!("for i{at} in 0..1 {{\n")).collect();
            format!("param x = 0.5\nvar y = x\n{heads}y = sin(y){}\nloss y", "\n}".repeat(n))
        }),
        ("units", |n| format!("param x: {}m{} = 0.5\nloss y = 1.0 * x", "(".repeat(n), ")".repeat(n))),
        ("functions", |n| {
            let functions: String =
                (1..=n).map(|at| format!("fn f{at}(u) {{ return 0.9 * f{}(u) }}\n", at - 1)).collect();
            format!("param x = 0.5\nfn f0(u) {{ return u }}\n{functions}loss y = f{n}(x)")
        }),
    ]
}

/// What is too deep is refused, and what is not goes all the way to a second derivative, on a small stack.
#[test]
fn true_nesting_is_refused_in_time() {
    for (name, source) in nests() {
        on_a_small_stack(|| {
            let deep = source(20_000);
            let problems = pal::compile(&deep).expect_err(name);
            assert!(problems.iter().all(|problem| problem.code == "PAL0204"), "{name}: {:?}", problems[0]);
            let _ = pal::format(&deep);
            // The deepest that is accepted.
            let (mut least, mut most) = (1, 1000);
            while most - least > 1 {
                let middle = (least + most) / 2;
                if pal::compile(&source(middle)).is_ok() { least = middle } else { most = middle }
            }
            let deepest = source(least);
            pal::format(&deepest).expect(name);
            let _ = pal::ssa(&deepest);
            let model = compiled(&deepest);
            let values = numbers(&model.program, &inputs(&model));
            let simple = passes::simplify(&passes::inline(&model.program));
            assert_eq!(numbers(&simple, &inputs(&model)), values, "{name}");
            let gradient = transform::value_and_grad(&model.program, &[0]).expect(name);
            numbers(&passes::simplify(&gradient), &inputs(&model));
            let second = transform::hessian(&model.program, &[0]).expect(name);
            numbers(&passes::simplify(&second), &inputs(&model));
            let printed = text::print(&gradient);
            match text::parse(&printed) {
                Ok(again) => assert_eq!(text::print(&again), printed, "{name}"),
                // The text form has a limit of its own.
                Err(errors) => assert!(format!("{errors:?}").contains("deep"), "{name}: {errors:?}"),
            }
        });
    }
}

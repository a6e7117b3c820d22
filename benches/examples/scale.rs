//! What it costs to compile large sources: seconds per stage, and the process' peak memory.
//!
//! `cargo run --release -p benches --example scale [kind [size]]`, kinds as in [`source`]; one kind
//! and size per process gives the memory of that one.

use std::time::Instant;

use palinode_ir::interp::{Code, Datum, Limits, Tensor};
use palinode_ir::{Program, pal, passes, transform};

/// A source of a kind that has about `size` statements, terms, functions or levels.
fn source(kind: &str, size: usize) -> String {
    let lines = |line: &dyn Fn(usize) -> String| (0..size).map(line).collect::<String>();
    match kind {
        "straight" => {
            let body = lines(&|at| match at % 4 {
                0 => "y = y * 0.999 + sin(x)\n".to_string(),
                1 => "z = z + x * y\n".to_string(),
                2 => "y = y - 0.001 * z\n".to_string(),
                _ => "z = 0.5 * z + cos(y)\n".to_string(),
            });
            format!("param x = 0.3\nvar y = x\nvar z = 1.0 * x\n{body}loss end = y + z\n")
        }
        "names" => format!(
            "param x = 0.3\nlet a0 = x\n{}loss a{size}\n",
            lines(&|at| format!("let a{} = a{at} + sin(a{} * 0.5)\n", at + 1, at / 2))
        ),
        "calls" => {
            let body = lines(&|at| match at {
                0 => "fn f0(u) { return sin(u) * u }\n".to_string(),
                _ => format!("fn f{at}(u) {{ return f{}(u) + f{}(u / 2) }}\n", at - 1, at - 1),
            });
            format!("param x = 0.3\n{body}loss end = f{}(x)\n", size - 1)
        }
        "functions" => format!(
            "param x = 0.3\nvar y = x\n{}{}loss y\n",
            lines(&|at| format!("fn f{at}(u) {{ let v = sin(u) * {at}.5\n return v + u }}\n")),
            lines(&|at| format!("y = y * 0.5 + f{at}(y) / (1.0 + f{}(x))\n", at / 2))
        ),
        "loops" => format!(
            "param x = 0.3\nvar y = x\n{}loss y\n",
            lines(&|_| "for i in 0..3 { y = sin(y) + x * i }\n".to_string())
        ),
        "long_loops" => format!(
            "param x = 0.3\nvar y = x\n{}loss y\n",
            lines(&|_| "for i in 0..30 { y = sin(y) + x * i }\n".to_string())
        ),
        "ifs" => format!(
            "param x = 0.3\nvar y = x\n{}loss y\n",
            lines(&|at| format!("if y > 0.{at} {{ y = sin(y) - x }} else {{ y = y + x }}\n"))
        ),
        "nest" => format!(
            "param x = 0.3\nvar y = x\n{}y = sin(y) + x\n{}loss y\n",
            lines(&|at| format!("for i{at} in 0..1 {{ y = y * 0.99\n\n")),
            lines(&|_| "}\n".to_string())
        ),
        "arrays" => format!(
            "param x: [8] = [1, 2, 3, 4, 5, 6, 7, 8]\nvar a = 1.0 * x\n{}loss end = sum(a * a)\n",
            lines(&|at| match at % 3 {
                0 => format!("a[{}] = sin(a[{}])\n", at % 8, (at + 3) % 8),
                1 => "a = 0.5 * a + x\n".to_string(),
                _ => format!("a[{}] += x[{}] * sum(a)\n", at % 7, at % 5),
            })
        ),
        "sum" => format!("param x = 0.3\nloss y = x{}\n", lines(&|at| format!(" + {at}.5 * x"))),
        "elseif" => format!(
            "param x = 0.3\nvar y = x\nif x < 0.0 {{ y = x * 2 }}{}\nloss y\n",
            lines(&|at| format!(" else if x < {at}.5 {{ y = x * {at}.0 }}"))
        ),
        "literal" => format!(
            "param x = 0.3\nlet a = [0.5{}]\nloss end = x * sum(a)\n",
            lines(&|at| format!(", {at}.5 * x"))
        ),
        _ => panic!("no kind `{kind}`"),
    }
}

fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0) / 1024
}

fn timed<T>(what: &str, line: &mut String, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let found = run();
    *line += &format!("  {what} {:.3}", start.elapsed().as_secs_f64());
    found
}

fn evaluate(program: &Program, inputs: &[Datum<f64>], line: &mut String) {
    let code = timed("code", line, || Code::new(program));
    timed("run", line, || code.run(inputs, &Limits::default())).expect("runs");
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let kinds = match given.first() {
        Some(kind) => vec![kind.as_str()],
        None => vec![
            "straight",
            "names",
            "calls",
            "functions",
            "loops",
            "long_loops",
            "ifs",
            "nest",
            "arrays",
            "sum",
            "elseif",
            "literal",
        ],
    };
    for kind in kinds {
        let size = given.get(1).and_then(|size| size.parse().ok()).unwrap_or(match kind {
            "calls" => 20,
            "functions" => 1000,
            "nest" => 60,
            "loops" | "long_loops" | "ifs" | "arrays" => 10_000,
            "elseif" => 100,
            _ => 100_000,
        });
        let text = source(kind, size);
        let mut line = format!("{kind} {size}:");
        let model = match timed("parse", &mut line, || pal::compile(&text)) {
            Ok(model) => model,
            Err(problems) => {
                println!("{line}  {:?}", problems[0]);
                continue;
            }
        };
        let inputs: Vec<Datum<f64>> = model
            .arguments
            .iter()
            .map(|argument| match argument.default.as_ref().expect("has a default") {
                pal::Default::Scalar(x) => Datum::real(*x),
                pal::Default::Array { data, shape } => {
                    Datum::Real(Tensor { shape: shape.clone(), data: data.clone() })
                }
            })
            .collect();
        let run = timed("simplify", &mut line, || passes::simplify(&model.program));
        evaluate(&run, &inputs, &mut line);
        println!("{line}  {} MiB", peak());
        let mut line = format!("  size {} grad:", model.program.size());
        let gradient = timed("transform", &mut line, || transform::value_and_grad(&model.program, &[0]))
            .expect("is differentiable");
        let gradient = timed("simplify", &mut line, || passes::simplify(&gradient));
        line += &format!(" (size {})", gradient.size());
        evaluate(&gradient, &inputs, &mut line);
        println!("{line}  {} MiB", peak());
        if given.len() > 2 {
            let mut line = "  hessian:".to_string();
            let hessian = timed("transform", &mut line, || transform::hessian(&model.program, &[0]))
                .expect("is differentiable");
            let hessian = timed("simplify", &mut line, || passes::simplify(&hessian));
            line += &format!(" (size {})", hessian.size());
            evaluate(&hessian, &inputs, &mut line);
            println!("{line}  {} MiB", peak());
        }
    }
}

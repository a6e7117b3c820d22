//! Comparisons that may be suspicious: every engine notes the same, at the point and on both sides of it, and
//! runs to its end.

use std::path::{Path, PathBuf};

use palinode_core::points::{self, Parts, Suspicion};
use palinode_core::{Error, decision};
use palinode_ir::interp::{Chosen, Code, Datum, Engine, Limits};
use palinode_ir::{Program, pal, passes, transform};
use palinode_native::{When, by_rustc_in, machine_code};

use crate::elements;
use crate::programs::from_environment;
use crate::random::Random;
use crate::random::programs::{self, Kind};
use crate::support::{bits, defaults};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("rustc").join("decisions")
}

fn engines() -> [(&'static str, Engine); 2] {
    [("Cranelift", machine_code(When::Possible)), ("rustc", by_rustc_in(Some(folder())))]
}

/// What a run gives, and what it leaves behind for whoever looks for decisions.
#[derive(Debug, PartialEq)]
struct Seen {
    outputs: Result<Vec<Vec<u64>>, String>,
    suspicion: Suspicion,
    counted: u64,
}

fn seen(code: &Code, inputs: &[Datum<f64>], traps: bool) -> Seen {
    let limits = Limits { steps: 1_000_000, trap_nonfinite: traps, ..Limits::default() };
    let run = || code.run(inputs, &limits);
    let ((ran, decisions), suspicion) = points::suspicion_of(|| decision::watch(run));
    let outputs = ran.map(|outputs| outputs.iter().map(bits).collect()).map_err(|error| error.to_string());
    Seen { outputs, suspicion, counted: decisions.count() }
}

struct Row {
    what: &'static str,
    suspicion: Suspicion,
    source: &'static str,
}

const fn row(what: &'static str, suspicion: Suspicion, source: &'static str) -> Row {
    Row { what, suspicion, source }
}
use Suspicion::{Exact, None as Clear, Small};

const ROWS: &[Row] = &[
    row("apart", Clear, "param x = 1\nvar y = x\nif x < 1.5 { y = 2 * x }\nloss z = y"),
    row("a tie", Exact, "param x = 1\nvar y = x\nif x <= 1 { y = 2 * x }\nloss z = y"),
    row("a tie by `==`", Exact, "param x = 1\nvar y = x\nif x == 1 { y = 2 * x }\nloss z = y"),
    row("zeros of both signs", Exact, "param x = 0\nvar y = x\nif -x < 0 { y = 2 * x }\nloss z = y"),
    row("a zero beside a threshold", Exact, "param x = 0\nvar y = x\nif x < 1e-7 { y = 2 * x }\nloss z = y"),
    row("a zero beside a wide one", Clear, "param x = 0\nvar y = x\nif x < 2e-6 { y = 2 * x }\nloss z = y"),
    row("a zero beside the widest", Exact, "param x = 0\nvar y = x\nif x < 1e-6 { y = 2 * x }\nloss z = y"),
    row(
        "small beside a threshold",
        Small,
        "param x = 1e-9\nvar y = x\nif x < 1e-7 { y = 2 * x }\nloss z = y",
    ),
    row(
        "of the threshold's scale",
        Clear,
        "param x = 3e-8\nvar y = x\nif x < 1e-7 { y = 2 * x }\nloss z = y",
    ),
    row("close, but not small", Clear, "param x = 1\nvar y = x\nif x < 1.0000001 { y = 2 * x }\nloss z = y"),
    row("both signs", Small, "param x = -1e-9\nvar y = x\nif x < 1e-7 { y = 2 * x }\nloss z = y"),
    row(
        "a tie of elements",
        Exact,
        "param a: [9] = [1, 2, 3, 4, 5, 6, 7, 8, 2]\nloss z = sum(select(a < 2, a, 2 * a))",
    ),
    row(
        "elements apart",
        Clear,
        "param a: [9] = [1, 2, 3, 4, 5, 6, 7, 8, 9]\nloss z = sum(select(a < 2.5, a, 2 * a))",
    ),
    row(
        "small elements",
        Small,
        "param a: [9] = [1, 2, 3, 4, 1e-9, 6, 7, 8, 9]\nloss z = sum(select(a < 1e-7, a, 2 * a))",
    ),
    row(
        "a tie in a loop in a branch",
        Exact,
        "param x = 2\nvar s = x\nif x > 1 { for i in 0..5 { if s == 8 { s = s + x } else { s = s * x } } }\nloss z = s",
    ),
    row(
        "no tie in the branch that is not taken",
        Clear,
        "param x = 2\nvar s = x\nif x < 1 { for i in 0..5 { if s == 8 { s = s + x } else { s = s * x } } }\nloss z = s",
    ),
    row(
        "a tie of elements in a loop in a branch",
        Exact,
        "param a: [7] = [1, 2, 3, 4, 5, 6, 7]\nparam x = 2\nvar b = a\nfor t in 0..6 { if t == 4 { b = select(b <= a, b + x, b) } \
         else { b = b } }\nloss z = sum(b)",
    ),
    row(
        "a loop that ends at zero",
        Exact,
        "param x = 3\nvar s = x\nwhile s > 0 { s = s - 1 }\nloss z = s + x",
    ),
    row(
        "the largest of elements, of which two are",
        Clear,
        "param a: [4] = [1, 3, 3, 2]\nloss z = max(a) + max(a[0], a[3]) + abs(a[1] - a[2])",
    ),
    row(
        "equal integers",
        Clear,
        "param x = 1\ninput n: int = 3\nvar y = x\nif n == 3 { y = 2 * x }\nloss z = y",
    ),
];

#[test]
fn the_same_is_suspicious_by_every_engine() {
    for row in ROWS {
        let model = pal::compile(row.source).unwrap_or_else(|found| panic!("{}: {found:?}", row.what));
        let inputs = defaults(&model).unwrap();
        let expected = seen(&Code::new(&model.program), &inputs, true);
        assert_eq!((expected.suspicion, expected.counted), (row.suspicion, 0), "{}", row.what);
        for (name, engine) in engines() {
            let code = Code::on(&engine, &model.program);
            let limits = Limits { trap_nonfinite: true, ..Limits::default() };
            assert!(matches!(code.prepare(&inputs, &limits), Chosen::Machine { .. }), "{}: {name}", row.what);
            let (_, stats) = code.run_with_stats(&inputs, &limits).unwrap();
            assert!(stats.by_machine, "{}: {name} runs to its end", row.what);
            assert_eq!(seen(&code, &inputs, true), expected, "{}: {name}", row.what);
        }
    }
}

/// Infinities and NaN, which only those meet who do not stop at them.
#[test]
fn what_is_compared_may_be_no_number() {
    let source = "param x = 0\nparam a: [5] = [1, 2, 3, 4, 5]\nvar s = sum(select(a < OTHER, a, 2 * a))\n\
                  if OTHER <= x { s = s + 1 }\nloss z = s";
    for other in ["(1 / x)", "(x / x)", "(-1 / x)", "(1 / x - 1 / x)"] {
        let model = pal::compile(&source.replace("OTHER", other)).unwrap();
        let inputs = defaults(&model).unwrap();
        let expected = seen(&Code::new(&model.program), &inputs, false);
        for (name, engine) in engines() {
            assert_eq!(seen(&Code::on(&engine, &model.program), &inputs, false), expected, "{other}: {name}");
        }
        // Equal infinities are a tie.
        let model =
            pal::compile("param x = 0\nvar s = x\nif 1 / x == 2 / x { s = 2 * x }\nloss z = s").unwrap();
        for (name, engine) in engines() {
            let code = Code::on(&engine, &model.program);
            assert_eq!(seen(&code, &[Datum::real(0.0)], false).suspicion, Exact, "{name}");
        }
    }
}

/// The gradient by an engine, verified as the command verifies it: its code, or the error.
fn verified(engine: &Engine, program: &Program, x: &[f64]) -> Result<Vec<f64>, &'static str> {
    let wrt: Vec<usize> = (0..x.len()).collect();
    let value = Code::on(engine, program);
    let gradient = Code::on(engine, &passes::simplify(&transform::value_and_grad(program, &wrt).unwrap()));
    let limits = Limits { trap_nonfinite: true, ..Limits::default() };
    let slopes = |x: &[f64]| -> Vec<f64> {
        let inputs: Vec<Datum<f64>> = x.iter().map(|&x| Datum::real(x)).collect();
        let outputs = gradient.run(&inputs, &limits).unwrap();
        outputs[1..].iter().map(|output| output.as_real().unwrap()).collect()
    };
    let found = points::verified(x, (Parts::ByInput, 1), |x: &[f64], parts| {
        let inputs: Vec<Datum<f64>> = x.iter().map(|&x| Datum::real(x)).collect();
        value.run(&inputs, &limits).unwrap();
        if let Some(parts) = parts {
            parts.extend(points::unseen(|| slopes(x)));
        }
        Ok::<(), Error>(())
    });
    found.map(|()| slopes(x)).map_err(|error| error.code())
}

#[test]
fn both_sides_are_looked_at_alike() {
    let rows = [
        ("a short cut", "if x != 0 { f = x * y }", Err("PAL0119")),
        ("a kink", "f = y\nif x > 0 { f = f + x }", Ok(())),
        ("a short cut in a loop", "for i in 0..3 { if x != 0 { f = f + x * y } }", Err("PAL0119")),
        (
            "a short cut of elements",
            "f = sum(select(fill(x, 9) == 0, fill(0, 9), fill(x * y, 9)))",
            Err("PAL0119"),
        ),
        (
            "a short cut of elements in a branch in a loop",
            "for i in 0..3 { if i == 1 { f = f + sum(select(fill(x, 9) == 0, fill(0, 9), fill(x * y, 9))) } }",
            Err("PAL0119"),
        ),
        ("a short cut that is right", "if x != 0 { f = x * x }", Ok(())),
    ];
    for (what, body, is_right) in rows {
        let model =
            pal::compile(&format!("param x = 0\nparam y = 3\nvar f = 0 * x\n{body}\nloss z = f")).unwrap();
        let expected = verified(&Engine::INTERPRETER, &model.program, &[0.0, 3.0]);
        assert_eq!(expected.as_ref().map(|_| ()).map_err(|&code| code), is_right, "{what}");
        for (name, engine) in engines() {
            assert_eq!(verified(&engine, &model.program, &[0.0, 3.0]), expected, "{what}: {name}");
        }
    }
}

/// Inputs among which there are ties, zeros and numbers as small as thresholds.
fn tied(inputs: Vec<Datum<f64>>, random: &mut Random) -> Vec<Datum<f64>> {
    const VALUES: [f64; 8] = [0.0, -0.0, 1.0, 1.0, -1.0, 1e-7, 1e-9, 0.5];
    let mut inputs = inputs;
    for input in &mut inputs {
        if let Datum::Real(tensor) = input {
            tensor.data.iter_mut().for_each(|x| *x = *random.pick(&VALUES));
        }
    }
    inputs
}

/// `PALINODE_PROGRAMS` says how many.
#[test]
fn random_programs_with_ties_are_suspicious_alike() {
    let (first, count) = (from_environment("PALINODE_SEED", 0), from_environment("PALINODE_PROGRAMS", 8));
    let engines = engines();
    let (mut by_machine, mut suspicious) = (0, 0);
    for seed in first..first + count {
        let random = &mut Random::new(seed ^ 0x5eed);
        let of_elements = elements::program(seed);
        let any = (programs::program(seed, 16, Kind::Any), programs::inputs(&mut Random::new(seed)));
        for (at, (program, inputs)) in [of_elements, any].into_iter().enumerate() {
            let program = passes::simplify(&passes::inline(&program));
            let inputs = tied(inputs, random);
            let traps = (seed + at as u64).is_multiple_of(2);
            let expected = seen(&Code::new(&program), &inputs, traps);
            suspicious += usize::from(expected.suspicion != Clear);
            for (name, engine) in &engines {
                let code = Code::on(engine, &program);
                assert_eq!(seen(&code, &inputs, traps), expected, "seed {seed}, program {at}: {name}");
                let limits = Limits { steps: 1_000_000, trap_nonfinite: traps, ..Limits::default() };
                by_machine +=
                    usize::from(code.run_with_stats(&inputs, &limits).is_ok_and(|ran| ran.1.by_machine));
            }
        }
    }
    println!("{by_machine} runs of {} by machines, {suspicious} of {} suspicious", 4 * count, 2 * count);
    assert!(by_machine > 0 && suspicious > 0);
}

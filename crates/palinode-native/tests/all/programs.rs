//! Random programs give the same bits natively: values, gradients, Hessians; whether infinities stop or not.
//!
//! `PALINODE_PROGRAMS=20000 cargo test --release -p palinode-native --test all programs -- --nocapture` is
//! the long run; `PALINODE_SEED` starts elsewhere.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::elements;
use crate::random::Random;
use crate::random::generate::source;
use crate::random::programs::{self, Kind};
use crate::random::shrink::shrunk;
use crate::random::source::Source;
use crate::random::variant::with_hidden_rows;
use crate::support::{Outcome, compare, defaults};
use palinode_ir::interp::Datum;
use palinode_ir::{Keep, Op, Program, pal, passes, transform};

pub(crate) fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

type Counts = BTreeMap<String, usize>;

/// The program, its gradient and its Hessian, as they are and simplified, and its gradient with few states of
/// loops kept.
pub(crate) fn family(program: &Program, wrt: &[usize], snapshots: u64) -> Vec<(&'static str, Program)> {
    let mut all =
        vec![("as it is", program.clone()), ("simplified", passes::simplify(&passes::inline(program)))];
    if let Ok(gradient) = transform::value_and_grad(program, wrt) {
        all.push(("gradient", passes::simplify(&gradient)));
        all.push(("gradient as it is", gradient));
    }
    let kept = transform::keeping(program, &|_| Some(Keep::Snapshots(snapshots)));
    if let Ok(gradient) = transform::value_and_grad(&kept, wrt)
        && gradient.count(|inst| matches!(inst.op, Op::Sweep { .. })) > 0
    {
        all.push(("gradient with few states", passes::simplify(&gradient)));
    }
    if let Ok(hessian) = transform::hessian(program, wrt) {
        all.push(("hessian", passes::simplify(&hessian)));
    }
    all
}

fn judge(
    program: &Program,
    inputs: &[Datum<f64>],
    wrt: &[usize],
    snapshots: u64,
    counts: &mut Counts,
) -> Result<(), String> {
    for (what, program) in family(program, wrt, snapshots) {
        for traps in [true, false] {
            let judged = catch_unwind(AssertUnwindSafe(|| compare(&program, inputs, traps)));
            let outcome = match judged {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(error)) => {
                    return Err(format!(
                        "{what}, traps {traps}: {error}\n{}",
                        palinode_ir::text::print(&program)
                    ));
                }
                Err(panic) => {
                    let words = panic
                        .downcast_ref::<String>()
                        .cloned()
                        .or(panic.downcast_ref::<&str>().map(|s| s.to_string()));
                    return Err(format!(
                        "{what}, traps {traps}: a panic: {words:?}\n{}",
                        palinode_ir::text::print(&program)
                    ));
                }
            };
            let key = match outcome {
                Outcome::Refused(why) => format!("refused: {why}"),
                Outcome::BothStop(_) => "both stop".into(),
                other => format!("{other:?}"),
            };
            *counts.entry(key).or_default() += 1;
        }
    }
    Ok(())
}

/// The program of a source, and its defaults.
pub(crate) fn of_source(source: &Source) -> Result<(Program, Vec<Datum<f64>>), String> {
    let text = source.text();
    let model = pal::compile(&text).map_err(|found| format!("{found:?}"))?;
    let inputs = defaults(&model).ok_or("no defaults")?;
    Ok((with_hidden_rows(model.program), inputs))
}

fn judge_source(source: &Source, counts: &mut Counts) -> Result<(), String> {
    let (program, inputs) = of_source(source)?;
    let wrt: Vec<usize> = (0..inputs.len()).collect();
    judge(&program, &inputs, &wrt, 2, counts)
}

#[test]
fn random_sources_give_the_same_bits() {
    let (first, count) = (from_environment("PALINODE_SEED", 0), from_environment("PALINODE_PROGRAMS", 5));
    let mut counts = Counts::new();
    let mut failures = Vec::new();
    for seed in first..first + count {
        let source = source(seed);
        if let Err(failure) = judge_source(&source, &mut counts) {
            let kind = |failure: &str| failure.split(':').take(2).collect::<Vec<_>>().join(":");
            let small = shrunk(source, &|candidate| {
                judge_source(candidate, &mut Counts::new())
                    .err()
                    .is_some_and(|again| kind(&again) == kind(&failure))
            });
            let again = judge_source(&small, &mut Counts::new()).err().unwrap_or_default();
            let again: Vec<&str> = again.lines().take(120).collect();
            let first = failure.lines().next().unwrap_or_default();
            failures.push(format!("seed {seed}: {first}\n\nshrunk:\n{}\n{}", small.text(), again.join("\n")));
            if failures.len() >= 3 {
                break;
            }
        }
    }
    println!("{counts:#?}");
    assert!(failures.is_empty(), "{}", failures.join("\n=======\n"));
}

#[test]
fn random_programs_give_the_same_bits() {
    let (first, count) = (from_environment("PALINODE_SEED", 0), from_environment("PALINODE_PROGRAMS", 12));
    let mut counts = Counts::new();
    // From small to large, so that the first failure is a small one.
    for seed in first..first + count {
        let size = (2 + (seed - first) * 22 / count) as usize;
        for kind in [Kind::Any, Kind::Strong, Kind::Walked] {
            let program = programs::program(seed, size, kind);
            let inputs = programs::inputs(&mut Random::new(seed));
            let wrt: Vec<usize> =
                (0..inputs.len()).filter(|&at| matches!(inputs[at], Datum::Real(_))).collect();
            if let Err(failure) = judge(&program, &inputs, &wrt, 1 + seed % 3, &mut counts) {
                panic!("seed {seed}: {failure}");
            }
        }
    }
    println!("{counts:#?}");
}

#[test]
fn random_elements_give_the_same_bits() {
    let (first, count) = (from_environment("PALINODE_SEED", 0), from_environment("PALINODE_PROGRAMS", 16));
    let mut counts = Counts::new();
    for seed in first..first + count {
        let (program, inputs) = elements::program(seed);
        // A Hessian of many numbers takes long.
        let wrt: &[usize] = if inputs[0].elements() > 16 { &[2] } else { &[0, 2] };
        if let Err(failure) = judge(&program, &inputs, wrt, 2, &mut counts) {
            panic!("seed {seed}: {failure}");
        }
    }
    println!("{counts:#?}");
}

/// Looks at one model: `PALINODE_MODEL=model.pal cargo test -p palinode-native --test all one_model --
/// --nocapture`.
#[test]
fn one_model() {
    let Ok(path) = std::env::var("PALINODE_MODEL") else { return };
    let model = pal::compile(&std::fs::read_to_string(path).unwrap()).unwrap();
    let inputs = defaults(&model).unwrap();
    let wrt: Vec<usize> = (0..inputs.len()).collect();
    let mut counts = Counts::new();
    let judged = judge(&model.program, &inputs, &wrt, 2, &mut counts);
    println!("{counts:#?}");
    judged.unwrap_or_else(|failure| panic!("{failure}"));
}

/// What goes wrong in these is not seen in their results.
#[test]
fn errors_come_although_nobody_looks_at_the_result() {
    let of_lists = [
        // The length is all that counts.
        "b = read a[@l]\n n = dim<0> b\n y = convert<f64> n",
        // One element is all that counts, and the list is wrong elsewhere.
        "b = read a[@l]\n c = exp b\n z = const 0i\n y = read c[z]",
        "m = imul l, l\n o = imul m, m\n p = imul o, o\n z = const 0i\n q = read p[z]\n r = imin q, z\n y = convert<f64> r",
        "b = write a[@l], x\n n = dim<0> b\n y = convert<f64> n",
        "b = add_at a[@l], x\n z = const 1i\n y = read b[z]",
        "z = const 2i\n i = read l[z]\n b = read a[i]\n c = sub b, b\n y = mul c, x",
        "z = const 2i\n i = read l[z]\n one = const 1i\n b = read a[i:+one:one]\n n = dim<0> b\n y = convert<f64> n",
    ];
    for body in of_lists {
        let text = format!(
            "entry fn main(a: f64[_], l: int[_], x: f64) -> (f64) outputs (y) {{\n {body}\n yield y\n}}"
        );
        let program = palinode_ir::text::parse(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let list = |data: Vec<i64>| Datum::Int(palinode_ir::interp::Tensor { shape: vec![3], data });
        let a = Datum::vector(vec![1.0, 2.0, 3.0, 4.0]);
        for (data, stops) in [(vec![0, 2, 1], false), (vec![1, 3, 1 << 40], true)] {
            let inputs = [a.clone(), list(data), Datum::real(2.0)];
            // What is simplified need not fail.
            for (program, may_go_on) in [(program.clone(), !stops), (passes::simplify(&program), true)] {
                let outcome =
                    compare(&program, &inputs, true).unwrap_or_else(|error| panic!("{error}\n{text}"));
                match outcome {
                    Outcome::Same => assert!(may_go_on, "{text}"),
                    Outcome::BothStop(error) => assert!(stops, "{error}\n{text}"),
                    Outcome::Slow | Outcome::Refused(_) => panic!("{outcome:?}\n{text}"),
                }
            }
        }
    }
}

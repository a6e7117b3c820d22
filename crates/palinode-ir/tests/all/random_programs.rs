//! The laws on random programs: value, forward mode, reverse mode, the tape and nested derivatives agree on
//! each of them, their text reads back, and planted bugs are found.
//!
//! `PALINODE_PROGRAMS=10000 cargo test --release -p palinode-ir-tests -- random_programs --nocapture` is the
//! long run; `PALINODE_SEED` starts elsewhere. A failure is shrunk and printed as a program.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::agree::{Covered, check, flat, run_on};
use crate::random::coverage::Coverage;
use crate::random::generate::source;
use crate::random::shrink::shrunk;
use crate::random::source::Source;
use crate::random::variant::with_hidden_rows;
use palinode_ir::interp::Datum;
use palinode_ir::pal;
use palinode_ir::{Program, text};

pub(crate) fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// The program and a point to run it at.
pub(crate) struct Case {
    pub(crate) program: Program,
    pub(crate) inputs: Vec<Datum<f64>>,
    pub(crate) wrt: Vec<usize>,
}

/// Compiles a random program; its parameters' defaults are the point.
pub(crate) fn compiled(source: &Source) -> Result<Case, String> {
    let text = source.text();
    let model = pal::compile(&text)
        .map_err(|found| format!("{} when compiling: {found:?}\n{text}", found[0].code))?;
    let inputs = crate::pal::defaults(&model);
    let wrt = (0..inputs.len()).collect();
    Ok(Case { program: with_hidden_rows(model.program), inputs, wrt })
}

/// What is wrong with a program, if something is. A panic counts.
fn judge(source: &Source) -> Result<Covered, String> {
    let case = compiled(source)?;
    let judged = catch_unwind(AssertUnwindSafe(|| {
        round_trip(&case.program)?;
        check(&case.program, &case.inputs, &case.wrt)
    }));
    match judged {
        Ok(judged) => judged,
        Err(panic) => Err(format!("a panic: {:?}", panic.downcast_ref::<String>())),
    }
}

/// print -> parse -> print is the identity, for the program and for its derivative.
pub(crate) fn round_trip(program: &Program) -> Result<(), String> {
    let printed = text::print(program);
    let parsed =
        text::parse(&printed).map_err(|errors| format!("its text does not parse: {errors:?}\n{printed}"))?;
    if text::print(&parsed) == printed { Ok(()) } else { Err(format!("its text changes:\n{printed}")) }
}

/// A failure, and the smallest program that fails in the same way: by the words before the first colon.
pub(crate) fn explained(source: Source, failure: &str, judge: &dyn Fn(&Source) -> Option<String>) -> String {
    let kind = failure.split(':').next().unwrap_or_default();
    let small = shrunk(source, &|candidate| judge(candidate).is_some_and(|again| again.starts_with(kind)));
    format!("{failure}\n\nshrunk:\n{}\n{}", small.text(), judge(&small).unwrap_or_default())
}

#[test]
fn every_way_to_differentiate_agrees() {
    let (first, count) = (from_environment("PALINODE_SEED", 0), from_environment("PALINODE_PROGRAMS", 30));
    let mut coverage = Coverage::new();
    let (mut first_order, mut second_order, mut stopped, mut rounding) = (0, 0, 0, 0);
    for seed in first..first + count {
        let source = source(seed);
        match judge(&source) {
            Ok(covered) => {
                first_order += usize::from(covered.first_order);
                second_order += usize::from(covered.second_order);
                rounding += usize::from(covered.rounding);
                coverage.count(&covered.programs);
            }
            // A program may run into an error of its own (an overflow of the step limit, say); it must be
            // rare.
            Err(failure) if failure.starts_with("the program itself") => stopped += 1,
            Err(failure) => {
                panic!("program {seed}: {}", explained(source, &failure, &|source| judge(source).err()))
            }
        }
    }
    println!(
        "{count} programs: {first_order} compared to first order, {second_order} to second, {rounding} in 106 bits only, \
         {stopped} stopped"
    );
    println!("{}", coverage.table());
    assert!(first_order as f64 >= 0.9 * count as f64, "too few programs could be compared");
    assert!(rounding as f64 <= 0.005 * count as f64, "too many programs are beyond double precision");
    assert!(stopped as f64 <= 0.02 * count as f64, "too many programs stopped");
    if count >= 1000 {
        let rare = coverage.rarer_than(0.01);
        assert!(rare.is_empty(), "in fewer than 1 % of the programs: {rare:?}");
    }
}

/// Central differences along a random direction, where they are trustworthy: two step sizes agree.
#[test]
fn finite_differences_agree_away_from_kinks() {
    let count = from_environment("PALINODE_PROGRAMS", 90);
    let mut compared = 0;
    for seed in 0..count {
        let Ok(case) = compiled(&source(seed)) else { continue };
        let Ok(gradient) = palinode_ir::transform::grad(&case.program, &case.wrt) else { continue };
        let Ok(found) = run_on(&gradient, &case.inputs, "the gradient") else { continue };
        let found = flat(&found);
        let mut sequence = crate::random::Random::new(seed);
        let direction: Vec<f64> = found.iter().map(|_| sequence.signed()).collect();
        let along: f64 = found.iter().zip(&direction).map(|(g, d)| g * d).sum();
        let moved = |step: f64| -> Option<f64> {
            let mut at = 0;
            let inputs: Vec<Datum<f64>> = case
                .inputs
                .iter()
                .map(|datum| {
                    datum.map(|x| {
                        at += 1;
                        x + step * direction[at - 1]
                    })
                })
                .collect();
            flat(&run_on(&case.program, &inputs, "a neighbour").ok()?).first().copied()
        };
        let slope = |h: f64| Some((moved(h)? - moved(-h)?) / (2.0 * h));
        let (Some(wide), Some(narrow), Some(side)) =
            (slope(1e-5), slope(5e-6), moved(1e-5).zip(moved(0.0)).map(|(a, b)| (a - b) / 1e-5))
        else {
            continue;
        };
        let scale = 1.0 + along.abs().max(narrow.abs());
        let smooth = (wide - narrow).abs() < 1e-6 * scale && (side - narrow).abs() < 1e-2 * scale;
        // A jump of the slope on the point itself, and steep functions, are not for differences.
        // A vertical slope that is left again (`cbrt(x - x)`) has no derivative, though differences see one.
        if smooth && scale < 1e4 && along.is_finite() {
            compared += 1;
            let text = source(seed).text();
            // A stop_gradient is meant to disagree.
            if !text.contains("stop_gradient") {
                assert!(
                    (along - narrow).abs() < 2e-5 * scale,
                    "program {seed}: {along} but {narrow}\n{text}"
                );
            }
        }
    }
    println!("{compared} of {count} programs compared with differences");
    assert!(compared as f64 > 0.5 * count as f64);
}

//! The account of a run against the allocator: every byte of its arrays, at every moment. The plan of the
//! recorded run must say the same.

mod counted;
mod law;

use crate::counting::{ALL, ARRAYS, OTHERS, live_arrays, measured};
use crate::interp::program;
use crate::pal::defaults;
use crate::random::generate::source;
use crate::random::variant::with_hidden_rows;
use crate::random_programs::from_environment;
use std::path::Path;

use palinode_core::Budget;
use palinode_ir::interp::{Code, Datum, Limits, RunErrorKind, Stats};
use palinode_ir::plan::{PlanError, predict_recorded};
use palinode_ir::{Axis, Elem, Keep, Linalg, Op, Program, Reduction, Type, pal, passes, transform, typing};

/// The peak of all bytes while `f` runs, beyond those that were there before.
fn peak_of_all<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let (result, taken) = measured(f);
    (result, taken[ALL].peak)
}

/// The peaks of arrays and of everything else while `f` runs.
fn peaks<T>(f: impl FnOnce() -> T) -> (T, usize, usize) {
    let (result, taken) = measured(f);
    (result, taken[ARRAYS].peak, taken[OTHERS].peak)
}

/// The sign of a NaN means nothing: neither IEEE 754 nor Rust says which one an operation gives.
pub(crate) fn bits(data: &[Datum<f64>]) -> Vec<Datum<u64>> {
    let bits = |x: f64| if x.is_nan() { f64::NAN } else { x }.to_bits();
    data.iter().map(|datum| datum.map(bits)).collect()
}

#[derive(Debug)]
struct Checked {
    runs: usize,
    planned: usize,
    arrays: usize,
    /// The least by which more was charged than taken.
    spare: i64,
}

impl Default for Checked {
    fn default() -> Checked {
        Checked { runs: 0, planned: 0, arrays: 0, spare: i64::MAX }
    }
}

impl Checked {
    /// Holds one program to the law. A program that fails by itself is none of ours.
    fn check(&mut self, name: &str, program: &Program, inputs: &[Datum<f64>]) {
        let code = Code::new(program);
        let limits = Limits { steps: 200_000, ..Limits::default() };
        let (plain, measured, _) = peaks(|| code.run_with_stats(inputs, &limits));
        let Ok((outputs, stats)) = plain else {
            assert_eq!(live_arrays(), 0, "{name}: an error leaves arrays behind");
            return;
        };
        assert_eq!(live_arrays(), 0, "{name}: arrays are left behind");
        if program.count(|inst| matches!(inst.op, Op::Linalg(_))) > 0 {
            assert!(stats.peak_bytes >= measured, "{name}: {} < {measured}", stats.peak_bytes);
        } else {
            assert_eq!(stats.peak_bytes, measured, "{name}: {stats:?}");
        }
        self.runs += 1;
        self.arrays += usize::from(measured > 0);
        // A recorded run is the same run, and the plan of its events knows the peak.
        let (again, recorded, events) = code.run_recorded(inputs, &limits).unwrap();
        assert_eq!(bits(&again), bits(&outputs), "{name}");
        assert_eq!(Stats { instructions: 0, ..recorded }, stats, "{name}");
        match predict_recorded(program, inputs, 8, &events) {
            Ok(plan) => {
                self.planned += 1;
                assert_eq!(
                    (plan.peak, plan.heap),
                    (stats.peak_bytes as u64, stats.heap_bytes as u64),
                    "{name}: the plan\n{}",
                    palinode_ir::text::print(program)
                );
            }
            Err(PlanError::DependsOnData { .. } | PlanError::TooDeep { .. }) => {}
            Err(error) => panic!("{name}: {error}\n{}", palinode_ir::text::print(program)),
        }
        // The peak as a budget is enough, whatever else is taken; one byte less is not, and then the budget
        // is kept too.
        let with = |bytes: usize| Limits { budget: Budget::from(bytes), ..limits };
        let (within, all) = peak_of_all(|| code.run_with_stats(inputs, &with(stats.heap_bytes)));
        let (within, again) = within.unwrap();
        assert_eq!((bits(&within), again), (bits(&outputs), stats), "{name}");
        self.spare = self.spare.min(stats.heap_bytes as i64 - all as i64);
        assert!(all <= stats.heap_bytes, "{name}: {all} bytes, {} charged", stats.heap_bytes);
        if let Some(less) = stats.heap_bytes.checked_sub(1) {
            let (refused, measured, _) = peaks(|| code.run(inputs, &with(less)));
            let refused = refused.unwrap_err().kind;
            let RunErrorKind::OverBudget { budget, live, needed, .. } = refused else {
                panic!("{name}: {refused}")
            };
            assert!(budget == less && live <= less && live + needed > less, "{name}: {refused:?}");
            assert!(measured <= less, "{name}: {measured} bytes within {less}");
            assert_eq!(live_arrays(), 0, "{name}: an error leaves arrays behind");
        }
    }

    /// The program, its gradient, and that simplified.
    fn check_all(&mut self, name: &str, program: &Program, inputs: &[Datum<f64>]) {
        self.check(name, program, inputs);
        self.check(&format!("{name}, simplified"), &passes::simplify(program), inputs);
        let wrt: Vec<usize> = (0..inputs.len()).filter(|&at| matches!(inputs[at], Datum::Real(_))).collect();
        let Ok(gradient) = transform::value_and_grad(program, &wrt) else { return };
        self.check(&format!("{name}, gradient"), &gradient, inputs);
        self.check(&format!("{name}, gradient, simplified"), &passes::simplify(&gradient), inputs);
        // With a few states of each loop instead of its logs.
        for snapshots in [1, 3] {
            let few = transform::keeping(program, &|_| Some(Keep::Snapshots(snapshots)));
            let gradient = transform::value_and_grad(&few, &wrt).unwrap();
            self.check(&format!("{name}, gradient, {snapshots} snapshots"), &gradient, inputs);
            let simplified = passes::simplify(&gradient);
            self.check(&format!("{name}, gradient, {snapshots} snapshots, simplified"), &simplified, inputs);
        }
    }
}

/// The defaults, if every argument has one.
pub(crate) fn given(model: &pal::Model) -> Option<Vec<Datum<f64>>> {
    model.arguments.iter().all(|argument| argument.default.is_some()).then(|| defaults(model))
}

#[test]
fn the_account_is_exact_over_the_examples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let mut checked = Checked::default();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "pal")) {
        let model = pal::compile(&std::fs::read_to_string(path).unwrap()).unwrap();
        // Examples with data in files are left out.
        let Some(inputs) = given(&model) else { continue };
        checked.check_all(&path.file_stem().unwrap().to_string_lossy(), &model.program, &inputs);
    }
    println!("{checked:?}");
    assert!(checked.runs > 150 && checked.arrays > 100);
}

#[test]
fn the_account_is_exact_over_random_programs() {
    let (first, programs) = (from_environment("PALINODE_SEED", 0), from_environment("PALINODE_PROGRAMS", 25));
    let mut checked = Checked::default();
    for seed in first..first + programs {
        let text = source(seed).text();
        let model = pal::compile(&text).unwrap();
        let inputs = given(&model).unwrap();
        let program = with_hidden_rows(model.program);
        checked.check_all(&format!("program {seed}\n{text}\n"), &program, &inputs);
    }
    println!("{checked:?}");
    let expected = 8 * programs as usize;
    assert!(checked.runs > expected * 95 / 100 && checked.planned > expected * 90 / 100);
    assert!(checked.arrays > expected * 7 / 10);
}

const VECTOR: Type = Type::array(Elem::F64, 1);
const MATRIX: Type = Type::array(Elem::F64, 2);
const INTS: Type = Type::array(Elem::Int, 1);

/// Kernels hold no arrays outside the account: what is not aligned as arrays are stays small, however long
/// the arrays.
#[test]
fn nothing_grows_outside_the_account() {
    let n = 20_000;
    let side = 150;
    let vector = || Datum::vector((0..n).map(|i| i as f64).collect());
    let matrix = || Datum::matrix(side, side, (0..side * side).map(|i| ((i * 7919) % 1000) as f64).collect());
    let list = || Datum::ints((0..n as i64).rev().collect());
    let one = |op: Op, types: &[Type]| program(types, |b, v| b.emit_all(op, v));
    let matmul = |a_transposed, b_transposed, strong| Op::MatMul { a_transposed, b_transposed, strong };
    let mut cases: Vec<(Program, Vec<Datum<f64>>)> = vec![
        (one(Op::Read(vec![Axis::List]), &[VECTOR, INTS]), vec![vector(), list()]),
        (one(Op::Write(vec![Axis::List]), &[VECTOR, VECTOR, INTS]), vec![vector(), vector(), list()]),
        (one(Op::AddAt(vec![Axis::List]), &[VECTOR, VECTOR, INTS]), vec![vector(), vector(), list()]),
        (one(Op::Concat(0), &[VECTOR, VECTOR]), vec![vector(), vector()]),
        (one(Op::Permute(vec![1, 0]), &[MATRIX]), vec![matrix()]),
        (one(Op::add(), &[VECTOR, VECTOR]), vec![vector(), vector()]),
        (one(Op::Push, &[VECTOR, VECTOR]), vec![vector(), vector()]),
    ];
    for kind in Reduction::ALL {
        for axes in [vec![0], vec![1], vec![0, 1]] {
            cases.push((one(Op::Reduce(kind, axes), &[MATRIX]), vec![matrix()]));
        }
    }
    for flags in 0..8 {
        let op = matmul(flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
        cases.push((one(op, &[MATRIX, MATRIX]), vec![matrix(), matrix()]));
    }
    for (program, inputs) in &cases {
        let name = palinode_ir::text::print(program);
        Checked::default().check(&name, program, inputs);
        let code = Code::new(program);
        // The results are copied into memory of the caller.
        let (ran, _, others) = peaks(|| code.run_with_stats(inputs, &Limits::default()));
        let results = ran.unwrap().1.result_bytes;
        assert!(
            others < results + 8000,
            "{others} bytes beside the account and {results} of results\n{name}"
        );
    }
}

/// What is charged for linear algebra is enough for what it takes.
#[test]
fn workspace_is_a_bound_for_linear_algebra() {
    let side = 60;
    let square = |i: usize, j: usize| if i == j { 100.0 } else { ((i * j + i + j) % 17) as f64 / 17.0 };
    for kind in Linalg::ALL {
        let shapes: &[(usize, usize)] = match kind {
            Linalg::Qr => &[(side, side), (2 * side, side / 2)],
            Linalg::Svd => &[(side, side), (2 * side, side / 2), (side / 2, 2 * side)],
            _ => &[(side, side)],
        };
        for &(rows, columns) in shapes {
            for singular in [false, true] {
                let element = |at: usize| {
                    let (i, j) = (at / columns, at % columns);
                    if singular && i.max(j) > 2 { 0.0 } else { square(i, j) }
                };
                let a = Datum::matrix(rows, columns, (0..rows * columns).map(element).collect());
                // Every right side that it takes.
                let square = side * side;
                let rights = [
                    (vec![MATRIX], vec![a.clone()]),
                    (vec![MATRIX, VECTOR], vec![a.clone(), Datum::vector(vec![1.0; side])]),
                    (vec![MATRIX; 2], vec![a, Datum::matrix(side, side, vec![1.0; square])]),
                ];
                for (types, inputs) in rights {
                    if typing::result_types(&Op::Linalg(kind), &types).is_err() {
                        continue;
                    }
                    let program = program(&types, |b, v| b.emit_all(Op::Linalg(kind), v));
                    let code = Code::new(&program);
                    let (ran, arrays, others) = peaks(|| code.run_with_stats(&inputs, &Limits::default()));
                    let Ok((_, stats)) = ran else { continue };
                    // At the end the results are copied out; until then what is worked on lies beside the
                    // arrays.
                    let taken = others.saturating_sub(stats.result_bytes) + arrays;
                    let bound = stats.peak_bytes + 8000;
                    let name = format!("{kind:?} {rows} x {columns}: {stats:?}");
                    assert!(taken <= bound && others <= bound, "{name}, {taken} bytes and {others} others");
                }
            }
        }
    }
}

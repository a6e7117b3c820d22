//! Loops that keep a few states instead of a log of every round: gradients have the same bits, whatever is
//! kept.
//!
//! `PALINODE_PROGRAMS=3000 cargo test --release -p palinode-ir-tests --test all sweeps` is the long run.

use crate::agree::{check, run_on};
use crate::pal::compile;
use crate::peak::bits;
use crate::random::generate::source;
use crate::random::source::Source;
use crate::random_programs::{Case, compiled, explained, from_environment, round_trip};
use palinode_core::Budget;
use palinode_core::schedule::binomial_cost;
use palinode_ir::interp::{Code, Datum, Limits, RoundBack, RunErrorKind};
use palinode_ir::plan::{FitError, PlanError, fit_gradient, predict};
use palinode_ir::transform::{self, Storage, keeping};
use palinode_ir::{Keep, Op, Program, pal, passes, text};

fn limited(program: &Program, keep: Keep) -> Program {
    keeping(program, &|_| Some(keep))
}

/// The bits with the sign of zeros left out, which passes do not keep.
fn values(data: &[Datum<f64>]) -> Vec<Datum<u64>> {
    bits(&data.iter().map(|datum| datum.map(|x| if x == 0.0 { 0.0 } else { x })).collect::<Vec<_>>())
}

fn sweeps(program: &Program) -> usize {
    program.count(|inst| matches!(inst.op, Op::Sweep { .. }))
}

/// How many sweeps place their first snapshots in the run for the values, and how many loops have runs apart.
fn turns(program: &Program) -> (usize, usize) {
    let turning = program.count(|inst| matches!(inst.op, Op::Sweep { turns: true, .. }));
    (turning, program.count(|inst| inst.op.keep().is_some()))
}

/// A gradient whose loops run for their values first.
fn in_two_runs(program: &Program, wrt: &[usize]) -> Program {
    let storage = Storage { two_runs: true, ..Storage::default() };
    let gradient = transform::value_and_grad_stored(program, wrt, &storage).unwrap();
    assert_eq!(turns(&gradient).0, 0);
    gradient
}

/// The fewest rounds that a sweep with a turn takes, which is a step itself.
fn fewest(rounds: u64, snapshots: u32) -> u64 {
    binomial_cost(rounds + 1, snapshots).unwrap().forward
}

/// Whether a gradient has the same bits with few states kept as with all rounds logged. Gives the number of
/// sweeps.
fn judge(case: &Case, kept: &[Keep]) -> Result<usize, String> {
    let Case { program, inputs, wrt } = case;
    let limits = Limits { steps: 20_000_000, ..Limits::default() };
    let Ok(gradient) = transform::value_and_grad(program, wrt) else { return Ok(0) };
    let Ok(expected) = Code::new(&gradient).run(inputs, &limits) else { return Ok(0) };
    let mut found = 0;
    for &keep in kept {
        let swept = transform::value_and_grad(&limited(program, keep), wrt)
            .map_err(|error| format!("transform: {error}"))?;
        found += sweeps(&swept);
        round_trip(&swept)?;
        let shown = |what: &str| format!("{what}: {keep:?}\n{}", text::print(&swept));
        for (what, code) in [("run", Code::new(&swept)), ("copying", Code::always_copying(&swept))] {
            let ran = code.run(inputs, &limits).map_err(|error| format!("{}: {error}", shown(what)))?;
            if bits(&ran) != bits(&expected) {
                return Err(format!("{}\n{ran:?}\n{expected:?}", shown(what)));
            }
        }
        let simplified = passes::simplify(&swept);
        let twice = in_two_runs(&limited(program, keep), wrt);
        for (what, program) in [("simplified", &simplified), ("in two runs", &twice)] {
            let ran = run_on(program, inputs, what)?;
            if values(&ran) != values(&expected) {
                return Err(format!("{}\n{ran:?}\n{expected:?}", shown(what)));
            }
        }
    }
    Ok(found)
}

const KEPT: [Keep; 5] =
    [Keep::Snapshots(1), Keep::Snapshots(2), Keep::Snapshots(3), Keep::Snapshots(7), Keep::Bytes(1 << 14)];

fn judge_source(source: &Source, kept: &[Keep]) -> Result<usize, String> {
    let case = compiled(source)?;
    let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| judge(&case, kept)));
    judged.unwrap_or_else(|panic| Err(format!("a panic: {:?}", panic.downcast_ref::<String>())))
}

#[test]
fn gradients_have_the_same_bits_on_random_programs() {
    let (first, count) = (from_environment("PALINODE_SEED", 0), from_environment("PALINODE_PROGRAMS", 15));
    let (mut with, mut all) = (0, 0);
    for seed in first..first + count {
        let source = source(seed);
        match judge_source(&source, &KEPT) {
            Ok(sweeps) => {
                with += usize::from(sweeps > 0);
                all += sweeps;
            }
            Err(failure) => {
                let judge = |source: &Source| judge_source(source, &KEPT).err();
                panic!("program {seed}: {}", explained(source, &failure, &judge));
            }
        }
    }
    println!("{with} of {count} programs have loops that a derivative goes through, {all} sweeps");
    assert!(with as u64 > count / 2);
}

/// All ways to differentiate agree on programs with limits, also a second time: forwards a sweep stays one,
/// backwards it keeps all states.
#[test]
fn all_derivatives_agree_on_random_programs() {
    let count = from_environment("PALINODE_PROGRAMS", 15);
    let mut second = 0;
    for seed in 0..count {
        let Ok(case) = compiled(&source(seed)) else { continue };
        let program = limited(&case.program, Keep::Snapshots(1 + seed % 4));
        match check(&program, &case.inputs, &case.wrt) {
            Ok(covered) => second += usize::from(covered.second_order),
            Err(failure) if failure.starts_with("the program itself") => {}
            Err(failure) => panic!("program {seed}: {failure}\n{}", source(seed).text()),
        }
    }
    assert!(second as f64 > 0.8 * count as f64);
}

const LORENZ: &str = "param rho = 28\nvar x = 1\nvar y = 1\nvar z = 1\nfor k in 0..200 {\n let dx = 10 * (y - x)\n \
    let dy = x * (rho - z) - y\n let dz = x * y - 8 / 3 * z\n x += dx * 0.01\n y += dy * 0.01\n z += dz * 0.01\n}\nloss z";

const HEAT: &str = "param u0: [8] = [0, 1, 2, 3, 4, 3, 2, 1]\nparam c = 0.1\nvar u = u0\nfor k in 0..50 {\n var next = u\n \
    for i in 1..7 { next[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) }\n u = next\n}\nloss s = sum(u * u)";

const IN_PLACE: &str = "param x: [6] = [1, 2, 3, 4, 5, 6]\nvar a = x\nfor k in 0..40 reversed {\n a[k % 6] = sin(a[k % 6]) * a[(k + 1) % 6]\n}\nloss s = sum(a)";

const NEWTON: &str = "param m = 1.2\nvar e = m\nvar n = 0\nwhile abs(e - 0.3 * sin(e) - m) > 1e-12 {\n e -= (e - 0.3 * sin(e) - m) / (1 - 0.3 * cos(e))\n n += 1\n}\nloss e";

const NESTED: &str = "param p = 0.9\nvar s = 0\nvar t = 1\nfor i in 0..12 {\n var x = t\n for j in 0..i + 2 { x = sin(p * x) + 0.1 * j }\n t = x\n s += x * x\n}\nloss s";

#[test]
fn gradients_have_the_same_bits_by_hand() {
    for source in [LORENZ, HEAT, IN_PLACE, NEWTON, NESTED] {
        let model = compile(source);
        let inputs = crate::pal::defaults(&model);
        let wrt = (0..inputs.len()).collect();
        let case = Case { program: model.program, inputs, wrt };
        let kept: Vec<Keep> = (0..30).chain([49, 50, 51, 199, 200, 1000]).map(Keep::Snapshots).collect();
        let found = judge(&case, &kept).unwrap_or_else(|failure| panic!("{failure}\n{source}"));
        assert!(found >= kept.len(), "{source}");
    }
}

/// x <- a x + b has closed forms.
#[test]
fn closed_forms_hold() {
    let source =
        "param a = 0.99\nparam b = 0.5\nparam x0 = 2\nvar x = x0\nfor k in 0..1000 { x = a * x + b }\nloss x";
    let program = limited(&compile(source).program, Keep::Snapshots(5));
    let gradient = transform::value_and_grad(&program, &[0, 1, 2]).unwrap();
    let (a, b, x0, t) = (0.99_f64, 0.5, 2.0, 1000);
    let inputs = [a, b, x0].map(Datum::real);
    let (found, stats) = Code::new(&gradient).run_with_stats(&inputs, &Limits::default()).unwrap();
    let sum = (1.0 - a.powi(t)) / (1.0 - a);
    let slope = (-f64::from(t) * a.powi(t - 1) * (1.0 - a) + 1.0 - a.powi(t)) / (1.0 - a).powi(2);
    let expected = [f64::from(t) * a.powi(t - 1) * x0 + b * slope, sum, a.powi(t)];
    for (found, expected) in found[1..].iter().zip(expected) {
        let found = found.as_real().unwrap();
        assert!((found - expected).abs() <= 1e-10 * expected.abs(), "{found} instead of {expected}");
    }
    // The optimum for 1000 rounds, a turn and 5 snapshots.
    assert_eq!(stats.steps, 7293);
    assert_eq!(fewest(1000, 5), 7293);
    assert_eq!(stats.peak_bytes, 5 * 8);
    // In two runs: the loop itself, then the optimum for 1000 rounds.
    let (_, stats) =
        Code::new(&in_two_runs(&program, &[0, 1, 2])).run_with_stats(&inputs, &Limits::default()).unwrap();
    assert_eq!(stats.steps, 1000 + binomial_cost(1000, 5).unwrap().forward);
}

/// One run through a loop less than in two runs: no schedule of so many snapshots takes fewer rounds.
#[test]
fn the_first_run_places_the_first_snapshots() {
    let down =
        "param x0 = 0.3\ninput n: int\nvar x = x0\nfor k in 0..n reversed { x = sin(x) + 0.01 * k }\nloss x";
    let up =
        "param x0 = 0.3\ninput n: int\nvar x = x0\nfor k in 0..n { x = sin(x) + 0.01 * k }\nloss l = x * x";
    let summed = "param x0 = 0.3\ninput n: int\nvar x = x0\nvar s = 0\n\
        for k in 0..n { x = sin(x) * cos(x) + 0.01 * k\n s += x }\nloss s";
    // Two in a row: the second one is in the turn of the first.
    let nested = "param x0 = 0.3\ninput n: int\nvar x = x0\nfor k in 0..n { x = sin(x) }\n\
        for k in 0..n { x = cos(x) + 0.01 * k }\nloss x";
    for (source, loops) in [(down, 1), (up, 1), (summed, 1), (nested, 2)] {
        let program = compile(source).program;
        for (snapshots, n) in [(1, 1), (1, 2), (2, 5), (3, 10), (3, 100), (12, 100), (99, 100), (200, 100)] {
            let kept = limited(&program, Keep::Snapshots(snapshots));
            let gradient = transform::value_and_grad(&kept, &[0]).unwrap();
            assert_eq!(turns(&gradient), (loops, 0), "{source}");
            let inputs = [Datum::real(0.3), Datum::int(n)];
            let (found, stats) = Code::new(&gradient).run_with_stats(&inputs, &Limits::default()).unwrap();
            let twice = in_two_runs(&kept, &[0]);
            let (expected, two) = Code::new(&twice).run_with_stats(&inputs, &Limits::default()).unwrap();
            assert_eq!(bits(&found), bits(&expected), "{source}");
            let apart = n as u64 + binomial_cost(n as u64, snapshots as u32).unwrap().forward;
            assert_eq!(two.steps, loops as u64 * apart, "{source}");
            let once = loops as u64 * fewest(n as u64, snapshots as u32);
            assert_eq!(stats.steps, once, "{source}: {n} rounds, {snapshots} snapshots");
            // What a turn takes itself is a step, too.
            assert!(once <= two.steps + loops as u64, "{source}");
        }
    }
}

/// Where there is nothing to gain, or too much to keep.
#[test]
fn not_every_sweep_turns() {
    let of = |source: &str, wrt: usize| {
        let program = limited(&compile(source).program, Keep::Snapshots(3));
        let (value, alone) = (transform::value_and_grad(&program, &[wrt]), transform::grad(&program, &[wrt]));
        (turns(&value.unwrap()), turns(&alone.unwrap()))
    };
    let head = "param x0 = 0.3\nvar x = x0\n";
    // If only the gradient is asked for, and the cotangents do not depend on the end, there is no first run.
    assert_eq!(of(&format!("{head}for k in 0..9 {{ x = sin(x) }}\nloss x"), 0), ((1, 0), (0, 0)));
    assert_eq!(of(&format!("{head}for k in 0..9 {{ x = sin(x) }}\nloss l = x * x"), 0), ((1, 0), (1, 0)));
    // The number of rounds is known when they have run.
    assert_eq!(of(&format!("{head}while x > 0.1 {{ x = sin(x) - 0.01 }}\nloss l = x * x"), 0).0, (0, 1));
    // A branch, or a loop that keeps logs, is run through on either way.
    let branch = format!("{head}if x > 0.1 {{ for k in 0..9 {{ x = sin(x) }} }}\nloss l = x * x");
    assert_eq!(of(&branch, 0).0, (0, 1));
    // Snapshots would hold all that was seen.
    let seen =
        format!("{head}var a: [9] = fill(0, 9)\nfor k in 0..9 {{ a[k] = x\n x = sin(x) }}\nloss l = sum(a)");
    assert_eq!(of(&seen, 0).0, (0, 1));
    // What is summed up would be computed again and again.
    let costly = format!(
        "{head}var s = 0\nfor k in 0..9 {{ x = sin(x)\n s += exp(tanh(cos(x)) * x) / (1 + x * x) }}\nloss l = s + x"
    );
    assert_eq!(of(&costly, 0).0, (0, 1));
}

/// A sweep with a turn, written by hand.
#[test]
fn a_turn_means_what_it_says() {
    let source = "entry fn main(n: int, x: f64, v: f64[_], w: f64[_]) -> (f64, f64, f64[_]) outputs (c, e, d) {\n\
        \x20 r, e, s = sweep snapshots 2 k in n (a: f64 = x, b: f64[_] = v) {\n\
        \x20   h = const 0.5\n    i = const 0i\n    t = mul a, h\n    u = write b[i], t\n    yield t, u\n\
        \x20 } turn (p: f64, q: f64[_]) (g: f64[_] = w) {\n\
        \x20   i2 = const 1i\n    o = write g[i2], p\n    f = add p, p\n    yield f, p, o\n\
        \x20 } back j (p2: f64, q2: f64[_]) (z: f64) {\n\
        \x20   y = add z, p2\n    yield y\n  }\n  yield r, e, s\n}\n";
    let program = text::parse(source).unwrap_or_else(|errors| panic!("{errors:?}"));
    round_trip(&program).unwrap();
    let two = || Datum::vector(vec![3.0, 4.0]);
    for (n, sum, end) in
        [(-2, 16.0, 8.0), (0, 16.0, 8.0), (1, 16.0, 4.0), (4, 16.0, 0.5), (9, 16.0, 1.0 / 64.0)]
    {
        let inputs = [Datum::int(n), Datum::real(8.0), two(), two()];
        let expected = [Datum::real(sum), Datum::real(end), Datum::vector(vec![3.0, end])];
        for (what, program) in [("by hand", &program), ("simplified", &passes::simplify(&program))] {
            assert_eq!(run_on(program, &inputs, what).unwrap(), expected, "{n} rounds, {what}");
        }
        let plan = predict(&program, &inputs, 8).unwrap();
        let (_, stats) = Code::new(&program).run_with_stats(&inputs, &Limits::default()).unwrap();
        assert_eq!((plan.peak, plan.heap), (stats.peak_bytes as u64, stats.heap_bytes as u64), "{n} rounds");
    }
    for (right, wrong) in
        [("yield f, p, o", "yield f, o, p"), ("turn (p: f64, q", "turn (p: int, q"), ("(z: f64)", "(z: int)")]
    {
        assert!(text::parse(&source.replace(right, wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn the_plan_knows_the_peak_of_short_and_long_sweeps() {
    let heat = "param u0: [16]\nparam c = 0.1\ninput n: int\nvar u = u0\nvar e = 0\nfor k in 0..n {\n var next = u\n \
        for i in 1..15 { next[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) }\n u = next\n e += u[3]\n}\nloss s = sum(u * u) + e";
    let fresh = "param w: [4, 4]\nparam h0: [4]\ninput n: int\nvar h = h0\nfor k in 0..n { h = tanh(w @ h) }\nloss s = sum(h)";
    // The arrays move on from one place to the other: neighbouring states share memory.
    let delayed = "param w: [4, 4]\nparam h0: [4]\ninput n: int\nvar h = h0\nvar g = h0\nfor k in 0..n {\n let next = tanh(w @ h) * g\n g = h\n h = next\n}\nloss s = sum(h * g)";
    let longer = "param x: [4]\ninput n: int\nvar a = x\nfor k in 0..n { a = concat(a, [sin(sum(a))]) }\nloss s = sum(a)";
    let vector = |n: usize| Datum::vector((0..n).map(|i| 0.1 + (i as f64) / 10.0).collect());
    let matrix = || Datum::matrix(4, 4, (0..16).map(|i| ((i * 7) % 5) as f64 / 10.0 - 0.2).collect());
    let cases = [
        (heat, vec![vector(16), Datum::real(0.1)]),
        (fresh, vec![matrix(), vector(4)]),
        (delayed, vec![matrix(), vector(4)]),
        (longer, vec![vector(4)]),
    ];
    for (source, inputs) in cases {
        let wrt: Vec<usize> = (0..inputs.len()).collect();
        let program = compile(source).program;
        for n in [0, 1, 2, 3, 5, 6, 7, 8, 9, 12, 64, 100, 300] {
            let mut inputs = inputs.clone();
            inputs.push(Datum::int(n));
            for snapshots in [1, 2, 3, 5, 8, 30, 62, 63, 64, 65, 98, 99, 100, 101, 299, 300] {
                let swept = limited(&program, Keep::Snapshots(snapshots));
                let gradient = passes::simplify(&transform::value_and_grad(&swept, &wrt).unwrap());
                let (_, stats) = Code::new(&gradient).run_with_stats(&inputs, &Limits::default()).unwrap();
                let plan = predict(&gradient, &inputs, 8).unwrap();
                let real = (stats.peak_bytes as u64, stats.heap_bytes as u64);
                let name = format!("{n} rounds, {snapshots} snapshots, {plan:?}\n{source}");
                if plan.is_quick {
                    // With few states, the run goes through more rounds than a plan can.
                    assert!(!plan.exact && n * n > 5000 * snapshots as i64, "{name}");
                    assert!(plan.peak >= real.0 && plan.heap >= real.1, "{name}");
                } else {
                    assert!(plan.exact && (plan.peak, plan.heap) == real, "{real:?} {name}");
                }
            }
        }
    }
}

#[test]
fn a_sweep_of_a_million_rounds_is_planned_at_once() {
    let source =
        "param x0: [3] = [1, 1, 1]\nvar x = x0\nfor k in 0..1000000 { x = sin(x) + 0.1 }\nloss s = sum(x)";
    let gradient =
        transform::value_and_grad(&limited(&compile(source).program, Keep::Snapshots(100)), &[0]).unwrap();
    let plan = predict(&gradient, &[Datum::vector(vec![1.0; 3])], 8).unwrap();
    assert!(plan.exact && plan.peak > 2400 && plan.peak < 4000, "{}", plan.peak);
}

#[test]
fn a_limit_in_bytes_is_kept_or_refused() {
    let source = "param x0: [10]\nvar x = x0\nfor k in 0..100 { x = sin(x) + 0.1 * x }\nloss s = sum(x)";
    let program = compile(source).program;
    let inputs = [Datum::vector((0..10).map(f64::from).collect())];
    let all = run_on(&transform::grad(&program, &[0]).unwrap(), &inputs, "all").unwrap();
    let little = transform::grad(&limited(&program, Keep::Bytes(79)), &[0]).unwrap();
    let refused = Code::new(&little).run(&inputs, &Limits::default()).unwrap_err().kind;
    let RunErrorKind::SnapshotOverBudget { budget: 79, needed: each } = refused else { panic!("{refused}") };
    // 80 bytes of numbers, and what describes them.
    assert!((81..400).contains(&each), "{each}");
    let mut peaks = Vec::new();
    for bytes in [each, 2 * each - 1, 2 * each, 5 * each, 50 * each, 100 * each] {
        let swept = transform::grad(&limited(&program, Keep::Bytes(bytes)), &[0]).unwrap();
        let (found, stats) = Code::new(&swept).run_with_stats(&inputs, &Limits::default()).unwrap();
        assert_eq!(bits(&found), bits(&all), "{bytes} bytes");
        peaks.push(stats.peak_bytes);
        let within = Limits { budget: Budget::from(stats.heap_bytes), ..Limits::default() };
        assert_eq!(bits(&Code::new(&swept).run(&inputs, &within).unwrap()), bits(&all));
    }
    assert_eq!(peaks[0], peaks[1]);
    assert!(peaks.windows(2).all(|pair| pair[0] <= pair[1]), "{peaks:?}");
    let little = transform::grad(&limited(&program, Keep::Bytes(each - 1)), &[0]).unwrap();
    let refused = Code::new(&little).run(&inputs, &Limits::default()).unwrap_err().kind;
    assert_eq!(refused, RunErrorKind::SnapshotOverBudget { budget: each - 1, needed: each });
    let planned = predict(&little, &inputs, 8).unwrap_err();
    assert!(matches!(planned, PlanError::SnapshotOverBudget { needed, .. } if needed == each), "{planned}");
    assert_eq!(planned.code(), "PAL0278");
}

/// A limit in bytes counts on states as long as the first one. Where they get longer, or are longest in the
/// middle, the same limit is kept with fewer of them.
#[test]
fn a_limit_in_bytes_is_kept_by_states_that_get_longer() {
    let appended =
        "param x: [4]\nvar a = x\nfor k in 0..50 { a = concat(a, [sin(sum(a))]) }\nloss s = sum(a)";
    let with_scalars = "param x: [4]\nvar a = [x[0]]\nvar y = x[1]\nvar n = 0\n\
        for k in 0..50 { y = sin(y) + 0.1 * a[n // 2]; a = append(a, y * x[2]); n += 1 }\nloss s = y + sum(a)";
    let swelling = "param x: [4]\nvar a = x\n\
        for k in 0..60 { a = if k < 30 then concat(a, [cos(a[k])]) else a[0..len(a) - 1] * 1.01 }\nloss s = sum(a)";
    let from_nothing = "param x: [4]\nvar a = x[0..0]\nfor k in 0..40 { a = append(a, sin(x[1] + sum(a))) }\nloss s = sum(a)";
    for source in [appended, with_scalars, swelling, from_nothing] {
        let program = compile(source).program;
        let inputs = [Datum::vector(vec![0.1, 0.4, -0.3, 0.2])];
        let all = run_on(&transform::grad(&program, &[0]).unwrap(), &inputs, "all").unwrap();
        let mut refused = 0;
        for bytes in [7, 8, 100, 200, 300, 500, 900, 1500, 3000, 6000, 12_000, 30_000] {
            let swept = transform::grad(&limited(&program, Keep::Bytes(bytes)), &[0]).unwrap();
            let mut kept = 0;
            let code = Code::new(&swept);
            let watch = &mut |round: &RoundBack| {
                assert!(round.kept_bytes <= bytes, "{source}: {} of {bytes}", round.kept_bytes);
                kept = round.kept_bytes;
            };
            let (found, stats) = match code.run_watched(&inputs, &Limits::default(), watch) {
                Ok(found) => found,
                Err(error) => {
                    // Only a first state that does not fit.
                    let RunErrorKind::SnapshotOverBudget { budget, needed } = error.kind else {
                        panic!("{error}")
                    };
                    assert!(budget == bytes && needed > bytes && needed <= 530, "{source}: {error}");
                    let enough = transform::grad(&limited(&program, Keep::Bytes(needed)), &[0]).unwrap();
                    assert_eq!(bits(&run_on(&enough, &inputs, "enough").unwrap()), bits(&all));
                    refused += 1;
                    continue;
                }
            };
            assert_eq!(bits(&found), bits(&all), "{source}: {bytes} bytes");
            let plan = predict(&swept, &inputs, 8).unwrap();
            assert_eq!((plan.exact, plan.peak), (true, stats.peak_bytes as u64), "{source}: {bytes} bytes");
            assert_eq!(plan.heap, stats.heap_bytes as u64, "{source}: {bytes} bytes");
            // Snapshots are of states as large as the largest, with the most room that it may have; many are
            // half as large.
            if (1500..=6000).contains(&bytes) {
                assert!(8 * kept > bytes, "{source}: only {kept} of {bytes} are used");
            }
        }
        // A list that was appended to has room for 32 numbers.
        assert!(refused < 7, "{source}");
    }
}

#[test]
fn rounds_are_watched_in_the_reverse_sweep() {
    let source = "param x0 = 1\nparam a = 0.5\nvar x = x0\nfor k in 0..10 { x = a * x }\nloss x";
    let gradient = transform::grad(&limited(&compile(source).program, Keep::Snapshots(3)), &[0, 1]).unwrap();
    let mut seen = Vec::new();
    let inputs = [Datum::real(1.0), Datum::real(0.5)];
    Code::new(&gradient)
        .run_watched(&inputs, &Limits::default(), &mut |round| {
            let of_x = round.cotangents.iter().find(|(name, _)| name.as_deref() == Some("dx")).unwrap();
            seen.push((round.round, round.rounds, of_x.1));
        })
        .unwrap();
    let expected: Vec<(u64, u64, f64)> =
        (0..10).rev().map(|round| (round, 10, 0.5_f64.powi(10 - round as i32))).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_sweep_of_no_rounds_is_reported_once() {
    let source = "param x0 = 1\ninput n: int\nvar x = x0\nfor k in 0..n { x = sin(x) }\nloss x";
    let gradient = transform::grad(&limited(&compile(source).program, Keep::Bytes(8)), &[0]).unwrap();
    for n in [0, 1] {
        let mut reported = Vec::new();
        let watch = &mut |round: &RoundBack| reported.push((round.round, round.rounds, round.snapshots));
        let inputs = [Datum::real(1.0), Datum::int(n)];
        let (found, _) = Code::new(&gradient).run_watched(&inputs, &Limits::default(), watch).unwrap();
        assert_eq!(found[0].as_real(), Some(if n == 0 { 1.0 } else { 1.0_f64.cos() }));
        assert_eq!(reported, [(0, n as u64, 0)]);
    }
}

/// A sweep written by hand: no transform is involved.
#[test]
fn a_sweep_means_what_it_says() {
    let program = "entry fn main(n: int, x: f64, v: f64[_], c: f64) -> (f64, f64[_]) outputs (c, d) {\n\
        \x20 zero = const 0i\n  one = const 1i\n  d = iota zero\n  e = convert<f64> d\n\
        \x20 r, s = sweep snapshots 2 k in n (a: f64 = x, b: f64[_] = v) {\n\
        \x20   h = const 0.5\n    i = const 0i\n    t = mul a, h\n    u = write b[i], t\n    yield t, u\n\
        \x20 } back j (p: f64, q: f64[_]) (g: f64 = c, l: f64[_] = e) {\n\
        \x20   f = add g, p\n    i2 = const 1i\n    w = read q[i2]\n    m = push l, f, w\n    yield f, m\n  }\n\
        \x20 yield r, s\n}\n";
    let program = text::parse(program).unwrap_or_else(|errors| panic!("{errors:?}"));
    round_trip(&program).unwrap();
    let inputs = |n: i64| [Datum::int(n), Datum::real(8.0), Datum::vector(vec![3.0, 4.0]), Datum::real(1.0)];
    let found = run_on(&program, &inputs(4), "by hand").unwrap();
    // States 8, 4, 2, 1; backwards 1 + 1, + 2, + 4, + 8.
    let list = vec![2.0, 4.0, 4.0, 4.0, 8.0, 4.0, 16.0, 4.0];
    assert_eq!(found, [Datum::real(16.0), Datum::vector(list)]);
    for n in [0, -3] {
        assert_eq!(run_on(&program, &inputs(n), "nothing").unwrap()[0], Datum::real(1.0));
    }
}

fn kept(source: &str) -> Vec<Keep> {
    let mut found = Vec::new();
    compile(source).program.main().body.for_each_inst(&mut |inst| {
        if let Op::For { keep, .. } | Op::While { keep } = inst.op {
            found.extend(keep);
        }
    });
    found
}

#[test]
fn budgets_are_written_at_loops() {
    let kib = |n: u64| Keep::Bytes(n << 10);
    let body = "{ x = sin(x) }\nloss x";
    let with = |head: &str| kept(&format!("param p = 1\nparam a: [3]\nvar x = p\n{head} {body}"));
    assert_eq!(with("for i in 0..9 budget 64KiB"), [kib(64)]);
    assert_eq!(with("for i in 0..9 by 2 reversed budget 1.5MiB"), [kib(1536)]);
    assert_eq!(with("for y in a budget 500B"), [Keep::Bytes(500)]);
    assert_eq!(with("while x > 0.5 budget 1kB"), [Keep::Bytes(1000)]);
    assert_eq!(with("for i in 0..9"), []);
    // The word is an ordinary name elsewhere.
    let name =
        "param budget = 2\nvar x = budget\nwhile x > budget - 1 budget 4KiB { x = x - budget / 2 }\nloss x";
    assert_eq!(kept(name), [kib(4)]);
    let left = "param p = 1\nvar x = p\nfor i in 0..9 budget 4KiB {\n    if x > 3 { break }\n    x = 2 * x\n}\nloss x";
    assert_eq!(kept(left), [kib(4)]);
    let tidy = pal::format("while x>0 budget   4KiB{\nx=x-1\n}").unwrap();
    assert_eq!(tidy, "while x > 0 budget 4KiB {\n    x = x - 1\n}\n");
    for wrong in ["budget", "budget 4", "budget 4 KiB", "budget x", "budget 4K", "budget 0KiB", "bugdet 4KiB"]
    {
        let source = format!("param p = 1\nvar x = p\nfor i in 0..9 {wrong} {body}");
        let found = pal::compile(&source).unwrap_err();
        assert!(found.len() == 1 && ["PAL0108", "PAL0202"].contains(&found[0].code), "{wrong}: {found:?}");
    }
}

/// A budget for the whole program: where logs do not fit, loops keep a few states. The bits stay, the budget
/// is kept, and so is what the plan says.
#[test]
fn a_budget_for_all_is_met_with_states() {
    let lorenz = LORENZ.replace("200", "2000");
    let heat = HEAT.replace("0..50", "0..400");
    for (source, count) in [(lorenz.as_str(), 1), (heat.as_str(), 2)] {
        let model = compile(source);
        let inputs = crate::pal::defaults(&model);
        let wrt: Vec<usize> = (0..count).collect();
        let fit = |budget: usize| {
            fit_gradient(&model.program, &wrt, &inputs, 8, &Storage::default(), Budget::from(budget))
        };
        let Err(FitError::TooSmall { smallest, .. }) = fit(1) else { panic!("one byte is too little") };
        let all = transform::value_and_grad(&model.program, &wrt).unwrap();
        let (expected, kept) = Code::new(&all).run_with_stats(&inputs, &Limits::default()).unwrap();
        assert!(smallest.bytes() * 6 < kept.heap_bytes, "{smallest} of {}", kept.heap_bytes);
        let mut overheads = Vec::new();
        for budget in [smallest.bytes(), 2 * smallest.bytes(), 8 * smallest.bytes()] {
            let fitted = fit(budget).unwrap();
            let [one] = fitted.loops[..] else { panic!("{:?}", fitted.loops) };
            assert!(one.snapshots < one.rounds && one.fewest_rounds() > one.rounds);
            let limits = Limits { budget: Budget::from(budget), ..Limits::default() };
            let (found, stats) = Code::new(&fitted.program).run_with_stats(&inputs, &limits).unwrap();
            assert_eq!(values(&found), values(&expected), "{budget}\n{source}");
            assert_eq!(stats.heap_bytes as u64, fitted.prediction.heap);
            overheads.push(fitted.overhead);
        }
        assert!(overheads.windows(2).all(|pair| pair[0] > pair[1]), "{overheads:?}");
    }
}

/// The margins of conditions: of the last round that ran, and of the one that did not.
#[test]
fn loops_say_how_close_they_came_to_another_number_of_rounds() {
    let margins = |source: &str, x: f64| {
        let (program, found) = transform::with_margins(&compile(source).program);
        let results = run_on(&program, &[Datum::real(x)], "margins").unwrap();
        let number = |at: usize| results[at].as_real().unwrap();
        found.iter().map(|margins| (number(margins.last), number(margins.stop))).collect::<Vec<_>>()
    };
    let doubling = "param x0 = 0.1\nvar x = x0\nwhile x < 1 { x = 2 * x }\nloss x";
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    let [(last, stop)] = margins(doubling, 0.1)[..] else { panic!() };
    assert!(close(last, 0.2) && close(stop, -0.375));
    // A power of two is met exactly, and no round at all is as far away as can be.
    assert_eq!(margins(doubling, 0.125), [(0.5, 0.0)]);
    let [(last, stop)] = margins(doubling, 3.0)[..] else { panic!() };
    assert!(last == f64::INFINITY && close(stop, -2.0 / 3.0));
    // Several comparisons, and a loop that is left early: the closest counts.
    let both = "param x0 = 1\nvar x = x0\nwhile x < 100 and x > 0.5 { x = 3 * x }\nloss x";
    let [(last, stop)] = margins(both, 1.0)[..] else { panic!() };
    assert!(close(last, 0.19) && close(stop, -143.0 / 243.0), "{last} {stop}");
    // Nothing to measure: integers, loops over ranges.
    let none = "param x0 = 1\nvar x = x0\nvar n = 0\nwhile n < 3 { x = x * x\n n += 1 }\nfor i in 0..3 { x = x + 1 }\nloss x";
    assert!(margins(none, 1.0).is_empty());
    // The margin is differentiated like any other result.
    let (program, found) = transform::with_margins(&compile(doubling).program);
    let mut only = program.clone();
    let entry = only.entry.index();
    only.functions[entry].body.results = vec![program.main().body.results[found[0].last]];
    only.outputs = vec!["last".into()];
    let slope = run_on(&transform::grad(&only, &[0]).unwrap(), &[Datum::real(0.1)], "slope").unwrap();
    assert!(close(slope[0].as_real().unwrap(), -8.0));
}

/// Rounds that need nothing of each other have no state, whatever they may keep.
#[test]
fn loops_without_a_state_keep_none() {
    let source = "param a = 0.5\nvar s = 0\nfor k in 0..100000 { s += sin(a * k) }\nloss s";
    let program = compile(source).program;
    let (expected, kept) = Code::new(&transform::value_and_grad(&program, &[0]).unwrap())
        .run_with_stats(&[Datum::real(0.5)], &Limits::default())
        .unwrap();
    for keep in [Keep::Snapshots(1), Keep::Bytes(0)] {
        let swept = passes::simplify(&transform::value_and_grad(&limited(&program, keep), &[0]).unwrap());
        let (found, stats) =
            Code::new(&swept).run_with_stats(&[Datum::real(0.5)], &Limits::default()).unwrap();
        assert_eq!(values(&found), values(&expected));
        assert_eq!((stats.steps, stats.peak_bytes), (200_000, 0));
        assert!(kept.peak_bytes > 100_000);
        let plan = predict(&swept, &[Datum::real(0.5)], 8).unwrap();
        assert!(plan.exact && plan.peak == 0);
    }
}

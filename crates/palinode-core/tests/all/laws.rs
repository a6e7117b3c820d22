//! The laws of the design on random programs: all modes agree, within bounds that are derived from the
//! program itself.

use crate::programs::{Program, precise_gradient, program};
use palinode_core::{DoubleDouble, Dual, DualN, Jet, Record, Table, TableRow, Tape, Var};
use proptest::prelude::*;

const EPSILON: f64 = f64::EPSILON;

fn config() -> ProptestConfig {
    // PROPTEST_CASES asks for more.
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(768), failure_persistence: None, ..default }
}

/// What a reverse sweep over absolute partials says about a recording.
struct Absolute {
    /// Sum over all paths from the outputs of the product of absolute partials, by node.
    cotangents: Vec<f64>,
    /// Roundings along the longest path: a product per edge and a sum per use of each node on it.
    roundings: f64,
}

/// The same tape with |partials|, seeded with |u| at the outputs (the last rows).
fn absolute_sweep(table: &Table, u: &[f64]) -> Absolute {
    let rows = &table.rows;
    let mut cotangents = vec![0.0; rows.len() + 1];
    let mut uses = vec![0.0_f64; rows.len() + 1];
    let mut depth = vec![0.0_f64; rows.len() + 1];
    for (row, &seed) in rows[rows.len() - u.len()..].iter().zip(u) {
        cotangents[row.index as usize] += seed.abs();
    }
    for row in rows.iter().rev() {
        for (&input, &partial) in row.inputs.iter().zip(&row.saved) {
            cotangents[input as usize] += partial.abs() * cotangents[row.index as usize];
            uses[input as usize] += 1.0;
        }
    }
    for row in rows.iter() {
        let longest = row.inputs.iter().map(|&input| depth[input as usize]).fold(0.0, f64::max);
        depth[row.index as usize] = longest + 1.0 + uses[row.index as usize];
    }
    Absolute { cotangents, roundings: depth.iter().copied().fold(0.0, f64::max) }
}

/// How far two ways to add up the same products of partials may differ, by input: each rounds at most
/// `roundings` times by half an ulp on every path. Jets divide power series by a recurrence of their own,
/// whose quotient rule rounds up to four times where a partial rounds once.
fn bound(program: &Program, u: &[f64]) -> Vec<f64> {
    let mut traced = Tape::traced();
    let record = traced.record(&program.point, |x| program.run(x)).expect("it fits");
    let absolute = absolute_sweep(&record.table(), u);
    let inputs = 1..=program.point.len();
    // The smallest normal number keeps the bound meaningful where everything underflows.
    inputs.map(|i| 4.0 * EPSILON * absolute.roundings * absolute.cotangents[i] + 1e-300).collect()
}

fn unit(n: usize, i: usize) -> Vec<f64> {
    (0..n).map(|k| f64::from(u8::from(k == i))).collect()
}

fn close(what: &str, a: f64, b: f64, bound: f64) -> Result<(), TestCaseError> {
    prop_assert!(
        (a - b).abs() <= bound,
        "{what}: {a:e} and {b:e} differ by {:e}, {bound:e} allowed",
        (a - b).abs()
    );
    Ok(())
}

fn seeds(record: &Record<'_, f64>) -> Vec<f64> {
    (0..record.output_count()).map(|k| 1.0 - 0.75 * k as f64).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn forward_reverse_lanes_and_jets_agree(program in program()) {
        let x = &program.point;
        let n = x.len();
        let mut tape = Tape::new();
        let mut record = tape.record(x, |x| program.run(x)).unwrap();
        let m = record.output_count();
        for output in 0..m {
            let u = unit(m, output);
            let bounds = bound(&program, &u);
            let reverse = record.reverse(&u).unwrap().to_vec();
            let lanes: Vec<DualN<f64, 4>> =
                x.iter().enumerate().map(|(k, &v)| DualN::new(v, core::array::from_fn(|i| f64::from(u8::from(i == k))))).collect();
            let lanes = program.run(&lanes)[output];
            for i in 0..n {
                let duals: Vec<Dual<f64>> = x.iter().zip(unit(n, i)).map(|(&v, t)| Dual::new(v, t)).collect();
                let dual = program.run(&duals)[output];
                // The same bits, but for the sign of a zero: a strong product of nested numbers does not keep
                // it.
                prop_assert_eq!(dual.value, record.values()[output]);
                close("dual and reverse", dual.tangent, reverse[i], bounds[i])?;
                close("dual and dual_n", dual.tangent, lanes.tangents[i], bounds[i])?;
                let jets: Vec<Jet<f64, 2>> = x.iter().zip(unit(n, i)).map(|(&v, t)| Jet::new(v, [t, 0.0])).collect();
                close("dual and jet", dual.tangent, program.run(&jets)[output].coefficient(1), bounds[i])?;
                let swept = record.forward(&unit(n, i)).unwrap()[output];
                close("dual and forward sweep", dual.tangent, swept, bounds[i])?;
            }
        }
    }

    #[test]
    fn products_with_the_jacobian_and_its_transpose_agree(program in program(), v in prop::array::uniform4(-1.0..1.0f64)) {
        let x = &program.point;
        let v = &v[..x.len()];
        let mut tape = Tape::new();
        let mut record = tape.record(x, |x| program.run(x)).unwrap();
        let u = seeds(&record);
        let jv = record.forward(v).unwrap();
        let forward: f64 = u.iter().zip(&jv).map(|(u, jv)| u * jv).sum();
        let reverse: f64 = record.reverse(&u).unwrap().iter().zip(v).map(|(g, v)| g * v).sum();
        let terms = (u.len() + v.len()) as f64;
        let allowed: f64 = bound(&program, &u).iter().zip(v).map(|(b, v)| b * v.abs() * terms).sum();
        close("<u, Jv> and <J^T u, v>", forward, reverse, allowed + 1e-300)?;
    }

    #[test]
    fn traced_and_preaccumulated_tapes_agree(program in program()) {
        let mut plain = Tape::new();
        let mut plain = plain.record(&program.point, |x| program.run(x)).unwrap();
        let mut traced = Tape::traced();
        let mut traced = traced.record(&program.point, |x| program.run(x)).unwrap();
        prop_assert_eq!(plain.values(), traced.values());
        prop_assert!(plain.size().nodes <= traced.size().nodes);
        let u = seeds(&plain);
        let bounds = bound(&program, &u);
        let (a, b) = (plain.reverse(&u).unwrap(), traced.reverse(&u).unwrap());
        for i in 0..a.len() {
            close("preaccumulated and traced", a[i], b[i], bounds[i])?;
        }
    }

    #[test]
    fn reuse_repetition_and_lanes_change_no_bit(first in program(), second in program()) {
        let bits = |numbers: &[f64]| -> Vec<u64> { numbers.iter().map(|v| v.to_bits()).collect() };
        let fresh = |program: &Program| -> Vec<Vec<u64>> {
            let m = Tape::new().record(&program.point, |x| program.run(x)).unwrap().output_count();
            (0..m).map(|k| {
                let mut tape = Tape::new();
                let mut record = tape.record(&program.point, |x| program.run(x)).unwrap();
                bits(record.reverse(&unit(m, k)).unwrap())
            }).collect()
        };
        let mut tape = Tape::new();
        for program in [&first, &second, &first] {
            let expected = fresh(program);
            let mut record = tape.record(&program.point, |x| program.run(x)).unwrap();
            let m = record.output_count();
            for _ in 0..2 {
                for (k, expected) in expected.iter().enumerate() {
                    prop_assert_eq!(&bits(record.reverse(&unit(m, k)).unwrap()), expected, "a reused tape or a second sweep");
                }
            }
            let lanes: Vec<[f64; 3]> = (0..m).map(|k| core::array::from_fn(|lane| f64::from(u8::from(lane == k)))).collect();
            let many = record.reverse_many(&lanes).unwrap();
            for (k, expected) in expected.iter().enumerate() {
                let lane: Vec<u64> = many.iter().map(|g| g[k].to_bits()).collect();
                prop_assert_eq!(&lane, expected, "lane {} of reverse_many", k);
            }
            let n = program.point.len();
            let units: Vec<[f64; 4]> = (0..n).map(|k| core::array::from_fn(|lane| f64::from(u8::from(lane == k)))).collect();
            let forward_many = record.forward_many(&units).unwrap();
            for i in 0..n {
                let single = record.forward(&unit(n, i)).unwrap();
                for k in 0..m {
                    prop_assert_eq!(single[k].to_bits(), forward_many[k][i].to_bits(), "lane {} of forward_many", i);
                }
            }
        }
    }

    #[test]
    fn the_gradient_is_as_good_as_its_roundings_allow(program in program()) {
        let x = &program.point;
        let gradient = palinode_core::grad(|x| program.first(x), x).unwrap();
        let precise = precise_gradient(&program);
        for (i, &bound) in rounding_bound(&program).iter().enumerate() {
            close("gradient and double-double gradient", gradient[i], precise[i].hi(), bound)?;
        }
    }

    #[test]
    fn four_nestings_agree_on_the_second_order(program in program(), v in prop::array::uniform4(-1.0..1.0f64)) {
        let x = &program.point;
        let n = x.len();
        let v = &v[..n];
        let f = |x: &[Var<Dual<f64>>]| program.first(x);
        let (_, _, forward_over_reverse) = palinode_core::hvp(f, x, v).unwrap();
        let hessian = palinode_core::hessian(|x| program.first(x), x).unwrap();
        let bounds = second_order_bound(&program);
        for i in 0..n {
            let reverse_over_reverse: f64 = hessian[i].iter().zip(v).map(|(h, v)| h * v).sum();
            let bound: f64 = bounds[i].iter().sum::<f64>() + 1e-300;
            close("var dual and var var", forward_over_reverse[i], reverse_over_reverse, bound)?;
            let duals: Vec<Dual<Dual<f64>>> = (0..n)
                .map(|k| Dual::new(Dual::new(x[k], v[k]), Dual::lift(f64::from(u8::from(k == i)))))
                .collect();
            close("dual dual and var var", program.first(&duals).tangent.tangent, reverse_over_reverse, bound)?;
            let mut tape = Tape::new();
            let mut record = tape.record(x, |x| {
                let duals: Vec<_> = (0..n).map(|k| Dual::new(x[k], Var::lift(f64::from(u8::from(k == i))))).collect();
                program.first(&duals).tangent
            }).unwrap();
            let row = record.reverse(&[1.0]).unwrap();
            let reverse_over_forward: f64 = row.iter().zip(v).map(|(h, v)| h * v).sum();
            close("dual var and var var", reverse_over_forward, reverse_over_reverse, bound)?;
            for j in 0..n {
                close("symmetry", hessian[i][j], hessian[j][i], bounds[i][j].max(bounds[j][i]) + 1e-300)?;
            }
            let jets: Vec<Jet<f64, 2>> = x.iter().zip(unit(n, i)).map(|(&v, t)| Jet::new(v, [t, 0.0])).collect();
            close("jet and var var", 2.0 * program.first(&jets).coefficient(2), hessian[i][i], bounds[i][i] + 1e-300)?;
        }
    }

    #[test]
    fn central_differences_agree_loosely(program in program()) {
        let n = program.point.len();
        let scale: f64 = bound(&program, &unit(program.run(&program.point).len(), 0)).iter().sum::<f64>() / EPSILON;
        // A steep program moves its own arguments across kinks within the step.
        prop_assume!(scale < 1e6);
        let x: Vec<DoubleDouble> = program.point_in();
        let step = DoubleDouble::from(2f64.powi(-36));
        let precise = precise_gradient(&program);
        for i in 0..n {
            let moved = |by: DoubleDouble| {
                let mut x = x.clone();
                x[i] += by;
                program.first(&x)
            };
            let slope = (moved(step) - moved(-step)) / (step + step);
            close("difference quotient", slope.hi(), precise[i].hi(), 1e-9 * (1.0 + scale))?;
        }
    }
}

/// The rows of the recording of a whole gradient computation: every operation that the forward and reverse
/// sweep of the first output performed is a row of the outer tape. The last rows are the gradient.
fn gradient_table(program: &Program) -> Table {
    let mut outer = Tape::traced();
    let record = outer.record(&program.point, |x| {
        let mut inner = Tape::new();
        let mut record = inner.record(x, |y| program.first(y)).expect("it fits");
        let gradient = record.reverse(&[Var::one()]).expect("lengths").to_vec();
        // As a row of its own, also where an entry is a constant.
        gradient.iter().map(|&g| g + x[0] * 0.0).collect::<Vec<_>>()
    });
    record.expect("it fits").table()
}

/// First-order error analysis by a reverse sweep: rounding error number k enters the gradient with the
/// adjoint of row k. Each row rounds by at most four ulp (elementary functions one or two, polygamma of these
/// arguments four); doubled for what is of second order in the roundings and for the double-double side.
fn rounding_bound(program: &Program) -> Vec<f64> {
    let rows = gradient_table(program).rows;
    let n = program.point.len();
    let last = |i: usize| rows.len() - 2 * (n - i) + 1;
    (0..n)
        .map(|i| {
            let mut adjoint = vec![0.0; rows.len() + 1];
            adjoint[rows[last(i)].index as usize] = 1.0;
            let mut error = 1e-300;
            for row in rows.iter().rev() {
                let TableRow { index, inputs, output, saved, .. } = row;
                let received: f64 = adjoint[*index as usize];
                for (&input, &partial) in inputs.iter().zip(saved) {
                    adjoint[input as usize] += received * partial;
                }
                if row.op != "input" {
                    error += (received * output.unwrap_or(0.0)).abs();
                }
            }
            2.0 * 4.0 * EPSILON * error
        })
        .collect()
}

/// How far two evaluations of a second derivative may differ, `[i][j]`: every row of the recorded gradient
/// computation has partials with a relative error of a few ulp, which reach the answer through the product of
/// absolute partials around it.
fn second_order_bound(program: &Program) -> Vec<Vec<f64>> {
    let table = gradient_table(program);
    let n = program.point.len();
    (0..n)
        .map(|i| {
            // The rows after gradient entry i are not its ancestors: seed that row alone.
            let cut = Table { rows: table.rows[..table.rows.len() - 2 * (n - i - 1)].to_vec() };
            let absolute = absolute_sweep(&cut, &[1.0]);
            (1..=n).map(|j| 16.0 * EPSILON * absolute.roundings * absolute.cotangents[j]).collect()
        })
        .collect()
}

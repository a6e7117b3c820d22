//! Arrays on the tape against single numbers, at second order, with the rest of the tape, and misused.

use crate::arrays::check_by_differences;
use crate::check::Apply;
use crate::support::{close, differences, panic_message};
use palinode_core::rules::Row;
use palinode_core::{Array, Compression, Real, Tape, Var, custom, custom_rule, grad, hessian, hvp, jacobian};

// Against single numbers.

/// Writes a function that applies a row as a method or an operator of arrays.
macro_rules! by_name {
    ({}
     operators1 { $($operators1:tt)* }
     operators2 { $($operators2:tt)* }
     functions1 { $($(#[$doc1:meta])* $F1:ident : $f1:ident($($args1:tt)*) -> $z1:ident { $($body1:tt)* })* }
     parametric1 { $($(#[$docp:meta])* $P:ident { $($p:tt)* } : $fp:ident($($argsp:tt)*) -> $zp:ident { $($bodyp:tt)* })* }
     functions2 { $($(#[$doc2:meta])* $F2:ident : $f2:ident($($args2:tt)*) -> $z2:ident { $($body2:tt)* })* }
     structural2 { $($structural2:tt)* }
     functions3 { $($(#[$doc3:meta])* $F3:ident : $f3:ident($($args3:tt)*) -> $z3:ident { $($body3:tt)* })* }
     structural3 { $($structural3:tt)* }
    ) => {
        fn by_name(op: Row, a: &Array<f64>, y: Var<f64>, w: Var<f64>) -> Array<f64> {
            match op {
                Row::Negate => -a,
                Row::Add => a + y,
                Row::Subtract => a - y,
                Row::Multiply => a * y,
                Row::Divide => a / y,
                Row::Remainder => a % y,
                $(Row::$F1 => a.$f1(),)*
                $(Row::$P => a.$fp(3),)*
                $(Row::$F2 => a.$f2(y),)*
                $(Row::$F3 => a.$f3(y, w),)*
                Row::StrongMul => a.zip_with(palinode_core::rules::StrongMul {}, y),
                Row::Select => a.zip_with_two(palinode_core::rules::Select {}, y, w),
            }
        }
    };
}
palinode_core::rule_table! { by_name! {} }

#[test]
fn every_function_of_the_table_agrees_with_numbers() {
    for &op in Row::ALL {
        // Where every domain but that of acosh has its numbers.
        let point: &[f64] = match op {
            Row::Acosh => &[1.25, 1.5, 2.5],
            _ => &[0.25, 0.75, 0.5],
        };
        let mut tape = Tape::new();
        let record = tape
            .record(point, |x| {
                let a = Array::from_vars(x);
                let number = |&x0: &Var<f64>| op.visit(3, Apply(&[x0, x[0], x[1]][..op.arity()]));
                let (y, w) = (a.get(0), a.get(1));
                (by_name(op, &a, y, w).to_vars(), x.iter().map(number).collect::<Vec<_>>())
            })
            .unwrap();
        let (found, expected) = record.values().split_at(3);
        let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(found), bits(expected), "{}", op.name());
        for output in 0..3 {
            let gradient = |k: usize| {
                let mut seed = [[0.0]; 6];
                seed[k] = [1.0];
                record.reverse_many(&seed).unwrap().concat()
            };
            let (found, expected) = (gradient(output), gradient(output + 3));
            for (found, expected) in found.iter().zip(&expected) {
                let difference = (found - expected).abs();
                assert!(difference <= 1e-15 * expected.abs(), "{}: {found} is not {expected}", op.name());
            }
        }
    }
}

#[test]
fn reductions_products_and_selections() {
    check_by_differences(
        |x| {
            let a = Array::from_vars(x).reshaped(&[2, 3]);
            let rows = a.sum_axis(1);
            let columns = &a.largest_axis(0) + &a.smallest_axis(0) * a.mean();
            let both = Array::concat(&[&rows, &columns]);
            let mut chosen = both.gather(&[4, 0, 0, 2]);
            chosen.scatter_add(&[1, 1, 3], &columns);
            chosen.scatter(&[2, 0], &rows);
            a.matmul(&columns).dot(&rows) + chosen.sum() * a.largest() - a.mean_axis(0).smallest()
        },
        &[0.4, -0.6, 1.2, 0.3, 0.8, -0.9],
    );
}

#[test]
fn elements_that_tie_share_the_derivative() {
    let g = grad(|x| Array::from_vars(x).largest(), &[1.0, 3.0, 3.0, 2.0]).unwrap();
    assert_eq!(g, [0.0, 0.5, 0.5, 0.0]);
    let g = grad(|x| Array::from_vars(x).reshaped(&[2, 2]).smallest_axis(0).sum(), &[1.0, 3.0, 1.0, 2.0])
        .unwrap();
    assert_eq!(g, [0.5, 0.0, 0.5, 1.0]);
}

/// A layer of a network on any number of levels.
fn layer<S: Real>(x: &[Var<S>]) -> Var<S> {
    let weights = Array::from_vars(&x[..4]).reshaped(&[2, 2]);
    let mut hidden = weights.matmul(&Array::from_vars(&x[4..]));
    hidden += x[0];
    hidden.map_in_place(palinode_core::rules::Tanh {});
    hidden.set(0, hidden.get(1) * x[5]);
    (&hidden * &hidden).sum()
}

#[test]
fn second_order() {
    let x = [0.3, -0.2, 0.5, 0.1, 0.7, -0.4];
    let by_tapes = hessian(layer, &x).unwrap();
    let direction = [1.0, 0.5, -0.5, 2.0, 0.25, -1.0];
    let by_dual = hvp(layer, &x, &direction).unwrap().2;
    for (row, found) in by_tapes.iter().zip(by_dual) {
        let expected: f64 = row.iter().zip(direction).map(|(h, d)| h * d).sum();
        assert!((expected - found).abs() < 1e-12, "{found} is not {expected}");
    }
    for (row, expected) in by_tapes.iter().zip(differences(|x| grad(layer, x).unwrap(), &x)) {
        close(row, &expected, 1e-6);
    }
}

#[test]
fn zeros_win_over_infinities() {
    let g = grad(
        |x| {
            let a = Array::from_vars(x);
            let roots = a.sqrt(); // a vertical slope at 0
            roots.get(1) + (&roots * &Array::from_values([0.0, 1.0])).sum()
        },
        &[0.0, 4.0],
    )
    .unwrap();
    assert_eq!(g, [0.0, 0.5]);
    let g = grad(
        |x| {
            let a = Array::from_vars(x).reshaped(&[1, 2]);
            let far = Array::from_values([f64::INFINITY, 1.0, 1.0, 1.0]).reshaped(&[2, 2]);
            a.matmul(&far).get([0, 1]) + x[0]
        },
        &[1.0, 1.0],
    );
    assert_eq!(g.unwrap(), [2.0, 1.0]);
}

// With the rest of the tape.

#[test]
fn custom_operations_between_steps() {
    check_by_differences(
        |x| {
            let mut a = Array::from_vars(x);
            for k in 0..3 {
                let twice = custom_rule("twice", |outputs: &[f64], inputs| {
                    inputs.iter_mut().zip(outputs).for_each(|(input, output)| *input += 2.0 * output);
                });
                let values: Vec<f64> = a.values().iter().map(|x| 2.0 * x).collect();
                let doubled = custom(&a.to_vars(), &values, twice);
                a.set(k, doubled[(k + 1) % 3].sin());
                a *= &Array::from_vars(&doubled);
            }
            a.sum()
        },
        &[0.3, 0.2, -0.4],
    );
}

#[test]
fn outputs_and_sparsity() {
    let f = |x: &[Var<f64>]| {
        let mut a = Array::from_vars(x);
        let old = a.copied();
        a.slice(1..).assign(&a.slice(..3));
        a.set(0, x[3] * x[3]);
        (&a * &old).to_vars()
    };
    let x = [2.0, 3.0, 5.0, 7.0];
    let dense = jacobian(f, &x).unwrap();
    let sparse = palinode_core::sparse_jacobian(f, &x).unwrap();
    let mut from_entries = vec![vec![0.0; 4]; 4];
    for &(row, column, value) in &sparse.entries {
        from_entries[row][column] = value;
    }
    assert_eq!(dense, from_entries);
    assert_eq!(dense[0], [49.0, 0.0, 0.0, 28.0]);
    assert_eq!(sparse.entries.len(), 8);
}

#[test]
fn the_table_shows_arrays() {
    let program = |x: &[Var<f64>]| {
        let mut a = Array::from_vars(x);
        a.set(0, x[1] * 2.0);
        let b = &a * &a;
        a += &b;
        b.get(1) + a.sum()
    };
    let mut tape = Tape::traced();
    let traced = tape.record(&[1.0, 3.0], program).unwrap().table().to_string();
    let expected = "\
#  op         inputs     output  saved              array
1  input               1.000000
2  input               3.000000
   from_vars  1 2                                   a0[0..2] <-
3  mul        2        6.000000  2.000000
   set        3                                     a0[0]
   mul                                              a1[0..2] <- a0[0..2] a0[0..2]
   add                                              a0[0..2] +<- a1[0..2]
4  get                 9.000000                     a1[1]
5  sum                54.000000                     a0[0..2]
6  add        4 5     63.000000  1.000000 1.000000
";
    assert_eq!(traced, expected, "\n{traced}");
    let mut tape = Tape::new();
    let plain = tape.record(&[1.0, 3.0], program).unwrap().table();
    let ops: Vec<&str> = plain.rows.iter().map(|row| row.op).collect();
    assert_eq!(ops, ["input", "input", "from_vars", "node", "set", "mul", "add", "get", "sum", "node"]);
}

#[test]
fn a_recording_with_arrays_is_compressed() {
    let program = |x: &[Var<f64>]| {
        let mut state = Array::from_vars(x);
        let _unused = x[0] * x[1] + x[2];
        for i in 0..20 {
            let next = (state.get(i % 3) * x[1]).sin() + state.get((i + 1) % 3) * x[0] + x[2] * 0.1;
            state.set(i % 3, next);
        }
        state.sin().sum() * x[0] + state.get(1)
    };
    let point = [0.3, 0.7, -0.2];
    let mut tape = Tape::new();
    let mut record = tape.record(&point, program).unwrap();
    let expected = record.reverse(&[1.0]).unwrap().to_vec();
    let tangent = record.forward(&[1.0, -2.0, 0.5]).unwrap()[0];
    let size = record.size();
    let plain = Compression { chains: false, blocks: false, ..Compression::default() };
    let mut same = record.compress(&plain).unwrap();
    assert_eq!(same.reverse(&[1.0]).unwrap(), expected);
    assert_eq!(same.forward(&[1.0, -2.0, 0.5]).unwrap(), [tangent]);
    assert!(same.size().nodes < size.nodes && same.size().bytes < size.bytes);
    // Some inputs only, in another order.
    let some = Compression { inputs: Some(vec![2, 0]), ..plain };
    let mut some = tape.record(&point, program).unwrap().compress(&some).unwrap();
    assert_eq!(some.reverse(&[1.0]).unwrap(), [expected[2], expected[0]]);
    let again = tape.record(&point, program).unwrap().reverse(&[1.0]).unwrap().to_vec();
    assert_eq!(again, expected, "the tape is as good as before");
}

// Misuse.

#[test]
fn misuse_panics_and_says_why() {
    type Misuse = fn(&Array<f64>);
    let shapes: [(Misuse, &str); 9] = [
        (|a| drop(a + &a.slice(1..)), "add of shapes [3] and [2]"),
        (|a| _ = a.get(3), "element [3] of an array of shape [3]: there is none"),
        (|a| _ = a.get([0, 0]), "element [0, 0] of an array of shape [3]: there is none"),
        (|a| drop(a.slice(2..5)), "slice 2..5 of axis 0, which has 3 elements"),
        (|a| drop(a.matmul(a)), "matmul of shapes [3] and [3]"),
        (|a| drop(a.reshaped(&[2, 2])), "cannot take the shape [2, 2], which has 4"),
        (|a| a.broadcast(&[2, 3]).fill(0.0), "cannot be written to"),
        (|a| drop(a.sum_axis(1)), "there is no axis 1 in shape [3]"),
        (|a| a.view().scatter(&[1, 1], &a.slice(..2)), "scatter writes element 1 twice"),
    ];
    for (f, expected) in shapes {
        let message = panic_message(|| f(&Array::from_values([1.0, 2.0, 3.0])));
        assert!(message.contains(expected) && message.starts_with("palinode: PAL0101"), "{message}");
    }
    let of_nothing = panic_message(|| _ = Array::<f64>::zeros(&[0]).largest());
    assert!(of_nothing.contains("largest of no elements"), "{of_nothing}");
}

/// A tape that holds residuals can go to another thread.
#[test]
fn a_tape_with_arrays_can_be_sent() {
    let mut tape = Tape::new();
    let sweep = |tape: &mut Tape<f64>| {
        let mut record = tape.record(&[2.0, 3.0], |x| (&Array::from_vars(x) * x[0]).sum()).unwrap();
        record.reverse(&[1.0]).unwrap().to_vec()
    };
    assert_eq!(sweep(&mut tape), [7.0, 2.0]);
    let elsewhere = std::thread::spawn(move || sweep(&mut tape)).join().unwrap();
    assert_eq!(elsewhere, [7.0, 2.0]);
}

#[test]
fn jumps_of_active_elements_are_decisions() {
    let floors = |x: &[Var<f64>]| Array::from_vars(x).floor().sum() + x[0];
    let (_, seen) = palinode_core::decision::watch(|| grad(floors, &[0.25, 1.75, 3.5]).unwrap());
    assert_eq!((seen.roundings, seen.smallest_margin), (3, 0.25));
}

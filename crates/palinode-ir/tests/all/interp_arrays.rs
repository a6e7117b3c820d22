//! The interpreter: arrays, and what their updates cost.

use crate::interp::program;
use palinode_ir::interp::{Code, Datum, Limits, Stats, Tensor};
use palinode_ir::{Comparison, Elem, IntOp, Op, Program, Type};

const VECTOR: Type = Type::array(Elem::F64, 1);

fn stats(p: &Program, inputs: &[Datum<f64>]) -> (Vec<Datum<f64>>, Stats) {
    Code::new(p).run_with_stats(inputs, &Limits::default()).unwrap()
}

#[test]
fn a_loop_of_writes_copies_nothing() {
    let n = 100_000;
    let p = program(&[VECTOR, Type::INT], |b, v| {
        b.for_loop(v[1], &[v[0]], |b, k, s| {
            let x = b.index(s[0], &[k]);
            let y = b.add(x, x);
            vec![b.update(s[0], &[k], y)]
        })
    });
    let (out, cost) = stats(&p, &[Datum::vector(vec![1.0; n]), Datum::int(n as i64)]);
    assert_eq!(out[0].as_vector().unwrap(), vec![2.0; n]);
    assert_eq!(cost, Stats { elements_copied: 0, elements_filled: 0, steps: n as u64 });
}

#[test]
fn writes_in_branches_and_inner_loops_copy_nothing() {
    let p = program(&[VECTOR, Type::INT], |b, v| {
        let (zero, two) = (b.int(0), b.int(2));
        b.for_loop(v[1], &[v[0]], |b, k, s| {
            let rest = b.integer(IntOp::Rem, k, two);
            let even = b.compare(Comparison::Equal, rest, zero);
            let changed = b.if_else(
                even,
                |b| {
                    let x = b.real(5.0);
                    vec![b.update(s[0], &[k], x)]
                },
                |_| vec![s[0]],
            );
            b.for_loop(two, &[changed[0]], |b, _, s| {
                let one = b.real(1.0);
                vec![b.emit(Op::AddAt(vec![palinode_ir::Axis::At]), &[s[0], one, k])]
            })
        })
    });
    let n = 1000;
    let (out, cost) = stats(&p, &[Datum::vector(vec![1.0; n]), Datum::int(n as i64)]);
    assert_eq!(out[0].as_vector().unwrap()[..4], [7.0, 3.0, 7.0, 3.0]);
    assert_eq!((cost.elements_copied, cost.elements_filled), (0, 0));
}

#[test]
fn a_fork_is_copied_once() {
    let p = program(&[VECTOR], |b, v| {
        let (zero, x) = (b.int(0), b.real(9.0));
        let changed = b.update(v[0], &[zero], x);
        vec![changed, v[0]]
    });
    let (out, cost) = stats(&p, &[Datum::vector(vec![1.0, 2.0])]);
    assert_eq!(out[0].as_vector().unwrap(), [9.0, 2.0]);
    assert_eq!(out[1].as_vector().unwrap(), [1.0, 2.0]);
    assert_eq!(cost.elements_copied, 2);
}

#[test]
fn swapped_arrays_stay_apart() {
    let p = program(&[VECTOR, VECTOR, Type::INT], |b, v| {
        b.for_loop(v[2], &[v[0], v[1]], |b, k, s| {
            let x = b.convert(Elem::F64, k);
            let changed = b.update(s[0], &[k], x);
            vec![s[1], changed]
        })
    });
    let inputs = [Datum::vector(vec![10.0; 3]), Datum::vector(vec![20.0; 3]), Datum::int(3)];
    let (out, cost) = stats(&p, &inputs);
    assert_eq!(out[0].as_vector().unwrap(), [20.0, 1.0, 20.0]);
    assert_eq!(out[1].as_vector().unwrap(), [0.0, 10.0, 2.0]);
    assert_eq!(cost.elements_copied, 0);
}

#[test]
fn matrices_and_logs() {
    let matrix = Type::array(Elem::F64, 2);
    let p = program(&[matrix], |b, v| {
        let (zero, one) = (b.int(0), b.int(1));
        let x = b.index(v[0], &[one, zero]);
        let m = b.update(v[0], &[zero, one], x);
        let empty = b.fill(x, &[zero]);
        let log = b.emit(Op::Push, &[empty, x, x]);
        let total = b.sum(m);
        vec![m, log, total]
    });
    let (out, _) = stats(&p, &[Datum::matrix(2, 2, vec![1.0, 2.0, 3.0, 4.0])]);
    assert_eq!(out[0], Datum::Real(Tensor::matrix(2, 2, vec![1.0, 3.0, 3.0, 4.0])));
    assert_eq!(out[1].as_vector().unwrap(), [3.0, 3.0]);
    assert_eq!(out[2].as_real(), Some(11.0));
}

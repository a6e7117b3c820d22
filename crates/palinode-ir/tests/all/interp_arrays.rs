//! The interpreter: arrays, and what their updates cost.

use crate::interp::program;
use palinode_ir::interp::{Code, Datum, Limits, Stats, Tensor};
use palinode_ir::{Axis, Comparison, Elem, FunctionBuilder, IntOp, Op, Program, ProgramBuilder, Type};

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
    // One array, changed in place from the input to the result.
    let bytes = 8 * n;
    let expected =
        Stats { steps: n as u64, allocations: 1, peak_bytes: bytes, result_bytes: bytes, ..Stats::default() };
    // The copy of the result is beside it at the end.
    assert!((2 * bytes..2 * bytes + 5000).contains(&cost.heap_bytes), "{cost:?}");
    assert_eq!(Stats { heap_bytes: 0, ..cost }, expected);
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
                vec![b.emit(Op::AddAt(vec![Axis::At]), &[s[0], one, k])]
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

/// `touch(a, k, x)`: `a` with `x` added at `k`; and a loop of calls.
fn calls() -> Program {
    let mut p = ProgramBuilder::new();
    let (touch, main) = (p.reserve(), p.reserve());
    let mut b = FunctionBuilder::new("touch");
    let (a, k, x) = (b.param("a", VECTOR), b.param("k", Type::INT), b.param("x", Type::REAL));
    let changed = b.emit(Op::AddAt(vec![Axis::At]), &[a, x, k]);
    p.define(touch, b.finish(&[changed, x]));
    let mut b = FunctionBuilder::new("main");
    b.declare(touch, vec![VECTOR, Type::INT, Type::REAL], vec![VECTOR, Type::REAL]);
    let (a, n) = (b.param("a", VECTOR), b.param("n", Type::INT));
    let x = b.real(1.0);
    let out = b.for_loop(n, &[a, x], |b, k, s| b.emit_all(Op::Call(touch), &[s[0], k, s[1]]));
    p.define(main, b.finish(&out));
    p.finish(main, &["a", "x"]).unwrap()
}

#[test]
fn calls_move_their_arrays() {
    let n = 100_000;
    let (out, cost) = stats(&calls(), &[Datum::vector(vec![1.0; n]), Datum::int(n as i64)]);
    assert_eq!(out[0].as_vector().unwrap(), vec![2.0; n]);
    let bytes = 8 * n;
    let steps = 2 * n as u64;
    let expected =
        Stats { steps, allocations: 1, peak_bytes: bytes, result_bytes: bytes, ..Stats::default() };
    // The copy of the result is beside it at the end.
    assert!((2 * bytes..2 * bytes + 5000).contains(&cost.heap_bytes), "{cost:?}");
    assert_eq!(Stats { heap_bytes: 0, ..cost }, expected);
}

#[test]
fn a_branch_may_take_what_the_other_needs() {
    // `a` is updated in one branch and `b` in the other; neither is used afterwards.
    let p = program(&[VECTOR, VECTOR, Type::INT], |b, v| {
        let (zero, two, one) = (b.int(0), b.int(2), b.real(1.0));
        b.for_loop(v[2], &[v[0], v[1]], |b, k, s| {
            let rest = b.integer(IntOp::Rem, k, two);
            let even = b.compare(Comparison::Equal, rest, zero);
            b.if_else(
                even,
                |b| vec![b.update(s[0], &[zero], one), s[1]],
                |b| vec![s[0], b.update(s[1], &[zero], one)],
            )
        })
    });
    let inputs = [Datum::vector(vec![0.0; 100]), Datum::vector(vec![0.0; 100]), Datum::int(1000)];
    assert_eq!(stats(&p, &inputs).1.elements_copied, 0);
    // Used in one branch only, and dropped in the other.
    let p = program(&[VECTOR, Type::BOOL], |b, v| {
        let (zero, one) = (b.int(0), b.real(1.0));
        let r = b.if_else(v[1], |b| vec![b.update(v[0], &[zero], one)], |b| vec![b.fill(one, &[zero])]);
        let r = b.emit(Op::Push, &[r[0], one]);
        vec![r]
    });
    for take in [true, false] {
        let (out, cost) = stats(&p, &[Datum::vector(vec![0.0; 3]), Datum::bool(take)]);
        assert_eq!((out[0].elements(), cost.elements_copied), (if take { 4 } else { 1 }, 0));
    }
}

#[test]
fn reads_of_what_a_loop_captures_are_free() {
    // `a` is read in every round and updated after the loop.
    let p = program(&[VECTOR, Type::INT], |b, v| {
        let (x, zero) = (b.real(0.0), b.int(0));
        let sum = b.for_loop(v[1], &[x], |b, k, s| {
            let x = b.index(v[0], &[k]);
            vec![b.add(s[0], x)]
        });
        vec![b.update(v[0], &[zero], sum[0])]
    });
    let (out, cost) = stats(&p, &[Datum::vector(vec![1.0; 1000]), Datum::int(1000)]);
    assert_eq!(out[0].as_vector().unwrap()[..2], [1000.0, 1.0]);
    assert_eq!(cost.elements_copied, 0);
    // Captured and carried at once: the first update has to copy, the others do not.
    let p = program(&[VECTOR, Type::INT], |b, v| {
        b.for_loop(v[1], &[v[0]], |b, k, s| {
            let x = b.index(v[0], &[k]);
            vec![b.emit(Op::AddAt(vec![Axis::At]), &[s[0], x, k])]
        })
    });
    let (out, cost) = stats(&p, &[Datum::vector(vec![1.0; 1000]), Datum::int(1000)]);
    assert_eq!(out[0].as_vector().unwrap(), vec![2.0; 1000]);
    assert_eq!(cost.elements_copied, 1000);
}

#[test]
fn while_loops_carry_arrays_and_look_at_them() {
    let p = program(&[VECTOR, Type::INT], |b, v| {
        let zero = b.int(0);
        b.while_loop(
            &[v[0], zero],
            |b, s| {
                let n = b.dim(s[0], 0);
                b.compare(Comparison::Less, s[1], n)
            },
            |b, s| {
                let (one, more) = (b.int(1), b.real(1.0));
                let next = b.integer(IntOp::Add, s[1], one);
                vec![b.emit(Op::AddAt(vec![Axis::At]), &[s[0], more, s[1]]), next]
            },
        )
    });
    let (out, cost) = stats(&p, &[Datum::vector(vec![1.0; 5000]), Datum::int(0)]);
    assert_eq!(out[0].as_vector().unwrap(), vec![2.0; 5000]);
    assert_eq!(cost.elements_copied, 0);
}

#[test]
fn logs_grow_in_place() {
    let p = program(&[Type::INT], |b, v| {
        let (zero, x) = (b.int(0), b.real(1.0));
        let log = b.fill(x, &[zero]);
        b.for_loop(v[0], &[log], |b, k, s| {
            let x = b.convert(Elem::F64, k);
            vec![b.emit(Op::Push, &[s[0], x, x])]
        })
    });
    let (out, cost) = stats(&p, &[Datum::int(200_000)]);
    assert_eq!(out[0].as_vector().unwrap()[399_998..], [199_999.0; 2]);
    assert_eq!((cost.elements_copied, cost.elements_filled), (0, 0));
}

#[test]
fn slices_and_reshapes_of_what_dies_are_free() {
    let matrix = Type::array(Elem::F64, 2);
    let p = program(&[matrix, Type::INT], |b, v| {
        let (ten, x) = (b.int(10), b.real(3.0));
        b.for_loop(v[1], &[v[0]], |b, k, s| {
            let hundred = b.int(100);
            let flat = b.emit(Op::Reshape, &[s[0], hundred]);
            let square = b.emit(Op::Reshape, &[flat, ten, ten]);
            vec![b.emit(Op::Write(vec![Axis::At, Axis::All]), &[square, x, k])]
        })
    });
    let (out, cost) = stats(&p, &[Datum::matrix(10, 10, vec![0.0; 100]), Datum::int(10)]);
    assert_eq!(out[0].as_vector().unwrap(), vec![3.0; 100]);
    assert_eq!((cost.elements_copied, cost.elements_filled), (0, 0));
}

//! The interpreter: every operation over arrays, against results worked out by hand.

use super::program;
use palinode_core::{Dual, Scalar, rules};
use palinode_ir::interp::{Datum, Tensor, run};
use palinode_ir::{Axis, Comparison, Elem, IntOp, Logical, Op, Program, Reduction, Type, Value};

pub(super) const VECTOR: Type = Type::array(Elem::F64, 1);
pub(super) const MATRIX: Type = Type::array(Elem::F64, 2);
pub(super) const INTS: Type = Type::array(Elem::Int, 1);
pub(super) const BOOLS: Type = Type::array(Elem::Bool, 1);

/// A program that applies one operation to its parameters and to integers.
pub(super) fn one(op: Op, params: &[Type], ints: &[i64]) -> Program {
    program(params, |b, v| {
        let ints: Vec<Value> = ints.iter().map(|&n| b.int(n)).collect();
        b.emit_all(op, &[v, &ints].concat())
    })
}

fn vector(values: &[f64]) -> Datum<f64> {
    Datum::vector(values.to_vec())
}

fn two_by_three() -> Datum<f64> {
    Datum::matrix(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
}

#[track_caller]
fn gives(p: &Program, inputs: &[Datum<f64>], expected: Datum<f64>) {
    assert_eq!(run(p, inputs).unwrap(), [expected]);
}

#[test]
fn elementwise_over_arrays_and_scalars() {
    let add = |a: Type, b: Type| one(Op::add(), &[a, b], &[]);
    gives(&add(VECTOR, VECTOR), &[vector(&[1.0, 2.0]), vector(&[10.0, 20.0])], vector(&[11.0, 22.0]));
    gives(&add(VECTOR, Type::REAL), &[vector(&[1.0, 2.0]), Datum::real(0.5)], vector(&[1.5, 2.5]));
    gives(&add(Type::REAL, VECTOR), &[Datum::real(0.5), vector(&[1.0, 2.0])], vector(&[1.5, 2.5]));
    gives(&add(VECTOR, VECTOR), &[vector(&[]), vector(&[])], vector(&[]));
    let clamp = one(Op::rule(rules::Row::Clamp), &[VECTOR, Type::REAL, VECTOR], &[]);
    let inputs = [vector(&[-5.0, 0.5, 9.0]), Datum::real(0.0), vector(&[1.0, 2.0, 3.0])];
    gives(&clamp, &inputs, vector(&[0.0, 0.5, 3.0]));
    let neg = one(Op::rule(rules::Row::Negate), &[MATRIX], &[]);
    gives(&neg, &[Datum::matrix(1, 2, vec![1.0, -2.0])], Datum::matrix(1, 2, vec![-1.0, 2.0]));
}

#[test]
fn integers_truth_values_and_choices_over_arrays() {
    let sub = one(Op::Int(IntOp::Sub), &[INTS, Type::INT], &[]);
    gives(&sub, &[Datum::ints(vec![5, 7]), Datum::int(2)], Datum::ints(vec![3, 5]));
    let less = one(Op::Compare(Comparison::Less), &[VECTOR, Type::REAL], &[]);
    gives(&less, &[vector(&[1.0, 3.0]), Datum::real(2.0)], Datum::bools(vec![true, false]));
    let equal = one(Op::Compare(Comparison::Equal), &[INTS, INTS], &[]);
    gives(&equal, &[Datum::ints(vec![1, 2]), Datum::ints(vec![1, 3])], Datum::bools(vec![true, false]));
    let not = one(Op::Logical(Logical::Not), &[BOOLS], &[]);
    gives(&not, &[Datum::bools(vec![true, false])], Datum::bools(vec![false, true]));
    let or = one(Op::Logical(Logical::Or), &[BOOLS, Type::BOOL], &[]);
    gives(&or, &[Datum::bools(vec![true, false]), Datum::bool(false)], Datum::bools(vec![true, false]));
    let select = |c, a, b| one(Op::Select, &[c, a, b], &[]);
    let (a, b) = (vector(&[1.0, 2.0]), vector(&[-1.0, -2.0]));
    let mask = Datum::bools(vec![false, true]);
    gives(&select(BOOLS, VECTOR, VECTOR), &[mask.clone(), a.clone(), b.clone()], vector(&[-1.0, 2.0]));
    gives(&select(Type::BOOL, VECTOR, VECTOR), &[Datum::bool(false), a.clone(), b.clone()], b.clone());
    gives(
        &select(Type::BOOL, VECTOR, Type::REAL),
        &[Datum::bool(false), a.clone(), Datum::real(7.0)],
        vector(&[7.0, 7.0]),
    );
    gives(
        &select(BOOLS, Type::REAL, Type::REAL),
        &[mask.clone(), Datum::real(1.0), Datum::real(0.0)],
        vector(&[0.0, 1.0]),
    );
    gives(
        &select(BOOLS, INTS, Type::INT),
        &[mask.clone(), Datum::ints(vec![4, 5]), Datum::int(0)],
        Datum::ints(vec![0, 5]),
    );
    gives(
        &select(BOOLS, Type::BOOL, BOOLS),
        &[mask.clone(), Datum::bool(true), mask],
        Datum::bools(vec![false, true]),
    );
}

#[test]
fn conversions_of_arrays() {
    let to = |elem, from| one(Op::Convert(elem), &[from], &[]);
    gives(&to(Elem::Int, VECTOR), &[vector(&[1.9, -1.9])], Datum::ints(vec![1, -1]));
    gives(&to(Elem::F64, INTS), &[Datum::ints(vec![1, -1])], vector(&[1.0, -1.0]));
    gives(&to(Elem::F64, VECTOR), &[vector(&[0.1])], vector(&[0.1]));
    gives(&to(Elem::F32, VECTOR), &[vector(&[0.1])], vector(&[f64::from(0.1f32)]));
    gives(&one(Op::StopGradient, &[INTS], &[]), &[Datum::ints(vec![3])], Datum::ints(vec![3]));
    let stopped =
        run(&one(Op::StopGradient, &[VECTOR], &[]), &[Datum::vector(vec![Dual::new(2.0, 1.0)])]).unwrap();
    let x = stopped[0].as_vector().unwrap()[0];
    assert_eq!((x.primal(), x.tangent), (2.0, 0.0));
}

#[test]
fn shapes() {
    gives(&one(Op::Iota, &[], &[3]), &[], Datum::ints(vec![0, 1, 2]));
    gives(&one(Op::Dim(1), &[MATRIX], &[]), &[two_by_three()], Datum::int(3));
    let fill = one(Op::Broadcast(vec![]), &[Type::REAL], &[2, 2]);
    gives(&fill, &[Datum::real(7.0)], Datum::matrix(2, 2, vec![7.0; 4]));
    let columns = one(Op::Broadcast(vec![0]), &[VECTOR], &[2, 3]);
    gives(&columns, &[vector(&[1.0, 2.0])], Datum::matrix(2, 3, vec![1.0, 1.0, 1.0, 2.0, 2.0, 2.0]));
    let rows = one(Op::Broadcast(vec![1]), &[VECTOR], &[3, 2]);
    gives(&rows, &[vector(&[1.0, 2.0])], Datum::matrix(3, 2, vec![1.0, 2.0, 1.0, 2.0, 1.0, 2.0]));
    gives(
        &one(Op::Reshape, &[MATRIX], &[3, 2]),
        &[two_by_three()],
        Datum::matrix(3, 2, (1..7).map(f64::from).collect()),
    );
    gives(&one(Op::Reshape, &[VECTOR], &[]), &[vector(&[4.0])], Datum::real(4.0));
    gives(&one(Op::Reshape, &[Type::REAL], &[1, 1]), &[Datum::real(4.0)], Datum::matrix(1, 1, vec![4.0]));
    let transposed = Datum::matrix(3, 2, vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    gives(&one(Op::Permute(vec![1, 0]), &[MATRIX], &[]), &[two_by_three()], transposed);
    gives(&one(Op::Permute(vec![0, 1]), &[MATRIX], &[]), &[two_by_three()], two_by_three());
    let cube = Type::array(Elem::F64, 3);
    let data: Vec<f64> = (0..24).map(f64::from).collect();
    let turned = run(
        &one(Op::Permute(vec![2, 0, 1]), &[cube], &[]),
        &[Datum::Real(Tensor { shape: vec![2, 3, 4], data })],
    );
    let turned = &turned.unwrap()[0];
    assert_eq!(turned.shape(), [4, 2, 3]);
    // Element [k, i, j] was [i, j, k].
    assert_eq!(turned.as_vector().unwrap()[6 + 3 + 2], 12.0 + 8.0 + 1.0);
}

#[test]
fn concatenations() {
    let rank1 = one(Op::Concat(0), &[VECTOR, VECTOR, VECTOR], &[]);
    gives(&rank1, &[vector(&[1.0]), vector(&[]), vector(&[2.0, 3.0])], vector(&[1.0, 2.0, 3.0]));
    let side = one(Op::Concat(1), &[MATRIX, MATRIX], &[]);
    let joined = Datum::matrix(2, 4, vec![1.0, 2.0, 3.0, 9.0, 4.0, 5.0, 6.0, 8.0]);
    gives(&side, &[two_by_three(), Datum::matrix(2, 1, vec![9.0, 8.0])], joined);
    let below = one(Op::Concat(0), &[MATRIX, MATRIX], &[]);
    let joined = Datum::matrix(3, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    gives(&below, &[two_by_three(), Datum::matrix(1, 3, vec![7.0, 8.0, 9.0])], joined);
}

#[test]
fn reductions() {
    let reduce = |kind, axes: &[u8]| one(Op::Reduce(kind, axes.to_vec()), &[MATRIX], &[]);
    gives(&reduce(Reduction::Sum, &[0, 1]), &[two_by_three()], Datum::real(21.0));
    gives(&reduce(Reduction::Sum, &[0]), &[two_by_three()], vector(&[5.0, 7.0, 9.0]));
    gives(&reduce(Reduction::Sum, &[1]), &[two_by_three()], vector(&[6.0, 15.0]));
    gives(&reduce(Reduction::Sum, &[]), &[two_by_three()], two_by_three());
    gives(&reduce(Reduction::Max, &[1]), &[two_by_three()], vector(&[3.0, 6.0]));
    gives(&reduce(Reduction::Min, &[0]), &[two_by_three()], vector(&[1.0, 2.0, 3.0]));
    gives(&reduce(Reduction::Sum, &[1]), &[Datum::matrix(2, 0, vec![])], vector(&[0.0, 0.0]));
    gives(&reduce(Reduction::Max, &[0]), &[Datum::matrix(2, 0, vec![])], vector(&[]));
    // Lanes 1 and 3, and 0 and 2, then both: what is next to a large one vanishes, pairs of small ones do
    // not.
    let sum = one(Op::Reduce(Reduction::Sum, vec![0]), &[VECTOR], &[]);
    gives(&sum, &[vector(&[1.0, 1e-16, 1e-16, 1e-16])], Datum::real(1.0000000000000002));
    gives(&sum, &[vector(&[1.0, 1e-16, 1e-16])], Datum::real(1.0));
    gives(
        &one(Op::Reduce(Reduction::Sum, vec![]), &[Type::REAL], &[]),
        &[Datum::real(3.0)],
        Datum::real(3.0),
    );
}

#[test]
fn reads() {
    let read = |axes: &[Axis], ints: &[i64]| one(Op::Read(axes.to_vec()), &[MATRIX], ints);
    use Axis::{All, At, List, Range};
    gives(&read(&[At, At], &[1, 2]), &[two_by_three()], Datum::real(6.0));
    gives(&read(&[At, All], &[1]), &[two_by_three()], vector(&[4.0, 5.0, 6.0]));
    gives(&read(&[All, At], &[1]), &[two_by_three()], vector(&[2.0, 5.0]));
    gives(&read(&[All, Range], &[0, 2, 2]), &[two_by_three()], Datum::matrix(2, 2, vec![1.0, 3.0, 4.0, 6.0]));
    gives(&read(&[At, Range], &[0, 1, 3, 0]), &[two_by_three()], vector(&[2.0, 2.0, 2.0]));
    gives(&read(&[At, Range], &[0, 2, 3, -1]), &[two_by_three()], vector(&[3.0, 2.0, 1.0]));
    gives(&read(&[All, Range], &[7, 0, 1]), &[two_by_three()], Datum::matrix(2, 0, vec![]));
    let listed = program(&[MATRIX, INTS], |b, v| vec![b.emit(Op::Read(vec![All, List]), v)]);
    let picked = Datum::matrix(2, 3, vec![3.0, 1.0, 3.0, 6.0, 4.0, 6.0]);
    gives(&listed, &[two_by_three(), Datum::ints(vec![2, 0, 2])], picked);
    let ints = one(Op::Read(vec![At]), &[INTS], &[1]);
    gives(&ints, &[Datum::ints(vec![4, 5])], Datum::int(5));
    let bools = one(Op::Read(vec![At]), &[BOOLS], &[1]);
    gives(&bools, &[Datum::bools(vec![true, false])], Datum::bool(false));
    let pair = Type::array(Elem::Int, 2);
    let ints = one(Op::Read(vec![At, At]), &[pair], &[1, 0]);
    gives(&ints, &[Datum::Int(Tensor::matrix(2, 2, vec![1, 2, 3, 4]))], Datum::int(3));
    let pair = Type::array(Elem::Bool, 2);
    let bools = one(Op::Read(vec![At, At]), &[pair], &[1, 0]);
    gives(&bools, &[Datum::Bool(Tensor::matrix(2, 2, vec![true, true, false, true]))], Datum::bool(false));
    let cube = Type::array(Elem::F64, 3);
    let element = one(Op::Read(vec![At, At, At]), &[cube], &[1, 0, 1]);
    let data: Vec<f64> = (0..8).map(f64::from).collect();
    gives(&element, &[Datum::Real(Tensor { shape: vec![2, 2, 2], data })], Datum::real(5.0));
}

#[test]
fn writes_and_additions() {
    use Axis::{All, At, List, Range};
    let change = |op: Op, x: Type, ints: &[i64]| one(op, &[MATRIX, x], ints);
    let row = vector(&[7.0, 8.0, 9.0]);
    let with_row = Datum::matrix(2, 3, vec![1.0, 2.0, 3.0, 7.0, 8.0, 9.0]);
    gives(&change(Op::Write(vec![At, All]), VECTOR, &[1]), &[two_by_three(), row.clone()], with_row);
    let added = Datum::matrix(2, 3, vec![1.0, 2.0, 3.0, 11.0, 13.0, 15.0]);
    gives(&change(Op::AddAt(vec![At, All]), VECTOR, &[1]), &[two_by_three(), row], added);
    let filled = Datum::matrix(2, 3, vec![0.0, 2.0, 0.0, 0.0, 5.0, 0.0]);
    gives(
        &change(Op::Write(vec![All, Range]), Type::REAL, &[0, 2, 2]),
        &[two_by_three(), Datum::real(0.0)],
        filled,
    );
    let listed = |op: Op| program(&[VECTOR, VECTOR, INTS], |b, v| vec![b.emit(op, v)]);
    let inputs = [vector(&[0.0, 0.0, 0.0]), vector(&[1.0, 2.0]), Datum::ints(vec![2, 0])];
    gives(&listed(Op::Write(vec![List])), &inputs, vector(&[2.0, 0.0, 1.0]));
    let twice = [vector(&[0.0, 0.0, 0.0]), vector(&[1.0, 2.0]), Datum::ints(vec![2, 2])];
    gives(&listed(Op::AddAt(vec![List])), &twice, vector(&[0.0, 0.0, 3.0]));
    let again = one(Op::AddAt(vec![Range]), &[VECTOR, VECTOR], &[1, 3, 0]);
    gives(&again, &[vector(&[0.0, 0.0]), vector(&[1.0, 2.0, 4.0])], vector(&[0.0, 7.0]));
    let ints = one(Op::Write(vec![At]), &[INTS, Type::INT], &[0]);
    gives(&ints, &[Datum::ints(vec![1, 2]), Datum::int(9)], Datum::ints(vec![9, 2]));
    let bools = one(Op::Write(vec![At]), &[BOOLS, Type::BOOL], &[0]);
    gives(&bools, &[Datum::bools(vec![true, true]), Datum::bool(false)], Datum::bools(vec![false, true]));
    let all = one(Op::Write(vec![All]), &[INTS, INTS], &[]);
    gives(&all, &[Datum::ints(vec![1, 2]), Datum::ints(vec![3, 4])], Datum::ints(vec![3, 4]));
    let element = one(Op::AddAt(vec![At, At]), &[MATRIX, Type::REAL], &[0, 1]);
    let changed = Datum::matrix(2, 3, vec![1.0, 2.5, 3.0, 4.0, 5.0, 6.0]);
    gives(&element, &[two_by_three(), Datum::real(0.5)], changed);
    let pair = Type::array(Elem::Int, 2);
    let ints = one(Op::Write(vec![At, At]), &[pair, Type::INT], &[0, 1]);
    let changed = Datum::Int(Tensor::matrix(1, 2, vec![1, 9]));
    gives(&ints, &[Datum::Int(Tensor::matrix(1, 2, vec![1, 2])), Datum::int(9)], changed);
}

#[test]
fn logs() {
    let push = one(Op::Push, &[VECTOR, Type::REAL, VECTOR, MATRIX], &[]);
    let inputs = [vector(&[1.0]), Datum::real(2.0), vector(&[3.0, 4.0]), Datum::matrix(1, 2, vec![5.0, 6.0])];
    gives(&push, &inputs, vector(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let ints = one(Op::Push, &[INTS], &[7, 8]);
    gives(&ints, &[Datum::ints(vec![6])], Datum::ints(vec![6, 7, 8]));
    let bools = program(&[BOOLS, Type::BOOL], |b, v| vec![b.emit(Op::Push, v)]);
    gives(&bools, &[Datum::bools(vec![]), Datum::bool(true)], Datum::bools(vec![true]));
    gives(&one(Op::Push, &[VECTOR], &[]), &[vector(&[1.0])], vector(&[1.0]));
    gives(&one(Op::Resize, &[VECTOR], &[3]), &[vector(&[1.0])], vector(&[1.0, 0.0, 0.0]));
    gives(&one(Op::Resize, &[VECTOR], &[1]), &[vector(&[1.0, 2.0])], vector(&[1.0]));
    gives(&one(Op::Resize, &[INTS], &[2]), &[Datum::ints(vec![5])], Datum::ints(vec![5, 0]));
}

#[test]
fn products() {
    let matmul = |a: Type, b: Type, a_transposed, b_transposed| {
        one(Op::MatMul { a_transposed, b_transposed, strong: false }, &[a, b], &[])
    };
    let m = two_by_three;
    let square = Datum::matrix(2, 2, vec![1.0, 2.0, 3.0, 4.0]);
    gives(
        &matmul(MATRIX, MATRIX, false, false),
        &[square.clone(), m()],
        Datum::matrix(2, 3, vec![9.0, 12.0, 15.0, 19.0, 26.0, 33.0]),
    );
    gives(
        &matmul(MATRIX, MATRIX, true, false),
        &[square.clone(), m()],
        Datum::matrix(2, 3, vec![13.0, 17.0, 21.0, 18.0, 24.0, 30.0]),
    );
    gives(
        &matmul(MATRIX, MATRIX, false, true),
        &[m(), m()],
        Datum::matrix(2, 2, vec![14.0, 32.0, 32.0, 77.0]),
    );
    gives(
        &matmul(MATRIX, MATRIX, true, true),
        &[m(), square],
        Datum::matrix(3, 2, vec![9.0, 19.0, 12.0, 26.0, 15.0, 33.0]),
    );
    gives(&matmul(MATRIX, VECTOR, false, false), &[m(), vector(&[1.0, 0.0, -1.0])], vector(&[-2.0, -2.0]));
    gives(&matmul(MATRIX, VECTOR, true, false), &[m(), vector(&[1.0, -1.0])], vector(&[-3.0, -3.0, -3.0]));
    gives(&matmul(VECTOR, MATRIX, false, false), &[vector(&[1.0, -1.0]), m()], vector(&[-3.0, -3.0, -3.0]));
    gives(&matmul(VECTOR, MATRIX, false, true), &[vector(&[1.0, 0.0, -1.0]), m()], vector(&[-2.0, -2.0]));
    gives(
        &matmul(VECTOR, VECTOR, false, false),
        &[vector(&[1.0, 2.0]), vector(&[3.0, 4.0])],
        Datum::real(11.0),
    );
    let outer = one(Op::Outer { strong: false }, &[VECTOR, VECTOR], &[]);
    gives(&outer, &[vector(&[1.0, 2.0]), vector(&[3.0, 4.0])], Datum::matrix(2, 2, vec![3.0, 4.0, 6.0, 8.0]));
}

#[test]
fn outer_products_are_added_in_chains() {
    let add = |of: Type| one(Op::AddOuter { strong: false }, &[MATRIX, of, of], &[]);
    let c = Datum::matrix(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let sum = Datum::matrix(2, 3, vec![4.0, 6.0, 8.0, 10.0, 13.0, 16.0]);
    gives(&add(VECTOR), &[c.clone(), vector(&[1.0, 2.0]), vector(&[3.0, 4.0, 5.0])], sum);
    // Rows one after the other: the first outer product, then the second.
    let x = Datum::matrix(2, 2, vec![1.0, 2.0, 10.0, 20.0]);
    let y = Datum::matrix(2, 3, vec![3.0, 4.0, 5.0, 1.0, 1.0, 1.0]);
    gives(&add(MATRIX), &[c, x, y], Datum::matrix(2, 3, vec![14.0, 16.0, 18.0, 30.0, 33.0, 36.0]));
    // Each link is rounded once: of (1 + e) squared, the part beyond 1 + 2 e is still there.
    let near = 1.0 + f64::EPSILON;
    let single = |x: f64| Datum::matrix(1, 1, vec![x]);
    let left = single(f64::EPSILON * f64::EPSILON);
    gives(&add(VECTOR), &[single(-1.0 - 2.0 * f64::EPSILON), vector(&[near]), vector(&[near])], left);
}

/// `(a * x + k, x < k, i + 1)` for every element in one go, where `a` and `k` are scalars.
fn fused(arrays: bool) -> Program {
    let rank = u8::from(arrays);
    let params = [Type::array(Elem::F64, rank), Type::REAL, Type::array(Elem::Int, rank)];
    program(&params, |b, v| {
        let p = b.open(&[Type::REAL, Type::REAL, Type::INT]);
        let k = b.real(0.5);
        let scaled = b.mul(p[0], p[1]);
        let y = b.add(scaled, k);
        let less = b.compare(Comparison::Less, p[0], k);
        let one = b.int(1);
        let i = b.integer(IntOp::Add, p[2], one);
        let block = b.close(&[y, less, i, p[0]]);
        let types = [Elem::F64, Elem::Bool, Elem::Int, Elem::F64].map(|elem| Type::array(elem, rank));
        b.emit_blocks(Op::Fused, v, vec![block], &types)
    })
}

#[test]
fn fused_operations() {
    let out = run(&fused(true), &[vector(&[0.0, 1.0]), Datum::real(3.0), Datum::ints(vec![7, 8])]).unwrap();
    assert_eq!(
        out,
        [vector(&[0.5, 3.5]), Datum::bools(vec![true, false]), Datum::ints(vec![8, 9]), vector(&[0.0, 1.0])]
    );
    let out = run(&fused(true), &[vector(&[]), Datum::real(3.0), Datum::ints(vec![])]).unwrap();
    assert_eq!(out[0], vector(&[]));
    let out = run(&fused(false), &[Datum::real(1.0), Datum::real(3.0), Datum::int(7)]).unwrap();
    assert_eq!(out, [Datum::real(3.5), Datum::bool(false), Datum::int(8), Datum::real(1.0)]);
    assert_eq!(
        run(&fused(true), &[vector(&[0.0]), Datum::real(1.0), Datum::ints(vec![1, 2])]).unwrap_err().code(),
        "PAL0252"
    );
}

#[test]
fn f32_rounds_after_every_operation() {
    let single = Type::array(Elem::F32, 1);
    let p = program(&[single, single, Type::INT], |b, v| {
        let sum = b.sum(v[0]);
        let product = b.mul(v[0], v[1]);
        let dot =
            b.emit(Op::MatMul { a_transposed: false, b_transposed: false, strong: false }, &[v[0], v[1]]);
        let x = b.index(v[0], &[v[2]]);
        let more = b.emit(Op::AddAt(vec![Axis::At]), &[v[1], x, v[2]]);
        vec![sum, product, dot, more]
    });
    let (a, b) = ([0.1, 0.7], [1e-9, 1.0 / 3.0]);
    let out = run(&p, &[vector(&a), vector(&b), Datum::int(0)]).unwrap();
    let narrow = |x: f64| f64::from(x as f32);
    let (a, b) = (a.map(narrow), b.map(narrow));
    assert_eq!(out[0].as_real(), Some(narrow(a[0] + a[1])));
    assert_eq!(out[1].as_vector().unwrap(), [narrow(a[0] * b[0]), narrow(a[1] * b[1])]);
    assert_eq!(out[2].as_real(), Some(narrow(a[0] * b[0] + a[1] * b[1])));
    assert_eq!(out[3].as_vector().unwrap(), [narrow(b[0] + a[0]), b[1]]);
}

#[test]
fn rounding_to_f32_keeps_derivatives() {
    let p = one(Op::Convert(Elem::F32), &[Type::REAL], &[]);
    let key = palinode_core::Key::from_seed(1);
    let special = [
        0.0,
        -0.0,
        1e300,
        -1e300,
        1e-60,
        -1e-60,
        1e-42,
        -1e-42,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-45,
        7e-46,
        3.4028235677973366e38,
    ];
    for x in special.into_iter().chain((0..20_000).map(|at| f64::from_bits(key.u64(at)))) {
        // Most patterns are far outside the range of f32: fold them into it.
        for x in [x, x % 1.0, (x % 1.0) * 1e-40] {
            let dual = run(&p, &[Datum::real(Dual::new(x, 3.0))]).unwrap()[0].as_real().unwrap();
            let expected = f64::from(x as f32);
            assert!(dual.primal().to_bits() == expected.to_bits() || expected.is_nan(), "{x:e}");
            assert_eq!(dual.tangent, 3.0, "{x:e}");
        }
    }
}

#[test]
fn data_is_lifted() {
    let d = Datum::<f64>::matrix(1, 2, vec![1.0, 2.0]).lift::<Dual<f64>>();
    assert_eq!(d.ty(), MATRIX);
    assert!(d.as_vector().unwrap().iter().all(|x| x.carries_nothing() && x.is_finite()));
    assert_eq!(Datum::<f64>::ints(vec![3]).lift::<Dual<f64>>().as_ints(), Some(&[3][..]));
    assert_eq!(d.as_vector().unwrap()[1].primal(), 2.0);
}

//! Elementwise operations by runs of plain numbers, against the same program place by place: on numbers with
//! derivatives, which know no runs. Same bits, same errors.

use super::ops::{BOOLS, INTS, VECTOR};
use super::program;
use palinode_core::{Dual, rules::Row};
use palinode_ir::interp::{Code, Datum, Limits, RunErrorKind};
use palinode_ir::{
    Comparison, Elem, FunctionBuilder, IntOp, Logical, Op, Program, Rule, Type, Value, passes,
};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// One of the last few, so that chains become long.
    fn recent(&mut self, list: &[Value]) -> Value {
        list[list.len() - 1 - self.below(list.len().min(3))]
    }
}

/// A chain of elementwise operations of every kind.
fn chain(random: &mut Random, length: usize) -> Program {
    let body = |b: &mut FunctionBuilder, v: &[Value]| {
        let (mut reals, mut ints, mut bools) = (vec![v[0], v[1], v[2]], vec![v[3], v[4]], vec![v[5]]);
        for _ in 0..length {
            match random.below(16) {
                0 => ints.push(b.emit(Op::Int(random.of(&IntOp::ALL)), &[random.recent(&ints), ints[0]])),
                1 => {
                    let op = Op::Compare(random.of(&Comparison::ALL));
                    bools.push(b.emit(op, &[random.recent(&reals), random.recent(&reals)]));
                }
                2 => {
                    let op = Op::Compare(random.of(&Comparison::ALL));
                    bools.push(b.emit(op, &[random.recent(&ints), ints[0]]));
                }
                3 => {
                    let op = random.of(&Logical::ALL);
                    let args = [random.recent(&bools), random.recent(&bools)];
                    bools.push(b.emit(Op::Logical(op), if op == Logical::Not { &args[..1] } else { &args }));
                }
                4 => {
                    let args = [random.recent(&bools), random.recent(&reals), random.recent(&reals)];
                    reals.push(b.emit(Op::Select, &args));
                }
                5 => {
                    let args = [random.recent(&bools), random.recent(&ints), ints[0]];
                    ints.push(b.emit(Op::Select, &args));
                }
                6 => reals.push(b.emit(Op::Convert(Elem::F64), &[random.recent(&ints)])),
                7 => {
                    let single = b.emit(Op::Convert(Elem::F32), &[random.recent(&reals)]);
                    let square = b.mul(single, single);
                    reals.push(b.emit(Op::Convert(Elem::F64), &[square]));
                }
                8 if random.below(8) == 0 => {
                    ints.push(b.emit(Op::Convert(Elem::Int), &[random.recent(&reals)]))
                }
                9 => reals.push(b.emit(Op::StopGradient, &[random.recent(&reals)])),
                _ => {
                    let row = random.of(Row::ALL);
                    // Half of the time something that seldom fails.
                    let row = if random.below(2) == 0 {
                        random.of(&[Row::Add, Row::Multiply, Row::Tanh])
                    } else {
                        row
                    };
                    let args: Vec<Value> = (0..row.arity()).map(|_| random.recent(&reals)).collect();
                    let parameter = random.of(&[2, 3, -1, 1]);
                    let parameter = if row == Row::Polygamma { 1 } else { parameter };
                    reals.push(b.map(Rule { row, parameter }, &args));
                }
            }
        }
        vec![*reals.last().unwrap(), *ints.last().unwrap(), *bools.last().unwrap()]
    };
    program(&[VECTOR, Type::REAL, VECTOR, INTS, INTS, BOOLS], body)
}

fn inputs(random: &mut Random, length: usize) -> Vec<Datum<f64>> {
    let rare = [0.0, -0.0, 1e300, -1e300, 1e-310, f64::INFINITY, f64::NAN, 5.0, 1e39];
    // Mostly all is well; what is not is anywhere.
    let has_rare = random.below(3) == 0;
    let mut real = || match random.below(200) {
        0 if has_rare => random.of(&rare),
        _ => random.below(1 << 20) as f64 / f64::from(1 << 18) - 1.7,
    };
    let mut reals = || Datum::vector((0..length).map(|_| real()).collect());
    let (x, y) = (reals(), reals());
    let mut ints = || {
        Datum::ints(
            (0..length)
                .map(|_| if random.below(4000) == 0 { i64::MAX } else { random.below(9) as i64 - 2 })
                .collect(),
        )
    };
    let (i, j) = (ints(), ints());
    let bools = Datum::bools((0..length).map(|_| random.below(2) == 0).collect());
    vec![x, Datum::real(0.75), y, i, j, bools]
}

/// What a run gives, with NaNs all alike.
fn outcome<T>(
    ran: Result<Vec<Datum<T>>, palinode_ir::interp::RunError>,
    primal: fn(T) -> f64,
) -> Result<Vec<Datum<f64>>, RunErrorKind>
where
    T: Copy,
{
    const NAN: f64 = 0.123_456_789;
    let alike = |x: f64| {
        if x.is_nan() {
            NAN
        } else if x == 0.0 && x.is_sign_negative() {
            -1e-320
        } else {
            x
        }
    };
    match ran {
        Ok(out) => Ok(out.iter().map(|datum| datum.map(|x| alike(primal(x)))).collect()),
        Err(error) => Err(error.kind),
    }
}

#[test]
fn runs_and_single_places_agree() {
    let mut random = Random(1);
    let (mut failed, mut done, mut fused) = (0, 0, 0);
    for round in 0..400 {
        let length = random.below(40) + 1;
        let plain = chain(&mut random, length);
        let program = passes::fuse(&plain);
        fused += usize::from(program.functions[0].body.count(|inst| inst.op == Op::Fused) > 0);
        let length = random.of(&[1, 2, 9, 100, 511, 512, 513, 1300]);
        let inputs = inputs(&mut random, length);
        for trap_nonfinite in [false, true] {
            let limits = Limits { trap_nonfinite, ..Limits::default() };
            for program in [&plain, &program] {
                let code = Code::new(program);
                let duals: Vec<Datum<Dual<f64>>> = inputs.iter().map(Datum::lift).collect();
                let expected = outcome(code.run(&duals, &limits), Dual::primal);
                let found = outcome(code.run(&inputs, &limits), |x| x);
                // An error counts as one: it shows what it is by its text.
                let same = match (&found, &expected) {
                    (Err(found), Err(expected)) => found.to_string() == expected.to_string(),
                    _ => found == expected,
                };
                assert!(same, "{round} {trap_nonfinite}\n{program:?}\n{found:?}\n{expected:?}");
                *if found.is_ok() { &mut done } else { &mut failed } += 1;
            }
        }
    }
    assert!(done > 400 && failed > 200 && fused > 300, "{done} {failed} {fused}");
}

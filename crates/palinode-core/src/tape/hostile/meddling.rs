//! A number of the user's own, whose arithmetic calls back into the tape that is calling it, or panics.

use super::{message, tapes_named};
use crate::rules::{Row, functions_by_row};
use crate::{Array, Boundary, Scalar, Tape, Var, custom, custom_rule};
use core::ops::{Add, Div, Mul, Neg, Rem, Sub};
use palinode_num::Constant;
use std::cell::{Cell, RefCell};

/// An `f64` that does something else first.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Meddling(f64);

type Hook = Box<dyn FnMut()>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    /// How many operations go by before the hook runs.
    static AFTER: Cell<usize> = const { Cell::new(0) };
}

fn meddle() {
    if AFTER.get() > 0 {
        AFTER.set(AFTER.get() - 1);
        return;
    }
    let hook = HOOK.with_borrow_mut(Option::take);
    if let Some(mut hook) = hook {
        hook();
    }
}

/// Runs `hook` within the operation after this many, once.
fn hook_after(operations: usize, hook: impl FnMut() + 'static) {
    AFTER.set(operations);
    HOOK.set(Some(Box::new(hook)));
}

macro_rules! operators {
    ($($Trait:ident $op:ident)*) => {$(
        impl $Trait for Meddling {
            type Output = Meddling;
            fn $op(self, other: Meddling) -> Meddling {
                meddle();
                Meddling(self.0.$op(other.0))
            }
        }
    )*};
}
operators!(Add add Sub sub Mul mul Div div Rem rem);

impl Neg for Meddling {
    type Output = Meddling;
    fn neg(self) -> Meddling {
        meddle();
        Meddling(-self.0)
    }
}

impl Meddling {
    fn apply(row: Row, parameter: i32, args: &[Meddling]) -> Meddling {
        meddle();
        Meddling(row.value(parameter, &args.iter().map(|x| x.0).collect::<Vec<_>>()))
    }
}

impl Scalar for Meddling {
    type Bool = bool;
    fn from_int(n: i32) -> Self {
        meddle();
        Meddling(f64::from(n))
    }
    fn constant(name: Constant) -> Self {
        Meddling(<f64 as Scalar>::constant(name))
    }
    fn from_f64(v: f64) -> Self {
        Meddling(v)
    }
    fn glance(self) -> Option<f64> {
        Some(self.0)
    }
    fn less(self, other: Self) -> bool {
        self.0 < other.0
    }
    fn less_eq(self, other: Self) -> bool {
        self.0 <= other.0
    }
    fn equal(self, other: Self) -> bool {
        self.0 == other.0
    }
    fn select(condition: bool, if_true: Self, if_false: Self) -> Self {
        if condition { if_true } else { if_false }
    }
    fn vanishes(self) -> bool {
        meddle();
        self.0 == 0.0
    }
    functions_by_row!();
}

/// Every producer of edges once. `x0 x1 + x2 + (x0 + x1 + x2) + x0 x0 + x1 x2 + 2 x2 + x0 x0 x1 + x1`, as the
/// comments say.
fn program(x: &[Var<Meddling>]) -> Var<Meddling> {
    let mut y = x[0] * x[1] + x[2];
    y += x.iter().sum::<Var<Meddling>>();
    y += Var::dot(&x[..2], &[x[0], x[2]]);
    let twice =
        custom_rule("twice", |outputs: &[Meddling], inputs| inputs[0] = inputs[0] + outputs[0] + outputs[0]);
    y += custom(&x[2..], &[Meddling(2.0 * x[2].value().0)], twice)[0];
    let mut array = Array::from_vars(x);
    array.set(2, array.get(0) * x[0]);
    y += (&array * &array.copied().reversed(0)).get(0) * x[1] / x[0];
    let mut boundary = Boundary::new();
    boundary.begin(x);
    let mut state = [y, x[1]];
    boundary.cross(&mut state);
    state[0] + state[1]
}

const POINT: [Meddling; 3] = [Meddling(2.0), Meddling(3.0), Meddling(5.0)];
/// `x0 x1 + x2 + x0 + x1 + x2 + x0^2 + x1 x2 + 2 x2 + x0^2 x1 + x1` and its gradient.
const VALUE: f64 = 6.0 + 5.0 + 10.0 + 4.0 + 15.0 + 10.0 + 12.0 + 3.0;
const SLOPE: [f64; 3] = [3.0 + 1.0 + 4.0 + 12.0, 2.0 + 1.0 + 5.0 + 4.0 + 1.0, 1.0 + 1.0 + 3.0 + 2.0];

fn check(tape: &mut Tape<Meddling>) {
    check_found(tape.value_and_grad(program, &POINT).unwrap());
}

#[track_caller]
fn check_found((value, slope): (Meddling, Vec<Meddling>)) {
    let slope: Vec<f64> = slope.iter().map(|g| g.0).collect();
    assert_eq!((value.0, slope.as_slice()), (VALUE, SLOPE.as_slice()));
}

/// How many operations a gradient takes.
fn operations(tape: &mut Tape<Meddling>) -> usize {
    const MANY: usize = 1 << 20;
    AFTER.set(MANY);
    check(tape);
    let count = MANY - AFTER.get();
    AFTER.set(0);
    count
}

fn steps(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(if cfg!(miri) { 67 } else { 1 })
}

#[test]
fn arithmetic_that_uses_the_tape_that_calls_it() {
    thread_local! {
        static KEPT: Cell<Option<[Var<Meddling>; 3]>> = const { Cell::new(None) };
    }
    let mut tape = Tape::new();
    let (mut right, mut refused) = (0, 0);
    for after in steps(operations(&mut tape)) {
        hook_after(after, || {
            // At most three nodes more, and a sum that is taken back.
            if let Some([a, b, c]) = KEPT.get() {
                let _ = (a * b + c) * (a + b) + [a, b].iter().sum::<Var<Meddling>>() * c;
            }
        });
        let found = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            let meddled = |x: &[Var<Meddling>]| {
                KEPT.set(Some([x[0], x[1], x[2]]));
                program(x)
            };
            tape.value_and_grad(meddled, &POINT).unwrap()
        }));
        KEPT.set(None);
        HOOK.set(None);
        match found {
            Ok(found) => {
                right += 1;
                check_found(found);
            }
            Err(panic) => {
                refused += 1;
                let said = message("it", || std::panic::resume_unwind(panic));
                assert!(said.contains("being written to") || tapes_named(&said) > 0, "after {after}: {said}");
            }
        }
        check(&mut tape);
    }
    assert!(right > 0 && refused > 0, "{right} {refused}");
}

#[test]
fn arithmetic_that_panics() {
    let mut tape = Tape::new();
    for after in steps(operations(&mut tape)) {
        hook_after(after, || panic!("it panics"));
        let said = message("it", || tape.value_and_grad(program, &POINT));
        assert_eq!(said, "it panics", "after {after}");
        check(&mut tape);
    }
}

#[test]
fn arithmetic_that_records_a_tape_of_its_own() {
    let mut tape = Tape::new();
    for after in steps(operations(&mut tape)) {
        hook_after(after, || check(&mut Tape::new()));
        check(&mut tape);
    }
}

//! Not a peer: counts the active operations of a problem, so that bytes can be given per operation, and so
//! that a tape's exact size can be worked out where its heap holds growth slack.

use crate::functions;
use crate::num::Num;
use crate::problem::Problem;
use std::cell::Cell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Active operations and active operands of one evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations with at least one active operand.
    pub operations: usize,
    /// Active operands of those.
    pub operands: usize,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { operations: 0, operands: 0 }) };
}

/// Counts the operations of one evaluation of a problem.
pub fn count<P: Problem>(p: &P) -> Counts {
    COUNTS.set(Counts::default());
    let inputs: Vec<Tally> = p.inputs().into_iter().map(|value| Tally { value, active: true }).collect();
    p.eval(&inputs);
    COUNTS.get()
}

#[derive(Clone, Copy)]
struct Tally {
    value: f64,
    active: bool,
}

fn record(value: f64, operands: usize) -> Tally {
    if operands > 0 {
        let mut c = COUNTS.get();
        c.operations += 1;
        c.operands += operands;
        COUNTS.set(c);
    }
    Tally { value, active: operands > 0 }
}

impl Tally {
    fn unary(self, value: f64) -> Self {
        record(value, self.active as usize)
    }
}

macro_rules! binary {
    ($($trait:ident $f:ident $op:tt),*) => { $(impl $trait for Tally {
        type Output = Self;
        fn $f(self, o: Self) -> Self {
            record(self.value $op o.value, self.active as usize + o.active as usize)
        }
    })* };
}
binary!(Add add +, Sub sub -, Mul mul *, Div div /);

impl Neg for Tally {
    type Output = Self;
    fn neg(self) -> Self {
        self.unary(-self.value)
    }
}

macro_rules! counted {
    ($x:expr, $name:ident) => {
        $x.unary($x.value.$name())
    };
}

impl Num for Tally {
    functions!(self, counted: sin exp ln tanh sqrt);
    fn cst(value: f64) -> Self {
        Tally { value, active: false }
    }
    fn relu(self) -> Self {
        self.unary(self.value.max(0.0))
    }
    fn pick_max(self, other: Self) -> Self {
        if other.value > self.value { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Logistic, Lorenz, Size};

    #[test]
    fn counts_active_operations_only() {
        let p = Logistic::new(Size::Test);
        let n = p.iterations();
        assert_eq!(count(&p), Counts { operations: 3 * n, operands: 5 * n });
        let p = Lorenz::new(Size::Test);
        assert_eq!(count(&p).operations, 14 * p.iterations() + 5);
    }
}

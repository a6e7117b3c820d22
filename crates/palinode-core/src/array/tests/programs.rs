//! Random programs that write, alias, copy, drop, grow and shrink arrays.
//!
//! Input: a seed. Output: one run of a program, on arrays of the tape or on their model: the same calls on
//! both, because every choice depends on the seed and on shapes only.

use super::model::Lists;
use crate::rules::{
    Add, Binary, Cos, Divide, Exp, Hypot, Logistic, Max, Multiply, Negate, Relu, Sin, Sqrt, Subtract, Tanh,
    Unary,
};
use crate::tape::Var;
use palinode_num::Draws;
use palinode_num::Scalar;

pub(super) const INPUTS: usize = 7;

/// The point that a program runs at.
pub(super) fn point(seed: u64) -> Vec<f64> {
    let mut random = Draws::new(seed ^ 0xA5A5);
    (0..INPUTS).map(|_| random.uniform() * 2.4 - 1.2).collect()
}

const MOST_ARRAYS: usize = 6;
const MOST_ELEMENTS: usize = 40;

struct Run<S, A> {
    random: Draws,
    arrays: Vec<A>,
    numbers: Vec<Var<S>>,
}

/// Runs the program of this seed.
pub(super) fn run<S: Scalar<Bool = bool>, A: Lists<S>>(seed: u64, x: &[Var<S>]) -> [Var<S>; 2] {
    let mut random = Draws::new(seed);
    let steps = 4 + random.below(40);
    let constants = (0..5).map(|_| S::from_f64(random.uniform() - 0.5)).collect();
    let mut run =
        Run { random, arrays: vec![A::from_vars(x), A::from_values(constants)], numbers: x.to_vec() };
    for _ in 0..steps {
        run.step();
    }
    let arrays: Vec<Var<S>> = run.arrays.iter().map(|array| array.map(Tanh {}).sum()).collect();
    let last = run.arrays.last().map(|array| Var::sum_of(&array.to_vars())).unwrap_or(x[0]);
    [Var::sum_of(&arrays) + *run.numbers.last().unwrap_or(&x[0]), last]
}

/// Evaluates an expression with the rule that has this number.
macro_rules! with_rule {
    ($which:expr, |$rule:ident| $body:expr, $($number:pat => $Rule:ident,)*) => {
        match $which {
            $($number => {
                let $rule = $Rule {};
                $body
            })*
        }
    };
}

/// A rule of one argument.
macro_rules! with_unary {
    ($which:expr, |$rule:ident| $body:expr) => {
        with_rule! { $which % 8, |$rule| $body,
            0 => Sin, 1 => Cos, 2 => Tanh, 3 => Relu, 4 => Logistic, 5 => Negate, 6 => Damped, _ => Exp,
        }
    };
}

/// A rule of two arguments.
macro_rules! with_binary {
    ($which:expr, |$rule:ident| $body:expr) => {
        with_rule! { $which % 7, |$rule| $body,
            0 => Add, 1 => Subtract, 2 | 3 => Multiply, 4 => Max, 5 => Hypot, _ => SafeDivide,
        }
    };
}

/// `sqrt(1 + x^2)`: looks at its argument and its result.
#[derive(Clone, Copy)]
struct Damped {}

impl Unary for Damped {
    const NAME: &'static str = "damped";
    fn value<S: Scalar>(self, x: S) -> S {
        Sqrt {}.value(S::one() + x * x)
    }
    fn dx<S: Scalar>(self, x: S, z: S) -> S {
        x / z
    }
}

/// `x / (1 + y^2)`: keeps several arrays, or its partials.
#[derive(Clone, Copy)]
struct SafeDivide {}

impl Binary for SafeDivide {
    const NAME: &'static str = "safe_divide";
    fn value<S: Scalar>(self, x: S, y: S) -> S {
        Divide {}.value(x, S::one() + y * y)
    }
    fn dx<S: Scalar>(self, _x: S, y: S, _z: S) -> S {
        (S::one() + y * y).recip()
    }
    fn dy<S: Scalar>(self, x: S, y: S, z: S) -> S {
        let d = S::one() + y * y;
        -(z * (y + y)) / d + S::zero() * x
    }
}

impl<S: Scalar<Bool = bool>, A: Lists<S>> Run<S, A> {
    fn array(&mut self) -> usize {
        self.random.below(self.arrays.len())
    }

    fn number(&mut self) -> Var<S> {
        match self.random.below(5) {
            0 => Var::lift(S::from_f64(self.random.uniform() - 0.5)),
            _ => {
                let which = self.random.below(self.numbers.len());
                self.numbers[which]
            }
        }
    }

    fn keep_number(&mut self, x: Var<S>) {
        // Bounded, so that programs of any length stay where derivatives can be compared.
        let x = x.tanh();
        self.numbers.push(x);
    }

    /// Keeps a new array, or puts it in the place of another, which is dropped.
    fn keep(&mut self, array: A) {
        let size: usize = array.shape().iter().product();
        if size > MOST_ELEMENTS {
            return;
        }
        if self.arrays.len() < MOST_ARRAYS && self.random.below(3) > 0 {
            self.arrays.push(array);
        } else {
            let which = self.array();
            self.arrays[which] = array;
        }
    }

    fn position(&mut self, shape: &[usize]) -> Option<Vec<usize>> {
        if shape.contains(&0) {
            return None;
        }
        Some(shape.iter().map(|&length| self.random.below(length)).collect())
    }

    /// An array with this shape: another one, a view of a part of one, or a view of the same.
    fn partner(&mut self, which: usize) -> A {
        let shape = self.arrays[which].shape().to_vec();
        let other = self.array();
        let candidate = self.arrays[other].view();
        if candidate.shape() == shape {
            return candidate;
        }
        if let ([wanted], [length]) = (&shape[..], candidate.shape())
            && wanted < length
        {
            let start = self.random.below(length - wanted + 1);
            return candidate.slice_axis(0, start..start + wanted);
        }
        let same = self.arrays[which].view();
        match self.random.below(3) {
            0 if !shape.is_empty() => same.reversed(0),
            1 => same.clone(),
            _ => same,
        }
    }

    fn step(&mut self) {
        match self.random.below(30) {
            0..=4 => self.view(),
            5 => {
                let which = self.array();
                self.keep(self.arrays[which].clone());
            }
            6..=8 => self.read_element(),
            9..=13 => self.write_element(),
            14..=16 => {
                let (which, rule) = (self.array(), self.random.below(8));
                if self.random.below(2) == 0 {
                    self.keep(with_unary!(rule, |r| self.arrays[which].map(r)));
                } else if self.is_small(which) {
                    with_unary!(rule, |r| self.arrays[which].map_in_place(r));
                }
            }
            17..=21 => self.binary(),
            22..=23 => self.reduce(),
            24 => self.product(),
            25 => self.gather_or_scatter(),
            26..=28 => self.change_length(),
            _ => {
                if self.arrays.len() > 1 {
                    let which = self.array();
                    self.arrays.remove(which);
                }
            }
        }
    }

    /// Whether repeated exponentials and products stay small; decided by the sum of squares, which no run
    /// differs in by much.
    fn is_small(&self, which: usize) -> bool {
        self.arrays[which].to_vars().iter().all(|x| x.primal().peek().is_some_and(|x| x.abs() < 3.0))
    }

    fn view(&mut self) {
        let which = self.array();
        let shape = self.arrays[which].shape().to_vec();
        if shape.is_empty() {
            return;
        }
        let axis = self.random.below(shape.len());
        let length = shape[axis];
        let choice = self.random.below(8);
        let array = &self.arrays[which];
        let view = match choice {
            0 | 1 => {
                let start = self.random.below(length + 1);
                let end = start + self.random.below(length + 1 - start);
                array.slice_axis(axis, start..end)
            }
            2 => array.every(axis, 1 + self.random.below(3)),
            3 => array.reversed(axis),
            4 => array.transposed(),
            5 if shape.len() == 2 => array.diagonal(),
            6 if shape.len() == 2 && length > 0 => {
                let position = self.random.below(length);
                array.at(axis, position)
            }
            7 if shape.len() == 1 && length > 1 && length % 2 == 0 => array.reshaped_copy(&[2, length / 2]),
            _ => array.view(),
        };
        self.keep(view);
    }

    fn read_element(&mut self) {
        let which = self.array();
        let shape = self.arrays[which].shape().to_vec();
        if let Some(at) = self.position(&shape) {
            let x = self.arrays[which].get(&at);
            let y = self.number();
            let x = if self.random.below(2) == 0 { x } else { x.sin() * y + x };
            self.keep_number(x);
        }
    }

    fn write_element(&mut self) {
        let which = self.array();
        let shape = self.arrays[which].shape().to_vec();
        let (Some(at), Some(from)) = (self.position(&shape), self.position(&shape)) else { return };
        let y = self.number();
        let array = &mut self.arrays[which];
        match self.random.below(5) {
            0 => array.set(&at, y),
            1 => array.add_at(&at, y),
            2 => array.swap(&at, &from),
            3 => {
                let x = array.get(&from);
                array.set(&at, x.sin() * y.cos() + x * 0.5);
            }
            _ => array.fill(y),
        }
    }

    fn binary(&mut self) {
        let (which, rule) = (self.array(), self.random.below(7));
        let choice = self.random.below(6);
        if !self.is_small(which) {
            return;
        }
        match choice {
            0 => {
                let y = self.number();
                self.keep(with_binary!(rule, |r| self.arrays[which].zip_number(r, y)));
            }
            1 => {
                let y = self.number();
                with_binary!(rule, |r| self.arrays[which].zip_number_in_place(r, y));
            }
            2 => {
                let partner = self.partner(which);
                self.arrays[which].assign(&partner);
            }
            3 => {
                let partner = self.partner(which);
                self.keep(with_binary!(rule, |r| self.arrays[which].zip_with(r, &partner)));
            }
            _ => {
                let partner = self.partner(which);
                with_binary!(rule, |r| self.arrays[which].zip_in_place(r, &partner));
            }
        }
    }

    fn reduce(&mut self) {
        let which = self.array();
        let shape = self.arrays[which].shape().to_vec();
        let choice = self.random.below(5);
        let empty = shape.contains(&0);
        match choice {
            0 => self.keep_number(self.arrays[which].sum()),
            1 if !empty => self.keep_number(self.arrays[which].largest()),
            2 => {
                let partner = self.partner(which);
                self.keep_number(self.arrays[which].dot(&partner));
            }
            3 if !shape.is_empty() => {
                let axis = self.random.below(shape.len());
                self.keep(self.arrays[which].sum_axis(axis).map(Tanh {}));
            }
            4 if !shape.is_empty() && !empty => {
                let axis = self.random.below(shape.len());
                self.keep(self.arrays[which].largest_axis(axis));
            }
            _ => {}
        }
    }

    fn product(&mut self) {
        let which = self.array();
        let array = &self.arrays[which];
        if array.shape().len() == 2 {
            self.keep(array.matmul(&array.transposed()).map(Tanh {}));
        }
    }

    fn gather_or_scatter(&mut self) {
        let which = self.array();
        let [length] = self.arrays[which].shape()[..] else { return };
        let count = self.random.below(length + 1);
        let positions: Vec<usize> = (0..count).map(|_| self.random.below(length)).collect();
        match self.random.below(3) {
            0 => self.keep(self.arrays[which].gather(&positions)),
            1 => {
                let values = self.arrays[which].slice_axis(0, 0..count);
                self.arrays[which].scatter_add(&positions, &values);
            }
            _ => {
                let values = self.arrays[which].slice_axis(0, 0..count);
                let rotated: Vec<usize> = (0..count).map(|k| (k + 1) % length).collect();
                self.arrays[which].scatter(&rotated, &values);
            }
        }
    }

    /// Grows or shrinks a vector. It is made one of its own first: views of what is cut off could not be used
    /// any more.
    fn change_length(&mut self) {
        let which = self.array();
        let mut own = self.arrays[which].clone();
        if !own.is_whole_vector() {
            return;
        }
        match self.random.below(4) {
            0 => {
                for _ in 0..1 + self.random.below(3) {
                    own.push(self.number());
                }
            }
            1 => {
                if let Some(x) = own.pop() {
                    self.keep_number(x);
                }
            }
            2 => {
                // A frontier: shrinks, then grows again over cells that meant something else.
                let len = own.shape()[0];
                own.truncate(len / 2);
                own.push(self.number());
            }
            _ => {
                let other = self.array();
                if self.arrays[other].shape().len() == 1 {
                    own = A::concat(&[&own, &self.arrays[other]]);
                }
            }
        }
        if own.shape()[0] <= MOST_ELEMENTS {
            self.arrays[which] = own;
        }
    }
}

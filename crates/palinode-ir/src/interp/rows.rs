//! Rows of the rule table over runs of plain numbers, by vector instructions.
//!
//! Input: numbers for each argument. Output: the values, bit by bit those of [`Row::value`]: the loops
//! contain the rules of the table themselves, compiled for the instructions of this processor, or call the
//! elementary functions of slices. [`Row::Powi`] and [`Row::StrongMul`] have loops of their own, because what
//! is rare in them keeps a loop from being one of vectors.

use std::sync::LazyLock;

use palinode_core::Scalar;
use palinode_core::elementary::{Function, FunctionOfTwo, Operand};
use palinode_core::machine::{Task, on_this_machine};
use palinode_core::rules::{self, Row, RuleVisitor};

use super::value::Source;
use crate::op::Rule;

/// So many numbers are done at once: they, and what is made of them on the way, stay in the fastest cache.
pub(super) const RUN: usize = 512;

/// The function of slices that a row is.
#[derive(Clone, Copy)]
enum OfSlices {
    One(Function),
    Two(FunctionOfTwo),
}

fn function(row: Row) -> Option<OfSlices> {
    static FUNCTIONS: LazyLock<Vec<Option<OfSlices>>> = LazyLock::new(|| {
        let found = |row: &Row| {
            let one = Function::ALL.iter().find(|function| function.name() == row.name());
            let two = FunctionOfTwo::ALL.iter().find(|function| function.name() == row.name());
            one.map(|&one| OfSlices::One(one)).or(two.map(|&two| OfSlices::Two(two)))
        };
        Row::ALL.iter().map(found).collect()
    });
    // Rows are listed in the order of their numbers.
    FUNCTIONS[row as usize]
}

/// The values for as many arguments as there are places for them, at most [`RUN`].
pub(super) fn values(Rule { row, parameter }: Rule, args: &[Source<'_, f64>], values: &mut [f64]) {
    if let Some(all) = same(args) {
        return values.fill(row.value(parameter, &all[..args.len()]));
    }
    match (function(row), args) {
        (Some(OfSlices::One(function)), &[Source::Many(x)]) => return function.of_slice(x, values),
        (Some(OfSlices::Two(function)), &[x, y]) => {
            return function.of_slices(operand(x), operand(y), values);
        }
        _ => {}
    }
    match (row, args) {
        (Row::Powi, &[Source::Many(x)]) => power(parameter, x, values),
        (Row::StrongMul, _) => {
            values_of(Row::Multiply, 0, args, values);
            // Where no product is NaN, no zero has to win.
            if !on_this_machine(NoneIsNan(values)) {
                let at = |place: usize| [args[0].get(place), args[1].get(place)];
                values.iter_mut().enumerate().for_each(|(place, value)| *value = row.value(0, &at(place)));
            }
        }
        _ => values_of(row, parameter, args, values),
    }
}

/// The arguments, if they are the same for all places.
fn same(args: &[Source<'_, f64>]) -> Option<[f64; 3]> {
    let mut all = [0.0; 3];
    for (one, arg) in all.iter_mut().zip(args) {
        let Source::One(value) = arg else { return None };
        *one = *value;
    }
    Some(all)
}

fn operand(source: Source<'_, f64>) -> Operand<'_> {
    match source {
        Source::One(value) => Operand::Same(value),
        Source::Many(values) => Operand::Each(values),
    }
}

/// Whole powers: those that are a few products each in a loop of its own.
fn power(n: i32, x: &[f64], values: &mut [f64]) {
    macro_rules! fixed {
        ($($n:literal)*) => {
            match n {
                $($n => on_this_machine(OfOne { x, values, f: |x: f64| Scalar::powi(x, $n) }),)*
                n => {
                    let power = |(value, &x): (&mut f64, &f64)| *value = Scalar::powi(x, n);
                    values.iter_mut().zip(x).for_each(power);
                }
            }
        };
    }
    fixed!(2 3 -1)
}

/// The loop of any row; not all arguments are the same for all places.
fn values_of(row: Row, parameter: i32, args: &[Source<'_, f64>], values: &mut [f64]) {
    match *args {
        [Source::Many(x)] => row.visit(parameter, One(x, values)),
        [x, y] => row.visit(parameter, Two(x, y, values)),
        [x, y, w] => {
            let mut room = [[0.0; RUN]; 3];
            let [for_x, for_y, for_w] = &mut room;
            let count = values.len();
            let args = [spread(x, for_x, count), spread(y, for_y, count), spread(w, for_w, count)];
            row.visit(parameter, Three(args, values));
        }
        _ => unreachable!("a row has one to three arguments, which differ somewhere"),
    }
}

/// A number for each place.
fn spread<'a>(source: Source<'a, f64>, room: &'a mut [f64; RUN], count: usize) -> &'a [f64] {
    match source {
        Source::Many(values) => values,
        Source::One(value) => {
            room[..count].fill(value);
            &room[..count]
        }
    }
}

struct OfOne<'a, F> {
    x: &'a [f64],
    values: &'a mut [f64],
    f: F,
}

impl<F: Fn(f64) -> f64> Task for OfOne<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (value, &x) in self.values.iter_mut().zip(self.x) {
            *value = (self.f)(x);
        }
    }
}

struct OfTwo<'a, F> {
    x: Source<'a, f64>,
    y: Source<'a, f64>,
    values: &'a mut [f64],
    f: F,
}

impl<F: Fn(f64, f64) -> f64> Task for OfTwo<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let OfTwo { x, y, values, f } = self;
        match (x, y) {
            (Source::Many(x), Source::Many(y)) => {
                for ((value, &x), &y) in values.iter_mut().zip(x).zip(y) {
                    *value = f(x, y);
                }
            }
            (Source::Many(x), Source::One(y)) => {
                for (value, &x) in values.iter_mut().zip(x) {
                    *value = f(x, y);
                }
            }
            (Source::One(x), Source::Many(y)) => {
                for (value, &y) in values.iter_mut().zip(y) {
                    *value = f(x, y);
                }
            }
            (Source::One(x), Source::One(y)) => values.fill(f(x, y)),
        }
    }
}

struct OfThree<'a, F> {
    args: [&'a [f64]; 3],
    values: &'a mut [f64],
    f: F,
}

impl<F: Fn(f64, f64, f64) -> f64> Task for OfThree<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let OfThree { args: [x, y, w], values, f } = self;
        for (((value, &x), &y), &w) in values.iter_mut().zip(x).zip(y).zip(w) {
            *value = f(x, y, w);
        }
    }
}

struct One<'a>(&'a [f64], &'a mut [f64]);

impl RuleVisitor for One<'_> {
    type Output = ();
    fn visit<R: rules::Rule>(self, rule: R) {
        on_this_machine(OfOne { x: self.0, values: self.1, f: |x| rule.value(&[x]) });
    }
}

struct Two<'a>(Source<'a, f64>, Source<'a, f64>, &'a mut [f64]);

impl RuleVisitor for Two<'_> {
    type Output = ();
    fn visit<R: rules::Rule>(self, rule: R) {
        on_this_machine(OfTwo { x: self.0, y: self.1, values: self.2, f: |x, y| rule.value(&[x, y]) });
    }
}

struct Three<'a>([&'a [f64]; 3], &'a mut [f64]);

impl RuleVisitor for Three<'_> {
    type Output = ();
    fn visit<R: rules::Rule>(self, rule: R) {
        on_this_machine(OfThree { args: self.0, values: self.1, f: |x, y, w| rule.value(&[x, y, w]) });
    }
}

struct NoneIsNan<'a>(&'a [f64]);

impl Task for NoneIsNan<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        // No early end, so that it is a loop of vectors.
        self.0.iter().fold(true, |all, x| all & !x.is_nan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row, with numbers and single values as arguments, has the bits that it has one by one.
    #[test]
    fn runs_have_the_bits_of_single_values() {
        let numbers = [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 7.0, 1e-300, -1e300, 400.0, f64::INFINITY, f64::NAN];
        let count = 3 * RUN / 4;
        let runs: [Vec<f64>; 3] = [1, 5, 7]
            .map(|step| (0..count).map(|at| numbers[at * step / 3 % numbers.len()]).collect::<Vec<_>>());
        let bits = |x: f64| if x.is_nan() { None } else { Some(x.to_bits()) };
        for &row in Row::ALL {
            for parameter in [-1, 0, 2, 3, 5] {
                for single in 0..1_usize << row.arity() {
                    for value in numbers {
                        let args: Vec<Source<'_, f64>> = (0..row.arity())
                            .map(|at| match single >> at & 1 {
                                0 => Source::Many(&runs[at]),
                                _ => Source::One(value),
                            })
                            .collect();
                        let mut found = vec![0.5; count];
                        let rule = Rule { row, parameter };
                        if row == Row::Polygamma && (parameter < 0 || single == 1) {
                            continue;
                        }
                        values(rule, &args, &mut found);
                        for (at, &found) in found.iter().enumerate() {
                            let args: Vec<f64> = args.iter().map(|arg| arg.get(at)).collect();
                            let expected = row.value(parameter, &args);
                            assert_eq!(bits(found), bits(expected), "{row:?} {parameter} {args:?}");
                        }
                    }
                }
            }
        }
    }
}

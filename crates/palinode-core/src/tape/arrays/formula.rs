//! Rows of the rule table on whole arrays.
//!
//! Input: a rule of one, two or three arguments, and a reader per argument. Output: values or partials,
//! element by element. The rule's type is erased here, so that a tape can hold it.
//!
//! Invariant: no formula of a derivative is written here; all come from the rule.

use super::probe::Probe;
use super::view::{View, Walk};
use crate::rules::{Binary, One, Rule, Ternary, Three, Two, Unary};
use palinode_num::Scalar;

/// Reads the elements of one argument in order.
#[derive(Clone, Copy)]
pub(crate) enum Reader<'a, S> {
    /// A number for every element.
    Same(S),
    /// Elements that lie in order.
    Run(&'a [S]),
    /// Elements that do not.
    Strided(&'a [S], &'a View),
}

impl<'a, S: Scalar> Reader<'a, S> {
    pub(crate) fn of(values: &'a [S], view: &'a View) -> Reader<'a, S> {
        if view.is_run() {
            Reader::Run(&values[view.offset..view.offset + view.len()])
        } else {
            Reader::Strided(values, view)
        }
    }

    /// How many elements it has; none if any number fits.
    fn len(&self) -> Option<usize> {
        match self {
            Reader::Same(_) => None,
            Reader::Run(values) => Some(values.len()),
            Reader::Strided(_, view) => Some(view.len()),
        }
    }

    /// The elements; without an end if it is a number.
    pub(crate) fn iter(&self) -> Elements<'a, S> {
        match *self {
            Reader::Same(x) => Elements::Same(x),
            Reader::Run(values) => Elements::Run(values.iter()),
            Reader::Strided(values, view) => Elements::Strided(values, view.walk()),
        }
    }
}

pub(crate) enum Elements<'a, S> {
    Same(S),
    Run(core::slice::Iter<'a, S>),
    Strided(&'a [S], Walk<'a>),
}

impl<S: Scalar> Iterator for Elements<'_, S> {
    type Item = S;
    #[inline]
    fn next(&mut self) -> Option<S> {
        match self {
            Elements::Same(x) => Some(*x),
            Elements::Run(values) => values.next().copied(),
            Elements::Strided(values, walk) => walk.next().map(|cell| values[cell]),
        }
    }
}

/// A rule of any number of arguments, on arrays.
pub(crate) trait Formula<S>: Send + Sync {
    fn name(&self) -> &'static str;
    /// What the partial by this argument looks at; the result counts as the argument after the last.
    fn partial_of(&self, which: usize) -> Probe;
    /// The values. At least one reader must not be a plain number, or there is one element.
    fn values(&self, arguments: &[Reader<'_, S>]) -> Vec<S>;
    /// Overwrites the first argument with the values.
    fn update(&self, first: &mut [S], walk: Walk<'_>, others: &[Reader<'_, S>]);
    /// The partials by this argument; the last reader is that of the result.
    fn partials(&self, which: usize, arguments_and_result: &[Reader<'_, S>]) -> Vec<S>;
    /// Tells the decision hook of every jump that an element is near to.
    fn report_jumps(&self, arguments: &[Reader<'_, S>]);
}

fn probe<R: Rule>(rule: R, which: usize) -> Probe {
    let (arguments, arity) = ([0, 1, 2, 3].map(Probe::Argument), R::USES_Z.len());
    rule.partial(which, &arguments[..arity], arguments[arity])
}

fn length<S: Scalar>(readers: &[Reader<'_, S>]) -> usize {
    readers.iter().find_map(Reader::len).unwrap_or(1)
}

/// Evaluates an expression for every element of some readers.
macro_rules! collect {
    ($readers:expr, |$($x:ident : $k:literal),*| $body:expr) => {{
        let readers = $readers;
        $(let mut $x = readers[$k].iter();)*
        (0..length(readers))
            .map(|_| {
                $(let $x = $x.next().expect("readers of one length");)*
                $body
            })
            .collect()
    }};
}

impl<S: Scalar, R: Unary + Send + Sync> Formula<S> for One<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }
    fn partial_of(&self, which: usize) -> Probe {
        probe(*self, which)
    }
    fn values(&self, arguments: &[Reader<'_, S>]) -> Vec<S> {
        match *arguments {
            // Slices are what the compiler can vectorise.
            [Reader::Run(x)] => x.iter().map(|&x| self.0.value(x)).collect(),
            _ => collect!(arguments, |x: 0| self.0.value(x)),
        }
    }
    fn update(&self, first: &mut [S], walk: Walk<'_>, _others: &[Reader<'_, S>]) {
        match walk {
            Walk::Run(range) => first[range].iter_mut().for_each(|x| *x = self.0.value(*x)),
            walk => walk.for_each(|cell| first[cell] = self.0.value(first[cell])),
        }
    }
    fn partials(&self, _which: usize, given: &[Reader<'_, S>]) -> Vec<S> {
        collect!(given, |x: 0, z: 1| self.0.dx(x, z))
    }
    fn report_jumps(&self, arguments: &[Reader<'_, S>]) {
        for x in arguments[0].iter().take(length(arguments)) {
            crate::decision::rounded_by(self.0, x);
        }
    }
}

impl<S: Scalar, R: Binary + Send + Sync> Formula<S> for Two<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }
    fn partial_of(&self, which: usize) -> Probe {
        probe(*self, which)
    }
    fn values(&self, arguments: &[Reader<'_, S>]) -> Vec<S> {
        match *arguments {
            [Reader::Run(x), Reader::Run(y)] => x.iter().zip(y).map(|(&x, &y)| self.0.value(x, y)).collect(),
            [Reader::Run(x), Reader::Same(y)] => x.iter().map(|&x| self.0.value(x, y)).collect(),
            [Reader::Same(x), Reader::Run(y)] => y.iter().map(|&y| self.0.value(x, y)).collect(),
            _ => collect!(arguments, |x: 0, y: 1| self.0.value(x, y)),
        }
    }
    fn update(&self, first: &mut [S], walk: Walk<'_>, others: &[Reader<'_, S>]) {
        match (walk, &others[0]) {
            (Walk::Run(range), Reader::Run(y)) => {
                first[range].iter_mut().zip(*y).for_each(|(x, &y)| *x = self.0.value(*x, y));
            }
            (Walk::Run(range), &Reader::Same(y)) => {
                first[range].iter_mut().for_each(|x| *x = self.0.value(*x, y));
            }
            (walk, y) => {
                for (cell, y) in walk.zip(y.iter()) {
                    first[cell] = self.0.value(first[cell], y);
                }
            }
        }
    }
    fn partials(&self, which: usize, given: &[Reader<'_, S>]) -> Vec<S> {
        if which == 0 {
            collect!(given, |x: 0, y: 1, z: 2| self.0.dx(x, y, z))
        } else {
            collect!(given, |x: 0, y: 1, z: 2| self.0.dy(x, y, z))
        }
    }
    fn report_jumps(&self, arguments: &[Reader<'_, S>]) {
        for (x, y) in arguments[0].iter().zip(arguments[1].iter()).take(length(arguments)) {
            crate::decision::rounded_by_two(self.0, x, y);
        }
    }
}

impl<S: Scalar, R: Ternary + Send + Sync> Formula<S> for Three<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }
    fn partial_of(&self, which: usize) -> Probe {
        probe(*self, which)
    }
    fn values(&self, arguments: &[Reader<'_, S>]) -> Vec<S> {
        collect!(arguments, |x: 0, y: 1, w: 2| self.0.value(x, y, w))
    }
    fn update(&self, first: &mut [S], walk: Walk<'_>, others: &[Reader<'_, S>]) {
        for (cell, (y, w)) in walk.zip(others[0].iter().zip(others[1].iter())) {
            first[cell] = self.0.value(first[cell], y, w);
        }
    }
    fn partials(&self, which: usize, given: &[Reader<'_, S>]) -> Vec<S> {
        match which {
            0 => collect!(given, |x: 0, y: 1, w: 2, z: 3| self.0.dx(x, y, w, z)),
            1 => collect!(given, |x: 0, y: 1, w: 2, z: 3| self.0.dy(x, y, w, z)),
            _ => collect!(given, |x: 0, y: 1, w: 2, z: 3| self.0.dw(x, y, w, z)),
        }
    }
    fn report_jumps(&self, _arguments: &[Reader<'_, S>]) {}
}

//! Arrays the slow way: a list of `Var`s, a view as a list of cells. What arrays on the tape are compared
//! with.
//!
//! Input: the same calls as on [`Array`]. Output: the same numbers, from a tape that knows single numbers
//! only.

use crate::array::Array;
use crate::rules::{Binary, Differentiable, Unary};
use crate::tape::Var;
use core::ops::Range;
use palinode_num::Scalar;
use std::cell::RefCell;
use std::rc::Rc;

/// What the random programs do with arrays: calls that [`Array`] has under the same names, and others.
macro_rules! lists {
    (made { $($make:ident($made:ident: $Made:ty);)* }
     read { $($read:ident($($r:ident: $R:ty),*) -> $Read:ty;)* }
     written { $($write:ident($($w:ident: $W:ty),*);)* }
     by_rule { $($by:ident<$Rule:ident>($($o:ident: $O:ty)?);)* }
     else { $($other:tt)* }
    ) => {
        pub(super) trait Lists<S: Scalar<Bool = bool>>: Clone {
            $(fn $make($made: $Made) -> Self;)*
            $(fn $read(&self $(, $r: $R)*) -> $Read;)*
            $(fn $write(&mut self $(, $w: $W)*);)*
            $(fn $by<R: $Rule + Send + Sync>(&self, rule: R $(, $o: $O)?) -> Self;)*
            $($other)*
        }

        impl<S: Scalar<Bool = bool>> Lists<S> for Array<S> {
            $(fn $make($made: $Made) -> Self {
                Array::$make($made)
            })*
            $(fn $read(&self $(, $r: $R)*) -> $Read {
                Array::$read(self $(, $r)*)
            })*
            $(fn $write(&mut self $(, $w: $W)*) {
                Array::$write(self $(, $w)*);
            })*
            $(fn $by<R: $Rule + Send + Sync>(&self, rule: R $(, $o: $O)?) -> Self {
                Array::$by(self, rule $(, $o)?)
            })*
            fn is_whole_vector(&self) -> bool {
                Array::shape(self).len() == 1 && self.is_whole()
            }
            fn reshaped_copy(&self, shape: &[usize]) -> Self {
                self.copied().reshaped(shape)
            }
            fn pop(&mut self) -> Option<Var<S>> {
                Array::pop(self)
            }
            fn map_in_place<R: Unary + Send + Sync>(&mut self, rule: R) {
                Array::map_in_place(self, rule);
            }
            fn zip_number<R: Binary + Send + Sync>(&self, rule: R, x: Var<S>) -> Self {
                self.zip_with(rule, x)
            }
            fn zip_in_place<R: Binary + Send + Sync>(&mut self, rule: R, other: &Self) {
                self.zip_with_in_place(rule, other);
            }
            fn zip_number_in_place<R: Binary + Send + Sync>(&mut self, rule: R, x: Var<S>) {
                self.zip_with_in_place(rule, x);
            }
        }
    };
}
lists! {
    made {
        from_vars(vars: &[Var<S>]);
        from_values(values: Vec<S>);
        concat(parts: &[&Self]);
    }
    read {
        shape() -> &[usize];
        view() -> Self;
        slice_axis(axis: usize, range: Range<usize>) -> Self;
        every(axis: usize, step: usize) -> Self;
        at(axis: usize, position: usize) -> Self;
        reversed(axis: usize) -> Self;
        transposed() -> Self;
        diagonal() -> Self;
        get(position: &[usize]) -> Var<S>;
        sum() -> Var<S>;
        sum_axis(axis: usize) -> Self;
        largest() -> Var<S>;
        largest_axis(axis: usize) -> Self;
        dot(other: &Self) -> Var<S>;
        matmul(other: &Self) -> Self;
        gather(positions: &[usize]) -> Self;
        to_vars() -> Vec<Var<S>>;
    }
    written {
        set(position: &[usize], value: Var<S>);
        add_at(position: &[usize], value: Var<S>);
        swap(first: &[usize], second: &[usize]);
        fill(value: Var<S>);
        assign(other: &Self);
        push(value: Var<S>);
        truncate(len: usize);
        scatter(positions: &[usize], values: &Self);
        scatter_add(positions: &[usize], values: &Self);
    }
    by_rule {
        map<Unary>();
        zip_with<Binary>(other: &Self);
    }
    else {
        fn is_whole_vector(&self) -> bool;
        fn reshaped_copy(&self, shape: &[usize]) -> Self;
        fn pop(&mut self) -> Option<Var<S>>;
        fn map_in_place<R: Unary + Send + Sync>(&mut self, rule: R);
        fn zip_number<R: Binary + Send + Sync>(&self, rule: R, x: Var<S>) -> Self;
        fn zip_in_place<R: Binary + Send + Sync>(&mut self, rule: R, other: &Self);
        fn zip_number_in_place<R: Binary + Send + Sync>(&mut self, rule: R, x: Var<S>);
    }
}

/// An array as a list of `Var`s.
pub(super) struct Model<S> {
    store: Rc<RefCell<Vec<Var<S>>>>,
    cells: Vec<usize>,
    shape: Vec<usize>,
}

impl<S: Scalar<Bool = bool>> Model<S> {
    fn new(vars: Vec<Var<S>>, shape: &[usize]) -> Self {
        let cells = (0..vars.len()).collect();
        Model { store: Rc::new(RefCell::new(vars)), cells, shape: shape.to_vec() }
    }

    fn read(&self) -> Vec<Var<S>> {
        let store = self.store.borrow();
        self.cells.iter().map(|&cell| store[cell]).collect()
    }

    fn write(&mut self, vars: Vec<Var<S>>) {
        let mut store = self.store.borrow_mut();
        for (&cell, var) in self.cells.iter().zip(vars) {
            store[cell] = var;
        }
    }

    fn element(&self, position: &[usize]) -> usize {
        position.iter().zip(&self.shape).fold(0, |flat, (&at, &length)| flat * length + at)
    }

    /// The elements whose positions the function picks, in order, in a new shape.
    fn pick(&self, shape: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Self {
        let cells = positions(&shape).iter().map(|at| self.cells[self.element(&from(at))]).collect();
        Model { store: self.store.clone(), cells, shape }
    }

    /// So many positions of an axis, as the function picks them.
    fn pick_along(&self, axis: usize, length: usize, from: impl Fn(usize) -> usize) -> Self {
        let mut shape = self.shape.clone();
        shape[axis] = length;
        self.pick(shape, |at| {
            let mut at = at.to_vec();
            at[axis] = from(at[axis]);
            at
        })
    }

    fn lines(&self, axis: usize) -> (Vec<usize>, Vec<Vec<Var<S>>>) {
        let mut shape = self.shape.clone();
        let length = shape.remove(axis);
        let all = self.read();
        let line = |at: &Vec<usize>| {
            (0..length)
                .map(|k| {
                    let mut position = at.clone();
                    position.insert(axis, k);
                    all[self.element(&position)]
                })
                .collect()
        };
        let lines = positions(&shape).iter().map(line).collect();
        (shape, lines)
    }
}

/// All positions of a shape, in row-major order.
fn positions(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &length in shape {
        all = all.iter().flat_map(|at| (0..length).map(move |k| [at.as_slice(), &[k]].concat())).collect();
    }
    all
}

fn largest_of<S: Scalar<Bool = bool>>(line: &[Var<S>]) -> Var<S> {
    let largest = line.iter().fold(line[0].primal(), |x, y| x.max(y.primal()));
    let tied: Vec<Var<S>> = line.iter().copied().filter(|x| x.primal().equal(largest)).collect();
    let count = tied.len() as f64;
    match tied[..] {
        [only] => only,
        // Their mean may be rounded; what it lacks is a constant.
        _ => {
            let mean = Var::sum_of(&tied) / count;
            mean + Var::lift(largest - mean.primal())
        }
    }
}

impl<S: Scalar<Bool = bool>> Clone for Model<S> {
    fn clone(&self) -> Self {
        Model::new(self.read(), &self.shape)
    }
}

impl<S: Scalar<Bool = bool>> Lists<S> for Model<S> {
    fn from_vars(vars: &[Var<S>]) -> Self {
        Model::new(vars.to_vec(), &[vars.len()])
    }
    fn from_values(values: Vec<S>) -> Self {
        let shape = [values.len()];
        Model::new(values.into_iter().map(Var::lift).collect(), &shape)
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn is_whole_vector(&self) -> bool {
        self.shape.len() == 1 && self.cells.iter().copied().eq(0..self.store.borrow().len())
    }
    fn view(&self) -> Self {
        self.pick(self.shape.clone(), <[usize]>::to_vec)
    }
    fn slice_axis(&self, axis: usize, range: Range<usize>) -> Self {
        self.pick_along(axis, range.len(), |at| at + range.start)
    }
    fn every(&self, axis: usize, step: usize) -> Self {
        self.pick_along(axis, self.shape[axis].div_ceil(step), |at| at * step)
    }
    fn at(&self, axis: usize, position: usize) -> Self {
        let mut shape = self.shape.clone();
        shape.remove(axis);
        self.pick(shape, |at| {
            let mut at = at.to_vec();
            at.insert(axis, position);
            at
        })
    }
    fn reversed(&self, axis: usize) -> Self {
        let length = self.shape[axis];
        self.pick_along(axis, length, |at| length - 1 - at)
    }
    fn transposed(&self) -> Self {
        let shape = self.shape.iter().rev().copied().collect();
        self.pick(shape, |at| at.iter().rev().copied().collect())
    }
    fn diagonal(&self) -> Self {
        self.pick(vec![self.shape[0].min(self.shape[1])], |at| vec![at[0], at[0]])
    }
    fn reshaped_copy(&self, shape: &[usize]) -> Self {
        Model::new(self.read(), shape)
    }
    fn get(&self, position: &[usize]) -> Var<S> {
        self.store.borrow()[self.cells[self.element(position)]]
    }
    fn set(&mut self, position: &[usize], value: Var<S>) {
        let cell = self.cells[self.element(position)];
        self.store.borrow_mut()[cell] = value;
    }
    fn add_at(&mut self, position: &[usize], value: Var<S>) {
        let sum = self.get(position) + value;
        self.set(position, sum);
    }
    fn swap(&mut self, first: &[usize], second: &[usize]) {
        let (x, y) = (self.get(first), self.get(second));
        self.set(first, y);
        self.set(second, x);
    }
    fn fill(&mut self, value: Var<S>) {
        self.write(vec![value; self.cells.len()]);
    }
    fn assign(&mut self, other: &Self) {
        self.write(other.read());
    }
    fn push(&mut self, value: Var<S>) {
        self.cells.push(self.cells.len());
        self.shape[0] += 1;
        self.store.borrow_mut().push(value);
    }
    fn pop(&mut self) -> Option<Var<S>> {
        self.cells.pop()?;
        self.shape[0] -= 1;
        self.store.borrow_mut().pop()
    }
    fn truncate(&mut self, len: usize) {
        self.cells.truncate(len);
        self.shape[0] = self.cells.len();
        self.store.borrow_mut().truncate(self.cells.len());
    }
    fn map<R: Unary + Send + Sync>(&self, rule: R) -> Self {
        Model::new(self.read().into_iter().map(|x| Var::unary(rule, x)).collect(), &self.shape)
    }
    fn map_in_place<R: Unary + Send + Sync>(&mut self, rule: R) {
        self.write(self.map(rule).read());
    }
    fn zip_with<R: Binary + Send + Sync>(&self, rule: R, other: &Self) -> Self {
        let both = self.read().into_iter().zip(other.read());
        Model::new(both.map(|(x, y)| Var::binary(rule, x, y)).collect(), &self.shape)
    }
    fn zip_number<R: Binary + Send + Sync>(&self, rule: R, y: Var<S>) -> Self {
        Model::new(self.read().into_iter().map(|x| Var::binary(rule, x, y)).collect(), &self.shape)
    }
    fn zip_in_place<R: Binary + Send + Sync>(&mut self, rule: R, other: &Self) {
        self.write(self.zip_with(rule, other).read());
    }
    fn zip_number_in_place<R: Binary + Send + Sync>(&mut self, rule: R, x: Var<S>) {
        self.write(self.zip_number(rule, x).read());
    }
    fn sum(&self) -> Var<S> {
        Var::sum_of(&self.read())
    }
    fn sum_axis(&self, axis: usize) -> Self {
        let (shape, lines) = self.lines(axis);
        Model::new(lines.iter().map(|line| Var::sum_of(line)).collect(), &shape)
    }
    fn largest(&self) -> Var<S> {
        largest_of(&self.read())
    }
    fn largest_axis(&self, axis: usize) -> Self {
        let (shape, lines) = self.lines(axis);
        Model::new(lines.iter().map(|line| largest_of(line)).collect(), &shape)
    }
    fn dot(&self, other: &Self) -> Var<S> {
        Var::dot(&self.read(), &other.read())
    }
    fn matmul(&self, other: &Self) -> Self {
        let (rows, columns) = (self.lines(1).1, other.lines(0).1);
        let all = rows.iter().flat_map(|row| columns.iter().map(|column| Var::dot(row, column)));
        Model::new(all.collect(), &[rows.len(), columns.len()])
    }
    fn gather(&self, positions: &[usize]) -> Self {
        let all = self.read();
        Model::new(positions.iter().map(|&at| all[at]).collect(), &[positions.len()])
    }
    fn scatter(&mut self, positions: &[usize], values: &Self) {
        for (&at, x) in positions.iter().zip(values.read()) {
            self.set(&[at], x);
        }
    }
    fn scatter_add(&mut self, positions: &[usize], values: &Self) {
        for (&at, x) in positions.iter().zip(values.read()) {
            self.add_at(&[at], x);
        }
    }
    fn concat(parts: &[&Self]) -> Self {
        let mut shape = parts[0].shape.clone();
        shape[0] = parts.iter().map(|part| part.shape[0]).sum();
        Model::new(parts.iter().flat_map(|part| part.read()).collect(), &shape)
    }
    fn to_vars(&self) -> Vec<Var<S>> {
        self.read()
    }
}

//! Reductions and products of arrays: statements of their own, on arrays in memory.

use palinode_core::rules;

use super::super::form::{Index, Kind, Matrix, Operand, Place, Stmt, Taken};
use super::value::{Arr, Def, Single, Val};
use super::{Lower, Refusal};
use crate::op::{Op, Reduction};
use crate::types::{Elem, Type};

impl Lower<'_> {
    /// A reduction; `None` if it is certain to fail.
    pub(super) fn reduce(
        &mut self,
        kind: Reduction,
        axes: &[u8],
        ty: Type,
        mut args: Vec<Val>,
    ) -> Result<Option<Val>, Refusal> {
        let array = match args.pop().expect("typing: one operand") {
            Val::Single(single) => return Ok(Some(Val::Single(single))),
            other => self.array_of(&other)?,
        };
        if axes.is_empty() {
            return Ok(Some(Val::Array(array)));
        }
        let is_reduced = |axis: usize| axes.contains(&(axis as u8));
        let (reduced, kept): (Vec<usize>, Vec<usize>) =
            (0..array.shape.len()).partition(|&axis| is_reduced(axis));
        let lengths = |axes: &[usize]| axes.iter().map(|&axis| array.shape[axis]).collect::<Vec<usize>>();
        let shape = lengths(&kept);
        let count = shape.iter().product::<usize>();
        let length = lengths(&reduced).into_iter().product::<usize>();
        if length == 0 && count > 0 && kind != Reduction::Sum {
            return Ok(None);
        }
        let first = reduced[0];
        let are_neighbours = reduced.iter().zip(first..).all(|(&axis, expected)| axis == expected);
        // The elements of several axes count in row-major order.
        let (array, outer) = if are_neighbours {
            let outer = lengths(&kept[..first]).into_iter().product();
            (array, outer)
        } else {
            let order: Vec<u8> = kept.iter().chain(&reduced).map(|&axis| axis as u8).collect();
            let Val::Array(turned) = self.permute(&order, vec![Val::Array(array)])? else {
                unreachable!("an array")
            };
            (turned, count)
        };
        let mut from = self.place_of(&Val::Array(array))?;
        if count == 0 {
            return self.made(ty, shape, |_, _| {}).map(Some);
        }
        from.shape = vec![outer, length, count / outer];
        self.made(ty, shape, |lower, to| lower.emit(Stmt::Reduce { kind, from, to })).map(Some)
    }

    /// A product of matrices or vectors; `None` if it is certain to fail.
    pub(super) fn matmul(
        &mut self,
        transposed: [bool; 2],
        strong: bool,
        ty: Type,
        args: Vec<Val>,
    ) -> Result<Option<Val>, Refusal> {
        // A strong product of finite numbers is a product, and others stop a run that traps.
        let strong = strong && !self.form.traps;
        let (a, b) = (self.array_of(&args[0])?, self.array_of(&args[1])?);
        drop(args);
        let ranks = [a.shape.len(), b.shape.len()];
        let inner = a.shape[if transposed[0] { 0 } else { ranks[0] - 1 }];
        if inner != b.shape[if transposed[1] { 1 } else { 0 }] {
            return Ok(None);
        }
        let of_a = |a: Matrix| if transposed[0] { turned(a) } else { a };
        let of_b = |b: Matrix| if transposed[1] { turned(b) } else { b };
        let made = match ranks {
            [1, 1] => {
                let (a, x) = (self.matrix(a)?, self.place_of(&Val::Array(b))?);
                self.made(ty, Vec::new(), |lower, to| lower.emit(Stmt::Dots { strong, a, x, to }))?
            }
            [2, 1] => {
                let (a, x) = (of_a(self.matrix(a)?), self.place_of(&Val::Array(b))?);
                self.made(ty, vec![a.sizes[0]], |lower, to| lower.emit(Stmt::Dots { strong, a, x, to }))?
            }
            [1, 2] => {
                // Every column of the matrix and the vector.
                let (x, a) = (self.place_of(&Val::Array(a))?, turned(of_b(self.matrix(b)?)));
                self.made(ty, vec![a.sizes[0]], |lower, to| lower.emit(Stmt::Dots { strong, a, x, to }))?
            }
            _ => {
                let (a, b) = (of_a(self.matrix(a)?), of_b(self.matrix(b)?));
                self.made(ty, vec![a.sizes[0], b.sizes[1]], |lower, to| {
                    let Taken::Array(to) = to else { unreachable!("a matrix") };
                    lower.emit(Stmt::Product { strong, a, b, to, adds: false });
                })?
            }
        };
        Ok(Some(made))
    }

    /// Outer products added to a matrix, where it is; `None` if that is certain to fail.
    pub(super) fn add_outer(
        &mut self,
        strong: bool,
        ty: Type,
        mut args: Vec<Val>,
    ) -> Result<Option<Val>, Refusal> {
        let strong = strong && !self.form.traps;
        let (y, x) = (self.array_of(&args[2])?, self.array_of(&args[1])?);
        let c = self.array_of(&args[0])?;
        args.clear();
        let (a, b) = (turned(self.matrix(x)?), self.matrix(y)?);
        if a.sizes[1] != b.sizes[0] || *c.shape != [a.sizes[0], b.sizes[1]] {
            return Ok(None);
        }
        let (c, handle) = self.changeable(c, None)?;
        let (_, first) = c.contiguous().expect("what may be changed is in one piece");
        let to = Place { buf: handle.buf, at: first.clone(), shape: c.shape.to_vec() };
        if c.elements() > 0 {
            self.emit(Stmt::Product { strong, a, b, to: to.clone(), adds: true });
            self.finished(to, ty.elem);
        }
        Ok(Some(Val::Array(c)))
    }

    /// An array as a matrix in memory, where it is if its steps are not negative; a vector is a row.
    fn matrix(&mut self, array: Arr) -> Result<Matrix, Refusal> {
        let array = match &array.def {
            Def::Stored { handle, strides, .. }
                if strides.iter().all(|&stride| stride >= 0) && self.stays_in_place(handle) =>
            {
                array
            }
            _ => self.copied(array, None)?,
        };
        let Def::Stored { handle, first, strides } = &array.def else { unreachable!("made so") };
        let (sizes, steps) = match (&array.shape[..], &strides[..]) {
            ([n], [step]) => ([1, *n], [0, *step as usize]),
            ([n, m], [down, along]) => ([*n, *m], [*down as usize, *along as usize]),
            _ => unreachable!("typing: factors have rank 1 or 2"),
        };
        let matrix = Matrix { buf: handle.buf, at: first.clone(), sizes, steps };
        self.hold(handle);
        Ok(matrix)
    }

    /// A new array, or number, of this type that `write` makes; rounded and checked as one operation.
    fn made(
        &mut self,
        ty: Type,
        shape: Vec<usize>,
        write: impl FnOnce(&mut Self, Taken),
    ) -> Result<Val, Refusal> {
        if shape.is_empty() {
            let to = self.register(Kind::Real);
            write(self, Taken::Scalar(to));
            let a = self.rounded(to, ty.elem);
            if self.form.traps {
                self.emit(Stmt::Finite { a });
            }
            return Ok(Val::Single(Single::Real(a)));
        }
        let handle = self.allocate(Kind::Real, shape.iter().product());
        let place = Place::first(handle.buf, shape.clone());
        let array = Arr::whole(ty.elem, shape.into(), handle);
        if array.elements() == 0 {
            return Ok(Val::Array(array));
        }
        write(self, Taken::Array(place.clone()));
        self.finished(place, ty.elem);
        Ok(Val::Array(array))
    }

    /// Rounds what an operation has made if it is of single precision, and checks it.
    fn finished(&mut self, place: Place, elem: Elem) {
        if elem == Elem::F32 {
            let count = place.elements() as i64;
            let counter = self.counter(0, count - 1);
            let (x, to) = (self.register(Kind::Real), self.register(Kind::Real));
            let at = place.at.plus(&Index::reg(counter), 1).expect("an index inside");
            let body = vec![
                Stmt::Load { to: x, buf: place.buf, at: at.clone() },
                Stmt::Round32 { to, a: Operand::Reg(x) },
                Stmt::Store { buf: place.buf, at, from: Operand::Reg(to) },
            ];
            self.emit(Stmt::Each { axes: vec![(counter, 0, count)], body });
        }
        if self.form.traps {
            self.emit(Stmt::AllFinite { place });
        }
    }

    /// The matrix of all products.
    pub(super) fn outer(&mut self, strong: bool, ty: Type, args: Vec<Val>) -> Result<Val, Refusal> {
        let (x, y) = (self.array_of(&args[0])?, self.array_of(&args[1])?);
        drop(args);
        let shape = [x.shape[0], y.shape[0]];
        let mut factors = Vec::new();
        for (axis, factor) in [(0, x), (1, y)] {
            let repeated = self.broadcast(&[axis], vec![Val::Array(factor)], &shape)?;
            factors.push(repeated.expect("its own length"));
        }
        let row = if strong { rules::Row::StrongMul } else { rules::Row::Multiply };
        self.elementwise(&Op::Map(row.into()), ty, factors)
    }
}

fn turned(matrix: Matrix) -> Matrix {
    let ([rows, columns], [down, along]) = (matrix.sizes, matrix.steps);
    Matrix { sizes: [columns, rows], steps: [along, down], ..matrix }
}

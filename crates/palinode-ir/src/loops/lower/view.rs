//! Arrays that are others at other indices: repeated, permuted, reshaped, joined.

use std::rc::Rc;

use super::super::form::Index;
use super::value::{Along, Arr, Def, Val, row_major};
use super::{Lower, Refusal};

impl Lower<'_> {
    /// An array of a scalar or of an array, repeated.
    pub(super) fn broadcast(
        &mut self,
        axes: &[u8],
        mut args: Vec<Val>,
        shape: &[usize],
    ) -> Result<Option<Val>, Refusal> {
        let array = match args.swap_remove(0) {
            Val::Single(single) => return Ok(Some(Val::filled(single, shape))),
            other => self.array_of(&other)?,
        };
        let placed: Vec<usize> = axes.iter().map(|&axis| shape[usize::from(axis)]).collect();
        if *placed != *array.shape {
            return Ok(None);
        }
        let array = if array.is_computed() { self.stored(array, None)? } else { array };
        let of = |axis: usize| axes.iter().position(|&own| usize::from(own) == axis);
        if let Def::Stored { handle, first, strides } = &array.def {
            let strides: Vec<i64> =
                (0..shape.len()).map(|axis| of(axis).map_or(0, |own| strides[own])).collect();
            let def =
                Def::Stored { handle: Rc::clone(handle), first: first.clone(), strides: strides.into() };
            return Ok(Some(Val::Array(Arr { elem: array.elem, shape: shape.into(), def })));
        }
        let along: Vec<Along> = axes
            .iter()
            .map(|&axis| Along { start: Index::constant(0), by: Some((usize::from(axis), 1)) })
            .collect();
        Ok(Some(Val::Array(moved(array, along, shape.into()))))
    }

    pub(super) fn permute(&mut self, axes: &[u8], mut args: Vec<Val>) -> Result<Val, Refusal> {
        let array = match args.swap_remove(0) {
            Val::Single(single) => return Ok(Val::Single(single)),
            Val::Log(log) => return Ok(Val::Log(log)),
            Val::Array(array) => array,
        };
        let array = if array.is_computed() { self.stored(array, None)? } else { array };
        let shape: Rc<[usize]> = axes.iter().map(|&axis| array.shape[usize::from(axis)]).collect();
        if let Def::Stored { handle, first, strides } = &array.def {
            let strides: Rc<[i64]> = axes.iter().map(|&axis| strides[usize::from(axis)]).collect();
            let def = Def::Stored { handle: Rc::clone(handle), first: first.clone(), strides };
            return Ok(Val::Array(Arr { elem: array.elem, shape, def }));
        }
        let of = |own: usize| axes.iter().position(|&axis| usize::from(axis) == own).expect("a permutation");
        let along: Vec<Along> = (0..array.shape.len())
            .map(|own| Along { start: Index::constant(0), by: Some((of(own), 1)) })
            .collect();
        Ok(Val::Array(moved(array, along, shape)))
    }

    pub(super) fn reshape(&mut self, mut args: Vec<Val>, shape: &[usize]) -> Result<Option<Val>, Refusal> {
        let array = match args.swap_remove(0) {
            Val::Single(single) => {
                let is_one = shape.iter().product::<usize>() == 1;
                return Ok(is_one.then(|| Val::filled(single, shape)));
            }
            other => self.array_of(&other)?,
        };
        if array.elements() != shape.iter().product::<usize>() {
            return Ok(None);
        }
        if shape.is_empty() {
            return self.only_element(array).map(Some);
        }
        if let Def::Filled(_) = array.def {
            return Ok(Some(Val::Array(Arr { shape: shape.into(), ..array })));
        }
        let array = if array.contiguous().is_some() { array } else { self.copied(array, None)? };
        let (handle, first) = array.contiguous().expect("it was stored so");
        let def = Def::Stored { handle: Rc::clone(handle), first: first.clone(), strides: row_major(shape) };
        Ok(Some(Val::Array(Arr { elem: array.elem, shape: shape.into(), def })))
    }

    pub(super) fn concat(&mut self, axis: usize, args: Vec<Val>) -> Result<Option<Val>, Refusal> {
        let mut parts = Vec::with_capacity(args.len());
        for arg in &args {
            let array = self.array_of(arg)?;
            parts.push(array);
        }
        drop(args);
        let mut shape = parts[0].shape.to_vec();
        for part in &parts[1..] {
            let fits =
                shape.iter().zip(part.shape.iter()).enumerate().all(|(at, (a, b))| at == axis || a == b);
            if !fits {
                return Ok(None);
            }
            shape[axis] += part.shape[axis];
        }
        let elem = parts[0].elem;
        if let [_] = &parts[..] {
            return Ok(parts.pop().map(Val::Array));
        }
        Ok(Some(Val::Array(Arr {
            elem,
            shape: shape.into(),
            def: Def::Concat { axis, parts: parts.into() },
        })))
    }
}

fn moved(source: Arr, axes: Vec<Along>, shape: Rc<[usize]>) -> Arr {
    Arr { elem: source.elem, shape, def: Def::Moved { source: Rc::new(source), axes: axes.into() } }
}

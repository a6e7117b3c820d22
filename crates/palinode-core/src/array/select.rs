//! Elements by lists of positions: gather and scatter; and arrays put together.
//!
//! Input: arrays and positions. Output: arrays; one entry on the tape each, or one per part of a
//! concatenation.

use super::Array;
use super::buffer::Write;
use crate::tape::Stamp;
use crate::tape::arrays::{Linear, Places, Region, Shape, check_elements};
use core::panic::Location;
use palinode_num::Scalar;

impl<S: Scalar> Array<S> {
    /// The elements at these positions of a vector, in this order; a position may come more than once.
    ///
    /// # Panics
    /// If this has another number of axes than one, or there is no such element.
    #[track_caller]
    pub fn gather(&self, positions: &[usize]) -> Array<S> {
        let cells = self.cells_of("gather", positions);
        let stamp = self.stamp();
        stamp.check();
        let values: Vec<S> = {
            let from = self.buffer.values();
            cells.iter().map(|&cell| from[cell as usize]).collect()
        };
        let shape = [values.len()];
        let from = self.region().map(|region| Region { places: Places::List(cells), ..region });
        Array::moved("gather", values, &shape, stamp, from)
    }

    /// Overwrites the elements at these positions of a vector.
    ///
    /// # Panics
    /// If a position comes twice (which value should win?), the number of values differs, or as
    /// [`Array::gather`].
    #[track_caller]
    pub fn scatter(&mut self, positions: &[usize], values: &Array<S>) {
        let mut sorted = positions.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            panic!("palinode: PAL0101: scatter writes element {} twice; use scatter_add to add up", twice[0]);
        }
        self.scatter_by("scatter", positions, values, true, Location::caller());
    }

    /// Adds to the elements at these positions of a vector; what comes for the same position adds up.
    ///
    /// # Panics
    /// If the number of values differs, or as [`Array::gather`].
    #[track_caller]
    pub fn scatter_add(&mut self, positions: &[usize], values: &Array<S>) {
        self.scatter_by("scatter_add", positions, values, false, Location::caller());
    }

    #[track_caller]
    fn scatter_by(
        &mut self,
        name: &'static str,
        positions: &[usize],
        values: &Array<S>,
        replaces: bool,
        at: &'static Location<'static>,
    ) {
        self.check_writable();
        let cells = self.cells_of(name, positions);
        assert!(
            values.shape() == [positions.len()],
            "palinode: PAL0101: {name} of {} positions takes as many values, not shape {}",
            positions.len(),
            Shape(values.shape())
        );
        let stamp = self.stamp().join(values.stamp());
        stamp.check();
        let given = values.values();
        if values.is_active() {
            self.buffer.activate(stamp);
        }
        self.buffer.prepare_write(Write { by: name, at });
        // They may be a view of this array: see `Buffer::fork_storage`.
        let from = values.region();
        {
            let memory = &mut *self.buffer.memory();
            for (&cell, value) in cells.iter().zip(given) {
                let cell = &mut memory[cell as usize];
                *cell = if replaces { value } else { *cell + value };
            }
        }
        let Some(Region { home, .. }) = self.region() else { return };
        if replaces || from.is_some() {
            let output = Region { home, places: Places::List(cells) };
            self.record(stamp, Linear::moving(name, output, replaces, from));
        }
    }

    #[track_caller]
    fn cells_of(&self, name: &str, positions: &[usize]) -> Vec<u32> {
        self.check_length();
        let [length] = self.shape()[..] else {
            panic!("palinode: PAL0101: {name} needs a vector, not shape {}", Shape(self.shape()))
        };
        let mut cells = Vec::with_capacity(positions.len());
        for &position in positions {
            assert!(
                position < length,
                "palinode: PAL0101: {name} of position {position} of a vector of {length} elements"
            );
            let cell = self.view.offset as isize + position as isize * self.view.strides[0];
            cells.push(cell as u32);
        }
        cells
    }

    /// Arrays one after the other, along the first axis.
    ///
    /// # Panics
    /// If there is none, they differ in other axes than the first, or belong to different tapes.
    #[track_caller]
    pub fn concat(parts: &[&Array<S>]) -> Array<S> {
        let stamp = parts.iter().fold(Stamp::NONE, |stamp, part| stamp.join(part.stamp()));
        stamp.check();
        let Some((first, rest)) = parts.first().and_then(|part| part.shape().split_first()) else {
            panic!("palinode: PAL0101: concat needs at least one array, with at least one axis")
        };
        let mut shape = vec![*first];
        shape.extend(rest);
        for part in &parts[1..] {
            assert!(
                part.shape().split_first().is_some_and(|(_, others)| others == rest),
                "palinode: PAL0101: concat of shapes {} and {}; they may differ in the first axis only",
                Shape(parts[0].shape()),
                Shape(part.shape())
            );
            shape[0] += part.shape()[0];
            check_elements("concat", &shape);
        }
        let values = parts.iter().flat_map(|part| part.values()).collect();
        if !parts.iter().any(|part| part.is_active()) {
            return Array::constant_of(values, &shape);
        }
        let result = Array::active_of(values, &shape, stamp);
        let mut start = 0;
        for part in parts {
            let end = start + part.shape()[0];
            if let Some(from) = part.region() {
                let output = result.slice(start..end).output();
                result.record(stamp, Linear::moving("concat", output, true, Some(from)));
            }
            start = end;
        }
        result
    }
}

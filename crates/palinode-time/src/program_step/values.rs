//! The state, the parameters or the input of a step that is a program: a list of scalars and arrays.

use core::ops::Index;
use palinode_core::{Reals, Sink, Source};
use palinode_ir::interp::{Datum, Tensor};

/// The state, the parameters or the input of a [`ProgramStep`](super::ProgramStep): scalars and arrays, in
/// the order in which the program declares them.
///
/// Integers and truth values are kept and restored, not differentiated by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramValues<S>(Vec<Datum<S>>);

impl<S> ProgramValues<S> {
    pub(super) fn new(data: Vec<Datum<S>>) -> Self {
        ProgramValues(data)
    }

    pub(super) fn data_mut(&mut self) -> &mut [Datum<S>] {
        &mut self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn data(&self) -> &[Datum<S>] {
        &self.0
    }

    /// The real number at a position.
    ///
    /// # Panics
    /// If something else is there, or nothing.
    pub fn real(&self, position: usize) -> S
    where
        S: Copy,
    {
        self.0[position].as_real().unwrap_or_else(|| panic!("value {position} is not a real number"))
    }

    /// The elements of the reals at a position, whatever their shape; the last axis runs fastest.
    ///
    /// # Panics
    /// If integers or truth values are there, or nothing.
    pub fn elements(&self, position: usize) -> &[S] {
        self.0[position].as_vector().unwrap_or_else(|| panic!("value {position} is not made of reals"))
    }
}

impl<S> Index<usize> for ProgramValues<S> {
    type Output = Datum<S>;

    fn index(&self, position: usize) -> &Datum<S> {
        &self.0[position]
    }
}

const REAL: u64 = 0;
const INT: u64 = 1;
const BOOL: u64 = 2;

fn kind_of<S>(datum: &Datum<S>) -> u64 {
    match datum {
        Datum::Real(_) => REAL,
        Datum::Int(_) => INT,
        Datum::Bool(_) => BOOL,
    }
}

/// How many values there are; for each its kind and rank in one word, its lengths, its elements: reals as
/// numbers, the rest as words.
impl<S: Copy> Reals<S> for ProgramValues<S> {
    fn save(&self, to: &mut impl Sink<S>) {
        to.word(self.0.len() as u64);
        for datum in &self.0 {
            let shape = datum.shape();
            to.word(kind_of(datum) | (shape.len() as u64) << 2);
            shape.iter().for_each(|&length| to.word(length as u64));
            match datum {
                Datum::Real(tensor) => to.reals(&tensor.data),
                Datum::Int(tensor) => tensor.data.iter().for_each(|&int| to.word(int as u64)),
                Datum::Bool(tensor) => tensor.data.iter().for_each(|&bool| to.word(u64::from(bool))),
            }
        }
    }

    fn load(from: &mut impl Source<S>) -> Self {
        let count = from.word() as usize;
        let mut data = Vec::with_capacity(count);
        data.extend((0..count).map(|_| load_datum(from)));
        ProgramValues(data)
    }

    fn reload(&mut self, from: &mut impl Source<S>) {
        let count = from.word() as usize;
        self.0.truncate(count);
        for datum in &mut self.0 {
            reload_datum(datum, from);
        }
        let more = count - self.0.len();
        self.0.reserve_exact(more);
        self.0.extend((0..more).map(|_| load_datum(from)));
    }

    fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Datum<S>>() + self.0.iter().map(heap_bytes).sum::<usize>()
    }
}

fn heap_bytes<S>(datum: &Datum<S>) -> usize {
    fn of<T>(tensor: &Tensor<T>) -> usize {
        tensor.shape.capacity() * size_of::<usize>() + tensor.data.capacity() * size_of::<T>()
    }
    match datum {
        Datum::Real(tensor) => of(tensor),
        Datum::Int(tensor) => of(tensor),
        Datum::Bool(tensor) => of(tensor),
    }
}

/// Nothing of a kind.
fn empty<S>(kind: u64) -> Datum<S> {
    fn none<T>() -> Tensor<T> {
        Tensor { shape: Vec::new(), data: Vec::new() }
    }
    match kind {
        REAL => Datum::Real(none()),
        INT => Datum::Int(none()),
        _ => Datum::Bool(none()),
    }
}

fn load_datum<S>(from: &mut impl Source<S>) -> Datum<S> {
    let word = from.word();
    let mut datum = empty(word & 3);
    refill(&mut datum, (word >> 2) as usize, from);
    datum
}

fn reload_datum<S>(datum: &mut Datum<S>, from: &mut impl Source<S>) {
    let word = from.word();
    if kind_of(datum) != word & 3 {
        *datum = empty(word & 3);
    }
    refill(datum, (word >> 2) as usize, from);
}

/// Reads lengths and elements into the memory that is there.
fn refill<S>(datum: &mut Datum<S>, rank: usize, from: &mut impl Source<S>) {
    fn lengths<S>(shape: &mut Vec<usize>, rank: usize, from: &mut impl Source<S>) -> usize {
        words(shape, rank, from, |word| word as usize);
        shape.iter().product()
    }
    fn words<T, S>(data: &mut Vec<T>, count: usize, from: &mut impl Source<S>, of: impl Fn(u64) -> T) {
        data.clear();
        data.reserve_exact(count);
        data.extend((0..count).map(|_| of(from.word())));
    }
    match datum {
        Datum::Real(Tensor { shape, data }) => {
            let count = lengths(shape, rank, from);
            data.truncate(count);
            from.reals(data);
            let more = count - data.len();
            data.reserve_exact(more);
            data.extend((0..more).map(|_| from.real()));
        }
        Datum::Int(Tensor { shape, data }) => {
            let count = lengths(shape, rank, from);
            words(data, count, from, |word| word as i64);
        }
        Datum::Bool(Tensor { shape, data }) => {
            let count = lengths(shape, rank, from);
            words(data, count, from, |word| word != 0);
        }
    }
}

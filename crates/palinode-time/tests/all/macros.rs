//! What the macros write, used.

use palinode_core::{Passive, Plain as _, Real, Reals as _, Snapshot};
use palinode_macros::{Plain, Reals, step};
use palinode_time::{Number, PlainInput, Step};
use std::fmt::Debug;
use std::marker::PhantomData;

fn round_trip<R: palinode_core::Reals<f64> + PartialEq + Debug>(value: R, mut other: R) -> Snapshot {
    let kept = Snapshot::of(&value);
    assert_eq!(kept.loaded::<f64, R>(), value);
    kept.restore(&mut other);
    assert_eq!(other, value);
    kept
}

#[derive(Reals, Debug, PartialEq, Clone)]
struct Named<S> {
    number: S,
    list: Vec<[S; 2]>,
    count: u32,
    label: String,
}

#[derive(Reals, Debug, PartialEq)]
struct Unnamed<S>(S, bool, Option<S>);

#[derive(Reals, Debug, PartialEq)]
struct Empty<S>(PhantomData<S>);

#[derive(Reals, Debug, PartialEq)]
struct Sized<T: Real, const N: usize>
where
    T: Debug,
{
    values: [T; N],
    order: [usize; N],
}

#[derive(Reals, Debug, PartialEq)]
struct Outer<S, T, U = u8> {
    inner: Named<S>,
    pair: (S, T),
    data: Vec<U>,
}

#[derive(Reals, Debug, PartialEq, Clone)]
pub(crate) enum Mode<S> {
    Off,
    Ramp(S, u16),
    Hold { target: Vec<S>, since: i64 },
}

#[derive(Reals, Debug, PartialEq)]
struct Tree<S> {
    value: S,
    children: Vec<Tree<S>>,
}

#[derive(Reals, Debug, PartialEq)]
enum Only<S> {
    One(S),
}

#[derive(Plain, Debug, PartialEq, Clone)]
enum Tag<T, const N: usize> {
    None,
    Some { of: T, and: [u8; N] },
}

#[test]
fn structs_come_back() {
    let named = Named { number: 1.5, list: vec![[1.0, -0.0], [2.0, 3.0]], count: 7, label: "seven".into() };
    let kept = round_trip(named.clone(), Named { number: 0.0, list: vec![], count: 0, label: String::new() });
    assert_eq!((kept.reals().len(), kept.plain().len()), (5, 1 + 1 + 1 + 5));
    assert_eq!(round_trip(Unnamed(1.0, true, None), Unnamed(0.0, false, Some(2.0))).plain(), [1, 0]);
    assert_eq!(round_trip(Empty(PhantomData), Empty(PhantomData)), Snapshot::new());
    round_trip(Sized { values: [1.0, 2.0], order: [1, 0] }, Sized { values: [0.0; 2], order: [9; 2] });
    let outer = |data| Outer { inner: named.clone(), pair: (1.0, vec![2.0]), data };
    round_trip(outer(vec![3_u8, 4]), outer(vec![]));
}

#[test]
fn types_may_contain_themselves() {
    let leaf = |value| Tree { value, children: vec![] };
    round_trip(Tree { value: 1.0, children: vec![leaf(2.0), leaf(3.0)] }, leaf(0.0));
    round_trip(Only::One(1.0), Only::One(2.0));
}

#[test]
fn every_variant_turns_into_every_other() {
    let hold = |target: &[f64]| Mode::Hold { target: target.to_vec(), since: -4 };
    let all = [Mode::Off, Mode::Ramp(0.5, 3), hold(&[1.0, 2.0]), hold(&[])];
    for value in &all {
        for other in &all {
            round_trip(value.clone(), other.clone());
        }
    }
    assert_eq!(Snapshot::of(&all[1]).plain(), [1, 3]);
}

#[test]
fn the_same_shape_keeps_its_memory() {
    let kept = Snapshot::of(&Mode::Hold { target: vec![1.0, 2.0], since: 5 });
    let mut mode = Mode::Hold { target: vec![0.0; 2], since: 0 };
    let Mode::Hold { target, .. } = &mode else { unreachable!() };
    let address = target.as_ptr();
    kept.restore(&mut mode);
    let Mode::Hold { target, since } = &mode else { unreachable!() };
    assert_eq!((target.as_ptr(), *since), (address, 5));

    let named = Named { number: 1.0, list: vec![[1.0; 2]], count: 1, label: "abc".into() };
    let mut other = Named { number: 0.0, list: vec![[0.0; 2]], count: 0, label: "xyz".into() };
    let (list, label) = (other.list.as_ptr(), other.label.as_ptr());
    Snapshot::of(&named).restore(&mut other);
    assert_eq!(other, named);
    assert_eq!((other.list.as_ptr(), other.label.as_ptr()), (list, label));
}

#[test]
fn heap_bytes_are_summed() {
    let named = Named {
        number: 0.0,
        list: Vec::<[f64; 2]>::with_capacity(3),
        count: 0,
        label: String::with_capacity(10),
    };
    assert_eq!(named.heap_bytes(), 3 * 16 + 10);
    assert_eq!(Mode::<f64>::Off.heap_bytes(), 0);
    assert_eq!(Mode::Hold { target: Vec::<f64>::with_capacity(4), since: 0 }.heap_bytes(), 32);
}

#[test]
#[should_panic(expected = "no variant with the number 9")]
fn a_variant_that_does_not_exist_is_named() {
    let _: Mode<f64> = Snapshot::from_words(vec![], vec![9]).loaded();
}

#[test]
fn plain_types_come_back() {
    let some = Tag::Some { of: 'x', and: [1, 2] };
    for (value, other) in [(some.clone(), Tag::None), (Tag::None, some.clone()), (some.clone(), some)] {
        let mut words = Vec::new();
        value.save(&mut |word| words.push(word));
        let mut words = words.into_iter();
        let mut other = other;
        other.reload(&mut || words.next().expect("as many words as were saved"));
        assert_eq!(other, value);
        assert_eq!(words.next(), None);
    }
}

#[test]
fn a_value_is_read_over_another_number() {
    let kept = Snapshot::of(&Mode::Ramp(0.5, 3));
    let Mode::Ramp(number, 3) = kept.loaded::<Passive<f64>, Mode<Passive<f64>>>() else { panic!() };
    assert_eq!(number.primal(), 0.5);
}

#[derive(Reals)]
pub(crate) struct Gains<S> {
    rate: S,
    limits: [S; 2],
}

/// With everything: a struct, parameters, a plain number.
#[step]
pub(crate) fn full<S: Real>(state: &mut Mode<S>, gains: &Gains<S>, dt: f64) {
    match state {
        Mode::Off => *state = Mode::Ramp(gains.limits[0], 1),
        Mode::Ramp(level, _) if *level > gains.limits[1] => {
            *state = Mode::Hold { target: vec![*level], since: 0 }
        }
        Mode::Ramp(level, count) => {
            *level += gains.rate * dt;
            *count += 1;
        }
        Mode::Hold { since, .. } => *since += 1,
    }
}

#[step]
fn alone<S: Real>(x: &mut Vec<S>) {
    x.iter_mut().for_each(|x| *x *= 2.0);
}

#[step]
fn constant<S>(x: &mut (S, [S; 2]), &exponent: &i32)
where
    S: Real,
{
    x.0 += x.1[0].powi(exponent);
}

#[step(Copied)]
fn copied<S: Number>(x: &mut S, factor: S, (): ()) {
    *x *= factor;
}

mod elsewhere {
    #[palinode_macros::step]
    pub(crate) fn qualified<Number: palinode_core::Real>(
        state: &mut [Number; 1],
        params: &[Number; 1],
        input: &(Number, Number),
    ) {
        state[0] = state[0] * params[0] + input.0 * input.1;
    }
}

/// What a driver does: any step, any number.
fn take<T: Step>(
    step: T,
    state: &mut T::State<f64>,
    params: &T::Params<f64>,
    input: &T::Input<f64>,
) -> Vec<f64> {
    let before = Snapshot::of(state);
    let mut passive: T::State<Passive<f64>> = before.loaded();
    step.step(&mut passive, &Snapshot::of(params).loaded(), &Snapshot::of(input).loaded());
    step.step(state, params, input);
    assert_eq!(Snapshot::of(&passive), Snapshot::of(state));
    Snapshot::of(state).reals().iter().map(|&bits| f64::from_bits(bits)).collect()
}

#[test]
fn steps_are_steps() {
    let gains = Gains { rate: 10.0, limits: [1.0, 1.5] };
    let mut mode = Mode::Off;
    let dt = PlainInput(0.1);
    let seen: Vec<_> = (0..4).flat_map(|_| take(full, &mut mode, &gains, &dt)).collect();
    assert_eq!(seen, [1.0, 2.0, 2.0, 2.0]);
    assert_eq!(mode, Mode::Hold { target: vec![2.0], since: 1 });
    full::call(&mut mode, &gains, 0.1);
    assert_eq!(mode, Mode::Hold { target: vec![2.0], since: 2 });

    assert_eq!(take(alone, &mut vec![1.0, 2.0], &(), &()), [2.0, 4.0]);
    assert_eq!(take(constant, &mut (1.0, [3.0, 0.0]), &PlainInput(2), &()), [10.0, 3.0, 0.0]);
    assert_eq!(take(Copied, &mut 3.0, &2.0, &()), [6.0]);
    let mut x = 3.0;
    copied(&mut x, 3.0, ());
    assert_eq!(x, 9.0);
    assert_eq!(take(elsewhere::qualified, &mut [2.0], &[3.0], &(1.0, 4.0)), [10.0]);
}

#[cfg(feature = "nalgebra")]
mod matrices {
    use super::*;
    use nalgebra::{DMatrix, SMatrix, SVector};

    #[derive(Reals, Debug, PartialEq)]
    struct Body<S> {
        at: SVector<S, 3>,
        inertia: DMatrix<S>,
    }

    /// nalgebra's product, so more than a `Real`.
    #[step]
    fn turn<S: Number>(body: &mut Body<S>, by: &SMatrix<S, 3, 3>) {
        body.at = by * body.at;
    }

    #[test]
    fn matrices_are_fields_and_parameters() {
        let body = |at: f64, rows| Body { at: SVector::repeat(at), inertia: DMatrix::identity(rows, 2) };
        round_trip(body(1.0, 3), body(2.0, 1));
        let mut body = Body { at: SVector::from([1.0, 2.0, 3.0]), inertia: DMatrix::zeros(0, 0) };
        assert_eq!(take(turn, &mut body, &SMatrix::from_diagonal_element(2.0), &()), [2.0, 4.0, 6.0]);
    }
}

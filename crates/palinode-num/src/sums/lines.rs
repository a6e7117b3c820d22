//! Many sums side by side: those over the lines of a matrix, place by place.
//!
//! Input: lines, one after another, and perhaps a weight for each. Output: for every place the sum of the
//! lines' elements there, or of their products with the weights, each as the definition in [`super`] says.
//! Neighbouring places share an instruction.

use super::floats::reduced;
use super::{BLOCK, LANES, Tree};
use crate::machine::{Task, on_this_machine};
use crate::scalar::Scalar;
use crate::scalar::order::combined;

/// The sums along the middle axis of `outer` by `length` by `inner` elements: each is that of
/// `data[(o * length + k) * inner + i]` over `k`, and goes to `sums[o * inner + i]`.
///
/// ```
/// use palinode_num::sums::sum_axis;
///
/// let (data, mut sums) = ([1.0, 2.0, 10.0, 20.0, 100.0, 200.0], [0.0; 2]);
/// sum_axis(&data, [1, 3, 2], &mut sums);
/// assert_eq!(sums, [111.0, 222.0]);
/// sum_axis(&data, [2, 3, 1], &mut sums);
/// assert_eq!(sums, [13.0, 320.0]);
/// ```
///
/// # Panics
/// If there are not as many elements or places.
pub fn sum_axis<S: Scalar>(data: &[S], [outer, length, inner]: [usize; 3], sums: &mut [S]) {
    let (elements, places) = (data.len(), sums.len());
    assert_eq!(elements, outer * length * inner, "{elements} elements for {outer} by {length} by {inner}");
    assert_eq!(places, outer * inner, "{places} places for {outer} by {inner} sums");
    if length == 0 || sums.is_empty() {
        return sums.fill(S::zero());
    }
    if inner == 1 && S::IS_FLOAT {
        return on_this_machine(Rows { data, length, sums });
    }
    for (data, sums) in data.chunks(length * inner).zip(sums.chunks_mut(inner)) {
        if let [sum] = sums {
            *sum = S::sum_of(data);
        } else if S::IS_FLOAT {
            on_this_machine(Lines { data, step: inner, count: length, weights: None, sums });
        } else {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = S::sum_over(length, |k| data[k * inner + i]);
            }
        }
    }
}

/// Rows of floats, and where their sums go.
struct Rows<'a, S> {
    data: &'a [S],
    length: usize,
    sums: &'a mut [S],
}

impl<S: Scalar> Task for Rows<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Rows { data, length, sums } = self;
        /// Short rows have their number of additions each, without a loop.
        macro_rules! short {
            ($($length:literal)*) => {
                match length {
                    $($length => {
                        for (row, sum) in data.as_chunks::<$length>().0.iter().zip(sums) {
                            *sum = row_of(row);
                        }
                    })*
                    _ => {
                        for (row, sum) in data.chunks_exact(length).zip(sums) {
                            *sum = reduced(row, row, |x, _| x);
                        }
                    }
                }
            };
        }
        short!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
    }
}

/// The sum of a row of at most two rounds of lanes.
#[inline(always)]
fn row_of<S: Scalar, const LENGTH: usize>(row: &[S; LENGTH]) -> S {
    const { assert!(0 < LENGTH && LENGTH <= 2 * LANES) };
    let mut lanes = [-S::zero(); LANES];
    for (k, &x) in row.iter().enumerate() {
        lanes[k % LANES] = if k < LANES { x } else { lanes[k % LANES] + x };
    }
    combined(&mut lanes[..LENGTH.min(LANES)])
}

/// Lines of floats, and where their sums go.
pub(crate) struct Lines<'a, S> {
    /// Line `k` begins at `k * step` and is as long as `sums`.
    pub(crate) data: &'a [S],
    pub(crate) step: usize,
    pub(crate) count: usize,
    /// One for each line.
    pub(crate) weights: Option<&'a [S]>,
    pub(crate) sums: &'a mut [S],
}

impl<S: Scalar> Task for Lines<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Lines { data, step, count, weights, sums } = self;
        match weights {
            None => all(count, sums, Unweighted { data, step }),
            Some(weights) => {
                all(count, sums, Weighted { lines: Unweighted { data, step }, weights: &weights[..count] });
            }
        }
    }
}

/// What is added up: some places of a line.
trait Terms<S>: Copy {
    fn at<const WIDTH: usize>(self, line: usize, place: usize) -> [S; WIDTH];
}

#[derive(Clone, Copy)]
struct Unweighted<'a, S> {
    data: &'a [S],
    step: usize,
}

impl<S: Scalar> Terms<S> for Unweighted<'_, S> {
    #[inline(always)]
    fn at<const WIDTH: usize>(self, line: usize, place: usize) -> [S; WIDTH] {
        let start = line * self.step + place;
        *self.data[start..].first_chunk().expect("the line goes on so far")
    }
}

#[derive(Clone, Copy)]
struct Weighted<'a, S> {
    lines: Unweighted<'a, S>,
    weights: &'a [S],
}

impl<S: Scalar> Terms<S> for Weighted<'_, S> {
    #[inline(always)]
    fn at<const WIDTH: usize>(self, line: usize, place: usize) -> [S; WIDTH] {
        let weight = self.weights[line];
        let mut terms = self.lines.at::<WIDTH>(line, place);
        for term in &mut terms {
            *term = *term * weight;
        }
        terms
    }
}

/// Some places at a time. The last group may overlap the one before it: its sums are the same.
#[inline(always)]
fn all<S: Scalar, T: Terms<S>>(count: usize, sums: &mut [S], terms: T) {
    if count == 0 {
        sums.fill(S::zero());
        return;
    }
    let mut place = 0;
    macro_rules! places {
        ($width:literal) => {
            while sums.len() - place >= $width {
                sums[place..place + $width].copy_from_slice(&tile::<S, T, $width>(count, place, terms));
                place += $width;
            }
        };
    }
    places!(32);
    if place < sums.len() && sums.len() >= 8 {
        places!(8);
        if place < sums.len() {
            place = sums.len() - 8;
        }
        places!(8);
    }
    places!(1);
}

/// The sums at some places.
#[inline(always)]
fn tile<S: Scalar, T: Terms<S>, const WIDTH: usize>(count: usize, place: usize, terms: T) -> [S; WIDTH] {
    if count <= BLOCK {
        return block(0, count, place, terms);
    }
    let mut tree = Tree::new([S::zero(); WIDTH]);
    for from in (0..count).step_by(BLOCK) {
        tree.push(1, block(from, BLOCK.min(count - from), place, terms), both);
    }
    tree.total(both)
}

#[inline(always)]
fn block<S: Scalar, T: Terms<S>, const WIDTH: usize>(
    from: usize,
    count: usize,
    place: usize,
    terms: T,
) -> [S; WIDTH] {
    let mut lanes = [[S::zero(); WIDTH]; LANES];
    for (k, lane) in lanes.iter_mut().enumerate().take(count) {
        *lane = terms.at(from + k, place);
    }
    let end = from + count;
    for start in (from + LANES..end).step_by(LANES) {
        for (lane, line) in lanes.iter_mut().zip(start..end) {
            *lane = both(*lane, terms.at(line, place));
        }
    }
    let present = count.min(LANES);
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half.min(present.saturating_sub(half)) {
            lanes[lane] = both(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn both<S: Scalar, const WIDTH: usize>(mut a: [S; WIDTH], b: [S; WIDTH]) -> [S; WIDTH] {
    for (a, &b) in a.iter_mut().zip(&b) {
        *a = *a + b;
    }
    a
}

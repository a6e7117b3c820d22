//! Forward perturbations of different levels in one number ([0029](../../../docs/adr/0029-confusion.md)).
//!
//! Input: a forward driver that starts inside another one of the same number. Output: nothing, or an error.
//!
//! A `Dual` does not say which driver its tangent belongs to. Where the closure of an inner driver uses a
//! number of the outer one, its tangent is taken for the inner one's, and what the answer owes to it is lost.
//! Types keep levels apart if every inner driver works on the number of the outer one (`Dual<Dual<f64>>`,
//! with `lift` for what is captured); where two drivers of one number run one inside the other, this looks
//! whether anything is captured: with no tangents of its own, no output may have one, neither at the point
//! nor beside it, to any side.
//!
//! Invariants: a driver that is not inside another one of its number pays for a push and a pop; the runs that
//! look are seen by no scope.
//!
//! Known limits: drivers are known by thread; a number that is carried to another one is not found.

use crate::decision;
use crate::error::Error;
use crate::points::{Distance, moved, scales, weight};
use core::any::{TypeId, type_name};
use core::cell::Cell;
use core::marker::PhantomData;
use palinode_num::Scalar;

/// So many drivers inside one another are known by their number; deeper ones look in any case.
const KNOWN: usize = 16;

thread_local! {
    /// The numbers that the forward drivers which run now have seeded, and how many these are. It needs no
    /// destructor, so it is there in those of other thread-locals.
    static SEEDED: [Cell<Option<TypeId>>; KNOWN] = const { [const { Cell::new(None) }; KNOWN] };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// How far the point is moved to look, relative to its entries.
const BESIDE: f64 = 1.0 / 1024.0;

/// While it lives, a driver has seeded the number `N` on this thread.
#[doc(hidden)]
#[derive(Debug)]
pub struct Seeded<N: 'static> {
    is_nested: bool,
    // It must be dropped on the thread it was made on.
    number: PhantomData<*const N>,
}

impl<N: 'static> Seeded<N> {
    /// A driver begins.
    #[allow(clippy::new_without_default)] // it is a scope, not a value
    pub fn new() -> Self {
        let (id, depth) = (Some(TypeId::of::<N>()), DEPTH.get());
        DEPTH.set(depth + 1);
        let is_nested = SEEDED.with(|seeded| {
            let is_nested = depth >= KNOWN || seeded[..depth].iter().any(|other| other.get() == id);
            if depth < KNOWN {
                seeded[depth].set(id);
            }
            is_nested
        });
        Seeded { is_nested: is_nested && decision::is_verified(), number: PhantomData }
    }

    /// Whether it is inside another driver of its number.
    pub fn is_nested(&self) -> bool {
        self.is_nested
    }

    /// Looks for numbers from outside, if this driver is inside another one of its number: `parts` runs at a
    /// point with no tangents of its own, and gives the derivative parts of what comes out.
    #[inline]
    pub fn check<S: Scalar>(
        &self,
        driver: &'static str,
        x: &[S],
        mut parts: impl FnMut(&[S]) -> Vec<f64>,
    ) -> Result<(), Error> {
        if self.is_nested { look::<N, S>(driver, x, &mut parts) } else { Ok(()) }
    }
}

impl<N: 'static> Drop for Seeded<N> {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

#[cold]
fn look<N, S: Scalar>(
    driver: &'static str,
    x: &[S],
    parts: &mut dyn FnMut(&[S]) -> Vec<f64>,
) -> Result<(), Error> {
    // To both sides, which a kink keeps apart; also all inputs up or down, for what is defined on one side of
    // zero only; and at least so far that a small point is left.
    let ways: [fn(usize) -> f64; 4] = [weight, |i| -weight(i), |i| weight(i).abs(), |i| -weight(i).abs()];
    let leasts: &[f64] = if scales(x).any(|scale| scale < BESIDE) { &[0.0, BESIDE] } else { &[0.0] };
    let distances = leasts.iter().map(|&least| Distance { relative: BESIDE, least });
    let beside = distances.flat_map(|by| ways.map(|way| moved(x, by, way)));
    for point in beside.chain([x.to_vec()]) {
        // A run that panics or is not a number near the point says nothing; at the point it will do so
        // again.
        let Some((found, _)) = decision::beside(0, || parts(&point)) else { continue };
        if found.iter().any(|&part| part != 0.0 && !part.is_nan()) {
            return Err(Error::Confused { driver, number: short_name(type_name::<N>()) });
        }
    }
    Ok(())
}

/// `Dual<f64>` for `palinode_core::dual::Dual<f64>`.
fn short_name(name: &str) -> String {
    name.split_inclusive(['<', '>', ',', ' ']).map(|part| part.rsplit("::").next().unwrap_or(part)).collect()
}

//! What follows a branch on data: a state that takes at least the memory of either side.
//!
//! Input: the states after both sides. Output: one state. An array that is different after the sides is as
//! long as the longer one, and its lengths are bounds from then on. Arrays share memory only where they do
//! after both sides: arrays that could be shared and are not take their memory now instead of when one of
//! them is changed. Of integers that differ the larger one is a bound.
//!
//! Each array may be from another side, so that the bound can be above what any run takes. Keeping the larger
//! side would be no bound at all: which one is larger depends on where the chunks of logs end, and a smaller
//! one may share what is copied later.

use std::rc::Rc;

use crate::fast::FastMap;
use crate::plan::buffers::{Buffer, Ledger, State};
use crate::plan::known::{Id, Thing};

/// Goes on from either state.
pub(super) fn joined(a: &State, b: &State) -> State {
    let mut ledger = Ledger::after_either(&a.ledger, &b.ledger);
    let mut pairs: FastMap<(Option<Id>, Option<Id>), Id> = FastMap::default();
    let mut thing = |a_thing: Thing, b_thing: Thing| match (a_thing.id(), b_thing.id()) {
        (None, None) if a_thing == b_thing => a_thing,
        (None, None) => bounded(a_thing, b_thing),
        (from_a, from_b) => {
            let id = *pairs.entry((from_a, from_b)).or_insert_with(|| {
                let sides = [from_a.map(|id| a.ledger.shared(id)), from_b.map(|id| b.ledger.shared(id))];
                let (either, differs) = match sides {
                    // Neither side has touched it.
                    [Some(a), Some(b)] if Rc::ptr_eq(a, b) => (Rc::clone(a), false),
                    [Some(a), Some(b)] => {
                        (Rc::new(larger(Buffer::clone(a), Buffer::clone(b))), a.born != b.born)
                    }
                    [a, b] => (Rc::clone(a.or(b).expect("one side has it")), true),
                };
                ledger.adopt(either, differs)
            });
            ledger.hold(id);
            Thing::Array(id)
        }
    };
    let mut both = |a: &[Vec<Thing>], b: &[Vec<Thing>]| -> Vec<Vec<Thing>> {
        let lists = a.iter().zip(b);
        lists.map(|(a, b)| a.iter().zip(b).map(|(&a, &b)| thing(a, b)).collect()).collect()
    };
    let (frames, snapshots) = (both(&a.frames, &b.frames), both(&a.snapshots, &b.snapshots));
    State { ledger, frames, snapshots }
}

/// An integer that is one or the other.
fn bounded(a: Thing, b: Thing) -> Thing {
    match (a, b) {
        (Thing::Int(_) | Thing::UpTo(_), Thing::Int(_) | Thing::UpTo(_)) => match (a.most(), b.most()) {
            (Some(a), Some(b)) if a >= 0 && b >= 0 => Thing::UpTo(a.max(b)),
            _ => Thing::Int(None),
        },
        // Only one side has made it, so nothing uses it any more.
        (Thing::Unset, made) => made,
        (made, _) => made,
    }
}

/// An array that is one or the other.
fn larger(a: Buffer, b: Buffer) -> Buffer {
    let same = a.shape == b.shape;
    let longest = |(a, b): (&Option<u64>, &Option<u64>)| a.zip(*b).map(|(a, b)| a.max(b));
    let shape: Vec<Option<u64>> = a.shape.iter().zip(&b.shape).map(longest).collect();
    let ints = a.ints.as_ref().zip(b.ints.as_ref()).and_then(|(a, b)| a.or(b));
    let at_most = a.at_most || b.at_most || !same;
    // What may be in chunks is brought into one buffer later; it grows otherwise than what was made longer.
    let differ = a.made != b.made;
    let uneven = a.uneven || b.uneven || differ;
    let loose = a.loose || b.loose || (differ && (a.in_chunks() || b.in_chunks()));
    let (bytes, beside) = (a.bytes.max(b.bytes), a.beside.max(b.beside));
    let (first, second) = if (b.in_chunks(), b.bytes) > (a.in_chunks(), a.bytes) { (b, a) } else { (a, b) };
    let made = if first.in_chunks() { first.made } else { first.made.max(second.made) };
    Buffer { shape, ints, at_most, made, bytes, beside, uneven, loose, ..first }
}

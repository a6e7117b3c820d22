//! Whether the derivative that was found at a point agrees with the sides.
//!
//! Input: its parts, the log of its comparisons, and sides along one or several directions. Output: nothing, or an error that names a comparison and a part.
//!
//! A part is right if it is that of a side. Where the sides differ there is a kink: a part between them is a convention, as those of the rule table are, unless a comparison is known to
//! be of the point. Then the whole derivative must lie on the way from one side to the other (a norm that is guarded at zero: 0 is between `d` and `-d`), or the part
//! must be one by an input along which no comparison is of the point.

use super::look::named;
use super::side::{End, Scale, Side, is_of_point};
use super::{Charge, Kind, Parts};
use crate::decision::{Log, Suspect};
use crate::error::Error;

/// Both ways along a direction, as far as something could be computed there.
pub(super) type Sides<'a> = [Option<Side<'a>>; 2];

/// What was found at the point.
pub(super) struct Here<'a> {
    pub(super) parts: Vec<f64>,
    pub(super) log: Log,
    /// For the bytes of these.
    pub(super) _charge: Charge<'a>,
    pub(super) of: Kind,
    pub(super) inputs: usize,
    pub(super) epsilon: f64,
}

pub(super) fn known<'s, 'a>(sides: &'s Sides<'a>) -> Vec<&'s Side<'a>> {
    sides.iter().flatten().filter(|side| side.is_known()).collect()
}

impl Here<'_> {
    fn order(&self, part: usize) -> i32 {
        let (parts, order) = self.of;
        let order = match parts {
            Parts::ByInput if part < self.inputs => 1,
            Parts::ByInput | Parts::Along => order.max(1),
            Parts::ByOrder => part + 1,
        };
        order as i32
    }

    fn in_row(&self) -> usize {
        if self.of.0 == Parts::ByInput { self.inputs.max(1) } else { 1 }
    }

    /// The scale of each part: of its own, and of its row.
    fn scales<'s>(&'s self, sides: &'s [&Side<'_>]) -> impl Iterator<Item = Scale> + 's {
        let (count, in_row) = (self.parts.len(), self.in_row());
        (0..count).step_by(in_row).flat_map(move |start| {
            let row = start..(start + in_row).min(count);
            let here = self.parts[row.clone()].iter().fold(0.0, |largest: f64, part| largest.max(part.abs()));
            let largest_of_row =
                sides.iter().fold(here, |largest, side| largest.max(side.largest(row.clone())));
            row.map(move |part| Scale {
                order: self.order(part),
                found: self.parts[part],
                largest_of_row,
                epsilon: self.epsilon,
            })
        })
    }

    /// Whether no comparison is of the point, as seen from these sides.
    pub(super) fn is_ordinary(&self, sides: &Sides<'_>) -> bool {
        let known: Vec<&Side<'_>> = sides.iter().flatten().collect();
        known.len() == 2 && !self.log.suspects.iter().any(|suspect| is_of_point(suspect, &self.log, &known))
    }

    /// Whether all parts lie on the way from one side to the other.
    fn is_on_the_way(&self, sides: &Sides<'_>) -> bool {
        let [Some(one), Some(other)] = sides else { return false };
        let both = [one, other];
        let ends = || {
            let scales = self.scales(&both).enumerate();
            scales.map(|(part, scale)| Some((part, one.end(part, scale)?, other.end(part, scale)?)))
        };
        if ends().any(|ends| ends.is_none()) {
            return false;
        }
        let length = |(_, one, other): &(usize, End, End)| (other.at - one.at).abs();
        let Some((widest, from, to)) = ends().flatten().max_by(|a, b| length(a).total_cmp(&length(b))) else {
            return false;
        };
        let share = (self.parts[widest] - from.at) / (to.at - from.at);
        (0.0..=1.0).contains(&share)
            && ends().flatten().all(|(part, one, other)| {
                let on_the_way = one.at + share * (other.at - one.at);
                (self.parts[part] - on_the_way).abs() <= one.error + other.error
            })
    }
}

/// What all sides together say of a part.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Whether the part is that of a side.
    is_of_side: bool,
    low: f64,
    high: f64,
    ends: u32,
    /// The first two.
    first: [f64; 2],
}

/// The bytes of what is seen of a part.
pub(super) const OF_PART: usize = size_of::<Seen>();

/// What is seen along one direction after the other.
pub(super) struct Verdict {
    seen: Vec<Seen>,
    /// Of each suspicious comparison, whether it goes on neither side as it went, along each direction.
    of_point: Vec<bool>,
    is_on_the_way: bool,
}

impl Verdict {
    /// The bytes of one.
    pub(super) fn bytes(here: &Here<'_>) -> usize {
        here.parts.len() * OF_PART + here.log.suspects.len()
    }

    pub(super) fn new(here: &Here<'_>) -> Self {
        let nothing = Seen {
            is_of_side: false,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            ends: 0,
            first: [f64::NAN; 2],
        };
        let of_point = vec![true; here.log.suspects.len()];
        Verdict { seen: vec![nothing; here.parts.len()], of_point, is_on_the_way: false }
    }

    /// Looks along one direction more.
    pub(super) fn see(&mut self, here: &Here<'_>, sides: &Sides<'_>) {
        let known = known(sides);
        if known.is_empty() {
            return;
        }
        for (of_point, suspect) in self.of_point.iter_mut().zip(&here.log.suspects) {
            *of_point &= is_of_point(suspect, &here.log, &known);
        }
        for (part, scale) in here.scales(&known).enumerate() {
            let seen = &mut self.seen[part];
            for end in known.iter().filter_map(|side| side.end(part, scale)) {
                seen.is_of_side |= end.is(here.parts[part]);
                // Ends of one-sided directions are no interval.
                if known.len() == 2 {
                    seen.low = seen.low.min(end.at - end.error);
                    seen.high = seen.high.max(end.at + end.error);
                }
                if let Some(first) = seen.first.get_mut(seen.ends as usize) {
                    *first = end.at;
                }
                seen.ends += 1;
            }
        }
        self.is_on_the_way |= here.is_on_the_way(sides);
    }

    /// What is wrong with the derivative. A part that lies between the sides may be excused.
    pub(super) fn refusal(
        &self,
        here: &Here<'_>,
        is_excused: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Error> {
        let suspects = &here.log.suspects;
        let of_point: Option<&Suspect> =
            suspects.iter().zip(&self.of_point).find_map(|(suspect, &of_point)| of_point.then_some(suspect));
        self.seen.iter().zip(&here.parts).enumerate().find_map(|(part, (seen, &found))| {
            let is_between = (seen.low..=seen.high).contains(&found);
            let is_right = seen.is_of_side
                || (is_between && (of_point.is_none() || self.is_on_the_way || is_excused(part)));
            if is_right || seen.ends == 0 {
                return None;
            }
            let suspect = of_point.or_else(|| suspects.iter().find(|s| s.is_equality || !s.is_tie()));
            let (decision, left, right) = named(suspect.or(suspects.first()));
            let [one, other] = seen.first;
            Some(Error::OfPoint {
                decision,
                left,
                right,
                part,
                here: found,
                sides: [one, if other.is_nan() { one } else { other }],
            })
        })
    }
}

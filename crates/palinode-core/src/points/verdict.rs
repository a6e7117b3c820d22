//! Whether the derivative that was found at a point agrees with the sides.
//!
//! Input: its parts, the log of its comparisons, and sides along one or several directions. Output: nothing, or an error that names a comparison and a part.
//!
//! A part is right if it is that of a side. Where the sides differ there is a kink: a part between them is a convention, as those of the rule table are, unless a comparison is known to
//! be of the point. Then the whole derivative must lie on the way from one side to the other (a norm that is guarded at zero: 0 is between `d` and `-d`), or the part
//! must be one by an input along which no comparison is of the point.

use super::side::{End, Scale, Side, is_of_point};
use super::{Kind, Parts};
use crate::decision::{Log, Suspect};
use crate::error::Error;

/// Both ways along a direction, as far as something could be computed there.
pub(super) type Sides = [Option<Side>; 2];

/// What was found at the point.
pub(super) struct Here {
    pub(super) parts: Vec<f64>,
    pub(super) log: Log,
    pub(super) of: Kind,
    pub(super) inputs: usize,
    pub(super) epsilon: f64,
}

pub(super) fn known(sides: &Sides) -> Vec<&Side> {
    sides.iter().flatten().filter(|side| side.is_known()).collect()
}

impl Here {
    fn order(&self, part: usize) -> i32 {
        let (parts, order) = self.of;
        let order = match parts {
            Parts::ByInput if part < self.inputs => 1,
            Parts::ByInput | Parts::Along => order.max(1),
            Parts::ByOrder => part + 1,
        };
        order as i32
    }

    /// The scale of each part: of its own, and of its row.
    fn scales(&self, sides: &[&Side]) -> Vec<Scale> {
        let count = self.parts.len();
        let in_row = if self.of.0 == Parts::ByInput { self.inputs.max(1) } else { 1 };
        let of_row = |start: usize| {
            let row = start..(start + in_row).min(count);
            let here = self.parts[row.clone()].iter().fold(0.0, |largest: f64, part| largest.max(part.abs()));
            sides.iter().fold(here, |largest, side| largest.max(side.largest(row.clone())))
        };
        let largest: Vec<f64> = (0..count).step_by(in_row).map(of_row).collect();
        let scale = |part: usize| Scale {
            order: self.order(part),
            found: self.parts[part],
            largest_of_row: largest[part / in_row],
            epsilon: self.epsilon,
        };
        (0..count).map(scale).collect()
    }

    /// The comparison that goes on neither side as it went, along each direction.
    fn of_point(&self, looks: &[Sides]) -> Option<&Suspect> {
        let looks: Vec<Vec<&Side>> = looks.iter().map(known).filter(|known| !known.is_empty()).collect();
        let is_of_point =
            |suspect: &&Suspect| looks.iter().all(|known| is_of_point(suspect, &self.log, known));
        self.log.suspects.iter().find(is_of_point)
    }

    /// Whether no comparison is of the point, as seen from these sides.
    pub(super) fn is_ordinary(&self, sides: &Sides) -> bool {
        let known: Vec<&Side> = sides.iter().flatten().collect();
        known.len() == 2 && !self.log.suspects.iter().any(|suspect| is_of_point(suspect, &self.log, &known))
    }

    /// Whether all parts lie on the way from one side to the other.
    fn is_on_the_way(&self, sides: &Sides) -> bool {
        let [Some(one), Some(other)] = sides else { return false };
        let scales = self.scales(&[one, other]);
        let ends = scales.into_iter().enumerate();
        let ends = ends.map(|(part, scale)| Some((one.end(part, scale)?, other.end(part, scale)?)));
        let Some(ends) = ends.collect::<Option<Vec<_>>>() else { return false };
        let length = |(one, other): &(End, End)| (other.at - one.at).abs();
        let Some(widest) = (0..ends.len()).max_by(|&a, &b| length(&ends[a]).total_cmp(&length(&ends[b])))
        else {
            return false;
        };
        let share = (self.parts[widest] - ends[widest].0.at) / (ends[widest].1.at - ends[widest].0.at);
        (0.0..=1.0).contains(&share)
            && ends.iter().zip(&self.parts).all(|((one, other), found)| {
                let on_the_way = one.at + share * (other.at - one.at);
                (found - on_the_way).abs() <= one.error + other.error
            })
    }

    /// What is wrong with the derivative. A part that lies between the sides may be excused.
    pub(super) fn refusal(
        &self,
        looks: &[Sides],
        is_excused: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Error> {
        let sides: Vec<&Side> = looks.iter().flat_map(known).collect();
        let of_point = self.of_point(looks);
        let mut on_the_way = None;
        let mut is_on_the_way =
            || *on_the_way.get_or_insert_with(|| looks.iter().any(|sides| self.is_on_the_way(sides)));
        self.scales(&sides).into_iter().enumerate().find_map(|(part, scale)| {
            let found = self.parts[part];
            let ends: Vec<End> = sides.iter().filter_map(|side| side.end(part, scale)).collect();
            let low = ends.iter().fold(f64::INFINITY, |low, end| low.min(end.at - end.error));
            let high = ends.iter().fold(f64::NEG_INFINITY, |high, end| high.max(end.at + end.error));
            let is_between = ends.len() > 1 && (low..=high).contains(&found);
            let is_right = ends.iter().any(|end| end.is(found))
                || (is_between && (of_point.is_none() || is_on_the_way() || is_excused(part)));
            if is_right {
                return None;
            }
            let suspects = &self.log.suspects;
            let suspect = of_point.or_else(|| suspects.iter().find(|s| s.is_equality || !s.is_tie()));
            let suspect = suspect.or(suspects.first())?;
            Some(Error::OfPoint {
                decision: suspect.number + 1,
                left: suspect.left,
                right: suspect.right,
                part,
                here: found,
                sides: [ends.first()?.at, ends.get(1).or(ends.first())?.at],
            })
        })
    }
}

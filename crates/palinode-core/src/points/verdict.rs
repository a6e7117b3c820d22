//! Whether the derivative that was found at a point agrees with the sides.
//!
//! Input: its parts, the log of its comparisons, and sides along one or several directions. Output: nothing,
//! or an error that names a comparison and a part.
//!
//! A part is right if it is that of a side. Where the sides differ there is a kink: a part between them is a
//! convention, as those of the rule table are.
//!
//! Some ends are vague: they were taken from far away, or closer to the point another path is taken. Where a
//! part is one and the same number, exactly, on both sides along some direction, vague ends say nothing of
//! it: a wrong part may lie within what they leave open.
//!
//! That is enough unless a comparison is of the point, or may be: one of equality, or with a threshold, that
//! no direction could find again. Then all parts of a function together must be those of one and the same
//! side, or lie on the way from one side to the other (a norm that is guarded at zero: 0 is between `d` and
//! `-d`); apart from those between the sides by inputs along which no comparison is of the point.

use super::side::{End, Scale, Side, is_of_point};
use super::{Charge, Kind, Parts};
use crate::decision::{Log, Suspect};
use crate::error::Error;
use core::ops::Range;

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

/// The number and the operands of a suspicious comparison, as an error names them; none if it was beyond what
/// is logged.
pub(super) fn named(suspect: Option<&Suspect>) -> (usize, f64, f64) {
    suspect.map_or((0, f64::NAN, f64::NAN), |suspect| (suspect.number + 1, suspect.left, suspect.right))
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

    /// The parts of one row after the other.
    fn rows(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        self.rows_of(0..self.parts.len())
    }

    /// The rows of a function: several if it has several orders.
    fn rows_of(&self, function: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let in_row = if self.of.0 == Parts::ByInput { self.inputs.max(1) } else { 1 };
        let end = function.end;
        function.step_by(in_row).map(move |start| start..(start + in_row).min(end))
    }

    /// The parts of one function after the other, all its orders together.
    fn functions(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let count = self.parts.len();
        let of_one = match self.of {
            (Parts::ByInput, 0 | 1) => self.inputs,
            (Parts::Along, _) => 1,
            (Parts::ByInput | Parts::ByOrder, _) => count,
        };
        let of_one = of_one.max(1);
        (0..count).step_by(of_one).map(move |start| start..(start + of_one).min(count))
    }

    /// By which inputs a part of a function is: of a Hessian, by two.
    fn inputs_of(&self, function: &Range<usize>, part: usize) -> impl Iterator<Item = usize> + use<> {
        let (place, inputs) = (part - function.start, self.inputs.max(1));
        let (row, column) = (place / inputs, place % inputs);
        let is_by_two = row > 0 && function.len() == inputs * (inputs + 1);
        [Some(column), is_by_two.then(|| row - 1)].into_iter().flatten()
    }

    /// The scale of each part of a row: of its own, and of the row.
    fn scales_of<'s>(
        &'s self,
        row: Range<usize>,
        sides: &[&Side<'_>],
    ) -> impl Iterator<Item = Scale> + use<'s> {
        let here = self.parts[row.clone()].iter().fold(0.0, |largest: f64, part| largest.max(part.abs()));
        let largest_of_row = sides.iter().fold(here, |largest, side| largest.max(side.largest(row.clone())));
        row.map(move |part| Scale {
            order: self.order(part),
            found: self.parts[part],
            largest_of_row,
            epsilon: self.epsilon,
        })
    }

    /// Whether a nearer run to this side may tell more.
    pub(super) fn is_unsure(&self, side: &Side<'_>) -> bool {
        side.is_unsure(self.rows().flat_map(|row| self.scales_of(row, &[side])))
    }

    /// Whether no comparison is of the point, as seen from these sides. One that may be, and cannot be found
    /// again by its number, must still be made of the same numbers.
    pub(super) fn is_ordinary(&self, sides: &Sides<'_>) -> bool {
        let known: Vec<&Side<'_>> = sides.iter().flatten().collect();
        let is_ordinary = |suspect: &Suspect| match is_of_point(suspect, &self.log, &known) {
            Some(is_of_point) => !is_of_point,
            None => {
                !suspect.may_be_of_point() || known.iter().any(|side| side.still_makes(suspect, &self.log))
            }
        };
        known.len() == 2 && self.log.suspects.iter().all(is_ordinary)
    }
}

/// What all sides together say of a part.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Of which sides the part is, and on the way of which directions it lies: a bit for each, three for a
    /// direction.
    agrees: u32,
    /// Which of these are known from vague ends only.
    vaguely: u32,
    /// What lies between the ends of a direction: of those that are not vague, and of all.
    between: [Interval; 2],
    /// Whether both ends of a direction are the same number, and not vague.
    is_smooth: bool,
    ends: u32,
    /// The first two.
    first: [f64; 2],
}

/// The bytes of what is seen of a part.
pub(super) const OF_PART: usize = size_of::<Seen>();

/// The sides of all directions.
const SIDES: u32 = 0o33_333_333_333;

/// From the least to the largest.
#[derive(Clone, Copy, Debug)]
struct Interval(f64, f64);

impl Interval {
    fn take(&mut self, end: End) {
        *self = Interval(self.0.min(end.at - end.error), self.1.max(end.at + end.error));
    }
}

/// Whether vague ends count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Vague {
    /// Not at all: if that is enough, no other direction has to be asked.
    Never,
    /// For parts that no direction shows to be smooth.
    AtKinks,
}

impl Seen {
    fn see(&mut self, (end, is_vague): (End, bool), found: f64, bit: u32) {
        self.agree(end.is(found), is_vague, bit);
        if let Some(first) = self.first.get_mut(self.ends as usize) {
            *first = end.at;
        }
        self.ends += 1;
    }

    fn agree(&mut self, does: bool, is_vague: bool, bit: u32) {
        self.agrees |= u32::from(does) << bit;
        self.vaguely |= u32::from(is_vague) << bit;
    }

    fn ignores_vague(&self, vague: Vague) -> bool {
        vague == Vague::Never || self.is_smooth
    }

    /// What agrees, a bit for each.
    fn agreeing(&self, vague: Vague) -> u32 {
        if self.ignores_vague(vague) { self.agrees & !self.vaguely } else { self.agrees }
    }

    /// With which sides the part may go together with others. A vague end says nothing, so it does not part
    /// it from them either, if a clear end agrees with the part.
    fn going_with(&self, vague: Vague) -> u32 {
        let agreeing = self.agreeing(vague);
        if agreeing & SIDES == 0 { agreeing } else { self.agrees }
    }

    fn is_between(&self, found: f64, vague: Vague) -> bool {
        let Interval(low, high) = self.between[usize::from(!self.ignores_vague(vague))];
        (low..=high).contains(&found)
    }
}

/// What is seen along one direction after the other.
pub(super) struct Verdict {
    seen: Vec<Seen>,
    /// Of each suspicious comparison, whether it goes on neither side as it went, along each direction that
    /// can tell.
    of_point: Vec<Option<bool>>,
    directions: u32,
}

impl Verdict {
    /// The bytes of one.
    pub(super) fn bytes(here: &Here<'_>) -> usize {
        here.parts.len() * OF_PART + here.log.suspects.len()
    }

    pub(super) fn new(here: &Here<'_>) -> Self {
        let nothing = Seen {
            agrees: 0,
            vaguely: 0,
            between: [Interval(f64::INFINITY, f64::NEG_INFINITY); 2],
            is_smooth: false,
            ends: 0,
            first: [f64::NAN; 2],
        };
        let of_point = vec![None; here.log.suspects.len()];
        Verdict { seen: vec![nothing; here.parts.len()], of_point, directions: 0 }
    }

    /// Looks along one direction more.
    pub(super) fn see(&mut self, here: &Here<'_>, sides: &Sides<'_>) {
        let known = known(sides);
        if known.is_empty() {
            return;
        }
        for (of_point, suspect) in self.of_point.iter_mut().zip(&here.log.suspects) {
            if *of_point != Some(false) {
                *of_point = is_of_point(suspect, &here.log, &known).or(*of_point);
            }
        }
        let bit = 3 * self.directions;
        self.directions += 1;
        let ends_of = |row: Range<usize>| {
            let of_part = |(part, scale): (usize, Scale)| {
                let end = |side: &Side<'_>| side.end(part, scale).map(|end| (end, end.is_vague(&scale)));
                (part, sides.each_ref().map(|side| end(side.as_ref()?)))
            };
            row.clone().zip(here.scales_of(row, &known)).map(of_part)
        };
        for function in here.functions() {
            let ends = || here.rows_of(function.clone()).flat_map(ends_of);
            let share = share(&here.parts, ends().map(|(part, ends)| (part, ends.map(|end| Some(end?.0)))));
            for (part, ends) in ends() {
                let (seen, found) = (&mut self.seen[part], here.parts[part]);
                for (end, bit) in ends.iter().zip(bit..) {
                    end.iter().for_each(|&end| seen.see(end, found, bit));
                }
                // Ends of one-sided directions are no interval.
                let [Some((one, one_is_vague)), Some((other, other_is_vague))] = ends else { continue };
                let is_vague = one_is_vague || other_is_vague;
                for between in &mut seen.between[usize::from(is_vague)..] {
                    between.take(one);
                    between.take(other);
                }
                seen.is_smooth |= !is_vague && (one.at - other.at).abs() <= one.error + other.error;
                let is_on_the_way = share.is_some_and(|share| {
                    let on_the_way = one.at + share * (other.at - one.at);
                    (found - on_the_way).abs() <= one.error + other.error
                });
                seen.agree(is_on_the_way, is_vague, bit + 2);
            }
        }
    }

    /// What is wrong with the derivative. A part that lies between the sides may be excused, if all those of
    /// these inputs are.
    pub(super) fn refusal(
        &self,
        here: &Here<'_>,
        vague: Vague,
        are_excused: &mut dyn FnMut(Vec<usize>) -> bool,
    ) -> Option<Error> {
        let suspects = &here.log.suspects;
        let each = || suspects.iter().zip(&self.of_point);
        let known = each().find(|(_, of_point)| **of_point == Some(true));
        let unsettled = || each().find(|(suspect, of_point)| of_point.is_none() && suspect.may_be_of_point());
        let of_point = known.or_else(unsettled).map(|(suspect, _)| suspect);
        let wrong = match of_point {
            None => (0..here.parts.len()).find(|&part| !self.is_usual(here, part, vague)),
            Some(_) => here.functions().find_map(|parts| self.wrong_part(here, parts, vague, are_excused)),
        };
        wrong.map(|part| {
            let suspect = of_point.or_else(|| suspects.iter().find(|suspect| suspect.may_be_of_point()));
            let (decision, left, right) = named(suspect.or(suspects.first()));
            let [one, other] = self.seen[part].first;
            let sides = [one, if other.is_nan() { one } else { other }];
            Error::OfPoint { decision, left, right, part, here: here.parts[part], sides }
        })
    }

    /// Whether a part is that of a side, or a convention at a kink.
    fn is_usual(&self, here: &Here<'_>, part: usize, vague: Vague) -> bool {
        let seen = &self.seen[part];
        seen.ends == 0 || seen.agreeing(vague) & SIDES != 0 || seen.is_between(here.parts[part], vague)
    }

    /// A part of a function that does not go with the others, if a comparison is of the point: no side has
    /// all of them, and they are on no way from one to the other.
    fn wrong_part(
        &self,
        here: &Here<'_>,
        function: Range<usize>,
        vague: Vague,
        are_excused: &mut dyn FnMut(Vec<usize>) -> bool,
    ) -> Option<usize> {
        if let Some(wrong) = function.clone().find(|&part| !self.is_usual(here, part, vague)) {
            return Some(wrong);
        }
        let disagree = |bit: u32| {
            function.clone().filter(move |&part| {
                self.seen[part].ends > 0 && self.seen[part].going_with(vague) >> bit & 1 == 0
            })
        };
        // Those with the fewest to excuse first.
        let mut bits: Vec<u32> = (0..3 * self.directions).collect();
        bits.sort_by_key(|&bit| disagree(bit).count());
        let is_right = |&bit: &u32| {
            let count = disagree(bit).count();
            let mut may_be =
                disagree(bit).filter(|&part| self.seen[part].is_between(here.parts[part], vague));
            count == 0
                || (may_be.by_ref().count() == count && {
                    let mut inputs = Vec::with_capacity(count);
                    inputs.extend(disagree(bit).flat_map(|part| here.inputs_of(&function, part)));
                    inputs.sort_unstable();
                    inputs.dedup();
                    are_excused(inputs)
                })
        };
        if bits.iter().any(is_right) { None } else { disagree(bits[0]).next() }
    }
}

/// How far on the way from one side to the other the part is that changes most, in its errors. None if there
/// is no such way.
fn share(found: &[f64], ends: impl Iterator<Item = (usize, [Option<End>; 2])>) -> Option<f64> {
    let mut widest: Option<(f64, usize, End, End)> = None;
    for (part, ends) in ends {
        let [Some(one), Some(other)] = ends else { return None };
        let width = (other.at - one.at).abs() / (one.error + other.error).max(f64::MIN_POSITIVE);
        if widest.is_none_or(|(widest, ..)| width > widest) {
            widest = Some((width, part, one, other));
        }
    }
    let (_, part, from, to) = widest?;
    Some((found[part] - from.at) / (to.at - from.at)).filter(|share| (0.0..=1.0).contains(share))
}

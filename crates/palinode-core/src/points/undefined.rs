//! What is infinite or NaN at a point, because of how a comparison goes there.
//!
//! Input: a derivative as a function of the point, which failed there. Output: the derivative as plain
//! numbers find it, looked at from both sides; an error that names a comparison, if it goes as it does at the
//! point only and all is finite beside it; or what it was.
//!
//! A zero that carries a derivative says that it is not zero (`carries_derivative` in `number.rs` and
//! `tape/carry.rs`), and code that asked divides by it: a zero pivot, a column without length. Plain numbers
//! take another way there, and the function has a value.

use super::look::{charge_of, found_beside, nearest, once_more};
use super::side::{Found, Side, is_of_point};
use super::verdict::named;
use super::{Account, Kind, Run, has_small, look, matters, moved, weight};
use crate::decision::{self, Suspicion};
use crate::error::Error;
use palinode_num::Scalar;

/// How much farther away is looked to see whether something grows without end towards the point, and by how
/// much it may grow.
const FAR: f64 = 16.0;
const GROWTH: f64 = 2.0;

/// The derivative with the answers of plain numbers, if there is one. Where it is a short cut, that is found
/// as everywhere.
#[cold]
pub(super) fn plainly<S: Scalar, R, E: From<Error>>(
    account: &Account,
    x: &[S],
    of: Kind,
    run: &mut Run<'_, S, R, E>,
) -> Result<R, E> {
    decision::plainly(|| {
        let again = || decision::suspecting(|| decision::attempt(|| run(x, None)));
        let (ran, noted) = decision::uncounted(again);
        match ran {
            Ok(Ok(_)) if !noted.is_undefined && matters(noted.suspicion, || has_small(x)) => {
                Some(look::examine(account, x, of, run))
            }
            Ok(Ok(result)) if !noted.is_undefined => Some(Ok(result)),
            _ => None,
        }
    })
    .unwrap_or_else(|| explained(account, x, run))
}

/// The comparison that is to blame, or the run's own error on plain numbers, so that nobody is asked to
/// stay inside a domain that they are in.
#[cold]
pub(super) fn explained<S: Scalar, R, E: From<Error>>(
    account: &Account,
    x: &[S],
    run: &mut Run<'_, S, R, E>,
) -> Result<R, E> {
    account.refused();
    decision::plainly(|| {
        let blamed = if decision::is_looked_for() { blamed(account, x, run) } else { None };
        // What is beyond the budget is not explained.
        account.refused();
        blamed.map_or_else(|| once_more(x, run), |error| Err(error.into()))
    })
}

/// A comparison that goes on neither side as at the point, if all is finite on both sides and does not grow
/// towards the point.
fn blamed<S: Scalar, R, E: From<Error>>(
    account: &Account,
    x: &[S],
    run: &mut Run<'_, S, R, E>,
) -> Option<Error> {
    let budget = account.of_log();
    let ran = decision::logged(budget, || decision::attempt(|| drop(run(x, None))));
    account.run_is_over();
    let (_, mut here) = ran?;
    if !has_small(x) {
        here.suspects.retain(|suspect| suspect.suspicion == Suspicion::Exact);
    }
    let _charge = charge_of(account, &Vec::new(), &here, budget)?;
    let at = nearest::<S>(&here);
    let ways: [fn(usize) -> f64; 2] = [weight, |i| weight(i).abs()];
    ways.into_iter().find_map(|way| {
        let mut side = |sign: f64| {
            let [near, far] = [at, at.times(FAR)].map(|at| {
                let point = moved(x, at, |i| sign * way(i));
                let found = found_beside(account, |parts| run(&point, Some(parts)).is_ok())?;
                found.parts.iter().all(|part| part.is_finite()).then_some(found)
            });
            let largest =
                |found: &Found<'_>| found.parts.iter().fold(0.0, |most: f64, part| most.max(part.abs()));
            let (near, far) = (near?, far?);
            let stays = largest(&near) <= GROWTH * largest(&far) + f64::EPSILON.sqrt();
            stays.then(|| Side::of(far, at.relative, &here))
        };
        let sides = [side(1.0)?, side(-1.0)?];
        let is_to_blame = |suspect: &&_| is_of_point(suspect, &here, &[&sides[0], &sides[1]]) == Some(true);
        let (decision, left, right) = named(Some(here.suspects.iter().find(is_to_blame)?));
        Some(Error::UndefinedAtPoint { decision, left, right })
    })
}

//! Every row of the rule table, in every number type and mode, against the arbitrary-precision reference.

use crate::bounded::Bounded;
use crate::check::{FirstOrder, Lifted, OfRule, Report, against_reference, promises};
use crate::leaf::Leaf;
use crate::reference::{NO_PARAMETER, Sample, names, samples};
use palinode_core::rules::Row;
use palinode_core::{DoubleDouble, Key, Posit8};
#[cfg(long)]
use palinode_core::{Posit16, Posit32, Posit64};

/// So many comparisons that say something, of each operation and each order of derivative at least, in every
/// number.
const FEWEST_TELLING: usize = 12;

/// Samples for numbers of few bits, which hold little of the reference: arguments between 1/4 and 4, of both
/// signs.
pub(crate) fn samples_next_to_one(op: &Row) -> impl Iterator<Item = Sample> {
    let (all, key) = (samples(op.name()), Key::from_seed(41));
    (0..200).map(move |i| {
        let like = &all[i % all.len()];
        let number = |k: usize| {
            let at = (i * 4 + k) as u64;
            (4.0 * key.uniform(at) - 2.0).exp2() * key.split(1).rademacher(at)
        };
        let args = (0..like.args.len()).map(number).collect();
        Sample { args, region: "next to one".into(), ..like.clone() }
    })
}

fn whole_table<S: Leaf>() {
    let mut report = Report::default();
    for op in Row::ALL {
        let mut against = |sample: &Sample| {
            against_reference(&Lifted::<S>::of_row(*op, sample.parameter), sample, &mut report);
        };
        samples(op.name()).iter().for_each(&mut against);
        if S::ROUNDS_ARGUMENTS {
            samples_next_to_one(op).for_each(|sample| against(&sample));
        }
    }
    println!(
        "worst errors in ulp (see budget.rs for what they are measured against)\n{}",
        report.table(S::NAME)
    );
    report.expect_clean();
    let orders =
        Row::ALL.iter().flat_map(|op| [0, 1, 2].map(|order| (S::NAME, op.name().to_string(), order)));
    let telling = orders.map(|key| (report.telling.get(&key).copied().unwrap_or(0), key));
    let few: Vec<_> = telling.filter(|(telling, _)| *telling < FEWEST_TELLING).collect();
    assert!(few.is_empty(), "too few comparisons that could fail: {few:?}");
}

#[test]
fn every_row_has_samples_and_every_sample_a_row() {
    let without: Vec<&str> =
        Row::ALL.iter().map(|op| op.name()).filter(|name| samples(name).len() < 20).collect();
    assert!(
        without.is_empty(),
        "rows of the rule table without 20 reference samples: {without:?}; add them to reference/points.py"
    );
    let unknown: Vec<&str> = names().filter(|name| Row::named(name).is_none()).collect();
    assert!(unknown.is_empty(), "reference samples without a row in the rule table: {unknown:?}");
    for op in Row::ALL {
        let arity = samples(op.name())[0].args.len();
        assert_eq!(op.arity(), arity, "{}: arguments in the table and in the reference", op.name());
    }
}

#[test]
fn f32_against_the_reference() {
    whole_table::<f32>();
}

#[test]
fn f64_against_the_reference() {
    whole_table::<f64>();
}

#[test]
fn double_double_against_the_reference() {
    whole_table::<DoubleDouble>();
}

#[test]
fn posits_against_double_double() {
    whole_table::<Bounded<i8>>();
}

/// Compiling the table for a number takes half a minute: the other widths wait for `RUSTFLAGS="--cfg long"`.
#[cfg(long)]
#[test]
fn posits_of_every_width_against_double_double() {
    whole_table::<Bounded<i16>>();
    whole_table::<Posit16>();
    whole_table::<Posit32>();
    whole_table::<Posit64>();
}

#[test]
fn kinks_together_and_z_are_as_promised() {
    fn of<S: Leaf>(report: &mut Report) {
        for op in Row::ALL {
            let all = samples(op.name());
            let parameters: std::collections::BTreeSet<i32> =
                all.iter().map(|sample| sample.parameter).collect();
            for parameter in if parameters.is_empty() { [NO_PARAMETER].into() } else { parameters } {
                promises(&FirstOrder::<S>::of_row(*op, parameter), all, report);
            }
        }
    }
    let mut report = Report::default();
    of::<f32>(&mut report);
    of::<f64>(&mut report);
    of::<DoubleDouble>(&mut report);
    of::<Posit8>(&mut report);
    #[cfg(long)]
    {
        of::<Posit16>(&mut report);
        of::<Posit32>(&mut report);
        of::<Posit64>(&mut report);
    }
    report.expect_clean();
}

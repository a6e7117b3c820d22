//! Checks a rule that a step brings along against the tape.

use super::backend::{Backend, Cotangents, Unit};
use super::by_rule::ByRule;
use super::by_tape::ByTape;
use super::flat::count;
use super::taking::{begin, taken_well};
use super::{Differentiate, Rollout};
use crate::error::Error;
use crate::step::StepRule;
use palinode_core::{Passive, Snapshot};

impl<St: StepRule, How: Differentiate<St>> Rollout<'_, St, How> {
    /// Compares the step's rule with the tape at the first `steps` states of the loop (no more than
    /// [`Rollout::steps`] and [`Rollout::inputs`] give it), for cotangents that tell every entry apart. The
    /// first difference larger than rounding is an error that names it.
    pub fn check_rule(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        steps: u64,
    ) -> Result<(), Error> {
        self.check()?;
        let mut state: St::State<Passive<f64>> = Snapshot::of(initial).loaded();
        let params: St::Params<Passive<f64>> = Snapshot::of(params).loaded();
        let mut inputs = self.inputs_over()?;
        let steps = self.options.steps.map_or(steps, |all| steps.min(all));
        let steps = inputs.count().map_or(steps, |all| steps.min(all as u64));
        begin(&self.step);
        let (mut by_rule, mut by_tape) = (ByRule::<St, f64>::default(), ByTape::<St, f64>::default());
        let of_params = count(&params);
        for step in 0..steps {
            let inputs = inputs.of(step, step + 1)?;
            let of_input = count(&inputs[0]);
            let unit = Unit { kept: 0, step: &self.step, params: &params, inputs, steps: 1 };
            by_tape.record(&unit, &mut state, None).map_err(|error| error.counted_from(step))?;
            by_rule.record(&unit, &mut state, None)?;
            by_tape.after(&unit, &mut state)?;
            let of_state = count(&state);
            // Numbers without a common pattern, so that a mix-up of entries shows.
            let pattern =
                |n: usize| (1..=n).map(|i| (i as f64 * 0.754_877_666).fract() - 0.4).collect::<Vec<f64>>();
            let seeds = || Cotangents {
                state: pattern(of_state),
                params: pattern(of_params),
                input: pattern(of_input),
            };
            let (mut rule, mut tape) = (seeds(), seeds());
            by_rule.reverse(&unit, None, &mut rule)?;
            by_rule.release_cotangent(&mut rule.state);
            by_tape.reverse(&unit, None, &mut tape)?;
            taken_well(&self.step, step)?;
            compare("state", step, &rule.state, &tape.state)?;
            compare("parameter", step, &rule.params, &tape.params)?;
            compare("input", step, &rule.input, &tape.input)?;
        }
        Ok(())
    }
}

fn compare(what: &'static str, step: u64, by_rule: &[f64], by_tape: &[f64]) -> Result<(), Error> {
    let scale = by_tape.iter().fold(0.0, |largest: f64, c| largest.max(c.abs()));
    let wrong = |(rule, tape): (&f64, &f64)| {
        let difference = (rule - tape).abs();
        difference > 1e-9 * scale || difference.is_nan()
    };
    match by_rule.iter().zip(by_tape).position(wrong) {
        None => Ok(()),
        Some(position) => Err(Error::WrongRule {
            what,
            position,
            step,
            by_rule: by_rule[position],
            by_tape: by_tape[position],
        }),
    }
}

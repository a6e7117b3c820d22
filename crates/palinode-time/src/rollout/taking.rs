//! Taking steps: one after the other, each with what enters there, and whether a loop goes on.

use super::inputs::Inputs;
use crate::error::Error;
use crate::implicit::number::Number;
use crate::step::{Notes, Step};
use palinode_core::decision;

/// Takes the steps from `from` to `to`, and looks at the state after each.
#[inline(always)]
pub(super) fn take_steps<St: Step, S: Number>(
    step: &St,
    state: &mut St::State<S>,
    params: &St::Params<S>,
    inputs: &mut Inputs<'_, St, S>,
    from: u64,
    to: u64,
    mut look: impl FnMut(&St::State<S>, u64) -> Result<(), Error>,
) -> Result<(), Error> {
    if let Inputs::Same(input) = inputs {
        for at in from..to {
            step.step(state, params, input);
            taken_well(step, at)?;
            look(state, at)?;
        }
        return Ok(());
    }
    for at in from..to {
        step.step(state, params, inputs.at(at)?);
        taken_well(step, at)?;
        look(state, at)?;
    }
    Ok(())
}

/// Whether so many steps have inputs.
pub(super) fn check_inputs(inputs: Option<usize>, steps: u64) -> Result<(), Error> {
    match inputs {
        Some(inputs) if (inputs as u64) < steps => Err(Error::TooFewInputs { inputs, steps }),
        Some(_) | None => Ok(()),
    }
}

/// A rollout starts: what a step noted before is forgotten.
pub(super) fn begin<St: Step>(step: &St) {
    step.notes().into_iter().for_each(Notes::clear);
}

/// Whether the step that was just taken says that it could be.
#[inline(always)]
pub(super) fn taken_well<St: Step>(step: &St, at: u64) -> Result<(), Error> {
    match step.notes().and_then(Notes::take_failure) {
        None => Ok(()),
        Some(reason) => Err(Error::StepFailed { step: at, reason }),
    }
}

/// Whether the condition holds, and by what margin. One that does not hold because something is NaN is an
/// error: it might never hold.
pub(super) fn judged<S>(
    condition: &(impl Fn(&S) -> bool + ?Sized),
    state: &S,
    steps: u64,
) -> Result<(bool, f64), Error> {
    let (holds, seen) = decision::watch(|| condition(state));
    if !holds && seen.undefined > 0 {
        return Err(Error::ConditionUndefined { steps });
    }
    Ok((holds, seen.smallest_margin))
}

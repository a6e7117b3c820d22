//! What a rollout of a program takes from the allocator: never more than its budget, what the interpreter
//! takes included.

use crate::counting::measured;
use palinode_ir::interp::Datum;
use palinode_time::{Differentiate, Error, ProgramStep, Rollout, Schedule};

const SOURCE: &str = "
    input u: [n]
    param conductivity = 0.2
    param gain = 1.5
    var rod = u
    for i in 1..n - 1 {
        rod[i] = u[i] + conductivity * (u[i - 1] - u[i] * 2 + u[i + 1])
    }
    output next_u = tanh(rod * gain)
";

/// The most bytes that were taken at a time, and what the rollout reports or refuses.
fn peak<How: Differentiate<ProgramStep>>(
    run: &Rollout<'_, ProgramStep, How>,
    start: &palinode_time::ProgramValues<f64>,
    params: &palinode_time::ProgramValues<f64>,
) -> (usize, Result<usize, usize>) {
    let loss = |state: &palinode_time::ProgramValues<_>| state.elements(0).iter().map(|&u| u * u).sum();
    let (gradient, taken, _) = measured(|| run.value_and_grad(start, params, loss));
    match gradient {
        Ok(gradient) => (taken, Ok(gradient.report.peak_bytes)),
        Err(Error::BudgetTooSmall { smallest, .. }) => (taken, Err(smallest.bytes())),
        Err(other) => panic!("{other}"),
    }
}

fn keeps_its_budget<How: Differentiate<ProgramStep>>(
    length: usize,
    make: impl Fn(ProgramStep) -> Rollout<'static, ProgramStep, How>,
) {
    let step = ProgramStep::from_source(SOURCE).expect("a step");
    let rod = (0..length).map(|i| (i as f64 * 0.7).sin()).collect();
    let start = step.state(&[("u", Datum::vector(rod))]).unwrap();
    let params = step.params(&[]).unwrap();
    let smallest = match peak(&make(step.clone()).budget(1), &start, &params).1 {
        Err(smallest) => smallest,
        Ok(bytes) => panic!("1 byte cannot be enough, and {bytes} are reported"),
    };
    for more in [0, 10_000, 1_000_000] {
        let (taken, reported) = peak(&make(step.clone()).budget(smallest + more), &start, &params);
        let reported = reported.expect("it fits");
        assert!(reported <= smallest + more, "{length}: {reported} of {}", smallest + more);
        assert!(
            taken <= smallest + more,
            "{length}: {taken} taken, {} allowed, {reported} reported",
            smallest + more
        );
        // What is counted is what is taken, about: a bound that is always kept could be far too high.
        assert!(reported <= 2 * taken + 20_000, "{length}: {taken} taken, {reported} reported");
    }
}

pub(crate) fn run() {
    for length in [5, 100, 3000] {
        keeps_its_budget(length, |step| step.rollout().steps(40));
        keeps_its_budget(length, |step| step.rollout().steps(40).by_rule());
    }
    for schedule in [
        Schedule::StoreAll,
        Schedule::Periodic { every: 7 },
        Schedule::Binomial { snapshots: 3 },
        Schedule::Mixed { places: 4 },
    ] {
        keeps_its_budget(100, |step| step.rollout().steps(40).schedule(schedule));
        keeps_its_budget(100, |step| step.rollout().steps(40).schedule(schedule).by_rule());
    }
    println!("the interpreter is inside the budget");
}

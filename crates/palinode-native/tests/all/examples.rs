//! The examples give the same bits natively: values, gradients, tangents.

use crate::support::{Outcome, compare, each_example};
use palinode_ir::{passes, transform};

/// Examples of which a program has no loop form yet.
const REFUSED: [&str; 5] =
    ["adam grad", "dynamic_loop grad", "lorenz grad", "memory_rnn grad", "recurrence grad"];

#[test]
fn examples_give_the_same_bits() {
    let (mut wrong, mut same) = (Vec::new(), 0);
    each_example(|name, model, inputs, wrt| {
        let mut programs = vec![("value", passes::simplify(&passes::inline(&model.program)))];
        if let Ok(gradient) = transform::value_and_grad(&model.program, wrt) {
            programs.push(("grad", passes::simplify(&gradient)));
        }
        for (what, program) in programs {
            let case = format!("{name} {what}");
            match compare(&program, inputs, true) {
                Ok(Outcome::Same) => same += 1,
                Ok(Outcome::Refused(_)) if REFUSED.contains(&&*case) => {}
                // The derivative of a strong product in it is infinite.
                Ok(Outcome::BothStop(_)) if case == "covariance grad" => {}
                Ok(other) => wrong.push(format!("{case}: {other:?}")),
                Err(error) => wrong.push(format!("{case}: {error}")),
            }
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(same > 100, "{same} programs give the same bits");
}

//! The examples give the same bits natively: values, gradients, tangents.

use crate::support::{Outcome, compare, defaults, each_example};
use palinode_ir::{pal, passes, transform};

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

/// What the place of an output depends on is needed until the end, whatever registers come after it.
#[test]
fn outputs_may_be_parts_at_computed_places() {
    let sources = [
        "param W: [3, 2] = [[1, 2], [2, 3], [3, 4]]\ninput k: int [1] = [1]\nlet u = W[k[0], ..]\noutput o = u\n\
         loss z = sum(W * W)",
        "param W: [3, 4] = [[1, 2, 3, 4], [5, 6, 7, 8], [3, 4, 5, 6]]\nvar best = 0\n\
         for i in 0..3 { if W[i, 0] > W[best, 0] { best = i } }\nlet row = W[best, ..]\nvar x = 0.5\n\
         for t in 0..1000 { x = sin(x) + 0.1 }\noutput row\nloss z = x",
        "param v = [1, 2, 3, 4]\ninput k: int [1] = [2]\nlet at = k[0] * k[0] - 2\nlet u = exp(v)\noutput o = u[at - 1..at + 1]\n\
         var x = 0.5\nfor t in 0..50 { for s in 0..3 { x = sin(x) + v[s] } }\nloss z = x",
    ];
    for source in sources {
        let model = pal::compile(source).unwrap_or_else(|errors| panic!("{source}: {errors:?}"));
        let data = defaults(&model).expect("every argument has a default");
        for program in [&model.program, &passes::simplify(&model.program)] {
            for traps in [true, false] {
                assert_eq!(compare(program, &data, traps), Ok(Outcome::Same), "{source}");
            }
        }
    }
}

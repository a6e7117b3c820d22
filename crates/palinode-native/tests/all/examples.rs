//! The examples give the same bits natively: values, gradients, tangents.

use crate::support::{Outcome, compare, defaults};
use palinode_ir::pal::{self, Role};
use palinode_ir::{passes, transform};

/// Examples of which a program has no loop form yet.
const REFUSED: [&str; 5] =
    ["adam grad", "dynamic_loop grad", "lorenz grad", "memory_rnn grad", "recurrence grad"];

#[test]
fn examples_give_the_same_bits() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut paths: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (mut wrong, mut same) = (Vec::new(), 0);
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "pal")) {
        let name = path.file_stem().unwrap().to_string_lossy().to_string();
        let model = pal::compile(&std::fs::read_to_string(path).unwrap()).unwrap();
        // A few need data.
        let Some(inputs) = defaults(&model) else { continue };
        let wrt: Vec<usize> =
            (0..inputs.len()).filter(|&at| model.arguments[at].role == Role::Param).collect();
        let mut programs = vec![("value", passes::simplify(&passes::inline(&model.program)))];
        if let Ok(gradient) = transform::value_and_grad(&model.program, &wrt) {
            programs.push(("grad", passes::simplify(&gradient)));
        }
        for (what, program) in programs {
            let case = format!("{name} {what}");
            match compare(&program, &inputs, true) {
                Ok(Outcome::Same) => same += 1,
                Ok(Outcome::Refused(_)) if REFUSED.contains(&&*case) => {}
                // The derivative of a strong product in it is infinite.
                Ok(Outcome::BothStop(_)) if case == "covariance grad" => {}
                Ok(other) => wrong.push(format!("{case}: {other:?}")),
                Err(error) => wrong.push(format!("{case}: {error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(same > 100, "{same} programs give the same bits");
}

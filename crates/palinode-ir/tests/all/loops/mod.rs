//! Loop forms: their text, the passes, the verifier.

pub(crate) mod damage;
pub(crate) mod direct;
mod files;
mod text;

use palinode_ir::interp::Datum;
use palinode_ir::loops::{self, LoopForm};
use palinode_ir::{Program, pal, passes, transform};

use crate::pal::examples;

/// The loop forms of a program and its gradient, before and after the passes.
fn forms(program: &Program, inputs: &[Datum<f64>], wrt: &[usize]) -> Vec<LoopForm> {
    let mut programs = vec![passes::simplify(&passes::inline(program))];
    programs.extend(transform::value_and_grad(program, wrt).ok().map(|gradient| passes::simplify(&gradient)));
    let both = |program: &Program| {
        let plain = loops::lower_plainly(program, inputs, true).ok();
        plain.into_iter().chain(loops::lower(program, inputs, false).ok()).collect::<Vec<_>>()
    };
    programs.iter().flat_map(both).collect()
}

fn of_examples() -> Vec<LoopForm> {
    let mut found = Vec::new();
    for (_, source) in examples::examples() {
        let model = pal::compile(&source).expect("it compiles");
        let inputs = examples::inputs(&model);
        let wrt: Vec<usize> =
            (0..inputs.len()).filter(|&at| model.arguments[at].role == pal::Role::Param).collect();
        found.extend(forms(&model.program, &inputs, &wrt));
    }
    found
}

//! Plans predict what runs do.

use palinode_ir::interp::{Datum, Tensor};
use palinode_ir::plan::{Prediction, predict};
use palinode_ir::{pal, passes, transform};

fn given(model: &pal::Model) -> Vec<Datum<f64>> {
    let one = |argument: &pal::Argument| {
        let default = argument.default.as_ref().expect("every parameter has a default");
        Datum::Real(Tensor { shape: default.shape().to_vec(), data: default.data().to_vec() })
    };
    model.arguments.iter().map(one).collect()
}

fn of_gradient(source: &str) -> Prediction {
    let model = pal::compile(source).expect("compiles");
    let inputs = given(&model);
    let wrt: Vec<usize> = (0..inputs.len()).collect();
    let program = passes::simplify(&transform::value_and_grad(&model.program, &wrt).expect("differentiates"));
    predict(&program, &inputs, 8).expect("is known")
}

fn chain(rounds: usize) -> String {
    format!("param x = 0.5\nvar y = x\nfor i in 0..{rounds} {{ y = sin(y) * 1.1 }}\nloss y")
}

#[test]
fn a_long_loop_is_not_walked_to_its_end() {
    let short = of_gradient(&chain(1000));
    let long = of_gradient(&chain(1_000_000_000));
    assert!(short.exact && long.exact);
    assert_eq!(long.growth[0].rounds, 1_000_000_000);
    assert_eq!(long.growth[0].bytes_per_round, short.growth[0].bytes_per_round);
    let bytes = long.growth[0].bytes_per_round * 1_000_000_000;
    assert!(long.peak >= bytes && long.peak < bytes + (1 << 20), "{long:?}");
}

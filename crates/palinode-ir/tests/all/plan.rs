//! Plans predict what runs do.

use palinode_ir::interp::{Datum, Tensor};
use palinode_ir::plan::{Prediction, predict};
use palinode_ir::transform::Recompute;
use palinode_ir::{Op, pal, passes, transform};

use crate::agree::{flat, run_on};
use crate::random::generate::source;
use crate::random_programs::{compiled, from_environment};

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

/// Whatever is kept or computed again, the gradient has the same bits.
#[test]
fn storage_does_not_change_the_gradient() {
    let count = from_environment("PALINODE_PROGRAMS", 100);
    let mut kept_less = 0;
    for seed in 0..count {
        let Ok(case) = compiled(&source(seed)) else { continue };
        let mut sizes = Vec::new();
        let mut expected: Option<Vec<u64>> = None;
        for recompute in Recompute::ALL {
            let program = transform::value_and_grad_stored(&case.program, &case.wrt, &recompute.into())
                .expect("differentiates");
            let Ok(found) = run_on(&program, &case.inputs, "the gradient") else { break };
            let bits: Vec<u64> = flat(&found).iter().map(|x| x.to_bits()).collect();
            let mut pushes = 0;
            for function in &program.functions {
                function.body.for_each_inst(&mut |inst| pushes += usize::from(inst.op == Op::Push));
            }
            sizes.push(pushes);
            match &expected {
                None => expected = Some(bits),
                Some(expected) => assert_eq!(&bits, expected, "{recompute:?}\n{}", source(seed).text()),
            }
        }
        kept_less += usize::from(sizes.first() > sizes.last());
    }
    println!("{kept_less} of {count} programs keep less when more is computed again");
    assert!(kept_less * 4 > count as usize);
}

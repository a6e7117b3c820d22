//! Second derivatives of the programs in `examples`: the gradient of the gradient, by transposing twice and
//! by forward mode over reverse mode, is the Hessian of the dynamic tape.

use super::examples::{examples, inputs};
use super::{compile, flat};
use palinode_core::{Var, hessian};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::pal::{Model, Role};
use palinode_ir::{Program, passes, transform};

/// The program whose only result is the loss, or the first real scalar.
fn loss_only(model: &Model) -> Program {
    let at = model.outputs.iter().position(|output| output.is_loss).unwrap_or(0);
    let mut program = model.program.clone();
    let entry = program.entry.index();
    let body = &mut program.functions[entry].body;
    body.results = vec![body.results[at]];
    program.outputs = vec![program.outputs[at].clone()];
    passes::dce(&program)
}

fn run(code: &Code, inputs: &[Datum<f64>], name: &str) -> Vec<f64> {
    let results = code.run(inputs, &Limits::default());
    flat(&results.unwrap_or_else(|error| panic!("{name}: {error}")))
}

#[test]
fn the_gradient_of_the_gradient_is_the_tapes_hessian() {
    let mut compared = 0;
    for (name, source) in examples() {
        let model = compile(&source);
        let program = loss_only(&model);
        let ty = program.output_types()[0];
        if !ty.is_real() || !ty.is_scalar() {
            continue;
        }
        let given = inputs(&model);
        let wrt: Vec<usize> =
            (0..given.len()).filter(|&at| model.arguments[at].role == Role::Param).collect();
        let point: Vec<f64> =
            wrt.iter().flat_map(|&at| given[at].as_vector().unwrap_or_default().to_vec()).collect();
        let n = point.len();
        let code = Code::new(&program);
        let expected = hessian(
            |x: &[Var<Var<f64>>]| {
                let mut data: Vec<Datum<Var<Var<f64>>>> = given.iter().map(Datum::lift).collect();
                let mut next = x.iter();
                for &at in &wrt {
                    data[at] = given[at].map(|_| *next.next().expect("as many as the params have"));
                }
                let outputs =
                    code.run(&data, &Limits::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
                outputs[0].as_real().expect("a real scalar")
            },
            &point,
        );
        let expected = expected.unwrap_or_else(|error| panic!("{name}: {error}"));
        let scale = expected.iter().flatten().fold(1.0_f64, |scale, x| scale.max(x.abs()));
        let close = |what: &str, row: usize, column: usize, found: f64| {
            let expected = expected[row][column];
            assert!(
                (found - expected).abs() <= 1e-9 * scale,
                "{name}, {what}: entry ({row}, {column}) is {found}, the tape says {expected}"
            );
        };
        // Transposed twice: a row at a time.
        let gradient = passes::simplify(&transform::grad(&program, &wrt).unwrap());
        let twice = Code::new(&passes::simplify(&transform::vjp(&gradient, &wrt).unwrap()));
        for row in 0..n {
            let mut at = 0;
            let seeds: Vec<Datum<f64>> = wrt
                .iter()
                .map(|&argument| {
                    given[argument].map(|_| {
                        at += 1;
                        f64::from(at - 1 == row)
                    })
                })
                .collect();
            let found = run(&twice, &[&given[..], &seeds].concat(), &name);
            for column in 0..n {
                close("grad of grad", row, column, found[n + column]);
            }
        }
        // Forward over reverse, in one program; blocks of arrays are laid out by argument.
        let whole = Code::new(&passes::simplify(&transform::hessian(&program, &wrt).unwrap()));
        let whole = run(&whole, &given, &name);
        let sizes: Vec<usize> = wrt.iter().map(|&at| given[at].elements()).collect();
        let (mut at, mut first) = (0, 0);
        for &rows in &sizes {
            let mut second = 0;
            for &columns in &sizes {
                for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                    close("hessian", first + row, second + column, whole[at]);
                    at += 1;
                }
                second += columns;
            }
            first += rows;
        }
        compared += 1;
    }
    assert!(compared > 45, "{compared}");
    println!("{compared} examples");
}

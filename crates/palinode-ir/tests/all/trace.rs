//! Generic Rust code as a program.

use palinode_core::{Real, grad};
use palinode_ir::interp::{Datum, run};
use palinode_ir::trace::TraceError;
use palinode_ir::{Program, Traced, transform};

fn body<S: Real>(x: &[S]) -> S {
    let mut state = x[0];
    for k in 0..4 {
        state = if state > 1.0 { state.sqrt() * x[1] } else { state * 1.7 + x[1].sin() * f64::from(k) };
    }
    [state, x[1]].iter().map(|&x| x * x).sum::<S>()
}

#[test]
fn a_traced_program_gives_the_same_value_and_gradient() {
    let point = [0.4, 0.9];
    let f = |x: &[Traced]| vec![body(x)];
    let trace = Program::trace(f, &point);
    assert!(!trace.decisions.is_empty());
    let nearby = [0.41, 0.88];
    assert_eq!(trace.run(&nearby).unwrap(), [body(&nearby)]);
    let gradient = transform::grad(&trace.program, &[0]).unwrap();
    let found = run(&gradient, &[Datum::vector(nearby.to_vec())]).unwrap();
    let expected = grad(body, &nearby).unwrap();
    let (value, guarded) = trace.value_and_grad(&nearby).unwrap();
    assert_eq!((value, &guarded[..]), (body(&nearby), found[0].as_vector().unwrap()));
    for (found, expected) in guarded.iter().zip(&expected) {
        assert!((found - expected).abs() <= 1e-14 * expected.abs(), "{found} instead of {expected}");
    }
}

#[test]
fn another_way_is_refused() {
    let trace = Program::trace(|x| vec![body(x)], &[0.4, 0.9]);
    let error = trace.run(&[1.5, 0.9]).unwrap_err();
    let TraceError::OtherWay { number, decision } = &error else { panic!("{error}") };
    assert_eq!((*number, decision.outcome), (0, false));
    assert_eq!(trace.value_and_grad(&[1.5, 0.9]).unwrap_err(), error);
    assert_eq!(trace.run(&[0.4]).unwrap_err().code(), "PAL0101");
    assert!(error.to_string().starts_with("PAL0280"), "{error}");
}

#[test]
fn a_conversion_to_a_plain_number_is_guarded() {
    let trace = Program::trace(|x| vec![x[0] * x[0].to_f64().round()], &[2.0]);
    assert_eq!(trace.run(&[2.0]).unwrap(), [4.0]);
    assert!(trace.run(&[2.5]).is_err());
}

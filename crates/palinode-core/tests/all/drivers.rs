//! The drivers: shapes, positions of what is not finite, lengths, and second order.

use crate::support::{close, differences};
use palinode_core::{
    Accumulator, Compression, Dual, Error, Jet, Scalar, Tape, Var, derivatives, grad, hessian, hvp, jacobian,
    jvp, value_and_grad, vjp,
};

fn tall<S: Scalar>(x: &[S]) -> Vec<S> {
    let two = S::from_int(2);
    (0..11).map(|k| (x[0] * S::from_int(k)).sin() + x[1].powi(k % 4 + 1) / (two + x[0].cos())).collect()
}

fn wide<S: Scalar>(x: &[S]) -> Vec<S> {
    let square_sum = x.iter().fold(S::zero(), |sum, &v| sum + v * v);
    let product = x.iter().fold(S::one(), |all, &v| all * (S::one() + v * v).ln_1p());
    vec![square_sum.sqrt(), product]
}

fn all_close(a: &[Vec<f64>], b: &[Vec<f64>], allowed: f64) {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).for_each(|(a, b)| close(a, b, allowed));
}

#[test]
fn jacobians_of_both_shapes_are_those_of_differences() {
    let x = [0.3, -1.2];
    all_close(&jacobian(tall::<Var<f64>>, &x).unwrap(), &differences(tall::<f64>, &x), 1e-9);
    let x: Vec<f64> = (0..19).map(|i| 0.1 * i as f64 - 0.85).collect();
    all_close(&jacobian(wide::<Var<f64>>, &x).unwrap(), &differences(wide::<f64>, &x), 1e-9);
    // Both directions give the same numbers.
    let j = jacobian(wide::<Var<f64>>, &x).unwrap();
    for (i, row) in j.iter().enumerate() {
        let seed: Vec<f64> = (0..2).map(|k| f64::from(u8::from(k == i))).collect();
        assert_eq!(&vjp(wide::<Var<f64>>, &x, &seed).unwrap().1, row);
        for (k, &entry) in row.iter().enumerate() {
            let direction: Vec<f64> = (0..19).map(|l| f64::from(u8::from(l == k))).collect();
            let (_, tangents) = jvp(wide::<Dual<f64>>, &x, &direction).unwrap();
            assert!((tangents[i] - entry).abs() <= 1e-14 * (1.0 + entry.abs()));
        }
    }
    assert_eq!(jacobian(|_| Vec::<Var<f64>>::new(), &[1.0]).unwrap(), Vec::<Vec<f64>>::new());
}

#[test]
fn hessians_are_symmetric_and_hvp_is_their_product() {
    fn f<S: Scalar>(x: &[S]) -> S {
        wide(x)[1] + (x[0] * x[1]).sin() * x[2].exp() + x[2] / (S::from_int(3) + x[0] * x[0])
    }
    let x = [0.4, -0.7, 0.2];
    let h = hessian(f, &x).unwrap();
    let v = [0.3, -1.0, 0.6];
    let (value, gradient, product) = hvp(f, &x, &v).unwrap();
    assert_eq!((value, gradient.clone()), value_and_grad(f, &x).unwrap());
    for i in 0..3 {
        let expected: f64 = (0..3).map(|j| h[i][j] * v[j]).sum();
        assert!((product[i] - expected).abs() <= 1e-14, "{product:?} {expected}");
        for j in 0..3 {
            assert!((h[i][j] - h[j][i]).abs() <= 1e-15, "{h:?}");
        }
    }
    all_close(&h, &differences(|x| grad(f, x).unwrap(), &x), 1e-8);
}

#[test]
fn what_is_not_finite_is_reported_by_position() {
    let f = |x: &[Var<f64>]| [x[0] + x[1], x[1].ln(), x[0].sqrt()];
    let input = jacobian(f, &[1.0, f64::INFINITY]).unwrap_err();
    assert_eq!(input, Error::NonFiniteInput { what: "input", position: 1, value: f64::INFINITY });
    assert!(matches!(grad(|x| x[0], &[f64::NAN]).unwrap_err(), Error::NonFiniteInput { position: 0, .. }));
    let output = jacobian(f, &[1.0, 0.0]).unwrap_err();
    assert_eq!(output, Error::NonFiniteOutput { position: 1, value: f64::NEG_INFINITY });
    assert!(matches!(
        vjp(f, &[1.0, 0.0], &[1.0, 0.0, 0.0]).unwrap_err(),
        Error::NonFiniteOutput { position: 1, .. }
    ));
    let slope = jacobian(f, &[0.0, 1.0]).unwrap_err();
    assert_eq!(slope, Error::NonFiniteDerivative { output: 2, input: 0, value: f64::INFINITY });
    let slope = grad(|x| x[0] + x[1].sqrt(), &[1.0, 0.0]).unwrap_err();
    assert_eq!(slope, Error::NonFiniteDerivative { output: 0, input: 1, value: f64::INFINITY });
    let slope = derivatives::<f64, 3>(|x: Jet<f64, 3>| x.sqrt(), 0.0).unwrap_err();
    assert!(matches!(slope, Error::NonFiniteDerivativeOf { position: 1, .. }), "{slope}");
    let direction = jvp(|x| vec![x[0]], &[1.0], &[f64::NAN]).unwrap_err();
    assert!(matches!(direction, Error::NonFiniteInput { what: "direction", position: 0, .. }));
}

#[test]
fn second_order_that_is_not_finite_is_reported() {
    // The gradient of x^1.5 at 0 is 0, its second derivative infinite.
    let f = |x: &[Var<Dual<f64>>]| x[0] + x[1].powf(Var::lift(Dual::lift(1.5)));
    let error = hvp(f, &[1.0, 0.0], &[0.0, 1.0]).unwrap_err();
    assert!(matches!(error, Error::NonFiniteDerivativeOf { position: 1, .. }), "{error}");
    let error = hessian(|x| x[0] + x[1].powf(Var::lift(Var::lift(1.5))), &[1.0, 0.0]).unwrap_err();
    assert!(matches!(error, Error::NonFiniteSecondDerivative { first: 1, second: 1, .. }), "{error}");
}

#[test]
fn wrong_lengths_are_typed_errors() {
    let length = |error: Error| match error {
        Error::Length { expected, found, .. } => (expected, found),
        other => panic!("{other}"),
    };
    assert_eq!(length(jvp(|x| vec![x[0]], &[1.0, 2.0], &[1.0]).unwrap_err()), (2, 1));
    assert_eq!(length(vjp(|x| [x[0], x[1]], &[1.0, 2.0], &[1.0]).unwrap_err()), (2, 1));
    assert_eq!(length(hvp(|x| x[0], &[1.0], &[1.0, 2.0]).unwrap_err()), (1, 2));
    let mut tape = palinode_core::Tape::new();
    assert_eq!(length(tape.gradient_into(|x| x[0], &[1.0, 2.0], &mut [0.0; 3]).unwrap_err()), (2, 3));
    let mut record = tape.record(&[1.0, 2.0], |x| [x[0], x[1], x[0]]).unwrap();
    assert_eq!(length(record.reverse(&[1.0]).unwrap_err()), (3, 1));
    assert_eq!(length(record.reverse_many(&[[1.0, 2.0]]).unwrap_err()), (3, 1));
    assert_eq!(length(record.forward(&[1.0]).unwrap_err()), (2, 1));
    assert_eq!(record.reverse(&[1.0, 2.0, 3.0]).unwrap(), [4.0, 2.0]);
}

/// As `vjp` and `jvp` do, with the position of the first bad one.
#[test]
fn sweeps_over_a_record_refuse_what_is_not_finite() {
    let refused = |error: Error| {
        let Error::NonFiniteInput { what, position, value } = error else { panic!("{error}") };
        assert!(!value.is_finite());
        (what, position)
    };
    let f = |x: &[Var<f64>]| [x[0] * x[1], x[0]];
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let cotangent = ("output cotangent", 1);
        assert_eq!(refused(vjp(f, &[2.0, 5.0], &[1.0, bad]).unwrap_err()), cotangent);
        for how in [Accumulator::Naive, Accumulator::Exact] {
            let mut tape = Tape::new().accumulate(how);
            let mut record = tape.record(&[2.0, 5.0], f).unwrap();
            assert_eq!(refused(record.reverse(&[1.0, bad]).unwrap_err()), cotangent);
            assert_eq!(refused(record.reverse_many(&[[1.0, 0.0], [0.0, bad]]).unwrap_err()), cotangent);
            let mut onto = [0.0; 2];
            assert_eq!(refused(record.reverse_onto(&[1.0, bad], &mut onto).unwrap_err()), cotangent);
            let mut onto = [bad, 0.0];
            let started = refused(record.reverse_onto(&[1.0, 1.0], &mut onto).unwrap_err());
            assert_eq!(started, ("input cotangent", 0));
            assert_eq!(refused(record.forward(&[1.0, bad]).unwrap_err()), ("direction", 1));
            let lanes = [[bad, 0.0], [0.0, 1.0]];
            assert_eq!(refused(record.forward_many(&lanes).unwrap_err()), ("direction", 0));
            // Nothing is left of that.
            assert_eq!(record.reverse(&[1.0, 1.0]).unwrap(), [6.0, 2.0]);
            let mut compressed = record.compress(&Compression::default()).unwrap();
            assert_eq!(refused(compressed.reverse(&[1.0, bad]).unwrap_err()), cotangent);
            assert_eq!(refused(compressed.reverse_many(&[[1.0], [bad]]).unwrap_err()), cotangent);
            assert_eq!(refused(compressed.forward(&[bad, 1.0]).unwrap_err()), ("direction", 0));
        }
    }
}

//! Shared by the tests of third-party crates: one generic function, differentiated on every number.

use nalgebra::RealField;
use num_traits::{Float, FloatConst, FromPrimitive, NumAssign};
use palinode::drivers::hvp;
use palinode::forward::DualN;
use palinode::{Dual, Var, value_and_grad};

/// All that the third-party crates ask of a number, together.
pub(crate) trait Number:
    RealField + Float + FloatConst + FromPrimitive + NumAssign + Default + std::fmt::LowerExp
{
}
impl<T: RealField + Float + FloatConst + FromPrimitive + NumAssign + Default + std::fmt::LowerExp> Number
    for T
{
}

/// A function of many numbers, written once for any of them. It calls the code under test.
pub(crate) trait Function {
    /// Its value.
    fn call<T: Number>(&self, x: &[T]) -> T;
}

/// A type with this function, for any number `T`.
macro_rules! function {
    ($name:ident: |$x:ident: &[T]| $body:block) => {
        struct $name;
        impl Function for $name {
            fn call<T: Number>(&self, $x: &[T]) -> T $body
        }
    };
}
pub(crate) use function;

/// The constant `v`.
pub(crate) fn constant<T: Number>(v: f64) -> T {
    nalgebra::convert(v)
}

/// The gradient by every kind of number, each with its name.
pub(crate) fn gradients(f: &impl Function, x: &[f64]) -> Vec<(&'static str, Vec<f64>)> {
    let n = x.len();
    let unit = |i: usize| (0..n).map(|j| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
    let along = |i: usize| {
        let point: Vec<Dual<f64>> = (0..n).map(|j| Dual::new(x[j], unit(i)[j])).collect();
        f.call(&point).tangent
    };
    let four = |start: usize| {
        let seed = |j: usize| std::array::from_fn(|lane| f64::from(u8::from(start + lane == j)));
        let point: Vec<DualN<f64, 4>> = (0..n).map(|j| DualN::new(x[j], seed(j))).collect();
        *f.call(&point).tangents
    };
    vec![
        ("Var<f64>", value_and_grad(|x| f.call(x), x).unwrap().1),
        ("Dual<f64>", (0..n).map(along).collect()),
        ("DualN<f64, 4>", (0..n).step_by(4).flat_map(four).take(n).collect()),
    ]
}

/// Asserts that every number gives this gradient, to `tolerance` relative to its largest entry.
///
/// Gives the largest error that was found.
pub(crate) fn assert_gradient(
    what: &str,
    f: &impl Function,
    x: &[f64],
    expected: &[f64],
    tolerance: f64,
) -> f64 {
    let size = expected.iter().fold(f64::MIN_POSITIVE, |m, g| m.max(g.abs()));
    let mut worst: f64 = 0.0;
    for (number, found) in gradients(f, x) {
        assert_eq!(found.len(), expected.len(), "{what}, {number}");
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            let error = (found - expected).abs() / size;
            assert!(
                error <= tolerance,
                "{what}, {number}: entry {i} is {found}, expected {expected}, error {error:.1e}"
            );
            worst = worst.max(error);
        }
    }
    println!("{what}: largest relative error {worst:.1e}");
    worst
}

/// The gradient by central differences: the error is about `h^2 f''' / 6 + epsilon |f| / h` for steps of `h`
/// times `x`.
pub(crate) fn finite_differences(f: &impl Function, x: &[f64], h: f64) -> Vec<f64> {
    let moved = |i: usize, step: f64| {
        let mut x = x.to_vec();
        x[i] += step;
        (x[i], f.call(&x))
    };
    (0..x.len())
        .map(|i| {
            let step = h * x[i].abs().max(1e-3);
            let ((up, above), (down, below)) = (moved(i, step), moved(i, -step));
            (above - below) / (up - down)
        })
        .collect()
}

/// Asserts that forward over reverse gives this product of the Hessian with `v`.
pub(crate) fn assert_hessian_product(
    what: &str,
    f: &impl Function,
    x: &[f64],
    v: &[f64],
    expected: &[f64],
    tolerance: f64,
) {
    let size = expected.iter().fold(f64::MIN_POSITIVE, |m, g| m.max(g.abs()));
    let product = hvp(|x: &[Var<Dual<f64>>]| f.call(x), x, v).unwrap().2;
    let mut worst: f64 = 0.0;
    for (i, (found, expected)) in product.iter().zip(expected).enumerate() {
        let error = (found - expected).abs() / size;
        assert!(error <= tolerance, "{what}: entry {i} is {found}, expected {expected}, error {error:.1e}");
        worst = worst.max(error);
    }
    println!("{what}, second order: largest relative error {worst:.1e}");
}

/// Numbers in (-1, 1) that look random and are always the same.
pub(crate) fn scattered(n: usize) -> Vec<f64> {
    (1..=n).map(|i| (i as f64 * 0.754_877_666_246_69 + 0.3).fract() * 2.0 - 1.0).collect()
}

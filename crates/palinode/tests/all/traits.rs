//! What every number must be for libraries to take it, checked by the compiler.

use nalgebra::RealField;
use num_traits::{
    Bounded, Float, FloatConst, FromPrimitive, Inv, MulAdd, NumAssign, NumCast, Signed, ToPrimitive,
};
use palinode::forward::{DualN, Jet};
use palinode::num::DoubleDouble;
use palinode::{Dual, Scalar, Var};

fn is_a_field<T>()
where
    T: Copy + Send + Sync + 'static + Scalar + RealField + Float + FloatConst,
    T: Bounded
        + FromPrimitive
        + ToPrimitive
        + NumCast
        + NumAssign
        + Signed
        + Inv<Output = T>
        + MulAdd<Output = T>,
    T: simba::simd::SimdRealField
        + simba::simd::PrimitiveSimdValue
        + rustfft::FftNum
        + clarabel::algebra::FloatT,
{
}

#[test]
fn every_number_is_a_field() {
    is_a_field::<Var<f64>>();
    is_a_field::<Var<f32>>();
    is_a_field::<Var<DoubleDouble>>();
    is_a_field::<Var<Dual<f64>>>();
    is_a_field::<Var<DualN<f64, 4>>>();
    is_a_field::<Var<Jet<f64, 3>>>();
    is_a_field::<Var<Var<f64>>>();
    is_a_field::<Var<Var<Var<f64>>>>();
    is_a_field::<Dual<f64>>();
    is_a_field::<Dual<Var<f64>>>();
    is_a_field::<Dual<Dual<f32>>>();
    is_a_field::<DualN<f64, 4>>();
    is_a_field::<DualN<DoubleDouble, 2>>();
    is_a_field::<DualN<Var<f64>, 3>>();
    is_a_field::<Jet<f64, 5>>();
    is_a_field::<Jet<Dual<f64>, 2>>();
}

/// Code written against num-traits only, in single precision: epsilon has to be that of `f32`.
#[test]
fn single_precision_code_sees_single_precision() {
    fn root<F: Float>(a: F) -> F {
        let mut x = a;
        loop {
            let next = (x + a / x) / (F::one() + F::one());
            if (next - x).abs() <= F::epsilon() * x {
                return next;
            }
            x = next;
        }
    }
    let y = root(Dual::new(2.0_f32, 1.0));
    assert!((y.value - 2f32.sqrt()).abs() <= f32::EPSILON);
    assert!((y.tangent - 0.5 / 2f32.sqrt()).abs() <= f32::EPSILON);
    let y = root(Dual::new(DoubleDouble::from(2), DoubleDouble::from(1)));
    let exact = DoubleDouble::from(2).sqrt();
    assert!((y.value - exact).abs() <= DoubleDouble::from(1e-31));
    assert!((y.tangent - exact / DoubleDouble::from(4)).abs() <= DoubleDouble::from(1e-31));
}

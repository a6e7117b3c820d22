//! adskalman, a Kalman filter, differentiated unmodified: 50 steps of a target that moves at constant
//! velocity.
//!
//! The log-likelihood of the observations by the noise parameters is compared with central differences. With
//! steps of 1e-5 relative and a log-likelihood of about -50 these are good to about 1e-10 + 50 * 1.1e-16 /
//! 1e-5 = 6e-10 absolute per unit of parameter; 1e-7 relative is asked for. A scalar filter is compared with
//! its recursion, written out.

use crate::check::{Function, Number, assert_gradient, constant, finite_differences, function, scattered};
use adskalman::{
    KalmanFilterNoControl, ObservationModel, StateAndCovariance, TransitionModelLinearNoControl,
};
use nalgebra::{Matrix1, Matrix1x2, Matrix2, Matrix2x1, U1, U2, Vector1, Vector2};

const STEPS: usize = 50;

struct Motion<T> {
    f: Matrix2<T>,
    f_transposed: Matrix2<T>,
    q: Matrix2<T>,
}

impl<T: Number> TransitionModelLinearNoControl<T, U2> for Motion<T> {
    fn F(&self) -> &Matrix2<T> {
        &self.f
    }
    fn FT(&self) -> &Matrix2<T> {
        &self.f_transposed
    }
    fn Q(&self) -> &Matrix2<T> {
        &self.q
    }
}

struct Position<T> {
    h: Matrix1x2<T>,
    h_transposed: Matrix2x1<T>,
    r: Matrix1<T>,
}

impl<T: Number> ObservationModel<T, U2, U1> for Position<T> {
    fn H(&self) -> &Matrix1x2<T> {
        &self.h
    }
    fn HT(&self) -> &Matrix2x1<T> {
        &self.h_transposed
    }
    fn R(&self) -> &Matrix1<T> {
        &self.r
    }
}

// The log-likelihood by (acceleration noise, observation noise, initial variance, time step).
function!(LogLikelihood: |x: &[T]| {
    let [q, r, p0, dt] = *x else { unreachable!() };
    let (zero, one) = (constant::<T>(0.0), constant::<T>(1.0));
    let f = Matrix2::new(one, dt, zero, one);
    let half = constant::<T>(0.5);
    let noise = Vector2::new(dt * dt * half, dt);
    let motion = Motion { f, f_transposed: f.transpose(), q: noise * noise.transpose() * q };
    let h = Matrix1x2::new(one, zero);
    let position = Position { h, h_transposed: h.transpose(), r: Matrix1::new(r) };
    let filter = KalmanFilterNoControl::new(&motion, &position);

    let mut estimate =
        StateAndCovariance::new(Vector2::new(zero, one), Matrix2::from_diagonal_element(p0));
    let mut log_likelihood = zero;
    for (k, noise) in scattered(STEPS).into_iter().enumerate() {
        let observation = Vector1::new(constant::<T>(0.1 * (k + 1) as f64 + 0.3 * noise));
        let prior = motion.predict(&estimate);
        let spread = (h * prior.covariance() * h.transpose() + position.r).x;
        let surprise = observation.x - (h * prior.state()).x;
        log_likelihood -=
            half * (surprise * surprise / spread + num_traits::Float::ln(spread * T::two_pi()));
        estimate = filter.step(&estimate, &observation).expect("covariances stay positive");
    }
    log_likelihood
});

#[test]
fn log_likelihood_of_fifty_steps() {
    let x = [0.3, 0.05, 2.0, 0.1];
    let expected = finite_differences(&LogLikelihood, &x, 1e-5);
    assert_gradient("kalman ln likelihood", &LogLikelihood, &x, &expected, 1e-7);
}

// The last position estimate by the same parameters.
function!(LastState: |x: &[T]| {
    let [q, r] = *x else { unreachable!() };
    let (zero, one) = (constant::<T>(0.0), constant::<T>(1.0));
    // A random walk in the first component; the second is decoupled, so the filter is a scalar one.
    let f = Matrix2::identity();
    let motion = Motion { f, f_transposed: f, q: Matrix2::new(q, zero, zero, one) };
    let h = Matrix1x2::new(one, zero);
    let position = Position { h, h_transposed: h.transpose(), r: Matrix1::new(r) };
    let observations: Vec<_> =
        scattered(STEPS).into_iter().map(|z| Vector1::new(constant::<T>(z))).collect();
    let start = StateAndCovariance::new(Vector2::new(zero, zero), Matrix2::identity());
    let estimates = KalmanFilterNoControl::new(&motion, &position).filter(&start, &observations).unwrap();
    estimates[STEPS - 1].state().x
});

#[test]
fn last_state_of_a_scalar_filter() {
    // p- = p + q, k = p- / (p- + r), m = m + k (z - m), p = (1 - k) p-; each line differentiated by hand.
    let (q, r) = (0.2, 0.7);
    let gradient = |dq: f64, dr: f64| {
        let (mut m, mut dm, mut p, mut dp) = (0.0, 0.0, 1.0, 0.0);
        for z in scattered(STEPS) {
            let (prior, dprior) = (p + q, dp + dq);
            let k = prior / (prior + r);
            let dk = (dprior * r - prior * dr) / ((prior + r) * (prior + r));
            dm += dk * (z - m) - k * dm;
            m += k * (z - m);
            dp = (1.0 - k) * dprior - dk * prior;
            p = (1.0 - k) * prior;
        }
        dm
    };
    let expected = [gradient(1.0, 0.0), gradient(0.0, 1.0)];
    assert_gradient("kalman last state", &LastState, &[q, r], &expected, 1e-13);
}

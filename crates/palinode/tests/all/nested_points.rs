//! Derivatives inside derivatives, through every pairing of drivers, at random and structured points (zeros,
//! equal entries, next to nothing): right, by closed forms, or refused; and not refused if nothing in the
//! program is wrong.
//!
//! A program is a sum of terms `c sin(u)`, `u = a . x + b . y + g`, where the sine is written in one of
//! several ways, some with short cuts that are wrong from some order on. The inner driver differentiates
//! along a direction by `y`, once or twice, the outer one by `x`. That derivative is `c (a . v)^m (b . w)^n`
//! times one of the sine.

use palinode::drivers::{derivatives, hvp, jvp, sparse_hessian, sparse_jacobian, vjp};
use palinode::forward::Jet;
use palinode::num::Key;
use palinode::{Dual, Error, Scalar, Tape, Var, grad, hessian, jacobian};
use std::cell::Cell;

/// A number of the inner driver, made over that of the outer one.
trait Over<S>: Scalar<Bool = bool> + PartialOrd + PartialOrd<f64> {
    fn over(number: S) -> Self;
    fn is_no_number(self) -> bool;
}

macro_rules! over {
    ($([$($generics:tt)*] $Number:ty: |$x:ident| $lifted:expr;)*) => {$(
        impl<S: Scalar<Bool = bool> + PartialOrd $($generics)*> Over<S> for $Number {
            fn over($x: S) -> Self {
                $lifted
            }
            fn is_no_number(self) -> bool {
                self.is_nan()
            }
        }
    )*};
}
over! {
    [] Var<S>: |x| Var::lift(x);
    [] Dual<S>: |x| Dual::lift(x);
    [] Var<Dual<S>>: |x| Var::lift(Dual::lift(x));
    [] Var<Var<S>>: |x| Var::lift(Var::lift(x));
    [] Jet<S, 2>: |x| Jet::lift(x);
}

/// A function of two numbers over `S`.
trait Function<S> {
    fn call<T: Over<S>>(&self, x: [T; 2]) -> T;
}

const DRIVERS: [&str; 10] = [
    "grad",
    "vjp",
    "jvp",
    "jacobian",
    "sparse_jacobian",
    "record",
    "hvp",
    "hessian",
    "sparse_hessian",
    "derivatives",
];

fn order(driver: usize) -> i32 {
    if driver < 6 { 1 } else { 2 }
}

/// The derivative of a function along `v`, of the order of the driver.
fn along<S: Scalar<Bool = bool> + PartialOrd>(
    driver: usize,
    f: &impl Function<S>,
    x: [f64; 2],
    v: [f64; 2],
) -> Result<S, Error> {
    let [x, v] = [x, v].map(|pair| pair.map(S::from_f64));
    let dot = |g: &[S]| g[0] * v[0] + g[1] * v[1];
    let twice = |h: Vec<Vec<S>>| dot(&[dot(&h[0]), dot(&h[1])]);
    match driver {
        0 => grad(|x| f.call([x[0], x[1]]), &x).map(|g| dot(&g)),
        1 => vjp(|x| [f.call([x[0], x[1]])], &x, &[S::from_f64(1.0)]).map(|answer| dot(&answer.1)),
        2 => jvp(|x| [f.call([x[0], x[1]])], &x, &v).map(|answer| answer.1[0]),
        3 => jacobian(|x| [f.call([x[0], x[1]])], &x).map(|j| dot(&j[0])),
        4 => sparse_jacobian(|x| [f.call([x[0], x[1]])], &x).map(|j| dot(&j.to_dense()[0])),
        5 => {
            let mut tape = Tape::new();
            let record = tape.record(&x, |x| [f.call([x[0], x[1]])])?;
            // A recording does not ask whether its values are numbers.
            let value = record.values()[0].glance().unwrap_or(0.0);
            if value.is_nan() {
                return Err(Error::NonFiniteOutput { position: 0, value });
            }
            record.forward(&v).map(|tangents| tangents[0])
        }
        6 => hvp(|x| f.call([x[0], x[1]]), &x, &v).map(|answer| dot(&answer.2)),
        7 => hessian(|x| f.call([x[0], x[1]]), &x).map(twice),
        8 => sparse_hessian(|x| f.call([x[0], x[1]]), &x).map(|h| twice(h.to_dense())),
        _ => {
            let line = |t: Jet<S, 2>| f.call([0, 1].map(|i| Jet::lift(x[i]) + t * Jet::lift(v[i])));
            derivatives::<S, 2>(line, S::zero()).map(|d| d[2])
        }
    }
}

#[derive(Clone, Debug)]
struct Term {
    factor: f64,
    a: [f64; 2],
    b: [f64; 2],
    shift: f64,
    way: usize,
}

/// The ways below are right to every order that is asked for here; the others have wrong short cuts.
const RIGHT_WAYS: usize = 5;
const WAYS: usize = 11;

/// The sine, in one of several ways.
#[allow(clippy::double_comparisons, reason = "two comparisons are a way to ask for zero")]
fn sine<S, T: Over<S>>(u: T, way: usize) -> T {
    let zero = || u * T::from_f64(0.0);
    let cubic = || u - u * u * u * T::from_f64(1.0 / 6.0);
    match way {
        0 => u.sin(),
        1 if u > 0.0 => u.sin(),
        1 => -(-u).sin(),
        // The largest of equal numbers, by hand.
        2 => [u.sin(), u.sin(), u.sin()].into_iter().reduce(|a, b| if b > a { b } else { a }).expect("three"),
        3 if Scalar::abs(u) <= 1e-12 => cubic() + u * u * u * u * u * T::from_f64(1.0 / 120.0),
        3 => u.sin(),
        // The sum of sorted numbers.
        4 => {
            let mut parts = [u.sin(), u * T::from_f64(0.0), u.sin() * T::from_f64(2.0)];
            parts.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
            (parts[0] + parts[1] + parts[2]) * T::from_f64(1.0 / 3.0)
        }
        5 if u == 0.0 => zero(),
        6 if u == 0.0 => u,
        7 if Scalar::abs(u) <= 1e-9 => zero(),
        8 if u * u <= 1e-20 => u,
        9 => {
            let quotient = u.sin() / u;
            if quotient.is_no_number() { zero() } else { quotient * u }
        }
        10 if u >= 0.0 && u <= 0.0 => zero(),
        _ => u.sin(),
    }
}

struct Inner<'a, S> {
    terms: &'a [Term],
    x: [S; 2],
}

impl<S: Scalar<Bool = bool> + PartialOrd> Function<S> for Inner<'_, S> {
    fn call<T: Over<S>>(&self, y: [T; 2]) -> T {
        let x = self.x.map(T::over);
        let number = T::from_f64;
        self.terms.iter().fold(number(0.0), |sum, term| {
            let u = x[0] * number(term.a[0]) + x[1] * number(term.a[1]);
            let u = u + y[0] * number(term.b[0]) + y[1] * number(term.b[1]) + number(term.shift);
            sum + sine::<S, T>(u, term.way) * number(term.factor)
        })
    }
}

struct Outer<'a> {
    terms: &'a [Term],
    driver: usize,
    y: [f64; 2],
    w: [f64; 2],
    refused: Cell<bool>,
}

impl Function<f64> for Outer<'_> {
    fn call<S: Over<f64>>(&self, x: [S; 2]) -> S {
        along(self.driver, &Inner { terms: self.terms, x }, self.y, self.w).unwrap_or_else(|error| {
            assert!(["PAL0103", "PAL0104", "PAL0119"].contains(&error.code()), "{error}");
            self.refused.set(true);
            S::from_f64(f64::NAN)
        })
    }
}

fn entry(key: Key, i: u64) -> f64 {
    match key.below(8, 2 * i) {
        0..=2 => 0.0,
        3 => 1.0,
        4 => -1.0,
        5 => 0.5,
        6 => 1e-9,
        _ => 2.0 * key.uniform(2 * i + 1) - 1.0,
    }
}

#[test]
fn right_or_refused() {
    let cases: u64 = std::env::var("PALINODE_NESTED").ok().and_then(|n| n.parse().ok()).unwrap_or(75);
    let count = DRIVERS.len() as u64;
    let (mut right, mut refused, mut wrong) = (0, 0, Vec::new());
    // The last one was refused once, because the clear ends of its parts are those of different directions.
    for case in (0..cases).chain([3755]) {
        let (outer, inner) = ((case / count % count) as usize, (case % count) as usize);
        let key = Key::from_seed(7000 + case);
        let pair = |at: u64| [entry(key, at), entry(key, at + 1)];
        let (x, y, v, w) = (pair(0), pair(2), [1.0, 0.5], [0.7, -1.0]);
        let is_right = key.below(2, 1000) == 0;
        let terms: Vec<Term> = (0..1 + key.below(3, 1001))
            .map(|k| {
                let (a, b) = (pair(20 + 10 * k), pair(22 + 10 * k));
                let at_zero = -(a[0] * x[0] + a[1] * x[1] + (b[0] * y[0]) + b[1] * y[1]);
                let shift = if key.below(3, 1100 + k) == 0 { key.uniform(1200 + k) } else { at_zero };
                let ways = if is_right { RIGHT_WAYS } else { WAYS };
                let way = key.below(ways as u64, 1300 + k) as usize;
                Term { factor: key.uniform(1400 + k) + 0.5, a, b, shift, way }
            })
            .collect();
        let (m, n) = (order(outer), order(inner));
        let expected: f64 = terms
            .iter()
            .map(|term| {
                let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
                let u = dot(term.a, x) + dot(term.b, y) + term.shift;
                let of_sine = [u.sin(), u.cos(), -u.sin(), -u.cos()][((m + n) % 4) as usize];
                term.factor * dot(term.a, v).powi(m) * dot(term.b, w).powi(n) * of_sine
            })
            .sum();
        let program = Outer { terms: &terms, driver: inner, y, w, refused: Cell::new(false) };
        let found = along(outer, &program, x, v);
        let name =
            || format!("case {case}: {} in {} of {terms:?} at {x:?}, {y:?}", DRIVERS[inner], DRIVERS[outer]);
        match found {
            Ok(found) if (found - expected).abs() < 1e-7 => right += 1,
            Ok(found) => wrong.push(format!("{}: {found}, not {expected}", name())),
            Err(error) if is_right || !["PAL0103", "PAL0104", "PAL0119"].contains(&error.code()) => {
                wrong.push(format!("{}: {error} (inside: {})", name(), program.refused.get()));
            }
            Err(_) => refused += 1,
        }
    }
    println!("{right} right, {refused} refused");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused > 0 && right > refused, "{right} right, {refused} refused");
}

//! Every peer's gradient of every problem agrees with central differences of plain f64, and with every other
//! peer.

use benches::measure::{distance, gradient_once};
use benches::num::Num;
use benches::peer;
use benches::problem::{self, Problem, Size, Visitor};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Five-point central differences: error about 1e-10 relative at this step, for these smooth sizes.
fn finite_differences<P: Problem>(p: &P) -> Vec<f64> {
    let x = p.inputs();
    let at = |i: usize, shift: f64| {
        let mut moved = x.clone();
        moved[i] += shift;
        p.eval(&moved)
    };
    let slope = |i: usize| {
        let h = 1e-3 * x[i].abs().max(0.1);
        (8.0 * (at(i, h) - at(i, -h)) - (at(i, 2.0 * h) - at(i, -2.0 * h))) / (12.0 * h)
    };
    (0..x.len()).map(slope).collect()
}

#[derive(Default)]
struct Check {
    compared: usize,
}

impl Visitor for Check {
    fn visit<P: Problem>(&mut self, size: Size) {
        let p = P::new(size);
        let expected = finite_differences(&p);
        assert!(expected.iter().any(|&g| g != 0.0), "{}: a zero gradient tests nothing", P::NAME);
        let mut gradients: Vec<(&str, Vec<f64>)> = Vec::new();
        for peer in peer::all::<P>() {
            match gradient_once(&peer, &p) {
                Ok(g) => {
                    let apart = distance(&g, &expected);
                    assert!(apart < 1e-6, "{}: {} is {apart:e} from differences", P::NAME, peer.name);
                    gradients.push((peer.name, g));
                }
                Err(why) => assert_eq!(peer.kind, peer::Kind::Forward, "{}: {why}", P::NAME),
            }
        }
        for (name, g) in &gradients[1..] {
            let (first, reference) = &gradients[0];
            let apart = distance(g, reference);
            assert!(apart < 1e-12, "{}: {name} is {apart:e} from {first}", P::NAME);
        }
        self.compared += gradients.len();
    }
}

#[test]
fn every_peer_agrees_with_differences_and_with_the_others() {
    let mut check = Check::default();
    problem::for_each(&mut check, Size::Test);
    // Four reverse-mode peers on seven problems, two forward-mode ones on those with few inputs.
    assert!(check.compared >= 4 * 7 + 2 * 3, "only {} gradients compared", check.compared);
}

#[test]
fn distance_sees_a_wrong_gradient() {
    assert!(distance(&[1.0, 2.0], &[1.0, -2.0]) > 0.5);
    assert!(distance(&[f64::NAN], &[1.0]).is_infinite());
    assert_eq!(distance(&[0.0], &[0.0]), 0.0);
}

/// Plain arithmetic that takes the problems' row forms, as a tape with n-ary nodes does.
#[derive(Clone, Copy)]
struct Rows(f64);

macro_rules! operators {
    ($($trait:ident $f:ident $op:tt),*) => { $(impl $trait for Rows {
        type Output = Self;
        fn $f(self, o: Self) -> Self {
            Rows(self.0 $op o.0)
        }
    })* };
}
operators!(Add add +, Sub sub -, Mul mul *, Div div /);

impl Neg for Rows {
    type Output = Self;
    fn neg(self) -> Self {
        Rows(-self.0)
    }
}

macro_rules! in_rows {
    ($x:expr, $name:ident) => {
        Rows($x.0.$name())
    };
}

impl Num for Rows {
    const NARY: bool = true;
    benches::functions!(self, in_rows: sin exp ln tanh sqrt);
    fn cst(c: f64) -> Self {
        Rows(c)
    }
    fn relu(self) -> Self {
        Rows(self.0.max(0.0))
    }
    fn pick_max(self, other: Self) -> Self {
        Rows(self.0.max(other.0))
    }
}

struct RowForms;

impl Visitor for RowForms {
    fn visit<P: Problem>(&mut self, size: Size) {
        let p = P::new(size);
        let x = p.inputs();
        let columns = p.eval(&x);
        let rows = p.eval(&x.iter().map(|&v| Rows(v)).collect::<Vec<_>>()).0;
        assert!((rows - columns).abs() <= 1e-12 * columns.abs(), "{}: {rows} != {columns}", P::NAME);
    }
}

#[test]
fn row_forms_compute_the_same_function() {
    problem::for_each(&mut RowForms, Size::Quick);
}

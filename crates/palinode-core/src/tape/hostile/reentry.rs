//! What calls back into a recording that is going on: iterators, rules, outputs, destructors.

use super::{check_usable, message, silent, tapes_named};
use crate::{Array, Boundary, Compression, CustomRule, Error, Outputs, Tape, Var, custom, grad};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An iterator with any bounds on its length.
struct Claims<I>(I, usize);
impl<I: Iterator> Iterator for Claims<I> {
    type Item = I::Item;
    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.1))
    }
}

/// All sweeps over one recording agree with this Jacobian of one output.
fn check_sweeps(f: impl Fn(&[Var<f64>]) -> Var<f64>, x: &[f64], value: f64, expected: &[f64]) {
    for mut tape in [Tape::new(), Tape::traced()] {
        let mut record = tape.record(x, &f).unwrap();
        assert_eq!(record.values(), [value]);
        assert_eq!(record.reverse(&[1.0]).unwrap(), expected);
        for input in 0..x.len() {
            let mut direction = vec![0.0; x.len()];
            direction[input] = 1.0;
            assert_eq!(record.forward(&direction).unwrap(), [expected[input]]);
        }
        let depends: Vec<usize> = (0..x.len()).filter(|&input| expected[input] != 0.0).collect();
        assert!(depends.iter().all(|input| record.pattern()[0].contains(input)));
        assert_eq!(record.compress(&Compression::default()).unwrap().reverse(&[1.0]).unwrap(), expected);
    }
}

/// A short sum takes its node back at the end. What was recorded meanwhile and is no node must keep its
/// place.
#[test]
fn a_short_sum_during_which_an_array_is_written() {
    let f = |x: &[Var<f64>]| {
        let mut array = Array::from_vars(x);
        let written = x[0] * x[1] * 2.0;
        let terms = [0, 1].into_iter().map(|k| {
            if k == 1 {
                array.set(0, x[2]);
                return Var::lift(0.0);
            }
            written
        });
        let sum: Var<f64> = terms.sum();
        sum * array.get(0) + array.get(1)
    };
    // 2 x0 x1 x2 + x1
    check_sweeps(f, &[2.0, 3.0, 5.0], 63.0, &[30.0, 21.0, 12.0]);
    // The same with a custom operation of no outputs, which is no node either.
    let f = |x: &[Var<f64>]| {
        let terms = [0, 1].into_iter().map(|k| match k {
            0 => x[0] * x[1],
            _ => {
                custom(x, &[], silent());
                Var::lift(0.0)
            }
        });
        terms.sum::<Var<f64>>() * x[2]
    };
    check_sweeps(f, &[2.0, 3.0, 5.0], 30.0, &[15.0, 10.0, 6.0]);
    // Nothing is left of such a sum, also where nothing is recorded afterwards.
    let mut tape = Tape::new();
    let record = tape.record(&[2.0, 3.0], |x| {
        let mut array = Array::from_vars(x);
        let terms = [0, 1].into_iter().map(|k| {
            if k == 1 {
                array.set(0, x[1]);
            }
            x[k] * 2.0
        });
        terms.sum::<Var<f64>>()
    });
    assert_eq!(record.unwrap().forward(&[1.0, 1.0]).unwrap(), [4.0]);
}

#[test]
fn sums_in_sums_with_wrong_lengths() {
    let claims = [0, 1, 2, 3, 100];
    for claimed in claims.into_iter().step_by(if cfg!(miri) { 2 } else { 1 }) {
        let f = |x: &[Var<f64>]| {
            let inner = |k: usize| -> Var<f64> { Claims(x.iter().map(|&y| y * x[k]), claimed).sum() };
            Claims((0..3).map(|k| inner(k) * inner(k) + x[k]), claimed).sum()
        };
        // s = x0 + x1 + x2; sum over k of (x_k s)^2 + s = q s^2 + s with q = x0^2 + x1^2 + x2^2; by x_i: 2
        // x_i s^2 + 2 q s + 1
        check_sweeps(f, &[1.0, 2.0, 3.0], 510.0, &[241.0, 313.0, 385.0]);
    }
}

#[test]
fn a_sum_whose_iterator_panics_half_way() {
    let f = |x: &[Var<f64>]| {
        let halted = catch_unwind(AssertUnwindSafe(|| -> Var<f64> {
            x.iter().enumerate().map(|(k, &y)| if k == 2 { panic!("no more") } else { y * x[0] }).sum()
        }));
        assert!(halted.is_err());
        x[0] * x[1] + x[2] * x[2]
    };
    check_sweeps(f, &[2.0, 3.0, 5.0], 31.0, &[3.0, 2.0, 10.0]);
}

#[test]
fn an_iterator_that_records_other_tapes_meanwhile() {
    let f = |x: &[Var<f64>]| {
        let mut other = Tape::new();
        let mut slope =
            |at: f64| other.value_and_grad(|y| y.iter().map(|&y| y * y).sum(), &[at, 1.0]).unwrap().1[0];
        (0..3).map(|k| x[k] * slope(x[k].value())).sum()
    };
    check_sweeps(f, &[1.0, 2.0, 3.0], 28.0, &[2.0, 4.0, 6.0]);
    // And one whose terms are of two tapes.
    let mut other = Tape::new();
    let said = message("a sum over two tapes", || {
        let mixed = |x: &[Var<f64>]| {
            let inner = other.value_and_grad(|y| [y[0], y[0], x[0]].into_iter().sum(), &[1.0]);
            inner.map(|_| x[0]).unwrap()
        };
        grad(mixed, &[1.0])
    });
    assert_eq!(tapes_named(&said), 2, "{said}");
    assert_eq!(other.value_and_grad(|x| x[0] * x[0], &[2.0]).unwrap().1, [4.0]);
}

/// Mistakes that the program catches and goes on from.
#[test]
fn a_mistake_that_is_caught_leaves_no_trace_in_the_gradient() {
    let mut kept = None;
    grad(|x| *kept.insert(x[0] * x[0]), &[1.0]).unwrap();
    let stale = kept.unwrap();
    let f = |x: &[Var<f64>]| {
        let mut boundary = Boundary::new();
        boundary.begin(x);
        let mut state = [x[0] * x[1], x[1] * x[2] + x[0], stale];
        assert!(catch_unwind(AssertUnwindSafe(|| boundary.cross(&mut state))).is_err());
        let mut array = Array::from_vars(x);
        assert!(catch_unwind(AssertUnwindSafe(|| array.set(0, stale))).is_err());
        assert!(
            catch_unwind(AssertUnwindSafe(|| Array::concat(&[&array, &Array::from_vars(&[stale])]))).is_err()
        );
        assert!(catch_unwind(AssertUnwindSafe(|| [x[0], stale].iter().sum::<Var<f64>>())).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| custom(&[x[0], stale], &[1.0], silent()))).is_err());
        boundary.cross(&mut state[..2]);
        state[0] * state[1] + array.get(0)
    };
    // x0 x1 (x1 x2 + x0) + x0
    check_sweeps(f, &[2.0, 3.0, 5.0], 104.0, &[58.0, 64.0, 18.0]);
}

/// Outputs that record while they are shown, and others each time.
struct Restless([Var<f64>; 3], Cell<u32>);
impl Outputs<f64> for Restless {
    fn for_each(&self, see: &mut dyn FnMut(Var<f64>)) {
        self.1.set(self.1.get() + 1);
        let sum: Var<f64> = self.0.iter().map(|&x| x * f64::from(self.1.get())).sum();
        see(sum * self.0[0] * self.0[1]);
        grad(|y| y[0] * y[0], &[1.0]).unwrap();
        see(self.0[0]);
    }
}

#[test]
fn outputs_that_record_while_they_are_shown() {
    let mut tape = Tape::new();
    // The second showing counts: 2 (x0 + x1 + x2) x0 x1, and x0.
    let mut record = tape.record(&[2.0, 3.0, 5.0], |x| Restless([x[0], x[1], x[2]], Cell::new(0))).unwrap();
    assert_eq!(record.values(), [120.0, 2.0]);
    assert_eq!(record.reverse(&[1.0, 0.0]).unwrap(), [72.0, 52.0, 12.0]);
    // One more output the second time, and one that catches the panic that it causes.
    struct Growing(Var<f64>, Cell<usize>);
    impl Outputs<f64> for Growing {
        fn for_each(&self, see: &mut dyn FnMut(Var<f64>)) {
            self.1.set(self.1.get() + 1);
            (0..self.1.get()).for_each(|_| see(self.0));
        }
    }
    let said =
        message("outputs that change", || tape.record(&[1.0], |x| Growing(x[0], Cell::new(0))).map(|_| ()));
    assert!(said.contains("the same outputs each time"), "{said}");
    assert!(tape.recorded().is_none());
    check_usable(&mut tape);
}

/// A rule that computes with what it has kept of the recording, wherever it is called.
struct Keeper {
    kept: Var<f64>,
    in_reverse: bool,
    in_drop: bool,
}

impl CustomRule<f64> for Keeper {
    fn name(&self) -> &'static str {
        "keeper"
    }
    fn reverse(&self, outputs: &[f64], inputs: &mut [f64]) -> Result<(), Error> {
        if self.in_reverse {
            let _ = self.kept * self.kept;
        }
        // A gradient of its own is no trouble: d/dx x^3 at 2 is 12.
        inputs[0] += outputs[0] * grad(|x| x[0] * x[0] * x[0], &[2.0])?[0];
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.in_drop && !std::thread::panicking() {
            let _ = self.kept * self.kept + 1.0;
        }
    }
}

#[test]
fn rules_that_compute_with_what_they_have_kept() {
    let mut tape = Tape::new();
    let mut recorded = |in_reverse, in_drop| {
        let rule = |x: &[Var<f64>]| Keeper { kept: x[0] * x[1], in_reverse, in_drop };
        let mut record = tape.record(&[2.0, 3.0], |x| custom(&x[..1], &[8.0], rule(x))[0]).unwrap();
        record.reverse(&[1.0]).map(<[f64]>::to_vec)
    };
    assert_eq!(recorded(false, false).unwrap(), [12.0, 0.0]);
    let said = message("a rule in a sweep", || recorded(true, false));
    assert!(tapes_named(&said) == 1 && said.contains("no tape is open"), "{said}");
    assert_eq!(recorded(false, true).unwrap(), [12.0, 0.0]);
    // The next recording drops that rule.
    let said = message("a rule that is dropped", || recorded(false, false));
    assert!(tapes_named(&said) == 1 && said.contains("no tape is open"), "{said}");
    assert_eq!(recorded(false, false).unwrap(), [12.0, 0.0]);
    // One that is refused is dropped while the tape is being written to.
    let mut full = Tape::with_limits(3, usize::MAX);
    let said = message("a rule that is dropped at once", || {
        full.record(&[2.0, 3.0], |x| {
            let rule = Keeper { kept: x[0] * x[1] * 2.0, in_reverse: false, in_drop: true };
            custom(x, &[1.0, 2.0, 3.0], rule)[0]
        })
        .map(|_| ())
    });
    assert!(said.contains("being written to"), "{said}");
    assert_eq!(full.value_and_grad(|x| x[0] * x[0], &[3.0]).unwrap().1, [6.0]);
}

/// A destructor that computes with numbers of the recording while a panic goes through it.
#[test]
fn a_destructor_inside_the_recording() {
    struct Late<'a>(Var<f64>, &'a Cell<f64>);
    impl Drop for Late<'_> {
        fn drop(&mut self) {
            self.1.set((self.0 * self.0 + self.0).value());
        }
    }
    let (seen, mut tape) = (Cell::new(0.0), Tape::new());
    let said = message("the closure's own", || {
        tape.record(&[3.0, 1.0, 1.0], |x| {
            let _late = Late(x[0], &seen);
            if x[0] > 0.0 {
                panic!("its own");
            }
            x[0]
        })
        .map(|_| ())
    });
    assert_eq!((said.as_str(), seen.get()), ("its own", 12.0));
    check_usable(&mut tape);
}

/// A gradient in the destructor of a thread-local, when the thread's own numbers have been given back.
#[test]
fn a_gradient_while_the_thread_ends() {
    struct Last(std::sync::mpsc::Sender<(Vec<f64>, String)>);
    impl Drop for Last {
        fn drop(&mut self) {
            let slope = grad(|x| x[0] * x[1], &[2.0, 3.0]).unwrap();
            let stale =
                KEPT.try_with(Cell::get).ok().flatten().expect("what needs no destructor is still there");
            let said = message("a stale number", || grad(|x| x[0] * stale, &[1.0]));
            self.0.send((slope, said)).unwrap();
        }
    }
    thread_local! {
        // Destroyed in an order that nobody promises, so there is one before and one after.
        static FIRST: Cell<Option<Last>> = const { Cell::new(None) };
        static SECOND: Cell<Option<Last>> = const { Cell::new(None) };
        static KEPT: Cell<Option<Var<f64>>> = const { Cell::new(None) };
    }
    let (send, received) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let send = send.clone();
        let work = move || {
            FIRST.set(Some(Last(send.clone())));
            grad(|x| KEPT.replace(Some(x[0])).unwrap_or(x[0]), &[1.0]).unwrap();
            SECOND.set(Some(Last(send)));
        };
        std::thread::spawn(work).join().expect("no destructor panics");
    }
    drop(send);
    let received: Vec<(Vec<f64>, String)> = received.iter().collect();
    assert_eq!(received.len(), 4);
    for (slope, said) in received {
        assert_eq!(slope, [3.0, 2.0]);
        assert_eq!(tapes_named(&said), 2, "{said}");
    }
}

/// A limit of nodes holds whatever is taken back: a sum of two terms writes two edges and takes one node
/// back.
#[test]
fn short_sums_do_not_lift_the_limit_of_nodes() {
    let mut tape = Tape::with_limits(10, usize::MAX);
    let recorded = tape.record(&[1.0, 2.0, 3.0], |x: &[Var<f64>]| {
        let mut s = x[0];
        for _ in 0..1000 {
            let _: Var<f64> = [x[0], x[1]].iter().sum();
            s = s * x[1] + x[2] * x[0];
        }
        s
    });
    assert_eq!(recorded.map(|record| record.size().nodes).unwrap_err(), Error::TapeFull { limit: 10 });
    // What fits, fits as before.
    let short = |x: &[Var<f64>]| {
        (0..7).fold(x[0], |s, _| {
            let _: Var<f64> = [x[0], x[1]].iter().sum();
            s * x[1] + x[2] * x[0]
        })
    };
    assert_eq!(tape.record(&[1.0, 2.0, 3.0], short).unwrap().size().nodes, 10);
}

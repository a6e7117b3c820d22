//! Hostile programs without `unsafe`: numbers and arrays that are stale, foreign, nested or on another
//! thread, through every public entry; what calls back into the tape that calls it; what panics half way.
//! Each must end in a panic that names both sides, or in the right number, and leave the tape usable. Miri
//! runs these too (`scripts/miri`), so they are short. They use what is public, and nothing else.

use crate::{Array, Boundary, CustomRule, Scalar, Tape, Var, custom, custom_rule, grad, rules};
use std::panic::{AssertUnwindSafe, catch_unwind};

mod meddling;
mod reentry;

/// What `f` says when it panics.
#[track_caller]
pub(crate) fn message<R>(what: &str, f: impl FnOnce() -> R) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(f)) else { panic!("{what} went unnoticed") };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).expect("a text")
}

/// How many different tapes a message names.
fn tapes_named(message: &str) -> usize {
    let names = message.split("tape ").skip(1).filter_map(|rest| rest.split(' ').next());
    let mut names: Vec<&str> = names.filter(|name| name.contains('.')).collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

/// One way to use a number, and one to use an array, of elsewhere, where a recording with these inputs is
/// open.
type Use = (&'static str, fn(&[Var<f64>], Var<f64>, &mut Array<f64>));

/// One that adds nothing.
fn silent() -> impl CustomRule<f64> {
    custom_rule("silent", |_, _| ())
}

fn used<T>(_: T) {}

fn mine(x: &[Var<f64>]) -> Array<f64> {
    Array::from_vars(x)
}

const USES: &[Use] = &[
    ("x + v", |x, v, _| used(x[0] + v)),
    ("v.sin()", |_, v, _| used(v.sin())),
    ("v * 2", |_, v, _| used(v * 2.0)),
    ("mul_add", |x, v, _| used(x[0].mul_add(x[1], v))),
    ("x < v", |x, v, _| used(x[0] < v)),
    ("v == 1", |_, v, _| used(v == 1.0)),
    ("v.to_f64()", |_, v, _| used(v.to_f64())),
    ("is_nan", |_, v, _| used(v.is_nan())),
    ("peek", |_, v, _| used(v.peek())),
    ("an iterator's sum", |x, v, _| used([x[0], x[1], x[2], v].iter().sum::<Var<f64>>())),
    ("a sum of it alone", |_, v, _| used([v].iter().sum::<Var<f64>>())),
    ("sum_of", |x, v, _| used(Var::sum_of(&[x[0], v]))),
    ("dot", |x, v, _| used(Var::dot(&[x[0], x[1]], &[x[2], v]))),
    ("affine with a coefficient of zero", |x, v, _| used(Var::affine(x[0], &[0.0], &[v]))),
    ("product", |x, v, _| used([x[0], v].iter().product::<Var<f64>>())),
    ("custom", |x, v, _| used(custom(&[x[0], v], &[1.0], silent()))),
    ("begin", |x, v, _| Boundary::new().begin(&[x[0], v])),
    ("cross", |x, v, _| {
        let mut boundary = Boundary::new();
        boundary.begin(x);
        boundary.cross(&mut [x[0], v]);
    }),
    ("cross without inputs", |_, v, _| Boundary::new().cross(&mut [v])),
    ("cross of a constant's boundary", |_, v, _| {
        let mut boundary = Boundary::new();
        boundary.begin(&[Var::lift(1.0)]);
        boundary.cross(&mut [v]);
    }),
    ("from_vars", |x, v, _| used(Array::from_vars(&[x[0], v]))),
    ("set", |x, v, _| mine(x).set(0, v)),
    ("add_at", |x, v, _| mine(x).add_at(0, v)),
    ("push", |x, v, _| mine(x).push(v)),
    ("fill", |x, v, _| mine(x).fill(v)),
    ("a set of constants", |_, v, _| Array::zeros(&[2]).set(0, v)),
    ("array * v", |x, v, _| used(&mine(x) * v)),
    ("array += v", |x, v, _| mine(x).zip_with_in_place(rules::Add {}, v)),
    ("three with v", |x, v, _| used(mine(x).zip_with_two(rules::MulAdd {}, v, 1.0))),
    ("get", |_, _, a| used(a.get(0))),
    ("its set", |_, _, a| a.set(0, 1.0)),
    ("its add_at", |x, _, a| a.add_at(0, x[0])),
    ("its push", |_, _, a| a.push(1.0)),
    ("its pop", |_, _, a| used(a.pop())),
    ("its swap", |_, _, a| a.swap(0, 1)),
    ("its fill", |_, _, a| a.fill(0.0)),
    ("its map", |_, _, a| used(a.map(rules::Sin {}))),
    ("its map in place", |_, _, a| a.map_in_place(rules::Sin {})),
    ("a sum with it", |x, _, a| used(&mine(x) + &*a)),
    ("assign to it", |x, _, a| a.assign(&mine(x))),
    ("assign from it", |x, _, a| mine(x).assign(&*a)),
    ("a view of it", |_, _, a| a.slice(1..).fill(0.0)),
    ("its sum", |_, _, a| used(a.sum())),
    ("its sums", |_, _, a| used(a.reshaped(&[1, 3]).sum_axis(1))),
    ("its dot", |x, _, a| used(a.dot(&mine(x)))),
    ("its largest", |_, _, a| used(a.largest())),
    ("its matmul", |x, _, a| used(a.reshaped(&[1, 3]).matmul(&mine(x)))),
    ("its gather", |_, _, a| used(a.gather(&[0]))),
    ("its scatter", |x, _, a| a.scatter(&[0], &mine(&x[..1]))),
    ("scatter from it", |x, _, a| mine(x).scatter_add(&[0, 0, 1], a)),
    ("concat", |x, _, a| used(Array::concat(&[&mine(x), a]))),
    ("its clone", |_, _, a| used(a.clone())),
    ("its copy", |_, _, a| used(a.copied())),
    ("its numbers", |_, _, a| used(a.to_vars())),
];

/// All of them; some under Miri, which takes half a second for each.
fn uses(first: usize) -> impl Iterator<Item = &'static Use> {
    let (skip, step) = if cfg!(miri) { (first, 3) } else { (0, 1) };
    USES.iter().skip(skip).step_by(step)
}

/// A number and an array of the recording that `x` are the inputs of, with far higher nodes than a short
/// recording has.
fn far(x: &[Var<f64>]) -> (Var<f64>, Array<f64>) {
    let mut v = x[0];
    for _ in 0..8 {
        v = v * x[1] + x[2] * x[0];
    }
    (v, Array::from_vars(&[v, x[0], v]))
}

fn check_usable(tape: &mut Tape<f64>) {
    assert_eq!(
        tape.value_and_grad(|x| x[0] * x[1] + x[2], &[2.0, 3.0, 4.0]).unwrap(),
        (10.0, vec![3.0, 2.0, 1.0])
    );
}

#[test]
fn what_is_stale_is_named_with_the_open_tape() {
    let mut tape = Tape::new();
    for (what, use_it) in uses(0) {
        let mut kept = None;
        tape.record(&[1.0, 0.5, 2.0], |x| kept.insert(far(x)).0).unwrap();
        let (v, mut a) = kept.unwrap();
        // The same tape, recorded again.
        let said = message(what, || {
            let _ = tape.record(&[1.0, 2.0, 3.0], |x| {
                use_it(x, v, &mut a);
                x[0]
            });
        });
        assert_eq!(tapes_named(&said), 2, "{what}: {said}");
        check_usable(&mut tape);
    }
}

#[test]
fn what_is_of_an_outer_tape_is_named_with_the_inner_one() {
    let mut inner = Tape::new();
    let mut refused = 0;
    for (what, use_it) in uses(1) {
        let slope = grad(
            |outer| {
                let (v, mut a) = far(outer);
                let used = catch_unwind(AssertUnwindSafe(|| {
                    inner.value_and_grad(
                        |x| {
                            use_it(x, v, &mut a);
                            x[0] * x[1]
                        },
                        &[2.0, 5.0, 3.0],
                    )
                }));
                match used {
                    // What concerns the outer tape alone is recorded there.
                    Ok(found) => assert_eq!(found.unwrap(), (10.0, vec![5.0, 2.0, 0.0]), "{what}"),
                    Err(panic) => {
                        refused += 1;
                        let said = message(what, || std::panic::resume_unwind(panic));
                        assert_eq!(tapes_named(&said), 2, "{what}: {said}");
                    }
                }
                check_usable(&mut inner);
                outer[0] * outer[1]
            },
            &[2.0, 3.0, 4.0],
        );
        assert_eq!(slope.unwrap(), [3.0, 2.0, 0.0], "{what}");
    }
    assert!(3 * refused > uses(1).count(), "{refused}");
}

#[test]
fn a_number_of_elsewhere_is_no_result() {
    let mut tape = Tape::new();
    let mut kept = None;
    tape.record(&[1.0, 0.5, 2.0], |x| kept.insert(far(x)).0).unwrap();
    let (v, _) = kept.unwrap();
    let said = message("a stale result", || tape.record(&[1.0], |_| v).map(|_| ()));
    assert_eq!(tapes_named(&said), 2, "{said}");
    assert!(tape.recorded().is_none());
    let said = message("an outer result", || {
        grad(|outer| Var::lift(grad(|_| outer[0], &[1.0]).unwrap()[0]), &[1.0])
    });
    assert_eq!(tapes_named(&said), 2, "{said}");
    check_usable(&mut tape);
}

#[test]
fn a_number_on_another_thread_is_refused_there() {
    let mut used = Vec::new();
    let slope = grad(
        |x| {
            let (x, (v, _)) = ([x[0], x[1], x[2]], far(x));
            let alone = std::thread::spawn(move || message("v * v", || v * v));
            // Looking is counted by thread.
            let seen = std::thread::spawn(move || message("a look", || v.peek()));
            let cross = move |y: &[Var<f64>]| {
                let mut boundary = Boundary::new();
                boundary.begin(y);
                let mut crossing = [x[0], v];
                boundary.cross(&mut crossing);
                crossing[1] * y[0]
            };
            let mixed = std::thread::spawn(move || message("cross", || grad(cross, &[1.0])));
            used = [alone, seen, mixed].map(|thread| thread.join().unwrap()).to_vec();
            x[0]
        },
        &[1.0, 2.0, 3.0],
    );
    assert_eq!(slope.unwrap(), [1.0, 0.0, 0.0]);
    assert_eq!(used.iter().map(|said| tapes_named(said)).collect::<Vec<_>>(), [1, 1, 2], "{used:?}");
    assert!(used[0].contains("was used on thread") && used[1].contains("was used on thread"), "{used:?}");
}

/// A boundary that was begun in another recording takes no number of this one, nor nothing at all.
#[test]
fn a_boundary_belongs_to_its_recording() {
    let mut tape = Tape::new();
    let mut stale = Boundary::new();
    tape.record(&[0.5, 2.0], |x| {
        stale.begin(x);
        x[0] * x[1]
    })
    .unwrap();
    for crossing in [1, 0] {
        let said = message("a stale boundary", || {
            tape.record(&[0.5, 2.0], |x| {
                stale.clone().cross(&mut x.to_vec()[..crossing]);
                x[0]
            })
            .map(|_| ())
        });
        assert_eq!(tapes_named(&said), 2, "{said}");
    }
}

#[test]
fn tapes_may_change_places_between_recordings() {
    let (mut a, mut b) = (Tape::new(), Tape::new());
    a.record(&[3.0], |x| x[0] * x[0]).unwrap();
    b.record(&[1.0, 2.0, 3.0], |x| x[0] * x[1] * x[2]).unwrap();
    core::mem::swap(&mut a, &mut b);
    assert_eq!(a.recorded().unwrap().reverse(&[1.0]).unwrap(), [6.0, 3.0, 2.0]);
    assert_eq!(b.recorded().unwrap().reverse(&[1.0]).unwrap(), [6.0]);
    // A record that is forgotten leaves nothing open; its tape is there again.
    let _ = core::mem::ManuallyDrop::new(a.record(&[2.0], |x| x[0] * x[0] * x[0]).unwrap());
    assert_eq!(a.recorded().unwrap().values(), [8.0]);
    let mut moved = std::thread::spawn(move || {
        a.record(&[2.0], |x| x[0] * x[0]).unwrap();
        a
    })
    .join()
    .unwrap();
    assert_eq!(moved.recorded().unwrap().reverse(&[1.0]).unwrap(), [4.0]);
}

/// A tape whose numbers belong to another tape, swept when that one is closed.
#[test]
fn a_record_over_numbers_of_a_closed_tape_cannot_be_swept() {
    let mut inner = Tape::<Var<f64>>::new();
    grad(
        |x| {
            let record = inner.record(&[x[0], x[1]], |y| y[0] * y[1] * y[1]).unwrap();
            record.values()[0]
        },
        &[2.0, 3.0],
    )
    .unwrap();
    let mut record = inner.recorded().unwrap();
    let said =
        message("a sweep over stale partials", || record.reverse(&[Var::lift(1.0)]).map(<[_]>::to_vec));
    assert_eq!(tapes_named(&said), 1, "{said}");
    assert!(said.contains("no tape is open"), "{said}");
    let said = message("stale cotangents", || grad(|z| record.reverse(&[z[0]]).unwrap()[0], &[1.0]));
    assert_eq!(tapes_named(&said), 2, "{said}");
}

#[test]
fn as_many_tapes_as_there_may_be() {
    fn deep(left: u32) -> f64 {
        if left == 0 {
            return 1.0;
        }
        grad(|x| x[0] * deep(left - 1), &[1.0]).unwrap()[0]
    }
    assert_eq!(deep(63), 1.0);
    assert!(
        message("one too many", || deep(64)).contains("63 tapes are being recorded on this thread at once")
    );
    assert_eq!(deep(63), 1.0);
}

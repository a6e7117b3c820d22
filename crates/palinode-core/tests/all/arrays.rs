//! Arrays on the tape: what users meet. Random programs and planted bugs are in `src/array/tests/`, further
//! classic traps are examples of docs/book/arrays.md.

use crate::support::{close, differences, panic_message};
use palinode_core::rules::{Add, Exp, Multiply, Negate, Sin, Tanh};
use palinode_core::{Array, Error, Key, Tape, Var, WhenOverwritten};

fn with_policy(policy: WhenOverwritten) -> Tape<f64> {
    let mut tape = Tape::new();
    tape.set_when_overwritten(policy);
    tape
}

/// A closure's gradient against differences of itself, under every policy that gives one.
pub(crate) fn check_by_differences(f: impl Fn(&[Var<f64>]) -> Var<f64>, x: &[f64]) {
    let value = |x: &[f64]| Tape::new().record(x, &f).unwrap().values().to_vec();
    let expected = &differences(value, x)[0];
    let mut bits = Vec::new();
    for policy in [WhenOverwritten::Copy, WhenOverwritten::AlwaysCopy, WhenOverwritten::Recompute] {
        let mut tape = with_policy(policy);
        let mut record = tape.record(x, &f).unwrap();
        let found = record.reverse(&[1.0]).unwrap().to_vec();
        close(&found, expected, 1e-6);
        bits.push(found.iter().map(|g| g.to_bits()).collect::<Vec<_>>());
    }
    assert!(bits[0] == bits[1] && bits[0] == bits[2], "policies differ");
}

/// Views that overlap, an array shifted along itself, views in other orders, lengths that change.
#[test]
fn views_write_through_and_lists_change_their_length() {
    type Program = fn(&[Var<f64>]) -> Var<f64>;
    let programs: [Program; 4] = [
        |x| {
            let a = Array::from_vars(x);
            let (mut left, mut right) = (a.slice(..4), a.slice(2..));
            left *= &right; // both read before either is written: a[2] and a[3] are in both
            right += &left;
            right.set(0, left.get(2) * left.get(3)); // an alias, written after a read
            a.sin().sum()
        },
        |x| {
            let a = Array::from_vars(&x[..4]);
            a.slice(1..).assign(&a.slice(..3));
            a.dot(&Array::from_values([1.0, 10.0, 100.0, 1000.0]))
        },
        |x| {
            let a = Array::from_vars(x).reshaped(&[2, 3]);
            a.transposed().row(1).map_in_place(Sin {});
            a.diagonal().zip_with_in_place(Multiply {}, x[5]);
            a.reversed(1).column(0).assign(&a.column(1));
            a.every(1, 2).add_at([1, 1], x[0]);
            a.matmul(&a.transposed()).sum() + a.row(0).dot(&a.row(1))
        },
        |x| {
            let (mut list, mut state) = (Array::from_values([]), x[0]);
            while state.value() < 3.0 {
                state = state + state.sin() * x[1] + 0.1;
                list.push(state * x[2]);
            }
            let (mut frontier, mut total) = (list.clone(), list.sum());
            while frontier.len() > 1 {
                let half = frontier.len() / 2;
                let last = frontier.pop().unwrap();
                total += last * frontier.slice(..half).sum();
                frontier.truncate(half);
                if half % 2 == 1 {
                    frontier.push(total.sin()); // a slot that meant something else before
                    frontier *= x[1];
                    frontier.truncate(half);
                }
            }
            total + frontier.sum()
        },
    ];
    for program in programs {
        check_by_differences(program, &[0.2, 0.6, 0.7, -0.3, 0.8, -1.2]);
    }
}

// Policies.

fn overwriting(x: &[Var<f64>]) -> Var<f64> {
    let a = Array::from_vars(x);
    let b = a.exp();
    let c = b.sin();
    let mut b = b;
    b.set(0, x[1]);
    b.set(1, x[0]);
    c.sum() + b.sum() + a.sum()
}

#[test]
fn a_write_that_is_forbidden_names_both_places() {
    let mut tape = with_policy(WhenOverwritten::Forbid);
    let error = tape
        .record(&[1.0, 2.0], |x| {
            let mut a = Array::from_vars(x);
            let squares = &a * &a;
            a.set(0, 3.0);
            squares.sum()
        })
        .unwrap_err();
    let Error::Overwritten { needed_by, needed_at, written_by, written_at } = error.clone() else {
        panic!("{error}")
    };
    assert_eq!((error.code(), needed_by, written_by), ("PAL0115", "mul", "set"));
    assert_eq!((needed_at.file(), written_at.file()), (file!(), file!()));
    assert_eq!(needed_at.line() + 1, written_at.line());
    let text = error.to_string();
    assert!(
        text.contains(&format!("`set` at {written_at}")) && text.contains(&format!("`mul` at {needed_at}"))
    );
    // The tape can be used again, and what needs no copy is allowed.
    let mut record = tape
        .record(&[1.0, 2.0], |x| {
            let mut a = Array::from_vars(x);
            let sums = &a + &a;
            a.set(0, 3.0);
            sums.sum() + a.sum()
        })
        .unwrap();
    assert_eq!(record.reverse(&[1.0]).unwrap(), [2.0, 3.0]);
}

#[test]
fn policies_differ_in_what_they_count_and_not_in_bits() {
    let mut answers = Vec::new();
    let mut counted = Vec::new();
    for policy in [WhenOverwritten::Copy, WhenOverwritten::AlwaysCopy, WhenOverwritten::Recompute] {
        let mut tape = with_policy(policy);
        let mut record = tape.record(&[0.5, 0.25], overwriting).unwrap();
        counted.push(record.array_counts());
        answers.push(record.reverse(&[1.0]).unwrap().iter().map(|g| g.to_bits()).collect::<Vec<_>>());
    }
    assert!(answers[0] == answers[1] && answers[0] == answers[2]);
    let [copy, always, recompute] = counted[..] else { unreachable!() };
    assert_eq!((copy.copies, copy.copied, copy.recomputed), (1, 2, 0)); // exp and sin need b
    assert_eq!((recompute.copies, recompute.recomputed), (0, 1)); // b = exp(a) again, from a
    assert_eq!(always.copies, 2); // the second write needs none
}

/// An array that is written while the sweep still needs it stays right when the recording is over.
#[test]
fn a_constant_can_be_changed_after_the_recording() {
    for policy in [WhenOverwritten::Copy, WhenOverwritten::Forbid, WhenOverwritten::Recompute] {
        let mut weights = Array::from_values([2.0, 3.0]);
        let mut tape = with_policy(policy);
        let mut record = tape.record(&[1.0, 1.0], |x| (&weights * &Array::from_vars(x)).sum()).unwrap();
        weights.fill(100.0);
        weights.set(0, 50.0);
        assert_eq!(record.reverse(&[1.0]).unwrap(), [2.0, 3.0]);
        assert_eq!(weights.values(), [50.0, 100.0]);
    }
}

// Lengths that change.

#[test]
fn a_view_of_what_was_cut_off_panics() {
    let message = panic_message(|| {
        let mut a = Array::from_values([1.0, 2.0, 3.0]);
        let tail = a.slice(1..);
        a.truncate(2);
        tail.values();
    });
    assert!(
        message.contains("a view reaches to element 3 of an array that has been shortened to 2"),
        "{message}"
    );
}

// In place, and how much that costs.

/// The benchmark `inplace`: N updates of single elements of M, and what they cost beyond making the array and
/// its sum.
fn updates(n: usize, m: usize, confined: bool) -> [usize; 7] {
    let reach = if confined { 1000 } else { m };
    let key = Key::from_seed(12345);
    let start: Vec<f64> = (0..m as u64).map(|at| 0.5 + key.split(0).uniform(at)).collect();
    let place = |at: usize| key.below(reach as u64, at as u64) as usize;
    let run = |x: &[Var<f64>], n: usize| {
        let mut a = Array::from_vars(x);
        for at in 0..n {
            let (i, j) = (place(2 * at), place(2 * at + 1));
            let x = a.get(i);
            let y = a.get(j);
            a.set(i, x.sin() * y.cos() + x / 2.0);
        }
        a.sum()
    };
    let mut tape = Tape::new();
    let numbers = |record: &palinode_core::Record<'_, f64>| {
        let (c, size) = (record.array_counts(), record.size());
        [c.elements, c.copied, c.saved, c.added, c.filled, size.nodes, size.edges]
    };
    let without = numbers(&tape.record(&start, |x| run(x, 0)).unwrap());
    let with = numbers(&tape.record(&start, |x| run(x, n)).unwrap());
    core::array::from_fn(|k| with[k] - without[k])
}

#[test]
fn single_writes_cost_the_same_in_arrays_of_any_length() {
    let n = 100_000;
    for m in [1_000, 10_000, 100_000] {
        for confined in [true, false] {
            let [elements, copied, saved, added, filled, nodes, edges] = updates(n, m, confined);
            assert_eq!((elements, copied, saved, added, filled), (3 * n, 0, 0, 0, 0), "M = {m}");
            // A node per read, one for what is written, which has one edge if i = j.
            assert_eq!(nodes, 3 * n, "M = {m}");
            assert!((4 * n - n / 100..=4 * n).contains(&edges), "M = {m}: {edges}");
        }
    }
}

/// What people write in place, none of which needs a copy.
#[test]
fn the_usual_programs_copy_nothing() {
    type Program = fn(&mut Array<f64>);
    let programs: [(&str, Program); 5] = [
        ("dynamic programming", |a| {
            let mut table = Array::zeros(&[5, 5]);
            for k in 0..5 {
                table.set([k, 0], a.get(k));
                table.set([0, k], a.get(k));
            }
            for i in 1..5 {
                for j in 1..5 {
                    let best = table.get([i - 1, j]).min(table.get([i, j - 1]));
                    table.set([i, j], best + a.get(i) * a.get(j));
                }
            }
            a.assign(&table.row(4));
        }),
        ("prefix recurrence", |a| {
            for k in 1..a.len() {
                a.set(k, a.get(k) * a.get(k - 1) + 0.5);
            }
        }),
        ("Gauss-Seidel", |a| {
            for _ in 0..3 {
                for k in 1..a.len() - 1 {
                    a.set(k, (a.get(k - 1) + a.get(k + 1)) * 0.5);
                }
            }
        }),
        ("heat", |a| {
            let n = a.len();
            for _ in 0..3 {
                let flux = &a.slice(1..) - &a.slice(..n - 1);
                a.slice(1..n - 1)
                    .zip_with_in_place(Add {}, &(0.1 * &(&flux.slice(1..) - &flux.slice(..n - 2))));
            }
        }),
        ("bubble of swaps", |a| {
            for end in (1..a.len()).rev() {
                for k in 0..end {
                    if a.value(k) > a.value(k + 1) {
                        a.swap(k, k + 1);
                    }
                }
            }
        }),
    ];
    for (name, program) in programs {
        let point = [0.9, 0.1, 0.5, 0.3, 0.7];
        let weighted = |x: &[Var<f64>]| {
            let mut a = Array::from_vars(x);
            program(&mut a);
            (&a * &Array::from_values([1.0, 2.0, 3.0, 4.0, 5.0])).sum()
        };
        let mut tape = Tape::new();
        let counts = tape.record(&point, weighted).unwrap().array_counts();
        assert_eq!((counts.copies, counts.copied, counts.saved), (0, 0, 0), "{name}");
        check_by_differences(weighted, &point);
    }
}

#[test]
fn an_operation_in_place_saves_at_most_one_array() {
    let n = 1000;
    let point: Vec<f64> = (0..n).map(|k| 0.5 + k as f64 / n as f64).collect();
    // What the tape holds after the recording, before any sweep.
    let held = |f: &dyn Fn(&mut Array<f64>)| {
        let mut tape = Tape::new();
        let record = tape
            .record(&point, |x| {
                let mut a = Array::from_vars(x);
                f(&mut a);
                a.sum()
            })
            .unwrap();
        assert_eq!(record.array_counts().copied, 0);
        record.heap_bytes()
    };
    let kept = |f: &dyn Fn(&mut Array<f64>)| (held(f) - held(&|_| ())) / (8 * n);
    let nothing: [fn(&mut Array<f64>); 5] =
        [|_| (), |a| *a += 1.0, |a| *a -= 2.0, |a| *a *= 2.0, |a| a.map_in_place(Negate {})];
    assert_eq!(nothing.map(|f| kept(&f)), [0; 5]);
    let one: [fn(&mut Array<f64>); 5] = [
        Array::relu_in_place,
        |a| a.map_in_place(Sin {}),
        |a| a.map_in_place(Exp {}),
        |a| a.map_in_place(Tanh {}),
        |a| *a *= &a.view(),
    ];
    assert_eq!(one.map(|f| kept(&f)), [1; 5]);
}

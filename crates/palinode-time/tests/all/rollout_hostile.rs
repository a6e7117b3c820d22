//! Steps that keep a number of their own from one recording to the next, and stores that give back something
//! else: a panic or an error, never a wrong gradient.

use crate::models::Altering;
use palinode_core::Real;
use palinode_macros::step;
use palinode_time::{MemoryStore, Rollout, Schedule};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// One number of each type that a step has been taken with.
    static KEPT: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// The number of this type that was kept first, which is this one if none was.
fn kept<S: Copy + 'static>(first: S) -> S {
    KEPT.with_borrow_mut(|all| match all.iter().find_map(|kept| kept.downcast_ref::<S>()) {
        Some(&kept) => kept,
        None => {
            all.push(Box::new(first));
            first
        }
    })
}

/// `x <- y p`, `y <- p`, by way of a `p` that was put aside in the first step of all: the values are the same
/// in every step, so that nothing but its tape tells it from the parameter.
#[step(Keeper)]
fn keeper<S: Real>([x, y]: &mut [S; 2], p: &S) {
    *x = *y * *p + *x * 0.25;
    *y = kept(*p);
}

#[test]
fn a_number_that_a_step_keeps_from_one_recording_to_the_next_is_refused() {
    for at_once in [1, 7, 64] {
        for schedule in [Schedule::StoreAll, Schedule::Binomial { snapshots: 3 }] {
            KEPT.take();
            let found = catch_unwind(AssertUnwindSafe(|| {
                let run =
                    Rollout::new(Keeper).steps(200).schedule(schedule).record_at_once(at_once).tape_only();
                run.value_and_grad(&[0.1, 0.2], &0.3, |state| state[0]).map(|gradient| gradient.params)
            }));
            let said = match found {
                Ok(Ok(slope)) => panic!("{at_once}, {schedule:?}: {slope} went unnoticed"),
                Ok(Err(_)) => continue,
                Err(panic) => panic.downcast_ref::<String>().expect("a text").clone(),
            };
            assert!(
                said.contains("a Var of tape ") && said.matches("tape ").count() > 1,
                "{at_once}: {said}"
            );
        }
    }
}

#[step(Decay)]
fn decay<S: Real>(state: &mut Vec<S>, p: &S) {
    state.iter_mut().for_each(|x| *x *= *p);
}

#[test]
fn a_store_that_gives_back_other_words_is_an_error() {
    type Change = fn(&mut Vec<u64>, &mut Vec<u64>);
    let changes: [(&str, Change); 7] = [
        ("one number less", |reals, _| reals.truncate(1)),
        ("one more", |reals, _| reals.push(0)),
        ("no numbers", |reals, _| reals.clear()),
        ("no lengths", |_, plain| plain.clear()),
        ("one length more", |_, plain| plain.push(0)),
        ("a shorter list", |_, plain| plain[0] = 1),
        ("an absurd list", |_, plain| plain[0] = 1 << 40),
    ];
    for (what, change) in changes {
        let run =
            Rollout::new(Decay).steps(50).schedule(Schedule::Binomial { snapshots: 3 }).store(move || {
                Altering(MemoryStore::new(), move |_, reals: &mut _, plain: &mut _| change(reals, plain))
            });
        let error =
            run.value_and_grad(&vec![1.0, 2.0], &0.9, |state| state[0] + state[1]).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "PAL0511", "{what}: {error}");
    }
}

//! Steps that keep a number of their own from one recording to the next, and stores that give back something
//! else: a panic or an error, never a wrong gradient.

use palinode_core::{Real, Snapshot, SnapshotError, SnapshotStore};
use palinode_time::{MemoryStore, Number, Rollout, Schedule, Step};
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
struct Keeper;

impl Step for Keeper {
    type State<S: Number> = [S; 2];
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, [x, y]: &mut [S; 2], p: &S, _: &()) {
        *x = *y * *p + *x * 0.25;
        *y = kept(*p);
    }
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

/// A store in memory that changes how many words there are.
struct Misfit(MemoryStore, fn(&mut Vec<u64>, &mut Vec<u64>));

impl SnapshotStore for Misfit {
    fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.0.put(slot, step, snapshot)
    }
    fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError> {
        self.0.get(slot, step, into)?;
        let (reals, plain) = into.words_mut();
        self.1(reals, plain);
        Ok(())
    }
    fn free(&mut self, slot: u32) {
        self.0.free(slot);
    }
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
    fn heap_bytes_for(&self, slots: usize, reals: usize, plain: usize) -> usize {
        self.0.heap_bytes_for(slots, reals, plain)
    }
}

struct Decay;

impl Step for Decay {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, state: &mut Vec<S>, p: &S, _: &()) {
        state.iter_mut().for_each(|x| *x *= *p);
    }
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
        let run = Rollout::new(Decay)
            .steps(50)
            .schedule(Schedule::Binomial { snapshots: 3 })
            .store(move || Misfit(MemoryStore::new(), change));
        let error =
            run.value_and_grad(&vec![1.0, 2.0], &0.9, |state| state[0] + state[1]).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "PAL0511", "{what}: {error}");
    }
}

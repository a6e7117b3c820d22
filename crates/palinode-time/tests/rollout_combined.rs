//! Any options of rollouts together: the allocator never sees more than the budget, the budget that a refusal names is enough, and where nothing is lossy, clipped or cut the bits are
//! those of storing all, without a budget.
//!
//! 150 combinations; `PALINODE_COMBINATIONS=5000 cargo test -p palinode-time --all-features --test rollout_combined` runs as many as it says, from `PALINODE_FROM` on (a few minutes).
//! Without a harness; see `rollout_bytes.rs`.

mod chain;
mod counting;

use chain::{Chain, Late, energy, start};
use counting::measured;
use palinode_core::{Budget, Dual, Key, Passive, Var};
use palinode_time::{
    Compressed, Error, Gradient, Lossy, MemoryStore, PlainInput, Repeat, Report, Rollout, Schedule, Step,
};
use std::path::Path;

/// How to differentiate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Last,
    Along,
    ByRule,
    Undoing,
    SecondOrder,
    Nested,
}

/// How often the loop runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Length {
    Steps,
    Inputs,
    Until,
}

#[derive(Clone, Copy, Debug)]
struct Options {
    numbers: usize,
    steps: u64,
    grows: bool,
    way: Way,
    length: Length,
    schedule: Schedule,
    at_once: Option<u64>,
    window: Option<u64>,
    clip: Option<f64>,
    verify: bool,
    tape_only: bool,
    store: Option<&'static str>,
    second: Option<&'static str>,
}

/// One of these, by a number that is different for each question.
struct Chosen(Key, u64);

impl Chosen {
    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        self.1 += 1;
        items[self.0.below(items.len() as u64, self.1) as usize]
    }
}

impl Options {
    fn chosen(case: u64) -> Options {
        let mut chosen = Chosen(Key::from_seed(case), 0);
        let mut options = Options {
            numbers: chosen.of(&[1, 2, 5, 17, 70]),
            steps: chosen.of(&[0, 1, 2, 7, 20, 60, 119]),
            grows: chosen.of(&[true, false, false]),
            way: chosen.of(&[
                Way::Last,
                Way::Along,
                Way::ByRule,
                Way::Undoing,
                Way::SecondOrder,
                Way::Nested,
            ]),
            length: chosen.of(&[Length::Steps, Length::Inputs, Length::Until]),
            schedule: chosen.of(&[
                Schedule::Best,
                Schedule::Best,
                Schedule::StoreAll,
                Schedule::Periodic { every: 7 },
                Schedule::Binomial { snapshots: 1 },
                Schedule::Binomial { snapshots: 4 },
                Schedule::Mixed { slots: 4 },
            ]),
            at_once: chosen.of(&[None, None, Some(1), Some(3), Some(64)]),
            window: chosen.of(&[None, None, None, Some(1), Some(5)]),
            clip: chosen.of(&[None, None, None, Some(0.5)]),
            verify: chosen.of(&[true, false, false]),
            tape_only: chosen.of(&[true, false]),
            store: chosen.of(&[None, None, Some("memory"), Some("compressed"), Some("lossy")]),
            second: chosen.of(&[None, None, Some("memory"), Some("disk")]),
        };
        // What does not go together is refused elsewhere.
        if options.length == Length::Until || options.way == Way::Undoing {
            (options.schedule, options.window, options.second) = (Schedule::Best, None, None);
        }
        if options.way == Way::Undoing {
            options.store = None;
        }
        if options.schedule != Schedule::Best {
            options.second = None;
        }
        options.verify &= options.store != Some("lossy");
        options.grows &=
            options.length != Length::Inputs && !matches!(options.way, Way::ByRule | Way::Undoing);
        options
    }

    fn is_exact(&self) -> bool {
        self.store != Some("lossy")
            && self.window.is_none()
            && self.clip.is_none()
            && self.way != Way::Undoing
    }

    fn set<'a, St: Step>(&self, mut run: Rollout<'a, St>, directory: &'a Path) -> Rollout<'a, St> {
        run = match self.length {
            Length::Until => run,
            Length::Steps | Length::Inputs => run.schedule(self.schedule),
        };
        if let Some(at_once) = self.at_once {
            run = run.record_at_once(at_once);
        }
        if let Some(window) = self.window {
            run = run.truncate(window);
        }
        if let Some(norm) = self.clip {
            run = run.clip(norm);
        }
        if self.verify {
            run = run.verify();
        }
        if self.tape_only {
            run = run.tape_only();
        }
        run = match self.store {
            Some("compressed") => run.store(|| Compressed::new(MemoryStore::new())),
            Some("lossy") => run.store(|| Lossy::f32(MemoryStore::new())),
            Some(_) => run.store(MemoryStore::new),
            None => run,
        };
        match self.second {
            Some("disk") => run.disk(5, directory),
            Some(_) => run.second_store(3, || Ok(MemoryStore::new())),
            None => run,
        }
    }

    /// The gradient of a loop with these options; the bits of all that it gives.
    fn gradient(&self, given: &Given, budget: Budget, directory: &Path) -> Result<(Report, Vec<u64>), Error> {
        if self.grows {
            self.of_growing(given, budget, directory)
        } else {
            self.of_chain(given, budget, directory)
        }
    }

    fn of_chain(&self, given: &Given, budget: Budget, directory: &Path) -> Result<(Report, Vec<u64>), Error> {
        let (start, params) = (&given.chain, &[3.0, 0.2]);
        let chain = || self.of_length(self.set(Rollout::new(Chain), directory), given).budget(budget);
        let nested = || {
            let run = Rollout::new(Repeat::new(Chain, 3));
            self.of_length(self.set(run, directory), given).budget(budget).nested()
        };
        let gradient = match self.way {
            Way::Nested => return nested().value_and_grad(start, params, energy).map(parts_of),
            Way::Last => chain().value_and_grad(start, params, energy)?,
            Way::Along => chain().value_and_grad_along(start, params, |_, state| energy(state))?,
            Way::ByRule => chain().by_rule().value_and_grad(start, params, energy)?,
            Way::Undoing => chain().value_and_grad_by_undoing(start, params, energy)?,
            Way::SecondOrder => {
                let loss = |(x, v): &(Vec<Second>, Vec<Second>)| x.iter().chain(v).map(|&u| u * u).sum();
                chain().hvp(start, params, (start, &[1.0, 0.5]), loss)?.1
            }
        };
        Ok(parts_of(gradient))
    }

    fn of_length<'a, St>(&self, run: Rollout<'a, St>, given: &Given) -> Rollout<'a, St>
    where
        St: Step<State<Passive<f64>> = OfChain<Passive<f64>>, Input<f64> = f64>,
    {
        match self.length {
            Length::Steps => run.input(0.001).steps(self.steps),
            Length::Inputs => run.inputs(given.inputs.iter().copied()),
            Length::Until => run.input(0.001).until(|(_, v)| v[0] > 0.015 || v[0] < -0.015).at_most(100_000),
        }
    }

    fn of_growing(
        &self,
        given: &Given,
        budget: Budget,
        directory: &Path,
    ) -> Result<(Report, Vec<u64>), Error> {
        let run = self.set(Rollout::new(Late), directory).budget(budget);
        let run = match self.length {
            Length::Steps | Length::Inputs => run.steps(self.steps),
            Length::Until => run.until(|(_, taken)| taken.0 >= 161),
        };
        let sum = |(x, _): &(Vec<Var<f64>>, _)| x.iter().copied().sum::<Var<f64>>();
        let start = &given.growing;
        let gradient = match self.way {
            Way::Last | Way::ByRule | Way::Undoing | Way::Nested => run.value_and_grad(start, &0.9, sum)?,
            Way::Along => run.value_and_grad_along(start, &0.9, |_, state| sum(state))?,
            Way::SecondOrder => {
                run.hvp(start, &0.9, (start, &0.5), |(x, _)| x.iter().copied().sum::<Second>())?.1
            }
        };
        let Gradient { value, initial: (x, _), params, report, .. } = gradient;
        Ok((report, [value].into_iter().chain(x).chain([params]).map(f64::to_bits).collect()))
    }
}

type OfChain<S> = (Vec<S>, Vec<S>);
type Second = Var<Dual<f64>>;

/// The report of a gradient by a chain, and the bits of its numbers.
fn parts_of<St>(gradient: Gradient<St>) -> (Report, Vec<u64>)
where
    St: Step<State<f64> = OfChain<f64>, Params<f64> = [f64; 2], Input<f64> = f64>,
{
    let Gradient { value, initial: (x, v), params, inputs, report, .. } = gradient;
    let numbers = [value].into_iter().chain(x).chain(v).chain(params).chain(inputs);
    (report, numbers.map(f64::to_bits).collect())
}

/// What the caller has anyway.
struct Given {
    chain: (Vec<f64>, Vec<f64>),
    growing: (Vec<f64>, PlainInput<u64>),
    inputs: Vec<f64>,
}

fn check(case: u64, directory: &Path) {
    let options = Options::chosen(case);
    let given = Given {
        chain: start(options.numbers),
        growing: (vec![0.5; options.numbers], PlainInput(101)),
        inputs: (0..options.steps).map(|i| i as f64 * 1e-6).collect(),
    };
    let gradient = |budget: Budget| options.gradient(&given, budget, directory);
    let (_, exact) =
        gradient(Budget::UNLIMITED).unwrap_or_else(|error| panic!("case {case}: {error}: {options:?}"));
    if options.is_exact() {
        let plain = Options {
            schedule: Schedule::StoreAll,
            at_once: None,
            verify: false,
            store: None,
            second: None,
            ..options
        };
        let (_, stored) = plain.gradient(&given, Budget::UNLIMITED, directory).expect("a gradient");
        assert!(stored == exact, "case {case}: other bits than by storing all: {options:?}");
    }
    let Err(Error::BudgetTooSmall { smallest, .. }) = gradient(1.into()) else {
        panic!("case {case}: a byte is not enough: {options:?}")
    };
    for part in [8, 4, 2] {
        let Err(Error::BudgetTooSmall { smallest: same, .. }) = gradient((smallest.bytes() / part).into())
        else {
            panic!("case {case}: a part of what is needed is not enough: {options:?}")
        };
        assert_eq!(
            same, smallest,
            "case {case}: what is enough does not depend on what was asked for: {options:?}"
        );
    }
    // A rollout holds its own copy of the inputs; bits are the test's.
    let own = if options.length == Length::Inputs { size_of_val(&given.inputs[..]) } else { 0 }
        + size_of_val(&exact[..]);
    for more in [0, 1, 50, 500, 5_000, 50_000, 5_000_000] {
        let budget = smallest.bytes() + more;
        let (result, peak, _) = measured(|| gradient(budget.into()));
        let (report, bits) =
            result.unwrap_or_else(|error| panic!("case {case}, {more} more: {error}: {options:?}"));
        assert!(
            peak <= budget + own,
            "case {case}: {peak} of {budget} + {own}, {more} more: {options:?}: {report}"
        );
        assert!(report.peak_bytes <= budget, "case {case}: {peak}, {report}: {options:?}");
        assert!(!options.is_exact() || bits == exact, "case {case}, {more} more: other bits: {options:?}");
    }
}

fn main() {
    let directory = std::env::temp_dir().join(format!("palinode-rollout-combined-{}", std::process::id()));
    let number =
        |name, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"));
    let (from, count) = (number("PALINODE_FROM", 0), number("PALINODE_COMBINATIONS", 150));
    (from..from + count).for_each(|case| check(case, &directory));
    let _ = std::fs::remove_dir_all(&directory);
    println!("{count} combinations of options stay within their budgets");
}

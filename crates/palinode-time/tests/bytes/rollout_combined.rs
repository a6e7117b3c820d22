//! Any options of rollouts together: the allocator never sees more than the budget, the budget that a refusal
//! names is enough, and where nothing is lossy, clipped or cut the bits are those of storing all, without a
//! budget.
//!
//! 230 combinations;
//! `PALINODE_COMBINATIONS=5000 cargo test -p palinode-time --all-features --test bytes -- rollout_combined`
//! runs as many as it says, from `PALINODE_FROM` on (a few minutes).

use crate::chain::{Chain, Late, energy, start};
use crate::counting::measured;
use crate::varied::{Adaptive, Heavy, Kinds, Model, Pushed, Quiet, Ragged, Shrinking};
use palinode_core::{Budget, Dual, Key, Passive, Snapshot, Var};
use palinode_time::{
    CompressedStore, Error, Gradient, LossyStore, MemoryStore, PlainInput, Repeat, Rollout, RolloutReport,
    Schedule, Step,
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

/// What changes from step to step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// Nothing but numbers.
    Numbers,
    /// The length of a list.
    Lengths,
    /// The kind of state.
    Kinds,
    /// How many steps a step takes inside.
    StepsInside,
    /// How many operations a step takes, of a state without a heap.
    Operations,
    /// The lengths of the inputs.
    Inputs,
    /// The shape of the state and the lengths of the inputs, up and down.
    Shapes,
    /// The kind of state, which is largest at the start, and how many operations a step takes, but only by a
    /// few.
    Shrinks,
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
    what: What,
    /// After how many steps states and recordings are others.
    quiet: u64,
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

/// From this number on combinations are of states and inputs that change most, where most was found.
const CHANGING: u64 = 1_000_000;
/// And from this number on of states that shrink.
const SHRINKING: u64 = 2_000_000;

impl Options {
    fn chosen(case: u64) -> Options {
        let mut chosen = Chosen(Key::from_seed(case), 0);
        let mut options = Options::of_all(&mut chosen);
        if case >= CHANGING {
            use What::{Inputs, Kinds, Lengths, Shapes, StepsInside};
            options.what = chosen.of(&[Shapes, Shapes, Kinds, Inputs, Lengths, StepsInside]);
            options.way = chosen.of(&[Way::Last, Way::Along, Way::SecondOrder, Way::Nested, Way::Nested]);
            options.second = chosen.of(&[None, Some("memory"), Some("disk")]);
        }
        if case >= SHRINKING {
            options.what = What::Shrinks;
        }
        options.that_go_together()
    }

    fn of_all(chosen: &mut Chosen) -> Options {
        use Way::{Along, ByRule, Last, Nested, SecondOrder, Undoing};
        use What::{Inputs, Kinds, Lengths, Numbers, Operations, StepsInside};
        Options {
            numbers: chosen.of(&[1, 2, 5, 17, 70]),
            steps: chosen.of(&[0, 1, 2, 7, 20, 60, 119]),
            what: chosen.of(&[Numbers, Numbers, Numbers, Lengths, Kinds, StepsInside, Operations, Inputs]),
            quiet: chosen.of(&[0, 1, 9, 40, 75, 110]),
            way: chosen.of(&[Last, Along, ByRule, Undoing, SecondOrder, Nested]),
            length: chosen.of(&[Length::Steps, Length::Inputs, Length::Until]),
            schedule: chosen.of(&[
                Schedule::Best,
                Schedule::Best,
                Schedule::StoreAll,
                Schedule::Periodic { every: 7 },
                Schedule::Binomial { snapshots: 1 },
                Schedule::Binomial { snapshots: 4 },
                Schedule::Mixed { places: 4 },
            ]),
            at_once: chosen.of(&[None, None, Some(1), Some(3), Some(64)]),
            window: chosen.of(&[None, None, None, Some(1), Some(5)]),
            clip: chosen.of(&[None, None, None, Some(0.5)]),
            verify: chosen.of(&[true, false, false]),
            tape_only: chosen.of(&[true, false]),
            store: chosen.of(&[None, None, Some("memory"), Some("compressed"), Some("lossy")]),
            second: chosen.of(&[None, None, Some("memory"), Some("disk")]),
        }
    }

    /// What does not go together is refused elsewhere.
    fn that_go_together(mut self) -> Options {
        if self.length == Length::Until || self.way == Way::Undoing {
            (self.schedule, self.window, self.second) = (Schedule::Best, None, None);
        }
        if self.way == Way::Undoing {
            self.store = None;
        }
        if self.schedule != Schedule::Best {
            self.second = None;
        }
        self.verify &= self.store != Some("lossy");
        if matches!(self.way, Way::ByRule | Way::Undoing)
            || self.what == What::Lengths && self.length == Length::Inputs
        {
            self.what = What::Numbers;
        }
        self
    }

    /// Numbers that a store of f32 cannot hold are refused, if a snapshot of them is to be kept; which are
    /// depends on the budget.
    fn is_refused_as_f32(&self, error: &Error) -> bool {
        self.store == Some("lossy") && error.code() == "PAL0514"
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
            Some("compressed") => run.store(|| CompressedStore::new(MemoryStore::new())),
            Some("lossy") => run.store(|| LossyStore::f32(MemoryStore::new())),
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
    fn gradient(&self, given: &Given, budget: Budget, directory: &Path) -> Found {
        let quiet = Quiet(self.quiet);
        match self.what {
            What::Numbers => self.of_chain(given, budget, directory),
            What::Lengths => self.of_growing(given, budget, directory),
            What::Kinds => self.of_model(Kinds(quiet), budget, directory),
            What::StepsInside => self.of_model(Adaptive(quiet), budget, directory),
            What::Operations => self.of_model(Heavy(quiet), budget, directory),
            What::Inputs => self.of_model(Pushed(quiet), budget, directory),
            What::Shapes => self.of_model(Ragged(quiet), budget, directory),
            What::Shrinks => self.of_model(Shrinking(quiet), budget, directory),
        }
    }

    fn of_model<M: Model + Copy>(&self, model: M, budget: Budget, directory: &Path) -> Found {
        let start = model.start(self.numbers);
        let loss = |state: &M::State<Var<f64>>| M::loss(state);
        if self.way == Way::Nested {
            let run = self.set(Rollout::new(Repeat::new(model, 3)), directory).budget(budget);
            let run = self.with_inputs::<M, _>(run, model, 3).nested();
            return run.value_and_grad(&start, &0.9, loss).map(bits_of);
        }
        let run = self.with_inputs::<M, _>(self.set(Rollout::new(model), directory), model, 1).budget(budget);
        match self.way {
            Way::Last | Way::ByRule | Way::Undoing | Way::Nested => run.value_and_grad(&start, &0.9, loss),
            Way::Along => run.value_and_grad_along(&start, &0.9, |_, state| loss(state)),
            Way::SecondOrder => {
                let product = run.hvp(&start, &0.9, (&start, &0.5), |state| M::loss::<Second>(state));
                product.map(|(_, product)| product)
            }
        }
        .map(bits_of)
    }

    /// With a list of inputs, or one for all; each outer step takes so many.
    fn with_inputs<'a, M: Model, St>(&self, run: Rollout<'a, St>, model: M, inside: u64) -> Rollout<'a, St>
    where
        St: Step<State<Passive<f64>> = M::State<Passive<f64>>, Input<f64> = M::Input<f64>>,
    {
        let steps = self.steps;
        match self.length {
            Length::Steps => run.input(model.input(0)).steps(steps),
            Length::Inputs => run.inputs((0..steps).map(|step| model.input(step * inside))),
            Length::Until => run.input(model.input(0)).until(move |state| M::taken(state) >= steps * inside),
        }
    }

    fn of_chain(&self, given: &Given, budget: Budget, directory: &Path) -> Found {
        let (start, params) = (&given.chain, &[3.0, 0.2]);
        let chain = || self.of_length(self.set(Rollout::new(Chain), directory), given).budget(budget);
        let gradient = match self.way {
            Way::Nested => {
                let run = self.of_length(self.set(Rollout::new(Repeat::new(Chain, 3)), directory), given);
                return run.budget(budget).nested().value_and_grad(start, params, energy).map(bits_of);
            }
            Way::Last => chain().value_and_grad(start, params, energy)?,
            Way::Along => chain().value_and_grad_along(start, params, |_, state| energy(state))?,
            Way::ByRule => chain().by_rule().value_and_grad(start, params, energy)?,
            Way::Undoing => chain().value_and_grad_by_undoing(start, params, energy)?,
            Way::SecondOrder => {
                let loss = |(x, v): &(Vec<Second>, Vec<Second>)| x.iter().chain(v).map(|&u| u * u).sum();
                chain().hvp(start, params, (start, &[1.0, 0.5]), loss)?.1
            }
        };
        Ok(bits_of(gradient))
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

    fn of_growing(&self, given: &Given, budget: Budget, directory: &Path) -> Found {
        let run = self.set(Rollout::new(Late), directory).budget(budget);
        let run = match self.length {
            Length::Steps | Length::Inputs => run.steps(self.steps),
            Length::Until => run.until(|(_, taken)| taken.0 >= 161),
        };
        let sum = |(x, _): &(Vec<Var<f64>>, _)| x.iter().copied().sum::<Var<f64>>();
        let start = &given.growing;
        match self.way {
            Way::Last | Way::ByRule | Way::Undoing | Way::Nested => run.value_and_grad(start, &0.9, sum),
            Way::Along => run.value_and_grad_along(start, &0.9, |_, state| sum(state)),
            Way::SecondOrder => {
                let loss = |(x, _): &(Vec<Second>, _)| x.iter().copied().sum();
                run.hvp(start, &0.9, (start, &0.5), loss).map(|(_, product)| product)
            }
        }
        .map(bits_of)
    }
}

type OfChain<S> = (Vec<S>, Vec<S>);
type Second = Var<Dual<f64>>;

/// The report of a gradient, and the bits of its numbers.
type Found = Result<(RolloutReport, Vec<u64>), Error>;

fn bits_of<St: Step>(
    Gradient { value, initial, params, inputs, report, .. }: Gradient<St>,
) -> (RolloutReport, Vec<u64>) {
    // In no more memory than they need, which is the test's.
    let of_inputs: usize = inputs.iter().map(|input| Snapshot::lengths(input).0).sum();
    let mut bits =
        Vec::with_capacity(1 + Snapshot::lengths(&initial).0 + Snapshot::lengths(&params).0 + of_inputs);
    bits.push(value.to_bits());
    bits.extend(Snapshot::of(&initial).reals());
    bits.extend(Snapshot::of(&params).reals());
    inputs.iter().for_each(|input| bits.extend(Snapshot::of(input).reals()));
    (report, bits)
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
    let exact = match gradient(Budget::UNLIMITED) {
        Ok((_, exact)) => exact,
        Err(error) if options.is_refused_as_f32(&error) => return,
        Err(error) => panic!("case {case}: {error}: {options:?}"),
    };
    if options.is_exact() {
        let plain = Options {
            schedule: Schedule::StoreAll,
            at_once: None,
            verify: false,
            store: None,
            second: None,
            ..options
        };
        let (_, stored) = plain.gradient(&given, Budget::UNLIMITED, directory).unwrap();
        assert!(stored == exact, "case {case}: other bits than by storing all: {options:?}");
    }
    // Whatever is refused, the budget that is named is enough.
    let mut key = Chosen(Key::from_seed(case), 1 << 20);
    let mut smallest = 0;
    for small in [1, 300, key.of(&[1_000, 2_000, 3_000]), key.of(&[5_000, 10_000, 20_000, 50_000])] {
        let (budget, named) = match gradient(small.into()) {
            Err(Error::BudgetTooSmall { smallest, .. }) => (smallest.bytes(), true),
            Err(Error::OverBudget { needed, .. }) => (needed, true),
            Ok(_) => (small, false),
            Err(error) if options.is_refused_as_f32(&error) => continue,
            Err(error) => panic!("case {case}, {small}: {error}: {options:?}"),
        };
        let within = || is_within(case, &options, &given, directory, (budget, &exact));
        if let Err(error) = within() {
            panic!("case {case}: {budget} bytes are named for {small} (named: {named}): {error}: {options:?}")
        }
        if small == 1 {
            smallest = budget;
        }
        // The number does not depend on what was asked for, where the steps are all alike.
        assert!(
            !named || options.what != What::Numbers || budget == smallest,
            "case {case}: {budget} for {small}, {smallest} for 1: {options:?}"
        );
    }
    let between = key.of(&[100, 1_000, 3_000]) + key.of(&[7, 77, 777]);
    for more in [0, 1, 50, 500, between, 5_000, 50_000, 5_000_000] {
        let budget = smallest + more;
        if let Err(error) = is_within(case, &options, &given, directory, (budget, &exact)) {
            panic!("case {case}: {more} more than {smallest}: {error}: {options:?}")
        }
    }
}

/// Whether there is a gradient within this budget, of these bits: the allocator never sees more, the inputs
/// of the rollout included.
fn is_within(
    case: u64,
    options: &Options,
    given: &Given,
    directory: &Path,
    (budget, exact): (usize, &[u64]),
) -> Result<(), Error> {
    let (result, peak, _) = measured(|| options.gradient(given, budget.into(), directory));
    // The start of some and the bits are the test's.
    let own = size_of_val(exact) + 8 * options.numbers;
    assert!(peak <= budget + own, "case {case}: {peak} of {budget} + {own}: {options:?}");
    let (report, bits) = match result {
        Err(error) if options.is_refused_as_f32(&error) => return Ok(()),
        result => result?,
    };
    assert!(report.peak_bytes <= budget, "case {case}: {peak}, {report}: {options:?}");
    assert!(!options.is_exact() || bits == exact, "case {case}, {budget}: other bits: {options:?}");
    Ok(())
}

/// Combinations that failed once, of several kinds, among tens of thousands that did not.
const FOUND: [u64; 30] = [
    4142, 4754, 5096, 5793, 6122, 6416, 7227, 8720, 9391, 9442, 9881, 10468, 13842, 13944, 14182, 16640,
    16795, 17378, 18816, 19968, 1_000_060, 1_000_067, 1_000_668, 1_003_790, 2_000_033, 2_000_042, 2_000_078,
    2_000_116, 2_000_220, 2_000_444,
];

pub(crate) fn run() {
    let directory = std::env::temp_dir().join(format!("palinode-rollout-combined-{}", std::process::id()));
    let number =
        |name, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"));
    let (from, count) = (number("PALINODE_FROM", 0), number("PALINODE_COMBINATIONS", 60));
    let changing = (CHANGING..CHANGING + 30).chain(SHRINKING..SHRINKING + 20);
    let cases: Vec<u64> = FOUND.into_iter().chain(changing).chain(from..from + count).collect();
    let tried = cases.len();
    // All that fail are named, not only the first.
    let fails = |case: &u64| std::panic::catch_unwind(|| check(*case, &directory)).is_err();
    let failed: Vec<u64> = cases.into_iter().filter(fails).collect();
    let _ = std::fs::remove_dir_all(&directory);
    assert!(failed.is_empty(), "{} combinations fail: {failed:?}", failed.len());
    println!("{tried} combinations of options stay within their budgets");
}

//! What the tape takes from the allocator: counted, exact, bounded.

use palinode_core::schedule::{self, Action, Mixed, Online, binomial, periodic, two_tier};
use palinode_core::{
    Accumulator, Array, Compression, CustomRule, DoubleDouble, Dual, Error, Partials, Scalar, Tape, Var,
    WhenOverwritten, custom, custom_rule,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

// Per thread: the test harness allocates on its own thread while a test runs.
thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// How many threads measure: while there are none, nothing is counted, because every allocation of every test
/// comes here.
static MEASURING: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[allow(unsafe_code)] // a global allocator cannot be had without it
// SAFETY: every call is handed to the system allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if MEASURING.load(Relaxed) > 0 {
            CALLS.set(CALLS.get() + 1);
            LIVE.set(LIVE.get() + layout.size() as isize);
            PEAK.set(PEAK.get().max(LIVE.get()));
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if MEASURING.load(Relaxed) > 0 {
            LIVE.set(LIVE.get() - layout.size() as isize);
        }
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls of the allocator, the change of live bytes, and the most live bytes above the start.
fn measured<R>(f: impl FnOnce() -> R) -> (R, usize, usize, usize) {
    let (calls, live) = (CALLS.get(), LIVE.get());
    PEAK.set(live);
    MEASURING.fetch_add(1, Relaxed);
    let result = f();
    MEASURING.fetch_sub(1, Relaxed);
    (result, CALLS.get() - calls, (LIVE.get() - live) as usize, (PEAK.get() - live) as usize)
}

/// A computation of any length that keeps three nodes busy.
fn work<S: Scalar<Bool = bool>>(x: &[Var<S>], steps: usize) -> Var<S> {
    let mut state = [x[0], x[1], x[2]];
    for _ in 0..steps {
        state = [state[0] * state[1] + state[2], state[1].sin() + state[2], state[2] * state[0].cos()];
    }
    Var::sum_of(&state)
}

struct Double {
    saved: Vec<f64>,
}

impl CustomRule<f64> for Double {
    fn name(&self) -> &'static str {
        "double"
    }
    fn reverse(&self, outputs: &[f64], inputs: &mut [f64]) -> Result<(), Error> {
        inputs[0] += 2.0 * outputs[0];
        Ok(())
    }
    fn saved_bytes(&self) -> usize {
        self.saved.capacity() * size_of::<f64>()
    }
}

fn later_recordings_allocate_nothing<S: Scalar<Bool = bool>>() {
    let x = [0.5, 0.25, 0.125].map(S::from_f64);
    let mut gradient = [S::zero(); 3];
    let mut tape = Tape::new();
    tape.gradient_into(|x| work(x, 20_000), &x, &mut gradient).unwrap();
    for steps in [20_000, 20_000, 7, 19_999] {
        let (result, calls, ..) = measured(|| tape.gradient_into(|x| work(x, steps), &x, &mut gradient));
        result.unwrap();
        assert_eq!(calls, 0, "{} bytes wide, {steps} steps", size_of::<S>());
    }
}

fn heap_bytes_are_the_allocators<S: Scalar<Bool = bool>>() {
    let x = [0.5, 0.25, 0.125].map(S::from_f64);
    for steps in [0, 1, 100, 5_000, 100_000] {
        for traced in [false, true] {
            let steps = if traced { steps.min(5_000) } else { steps };
            let (mut tape, _, empty, _) = measured(|| if traced { Tape::traced() } else { Tape::new() });
            assert_eq!((empty, tape.heap_bytes()), (0, 0), "an empty tape holds nothing");
            let (_, _, recorded, _) =
                measured(|| tape.record(&x, |x| work(x, steps)).unwrap().output_count());
            assert_eq!(tape.heap_bytes(), recorded, "recorded {steps} steps, traced: {traced}");
            let (_, _, swept, _) = measured(|| {
                let mut record = tape.record(&x, |x| work(x, steps)).unwrap();
                record.reverse(&[S::one()]).unwrap().len()
            });
            assert_eq!(tape.heap_bytes(), recorded + swept, "swept {steps} steps, traced: {traced}");
        }
    }
}

fn custom_operations_are_counted() {
    let mut tape = Tape::new();
    let run = |x: &[Var<f64>]| {
        let mut y = x[0];
        for k in 0..50 {
            y = custom(&[y, x[1]], &[2.0 * y.value()], Double { saved: Vec::with_capacity(k) })[0];
        }
        y
    };
    let (_, _, live, _) = measured(|| tape.record(&[1.0, 2.0], run).unwrap().output_count());
    assert_eq!(tape.heap_bytes(), live, "custom operations and what they save");
}

/// What a compressed recording holds is what it says, and compressing needs little besides.
fn compressed_recordings_are_counted() {
    let x = [0.5, 0.25, 0.125];
    let mut tape = Tape::new();
    for partials in [Partials::Exact, Partials::F32, Partials::Bf16] {
        let record = tape.record(&x, |x| work(x, 10_000)).unwrap();
        let before = record.size();
        let how = Compression { partials, ..Compression::default() };
        let (mut compressed, _, live, peak) = measured(|| record.compress(&how).unwrap());
        assert_eq!(compressed.heap_bytes(), live);
        let copies = 2 * before.edges * 12 + 24 * before.nodes;
        assert!(peak <= copies + 10 * before.nodes + 1000, "{peak} bytes for {before:?}");
        let (_, _, swept, _) = measured(|| compressed.reverse(&[1.0]).unwrap().len());
        assert_eq!(compressed.heap_bytes(), live + swept);
    }
}

/// Reads and writes of single elements of an array that the caller keeps.
fn element_updates(x: &[Var<f64>], a: &mut Array<f64>, steps: usize) {
    for k in 0..steps {
        let (i, j) = (k * 7 % x.len(), k * k % x.len());
        a.set(i, a.get(j).sin() * x[0] + a.get(i));
        a.add_at(j, x[1]);
    }
}

fn updates_of_elements_allocate_nothing() {
    let x = [0.5; 50];
    let mut tape = Tape::new();
    for round in 0..3 {
        let mut calls = 0;
        let mut record = tape
            .record(&x, |x| {
                let mut a = Array::from_vars(x);
                calls = measured(|| element_updates(x, &mut a, 20_000)).1;
                a.sum()
            })
            .unwrap();
        record.reverse(&[1.0]).unwrap();
        assert!(round == 0 || calls == 0, "{calls} allocations in round {round}");
    }
}

/// Operations of every kind, some of which copy, save and recompute.
fn array_work(x: &[Var<f64>], steps: usize) -> Var<f64> {
    let mut a = Array::from_vars(x);
    for k in 0..steps {
        let b = (&a * &a).sin() / (&a + 2.0).exp();
        a += &b;
        a.set(k % a.len(), b.get(0) * x[0]);
        a.slice(1..).map_in_place(palinode_core::rules::Tanh {});
        let matrix = a.clone().reshaped(&[2, x.len() / 2]);
        let mut products = matrix.matmul(&matrix.transposed());
        products.relu_in_place();
        a.scatter_add(&[0, 1, 1], &products.reshaped(&[4]).gather(&[0, 3, 2]));
        a *= 1.0 / (1.0 + a.values().iter().map(|x| x.abs()).sum::<f64>());
        a.add_at(0, a.largest() * x[1]);
    }
    a.dot(&Array::from_vars(x))
}

fn arrays_are_counted() {
    let x = [0.5, 0.25, 0.125, 0.75, 0.3, 0.1];
    for policy in [
        WhenOverwritten::Copy,
        WhenOverwritten::AlwaysCopy,
        WhenOverwritten::Recompute,
        WhenOverwritten::Forbid,
    ] {
        for steps in [0, 1, 10, 300] {
            let mut tape = Tape::new();
            tape.set_when_overwritten(policy);
            let (recorded, _, live, _) =
                measured(|| tape.record(&x, |x| array_work(x, steps)).map(|record| record.output_count()));
            assert!(recorded.is_ok() || policy == WhenOverwritten::Forbid);
            assert_eq!(tape.heap_bytes(), live, "{steps} steps with {policy:?}");
            let (_, _, swept, _) = measured(|| {
                let record = tape.record(&x, |x| array_work(x, steps));
                record.map(|mut record| record.reverse(&[1.0]).unwrap().len())
            });
            assert_eq!(tape.heap_bytes(), live + swept, "swept {steps} steps with {policy:?}");
        }
    }
}

/// Every excess over every limit, so that one look shows all. What the program itself holds `beside` is not
/// the tape's.
fn excesses(
    name: &str,
    limits: &[usize],
    x: &[f64],
    beside: usize,
    program: impl Fn(&[Var<f64>], usize) -> Var<f64>,
) -> Vec<String> {
    let mut gradient = vec![0.0; x.len()];
    let mut broken = Vec::new();
    for &limit in limits {
        let mut steps = 1;
        let error = loop {
            let mut tape = Tape::with_limits(u32::MAX, limit);
            let (result, _, _, peak) =
                measured(|| tape.gradient_into(|x| program(x, steps), x, &mut gradient));
            if peak > limit + beside {
                broken.push(format!("{name}, limit {limit}, {steps} steps: {peak} bytes, {result:?}"));
            }
            match result {
                Ok(_) => steps += steps / 2 + 1,
                Err(error) => break error,
            }
        };
        let named = matches!(error, Error::ByteLimit { limit: of, needed, .. } if of == limit && needed > of);
        assert!(named, "{name}: {error}");
        // What a recording that fits says it needs is enough.
        if steps > 1 {
            let run = |x: &[Var<f64>]| program(x, steps / 2);
            let budget = Tape::new().record(x, run).unwrap().budget();
            let mut tape = Tape::with_budget(budget);
            let swept = tape.record(x, run).map(|mut record| record.reverse(&[1.0]).is_ok());
            assert!(matches!(swept, Ok(true)), "{name}, {} steps within {budget}: {swept:?}", steps / 2);
        }
    }
    broken
}

#[test]
fn no_byte_more_than_the_limit() {
    let limits = [0, 64, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000, 3_000_000];
    let point = |inputs: u32| (0..inputs).map(|i| 0.5 / (1.0 + f64::from(i))).collect::<Vec<_>>();
    let mut broken = excesses("numbers", &limits, &point(3), 0, work);
    let added_up = |x: &[Var<f64>], steps: usize| work(&x[..3], steps) + Var::sum_of(&x[3..]);
    broken.extend(excesses("many inputs", &[0, 64, 10_000, 1_000_000], &point(5_000), 0, added_up));
    // A few small arrays, and what is computed again.
    let (x, arrays) = ([0.5, 0.25, 0.125, 0.75, 0.3, 0.1], 4_000);
    broken.extend(excesses("whole arrays", &limits, &x, arrays, array_work));
    let elements = |x: &[Var<f64>], steps: usize| {
        let mut a = Array::from_vars(x);
        element_updates(x, &mut a, steps);
        a.sum()
    };
    broken.extend(excesses("elements", &limits, &x, arrays, elements));
    assert!(broken.is_empty(), "more bytes than allowed:\n{}", broken.join("\n"));
}

/// Sweeps over sums: of one cotangent, of several in one, and of a Jacobian's lanes, that take more than
/// there may be besides the recording.
fn summed_excesses(name: &str, program: fn(&[Var<f64>]) -> Vec<Var<f64>>, how: Accumulator) -> Vec<String> {
    let x: Vec<f64> = (0..300).map(|i| 0.5 / (1.0 + f64::from(i))).collect();
    let (needed, outputs) = {
        let mut tape = Tape::new().accumulate(how);
        let record = tape.record(&x, program).unwrap();
        (record.budget().bytes(), record.output_count())
    };
    let (one, lanes) = (vec![1.0; outputs], vec![[1.0; 8]; outputs]);
    let (mut broken, mut swept, mut refused) = (Vec::new(), 0, 0);
    for limit in (needed / 2..2 * needed).step_by(1000 + needed / 75) {
        let mut tape = Tape::with_limits(u32::MAX, limit).accumulate(how);
        let Ok(mut record) = tape.record(&x, program) else { continue };
        let held = record.heap_bytes();
        let (result, _, _, peak) = measured(|| record.reverse(&one).map(|_| ()));
        let (many, _, _, peak_of_many) = measured(|| record.reverse_many(&lanes));
        assert!(result.is_ok(), "{name}, {how:?}: recorded within {limit} bytes, and then {result:?}");
        for (sweep, peak) in [("one sweep", peak), ("eight sweeps", peak_of_many)] {
            if held + peak > limit {
                broken.push(format!("{name}, {how:?}, {sweep}: {} bytes within {limit}", held + peak));
            }
        }
        match many {
            Ok(_) => swept += 1,
            Err(error) => {
                assert_eq!(error.code(), "PAL0107");
                refused += 1;
            }
        }
    }
    if swept == 0 || refused == 0 {
        broken.push(format!("{name}, {how:?}: the limits are not tight: {swept} swept, {refused} refused"));
    }
    broken
}

#[test]
fn sums_take_no_byte_more_than_the_limit() {
    type Program = fn(&[Var<f64>]) -> Vec<Var<f64>>;
    let programs: [(&str, Program); 4] = [
        ("numbers", |x| vec![Var::sum_of(x)]),
        ("arrays", |x| {
            let a = Array::from_vars(x);
            let squares = (&a * &a).sin().reshaped(&[20, 15]);
            squares.matmul(&squares.transposed()).sum_axis(0).to_vars()
        }),
        ("elements", |x| {
            let mut a = Array::from_vars(x);
            element_updates(x, &mut a, 20);
            vec![a.sum(), a.get(3)]
        }),
        ("a custom operation", |x| {
            let total = custom_rule("total", |outputs: &[f64], inputs| {
                inputs.iter_mut().for_each(|input| *input += outputs[0]);
            });
            custom(x, &[x.iter().map(|x| x.value()).sum()], total)
        }),
    ];
    let mut broken = Vec::new();
    for (name, program) in programs {
        for how in [Accumulator::Compensated, Accumulator::Exact] {
            broken.extend(summed_excesses(name, program, how));
        }
    }
    assert!(broken.is_empty(), "more bytes than allowed:\n{}", broken.join("\n"));
}

#[test]
fn the_tape_and_the_allocator() {
    later_recordings_allocate_nothing::<f64>();
    later_recordings_allocate_nothing::<f32>();
    later_recordings_allocate_nothing::<DoubleDouble>();
    later_recordings_allocate_nothing::<Dual<f64>>();
    heap_bytes_are_the_allocators::<f64>();
    heap_bytes_are_the_allocators::<f32>();
    heap_bytes_are_the_allocators::<Dual<f64>>();
    custom_operations_are_counted();
    compressed_recordings_are_counted();
    updates_of_elements_allocate_nothing();
    arrays_are_counted();
}

/// A stream is walked without a call of the allocator, and holds what it says.
fn walked_without_allocation<I: Iterator<Item = Action>>(
    make: impl FnOnce() -> I,
    heap_bytes: impl FnOnce(&I) -> usize,
) {
    let (actions, _, live, _) = measured(make);
    assert_eq!(live, heap_bytes(&actions));
    // By reference: to drop the stream frees its memory.
    let mut actions = actions;
    let (forward, calls, ..) = measured(|| schedule::cost(actions.by_ref()).forward);
    assert!(forward >= 1000 && calls == 0, "{calls} calls");
}

#[test]
fn schedules_and_the_allocator() {
    walked_without_allocation(|| binomial(1000, 10).unwrap(), |actions| actions.heap_bytes());
    walked_without_allocation(|| periodic(1000, 7).unwrap(), |actions| actions.heap_bytes());
    walked_without_allocation(|| Mixed::new(1000, 10).unwrap(), |actions| actions.heap_bytes());
    walked_without_allocation(|| Mixed::new(3000, 10).unwrap(), |actions| actions.heap_bytes());
    walked_without_allocation(|| two_tier(1000, 5, 10, 2.0, 2.0).unwrap(), |actions| actions.heap_bytes());
    let online = || {
        let mut online = Online::new(10).unwrap();
        (0..1000).for_each(|_| drop(online.before_step()));
        online.reverse()
    };
    walked_without_allocation(online, |actions| actions.heap_bytes());
}

/// Making and following a schedule takes no more than what is said beforehand, and that is not far above.
#[test]
fn schedules_take_what_they_say() {
    let holds = |what: &str, said: schedule::PlanBytes, make: &dyn Fn() -> usize| {
        let (following, _, _, peak) = measured(make);
        assert!(peak <= said.planning.max(said.following), "{what}: {peak} bytes, {said:?} said");
        assert!(following <= said.following, "{what}: {following} bytes, {said:?} said");
        let most = said.planning.max(said.following);
        assert!(most <= 2 * peak + 512, "{what}: {peak} bytes, {said:?} said");
    };
    for steps in [1, 2, 3, 10, 100, 700, 2000, 2001, 20_000] {
        for slots in [1, 2, 10, 100] {
            let (said, snapshots, residuals) = Mixed::bytes_for(steps, slots);
            holds(&format!("mixed, {steps} steps, {slots} slots"), said, &|| {
                let actions = Mixed::walked(steps, slots).unwrap();
                let (bytes, cost) = (actions.heap_bytes(), actions.cost());
                assert!(cost.peak_snapshots.memory <= snapshots && cost.peak_residuals <= residuals);
                bytes
            });
            for (disk, blocks) in [(1, 2000), (5, 2000), (5, 20_000), (10, 16), (500, 100)] {
                let said = schedule::two_tier_bytes(steps, slots, disk, blocks);
                holds(
                    &format!("{steps} steps, {slots} slots, {disk} on disk, {blocks} blocks"),
                    said,
                    &|| {
                        schedule::two_tier_walked(steps, slots, disk, (2.0, 2.0), blocks)
                            .unwrap()
                            .heap_bytes()
                    },
                );
            }
        }
    }
    for steps in [1, 10, 1000, 100_000] {
        for slots in [1, 2, 3, 4, 10, 20, 100, 5000] {
            if u64::from(slots) * steps > 1 << 22 {
                continue; // each decision looks at all slots
            }
            let said = Online::bytes_for(slots);
            let (_, _, _, peak) = measured(|| {
                let mut online = Online::new(slots).unwrap();
                while online.steps() < steps {
                    drop(online.before_step());
                    online.skip(online.next_action_at().min(steps).saturating_sub(online.steps()));
                }
                online.reverse().heap_bytes()
            });
            assert!(peak <= said, "unknown length, {steps} steps, {slots} slots: {peak} bytes, {said} said");
        }
    }
}

/// The two ways to count the cost of a schedule agree.
#[test]
fn walking_costs_what_the_recursion_says() {
    for (steps, slots) in [(1, 1), (2, 1), (30, 3), (700, 9), (2500, 4)] {
        assert_eq!(Mixed::walked(steps, slots).unwrap().cost(), Mixed::new(steps, slots).unwrap().cost());
        for disk in [1, 8, 100] {
            let blocks = schedule::TwoTier::EXACT_STEPS;
            let walked = schedule::two_tier_walked(steps, slots, disk, (2.0, 2.0), blocks).unwrap();
            assert_eq!(walked.cost(), two_tier(steps, slots, disk, 2.0, 2.0).unwrap().cost());
        }
    }
}

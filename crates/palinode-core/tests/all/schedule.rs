//! Schedules that are no search: all, periodic, nested; how a method is chosen; what is refused.

use palinode_core::schedule::{
    Action, Cost, Level, Method, Mixed, Online, PerTier, Sizes, Slot, Tier, binomial, binomial_cost, check,
    choose, cost, fewest_snapshots_for, nested, peak_bytes, periodic, periodic_cost, store_all,
    store_all_cost, two_tier,
};

const MANY: PerTier = PerTier { memory: 1 << 20, disk: 0 };

#[test]
fn store_all_is_a_schedule() {
    for n in [0, 1, 2, 17] {
        assert_eq!(check(store_all(n), n, PerTier::default()).unwrap(), store_all_cost(n));
    }
}

#[test]
fn periodic_is_a_schedule() {
    for n in 0..70 {
        for every in 1..80 {
            let walked = check(periodic(n, every).unwrap(), n, MANY).unwrap();
            assert_eq!(walked, periodic_cost(n, every).unwrap(), "n = {n}, every {every}");
            assert!(walked.forward < 2 * n.max(1));
        }
    }
}

#[test]
fn a_small_binomial_schedule_in_full() {
    let slot = |index| Slot { tier: Tier::Memory, index };
    let actions: Vec<Action> = binomial(4, 2).unwrap().collect();
    use Action::*;
    let expected = [
        Snapshot { step: 0, slot: slot(0) },
        Advance { from: 0, to: 1 },
        Snapshot { step: 1, slot: slot(1) },
        Advance { from: 1, to: 3 },
        Record { step: 3 },
        Reverse { step: 3 },
        Restore { step: 1, slot: slot(1) },
        Advance { from: 1, to: 2 },
        Record { step: 2 },
        Reverse { step: 2 },
        Restore { step: 1, slot: slot(1) },
        Free { slot: slot(1) },
        Record { step: 1 },
        Reverse { step: 1 },
        Restore { step: 0, slot: slot(0) },
        Free { slot: slot(0) },
        Record { step: 0 },
        Reverse { step: 0 },
    ];
    assert_eq!(actions, expected);
}

#[test]
fn nothing_and_one_step() {
    assert_eq!(binomial(0, 0).unwrap().next(), None);
    assert_eq!(store_all(0).next(), None);
    assert_eq!(periodic(0, 3).unwrap().next(), None);
    assert_eq!(Mixed::new(0, 0).unwrap().next(), None);
    assert_eq!(two_tier(0, 0, 0, 1.0, 1.0).unwrap().next(), None);
    assert_eq!(Online::new(1).unwrap().reverse().next(), None);
    let one = [Action::Record { step: 0 }, Action::Reverse { step: 0 }];
    assert!(binomial(1, 0).unwrap().eq(one));
    assert!(periodic(1, 1).unwrap().eq(one));
    assert!(Mixed::new(1, 0).unwrap().eq(one));
    assert!(two_tier(1, 0, 7, 1.0, 1.0).unwrap().eq(one));
}

#[test]
fn what_is_refused() {
    let codes = [
        binomial(2, 0).unwrap_err().code(),
        binomial_cost(2, 0).unwrap_err().code(),
        periodic(5, 0).unwrap_err().code(),
        Online::new(0).unwrap_err().code(),
        two_tier(5, 0, 5, 1.0, 1.0).unwrap_err().code(),
        two_tier(5, 1, 1, -1.0, 1.0).unwrap_err().code(),
        two_tier(5, 1, 1, 1.0, f64::NAN).unwrap_err().code(),
    ];
    assert_eq!(codes, ["PAL0501"; 7]);
    let too_small = Mixed::with_sizes(100, Sizes { snapshot: 40, residual: 90 }, 39).unwrap_err();
    assert_eq!(
        too_small.to_string(),
        "PAL0502: 39 bytes are not enough for any schedule of this loop; the smallest that works is 40 bytes"
    );
    assert!(Mixed::with_sizes(100, Sizes { snapshot: 40, residual: 90 }, 40).is_ok());
    assert_eq!(periodic(1 << 40, 1).unwrap_err().code(), "PAL0504");
    assert_eq!(Mixed::new(1 << 40, 1).unwrap_err().code(), "PAL0504");
}

#[test]
fn the_smallest_number_of_slots() {
    for n in [2, 3, 10, 100, 12_345] {
        for factor in [1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 100.0] {
            let fits = |s: u32| binomial_cost(n, s).unwrap().factor(n) <= factor;
            match fewest_snapshots_for(n, factor) {
                Some(s) => assert!(fits(s) && (s == 1 || !fits(s - 1)), "n = {n}, factor {factor}: {s}"),
                None => assert!(!fits(n as u32 - 1)),
            }
        }
    }
}

/// Each step of the outer loop is the whole inner loop: the nest as one stream of innermost steps.
fn nest_by_walking(outer: u64, inner: u64, slots: [u32; 2]) -> u64 {
    let one_inner = cost(binomial(inner, slots[1]).unwrap()).forward;
    let forward = |action: Action| match action {
        Action::Advance { from, to } => (to - from) * inner,
        Action::Record { .. } => one_inner,
        Action::Snapshot { .. } | Action::Restore { .. } | Action::Reverse { .. } | Action::Free { .. } => 0,
    };
    binomial(outer, slots[0]).unwrap().map(forward).sum()
}

#[test]
fn nests_are_divided_as_well_as_possible() {
    for (outer, inner) in [(2, 2), (5, 100), (100, 5), (40, 60), (1, 50), (50, 1)] {
        for total in [2_u32, 3, 5, 8, 12] {
            let levels = [outer, inner].map(|steps| Level { steps, snapshot: 1 });
            let nest = nested(&levels, total.into()).unwrap();
            let divisions = (0..=total)
                .map(|first| [first, total - first])
                .filter(|slots| (slots[0] > 0 || outer == 1) && (slots[1] > 0 || inner == 1));
            let best = divisions.map(|slots| nest_by_walking(outer, inner, slots)).min().unwrap();
            assert_eq!(nest.cost().forward, best, "{outer} x {inner}, {total} slots: {:?}", nest.snapshots());
            assert!(nest.bytes() <= total.into());
            // One loop over all steps with all slots is never worse.
            assert!(binomial_cost(outer * inner, total).unwrap().forward <= best);
        }
    }
}

#[test]
fn nests_of_three_and_of_unequal_sizes() {
    let levels = [(30, 100), (20, 10), (10, 1)].map(|(steps, snapshot)| Level { steps, snapshot });
    let bytes = 500;
    let nest = nested(&levels, bytes).unwrap();
    let factor = |n: u64, s: u64| binomial_cost(n, s as u32).unwrap().advanced as f64 / n as f64;
    let mut best = f64::INFINITY;
    for a in 1..=4_u64 {
        for b in 1..=19_u64 {
            for c in 1..=9_u64 {
                if 100 * a + 10 * b + c <= bytes {
                    best = best.min(1.0 + factor(30, a) + factor(20, b) + factor(10, c));
                }
            }
        }
    }
    assert!((nest.cost().factor(30 * 20 * 10) - best).abs() < 1e-12, "{:?}", nest.snapshots());
    assert!(nest.bytes() <= bytes);
    assert_eq!(nested(&levels, 110).unwrap_err().code(), "PAL0502");
    assert_eq!(nested(&levels, 111).unwrap().snapshots(), [1, 1, 1]);
    assert_eq!(
        nested(&[], 0).unwrap().cost(),
        Cost { forward: 1, recorded: 1, peak_residuals: 1, ..Cost::default() }
    );
}

#[test]
fn chosen_methods_keep_their_budget() {
    let mut methods = [0; 4];
    for n in [1, 2, 10, 100, 1000, 2500, 30_000] {
        for (snapshot, residual) in [(24, 400), (8, 8), (4000, 100), (1, 1), (100_000, 900_000)] {
            if n == 30_000 && snapshot != 24 {
                continue; // planning takes seconds, unoptimised
            }
            let sizes = Sizes { snapshot, residual };
            for bytes in [100, 1000, 5000, 50_000, 1 << 20, 1 << 24] {
                let chosen = match choose(n, sizes, bytes) {
                    Ok(chosen) => chosen,
                    Err(palinode_core::Error::ScheduleBudget { smallest, .. }) => {
                        assert!(smallest > bytes);
                        assert!(
                            choose(n, sizes, smallest).is_ok() && choose(n, sizes, smallest - 1).is_err()
                        );
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                assert!(chosen.kept_bytes + chosen.plan_bytes <= bytes, "{n} {sizes:?} {bytes}: {chosen:?}");
                if chosen.cost.forward > 150_000 {
                    continue;
                }
                let schedule = chosen.schedule().unwrap();
                assert_eq!(check(schedule.clone(), n, MANY).unwrap(), chosen.cost);
                assert!(peak_bytes(schedule, sizes) <= chosen.kept_bytes + residual);
                match chosen.method {
                    Method::StoreAll => methods[0] += 1,
                    Method::Periodic { .. } => methods[1] += 1,
                    Method::Binomial { .. } => methods[2] += 1,
                    Method::Mixed { .. } => methods[3] += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    println!("all, periodic, binomial, mixed: {methods:?}");
    assert!(methods[0] > 0 && methods[2] > 0 && methods[3] > 0);
}

//! Schedules against independent dynamic programs, written here from the recurrences: as few evaluations as
//! there can be.

use palinode_core::schedule::{
    Action, Cost, Mixed, Online, PerTier, Sizes, binomial, binomial_cost, check, cost, online_cost, two_tier,
};

fn memory(slots: u32) -> PerTier {
    PerTier { memory: slots.into(), disk: 0 }
}

/// The fewest advances for all `n <= steps`, with 1 to `slots` snapshots, by trying every division.
fn advances_by_trying(steps: usize, slots: usize) -> Vec<Vec<u64>> {
    let mut table: Vec<Vec<u64>> = vec![vec![]; slots + 1];
    for s in 1..=slots {
        let mut row = vec![0, 0];
        for n in 2..=steps {
            let alone = n as u64 - 1 + row[n - 1];
            let divided = |i: usize| i as u64 + row[i] + table[s - 1][n - i];
            row.push((1..n).filter(|_| s > 1).map(divided).fold(alone, u64::min));
        }
        table[s] = row;
    }
    table
}

/// `r n - C(s + r, r - 1)` with exact binomial coefficients, as it is stated.
fn advances_as_stated(n: u64, s: u64) -> u64 {
    let choose = |n: u64, k: u64| {
        let k = k.min(n - k);
        (1..=u128::from(k)).fold(1_u128, |c, j| c * (u128::from(n - k) + j) / j)
    };
    let r = (0..).find(|&r| choose(s + r, s) >= n.into()).unwrap();
    if r == 0 { 0 } else { (u128::from(r * n) - choose(s + r, r - 1)) as u64 }
}

#[test]
fn the_closed_form_is_the_best_division() {
    let table = advances_by_trying(220, 24);
    for s in 1..=24 {
        for n in 1..=220 {
            assert_eq!(binomial_cost(n as u64, s as u32).unwrap().advanced, table[s][n], "n = {n}, s = {s}");
        }
    }
}

#[test]
fn the_closed_form_is_as_stated() {
    for s in 1..=64 {
        for n in 1..=2000 {
            assert_eq!(
                binomial_cost(n, s as u32).unwrap().forward,
                n + advances_as_stated(n, s),
                "n = {n}, s = {s}"
            );
        }
    }
}

#[test]
fn binomial_table() {
    let table = [(10, [25, 23, 19, 19]), (100, [590, 416, 322, 268]), (1000, [13155, 7284, 4636, 3472])];
    for (n, row) in table {
        for (s, forward) in [3, 5, 10, 30].into_iter().zip(row) {
            assert_eq!(cost(binomial(n, s).unwrap()).forward, forward, "n = {n}, s = {s}");
        }
    }
}

/// Walks and checks the stream: it is a schedule, and every number of its cost is that of the formulas.
fn binomial_is_right(n: u64, s: u32) {
    let walked =
        check(binomial(n, s).unwrap(), n, memory(s)).unwrap_or_else(|m| panic!("n = {n}, s = {s}: {m}"));
    assert_eq!(walked, binomial_cost(n, s).unwrap(), "n = {n}, s = {s}");
}

#[test]
fn binomial_streams() {
    for s in 1..=64 {
        // All short loops, then a number of steps that meets no pattern, and around where a repetition more
        // is needed.
        let long = (80..=2000).step_by(61 + s as usize % 7);
        (1..80).chain(long).for_each(|n| binomial_is_right(n, s));
        for r in 2..=3 {
            let full: u64 = (1..=r).fold(1, |c, j| c * (u64::from(s) + j) / j);
            (full - 1..=full + 1).filter(|&n| n <= 2000).for_each(|n| binomial_is_right(n, s));
        }
    }
}

/// The whole claim: every stream with n <= 2000 and s <= 64, walked and checked.
///
/// `cargo test --release -p palinode-core --test all every_binomial_stream -- --ignored`
#[test]
#[ignore = "128000 streams: 12 seconds in release"]
fn every_binomial_stream() {
    for s in 1..=64 {
        (1..=2000).for_each(|n| binomial_is_right(n, s));
    }
}

#[test]
fn formulas_hold_for_long_loops() {
    const N: u64 = 1_000_000_000_000;
    assert_eq!(binomial_cost(N, 1).unwrap().forward, u64::MAX); // 5e23: no u64
    for s in [3, 10, 100, 10_000, u32::MAX] {
        let cost = binomial_cost(N, s).unwrap();
        assert_eq!(cost.advanced, advances_as_stated(N, s.into()), "s = {s}");
        assert!(cost.writes.memory >= cost.peak_snapshots.memory);
    }
    // beta(2, r) = (r + 1) (r + 2) / 2
    let r: u64 = (1_414_000..).find(|r| (r + 1) * (r + 2) / 2 >= N).unwrap();
    assert!(r * (r + 1) / 2 < N);
    assert_eq!(binomial_cost(N, 2).unwrap().advanced, r * N - (r + 2) * (r + 1) * r / 6);
    // The beginning of such a stream is there at once, and advances less than the whole.
    let first: Vec<Action> = binomial(N, 1000).unwrap().take(2001).collect();
    let advanced: u64 =
        first.iter().map(|a| if let Action::Advance { from, to } = a { to - from } else { 0 }).sum();
    assert!((N - 2..N + 10_000).contains(&advanced), "{advanced}");
}

/// The fewest forward steps with mixed slots, for every number of bytes and of steps: the first step of a
/// stretch may be recorded and kept, or its state kept. [`NEVER`] where nothing fits.
fn mixed_by_bytes(sizes: Sizes, bytes: u64, steps: usize) -> Vec<Vec<u64>> {
    let mut rows: Vec<Vec<u64>> = Vec::new();
    for b in 0..=bytes {
        let below = |size: u64| b.checked_sub(size).map(|b| b as usize);
        let mut row = vec![0, 1];
        for n in 2..=steps {
            let recorded = below(sizes.residual).map_or(NEVER, |b| 1 + rows[b][n - 1]);
            let divided = |b: usize| (1..n).map(|i| i as u64 + row[i] + rows[b][n - i]).min().unwrap();
            row.push(below(sizes.snapshot).map_or(NEVER, divided).min(recorded).min(NEVER));
        }
        rows.push(row);
    }
    rows
}

const NEVER: u64 = u64::MAX / 4;
const EQUAL: Sizes = Sizes { snapshot: 1, residual: 1 };

fn mixed_is_right(mixed: &Mixed, n: u64, sizes: Sizes, bytes: u64) {
    let slots = PerTier { memory: n, disk: 0 };
    let walked =
        check(mixed.clone(), n, slots).unwrap_or_else(|m| panic!("n = {n}, {sizes:?}, {bytes} bytes: {m}"));
    assert_eq!(walked, mixed.cost(), "n = {n}, {sizes:?}, {bytes} bytes");
    // The live step's residuals come on top of the budget.
    let peak = palinode_core::schedule::peak_bytes(mixed.clone(), sizes);
    assert!(peak <= bytes + sizes.residual, "n = {n}, {sizes:?}, {bytes} bytes: {peak}");
}

#[test]
fn mixed_is_optimal_with_equal_sizes() {
    let table = mixed_by_bytes(EQUAL, 30, 150);
    for s in 1..=30 {
        for n in (1..=40).chain((41..=150).step_by(7)) {
            let mixed = Mixed::new(n as u64, s as u32).unwrap();
            assert_eq!(mixed.forward(), table[s][n], "n = {n}, s = {s}");
            assert!(mixed.bound() <= mixed.forward() && mixed.is_exact());
            mixed_is_right(&mixed, n as u64, EQUAL, s as u64);
        }
    }
    for (n, row) in [(10, [19, 15, 10, 10]), (100, [554, 352, 237, 172])] {
        for (s, forward) in [3, 5, 10, 30].into_iter().zip(row) {
            assert_eq!(cost(Mixed::new(n, s).unwrap()).forward, forward, "n = {n}, s = {s}");
        }
    }
}

#[test]
fn mixed_is_optimal_to_2000_steps() {
    let table = mixed_by_bytes(EQUAL, 12, 2000);
    for (s, n) in [(12, 2000), (9, 1999), (5, 1500), (2, 700)] {
        let mixed = Mixed::new(n as u64, s as u32).unwrap();
        assert_eq!(mixed.forward(), table[s][n], "n = {n}, s = {s}");
        mixed_is_right(&mixed, n as u64, EQUAL, s as u64);
    }
}

/// `r n - C(s + r - 2, s + 1) - C(s + r - 1, s) + k`, as `equal.rs` states it, with exact binomial
/// coefficients.
fn mixed_as_stated(n: u64, s: u64) -> u64 {
    let choose = |n: u64, k: u64| (1..=u128::from(k)).fold(1_u128, |c, j| c * (u128::from(n - k) + j) / j);
    if n <= s + 1 {
        return n;
    }
    let r = (0..).find(|&r| choose(s + r, s) >= n.into()).unwrap();
    let mut missing = u128::from(n) - choose(s + r - 1, s);
    let mut divided = 0;
    for b in 0..s {
        let here = missing.div_ceil(u128::from(s - b)).min(choose(b + r - 2, b));
        divided += here;
        missing = missing.saturating_sub(here * u128::from(s - b));
    }
    let advances_saved = if r >= 3 { choose(s + r - 2, s + 1) } else { 0 };
    (u128::from(r * n) - advances_saved - choose(s + r - 1, s) + divided) as u64
}

#[test]
fn mixed_with_equal_sizes_is_optimal_at_any_length() {
    // The formula is the recurrence's least, for every length.
    let table = mixed_by_bytes(EQUAL, 12, 1000);
    for s in 1..=12 {
        (1..=1000)
            .for_each(|n| assert_eq!(mixed_as_stated(n as u64, s as u64), table[s][n], "n = {n}, s = {s}"));
    }
    assert_eq!(mixed_by_bytes(EQUAL, 5, 3000)[5][3000], mixed_as_stated(3000, 5));
    // And the streams are as good as the formula.
    let lengths = (1..400).chain([1000, 1999, 2000, 2001, 4095, 10_000, 20_000, 123_456]);
    for (n, s) in lengths.flat_map(|n| [1, 2, 3, 5, 9, 30, 100, 1000].map(|s| (n, s))) {
        if n > 20_000 && s < 3 {
            continue; // a walk of 10^9 steps
        }
        let mixed = Mixed::new(n, s).unwrap();
        assert_eq!(mixed.forward(), mixed_as_stated(n, s.into()), "n = {n}, s = {s}");
        assert!(mixed.is_exact() && mixed.bound() == mixed.forward() && mixed.gap() == 1.0);
        mixed_is_right(&mixed, n, EQUAL, s.into());
    }
    // What the recurrence gives at 10000 steps, which takes it seconds.
    assert_eq!(Mixed::new(10_000, 5).unwrap().forward(), 119_808);
    // Sizes need not be one.
    let mixed = Mixed::with_sizes(5000, Sizes { snapshot: 24, residual: 24 }, 24 * 7 + 23).unwrap();
    assert_eq!(mixed.forward(), mixed_as_stated(5000, 7));
}

/// A level for each snapshot held, every division tried.
fn mixed_by_levels(sizes: Sizes, bytes: u64, steps: usize) -> u64 {
    let levels = (bytes / sizes.snapshot).min(steps as u64 - 1);
    let mut above = vec![NEVER; steps + 1];
    for held in (0..=levels).rev() {
        let most = (bytes - held * sizes.snapshot) / sizes.residual + 1;
        let mut row = vec![0; steps + 1];
        for n in 1..=steps {
            let divided = || (1..n).map(|i| i as u64 + row[i] + above[n - i]).min().unwrap();
            row[n] = if n as u64 <= most { n as u64 } else { divided().min(NEVER) };
        }
        above = row;
    }
    above[steps]
}

#[test]
fn mixed_with_unequal_sizes_is_optimal_beyond_2000_steps() {
    for (snapshot, residual, bytes, n) in [(24, 400, 700, 2100), (100, 60, 900, 2050), (2, 3, 11, 2321)] {
        let sizes = Sizes { snapshot, residual };
        let mixed = Mixed::with_sizes(n, sizes, bytes).unwrap();
        assert!(mixed.is_exact() && mixed.gap() == 1.0);
        assert_eq!(mixed.forward(), mixed_by_levels(sizes, bytes, n as usize), "{sizes:?} {bytes} {n}");
        mixed_is_right(&mixed, n, sizes, bytes);
    }
}

/// Loops whose best schedule takes billions of looks if every division of every stretch is tried, as was done
/// for these numbers, in another language.
#[test]
fn the_best_is_found_where_trying_every_division_takes_too_long() {
    let mixed = Mixed::with_sizes(20_000, Sizes { snapshot: 1, residual: 2 }, 10).unwrap();
    assert_eq!((mixed.forward(), mixed.is_exact(), mixed.gap()), (144_131, true, 1.0));
    mixed_is_right(&mixed, 20_000, Sizes { snapshot: 1, residual: 2 }, 10);
    let mixed = Mixed::with_sizes(20_000, Sizes { snapshot: 5, residual: 4 }, 61).unwrap();
    assert_eq!((mixed.forward(), mixed.is_exact()), (116_796, true));
    let tiers = two_tier(20_000, 1, 60, 2.0, 3.0).unwrap();
    assert_eq!((tiers.total(), tiers.is_exact(), tiers.gap()), (122_325.0, true, 1.0));
}

#[test]
fn mixed_is_optimal_with_real_sizes() {
    for (snapshot, residual) in [(1, 2), (2, 1), (1, 5), (5, 1), (2, 3), (3, 2), (3, 7), (7, 3), (4, 4)] {
        let sizes = Sizes { snapshot, residual };
        let table = mixed_by_bytes(sizes, 34, 90);
        for bytes in [1, 3, 5, 8, 13, 21, 34] {
            for n in [1, 2, 3, 5, 9, 17, 30, 55, 90] {
                let mixed = Mixed::with_sizes(n as u64, sizes, bytes);
                let forward = mixed.as_ref().map_or(NEVER, Mixed::forward);
                assert_eq!(forward, table[bytes as usize][n], "n = {n}, {sizes:?}, {bytes} bytes");
                match mixed {
                    Ok(mixed) => mixed_is_right(&mixed, n as u64, sizes, bytes),
                    Err(error) => assert_eq!(error.code(), "PAL0502"),
                }
            }
        }
    }
}

#[test]
fn long_mixed_schedules_are_near_the_bound() {
    for (n, snapshot, residual, bytes) in
        [(10_000, 1, 1, 30), (100_000, 24, 400, 10_000), (1_000_000, 8, 8, 4096), (50_000, 100, 60, 6000)]
    {
        let sizes = Sizes { snapshot, residual };
        let mixed = Mixed::with_sizes(n, sizes, bytes).unwrap();
        mixed_is_right(&mixed, n, sizes, bytes);
        let only_snapshots = binomial_cost(n, (bytes / snapshot) as u32).unwrap().forward;
        assert!(mixed.forward() <= only_snapshots, "{} {only_snapshots}", mixed.forward());
        assert!((1.0..1.1).contains(&mixed.gap()), "{n} {sizes:?} {bytes}: {}", mixed.gap());
    }
}

/// `o1(c1, n - 1)` of two tiers, as stated: forward steps, writes and reads.
fn two_tier_by_recurrence(n: usize, c0: usize, c1: usize, w: f64, r: f64) -> f64 {
    let last = n - 1;
    let all_alone = |l: usize| (l + 1 + l * (l + 1) / 2) as f64;
    let mut o0 = vec![vec![]; c0 + 1];
    for m in 1..=c0 {
        let mut row: Vec<f64> = Vec::new();
        for l in 0..=last {
            let divided = |j: usize| j as f64 + o0[m - 1][l - j] + row[j - 1];
            row.push(match l {
                0 => 1.0,
                1 => 3.0,
                _ if m == 1 => all_alone(l),
                _ => (1..l).map(divided).fold(all_alone(l), f64::min),
            });
        }
        o0[m] = row;
    }
    let in_memory = &o0[c0];
    let mut o1 = in_memory.clone();
    for _ in 1..=c1 {
        let mut p1: Vec<f64> = Vec::new();
        for l in 0..=last {
            let divided = |j: usize| j as f64 + o1[l - j] + r + p1[j - 1];
            p1.push(match l {
                0 => 1.0,
                1 => 3.0,
                _ => (1..l).map(divided).fold(in_memory[l], f64::min),
            });
        }
        o1 = (0..=last).map(|l| if l < 2 { p1[l] } else { in_memory[l].min(w + p1[l]) }).collect();
    }
    o1[last]
}

fn two_tier_is_right(n: u64, ram: u32, disk: u32, w: f64, r: f64) -> f64 {
    let schedule = two_tier(n, ram, disk, w, r).unwrap();
    let total = schedule.total();
    let slots = PerTier { memory: ram.into(), disk: disk.into() };
    let walked =
        check(schedule.clone(), n, slots).unwrap_or_else(|m| panic!("{n} {ram} {disk} {w} {r}: {m}"));
    assert_eq!(walked, schedule.cost(), "{n} {ram} {disk} {w} {r}");
    assert_eq!(walked.with_disk(w, r), total);
    assert!(schedule.gap() >= 1.0);
    total
}

#[test]
fn two_tiers_table() {
    for (n, row) in [(100, [393.0, 342.0, 298.0]), (1000, [5565.0, 4491.0, 3682.0])] {
        for ((ram, disk), total) in [(3, 5), (5, 10), (10, 30)].into_iter().zip(row) {
            assert_eq!(two_tier_is_right(n, ram, disk, 2.0, 2.0), total, "{n} {ram} {disk}");
        }
    }
}

#[test]
fn two_tiers_are_optimal() {
    for (w, r) in
        [(2.0, 2.0), (0.0, 0.0), (0.5, 0.25), (10.0, 1.0), (1.0, 30.0), (0.3, 7.1), (3.1879, 2.7393)]
    {
        for (ram, disk) in [(1, 1), (1, 4), (2, 0), (2, 3), (3, 9), (6, 2)] {
            for n in [1, 2, 3, 4, 7, 12, 25, 60, 110] {
                let least = two_tier_by_recurrence(n, ram, disk, w, r);
                let total = two_tier_is_right(n as u64, ram as u32, disk as u32, w, r);
                // The same sum, in another order.
                let same = (total - least).abs() <= 1e-12 * least;
                assert!(same, "n = {n}, {ram} + {disk} slots, w = {w}, r = {r}: {total} {least}");
            }
        }
    }
}

#[test]
fn two_tiers_are_optimal_beyond_2000_steps() {
    for (n, ram, disk, w, r) in [(2500, 3, 4, 2.0, 2.0), (2201, 1, 6, 0.5, 7.25), (2048, 8, 12, 10.0, 1.0)] {
        let least = two_tier_by_recurrence(n, ram, disk, w, r);
        let total = two_tier_is_right(n as u64, ram as u32, disk as u32, w, r);
        assert_eq!(total, least, "n = {n}, {ram} + {disk} slots, w = {w}, r = {r}");
    }
    // Totals that were found by trying every division, in another language.
    for (ram, disk, total) in [(3, 5, 178_427.0), (5, 10, 125_083.0)] {
        let schedule = two_tier(20_000, ram, disk, 2.0, 2.0).unwrap();
        assert_eq!((schedule.total(), schedule.is_exact(), schedule.gap()), (total, true, 1.0));
    }
}

#[test]
fn long_two_tier_schedules_use_the_disk_well() {
    let in_memory = binomial_cost(100_000, 5).unwrap().forward as f64;
    let total = two_tier_is_right(100_000, 5, 40, 2.0, 2.0);
    assert!(total < in_memory / 2.0, "{total} {in_memory}");
    assert!(!two_tier(100_000, 5, 40, 2.0, 2.0).unwrap().is_exact());
    // A disk that costs much: more slots would save little, and the bound knows.
    let dear = two_tier(30_000, 1, 8, 300.0, 500.0).unwrap();
    assert!(!dear.is_exact() && dear.bound() <= dear.total() && dear.gap() < 1.06, "{}", dear.gap());
}

/// The stream of a loop that stops after `n` steps: the run, then the reverse sweep.
fn online_stream(n: u64, s: u32) -> Vec<Action> {
    let mut online = Online::new(s).unwrap();
    let mut actions = Vec::new();
    for step in 0..n {
        actions.extend(online.before_step());
        actions.push(Action::Advance { from: step, to: step + 1 });
    }
    actions.extend(online.reverse());
    actions
}

#[test]
fn online_streams() {
    for s in [1, 2, 3, 4, 7, 8, 20, 64] {
        for n in (0..60).chain([64, 65, 66, 100, 333, 1000]) {
            let walked: Cost =
                check(online_stream(n, s), n, memory(s)).unwrap_or_else(|m| panic!("n = {n}, s = {s}: {m}"));
            assert_eq!(walked, online_cost(n, s).unwrap(), "n = {n}, s = {s}");
        }
    }
}

#[test]
fn online_stays_near_the_optimum() {
    let mut worst = [0.0_f64; 2];
    for s in 3..=64 {
        let mut online = Online::new(s).unwrap();
        for n in 1..=3000 {
            let _ = online.before_step();
            if n >= 50.max(3 * u64::from(s)) {
                let factor = online.cost().forward as f64 / binomial_cost(n, s).unwrap().forward as f64;
                let bound = if s >= 8 { 1.05 } else { 1.08 };
                assert!(factor <= bound, "n = {n}, s = {s}: {factor}");
                let class = usize::from(s >= 8);
                worst[class] = worst[class].max(factor);
            }
        }
    }
    println!("worst: {:.4} for 3 to 7 slots, {:.4} for 8 to 64", worst[0], worst[1]);
}

#[test]
fn online_decisions_are_rare() {
    let (mut online, mut decisions) = (Online::new(10).unwrap(), 0);
    while online.steps() < 10_000_000 {
        decisions += online.before_step().filter(|action| matches!(action, Action::Snapshot { .. })).count();
        online.skip(online.next_action_at() - online.steps());
    }
    assert!((100_000..500_000).contains(&decisions), "{decisions}"); // one in 26 steps
}

#[test]
fn online_is_right_even_if_it_is_not_asked_in_time() {
    let mut online = Online::new(4).unwrap();
    let mut actions = Vec::new();
    for from in (0..200).step_by(7) {
        actions.extend(online.before_step());
        online.skip(6);
        actions.push(Action::Advance { from, to: from + 7 });
    }
    let n = online.steps();
    actions.extend(online.reverse());
    check(actions, n, memory(4)).unwrap();
}

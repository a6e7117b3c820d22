//! Every function of `Lanes` has in each lane the bits of `f64`.

use crate::apply::{BINARY, OTHERS, UNARY, apply};
use palinode_num::{Accumulator, Lanes, Scalar};

const SPECIAL: [f64; 24] = [
    0.0,
    -0.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1.0,
    -1.0,
    2.0,
    -2.0,
    3.0,
    0.5,
    -0.5,
    1.5,
    -2.5,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    1e-308,
    -1e16,
    800.0,
    0.3,
    -66e6,
];

/// Which NaN a NaN is, is not said.
fn bits(x: f64) -> u64 {
    if x.is_nan() { u64::MAX } else { x.to_bits() }
}

/// So many at a time; the last ones are filled up.
fn in_lanes<const N: usize>(points: &[Vec<f64>], mut see: impl FnMut(&[Vec<f64>; N], Vec<Lanes<N>>)) {
    for group in points.chunks(N) {
        let group: [Vec<f64>; N] = core::array::from_fn(|lane| group[lane.min(group.len() - 1)].clone());
        let arguments = (0..group[0].len()).map(|i| Lanes::from_fn(|lane| group[lane][i])).collect();
        see(&group, arguments);
    }
}

fn same<const N: usize>(op: &str, parameter: Option<i32>, points: &[Vec<f64>]) {
    in_lanes::<N>(points, |group, arguments| {
        let found = apply(op, parameter, &arguments);
        for (lane, point) in group.iter().enumerate() {
            let expected: f64 = apply(op, parameter, point);
            // Which of two equal zeros min and max give is not specified.
            if ["min", "max"].contains(&op) && expected == 0.0 && found.lane(lane) == 0.0 {
                continue;
            }
            let found = found.lane(lane);
            assert_eq!(
                bits(found),
                bits(expected),
                "{op}({point:?}, {parameter:?}): {found:e}, {expected:e}"
            );
        }
    });
}

fn all_of(arguments: u32) -> Vec<Vec<f64>> {
    let count = SPECIAL.len();
    (0..count.pow(arguments))
        .map(|i| (0..arguments).map(|k| SPECIAL[i / count.pow(k) % count]).collect())
        .collect()
}

#[test]
fn every_function_has_the_bits_of_one_by_one() {
    for op in UNARY {
        same::<8>(op, None, &all_of(1));
        same::<3>(op, None, &all_of(1));
    }
    for op in BINARY {
        same::<8>(op, None, &all_of(2));
        same::<5>(op, None, &all_of(2));
    }
    for op in OTHERS {
        match *op {
            "powi" => [0, 1, 2, 3, 4, -1, -2, 7, 1001, i32::MIN]
                .iter()
                .for_each(|&n| same::<8>(op, Some(n), &all_of(1))),
            "polygamma" => (0..4).for_each(|n| same::<8>(op, Some(n), &all_of(1))),
            _ => same::<8>(op, None, &all_of(3)),
        }
    }
}

#[test]
fn strong_products_have_the_bits_of_one_by_one() {
    in_lanes::<8>(&all_of(3), |group, x| {
        let (a, b, c) = (x[0], x[1], x[2]);
        let check = |what: &str, found: Lanes<8>, of_one: &dyn Fn(f64, f64, f64) -> f64| {
            for (lane, point) in group.iter().enumerate() {
                let expected = of_one(point[0], point[1], point[2]);
                assert_eq!(bits(found.lane(lane)), bits(expected), "{what} of {point:?}: {expected:e}");
            }
        };
        check("strong_add_to", a.strong_add_to(b, c), &|a, b, c| a.strong_add_to(b, c));
        check("strong_scale", Lanes::strong_scale(a, [b, c])[1], &|a, b, c| f64::strong_scale(a, [b, c])[1]);
        check("strong_add", Lanes::strong_add([a, b], b, [c, a])[0], &|a, b, c| {
            f64::strong_add([a, b], b, [c, a])[0]
        });
        check("strong_combine", Lanes::strong_combine(a, [b], c, [a])[0], &|a, b, c| {
            f64::strong_combine(a, [b], c, [a])[0]
        });
        check("of_product", Lanes::strong_combine_of_product(a * b, a, [c], b, [b])[0], &|a, b, c| {
            f64::strong_combine_of_product(a * b, a, [c], b, [b])[0]
        });
        check("strong_mul_pair", Lanes::strong_mul_pair(a, b, c, a).1, &|a, b, c| {
            f64::strong_mul_pair(a, b, c, a).1
        });
        check("carried", a.carried(b), &|a, b, _| a.carried(b));
        check("carried_onto", a.carried_onto(b, c), &|a, b, c| a.carried_onto(b, c));
    });
}

#[test]
fn sums_products_and_chains_have_the_bits_of_one_by_one() {
    let number = |i: usize| ((i * 7919) as f64).sin() * 10_f64.powi((i % 31) as i32 - 15);
    for count in [0, 1, 5, 16, 17, 100, 1024, 1025, 3000] {
        let of_lane = |lane: usize, shift: usize| -> Vec<f64> {
            (0..count).map(|i| number(i * 5 + lane + shift)).collect()
        };
        let both = |shift: usize| -> Vec<Lanes<4>> {
            (0..count).map(|i| Lanes::from_fn(|lane| number(i * 5 + lane + shift))).collect()
        };
        let (a, b) = (both(0), both(3));
        for lane in 0..4 {
            let (x, y) = (of_lane(lane, 0), of_lane(lane, 3));
            assert_eq!(bits(Lanes::sum_of(&a).lane(lane)), bits(f64::sum_of(&x)), "{count}");
            assert_eq!(bits(Lanes::dot(&a, &b).lane(lane)), bits(f64::dot(&x, &y)), "{count}");
            let chain = Lanes::chain_over(Lanes::one(), count, |i| (a[i], b[i]));
            assert_eq!(
                bits(chain.lane(lane)),
                bits(f64::chain_over(1.0, count, |i| (x[i], y[i]))),
                "{count}"
            );
            for how in [Accumulator::Compensated, Accumulator::Exact] {
                assert_eq!(
                    bits(Lanes::sum_with(&a, how).lane(lane)),
                    bits(f64::sum_with(&x, how)),
                    "{count}"
                );
                assert_eq!(bits(Lanes::dot_with(&a, &b, how).lane(lane)), bits(f64::dot_with(&x, &y, how)));
            }
        }
    }
}

#[test]
fn a_comparison_outside_of_a_group_that_cannot_be_answered_is_refused() {
    let refused = std::panic::catch_unwind(|| Lanes([1.0, 3.0, 1.0]) < 2.0).unwrap_err();
    let message = refused.downcast_ref::<String>().expect("a text");
    assert!(message.contains("PAL0127") && message.contains("lane 1 "), "{message}");
    assert!(Lanes([1.0, 1.5]) < 2.0);
}

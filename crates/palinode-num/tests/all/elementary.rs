//! The elementary functions of `f64` against double-doubles, which compute them in another way (series of
//! numbers of 192 bits), and against themselves: one by one, in slices, on every instruction set.
//!
//! `PALINODE_ARGUMENTS` says how many arguments of each function are drawn (the long command of
//! CONTRIBUTING.md prints the worst of millions), a third of them where a text or a result changes.

use crate::apply::apply;
use palinode_num::elementary::{Function, FunctionOfTwo, Operand, sin_cos};
use palinode_num::machine::InstructionSet;
use palinode_num::{DoubleDouble, Scalar};

/// Numbers at random (splitmix64).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// From -1 to 1.
    fn unit(&mut self) -> f64 {
        (self.bits() as i64 >> 10) as f64 / (1u64 << 53) as f64
    }

    /// Exponents from low to high, in powers of two.
    fn by_exponent(&mut self, low: f64, high: f64) -> f64 {
        let exponent = low + (high - low) * self.unit().abs();
        self.unit().signum() * exponent.exp2()
    }

    /// The number itself or one a few places away, with either sign.
    fn near(&mut self, x: f64) -> f64 {
        let places = [4, self.bits() % 9][self.below(2)] as i64 - 4;
        self.unit().signum() * f64::from_bits(x.to_bits().saturating_add_signed(places))
    }

    fn argument(&mut self) -> f64 {
        use core::f64::consts::{FRAC_PI_4, LN_2};
        match self.below(12) {
            0 => f64::from_bits(self.bits()),
            1 => self.by_exponent(-1074.0, 1024.0),
            2 => self.by_exponent(-60.0, 60.0),
            3 | 4 => self.by_exponent(-8.0, 10.0),
            5 => self.unit(),
            6 => self.unit() * 10.0,
            7 => self.unit() * 800.0,
            8 => {
                let place = PLACES[self.below(PLACES.len())];
                self.near(place)
            }
            9 => {
                let turns = self.by_exponent(0.0, 30.0).round();
                self.near(turns * FRAC_PI_4)
            }
            10 => {
                let halves = self.by_exponent(0.0, 11.0).round();
                self.near(halves * 0.5 * LN_2)
            }
            _ => 1.0 + self.by_exponent(-52.0, -1.0),
        }
    }

    fn arguments_of(&mut self, function: FunctionOfTwo) -> [f64; 2] {
        let (x, y) = (self.argument(), self.argument());
        match (function, self.below(4)) {
            // Results of all sizes, subnormal ones and overflow among them.
            (FunctionOfTwo::Powf, 1..) => [x.abs(), self.unit() * 760.0 / x.abs().ln()],
            (FunctionOfTwo::Powf, _) => [x, y.round()],
            // Ratios of all sizes.
            (_, 0 | 1) => [x, x * self.by_exponent(-60.0, 60.0)],
            _ => [x, y],
        }
    }
}

/// Arguments at which the text of a function changes, or its result does; the last is, relative to its size,
/// the number nearest to a multiple of `pi / 2`.
#[rustfmt::skip]
#[allow(clippy::approx_constant)] // places next to which arguments lie, not constants
const PLACES: &[f64] = &[
    0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 0.1715728752538099, 0.41421356237309503, 0.7071067811865476,
    1.4142135623730951, 2.414213562373095, 0.5493061443340549, 0.34657359027997264, 1.0397207708399179,
    0.7853981633974483, 1.5707963267948966, 3.141592653589793, 3.75, 5.9, 18.7, 19.06, 20.0, 22.0, 26.5,
    27.2, 28.0, 36.04365338911715, 37.0, 40.0, 44.0, 708.3964185322641, 709.782712893384, 710.4758600739439,
    745.1332191019411, 1022.0, 1023.0, 1024.0, 1074.0, 1075.0, 262144.0, 268435456.0, 1e16,
    9007199254740992.0, 5.319372648326541e255, f64::INFINITY,
];

/// The distance of two results in units of the last place of the exact one. Infinite if one of them is NaN,
/// or a zero of the other sign.
fn ulps(found: f64, exact: DoubleDouble) -> f64 {
    let nearest = exact.hi();
    if found.is_nan() || nearest.is_nan() {
        return if found.is_nan() == nearest.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if found == 0.0 && nearest == 0.0 {
        return if found.to_bits() == nearest.to_bits() { 0.0 } else { f64::INFINITY };
    }
    if found.is_infinite() || nearest.is_infinite() {
        // Next to the border of overflow, the largest number and infinity are neighbours.
        let magnitudes = [found.abs(), nearest.abs()];
        let neighbours = magnitudes.iter().all(|&size| size >= f64::MAX) && (found > 0.0) == (nearest > 0.0);
        return if found == nearest {
            0.0
        } else if neighbours {
            1.0
        } else {
            f64::INFINITY
        };
    }
    let exponent = (nearest.abs().max(f64::MIN_POSITIVE).to_bits() >> 52) as i32;
    let scale = 1075 - exponent;
    let scaled = |x: f64| x * f64::from(scale / 2).exp2() * f64::from(scale - scale / 2).exp2();
    let error = ((scaled(found) - scaled(nearest)) - scaled(exact.lo())).abs();
    // A double-double has no bits below those of the smallest number: half of it is its own error.
    (error - 0.5 * scaled(f64::from_bits(1))).max(0.0)
}

/// The largest error, and where.
fn worst(count: usize, mut error_of_next: impl FnMut() -> (f64, Vec<f64>)) -> (f64, Vec<f64>) {
    (0..count)
        .map(|_| error_of_next())
        .fold((0.0, vec![]), |worst, next| if next.0 > worst.0 { next } else { worst })
}

fn worst_of_one(function: Function, count: usize, of: impl Fn(f64) -> f64) -> (f64, Vec<f64>) {
    let mut random = Random(function as u64);
    worst(count, || {
        let x = random.argument();
        let exact = apply(function.name(), None, &[DoubleDouble::from(x)]);
        (ulps(of(x), exact), vec![x])
    })
}

fn worst_of_two(function: FunctionOfTwo, count: usize) -> (f64, Vec<f64>) {
    let mut random = Random(1000 + function as u64);
    worst(count, || {
        let [x, y] = random.arguments_of(function);
        let exact = apply(function.name(), None, &[x, y].map(DoubleDouble::from));
        (ulps(function.of(x, y), exact), vec![x, y])
    })
}

fn count() -> usize {
    std::env::var("PALINODE_ARGUMENTS").map_or(4000, |count| count.parse().expect("a number"))
}

#[test]
fn errors_are_below_one_unit_in_the_last_place() {
    let of_one = Function::ALL.iter().map(|&f| (f.name(), worst_of_one(f, count(), |x| f.of(x))));
    let of_two = FunctionOfTwo::ALL.iter().map(|&f| (f.name(), worst_of_two(f, count())));
    let mut excess = String::new();
    for (name, (ulps, at)) in of_one.chain(of_two) {
        println!("{name:10} {ulps:.3} at {at:?}");
        if ulps > 1.0 {
            excess += &format!("\n{name}: {ulps:.3} ulp at {at:?}");
        }
    }
    assert!(excess.is_empty(), "{excess}");
}

#[test]
fn the_measure_of_errors_catches_planted_ones() {
    let caught = |spoiled: &dyn Fn(f64) -> f64| worst_of_one(Function::Sin, 8000, spoiled).0 > 1.0;
    assert!(!caught(&|x| Function::Sin.of(x)));
    assert!(caught(&|x| Function::Sin.of(x).next_up().next_up()), "two places too large");
    assert!(caught(&|x| if x == 0.0 { x.abs() } else { Function::Sin.of(x) }), "the sign of zero");
    assert!(caught(&|x| if x.is_infinite() { 0.0 } else { Function::Sin.of(x) }), "a number for NaN");
    assert!(caught(&|x| Function::Sin.of(if x > 1e200 { x % core::f64::consts::TAU } else { x })), "angles");
}

/// Whether two values have the same bits, or both are NaN.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn short_cuts_of_single_numbers_have_the_bits_of_the_text() {
    /// Where short cuts begin and end.
    const ENDS: [f64; 3] = [0.0, 0.78, 700.0];
    let mut random = Random(70);
    for &function in Function::ALL {
        for case in 0..count() {
            let x = match case % 4 {
                0 => random.near(ENDS[case / 4 % ENDS.len()]),
                1 => random.unit(),
                2 => random.unit() * 720.0,
                _ => random.argument(),
            };
            if function.is_rare(x) {
                continue;
            }
            let (found, expected) = (function.of(x), function.fast(x));
            assert!(same(found, expected), "{function:?}({x:e}) is {expected:e}, not {found:e}");
        }
    }
    for _ in 0..count() {
        let x = random.argument();
        let (sine, cosine) = palinode_num::elementary::sin_cos(x);
        assert!(same(sine, Function::Sin.of(x)) && same(cosine, Function::Cos.of(x)), "{x:e}");
    }
}

fn instruction_sets() -> impl Iterator<Item = InstructionSet> {
    InstructionSet::ALL.into_iter().filter(|set| set.is_available())
}

#[test]
fn slices_have_the_bits_of_single_values_at_every_place_and_on_every_instruction_set() {
    let mut random = Random(7);
    let x: Vec<f64> = (0..600).map(|_| random.argument()).collect();
    for &function in Function::ALL {
        let expected: Vec<f64> = x.iter().map(|&x| function.of(x)).collect();
        let check = |found: &[f64], at: usize, what: &dyn std::fmt::Debug| {
            for (index, &found) in found.iter().enumerate() {
                let (x, expected) = (x[at + index], expected[at + index]);
                assert!(same(found, expected), "{function:?}({x:e}) is {expected:e}, by {what:?} {found:e}");
            }
        };
        // Every length up to three groups, from every place in a group; then the whole slice.
        let pieces = (0..8).flat_map(|at| (0..26).map(move |len| (at, len))).chain([(0, x.len())]);
        for (at, len) in pieces {
            let mut values = vec![f64::NAN; len];
            function.of_slice(&x[at..at + len], &mut values);
            check(&values, at, &"slice");
            values.copy_from_slice(&x[at..at + len]);
            function.in_place(&mut values);
            check(&values, at, &"slice in place");
        }
        for set in instruction_sets() {
            let mut values = vec![0.0; x.len()];
            function.of_slice_on(set, &x, &mut values);
            check(&values, 0, &set);
        }
    }
}

#[test]
fn slices_of_two_arguments_do_too() {
    let mut random = Random(8);
    for &function in FunctionOfTwo::ALL {
        let (x, y): (Vec<f64>, Vec<f64>) =
            (0..600).map(|_| random.arguments_of(function)).map(|[x, y]| (x, y)).unzip();
        let check = |found: &[f64], x: &dyn Fn(usize) -> f64, y: &dyn Fn(usize) -> f64| {
            for (index, &found) in found.iter().enumerate() {
                let (x, y) = (x(index), y(index));
                let expected = function.of(x, y);
                assert!(same(found, expected), "{function:?}({x:e}, {y:e}) is {expected:e}, not {found:e}");
            }
        };
        for (at, len) in (0..8).flat_map(|at| (0..26).map(move |len| (at, len))).chain([(0, x.len())]) {
            let mut values = vec![f64::NAN; len];
            let (each_x, each_y) = (Operand::Each(&x[at..at + len]), Operand::Each(&y[at..at + len]));
            function.of_slices(each_x, each_y, &mut values);
            check(&values, &|i| x[at + i], &|i| y[at + i]);
            function.of_slices(each_x, Operand::Same(y[at]), &mut values);
            check(&values, &|i| x[at + i], &|_| y[at]);
            function.of_slices(Operand::Same(x[at]), each_y, &mut values);
            check(&values, &|_| x[at], &|i| y[at + i]);
        }
        for set in instruction_sets() {
            let mut values = vec![0.0; x.len()];
            function.of_slices_on(set, Operand::Each(&x), Operand::Each(&y), &mut values);
            check(&values, &|i| x[i], &|i| y[i]);
        }
    }
}

#[test]
#[should_panic(expected = "differ in length")]
fn slices_of_different_lengths_are_refused() {
    Function::Exp.of_slice(&[1.0, 2.0], &mut [0.0]);
}

#[test]
fn the_traits_of_numbers_use_these_functions() {
    let mut random = Random(9);
    for _ in 0..300 {
        let (x, y) = (random.argument(), random.argument());
        for function in Function::ALL {
            assert!(same(apply(function.name(), None, &[x]), function.of(x)), "{function:?}({x:e})");
            let single = apply(function.name(), None, &[x as f32]);
            assert!(same(single.into(), function.of((x as f32).into()) as f32 as f64), "{function:?}({x:e})");
        }
        for function in FunctionOfTwo::ALL {
            assert!(
                same(apply(function.name(), None, &[x, y]), function.of(x, y)),
                "{function:?}({x:e}, {y:e})"
            );
        }
        let (sine, cosine) = sin_cos(x);
        assert!(same(sine, Function::Sin.of(x)) && same(cosine, Function::Cos.of(x)), "sin_cos({x:e})");
        assert_eq!(Scalar::sin_cos(x).0.to_bits(), sine.to_bits());
    }
}

#[test]
fn results_stay_in_range_and_symmetric() {
    use Function::{Acos, Asin, Atan, Cos, Cosh, Erf, Erfc, Exp, Logistic, Sin, Softplus, Tanh};
    let mut random = Random(10);
    let half_turn = core::f64::consts::PI;
    let ranges = [
        (Sin, -1.0, 1.0),
        (Cos, -1.0, 1.0),
        (Tanh, -1.0, 1.0),
        (Erf, -1.0, 1.0),
        (Erfc, 0.0, 2.0),
        (Logistic, 0.0, 1.0),
        (Exp, 0.0, f64::INFINITY),
        (Softplus, 0.0, f64::INFINITY),
        (Cosh, 1.0, f64::INFINITY),
        (Acos, 0.0, half_turn),
        (Asin, -half_turn / 2.0, half_turn / 2.0),
        (Atan, -half_turn / 2.0, half_turn / 2.0),
    ];
    let even = [Cos, Cosh];
    let neither = [
        "exp", "exp2", "exp_m1", "ln", "ln_1p", "log2", "log10", "acos", "acosh", "erfc", "logistic",
        "softplus",
    ];
    for _ in 0..2000 {
        let x = random.argument();
        for (function, low, high) in ranges {
            let value = function.of(x);
            assert!(value.is_nan() || (low..=high).contains(&value), "{function:?}({x:e}) is {value:e}");
        }
        for &function in Function::ALL.iter().filter(|function| !neither.contains(&function.name())) {
            let (value, other) = (function.of(x), function.of(-x));
            let expected = if even.contains(&function) { value } else { -value };
            assert!(same(other, expected), "{function:?}({x:e}) is {value:e}, on the other side {other:e}");
        }
    }
}

#[test]
fn results_that_are_numbers_are_exact() {
    use Function::{Acos, Acosh, Cbrt, Cos, Erf, Erfc, Exp, Exp2, Ln, Log2, Log10, Logistic, Softplus, Tanh};
    for n in -1022..1024 {
        let power = f64::from_bits(((1023 + n) as u64) << 52);
        assert_eq!((Exp2.of(n.into()), Log2.of(power)), (power, n.into()));
    }
    for n in -1074..-1022 {
        let power = f64::from_bits(1 << (n + 1074));
        assert_eq!((Exp2.of(n.into()), Log2.of(power)), (power, n.into()));
    }
    for n in 0..23 {
        assert_eq!(Log10.of(format!("1e{n}").parse().unwrap()), f64::from(n));
    }
    for n in -2000..2000 {
        let x = f64::from(n);
        assert_eq!(Cbrt.of(x * x * x), x);
        assert_eq!(FunctionOfTwo::Powf.of(x, 3.0), x * x * x);
        assert_eq!(FunctionOfTwo::Powf.of(x * x, 0.5), x.abs());
        assert_eq!(FunctionOfTwo::Hypot.of(3.0 * x, 4.0 * x), 5.0 * x.abs());
    }
    assert_eq!(
        (Exp.of(0.0), Cos.of(0.0), Ln.of(1.0), Acosh.of(1.0), Acos.of(1.0)),
        (1.0, 1.0, 0.0, 0.0, 0.0)
    );
    assert_eq!((Logistic.of(0.0), Softplus.of(0.0)), (0.5, core::f64::consts::LN_2));
    assert_eq!((Tanh.of(20.0), Erf.of(6.0), Erfc.of(-6.0), Erfc.of(28.0)), (1.0, 1.0, 2.0, 0.0));
}

#[test]
fn an_angle_next_to_a_multiple_of_a_right_one() {
    // Computed with mpmath: mp.prec = 2000; mp.cos(mpf(6381956970095103) * mpf(2)**797).
    assert_eq!(Function::Cos.of(5.319372648326541e255), -4.687165924254628e-19);
    assert_eq!(Function::Sin.of(5.319372648326541e255), 1.0);
    assert_eq!(Function::Cos.of(f64::MAX), -0.9999876894265599);
}

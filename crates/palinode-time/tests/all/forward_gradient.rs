//! The laws of forward gradients, within bounds that a wrong constant breaks.

use palinode_core::{Accumulator, DualN, Key, Posit8, Posit16, Posit32, Posit64, Scalar, Summand, grad};
use palinode_time::{
    Directions, Draw, ForwardDescent, ForwardGradient, Perturbed, estimate_gradient, estimate_gradient_in,
    forward_gradient, forward_gradient_in,
};

/// A gradient without symmetries.
fn slope_of(i: usize) -> f64 {
    1.0 + (3.7 * i as f64).sin() + if i == 2 { 2.0 } else { 0.0 }
}

/// A linear function, whose gradient is known and whose slopes are exact but for roundings.
fn linear<const K: usize>(p: &Perturbed<'_, '_, K>) -> DualN<f64, K> {
    (0..p.len()).map(|i| p.get(i) * slope_of(i)).sum()
}

/// Uniform numbers of variance 1: their fourth moment is 9/5.
fn uniform_direction(key: Key, lane: usize, i: usize) -> f64 {
    (key.split(lane as u64).uniform(i as u64) - 0.5) * 12f64.sqrt()
}

const FAMILIES: [Directions<'static>; 7] = [
    Directions::Gaussian,
    Directions::Rademacher,
    Directions::Sphere,
    Directions::Coordinate,
    Directions::CoordinateFrame,
    Directions::HadamardFrame,
    Directions::Own(&uniform_direction),
];

/// E |estimate - g|^2 / |g|^2, from the oracles: written down once more.
fn law(family: Directions<'_>, n: f64, k: f64) -> f64 {
    match family {
        Directions::Gaussian => (n + 3.0 - 2.0) / k,
        Directions::Rademacher => (n + 1.0 - 2.0) / k,
        Directions::Own(_) => (n + 1.8 - 2.0) / k,
        Directions::Sphere | Directions::Coordinate => (n - 1.0) / k,
        Directions::CoordinateFrame | Directions::HadamardFrame => n / k - 1.0,
    }
}

/// Mean and standard error.
#[derive(Default)]
struct Mean {
    count: f64,
    mean: f64,
    scatter: f64,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        let apart = x - self.mean;
        self.mean += apart / self.count;
        self.scatter += apart * (x - self.mean);
    }
    fn standard_error(&self) -> f64 {
        (self.scatter / self.count / (self.count - 1.0)).sqrt()
    }
}

/// Checks the laws of all families on `count` draws.
fn check_laws<const K: usize>(n: usize, count: u64) {
    for (number, family) in FAMILIES.into_iter().enumerate() {
        let expected = law(family, n as f64, K as f64);
        check_law::<K>(family, expected, Key::from_seed(100 + number as u64), n, count);
    }
}

/// Checks a family's law, its bias and the standard error that it states.
fn check_law<const K: usize>(family: Directions<'_>, expected: f64, key: Key, n: usize, count: u64) {
    let gradient: Vec<f64> = (0..n).map(slope_of).collect();
    let size: f64 = gradient.iter().map(|g| g * g).sum();
    let name = format!("{family:?}, n = {n}, k = {K}");
    let (mut error, mut stated) = (Mean::default(), Mean::default());
    let mut entries: Vec<Mean> = (0..n).map(|_| Mean::default()).collect();
    let parameters = vec![0.5; n];
    for draw in 0..count {
        let estimate = forward_gradient::<K>(&parameters, family, key.fold(draw), linear).unwrap();
        let mut apart = 0.0;
        for (i, (mean, g)) in entries.iter_mut().zip(&gradient).enumerate() {
            let entry = estimate.entry(i);
            mean.add(entry);
            apart += (entry - g).powi(2);
        }
        error.add(apart / size);
        stated.add(estimate.standard_error().powi(2) / size);
    }
    if expected == 0.0 {
        assert!(error.mean < 1e-25 && stated.mean == 0.0, "{name}: {} is not 0", error.mean);
        return;
    }
    let bound = 5.0 * error.standard_error();
    assert!((error.mean - expected).abs() < bound, "{name}: {} +- {bound}, not {expected}", error.mean);
    // The test has power: the laws of the families are 1/k or more apart.
    assert!(bound < 0.45 / K as f64, "{name}: {bound}; take more draws");
    let bound = 5.0 * stated.standard_error() + 1e-12;
    assert!(
        (stated.mean - expected).abs() < bound,
        "{name}: stated {} +- {bound}, not {expected}",
        stated.mean
    );
    // No entry is biased: each mean is within its own standard error of the truth, and all of them
    // together have the law divided by their number.
    for (i, (entry, g)) in entries.iter().zip(&gradient).enumerate() {
        let (apart, bound) = ((entry.mean - g).abs(), 4.5 * entry.standard_error());
        assert!(apart < bound, "{name}: entry {i} is off by {apart} > {bound}");
        assert!(bound < 0.1 * size.sqrt(), "{name}: {bound}; take more draws");
    }
    let bias: f64 = entries.iter().zip(&gradient).map(|(m, g)| (m.mean - g).powi(2)).sum::<f64>() / size;
    // A mean of n - 1 squares or so, whose standard deviation is that of chi-squared.
    let bound = 1.0 + 5.0 * (2.0 / (n as f64 - 1.0)).sqrt();
    assert!(bias < bound * expected / count as f64, "{name}: bias^2 {bias}");
}

/// Your own directions may depend on each other: axes that are all different, for example. The standard error
/// is then right, too.
#[test]
fn own_directions_that_depend_on_each_other_have_the_right_standard_error() {
    const N: usize = 6;
    /// Axes next to each other, from a random one on, with random signs.
    fn axes(key: Key, lane: usize, i: usize) -> f64 {
        let first = key.below(N as u64, 0) as usize;
        if (first + lane) % N == i { (N as f64).sqrt() * key.rademacher(1000 + lane as u64) } else { 0.0 }
    }
    // The law of frames, where that of independent axes would be 5 / 4.
    check_law::<4>(Directions::Own(&axes), 6.0 / 4.0 - 1.0, Key::from_seed(8), N, 12_000);
}

/// Half an ulp of 1, `rounding`, is what an operation may lose, relatively.
fn estimates_and_descents<S: Summand>(rounding: f64) {
    const N: usize = 10;
    let f = |p: &Perturbed<'_, '_, 4, S>| (0..p.len()).map(|i| p.get(i) * slope_of(i)).sum();
    let parameters = vec![S::from_f64(0.5); N];
    let key = Key::from_seed(3);
    let size = (0..N).map(|i| slope_of(i).powi(2)).sum::<f64>().sqrt();
    for family in [Directions::Sphere, Directions::Rademacher, Directions::CoordinateFrame] {
        let found = estimate_gradient_in::<4, S>(&parameters, family, key, 400, f).unwrap();
        // A slope is a sum of N products of rounded factors: N + 2 roundings of terms that are together at
        // most |v| |g| = sqrt(N) |g|. An entry is the mean of four such, times entries of v, whose mean
        // square is 1: two products and a sum of four more. The mean is rounded.
        let slack = (N as f64 + 2.0 + 2.0 + 4.0) * rounding * (N as f64).sqrt() * size;
        for (i, (g, error)) in found.gradient.iter().zip(&found.standard_error).enumerate() {
            let apart = (g.peek().unwrap() - slope_of(i)).abs();
            let bias = found.rounding_bias * slope_of(i);
            assert!(apart < 4.5 * error + slack + bias, "{i}: {apart} {error} {slack} {bias}");
        }
    }
    let mut p = vec![S::zero(); 6];
    let loss = |p: &Perturbed<'_, '_, 2, S>, _| {
        (0..p.len()).map(|i| p.get(i) - 1.0).map(|x| x * x).sum::<DualN<S, 2>>()
    };
    let rate = 0.05;
    let descent = ForwardDescent::new(key).rate(rate).steps(600);
    let last = descent.watch_in::<2, S>(&mut p, loss, |_, _| true).unwrap();
    // It stalls where updates, the rate times a slope, are lost beside parameters next to 1. The mean square
    // of a slope is four times the loss; the slopes of a stall may be four times smaller than that. (A step
    // leaves 0.84 of the loss on average: 600 leave 2e-45 of it, less than 64 bits stall at.)
    let stalled = (4.0 * rounding / rate).powi(2) / 4.0;
    assert!(last.value.peek().unwrap() < stalled, "{:?} {stalled}", last.value);
}

#[test]
fn estimates_and_descents_run_on_other_numbers() {
    estimates_and_descents::<f32>(2f64.powi(-24));
    estimates_and_descents::<Posit16>(2f64.powi(-12));
    estimates_and_descents::<Posit32>(2f64.powi(-28));
    estimates_and_descents::<Posit64>(2f64.powi(-60));
}

/// What is said about rounded directions is so: the second moments of their entries are 1 but for it, and in
/// eight bits one can see that they are not 1.
#[test]
fn rounded_directions_are_as_biased_as_they_say() {
    fn second_moment<S: Scalar>(family: Directions<'_>, n: usize) -> (f64, f64) {
        let mut squares = Mean::default();
        for round in 0..60_000 {
            let draw: Draw<1> = family.draw(Key::from_seed(8).fold(round), n).unwrap();
            // Not the mean over entries: on a sphere that is 1 whatever happens.
            squares.add(S::from_f64(draw.at(round as usize % n)[0]).peek().unwrap().powi(2));
        }
        (squares.mean, squares.standard_error())
    }
    fn of<S: Scalar>() {
        for family in FAMILIES {
            for n in [7, 8] {
                let bias = family.rounding_bias::<S>(n);
                let (mean, error) = second_moment::<S>(family, n);
                assert!((mean - 1.0).abs() <= bias + 4.5 * error, "{family:?} {n}: {mean} {error} {bias}");
            }
        }
    }
    of::<Posit8>();
    of::<Posit16>();
    of::<f32>();
    of::<f64>();
    // Bounds that are not empty: signs are exact, the root of 7 is not, and that is all there is to see of
    // it.
    assert_eq!(second_moment::<Posit8>(Directions::Rademacher, 7), (1.0, 0.0));
    assert_eq!(Directions::HadamardFrame.rounding_bias::<Posit8>(8), 0.0);
    assert!(Directions::Coordinate.rounding_bias::<Posit8>(7) > 0.08);
    for family in [Directions::Gaussian, Directions::Sphere, Directions::HadamardFrame] {
        assert_eq!(family.rounding_bias::<Posit8>(7), 3.0 / 16.0);
        assert_eq!(family.rounding_bias::<f64>(7), 1.5 * f64::EPSILON);
    }
}

/// All axes of 7 parameters, in eight bits: the estimate is the gradient but for the square of a rounded
/// root, and says so.
#[test]
fn an_estimate_does_not_call_itself_unbiased_if_it_is_not() {
    let p = [Posit8::ONE; 7];
    let of = |family| {
        let loss = |p: &Perturbed<'_, '_, 7, Posit8>| (0..7).map(|i| p.get(i)).sum();
        forward_gradient_in::<7, Posit8>(&p, family, Key::from_seed(2), loss).unwrap()
    };
    let axes = of(Directions::CoordinateFrame);
    assert_eq!(axes.rounding_bias(), 2.75 * 2.75 / 7.0 - 1.0);
    let text = axes.to_string();
    assert!(!text.contains("unbiased"), "{text}");
    assert!(text.contains("directions are rounded, which biases an entry by at most 8.0e-2 of it"), "{text}");
    let text = of(Directions::Rademacher).to_string();
    assert!(text.contains("; unbiased estimate") && !text.contains("rounded"), "{text}");
    let in_f64 = forward_gradient::<2>(&[1.0; 7], Directions::Gaussian, Key::from_seed(2), linear).unwrap();
    assert!(in_f64.to_string().contains("; unbiased estimate") && !in_f64.to_string().contains("rounded"));
}

/// The mean over all signs is the gradient, to the bit, where the arithmetic is exact.
#[test]
fn signs_are_unbiased_in_narrow_numbers() {
    let p = [1.0, 2.0, -3.0].map(Posit16::from_f64);
    let mut means = [0.0; 3];
    for pattern in 0..8u32 {
        let own = move |_: Key, _: usize, i: usize| if pattern >> i & 1 == 1 { -1.0 } else { 1.0 };
        let loss = |p: &Perturbed<'_, '_, 1, Posit16>| p.get(0) * p.get(1) - p.get(2) * p.get(2);
        let one =
            forward_gradient_in::<1, Posit16>(&p, Directions::Own(&own), Key::from_seed(1), loss).unwrap();
        for (i, mean) in means.iter_mut().enumerate() {
            *mean += one.entry(i).to_f64() / 8.0;
        }
    }
    assert_eq!(means, [2.0, 1.0, 6.0]);
}

// The laws are further apart the fewer parameters there are, so that few draws tell them from each other.

#[test]
fn one_direction_follows_the_laws() {
    check_laws::<1>(6, 36_000);
}

#[test]
fn as_many_directions_as_parameters_follow_the_laws() {
    check_laws::<6>(6, 12_000);
}

#[test]
fn laws_for_a_power_of_two_and_a_prime() {
    check_laws::<4>(8, 12_000);
    check_laws::<4>(7, 12_000);
}

#[test]
#[ignore = "half a minute in release builds"]
fn laws_in_twenty_dimensions() {
    check_laws::<1>(20, 200_000);
    check_laws::<4>(20, 60_000);
    check_laws::<20>(20, 24_000);
    check_laws::<4>(16, 50_000);
}

/// Frames are orthogonal for every number of parameters.
#[test]
fn frames_are_orthogonal() {
    for n in 6..70 {
        for family in [Directions::CoordinateFrame, Directions::HadamardFrame] {
            let draw: Draw<6> = family.draw(Key::from_seed(n as u64), n).unwrap();
            for (a, b) in (0..6).flat_map(|a| (0..6).map(move |b| (a, b))) {
                let product: f64 = (0..n).map(|i| draw.at(i)).map(|v| v[a] * v[b] / n as f64).sum();
                assert!((product - f64::from(a == b)).abs() < 1e-13, "{family:?} {n} {a} {b}: {product}");
            }
        }
    }
}

/// Entries do not depend on what was read before: the block at hand is only a shortcut.
#[test]
fn entries_are_the_same_in_any_order() {
    for family in FAMILIES {
        let draw: Draw<3> = family.draw(Key::from_seed(4), 1000).unwrap();
        let forwards: Vec<[f64; 3]> = (0..1000).map(|i| draw.at(i)).collect();
        let order = Key::from_seed(5);
        for read in 0..3000 {
            let i = order.below(1000, read) as usize;
            assert_eq!(draw.at(i), forwards[i], "{family:?} {i}");
        }
        let other: Draw<3> = family.draw(Key::from_seed(6), 1000).unwrap();
        assert!((0..1000).any(|i| other.at(i) != forwards[i]), "{family:?}: another key, another draw");
    }
}

/// Any program: the frame with as many directions as parameters gives the gradient of the tape.
#[test]
fn a_full_frame_is_the_gradient() {
    fn f<S: palinode_core::Real>(x: &[S]) -> S {
        let mut state = x[0];
        let mut rounds = 0;
        while state < 50.0 && rounds < 100 {
            state = state * x[1].abs() + x[2].sin() * x[3] + 0.7;
            rounds += 1;
        }
        state.ln() * x[4]
    }
    let x = [0.3, 1.4, 0.2, -0.5, 2.0];
    let expected = grad(f, &x).unwrap();
    for family in [Directions::CoordinateFrame, Directions::HadamardFrame] {
        let estimate = forward_gradient::<5>(&x, family, Key::from_seed(2), |p| {
            f(&core::array::from_fn::<_, 5, _>(|i| p.get(i)))
        });
        for (found, expected) in estimate.unwrap().gradient().iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-10 * expected.abs().max(1.0), "{found} {expected}");
        }
    }
}

fn one_draw<'a>(key: u64) -> ForwardGradient<'a, 2> {
    forward_gradient(&[0.5; 20], Directions::Rademacher, Key::from_seed(key), linear).unwrap()
}

#[test]
fn a_guess_leaves_only_the_error_of_what_it_misses() {
    let gradient: Vec<f64> = (0..20).map(slope_of).collect();
    let exact = one_draw(1).with_guess(&gradient, Accumulator::Exact).unwrap();
    assert!(exact.standard_error() < 1e-14);
    assert!(exact.gradient().iter().zip(&gradient).all(|(a, b)| (a - b).abs() < 1e-14));

    // Half the gradient: a quarter of the squared error, and no bias.
    let half: Vec<f64> = gradient.iter().map(|g| g / 2.0).collect();
    let size: f64 = gradient.iter().map(|g| g * g).sum();
    let (mut error, mut mean) = (Mean::default(), vec![0.0; 20]);
    let count = 40_000;
    for key in 0..count {
        let estimate = one_draw(key).with_guess(&half, Accumulator::Naive).unwrap();
        let entries = estimate.gradient();
        error.add(entries.iter().zip(&gradient).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / size);
        mean.iter_mut().zip(entries).for_each(|(mean, entry)| *mean += entry / count as f64);
    }
    let expected = 19.0 / 2.0 / 4.0;
    assert!((error.mean - expected).abs() < 5.0 * error.standard_error(), "{}", error.mean);
    assert!(error.standard_error() < 0.02 * expected);
    let bias: f64 = mean.iter().zip(&gradient).map(|(m, g)| (m - g).powi(2)).sum::<f64>() / size;
    assert!(bias < 4.0 * expected / count as f64);
}

/// Value and slopes of a layer's inner product are the nearest numbers.
#[test]
fn inner_products_are_exact_on_request() {
    let key = Key::from_seed(9);
    let parameters: Vec<f64> =
        (0..300).map(|i| key.gaussian(i) * 10f64.powi((key.below(60, i) as i32) - 30)).collect();
    let x: Vec<DualN<f64, 2>> =
        (0..200).map(|i| DualN::new(key.split(1).gaussian(i), [key.split(2).gaussian(i), 0.0])).collect();
    let draw: Draw<2> = Directions::Gaussian.draw(key, 300).unwrap();
    let start = 50;
    // Products come one by one, so a naive sum adds them one by one.
    let dot = |how: Accumulator, a: &[f64], b: &[f64]| match how {
        Accumulator::Naive => a.iter().zip(b).map(|(a, b)| a * b).sum(),
        _ => how.dot(a, b),
    };
    for how in [Accumulator::Naive, Accumulator::Compensated, Accumulator::Exact] {
        let found =
            forward_gradient::<2>(&parameters, Directions::Gaussian, key, |p| p.dot(start, &x, how)).unwrap();
        let values: Vec<f64> = x.iter().map(|x| x.value).collect();
        let here = &parameters[start..start + 200];
        let value: f64 = dot(how, here, &values);
        assert_eq!(found.value().to_bits(), value.to_bits(), "{how:?}");
        for lane in 0..2 {
            // v . x + p . dx, as one list of products.
            let mut a: Vec<f64> = Vec::new();
            let mut b: Vec<f64> = Vec::new();
            for i in 0..200 {
                a.extend([draw.at(start + i)[lane], x[i].tangents[lane]]);
                b.extend([x[i].value, here[i]]);
            }
            assert_eq!(found.slopes()[lane].to_bits(), dot(how, &a, &b).to_bits(), "{how:?}");
        }
    }
}

#[test]
fn means_have_a_standard_error_for_every_entry() {
    let estimate =
        estimate_gradient::<4>(&[0.5; 10], Directions::Sphere, Key::from_seed(3), 2000, linear).unwrap();
    assert_eq!((estimate.rounds, estimate.directions), (2000, 8000));
    let size: f64 = (0..10).map(|i| slope_of(i).powi(2)).sum();
    for i in 0..10 {
        assert!((estimate.gradient[i] - slope_of(i)).abs() < 4.5 * estimate.standard_error[i]);
    }
    // All together they are what the law says.
    let squared: f64 = estimate.standard_error.iter().map(|e| e * e).sum();
    let expected = 9.0 / 8000.0 * size;
    assert!((squared / expected - 1.0).abs() < 0.15, "{squared} {expected}");
}

#[test]
fn mistakes_are_named() {
    let key = Key::from_seed(1);
    let frame = forward_gradient::<4>(&[1.0; 3], Directions::HadamardFrame, key, linear).unwrap_err();
    assert_eq!(frame.code(), "PAL0605");
    assert_eq!(
        frame.to_string(),
        "PAL0605: 4 orthonormal directions need at least as many parameters, and there are 3; take fewer directions, or \
         independent ones (Directions::Rademacher)"
    );
    let rounds = estimate_gradient::<1>(&[1.0], Directions::Gaussian, key, 1, linear).unwrap_err();
    let of = |p: &[f64], f: fn(&Perturbed<'_, '_, 1>) -> DualN<f64, 1>| {
        forward_gradient::<1>(p, Directions::Gaussian, key, f).unwrap_err()
    };
    let (input, output) = (of(&[1.0, f64::NAN], linear), of(&[-1.0], |p| p.get(0).ln()));
    let slope = of(&[0.0], |p| p.get(0).sqrt());
    let guess = one_draw(1).with_guess(&[1.0; 3], Accumulator::Exact).unwrap_err();
    let codes = [rounds, input, output, slope, guess].map(|error| error.code());
    assert_eq!(codes, ["PAL0607", "PAL0102", "PAL0103", "PAL0104", "PAL0101"]);
    for broken in [f64::NAN, f64::INFINITY] {
        let mut guess = [0.5; 20];
        guess[7] = broken;
        let refused = one_draw(1).with_guess(&guess, Accumulator::Exact).unwrap_err();
        assert_eq!(refused.code(), "PAL0102");
        assert!(refused.to_string().contains("guess 7 is"), "{refused}");
    }
}

#[test]
fn directions_that_reach_nothing_claim_nothing() {
    let nothing = |_: Key, _: usize, _: usize| 0.0;
    let key = Key::from_seed(1);
    let one = forward_gradient::<2>(&[1.0; 5], Directions::Own(&nothing), key, linear).unwrap();
    assert_eq!((one.standard_error(), one.gradient()), (f64::INFINITY, vec![0.0; 5]));
    assert!(one.to_string().contains("standard error inf"), "{one}");
    let mean = estimate_gradient::<2>(&[1.0; 5], Directions::Own(&nothing), key, 10, linear).unwrap();
    assert_eq!(mean.standard_error, [f64::INFINITY; 5]);
    // Axes that were not drawn.
    let few = estimate_gradient::<1>(&[1.0; 50], Directions::Coordinate, key, 8, linear).unwrap();
    for (entry, error) in few.gradient.iter().zip(&few.standard_error) {
        assert_eq!(*entry == 0.0, *error == f64::INFINITY);
    }
    assert!(few.standard_error.iter().filter(|error| error.is_finite()).count() >= 3);
    // No parameters, no error.
    let none = forward_gradient::<1>(&[], Directions::Own(&nothing), key, |_| DualN::from_f64(1.0)).unwrap();
    assert_eq!(none.standard_error(), 0.0);
}

#[test]
fn estimates_say_what_they_are() {
    let text = one_draw(1).to_string();
    let start =
        "; unbiased estimate of the gradient by 20 parameters from 2 Rademacher directions, standard error ";
    assert!(text.starts_with("value ") && text.contains(start), "{text}");
}

fn rosenbrock<const K: usize>(p: &Perturbed<'_, '_, K>, _: u64) -> DualN<f64, K> {
    let (x, y) = (p.get(0), p.get(1));
    (1.0 - x).powi(2) + 100.0 * (y - x * x).powi(2)
}

#[test]
fn descent_arrives_and_can_be_taken_up_again() {
    let descent = ForwardDescent::new(Key::from_seed(6)).rate(5e-4).steps(30_000);
    let mut p = [-1.0, 1.0];
    let last = descent.run::<1>(&mut p, rosenbrock).unwrap();
    assert!(last.value < 1e-3 && (p[0] - 1.0).abs() < 0.05, "{last:?} {p:?}");

    // In two parts: the same bits.
    let mut again = [-1.0, 1.0];
    descent.steps(1000).run::<1>(&mut again, rosenbrock).unwrap();
    descent.starting_at(1000).steps(29_000).run::<1>(&mut again, rosenbrock).unwrap();
    assert_eq!(again.map(f64::to_bits), p.map(f64::to_bits));

    // Stopped by its watcher, with a decaying rate.
    let mut seen = 0;
    let stopped = descent
        .decay(1e-3)
        .watch::<1>(&mut [-1.0, 1.0], rosenbrock, |progress, _| {
            seen += 1;
            progress.step < 9
        })
        .unwrap();
    assert_eq!((seen, stopped.step), (10, 9));
}

/// The draws are those that the key documents, so they can be made elsewhere too.
#[test]
fn entries_are_draws_of_the_key() {
    let key = Key::from_seed(8);
    let signs: Draw<7> = Directions::Rademacher.draw(key, 300).unwrap();
    let normals: Draw<7> = Directions::Gaussian.draw(key, 300).unwrap();
    for i in 0..300 {
        for lane in 0..7 {
            let counter = (7 * i + lane) as u64;
            assert_eq!(signs.at(i)[lane], key.split(0).rademacher(counter));
            assert_eq!(normals.at(i)[lane], key.split(0).gaussian(counter));
        }
    }
}

/// In posits an exact inner product is a quire: value and slopes are rounded once, whatever cancels.
#[test]
fn inner_products_of_posits_are_exact_by_quires() {
    let number = |x: f64| Posit32::from_f64(x);
    // 1 is lost beside 2^60 in a posit32, not in its quire.
    let parameters = [2f64.powi(60), 1.0, -(2f64.powi(60)), 0.5].map(number);
    let ones = [DualN::lift(number(1.0)); 4];
    let key = Key::from_seed(4);
    let run = |how| {
        forward_gradient_in::<2, Posit32>(&parameters, Directions::Rademacher, key, |p| p.dot(0, &ones, how))
            .unwrap()
    };
    assert_eq!(run(Accumulator::Naive).value(), number(0.5));
    let exact = run(Accumulator::Exact);
    assert_eq!(exact.value(), number(1.5));
    let draw: Draw<2> = Directions::Rademacher.draw(key, 4).unwrap();
    for lane in 0..2 {
        let slope: f64 = (0..4).map(|i| draw.at(i)[lane]).sum();
        assert_eq!(exact.slopes()[lane], number(slope));
    }
    // And with as many directions as parameters, the gradient itself.
    let p = [2.0, 5.0].map(number);
    let estimate =
        forward_gradient_in::<2, Posit32>(&p, Directions::HadamardFrame, key, |p| p.get(0) * p.get(1))
            .unwrap();
    assert_eq!(estimate.gradient(), [5.0, 2.0].map(number));
}

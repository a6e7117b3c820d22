//! Nanoseconds per value of the elementary functions, beside the standard library's (glibc on Linux).
//!
//! Three figures for each: `slice`, values of 1000 numbers in one call, over and over; `one`, one call for
//! each of them; `chain`, each argument depending on the value before. The standard library has no slices:
//! its first figure is that of `one`.

use palinode_num::elementary::{Function, FunctionOfTwo, Operand};
use std::hint::black_box;
use std::time::Instant;

const COUNT: usize = 1000;

/// The best of many, in nanoseconds per value.
fn best(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed().as_millis() < 60 {
        let start = Instant::now();
        for _ in 0..4 {
            run();
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    best * 1e9 / (4 * COUNT) as f64
}

fn one(x: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    let mut values = vec![0.0; COUNT];
    best(|| {
        for (value, &x) in values.iter_mut().zip(black_box(x)) {
            *value = f(x);
        }
        black_box(&mut values);
    })
}

fn chain(x: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    best(|| {
        let mut last = 0.0;
        for &x in black_box(x) {
            last = f(x + last * 1e-30);
        }
        black_box(last);
    })
}

fn slice(x: &[f64], function: Function) -> f64 {
    let mut values = vec![0.0; COUNT];
    best(|| {
        function.of_slice(black_box(x), &mut values);
        black_box(&mut values);
    })
}

fn spread(low: f64, high: f64) -> Vec<f64> {
    (0..COUNT).map(|i| low + (high - low) * ((i * 617) % COUNT) as f64 / COUNT as f64).collect()
}

fn main() {
    let only = std::env::args().nth(1);
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|o| o == name));
    println!("{:10} {:>8} {:>8} {:>8} | {:>8} {:>8}", "", "slice", "one", "chain", "std one", "std chain");
    macro_rules! functions {
        ($($Name:ident $name:ident $standard:expr, $low:literal $high:literal;)*) => {
            $(if wanted(stringify!($name)) {
                let x = spread($low, $high);
                let ours = palinode_num::elementary::$name;
                let standard: fn(f64) -> f64 = $standard;
                println!(
                    "{:10} {:8.2} {:8.2} {:8.2} | {:8.2} {:8.2}",
                    stringify!($name), slice(&x, Function::$Name), one(&x, ours), chain(&x, ours),
                    one(&x, standard), chain(&x, standard),
                );
            })*
        };
    }
    functions! {
        Exp exp f64::exp, -10.0 10.0;
        Exp2 exp2 f64::exp2, -10.0 10.0;
        ExpM1 exp_m1 f64::exp_m1, -3.0 3.0;
        Ln ln f64::ln, 0.001 20.0;
        Ln1p ln_1p f64::ln_1p, -0.9 5.0;
        Log2 log2 f64::log2, 0.001 20.0;
        Log10 log10 f64::log10, 0.001 20.0;
        Sin sin f64::sin, -10.0 10.0;
        Cos cos f64::cos, -10.0 10.0;
        Tan tan f64::tan, -10.0 10.0;
        Asin asin f64::asin, -1.0 1.0;
        Acos acos f64::acos, -1.0 1.0;
        Atan atan f64::atan, -5.0 5.0;
        Sinh sinh f64::sinh, -5.0 5.0;
        Cosh cosh f64::cosh, -5.0 5.0;
        Tanh tanh f64::tanh, -3.0 3.0;
        Asinh asinh libm::asinh, -5.0 5.0;
        Acosh acosh libm::acosh, 1.0 9.0;
        Atanh atanh libm::atanh, -1.0 1.0;
        Cbrt cbrt f64::cbrt, -10.0 10.0;
        Erf erf libm::erf, -4.0 4.0;
        Erfc erfc libm::erfc, -4.0 8.0;
        Logistic logistic |x| 1.0 / (1.0 + (-x).exp()), -10.0 10.0;
        Softplus softplus |x| x.max(0.0) + (-x.abs()).exp().ln_1p(), -10.0 10.0;
    }
    let y = spread(-7.0, 7.0);
    macro_rules! functions_of_two {
        ($($Name:ident $name:ident $standard:path, $low:literal $high:literal;)*) => {
            $(if wanted(stringify!($name)) {
                let x = spread($low, $high);
                let ours = palinode_num::elementary::$name;
                let mut values = vec![0.0; COUNT];
                let slices = best(|| {
                    FunctionOfTwo::$Name.of_slices(Operand::Each(black_box(&x)), Operand::Each(&y), &mut values);
                    black_box(&mut values);
                });
                let of_two = |f: fn(f64, f64) -> f64| {
                    let mut values = vec![0.0; COUNT];
                    best(|| {
                        for ((value, &x), &y) in values.iter_mut().zip(black_box(&x)).zip(&y) {
                            *value = f(x, y);
                        }
                        black_box(&mut values);
                    })
                };
                let chain_of_two = |f: fn(f64, f64) -> f64| {
                    best(|| {
                        let mut last = 0.0;
                        for (&x, &y) in black_box(&x).iter().zip(&y) {
                            last = f(x + last * 1e-30, y);
                        }
                        black_box(last);
                    })
                };
                println!(
                    "{:10} {:8.2} {:8.2} {:8.2} | {:8.2} {:8.2}",
                    stringify!($name), slices, of_two(ours), chain_of_two(ours),
                    of_two($standard), chain_of_two($standard),
                );
            })*
        };
    }
    functions_of_two! {
        Powf powf f64::powf, 0.01 10.0;
        Hypot hypot f64::hypot, -9.0 9.0;
        Atan2 atan2 f64::atan2, -9.0 9.0;
    }
}

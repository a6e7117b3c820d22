//! A first gradient: how far does a ball fly, and what moves the landing point?
//!
//! `cargo run --release --example first_gradient`

use palinode::prelude::*;
use palinode::{Error, Tape, decision};

/// The distance at which a ball with quadratic drag comes down. State is overwritten at every step, and
/// nobody knows beforehand how many steps there are. Ordinary generic code: it runs on `f64` and on every
/// derivative number.
fn distance<S: Real>(speed: S, angle: S, drag: S) -> S {
    let dt = 0.001;
    let (mut x, mut y) = (S::zero(), S::from_f64(1.0));
    let (mut vx, mut vy) = (speed * angle.cos(), speed * angle.sin());
    loop {
        let v = vx.hypot(vy);
        vx -= drag * v * vx * dt;
        vy -= (drag * v * vy + 9.81) * dt;
        x += vx * dt;
        y += vy * dt;
        if y < S::zero() {
            return x - y / vy * vx; // back along the last step to the ground
        }
    }
}

fn main() -> Result<(), Error> {
    let point = [20.0, 0.7, 0.01];
    let mut tape = Tape::new();
    let (answer, seen) = decision::watch(|| tape.value_and_grad(|p| distance(p[0], p[1], p[2]), &point));
    let (value, gradient) = answer?;

    println!("distance = {value:.6} m\n");
    println!("  with respect to       gradient   central difference");
    for (i, name) in ["speed (m/s)", "angle (rad)", "drag (1/m)"].iter().enumerate() {
        println!("  {name:<14} {:>15.6} {:>20.6}", gradient[i], central_difference(&point, i));
    }

    println!("\ndecisions by active values: {} comparisons", seen.comparisons);
    println!(
        "  the closest had a margin of {:.1e} m: for larger changes of height the number",
        seen.smallest_margin
    );
    println!("  of steps differs and the gradient is that of another path");
    println!("\ntape: {} bytes, kept for the next gradient", tape.heap_bytes());

    let mut tiny = Tape::traced();
    let record = tiny.record(&[2.0, 0.5], |x| (x[0] * x[1]).sin() + x[0])?;
    println!("\nsin(x * y) + x at (2, 0.5), every operation:\n\n{}", record.table());
    Ok(())
}

fn central_difference(point: &[f64; 3], i: usize) -> f64 {
    let step = 1e-6 * point[i];
    let at = |x: f64| {
        let mut p = *point;
        p[i] = x;
        distance(p[0], p[1], p[2])
    };
    (at(point[i] + step) - at(point[i] - step)) / (2.0 * step)
}

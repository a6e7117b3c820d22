//! Value and gradient of a network under budgets from the smallest to the one that keeps everything: peak
//! bytes against time.
//!
//! `cargo run --release -p benches --example budget [layers width batch steps]`

use std::time::Instant;

use palinode_core::{Budget, Key};
use palinode_ir::interp::{Code, Datum, Limits, Tensor};
use palinode_ir::plan::{FitError, fit_gradient};
use palinode_ir::transform::Storage;
use palinode_ir::{Program, pal};

/// Numbers in (-1, 1), the same each time.
fn numbers(count: usize, scale: f64) -> Vec<f64> {
    let key = Key::from_seed(12_345);
    (0..count as u64).map(|at| scale * (key.uniform(at) * 2.0 - 1.0)).collect()
}

fn array(shape: &[usize], scale: f64) -> Datum<f64> {
    let data = numbers(shape.iter().product(), scale);
    Datum::Real(Tensor { shape: shape.to_vec(), data })
}

/// A perceptron of equal layers.
fn mlp(layers: usize, width: usize, batch: usize) -> (String, Vec<Datum<f64>>) {
    let mut source = format!("input x: [{batch}, {width}]\n");
    let mut inputs = vec![array(&[batch, width], 1.0)];
    for layer in 0..layers {
        source += &format!("param w{layer}: [{width}, {width}]\n");
        inputs.push(array(&[width, width], 1.5 / (width as f64).sqrt()));
    }
    source += "var h = x\n";
    for layer in 0..layers {
        source += &format!("h = tanh(h @ w{layer})\n");
    }
    source += "loss y = sum(h * h)\n";
    (source, inputs)
}

/// A recurrent network of one layer.
fn rnn(width: usize, steps: usize) -> (String, Vec<Datum<f64>>) {
    let source = format!(
        "param w: [{width}, {width}]\nparam u: [{width}]\ninput x: [{steps}]\nvar h = zeros({width})\nvar s = 0\n\
         for t in 0..{steps} {{\n  h = tanh(w @ h + x[t] * u)\n  s += sum(h * h)\n}}\nloss s\n"
    );
    let scale = 1.0 / (width as f64).sqrt();
    (source, vec![array(&[width, width], scale), array(&[width], 1.0), array(&[steps], 1.0)])
}

fn sweep(name: &str, program: &Program, wrt: &[usize], inputs: &[Datum<f64>]) {
    let fitted = |budget: Budget| fit_gradient(program, wrt, inputs, 8, &Storage::default(), budget);
    let smallest = match fitted(Budget::from(1)) {
        Err(FitError::TooSmall { smallest, .. }) => smallest,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a byte is not enough"),
    };
    let all = fitted(Budget::UNLIMITED).expect("fits").store_all;
    println!("{name}: smallest {smallest}, everything {all}");
    println!("  {:>12}  {:>12}  {:>8}  {:>8}  {:>9}  choice", "budget", "peak", "work", "time", "repeated");
    let (low, high) = (smallest.bytes() as f64, all.bytes() as f64);
    let mut reference: Option<(f64, Vec<u64>)> = None;
    for part in (0..=8).rev() {
        let budget = Budget::from((low + (high - low) * f64::from(part) / 8.0).ceil() as usize);
        let plan = fitted(budget).expect("fits");
        let code = Code::new(&plan.program);
        let mut best = f64::INFINITY;
        let mut bits = Vec::new();
        // The run is held to the budget, too.
        let limits = Limits { budget, ..Limits::default() };
        for _ in 0..3 {
            let start = Instant::now();
            let (found, stats) = code.run_with_stats(inputs, &limits).expect("runs within its budget");
            best = best.min(start.elapsed().as_secs_f64());
            assert_eq!(stats.heap_bytes as u64, plan.prediction.heap, "the plan is exact");
            bits = found.iter().filter_map(Datum::as_vector).flatten().map(|x| x.to_bits()).collect();
        }
        let (time, expected) = reference.get_or_insert_with(|| (best, bits.clone()));
        assert_eq!(&bits, expected, "the gradient depends on the budget");
        println!(
            "  {:>12}  {:>12}  {:>8.2}  {:>8.2}  {:>9}  {:?}",
            budget.bytes(),
            plan.prediction.heap,
            plan.overhead,
            best / *time,
            plan.repeated,
            plan.recompute,
        );
    }
}

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let [layers, width, batch, steps] = given[..].try_into().unwrap_or([8, 256, 64, 1000]);
    let (source, inputs) = mlp(layers, width, batch);
    let model = pal::compile(&source).expect("compiles");
    let wrt: Vec<usize> = (1..inputs.len()).collect();
    sweep(&format!("mlp, {layers} layers of {width}, batch {batch}"), &model.program, &wrt, &inputs);
    let (source, inputs) = rnn(width / 4, steps);
    let model = pal::compile(&source).expect("compiles");
    sweep(&format!("rnn, width {}, {steps} steps", width / 4), &model.program, &[0, 1], &inputs);
}

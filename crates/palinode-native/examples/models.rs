//! Times of programs by the interpreter and by machine code, of one call with infinities trapped:
//!
//! ```sh
//! cargo run --release -p palinode-native --example models -- benches/models/*.pal
//! ```
//!
//! The gradient is that with respect to all params; `PALINODE_FORM=1` prints the loop forms.

use std::hint::black_box;
use std::time::{Duration, Instant};

use palinode_ir::interp::{Code, Datum, Limits, Tensor};
use palinode_ir::pal::{self, Role};
use palinode_ir::{Program, loops, passes, transform};
use palinode_native::Native;

/// The shortest time of a call: of at least three, and of half a second.
fn best(mut call: impl FnMut()) -> f64 {
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    let mut calls = 0;
    while calls < 3 || begin.elapsed() < Duration::from_millis(500) {
        let start = Instant::now();
        call();
        best = best.min(start.elapsed().as_secs_f64());
        calls += 1;
    }
    best * 1e3
}

/// The inputs that a model's defaults are.
fn defaults(model: &pal::Model) -> Vec<Datum<f64>> {
    let one = |argument: &pal::Argument| {
        let default = argument.default.as_ref().expect("a default");
        let (shape, data) = (default.shape().to_vec(), default.data().to_vec());
        // Not all equal, so that nothing is a special case.
        let data = data.into_iter().enumerate().map(|(i, x)| x + 1e-3 * (i as f64).sin()).collect();
        Datum::Real(Tensor { shape, data })
    };
    model.arguments.iter().map(one).collect()
}

fn measure(what: &str, program: &Program, inputs: &[Datum<f64>]) {
    let limits = Limits { trap_nonfinite: true, ..Limits::default() };
    let code = Code::new(program);
    let interpreted = if std::env::var_os("PALINODE_MACHINE").is_some() {
        f64::NAN
    } else {
        best(|| {
            black_box(code.run(inputs, &limits).expect("it runs"));
        })
    };
    let start = Instant::now();
    let form = match loops::lower(program, inputs, true) {
        Ok(form) => form,
        Err(refusal) => return println!("{what:16} {interpreted:9.3}  no loop form: {}", refusal.what),
    };
    let lowered = start.elapsed().as_secs_f64() * 1e3;
    if std::env::var_os("PALINODE_FORM").is_some() {
        println!("{form}");
    }
    let start = Instant::now();
    let native = Native::new(form).expect("it compiles");
    let compiled = start.elapsed().as_secs_f64() * 1e3;
    let machine = best(|| {
        black_box(native.run(inputs, &limits).expect("it runs"));
    });
    println!(
        "{what:16} {interpreted:9.3} {machine:9.4}   x{:6.1}   lowered {lowered:.1}, compiled {compiled:.1}, {} KiB",
        interpreted / machine,
        native.bytes() / 1024
    );
}

fn main() {
    println!("milliseconds     interpreter  machine code");
    for path in std::env::args().skip(1) {
        let name = std::path::Path::new(&path).file_stem().expect("a file").to_string_lossy().into_owned();
        let model = pal::compile(&std::fs::read_to_string(&path).expect("a model")).expect("a model");
        let inputs = defaults(&model);
        let params: Vec<usize> =
            (0..inputs.len()).filter(|&at| model.arguments[at].role == Role::Param).collect();
        let value = passes::simplify(&passes::inline(&model.program));
        measure(&format!("{name} value"), &value, &inputs);
        let gradient = transform::value_and_grad(&model.program, &params).expect("a gradient");
        measure(&format!("{name} grad"), &passes::simplify(&gradient), &inputs);
    }
}

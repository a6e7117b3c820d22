//! `cargo bench -p benches --bench programs`: gradients of the models in `benches/models` by every engine,
//! against plain Rust, gradients by hand and, where `benches/peers/setup` was run, JAX, CasADi, PyTorch and
//! numpy; some within a budget, values of some, and a sparse Jacobian. `--quick` looks at each once, for CI;
//! names of models choose rows.

use std::process::ExitCode;

use benches::{heap, programs};

#[global_allocator]
static ALLOCATOR: heap::CountingAllocator = heap::CountingAllocator;

fn main() -> ExitCode {
    let (flags, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let quick = flags.iter().any(|flag| flag == "--quick");
    if programs::report(quick, &wanted) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

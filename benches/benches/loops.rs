//! `cargo bench -p benches --bench loops`: loops inside a budget, against plain f64, a tape that stores
//! everything, and echidna's checkpointing, in one run. `--quick` takes short loops, for CI.

use benches::heap;
use benches::loops;
use benches::problem::Size;

#[global_allocator]
static ALLOCATOR: heap::CountingAllocator = heap::CountingAllocator;

fn main() {
    let (flags, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let quick = flags.iter().any(|flag| flag == "--quick");
    print!("{}", loops::report(if quick { Size::Quick } else { Size::Full }, &wanted));
}

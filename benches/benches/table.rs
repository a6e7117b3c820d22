//! `cargo bench -p benches`: see `benches/README.md`, or `-- --help`.

use benches::args::Args;
use benches::measure::{self, Row};
use benches::problem::{self, Problem, Size, Visitor};
use benches::{bars, heap, table};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: heap::CountingAllocator = heap::CountingAllocator;

struct Bench {
    args: Args,
    rows: Vec<Row>,
}

impl Visitor for Bench {
    fn visit<P: Problem>(&mut self, size: Size) {
        if self.args.wants(P::NAME) {
            let row = measure::run::<P>(size, self.args.rounds);
            println!("{}", table::row(&row));
            self.rows.push(row);
        }
    }
}

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            let asked = message == benches::args::HELP;
            println!("{message}");
            return if asked { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    println!("{}\n{}", table::header(), table::head());
    let size = args.size;
    let mut bench = Bench { args, rows: Vec::new() };
    problem::for_each(&mut bench, size);
    println!("\n{}", bars::report(&bench.rows));
    ExitCode::SUCCESS
}

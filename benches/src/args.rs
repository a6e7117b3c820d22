//! The command line.

use crate::problem::{NAMES, Size};

/// What to run.
pub struct Args {
    /// Problem sizes.
    pub size: Size,
    /// Rows asked for; empty means all.
    pub rows: Vec<String>,
    /// Timing rounds; `None` leaves it to each problem.
    pub rounds: Option<usize>,
}

/// The text of `--help`.
pub const HELP: &str = "\
One table: gradient time over plain f64 time, and bytes, of every peer on every problem.

    RUSTFLAGS=\"-C target-cpu=native\" cargo bench -p benches            the published sizes
    cargo bench -p benches -- --quick                                  small sizes, for CI
    cargo bench -p benches -- logistic gmm                             only these rows
    cargo bench -p benches -- --rounds 9                               more rounds (the minimum is kept)

Rows: logistic nchain lorenz gmm lstm rosenbrock mlp";

impl Args {
    /// Parses; an error is the message to print.
    pub fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut out = Self { size: Size::Full, rows: Vec::new(), rounds: None };
        let mut args = args;
        while let Some(arg) = args.next() {
            match arg.as_str() {
                // Cargo passes this to every bench target.
                "--bench" => {}
                "--quick" => out.size = Size::Quick,
                "--help" | "-h" => return Err(HELP.to_owned()),
                "--rounds" => {
                    let rounds = args.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0);
                    out.rounds = Some(rounds.ok_or("--rounds needs a positive number")?);
                }
                row if NAMES.contains(&row) => out.rows.push(row.to_owned()),
                other => return Err(format!("unknown argument '{other}'\n\n{HELP}")),
            }
        }
        Ok(out)
    }

    /// Is this row asked for?
    pub fn wants(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|r| r == row)
    }
}

//! The command line: what can be asked for, and the help that explains it.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use palinode_core::Accumulator;
use palinode_ir::transform::Recompute;

/// Runs and differentiates .pal models.
#[derive(Debug, Parser)]
#[command(
    name = "palinode",
    version,
    disable_help_subcommand = true,
    about = "Exact gradients of programs with memory and state",
    after_help = "\
Examples:
  palinode run model.pal                      compute the outputs
  palinode grad model.pal --check             the gradient with respect to all params, compared with differences
  palinode grad model.pal --set k=0.5 --data measured.csv
  palinode memory model.pal                   which arrays it needs, when, and what is kept
  palinode loop model.pal                     how the reverse sweep goes through its loops
  palinode help grad                          options and examples of a command
  palinode help PAL0253                       what an error code means

Exit codes: 0 done; 1 the model or its inputs are wrong; 2 the command line is wrong;
3 the model went wrong while it ran; 4 --check found a disagreement; 5 the answer could not be
written."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Answer, or say what went wrong, in JSON on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compute the outputs of a model
    #[command(after_help = "\
Examples:
  palinode run drag.pal
  palinode run drag.pal --set v0=25 --set k=0.02
  palinode run fit.pal --data measured.csv --full
  palinode run heat.pal --budget 64KiB      stop before it takes more
  palinode run fit.pal --accumulate exact   sums that do not depend on an order
  palinode run drag.pal --batch throws.csv  once for every row")]
    Run(RunArgs),

    /// Compute the gradient of the loss
    #[command(after_help = "\
Examples:
  palinode grad drag.pal --check
  palinode grad drag.pal --wrt v0,mark --set v0=25
  palinode grad fit.pal --data measured.csv --mode reverse --json
  palinode grad rnn.pal --budget 64KiB      recomputes some values to stay within it
  palinode grad drag.pal --batch throws.csv --sum exact

The gradient of the `loss` is taken with respect to every `param`, unless --of and --wrt
say otherwise. Values are in the declared units, gradients per declared unit.")]
    Grad(GradArgs),

    /// Compute the derivative of every output along a direction
    #[command(after_help = "\
Examples:
  palinode jvp drag.pal --direction v0=1
  palinode jvp drag.pal --direction v0=1,k=0.5
  palinode jvp net.pal --direction w=[1,0,0]

What --direction does not name stays where it is. An array given one number moves as a whole.")]
    Jvp(JvpArgs),

    /// Compute the second derivatives of the loss
    #[command(after_help = "\
Examples:
  palinode hessian drag.pal
  palinode hessian drag.pal --wrt v0 --json")]
    Hessian(HessianArgs),

    /// Show how much memory a model and its gradient need, before they run
    #[command(after_help = "\
Examples:
  palinode memory rnn.pal
  palinode memory rnn.pal --budget 64KiB    what is recomputed to stay within it
  palinode memory rnn.pal --rows 0          every array
  palinode memory rnn.pal --store state=recompute

Bytes are those of arrays, inputs and results included. Each row is a piece of memory: what
kind of state lies in it, where it is made, the last line that uses it forwards and
backwards, the operation of the reverse sweep that it is kept for, and what changes it in
place.
The chart shows the same over time. Where memory depends on data, the model is run once.")]
    Memory(MemoryArgs),

    /// Show how the reverse sweep goes through loops: which snapshots are kept, and how the cotangent grows
    #[command(after_help = "\
Examples:
  palinode loop lorenz.pal
  palinode loop lorenz.pal --snapshots 30   with this many snapshots kept at once
  palinode loop lorenz.pal --budget 4KiB    with as many as fit

For each outermost loop that the derivative goes through: a picture of its reverse sweep
(rounds to the right, time downwards), how often it is run forwards for that, and the size
of the cotangent round by round: whether it vanishes, explodes or stays.")]
    Loop(LoopArgs),

    /// Show the execution trace, forwards and backwards
    #[command(after_help = "\
Examples:
  palinode tape tiny.pal
  palinode tape drag.pal --rows 40

Each row is an operation as it ran: what it read, its value, the partials that are saved
for the reverse sweep, and to the right the cotangent that the sweep found for it, with its
turn in the sweep. Loops appear unrolled.")]
    Tape(TapeArgs),

    /// Show the program that a model becomes
    #[command(after_help = "\
Examples:
  palinode ir square.pal --ssa              source beside its single assignments
  palinode ir drag.pal                      the program
  palinode ir drag.pal --all-passes         after each pass that changed something
  palinode ir drag.pal --pass fold --pass cse
  palinode ir drag.pal --derivative grad    the gradient as a program, simplified
  palinode ir drag.pal --loops              the loops that machine code is made of
  palinode ir model.pal --derivative grad --of energy")]
    Ir(IrArgs),

    /// Write a model and its gradient as Rust or C, to read and to vendor
    #[command(after_help = "\
Examples:
  palinode emit drag.pal --rust --out drag  a crate that needs nothing else
  palinode emit drag.pal --c --out src      drag.c and drag.h, in C99
  palinode emit drag.pal --rust             shows it instead
  palinode emit model.pal --c --set n=100   arrays as long as they are here

Lengths and integers are those of the inputs at hand; numbers are in SI units. The
functions give the digits that this command gives, or say why they stop, and where. Build
C with -ffp-contract=off.")]
    Emit(EmitArgs),

    /// Format model files
    #[command(after_help = "\
Examples:
  palinode fmt model.pal                    show the formatted text
  palinode fmt --write models/*.pal         change the files
  palinode fmt --check models/*.pal         say which files would change; exit code 1 if any")]
    Fmt(FmtArgs),

    /// Look for mistakes without running the models
    #[command(after_help = "\
Examples:
  palinode check model.pal
  palinode check models/*.pal --json")]
    Check(CheckArgs),

    /// Explain an error code or a command
    #[command(
        visible_alias = "explain",
        after_help = "\
Examples:
  palinode help PAL0253
  palinode help grad
  palinode explain                          all codes"
    )]
    Help(HelpArgs),

    /// Print a script that completes commands and options in a shell
    #[command(after_help = "\
Examples:
  palinode completions bash > ~/.local/share/bash-completion/completions/palinode
  palinode completions fish > ~/.config/fish/completions/palinode.fish")]
    Completions(CompletionsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// What a model is given.
#[derive(Debug, Args)]
pub(crate) struct GivenArgs {
    /// Set a param or input, in its declared unit: `a=1.5`, `w=[1,2,3]`, or several `a=1,b=2`
    #[arg(long, short = 's', value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// Read inputs from a CSV or JSON file, by name (`file.csv`) or one of them (`X=file.csv`)
    #[arg(long, short = 'd', value_name = "[NAME=]FILE")]
    pub(crate) data: Vec<String>,

    /// Allow infinities and NaN instead of stopping where they arise
    #[arg(long)]
    pub(crate) allow_nonfinite: bool,
}

/// A model, what it is given, and what it may do.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The model; `-` reads it from standard input
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) given: GivenArgs,

    /// Stop after this many loop rounds and calls of the model
    #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = whole)]
    pub(crate) max_rounds: u64,

    /// Accept a derivative along a branch that the model takes only at these inputs (PAL0119)
    #[arg(long)]
    pub(crate) accept_points: bool,
}

/// Who runs a model.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// Who runs the model; the answer has the same digits
    #[arg(long, default_value = "auto", value_name = "WHO", value_parser = one_of(ENGINES))]
    pub(crate) engine: EngineWord,
}

/// Who runs a model, as the command line says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineWord {
    Auto,
    Interpret,
    Jit,
    Rustc,
}

const ENGINES: [(EngineWord, &str, &str); 4] = [
    (EngineWord::Auto, "auto", "Machine code where compiling it takes less time than it saves"),
    (EngineWord::Interpret, "interpret", "The interpreter"),
    (EngineWord::Jit, "jit", "Machine code wherever there is some"),
    (EngineWord::Rustc, "rustc", "Machine code by rustc if it is installed, which is kept for the next time"),
];

/// How much is shown.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Show every element of arrays
    #[arg(long)]
    pub(crate) full: bool,

    /// Number of significant digits
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u8).range(1..=17))]
    pub(crate) digits: u8,
}

/// How sums are computed.
const SUMS: [(Accumulator, &str, &str); 3] = [
    (Accumulator::Naive, "naive", "One term after the other, each rounded"),
    (
        Accumulator::Compensated,
        "compensated",
        "With the rounding errors summed as well: about twice the digits",
    ),
    (Accumulator::Exact, "exact", "Rounded once, the same in any order"),
];

/// How a model computes sums.
#[derive(Debug, Args)]
pub(crate) struct SumArgs {
    /// How `sum`, `mean`, `dot` and matrix products add, in derivatives too; not for sums that a loop
    /// computes itself
    #[arg(long, default_value = "naive", value_name = "HOW", value_parser = one_of(SUMS))]
    pub(crate) accumulate: Accumulator,
}

/// One model for many inputs.
#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// Do it for every row of a CSV file, whose columns are named by params and inputs: `x`, or `w[0]`,
    /// `w[1]`
    #[arg(long, value_name = "FILE")]
    pub(crate) batch: Option<PathBuf>,

    /// Add up over the rows of --batch, instead of showing each
    #[arg(long, value_name = "HOW", requires = "batch", num_args = 0..=1, default_missing_value = "naive",
        value_parser = one_of(SUMS))]
    pub(crate) sum: Option<Accumulator>,

    /// How many threads do the rows of --batch: all there are, if not said; the answer has the same digits
    #[arg(long, value_name = "N", requires = "batch", value_parser = whole)]
    pub(crate) threads: Option<u64>,

    /// Write the answer of --batch as CSV
    #[arg(long, requires = "batch", conflicts_with = "json")]
    pub(crate) csv: bool,
}

/// What is differentiated, by what.
#[derive(Debug, Args)]
pub(crate) struct DerivativeArgs {
    /// Differentiate with respect to these params or inputs instead of all params
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) wrt: Vec<String>,

    /// Differentiate this output instead of the loss
    #[arg(long, value_name = "OUTPUT")]
    pub(crate) of: Option<String>,
}

/// What the reverse sweep through loops recomputes instead of keeping it: the word, and what it means.
pub(crate) const LEVELS: [(Recompute, &str, &str); 4] = [
    (Recompute::Nothing, "nothing", "Nothing but indices and conditions: most memory, least work"),
    (Recompute::Cheap, "cheap", "Sums, products, elements of arrays that nothing changes"),
    (Recompute::Elementwise, "elementwise", "Every elementwise function too"),
    (Recompute::Anything, "anything", "Matrix products and reductions too: least memory"),
];

/// A word of a table, as what it stands for.
fn one_of<T: Clone + Send + Sync + 'static>(
    table: impl IntoIterator<Item = (T, &'static str, &'static str)>,
) -> impl TypedValueParser<Value = T> {
    let all: Vec<(T, &str, &str)> = table.into_iter().collect();
    let words = all.iter().map(|(_, word, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(words.collect::<Vec<_>>()).map(move |found| {
        let (value, ..) = all.iter().find(|(_, word, _)| *word == found).expect("it is one of them");
        value.clone()
    })
}

/// How much memory a gradient may use, and what it keeps.
#[derive(Debug, Args)]
pub(crate) struct StorageArgs {
    /// Stay within this many bytes, such as 64KiB, 1.5MiB or 500kB; what does not fit is recomputed
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    pub(crate) budget: Option<String>,

    /// What the reverse sweep through loops recomputes instead of keeping it; otherwise a budget decides
    #[arg(long, value_name = "WHAT", value_parser = one_of(LEVELS))]
    pub(crate) recompute: Option<Recompute>,

    /// What to do with a variable that the reverse sweep needs: `h=keep` or `h=recompute`
    #[arg(long, value_name = "NAME=HOW", value_delimiter = ',')]
    pub(crate) store: Vec<String>,

    /// Keep a variable that the reverse sweep needs in fewer bits: `h=f32` or `h=bf16`; the gradient is then
    /// rounded
    #[arg(long, value_name = "NAME=FORMAT", value_delimiter = ',')]
    pub(crate) narrow: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) derivative: DerivativeArgs,
    #[command(flatten)]
    pub(crate) storage: StorageArgs,

    /// Show at most this many arrays, the largest; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) rows: usize,
}

#[derive(Debug, Args)]
pub(crate) struct LoopArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) derivative: DerivativeArgs,
    #[command(flatten)]
    pub(crate) storage: StorageArgs,

    /// Keep this many snapshots of each loop at once, whatever the model says; 10 unless a budget, or the
    /// model, says otherwise
    #[arg(long, value_name = "N", value_parser = at_least_one, conflicts_with = "budget")]
    pub(crate) snapshots: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) sums: SumArgs,

    /// Stay within this many bytes, such as 64KiB, 1.5MiB or 500kB
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    pub(crate) budget: Option<String>,

    #[command(flatten)]
    pub(crate) batch: BatchArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// Forward or reverse mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Forward for a single number, otherwise reverse
    Auto,
    /// One run per number, nothing kept for a reverse sweep
    Forward,
    /// One reverse sweep, whatever the number of params
    Reverse,
}

#[derive(Debug, Args)]
pub(crate) struct GradArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) sums: SumArgs,
    #[command(flatten)]
    pub(crate) derivative: DerivativeArgs,

    /// Forward or reverse mode
    #[arg(long, value_enum, default_value_t = Mode::Auto)]
    pub(crate) mode: Mode,

    /// Compare with differences and say how well they agree
    #[arg(long, conflicts_with = "batch")]
    pub(crate) check: bool,

    #[command(flatten)]
    pub(crate) storage: StorageArgs,

    #[command(flatten)]
    pub(crate) batch: BatchArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JvpArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) sums: SumArgs,

    /// The direction: `a=1`, `a=1,b=0.5`, `w=[1,0]`; not needed if there is a single param
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) direction: Vec<String>,

    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HessianArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) sums: SumArgs,
    #[command(flatten)]
    pub(crate) derivative: DerivativeArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TapeArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) derivative: DerivativeArgs,

    /// Show at most this many rows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) rows: usize,

    /// Number of significant digits
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..=17))]
    pub(crate) digits: u8,
}

/// A program made from the model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Derived {
    /// The model itself
    Run,
    /// Value and gradient, by reverse mode
    Grad,
    /// Outputs and their tangents
    Jvp,
    /// Outputs, and cotangents of the arguments
    Vjp,
    /// All first partials
    Jacobian,
    /// All second partials
    Hessian,
}

#[derive(Debug, Args)]
pub(crate) struct IrArgs {
    /// The model; `-` reads it from standard input
    pub(crate) model: PathBuf,

    /// Show the source beside the single assignments it becomes
    #[arg(long, conflicts_with_all = ["pass", "all_passes", "derivative", "of"])]
    pub(crate) ssa: bool,

    /// Apply a pass and show the program before and after; may be given several times
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) pass: Vec<String>,

    /// Apply every pass of the pipeline and show the program after each that changed it
    #[arg(long, conflicts_with = "pass")]
    pub(crate) all_passes: bool,

    /// Show a derivative as a program instead
    #[arg(long, value_enum, default_value_t = Derived::Run, value_name = "WHAT")]
    pub(crate) derivative: Derived,

    /// Show the program of this output only; `grad` and `hessian` are of the loss unless it is given
    #[arg(long, value_name = "OUTPUT")]
    pub(crate) of: Option<String>,

    /// Differentiate with respect to these params or inputs instead of all params
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) wrt: Vec<String>,

    /// Show a derivative as the transform made it, not simplified
    #[arg(long)]
    pub(crate) raw: bool,

    /// Show the loops over buffers that machine code is made of, for inputs like those that are given
    #[arg(long, conflicts_with_all = ["ssa", "pass", "all_passes", "raw"])]
    pub(crate) loops: bool,

    #[command(flatten)]
    pub(crate) given: GivenArgs,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("language").required(true).args(["rust", "c"]))]
pub(crate) struct EmitArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// As a crate in Rust
    #[arg(long)]
    pub(crate) rust: bool,

    /// As a header and a source in C99
    #[arg(long)]
    pub(crate) c: bool,

    /// The folder that is written; without it, the text is shown
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,

    /// Take the gradient of this output instead of the loss
    #[arg(long, value_name = "OUTPUT")]
    pub(crate) of: Option<String>,

    /// Differentiate with respect to these params or inputs instead of all params
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) wrt: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct FmtArgs {
    /// The files; `-` reads standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Say which files would change
    #[arg(long, conflicts_with = "write")]
    pub(crate) check: bool,

    /// Change the files
    #[arg(long, short = 'w')]
    pub(crate) write: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The models; `-` reads standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// An error code (`PAL0253`) or a command
    pub(crate) topic: Option<String>,
}

/// `1000000`, `1_000_000`, `1,000,000` or `1e6`.
fn whole(text: &str) -> Result<u64, String> {
    let digits: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    if let Ok(n) = digits.parse() {
        return Ok(n);
    }
    match digits.parse::<f64>() {
        Ok(x) if x >= 0.0 && x == x.trunc() && x < 1.8e19 => Ok(x as u64),
        _ => Err("it must be an integer that is not negative, such as 1000000 or 1e6".to_string()),
    }
}

/// The same from 1.
fn at_least_one(text: &str) -> Result<u64, String> {
    match whole(text)? {
        0 => Err("it must be at least 1: the reverse sweep restarts from a snapshot".to_string()),
        n => Ok(n),
    }
}

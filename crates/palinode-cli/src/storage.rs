//! What a gradient may keep: `--budget`, `--recompute`, `--store`, `--narrow`, and what was chosen, in words.
//!
//! Input: the words of the command line, or what `palinode_ir::plan` decided. Output: what is asked of it, or
//! its answer in words.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use palinode_core::{Budget, Error};
use palinode_ir::interp::Datum;
use palinode_ir::plan::{self, Asked, FittedGradient, Prediction, SnapshotLoop, handy};
use palinode_ir::transform::{Choice, Recompute};
use palinode_ir::{Narrow, Program, Span};
use serde_json::{Value, json};

use crate::args::{LEVELS, StorageArgs};
use crate::assign::{twice, unknown};
use crate::lifetimes::Arrays;
use crate::model::Loaded;
use crate::numbers::{self, size};
use crate::problem::{Exit, Failed, Problem};
use crate::session::Session;
use crate::sources::FileId;

/// The bytes of a number that the command computes with.
pub(crate) const REAL: usize = size_of::<f64>();

/// The values of a program within a budget; refuses if there is none.
pub(crate) fn value_within(
    program: &Program,
    inputs: &[Datum<f64>],
    budget: Budget,
) -> Result<Program, Problem> {
    let limit = budget.bytes() as u64;
    let found = plan::values(program, inputs, limit);
    let Some(peak) = found.heap.filter(|&peak| peak > limit) else { return Ok(found.program) };
    let message = format!("{budget} is not enough: the values need at least {}", exact_size(peak));
    let help = format!("--budget {} works", to_type(peak));
    Err(Problem::new("PAL0412", Exit::Input, message).help(help))
}

/// What counts against a budget, and how much of it is arrays.
pub(crate) fn within_budget(charged: usize, arrays: usize) -> String {
    format!("peak {}, {} of it in arrays", numbers::bytes(charged), numbers::bytes(arrays))
}

/// What is there beside the budget.
pub(crate) fn held(bytes: usize) -> String {
    format!("{} in addition for model, data, program and plan", numbers::bytes(bytes))
}

/// The same where gradients are made between runs.
pub(crate) fn held_making(bytes: usize) -> String {
    format!("{} in addition for model and data, and for making programs between runs", numbers::bytes(bytes))
}

/// Reads the options.
pub(crate) fn read(session: &mut Session, loaded: &Loaded, args: &StorageArgs) -> Result<Asked, Failed> {
    let mut problems = Vec::new();
    let mut asked = Asked::default();
    if let Some(word) = &args.budget {
        match budget(session, word) {
            Ok(budget) => asked.budget = Some(budget),
            Err(problem) => problems.push(*problem),
        }
    }
    if let Some(level) = args.recompute {
        asked.is_fixed = true;
        asked.storage.recompute = level;
    }
    let mut places: BTreeMap<String, (FileId, Range<usize>)> = BTreeMap::new();
    let words = args.store.iter().map(|word| ("--store", word));
    for (option, word) in words.chain(args.narrow.iter().map(|word| ("--narrow", word))) {
        match choice(session, loaded, option, word) {
            Ok((name, choice, file)) => {
                let range = option.len() + 1..option.len() + 1 + name.len();
                if let Some((first, before)) = places.get(&name) {
                    problems.push(twice(option, &name, (*first, before), (file, &range)));
                } else {
                    places.insert(name.clone(), (file, range));
                    asked.storage.choices.insert(name, choice);
                }
            }
            Err(problem) => problems.push(*problem),
        }
    }
    if problems.is_empty() { Ok(asked) } else { Err(Failed(problems)) }
}

/// What loops compute again, as the word of the command line.
pub(crate) fn word(level: Recompute) -> &'static str {
    LEVELS.iter().find(|one| one.0 == level).expect("every level is there").1
}

/// `64KiB`.
pub(crate) fn budget(session: &mut Session, word: &str) -> Result<Budget, Box<Problem>> {
    word.parse().map_err(|error| {
        let option = "--budget ";
        let file = session.sources.add("command line", format!("{option}{word}"));
        let why = match &error {
            Error::NotABudget { why, .. } => why.to_string(),
            other => other.to_string(),
        };
        let problem = Problem::new("PAL0108", Exit::Usage, format!("`{word}` is not a budget: {why}"))
            .at(file, option.len()..option.len() + word.len(), "")
            .help("give a number and a unit, such as 64KiB, 1.5MiB or 500kB");
        Box::new(problem)
    })
}

/// What can be done with a variable, by option.
const CHOICES: [(&str, &str, Choice); 4] = [
    ("--store", "keep", Choice::Keep),
    ("--store", "recompute", Choice::Recompute),
    ("--narrow", "f32", Choice::Narrow(Narrow::F32)),
    ("--narrow", "bf16", Choice::Narrow(Narrow::Bf16)),
];

/// `h=keep`, and where it is shown.
fn choice(
    session: &mut Session,
    loaded: &Loaded,
    option: &str,
    word: &str,
) -> Result<(String, Choice, FileId), Box<Problem>> {
    let file = session.sources.add("command line", format!("{option} {word}"));
    let at = |from: usize, to: usize| option.len() + 1 + from..option.len() + 1 + to;
    let hows: Vec<&str> = CHOICES.iter().filter(|one| one.0 == option).map(|one| one.1).collect();
    let write = |name: &str| {
        let ways: Vec<String> = hows.iter().map(|how| format!("`{option} {name}={how}`")).collect();
        format!("write {}", ways.join(" or "))
    };
    let Some((name, how)) = word.split_once('=') else {
        let message = format!("`{option}` needs a name and what to do with it");
        let problem = Problem::new("PAL0290", Exit::Usage, message).at(file, at(0, word.len()), "");
        return Err(Box::new(problem.help(write(word))));
    };
    let found = CHOICES.iter().find(|one| one.1 == how);
    let Some((_, _, choice)) = found.filter(|one| one.0 == option) else {
        let message = format!("`{how}` is not a choice of `{option}`");
        let problem =
            Problem::new("PAL0290", Exit::Usage, message).at(file, at(name.len() + 1, word.len()), "");
        return Err(Box::new(problem.help(match found {
            Some((other, ..)) => format!("write `{other} {name}={how}`"),
            None => write(name),
        })));
    };
    let names = variables(loaded);
    if names.contains(name) {
        return Ok((name.to_string(), *choice, file));
    }
    if let Some(argument) = loaded.arguments().iter().find(|argument| &*argument.name == name) {
        let message = format!("`{name}` is an argument of the model, so it is always kept");
        let problem = Problem::new("PAL0289", Exit::Usage, message).at(file, at(0, name.len()), "");
        let problem = problem.at(loaded.file, argument.span.range(), "declared here");
        return Err(Box::new(problem.help("name a variable that the model computes")));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Err(Box::new(unknown(name, "variable", &names).at(file, at(0, name.len()), "")))
}

/// The names of what the model computes.
fn variables(loaded: &Loaded) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for function in &loaded.model.program.functions {
        function.body.for_each_inst(&mut |inst| {
            let named = inst.results.iter().filter_map(|&result| function.name_of(result));
            all.extend(named.map(|name| name.to_string()));
        });
    }
    all
}

/// What is live at the peak.
pub(crate) fn at_peak(
    program: &Program,
    found: &Prediction,
    loaded: &Loaded,
    session: &Session,
) -> Option<String> {
    let (given, logs, others) = Arrays::new(program, found, &[], true).at_peak(program, found);
    let parts = [(given, "params and inputs"), (logs, "what loops keep"), (others, "other arrays")];
    let words: Vec<String> = parts
        .iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, what)| format!("{what} {}", size(*bytes)))
        .collect();
    let line = found.peak_at.and_then(|(function, value)| {
        let mut span = Span::NONE;
        program.function(function).body.for_each_inst(&mut |inst| {
            if inst.results.first() == Some(&value) {
                span = inst.span;
            }
        });
        line(session, loaded, span)
    });
    let place = line.map_or(String::new(), |line| format!(" (line {line})"));
    (words.len() > 1).then(|| format!("at its peak{place}: {}", words.join(", ")))
}

/// The line of the model that a place is in.
pub(crate) fn line(session: &Session, loaded: &Loaded, span: Span) -> Option<usize> {
    (!span.is_none()).then(|| session.sources.place(loaded.file, span.start as usize).0)
}

/// `with 1.7 times the work`, or `with 5.1 forward sweeps` where a loop keeps snapshots.
pub(crate) fn price(fitted: &FittedGradient) -> String {
    match &fitted.loops[..] {
        [only] => format!("with {} forward sweeps", sweeps(only.forward_rounds(), only.rounds)),
        _ => times(fitted.overhead, fitted.is_overhead_exact),
    }
}

/// `with 1.7 times the work`.
fn times(overhead: f64, is_exact: bool) -> String {
    match (overhead < 1.005, is_exact) {
        (true, true) => "with no more work".to_string(),
        (true, false) => "with about the same work".to_string(),
        (false, true) => format!("with {} times the work", amount(overhead)),
        (false, false) => format!("with about {} times the work", amount(overhead)),
    }
}

/// `1.7`.
pub(crate) fn amount(overhead: f64) -> String {
    if overhead < 1.1 { format!("{overhead:.2}") } else { format!("{overhead:.1}") }
}

/// `1.7 times the work of keeping everything (2.1 MiB)`.
pub(crate) fn against_all(fitted: &FittedGradient) -> String {
    let all = size(fitted.store_all.bytes() as u64);
    let (about, branches) = match fitted.is_overhead_exact {
        true => ("", ""),
        false => ("about ", ", depending on branches"),
    };
    let work = match fitted.overhead < 1.005 {
        true if about.is_empty() => "no more work than".to_string(),
        true => format!("{about}the work of"),
        false => format!("{about}{} times the work of", amount(fitted.overhead)),
    };
    format!("{work} keeping everything ({all}){branches}")
}

/// What was chosen, in words.
pub(crate) fn chosen(program: &Program, recompute: Recompute, repeated: usize) -> String {
    let mut has_loops = false;
    program.main().body.for_each_inst(&mut |inst| has_loops |= inst.op.repeats());
    let loops = match recompute {
        Recompute::Nothing => "loops keep all they need",
        Recompute::Cheap => "loops recompute sums and products",
        Recompute::Elementwise => "loops recompute elementwise functions",
        Recompute::Anything => "loops recompute whatever they can",
    };
    match repeated {
        0 if has_loops => loops.to_string(),
        0 => "everything is kept".to_string(),
        n if has_loops => format!("{loops}; {} outside of them", again(n)),
        n => again(n),
    }
}

/// How a gradient stays within its budget, in lines of words; `line` finds the line of a place.
pub(crate) fn kept_by(fitted: &FittedGradient, line: &dyn Fn(Span) -> Option<usize>) -> Vec<String> {
    if fitted.loops.is_empty() {
        return vec![chosen(&fitted.program, fitted.recompute, fitted.repeated)];
    }
    let one = |one_loop: &SnapshotLoop| {
        let place = line(one_loop.span).map_or(String::new(), |line| format!(" in line {line}"));
        let is_around = |other: &SnapshotLoop| {
            let (outer, inner) = (other.span, one_loop.span);
            outer != inner && outer.start <= inner.start && inner.end <= outer.end
        };
        let kept = format!(
            "the loop{place} keeps {} for {}",
            numbers::plural(one_loop.snapshots, "snapshot"),
            numbers::plural(one_loop.rounds, "round")
        );
        // How often it is run through in all depends on the loop around it, too; the multiple of the work
        // counts that.
        if fitted.loops.iter().any(is_around) {
            return format!("{kept} for each reversed round of the enclosing loop");
        }
        format!(
            "{kept}: {} forward sweeps (at best {})",
            sweeps(one_loop.forward_rounds(), one_loop.rounds),
            sweeps(one_loop.fewest_rounds(), one_loop.rounds)
        )
    };
    let mut lines: Vec<String> = fitted.loops.iter().map(one).collect();
    lines.extend((fitted.repeated > 0).then(|| format!("{} outside of loops", again(fitted.repeated))));
    lines
}

/// How a budget was kept.
pub(crate) fn budget_json(
    budget: Budget,
    fitted: &FittedGradient,
    line: &dyn Fn(Span) -> Option<usize>,
) -> Value {
    let described = |one_loop: &SnapshotLoop| {
        json!({
            "line": line(one_loop.span),
            "rounds": one_loop.rounds,
            "snapshots": one_loop.snapshots,
            "forward_rounds": one_loop.forward_rounds(),
            "fewest_rounds": one_loop.fewest_rounds(),
        })
    };
    json!({
        "budget_bytes": budget.bytes(),
        "planned_bytes": fitted.prediction.heap,
        "store_all_bytes": fitted.store_all.bytes(),
        "work": fitted.overhead,
        "work_is_exact": fitted.is_overhead_exact,
        "recompute": word(fitted.recompute),
        "repeated": fitted.repeated,
        "loops": fitted.loops.iter().map(described).collect::<Vec<_>>(),
    })
}

/// How often a loop is run through, from its rounds.
pub(crate) fn sweeps(run: u64, rounds: u64) -> String {
    let times = run as f64 / rounds.max(1) as f64;
    if times < 10.0 { format!("{times:.2}") } else { format!("{times:.1}") }
}

fn again(n: usize) -> String {
    let words = if n == 1 { "is done twice" } else { "are done twice" };
    format!("{} {words}", numbers::plural(n as u64, "operation"))
}

/// A [`handy`] budget as it is typed: in the largest unit of which it is at least ten.
pub(crate) fn compact(budget: Budget) -> String {
    let bytes = budget.bytes() as u64;
    let units = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|&(_, unit)| bytes >= 10 * unit) {
        Some((name, unit)) => format!("{}{name}", bytes as f64 / unit as f64),
        None if bytes > 0 && bytes.is_multiple_of(256) => format!("{}KiB", bytes as f64 / 1024.0),
        None => format!("{bytes}B"),
    }
}

/// A budget of at least so many bytes, as it is typed.
pub(crate) fn to_type(bytes: u64) -> String {
    compact(handy(bytes))
}

/// `31.5 KiB`, and the bytes if that is rounded.
pub(crate) fn exact_size(bytes: u64) -> String {
    let budget = Budget::from(usize::try_from(bytes).unwrap_or(usize::MAX));
    let (rounded, exact) = (budget.rounded(), budget.to_string());
    if rounded == exact {
        exact
    } else {
        format!("{rounded} ({} bytes)", numbers::count(budget.bytes() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_to_type_are_short_and_enough() {
        for bytes in [0, 1, 999, 10_239, 10_240, 10_241, 32_217, 123_456, 1_234_567, 98_765_432_101] {
            let budget = handy(bytes);
            assert!(
                budget.bytes() as u64 >= bytes && budget.bytes() as f64 <= bytes as f64 * 1.03 + 1.0,
                "{bytes}: {budget}"
            );
            assert_eq!(compact(budget).parse::<Budget>().unwrap(), budget);
            assert!(compact(budget).len() <= 9, "{budget}");
        }
        assert_eq!(compact(handy(32_217)), "31.5KiB");
        assert_eq!(compact(handy(49_824)), "48.75KiB");
        assert_eq!(compact(handy(9_999)), "9999B");
    }

    #[test]
    fn work_is_said_with_two_digits() {
        assert_eq!(times(1.0, true), "with no more work");
        assert_eq!(times(1.0, false), "with about the same work");
        assert_eq!(times(1.04, true), "with 1.04 times the work");
        assert_eq!(times(2.31, false), "with about 2.3 times the work");
    }
}

//! Where the values of params and inputs come from: `--set`, then data files, then defaults of the model.
//!
//! Input: a model, the words of the command line. Output: a value for each argument of the program, in SI.
//! Lengths are checked here against what the declarations say, before anything runs; every problem is
//! reported, not just the first.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use palinode_ir::interp::{Datum, Tensor};
use palinode_ir::pal::{Argument, LengthSpec, Role};
use palinode_ir::{Elem, Type};

use crate::args::GivenArgs;
use crate::assign::{self, Numbers, unknown};
use crate::data::{self, Contents, Rows, Spec, Wanted};
use crate::model::{Loaded, described};
use crate::numbers;
use crate::problem::{Exit, Failed, Problem};
use crate::session::Session;
use crate::sources::FileId;

/// A value as it was given, in the declared unit.
struct Given {
    numbers: Numbers,
    origin: Origin,
}

/// Who gave it.
#[derive(Clone)]
enum Origin {
    CommandLine { file: FileId, range: Range<usize> },
    File(String),
    Model,
}

impl Origin {
    fn place(&self, problem: Problem) -> Problem {
        match self {
            Origin::CommandLine { file, range } => problem.at(*file, range.clone(), "given here"),
            Origin::File(name) => problem.note(format!("it comes from {name}")),
            Origin::Model => problem.note("it is the default of the model"),
        }
    }
}

/// A value for each argument of the program.
pub(crate) fn bind(
    session: &mut Session,
    loaded: &Loaded,
    args: &GivenArgs,
) -> Result<Vec<Datum<f64>>, Failed> {
    bind_with(session, loaded, args, None)
}

/// The rows of a batch, and a value for each argument of the program: those of the first row, and what all
/// rows have in common.
pub(crate) fn bind_batch(
    session: &mut Session,
    loaded: &Loaded,
    args: &GivenArgs,
    path: &Path,
) -> Result<(Vec<Datum<f64>>, Rows), Failed> {
    let wanted: Vec<Wanted> = loaded.arguments().iter().map(wanted).collect();
    let rows = data::load_rows(session, path, &wanted)?;
    let inputs = bind_with(session, loaded, args, Some(&rows))?;
    one_length(loaded, &rows)?;
    Ok((inputs, rows))
}

/// A length is that of arrays, which have the same columns in all rows.
fn one_length(loaded: &Loaded, rows: &Rows) -> Result<(), Failed> {
    let is_length = |name: &str| {
        let mut lengths = loaded.arguments().iter().flat_map(|argument| &argument.lengths);
        lengths.any(|spec| named(spec) == Some(name))
    };
    let changes = |part: &&data::Part| {
        let argument = &loaded.arguments()[part.argument];
        argument.ty == Type::INT && is_length(&argument.name) && part.data.iter().any(|&n| n != part.data[0])
    };
    let Some(part) = rows.parts.iter().find(changes) else { return Ok(()) };
    let argument = &loaded.arguments()[part.argument];
    let message = format!("`{}` is a length, so it cannot change from row to row", argument.name);
    let problem = Problem::new("PAL0288", Exit::Input, message).note(format!("in {}", rows.file));
    let problem = problem.at(loaded.file, argument.span.range(), "declared here");
    Err(problem
        .help("make a batch for each length, or leave the column out: it follows from the arrays")
        .into())
}

/// Writes what a row has into inputs that were bound.
pub(crate) fn set_row(loaded: &Loaded, rows: &Rows, row: usize, inputs: &mut [Datum<f64>]) {
    for part in &rows.parts {
        let unit = loaded.arguments()[part.argument].unit.as_ref();
        match &mut inputs[part.argument] {
            Datum::Real(tensor) => {
                for (x, &given) in tensor.data.iter_mut().zip(part.row(row)) {
                    *x = unit.map_or(given, |unit| unit.to_si(given));
                }
            }
            Datum::Int(tensor) => {
                tensor.data.iter_mut().zip(part.row(row)).for_each(|(n, &given)| *n = given as i64);
            }
            Datum::Bool(_) => unreachable!("a model has no arguments that are truth values"),
        }
    }
}

fn bind_with(
    session: &mut Session,
    loaded: &Loaded,
    args: &GivenArgs,
    rows: Option<&Rows>,
) -> Result<Vec<Datum<f64>>, Failed> {
    let arguments = loaded.arguments();
    let mut given: Vec<Option<Given>> = arguments.iter().map(default_of).collect();
    let explicit: Vec<Spec> = args.data.iter().map(|word| Spec::parse(word, None)).collect();
    let files = if explicit.is_empty() { &loaded.data } else { &explicit };
    let contents = from_files(session, arguments, files, &mut given)?;
    from_command_line(session, arguments, args, &mut given)?;
    from_rows(arguments, rows, &mut given)?;
    warn_of_unused(session, arguments, &contents, &given);
    let mut binder = Binder { loaded, contents, lengths: BTreeMap::new(), problems: Vec::new() };
    binder.fit(&mut given);
    binder.stated();
    binder.finish(given)
}

/// The first row of a batch.
fn from_rows(arguments: &[Argument], rows: Option<&Rows>, given: &mut [Option<Given>]) -> Result<(), Failed> {
    let mut problems = Vec::new();
    for (rows, part) in rows.iter().flat_map(|rows| rows.parts.iter().map(move |part| (rows, part))) {
        let (name, own) = (&arguments[part.argument].name, &mut given[part.argument]);
        let also = own.as_ref().map(|given| &given.origin).filter(|origin| !matches!(origin, Origin::Model));
        if let Some(origin) = also {
            let message = format!("`{name}` has columns in {}, and is given a value besides", rows.file);
            let problem = origin.place(Problem::new("PAL0290", Exit::Usage, message));
            problems.push(problem.help("leave out one of them"));
        }
        let numbers = Numbers { shape: part.shape.clone(), data: part.row(0).to_vec() };
        *own = Some(Given { numbers, origin: Origin::File(rows.file.clone()) });
    }
    if problems.is_empty() { Ok(()) } else { Err(Failed(problems)) }
}

fn default_of(argument: &Argument) -> Option<Given> {
    let default = argument.default.as_ref()?;
    let numbers = Numbers { shape: default.shape().to_vec(), data: default.data().to_vec() };
    Some(Given { numbers, origin: Origin::Model })
}

fn from_files(
    session: &mut Session,
    arguments: &[Argument],
    files: &[Spec],
    given: &mut [Option<Given>],
) -> Result<Vec<Contents>, Failed> {
    let wanted: Vec<Wanted> = arguments.iter().map(wanted).collect();
    let lengths: Vec<&str> =
        arguments.iter().flat_map(|argument| &argument.lengths).filter_map(named).collect();
    let lengths: Vec<&str> =
        lengths.into_iter().filter(|name| wanted.iter().all(|one| one.name != *name)).collect();
    let mut problems = Vec::new();
    let mut all = Vec::new();
    for (at, spec) in files.iter().enumerate() {
        if let Some(name) = &spec.name
            && let Some(other) = files[..at].iter().find(|other| other.name.as_ref() == Some(name))
        {
            let (a, b) = (other.path.display(), spec.path.display());
            let message = format!("`{name}` is given two files, {a} and {b}");
            let problem = Problem::new("PAL0290", Exit::Usage, message);
            problems
                .push(problem.help(format!("leave out one of `--data {name}={a}` and `--data {name}={b}`")));
        }
        match data::load(session, spec, &wanted, &lengths) {
            Ok((found, contents)) => {
                all.extend(contents);
                for one in found {
                    let at =
                        wanted.iter().position(|wanted| wanted.name == one.name).expect("it was asked for");
                    given[at] = Some(Given { numbers: one.numbers, origin: Origin::File(one.origin) });
                }
            }
            Err(Failed(more)) => problems.extend(more),
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(Failed(problems)) }
}

/// The name of a length, if it has one.
fn named(spec: &LengthSpec) -> Option<&str> {
    match spec {
        LengthSpec::Named(name) => Some(name),
        LengthSpec::Known(_) | LengthSpec::Any => None,
    }
}

/// A column or field that nobody asked for and that is named almost like an argument with a default may be
/// meant.
fn warn_of_unused(
    session: &mut Session,
    arguments: &[Argument],
    contents: &[Contents],
    given: &[Option<Given>],
) {
    for one in contents {
        let free = |name: &&str| arguments.iter().all(|argument| *argument.name != **name);
        let names: Vec<&str> = one.names.iter().map(String::as_str).filter(free).collect();
        for (argument, given) in arguments.iter().zip(given) {
            let has_default = given.as_ref().is_some_and(|given| matches!(given.origin, Origin::Model));
            if has_default && let Some(help) = data::near(&wanted(argument), &names, one.each) {
                let message = format!(
                    "`{}` keeps its default: {} has no {} of that name",
                    argument.name, one.file, one.each
                );
                session.warn(Problem::new("PAL0610", Exit::Input, message).help(help).only_warning());
            }
        }
    }
}

/// What a data file may be asked for.
fn wanted(argument: &Argument) -> Wanted {
    let is_whole = argument.ty.elem == Elem::Int;
    Wanted { name: argument.name.to_string(), rank: usize::from(argument.ty.rank), is_whole }
}

fn from_command_line(
    session: &mut Session,
    arguments: &[Argument],
    args: &GivenArgs,
    given: &mut [Option<Given>],
) -> Result<(), Failed> {
    let names: Vec<&str> = arguments.iter().map(|argument| &*argument.name).collect();
    let mut problems = Vec::new();
    for one in assign::parse(session, "--set", &args.set, &names, args.allow_nonfinite)? {
        match names.iter().position(|name| **name == one.name) {
            Some(at) => {
                let origin = Origin::CommandLine { file: one.file, range: one.value_range };
                given[at] = Some(Given { numbers: one.value, origin });
            }
            None => {
                let mut lengths = arguments.iter().flat_map(|argument| &argument.lengths).filter_map(named);
                let mut problem = unknown(&one.name, "param or input", &names);
                if lengths.any(|length| length == one.name) {
                    problem = problem.help(format!("`{}` is a length: it follows from the arrays", one.name));
                }
                problems.push(problem.at(one.file, one.name_range, ""));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Failed(problems)) }
}

struct Binder<'a> {
    loaded: &'a Loaded,
    /// What the data files have.
    contents: Vec<Contents>,
    /// Named lengths, and the argument each was first seen in.
    lengths: BTreeMap<Arc<str>, (usize, usize)>,
    problems: Vec<Problem>,
}

impl Binder<'_> {
    fn argument(&self, at: usize) -> &Argument {
        &self.loaded.model.arguments[at]
    }

    /// The lengths of an array, if all are known without its data.
    fn shape(&self, at: usize) -> Option<Vec<usize>> {
        let length = |spec: &LengthSpec| match spec {
            LengthSpec::Known(n) => Some(*n),
            LengthSpec::Named(name) => self.lengths.get(name).map(|&(n, _)| n),
            LengthSpec::Any => None,
        };
        self.argument(at).lengths.iter().map(length).collect()
    }

    /// Checks ranks and lengths; single numbers fill arrays whose lengths are known.
    fn fit(&mut self, given: &mut [Option<Given>]) {
        for (at, one) in given.iter().enumerate() {
            if let Some(one) = one {
                self.whole_number(at, one);
                self.learn(at, one);
            }
        }
        for (at, one) in given.iter_mut().enumerate() {
            let argument = self.argument(at);
            let (ty, name) = (argument.ty, argument.name.clone());
            match one {
                None if ty == Type::INT => {
                    // A length that an array brings along need not be given twice.
                    if let Some(&(length, _)) = self.lengths.get(&name) {
                        let numbers = Numbers { shape: Vec::new(), data: vec![length as f64] };
                        *one = Some(Given { numbers, origin: Origin::Model });
                    }
                }
                None => {}
                Some(one) if one.numbers.shape.is_empty() && ty.rank > 0 => match self.shape(at) {
                    Some(shape) if shape.iter().product::<usize>() <= 100_000_000 => {
                        let data = vec![one.numbers.data[0]; shape.iter().product()];
                        one.numbers = Numbers { shape, data };
                    }
                    _ => self.wrong_rank(at, one),
                },
                Some(one) if one.numbers.shape.len() != usize::from(ty.rank) => self.wrong_rank(at, one),
                Some(_) => {}
            }
        }
    }

    fn wrong_rank(&mut self, at: usize, given: &Given) {
        let argument = self.argument(at);
        let (name, ty) = (&argument.name, argument.ty);
        let is = numbers::described(&given.numbers.shape);
        let message = format!("`{name}` is declared as {}, but it is given {is}", described(ty));
        let problem = Problem::new("PAL0283", Exit::Input, message);
        let help = match (ty.rank, given.numbers.shape.len()) {
            (0, _) => format!("give it a single number, `--set {name}=1.5`"),
            (1, 0) => format!("give it a list, `--set {name}=[1,2,3]`, or a column `{name}` in a data file"),
            (2, 1) => format!(
                "give it columns `{name}0`, `{name}1`, ... or a file of its own, `--data {name}=file.csv`"
            ),
            (2, _) => format!("give it rows, `--set {name}=[[1,2],[3,4]]`, or `--data {name}=file.csv`"),
            (1, _) => {
                format!("give it a single list, `--set {name}=[1,2,3]`, or a column `{name}` in a data file")
            }
            (rank, _) => format!("give it lists nested {rank} deep, in a JSON file"),
        };
        self.declared_otherwise(at, given, problem.help(help));
    }

    fn whole_number(&mut self, at: usize, given: &Given) {
        let argument = self.argument(at);
        if argument.ty.elem != Elem::Int {
            return;
        }
        let is_whole = |x: &f64| *x == x.trunc() && x.abs() < assign::WHOLE;
        if let Some(x) = given.numbers.data.iter().find(|x| !is_whole(x)) {
            let (name, x) = (&argument.name, *x);
            let (message, help) = if x == x.trunc() {
                let message = format!("{} is too large for the integer `{name}`", numbers::plain(x));
                (message, "integers go up to 9007199254740991 (2^53 - 1); declare the input as real")
            } else {
                let message = format!("`{name}` takes integers, and {} is not one", numbers::plain(x));
                (message, "round it, or declare the input as real")
            };
            self.declared_otherwise(at, given, Problem::new("PAL0285", Exit::Input, message).help(help));
        }
    }

    /// Takes the lengths that an array brings along, and compares them with what is known.
    fn learn(&mut self, at: usize, given: &Given) {
        let argument = self.argument(at);
        let lengths = argument.lengths.clone();
        if argument.ty == Type::INT {
            let name = argument.name.clone();
            let is_length = |spec: &LengthSpec| matches!(spec, LengthSpec::Named(other) if *other == name);
            let is_length = self.loaded.arguments().iter().any(|other| other.lengths.iter().any(is_length));
            // What is no single number is a mistake of its own.
            if let (true, [length]) = (is_length, given.numbers.data.as_slice()) {
                if *length < 0.0 {
                    let message = format!("`{name}` is a length, so it cannot be negative");
                    let problem = Problem::new("PAL0283", Exit::Input, message);
                    let help = "give it 0 or more, or leave it out: it follows from the arrays";
                    self.declared_otherwise(at, given, problem.help(help));
                } else {
                    self.meet(&name, *length as usize, at, given);
                }
            }
            return;
        }
        if given.numbers.shape.len() != lengths.len() {
            return;
        }
        for (axis, (&found, spec)) in given.numbers.shape.iter().zip(&lengths).enumerate() {
            match spec {
                LengthSpec::Known(n) if *n != found => {
                    let name = &self.argument(at).name;
                    let message =
                        format!("`{name}` has length {found} along axis {axis}, but the model declares {n}");
                    let help = format!("give it {}", numbers::plural(*n as u64, "element"));
                    let problem = Problem::new("PAL0283", Exit::Input, message);
                    self.declared_otherwise(at, given, problem.help(help));
                }
                LengthSpec::Named(name) => self.meet(name, found, at, given),
                LengthSpec::Known(_) | LengthSpec::Any => {}
            }
        }
    }

    /// What was given is not what the model declares.
    fn declared_otherwise(&mut self, at: usize, given: &Given, problem: Problem) {
        let declared = self.argument(at).span.range();
        self.problems.push(given.origin.place(problem).at(self.loaded.file, declared, "declared here"));
    }

    /// Compares the lengths that files state with those of the arrays.
    fn stated(&mut self) {
        let stated: Vec<_> = self.contents.iter().flat_map(|one| one.lengths.clone()).collect();
        for one in stated {
            let Some(&(length, first)) = self.lengths.get(one.name.as_str()) else { continue };
            if one.length == length as f64 {
                continue;
            }
            let argument = self.argument(first);
            let (name, says) = (&one.name, numbers::plain(one.length));
            let message =
                format!("the length `{name}` of `{}` is {length}, but the data say {says}", argument.name);
            let problem = Problem::new("PAL0288", Exit::Input, message)
                .at(one.file, one.range, format!("`{name}` is {says} here"))
                .at(self.loaded.file, argument.span.range(), format!("and {length} here"));
            self.problems.push(problem.help(format!(
                "correct the field or the array, or leave `{name}` out: it follows from the arrays"
            )));
        }
    }

    fn meet(&mut self, name: &Arc<str>, found: usize, at: usize, given: &Given) {
        let (length, first) = *self.lengths.entry(name.clone()).or_insert((found, at));
        if length == found {
            return;
        }
        let (here, there) = (self.argument(at), self.argument(first));
        let message = format!(
            "`{}` and `{}` must agree on the length `{name}`, but one has {length} and the other {found}",
            there.name, here.name
        );
        let problem = Problem::new("PAL0288", Exit::Input, message)
            .at(self.loaded.file, here.span.range(), format!("`{name}` is {found} here"))
            .at(self.loaded.file, there.span.range(), format!("and {length} here"));
        let problem = given.origin.place(problem);
        self.problems.push(problem.help("give both the same number of elements along that axis"));
    }

    fn finish(mut self, given: Vec<Option<Given>>) -> Result<Vec<Datum<f64>>, Failed> {
        let mut all = Vec::new();
        for (at, one) in given.into_iter().enumerate() {
            match one {
                Some(one) => all.push(datum(self.argument(at), one.numbers)),
                None => self.missing(at),
            }
        }
        if self.problems.is_empty() { Ok(all) } else { Err(Failed(self.problems)) }
    }

    fn missing(&mut self, at: usize) {
        let argument = self.argument(at);
        let name = &argument.name;
        let role = match argument.role {
            Role::Param => "param",
            Role::Input => "input",
        };
        let problem = Problem::new("PAL0282", Exit::Input, format!("the {role} `{name}` has no value")).at(
            self.loaded.file,
            argument.span.range(),
            "it has no default",
        );
        let near = self.contents.iter().find_map(|one| {
            let names: Vec<&str> = one.names.iter().map(String::as_str).collect();
            // A column that another argument takes is not meant.
            let free = |name: &&str| self.loaded.arguments().iter().all(|other| *other.name != **name);
            let names: Vec<&str> = names.into_iter().filter(free).collect();
            Some((one, data::near(&wanted(argument), &names, one.each)?))
        });
        if let Some((one, help)) = near {
            let note = match (argument.ty.rank, one.each) {
                (2, "column") => format!("{} has no columns `{name}0`, `{name}1`, ...", one.file),
                _ => format!("{} has no {} `{name}`", one.file, one.each),
            };
            self.problems.push(problem.note(note).help(help));
            return;
        }
        let from_file = argument.role == Role::Input && argument.ty.rank > 0;
        if let (true, Some(first)) = (from_file, self.contents.first()) {
            let mut problem = problem;
            for one in &self.contents {
                let names: Vec<&str> = one.names.iter().take(12).map(String::as_str).collect();
                let more = if one.names.len() > names.len() { ", ..." } else { "" };
                let has = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                problem = problem.note(format!("{} has {has}{more}", one.file));
            }
            let help = match argument.ty.rank {
                2 if first.each == "column" => format!(
                    "add columns `{name}0`, `{name}1`, ... or give it a file, `--data {name}=file.csv`"
                ),
                _ => format!("add a {} `{name}`, or give it a file, `--data {name}=file.csv`", first.each),
            };
            self.problems.push(problem.help(help));
            return;
        }
        let help = match argument.ty.rank {
            1.. if self.shape(at).is_some() => {
                format!("give it a list, or one number for all its entries, `--set {name}=0.1`")
            }
            0 => format!("give it one, `--set {name}=1.5`, or a default, `{role} {name} = 1.5`"),
            1 => format!("give it a list, `--set {name}=[1,2,3]`, or a data file with a column `{name}`"),
            2 => format!(
                "give it a file, `--data {name}=file.csv`, or a data file with columns `{name}0`, `{name}1`, ..."
            ),
            _ => format!("give it a JSON file with a field `{name}`"),
        };
        self.problems.push(problem.help(help));
    }
}

/// Numbers in the declared unit -> what the program takes.
pub(crate) fn datum(argument: &Argument, numbers: Numbers) -> Datum<f64> {
    let Numbers { shape, mut data } = numbers;
    if argument.ty.elem == Elem::Int {
        return Datum::Int(Tensor { shape, data: data.into_iter().map(|x| x as i64).collect() });
    }
    if let Some(unit) = &argument.unit {
        data.iter_mut().for_each(|x| *x = unit.to_si(*x));
    }
    Datum::Real(Tensor { shape, data })
}

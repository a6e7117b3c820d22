//! Emitted Rust and C compile without a warning, need nothing else, and give the bits of the interpreter:
//! examples, models of the benchmarks, random programs.
//!
//! `PALINODE_PROGRAMS=2000 cargo test --release -p palinode-ir-tests --test all -- --nocapture emit` is the
//! long run; with `PALINODE_SANITIZE=1` the C is built with AddressSanitizer and UBSan. `scripts/miri` runs
//! emitted Rust under Miri.
//!
//! Bits do not depend on what a compiler makes of the text: see [`Flags`].

mod driver;
mod miri;

use std::path::{Path, PathBuf};
use std::process::Command;

use palinode_ir::interp::{Code, Datum, Limits, Tensor};
use palinode_ir::loops::{self, LoopForm, emit};
use palinode_ir::pal::{self, Role};
use palinode_ir::{Elem, Program, Span, passes, transform};

use crate::random::Random;
use crate::random::programs::{self, Kind};

/// A program with what it is given and what it gives.
struct Case {
    name: String,
    form: LoopForm,
    inputs: Vec<Datum<f64>>,
    expected: Vec<Datum<f64>>,
}

impl Case {
    /// Whether it may stop all the same: if infinities stop it, those among the inputs do, too, of which the
    /// interpreter lets results be infinite.
    fn may_stop(&self) -> bool {
        let is_infinite = |input: &Datum<f64>| match input {
            Datum::Real(tensor) => tensor.data.iter().any(|x| !x.is_finite()),
            Datum::Int(_) | Datum::Bool(_) => false,
        };
        self.form.traps && self.inputs.iter().any(is_infinite)
    }
}

/// The case of a program, or why there is none.
fn case(name: String, program: &Program, inputs: &[Datum<f64>], traps: bool) -> Result<Case, String> {
    let limits = Limits { steps: STEPS, trap_nonfinite: traps, ..Limits::default() };
    let form = loops::lower(program, inputs, traps).map_err(|refusal| refusal.what)?;
    emit::supported(&form).map_err(|refusal| refusal.what)?;
    let expected = Code::new(program).run(inputs, &limits).map_err(|error| error.to_string())?;
    Ok(Case { name, form, inputs: inputs.to_vec(), expected })
}

fn nowhere(_: Span) -> Option<u32> {
    None
}

fn tasks(cases: &[Case]) -> Vec<emit::Task<'_>> {
    let names = |what: &str, count: usize| (0..count).map(|at| format!("{what}{at}").into()).collect();
    cases
        .iter()
        .map(|case| emit::Task {
            name: &case.name,
            about: format!("{}.", case.name),
            form: &case.form,
            inputs: names("in", case.form.inputs.len()),
            outputs: names("out", case.form.outputs.len()),
        })
        .collect()
}

/// The words of a datum, one NaN as good as another.
fn words(datum: &Datum<f64>) -> Vec<u64> {
    match datum {
        Datum::Real(tensor) => {
            tensor.data.iter().map(|x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }).collect()
        }
        Datum::Int(tensor) => tensor.data.iter().map(|&n| n as u64).collect(),
        Datum::Bool(tensor) => tensor.data.iter().map(|&x| u64::from(x)).collect(),
    }
}

/// A folder for what one test compiles.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emit").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{}", &errors[..errors.len().min(6000)]);
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a compiler is there.
fn is_there(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok()
}

/// What the cases are given, as one file.
fn write_inputs(folder: &Path, cases: &[Case]) {
    let mut bytes = Vec::new();
    for case in cases {
        for (port, input) in case.form.inputs.iter().zip(&case.inputs) {
            if !driver::is_known(port) {
                words(input).into_iter().for_each(|word| bytes.extend(word.to_le_bytes()));
            }
        }
    }
    std::fs::write(folder.join("inputs"), bytes).unwrap();
}

/// Compares lines of `case word word ...`.
fn compare(cases: &[Case], printed: &str) {
    let mut lines = printed.lines();
    for case in cases {
        let expected: Vec<String> =
            case.expected.iter().flat_map(words).map(|word| format!("{word:x}")).collect();
        let line = lines.next().unwrap_or_default();
        let found: Vec<&str> = line.split_whitespace().collect();
        if found.first() != Some(&"0") && case.may_stop() {
            continue;
        }
        assert_eq!(found.first(), Some(&"0"), "{} stops: {line}\n{}", case.name, case.form);
        assert!(
            found[1..] == expected,
            "{}: {line}, expected {}\n{}",
            case.name,
            expected.join(" "),
            case.form
        );
    }
}

/// Writes the crate `programs`, and what it is given.
fn write_rust(folder: &Path, cases: &[Case]) {
    write_inputs(folder, cases);
    let options = emit::Options { counts: false, line_of: &nowhere };
    for file in emit::rust("programs", &tasks(cases), &options) {
        let path = folder.join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &file.text).unwrap();
    }
}

/// How compilers optimise: all at `PALINODE_OPT_LEVEL` for any processor, or a little.
struct Flags {
    rust: Vec<String>,
    c: String,
}

impl Flags {
    /// In the least time: C without optimisation, Rust for this processor. For any processor it does fused
    /// multiplications and additions by integers, which takes products of matrices ten times as long as
    /// all else.
    fn quick() -> Flags {
        Flags::new("0", Some("-Ctarget-cpu=native"))
    }

    fn usual() -> Flags {
        Flags::new("1", None)
    }

    fn new(c: &str, of_rust: Option<&str>) -> Flags {
        match std::env::var("PALINODE_OPT_LEVEL") {
            Ok(level) => Flags { rust: vec![format!("-Copt-level={level}")], c: format!("-O{level}") },
            Err(_) => {
                let rust = [Some("-Copt-level=1"), of_rust].into_iter().flatten();
                Flags { rust: rust.map(String::from).collect(), c: format!("-O{c}") }
            }
        }
    }
}

fn check_rust(name: &str, flags: &Flags, cases: &[Case]) {
    let folder = folder(&format!("{name}_rust"));
    write_rust(&folder, cases);
    std::fs::write(folder.join("main.rs"), driver::rust(cases)).unwrap();
    let rustc = || {
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "-D", "warnings", "--out-dir"]).arg(&folder);
        rustc
    };
    let mut library = rustc();
    library.args(&flags.rust).args(["--crate-name", "programs", "--crate-type", "rlib"]);
    succeeds(library.arg(folder.join("src/lib.rs")));
    let library = format!("programs={}", folder.join("libprograms.rlib").display());
    succeeds(rustc().arg(folder.join("main.rs")).arg("--extern").arg(library));
    compare(cases, &succeeds(Command::new(folder.join("main")).arg(folder.join("inputs"))));
}

/// Writes `programs.c` and its header.
fn write_c(folder: &Path, cases: &[Case]) {
    let options = emit::Options { counts: false, line_of: &nowhere };
    for file in emit::c("programs", &tasks(cases), &options) {
        std::fs::write(folder.join(&file.path), &file.text).unwrap();
    }
}

fn check_c(name: &str, compiler: &str, flags: &Flags, cases: &[Case]) {
    let folder = folder(&format!("{name}_{compiler}"));
    write_inputs(&folder, cases);
    write_c(&folder, cases);
    std::fs::write(folder.join("main.c"), driver::c(cases)).unwrap();
    let mut build = Command::new(compiler);
    build.arg(&flags.c);
    build.args(["-std=c99", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    if std::env::var_os("PALINODE_SANITIZE").is_some() {
        build.args(["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    }
    build.arg(folder.join("programs.c")).arg(folder.join("main.c")).arg("-o").arg(folder.join("main"));
    succeeds(build.arg("-lm"));
    compare(cases, &succeeds(Command::new(folder.join("main")).arg(folder.join("inputs"))));
}

#[test]
fn c_refuses_arithmetic_that_is_not_exact() {
    let (_, source) = sources().into_iter().find(|(name, _)| name == "examples_square").unwrap();
    let cases: Vec<Case> =
        cases_of("square", &pal::compile(&source).unwrap()).into_iter().flatten().collect();
    let folder = folder("fast_math");
    write_c(&folder, &cases);
    for compiler in ["gcc", "clang"].into_iter().filter(|compiler| is_there(compiler)) {
        let build = |flag: &str| {
            let mut build = Command::new(compiler);
            build.args(["-std=c99", "-O2", flag, "-c", "-o"]).arg(folder.join("programs.o"));
            build.arg(folder.join("programs.c")).output().unwrap()
        };
        for flag in ["-ffast-math", "-Ofast", "-ffinite-math-only"] {
            let refused = build(flag);
            let words = String::from_utf8_lossy(&refused.stderr);
            assert!(!refused.status.success() && words.contains("fast-math"), "{compiler} {flag}: {words}");
        }
        assert!(build("-ffp-contract=off").status.success(), "{compiler}");
    }
}

fn check(name: &str, flags: &Flags, cases: &[Case]) {
    assert!(!cases.is_empty(), "there are programs");
    if is_there("rustc") {
        check_rust(name, flags, cases);
    }
    for compiler in ["gcc", "clang"] {
        if is_there(compiler) {
            check_c(name, compiler, flags, cases);
        }
    }
}

/// What a model's defaults are, in SI.
fn defaults(model: &pal::Model) -> Option<Vec<Datum<f64>>> {
    let one = |argument: &pal::Argument| {
        let default = argument.default.as_ref()?;
        let scale = |x: f64| argument.unit.as_ref().map_or(x, |unit| unit.to_si(x));
        let (shape, data) = (default.shape().to_vec(), default.data().to_vec());
        Some(match argument.ty.elem {
            Elem::F64 | Elem::F32 => {
                Datum::Real(Tensor { shape, data: data.into_iter().map(scale).collect() })
            }
            Elem::Int => Datum::Int(Tensor { shape, data: data.into_iter().map(|x| x as i64).collect() }),
            Elem::Bool => Datum::Bool(Tensor { shape, data: data.into_iter().map(|x| x != 0.0).collect() }),
        })
    };
    model.arguments.iter().map(one).collect()
}

/// Why examples and models have no text yet.
const REFUSED: &[&str] = &[
    "`cholesky`",
    "`solve_step`",
    "a vector whose length depends on data",
    "a sweep that keeps snapshots",
    "a range whose length or step depends on numbers",
];

/// The names and sources of examples and models of the benchmarks.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut paths = Vec::new();
    for folder in ["examples", "benches/models"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        paths.extend(entries.map(|entry| entry.unwrap().path()));
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pal"));
    paths.sort();
    let name = |path: &Path| {
        let folder = path.parent().unwrap().file_name().unwrap().to_string_lossy().to_string();
        format!("{folder}_{}", path.file_stem().unwrap().to_string_lossy())
    };
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// So many rounds and calls are run here, without optimisation.
const STEPS: u64 = 200_000;

/// The value and the gradient of a model by its defaults; nothing of one that needs data.
fn cases_of(name: &str, model: &pal::Model) -> Vec<Result<Case, String>> {
    let Some(inputs) = defaults(model) else { return Vec::new() };
    let wrt: Vec<usize> = (0..inputs.len()).filter(|&at| model.arguments[at].role == Role::Param).collect();
    let mut programs = vec![("value", passes::simplify(&passes::inline(&model.program)))];
    if let Ok(gradient) = transform::value_and_grad(&model.program, &wrt) {
        programs.push(("grad", passes::simplify(&gradient)));
    }
    programs.iter().map(|(what, program)| case(format!("{name}_{what}"), program, &inputs, true)).collect()
}

#[test]
fn examples_give_the_same_bits() {
    let (mut cases, mut refused, mut long) = (Vec::new(), Vec::new(), 0);
    for (name, source) in sources() {
        for found in cases_of(&name, &pal::compile(&source).unwrap()) {
            match found {
                Ok(case) => cases.push(case),
                Err(why) if REFUSED.contains(&&*why) => refused.push(why),
                // A long model; `palinode-native` runs what rustc makes of all of them.
                Err(why) if why.starts_with("PAL0262") => long += 1,
                // The derivative of a strong product in it is infinite.
                Err(_) if name == "examples_covariance" => {}
                Err(why) => panic!("{name}: {why}"),
            }
        }
    }
    println!("{} programs, {long} too long, {} refused: {refused:?}", cases.len(), refused.len());
    assert!(cases.len() > 100 && long <= 4);
    check("examples", &Flags::quick(), &cases);
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn random_programs_give_the_same_bits() {
    let (first, count) = (from_environment("PALINODE_SEED", 0), from_environment("PALINODE_PROGRAMS", 10));
    let mut cases = Vec::new();
    let finish = |cases: &mut Vec<Case>, part: usize| {
        check(&format!("random_{part}"), &Flags::usual(), cases);
        cases.clear();
    };
    for seed in first..first + count {
        for kind in [Kind::Any, Kind::Strong, Kind::Walked] {
            let program = programs::program(seed, 16, kind);
            let inputs = programs::inputs(&mut Random::new(seed));
            let wrt: Vec<usize> =
                (0..inputs.len()).filter(|&at| matches!(inputs[at], Datum::Real(_))).collect();
            let mut family = vec![passes::simplify(&passes::inline(&program))];
            family.extend(
                transform::value_and_grad(&program, &wrt).ok().map(|program| passes::simplify(&program)),
            );
            for program in family {
                let traps = cases.len() % 2 == 0;
                cases.extend(case(format!("p{}", cases.len()), &program, &inputs, traps).ok());
            }
        }
        if cases.len() >= 500 {
            finish(&mut cases, seed as usize);
        }
    }
    if !cases.is_empty() {
        finish(&mut cases, first as usize);
    }
}

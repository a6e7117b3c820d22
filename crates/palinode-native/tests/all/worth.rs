//! When `automatic` asks rustc: by the work, never by the clock; and what it says.

use std::fs;
use std::path::{Path, PathBuf};

use palinode_core::Budget;
use palinode_ir::interp::{Chosen, Code, Datum, Engine, Limits};
use palinode_ir::pal;
use palinode_native::worth::{Asked, rustc};
use palinode_native::{When, automatic_in, machine_code};

#[test]
fn rustc_is_asked_where_it_is_worth_its_price() {
    use Asked::{ALibrary, Nothing, ToCompile};
    // Executed statements, and those of the program: examples; the models of the benchmarks, once and many
    // times; long runs of short and of long programs.
    let cases = [
        (0, 0, Nothing),
        (74_010, 47, Nothing),
        (77_435_432, 172, Nothing),
        (4_999_999_999, 1, Nothing),
        (5_100_000_000, 1, ALibrary),
        (10_000_000_000, 25, ALibrary),
        (100 * 77_435_432, 172, ALibrary),
        (21_000_000_000, 25, ToCompile),
        (20_000_000_000, 282, ALibrary),
        (70_000_000_000, 282, ALibrary),
        (72_000_000_000, 282, ToCompile),
        (1_000_000_000_000, 5_000, ALibrary),
        (1_100_000_000_000, 5_000, ToCompile),
        (u64::MAX, 1_000_000, ToCompile),
        (u64::MAX, u64::MAX, ALibrary),
    ];
    for (work, statements, expected) in cases {
        assert_eq!(rustc(work, statements), expected, "{work} of {statements}");
    }
}

/// A loop of so many rounds, which nobody runs here: what is asked is how it would be run.
fn sines(rounds: &str) -> Code {
    sines_on(&automatic_in(Some(folder("worth"))), rounds)
}

fn sines_on(engine: &Engine, rounds: &str) -> Code {
    let source = format!("param x = 0.3\nvar s = x\nfor i in 0..{rounds} {{ s = 0.5 * s + x }}\nloss y = s");
    Code::on(engine, &pal::compile(&source).unwrap().program)
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("rustc").join(name)
}

fn by(code: &Code, limits: &Limits) -> String {
    match code.prepare(&[Datum::real(0.3)], limits) {
        Chosen::Machine { name, .. } => name.to_string(),
        Chosen::InterpreterBecause(why) => why,
        Chosen::Interpreter => "the interpreter".into(),
    }
}

fn by_name(code: &Code, inputs: &[Datum<f64>]) -> &'static str {
    match code.prepare(inputs, &Limits::default()) {
        Chosen::Machine { name, .. } => name,
        Chosen::InterpreterBecause(_) | Chosen::Interpreter => "the interpreter",
    }
}

const BY_RUSTC: &str = "machine code of rustc";

fn is_there() -> bool {
    std::process::Command::new("rustc").arg("-vV").output().is_ok()
}

#[test]
fn the_longer_a_run_the_more_is_done_for_it() {
    if !is_there() {
        return;
    }
    let limits = Limits::default();
    let _ = fs::remove_dir_all(folder("worth"));
    assert_eq!(by(&sines("100"), &limits), "compiling takes longer than running");
    assert_eq!(by(&sines("1000000"), &limits), "machine code");
    // Long enough for a library, but there is none; then long enough to make one, which is found again.
    assert_eq!(by(&sines("2000000000"), &limits), "machine code");
    assert!(!folder("worth").exists(), "nothing was asked");
    assert_eq!(by(&sines("90000000000"), &limits), BY_RUSTC);
    assert_eq!(fs::read_dir(folder("worth")).unwrap().count(), 1);
    let again = sines("90000000000").prepare(&[Datum::real(0.3)], &limits);
    assert!(matches!(again, Chosen::Machine { name: BY_RUSTC, seconds: 0.0, .. }), "{again:?}");
    assert_eq!(fs::read_dir(folder("worth")).unwrap().count(), 1);
    // Between runs it is compiled for a budget, too.
    let within = Limits { budget: Budget::from(10_000), ..limits };
    assert_eq!(by(&sines("90000000000"), &within), BY_RUSTC);
    // Where there is no folder, and by those who do not ask for it, nothing is made.
    assert_eq!(by(&sines_on(&automatic_in(None), "90000000000"), &limits), "machine code");
    assert_eq!(by(&sines_on(&machine_code(When::Worthwhile), "90000000000"), &limits), "machine code");
}

/// The rounds are data, so that few of them are run, and many are expected.
#[test]
fn many_runs_change_once() {
    if !is_there() {
        return;
    }
    let folder = folder("many");
    let _ = fs::remove_dir_all(&folder);
    // 60 million elements are a run.
    let source = "param a: [n] = [1, 2]\nparam x = 0.3\nvar s = x\nfor i in 0..60 { s = s + sum(x * a + 1) }\nloss y = s";
    let program = pal::compile(source).unwrap().program;
    let inputs = [Datum::vector(vec![0.5; 1_000_000]), Datum::real(0.3)];
    let code = Code::on(&automatic_in(Some(folder.clone())), &program);
    let expected = Code::new(&program).run(&inputs, &Limits::default()).unwrap();
    let mut names = Vec::new();
    for _ in 0..200 {
        let Chosen::Machine { name, seconds, .. } = code.prepare(&inputs, &Limits::default()) else {
            panic!("machine code")
        };
        if names.last() != Some(&name) {
            names.push(name);
            assert!(seconds > 0.0, "it is made now");
        }
        if names.len() == 2 {
            break;
        }
        assert_eq!(code.run(&inputs, &Limits::default()).unwrap(), expected);
    }
    assert_eq!(names, ["machine code", BY_RUSTC]);
    assert_eq!(code.run(&inputs, &Limits::default()).unwrap(), expected);
    // Threads that share a program go on while one of them waits for rustc.
    let code = Code::on(&automatic_in(Some(folder)), &program);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..40 {
                    assert_eq!(code.run(&inputs, &Limits::default()).unwrap(), expected);
                }
            });
        }
    });
    assert_eq!(by_name(&code, &inputs), BY_RUSTC);
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_write_to_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    if !is_there() {
        return;
    }
    let folder = folder("shared");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (mode, expected) in
        [(0o777, "machine code"), (0o770, "machine code"), (0o700, BY_RUSTC), (0o755, BY_RUSTC)]
    {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        let code = sines_on(&automatic_in(Some(folder.clone())), "90000000000");
        assert_eq!(by(&code, &Limits::default()), expected, "{mode:o}");
    }
    // Nor is one that is there already.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let code = sines_on(&automatic_in(Some(folder)), "90000000000");
    assert_eq!(by(&code, &Limits::default()), "machine code");
}

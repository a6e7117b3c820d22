//! Machine code by rustc: the bits of the interpreter, and files that are found again, or made anew if they
//! were changed.
//!
//! `PALINODE_PROGRAMS=100 cargo test --release -p palinode-native --test all rustc -- --nocapture` takes more
//! random programs. (Text of the same forms is compiled by hundreds in `palinode-ir/tests/all/emit.rs`.)

use std::fs;
use std::path::{Path, PathBuf};

use crate::random::Random;
use crate::random::programs::{self, Kind};
use crate::support::{bits, defaults};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::loops::{LoopForm, lower};
use palinode_ir::pal::{self, Role};
use palinode_ir::{Program, passes, transform};
use palinode_native::Native;

/// Whether there is something to test.
fn is_there() -> bool {
    std::process::Command::new("rustc").arg("-vV").output().is_ok()
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rustc").join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn libraries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn limits() -> Limits {
    Limits { steps: 1_000_000, trap_nonfinite: true, ..Limits::default() }
}

/// Whether it ran natively, and then with the bits and steps of the interpreter.
fn agrees(program: &Program, inputs: &[Datum<f64>], folder: &Path) -> bool {
    let Ok(form) = lower(program, inputs, true) else { return false };
    let Ok(native) = Native::by_rustc_in(form.clone(), folder) else { return false };
    let expected = Code::new(program).run_with_stats(inputs, &limits());
    let _ = native.run(inputs, &limits());
    match (expected, native.run(inputs, &limits())) {
        (Ok((expected, stats)), Ok((found, native))) => {
            let (a, b): (Vec<_>, Vec<_>) =
                (expected.iter().map(bits).collect(), found.iter().map(bits).collect());
            assert_eq!(a, b, "{form}");
            assert_eq!(native.steps, stats.steps, "{form}");
            true
        }
        (Err(error), Ok(found)) => {
            panic!("the interpreter stops ({error}), rustc's code gives {found:?}\n{form}")
        }
        (_, Err(_)) => false,
    }
}

fn gradient(name: &str) -> (Program, Vec<Datum<f64>>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../{name}.pal"));
    let model = pal::compile(&fs::read_to_string(path).unwrap()).unwrap();
    let inputs = defaults(&model).unwrap();
    let wrt: Vec<usize> = (0..inputs.len()).filter(|&at| model.arguments[at].role == Role::Param).collect();
    (passes::simplify(&transform::value_and_grad(&model.program, &wrt).unwrap()), inputs)
}

#[test]
fn models_give_the_same_bits() {
    if !is_there() {
        return;
    }
    let folder = folder("models");
    for name in ["examples/drag", "examples/sine_loop", "benches/models/lorenz", "benches/models/lstm"] {
        let (program, inputs) = gradient(name);
        assert!(agrees(&program, &inputs, &folder), "{name} runs");
    }
}

#[test]
fn random_programs_give_the_same_bits() {
    if !is_there() {
        return;
    }
    let count = std::env::var("PALINODE_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(4);
    let folder = folder("random");
    let mut same = 0;
    for seed in 0..count {
        let program = programs::program(seed, 16, Kind::Any);
        let inputs = programs::inputs(&mut Random::new(seed));
        same += usize::from(agrees(&passes::simplify(&program), &inputs, &folder));
    }
    println!("{same} of {count} ran");
}

fn small() -> (LoopForm, Vec<Datum<f64>>) {
    let (program, inputs) = gradient("examples/square");
    (lower(&program, &inputs, true).unwrap(), inputs)
}

#[test]
fn libraries_are_found_again_and_made_anew_if_they_were_changed() {
    if !is_there() {
        return;
    }
    let folder = folder("kept");
    let (form, inputs) = small();
    let run = || {
        let native = Native::by_rustc_in(form.clone(), &folder).unwrap();
        native.run(&inputs, &limits()).unwrap().0
    };
    let expected = run();
    let [library] = &libraries(&folder)[..] else { panic!("one library, and nothing else") };
    let (bytes, made) = (fs::read(library).unwrap(), fs::metadata(library).unwrap().modified().unwrap());
    assert_eq!(run(), expected);
    assert_eq!(fs::metadata(library).unwrap().modified().unwrap(), made, "it is not made again");
    // Cut short, changed, empty: none is loaded.
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 1;
    for wrong in [&bytes[..bytes.len() / 2], &changed, &[]] {
        // A file that is loaded must not be written to.
        fs::remove_file(library).unwrap();
        fs::write(library, wrong).unwrap();
        assert_eq!(run(), expected);
        let found = libraries(&folder);
        assert_eq!(found.len(), 1);
        assert!(fs::read(&found[0]).unwrap() != wrong);
    }
}

#[test]
fn several_threads_compile_the_same_program() {
    if !is_there() {
        return;
    }
    let folder = folder("together");
    let (form, inputs) = small();
    let run = || Native::by_rustc_in(form.clone(), &folder).unwrap().run(&inputs, &limits()).unwrap().0;
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(!libraries(&folder).is_empty());
}

//! Runs programs natively and by the interpreter, and compares.

use palinode_core::Budget;
use palinode_ir::Program;
use palinode_ir::interp::{Code, Datum, Limits, Tensor};
use palinode_ir::pal::Role;
use palinode_ir::{loops, pal};
use palinode_native::Native;

/// What became of a program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Both give the same bits.
    Same,
    /// Both fail.
    BothStop(String),
    /// It stopped natively only; the interpreter runs it.
    Slow,
    /// There is no loop form.
    Refused(String),
}

pub(crate) fn bits(datum: &Datum<f64>) -> Vec<u64> {
    match datum {
        // One NaN is as good as another.
        Datum::Real(tensor) => {
            tensor.data.iter().map(|x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }).collect()
        }
        Datum::Int(tensor) => tensor.data.iter().map(|&n| n as u64).collect(),
        Datum::Bool(tensor) => tensor.data.iter().map(|&x| u64::from(x)).collect(),
    }
}

/// Runs a program both ways.
pub(crate) fn compare(program: &Program, inputs: &[Datum<f64>], traps: bool) -> Result<Outcome, String> {
    let limits = Limits { steps: 1_000_000, trap_nonfinite: traps, ..Limits::default() };
    let expected = Code::new(program).run_with_stats(inputs, &limits);
    let form = match loops::lower(program, inputs, traps) {
        Ok(form) => form,
        Err(refusal) => return Ok(Outcome::Refused(refusal.what)),
    };
    loops::verify(&form).map_err(|error| format!("the verifier: {error}\n{form}"))?;
    // Places in the source are not part of the text.
    let unplaced = loops::LoopForm { spans: Vec::new(), origins: Vec::new(), ..form.clone() };
    if loops::parse(&form.to_string()) != Ok(unplaced) {
        return Err(format!("it is not read back\n{form}"));
    }
    let native = Native::new(form.clone()).map_err(|refused| format!("refused: {}\n{form}", refused.0))?;
    // Twice: what a run leaves behind must not matter.
    let _ = native.run(inputs, &limits);
    let found = native.run(inputs, &limits);
    match (expected, found) {
        (Ok((expected, stats)), Ok((found, taken))) => {
            let (a, b): (Vec<_>, Vec<_>) =
                (expected.iter().map(bits).collect(), found.iter().map(bits).collect());
            let shapes = expected.iter().zip(&found).all(|(a, b)| a.shape() == b.shape());
            if a != b || !shapes {
                return Err(format!("results differ: {expected:?} and {found:?}\n{form}"));
            }
            if taken.steps != stats.steps {
                return Err(format!("steps differ: {} and {}\n{form}", stats.steps, taken.steps));
            }
            within_budgets(&native, inputs, &limits, &found)?;
            in_pieces(form, inputs, &limits, (&b, stats.steps))?;
            Ok(Outcome::Same)
        }
        (Err(error), Err(_)) => Ok(Outcome::BothStop(error.to_string())),
        (Ok(_), Err(_)) => Ok(Outcome::Slow),
        (Err(error), Ok(found)) => {
            Err(format!("the interpreter stops ({error}), machine code gives {found:?}\n{form}"))
        }
    }
}

/// As several functions, a program gives the same bits: also where a run finds what another one left.
fn in_pieces(
    form: loops::LoopForm,
    inputs: &[Datum<f64>],
    limits: &Limits,
    (expected, steps): (&[Vec<u64>], u64),
) -> Result<(), String> {
    // Cut almost everywhere, and with some loops whole.
    for most in [1, 7] {
        let native = Native::in_pieces(form.clone(), most).map_err(|refused| refused.0)?;
        for _ in 0..2 {
            let (found, stats) =
                native.run(inputs, limits).map_err(|_| format!("in pieces it stops\n{form}"))?;
            if found.iter().map(bits).ne(expected.iter().cloned()) || stats.steps != steps {
                return Err(format!("other results in pieces of {most}: {found:?}\n{form}"));
            }
        }
    }
    Ok(())
}

/// A budget of what a run took is kept, with the same bits; of what a run takes at least, one byte less is
/// too little.
fn within_budgets(
    native: &Native,
    inputs: &[Datum<f64>],
    limits: &Limits,
    expected: &[Datum<f64>],
) -> Result<(), String> {
    let within = |bytes: usize| native.run(inputs, &Limits { budget: Budget::from(bytes), ..*limits });
    if native.bytes() > 0 && within(native.bytes() - 1).is_ok() {
        return Err(format!("a run within {} bytes", native.bytes() - 1));
    }
    for bytes in [native.bytes(), native.bytes() * 8 + (1 << 20)] {
        // Operations of the interpreter, and what grows, take more.
        let Ok((found, stats)) = within(bytes) else { continue };
        if stats.heap_bytes > bytes {
            return Err(format!("{} bytes within {bytes}", stats.heap_bytes));
        }
        if found.iter().map(bits).ne(expected.iter().map(bits)) {
            return Err(format!("other results within {bytes} bytes: {found:?} and {expected:?}"));
        }
    }
    Ok(())
}

/// Every example that needs no data: its name, itself, its inputs, and the positions of its params.
pub(crate) fn each_example(mut look: impl FnMut(&str, &pal::Model, &[Datum<f64>], &[usize])) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut paths: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "pal")) {
        let model = pal::compile(&std::fs::read_to_string(path).unwrap()).unwrap();
        let Some(inputs) = defaults(&model) else { continue };
        let wrt: Vec<usize> =
            (0..inputs.len()).filter(|&at| model.arguments[at].role == Role::Param).collect();
        look(&path.file_stem().unwrap().to_string_lossy(), &model, &inputs, &wrt);
    }
}

/// The inputs that a model's defaults are.
pub(crate) fn defaults(model: &pal::Model) -> Option<Vec<Datum<f64>>> {
    model
        .arguments
        .iter()
        .map(|argument| {
            let default = argument.default.as_ref()?;
            let scale = |x: f64| argument.unit.as_ref().map_or(x, |unit| unit.to_si(x));
            let (shape, data) = (default.shape().to_vec(), default.data().to_vec());
            Some(match argument.ty.elem {
                palinode_ir::Elem::F64 | palinode_ir::Elem::F32 => {
                    Datum::Real(Tensor { shape, data: data.into_iter().map(scale).collect() })
                }
                palinode_ir::Elem::Int => {
                    Datum::Int(Tensor { shape, data: data.into_iter().map(|x| x as i64).collect() })
                }
                palinode_ir::Elem::Bool => {
                    Datum::Bool(Tensor { shape, data: data.into_iter().map(|x| x != 0.0).collect() })
                }
            })
        })
        .collect()
}

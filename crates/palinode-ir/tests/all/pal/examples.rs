//! The programs in `examples`: they compile without a warning, are laid out, run as they are, and have the
//! gradients that finite differences say.

use super::{compile, flat};
use palinode_core::Dual;
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::pal::{self, Model, Role};
use palinode_ir::text;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

pub(crate) fn examples() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(root().join("examples")).unwrap();
    let mut found: Vec<(String, String)> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pal"))
        .map(|path| {
            (path.file_stem().unwrap().to_string_lossy().into(), std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() > 50);
    found
}

/// The columns of the file that a comment `# data: ...` names.
fn columns(source: &str) -> HashMap<String, Vec<f64>> {
    let Some(path) = source.lines().find_map(|line| line.strip_prefix("# data: ")) else {
        return HashMap::new();
    };
    let text = std::fs::read_to_string(root().join(path.trim())).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut columns: HashMap<String, Vec<f64>> = HashMap::new();
    for line in lines {
        for (name, cell) in names.iter().zip(line.split(',')) {
            columns.entry((*name).to_string()).or_default().push(cell.parse().unwrap());
        }
    }
    columns
}

pub(crate) fn inputs(model: &Model) -> Vec<Datum<f64>> {
    let columns = columns(&model.source);
    let one = |argument: &pal::Argument| {
        let (shape, data) = match (columns.get(&*argument.name), &argument.default) {
            (Some(column), _) => (vec![column.len()], column.clone()),
            (None, Some(default)) => (default.shape().to_vec(), default.data().to_vec()),
            (None, None) => panic!("`{}` has neither data nor a default", argument.name),
        };
        super::datum(argument, shape, &data)
    };
    model.arguments.iter().map(one).collect()
}

#[test]
fn they_compile_without_a_warning_and_are_laid_out() {
    let list = std::fs::read_to_string(root().join("examples/README.md")).unwrap();
    for (name, source) in examples() {
        assert!(list.contains(&format!("[{name}]({name}.pal)")), "{name} is not in the list of examples");
        let model = compile(&source);
        let warnings: String = model.warnings.iter().map(|warning| warning.plain(&source)).collect();
        assert!(warnings.is_empty(), "{name}:\n{warnings}");
        assert!(source.starts_with("# "), "{name} does not say what it shows");
        assert_eq!(pal::format(&source).unwrap(), source, "{name} is not laid out");
        for function in &model.program.functions {
            function.body.for_each_inst(&mut |inst| {
                assert!(!inst.span.is_none(), "{name}: `{}` has no place in the source", inst.op.name());
            });
        }
        let printed = text::print(&model.program);
        assert_eq!(text::print(&text::parse(&printed).unwrap()), printed, "{name}");
        let ssa = pal::ssa(&source).unwrap();
        assert_eq!(ssa.len(), source.lines().count(), "{name}");
    }
}

#[test]
fn they_run_and_their_gradients_agree_with_differences() {
    for (name, source) in examples() {
        let model = compile(&source);
        let code = Code::new(&model.program);
        let run = |inputs: &[Datum<f64>]| {
            code.run(inputs, &Limits::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let given = inputs(&model);
        let outputs = flat(&run(&given));
        assert!(outputs.iter().all(|x| x.is_finite()), "{name}: {outputs:?}");
        for (which, argument) in model.arguments.iter().enumerate() {
            if argument.role != Role::Param {
                continue;
            }
            let Datum::Real(tensor) = &given[which] else { panic!("{name}: a param is real") };
            for at in 0..tensor.data.len().min(4) {
                let moved = |by: f64| {
                    let mut given = given.clone();
                    if let Datum::Real(tensor) = &mut given[which] {
                        tensor.data[at] += by;
                    }
                    flat(&run(&given))[0]
                };
                let h = 1e-6 * tensor.data[at].abs().max(1e-3);
                let difference = (moved(h) - moved(-h)) / (2.0 * h);
                let mut duals: Vec<Datum<Dual<f64>>> =
                    given.iter().map(|datum| datum.map(|x| Dual::new(x, 0.0))).collect();
                if let Datum::Real(tensor) = &mut duals[which] {
                    tensor.data[at].tangent = 1.0;
                }
                let slope = match &code.run(&duals, &Limits::default()).unwrap()[0] {
                    Datum::Real(tensor) => tensor.data[0].tangent,
                    Datum::Int(_) | Datum::Bool(_) => panic!("{name}: the first output is real"),
                };
                let scale = slope.abs().max(outputs[0].abs()).max(1.0);
                assert!(
                    (slope - difference).abs() < 1e-4 * scale,
                    "{name}: d/d{}[{at}] is {slope}, differences say {difference}",
                    argument.name
                );
            }
        }
    }
}

#[test]
fn what_they_give() {
    let first = |name: &str| {
        let (_, source) = examples().into_iter().find(|(found, _)| found == name).unwrap();
        let model = compile(&source);
        flat(&Code::new(&model.program).run(&inputs(&model), &Limits::default()).unwrap())
    };
    let close =
        |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    close(first("square")[0], 10.0);
    close(first("historical_value")[0], 4.0);
    close(first("time_sequence")[0], 9.0);
    close(first("interleaving")[0], 12.0);
    close(first("interleaving")[1], 11.0);
    close(first("repeated_squaring")[0], 1.1_f64.powi(8));
    close(first("doubling")[0], 1.2);
    close(first("fusion_before")[0], first("fusion_after")[0]);
    close(first("views")[0], 1.0 + 4.0 + 9.0 + 256.0 + 25.0 + 36.0);
    close(first("replay_events")[0], (((100.0 + 50.0 - 30.5) * 1.02 + 20.0 - 60.5) * 1.02) * 1.02);
    // kitten -> sitting: two substitutions and an insertion.
    close(first("edit_distance")[0], 2.0 * 1.3 + 1.0);
    // The value of Lambert's W at 3.
    close(first("newton")[0], 1.049_908_894_964_04);
    close(first("dynamic_loop")[1], 30.0);
    // The same formula in Python.
    close(first("black_scholes")[0], 5.741_433_285_485_613);
}

/// An output that is a variable is shown on its own line, not on the line before.
#[test]
fn outputs_are_shown_on_their_lines() {
    let lines = pal::ssa("param a = 2\nvar x = a * a\noutput y = x\noutput w = a\nloss l = x").unwrap();
    let shown: Vec<String> = lines.iter().map(|line| line.assignments.join("; ")).collect();
    assert_eq!(shown, ["a0 = param", "x0 = mul a0 a0", "y0 = x0", "w0 = a0", "l0 = x0"]);
}

//! `--json`: what `docs/book/json.md` promises to programs.

use serde_json::Value;

use crate::transcript::{answer as json, flat, models, palinode};

#[test]
fn every_answer_says_its_schema_and_command() {
    for line in [
        "run drag.pal",
        "grad drag.pal --check",
        "jvp drag.pal --direction v0=1",
        "hessian drag.pal",
        "memory drag.pal --budget 64KiB",
        "tape tiny.pal",
        "ir tiny.pal --all-passes",
        "ir tiny.pal --ssa",
        "check drag.pal fit.pal",
        "fmt tiny.pal",
        "help grad",
    ] {
        let (answer, code) = json(line);
        assert_eq!((&answer["schema"], code), (&Value::from(2), 0), "{line}");
        assert_eq!(answer["command"], line.split(' ').next().unwrap(), "{line}");
    }
}

#[test]
fn every_answer_says_what_it_means() {
    let fixed = |names: &[&str]| serde_json::json!(names);
    for (line, meaning, inputs) in [
        ("run drag.pal", Value::Null, Value::Null),
        ("memory drag.pal", Value::Null, Value::Null),
        ("grad missing.pal", Value::Null, Value::Null),
        ("grad drag.pal --wrt v0", "pathwise".into(), fixed(&["k", "mark"])),
        ("hessian drag.pal", "pathwise".into(), fixed(&["mark"])),
        ("jvp drag.pal --direction k=1", "pathwise".into(), fixed(&["v0", "mark"])),
        ("loop drag.pal", "pathwise".into(), fixed(&["mark"])),
        ("tape tiny.pal", "pathwise".into(), fixed(&[])),
    ] {
        let (answer, _) = json(line);
        assert_eq!(answer["meaning"], meaning, "{line}");
        assert_eq!(answer["held_fixed"]["inputs"], inputs, "{line}: {answer}");
        for field in ["unit", "standard_error"] {
            assert!(answer.as_object().unwrap()[field].is_null(), "{line}");
        }
    }
    // What the run decided, and how often loops went round that end by data.
    let (answer, _) = json("grad kepler.pal --check");
    let fixed = &answer["held_fixed"];
    assert_eq!(fixed["decisions"], answer["decisions"]["count"]);
    assert_eq!(fixed["rounds"][0]["least"], fixed["rounds"][0]["most"]);
    assert!(fixed["rounds"][0]["least"].as_u64() > Some(0) && fixed["rounds"][0]["line"] == 4, "{answer}");
    assert!(json("grad kepler.pal").0["held_fixed"]["decisions"].is_null());
}

#[test]
fn numbers_come_back_bit_by_bit() {
    let (answer, _) = json("run drag.pal");
    let x = answer["outputs"][0]["value"].as_f64().unwrap();
    let (again, _) = json("run drag.pal");
    assert_eq!(x.to_bits(), again["outputs"][0]["value"].as_f64().unwrap().to_bits());
    let (answer, _) = json("grad drag.pal --set v0=0.1");
    assert_eq!(answer["gradient"][0]["at"].as_f64(), Some(0.1));
}

#[test]
fn what_is_not_finite_is_a_string() {
    let (answer, code) = json("grad div.pal --allow-nonfinite");
    assert_eq!(code, 0);
    assert_eq!(answer["output"]["value"], "inf");
    assert_eq!(answer["gradient"][0]["gradient"], "-inf");
}

#[test]
fn errors_have_a_code_and_a_place() {
    for (line, code, exit, place) in [
        ("grad missing.pal", "PAL0282", 1, Some(("missing.pal", 1))),
        ("grad fit.pal --data nan.csv", "PAL0284", 1, Some(("nan.csv", 3))),
        ("grad fit.pal --data text.csv", "PAL0285", 1, Some(("text.csv", 3))),
        ("grad fit.pal --data ragged.csv", "PAL0286", 1, Some(("ragged.csv", 3))),
        ("grad fit.pal --data short.json", "PAL0288", 1, Some(("fit.pal", 3))),
        ("grad div.pal", "PAL0260", 3, Some(("div.pal", 3))),
        ("grad root.pal", "PAL0293", 3, Some(("root.pal", 2))),
        ("grad index.pal", "PAL0253", 3, Some(("index.pal", 3))),
        ("grad endless.pal --max-rounds 100000", "PAL0262", 3, Some(("endless.pal", 3))),
        ("grad nowhere.pal", "PAL0281", 1, None),
        ("grad drag.pal --set vo=1", "PAL0289", 2, Some(("command line", 1))),
        ("grad drag.pal --set v0=", "PAL0290", 2, Some(("command line", 1))),
        ("grad drag.pal --wrt vo", "PAL0289", 2, None),
        ("grad drag.pal --set v0=inf", "PAL0290", 2, Some(("command line", 1))),
        ("run nan.pal", "PAL0260", 3, Some(("nan.pal", 3))),
        ("grad fit.pal --data twice.csv", "PAL0287", 1, Some(("twice.csv", 1))),
        ("grad", "PAL0298", 2, None),
        ("grad drag.pal --budget 8B", "PAL0412", 1, None),
        ("grad drag.pal --budget 1K", "PAL0108", 2, Some(("command line", 1))),
        ("grad drag.pal --store vv=keep", "PAL0289", 2, Some(("command line", 1))),
        ("memory kepler.pal --budget 1KiB", "PAL0410", 1, Some(("kepler.pal", 4))),
    ] {
        let (answer, found) = json(line);
        assert_eq!(found, exit, "{line}: {answer}");
        assert_eq!(answer["exit"], exit, "{line}");
        assert_eq!(answer["command"], line.split(' ').next().unwrap(), "{line}");
        let error = &answer["errors"][0];
        assert_eq!(error["code"], code, "{line}");
        assert_eq!(error["severity"], "error");
        if let Some((file, number)) = place {
            let label = &error["labels"][0];
            assert_eq!(
                (&label["file"], &label["line"]),
                (&Value::from(file), &Value::from(number)),
                "{line}"
            );
        }
    }
}

#[test]
fn modes_agree() {
    for model in ["drag.pal", "table.pal --wrt gap,a,b", "kepler.pal", "views.pal", "fit.pal"] {
        let of = |mode: &str| {
            let (answer, code) = json(&format!("grad {model} --mode {mode}"));
            assert_eq!(code, 0, "{model}: {answer}");
            let parts = answer["gradient"].as_array().unwrap().iter();
            parts.flat_map(|part| flat(&part["gradient"])).collect::<Vec<f64>>()
        };
        let (forward, reverse) = (of("forward"), of("reverse"));
        assert_eq!(forward.len(), reverse.len());
        // Entries that cancel are only as good as the largest.
        let scale = forward.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
        for (f, r) in forward.iter().zip(&reverse) {
            assert!((f - r).abs() <= 1e-13 * scale, "{model}: {f} and {r}");
        }
    }
}

/// What the program text looks like is for the transforms and passes to decide; that it is the right one is
/// for us.
#[test]
fn derivatives_are_shown_as_programs() {
    for (what, outputs) in [
        ("grad", "outputs (y, grad_x1, grad_x2)"),
        ("jvp", "outputs (y, dy)"),
        ("vjp", "outputs (y, grad_x1, grad_x2)"),
        ("jacobian", "outputs (dy_dx1, dy_dx2)"),
        ("hessian", "outputs (dgrad_x1_dx1, dgrad_x1_dx2, dgrad_x2_dx1, dgrad_x2_dx2)"),
    ] {
        let (answer, code) = json(&format!("ir tiny.pal --derivative {what}"));
        let text = answer["programs"][0]["text"].as_str().unwrap();
        assert!(code == 0 && text.contains(outputs), "{what}: {text}");
    }
    let (simplified, _) = json("ir tiny.pal --derivative grad");
    let (stages, _) = json("ir tiny.pal --derivative grad --all-passes");
    let stages = stages["programs"].as_array().unwrap();
    assert!(stages.len() > 5);
    assert!(stages[0]["instructions"].as_u64() >= simplified["programs"][0]["instructions"].as_u64());
}

#[test]
fn a_run_does_not_pay_for_calls_of_small_functions() {
    let run = |model: &str| json(&format!("run {model} --json")).0;
    let (calling, written_out) = (run("calling.pal"), run("written_out.pal"));
    assert_eq!(calling["steps"], written_out["steps"]);
    assert_eq!(calling["outputs"][0]["value"], written_out["outputs"][0]["value"]);
    // What goes wrong is still found where it is written.
    let (text, code) = palinode(&models(), &["run".to_string(), "failing_call.pal".to_string()]);
    assert!(code == 3 && text.contains("it happened in the function `f`"), "{text}");
}

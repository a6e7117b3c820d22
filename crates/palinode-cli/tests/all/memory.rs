//! Memory: what is predicted is what a run takes, and a budget is kept without a change of the gradient.

use std::path::PathBuf;

use serde_json::Value;

use crate::transcript::{self, flat};

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn json(words: &[&str]) -> (Value, i32) {
    transcript::json(&examples(), words)
}

fn bytes(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number of bytes"))
}

/// The numbers of a gradient, as bits.
fn gradient(answer: &Value) -> Vec<u64> {
    let parts = answer["gradient"].as_array().unwrap().iter().map(|part| &part["gradient"]);
    [&answer["output"]["value"]].into_iter().chain(parts).flat_map(flat).map(f64::to_bits).collect()
}

/// The models among the examples, by name.
fn example_names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(examples())
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".pal"))
        .collect();
    names.sort();
    names
}

#[test]
fn predictions_are_what_runs_take() {
    let names = example_names();
    let (mut exact, mut measured) = (0, 0);
    for name in &names {
        let (memory, code) = json(&["memory", name, "--engine", "interpret"]);
        assert_eq!(code, 0, "{name}: {memory}");
        if memory["gradient"].is_null() {
            continue;
        }
        let (run, code) = json(&["grad", name, "--mode", "reverse", "--engine", "interpret"]);
        assert_eq!(code, 0, "{name}: {run}");
        let (predicted, taken) =
            (bytes(&memory["gradient"]["peak_bytes"]), bytes(&run["memory"]["arrays_peak_bytes"]));
        match memory["gradient"]["known"].as_str().unwrap() {
            "bound" => assert!(taken <= predicted, "{name}: {taken} of at most {predicted}"),
            known => {
                assert_eq!(predicted, taken, "{name}");
                exact += usize::from(known == "exact");
                measured += usize::from(known == "measured");
            }
        }
    }
    assert!(exact > 35 && measured >= 5, "{exact} {measured}");
}

#[test]
fn what_machine_code_takes_is_known_before_it_runs() {
    let (mut exact, mut growing) = (0, 0);
    for name in &example_names() {
        let (memory, code) = json(&["memory", name, "--engine", "jit"]);
        assert_eq!(code, 0, "{name}: {memory}");
        let engine = &memory["gradient"]["engine"];
        if engine["by"] != "machine code" {
            continue;
        }
        let (run, code) = json(&["grad", name, "--mode", "reverse", "--engine", "jit"]);
        assert_eq!(code, 0, "{name}: {run}");
        if run["engine"]["by"] != "machine code" {
            continue;
        }
        let (said, taken) = (bytes(&engine["bytes"]), bytes(&run["memory"]["charged_bytes"]));
        match engine["grows"].as_bool().unwrap() {
            true => assert!(said <= taken, "{name}: {taken}, at least {said} said"),
            false => assert_eq!(said, taken, "{name}"),
        }
        exact += usize::from(engine["grows"] == false);
        growing += usize::from(engine["grows"] == true);
    }
    assert!(exact > 35 && growing > 1, "{exact} {growing}");
}

#[test]
fn arrays_that_live_together_do_not_overlap() {
    for name in ["rnn.pal", "activations.pal", "heat.pal", "table.pal", "memory_mlp.pal", "adam.pal"] {
        let (memory, _) = json(&["memory", name]);
        // Of each piece of memory: where it is, and from when to when.
        let mut buffers: std::collections::BTreeMap<&str, (u64, u64, u64, u64)> = Default::default();
        for row in memory["arrays"].as_array().unwrap() {
            let point = |field: &str| match &row[field] {
                Value::Null => None,
                point => Some(point["point"].as_u64().unwrap_or(u64::MAX)),
            };
            let born = point("born").map_or(0, |born| born + 1);
            let last = point("forward").max(point("reverse")).unwrap_or(born);
            let (from, size) = (bytes(&row["offset"]), bytes(&row["bytes"]));
            let all = buffers.entry(row["buffer"].as_str().unwrap()).or_insert((from, 0, born, last));
            assert_eq!(all.0, from, "{name}: {row}");
            *all = (from, all.1.max(size), all.2.min(born), all.3.max(last));
        }
        let all: Vec<_> = buffers.iter().collect();
        assert!(!all.is_empty());
        for (at, (one, a)) in all.iter().enumerate() {
            assert!(a.0 + a.1 <= bytes(&memory["arena_bytes"]), "{name}: {one} lies outside");
            for (other, b) in &all[..at] {
                let together = a.2 < b.3 && b.2 < a.3;
                let overlap = a.0 < b.0 + b.1 && b.0 < a.0 + a.1;
                assert!(!(together && overlap), "{name}: {one} {a:?} and {other} {b:?}");
            }
        }
    }
}

#[test]
fn a_budget_is_kept_and_the_gradient_keeps_its_bits() {
    for name in ["memory_mlp.pal", "memory_rnn.pal", "rnn.pal", "heat.pal", "activations.pal"] {
        let (free, _) = json(&["grad", name, "--mode", "reverse", "--engine", "interpret"]);
        let by = |engine: &str, budget: &str| {
            json(&["grad", name, "--mode", "reverse", "--engine", engine, "--budget", budget])
        };
        let within = |budget: &str| by("interpret", budget);
        let (refused, code) = within("0");
        assert_eq!((code, &refused["errors"][0]["code"]), (1, &Value::from("PAL0412")), "{name}");
        let help = refused["errors"][0]["help"].as_str().unwrap();
        let smallest = help.strip_prefix("--budget ").unwrap().split(' ').next().unwrap();
        let (answer, code) = within(smallest);
        assert_eq!(code, 0, "{name} {smallest}: {answer}");
        let least = bytes(&answer["budget"]["planned_bytes"]);
        let most = bytes(&answer["budget"]["store_all_bytes"]);
        // What the refusal calls the smallest is: a byte less is refused.
        for engine in ["interpret", "jit"] {
            let (_, code) = by(engine, &(least - 1).to_string());
            assert_eq!(code, 1, "{name}");
        }
        let mut work = f64::INFINITY;
        for part in 0..=2 {
            let budget = least + (most - least) * part / 2;
            let (answer, code) = within(&budget.to_string());
            assert_eq!(code, 0, "{name} {budget}: {answer}");
            let taken = bytes(&answer["memory"]["charged_bytes"]);
            assert!(taken <= budget, "{name}: {taken} of {budget}");
            assert_eq!(taken, bytes(&answer["budget"]["planned_bytes"]), "{name}");
            assert_eq!(gradient(&answer), gradient(&free), "{name} {budget}");
            // Machine code stays within it, too, or is left to the interpreter.
            let (native, code) = by("jit", &budget.to_string());
            assert_eq!((code, gradient(&native)), (0, gradient(&free)), "{name} {budget}");
            assert!(bytes(&native["memory"]["charged_bytes"]) <= budget, "{name} {budget}: {native}");
            let now = answer["budget"]["work"].as_f64().unwrap();
            assert!(now <= work * 1.0001, "{name}: {now} times the work in {budget}, {work} in less");
            work = now;
        }
    }
}

#[test]
fn what_is_stored_does_not_change_the_gradient() {
    let (free, _) = json(&["grad", "memory_rnn.pal"]);
    let mut peaks = Vec::new();
    for how in ["nothing", "cheap", "elementwise", "anything"] {
        let (answer, code) = json(&["grad", "memory_rnn.pal", "--recompute", how]);
        assert_eq!((code, &answer["memory"]["recompute"]), (0, &Value::from(how)));
        assert_eq!(gradient(&answer), gradient(&free), "{how}");
        peaks.push(bytes(&answer["memory"]["arrays_peak_bytes"]));
    }
    assert!(peaks.windows(2).all(|pair| pair[1] <= pair[0]) && peaks[3] < peaks[0], "{peaks:?}");
    let (kept, _) = json(&["grad", "memory_rnn.pal", "--recompute", "anything", "--store", "drive=keep"]);
    assert_eq!(gradient(&kept), gradient(&free));
    assert_ne!(bytes(&kept["memory"]["arrays_peak_bytes"]), peaks[3]);
    // In fewer bits it takes less, and is rounded by what is said.
    let (rounded, code) =
        json(&["grad", "memory_rnn.pal", "--recompute", "nothing", "--narrow", "state=bf16"]);
    assert_eq!(code, 0);
    assert!(bytes(&rounded["memory"]["arrays_peak_bytes"]) < peaks[0], "{}", rounded["memory"]);
    let error = rounded["memory"]["narrowing_error"].as_f64().unwrap();
    assert!(error > 0.0 && error < 0.01, "{error}");
    assert_ne!(gradient(&rounded), gradient(&free));
    // What `--recompute` says holds within a budget as well.
    let (answer, _) = json(&["grad", "memory_rnn.pal", "--recompute", "anything"]);
    let budget = answer["memory"]["charged_bytes"].to_string();
    let (_, code) = json(&["grad", "memory_rnn.pal", "--recompute", "nothing", "--budget", &budget]);
    assert_eq!(code, 1);
    let (_, code) = json(&["grad", "memory_rnn.pal", "--recompute", "anything", "--budget", &budget]);
    assert_eq!(code, 0);
}

#[test]
fn memory_that_depends_on_data_is_stopped_in_time() {
    let (free, _) = json(&["grad", "drag_flight.pal"]);
    let (answer, code) = json(&["grad", "drag_flight.pal", "--budget", "1MiB"]);
    assert_eq!((code, gradient(&answer)), (0, gradient(&free)));
    let taken = bytes(&answer["memory"]["charged_bytes"]);
    let (answer, code) = json(&["grad", "drag_flight.pal", "--budget", &taken.to_string()]);
    assert_eq!((code, gradient(&answer)), (0, gradient(&free)));
    // Less than that makes it compute more again.
    let (answer, code) = json(&["grad", "drag_flight.pal", "--budget", &(taken - 1).to_string()]);
    assert_eq!((code, gradient(&answer)), (0, gradient(&free)));
    assert!(bytes(&answer["memory"]["charged_bytes"]) < taken);
    // With little memory loops keep a few snapshots; with next to none it is stopped.
    let (answer, code) = json(&["grad", "drag_flight.pal", "--budget", "12KiB"]);
    assert_eq!((code, gradient(&answer)), (0, gradient(&free)));
    assert!(bytes(&answer["memory"]["charged_bytes"]) <= 12288);
    let (answer, code) = json(&["grad", "drag_flight.pal", "--budget", "16B"]);
    assert_eq!((code, &answer["errors"][0]["code"]), (3, &Value::from("PAL0275")));
}

/// Every budget that a refusal names, as it is typed: the least, in bytes, and those of its help.
fn named(refusal: &Value) -> Vec<String> {
    let words = |field: &str| refusal["errors"][0][field].as_str().unwrap_or("").to_string();
    let message = words("message");
    let least = message.split_once("at least ").map(|(_, rest)| match rest.split_once('(') {
        Some((_, exact)) => exact.split(' ').next().unwrap().replace(',', ""),
        None => rest.replace(' ', ""),
    });
    let is_budget = |word: &&str| word.ends_with('B') && word.starts_with(|c: char| c.is_ascii_digit());
    let help = words("help");
    least.into_iter().chain(help.split([' ', ';', '`']).filter(is_budget).map(str::to_string)).collect()
}

/// Refused with one byte, a command line names the budgets that work: they do. Gives the refusal, its code
/// and the answers.
fn within_named(words: &[&str]) -> (Value, i32, Vec<(String, Value)>) {
    let with = |budget: &str| json(&[words, &["--budget", budget]].concat());
    let (refusal, code) = with("1");
    let answer = |budget: String| {
        let (answer, code) = with(&budget);
        assert_eq!(code, 0, "{words:?} --budget {budget}, which the refusal named\n{refusal:#}\n{answer:#}");
        (budget, answer)
    };
    let answers = named(&refusal).into_iter().map(answer).collect();
    (refusal, code, answers)
}

/// Whatever a refusal says is enough, is: for the same words, `--check` among them.
#[test]
fn every_budget_that_a_refusal_names_works() {
    let names = example_names();
    // All of them in a long run; otherwise some, among which every kind is.
    let all = std::env::var("PALINODE_ALL_EXAMPLES").is_ok();
    let some =
        ["rnn.pal", "drag.pal", "table.pal", "kepler.pal", "logistic_regression.pal", "activations.pal"];
    let (mut tried, mut open) = (0, 0);
    for name in names.iter().filter(|name| all || some.contains(&name.as_str())) {
        for words in [&["grad", name][..], &["grad", name, "--check"], &["run", name]] {
            let (refused, code, answers) = within_named(words);
            let problem = &refused["errors"][0];
            match (code, problem["code"].as_str()) {
                (1, Some("PAL0412")) => {}
                // Nobody knows before: then nothing is promised.
                (3, Some("PAL0275")) | (1, Some("PAL0278")) | (0, None) => {
                    open += 1;
                    continue;
                }
                // A model without params, or with several outputs.
                (1 | 2, Some("PAL0291" | "PAL0292")) => continue,
                other => panic!("{words:?}: {other:?} {refused:#}"),
            }
            // What the gradient takes depends on data: nothing is named.
            if !problem["message"].as_str().unwrap().contains("at least") {
                open += 1;
                continue;
            }
            // The least, and what the help names.
            assert!(answers.len() > 1, "{words:?}: {refused:#}");
            tried += answers.len();
        }
    }
    assert!(tried > 20 && open > 0, "{tried} {open}");
}

/// A model in a file of its own.
fn written(name: &str, source: &str) -> String {
    let path = std::env::temp_dir().join(format!("palinode-memory-{}-{name}", std::process::id()));
    std::fs::write(&path, source).unwrap();
    path.display().to_string()
}

#[test]
fn every_budget_that_a_refusal_of_a_hard_model_names_works() {
    let branch = "param p = -0.901\nparam w: [5] = [1.21, -0.663, -0.026, 0.959, -0.301]\nparam v: [5] = [0.091, -1.221, 0.032, 1.427, 0.275]\nvar s = p * 1.0\nvar a = w\nvar b = v\nvar c = w\n\
                  for i in 0..66 {\n if 0.5 > a[i % 5] {\n  for j in 0..3 { a = tanh(w) }\n  s = tanh((0.3 - s) * exp(-p^2))\n  s *= tanh(relu(sum(c)))\n }\n}\nb[4] *= tanh(s)\nloss y = s + sum(a) + sum(b * b) + sum(c * c)\n";
    let sums = "param w: [2] = [0.727, 0.476]\nvar a = w\nfor i in 0..3 {\n for j in 0..66 by 2 { a = cumsum(a) * 0.4 }\n}\nloss y = sum(a)\n";
    // What the gradient takes depends on data: the loop ends when it has converged.
    let data = "param w: [40] = fill(0.3, 40)\nvar a = w\nwhile sum(a * a) > 0.01 { a = 0.9 * sin(a) }\nloss y = sum(a * w)\n";
    let tie = "param p = -1.244\nparam w: [4000] = fill(0.5, 4000)\nfn f(x) {\n if x > x { return x * 0.5 }\n return 0.5\n}\nvar a = w\na[1] *= tanh(f(p))\nloss y = sum(a * a)\n";
    for (name, source) in [("branch.pal", branch), ("sums.pal", sums), ("data.pal", data), ("tie.pal", tie)] {
        let model = written(name, source);
        let (free, _) = json(&["grad", &model, "--mode", "reverse"]);
        let (refusal, code, answers) = within_named(&["grad", &model, "--mode", "reverse"]);
        assert!(code != 0 && !answers.is_empty(), "{name}: {refusal}");
        for (budget, answer) in answers {
            assert_eq!(gradient(&answer), gradient(&free), "{name} {budget}: {refusal} {answer}");
        }
        std::fs::remove_file(model).unwrap();
    }
}

/// Models whose loops end when something has converged, inside others that do.
fn with_endings(seed: usize) -> String {
    let pick = |of: &[&str], by: usize| of[seed / by % of.len()].to_string();
    let inner = pick(
        &[
            "x = 0.9 * x + 0.001 * sum(b)",
            "x = x - 0.1 * sin(x) * b[0]\n  c = 0.99 * c",
            "x = 0.8 * x\n  if x > a { c[1] = x }",
        ],
        1,
    );
    let until = pick(&["x > 0.05", "x > 0.05 + 0.01 * (i % 3)", "x * x + 0.001 * sum(c * c) > 0.01"], 3);
    let outer = pick(&["for i in 0..40", "for i in 0..7", "var i: int = 0\nvar r = 1.0\nwhile r > 0.02"], 9);
    let last = if outer.starts_with("var") { "r = 0.8 * r\n i += 1\n" } else { "" };
    let again = if seed.is_multiple_of(2) { "" } else { "while s > 1 { s = 0.7 * s * c[2] }\n" };
    format!(
        "param a = 0.9\nparam b: [3] = [0.5, 0.7, 0.9]\nvar c = b\nvar s = 0.0\n{outer} {{\n var x = a + 0.01 * i\n while {until} {{\n  {inner}\n }}\n s = s + x * sum(c)\n {last}}}\n{again}loss y = s\n"
    )
}

/// Where only a run knows how often loops go round, there is one refusal at most: what it names works.
#[test]
fn loops_that_end_by_data_are_refused_once() {
    let (mut refused, mut counted) = (0, 0);
    let step = if std::env::var("PALINODE_ALL_EXAMPLES").is_ok() { 1 } else { 7 };
    for seed in (0..54).step_by(step) {
        let model = written("endings.pal", &with_endings(seed));
        let grad = |more: &[&str]| json(&[&["grad", &model, "--mode", "reverse"][..], more].concat());
        let (free, code) = grad(&[]);
        assert_eq!(code, 0, "{seed}: {free}\n{}", with_endings(seed));
        let all = bytes(&free["memory"]["charged_bytes"]);
        for budget in [1, all / 4, all / 2] {
            let (answer, code) = grad(&["--budget", &budget.to_string()]);
            if code == 0 {
                assert_eq!(gradient(&answer), gradient(&free), "{seed} within {budget}: {answer}");
                counted += usize::from(answer["budget"]["planned_bytes"].is_number());
                continue;
            }
            refused += 1;
            let budgets = named(&answer);
            assert_eq!(budgets.len(), 1, "{seed} within {budget}: {answer}");
            let (found, code) = grad(&["--budget", &budgets[0]]);
            assert_eq!(code, 0, "{seed} within {budget}: {answer}\nthen {found}");
            assert_eq!(gradient(&found), gradient(&free), "{seed} within {budgets:?}: {found}");
            assert!(
                bytes(&found["memory"]["charged_bytes"])
                    <= budgets[0].trim_end_matches('B').parse().unwrap_or(u64::MAX)
            );
            counted += usize::from(found["budget"]["planned_bytes"].is_number());
        }
        std::fs::remove_file(model).unwrap();
    }
    assert!(refused > 7 && counted > 3, "{refused} {counted}");
}

/// Where reverse mode does not fit, forward mode is taken, if there are few parameters.
#[test]
fn forward_mode_is_taken_where_reverse_mode_does_not_fit() {
    let lines: String = (0..30).map(|k| format!("let y{} = sin(y{k}) * b + y{k} * a\n", k + 1)).collect();
    let source = format!(
        "param a = 0.3\nparam b = 0.7\ninput z: [500] = fill(0.2, 500)\nlet y0 = z * b + a\n{lines}loss l = sum(y30 * y15 * y0)\n"
    );
    let model = written("chain.pal", &source);
    let numbers =
        |answer: &Value| -> Vec<f64> { gradient(answer).iter().map(|&bits| f64::from_bits(bits)).collect() };
    let (free, _) = json(&["grad", &model, "--mode", "reverse"]);
    let (backwards, _) = json(&["grad", &model, "--mode", "reverse", "--budget", "1"]);
    let (either, code, answers) = within_named(&["grad", &model]);
    assert_eq!(code, 1, "{either}");
    assert_eq!(named(&either)[2..], named(&backwards)[1..], "{either} {backwards}");
    for (at, (budget, answer)) in answers.iter().enumerate() {
        assert_eq!(answer["mode"], if at < 2 { "forward" } else { "reverse" }, "{budget}: {answer}");
        for (found, expected) in numbers(answer).iter().zip(numbers(&free)) {
            assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{budget}: {found} for {expected}");
        }
    }
    // What is asked of reverse mode keeps it.
    for more in [&["--mode", "reverse"][..], &["--recompute", "anything"], &["--check"]] {
        let (answer, code) = json(&[&["grad", &model, "--budget", &named(&either)[1]], more].concat());
        assert_eq!((code, &answer["errors"][0]["code"]), (1, &Value::from("PAL0412")), "{more:?}: {answer}");
    }
    std::fs::remove_file(model).unwrap();
}

#[test]
fn comparing_both_sides_is_within_the_budget() {
    // Without the tie the gradient alone fits; with it the budget is refused, and the one that is named
    // works.
    let source = |x: f64| {
        format!(
            "param x = {x}\nparam w: [4000] = fill(0.1, 4000)\nvar s = x\nif x <= 0.5 {{ s = x * 2 }} else {{ s = x * 2.0 }}\nloss y = s * sum(w * w)\n"
        )
    };
    let (apart, tie) = (written("apart.pal", &source(0.25)), written("equal.pal", &source(0.5)));
    let (refusal, _) = json(&["grad", &apart, "--accept-points", "--budget", "1"]);
    let alone = named(&refusal)[0].clone();
    let (answer, code) = json(&["grad", &apart, "--budget", &alone]);
    assert_eq!(code, 0, "{answer}");
    let (refusal, code) = json(&["grad", &tie, "--budget", &alone]);
    assert_eq!((code, &refusal["errors"][0]["code"]), (1, &Value::from("PAL0412")), "{refusal}");
    for budget in named(&refusal) {
        let (answer, code) = json(&["grad", &tie, "--budget", &budget]);
        assert_eq!(code, 0, "{budget}: {answer}");
    }
    let (_, code) = json(&["grad", &tie, "--accept-points", "--budget", &alone]);
    assert_eq!(code, 0);
    [apart, tie].iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

/// `memory` plans and `loop` looks; both name what works with `grad`, and `loop` what works with itself.
#[test]
fn memory_and_loop_name_budgets_that_work_with_grad() {
    let tie = "param x = 0.5\nparam w: [300] = fill(0.1, 300)\nvar s = x\nif x <= 0.5 { s = x * 2 } else { s = x * 2.0 }\nfor i in 0..20 { s = sin(s) }\nloss y = s * sum(w * w)\n";
    // Logs of so few rounds take less than snapshots.
    let short = "param p = -0.976\nparam w: [2] = [-0.214, -0.301]\nvar t = p\nvar v = w\nvar u = w * 0.7\nfor i in 0..1 {\n v = tanh(u)\n for j in 0..2 {\n  t = u[1] * 0.5 + tanh(t)\n  v = tanh(cumsum(select(select(u > -1.483, u, u) > -0.999, u, cos(u))) / 2)\n }\n}\nloss y = p + 0.1 * t * t + sum(v * u)\n";
    let (mut loops, mut below) = (0, 0);
    for (name, source) in [("both.pal", tie), ("short.pal", short)] {
        let model = written(name, source);
        let refused = |words: &[&str]| {
            let (refusal, code) = json(&[words, &[&model, "--budget", "1"]].concat());
            assert_eq!((code, &refusal["errors"][0]["code"]), (1, &Value::from("PAL0412")), "{refusal}");
            named(&refusal)
        };
        let by_grad = refused(&["grad", "--mode", "reverse"]);
        assert_eq!(refused(&["memory"]), by_grad, "{name}");
        for more in [&["--accept-points"][..], &[]] {
            let words = |command: &'static str| [&[command], more].concat();
            for budget in refused(&words("loop")) {
                for command in ["loop", "grad", "memory"] {
                    let (answer, code) =
                        json(&[&words(command)[..], &[&model, "--budget", &budget]].concat());
                    assert_eq!(code, 0, "{command} {name} --budget {budget}: {answer}");
                }
                loops += 1;
            }
        }
        // What `memory` lets through without comparing both sides, it says.
        let (answer, code) = json(&[
            "memory",
            &model,
            "--budget",
            &refused(&["grad", "--mode", "reverse", "--accept-points"])[0],
        ]);
        assert_eq!(code, 0, "{name}: {answer}");
        if let Some(least) = answer["budget"]["tie_bytes"].as_u64() {
            assert_eq!(by_grad[0], least.to_string(), "{name}");
            below += 1;
        }
        std::fs::remove_file(model).unwrap();
    }
    assert!(loops >= 4 && below == 2, "{loops} {below}");
}

/// The page about memory says how many snapshots fit into some budgets of a loop, and how often the reverse
/// sweep runs it: from the sizes of snapshots, and by the formula of binomial schedules.
#[test]
fn the_page_about_loops_with_budgets_is_true() {
    let page = std::fs::read_to_string(examples().join("../docs/book/memory.md")).unwrap();
    let (_, rest) = page.split_once("## A budget for one loop\n\n```text\n").unwrap();
    let (source, rest) = rest.split_once("```").unwrap();
    let rest = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    let memory = |source: &str| {
        let model = written("page.pal", source);
        let (answer, code) = json(&["memory", &model]);
        std::fs::remove_file(model).unwrap();
        assert_eq!(code, 0, "{answer}");
        answer["gradient"].clone()
    };
    let mut said = Vec::new();
    for (budget, words) in [("1MiB", "1 MiB holds"), ("64KiB", "64 KiB holds"), ("4KiB", "4 KiB holds")] {
        let kept = &memory(&source.replace("4KiB", budget))["loops"][0];
        let (n, s) = (bytes(&kept["rounds"]), bytes(&kept["snapshots"]));
        // Behind the rounds there is a step more, the turn. Advances are r (n + 1) - C(s + r, s + 1), with
        // the least r for which C(s + r, s) > n; then each round is run once more.
        let binomial = |n: u64, k: u64| (0..k).fold(1.0, |all, i| all * (n - i) as f64 / (i + 1) as f64);
        let steps = (n + 1) as f64;
        let r = (1..).find(|&r| binomial(s + r, r) >= steps).unwrap();
        let sweeps = (r as f64 * steps - binomial(s + r, r - 1)) / n as f64 + 1.0;
        let count = if s < 1000 { s.to_string() } else { format!("{},{:03}", s / 1000, s % 1000) };
        said.push(format!("{words} {count} snapshots, and the loop runs {sweeps:.1} times"));
    }
    let log = bytes(&memory(&source.replace(" budget 4KiB", ""))["peak_bytes"]) as f64 / 1048576.0;
    said.push(format!("A log of every round takes {log:.1} MiB"));
    for words in said {
        assert!(rest.contains(&words), "the page does not say: {words}");
    }
}

#[test]
fn values_keep_a_budget_too() {
    let (memory, _) = json(&["memory", "activations.pal"]);
    let peak = bytes(&memory["value"]["charged_bytes"]);
    let (answer, code) = json(&["run", "activations.pal", "--budget", &peak.to_string()]);
    assert_eq!((code, bytes(&answer["memory"]["charged_bytes"])), (0, peak));
    let (answer, code) = json(&["run", "activations.pal", "--budget", &(peak - 1).to_string()]);
    assert_eq!((code, &answer["errors"][0]["code"]), (1, &Value::from("PAL0412")));
}

#[test]
fn loop_keeps_a_budget_or_refuses_it_as_grad_does() {
    let model = |name: &str| format!("{}/tests/models/{name}", env!("CARGO_MANIFEST_DIR"));
    let (mut kept, mut refused) = (0, 0);
    for name in ["nested_while.pal", "nested_budgets.pal", "walk.pal", "wide.pal", "kepler.pal"] {
        for budget in [0, 100, 1000, 3000, 6000, 7000, 10_000, 20_000, 40_000] {
            let (model, budget_word) = (model(name), format!("{budget}B"));
            let (looked, code) = json(&["loop", &model, "--budget", &budget_word]);
            if code == 0 {
                let peak = bytes(&looked["memory"]["charged_bytes"]);
                assert!(peak <= budget, "{name} takes {peak} of {budget}");
                kept += 1;
                continue;
            }
            let problem = &looked["errors"][0]["code"];
            // The loop is followed by the interpreter.
            let words = ["grad", &model, "--budget", &budget_word, "--engine", "interpret"];
            let (grad, grad_code) = json(&words);
            match grad_code {
                // Forward mode reverses nothing.
                0 if grad["mode"] == "forward" => {}
                // Logs of every round have no schedule to show.
                0 => assert_eq!(problem, "PAL0412", "{name} {budget}"),
                _ => assert_eq!((problem, code), (&grad["errors"][0]["code"], grad_code), "{name} {budget}"),
            }
            refused += 1;
        }
    }
    assert!(kept > 10 && refused > 10, "{kept} {refused}");
}

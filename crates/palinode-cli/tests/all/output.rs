//! Answers that cannot be written, limits of steps, and memory that runs out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::transcript::{answer as json, models, palinode};

/// A line of a shell, in which `$0` is the command: its exit code, and what it wrote.
#[cfg(unix)]
fn bash(folder: &Path, line: &str) -> (i32, String, String) {
    let mut command = Command::new("bash");
    command.args(["-c", line, env!("CARGO_BIN_EXE_palinode")]).current_dir(folder);
    let output = command.output().unwrap();
    let [text, words] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), text, words)
}

/// Standard output that is always full; every command that writes there says so and fails.
#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let written = |line: &str| {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_palinode"));
        let output = command.args(line.split(' ')).current_dir(models()).stdout(full).output().unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.status.code())
    };
    for line in [
        "run drag.pal",
        "run drag.pal --json",
        "grad drag.pal --check",
        "grad drag.pal --json",
        "jvp drag.pal --direction v0=1",
        "hessian drag.pal",
        "memory drag.pal",
        "loop drag.pal",
        "tape tiny.pal",
        "ir tiny.pal",
        "ir tiny.pal --ssa",
        "fmt tiny.pal",
        "check drag.pal",
        "help",
        "help grad",
        "help PAL0609",
        "completions bash",
        "--version",
        "--help",
        "grad --help",
    ] {
        let (words, code) = written(line);
        assert_eq!(code, Some(5), "{line}: {words}");
        assert!(words.contains("PAL0609") && words.contains("No space left"), "{line}: {words}");
    }
    // An error that cannot be written as JSON keeps its own code, and is heard of.
    let (words, code) = written("grad div.pal --json");
    assert!(code == Some(3) && words.contains("PAL0609"), "{words}");
}

/// Standard output that is closed is no better than one that is full; standard error that is closed changes
/// no exit code.
#[cfg(target_os = "linux")]
#[test]
fn closed_streams_are_noticed() {
    let run = |line: &str| {
        let (code, text, words) = bash(&models(), &format!("\"$0\" {line}"));
        (code, text + &words)
    };
    for words in
        ["run drag.pal", "grad drag.pal --json", "grad drag.pal --check", "help", "--version", "fmt tiny.pal"]
    {
        let (code, text) = run(&format!("{words} >&-"));
        assert!(code == 5 && text.contains("PAL0609") && text.contains("closed"), "{words}: {code} {text}");
        assert_eq!(run(&format!("{words} >&- 2>&-")).0, 5, "{words}");
        assert_eq!(run(&format!("{words} 1</dev/null")).0, 5, "{words}");
        assert_eq!(run(&format!("{words} > /dev/null")).0, 0, "{words}");
        assert_eq!(run(&format!("{words} <> /dev/null >&0")).0, 0, "{words}");
        assert_eq!(run(&format!("{words} 2>&-")).0, 0, "{words}");
    }
    // Mistakes keep their code, even if no stream is open to say so.
    for (words, expected) in
        [("grad div.pal", 3), ("grad div.pal --json", 3), ("grad darg.pal", 1), ("grd", 2)]
    {
        for closed in [">&-", "2>&-", ">&- 2>&-", "2>/dev/full", ">/dev/full 2>/dev/full"] {
            assert_eq!(run(&format!("{words} {closed}")).0, expected, "{words} {closed}");
        }
    }
    // The other stream still gets its message.
    assert!(run("grad div.pal --json >&-").1.contains("PAL0609"));
    assert!(run("grad div.pal --json 2>&-").1.contains("\"exit\": 3"));
    let (code, text) = run("run - <&-");
    assert!(code == 1 && text.contains("standard input is closed"), "{code} {text}");
}

/// What has no end or is no text is refused where that shows.
#[cfg(target_os = "linux")]
#[test]
fn devices_are_no_data() {
    for file in ["/dev/zero", "/dev/urandom", "t=/dev/zero"] {
        let words = ["run", "fit.pal", "--data", file].map(String::from);
        let (text, code) = palinode(&models(), &words);
        assert!(code == 1 && text.contains("PAL0281") && text.contains("line "), "{file}: {code} {text}");
    }
}

/// A reader that has gone away has what it wanted.
#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for words in ["help", "help --json", "tape drag.pal --rows 0", "tape drag.pal --json"] {
        let line =
            format!("\"$0\" {words} | true; exec 3>&1; {{ \"$0\" {words} 3>&-; echo $? >&2; }} | true");
        assert_eq!(bash(&models(), &line).2, "0\n", "{words}");
    }
}

/// As many steps as `run` counts are enough for every command, and one less for none.
#[test]
fn steps_are_those_of_the_model() {
    for model in ["drag.pal", "table.pal", "called_twice.pal", "nested_while.pal", "deep.pal", "kepler.pal"] {
        let (ran, code) = json(&format!("run {model}"));
        assert_eq!(code, 0, "{model}: {ran:#}");
        let steps = ran["steps"].as_u64().unwrap();
        if steps == 0 {
            continue;
        }
        for command in ["run", "grad", "grad --mode forward", "hessian", "grad --budget 4MiB", "loop"] {
            let (answer, code) = json(&format!("{command} {model} --max-rounds {steps}"));
            let no_loop = answer["errors"][0]["code"] == "PAL0279";
            assert!(code == 0 || no_loop, "{command} {model} --max-rounds {steps}: {answer:#}");
            let (answer, code) = json(&format!("{command} {model} --max-rounds {}", steps - 1));
            let stopped = (code, answer["errors"][0]["code"].as_str()) == (3, Some("PAL0262"));
            assert!(stopped || no_loop, "{command} {model} --max-rounds {}: {answer:#}", steps - 1);
        }
    }
}

/// If the reverse sweep runs out of memory, the help names a budget, which works.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_runs_out_in_reverse_suggests_a_budget() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("runs_out");
    fs::create_dir_all(&folder).unwrap();
    let source = "param a = 0.5\nlet w = fill(a, 200000)\nvar x = w\nfor i in 0..60 {\n  x = 0.5 * x * x + 0.1 * w\n}\nloss y = sum(x)\n";
    fs::write(folder.join("long.pal"), source).unwrap();
    let run = |options: &str| {
        let line = format!("ulimit -v 330000; exec \"$0\" grad long.pal --mode reverse --json {options}");
        let (code, text, words) = bash(&folder, &line);
        let answer: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{words}"));
        (answer, code)
    };
    let (answer, code) = run("");
    assert_eq!((code, answer["errors"][0]["code"].as_str()), (3, Some("PAL0268")), "{answer:#}");
    let help = answer["errors"][0]["help"].as_str().unwrap();
    let option =
        help.split('`').find(|word| word.starts_with("--budget")).unwrap_or_else(|| panic!("{help}"));
    let (answer, code) = run(option);
    assert_eq!(code, 0, "{option}: {answer:#}");
}

/// Warnings stay warnings when there is an error as well.
#[test]
fn warnings_are_not_among_the_errors() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("warned");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("warned.pal"),
        "param rate = 1\ninput t: [n]\nlet unused = 3\nloss y = sum(t) * rate / 0\n",
    )
    .unwrap();
    fs::write(folder.join("t.json"), "{\"t\": [1, 2], \"rat\": 3}").unwrap();
    let (answer, code) = crate::transcript::json(&folder, &["grad", "warned.pal", "--data", "t.json"]);
    let all = |field: &str, severity: &str| {
        let problems = answer[field].as_array().unwrap_or_else(|| panic!("{answer:#}"));
        assert!(!problems.is_empty() && problems.iter().all(|one| one["severity"] == severity), "{answer:#}");
    };
    assert_eq!(code, 3, "{answer:#}");
    all("errors", "error");
    all("warnings", "warning");
    let codes: Vec<&str> =
        answer["warnings"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"PAL0610"), "{codes:?}");
}

#[test]
fn budgets_take_any_decimals() {
    let (answer, code) = json("grad drag.pal --budget 1.2MiB");
    assert_eq!((code, answer["budget"]["budget_bytes"].as_u64()), (0, Some(1_258_291)), "{answer:#}");
}

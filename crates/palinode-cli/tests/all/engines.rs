//! Who runs a model changes no digit of the answer, and a long run can be interrupted.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::transcript::{answer, models};

/// The answer without what differs from run to run.
fn settled(line: &str, engine: &str) -> serde_json::Value {
    let (mut answer, code) = answer(&format!("{line} --engine {engine}"));
    for measured in ["seconds", "total_seconds", "engine", "memory"] {
        answer.as_object_mut().expect("an object").remove(measured);
    }
    serde_json::json!({ "answer": answer, "code": code })
}

#[test]
fn engines_give_the_same_answers() {
    for line in [
        "run drag.pal",
        "grad drag.pal --check",
        "grad drag.pal --mode forward",
        "hessian drag.pal",
        "jvp drag.pal",
        "grad table.pal --set gap=2",
        "grad kepler.pal",
        "grad nested_while.pal --mode reverse",
        "grad walk.pal --budget 4KiB",
        "grad nested_budgets.pal",
        "grad wide.pal --accumulate exact",
        "run div.pal",
        "grad root.pal",
        "grad index.pal",
        "grad endless.pal --max-rounds 1e5",
        "grad infinite_slope.pal",
        "grad infinite_slope.pal --allow-nonfinite --mode reverse",
        "grad too_little.pal",
        "grad short_cut_loop.pal",
        "grad short_cuts.pal",
        "grad short_cut.pal --accept-points",
    ] {
        let expected = settled(line, "interpret");
        for engine in ["auto", "jit", "rustc"] {
            assert_eq!(settled(line, engine), expected, "{line} --engine {engine}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_long_native_run_is_interrupted_at_once() {
    // A loop that data ends, and one of known length.
    let rounds = std::env::temp_dir().join(format!("palinode-rounds-{}.pal", std::process::id()));
    let source = "param x = 0.3\nvar s = x\nfor i in 0..1000000000000 { s = 0.5 * s + x }\nloss y = s\n";
    std::fs::write(&rounds, source).unwrap();
    for model in ["endless.pal", rounds.to_str().unwrap()] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_palinode"))
            .args(["run", model, "--engine", "jit", "--max-rounds", "1e18"])
            .current_dir(models())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_secs(1));
        assert!(run.try_wait().unwrap().is_none(), "{model} has come to its end");
        let interrupted = Instant::now();
        let sent = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
        assert!(sent.success());
        while run.try_wait().unwrap().is_none() {
            let waited = interrupted.elapsed();
            if waited > Duration::from_millis(500) {
                run.kill().unwrap();
                panic!("{model} goes on for {waited:?}");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
    std::fs::remove_file(rounds).unwrap();
}

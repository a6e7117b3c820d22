//! Every example of the repository runs without arguments, and its gradients agree with differences.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::transcript;

/// Examples whose point is a kink or a jump; here `--check` need not agree.
const NOT_SMOOTH: &[&str] = &[];

fn json(folder: &Path, words: &[&str]) -> Result<Value, String> {
    match transcript::json(folder, words) {
        (answer, 0) => Ok(answer),
        (answer, code) => Err(format!("palinode {} ends with {code}\n{answer:#}", words.join(" "))),
    }
}

/// The loss, or every real number that the model gives.
fn objectives(folder: &Path, name: &str) -> Result<Vec<String>, String> {
    let answer = json(folder, &["check", name])?;
    let outputs = answer["models"][0]["outputs"].as_array().unwrap();
    let named = |output: &&Value| output["type"] == "f64";
    let losses: Vec<&Value> = outputs.iter().filter(|output| output["loss"] == true).collect();
    let chosen = if losses.is_empty() { outputs.iter().filter(named).collect() } else { losses };
    Ok(chosen.iter().map(|output| output["name"].as_str().unwrap().to_string()).collect())
}

fn agrees(folder: &Path, name: &str, output: &str) -> Result<(), String> {
    let answer = json(folder, &["grad", name, "--of", output, "--check"])?;
    let value = answer["output"]["value"].as_f64().unwrap();
    for part in answer["gradient"].as_array().unwrap() {
        let check = &part["check"];
        let vanishes = check["status"] == "within" && check["digits"].is_null();
        let digits = check["digits"].as_u64().unwrap_or(0);
        // Differences cannot see digits of a slope that is lost in the rounding of the value.
        let tiny = match (part["gradient"].as_f64(), check["differences"].as_f64()) {
            (Some(exact), Some(found)) => (exact - found).abs() < 1e-12 * value.abs(),
            _ => false,
        };
        if !vanishes && digits < 6 && !tiny {
            return Err(format!("{name}: d{output}/d{} {part}", part["name"]));
        }
    }
    Ok(())
}

#[test]
fn examples_run_and_agree_with_differences() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(&folder).expect("the repository has examples");
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".pal"));
    names.sort();
    assert!(names.len() >= 50);
    let mut failures = Vec::new();
    for name in &names {
        failures.extend(json(&folder, &["run", name]).err());
        if NOT_SMOOTH.contains(&name.as_str()) {
            continue;
        }
        match objectives(&folder, name) {
            Ok(outputs) => {
                failures.extend(outputs.iter().filter_map(|output| agrees(&folder, name, output).err()))
            }
            Err(failure) => failures.push(failure),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

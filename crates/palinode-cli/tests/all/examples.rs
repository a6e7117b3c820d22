//! Every example of the repository runs without arguments, and its gradient agrees with differences.

use std::path::PathBuf;

use serde_json::Value;

use crate::transcript::palinode;

/// Examples whose point is a kink, a jump, or nothing to differentiate; here `--check` need not agree.
const NOT_SMOOTH: &[&str] = &[];

#[test]
fn examples_run_and_agree_with_differences() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let Ok(entries) = std::fs::read_dir(&folder) else { return };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".pal"));
    names.sort();
    let mut failures = Vec::new();
    for name in names {
        let (text, code) = palinode(&folder, &["run".to_string(), name.clone()]);
        if code != 0 {
            failures.push(format!("{name}: run ends with {code}\n{text}"));
            continue;
        }
        if NOT_SMOOTH.contains(&name.as_str()) {
            continue;
        }
        let (text, code) = palinode(&folder, &["grad", &name, "--check", "--json"].map(str::to_string));
        let answer: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if code != 0 {
            failures.push(format!("{name}: grad ends with {code}\n{text}"));
            continue;
        }
        for part in answer["gradient"].as_array().unwrap() {
            let check = &part["check"];
            let vanishes = check["status"] == "within" && check["digits"].is_null();
            if !vanishes && check["digits"].as_u64().unwrap_or(0) < 6 {
                failures.push(format!("{name}: {} {check}", part["name"]));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

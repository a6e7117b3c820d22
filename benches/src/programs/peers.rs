//! Systems of another language: processes of their own, on one core, that are given the inputs in files and
//! answer with times and results.

use std::path::{Path, PathBuf};
use std::process::Command;

use palinode_ir::interp::Datum;

use super::{Figures, flat};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// The Python that has the other systems, if `benches/peers/setup` was run.
pub(super) fn python() -> Option<PathBuf> {
    let installed =
        std::env::var_os("PALINODE_PEERS").map_or_else(|| folder().join("installed"), PathBuf::from);
    let python = installed.join("bin/python");
    python.exists().then_some(python)
}

/// What each system needs for the gradient of a model by its params, or for its values if there are none; if
/// it has that model.
pub(super) fn all(
    python: &Path,
    model: &str,
    inputs: &[(&str, &Datum<f64>)],
    params: &[usize],
) -> Vec<Figures> {
    let exchange = std::env::temp_dir().join(format!("palinode-peers-{}-{model}", std::process::id()));
    std::fs::create_dir_all(&exchange).expect("a folder for the exchange");
    let mut list = String::new();
    for (at, (name, datum)) in inputs.iter().enumerate() {
        let bytes: Vec<u8> = flat(&[(*datum).clone()]).iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(exchange.join(name), bytes).expect("a file for the exchange");
        let shape: Vec<String> = datum.shape().iter().map(usize::to_string).collect();
        let role = if params.contains(&at) { "param" } else { "input" };
        list += &format!("{name} {role} {}\n", shape.join(","));
    }
    std::fs::write(exchange.join("inputs.txt"), list).expect("a file for the exchange");
    let found = ["jax", "casadi", "torch", "numpy"].iter().filter_map(|system| {
        let script = folder().join(format!("{system}_models.py"));
        let output = Command::new("taskset")
            .args(["-c", "0"])
            .arg(python)
            .arg(&script)
            .arg(model)
            .arg(&exchange)
            .envs(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, "1")))
            .output()
            .expect("taskset runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let Some(line) = text.lines().find_map(|line| line.strip_prefix("RESULT ")) else {
            if !text.contains("NO MODEL") && !text.contains("NOT INSTALLED") {
                println!("{system} failed: {}", String::from_utf8_lossy(&output.stderr));
            }
            return None;
        };
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [milliseconds, first, mib] = numbers[..] else { panic!("{system}: {line}") };
        let bytes = std::fs::read(exchange.join(format!("{system}.results"))).expect("results");
        let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let results = bytes.chunks_exact(8).map(number).collect();
        Some(Figures { who: (*system).to_string(), milliseconds, first, mib, results })
    });
    let found = found.collect();
    let _ = std::fs::remove_dir_all(&exchange);
    found
}

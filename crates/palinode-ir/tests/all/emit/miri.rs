//! Emitted Rust under Miri, where `PALINODE_MIRI` says how many statements a program may execute: examples
//! and models of the benchmarks, with short loops. `scripts/miri` runs it.

use std::process::Command;

use palinode_ir::pal;

use super::{Case, cases_of, compare, folder, sources, succeeds, write_rust};
use crate::emit::driver;

/// So many rounds a loop has.
const ROUNDS: &str = "4";

/// A source with other ends of ranges: those that are numbers of at least two digits are small.
fn shortened(source: &str) -> String {
    let mut parts = source.split("..");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_').len();
        let end = if digits > 1 { ROUNDS } else { &part[..digits] };
        out.push_str("..");
        out.push_str(end);
        out.push_str(&part[digits..]);
    }
    out
}

#[test]
fn ranges_are_shortened() {
    assert_eq!(shortened("for i in 0..2_000 { a[i..n] = b[1..9] }"), "for i in 0..4 { a[i..n] = b[1..9] }");
    assert_eq!(shortened("let x = 1"), "let x = 1");
}

/// What executes few enough statements of a model: with short loops, or, if that is no model, as it is.
fn short(name: &str, source: &str, most: u64) -> Vec<Case> {
    let of = |source: &str| {
        let model = pal::compile(source).ok()?;
        cases_of(name, &model).into_iter().collect::<Result<Vec<_>, _>>().ok()
    };
    let mut cases = of(&shortened(source)).or_else(|| of(source)).unwrap_or_default();
    cases.retain(|case| case.form.work(1_000) <= most);
    cases
}

#[test]
fn examples_run_under_miri() {
    let Some(most) = std::env::var("PALINODE_MIRI").ok().and_then(|most| most.parse().ok()) else { return };
    let all = sources();
    let cases: Vec<Case> = all.iter().flat_map(|(name, source)| short(name, source, most)).collect();
    println!(
        "{} programs of {} models, {} statements",
        cases.len(),
        all.len(),
        cases.iter().map(|case| case.form.work(1_000)).sum::<u64>()
    );
    assert!(cases.len() > all.len() / 2);
    let folder = folder("miri");
    write_rust(&folder, &cases);
    std::fs::write(folder.join("src/main.rs"), driver::rust(&cases)).unwrap();
    let mut miri = Command::new("cargo");
    miri.args(["+nightly", "miri", "run", "--quiet", "--"]).arg(folder.join("inputs")).current_dir(&folder);
    // It reads a file.
    let flags = std::env::var("MIRIFLAGS").unwrap_or_default();
    compare(&cases, &succeeds(miri.env("MIRIFLAGS", format!("{flags} -Zmiri-disable-isolation"))));
}

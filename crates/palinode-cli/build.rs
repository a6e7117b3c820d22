//! Collects the pages of the error codes, so that `palinode help PAL0253` needs neither the book nor a
//! network.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let pages =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../docs/book/errors");
    println!("cargo::rerun-if-changed={}", pages.display());
    let mut list: Vec<(String, String)> = Vec::new();
    // A packaged crate has no book beside it; then there are no pages.
    for entry in fs::read_dir(&pages).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(code) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if code.starts_with("PAL") && path.extension().is_some_and(|ending| ending == "md") {
            println!("cargo::rerun-if-changed={}", path.display());
            list.push((code.to_string(), path.display().to_string()));
        }
    }
    list.sort();
    let mut out = String::from("pub(crate) const PAGES: &[(&str, &str)] = &[\n");
    for (code, path) in list {
        writeln!(out, "    ({code:?}, include_str!({path:?})),").expect("a string takes everything");
    }
    out.push_str("];\n");
    let target = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("pages.rs");
    fs::write(target, out).expect("OUT_DIR can be written to");
}

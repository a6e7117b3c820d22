//! Finds the documents whose Rust code runs as doctests: the README, the book, the pages of the error codes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    // A packaged crate has no book beside it; then there is nothing to run.
    let mut documents: Vec<PathBuf> = vec![root.join("README.md")];
    for folder in ["docs/book", "docs/book/errors"] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        let files = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        documents.extend(files.map(|file| file.path()));
    }
    documents.sort();
    let mut out = String::new();
    for path in documents {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        println!("cargo::rerun-if-changed={}", path.display());
        if text.contains("```rust") {
            let name: String = path.file_stem().into_iter().flat_map(|stem| stem.to_str()).collect();
            let name = name.replace('-', "_");
            writeln!(out, "#[doc = include_str!({path:?})]\npub mod {name} {{}}").expect("a string takes it");
        }
    }
    let target = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("documents.rs");
    fs::write(target, out).expect("OUT_DIR can be written to");
}

//! Messages for people: every source in `tests/pal/errors` with its messages beside it, and a page for every
//! code.

use palinode_ir::pal;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The package of the library.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn cases() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("tests/pal/errors")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pal"));
    paths.sort();
    paths
}

fn messages(source: &str) -> String {
    let problems = match pal::compile(source) {
        Ok(model) => model.warnings,
        Err(problems) => problems,
    };
    problems.iter().map(|problem| problem.plain(source)).collect::<Vec<_>>().join("\n")
}

/// Compares texts with the files beside their sources.
fn compare(paths: &[PathBuf], make: impl Fn(&str) -> String) {
    let bless = crate::is_blessed();
    let mut changed = Vec::new();
    for path in paths {
        let source = std::fs::read_to_string(path).unwrap();
        let found = make(&source);
        let expected = path.with_extension("txt");
        if bless {
            std::fs::write(&expected, &found).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != found {
            changed.push(format!("{}:\n{found}", path.display()));
        }
    }
    assert!(changed.is_empty(), "it changed (PALINODE_BLESS=1 accepts it)\n{}", changed.join("\n"));
}

#[test]
fn messages_are_as_they_were() {
    compare(&cases(), messages);
}

#[test]
fn lowerings_are_as_they_were() {
    let shown = |source: &str| -> String {
        let width = source.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let mut out = String::new();
        for line in pal::ssa(source).unwrap() {
            let mut left = line.source.clone();
            for assignment in
                line.assignments.iter().map(String::as_str).chain(line.assignments.is_empty().then_some(""))
            {
                let pad = " ".repeat(width - left.chars().count());
                out.push_str(format!("{left}{pad} | {assignment}").trim_end());
                out.push('\n');
                left.clear();
            }
        }
        out
    };
    let folder = root().join("tests/pal");
    compare(&["control", "arrays"].map(|name| folder.join(name).with_extension("pal")), shown);
}

/// The codes that the front end can give, from its own source.
fn codes() -> BTreeSet<String> {
    fn walk(folder: &Path, codes: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, codes);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for part in text.split("\"PAL0").skip(1) {
                codes.insert(format!("PAL0{}", &part[..3]));
            }
        }
    }
    let mut codes = BTreeSet::new();
    walk(&root().join("src/pal"), &mut codes);
    codes
}

#[test]
fn every_code_has_a_page_and_a_test() {
    let tested: String =
        cases().iter().map(|path| messages(&std::fs::read_to_string(path).unwrap())).collect();
    let book = root().join("../../docs/book");
    let index = std::fs::read_to_string(book.join("errors/README.md")).unwrap();
    let summary = std::fs::read_to_string(book.join("SUMMARY.md")).unwrap();
    for code in codes() {
        assert!(book.join(format!("errors/{code}.md")).exists(), "{code} has no page");
        assert!(index.contains(&code) && summary.contains(&code), "{code} is not listed");
        // A program that is too complex takes long to write down, and a bug of our own cannot be provoked.
        if !["PAL0223", "PAL0239"].contains(&&*code) {
            assert!(tested.contains(&code), "{code} is not tested");
        }
    }
}

#[test]
fn the_book_lists_the_functions_that_exist() {
    let book = std::fs::read_to_string(root().join("../../docs/book/language.md")).unwrap();
    let section = book.split("## Functions of the language").nth(1).unwrap().split("\n## ").next().unwrap();
    let call =
        |quoted: &'_ str| quoted.rsplit('=').next().unwrap().trim().split('(').next().unwrap().to_string();
    let listed: BTreeSet<String> = section.split('`').skip(1).step_by(2).map(call).collect();
    for name in &listed {
        let found = messages(&format!("loss l = {name}()"));
        assert!(!found.contains("PAL0206"), "`{name}` is in the book but not in the language");
    }
    // Rows of the rule table have their own names there, which the book says of all of them.
    let is_row = |name: &str| palinode_core::rules::Row::named(name).is_some();
    let missing: Vec<_> =
        palinode_ir::pal::functions().filter(|name| !listed.contains(*name) && !is_row(name)).collect();
    assert!(missing.is_empty(), "the book does not list {missing:?}");
}

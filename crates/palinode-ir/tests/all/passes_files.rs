//! Text tests of the passes: `tests/passes/*.txt`.
//!
//! A file holds cases: a line `=== title: pass pass ...`, the program before, a line `---`, the program
//! after. Programs before are written by hand and need no numbers; programs after are as printed.

use palinode_ir::passes;
use palinode_ir::text::{parse, print};

fn apply(names: &str, text: &str, what: &str) -> String {
    let mut program = parse(text).unwrap_or_else(|errors| panic!("{what}: {errors:?}"));
    for name in names.split_whitespace() {
        let (_, pass) = passes::ALL
            .iter()
            .find(|(other, _)| *other == name)
            .unwrap_or_else(|| panic!("{what}: no pass `{name}`"));
        program = pass(&program);
    }
    print(&program)
}

#[test]
fn passes_do_what_the_files_say() {
    let bless = crate::is_blessed();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("passes");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut cases, mut wrong) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut blessed = String::new();
        let (head, rest) = text.split_once("=== ").expect("a file has a case");
        blessed.push_str(head);
        for case in rest.split("=== ") {
            let (title, programs) = case.split_once('\n').expect("a case has a title");
            let (before, after) = programs.split_once("---\n").unwrap_or((programs, ""));
            let names = title.rsplit_once(':').expect("a title names passes").1;
            let what = format!("{}, {title}", file.file_name().unwrap().to_string_lossy());
            let found = apply(names, before, &what);
            if found.trim() != after.trim() {
                wrong.push(format!("{what}\nexpected:\n{after}\nfound:\n{found}"));
            }
            let ending = if before.ends_with('\n') { "" } else { "\n" };
            blessed.push_str(&format!("=== {title}\n{before}{ending}---\n{found}\n"));
            cases += 1;
        }
        if bless {
            std::fs::write(&file, format!("{}\n", blessed.trim_end())).unwrap();
        }
    }
    assert!(cases > 0);
    assert!(bless || wrong.is_empty(), "{}", wrong.join("\n"));
}

//! Text tests of loop forms: `tests/loops/*.txt`.
//!
//! A file holds cases: a line `=== title: pass pass ...`, the form before, a line `---`, the form after as
//! printed. In `refused.txt` there is nothing behind a form: it has a comment `// reason` where the verifier
//! finds it wrong.

use std::path::PathBuf;

use palinode_ir::loops::{LoopForm, Operand, PASSES, Stmt, parse, verify};

fn folder() -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("loops")
}

fn read(text: &str, what: &str) -> LoopForm {
    parse(text).unwrap_or_else(|error| panic!("{what}: {error}"))
}

fn is_right(form: &LoopForm, what: &str) {
    verify(form).unwrap_or_else(|error| panic!("{what}: {error}\n{form}"));
}

fn apply(names: &str, text: &str, what: &str) -> String {
    let mut form = read(text, what);
    is_right(&form, what);
    for name in names.split_whitespace() {
        let (_, pass) = PASSES
            .iter()
            .find(|(other, _)| *other == name)
            .unwrap_or_else(|| panic!("{what}: no pass `{name}`"));
        pass(&mut form);
        is_right(&form, &format!("{what}, after `{name}`"));
    }
    form.to_string()
}

#[test]
fn passes_do_what_the_files_say() {
    let bless = crate::is_blessed();
    let mut wrong = Vec::new();
    for (pass, _) in PASSES {
        let file = folder().join(format!("{pass}.txt"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("no tests of `{pass}`"));
        let (head, rest) = text.split_once("=== ").expect("a file has a case");
        let mut blessed = head.to_string();
        let (mut changed, mut kept) = (0, 0);
        for case in rest.split("=== ") {
            let (title, forms) = case.split_once('\n').expect("a case has a title");
            let (before, after) = forms.split_once("---\n").unwrap_or((forms, ""));
            let names = title.rsplit_once(':').expect("a title names passes").1;
            assert!(names.split_whitespace().any(|name| name == pass), "{title} is not about `{pass}`");
            let what = format!("{pass}.txt, {title}");
            let found = apply(names, before, &what);
            let is_changed = found != read(before, &what).to_string();
            (changed, kept) = (changed + usize::from(is_changed), kept + usize::from(!is_changed));
            if found.trim() != after.trim() {
                wrong.push(format!("{what}\nexpected:\n{after}\nfound:\n{found}"));
            }
            let ending = if before.ends_with('\n') { "" } else { "\n" };
            blessed.push_str(&format!("=== {title}\n{before}{ending}---\n{found}\n"));
        }
        assert!(
            changed > 0 && kept > 0,
            "`{pass}`: cases in which it does something, and in which it must not"
        );
        if bless {
            std::fs::write(&file, format!("{}\n", blessed.trim_end())).unwrap();
        }
    }
    assert!(bless || wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn wrong_forms_are_refused_where_they_are_wrong() {
    let text = std::fs::read_to_string(folder().join("refused.txt")).unwrap();
    let (_, cases) = text.split_once("=== ").expect("a file has a case");
    let mut reasons = String::new();
    for case in cases.split("=== ") {
        let (title, text) = case.split_once('\n').expect("a case has a title");
        let form = read(text, title);
        let mut marked = text.lines().filter_map(|line| line.split_once("//"));
        let (line, reason) = marked.next().unwrap_or_else(|| panic!("{title}: where is it wrong?"));
        assert!(marked.next().is_none(), "{title}: two lines are marked");
        let error = verify(&form).expect_err(title);
        // Heads and buffers are no statements.
        let is_stmt = !line.starts_with("loops") && !line.trim().contains(": ");
        let place = if is_stmt { format!(", in `{}`", line.trim()) } else { String::new() };
        let (reason, place) = (reason.trim(), place.as_str());
        assert!(error.contains(reason), "{title}: {error}");
        assert!(error.ends_with(place) && (is_stmt || !error.contains(", in `")), "{title}: {error}");
        reasons.push_str(&error);
    }
    // No text is nested so deeply.
    let mut deep = read("loops f() -> () {\n}", "nothing");
    for _ in 0..1000 {
        let then = core::mem::take(&mut deep.body);
        deep.body = vec![Stmt::If { holds: Operand::Bool(true), then, other: Vec::new() }];
    }
    reasons.push_str(&verify(&deep).expect_err("it is nested deeply"));
    // The header of the verifier names its refusals.
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/loops/verify/mod.rs");
    let header: String =
        std::fs::read_to_string(source).unwrap().lines().take_while(|line| line.starts_with("//!")).collect();
    let header = header.split_once("Invariants").expect("a list").1.replace("//!  ", "");
    let named: Vec<&str> = header.split('`').skip(1).step_by(2).filter(|words| words.contains(' ')).collect();
    assert!(named.len() > 20, "{named:?}");
    for words in named {
        assert!(reasons.contains(words), "no form is refused because it `{words}`");
    }
}

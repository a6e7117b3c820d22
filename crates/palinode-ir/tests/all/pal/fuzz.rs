//! The `.pal` front end on anything at all: nothing panics, and what compiles is valid.
//!
//! `PROPTEST_CASES=100000 cargo test --release -p palinode-ir-tests pal::fuzz` runs it for long.

use palinode_ir::{pal, text};
use proptest::prelude::*;

/// Everything that must hold for any source.
fn check(source: &str) {
    let compiled = pal::compile(source);
    if let Err(problems) = &compiled {
        assert!(!problems.is_empty(), "refused without a reason: {source:?}");
        for problem in problems {
            assert_ne!(problem.code, "PAL0239", "{source:?}: {:?}", problem.notes);
            let span = problem.span();
            assert!(span.start <= span.end && span.end as usize <= source.len(), "{source:?}: {problem:?}");
            assert!(!problem.plain(source).is_empty());
        }
    }
    assert_eq!(pal::ssa(source).is_ok(), compiled.is_ok(), "{source:?}");
    match pal::format(source) {
        Ok(tidy) => {
            assert_eq!(pal::format(&tidy).as_deref(), Ok(&*tidy), "{source:?}");
            let again = pal::compile(&tidy);
            match (compiled, again) {
                (Ok(a), Ok(b)) => {
                    assert_eq!(text::print(&a.program), text::print(&b.program), "{source:?}\n{tidy}")
                }
                (Err(a), Err(b)) => {
                    let codes = |problems: &[palinode_ir::Diagnostic]| -> Vec<&str> {
                        problems.iter().map(|problem| problem.code).collect()
                    };
                    assert_eq!(codes(&a), codes(&b), "{source:?}\n{tidy}");
                }
                (a, b) => panic!("{source:?}\n{tidy}\n{a:?}\n{b:?}"),
            }
        }
        Err(problems) => assert!(!problems.is_empty() && compiled.is_err(), "{source:?}"),
    }
}

fn corpus() -> &'static [String] {
    static CORPUS: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    CORPUS.get_or_init(read_corpus)
}

fn read_corpus() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for folder in [root.join("pal"), root.join("../../../examples")] {
        let entries = std::fs::read_dir(folder).unwrap();
        for entry in entries.flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "pal") {
                sources.push(std::fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    sources.sort();
    sources
}

const WORDS: &str = "param input const let var alias fn for in while break continue if else then return \
     loss output \
     and or not true false by reversed int real x y a b n f g i sin sum zeros len max select qr shape \
     draw 0 1 2 3 0.5 1e-3 9223372036854775807 + - * / // % ^ @ ' < <= > >= == != = += -= *= /= ( ) [ \
     ] { } , : ; .. -> m/s é ° ²";

/// Words, and what has spaces in it.
fn words() -> Vec<&'static str> {
    WORDS.split(' ').chain(["1 [ms]", "\n", "\n", "\n", "# c\n"]).collect()
}

/// Statements that go together now and then.
const PIECES: &[&str] = &[
    "param x = 2",
    "param a: [3] = [1, 2, 3]",
    "input n: int = 3",
    "input m: [n, 2]",
    "const c = 4",
    "let y = x * c",
    "var s = 0",
    "var v = a",
    "var w = zeros(n)",
    "var M = [[1, 2], [3, 4]]",
    "s = s + x",
    "s += 1",
    "v[1] = x",
    "v[i] += s",
    "w[0..2] = 1",
    "alias b = v[1..3]",
    "alias t = M'",
    "b[0] *= 2",
    "t[0, 1] = s",
    "for i in 0..n {",
    "for i in 0..5 by 2 reversed {",
    "for e in a {",
    "while s < 3 {",
    "while true {",
    "if x > 1 {",
    "} else {",
    "} else if s > 0 {",
    "}",
    "break",
    "continue",
    "return s",
    "return x, 1",
    "fn f(x) {",
    "fn g(x, y) {",
    "fn h() -> real {",
    "let p, q = g(x, 1)",
    "y = f(s)",
    "s = f(f(x))",
    "loss l = s",
    "output v",
    "output z = sum(v)",
    "let k = if s > 0 then 1 else x",
    "s, x = x, s",
    "let e = M @ [1, 2]",
    "s = max(s, 1)",
    "v = v * 2",
    "s = a[n - 1]",
];

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_words(words in prop::collection::vec(prop::sample::select(words()), 0..60)) {
        check(&words.join(" "));
    }

    #[test]
    fn random_statements(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..25)) {
        check(&pieces.join("\n"));
        let open = pieces.iter().map(|piece| piece.matches('{').count()).sum::<usize>();
        let closed = pieces.iter().map(|piece| piece.matches('}').count()).sum::<usize>();
        let closing = "}\n".repeat(open.saturating_sub(closed));
        check(&format!("param x = 1\nvar s = 0\n{}\n{closing}loss done = s\n", pieces.join("\n")));
    }

    #[test]
    fn damaged_programs(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..6_usize, prop::sample::select(words())), 1..6),
    ) {
        let sources = corpus();
        prop_assume!(!sources.is_empty());
        let mut source = which.get(sources).clone();
        for (place, kind, word) in edits {
            let cuts: Vec<usize> = source.char_indices().map(|(at, _)| at).chain([source.len()]).collect();
            let at = *place.get(&cuts);
            let end = cuts.iter().copied().find(|&cut| cut > at + kind).unwrap_or(source.len());
            match kind {
                0 => source.insert_str(at, word),
                1 => source.insert_str(at, &format!(" {word} ")),
                2 | 3 => source.replace_range(at..end, ""),
                4 => source.replace_range(at..end, word),
                _ => {
                    let copy = source[at..end].to_string();
                    source.insert_str(at, &copy);
                }
            }
        }
        check(&source);
    }
}

#[test]
fn every_program_of_the_corpus() {
    corpus().iter().for_each(|source| check(source));
}

#[test]
fn nothing_is_too_deep_or_too_long() {
    let deep = 20_000;
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("not ", ""),
        ("sin(", ")"),
        ("x[", "]"),
        ("if x > 0 then 1 else ", ""),
    ] {
        check(&format!("param x = 1\nloss y = {}x{}", open.repeat(deep), close.repeat(deep)));
        check(&format!("param x = 1\nloss y = {}x", open.repeat(deep)));
        check(&format!("param x = 1\nloss y = {}x{}", open.repeat(90), close.repeat(90)));
    }
    for chain in [" + x", " ^ x", " * x", " and x", "'", "[0]", " < x", "- -x"] {
        check(&format!("param x = 1\nloss y = x{}", chain.repeat(deep)));
        check(&format!("param x = 1\nloss y = x{}", chain.repeat(90)));
    }
    for head in ["if x > 0 {\n", "for i in 0..3 {\n", "while x > 0 {\n", "fn f(x) {\n", "if x > 0 { } else "]
    {
        check(&format!("param x = 1\n{}loss y = x\n{}", head.repeat(deep), "}\n".repeat(deep)));
        check(&format!(
            "param x = 1\nvar y = 0\n{}y = y + x\n{}loss z = y",
            head.repeat(70),
            "}\n".repeat(70)
        ));
    }
    check(&format!("param x = 1\nvar y = 0\n{}loss z = y", "if x > 0 { y += 1 }\n".repeat(300)));
    check(&format!("param x = 1\nif x > 0 {{ }}{}\nloss z = x", " else if x > 1 { }".repeat(deep)));
    let returns = |n: usize| {
        format!("param x = 1\nfn f(x) {{\n{}return 1\n}}\nloss z = f(x)", "if x > 0 { return x }\n".repeat(n))
    };
    check(&returns(60));
    check(&returns(2000));
    let functions = |n: usize| {
        let one = |at: usize| format!("fn f{at}(x) {{ return f{}(x) + 1 }}\n", at + 1);
        format!(
            "param x = 1\n{}fn f{n}(x) {{ return x }}\nloss z = f0(x)",
            (0..n).map(one).collect::<String>()
        )
    };
    check(&functions(40));
    check(&functions(2000));
    check(&format!("loss y = sum([{}])", "1, ".repeat(5000)));
    check(&format!("param x = 1\n{}loss z = x", "\n".repeat(50_000)));
    check(&format!("loss z = {}", "9".repeat(5000)));
    check(&format!("loss {} = 1", "z".repeat(5000)));
}

#[test]
fn types_that_are_hard_to_find() {
    for source in [
        "fn f(a) { return f([a]) }\nloss z = f(1)",
        "fn f(a) { if a > 0 { return f(a - 1) }\nreturn f(a + 1) }\nloss z = f(1)",
        "fn f(a) { return g(a) }\nfn g(a) { return f(a) }\nloss z = f(1)",
        "fn f(a) { return g(a), 1 }\nfn g(a) { let x, y = f(a)\nreturn y }\nloss z = g(1)",
        "fn f(a) { if a < 1 { return 1 }\nlet b = g(a)\nreturn b * 0.5 }\nfn g(a) { if a < 1 { return 2 }\nreturn f(a - 1) + h(a) }\nfn h(a) { if a < 1 { return 3 }\nreturn g(a - 1) }\nloss z = f(3)",
        "const a = b\nconst b = a\nparam x = a\nloss z = x",
        "const a = a\nloss z = a",
        "param x = y\nconst y = x\nloss z = x",
    ] {
        check(source);
    }
    let ring = |n: usize| {
        let one = |at: usize| {
            let next = (at + 1) % n;
            format!(
                "fn f{at}(x) {{ var s = 0\nif x < 1 {{ return s }}\ns = f{next}(x - 1) + f{next}(x - 2)\nreturn s + 0.5 }}\n"
            )
        };
        format!("{}loss z = f0(3)", (0..n).map(one).collect::<String>())
    };
    check(&ring(3));
    check(&ring(12));
}

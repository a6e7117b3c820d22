//! The support module: the text that emitted code calls, as far as it calls it.
//!
//! Input: what is needed. Output: its text in Rust or C. What is not an elementary function is written down
//! once in each language, in the files of `support/`.

use std::collections::BTreeSet;

use palinode_core::decision;

use super::arithmetic;
use super::c::C;
use super::language::Language;
use super::rust::Rust;
use super::symbols::{Tables, Words, texts};

/// A part of the support module.
struct Piece {
    /// The functions in it that ask for it.
    names: &'static [&'static str],
    rust: &'static str,
    c: &'static str,
}

/// What is always there.
const BASE: Piece =
    Piece { names: &[], rust: include_str!("support/base.rs"), c: include_str!("support/base.h") };

const PIECES: &[Piece] = &[
    // For machines, which load Rust.
    Piece { names: &["suspicion"], rust: include_str!("support/suspicions.rs"), c: "" },
    Piece {
        names: &["matrix"],
        rust: include_str!("support/matrix.rs"),
        c: include_str!("support/matrix.h"),
    },
    Piece {
        names: &["sum", "sums", "dot", "dots", "strong_dot", "strong_dots"],
        rust: include_str!("support/sums.rs"),
        c: include_str!("support/sums.h"),
    },
    Piece {
        names: &["largest", "smallest", "largest_of_each", "smallest_of_each"],
        rust: include_str!("support/extremes.rs"),
        c: include_str!("support/extremes.h"),
    },
    Piece {
        names: &["product", "strong_product", "add_product", "add_strong_product"],
        rust: include_str!("support/products.rs"),
        c: include_str!("support/products.h"),
    },
];

/// Names in the support module that no variable may have.
pub(super) const NAMES: &[&str] = &[
    "Stop",
    "Error",
    "At",
    "finite",
    "all_finite",
    "holds",
    "never",
    "within",
    "inside",
    "take_steps",
    "part",
    "part_mut",
    "row_by_row",
    "narrow_product",
    "add_narrow_product",
    "int",
    "rounds",
    "real",
    "truncate",
    "added",
    "subtracted",
    "multiplied",
    "quotient",
    "rest",
    "quotient_by",
    "rest_by",
    "least",
    "most",
    "bits",
    "of_bits",
    "round32",
    "square",
    "cube",
    "suspicion",
    "strong_mul_by_choice",
    "strong_mul_of_nan",
    "sqrt_by_integers",
    "mul_add_by_integers",
    "parts",
    "assembled",
    "matrix",
    "Matrix",
    "sum",
    "sums",
    "dot",
    "dots",
    "strong_dot",
    "strong_dots",
    "largest",
    "smallest",
    "largest_of_each",
    "smallest_of_each",
    "product",
    "strong_product",
    "add_product",
    "add_strong_product",
    "tree",
    "combined",
    "block",
    "reduced",
    "best",
    "chains",
    // Of the standard library of C.
    "fabs",
    "fma",
    "fmod",
    "isinf",
    "isfinite",
    "memcpy",
];

/// What emitted code calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    names: BTreeSet<&'static str>,
    slices: BTreeSet<&'static str>,
    /// Whether steps are counted.
    pub(super) counts: bool,
}

impl Needs {
    /// A function.
    pub(super) fn add(&mut self, name: &'static str) {
        self.names.insert(name);
    }

    /// A function of numbers, over themselves.
    pub(super) fn of_all(&mut self, name: &'static str) {
        self.names.insert(name);
        self.slices.insert(name);
    }

    /// All of another, too.
    pub(super) fn join(&mut self, other: &Needs) {
        self.names.extend(&other.names);
        self.slices.extend(&other.slices);
    }

    fn has(&self, piece: &Piece) -> bool {
        // Sums know rows of matrices, too.
        let sums = ["sum", "sums"].iter().any(|name| self.names.contains(name));
        piece.names.iter().any(|name| self.names.contains(name)) || piece.names == ["matrix"] && sums
    }

    fn elementary(&self) -> impl Iterator<Item = &'static str> {
        let is_one = |name: &&str| {
            arithmetic::elementary(name).is_some() || arithmetic::elementary_of_two(name).is_some()
        };
        self.names.iter().copied().filter(is_one)
    }
}

/// The thresholds of suspicious comparisons, where a piece asks for them.
fn filled(text: &str) -> String {
    let mut text = text.to_string();
    for (name, value) in [("TINY", decision::TINY), ("SMALL", decision::SMALL)] {
        text = text.replace(&format!("{name}: f64 = ITS_VALUE"), &format!("{name}: f64 = {value:?}"));
    }
    text
}

fn pieces<'a>(needs: &'a Needs, of: impl Fn(&'static Piece) -> &'static str + 'a) -> String {
    let mut out = of(&BASE).to_string();
    for piece in PIECES.iter().filter(|piece| needs.has(piece)) {
        out.push('\n');
        out.push_str(&filled(of(piece)));
    }
    out
}

/// The functions of one number that are also there for slices, eight at a time, so that those that are rare
/// keep no other waiting.
const OF_ALL_RUST: &str = "
/// The same for all numbers, over themselves.
pub(crate) fn NAME_of_all(x: &mut [f64]) {
    let (groups, rest) = x.as_chunks_mut::<8>();
    for group in groups {
        let rare = group.iter().fold(false, |any, &x| any | is_rare_NAME(x));
        if rare {
            group.iter_mut().for_each(|x| *x = NAME(*x));
        } else {
            group.iter_mut().for_each(|x| *x = fast_NAME(*x));
        }
    }
    rest.iter_mut().for_each(|x| *x = NAME(*x));
}
";

const OF_ALL_PLAIN_RUST: &str = "
/// The same for all numbers, over themselves.
pub(crate) fn NAME_of_all(x: &mut [f64]) {
    x.iter_mut().for_each(|x| *x = NAME(*x));
}
";

const OF_ALL_C: &str = "
PAL_FUNCTION void pal_NAME_of_all(double *x, size_t count) {
    for (size_t i = 0; i < count; i++) x[i] = pal_NAME(x[i]);
}
";

/// The text of the support module in Rust.
pub(super) fn rust(needs: &Needs) -> String {
    let mut out = pieces(needs, |piece| piece.rust);
    let words = Words { word: "u64", truth: "bool", wrap: true, names_first: true };
    let (mut tables, mut functions) = (Tables::default(), String::new());
    for name in needs.elementary() {
        let Some(texts) = texts(name, &Rust, &words, &mut tables) else { continue };
        let params: Vec<String> = texts.args.iter().map(|arg| format!("{arg}: f64")).collect();
        let (params, args) = (params.join(", "), texts.args.join(", "));
        let mut function = |name: &str, result: &str, attribute: &str, body: &super::symbols::Body| {
            functions.push_str(&format!("\n{attribute}\npub(crate) fn {name}({params}) -> {result} {{\n"));
            body.lines.iter().for_each(|line| functions.push_str(&format!("    {line}\n")));
            functions.push_str(&format!("    {}\n}}\n", body.result));
        };
        match &texts.rare {
            None => function(name, "f64", "#[inline(always)]", &texts.fast),
            Some((is_rare, slow)) => {
                function(&format!("fast_{name}"), "f64", "#[inline(always)]", &texts.fast);
                function(&format!("is_rare_{name}"), "bool", "#[inline(always)]", is_rare);
                function(&format!("slow_{name}"), "f64", "#[cold]\n#[inline(never)]", slow);
                let choice = format!(
                    "if is_rare_{name}({args}) {{ slow_{name}({args}) }} else {{ fast_{name}({args}) }}"
                );
                function(
                    name,
                    "f64",
                    "#[inline(always)]",
                    &super::symbols::Body { lines: Vec::new(), result: choice },
                );
            }
        }
        if needs.slices.contains(name) {
            let text = if texts.rare.is_some() { OF_ALL_RUST } else { OF_ALL_PLAIN_RUST };
            functions.push_str(&text.replace("NAME", name));
        }
    }
    if needs.elementary().next().is_some() {
        out.push_str("\n/// The number with these bits.\n#[inline(always)]\npub(crate) fn of_bits(bits: u64) -> f64 {\n    f64::from_bits(bits)\n}\n");
    }
    for (number, table) in tables.0.iter().enumerate() {
        out.push_str(&format!("\nstatic TABLE_{}: [f64; 64] = [\n{}];\n", number + 1, rows(table, &Rust)));
    }
    out.push_str(&functions);
    out
}

/// The text of the support functions in C.
pub(super) fn c(needs: &Needs) -> String {
    let mut out = pieces(needs, |piece| piece.c);
    let words = Words { word: "uint64_t", truth: "bool", wrap: false, names_first: false };
    let (mut tables, mut functions) = (Tables::default(), String::new());
    for name in needs.elementary() {
        let Some(texts) = texts(name, &C, &words, &mut tables) else { continue };
        let params: Vec<String> = texts.args.iter().map(|arg| format!("double {arg}")).collect();
        let (params, args) = (params.join(", "), texts.args.join(", "));
        let mut function = |name: &str, result: &str, body: &super::symbols::Body| {
            functions.push_str(&format!("\nPAL_FUNCTION {result} pal_{name}({params}) {{\n"));
            body.lines.iter().for_each(|line| functions.push_str(&format!("    {line}\n")));
            functions.push_str(&format!("    return {};\n}}\n", body.result));
        };
        match &texts.rare {
            None => function(name, "double", &texts.fast),
            Some((is_rare, slow)) => {
                function(&format!("fast_{name}"), "double", &texts.fast);
                function(&format!("is_rare_{name}"), "bool", is_rare);
                function(&format!("slow_{name}"), "double", slow);
                let choice =
                    format!("pal_is_rare_{name}({args}) ? pal_slow_{name}({args}) : pal_fast_{name}({args})");
                function(name, "double", &super::symbols::Body { lines: Vec::new(), result: choice });
            }
        }
        if needs.slices.contains(name) {
            functions.push_str(&OF_ALL_C.replace("NAME", name));
        }
    }
    for (number, table) in tables.0.iter().enumerate() {
        out.push_str(&format!(
            "\nstatic const double pal_table_{}[64] = {{\n{}}};\n",
            number + 1,
            rows(table, &C)
        ));
    }
    out.push_str(&functions);
    out
}

/// The numbers of a table, four to a line.
fn rows(table: &[f64; 64], language: &dyn Language) -> String {
    let line = |numbers: &[f64]| {
        let numbers: Vec<String> = numbers.iter().map(|&number| language.real(number).text).collect();
        format!("    {},\n", numbers.join(", "))
    };
    table.chunks(4).map(line).collect()
}

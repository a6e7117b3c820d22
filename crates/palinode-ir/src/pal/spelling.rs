//! Other names: everyday ones of rows of the rule table, and the known one that an unknown one resembles.

/// Everyday names of rows of the rule table.
pub(crate) const ALIASES: &[(&str, &str)] = &[
    ("log", "ln"),
    ("log1p", "ln_1p"),
    ("expm1", "exp_m1"),
    ("sigmoid", "logistic"),
    ("sign", "signum"),
    ("arcsin", "asin"),
    ("arccos", "acos"),
    ("arctan", "atan"),
    ("arctan2", "atan2"),
    ("arcsinh", "asinh"),
    ("arccosh", "acosh"),
    ("arctanh", "atanh"),
    ("fma", "mul_add"),
];

/// The row that an everyday name stands for.
pub(crate) fn rule_alias(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|alias| alias.0 == name).map(|alias| alias.1)
}

/// The candidate that is most like `name`, if one is alike enough.
pub(crate) fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let allowed = match name.chars().count() {
        0..=1 => 0,
        2..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    let scored = candidates.into_iter().filter(|candidate| *candidate != name).map(|candidate| {
        let same_letters = candidate.eq_ignore_ascii_case(name);
        (if same_letters { 0 } else { distance(name, candidate) }, candidate)
    });
    let (score, best) = scored.min_by_key(|(score, candidate)| (*score, candidate.len()))?;
    (score <= allowed).then(|| best.to_string())
}

/// How many letters must be changed, inserted, dropped or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let best = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if swap { best.min(rows[i - 2][j - 2] + 1) } else { best }
            };
        }
    }
    rows[a.len()][b.len()]
}

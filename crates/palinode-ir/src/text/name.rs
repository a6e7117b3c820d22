//! Names from people <-> words of the text form.
//!
//! Letters and digits of any script, `_` and `.` are printed as they are; every other character as `\{hex}`,
//! and the empty name as `\{}`. Invariant: a printed name is one word for the lexer, and [`decode`] gives the
//! name back.

/// Whether a character stands for itself in a name.
pub(crate) fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// A name as a word.
pub(crate) fn encode(name: &str) -> String {
    if name.is_empty() {
        return "\\{}".to_string();
    }
    let mut word = String::with_capacity(name.len());
    for c in name.chars() {
        if is_plain(c) {
            word.push(c);
        } else {
            word.push_str(&format!("\\{{{:x}}}", u32::from(c)));
        }
    }
    word
}

/// The name that a word stands for; `None` if an escape is not a character.
pub(crate) fn decode(word: &str) -> Option<String> {
    let mut name = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find('\\') {
        name.push_str(&rest[..at]);
        let (digits, after) = rest[at + 1..].strip_prefix('{')?.split_once('}')?;
        if !digits.is_empty() {
            name.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
        }
        rest = after;
    }
    name.push_str(rest);
    Some(name)
}

/// The word of a value with this number.
pub(super) fn label(name: Option<&str>, number: u32) -> String {
    match name {
        Some(name) => format!("{}.{number}", encode(name)),
        None => format!("v{number}"),
    }
}

/// The name inside a value's word: `None` for `v12`, `x` for `x.12` and for `x`.
pub(super) fn name_in(label: &str) -> Option<&str> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if label.strip_prefix('v').is_some_and(number) {
        return None;
    }
    match label.rsplit_once('.') {
        Some((name, digits)) if number(digits) && !name.is_empty() => Some(name),
        _ => Some(label),
    }
}

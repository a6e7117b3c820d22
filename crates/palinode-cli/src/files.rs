//! Reading files, with errors that say what to do.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::assign::closest;
use crate::problem::{Exit, Failed, Problem};

/// The text of a file, without a byte order mark; `-` is standard input.
pub(crate) fn read(path: &Path, what: &str) -> Result<String, Failed> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let bytes = bytes.map_err(|error| unreadable(path, what, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count() + 1;
        let message = format!("{what} {} is not text in UTF-8 (line {line})", path.display());
        Failed::from(Problem::new("PAL0281", Exit::Input, message).help("save it as UTF-8"))
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_string(),
        None => text,
    })
}

fn unreadable(path: &Path, what: &str, error: &io::Error) -> Failed {
    let message = format!("{what} {} cannot be read", path.display());
    let problem = Problem::new("PAL0281", Exit::Input, message);
    if error.kind() != io::ErrorKind::NotFound {
        return problem.note(error.to_string()).into();
    }
    let problem = problem.note("there is no such file");
    match neighbour(path) {
        Some(other) => problem.help(format!("did you mean {other}?")).into(),
        None => problem.help("check the spelling and the folder").into(),
    }
}

/// A file in the same folder with a name that is alike.
fn neighbour(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name()?.to_str()?;
    let names: Vec<String> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .take(10_000)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let others: Vec<&str> = names.iter().map(String::as_str).collect();
    // A model without its ending is the commonest slip.
    let with_ending = format!("{name}.pal");
    let best =
        others.iter().copied().find(|other| *other == with_ending).or_else(|| closest(name, &others))?;
    Some(path.with_file_name(best).display().to_string())
}

/// Writes a file.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failed> {
    fs::write(path, text).map_err(|error| {
        let message = format!("{} cannot be written", path.display());
        Problem::new("PAL0281", Exit::Input, message).note(error.to_string()).into()
    })
}

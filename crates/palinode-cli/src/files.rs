//! Reading and writing files, with errors that say what to do.

use std::fs;
use std::io::{self, Read, Write};
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

/// Replaces the text of a file, or leaves it as it was: whatever happens on the way (a full disk, a kill), there is never half of it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failed> {
    replace(path, text).map_err(|error| {
        let message = format!("{} cannot be written", path.display());
        Problem::new("PAL0281", Exit::Input, message).note(error.to_string()).into()
    })
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A link stays one.
    let path = &fs::canonicalize(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let made = fs::File::create(&beside);
    if made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        // A folder in which nothing can be made may have files that can be changed.
        return fs::write(path, text);
    }
    let done = made.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.set_permissions(fs::metadata(path)?.permissions())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    if done.is_err() {
        // What stopped the writing is what is reported.
        let _ = fs::remove_file(&beside);
    }
    done
}

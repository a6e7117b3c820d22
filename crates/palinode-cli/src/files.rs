//! Reading and writing files, with errors that say what to do.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::assign::closest;
use crate::closed;
use crate::problem::{Exit, Failed, Problem};

/// Texts are read up to this size: what goes on for longer is no file of numbers but a device, or a mistake.
const LONGEST: usize = 1 << 30;

/// The text of a file, without a byte order mark; `-` is standard input. It is looked at while it is read, so
/// that what has no end (`/dev/zero`) is refused all the same.
pub(crate) fn read(path: &Path, what: &str) -> Result<String, Failed> {
    let done = if path == Path::new("-") {
        match closed::INPUT.is_closed() {
            true => Err(Unread::Io(io::Error::other("standard input is closed"))),
            false => text(&mut io::stdin().lock(), LONGEST),
        }
    } else {
        fs::File::open(path).map_err(Unread::Io).and_then(|mut file| text(&mut file, LONGEST))
    };
    done.map_err(|error| match error {
        Unread::Io(error) => unreadable(path, what, &error),
        Unread::NotText { line, column, why, help } => {
            let message =
                format!("{what} {} is not text: line {line}, column {column} {why}", path.display());
            Problem::new("PAL0281", Exit::Input, message).help(help).into()
        }
        Unread::TooLong => {
            let longest = crate::numbers::bytes(LONGEST);
            let message = format!("{what} {} is longer than the limit of {longest}", path.display());
            let problem = Problem::new("PAL0281", Exit::Input, message);
            problem.help("check that it is the right file; split larger data into several files").into()
        }
    })
}

/// Why there is no text.
#[derive(Debug)]
enum Unread {
    Io(io::Error),
    NotText { line: usize, column: usize, why: &'static str, help: &'static str },
    TooLong,
}

/// All of a text, of at most `longest` bytes.
fn text(from: &mut dyn Read, longest: usize) -> Result<String, Unread> {
    let mut all = String::new();
    // The start of a character whose other bytes are still to come.
    let mut rest: Vec<u8> = Vec::new();
    let mut block = vec![0; 1 << 16];
    loop {
        let length = match from.read(&mut block) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Unread::Io(error)),
        };
        rest.extend_from_slice(&block[..length]);
        let (good, is_broken) = match std::str::from_utf8(&rest) {
            Ok(text) => (text, false),
            Err(error) => {
                let good = std::str::from_utf8(&rest[..error.valid_up_to()]).expect("so far it is text");
                (good, error.error_len().is_some() || length == 0)
            }
        };
        let has_nul = good.find('\0');
        let read = good.len();
        all.push_str(&good[..has_nul.unwrap_or(read)]);
        if has_nul.is_some() || is_broken {
            let line = all.bytes().filter(|&byte| byte == b'\n').count() + 1;
            let column = all.rsplit('\n').next().unwrap_or("").chars().count() + 1;
            let (why, help) = match has_nul {
                Some(_) => {
                    ("holds a byte 0", "give it a file of text; a spreadsheet is saved as CSV in UTF-8")
                }
                None => ("is not UTF-8", "save it as UTF-8"),
            };
            return Err(Unread::NotText { line, column, why, help });
        }
        rest.drain(..read);
        if all.len() > longest {
            return Err(Unread::TooLong);
        }
        if length == 0 {
            if all.starts_with('\u{feff}') {
                all.drain(..'\u{feff}'.len_utf8());
            }
            return Ok(all);
        }
    }
}

fn unreadable(path: &Path, what: &str, error: &io::Error) -> Failed {
    let message = format!("{what} {} cannot be read", path.display());
    let problem = Problem::new("PAL0281", Exit::Input, message);
    match error.kind() {
        io::ErrorKind::NotFound => {}
        io::ErrorKind::IsADirectory => {
            return problem.note("it is a folder").help("name a file in it").into();
        }
        _ => return problem.note(error.to_string()).help("check that you may read it").into(),
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

/// Replaces the text of a file, or leaves it as it was: whatever happens on the way (a full disk, a kill),
/// there is never half of it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time, without end if it has none.
    struct Slow<'a>(Box<dyn Iterator<Item = u8> + 'a>, usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(into.len());
            Ok(into[..most].iter_mut().zip(&mut self.0).map(|(place, byte)| *place = byte).count())
        }
    }

    #[test]
    fn texts_are_read_in_pieces_of_any_size() {
        for text in ["", "a", "1,2\n3,4\n", "µ€🙂\nä", "\u{feff}t\n1"] {
            for size in 1..6 {
                let read = super::text(&mut Slow(Box::new(text.bytes()), size), 100).unwrap();
                assert_eq!(read, text.trim_start_matches('\u{feff}'), "{size}");
            }
        }
    }

    #[test]
    fn what_is_no_text_is_refused_where_it_stops_being_one() {
        for (bytes, place) in [
            (&b"\0"[..], (1, 1)),
            (b"t\n1\n2\0\n", (3, 2)),
            (b"t\n\xff1", (2, 1)),
            ("µµ\0".as_bytes(), (1, 3)),
            (b"a\xc2", (1, 2)),
        ] {
            for size in 1..6 {
                match super::text(&mut Slow(Box::new(bytes.iter().copied()), size), 100) {
                    Err(Unread::NotText { line, column, .. }) => {
                        assert_eq!((line, column), place, "{bytes:?}")
                    }
                    other => panic!("{bytes:?}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn what_does_not_end_is_refused() {
        let endless = super::text(&mut Slow(Box::new(std::iter::repeat(b'1')), 7), 100);
        assert!(matches!(endless, Err(Unread::TooLong)), "{endless:?}");
        let zeros = super::text(&mut Slow(Box::new(std::iter::repeat(0)), 7), usize::MAX);
        assert!(matches!(zeros, Err(Unread::NotText { line: 1, column: 1, .. })), "{zeros:?}");
    }
}

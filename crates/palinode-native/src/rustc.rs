//! Machine code by rustc: the loop form printed as Rust, compiled as a library, kept in a folder, loaded.
//!
//! Input: a loop form. Output: its code. A library is compiled once for a text, a compiler and a processor,
//! and found again by every process that asks for the same. Its name has two parts: what it is the code of,
//! and the hash of its bytes, which are looked at before they are loaded: a file that was cut short or
//! changed is compiled anew. Files appear under their names when they are whole, so processes may compile the
//! same thing at the same time.
//!
//! The folder is `PALINODE_CACHE`, or `palinode` in the user's folder for such files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, process};

use libloading::Library;
use palinode_ir::Span;
use palinode_ir::loops::{LoopForm, emit};
use xxhash_rust::xxh3::xxh3_128;

use crate::codegen::{Code, Compiled, Refused};

/// What rustc is asked for. Nothing is fused: rustc does not do that by itself.
const FLAGS: &[&str] = &[
    "--edition=2024",
    "--crate-name=palinode_program",
    "--crate-type=cdylib",
    "--cfg=feature=\"std\"",
    "--cap-lints=allow",
    "-Copt-level=3",
    "-Ctarget-cpu=native",
    "-Ccodegen-units=1",
    "-Cpanic=abort",
    "-Cstrip=symbols",
];

/// The compiler, and what it says about itself and this processor.
struct Compiler {
    program: PathBuf,
    /// Its version and the features of the processor.
    about: String,
}

/// The compiler, if there is one; it is asked once.
fn compiler() -> Result<&'static Compiler, Refused> {
    static FOUND: OnceLock<Result<Compiler, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let program = PathBuf::from(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let ask = |args: &[&str]| {
            let output = Command::new(&program).args(args).output();
            let output = output.map_err(|error| format!("{} does not start: {error}", program.display()))?;
            if !output.status.success() {
                return Err(format!("{} does not work", program.display()));
            }
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let about = ask(&["-vV"])? + &ask(&["--print=cfg", "-Ctarget-cpu=native"])?;
        Ok(Compiler { program, about })
    });
    found.as_ref().map_err(|why| Refused(why.clone()))
}

/// Whether there is a compiler.
pub(crate) fn is_there() -> bool {
    compiler().is_ok()
}

/// The folder of libraries.
pub(crate) fn folder() -> Result<PathBuf, Refused> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("PALINODE_CACHE") {
        return Ok(folder);
    }
    let users = if cfg!(target_os = "windows") {
        set("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        set("HOME").map(|home| home.join("Library/Caches"))
    } else {
        set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
    };
    users
        .map(|folder| folder.join("palinode"))
        .ok_or(Refused("there is no folder for compiled programs".into()))
}

/// Compiles a loop form, or finds it compiled in a folder.
pub(crate) fn compile(form: &LoopForm, folder: &Path) -> Result<Compiled, Refused> {
    emit::supported(form).map_err(|refusal| Refused(format!("{} has no text in Rust", refusal.what)))?;
    let compiler = compiler()?;
    let names = |what: &str, count: usize| (0..count).map(|at| format!("{what}{at}").into()).collect();
    let task = emit::Task {
        name: "run",
        about: "A program.".into(),
        form,
        inputs: names("given", form.inputs.len()),
        outputs: names("taken", form.outputs.len()),
    };
    let nowhere = |_: Span| None;
    let options = emit::Options { counts: true, watches: true, line_of: &nowhere };
    let (text, entries) = emit::rust_library(&task, &options);
    let about = [&compiler.about, &FLAGS.join(" "), &text].map(|part| part.as_str()).join("\n");
    let key = format!("{:032x}", xxh3_128(about.as_bytes()));
    let io = |error: io::Error| Refused(format!("{}: {error}", folder.display()));
    let path = match find(folder, &key) {
        Some(path) => path,
        None => {
            create(folder).map_err(io)?;
            let work = Work::new(folder).map_err(io)?;
            build(compiler, &work, &text, folder, &key)?
        }
    };
    load(&path, entries)
}

/// Makes the folder: code is loaded from it, so nobody else may write there.
fn create(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// What a library is called: what it is the code of, and the hash of its bytes.
fn named(key: &str, bytes: &[u8]) -> String {
    format!("{key}-{:032x}.{}", xxh3_128(bytes), env::consts::DLL_EXTENSION)
}

/// The library of a key, if its bytes are those that were compiled.
fn find(folder: &Path, key: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(key)) else { continue };
        if fs::read(entry.path()).is_ok_and(|bytes| named(key, &bytes) == name) {
            return Some(entry.path());
        }
        // It is none, or was changed.
        let _ = fs::remove_file(entry.path());
    }
    None
}

/// A folder of this process only, which is removed in any case.
struct Work(PathBuf);

impl Work {
    fn new(folder: &Path) -> io::Result<Work> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let work = folder.join(format!("work-{}-{number}", process::id()));
        fs::create_dir_all(&work)?;
        Ok(Work(work))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn build(compiler: &Compiler, work: &Work, text: &str, folder: &Path, key: &str) -> Result<PathBuf, Refused> {
    let io = |error: io::Error| Refused(format!("{}: {error}", folder.display()));
    let (source, library) = (work.0.join("program.rs"), work.0.join("program.bin"));
    fs::write(&source, text).map_err(io)?;
    let output = Command::new(&compiler.program)
        .args(FLAGS)
        .arg("-o")
        .args([&library, &source])
        .output()
        .map_err(|error| Refused(format!("{} does not start: {error}", compiler.program.display())))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let first = words.lines().find(|line| line.starts_with("error")).unwrap_or("it does not say why");
        return Err(Refused(format!("rustc: {first}")));
    }
    let bytes = fs::read(&library).map_err(io)?;
    let path = folder.join(named(key, &bytes));
    fs::rename(&library, &path).map_err(io)?;
    Ok(path)
}

fn load(path: &Path, [entry, workspace]: [&str; 2]) -> Result<Compiled, Refused> {
    let refused = |error: libloading::Error| Refused(format!("{}: {error}", path.display()));
    // SAFETY: the library is what rustc made of text of ours, by the hash of its bytes; nothing runs when it
    // is loaded. What is looked up has these types there.
    #[allow(unsafe_code)]
    unsafe {
        let library = Library::new(path).map_err(refused)?;
        let bytes: *const usize = *library.get(workspace.as_bytes()).map_err(refused)?;
        let entry: *const u8 = *library.get(entry.as_bytes()).map_err(refused)?;
        let workspace = *bytes;
        Ok(Compiled {
            code: Some(Code::Library(library)),
            entry,
            sites: Vec::new(),
            workspace,
            watches: true,
        })
    }
}

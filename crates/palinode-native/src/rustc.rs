//! Machine code by rustc: the loop form printed as Rust, compiled as a library, kept in a folder, loaded.
//!
//! Input: a loop form. Output: its code. A library is compiled once for a text, a compiler and a processor,
//! and found again by every process that asks for the same. Its name has two parts: what it is the code of,
//! and the hash of its bytes, which are looked at before they are loaded: a file that was cut short or
//! changed is compiled anew. Files appear under their names when they are whole, so processes may compile the
//! same thing at the same time.
//!
//! The folder is `PALINODE_CACHE`, or `palinode` in the user's folder for such files. It is used only if it
//! is the user's own, and nobody else may write to it: code is loaded from it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, process};

use libloading::Library;
use palinode_ir::loops::{LoopForm, Stmt, emit};
use xxhash_rust::xxh3::xxh3_128;

use crate::compile::{Code, Compiled, Refused};

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

/// What it is asked for besides where numbers are computed one by one: not to compute two such numbers as a
/// vector. Each waits for the one before, and longer if it is put into a vector and taken out again: a
/// gradient of lorenz takes 3.06 µs instead of 3.74.
const ONE_BY_ONE: &[&str] = &["-Cno-vectorize-slp"];

/// Whether a form has neither loops over elements nor kernels.
fn is_one_by_one(stmts: &[Stmt]) -> bool {
    stmts.iter().all(|stmt| match stmt {
        Stmt::Each { .. }
        | Stmt::Function { .. }
        | Stmt::Reduce { .. }
        | Stmt::Product { .. }
        | Stmt::Dots { .. }
        | Stmt::AllFinite { .. }
        | Stmt::Kernel { .. } => false,
        _ => stmt.blocks().into_iter().all(|block| is_one_by_one(block)),
    })
}

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
            let output = command(&program).args(args).output();
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

/// The compiler, which is not to be downloaded by the way.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("RUSTUP_AUTO_INSTALL", "0");
    command
}

/// The folder of libraries, if there is a place for one.
pub(crate) fn folder() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("PALINODE_CACHE") {
        return Some(folder);
    }
    let users = if cfg!(target_os = "windows") {
        set("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        set("HOME").map(|home| home.join("Library/Caches"))
    } else {
        set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
    };
    users.map(|folder| folder.join("palinode"))
}

/// Compiles a loop form, or finds it compiled in a folder.
pub(crate) fn compile(form: &LoopForm, folder: &Path) -> Result<Compiled, Refused> {
    let source = Source::of(form)?;
    let io = |error: io::Error| Refused(format!("{}: {error}", folder.display()));
    create(folder).map_err(io)?;
    let work = Work::new(folder).map_err(io)?;
    trust(folder, &work)?;
    match find(folder, &source.key) {
        Some(path) => load(&path, source.entries, true),
        None => load(&build(&work, &source, folder)?, source.entries, false),
    }
}

/// Finds it compiled.
pub(crate) fn kept(form: &LoopForm, folder: &Path) -> Option<Compiled> {
    if !folder.is_dir() {
        return None;
    }
    let source = Source::of(form).ok()?;
    trust(folder, &Work::new(folder).ok()?).ok()?;
    load(&find(folder, &source.key)?, source.entries, true).ok()
}

/// What is compiled.
struct Source {
    compiler: &'static Compiler,
    flags: Vec<&'static str>,
    text: String,
    entries: [&'static str; 2],
    /// The hash of all that a library depends on.
    key: String,
}

impl Source {
    fn of(form: &LoopForm) -> Result<Source, Refused> {
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
        let (text, entries) = emit::rust_library(&task);
        let flags = if is_one_by_one(&form.body) { [FLAGS, ONE_BY_ONE].concat() } else { FLAGS.to_vec() };
        let about = [&compiler.about, &flags.join(" "), &text].map(|part| part.as_str()).join("\n");
        let key = format!("{:032x}", xxh3_128(about.as_bytes()));
        Ok(Source { compiler, flags, text, entries, key })
    }
}

/// Whether a folder is that of the user who makes a folder in it, and nobody else's.
#[cfg(unix)]
fn trust(folder: &Path, work: &Work) -> Result<(), Refused> {
    use std::os::unix::fs::MetadataExt;
    let about =
        |path: &Path| fs::metadata(path).map_err(|error| Refused(format!("{}: {error}", path.display())));
    let (theirs, own) = (about(folder)?, about(&work.0)?);
    let others_write = theirs.mode() & 0o022 != 0;
    match theirs.uid() == own.uid() && !others_write {
        true => Ok(()),
        false => Err(Refused(format!("{} may be written to by other users", folder.display()))),
    }
}

/// Folders of users are their own there.
#[cfg(not(unix))]
fn trust(_: &Path, _: &Work) -> Result<(), Refused> {
    Ok(())
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

fn build(work: &Work, source: &Source, folder: &Path) -> Result<PathBuf, Refused> {
    let io = |error: io::Error| Refused(format!("{}: {error}", folder.display()));
    let (text, library) = (work.0.join("program.rs"), work.0.join("program.bin"));
    fs::write(&text, &source.text).map_err(io)?;
    let compiler = &source.compiler.program;
    let output = command(compiler)
        .args(&source.flags)
        .arg("-o")
        .args([&library, &text])
        .output()
        .map_err(|error| Refused(format!("{} does not start: {error}", compiler.display())))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let first = words.lines().find(|line| line.starts_with("error")).unwrap_or("it does not say why");
        return Err(Refused(format!("rustc: {first}")));
    }
    let bytes = fs::read(&library).map_err(io)?;
    let path = folder.join(named(&source.key, &bytes));
    fs::rename(&library, &path).map_err(io)?;
    Ok(path)
}

fn load(path: &Path, [entry, workspace]: [&str; 2], was_there: bool) -> Result<Compiled, Refused> {
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
            calls: Vec::new(),
            workspace,
            suspects: true,
            was_there,
        })
    }
}

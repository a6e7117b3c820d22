//! The directory of a run, its owner's lock, and what killed runs left behind.
//!
//! Input: a directory that the user names. Output: a fresh one inside it, which is removed with all its
//! snapshots when dropped.
//!
//! A run's directory holds a file `owner`, locked for as long as the run lives: the system gives the lock
//! back however the process ends. So a directory whose owner's lock can be had belongs to nobody any more.
//! What it holds is never read, because files carry the number of their run; it is removed when the next run
//! begins beside it. Only what looks in every way like ours is removed.
//!
//! Invariant: the owner's file has its contents only after it was locked, so that a directory which is being
//! made is not taken for an abandoned one.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

const OWNER: &str = "owner";
const MARK: &[u8] = b"palinode snapshots 1\n";
const PREFIX: &str = "palinode-run-";
const SLOT_PREFIX: &str = "slot-";
const SLOT_SUFFIX: &str = ".snapshot";

/// The name of a slot's file.
pub(super) fn slot_name(slot: u32) -> String {
    format!("{SLOT_PREFIX}{slot}{SLOT_SUFFIX}")
}

fn is_slot_name(name: &str) -> bool {
    let number = name.strip_prefix(SLOT_PREFIX).and_then(|rest| rest.strip_suffix(SLOT_SUFFIX));
    number.is_some_and(|digits| digits.parse::<u32>().is_ok())
}

/// The directory of a run.
#[derive(Debug)]
pub(super) struct RunDirectory {
    pub(super) path: PathBuf,
    /// The run's random number.
    pub(super) run: u64,
    /// Held, never read.
    _owner: File,
}

impl RunDirectory {
    /// A fresh one in this directory, which is made if it is not there. Removes those that killed runs left.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        remove_abandoned(parent);
        // A name is taken, or its lock is being tried by someone else, about never; but then another one will
        // do.
        let mut attempts = 0;
        loop {
            let run = random();
            let path = parent.join(format!("{PREFIX}{}-{run:016x}", std::process::id()));
            match Self::create_at(&path, run) {
                Err(error) if attempts < 8 && is_collision(&error) => attempts += 1,
                result => return result,
            }
        }
    }

    fn create_at(path: &Path, run: u64) -> io::Result<Self> {
        make_private(path)?;
        let made = || {
            let mut owner = File::create_new(path.join(OWNER))?;
            match owner.try_lock() {
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
                // A file system without locks: then nobody can have the lock, and nothing is ever taken for
                // abandoned.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(error),
                Ok(()) => {}
            }
            owner.write_all(MARK)?;
            Ok(owner)
        };
        match made() {
            Ok(owner) => Ok(RunDirectory { path: path.to_path_buf(), run, _owner: owner }),
            Err(error) => {
                let _ = remove_ours(path); // the error of making it is the one to tell
                Err(error)
            }
        }
    }

    /// Removes it, and tells if that failed.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove_ours(&self.path)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        let _ = self.remove(); // nobody to tell; the next run in this directory tries again
    }
}

fn is_collision(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::WouldBlock)
}

/// A number that no other run has: of this process, of this time, of this call, and random.
fn random() -> u64 {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let count = RUNS.fetch_add(1, Ordering::Relaxed);
    RandomState::new().hash_one((std::process::id(), count, SystemTime::now()))
}

/// A new directory that only this user can enter: snapshots are the user's data.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Removes the directories of runs whose processes are gone. What cannot be removed stays.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // Not through a link: that would be another directory.
        if ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = remove_if_abandoned(&entry.path());
        }
    }
}

fn remove_if_abandoned(path: &Path) -> io::Result<()> {
    let mut owner = File::open(path.join(OWNER))?;
    if owner.try_lock().is_err() {
        return Ok(());
    }
    let mut mark = [0; MARK.len()];
    owner.read_exact(&mut mark)?;
    if mark == MARK { remove_ours(path) } else { Ok(()) }
}

/// Removes the snapshots in a run's directory, the owner's file and the directory. Files that are not ours
/// stay, and with them the directory.
fn remove_ours(path: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_slot_name) {
            gone(fs::remove_file(entry.path()))?;
        }
    }
    gone(fs::remove_file(path.join(OWNER)))?;
    gone(fs::remove_dir(path))
}

/// What is gone need not be removed.
pub(super) fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

//! Snapshots on disk.
//!
//! Input: snapshots. Output: the same, from files: one for each slot, in a directory of the run's own. A
//! thread writes them while the sweep goes on, and reads them before they are needed if it is asked to
//! (`prefetch`).
//!
//! | file | holds |
//! |---|---|
//! | `file.rs` | a snapshot as bytes, with its label and checksum |
//! | `directory.rs` | the run's directory, its lock, what killed runs left |
//! | `worker.rs` | the thread |
//!
//! Invariants: of three buffers at most two wait to be written and at most two are being read or wait to be
//! fetched, so neither shuts out the other. A failure in the background is reported by the next call, and
//! again by every call for that slot. Files are removed when the store is dropped, whatever happened before.
//!
//! Limits: the system's cache of files is not counted, nor is the thread's stack (128 KiB). Files are not
//! forced to the device (`fsync`): no other run will read them.

mod directory;
mod file;
mod worker;

use directory::{RunDirectory, slot_name};
use file::Label;
use palinode_core::{Snapshot, SnapshotError, SnapshotStore, StoreStats};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use worker::{Done, Job, Worker, failure, place};

const BUFFERS: usize = 3;
/// Buffers that may wait to be written, and those that may wait to be fetched.
const EACH_WAY: usize = 2;

/// Snapshots in files, written and read on another thread.
///
/// ```
/// use palinode_core::{Snapshot, SnapshotStore};
/// use palinode_time::DiskStore;
///
/// let directory = std::env::temp_dir().join("palinode-doc");
/// let mut store = DiskStore::new(&directory);
/// store.put(0, 17, &Snapshot::of(&vec![0.5; 1000]))?; // goes on at once; the file is written meanwhile
/// store.prefetch(0, 17);
/// let mut kept = Snapshot::new();
/// store.get(0, 17, &mut kept)?;
/// assert_eq!(kept.loaded::<f64, Vec<f64>>(), [0.5; 1000]);
/// let files = store.directory().unwrap().to_path_buf();
/// drop(store);
/// assert!(!files.exists());
/// # std::fs::remove_dir(&directory).ok();
/// # Ok::<(), palinode_core::SnapshotError>(())
/// ```
#[derive(Debug)]
pub struct DiskStore {
    parent: PathBuf,
    /// Made when first needed.
    run: Option<Run>,
    slots: Vec<Slot>,
    /// Buffers that nobody uses.
    buffers: Vec<Vec<u8>>,
    /// The bytes of all buffers, wherever they are.
    buffer_bytes: usize,
    writing: usize,
    fetched: Vec<Fetched>,
    puts: u64,
    /// A failure that has not been reported yet.
    failed: Option<SnapshotError>,
    waited: Duration,
    written: u64,
    read: u64,
    delay: Duration,
}

/// Fields are dropped in this order: the thread ends before its files are removed.
#[derive(Debug)]
struct Run {
    worker: Worker,
    directory: RunDirectory,
}

#[derive(Clone, Debug)]
enum Slot {
    Empty,
    Kept(Label),
    Failed(Box<SnapshotError>),
}

/// A read under way or done.
#[derive(Debug)]
struct Fetched {
    label: Label,
    /// `None` while it is under way.
    answer: Option<(Vec<u8>, Result<(), SnapshotError>)>,
    /// Nobody wants it any more.
    is_stale: bool,
}

impl DiskStore {
    /// A store that keeps its files in a directory of its own inside this one. Both are made when the first
    /// snapshot is put; the inner one is removed when the store is dropped. Directories of runs that were
    /// killed are removed as well.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        DiskStore {
            parent: directory.into(),
            run: None,
            slots: Vec::new(),
            buffers: vec![Vec::new(); BUFFERS],
            buffer_bytes: 0,
            writing: 0,
            fetched: Vec::with_capacity(EACH_WAY),
            puts: 0,
            failed: None,
            waited: Duration::ZERO,
            written: 0,
            read: 0,
            delay: Duration::ZERO,
        }
    }

    /// For tests of what is hidden behind what: each write and read takes so much longer, as on a slow
    /// device.
    #[doc(hidden)]
    #[must_use]
    pub fn slowed(mut self, by: Duration) -> Self {
        self.delay = by;
        self
    }

    /// The run's own directory, once there is one. A slot's file is `slot-NUMBER.snapshot`.
    pub fn directory(&self) -> Option<&Path> {
        self.run.as_ref().map(|run| &*run.directory.path)
    }

    /// Waits for what is being written, removes all files and tells what went wrong; dropping the store does
    /// the same and tells nobody.
    pub fn close(mut self) -> Result<(), SnapshotError> {
        let flushed = self.flush();
        let Some(Run { worker, directory }) = self.run.take() else { return flushed };
        drop(worker);
        let step = self.slots.iter().find_map(Slot::step).unwrap_or(0);
        let removed = directory.remove();
        flushed.and(removed.map_err(|error| failure(step, "removed", &directory.path, &error)))
    }

    /// The run, begun if it was not.
    fn open(&mut self, step: u64) -> Result<&Run, SnapshotError> {
        if self.run.is_none() {
            let failure = |error| failure(step, "written", &self.parent, &error);
            let directory = RunDirectory::create(&self.parent).map_err(failure)?;
            let worker = Worker::start(&directory.path, BUFFERS, self.delay).map_err(failure)?;
            self.run = Some(Run { worker, directory });
        }
        Ok(self.run.as_ref().expect("it was begun above"))
    }

    /// Takes in what is done, and tells of a failure.
    fn catch_up(&mut self) -> Result<(), SnapshotError> {
        while let Some(done) = self.run.as_ref().and_then(|run| run.worker.try_done()) {
            self.take_in(done);
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Waits for something to be done.
    fn wait(&mut self, step: u64) -> Result<(), SnapshotError> {
        let start = Instant::now();
        let done = self.run.as_ref().and_then(|run| run.worker.wait());
        self.waited += start.elapsed();
        self.take_in(done.ok_or_else(|| self.thread_is_gone(step))?);
        self.failed.take().map_or(Ok(()), Err)
    }

    fn take_in(&mut self, done: Done) {
        let Done { label, buffer, is_write, result } = done;
        if is_write {
            self.writing -= 1;
            self.buffers.push(buffer);
            self.written += if result.is_ok() { label.bytes() as u64 } else { 0 };
            if let Err(error) = result
                && let Some(slot @ Slot::Kept(_)) = self.slots.get_mut(label.slot as usize)
                && matches!(slot, Slot::Kept(kept) if *kept == label)
            {
                *slot = Slot::Failed(Box::new(error.clone()));
                self.failed.get_or_insert(error);
            }
            return;
        }
        self.read += buffer.len() as u64;
        let Some(at) = self.fetched.iter().position(|fetched| fetched.label == label) else {
            self.buffers.push(buffer); // cannot be: what is being read is in the list until it is here
            return;
        };
        if self.fetched[at].is_stale {
            self.fetched.remove(at);
            self.buffers.push(buffer);
        } else {
            self.fetched[at].answer = Some((buffer, result));
        }
    }

    /// Forgets what was fetched from a slot.
    fn forget(&mut self, slot: u32) {
        if let Some(at) =
            self.fetched.iter().position(|fetched| fetched.label.slot == slot && !fetched.is_stale)
        {
            self.drop_fetched(at);
        }
    }

    fn drop_fetched(&mut self, at: usize) {
        match self.fetched[at].answer.take() {
            Some((buffer, _)) => {
                self.fetched.remove(at);
                self.buffers.push(buffer);
            }
            None => self.fetched[at].is_stale = true,
        }
    }

    /// Drops the oldest of what was fetched and not asked for; false if there is none.
    fn drop_oldest_fetched(&mut self) -> bool {
        let oldest = self.fetched.iter().position(|fetched| fetched.answer.is_some());
        oldest.map(|at| self.drop_fetched(at)).is_some()
    }

    /// A buffer with the capacity for so many bytes, if one is free.
    fn buffer(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let mut buffer = self.buffers.pop()?;
        if buffer.capacity() < bytes {
            self.buffer_bytes -= buffer.capacity();
            drop(buffer); // before the next, so that both are never held
            buffer = Vec::with_capacity(bytes);
            self.buffer_bytes += buffer.capacity();
        }
        Some(buffer)
    }

    /// Begins to read, if there is a buffer for it now.
    fn begin_to_fetch(&mut self, label: Label) -> Result<bool, SnapshotError> {
        while self.fetched.len() >= EACH_WAY || self.buffers.is_empty() {
            if !self.drop_oldest_fetched() {
                return Ok(false);
            }
        }
        let Some(buffer) = self.buffer(label.bytes()) else { return Ok(false) };
        self.fetched.push(Fetched { label, answer: None, is_stale: false });
        self.send(Job::Read(label, buffer), label.step)?;
        Ok(true)
    }

    fn send(&mut self, job: Job, step: u64) -> Result<(), SnapshotError> {
        let start = Instant::now();
        let sent = self.run.as_ref().is_some_and(|run| run.worker.send(job));
        // Next to nothing, unless the queue is full.
        self.waited += start.elapsed();
        if sent { Ok(()) } else { Err(self.thread_is_gone(step)) }
    }

    fn thread_is_gone(&self, step: u64) -> SnapshotError {
        let why = "the thread that writes and reads is gone".into();
        SnapshotError::Failed { step, doing: "written or read", place: place(&self.parent), why }
    }

    /// What a slot holds, if that is the state before this step.
    fn label(&self, slot: u32, step: u64) -> Result<Label, SnapshotError> {
        match self.slots.get(slot as usize) {
            Some(Slot::Kept(label)) if label.step == step => Ok(*label),
            Some(Slot::Failed(error)) => Err((**error).clone()),
            _ => {
                let path = self.directory().map(|directory| directory.join(slot_name(slot)));
                Err(SnapshotError::Missing { step, place: path.map(|path| place(&path)).unwrap_or_default() })
            }
        }
    }
}

impl Slot {
    fn step(&self) -> Option<u64> {
        match self {
            Slot::Kept(label) => Some(label.step),
            Slot::Failed(error) => Some(error.step()),
            Slot::Empty => None,
        }
    }
}

impl SnapshotStore for DiskStore {
    fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.catch_up()?;
        let run = self.open(step)?.directory.run;
        self.forget(slot);
        let (reals, plain) = (snapshot.reals().len(), snapshot.plain().len());
        let label = Label { run, slot, number: self.puts, step, reals, plain };
        let mut buffer = loop {
            if self.writing < EACH_WAY {
                if let Some(buffer) = self.buffer(label.bytes()) {
                    break buffer;
                }
                if self.drop_oldest_fetched() {
                    continue;
                }
            }
            self.wait(step)?;
        };
        file::encode(&label, snapshot, &mut buffer);
        let index = slot as usize;
        if index >= self.slots.capacity() {
            self.slots.reserve_exact(table_for(index + 1) - self.slots.len());
        }
        if index >= self.slots.len() {
            self.slots.resize(index + 1, Slot::Empty);
        }
        self.slots[index] = Slot::Kept(label);
        self.puts += 1;
        self.writing += 1;
        self.send(Job::Write(label, buffer), step)
    }

    fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError> {
        self.catch_up()?;
        let label = self.label(slot, step)?;
        loop {
            match self.fetched.iter().position(|fetched| fetched.label == label && !fetched.is_stale) {
                Some(at) if self.fetched[at].answer.is_some() => {
                    let (buffer, result) = self.fetched.remove(at).answer.expect("it is here");
                    if result.is_ok() {
                        file::decode(&label, &buffer, into);
                    }
                    self.buffers.push(buffer);
                    return result;
                }
                Some(_) => self.wait(step)?,
                None => {
                    if !self.begin_to_fetch(label)? {
                        self.wait(step)?;
                    }
                }
            }
        }
    }

    fn free(&mut self, slot: u32) {
        self.forget(slot);
        if let Some(place) = self.slots.get_mut(slot as usize)
            && let Slot::Kept(label) = core::mem::replace(place, Slot::Empty)
        {
            // The next call that needs the thread reports that it is gone.
            let _ = self.send(Job::Remove(slot), label.step);
        }
    }

    fn prefetch(&mut self, slot: u32, step: u64) {
        // A failure stays for the next call, which can tell it.
        if let Err(error) = self.catch_up() {
            self.failed = Some(error);
            return;
        }
        let Ok(label) = self.label(slot, step) else { return };
        if !self.fetched.iter().any(|fetched| fetched.label == label && !fetched.is_stale) {
            let _ = self.begin_to_fetch(label);
        }
    }

    fn heap_bytes(&self) -> usize {
        let lists = self.buffers.capacity() * size_of::<Vec<u8>>()
            + self.fetched.capacity() * size_of::<Fetched>()
            + self.slots.capacity() * size_of::<Slot>();
        let queues = if self.run.is_some() { worker::heap_bytes(BUFFERS) } else { 0 };
        self.buffer_bytes + lists + queues
    }

    fn heap_bytes_for(&self, slots: usize, reals: usize, plain: usize) -> usize {
        let lists = BUFFERS * size_of::<Vec<u8>>() + EACH_WAY * size_of::<Fetched>();
        // The table is copied when it grows, so that two are held for a moment.
        let table = 2 * table_for(slots) * size_of::<Slot>();
        BUFFERS * file::bytes(reals, plain) + lists + table + worker::heap_bytes(BUFFERS)
    }

    fn flush(&mut self) -> Result<(), SnapshotError> {
        self.catch_up()?;
        while self.writing > 0 {
            self.wait(0)?;
        }
        Ok(())
    }

    fn stats(&self) -> StoreStats {
        let io_time = self.run.as_ref().map_or(Duration::ZERO, |run| run.worker.io_time());
        StoreStats { io_time, waited: self.waited, written: self.written, read: self.read }
    }
}

/// The places of a table for so many slots: an eighth more, so that it is seldom moved.
fn table_for(slots: usize) -> usize {
    slots + slots / 8 + 3
}

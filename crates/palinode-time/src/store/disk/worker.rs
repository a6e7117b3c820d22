//! The thread that writes, reads and removes files.
//!
//! Input: jobs, in the order in which they are to be done. Output: for each write and read its buffer back,
//! with what went wrong if anything did.
//!
//! The thread looks for jobs by itself, after naps of 50 us to 2 ms, a quarter of the time since the last
//! job. Waking it with each job would be worse: on a machine whose processors are busy, a thread that is
//! woken takes the place of the one that woke it, and the sweep stands still while the file is written. It is
//! woken when someone waits for it.
//!
//! Invariants: jobs are done one after the other, so that a read that follows a write of the same slot reads
//! what was written. The thread never waits for its owner: there is space for the answers to all buffers
//! there are.

use super::directory::{gone, slot_name};
use super::file::{self, Label};
use palinode_core::SnapshotError;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Jobs that may wait, removals among them.
const JOBS: usize = 16;
/// It calls nothing deep.
const STACK: usize = 128 << 10;
/// How long it rests at least and at most when there is nothing to do.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));

pub(super) enum Job {
    /// Writes a buffer that lacks its checksum.
    Write(Label, Vec<u8>),
    /// Reads into a buffer that is large enough.
    Read(Label, Vec<u8>),
    Remove(u32),
}

/// A write or read that was done.
pub(super) struct Done {
    pub(super) label: Label,
    pub(super) buffer: Vec<u8>,
    pub(super) is_write: bool,
    pub(super) result: Result<(), SnapshotError>,
}

/// The thread, from outside.
#[derive(Debug)]
pub(super) struct Worker {
    /// `None` only while it is being dropped.
    jobs: Option<SyncSender<Job>>,
    done: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// What is still to be done is not needed any more.
    stop: AtomicBool,
    nanoseconds: AtomicU64,
}

/// The heap bytes of the queues, at most.
pub(super) fn heap_bytes(buffers: usize) -> usize {
    // Each place of a queue has a word beside it, and each queue some hundred bytes.
    JOBS * (size_of::<Job>() + 8) + buffers * (size_of::<Done>() + 8) + 2048
}

impl Worker {
    /// A thread for the files of this directory, and of so many buffers; it sleeps for a while before each
    /// write and read.
    pub(super) fn start(directory: &Path, buffers: usize, delay: Duration) -> io::Result<Self> {
        let (jobs, incoming) = sync_channel(JOBS);
        let (outgoing, done) = sync_channel(buffers);
        let shared = Arc::new(Shared::default());
        let files = Files { directory: directory.to_path_buf(), delay };
        let thread = {
            let shared = Arc::clone(&shared);
            let work = move || run(&files, &incoming, &outgoing, &shared);
            thread::Builder::new().name("palinode snapshots".into()).stack_size(STACK).spawn(work)?
        };
        Ok(Worker { jobs: Some(jobs), done, thread: Some(thread), shared })
    }

    /// Gives it a job; false if the thread is gone.
    pub(super) fn send(&self, job: Job) -> bool {
        let Some(jobs) = &self.jobs else { return false };
        match jobs.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(job)) => {
                self.wake();
                jobs.send(job).is_ok()
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// What is done already.
    pub(super) fn try_done(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }

    /// The next that is done; `None` if the thread is gone.
    pub(super) fn wait(&self) -> Option<Done> {
        self.wake();
        self.done.recv().ok()
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// The time that jobs took.
    pub(super) fn io_time(&self) -> Duration {
        Duration::from_nanos(self.shared.nanoseconds.load(Ordering::Relaxed))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it does not panic; if it did, its files are still removed
        }
    }
}

fn run(files: &Files, jobs: &Receiver<Job>, done: &SyncSender<Done>, shared: &Shared) {
    while let Some(job) = next(jobs) {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let start = Instant::now();
        let answer = match job {
            Job::Write(label, mut buffer) => {
                file::seal(&mut buffer);
                let result = files.write(&label, &buffer);
                Some(Done { label, buffer, is_write: true, result })
            }
            Job::Read(label, mut buffer) => {
                let result = files.read(&label, &mut buffer);
                Some(Done { label, buffer, is_write: false, result })
            }
            Job::Remove(slot) => {
                // What cannot be removed now is tried again with the directory.
                let _ = fs::remove_file(files.path(slot));
                None
            }
        };
        let time = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        shared.nanoseconds.fetch_add(time, Ordering::Relaxed);
        if let Some(answer) = answer
            && done.send(answer).is_err()
        {
            return;
        }
    }
}

/// The next job; `None` if there will be none.
fn next(jobs: &Receiver<Job>) -> Option<Job> {
    let mut nap = NAPS.0;
    loop {
        match jobs.try_recv() {
            Ok(job) => return Some(job),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => {
                thread::park_timeout(nap);
                nap = (nap * 5 / 4).min(NAPS.1);
            }
        }
    }
}

struct Files {
    directory: PathBuf,
    /// Nothing but in tests.
    delay: Duration,
}

impl Files {
    fn path(&self, slot: u32) -> PathBuf {
        self.directory.join(slot_name(slot))
    }

    fn sleep(&self) {
        if self.delay > Duration::ZERO {
            thread::sleep(self.delay);
        }
    }

    fn write(&self, label: &Label, buffer: &[u8]) -> Result<(), SnapshotError> {
        let path = self.path(label.slot);
        self.sleep();
        let written = File::create(&path).and_then(|mut file| file.write_all(buffer));
        written.map_err(|error| {
            let _ = gone(fs::remove_file(&path)); // half a file helps nobody, its space may help others
            failure(label.step, "written", &path, &error)
        })
    }

    fn read(&self, label: &Label, buffer: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let path = self.path(label.slot);
        self.sleep();
        let length = match read_file(&path, label.bytes(), buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(SnapshotError::Missing { step: label.step, place: place(&path) });
            }
            Err(error) => return Err(failure(label.step, "read", &path, &error)),
        };
        let damaged = |how| SnapshotError::Damaged { step: label.step, place: place(&path), how };
        file::check(label, buffer, length).map_err(damaged)
    }
}

/// Reads at most so many bytes of a file; how many it has.
fn read_file(path: &Path, most: usize, buffer: &mut Vec<u8>) -> io::Result<u64> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    buffer.clear();
    file.take(most as u64).read_to_end(buffer)?;
    Ok(length)
}

/// How errors name a path.
pub(super) fn place(path: &Path) -> String {
    format!(" ({})", path.display())
}

/// An error of the system as one of a snapshot.
pub(super) fn failure(step: u64, doing: &'static str, path: &Path, error: &io::Error) -> SnapshotError {
    let (place, why) = (place(path), error.to_string());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            SnapshotError::NoSpace { step, place, why }
        }
        _ => SnapshotError::Failed { step, doing, place, why },
    }
}

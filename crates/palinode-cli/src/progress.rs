//! What a long run shows while it runs: on a terminal, after a second, on standard error.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Work that is under way; what it shows disappears when it is dropped.
pub(crate) struct Progress {
    done: Arc<AtomicU64>,
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

/// How long nothing is shown.
const PATIENCE: Duration = Duration::from_secs(1);

impl Progress {
    /// Work of `parts` parts; a single part is shown as time that passes.
    pub(crate) fn start(what: &'static str, parts: u64) -> Progress {
        let done = Arc::new(AtomicU64::new(0));
        if !stderr().is_terminal() {
            return Progress { done, shown: None };
        }
        let (stop, stopped) = channel::<()>();
        let count = done.clone();
        let thread = std::thread::spawn(move || {
            if stopped.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let (bar, template) = if parts > 1 {
                (ProgressBar::new(parts), "{msg} {bar:30} {pos}/{len}, {eta} left")
            } else {
                (ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}")
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            let bar = bar.with_elapsed(PATIENCE);
            bar.set_message(what);
            while stopped.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                bar.set_position(count.load(Ordering::Relaxed));
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Progress { done, shown: Some((stop, thread)) }
    }

    /// One more part is done.
    pub(crate) fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.shown.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

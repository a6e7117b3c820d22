//! Whether standard input or output was closed when the process began (`palinode ... >&-`).
//!
//! Rust opens `/dev/null` in the place of a closed one before `main`, so that no file which is opened later
//! takes its number; from then on every write succeeds, and the answer is lost. So it is asked before: the
//! loader calls what is listed in `.init_array` before Rust begins
//! ([0040](../../../docs/adr/0040-closed-streams.md)). Only on Linux; elsewhere nothing is known to be
//! closed.

use std::sync::atomic::{AtomicBool, Ordering};

/// What is known of a stream.
pub(crate) struct Stream(AtomicBool);

impl Stream {
    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) static INPUT: Stream = Stream(AtomicBool::new(false));
pub(crate) static OUTPUT: Stream = Stream(AtomicBool::new(false));

#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // the loader's list, and a question to the system
mod before_main {
    use core::ffi::c_int;
    use core::sync::atomic::Ordering;

    const F_GETFL: c_int = 3;
    const ACCESS: c_int = 3;
    const READ_ONLY: c_int = 0;
    const WRITE_ONLY: c_int = 1;

    // SAFETY: as `fcntl` of the C library, which Rust programs on Linux are linked with, declares it.
    unsafe extern "C" {
        fn fcntl(file: c_int, command: c_int, ...) -> c_int;
    }

    extern "C" fn look() {
        // One that cannot be used (`1</dev/null`) is as good as closed: Rust takes its errors for success.
        for (file, stream, useless) in [(0, &super::INPUT, WRITE_ONLY), (1, &super::OUTPUT, READ_ONLY)] {
            // SAFETY: the command takes no more arguments and changes nothing; a file that is not open is an
            // error that it returns.
            let flags = unsafe { fcntl(file, F_GETFL) };
            stream.0.store(flags == -1 || flags & ACCESS == useless, Ordering::Relaxed);
        }
    }

    // SAFETY: the section is a list of functions like this one (the loader's arguments are not looked at); it
    // uses nothing of Rust's that needs to be set up.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;
}

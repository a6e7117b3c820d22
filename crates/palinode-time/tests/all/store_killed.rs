//! A run that is killed with its files open, and what the next one makes of them.

use crate::models::Altering;
use crate::store::Scratch;
use crate::store_sweep::gradient;
use palinode_time::{DiskStore, MemoryStore};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A process that runs the sweep below in this directory, and tells what it does.
fn start(scratch: &Scratch) -> Child {
    Command::new(std::env::current_exe().expect("a test has a name"))
        .args(["--exact", "store_killed::sweep_slowly", "--ignored", "--nocapture"])
        .env("PALINODE_TEST_DIRECTORY", &scratch.0)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a test can run a test")
}

#[test]
#[ignore = "part of another test, which kills it"]
fn sweep_slowly() {
    let Some(directory) = std::env::var_os("PALINODE_TEST_DIRECTORY") else { return };
    let tell = |step, _: &mut Vec<u64>, _: &mut Vec<u64>| {
        println!("get {step}");
        std::io::stdout().flush().expect("someone reads");
        std::thread::sleep(Duration::from_millis(20));
    };
    println!("gradient {:?}", gradient(50, || Altering(DiskStore::new(&directory), tell)));
}

#[test]
fn after_kill_9_a_run_gives_the_same_bits() {
    let scratch = Scratch::new();
    let expected = gradient(50, MemoryStore::new);
    // Killed at several places of the reverse sweep, each time with what the last one left behind.
    for place in ["get 900", "get 850", "get 500", "get 0"] {
        let mut child = start(&scratch);
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let reached = output.lines().map_while(Result::ok).any(|line| line.ends_with(place));
        assert!(reached, "{place} was not reached");
        child.kill().expect("it runs");
        child.wait().expect("it ran");
        let left = scratch.names();
        assert_eq!(
            left.len(),
            1,
            "what the one before left was removed, what this one left is there: {left:?}"
        );
        let stale = scratch.0.join(&left[0]);
        if place != "get 0" {
            assert!(stale.join("slot-0.snapshot").exists());
        }
    }
    let stale = scratch.0.join(&scratch.names()[0]);
    assert_eq!(gradient(50, || DiskStore::new(&scratch.0)), expected);
    assert!(!stale.exists(), "it is cleaned up");
    assert_eq!(scratch.names(), Vec::<String>::new());
    // And so does a process that is left alone.
    let output = start(&scratch).wait_with_output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(&format!("gradient {expected:?}")), "{text}");
    assert_eq!(scratch.names(), Vec::<String>::new());
}

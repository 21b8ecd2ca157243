//! Shared parts of the ring tests: unique names, and a process that dies with its test.

#![allow(dead_code, reason = "each test file uses a part")]
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tapeline_ring::{Name, Options, Publisher, Refused};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A name that no other test has. Its segment is removed when the test ends, however it ends.
pub(crate) struct OwnName(pub(crate) Name);

impl OwnName {
    pub(crate) fn new(what: &str) -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(Name::new(&format!("test-{what}-{}-{count}", std::process::id())).unwrap())
    }
}

impl Drop for OwnName {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0.path());
    }
}

/// A small ring, which tests wrap often.
pub(crate) fn small() -> Options {
    Options { capacity: 4096.max(page()), ..Options::default() }
}

pub(crate) fn page() -> usize {
    rustix::param::page_size()
}

/// Publishes, and yields while the ring is full.
pub(crate) fn publish_all(publisher: &mut Publisher, bytes: &[u8]) {
    loop {
        match publisher.publish(bytes) {
            Ok(_) => return,
            Err(Refused::Full) => std::thread::yield_now(),
            Err(refused) => panic!("{refused}"),
        }
    }
}

/// A message derived from a counter: the counter, then a length and a pattern that belong to it.
pub(crate) fn message(counter: u64) -> Vec<u8> {
    let mut bytes = counter.to_le_bytes().to_vec();
    let more = (counter.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize;
    bytes.extend((0..more).map(|at| (counter as u8).wrapping_add(at as u8)));
    bytes
}

/// The counter of a message, if all its bytes are correct.
pub(crate) fn counter_of(bytes: &[u8]) -> Option<u64> {
    let counter = u64::from_le_bytes(*bytes.first_chunk()?);
    (bytes == message(counter)).then_some(counter)
}

/// This test binary started again, running one test as `role`.
pub(crate) struct Player {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
}

impl Player {
    /// `test` must be ignored unless requested, and do what the environment variable `ROLE` says.
    pub(crate) fn start(test: &str, role: &str, name: &Name) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture", "--quiet"])
            .env("ROLE", role)
            .env("RING", name.as_str())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Waits for the line that contains `what`, and returns the rest of it.
    pub(crate) fn says(&mut self, what: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(
                self.lines.read_line(&mut line).unwrap(),
                0,
                "the player ended before it said {what:?}"
            );
            // The test harness may have written something before it on the same line.
            if let Some((_, rest)) = line.split_once(what) {
                return rest.trim().to_owned();
            }
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

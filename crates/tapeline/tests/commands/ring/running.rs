//! Processes of `tapeline ring`, and their own rings.

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tapeline_ring::{Name, inspect};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A separate name for each test; its ring is removed when the test ends.
pub(crate) struct OwnName(pub(crate) Name);

impl OwnName {
    pub(crate) fn new() -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(Name::new(&format!("test-command-{}-{count}", std::process::id())).unwrap())
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Drop for OwnName {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0.path());
    }
}

/// A process that ends with its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Waits for its end.
    pub(crate) fn end(mut self) -> Output {
        let (mut out, mut err) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = self.0.wait().unwrap();
        Output { status, stdout: out.into_bytes(), stderr: err.into_bytes() }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.arg("ring").args(arguments);
    command
}

pub(crate) fn ring(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

pub(crate) fn start(arguments: &[&str]) -> Running {
    Running(command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Time limit for another process: a test that waits forever does not show which test it is.
const GIVE_UP: Duration = Duration::from_secs(300);

/// Waits for an effect of another process.
#[track_caller]
pub(crate) fn until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < GIVE_UP, "not seen within {GIVE_UP:?}");
        std::thread::yield_now();
    }
}

pub(crate) fn subscribers(name: &OwnName) -> usize {
    inspect(&name.0).map_or(0, |ring| ring.subscribers.len())
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

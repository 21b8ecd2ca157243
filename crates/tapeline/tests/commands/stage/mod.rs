//! Processes of `tapeline`, and the separate resources of each plant test.

pub(crate) use crate::remains;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use serde_json::{Value, json};

/// The binary, with these arguments.
pub(crate) fn tapeline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A running `tapeline` that prints lines of JSON. It ends with the test.
pub(crate) struct Running {
    pub(crate) child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::of(&mut tapeline(arguments))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Starts it and returns its standard error too.
    pub(crate) fn start_talking(arguments: &[&str]) -> (Self, ChildStderr) {
        Self::talking(&mut tapeline(arguments))
    }

    /// Like [`Self::start_talking`], for any command.
    pub(crate) fn talking(command: &mut Command) -> (Self, ChildStderr) {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let talk = child.stderr.take().unwrap();
        (Self { child, output }, talk)
    }

    /// Waits for the next line.
    pub(crate) fn says(&mut self) -> Value {
        let said = self.may_say();
        said.unwrap_or_else(|| panic!("it ended without a word: {:?}", self.child.wait()))
    }

    /// Waits for the next line; `None` when the process has ended.
    pub(crate) fn may_say(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let parsed = || serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        (!line.is_empty()).then(parsed)
    }

    pub(crate) fn ask_to_end(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        remains::remove(self.child.id());
    }
}

/// A reserved port without a listener: it is not given to anyone else while this exists, but can be listened on by
/// number.
pub(crate) struct Nobody {
    pub(crate) port: u16,
    _held: OwnedFd,
}

impl Nobody {
    pub(crate) fn new() -> Self {
        let held =
            net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        // As every listener does: two sockets with this option can share a port, one of which listens.
        sockopt::set_socket_reuseaddr(&held, true).unwrap();
        net::bind(&held, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = SocketAddrV4::try_from(net::getsockname(&held).unwrap()).unwrap();
        Self { port: address.port(), _held: held }
    }
}

/// Ring, multicast groups and configuration of one test, shared with no other.
pub(crate) struct Place {
    pub(crate) ring: String,
    pub(crate) lines: Vec<SocketAddrV4>,
    /// More keys of the table `[plant]`.
    pub(crate) keys: &'static str,
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(lines: u8) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let [_, _, high, low] = pid.to_be_bytes();
        let port = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let group = |line| Ipv4Addr::new(239, 200 + line, high, low.wrapping_add(number as u8));
        Self {
            ring: format!("test-plant-{pid}-{number}"),
            lines: (0..lines).map(|line| SocketAddrV4::new(group(line), port())).collect(),
            keys: "",
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn config(&self, feed: &str) -> String {
        // Where silence is not under test, a busy machine must not cause it.
        let patient = if feed.contains("stale_after") { "" } else { "stale_after = \"0s\"" };
        let lines: String = self
            .lines
            .iter()
            .map(|line| format!("[[feed.line]]\naddress = \"{line}\"\ninterface = \"127.0.0.1\"\n"))
            .collect();
        let text = format!(
            "[plant]\nring = \"{}\"\npublish = \"every-message\"\n{}\n[[feed]]\nname = \"test\"\n\
             protocol = \"nasdaq-itch-5.0\"\ndate = \"2020-01-30\"\nstart = \"from-one\"\n{patient}\n{feed}\n{lines}",
            self.ring, self.keys
        );
        let path = self.folder.path().join("plant.toml");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A plant that is ready.
    pub(crate) fn plant(&self, feed: &str) -> Running {
        let config = self.config(feed);
        let mut plant =
            Running::start(&["plant", "--config", &config, "--until-end-of-session", "--format", "json"]);
        assert_eq!(plant.says()["ready"], json!(self.ring));
        plant
    }

    /// A subscriber in its own process that has joined.
    pub(crate) fn tally(&self, symbol: &str) -> Running {
        let mut tally = Running::start(&[
            "plant",
            "tally",
            "--ring",
            &self.ring,
            "--from",
            "oldest",
            "--announce",
            "--until-end-of-session",
            "--symbol",
            symbol,
            "--format",
            "json",
        ]);
        assert_eq!(tally.says()["joined"], json!(self.ring));
        tally
    }

    /// Sends a file, slowly enough for a default buffer on a busy machine.
    pub(crate) fn replay(&self, file: &Path, line: usize) {
        let to = self.lines[line].to_string();
        let output = tapeline(&["feed", "replay", file.to_str().unwrap(), "--to", &to, "--rate", "20k"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

//! Missing messages asked for and answered, by real processes over real sockets on loopback.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod shared_data;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use shared_data::{expected, shared};
use tapeline_feed::moldudp64::{HEADER_BYTES, Packet, Request, Session, parse};

/// Far longer than loopback ever takes: a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

fn tapeline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A running `tapeline` that says things as lines of JSON. Ends with the test, whatever becomes of that.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = tapeline(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// The next line, waited for.
    fn says(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended without a word: {:?}", self.child.wait());
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Asks it to end, and gives its last words.
    fn end(&mut self) -> Value {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.says()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A retransmission server for a shared capture, and where it listens.
fn retransmit(capture: &str, more: &[&str]) -> Option<(Running, SocketAddr)> {
    let path = shared(capture)?;
    let arguments = ["feed", "serve-retransmit", path.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let mut server = Running::start(&[&arguments[..], &["--format", "json"], more].concat());
    let address = server.says()["ready"].as_str().unwrap().parse().unwrap();
    Some((server, address))
}

fn client() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

#[test]
fn the_requests_of_the_real_holes_are_answered_with_the_real_messages() {
    let Some((mut server, address)) = retransmit("moldudp64-derived/aapl5000-clean.pcap", &[]) else {
        return;
    };
    let itch = std::fs::read(shared("itch50-aapl-20200130/aapl-first5000.itch").unwrap()).unwrap();
    let messages: Vec<&[u8]> = tapeline_feed::itch::framing::Frames::new(&itch).collect();
    let expected = expected("moldudp64-derived/expected.json").unwrap();
    let socket = client();
    let mut count = 0;
    for request in expected["recovery"]["requests"].as_array().unwrap() {
        let hex = request["packet_hex"].as_str().unwrap();
        let bytes: Vec<u8> =
            (0..HEADER_BYTES).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
        socket.send_to(&bytes, address).unwrap();
        let mut buffer = [0; 2_048];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!(from, address);
        let Packet::Data(data) = parse(&buffer[..length]).unwrap() else { panic!("no messages") };
        assert_eq!(json!(data.sequence()), request["sequence"]);
        assert_eq!(json!(data.count()), request["count"]);
        for (sequence, message) in data.messages() {
            assert_eq!(message, messages[sequence as usize - 1], "{sequence}");
            count += 1;
        }
    }
    assert_eq!(count, 14);

    // What it does not have it does not answer; the next answer is that of the next request.
    for (session, first) in [("AAPL200130", 5_001), ("AAPL200131", 1), ("AAPL200130", 0)] {
        socket.send_to(&Request::for_gap(Session::new(session), first, first).encode(), address).unwrap();
    }
    socket.send_to(b"not a request", address).unwrap();
    socket.send_to(&Request::for_gap(Session::new("AAPL200130"), 4_990, 6_000).encode(), address).unwrap();
    let mut buffer = [0; 2_048];
    let (length, _) = socket.recv_from(&mut buffer).unwrap();
    let Packet::Data(data) = parse(&buffer[..length]).unwrap() else { panic!("no messages") };
    assert_eq!((data.sequence(), data.end()), (4_990, 5_001));
    let done = server.end();
    assert_eq!((&done["requests"], &done["answers"], &done["messages"]), (&json!(10), &json!(6), &json!(25)));
    assert_eq!(done["unanswered"], json!({"malformed": 1, "other-session": 1, "absurd": 1, "not-here": 1}));
}

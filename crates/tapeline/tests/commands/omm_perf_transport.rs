//! `tapeline omm transport` through the real binary: each option, against itself and against an end of the test's own.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Output, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use stage::tapeline;
use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_wire::rssl::{Compression, ConnectionSettings, Event, Session, SubProtocol, Version};

use crate::stage;

/// Run time of a client from its start: long enough to connect on a busy machine.
const RUN: &str = "2s";

/// Runs the program in its own folder, which gets its files.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let fixed = ["omm", "transport"];
        tapeline(&[&fixed[..], arguments].concat()).current_dir(&self.0).output().unwrap()
    }

    /// Starts a server that ends with its clients; returns it with its port. Its run time exceeds any test's.
    fn server(&self, arguments: &[&str]) -> (Server, String) {
        self.serve(&[&["--end-with-clients", "--run-time", "86400"], arguments].concat())
    }

    fn serve(&self, arguments: &[&str]) -> (Server, String) {
        let fixed = ["omm", "transport", "--port", "0", "--run-folder", "server"];
        let mut command = tapeline(&[&fixed[..], arguments].concat());
        let mut child = command.current_dir(&self.0).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line:?}"));
        let port = address.rsplit_once(':').unwrap().1.to_owned();
        (Server { child, output }, port)
    }

    /// Runs a client to its end; returns its record and output.
    fn client(&self, port: &str, arguments: &[&str]) -> (Value, String) {
        let fixed = ["client", "--port", port, "--run-time", RUN, "--run-folder", "client"];
        let output = self.run(&[&fixed[..], arguments].concat());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let talk = String::from_utf8_lossy(&output.stderr);
        // The verdict depends on the machine.
        assert!(!talk.contains("error:"), "{arguments:?}: {talk}\n{said}");
        (self.record("client"), said)
    }

    fn record(&self, folder: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(folder).join("run.json")).unwrap()).unwrap()
    }

    /// Runs both ends, the client first to its end; returns the counts of each.
    fn both(server: &[&str], client: &[&str]) -> (Value, Value) {
        let place = Self::new();
        let (mut running, port) = place.server(server);
        let (client, _) = place.client(&port, client);
        running.ends();
        (place.record("server")["counts"].take(), client["counts"].clone())
    }
}

struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn ends(&mut self) -> (String, bool) {
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        (said, self.child.wait().unwrap().success())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn count(counts: &Value, name: &str) -> u64 {
    counts[name].as_u64().unwrap_or_else(|| panic!("{name} in {counts}"))
}

#[test]
fn both_ends_send_at_their_rates_and_nothing_is_lost() {
    let (server, client) = Place::both(&["server"], &["--msg-rate", "20k", "--latency-msg-rate", "500"]);
    assert_eq!(server["received"], client["sent"]);
    assert!(count(&client, "sent") >= 6_000 && count(&client, "received") > 0, "{client}");
    assert!(count(&client, "due") >= count(&client, "sent"), "{client}");
    assert!(count(&client, "stamped") >= 100, "{client}");
    assert_eq!(count(&server, "due") % 100, 0, "100,000 a second in 1,000 slices");
    // On a busy machine the client takes a part of a slice only.
    assert!(count(&server, "sent") <= count(&server, "due"), "{server}");
    for fault in ["lost", "out_of_order", "malformed"] {
        assert_eq!((&server[fault], &client[fault]), (&0.into(), &0.into()));
    }
}

#[test]
fn both_directions_count() {
    let place = Place::new();
    let (mut running, port) = place.server(&["--msg-rate", "5k"]);
    let (_, said) = place.client(&port, &["--msg-rate", "20k"]);
    let (server_said, _) = running.ends();
    for (folder, said) in [("server", server_said), ("client", said)] {
        let record = place.record(folder);
        let [sent, received] = ["sent", "received"].map(|way| count(&record["counts"], way));
        assert!(sent > 0 && received > 0, "{record}");
        assert_eq!(record["throughput"]["messages"], sent + received, "{folder}");
        let seconds = record["timeline"].as_array().unwrap();
        let by_second: u64 = seconds.iter().map(|second| second["messages"].as_u64().unwrap()).sum();
        // Messages after the last whole second are in no row.
        assert!(by_second <= sent + received, "{by_second} {record}");
        if record["verdict"] == "PASS" {
            let of = |count: u64| tapeline_measure::figures::thousands(count);
            let both = format!("PASS: {} messages sent and {} received", of(sent), of(received));
            assert!(said.contains(&both), "{both}: {said}");
        }
    }
}

/// Messages that are queued when a client disconnects do not count as sent: TransportPerf in Java stops reading a
/// second before it disconnects.
#[test]
fn what_waits_for_a_client_that_goes_was_not_sent() {
    let place = Place::new();
    let asked =
        ["--unpaced", "--msg-size", "1000", "--send-buf-size", "65536", "--write-stats-interval", "1"];
    let (mut running, port) = place.server(&asked);
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let settings = Arc::new(ConnectionSettings { protocol_type: 88, ..ConnectionSettings::default() });
    let mut session = Session::client(settings, Version::V14, Nanos(monotonic_ns()));
    let (mut input, mut buffer) = (Vec::new(), vec![0; 4096]);
    stream.write_all(&session.drain()).unwrap();
    while !session.is_open() {
        let count = stream.read(&mut buffer).unwrap();
        input.extend_from_slice(&buffer[..count]);
        let (consumed, _) = session.take(&mut input, Nanos(monotonic_ns())).unwrap();
        input.drain(..consumed);
        stream.write_all(&session.drain()).unwrap();
    }
    // The client reads nothing until the server's connection is full.
    let mut line = String::new();
    while !line.contains("slices held back") {
        line.clear();
        assert!(running.output.read_line(&mut line).unwrap() > 0, "the server ended");
    }
    drop(stream);
    let (said, _) = running.ends();
    let counts = place.record("server")["counts"].take();
    assert!(count(&counts, "unsent") > 0, "{counts}");
    assert!(said.contains("Messages not sent"), "{said}");
}

#[test]
fn options_are_taken_as_transport_perf_spells_them() {
    let place = Place::new();
    let (mut running, port) = place.server(&["-msgRate", "0", "-tickRate", "500"]);
    let asked = [
        "-appType",
        "client",
        "-h",
        "127.0.0.1",
        "-p",
        &port,
        "-msgRate",
        "5000",
        "-msgSize",
        "40",
        "-runTime",
        "2",
    ];
    place.run(&[&asked[..], &["--run-folder", "client", "-summaryFileStatic", "sum.out"]].concat());
    running.ends();
    let (server, client) = (place.record("server"), place.record("client"));
    assert_eq!(server["counts"]["received_bytes"], client["counts"]["sent_bytes"]);
    assert_eq!(count(&client["counts"], "sent_bytes"), 40 * count(&client["counts"], "sent"));
    assert_eq!(
        (&client["settings"]["inputs"]["Msg Rate"], &server["settings"]["tick_rate"]),
        (&"5000".into(), &500.into())
    );
    assert!(place.path("sum.out").exists());
}

#[test]
fn rates_of_zero_all_and_without_end() {
    let (server, client) = Place::both(&["--msg-rate", "0"], &["--latency-msg-rate", "all"]);
    assert_eq!((count(&server, "sent"), count(&server, "stamped")), (0, 0));
    assert_eq!(client["stamped"], client["sent"]);
    assert_eq!(server["received"], client["sent"]);
    let quiet = ["server", "--msg-rate", "0"];
    let (server, client) =
        Place::both(&quiet, &["--unpaced", "--msg-size", "1000", "--latency-msg-rate", "0"]);
    assert_eq!((count(&client, "due"), count(&client, "stamped")), (0, 0));
    assert_eq!(server["received"], client["sent"]);
    assert_eq!(count(&client, "sent_bytes"), 1_000 * count(&client, "sent"));
    assert_eq!(server["received_bytes"], client["sent_bytes"]);
}

#[test]
fn messages_go_back_as_they_came() {
    let place = Place::new();
    let (mut running, port) = place.server(&["--app-type", "server", "--reflect-msgs"]);
    let asked = ["--msg-rate", "10k", "--latency-msg-rate", "1000", "--latency-file", "Latency"];
    let (client, said) = place.client(&port, &asked);
    running.ends();
    let server = place.record("server")["counts"].take();
    // Sequences and times are the client's own: it checks the order, and measures the round trip.
    let client = &client["counts"];
    assert_eq!(server["received"], client["sent"]);
    // The client leaves at the end of its run: what came just before cannot go back to it.
    let [received, sent, came] =
        [count(client, "received"), count(&server, "sent"), count(&server, "received")];
    assert!(received <= sent && sent <= came && sent > came / 2, "{received} {sent} {came}");
    assert!(
        count(client, "received") > 0 && count(client, "lost") + count(client, "out_of_order") == 0,
        "{client}"
    );
    assert!(said.contains("response"), "{said}");
    let rows = std::fs::read_to_string(place.path("Latency1.csv")).unwrap();
    assert!(rows.starts_with("Send Time, Receive Time, Latency(nsec), Due Time, Response(nsec)\n"), "{rows}");
    assert!(rows.lines().count() > 10, "{rows}");
}

#[test]
fn slices_are_as_many_as_asked_and_due_at_their_beginning() {
    let place = Place::new();
    let (mut running, port) = place.server(&["--msg-rate", "0", "--latency-file", "L"]);
    place.client(&port, &["--tick-rate", "20", "--msg-rate", "2000", "--latency-msg-rate", "all"]);
    running.ends();
    let rows = std::fs::read_to_string(place.path("L1.csv")).unwrap();
    let mut dues: Vec<u64> =
        rows.lines().skip(1).map(|row| row.split(", ").nth(3).unwrap().parse().unwrap()).collect();
    assert_eq!(dues.len() % 100, 0, "whole bursts of a hundred");
    dues.dedup();
    assert!(dues.windows(2).all(|pair| pair[1] - pair[0] == 50_000_000), "{dues:?}");
    assert!(dues.len() >= 2, "{dues:?}");
}

#[test]
fn a_client_runs_for_as_long_as_it_is_told_to() {
    let place = Place::new();
    // A server with a much longer run time still runs when the client has ended.
    let (mut longer, port) = place.serve(&["--msg-rate", "0", "--run-time", "100"]);
    place.client(&port, &["--msg-rate", "0"]);
    assert!(longer.child.try_wait().unwrap().is_none());
}

#[test]
fn a_client_connects_to_the_host_that_is_named() {
    let place = Place::new();
    let (mut running, port) = place.server(&["--bind", "127.0.0.2"]);
    let (client, _) = place.client(&port, &["--host", "127.0.0.2"]);
    assert!(count(&client["counts"], "received") > 0, "{client}");
    running.ends();
}

#[test]
fn threads_have_connections_and_files_of_their_own() {
    let place = Place::new();
    let (mut running, port) = place.server(&["--threads=-1,-1", "--stats-file", "S"]);
    let (_, said) =
        place.client(&port, &["--threads=-1,-1", "--stats-file", "C", "--summary-file", "sum.out"]);
    for text in ["--- THREAD 1 SUMMARY ---", "--- THREAD 2 SUMMARY ---", "Thread List: -1,-1"] {
        assert!(said.contains(text), "{text} in {said}");
    }
    assert!(said.contains(std::fs::read_to_string(place.path("sum.out")).unwrap().trim()), "{said}");
    let (said, _) = running.ends();
    // Balanced: each of the server's threads has one connection.
    let received = said.lines().filter_map(|line| line.trim().strip_prefix("Msgs Received: "));
    let received: Vec<u64> = received.map(|count| count.parse().unwrap()).collect();
    assert!(received.len() == 3 && received.iter().all(|count| *count > 0), "{said}");
    for file in ["S1.csv", "S2.csv", "C1.csv", "C2.csv"] {
        let rows = std::fs::read_to_string(place.path(file)).unwrap();
        let theirs = "UTC, Msgs sent, Bytes sent, Msgs received, Bytes received, Latency msgs received, Latency avg (usec)";
        assert!(rows.starts_with(theirs), "{rows}");
    }
}

#[test]
fn statistics_come_at_their_interval() {
    let place = Place::new();
    let (mut running, port) =
        place.server(&["--no-display-stats", "--write-stats-interval", "1", "--stats-file", "S"]);
    let asked = ["client", "--server", &format!("localhost:{port}"), "--write-stats-interval", "1"];
    let output = place.run(
        &[
            &asked[..],
            &["--run-time", "5s", "--stats-file", "C", "--format", "json", "--jitter-time", "20ms"],
        ]
        .concat(),
    );
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(record["jitter_floor_p99_ns"].is_u64(), "{record}");
    assert_eq!(record["kind"], "omm-transport");
    assert!(record["throughput"]["messages"].as_u64() > Some(0), "{record}");
    for file in ["S1.csv", "C1.csv"] {
        let rows = std::fs::read_to_string(place.path(file)).unwrap();
        assert!(rows.lines().count() >= 3, "{file}: {rows}");
    }
    let (said, _) = running.ends();
    assert!(!said.contains("MsgRate:") && said.contains("Msgs Received:"), "{said}");
}

/// A server of the test's own that records received messages.
struct Peer {
    port: String,
    heard: JoinHandle<Heard>,
}

#[derive(Default)]
struct Heard {
    messages: Vec<Vec<u8>>,
    wire_bytes: u64,
    frames: u64,
    compression: Compression,
    websocket: Option<SubProtocol>,
    longest_frame: u16,
}

impl Peer {
    fn new(settings: ConnectionSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let settings = Arc::new(ConnectionSettings { protocol_type: 88, ..settings });
        let heard = thread::spawn(move || hear(listener.accept().unwrap().0, settings));
        Self { port, heard }
    }

    /// The messages that a client with these options sends.
    fn hears(settings: ConnectionSettings, arguments: &[&str]) -> Heard {
        let peer = Self::new(settings);
        let place = Place::new();
        let fixed = ["client", "--port", &peer.port, "--run-time", RUN];
        let output = place.run(&[&fixed[..], arguments].concat());
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(!talk.contains("error:"), "{arguments:?}: {talk}");
        let heard = peer.heard.join().unwrap();
        assert!(!heard.messages.is_empty(), "{arguments:?}");
        heard
    }
}

fn hear(mut stream: TcpStream, settings: Arc<ConnectionSettings>) -> Heard {
    let mut session = Session::server(settings, Nanos(monotonic_ns()));
    let (mut heard, mut input, mut buffer) = (Heard::default(), Vec::new(), vec![0; 1 << 16]);
    loop {
        let count = stream.read(&mut buffer).unwrap_or(0);
        if count == 0 {
            break;
        }
        heard.wire_bytes += count as u64;
        input.extend_from_slice(&buffer[..count]);
        loop {
            let Ok((consumed, event)) = session.take(&mut input, Nanos(monotonic_ns())) else { return heard };
            let goes_on = event.is_some();
            match event {
                Some(Event::Message(message)) => heard.messages.push(message.to_vec()),
                Some(Event::Connected(agreed)) => {
                    heard.compression = agreed.compression;
                    heard.websocket = agreed.websocket;
                    heard.longest_frame = agreed.max_fragment_size;
                }
                _ => {}
            }
            input.drain(..consumed);
            if !goes_on {
                break;
            }
        }
        let _ = stream.write_all(&session.drain());
    }
    heard.frames = session.frames_received();
    heard
}

fn word(message: &[u8], number: usize) -> u64 {
    u64::from_le_bytes(*message[8 * number..].first_chunk().unwrap())
}

#[test]
fn messages_are_those_of_transport_perf() {
    let heard =
        Peer::hears(ConnectionSettings::default(), &["--latency-msg-rate", "all", "--msg-size", "100"]);
    for (sequence, message) in heard.messages.iter().enumerate() {
        assert_eq!((message.len(), word(message, 0)), (100, sequence as u64));
        let (sent, due) = (word(message, 1), word(message, 2));
        assert!(due > 0 && due <= sent && sent <= monotonic_ns(), "{due} {sent}");
        assert!(message[24..].iter().all(|byte| *byte == 0));
    }
    assert_eq!(heard.frames, heard.messages.len() as u64, "one in each frame");
    let heard = Peer::hears(ConnectionSettings::default(), &["--latency-msg-rate", "all", "--no-due"]);
    assert!(heard.messages.iter().all(|message| word(message, 1) > 0 && word(message, 2) == 0));
    let heard = Peer::hears(ConnectionSettings::default(), &["--latency-msg-rate", "0"]);
    assert!(heard.messages.iter().all(|message| message.len() == 76 && word(message, 1) == 0));
    // By default ten messages a second carry a time.
    let heard = Peer::hears(ConnectionSettings::default(), &["--tick-rate", "10", "--msg-rate", "1000"]);
    let stamped = heard.messages.iter().filter(|message| word(message, 1) > 0).count();
    assert_eq!(stamped, heard.messages.len() / 100, "one in each slice of 100");
}

#[test]
fn frames_carry_as_many_as_are_packed() {
    let heard = Peer::hears(ConnectionSettings::default(), &["--msg-rate", "50k", "--pack", "25"]);
    assert_eq!(heard.messages.len() % 50, 0, "a slice's 50 messages");
    // A full connection can end a frame early.
    let full = heard.messages.len() as u64 / 25;
    assert!((full..=full + full / 10).contains(&heard.frames), "{full} {}", heard.frames);
}

#[test]
fn transport_options_do_what_they_say() {
    let large = ["--msg-rate", "1000", "--msg-size", "3000", "--max-fragment-size", "1000"];
    let heard = Peer::hears(ConnectionSettings::default(), &large);
    assert!(heard.messages.iter().all(|message| message.len() == 3_000));
    assert!(heard.frames >= 3 * heard.messages.len() as u64, "{} frames", heard.frames);

    // The server states no level, so the client's is used.
    let zlib = || ConnectionSettings {
        compression_type: Compression::Zlib,
        compression_level: 0,
        ..ConnectionSettings::default()
    };
    let bytes = |level: &str| {
        let asked = ["--msg-size", "1000", "--compression-type", "zlib", "--compression-level", level];
        let heard = Peer::hears(zlib(), &asked);
        assert_eq!(heard.compression, Compression::Zlib);
        heard.wire_bytes / heard.messages.len() as u64
    };
    let (copied, compressed) = (bytes("0"), bytes("9"));
    assert!(copied > 900 && compressed < 500, "{copied} {compressed}");

    for (asked, protocol) in [
        (&["--conn-type", "websocket"][..], SubProtocol::Rwf),
        (&["--conn-type", "websocket", "--pl", "tr_json2, rssl.rwf"], SubProtocol::TrJson2),
        (&["--websocket", "json-v2"], SubProtocol::RsslJsonV2),
    ] {
        assert_eq!(Peer::hears(ConnectionSettings::default(), asked).websocket, Some(protocol), "{asked:?}");
    }
    // A server chooses the best of its configured protocols.
    let place = Place::new();
    let (mut running, port) = place.server(&["--pl", "tr_json2"]);
    place.client(&port, &["--conn-type", "websocket", "--pl", "rssl.rwf,tr_json2"]);
    running.ends();
    assert!(count(&place.record("server")["counts"], "received") > 0);
}

#[test]
fn encrypted_ends() {
    let place = Place::new();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(place.path("cert.pem"), certificate.pem()).unwrap();
    std::fs::write(place.path("key.pem"), key.serialize_pem()).unwrap();
    let files = ["--cert", "cert.pem", "--keyfile", "key.pem", "--conn-type", "encrypted"];
    for inside in ["socket", "websocket"] {
        let place = Place::new();
        std::fs::write(place.path("cert.pem"), certificate.pem()).unwrap();
        std::fs::write(place.path("key.pem"), key.serialize_pem()).unwrap();
        let (mut running, port) = place.server(&files);
        let asked = ["--conn-type", "encrypted", "--encrypted-conn-type", inside, "--castore", "cert.pem"];
        let other = ["--tls", "--ca", "cert.pem"];
        let (_, said) = place.client(&port, if inside == "socket" { &other } else { &asked });
        running.ends();
        assert!(said.contains("encrypted"), "{said}");
        assert!(count(&place.record("server")["counts"], "received") > 0, "{inside}");
    }
}

#[test]
fn a_connection_that_takes_no_more_holds_the_sender_back() {
    // A peer that reads nothing after the handshake.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let peer = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut session = Session::server(
            Arc::new(ConnectionSettings { protocol_type: 88, ..ConnectionSettings::default() }),
            Nanos(monotonic_ns()),
        );
        let (mut input, mut buffer) = (Vec::new(), vec![0; 4096]);
        while !session.is_open() {
            let count = stream.read(&mut buffer).unwrap();
            input.extend_from_slice(&buffer[..count]);
            let (consumed, _) = session.take(&mut input, Nanos(monotonic_ns())).unwrap();
            input.drain(..consumed);
            stream.write_all(&session.drain()).unwrap();
        }
        ended.recv().unwrap_err();
    });
    let sent = |buffers: &str| {
        let place = Place::new();
        let asked = ["client", "--port", &port, "--run-time", RUN, "--unpaced", "--output-bufs", buffers];
        place.run(&[&asked[..], &["--send-buf-size", "65536", "--run-folder", "c"]].concat());
        count(&place.record("c")["counts"], "sent")
    };
    // The messages that fit into the buffers, independent of the run time.
    let few = sent("10");
    drop(done);
    peer.join().unwrap();
    assert!(few < 1 << 20, "{few}");
}

#[test]
fn a_connection_that_ends_is_no_loss_and_one_that_breaks_is() {
    // The server's last bytes, and whether that end is an error.
    for (last, is_lost) in [(&[][..], false), (&[0, 1, 0xFF][..], true)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let place = Place::new();
        let fixed = ["omm", "transport", "client", "--port", &port, "--run-time", "1000"];
        let running =
            tapeline(&fixed).current_dir(&place.0).stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        let (mut stream, _) = listener.accept().unwrap();
        let settings = Arc::new(ConnectionSettings { protocol_type: 88, ..ConnectionSettings::default() });
        let mut session = Session::server(settings, Nanos(monotonic_ns()));
        let (mut input, mut buffer) = (Vec::new(), vec![0; 4096]);
        while !session.is_open() {
            let count = stream.read(&mut buffer).unwrap();
            input.extend_from_slice(&buffer[..count]);
            let (consumed, _) = session.take(&mut input, Nanos(monotonic_ns())).unwrap();
            input.drain(..consumed);
            stream.write_all(&session.drain()).unwrap();
        }
        // The client is at work once it has sent something.
        assert!(stream.read(&mut buffer).unwrap() > 0);
        stream.write_all(last).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
        let output = running.unwrap().wait_with_output().unwrap();
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!(talk.contains("error: connection 1 was lost"), is_lost, "{talk}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let place = Place::new();
    for (arguments, expected) in [
        (&["--msg-rate", "100"][..], "--msg-rate 100 is below --tick-rate 1000"),
        (
            &["--msg-rate", "2000", "--latency-msg-rate", "3000"],
            "--latency-msg-rate 3000 is above --msg-rate 2000",
        ),
        (&["--latency-msg-rate", "1001"], "--latency-msg-rate 1001 is above --tick-rate 1000"),
        (&["--msg-rate", "0", "--latency-msg-rate", "10"], "--latency-msg-rate 10 is above --msg-rate 0"),
        (&["--conn-type", "reliable-mcast"], "RSSL over multicast is not spoken here"),
        (&["--conn-type", "seqMCast"], "RSSL over multicast is not spoken here"),
        (&["--conn-type", "shmem"], "RSSL over shared memory is not spoken here"),
        (&["--conn-type", "http"], "RSSL inside HTTP is not spoken here"),
        (&["--conn-type", "encrypted"], "an encrypted server needs a certificate"),
        (&["client", "--pl", "rssl.rwf"], "--pl names protocols inside a WebSocket"),
        (
            &["client", "--conn-type", "socket", "--encrypted-conn-type", "socket"],
            "--encrypted-conn-type says",
        ),
        (&["server", "--attempts", "1"], "--attempts means nothing for a server"),
        (&["client", "--end-with-clients"], "--end-with-clients means nothing for a client"),
    ] {
        let output = place.run(arguments);
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {talk}");
        let line = talk.lines().find(|line| line.starts_with("error: "));
        assert!(talk.contains(expected) && line.is_some(), "{arguments:?}: {talk}");
    }
    for (arguments, expected) in [
        (&["--reflect-msgs", "--pack", "2"][..], "--pack"),
        (&["--reflect-msgs", "--msg-rate", "2k"], "--msg-rate"),
        (&["--unpaced", "--msg-rate", "2k"], "--msg-rate"),
        (&["client", "--app-type", "client"], "--app-type"),
        (&["--msg-size", "19"], "19"),
        (&["--pack", "0"], "0"),
        (&["--tick-rate", "0"], "0"),
        (&["--write-stats-interval", "0"], "0"),
        (&["--compression-level", "10"], "10"),
        (&["--tcp-delay", "--tcp-nodelay", "true"], "--tcp-nodelay"),
        (&["--direct-write", "--high-water-mark", "9"], "--high-water-mark"),
        (&["--pl", "rssl.xml"], "there is no sub-protocol rssl.xml"),
        (&["--mcast-stats"], "there is no multicast"),
        (&["-ra", "1.2.3.4"], "there is no multicast"),
    ] {
        let output = place.run(arguments);
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {talk}");
        assert!(talk.contains(expected), "{arguments:?}: {talk}");
    }
    assert!(!place.path("runs").exists(), "nothing is written before it is understood");
    // The failed attempts end the run, not its run time.
    let output = place.run(&["client", "--attempts", "1", "--port", "1", "--run-time", "86400"]);
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        talk.contains("cannot connect to localhost:1") && talk.contains("hint: start the other end"),
        "{talk}"
    );
}

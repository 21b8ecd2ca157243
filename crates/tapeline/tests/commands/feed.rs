//! `tapeline feed` through the real binary: its output for real captures, and the datagrams that it sends.

use crate::shared_data;

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared_data::{expected, shared};
use tapeline_feed::capture::{self, PcapWriter, Recording};
use tapeline_feed::moldudp64::{MoldPacket, MoldSession, PacketBuilder, parse};
use tapeline_measure::Nanos;
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

fn tapeline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.arg("feed").args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    tapeline(arguments).output().unwrap()
}

/// The JSON that a command prints; the command fails if a file is cut.
fn json_of(arguments: &[&str]) -> Value {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    let found: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    let cut = found["trailing_bytes"].as_u64().is_some_and(|bytes| bytes > 0);
    assert_eq!(output.status.code(), Some(i32::from(cut)), "{arguments:?}: {errors}");
    found
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Compares the named members, which must exist on both sides.
#[track_caller]
fn same(found: &Value, expected: &Value, members: &[&str]) {
    for member in members {
        assert!(!expected[member].is_null(), "nothing is expected of {member}");
        assert_eq!(found[member], expected[member], "{member}");
    }
}

/// Members that an independent parser's result for a file of messages has too.
const OF_MESSAGES: [&str; 16] = [
    "messages",
    "bytes_consumed",
    "trailing_bytes",
    "by_type",
    "wrong_length",
    "unknown_types",
    "first_timestamp_ns",
    "last_timestamp_ns",
    "first_time",
    "last_time",
    "timestamps_going_back",
    "system_events",
    "trading_state",
    "unknown_order_references",
    "live_orders_end",
    "max_live_orders",
];

#[test]
fn inspect_finds_in_files_of_messages_what_is_in_them() {
    for (folder, file, symbols) in [
        ("itch50-aapl-20200130", "aapl-first5000.itch", "AAPL"),
        ("itch50-synthetic-ritch", "ritch-framed.itch", "ALC"),
        ("itch50-head-nasdaq", "nasdaq-head-4096.itch", ""),
        // The original of the second file, with zeros as lengths.
        ("itch50-synthetic-ritch", "ex20101224.TEST_ITCH_50.gz", "ALC"),
    ] {
        let (Some(path), Some(expected)) =
            (shared(&format!("{folder}/{file}")), expected(&format!("{folder}/expected.json")))
        else {
            return;
        };
        let found = json_of(&["inspect", text(&path), "--format", "json", "--symbol", symbols]);
        same(&found, &expected, &OF_MESSAGES);
        same(&found, &expected, &["books_price_shares_orders"]);
        for (symbol, volume) in expected["volume"].as_object().unwrap() {
            same(&found["volume"], &json!({ symbol: volume }), &[symbol]);
        }
        match &expected["directory"] {
            Value::Number(count) => {
                assert_eq!(found["directory"].as_object().unwrap().len() as u64, count.as_u64().unwrap());
            }
            directory => assert_eq!(&found["directory"], directory),
        }
        assert_eq!(found["protocol"], "ITCH 5.0");
    }
}

#[test]
fn inspect_arbitrates_the_lines_of_a_feed() {
    let Some(expected) = expected("moldudp64-derived/expected.json") else { return };
    let path = |line: &str| shared(&format!("moldudp64-derived/aapl5000-{line}.pcap")).unwrap();
    let (a, b, clean) = (path("A"), path("B"), path("clean"));
    let of_lines = [
        "sessions",
        "first_delivery_by_feed",
        "unique_messages",
        "next_sequence",
        "end_of_session_sequence",
        "missing_ranges",
        "missing_messages",
    ];

    let found = json_of(&["inspect", text(&clean), "--format", "json", "--symbol", "AAPL"]);
    same(&found, &expected["clean"], &of_lines);
    assert_eq!(found["counts"]["A_data_packets"], expected["clean"]["counts"]["A_data_packets"]);
    assert_eq!(found["counts"]["A_heartbeats"], 3);
    assert_eq!(found["counts"]["A_end_of_session"], 3);
    assert_eq!(found["files"][0]["packets"], expected["files"]["aapl5000-clean.pcap"]["packets"]);
    // The messages are those of the source file.
    let source = self::expected("itch50-aapl-20200130/expected.json").unwrap();
    same(&found, &source, &["messages", "by_type", "volume", "books_price_shares_orders", "live_orders_end"]);

    let found = json_of(&["inspect", text(&a), text(&b), "--format", "json"]);
    let both = &expected["A_and_B_arbitrated_without_recovery"];
    same(&found, both, &of_lines);
    same(&found, both, &["counts"]);

    let found = json_of(&["inspect", text(&a), "--format", "json"]);
    same(&found, &expected["feed_A_alone"], &of_lines);
    same(&found, &expected["feed_A_alone"], &["counts"]);
    let found = json_of(&["inspect", text(&b), "--format", "json"]);
    let alone = &expected["feed_B_alone"];
    same(
        &found,
        alone,
        &["sessions", "unique_messages", "missing_ranges", "missing_messages", "next_sequence"],
    );
    assert_eq!(found["lines"]["A"]["data_packets"], alone["counts"]["B_data_packets"]);

    let table = run(&["inspect", text(&a), text(&b)]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(
        table.contains("14 messages are missing in 5 gaps: 982–984, 2417–2418, 2531, 3826–3830, 4388–4390"),
        "{table}"
    );
}

#[test]
fn one_damaged_sequence_does_not_lose_the_rest_of_a_capture() {
    let Some(expected) = expected("moldudp64-derived/expected.json") else { return };
    let clean = shared("moldudp64-derived/aapl5000-clean.pcap").unwrap();
    let mut bytes = std::fs::read(clean).unwrap();
    let session = expected["clean"]["sessions"][0].as_str().unwrap().as_bytes();
    let (packet, _) =
        bytes.windows(session.len()).enumerate().filter(|(_, at)| *at == session).nth(20).unwrap();
    // The second byte of its sequence: 2^54 messages ahead.
    bytes[packet + 10 + 1] ^= 0x40;
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged.pcap");
    std::fs::write(&damaged, bytes).unwrap();
    let found = json_of(&["inspect", text(&damaged), "--format", "json"]);
    assert_eq!(found["next_sequence"], expected["clean"]["next_sequence"]);
    let missing = found["missing_messages"].as_u64().unwrap();
    assert!((1..100).contains(&missing), "{missing}: those of one packet");
    assert_eq!(found["missing_ranges"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_read_is_said_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.pcap");
    std::fs::write(&path, "not a capture").unwrap();
    let output = run(&["inspect", text(&path)]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors.contains("notes.pcap") && errors.contains("not a capture: it begins with 6e 6f 74"),
        "{errors}"
    );

    // Damaged in the middle: the part before the damage is shown, and its position.
    let written = folder.path().join("day.pcap");
    run(&["simulate", "--write", text(&written), "--messages", "5k", "--symbols", "10"]);
    let mut bytes = std::fs::read(&written).unwrap();
    let half = bytes.len() / 2;
    bytes.truncate(half);
    bytes.extend([0xFF; 4096]);
    std::fs::write(&path, bytes).unwrap();
    let output = run(&["inspect", text(&path), "--format", "json"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("expected a packet record of at most 262,144 bytes"), "{errors}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["messages"].as_u64().unwrap() > 1_000);

    // Cut within a packet: the whole packets are shown, and the position of the cut.
    run(&["simulate", "--write", text(&written), "--messages", "5k", "--symbols", "10"]);
    let whole = std::fs::read(&written).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let output = run(&["inspect", text(&path), "--format", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let left = found["trailing_bytes"].as_u64().unwrap();
    let place = whole.len() as u64 - 1 - left;
    let said = format!("cut at byte {place}: the file ends after {left} bytes of a packet");
    assert_eq!((&found["files"][0]["error"], output.status.code()), (&json!(said), Some(1)));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains(&format!("error: notes.pcap: {said}")), "{errors}");

    // A destination without traffic, and one with traffic.
    let there = json_of(&["inspect", text(&written), "--format", "json"]);
    let there = there["files"][0]["dest"].as_object().unwrap().keys().next().unwrap().clone();
    for (only, said) in
        [("1.2.3.4:5", format!("nothing goes to 1.2.3.4:5; there is {there}")), (&there, String::new())]
    {
        let output = run(&["inspect", text(&written), "--only", only]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.contains(&said), "{errors}");
        assert_eq!(errors.contains("nothing goes to"), !said.is_empty(), "{errors}");
    }

    for arguments in [
        &["inspect", "/nonexistent/file"][..],
        &["replay", "/nonexistent/file", "--to", "239.255.0.1:9"],
        &["simulate", "--write", text(&folder.path().join("day.zip"))],
        &["simulate", "--to", "239.255.0.1:9", "--interface", "no-such-interface"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
    // Invalid command lines.
    for arguments in [
        &["simulate", "--to", "239.255.0.1:9", "--burst", "10x"][..],
        &["simulate"],
        &["replay", "x", "--to", "239.255.0.1:9", "--speed", "fast"],
        &["inspect"],
    ] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

/// A separate group for each test, with a port that was free a moment ago.
fn group(last: u8) -> SocketAddrV4 {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, last), port)
}

fn listen(group: SocketAddrV4) -> UdpReceiver {
    let options = ReceiveOptions {
        interface: "127.0.0.1".to_owned(),
        receive_buffer: 8 << 20,
        ..ReceiveOptions::new(group)
    };
    UdpReceiver::open(&options).unwrap()
}

/// Receives payloads until `done` returns true; the test fails after twenty seconds of silence.
fn receive(receiver: &mut UdpReceiver, mut done: impl FnMut(&[Vec<u8>]) -> bool) -> Vec<Vec<u8>> {
    let mut batch = Batch::default();
    let mut payloads = Vec::new();
    while !done(&payloads) {
        if receiver.receive(&mut batch).unwrap() == 0 {
            assert!(receiver.wait(Duration::from_secs(20)), "silence after {} datagrams", payloads.len());
            continue;
        }
        payloads.extend(batch.iter().map(|datagram| datagram.bytes.to_vec()));
    }
    payloads
}

/// Whether the end of the session was sent three times.
fn ended(payloads: &[Vec<u8>]) -> bool {
    let last = payloads.iter().rev().take(3);
    payloads.len() >= 3 && { last }
        .all(|payload| matches!(parse(payload), Ok(MoldPacket::EndOfSession { .. })))
}

fn start(arguments: &[&str]) -> Child {
    tapeline(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn finish(mut child: Child) -> String {
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    // 4: complete except for the schedule, on a busy machine.
    assert!(matches!(child.wait().unwrap().code(), Some(0 | 4)), "{errors}");
    output
}

/// The messages in packets, each with its length prefix; sequences must be contiguous from `next`.
fn blocks(payloads: &[Vec<u8>], mut next: u64) -> Vec<u8> {
    let mut blocks = Vec::new();
    for payload in payloads {
        if let MoldPacket::Data(data) = parse(payload).unwrap() {
            for (sequence, message) in data.messages() {
                assert_eq!(sequence, next);
                next += 1;
                blocks.extend((message.len() as u16).to_be_bytes());
                blocks.extend(message);
            }
        }
    }
    blocks
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn replay_puts_the_payloads_of_a_capture_on_both_lines() {
    let Some(path) = shared("moldudp64-derived/aapl5000-clean.pcap") else { return };
    let Recording::Datagrams(mut capture) = capture::open(std::fs::File::open(&path).unwrap()).unwrap()
    else {
        panic!("it is a capture");
    };
    let mut payloads = Vec::new();
    while let Some(datagram) = capture.next().unwrap() {
        payloads.push(datagram.payload.to_vec());
    }

    let (a, b) = (group(1), group(2));
    let (mut on_a, mut on_b) = (listen(a), listen(b));
    let (to, also) = (a.to_string(), b.to_string());
    let arguments = ["replay", text(&path), "--to", &to, "--also", &also, "--rate", "5k", "--format", "json"];
    let child = start(&arguments);
    let all = |received: &[Vec<u8>]| received.len() >= payloads.len();
    let received = receive(&mut on_a, all);
    assert!(received == payloads, "line A differs");
    assert!(receive(&mut on_b, all) == payloads, "line B differs");
    let outcome: Value = serde_json::from_str(&finish(child)).unwrap();
    assert_eq!(outcome["datagrams"], payloads.len());
    assert_eq!(outcome["lines"], 2);

    // No traffic goes to the other destination; a filter for the actual destination changes nothing.
    let output =
        run(&["replay", text(&path), "--to", &to, "--only", "233.54.12.111:26477", "--speed", "max"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("sent 3,294 datagrams"));
    let output = run(&["replay", text(&path), "--to", &to, "--only", "1.2.3.4:5", "--speed", "max"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("sent 0 datagrams"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing goes to 1.2.3.4:5"));
}

#[test]
fn replay_packs_a_file_of_messages() {
    let Some(path) = shared("itch50-aapl-20200130/aapl-first5000.itch") else { return };
    let source = std::fs::read(&path).unwrap();
    for (pack, last) in [("1", 3), ("max", 4)] {
        let group = group(last);
        let mut receiver = listen(group);
        let to = group.to_string();
        let child = start(&[
            "replay",
            text(&path),
            "--to",
            &to,
            "--rate",
            "10k",
            "--pack",
            pack,
            "--session",
            "DAY1",
            "--loop",
            "2",
        ]);
        let received = receive(&mut receiver, ended);
        let output = finish(child);
        assert!(output.starts_with("sent 10,000 messages in "), "{output}");
        // The same messages twice, under contiguous sequences.
        let messages = blocks(&received, 1);
        assert_eq!(sha256(&messages), sha256(&[source.clone(), source.clone()].concat()));
        let Ok(MoldPacket::EndOfSession { session, next, .. }) = parse(received.last().unwrap()) else {
            panic!("no end")
        };
        assert_eq!((session.to_string().as_str(), next), ("DAY1", 10_001));
        if pack == "1" {
            assert_eq!(received.len(), 10_003);
        } else {
            assert!(received.len() < 300, "{}", received.len());
            assert!(received.iter().all(|payload| payload.len() <= 1_400));
        }
    }
}

#[test]
fn a_sparse_file_at_its_own_pace_has_heartbeats() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.itch");
    // Two system events two and a half seconds apart.
    let mut file = Vec::new();
    for (code, ns) in [(b'O', 1_000_000_000_u64), (b'C', 3_500_000_000)] {
        file.extend([0, 12, b'S', 0, 0, 0, 0]);
        file.extend(&ns.to_be_bytes()[2..]);
        file.push(code);
    }
    std::fs::write(&path, &file).unwrap();
    let group = group(5);
    let mut receiver = listen(group);
    let to = group.to_string();
    let child = start(&["replay", text(&path), "--to", &to]);
    let received = receive(&mut receiver, ended);
    finish(child);
    let heartbeats: Vec<_> = received
        .iter()
        .filter_map(|payload| match parse(payload) {
            Ok(MoldPacket::Heartbeat { next, .. }) => Some(next),
            _ => None,
        })
        .collect();
    // Two on an idle machine; a machine that stalls may miss one.
    assert!(!heartbeats.is_empty() && heartbeats.iter().all(|next| *next == 2), "{heartbeats:?}");
    assert_eq!(blocks(&received, 1), file);
}

#[test]
fn simulate_sends_the_same_day_that_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let [itch, pcap] = ["day.itch", "day.pcap"].map(|name| folder.path().join(name));
    let day = ["--seed", "5", "--symbols", "20", "--messages", "20k", "--rate", "40k", "--format", "json"];
    let with = |more: &[&'static str], file: &Path| {
        let mut command = tapeline(&["simulate"]);
        let output = command.args(day).args(more).arg("--write").arg(file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let written = with(&[], &itch);
    let captured = with(&["--pack", "1"], &pcap);
    assert_eq!(written["messages"], 20_000);
    for member in ["messages", "books_checksum", "live_orders", "levels", "traded_shares"] {
        assert_eq!(written[member], captured[member], "{member}");
    }
    assert_eq!(captured["datagrams"], 20_000);

    // The written file is whole, and its books are the exchange's.
    let inspect = |path: &Path| json_of(&["inspect", text(path), "--format", "json"]);
    let (messages, datagrams) = (inspect(&itch), inspect(&pcap));
    for found in [&messages, &datagrams] {
        assert_eq!(found["messages"], 20_000);
        assert_eq!(found["live_orders_end"], written["live_orders"]);
        assert_eq!(found["unknown_order_references"], json!({}));
    }
    assert_eq!(messages["by_type"], datagrams["by_type"]);
    assert_eq!(datagrams["missing_messages"], 0);
    assert_eq!(datagrams["end_of_session_sequence"], 20_001);
    let again = folder.path().join("again.itch");
    with(&[], &again);
    assert_eq!(sha256(&std::fs::read(&itch).unwrap()), sha256(&std::fs::read(&again).unwrap()));

    // The sent messages are the same except for the times.
    let (a, b) = (group(6), group(7));
    let (mut on_a, mut on_b) = (listen(a), listen(b));
    let (to, also) = (a.to_string(), b.to_string());
    let child = start(&[&["simulate", "--to", &to, "--also", &also], &day[..]].concat());
    let received = receive(&mut on_a, ended);
    assert!(receive(&mut on_b, ended) == received, "the lines differ");
    let sent: Value = serde_json::from_str(&finish(child)).unwrap();
    assert_eq!(sent["books_checksum"], written["books_checksum"]);
    assert_eq!(sent["messages"], 20_000);
    assert_eq!(sent["lateness"]["samples"], sent["datagrams"]);
    let without_times = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let mut at = 0;
        while at < bytes.len() {
            let length = usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
            bytes[at + 7..at + 13].fill(0);
            if matches!(bytes[at + 2], b'K' | b'O') {
                bytes[at + 13..at + 2 + length].fill(0);
            }
            at += 2 + length;
        }
        sha256(&bytes)
    };
    assert_eq!(without_times(&blocks(&received, 1)), without_times(&std::fs::read(&itch).unwrap()));
    assert!(received.iter().all(|payload| payload.len() <= 1_400));
}

#[test]
fn the_help_says_what_the_commands_do() {
    for (command, says) in [
        ("replay", "packed into MoldUDP64, with heartbeats"),
        ("inspect", "Several captures are taken as the lines A, B"),
        ("simulate", "The event time of a message is its due time"),
    ] {
        let help = String::from_utf8(run(&[command, "--help"]).stdout).unwrap();
        // Line breaks depend on the terminal.
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(says) && words.contains("--format <FORMAT>"), "{help}");
    }
}

/// MoldUDP64 carries other exchanges' messages too: their interpretation as ITCH 5.0 is meaningless.
#[test]
fn moldudp64_with_other_messages_is_not_called_itch() {
    let folder = tempfile::tempdir().unwrap();
    let (foreign, empty) = (folder.path().join("foreign.pcap"), folder.path().join("empty.pcap"));
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    let mut pcap = PcapWriter::new(Vec::new()).unwrap();
    // Types and lengths of Borsa Istanbul's messages, as in the real sample.
    for (sequence, types) in [(0, &b"T"[..]), (1, b"TSRL"), (5, b"RLRL")] {
        let mut datagram = [0; 400];
        let mut packet = PacketBuilder::new(&mut datagram, MoldSession::new("BIST"), sequence).unwrap();
        for kind in types {
            let length = match kind {
                b'T' => 5,
                b'S' => 6,
                b'R' => 113,
                _ => 25,
            };
            let mut message = vec![0; length];
            message[0] = *kind;
            packet.push(&message).unwrap();
        }
        let length = packet.finish();
        pcap.write(Nanos(1 + sequence), address, address, &datagram[..length]).unwrap();
    }
    std::fs::write(&foreign, pcap.finish().unwrap()).unwrap();
    // The second of three packets is the first fragment of a larger packet.
    let fragmented = folder.path().join("fragmented.pcap");
    let mut pcap = PcapWriter::new(Vec::new()).unwrap();
    let mut datagram = [0; 60];
    for sequence in 1..4 {
        let mut packet = PacketBuilder::new(&mut datagram, MoldSession::new("ITCH"), sequence).unwrap();
        packet.push(b"S12345678901").unwrap();
        let length = packet.finish();
        pcap.write(Nanos(sequence), address, address, &datagram[..length]).unwrap();
    }
    let mut bytes = pcap.finish().unwrap();
    let ip = bytes.windows(2).enumerate().filter(|(_, window)| *window == [0x45, 0]).nth(1).unwrap().0;
    bytes[ip + 6] = 0x20;
    std::fs::write(&fragmented, bytes).unwrap();
    let output = run(&["inspect", text(&fragmented)]);
    let (tables, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(tables.contains("1 messages are missing in 1 gaps: 2"), "{tables}");
    assert!(said.contains("fragmented.pcap: 1 packets are IP fragments and are not reassembled"), "{said}");
    std::fs::write(&empty, PcapWriter::new(Vec::new()).unwrap().finish().unwrap()).unwrap();
    let output = run(&["inspect", text(&foreign)]);
    let (tables, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error: MoldUDP64, not ITCH 5.0: 8 of 8 messages have another type or length"),
        "{said}"
    );
    assert!(tables.contains("A: 1 packets left out: sequences that cannot be"), "{tables}");
    assert!(tables.contains("no message is missing") && !tables.contains("stock"), "{tables}");
    let output = run(&["inspect", text(&empty)]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: empty.pcap: this capture has no packets"), "{said}");
}

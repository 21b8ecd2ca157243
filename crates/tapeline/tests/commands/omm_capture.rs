//! `tapeline omm decode` on captures of connections: a consumer and a provider talk through a relay that records the
//! data as TCP segments.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;
use stage::{Running, tapeline};

use crate::stage;

/// Maximum size of a segment that `relay` records, in bytes.
const LARGEST: usize = 1400;

/// The recorded data: whether it is from the client, and the bytes.
type Pieces = Vec<(bool, Vec<u8>)>;
type Passed = Arc<Mutex<Pieces>>;

/// Relays one connection to a server, and records it.
fn relay(server: u16) -> (u16, thread::JoinHandle<Pieces>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let carry = |mut from: TcpStream, mut to: TcpStream, is_client: bool, passed: Passed| {
        thread::spawn(move || {
            let mut buffer = vec![0; LARGEST];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                passed.lock().unwrap().push((is_client, buffer[..count].to_vec()));
                // A write to a closed connection fails; the data is recorded all the same.
                let _ = to.write_all(&buffer[..count]);
            }
            let _ = to.shutdown(Shutdown::Write);
        })
    };
    let relaying = thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).unwrap();
        let passed = Passed::default();
        let there = carry(client.try_clone().unwrap(), server.try_clone().unwrap(), true, passed.clone());
        carry(server, client, false, passed.clone()).join().unwrap();
        there.join().unwrap();
        let passed = passed.lock().unwrap();
        passed.clone()
    });
    (port, relaying)
}

/// A packet: IPv4 and TCP without options.
fn packet(is_client: bool, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(((40 + payload.len()) as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    let (from, to) = if is_client { (1, 2) } else { (2, 1) };
    packet.extend([10, 0, 0, from, 10, 0, 0, to]);
    let (from, to) = if is_client { (40_000_u16, 14_002_u16) } else { (14_002, 40_000) };
    packet.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
    packet.extend(sequence.to_be_bytes());
    packet.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    packet.extend(payload);
    packet
}

/// A pcap file of raw IP packets.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 0xFFFF, 101] {
        file.extend(word.to_le_bytes());
    }
    for (second, packet) in packets.iter().enumerate() {
        for word in [second as u32, 0, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// Packets of at most `largest` bytes with the recorded data. Each side's sequence numbers start just below `u32::MAX`.
fn packets(passed: &[(bool, Vec<u8>)], largest: usize) -> Vec<Vec<u8>> {
    let first = u32::MAX - 100;
    let mut next = [first + 1; 2];
    let mut packets = vec![packet(true, first, 2, &[]), packet(false, first, 0x12, &[])];
    for (is_client, bytes) in passed {
        let sequence = &mut next[usize::from(*is_client)];
        for bytes in bytes.chunks(largest) {
            packets.push(packet(*is_client, *sequence, 0x18, bytes));
            *sequence = sequence.wrapping_add(bytes.len() as u32);
        }
    }
    packets
}

fn passed(provider: &[&str], consumer: &[&str]) -> Pieces {
    let mut running =
        Running::start(&[&["omm", "serve", "--port", "0", "--update-rate", "1000"], provider].concat());
    let server = running.says()["port"].as_u64().unwrap();
    let (port, relaying) = relay(server as u16);
    let fixed = ["omm", "watch", "--user", "tester", "--server", &format!("localhost:{port}")];
    let output = tapeline(&[&fixed, consumer].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    relaying.join().unwrap()
}

fn decode(file: &[u8], more: &[&str]) -> (Output, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("connection.pcap");
    std::fs::write(&path, file).unwrap();
    let fixed = ["omm", "decode", path.to_str().unwrap(), "--format", "json"];
    let output = tapeline(&[&fixed, more].concat()).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output, lines)
}

fn count(lines: &[Value], event: &str, from: &str) -> usize {
    lines
        .iter()
        .filter(|line| line["event"] == event && line["from"].as_str().unwrap().starts_with(from))
        .count()
}

#[test]
fn both_directions_of_connections_of_every_compression() {
    for compression in ["none", "zlib", "lz4"] {
        let option = ["--compression", compression];
        let asked = ["A", "B", "--batch", "--updates", "4", "--download-dictionary"];
        let passed = passed(&option, &[&asked[..], &option].concat());
        let mut packets = packets(&passed, LARGEST);
        // One packet twice, and two out of order.
        let again = packets[packets.len() / 2].clone();
        packets.insert(packets.len() * 2 / 3, again);
        let at = packets.len() / 3;
        packets.swap(at, at + 1);
        let (output, lines) = decode(&pcap(&packets), &[]);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compression}: {talk}");
        // Login, directory, two dictionaries, and the batch, each with its answers.
        assert_eq!(count(&lines, "request", "10.0.0.1"), 5, "{compression}: {talk}");
        assert!(count(&lines, "refresh", "10.0.0.2") >= 6, "{compression}");
        assert!(count(&lines, "update", "10.0.0.2") >= 8, "{compression}");
        assert_eq!(count(&lines, "close", "10.0.0.1"), 1, "{compression}");
        let numbers: Vec<u64> = lines.iter().map(|line| line["packet"].as_u64().unwrap()).collect();
        assert!(numbers.is_sorted(), "{compression}");
    }
}

#[test]
fn websockets_of_every_sub_protocol() {
    for (protocol, compression) in
        [("rwf", "none"), ("rwf", "lz4"), ("json", "none"), ("json", "zlib"), ("json-v2", "none")]
    {
        let way = format!("{protocol} {compression}");
        let option = ["--compression", compression];
        let asked = ["A", "B", "--batch", "--updates", "4", "--websocket", protocol];
        let passed = passed(&option, &[&asked[..], &option].concat());
        let (output, lines) = decode(&pcap(&packets(&passed, LARGEST)), &[]);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{way}: {talk}");
        assert_eq!(count(&lines, "request", "10.0.0.1"), 3, "{way}: {talk}");
        assert!(count(&lines, "refresh", "10.0.0.2") >= 4, "{way}");
        let updates: Vec<_> = lines.iter().filter(|line| line["event"] == "update").collect();
        assert!(updates.len() >= 8 && updates.iter().all(|line| line["fields"].is_object()), "{way}");
        assert_eq!(count(&lines, "close", "10.0.0.1"), 1, "{way}");
        assert!(lines.iter().all(|line| line["fault"].is_null()), "{way}");
        // The consumer writes the service's number in JSON too, and the server answers with a number.
        assert!(!talk.contains("stands for"), "{way}: {talk}");
    }
}

#[test]
fn what_cannot_be_followed_is_said_with_its_place() {
    // Small packets: the number of the server's messages in one read depends on the machine.
    let packets = packets(&passed(&[], &["A", "--updates", "4"]), 40);
    let refused = |packets: &[Vec<u8>], expected: &str| -> Vec<Value> {
        let (output, lines) = decode(&pcap(packets), &[]);
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && talk.contains(expected), "{talk}");
        lines
    };
    refused(&packets[2..], "the connection's beginning is not in the capture");
    refused(&[], "no connection over TCP");
    let is_from = |packet: &Vec<u8>, last: u8| packet[15] == last;
    let client: Vec<_> = packets.iter().filter(|packet| is_from(packet, 1)).cloned().collect();
    refused(&client, "the other direction is not in the capture");
    // A gap before the server's last packet, which ends the fourth update: the images before it are shown.
    let mut holed = packets.clone();
    let last = holed.iter().rposition(|packet| is_from(packet, 2)).unwrap();
    let hole = holed[..last].iter().rposition(|packet| is_from(packet, 2)).unwrap();
    holed.remove(hole);
    let lines = refused(&holed, "bytes are missing");
    assert!(count(&lines, "refresh", "10.0.0.2") >= 2);
    // Another protocol.
    let other = [
        packet(true, 0, 2, &[]),
        packet(false, 0, 0x12, &[]),
        packet(true, 1, 0x18, b"GET / HTTP/1.1\r\n\r\n"),
    ];
    refused(&other, "no server's answer to a connect request");
}

//! Retransmission requests and their answers, by real processes over real sockets on loopback.

use crate::pages;
use crate::shared_data;
use crate::stage;

use std::io::{BufRead, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared_data::{expected, shared};
use stage::{Running, tapeline};
use tapeline_feed::moldudp64::{HEADER_BYTES, MoldPacket, MoldSession, Request, parse};
use tapeline_feed::soupbintcp::{Split, split};

/// Far longer than loopback ever takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Stops a process, and returns its last line.
fn end(server: &mut Running) -> Value {
    server.ask_to_end();
    server.says()
}

/// A retransmission server for a shared capture, and its address.
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
        let MoldPacket::Data(data) = parse(&buffer[..length]).unwrap() else { panic!("no messages") };
        assert_eq!(json!(data.sequence()), request["sequence"]);
        assert_eq!(json!(data.count()), request["count"]);
        for (sequence, message) in data.messages() {
            assert_eq!(message, messages[sequence as usize - 1], "{sequence}");
            count += 1;
        }
    }
    assert_eq!(count, 14);

    // Requests for unknown messages get no answer; the next answer is that of the last request.
    for (session, first) in [("AAPL200130", 5_001), ("AAPL200131", 1), ("AAPL200130", 0)] {
        socket.send_to(&Request::for_gap(MoldSession::new(session), first, first).encode(), address).unwrap();
    }
    socket.send_to(b"not a request", address).unwrap();
    socket
        .send_to(&Request::for_gap(MoldSession::new("AAPL200130"), 4_990, 6_000).encode(), address)
        .unwrap();
    let mut buffer = [0; 2_048];
    let (length, _) = socket.recv_from(&mut buffer).unwrap();
    let MoldPacket::Data(data) = parse(&buffer[..length]).unwrap() else { panic!("no messages") };
    assert_eq!((data.sequence(), data.end()), (4_990, 5_001));
    let done = end(&mut server);
    assert_eq!((&done["requests"], &done["answers"], &done["messages"]), (&json!(10), &json!(6), &json!(25)));
    assert_eq!(done["unanswered"], json!({"malformed": 1, "other-session": 1, "absurd": 1, "not-here": 1}));
}

/// A folder with a password file, and the path of the file.
fn password(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    std::fs::write(&path, format!("{text}\n")).unwrap();
    let name = path.to_str().unwrap().to_owned();
    (folder, name)
}

/// A SoupBinTCP server for a shared capture with the account user01, and its address.
fn soup(capture: &str, password_file: &str) -> Option<(Running, SocketAddr)> {
    let path = shared(capture)?;
    let path = path.to_str().unwrap();
    let mut server = Running::start(&[
        "feed",
        "serve-soup",
        path,
        "--session",
        "AAPL200130",
        "--listen",
        "127.0.0.1:0",
        "--user",
        "user01",
        "--password-file",
        password_file,
        "--format",
        "json",
    ]);
    let address = server.says()["ready"].as_str().unwrap().parse().unwrap();
    Some((server, address))
}

fn fetch(server: SocketAddr, more: &[&str]) -> Output {
    let server = server.to_string();
    tapeline(&[&["feed", "fetch-soup", &server, "--format", "json"], more].concat()).output().unwrap()
}

fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sha256_of(path: &Path) -> String {
    Sha256::digest(std::fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_session_is_served_and_fetched_over_soupbintcp() {
    let (folder, file) = password("secretpw");
    for capture in ["itch50-aapl-20200130/aapl-first5000.itch", "moldudp64-derived/aapl5000-clean.pcap"] {
        let Some((mut server, address)) = soup(capture, &file) else { return };
        let account = ["--user", "user01", "--password-file", &file];
        let written = folder.path().join("day.itch");
        let all = ["--write", written.to_str().unwrap(), "--symbol", "AAPL"];
        let found = json_of(&fetch(address, &[&account[..], &all].concat()));
        let expected = expected("itch50-aapl-20200130/expected.json").unwrap();
        assert_eq!(sha256_of(&written), expected["sha256"].as_str().unwrap());
        for member in ["messages", "by_type", "live_orders_end", "books_price_shares_orders"] {
            assert_eq!(found[member], expected[member], "{member}");
        }
        assert_eq!((&found["end"], &found["session"]), (&json!("session-over"), &json!("AAPL200130")));
        assert_eq!((&found["first_sequence"], &found["next_sequence"]), (&json!(1), &json!(5_001)));

        // Three from the middle, and the most recent one.
        let three = json_of(&fetch(address, &[&account[..], &["--from", "982", "--count", "3"]].concat()));
        assert_eq!((&three["messages"], &three["first_sequence"]), (&json!(3), &json!(982)));
        assert_eq!((&three["end"], &three["next_sequence"]), (&json!("count"), &json!(985)));
        let last = json_of(&fetch(address, &[&account[..], &["--from", "0"]].concat()));
        assert_eq!((&last["messages"], &last["first_sequence"]), (&json!(1), &json!(5_000)));
        assert_eq!(last["missing_messages"], json!(0));
        let done = end(&mut server);
        assert_eq!(done["connections"], json!(3));
        // The last client may not have disconnected yet.
        let ended = done["ended"].as_object().unwrap();
        assert!(ended.keys().all(|end| ["end-of-session", "stopped"].contains(&end.as_str())), "{done}");
    }
}

#[test]
fn the_bytes_of_a_session_are_those_of_the_derived_one() {
    let (_folder, file) = password("secretpw");
    let Some((_server, address)) = soup("moldudp64-derived/aapl5000-clean.pcap", &file) else { return };
    let golden = |name: &str| std::fs::read(shared(&format!("soupbintcp-derived/{name}")).unwrap()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // Only the login, in two parts.
    let hello = golden("aapl5000-client-to-server.bin");
    stream.write_all(&hello[..1]).unwrap();
    stream.write_all(&hello[1..49]).unwrap();
    let mut came = Vec::new();
    stream.read_to_end(&mut came).unwrap();
    let determined = |mut stream: &[u8]| {
        let mut kept: Vec<u8> = Vec::new();
        while let Ok(Split::Packet(frame)) = split(stream) {
            if !matches!(frame.kind, b'H' | b'+') {
                kept.extend(&stream[..frame.bytes]);
            }
            stream = &stream[frame.bytes..];
        }
        kept
    };
    assert!(determined(&came) == determined(&golden("aapl5000-server-to-client.bin")));
}

#[test]
fn a_wrong_login_is_refused_with_a_hint_and_no_password_is_shown() {
    let (_folder, file) = password("secretpw");
    let (_other_folder, other) = password("wrongpw99");
    let Some((mut server, address)) = soup("itch50-aapl-20200130/aapl-first5000.itch", &file) else { return };
    let refused = |more: &[&str], says: &str| {
        let output = fetch(address, more);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(says) && errors.contains("hint: "), "{errors}");
        assert!(!errors.contains("secretpw") && !errors.contains("wrongpw99"), "{errors}");
    };
    refused(&["--user", "user01", "--password-file", &other], "name or password are wrong");
    refused(&["--user", "user02", "--password-file", &file], "name or password are wrong");
    refused(&[], "name or password are wrong");
    let account = ["--user", "user01", "--password-file", &file];
    refused(
        &[&account[..], &["--session", "DAY2"]].concat(),
        "session \"DAY2\": the session is not available",
    );
    refused(&["--user", "user01"], "there is no password");
    let (_long_folder, long) = password("longer-than-ten");
    refused(&["--user", "user01", "--password-file", &long], "cannot be in a login");
    let done = end(&mut server);
    let ended = done["ended"].as_object().unwrap();
    assert!(ended.keys().all(|end| ["rejected", "stopped"].contains(&end.as_str())), "{done}");
    assert_eq!((&done["connections"], &done["messages"]), (&json!(4), &json!(0)));
    // No server is left.
    drop(server);
    refused(&["--tries", "2", "--pause", "1ms"], "nothing could be fetched");
}

#[test]
fn a_server_that_is_shut_in_the_middle_is_told_of_and_gone_on_from() {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("some.itch");
    let server = std::thread::spawn(move || {
        let mut sequences = Vec::new();
        // One message and half a packet on the first two connections; only half a packet on the last two.
        for messages in [1, 1, 0, 0] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut login = [0; 49];
            stream.read_exact(&mut login).unwrap();
            let sequence: u64 = std::str::from_utf8(&login[29..]).unwrap().trim().parse().unwrap();
            sequences.push(sequence);
            let mut bytes = format!("\0\x1fA      DAY1{sequence:>20}").into_bytes();
            bytes.extend(b"\0\x0dSS\0\0\0\0\0\0\0\0\0\x07O".repeat(messages));
            bytes.extend(b"\0\x0dSS");
            stream.write_all(&bytes).unwrap();
        }
        sequences
    });
    let more = ["--from", "7", "--tries", "2", "--pause", "1ms", "--write", written.to_str().unwrap()];
    let output = fetch(address, &more);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("--from 9 continues where it stopped"), "{errors}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["messages"], &found["end"]), (&json!(2), &json!("gave-up")));
    assert_eq!(std::fs::metadata(&written).unwrap().len(), 2 * 14);
    assert_eq!(server.join().unwrap(), [7, 8, 9, 9]);
}

#[test]
fn what_cannot_be_served_is_refused_with_a_hint() {
    let serve = |more: &[&str]| {
        let arguments = ["feed", "serve-retransmit", "--listen", "127.0.0.1:0", "--duration", "1ms"];
        let output = tapeline(&[&arguments[..], more].concat()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let is_refused = |more: &[&str], code: i32, says: &str| {
        let (status, errors) = serve(more);
        assert_eq!(status, Some(code), "{errors}");
        assert!(errors.contains(says), "{errors}");
    };
    for (option, value, says) in [
        ("--memory", "1000000GiB", "more than this machine has; give at most"),
        ("--memory", "10", "too small for the longest message; give at least 128KiB"),
        ("--rate-each", "0", "at least 1 is needed"),
        ("--rate-all", "0", "at least 1 is needed"),
        ("--session", "AAPL20200130", "the name of a session has at most 10"),
    ] {
        is_refused(&["day.itch", option, value], 2, says);
    }
    let Some(clean) = shared("moldudp64-derived/aapl5000-clean.pcap") else { return };
    let clean = clean.to_str().unwrap();
    assert_eq!(serve(&[clean, "--memory", "128KiB"]).0, Some(0));
    for iex in ["iex-deep-20170425/deep10-lastsession-head.pcap", "iex-tops-20170710/tops16-head.pcap"] {
        let Some(iex) = shared(iex) else { return };
        let iex = iex.to_str().unwrap();
        is_refused(&[iex], 1, "holds IEX-TP\nhint: only MoldUDP64 messages");
        is_refused(&[clean, iex], 1, "holds IEX-TP\nhint: only MoldUDP64 messages");
    }
}

/// A client that connects without a login is replaced by others.
#[test]
fn who_does_not_log_in_keeps_nobody_out_of_a_soup_server() {
    let folder = tempfile::tempdir().unwrap();
    let day = folder.path().join("day.itch");
    let day = day.to_str().unwrap();
    let simulate = ["feed", "simulate", "--messages", "2000", "--symbols", "2", "--write", day];
    assert!(tapeline(&simulate).status().unwrap().success());
    let serve = ["feed", "serve-soup", day, "--listen", "127.0.0.1:0", "--max-connections", "1"];
    let mut server = Running::start(&[&serve[..], &["--format", "json"]].concat());
    let address: SocketAddr = server.says()["ready"].as_str().unwrap().parse().unwrap();
    let silent = TcpStream::connect(address).unwrap();
    let copy = folder.path().join("copy.itch");
    // Refused at first.
    while !fetch(address, &["--write", copy.to_str().unwrap()]).status.success() {}
    assert_eq!(std::fs::read(copy).unwrap(), std::fs::read(day).unwrap());
    server.ask_to_end();
    assert_eq!(server.says()["ended"]["gave-way"], 1);
    drop(silent);
}

#[test]
fn a_server_without_room_for_files_says_so_once_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let day = folder.path().join("day.itch");
    let simulate = ["feed", "simulate", "--messages", "2000", "--symbols", "2", "--write"];
    assert!(tapeline(&[&simulate[..], &[day.to_str().unwrap()]].concat()).status().unwrap().success());
    let mut server = std::process::Command::new("sh")
        .args([
            "-c",
            "ulimit -n 16; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_tapeline"),
            "feed",
            "serve-soup",
        ])
        .arg(&day)
        .args(["--listen", "127.0.0.1:0", "--duration", "2500ms", "--format", "json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    std::io::BufReader::new(server.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let address: SocketAddr = ready["ready"].as_str().unwrap().parse().unwrap();
    let clients: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut errors = String::new();
    server.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    drop(clients);
    server.wait().unwrap();
    let warnings = errors.lines().filter(|line| line.starts_with("warning: ")).count();
    assert!((1..=3).contains(&warnings), "{warnings} warnings: {errors}");
}

#[test]
fn the_commands_of_the_page_run_as_they_stand_there() {
    let folder = tempfile::tempdir().unwrap();
    for block in pages::commands("feeds/recovery.md") {
        pages::run(&block, folder.path());
    }
}

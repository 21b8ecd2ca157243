//! `tapeline omm` over every transport, through the real binary: each transport delivers the same messages.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use stage::{Running, tapeline};

use crate::certificates;
use crate::stage;

/// Options of a server and its clients.
struct Way {
    name: &'static str,
    server: Vec<String>,
    client: Vec<String>,
}

fn ways(folder: &Path) -> Vec<Way> {
    certificates::write(folder);
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut ways = Vec::new();
    for (name, both, client) in [
        ("tcp", "", ""),
        ("tcp zlib", "--compression zlib", ""),
        ("tcp lz4", "--compression lz4", ""),
        ("small fragments", "--max-fragment-size 300 --high-water-mark 0", ""),
        ("ws rwf", "", "--websocket rwf"),
        ("ws rwf lz4", "--compression lz4", "--websocket rwf"),
        ("ws json", "", "--websocket json"),
        ("ws json deflate", "--compression zlib", "--websocket json"),
        ("ws json v2", "", "--websocket json-v2"),
    ] {
        let client = [words(both), words(client)].concat();
        ways.push(Way { name, server: words(both), client });
    }
    for (name, client) in
        [("tls", ""), ("tls ws rwf", "--websocket rwf"), ("tls ws json", "--websocket json")]
    {
        let server = vec!["--cert".into(), file("server.pem"), "--key".into(), file("server.key")];
        let trust = vec!["--tls".to_owned(), "--ca".to_owned(), file("ca.pem")];
        ways.push(Way { name, server, client: [trust, words(client)].concat() });
    }
    ways
}

fn start(way: &Way, role: &str, more: &[&str]) -> (Running, String) {
    listen(way, &["omm", role, "--port", "0"], more)
}

fn listen(way: &Way, fixed: &[&str], more: &[&str]) -> (Running, String) {
    let server: Vec<&str> = way.server.iter().map(String::as_str).collect();
    let mut running = Running::start(&[fixed, more, &server].concat());
    let listening = running.says();
    assert_eq!(listening["event"], "listening", "{}: {listening}", way.name);
    (running, format!("localhost:{}", listening["port"]))
}

fn run(way: &Way, role: &str, server: &str, more: &[&str]) -> (Vec<Value>, Output) {
    call(way, &["omm", role, "--server", server, "--user", "tester", "--attempts", "1"], more)
}

fn call(way: &Way, fixed: &[&str], more: &[&str]) -> (Vec<Value>, Output) {
    let client: Vec<&str> = way.client.iter().map(String::as_str).collect();
    let output = tapeline(&[fixed, more, &client].concat()).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), output)
}

fn of<'v>(events: &'v [Value], name: &str) -> Vec<&'v Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

#[test]
fn consumer_and_provider() {
    let folder = tempfile::tempdir().unwrap();
    for way in ways(folder.path()) {
        // Few enough that a busy machine conflates no update, in particular not the posted one.
        let (_provider, server) = start(&way, "serve", &["--update-rate", "50"]);
        let asked = ["A", "B", "NAK", "--batch", "--post", "BID=7.5", "--generic", "hello", "--updates", "3"];
        let (events, output) = run(&way, "watch", &server, &asked);
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {talk} {events:?}", way.name);
        assert!(!talk.contains("cannot be"), "{}: {talk}", way.name);
        let end = events.last().unwrap();
        assert_eq!(
            (&end["images"], &end["acks"], &end["naks"]),
            (&3.into(), &2.into(), &1.into()),
            "{}",
            way.name
        );
        assert_eq!((of(&events, "generic").len(), &end["malformed"]), (3, &0.into()), "{}", way.name);
        let refresh = of(&events, "refresh")[0];
        assert_eq!(
            (&refresh["item"], &refresh["fields"]["CURRENCY"]),
            (&"A".into(), &"USD".into()),
            "{}",
            way.name
        );
        assert!(of(&events, "update").iter().any(|update| update["fields"]["BID"] == 7.5), "{}", way.name);

        let big = ["--domain", "MarketByOrder", "BIG", "--snapshot", "--download-dictionary"];
        let (events, output) = run(&way, "watch", &server, &big);
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(of(&events, "dictionary").len(), 1, "{}: {talk}", way.name);
        let refresh = of(&events, "refresh");
        assert_eq!(refresh.len(), 1, "{}: {talk}", way.name);
        assert_eq!(refresh[0]["entries"].as_array().map(Vec::len), Some(20_000), "{}", way.name);
    }
}

#[test]
fn ni_provider_and_acceptor() {
    let folder = tempfile::tempdir().unwrap();
    for way in ways(folder.path()) {
        let (mut acceptor, server) = start(&way, "accept", &["--quiet"]);
        let asked = ["A", "B", "--book", "BIG", "--updates", "2", "--update-rate", "2000"];
        let (events, output) = run(&way, "publish", &server, &asked);
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {talk} {events:?}", way.name);
        let gone = loop {
            let said = acceptor.says();
            if said["event"] == "gone" {
                break said;
            }
        };
        let end = events.last().unwrap();
        for same in ["refreshes", "updates", "statuses"] {
            assert_eq!(gone[same], end[same], "{}: {same} of {gone}", way.name);
        }
        assert_eq!((&gone["malformed"], &gone["services"]), (&0.into(), &1.into()), "{}", way.name);
        assert!(gone["orders"].as_u64() > Some(20_000), "{}: {gone}", way.name);
    }
}

#[test]
fn addresses_of_ipv6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server_file = folder.path().join("server.toml");
    let server_text =
        "[[IProvider]]\nName = \"P\"\nServer = \"S\"\n\n[[Server]]\nName = \"S\"\nInterfaceName = \"::1\"\n";
    std::fs::write(&server_file, server_text).unwrap();
    let config = ["--config", server_file.to_str().unwrap()];
    for server in [&["--bind", "::1"], &["--bind", "::"], &config] {
        let mut provider = Running::start(&[&["omm", "serve", "--port", "0"][..], server].concat());
        let listening = provider.says();
        let address = listening["address"].as_str().unwrap();
        let bound = if server[1] == "::" { "[::]:" } else { "[::1]:" };
        assert!(address.starts_with(bound), "{listening}");
        let client_file = folder.path().join("client.toml");
        let port = listening["port"].as_u64().unwrap();
        let client_text = format!(
            "[[Consumer]]\nName = \"C\"\nChannel = \"C\"\n\n[[Channel]]\nName = \"C\"\nHost = \"::1\"\nPort = {port}\n"
        );
        std::fs::write(&client_file, client_text).unwrap();
        let at = format!("[::1]:{port}");
        for client in [["--server", &at], ["--config", client_file.to_str().unwrap()]] {
            let asked = ["omm", "watch", "A", "--snapshot", "--attempts", "1"];
            let output = tapeline(&[&asked[..], &client].concat()).output().unwrap();
            assert!(
                output.status.success(),
                "{server:?} {client:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

/// The counts of both ends of `omm transport` over this transport.
fn opaque(folder: &Path, way: &Way, server: &[&str], client: &[&str]) -> (Value, Value) {
    let end = |end: &str, fixed: &[&str], words: &[String], more: &[&str]| {
        let files = ["--run-folder", end, "--summary-file", "summary.out", "--stats-file", "stats"];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = tapeline(&[&["omm", "transport", end][..], fixed, &files, more, &words].concat());
        command.current_dir(folder).stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let mut partner = end("server", &["--port", "0", "--end-with-clients"], &way.server, server);
    let mut said = String::new();
    let mut output = BufReader::new(partner.stdout.take().unwrap());
    output.read_line(&mut said).unwrap();
    let port = said.trim().rsplit_once(':').unwrap().1;
    let address = format!("localhost:{port}");
    let fixed = ["--server", &address, "--run-time", "500ms"];
    end("client", &fixed, &way.client, client).wait_with_output().unwrap();
    output.read_to_string(&mut said).unwrap();
    partner.wait().unwrap();
    let counts = |end: &str| {
        let record = std::fs::read(folder.join(end).join("run.json")).unwrap();
        serde_json::from_slice::<Value>(&record).unwrap()["counts"].take()
    };
    (counts("server"), counts("client"))
}

#[test]
fn opaque_messages() {
    let folder = tempfile::tempdir().unwrap();
    for way in ways(folder.path()) {
        let name = way.name;
        let counts = |server: &[&str], client: &[&str]| opaque(folder.path(), &way, server, client);
        let partner = ["--msg-rate", "3k", "--latency-msg-rate", "500"];
        let (_, client) =
            counts(&partner, &["--msg-rate", "20k", "--latency-msg-rate", "500", "--pack", "7"]);
        assert!(
            client["sent"].as_u64() > Some(0) && client["received"].as_u64() > Some(0),
            "{name}: {client}"
        );

        // Back pressure at an idle server: the server gets every message although the client disconnects.
        let (server, client) =
            counts(&["--msg-rate", "0"], &["--unpaced", "--msg-size", "20000", "--output-bufs", "50"]);
        assert_eq!(server["received"], client["sent"], "{name}: {server}");
        let faults = [&server["lost"], &server["out_of_order"], &server["malformed"]];
        assert_eq!(faults, [&Value::from(0); 3], "{name}: {server}");
        assert!(client["sent"].as_u64() > Some(0), "{name}: {client}");
    }
}

#[test]
fn who_is_not_trusted_is_not_spoken_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut ways = ways(folder.path());
    let mut tls = ways.remove(9);
    let (_provider, server) = start(&tls, "serve", &[]);
    // Another authority with the same name.
    let other = tempfile::tempdir().unwrap();
    certificates::write(other.path());
    tls.client[2] = other.path().join("ca.pem").to_str().unwrap().to_owned();
    let (events, output) = run(&tls, "watch", &server, &["A", "--snapshot"]);
    assert!(!output.status.success());
    let reason = of(&events, "disconnected")[0]["reason"].as_str().unwrap();
    assert!(reason.contains("TLS"), "{reason}");
}

//! Effects of the performance tools' options for connections, threads and files, observed from outside: the handshake
//! and the login, the settings of the tool's own sockets and threads, and its files.
#![allow(clippy::print_stderr, reason = "why it was skipped")]

use crate::certificates;
mod configured;
mod ema_config;
mod end;
mod flushing;
mod images;
use crate::perf_peer;
mod running;
use crate::stage;
mod tap;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;

use end::{End, blocks};
use perf_peer::{Heard, Hub, Peer, Provider, Tool};
use rustix::process::Pid;
use tapeline_omm::domain::{LoginRequest, login};
use tapeline_omm::rwf::{
    DataType, Domain, Header, MessageView, PostHeader, PostUserInfo, UpdateHeader, UpdateType, flags,
};
use tapeline_omm::{Fid, FieldListEncoder, Real};
use tapeline_wire::rssl::{Compression, ConnectionSettings, SubProtocol};
use tapeline_wire::tls::{Tls, TlsVersions};

/// Every transport option that both ends have.
const TRANSPORT: [&str; 18] = [
    "--compression",
    "zlib",
    "--compression-level",
    "1",
    "--max-fragment-size",
    "256",
    "--guaranteed-output-buffers",
    "100000",
    "--num-input-buffers",
    "100000",
    "--sys-send-buf-size",
    "50000",
    "--sys-recv-buf-size",
    "60000",
    "--tcp-nodelay",
    "false",
    "--connection-ping-timeout",
    "77",
];

/// A server that leaves as many settings as it can to its clients.
fn lenient() -> ConnectionSettings {
    ConnectionSettings {
        compression_type: Compression::Zlib,
        compression_level: 0,
        connection_ping_timeout: 255,
        connection_min_ping_timeout: 1,
        ..ConnectionSettings::default()
    }
}

/// Checks a tool's socket and memory with the options of [`TRANSPORT`].
fn assert_set(tool: Pid, end: &End) {
    if let Some(options) = end.options_of(tool) {
        // Linux reports twice the size that was set, including its own overhead (socket(7)).
        assert_eq!(options, (100_000, 120_000, false));
    }
    // A hundred thousand frames of 256 bytes and a header for each direction, in one block or in two.
    assert!(blocks(tool, 25_600_000) > 51_200_000, "{}", blocks(tool, 25_600_000));
}

#[test]
fn a_client_s_transport_is_as_its_options_say() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = format!("localhost:{port}");
    // The first message is long, and repeats one byte.
    let position = "a".repeat(1_200);
    for (tool, more) in [
        ("consumer", &["--position", &position][..]),
        ("ni-provider", &["--position", &position]),
        ("transport", &["--app-type", "client", "--msg-rate", "1000", "--msg-size", "1200"]),
    ] {
        let start = |level: &str| {
            let usual = ["omm", tool, "--server", &server];
            // A second compression level would be an error.
            let options = TRANSPORT.map(|option| if option == "1" { level } else { option });
            let mut running = Tool::start(&[&usual[..], &options, more].concat());
            let protocol_type = if tool == "transport" { 88 } else { 0 };
            let mut end =
                End::accept(&listener, &mut running, ConnectionSettings { protocol_type, ..lenient() });
            let agreed = end.agreed();
            assert_eq!((agreed.compression, agreed.ping_timeout), (Compression::Zlib, 77), "{tool}");
            let (handshake, frames) = (end.bytes, end.session.frames_received());
            end.message().unwrap();
            assert!(end.session.frames_received() - frames >= 5, "{tool}: pieces of 256 bytes");
            (running, end.bytes - handshake, end)
        };
        let (running, copied, end) = start("0");
        assert_set(running.pid(), &end);
        drop((running, end));
        let (running, compressed, end) = start("9");
        assert!(copied > 1_200, "{tool}: {copied}");
        // One read may return more than one message of a transport.
        assert!(compressed < 1_200 || tool == "transport", "{tool}: {compressed}");
        drop((running, end));
    }
}

#[test]
fn a_server_s_transport_is_as_its_options_say() {
    for (tool, more) in [("provider", &["--websocket", "json"][..]), ("transport", &["--pl", "tr_json2"])] {
        let usual = ["omm", tool, "--port", "0", "--bind", "127.0.0.2", "--run-time", "1000"];
        let mut running = Tool::start(&[&usual[..], &TRANSPORT, more].concat());
        let port = running.port();
        let protocol_type = if tool == "transport" { 88 } else { 0 };
        let asked = ConnectionSettings { protocol_type, ..lenient() };
        let mut end = End::connect(("127.0.0.2", port), asked.clone());
        let agreed = end.agreed();
        assert_eq!((agreed.compression, agreed.ping_timeout), (Compression::Zlib, 77), "{tool}");
        assert_eq!(agreed.max_fragment_size, 256, "{tool}");
        // The last byte before the server's component version (the protocol's connect ack).
        assert_eq!(end.first[18], 1, "{tool}: the level of compression");
        assert_set(running.pid(), &end);
        drop(end);
        // The server's protocol is chosen, whatever the client prefers.
        let ws_protocols = vec![SubProtocol::Rwf, SubProtocol::TrJson2];
        let connection_type = tapeline_wire::rssl::ConnectionType::WebSocket;
        let host = format!("127.0.0.2:{port}");
        let websocket = ConnectionSettings { connection_type, ws_protocols, host, ..asked };
        let agreed = End::connect(("127.0.0.2", port), websocket).agreed();
        assert_eq!(agreed.websocket, Some(SubProtocol::TrJson2), "{tool}");
    }
}

#[test]
fn tcp_delay_is_what_tcp_nodelay_false_is() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    for (more, expected) in [(&[][..], true), (&["--tcp-delay"], false)] {
        let mut running = Tool::start(&[&["omm", "transport", "client", "--port", &port], more].concat());
        let mut end =
            End::accept(&listener, &mut running, ConnectionSettings { protocol_type: 88, ..lenient() });
        end.agreed();
        if let Some((_, _, nodelay)) = end.options_of(running.pid()) {
            assert_eq!(nodelay, expected, "{more:?}");
        }
    }
}

#[test]
fn a_client_asks_for_the_websocket_that_it_is_told_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("localhost:{}", listener.local_addr().unwrap().port());
    for (tool, asked, protocol) in [
        ("consumer", "json", SubProtocol::TrJson2),
        ("ni-provider", "rwf", SubProtocol::Rwf),
        ("consumer", "json-v2", SubProtocol::RsslJsonV2),
    ] {
        let mut running = Tool::start(&["omm", tool, "--server", &server, "--websocket", asked]);
        let agreed = End::accept(&listener, &mut running, ConnectionSettings::default()).agreed();
        assert_eq!(agreed.websocket, Some(protocol), "{tool}");
    }
}

#[test]
fn a_login_says_what_it_is_told_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("localhost:{}", listener.local_addr().unwrap().port());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "open sesame\nand no more\n").unwrap();
    for tool in ["consumer", "ni-provider"] {
        let usual = ["omm", tool, "--server", &server, "--user", "desk-7", "--application-id", "999"];
        let more = ["--position", "10.0.0.7/desk", "--password-file", file.to_str().unwrap()];
        let mut running = Tool::start(&[&usual[..], &more].concat());
        let message = End::accept(&listener, &mut running, ConnectionSettings::default()).message().unwrap();
        let message = MessageView::parse(&message).unwrap();
        let Header::Request(request) = message.header().unwrap() else { panic!("{tool}: no request") };
        let request = LoginRequest::read(&request).unwrap();
        let said = &request.attributes;
        assert_eq!(request.user, b"desk-7", "{tool}");
        assert_eq!(said.application_id, Some(&b"999"[..]), "{tool}");
        assert_eq!(said.position, Some(&b"10.0.0.7/desk"[..]), "{tool}");
        assert_eq!(said.password, Some(&b"open sesame"[..]), "{tool}");
    }
    let config = folder.path().join("EmaConfig.xml");
    std::fs::write(&config, NO_ROUND_TRIPS).unwrap();
    for (more, expected) in [
        (&[][..], Some(login::ROUND_TRIP_WANTED)),
        (&["--no-rtt"], None),
        (&["--config", config.to_str().unwrap()], None),
        (&["--config", config.to_str().unwrap(), "--config-name", "D"], Some(login::ROUND_TRIP_WANTED)),
    ] {
        let mut running = Tool::start(&[&["omm", "consumer", "--server", &server], more].concat());
        let message = End::accept(&listener, &mut running, ConnectionSettings::default()).message().unwrap();
        let message = MessageView::parse(&message).unwrap();
        let Header::Request(request) = message.header().unwrap() else { panic!("{more:?}: no request") };
        let request = LoginRequest::read(&request).unwrap();
        assert_eq!(request.attributes.round_trip_latency, expected, "{more:?}");
    }
}

/// Configuration of an EMA consumer.
const NO_ROUND_TRIPS: &str = r#"<EmaConfig><ConsumerGroup><DefaultConsumer value="C"/><ConsumerList>
<Consumer><Name value="C"/><EnableRtt value="0"/></Consumer>
<Consumer><Name value="D"/></Consumer>
</ConsumerList></ConsumerGroup></EmaConfig>"#;

/// The cores that this process may use.
fn cores() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// The threads of a process by name, each with its allowed cores in the kernel's notation.
fn bound(process: Pid) -> BTreeMap<String, String> {
    let folder = format!("/proc/{}/task", process.as_raw_nonzero());
    let threads = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    // A thread that has ended meanwhile has no status.
    let of = |path: &Path| {
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let value =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        let is_main = path.file_name().unwrap().to_str() == Some(&process.as_raw_nonzero().to_string());
        Some((if is_main { "main".to_owned() } else { value("Name:") }, value("Cpus_allowed_list:")))
    };
    threads.filter_map(|path| of(&path)).collect()
}

#[test]
fn threads_are_bound_to_the_cores_that_are_named() {
    let cores = cores();
    let [first, second, ..] = cores[..] else { return eprintln!("skipped: there is one core") };
    let (both, main) = (format!("{second},{first}"), second.to_string());
    let held = stage::Nobody::new();
    let nobody = format!("127.0.0.1:{}", held.port);
    for (tool, more) in [
        ("consumer", &["--server", &nobody][..]),
        ("provider", &["--port", "0"]),
        ("ni-provider", &["--server", &nobody]),
        ("transport", &["--port", "0"]),
    ] {
        let usual = ["omm", tool, "--threads", &both, "--main-thread", &main, "--write-stats-interval", "1"];
        let mut running = Tool::start(&[&usual[..], more].concat());
        // The first statistics need every thread, so each thread has been bound by then.
        running.line("001: ");
        let bound = bound(running.pid());
        for (thread, core) in [("main", second), ("connection-1", second), ("connection-2", first)] {
            assert_eq!(bound[thread], core.to_string(), "{tool}: {bound:?}");
        }
    }
}

#[test]
fn providers_dispatch_on_further_threads_if_they_are_told_to() {
    let core = cores()[0].to_string();
    let rates = ["--tick-rate", "100", "--update-rate", "1000"];
    for (more, is_bound) in
        [(&[][..], None), (&["-useUserDispatch", "0"], Some(false)), (&["-apiThreads", &core], Some(true))]
    {
        let check = |tool: &Tool| {
            let bound = bound(tool.pid());
            assert_eq!(bound.contains_key("dispatch-1"), is_bound.is_some(), "{more:?}: {bound:?}");
            if is_bound == Some(true) {
                assert_eq!(bound["dispatch-1"], core, "{more:?}: {bound:?}");
            }
        };
        let provider = Provider::start(&[&rates[..], more].concat());
        let mut peer = Peer::log_in(provider.port);
        peer.open_all(3);
        let count =
            |heard: &[Heard], what: fn(&Heard) -> bool| heard.iter().filter(|heard| what(heard)).count();
        peer.until(|heard| count(heard, Heard::is_update) >= 100 && count(heard, Heard::is_image) == 3);
        peer.post(Some(peer.first), 1, 42);
        peer.until(|heard| heard.iter().any(Heard::is_ack));
        check(&provider.tool);

        let mut hub = Hub::open();
        let server = format!("localhost:{}", hub.port);
        let words = ["omm", "ni-provider", "--server", &server, "--item-count", "3", "--run-folder", "run"];
        let mut tool = Tool::start(&[&words[..], &rates, more].concat());
        hub.until(|hub| {
            let heard = hub.heard(0);
            count(heard, Heard::is_update) >= 100 && count(heard, Heard::is_image) == 3
        });
        check(&tool);
        rustix::process::kill_process(tool.pid(), rustix::process::Signal::TERM).unwrap();
        hub.until(|hub| hub.published[0].2);
        tool.rest();
        let inputs = tool.record("run")["settings"]["inputs"].take();
        assert_eq!(inputs["useUserDispatch"], if is_bound.is_none() { "Yes" } else { "No" });
    }
}

#[test]
fn over_tls_a_consumer_has_prices_and_books_of_a_provider_and_both_leave_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    certificates::write(folder.path());
    let items = "<itemList>\n<item domain=\"MarketPrice\" name=\"PRICE\" generic=\"true\"/>\n\
                 <item domain=\"MarketByOrder\" name=\"BOOK\"/>\n</itemList>\n";
    std::fs::write(path("items.xml"), items).unwrap();
    let files = ["--run-folder", "run", "--write-stats-interval", "1"];
    let files =
        [&files[..], &["--summary-file", "sum.out", "--stats-file", "S", "--latency-file", "L"]].concat();
    let (cert, key, ca) = (path("server.pem"), path("server.key"), path("ca.pem"));
    let serves = ["--cert", &cert, "--key", &key, "--update-rate", "1000", "--latency-update-rate", "all"];
    let mut provider = Provider::start(&[&serves[..], &files, &["--jitter-time", "20ms"]].concat());
    let server = format!("localhost:{}", provider.port);
    let items = path("items.xml");
    let asks = ["omm", "consumer", "--server", &server, "--tls", "--ca", &ca, "--item-file", &items];
    let more = ["--item-count", "2", "--steady-state-time", "60", "--generic-msg-rate", "1000"];
    let timed = ["--generic-msg-latency-rate", "1000", "--jitter-time", "20ms"];
    let mut consumer = Tool::start(&[&asks[..], &more, &timed, &files].concat());
    consumer.line("  - Image retrieval time");
    // Two more intervals.
    consumer.line("0");
    consumer.line("0");
    rustix::process::kill_process(consumer.pid(), rustix::process::Signal::TERM).unwrap();
    let said = consumer.rest();
    assert!(said.contains("OVERALL SUMMARY"), "{said}");
    let record = consumer.record("run");
    let counts = &record["counts"];
    assert_eq!([&counts["images"], &counts["malformed"]], [2, 0], "{record}");
    assert!(counts["updates"].as_u64() > Some(0), "{record}");
    let _ = provider.tool.end();
    for (tool, first) in [(&consumer, "UTC, Latency updates, "), (&provider.tool, "UTC, Requests received, ")]
    {
        assert!(tool.file("sum.out").contains("--- OVERALL SUMMARY ---"));
        let statistics = tool.file("S1.csv");
        assert!(statistics.starts_with(first) && statistics.lines().count() >= 3, "{statistics}");
        let latencies = tool.file("L1.csv");
        assert!(latencies.starts_with("Message type, ") && latencies.lines().count() > 10, "{latencies}");
        assert!(tool.record("run")["jitter_floor_p99_ns"].is_u64());
    }
    // Each update has a time: for books it is in the map's summary.
    let timed = consumer.file("L1.csv").lines().filter(|line| line.starts_with("Upd")).count();
    assert_eq!(counts["updates"], timed);
}

#[test]
fn over_tls_an_ni_provider_publishes() {
    let folder = tempfile::tempdir().unwrap();
    certificates::write(folder.path());
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let tls = Tls::server(&read("server.pem"), &read("server.key"), TlsVersions::default()).unwrap();
    let ca = folder.path().join("ca.pem");
    let mut hub = Hub::open_with(ConnectionSettings { tls: Some(tls), ..ConnectionSettings::default() });
    let server = format!("localhost:{}", hub.port);
    let usual = ["omm", "ni-provider", "--server", &server, "--item-count", "3"];
    let _provider = Tool::start(&[&usual[..], &["--tls", "--ca", ca.to_str().unwrap()]].concat());
    hub.until(|hub| hub.heard(0).iter().filter(|heard| heard.is_image()).count() == 3);
}

/// A post to this item from another user, with a request for an acknowledgement.
fn post(stream: i32) -> Vec<u8> {
    let poster = PostUserInfo { address: 1, user_id: 2 };
    let mut fields = [0; 64];
    let mut list = FieldListEncoder::new(&mut fields).unwrap();
    list.real(Fid(22), Real::integer(55)).unwrap();
    let len = list.finish();
    let fields = &fields[..len];
    let mut update = vec![0; 256];
    let header = UpdateHeader::new(Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST);
    let copy = |bytes: &[u8], room: &mut [u8]| {
        room[..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    };
    let len = header.encode_with(&mut update, |room| copy(fields, room)).unwrap();
    let mut bytes = vec![0; 512];
    let header = PostHeader {
        flags: flags::post::ACK | flags::post::POST_COMPLETE,
        post_id: Some(7),
        ..PostHeader::new(Domain::MARKET_PRICE, stream, poster, DataType::MSG)
    };
    let len = header.encode_with(&mut bytes, |room| copy(&update[..len], room)).unwrap();
    bytes.truncate(len);
    bytes
}

/// Runs an NI provider with these options against a hub that accepts everything. Returns this many updates, the number
/// of frames that carried them, and the tool, which has ended.
fn published(updates: usize, more: &[&str]) -> (Vec<Heard>, u64, Tool) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("localhost:{}", listener.local_addr().unwrap().port());
    let usual = ["omm", "ni-provider", "--server", &server, "--item-count", "1", "--run-folder", "run"];
    let pace = ["--tick-rate", "10", "--update-rate", "1000"];
    let mut tool = Tool::start(&[&usual[..], &pace, more].concat());
    let mut hub = End::accept(&listener, &mut tool, ConnectionSettings::default());
    let mut heard = Vec::new();
    let (mut frames, mut is_enough) = (0, false);
    while let Some(message) = hub.message() {
        hub.let_in(&message);
        let message = Heard::new(&message);
        if heard.is_empty() && message.is_update() {
            // Includes the frame of the first update.
            frames = hub.session.frames_received() - 1;
        }
        if message.is_update() {
            heard.push(message);
        }
        if heard.len() >= updates && !std::mem::replace(&mut is_enough, true) {
            frames = hub.session.frames_received() - frames;
            rustix::process::kill_process(tool.pid(), rustix::process::Signal::TERM).unwrap();
        }
    }
    let said = tool.rest();
    assert!(said.contains("OVERALL SUMMARY"), "{said}");
    // Updates that were in flight at the stop arrived.
    assert_eq!(tool.record("run")["counts"]["updates"], heard.len());
    heard.truncate(updates);
    (heard, frames, tool)
}

#[test]
fn an_ni_provider_packs_and_leaves_out_due_times_and_measures_encoding() {
    let encodings = |tool: &Tool| {
        let record = tool.record("run");
        let hops = record["hops"].as_array().unwrap().clone();
        let encoding = hops.into_iter().find(|hop| hop["name"] == "encoding");
        let counts = [&record["counts"]["updates"], &record["counts"]["stamped_updates"]];
        let [updates, stamped] = counts.map(|count| count.as_u64().unwrap());
        (encoding.map(|hop| hop["samples"].as_u64().unwrap()), updates, stamped)
    };
    let (heard, frames, tool) = published(400, &["--latency-update-rate", "all"]);
    assert!(heard.iter().all(|heard| heard.sent.is_some() && heard.due.is_some()));
    assert_eq!((frames, encodings(&tool).0), (400, None), "one in each frame, and nothing measured");
    let more = ["--latency-update-rate", "all", "--max-pack-count", "8", "--no-due", "--measure-encode"];
    let files = ["--summary-file", "sum.out", "--stats-file", "S", "--latency-file", "L"];
    let files = [&files[..], &["--jitter-time", "20ms"]].concat();
    let (heard, frames, tool) = published(400, &[&more[..], &files].concat());
    assert!(heard.iter().all(|heard| heard.sent.is_some() && heard.due.is_none()));
    // Thirteen for each slice of a hundred updates; the last slice may be incomplete.
    assert!((50..=60).contains(&frames), "{frames}");
    let (samples, updates, _) = encodings(&tool);
    assert_eq!(samples, Some(updates));
    assert!(tool.file("sum.out").contains("Updates sent"));
    assert!(tool.file("S1.csv").starts_with("UTC, ") && tool.file("L1.csv").starts_with("Message type, "));
    assert!(tool.record("run")["jitter_floor_p99_ns"].is_u64());
    // An update takes about 20 bytes: two fit into a shared buffer of 55, three do not.
    let more = ["--latency-update-rate", "0", "--max-pack-count", "8", "--pack-buffer-size", "55"];
    let (_, frames, _) = published(400, &more);
    assert!((200..=220).contains(&frames), "{frames}");
    let (_, _, tool) = published(400, &["--latency-update-rate", "10", "--measure-encode", "--pre-enc"]);
    let (samples, updates, stamped) = encodings(&tool);
    assert!(samples == Some(stamped) && stamped < updates, "{samples:?} {stamped} {updates}");
}

#[test]
fn an_ni_provider_measures_how_long_posts_take_to_decode() {
    for (more, expected) in [(&[][..], None), (&["--measure-decode"], Some(1))] {
        let mut hub = Hub::open();
        let server = format!("localhost:{}", hub.port);
        let usual = ["omm", "ni-provider", "--server", &server, "--item-count", "1", "--run-folder", "run"];
        let mut tool = Tool::start(&[&usual[..], more].concat());
        hub.until(|hub| hub.heard(0).iter().any(Heard::is_image));
        let stream = hub.heard(0).iter().find(|heard| heard.is_image()).unwrap().stream;
        hub.send(0, &post(stream));
        hub.until(|hub| hub.heard(0).iter().any(Heard::is_ack));
        let _ = tool.end();
        let record = tool.record("run");
        let decoding = record["hops"].as_array().unwrap().iter().find(|hop| hop["name"] == "decoding");
        assert_eq!(decoding.map(|hop| hop["samples"].as_u64().unwrap()), expected, "{record}");
    }
}

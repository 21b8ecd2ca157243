//! Two lossy lines, and a real plant that requests the messages missing on both: from real servers, from none, from a
//! liar.

use crate::shared_data;
use crate::stage;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared_data::{expected, shared};
use stage::{Nobody, Place, Running};
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder, Request, heartbeat};
use tapeline_plant::tick::{Flags, Kind, Tick};
use tapeline_ring::{Name, Poll, Start, Subscriber, Wait};

/// All of A is sent before B, so the messages buffered behind A's gaps need capacity and time. When both lines have
/// ended, the plant requests the messages missing on both at once.
const PATIENT: &str = "reorder_time = \"60s\"\nreorder_messages = 8192\n";

/// A subscriber's view of a plant, from its first tick to the end of the session.
#[derive(Default)]
struct Seen {
    /// Hash of the messages with their lengths.
    messages: Sha256,
    count: u64,
    gaps: u64,
    /// Number of messages by quality: good, late, unknown.
    of_quality: [u64; 3],
    states: Vec<String>,
}

/// Reads the ring of a plant in its own thread.
fn watch(ring: &str) -> thread::JoinHandle<Seen> {
    let mut subscriber = Subscriber::join(&Name::new(ring).unwrap(), Start::Oldest).unwrap();
    thread::spawn(move || {
        let mut seen = Seen::default();
        loop {
            match subscriber.next() {
                Poll::Frame(frame) => {
                    let tick = Tick::parse(&frame).unwrap();
                    let has = |flag| tick.header.flags.contains(flag);
                    if tick.header.kind != Kind::Status {
                        seen.messages.update((tick.source.len() as u16).to_be_bytes());
                        seen.messages.update(tick.source);
                        seen.count += 1;
                        seen.of_quality[tick.header.quality() as usize] += 1;
                    }
                    seen.gaps += u64::from(has(Flags::GAP));
                    if has(Flags::STATE) {
                        seen.states.push(tick.header.state.to_string());
                    }
                    if has(Flags::END_OF_SESSION) {
                        return seen;
                    }
                }
                Poll::Empty => _ = subscriber.wait(Wait::Park, Duration::from_secs(1)),
                other => panic!("{other:?}"),
            }
        }
    })
}

/// The plant's report, a subscriber's view, and another process's tally of the ticks.
struct Outcome {
    report: Value,
    seen: Seen,
    found: Value,
}

/// Sends lines A and B to a plant with this recovery; `None` without the captures.
fn run(recovery: &str) -> Option<Outcome> {
    run_with("", recovery)
}

/// Like [`run`], with more keys of the plant.
fn run_with(plant: &'static str, recovery: &str) -> Option<Outcome> {
    let [a, b] = ["A", "B"].map(|line| shared(&format!("moldudp64-derived/aapl5000-{line}.pcap")));
    let (a, b) = (a?, b?);
    let place = Place { keys: plant, ..Place::new(2) };
    let mut plant = place.plant(&format!("{PATIENT}[feed.recovery]\n{recovery}"));
    let mut tally = place.tally("AAPL");
    let watch = watch(&place.ring);
    // A heartbeat on B keeps the session open after A's end of session.
    let sign = heartbeat(MoldSession::new("AAPL200130"), 1);
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().send_to(&sign, place.lines[1]).unwrap();
    place.replay(&a, 0);
    place.replay(&b, 1);
    Some(Outcome { report: plant.says(), seen: watch.join().unwrap(), found: tally.says() })
}

/// A server of a shared file's messages, and its address.
fn server(command: &str, file: &str, more: &[&str]) -> Option<(Running, String)> {
    let path = shared(file)?;
    let arguments = ["feed", command, path.to_str().unwrap(), "--listen", "127.0.0.1:0", "--format", "json"];
    let mut server = Running::start(&[&arguments[..], more].concat());
    let address = server.says()["ready"].as_str().unwrap().to_owned();
    Some((server, address))
}

/// Checks that every message arrived, in order, and that the books are the exchange's.
#[track_caller]
fn is_whole(outcome: &Outcome) {
    let derived = expected("moldudp64-derived/expected.json").unwrap();
    let itch = expected("itch50-aapl-20200130/expected.json").unwrap();
    let Outcome { report, seen, found } = outcome;
    assert_eq!((seen.count, seen.gaps), (5_000, 0), "{report}");
    // A recovered message is late at worst; no message is of unknown quality.
    assert_eq!(seen.of_quality[2], 0, "{:?}", seen.of_quality);
    let sha256 = format!("{:x}", seen.messages.clone().finalize());
    assert_eq!(sha256, derived["clean_messages_rejoined_sha256"].as_str().unwrap());
    for member in ["by_type", "live_orders_end", "unknown_order_references", "books_price_shares_orders"] {
        assert_eq!(found[member], itch[member], "{member}");
    }
    assert_eq!((&found["missing_messages"], &found["lost_ticks"]), (&json!(0), &json!(0)));
    let feed = &report["feeds"][0];
    assert_eq!((&feed["messages"], &feed["missing_messages"]), (&json!(5_000), &json!(0)));
    assert_eq!(feed["recovery"]["recovered"], json!(14), "{report}");
}

/// Checks that only the messages lost on both lines are missing, and that each gap was reported once.
#[track_caller]
fn is_without_the_fourteen(outcome: &Outcome) {
    let both = &expected("moldudp64-derived/expected.json").unwrap()["A_and_B_arbitrated_without_recovery"];
    let Outcome { report, seen, found } = outcome;
    assert_eq!((seen.count, seen.gaps), (4_986, 5), "{report}");
    for member in ["missing_ranges", "missing_messages", "next_sequence"] {
        assert_eq!(found[member], both[member], "{member}");
    }
    // From the first gap on, the quality is unknown.
    assert_eq!(seen.of_quality[2], 5_000 - 984 - 11, "{report}");
    let feed = &report["feeds"][0];
    assert_eq!((&feed["missing_messages"], &feed["gaps"]), (&json!(14), &json!(5)));
    assert_eq!((&feed["recovery"]["recovered"], &feed["recovery"]["given_up"]), (&json!(0), &json!(14)));
}

#[test]
fn what_both_lines_lost_comes_from_a_retransmission_server() {
    let Some((mut server, address)) =
        server("serve-retransmit", "moldudp64-derived/aapl5000-clean.pcap", &[])
    else {
        return;
    };
    let outcome = run(&format!("servers = [\"{address}\"]")).unwrap();
    is_whole(&outcome);
    let recovery = &outcome.report["feeds"][0]["recovery"];
    assert_eq!((&recovery["rejected"], &recovery["strangers"]), (&json!({}), &json!(0)));
    server.ask_to_end();
    let answered = server.says();
    assert_eq!((&answered["unanswered"], &answered["requests"]), (&json!({}), &recovery["requests"]));
}

#[test]
fn a_plant_that_receives_on_a_thread_of_its_own_recovers_as_well() {
    let Some((mut server, address)) =
        server("serve-retransmit", "moldudp64-derived/aapl5000-clean.pcap", &[])
    else {
        return;
    };
    let thread = "receive = \"thread\"\npool_slots = 16\npool_policy = \"block\"";
    let outcome = run_with(thread, &format!("servers = [\"{address}\"]")).unwrap();
    is_whole(&outcome);
    let feed = &outcome.report["feeds"][0];
    assert_eq!((&feed["recovery"]["rejected"], &feed["recovery"]["given_up"]), (&json!({}), &json!(0)));
    assert!(feed["pool"]["hits"].as_u64().unwrap() > 0, "it came through the pool: {feed}");
    server.ask_to_end();
    let answered = server.says();
    assert_eq!((&answered["unanswered"], &answered["requests"]), (&json!({}), &feed["recovery"]["requests"]));

    // Without an answer, the gap is reported once, and the messages buffered behind it are delivered.
    let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let settings = format!("timeout = \"20ms\"\nservers = [\"{}\"]", nobody.local_addr().unwrap());
    is_without_the_fourteen(&run_with(thread, &settings).unwrap());
}

#[test]
fn what_both_lines_lost_comes_over_soupbintcp() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "secretpw\n").unwrap();
    let file = file.to_str().unwrap();
    let login = ["--user", "user01", "--password-file", file, "--session", "AAPL200130"];
    let Some((mut server, address)) =
        server("serve-soup", "itch50-aapl-20200130/aapl-first5000.itch", &login)
    else {
        return;
    };
    let outcome = run(&format!(
        "kind = \"soupbintcp\"\nservers = [\"{address}\"]\nuser = \"user01\"\npassword_file = \"{file}\"\n\
         timeout = \"20s\""
    ))
    .unwrap();
    is_whole(&outcome);
    let recovery = &outcome.report["feeds"][0]["recovery"];
    assert_eq!((&recovery["failures"], &recovery["timeouts"]), (&json!(0), &json!(0)));
    server.ask_to_end();
    assert_eq!(server.says()["connections"], recovery["connections"]);
}

#[test]
fn a_plant_that_missed_messages_gets_them_from_another_plants_ring() {
    let Some(clean) = shared("moldudp64-derived/aapl5000-clean.pcap") else { return };
    // One plant has everything, and its history is served both ways. Its ticks of single orders carry no messages and
    // must not interfere.
    let whole = Place::new(1);
    let _plant = whole.plant("market_by_order = true");
    let ring = ["--ring", &whole.ring, "--listen", "127.0.0.1:0", "--format", "json"];
    let mut servers = ["serve-retransmit", "serve-soup"].map(|command| {
        let mut server = Running::start(&[&["feed", command][..], &ring].concat());
        let address = server.says()["ready"].as_str().unwrap().to_owned();
        (server, address)
    });
    let fetch =
        ["feed", "fetch-soup", &servers[1].1, "--tries", "1000", "--pause", "20ms", "--format", "json"];
    whole.replay(&clean, 0);
    let fetched = stage::tapeline(&[&fetch[..], &["--session", "AAPL200130"]].concat()).output().unwrap();
    let fetched: Value = serde_json::from_slice(&fetched.stdout).unwrap();
    assert_eq!((&fetched["messages"], &fetched["end"]), (&json!(5_000), &json!("session-over")));

    let outcome = run(&format!("servers = [\"{}\"]", servers[0].1)).unwrap();
    is_whole(&outcome);
    let soup = format!("kind = \"soupbintcp\"\ntimeout = \"20s\"\nservers = [\"{}\"]", servers[1].1);
    is_whole(&run(&soup).unwrap());
    for (server, _) in &mut servers {
        server.ask_to_end();
        server.says();
    }
}

#[test]
fn without_an_answer_the_gap_is_said_once_and_the_feed_goes_on() {
    // Two sockets that are not read, so the kernel reports no unreachable port.
    let dead = [0, 1].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let [one, two] = dead.each_ref().map(|socket| socket.local_addr().unwrap());
    let settings = "timeout = \"20ms\"\ntries = 3\n";
    let Some(outcome) = run(&format!("{settings}servers = [\"{one}\", \"{two}\"]")) else { return };
    is_without_the_fourteen(&outcome);
    let recovery = &outcome.report["feeds"][0]["recovery"];
    assert_eq!((&recovery["requests"], &recovery["timeouts"]), (&json!(15), &json!(15)));
    // Both servers got requests.
    for socket in dead {
        socket.set_nonblocking(true).unwrap();
        assert_eq!(socket.recv(&mut [0; 32]).unwrap(), 20);
    }

    // SoupBinTCP to a port without a listener.
    let free = Nobody::new();
    let servers = format!("servers = [\"127.0.0.1:{}\"]", free.port);
    let outcome = run(&format!("kind = \"soupbintcp\"\n{settings}{servers}")).unwrap();
    is_without_the_fourteen(&outcome);
    assert!(outcome.report["feeds"][0]["recovery"]["failures"].as_u64().unwrap() > 0);
}

/// Answers each request with invalid answers of every kind, until the test ends.
fn liar() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut request = [0; 64];
        while let Ok((length, plant)) = socket.recv_from(&mut request) {
            let request = Request::decode(&request[..length]).unwrap();
            let lie = |session, sequence, bytes: usize| {
                let mut buffer = [0; 256];
                let mut packet = PacketBuilder::new(&mut buffer, session, sequence).unwrap();
                packet.push(&[b'X'; 36]).unwrap();
                let length = packet.finish().min(bytes);
                buffer[..length].to_vec()
            };
            let after = request.sequence + u64::from(request.count);
            for lie in [
                lie(MoldSession::new("OTHER"), request.sequence, 256),
                lie(request.session, after, 256),
                lie(request.session, request.sequence, 50),
                heartbeat(request.session, after).to_vec(),
                vec![0xFF; 1_400],
            ] {
                let _ = socket.send_to(&lie, plant);
            }
            // From an address that is not the server's.
            let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let _ = stranger.send_to(&lie(request.session, request.sequence, 256), plant);
        }
    });
    address
}

#[test]
fn a_server_that_lies_is_counted_by_reason_and_believed_in_nothing() {
    let liar_alone = liar();
    let settings = "timeout = \"100ms\"\ntries = 2\n";
    let Some(outcome) = run(&format!("{settings}servers = [\"{liar_alone}\"]")) else { return };
    is_without_the_fourteen(&outcome);
    let recovery = &outcome.report["feeds"][0]["recovery"];
    let reasons: Vec<&String> = recovery["rejected"].as_object().unwrap().keys().collect();
    assert_eq!(reasons, ["malformed", "no-messages", "not-wanted", "other-session"]);
    assert!(recovery["strangers"].as_u64().unwrap() > 0 && recovery["answers"] == json!(0), "{recovery}");

    // With an honest second server, nothing is missing.
    let honest = server("serve-retransmit", "moldudp64-derived/aapl5000-clean.pcap", &[]).unwrap();
    let (liar_first, honest_second) = (liar(), &honest.1);
    let settings = "timeout = \"100ms\"\ntries = 8\n";
    let outcome = run(&format!("{settings}servers = [\"{liar_first}\", \"{honest_second}\"]")).unwrap();
    is_whole(&outcome);
    assert!(outcome.report["feeds"][0]["recovery"]["timeouts"].as_u64().unwrap() > 0);
}

#[test]
fn while_it_recovers_the_channel_says_so_and_then_that_it_is_live() {
    // One line has not gone past the hole: it has its time, and the plant reports the hole before it asks.
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    let place = Place::new(2);
    let settings =
        "stale_after = \"0s\"\nreorder_time = \"5ms\"\n[feed.recovery]\ntimeout = \"20s\"\ntime = \"60s\"\n";
    let mut plant = place.plant(&format!("{settings}servers = [\"{address}\"]"));
    let watch = watch(&place.ring);
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let session = MoldSession::new("DAY1");
    let packet = |sequence| {
        let mut buffer = [0; 64];
        let mut packet = PacketBuilder::new(&mut buffer, session, sequence).unwrap();
        packet.push(b"S\0\0\0\0\0\0\0\0\0\x07O").unwrap();
        let length = packet.finish();
        buffer[..length].to_vec()
    };
    // Before the other: a line that was not heard has no time.
    for line in [1, 0] {
        sender.send_to(&packet(1), place.lines[line]).unwrap();
    }
    sender.send_to(&packet(3), place.lines[0]).unwrap();
    let mut request = [0; 64];
    let (length, from) = socket.recv_from(&mut request).unwrap();
    assert_eq!(Request::decode(&request[..length]), Ok(Request::for_gap(session, 2, 2)));
    socket.send_to(&packet(2), from).unwrap();
    for line in &place.lines[..2] {
        sender.send_to(&tapeline_feed::moldudp64::end_of_session(session, 4), line).unwrap();
    }
    let (seen, report) = (watch.join().unwrap(), plant.says());
    assert_eq!((seen.count, seen.gaps), (3, 0));
    // The end of the session follows the recovered messages at once, before the next state.
    assert_eq!(seen.states[..2], ["live", "recovering"], "{report}");
    assert_eq!(report["feeds"][0]["state"], "live");
    assert_eq!(report["feeds"][0]["recovery"]["recovered"], json!(1));
}

#[test]
fn mistakes_in_a_recovery_are_named_with_their_line() {
    for (recovery, says) in [
        ("servers = []", "0 servers; 1 to 8 are expected"),
        ("servers = [\"nowhere\"]", "server \"nowhere\" is not an IPv4 address with a port"),
        ("servers = [\"127.0.0.1:9\"]\nkind = \"tcp\"", "kind is \"tcp\"; \"moldudp64\" or \"soupbintcp\""),
        ("servers = [\"127.0.0.1:9\"]\nuser = \"me\"", "MoldUDP64 has no login"),
        (
            "servers = [\"127.0.0.1:9\"]\nkind = \"soupbintcp\"\nuser = \"user001\"",
            "'user001' has 7 bytes; the name of a user of SoupBinTCP has at most 6",
        ),
        ("servers = [\"127.0.0.1:9\"]\ntimeout = \"0s\"", "at least 1ns is needed"),
        ("servers = [\"127.0.0.1:9\"]\ntry = 1", "unknown key `try`"),
        ("kind = \"moldudp64\"", "missing key `servers`"),
    ] {
        let place = Place::new(1);
        let config = place.config(&format!("[feed.recovery]\n{recovery}"));
        let output = stage::tapeline(&["plant", "--config", &config]).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(
            errors.contains(says) && errors.contains("hint: ") && errors.contains("plant.toml:"),
            "{errors}"
        );
    }
}

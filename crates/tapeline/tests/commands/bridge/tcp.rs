//! Bridges over TCP, with and without TLS: lines that are cut, followers that do not read, and peers that are something else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::process::ChildStderr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tapeline_measure::Nanos;
use tapeline_plant::Seq;
use tapeline_plant::bridge::BridgeSession;
use tapeline_plant::bridge::clocks::ClockExchange;
use tapeline_plant::bridge::tcp_line::follow;
use tapeline_plant::tick::Flags;

use super::{JOURNAL, Scene, TO_THE_END, number, unbound, wait_for};
use crate::certificates;
use crate::stage::Running;

pub(super) const FROM_THE_FIRST: &str = "start = \"epoch\"\nstale_after = \"0s\"\n";
pub(super) const CERTIFICATE: &str = "cert = \"server.pem\"\nkey = \"server.key\"\n";
pub(super) const TRUST: &str = "tls = true\nca = \"ca.pem\"\nserver_name = \"localhost\"\n";

impl Scene {
    /// Starts the plant above with these keys of `[bridge]` and lines.
    pub(super) fn above_tcp(&self, keys: &str, lines: &str, arguments: &[&str]) -> Running {
        let text = format!(
            "[plant]\nring = \"{}-above\"\n[[feed]]\nname = \"file\"\nprotocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\n\
             file = \"day.itch\"\nstale_after = \"0s\"\n{JOURNAL}[bridge]\nplant = \"UP\"\nport = {}\n{keys}{lines}",
            self.name,
            self.server.port()
        );
        self.plant("above", &text, arguments).0
    }

    /// The configuration of a plant below with these keys of `[[upstream]]` and one line.
    fn text_below(&self, name: &str, keys: &str, line: &str) -> String {
        format!(
            "[plant]\nring = \"{}-{name}\"\n[journal]\nfolder = \"{name}\"\n[[upstream]]\nplant = \"UP\"\nserver = \"{}\"\n{keys}{line}",
            self.name, self.server
        )
    }

    pub(super) fn below_tcp(&self, name: &str, keys: &str, line: &str, arguments: &[&str]) -> Running {
        self.plant(name, &self.text_below(name, keys, line), arguments).0
    }

    /// The same, with what it reports.
    fn below_talking(&self, name: &str, keys: &str, line: &str) -> (Running, BufReader<ChildStderr>) {
        let config = self.path(&format!("{name}.toml"));
        std::fs::write(&config, self.text_below(name, keys, line)).unwrap();
        let (mut plant, talk) =
            Running::start_talking(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
        assert_eq!(plant.says()["ready"], json!(format!("{}-{name}", self.name)));
        (plant, BufReader::new(talk))
    }

    fn session_above(&self) -> BridgeSession {
        let counters = self.counters_until("above", |plant| plant["bridge"]["session"].is_string());
        counters["bridge"]["session"].as_str().unwrap().parse().unwrap()
    }
}

pub(super) fn line_above(address: SocketAddrV4) -> String {
    format!("[[bridge.line]]\ntcp = \"{address}\"\n")
}

pub(super) fn line_below(address: SocketAddrV4) -> String {
    format!("[[upstream.line]]\ntcp = \"{address}\"\n")
}

/// Reads reports until one has this text, and returns it with the line behind it.
pub(super) fn hear(talk: &mut impl BufRead, text: &str) -> String {
    let mut said = String::new();
    loop {
        let before = said.len();
        assert!(talk.read_line(&mut said).unwrap() > 0, "it ended, and said:\n{said}");
        if said[before..].contains(text) {
            talk.read_line(&mut said).unwrap();
            return said[before..].to_owned();
        }
    }
}

/// Forwards one connection after the other, and cuts each of the first ones after some bytes.
struct Cutting {
    address: SocketAddrV4,
    cuts: Arc<AtomicU64>,
}

impl Cutting {
    fn new(to: SocketAddrV4, most: u64, bytes: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port());
        let cuts = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&cuts);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for below in listener.incoming() {
                let Ok(mut below) = below else { return };
                // Nobody listens any more: the plant above has ended.
                let Ok(mut above) = TcpStream::connect(to) else { continue };
                let (mut from, mut into) = (below.try_clone().unwrap(), above.try_clone().unwrap());
                let back = std::thread::spawn(move || _ = std::io::copy(&mut from, &mut into));
                let (mut room, mut passed) = (vec![0; 16_384], 0);
                let is_cut = counter.load(Ordering::Relaxed) < most;
                while let Ok(count @ 1..) = above.read(&mut room) {
                    passed += count;
                    if below.write_all(&room[..count]).is_err() {
                        break;
                    }
                    if is_cut && passed >= bytes {
                        counter.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                }
                let _ = (below.shutdown(Shutdown::Both), above.shutdown(Shutdown::Both));
                back.join().unwrap();
            }
        });
        Self { address, cuts }
    }
}

#[test]
fn plants_that_follow_over_tls_have_every_tick_though_lines_are_cut_and_one_starts_again() {
    let scene = Scene::new("tls");
    // Long enough for two starts of a plant on a busy machine.
    scene.day("15s");
    certificates::write(scene.folder.path());
    let (datagrams, tcp) = (unbound(), unbound());
    let lines = format!("[[bridge.line]]\naddress = \"{datagrams}\"\n{}", line_above(tcp));
    let mut above = scene.above_tcp(CERTIFICATE, &lines, &[]);
    let cutting = Cutting::new(tcp, 3, 200_000);
    let keys = format!("{TRUST}{FROM_THE_FIRST}");
    let mut cut = scene.below_tcp("cut", &keys, &line_below(cutting.address), TO_THE_END);
    let udp = format!("[[upstream.line]]\naddress = \"{datagrams}\"\n");
    let mut other = scene.below_tcp("other", &keys, &udp, TO_THE_END);
    let mut again = scene.below_tcp("again", &keys, &line_below(tcp), &[]);
    let mut ring = scene.reader("again");
    wait_for(&mut ring, |tick| tick.header.seq > Seq(5_000));
    drop(ring);
    let is_followed = |plant: &Value| number(&plant["bridge"]["followers"]) == 2;
    scene.counters_until("above", is_followed);
    again.ask_to_end();
    again.says();
    let mut again = scene.below_tcp("again", &keys, &line_below(tcp), TO_THE_END);
    ["cut", "other", "again"].iter().for_each(|below| scene.wait_for_the_day(below));
    above.ask_to_end();
    let (above, cut, other, again) = (above.says(), cut.says(), other.says(), again.says());
    let kept = scene.journal("above");
    assert!(kept.count > 15_000, "{kept:?}");
    for (name, report) in [("cut", &cut), ("other", &other), ("again", &again)] {
        assert_eq!(scene.journal(name), kept, "{above}\n{report}");
        let upstream = &report["upstream"];
        assert_eq!((&upstream["missing"], &upstream["strangers"]), (&json!(0), &json!({})), "{report}");
    }
    let upstream = &cut["upstream"];
    assert_eq!(cutting.cuts.load(Ordering::Relaxed), 3);
    assert!(number(&upstream["connections_lost"]) >= 3, "{cut}");
    // What was lost with a connection came over the next: nothing was requested, and the catch-up server asked once.
    assert_eq!((&upstream["requests"], &upstream["left_lines"]), (&json!(0), &json!(0)), "{cut}");
    assert!(number(&upstream["ticks"]) > 2_000, "{cut}");
    let bridge = &above["bridge"];
    assert_eq!((&bridge["cut_off"], &bridge["refused"]), (&json!(0), &json!(0)), "{above}");
    assert_eq!(bridge["ticks"], json!(kept.count), "{above}");
}

#[test]
fn a_follower_that_does_not_read_is_cut_off_and_the_others_go_on() {
    let scene = Scene::new("tcp-slow");
    scene.day("4s");
    let tcp = unbound();
    let mut above = scene.above_tcp("history = \"1MiB\"\n", &line_above(tcp), &[]);
    let mut below = scene.below_tcp("below", FROM_THE_FIRST, &line_below(tcp), TO_THE_END);
    // The whole day would find room in a receive buffer that grows.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(&tcp.into()).unwrap();
    let mut stuck = TcpStream::from(socket);
    stuck.write_all(&follow(scene.session_above(), Seq(1))).unwrap();
    scene.wait_for_the_day("below");
    above.ask_to_end();
    let (above, below) = (above.says(), below.says());
    let kept = scene.journal("above");
    assert_eq!(scene.journal("below"), kept, "{above}\n{below}");
    assert!(number(&above["bridge"]["cut_off"]) >= 1, "{above}");
    assert_eq!(above["bridge"]["ticks"], json!(kept.count), "{above}");
    assert_eq!(below["upstream"]["missing"], json!(0), "{below}");
}

#[test]
fn a_plant_above_that_is_killed_goes_on_with_those_who_follow_over_tcp() {
    let scene = Scene::new("tcp-killed");
    // Long enough for the start of a plant on a busy machine.
    scene.day("8s");
    let tcp = unbound();
    let mut first = scene.above_tcp("", &line_above(tcp), &[]);
    let mut below = scene.below_tcp("below", FROM_THE_FIRST, &line_below(tcp), &[]);
    let mut ring = scene.reader("below");
    wait_for(&mut ring, |tick| tick.header.seq > Seq(500));
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let before = scene.journal("above");
    let mut above = scene.above_tcp("", &line_above(tcp), &[]);
    // The ring ends with the epoch, and another begins.
    assert!(number(&below.says()["upstream"]["next_sequence"]) <= before.last + 1);
    assert_eq!(below.says()["ready"], json!(format!("{}-below", scene.name)));
    let mut ring = scene.reader("below");
    wait_for(&mut ring, |tick| tick.header.flags.contains(Flags::END_OF_SESSION));
    above.ask_to_end();
    let above = above.says();
    below.ask_to_end();
    let below = below.says();
    let kept = scene.journal("above");
    assert_eq!(scene.journal("below"), kept, "{above}\n{below}");
    assert!(kept.last > before.last);
}

#[test]
fn what_does_not_fit_together_is_told_with_what_to_do() {
    let scene = Scene::new("tcp-wrong");
    scene.day("100ms");
    certificates::write(scene.folder.path());
    let tcp = unbound();
    let _above = scene.above_tcp(CERTIFICATE, &line_above(tcp), &[]);
    // The certificate of somebody else.
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, "somebody else");
    let other = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem();
    std::fs::write(scene.path("other.pem"), other).unwrap();
    let unknown = TRUST.replace("ca.pem", "other.pem");
    let other_name = TRUST.replace("localhost", "ny1");
    for (name, keys, line, says, hint) in [
        ("issuer", unknown.as_str(), line_below(tcp), "UnknownIssuer", "does ca name the right file?"),
        ("name", other_name.as_str(), line_below(tcp), "not valid for name", "another name"),
        ("plain", "", line_below(tcp), "cannot catch up", "tls = true is needed here"),
        (
            "port",
            TRUST,
            line_below(scene.server),
            "line to",
            "tcp in [[upstream.line]] is that of a [[bridge.line]]",
        ),
    ] {
        let (_below, mut talk) = scene.below_talking(name, keys, &line);
        let said = hear(&mut talk, says);
        assert!(said.contains(hint), "{name}: {said}");
    }
}

#[test]
fn a_plant_below_shows_a_certificate_where_one_is_required() {
    let scene = Scene::new("tcp-clients");
    scene.day("1s");
    // What the authority has signed for a server serves for a plant below as well.
    certificates::write(scene.folder.path());
    let tcp = unbound();
    let required = format!("{CERTIFICATE}client_ca = \"ca.pem\"\n");
    let mut above = scene.above_tcp(&required, &line_above(tcp), &[]);
    let keys = format!("{FROM_THE_FIRST}{TRUST}");
    let (below, mut talk) = scene.below_talking("without", &keys, &line_below(tcp));
    hear(&mut talk, "CertificateRequired");
    // One that signs itself.
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(["below".to_owned()]).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, "somebody else");
    std::fs::write(scene.path("self.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(scene.path("self.key"), key.serialize_pem()).unwrap();
    let unknown = format!("{keys}cert = \"self.pem\"\nkey = \"self.key\"\n");
    let (stranger, mut talk) = scene.below_talking("stranger", &unknown, &line_below(tcp));
    hear(&mut talk, "UnknownCA");
    let mut good = scene.below_tcp("good", &format!("{keys}{CERTIFICATE}"), &line_below(tcp), &[]);
    drop((below, stranger));
    wait_for(&mut scene.reader("good"), |tick| tick.header.flags.contains(Flags::END_OF_SESSION));
    good.ask_to_end();
    above.ask_to_end();
    let (above, good) = (above.says(), good.says());
    let kept = scene.journal("above");
    assert!(kept.count > 1_000, "{above}");
    assert_eq!(scene.journal("good"), kept, "{good}");
}

#[test]
fn bytes_of_something_else_are_refused_and_counted_on_both_ends_of_a_line() {
    let scene = Scene::new("tcp-hostile");
    scene.day("100ms");
    let tcp = unbound();
    let above = scene.above_tcp("", &line_above(tcp), &[]);
    let good = scene.below_tcp("good", FROM_THE_FIRST, &line_below(tcp), &[]);
    scene.counters_until("above", |plant| plant["bridge"]["followers"] == 1);
    let session = b"1UP_000009";
    let mut too_much = follow(std::str::from_utf8(session).unwrap().parse().unwrap(), Seq(1)).to_vec();
    too_much.extend([0; 100]);
    for bytes in
        [&b"GET / HTTP/1.1\r\nHost: plant\r\n\r\n"[..], &[0; 20][..], &[255; 4_096][..], &too_much[..]]
    {
        let mut stranger = TcpStream::connect(tcp).unwrap();
        stranger.write_all(bytes).unwrap();
        // It is closed, with nothing sent.
        let mut rest = Vec::new();
        let _ = stranger.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{rest:?}");
    }
    // An epoch before: told which there is, and closed.
    let mut late = TcpStream::connect(tcp).unwrap();
    late.write_all(&too_much[..20]).unwrap();
    let mut heartbeat = Vec::new();
    late.read_to_end(&mut heartbeat).unwrap();
    assert_eq!((heartbeat.len(), &heartbeat[..6]), (22, &b"\0\x141UP_"[..]));
    scene.counters_until("above", |plant| {
        plant["bridge"]["refused"] == 4 && plant["bridge"]["followers"] == 1
    });
    // A plant that follows may ask for the time of this plant, once before it has the answer, and for nothing else.
    let session = scene.session_above();
    let asked = ClockExchange::request(session.plant, Nanos(7)).encode();
    let other = ClockExchange::request("OTH".parse().unwrap(), Nanos(7)).encode();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[asked, asked].concat(), &other, &[b't'; 4_096]] {
        let mut stranger = TcpStream::connect(tcp).unwrap();
        stranger.write_all(&follow(session, Seq(u64::MAX))).unwrap();
        stranger.read_exact(&mut [0; 22]).unwrap();
        stranger.write_all(bytes).unwrap();
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    scene.counters_until("above", |plant| {
        plant["bridge"]["refused"] == 8 && plant["bridge"]["followers"] == 1
    });
    drop((above, good));

    // Below: a line that is no line.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            let _ = connection.write_all(&[0; 64]);
            kept.push(connection);
        }
    });
    let _above = scene.above_tcp("", &line_above(tcp), &[]);
    let (mut below, mut talk) = scene.below_talking("below", FROM_THE_FIRST, &line_below(address));
    let said = hear(&mut talk, "line to");
    assert!(said.contains("a datagram of 0 bytes is announced") && said.contains("hint: tcp in"), "{said}");
    below.ask_to_end();
    assert!(number(&below.says()["upstream"]["connections_lost"]) > 0);
}

//! A plant whose ports are all under attack at once, and a client that must not be affected.
//!
//! The attackers are threads of the lowest priority, since real attackers run elsewhere. `make hostile` runs longer. It
//! compares latencies with those of the same plant without an attack, and with those while the same attackers attack
//! another plant on this machine: that isolates the effect on the plant from the attackers' use of the cores.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use stage::{Place, Running};
use tapeline_kdb::{Encoder, MessageKind};
use tungstenite::Message;
use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;

use crate::stage;
use crate::tick::passwd;

const STOCKS: [&str; 3] = ["TAPE", "SENA", "RIMU"];
/// How long an attacker waits for a peer that does not answer before it tries again.
const PATIENCE: Duration = Duration::from_secs(1);

/// The ports of a plant.
#[derive(Clone, Copy)]
struct Ports {
    hub: SocketAddr,
    web: SocketAddr,
    zeromq: SocketAddr,
    kdb: SocketAddr,
    publishers: SocketAddr,
    feed: SocketAddr,
}

/// One attack, until it is disconnected or complete; the number is that of the try.
type Attack = fn(&Ports, u64) -> io::Result<()>;

const ATTACKS: [(&str, Attack); 14] = [
    ("kdb+: questions with long answers, unread", kdb_questions),
    ("kdb+: messages that never end", kdb_parts),
    ("kdb+: wrong passwords", kdb_guesses),
    ("hub: connections that say nothing", |ports, _| silence(ports.hub)),
    ("kdb+: connections that say nothing", |ports, _| silence(ports.kdb)),
    ("ZeroMQ: connections that say nothing", |ports, _| silence(ports.zeromq)),
    ("publishers: connections that say nothing", |ports, _| silence(ports.publishers)),
    ("hub: what is no RSSL", hub_noise),
    ("hub: WebSockets that ask for all and read nothing", hub_greed),
    ("hub: half an opening", hub_halves),
    ("publishers: what is no RSSL", publisher_noise),
    ("ZeroMQ: subscriptions without end, unread", zeromq_subscriptions),
    ("web: 64 that say nothing, and long heads", web_silence),
    ("feed: datagrams that are no MoldUDP64", feed_noise),
];

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Waits until the peer sends something or disconnects, for a limited time.
fn linger(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    match stream.read(&mut [0]) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        read => read.map(|_| ()),
    }
}

/// Pseudo-random bytes, different at each try.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..count).map(|_| next()).collect()
}

/// A kdb+ client that is logged in.
fn insider(ports: &Ports) -> io::Result<TcpStream> {
    let mut stream = connect(ports.kdb)?;
    stream.write_all(b"insider:secret\x03\0")?;
    stream.read_exact(&mut [0])?;
    Ok(stream)
}

fn message(kind: MessageKind, room: usize, write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut room = vec![0; room];
    let mut out = Encoder::message(&mut room, kind).unwrap();
    write(&mut out);
    let len = out.finish().unwrap();
    room.truncate(len);
    room
}

/// Subscribes to 60,000 symbols, and queries the subscriptions 12,000 times.
fn kdb_questions(ports: &Ports, _: u64) -> io::Result<()> {
    let mut stream = insider(ports)?;
    let symbols: Vec<String> = (0..60_000).map(|number| format!("{number:036}")).collect();
    let subscription = message(MessageKind::Async, 4 << 20, |out| {
        out.list(3).unwrap();
        out.symbol(b".u.sub").unwrap();
        out.symbol(b"trade").unwrap();
        out.symbols(symbols.iter().map(String::as_bytes)).unwrap();
    });
    stream.write_all(&subscription)?;
    let question = message(MessageKind::Async, 100, |out| out.string(b".u.w").unwrap());
    stream.write_all(&question.repeat(12_000))?;
    let question = message(MessageKind::Sync, 100, |out| out.string(b".u.w").unwrap());
    stream.write_all(&question.repeat(1_000))
}

/// The beginning of a message of 15 MiB, on sixty connections.
fn kdb_parts(ports: &Ports, _: u64) -> io::Result<()> {
    let mut streams = Vec::new();
    let header = [&[1, 0, 0, 0][..], &(15u32 << 20).to_le_bytes()].concat();
    for _ in 0..60 {
        let mut stream = insider(ports)?;
        stream.write_all(&header)?;
        stream.write_all(&vec![10; 1 << 20])?;
        streams.push(stream);
    }
    Ok(())
}

fn kdb_guesses(ports: &Ports, number: u64) -> io::Result<()> {
    let mut stream = connect(ports.kdb)?;
    stream.write_all(format!("insider:{number}\x03\0").as_bytes())?;
    stream.read_exact(&mut [0])
}

/// Two hundred connections that send nothing.
fn silence(to: SocketAddr) -> io::Result<()> {
    let mut streams: Vec<_> = (0..200).map_while(|_| connect(to).ok()).collect();
    streams.last_mut().map_or(Ok(()), linger)
}

/// Noise, on odd tries after a length that is larger than the data.
fn rssl_noise(to: SocketAddr, number: u64) -> io::Result<()> {
    let mut stream = connect(to)?;
    if number % 2 == 1 {
        stream.write_all(&[0xFF, 0xFF])?;
    }
    stream.write_all(&noise(number, 10_000))?;
    stream.read_exact(&mut [0; 1 << 10])
}

fn hub_noise(ports: &Ports, number: u64) -> io::Result<()> {
    rssl_noise(ports.hub, number)
}

fn publisher_noise(ports: &Ports, number: u64) -> io::Result<()> {
    rssl_noise(ports.publishers, number)
}

/// Half the opening of a WebSocket or of RSSL, byte by byte.
fn hub_halves(ports: &Ports, number: u64) -> io::Result<()> {
    let mut stream = connect(ports.hub)?;
    let web = b"GET /WebSocket HTTP/1.1\r\nHost: localhost\r\nX: ".as_slice();
    let rssl = b"\x00\x70\x00\x00\x00\x00\x17".as_slice();
    for byte in if number.is_multiple_of(2) { web } else { rssl } {
        stream.write_all(&[*byte])?;
    }
    stream.write_all(&noise(number, 100_000))
}

/// Logs in over JSON, opens every item many times, sends many requests, and reads nothing.
fn hub_greed(ports: &Ports, _: u64) -> io::Result<()> {
    let mut request = format!("ws://{}/WebSocket", ports.hub).into_client_request().unwrap();
    request.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_static("tr_json2"));
    let Ok((mut socket, _)) = tungstenite::client(request, connect(ports.hub)?) else { return Ok(()) };
    let mut say = |text: String| {
        socket.send(Message::text(text)).map_err(|error| match error {
            tungstenite::Error::Io(cause) => cause,
            other => io::Error::other(other),
        })
    };
    say(r#"{"ID":1,"Domain":"Login","Key":{"Name":"greedy","Elements":{"ApplicationId":"256","Position":"127.0.0.1"}}}"#.to_owned())?;
    for round in 0..2_000_u32 {
        let mut text = String::from("[");
        for at in 0..100 {
            let (stream, item) = (2 + (round * 100 + at) % 5_000, STOCKS[at as usize % 3]);
            let comma = if at == 0 { "" } else { "," };
            let _ =
                write!(text, r#"{comma}{{"ID":{stream},"Key":{{"Name":"{item}","Service":"TAPELINE"}}}}"#);
        }
        say(text + "]")?;
    }
    Ok(())
}

/// A subscriber that completes the handshake, subscribes to more topics than allowed, and reads nothing.
fn zeromq_subscriptions(ports: &Ports, _: u64) -> io::Result<()> {
    let mut stream = connect(ports.zeromq)?;
    let mut greeting = [0; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xFF, 0x7F, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting)?;
    let ready = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";
    stream.write_all(ready)?;
    // Subscribes to everything, so that its queue fills.
    stream.write_all(&[0, 1, 1])?;
    for number in 0..20_000_u32 {
        let topic = format!("\0\x14\x01TAPELINE/{number:010}");
        stream.write_all(topic.as_bytes())?;
    }
    linger(&mut stream)
}

fn web_silence(ports: &Ports, number: u64) -> io::Result<()> {
    let mut streams: Vec<_> = (0..64).map_while(|_| connect(ports.web).ok()).collect();
    let Some(stream) = streams.last_mut() else { return Ok(()) };
    linger(stream)?;
    stream.write_all(b"GET /health HTTP/1.1\r\nX: ")?;
    stream.write_all(&noise(number, 100_000))
}

fn feed_noise(ports: &Ports, number: u64) -> io::Result<()> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    for at in 0..100 {
        // Shorter than a header, or a header with a count that exceeds the data.
        let short = noise(number * 100 + at, (at % 20) as usize);
        let promise = [&b"TAPELINE  "[..], &[0; 8], &[0, 9], &[0xFF; 3]].concat();
        socket.send_to(if at.is_multiple_of(2) { &short } else { &promise }, ports.feed)?;
    }
    // The plant does not answer.
    socket.set_read_timeout(Some(Duration::from_millis(1)))?;
    socket.recv(&mut [0]).map(|_| ())
}

/// The attacks with `HOSTILE_ATTACK` in their names; all if it is not set.
fn chosen() -> impl Iterator<Item = (&'static str, Attack)> {
    let part = std::env::var("HOSTILE_ATTACK").unwrap_or_default();
    ATTACKS.into_iter().filter(move |(name, _)| name.contains(&part))
}

/// All attacks, each on its own thread.
struct Siege {
    threads: Vec<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
    /// How often each attack was tried.
    tries: Vec<Arc<AtomicU64>>,
}

impl Siege {
    fn lay(ports: Ports) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (mut threads, mut tries) = (Vec::new(), Vec::new());
        for (_, attack) in chosen() {
            let (over, count) = (Arc::clone(&is_over), Arc::new(AtomicU64::new(0)));
            tries.push(Arc::clone(&count));
            threads.push(std::thread::spawn(move || {
                let own = rustix::thread::gettid();
                rustix::process::setpriority_process(Some(own), 19).unwrap();
                while !over.load(Ordering::Relaxed) {
                    // A disconnect is expected.
                    let number = count.load(Ordering::Relaxed);
                    if attack(&ports, number).is_err() {
                        std::thread::yield_now();
                    }
                    count.store(number + 1, Ordering::Relaxed);
                }
            }));
        }
        Self { threads, is_over, tries }
    }

    fn tries(&self) -> impl Iterator<Item = u64> {
        self.tries.iter().map(|tries| tries.load(Ordering::Relaxed))
    }

    fn lift(self) -> Vec<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        let tries = self.tries().collect();
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        tries
    }
}

/// A normal client: `omm watch`, whose last line has the totals.
fn watch(hub: SocketAddr, user: &str, until: &[&str]) -> Running {
    let server = hub.to_string();
    let fixed = ["omm", "watch", "--server", &server, "--service", "TAPELINE", "--user", user];
    let more = ["--quiet", "--format", "json", "--timed", "500ms"];
    Running::start(&[&fixed, &more[..], until, &STOCKS].concat())
}

fn end(mut running: Running) -> Value {
    let mut last = Value::Null;
    while let Some(said) = running.may_say() {
        last = said;
    }
    assert_eq!(last["event"], "end", "{last}");
    last
}

/// Median and 99th percentile of update ages in µs, over this many seconds.
fn ages(hub: SocketAddr, seconds: u64) -> (f64, f64) {
    let end = end(watch(hub, "timed", &["--for", &format!("{seconds}s")]));
    let micros = |rank: &str| end["age"]["latency_ns"][rank].as_f64().map_or(f64::NAN, |ns| ns / 1e3);
    (micros("p50"), micros("p99"))
}

/// The plant's health, requested as a load balancer does.
fn health(web: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(web)?;
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn plant(place: &Place) -> (Running, Ports) {
    passwd(&place.folder.path().join("users.txt"), "insider", "secret");
    let config = place.config("");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str(
        "[hub]\nport = 0\n[hub.web]\nport = 0\n[hub.zeromq]\nport = 0\n[publishers]\nport = 0\n[[service]]\nname = \"RATES\"\nid = 2\n[journal]\nfolder = \"journal\"\n\
         [kdb]\nport = 0\nkdb_log = false\n[kdb.access]\nusers = \"users.txt\"\n[[kdb.access.rule]]\nusers = [\"insider\"]\n\
         subscribe = [\"*\"]\n[[kdb.table]]\nname = \"trade\"\nrows = \"trades\"\n\
         columns = [\"time timespan\", \"sym symbol\", \"price float TRDPRC_1\"]\n",
    );
    std::fs::write(&config, text).unwrap();
    let mut command = stage::tapeline(&["plant", "--config", &config, "--format", "json"]);
    // The plant prints a line for each disconnected client.
    let (mut plant, mut talk) = Running::talking(&mut command);
    std::thread::spawn(move || io::copy(&mut talk, &mut io::sink()));
    let ready = plant.says();
    let port = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{ready}")).parse().unwrap();
    let ports = Ports {
        hub: port(&ready["hub"]),
        web: port(&ready["web"]),
        zeromq: port(&ready["zeromq"]),
        kdb: port(&ready["kdb"]["address"]),
        publishers: port(&ready["publishers"]),
        feed: place.lines[0].into(),
    };
    (plant, ports)
}

/// Another plant on the same machine with its own exchange, as the attackers' target for comparison.
struct Decoy {
    _place: Place,
    plant: Running,
    exchange: Running,
    ports: Ports,
}

impl Decoy {
    fn open() -> Self {
        let place = Place::new(1);
        let (plant, ports) = plant(&place);
        let exchange = exchange(&place);
        Self { _place: place, plant, exchange, ports }
    }

    fn end(mut self) {
        self.exchange.ask_to_end();
        self.exchange.child.wait().unwrap();
        self.plant.ask_to_end();
        self.plant.says();
        assert!(self.plant.child.wait().unwrap().success());
    }
}

/// Sends 10,000 messages a second until stopped.
fn exchange(place: &Place) -> Running {
    let to = place.lines[0].to_string();
    let exchange =
        ["feed", "simulate", "--to", &to, "--symbols", "3", "--live-orders", "3k", "--format", "json"];
    Running::start(&[&exchange[..], &["--rate", "10k", "--duration", "3600s"]].concat())
}

#[test]
fn who_means_no_harm_notices_nothing_of_those_who_do() {
    let seconds: Option<u64> = std::env::var("HOSTILE_SECONDS").ok().map(|text| text.parse().unwrap());
    let mut place = Place::new(1);
    place.keys = "images = \"64MiB\"";
    let (mut plant, ports) = plant(&place);
    let healthy = watch(ports.hub, "healthy", &["--until-closed"]);
    let ring = place.ring.clone();
    let reader = std::thread::spawn(move || {
        let fixed = ["plant", "measure", "--ring", &ring, "--from", "oldest", "--until-end-of-session"];
        stage::tapeline(&[&fixed[..], &["--format", "json"]].concat()).output().unwrap()
    });
    let server = ports.publishers.to_string();
    let rates = [
        "omm",
        "publish",
        "--server",
        &server,
        "--service",
        "RATES",
        "--service-id",
        "2",
        "--format",
        "json",
        "EUR=",
    ];
    let mut rates = Running::start(&rates);
    while rates.says()["event"] != "published" {}
    let mut exchange = exchange(&place);
    // Several turns, as the machine's load changes from minute to minute.
    let turns = if seconds.is_some() { 3 } else { 1 };
    let each = seconds.map_or(2, |seconds| (seconds / 9).max(2));
    let decoy = seconds.map(|_| Decoy::open());
    let (mut alone, mut elsewhere, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    let mut tries = vec![0; chosen().count()];
    for turn in 0..turns {
        alone.push(ages(ports.hub, each));
        if let Some(decoy) = &decoy {
            let siege = Siege::lay(decoy.ports);
            elsewhere.push(ages(ports.hub, each));
            siege.lift();
        }
        let siege = Siege::lay(ports);
        beside.push(ages(ports.hub, each));
        // Each attack was completed at least once, and the plant is healthy.
        while siege.tries().any(|tries| tries < 2) {
            let health = health(ports.web).unwrap();
            assert!(health.starts_with("HTTP/1.1 200"), "{health}");
        }
        if turn + 1 == turns {
            exchange.ask_to_end();
            exchange.child.wait().unwrap();
            // The attackers do not prevent a normal stop.
            plant.ask_to_end();
            let report = plant.says();
            assert!(plant.child.wait().unwrap().success(), "{report}");
            tries.iter_mut().zip(siege.lift()).for_each(|(sum, tries)| *sum += tries);
            let measured = reader.join().unwrap();
            assert!(measured.status.success(), "{measured:?}");
            judge(&report, &end(healthy), &serde_json::from_slice(&measured.stdout).unwrap());
            break;
        }
        tries.iter_mut().zip(siege.lift()).for_each(|(sum, tries)| *sum += tries);
    }
    let (Some(seconds), Some(decoy)) = (seconds, decoy) else { return };
    decoy.end();
    for ((what, _), tries) in chosen().zip(tries) {
        println!("{tries:>9} × {what}");
    }
    let median = |all: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = all.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    println!("\n{seconds} s, {turns} turns            median         99 %");
    let rows =
        [("nobody attacks", &alone), ("another plant attacked", &elsewhere), ("under attack", &beside)];
    for (what, all) in rows {
        println!("{what:<24} {:>8.1} µs {:>9.1} µs", median(all, |ages| ages.0), median(all, |ages| ages.1));
    }
    let [of_alone, of_elsewhere] =
        [&alone, &elsewhere].map(|all| median(&beside, |ages| ages.1) / median(all, |ages| ages.1));
    println!("99 %: {of_alone:.2} × of alone, {of_elsewhere:.2} × of an attack on another plant");
    println!("each turn: {alone:.0?} alone, {elsewhere:.0?} beside another, {beside:.0?} under attack");
    assert!(
        of_alone <= 2.0 || of_elsewhere <= 2.0,
        "the attackers are noticed: 99 % of updates took {of_alone:.2} × as long as alone, and {of_elsewhere:.2} × as long as beside \
         another plant under attack"
    );
}

/// No normal client lost anything.
fn judge(report: &Value, healthy: &Value, measured: &Value) {
    let feed = &report["feeds"][0];
    assert_eq!(feed["missing_messages"], json!(0), "{report}");
    assert_eq!(report["ring_evicted"], json!(0), "{report}");
    assert_eq!(report["journal"]["missing"], json!(0), "{report}");
    let sessions = report["hub"]["clients"].as_array().unwrap();
    let session = sessions.iter().find(|session| session["user"] == "healthy").unwrap();
    let count = |value: &Value, name: &str| value[name].as_u64().unwrap_or_else(|| panic!("{value}"));
    assert_eq!((count(session, "conflated"), count(session, "dropped")), (0, 0), "{session}");
    let sent = count(session, "refreshes") + count(session, "updates");
    assert_eq!(count(healthy, "refreshes") + count(healthy, "updates"), sent, "{session} {healthy}");
    assert!(sent > 0);
    assert_eq!((count(measured, "lost"), count(measured, "gaps")), (0, 0), "{measured}");
}

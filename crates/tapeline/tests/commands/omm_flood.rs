//! `tapeline omm` programs that are stopped while a peer sends without end, and reads all or nothing of their output.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stage::Running;
use tapeline_measure::Clock;
use tapeline_omm::Refused;
use tapeline_omm::domain::login::{LoginAttributes, LoginFeatures, ROLE_PROVIDER};
use tapeline_omm::domain::{LoginRefresh, LoginRequest};
use tapeline_omm::rwf::{
    CloseHeader, DataType, Domain, Header, Key, MessageView, RequestHeader, UpdateHeader, UpdateType, flags,
};
use tapeline_wire::rssl::{ConnectionId, ConnectionSettings, Event, Reactor, Sent};

use crate::stage;

/// Messages that a peer has sent before the program is stopped. The program prints no line for these messages, and they
/// exceed the buffers in between, so that it has read some of them.
const MANY: u64 = 4_000_000;
const MANY_LINES: u64 = 200_000;

/// Messages that a peer sends before it handles its own input.
const BATCH: u64 = 10_000;

/// The peer of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Consumer,
    NiProvider,
    /// The server of consumers and NI providers.
    Server,
    /// A server whose messages cannot be decoded.
    Babbler,
}

fn encoded(write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let len = write(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

impl Peer {
    /// A message that the program accepts any number of times, and need not answer.
    fn flood(self) -> Vec<u8> {
        match self {
            Self::Babbler => vec![0xFF; 3],
            Self::Server => {
                let header =
                    UpdateHeader::new(Domain::MARKET_PRICE, 77, UpdateType::TRADE, DataType::NO_DATA);
                encoded(|room| header.encode(room))
            }
            _ => encoded(|room| CloseHeader::new(Domain::MARKET_PRICE, 77).encode(room)),
        }
    }

    /// Messages to send before the program is stopped.
    const fn many(self) -> u64 {
        if let Self::Server = self { MANY_LINES } else { MANY }
    }

    fn login(self) -> Vec<u8> {
        let login = LoginRequest::new(b"flood");
        let role = (self == Self::NiProvider).then_some(ROLE_PROVIDER);
        let attributes = LoginAttributes { role, ..login.attributes };
        encoded(|room| LoginRequest { attributes, ..login }.encode(room))
    }
}

/// A peer that sends without end.
struct Flood {
    thread: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
    /// Signals that enough messages were sent.
    under_way: Receiver<()>,
    /// The listening address of a server.
    address: Option<SocketAddr>,
}

impl Flood {
    /// Connects to a program at `port`, or accepts a connection.
    fn start(peer: Peer, port: Option<u16>, reads: bool) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (say, under_way) = mpsc::channel();
        let mut reactor = Reactor::new(1).unwrap();
        let (clock, settings) = (Clock::calibrate(), Arc::new(ConnectionSettings::default()));
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)));
        let address = port.is_none().then(|| reactor.listen(local, &settings).unwrap());
        if port.is_some() {
            reactor.connect(local, &settings, clock.now()).unwrap();
        }
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let message = peer.flood();
            // The current connection, and the same when it is ready for the flood.
            let (mut talk, mut open, mut sent) = (None::<ConnectionId>, None::<ConnectionId>, 0);
            while !over.load(Ordering::Relaxed) {
                // A server disconnects a slow client, which any client can be on a busy machine.
                let mut cut = None;
                if reads || open.is_none() {
                    reactor.wait(Duration::from_millis(1)).unwrap();
                    reactor.each(clock.now(), |id, event, sender| match event {
                        Event::Connected(_) => {
                            (talk, open) = (Some(id), None);
                            if port.is_some() {
                                assert_eq!(sender.send(&peer.login()), Sent::Queued);
                            }
                        }
                        Event::Message(bytes) if open.is_none() && talk == Some(id) => {
                            let answer = met(peer, bytes);
                            let all_sent = answer.iter().all(|answer| sender.send(answer) == Sent::Queued);
                            open = (all_sent && !answer.is_empty()).then_some(id);
                        }
                        Event::Closed(_) => cut = cut.or(Some(id)),
                        _ => {}
                    });
                }
                if let Some(id) = open
                    && let Some(mut sender) = reactor.sender(id)
                {
                    // In batches: the queue never fills if the program reads as fast as this sends.
                    let batch = (0..BATCH).take_while(|_| sender.send(&message) == Sent::Queued);
                    sent += batch.count() as u64;
                    sender.flush();
                    // Without reads, only a flush detects the disconnect.
                    cut = cut.or((!sender.is_open()).then_some(id));
                }
                if cut.is_some() && cut == talk {
                    (talk, open) = (None, None);
                    if port.is_some() {
                        reactor.connect(local, &settings, clock.now()).unwrap();
                    }
                }
                if sent >= peer.many() {
                    let _ = say.send(());
                }
            }
        });
        Self { thread, is_over, under_way, address }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// The answer to the peer's first message: to a login refresh, a request whose answer is worth reading.
fn met(peer: Peer, bytes: &[u8]) -> Vec<Vec<u8>> {
    let message = MessageView::parse(bytes).unwrap();
    match (peer, message.header().unwrap()) {
        (Peer::Server | Peer::Babbler, Header::Request(request)) => {
            let request = LoginRequest::read(&request).unwrap();
            let refresh = LoginRefresh::accepting(&request, LoginFeatures::default());
            vec![encoded(|room| refresh.encode(room))]
        }
        (_, Header::Refresh(_)) => {
            let header = RequestHeader::new(Domain::MARKET_PRICE, 5, Key::item(1, b"A"));
            let header = RequestHeader { flags: flags::request::STREAMING, ..header };
            vec![encoded(|room| header.encode(room))]
        }
        (_, other) => panic!("{other:?}"),
    }
}

/// Stops a program at `moment`; returns its last line and exit status. Reads its output throughout, so that it does not
/// block.
fn ended(mut running: Running, moment: impl FnOnce()) -> (Value, Option<i32>) {
    let pid = Pid::from_child(&running.child);
    let reading = std::thread::spawn(move || {
        let mut last = Value::Null;
        while let Some(said) = running.may_say() {
            last = said;
        }
        (last, running.child.wait().unwrap().code())
    });
    moment();
    kill_process(pid, Signal::TERM).unwrap();
    reading.join().unwrap()
}

#[test]
fn servers_end_when_they_are_asked_to() {
    for (role, peer, last) in [("serve", Peer::Consumer, "end"), ("accept", Peer::NiProvider, "gone")] {
        for reads in [true, false] {
            let rate = ["--update-rate", "1000000"];
            let options = if role == "serve" { &rate[..] } else { &["--quiet"] };
            let mut running = Running::start(&[&["omm", role, "--port", "0"], options].concat());
            let port = running.says()["port"].as_u64().unwrap();
            let flood = Flood::start(peer, Some(u16::try_from(port).unwrap()), reads);
            let (said, status) = ended(running, || flood.under_way.recv().unwrap());
            assert!(status == Some(0) && said["event"] == last, "{role}, {reads}: {status:?} {said}");
            // The totals include connections that are open at the end.
            assert!(role == "accept" || said["requests"].as_u64() > Some(0), "{reads}: {said}");
            flood.end();
        }
    }
}

#[test]
fn clients_end_when_they_are_asked_to() {
    for role in ["watch", "publish"] {
        for reads in [true, false] {
            let flood = Flood::start(Peer::Server, None, reads);
            let server = flood.address.unwrap().to_string();
            let rate = ["--update-rate", "1000000"];
            let options = if role == "watch" { &["--quiet"][..] } else { &rate };
            let running = Running::start(&[&["omm", role, "A", "--server", &server], options].concat());
            let (said, status) = ended(running, || flood.under_way.recv().unwrap());
            // The consumer's item never had an image, hence exit status 1.
            let expected = i32::from(role == "watch");
            assert!(status == Some(expected) && said["event"] == "end", "{role}, {reads}: {status:?} {said}");
            flood.end();
        }
    }
}

#[test]
fn what_cannot_be_read_is_said_once() {
    for role in ["watch", "publish"] {
        let flood = Flood::start(Peer::Babbler, None, true);
        let server = flood.address.unwrap().to_string();
        let (running, mut stderr) = Running::start_talking(&["omm", role, "A", "--server", &server]);
        let talk = std::thread::spawn(move || std::io::read_to_string(&mut stderr).unwrap());
        let (said, _) = ended(running, || flood.under_way.recv().unwrap());
        assert!(said["malformed"].as_u64() > Some(1), "{role}: {said}");
        let talk = talk.join().unwrap();
        assert_eq!(talk.matches("cannot be read").count(), 1, "{role}: {} bytes", talk.len());
        flood.end();
    }
}

/// The consumer prints lines without end, and they are read.
#[test]
fn a_consumer_ends_amid_its_updates() {
    let mut provider = Running::start(&["omm", "serve", "--port", "0", "--update-rate", "1000000"]);
    let server = format!("localhost:{}", provider.says()["port"]);
    let mut consumer = Running::start(&["omm", "watch", "A", "B", "--server", &server]);
    let mut updates = 0;
    while updates < 10_000 {
        updates += u32::from(consumer.says()["event"] == "update");
    }
    let (said, status) = ended(consumer, || ());
    assert!(status == Some(0) && said["event"] == "end", "{status:?} {said}");
    let (said, status) = ended(provider, || ());
    assert!(status == Some(0) && said["event"] == "end", "{status:?} {said}");
}

//! A hub for publishers: an acceptor on its own thread.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender as Channel, channel};
use std::thread;
use std::time::Duration;

use tapeline_client::connection::{JsonSettings, RoleConnection, Side};
use tapeline_client::server::{Connections, Serve};
use tapeline_client::{Error, Login, Publisher};
use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::domain::LoginFeatures;
use tapeline_omm::role::Outbox;
use tapeline_omm::role::acceptor::{Acceptor, AcceptorEvent, AcceptorSettings};
use tapeline_omm::rwf::{Container, MessageView};
use tapeline_omm::{Dictionary, Real, fid};
use tapeline_wire::rssl::{ConnectionId, ConnectionSettings, Negotiated, Reactor, Sender};

/// A hub, and the messages that it received.
pub(crate) struct Hub {
    pub(crate) address: SocketAddr,
    seen: Receiver<String>,
}

struct Taking {
    dictionary: Arc<Dictionary>,
    seen: Channel<String>,
    /// The receiver is dropped; the thread ends.
    is_over: bool,
}

impl Hub {
    pub(crate) fn listen() -> Self {
        let mut reactor = Reactor::new(10).unwrap();
        let address = reactor
            .listen((Ipv4Addr::LOCALHOST, 0).into(), &Arc::new(ConnectionSettings::default()))
            .unwrap();
        let (told, seen) = channel();
        thread::spawn(move || {
            let dictionary = Arc::new(Dictionary::builtin().clone());
            let mut taking = Taking { dictionary, seen: told, is_over: false };
            let mut connections = Connections::default();
            while !taking.is_over {
                let now = Nanos(monotonic_ns());
                connections.receive(&mut taking, &mut reactor, now);
                connections.tick(&mut taking, &mut reactor, now);
                reactor.flush();
                reactor.wait(Duration::from_millis(50)).unwrap();
            }
        });
        Self { address, seen }
    }

    /// Returns the next `count` messages, as text.
    pub(crate) fn take(&self, count: usize) -> Vec<String> {
        self.seen.iter().take(count).collect()
    }
}

impl Serve for Taking {
    type Client = (Acceptor, RoleConnection);

    fn open(&mut self, agreed: &Negotiated, now: Nanos) -> Self::Client {
        let json = JsonSettings::default();
        let messages = RoleConnection::new(Side::Server, agreed, &self.dictionary, json);
        (Acceptor::new(AcceptorSettings::default(), now), messages)
    }

    fn step(
        &mut self,
        (acceptor, messages): &mut Self::Client,
        _id: ConnectionId,
        sender: &mut Sender<'_>,
        message: Option<&[u8]>,
        now: Nanos,
    ) -> Result<(), String> {
        let mut say = |what: &str, name: &[u8], message: &MessageView<'_>| {
            let Ok(Container::FieldList(list)) = message.open() else { panic!("no fields") };
            let line = format!("{what} {} {}", name.escape_ascii(), list.render(&self.dictionary));
            self.is_over |= self.seen.send(line).is_err();
        };
        let mut application =
            |acceptor: &mut Acceptor, out: &mut dyn Outbox, event: AcceptorEvent<'_>| match event {
                AcceptorEvent::Login { request, .. } => {
                    assert!(
                        acceptor.accept_login(out, &request, LoginFeatures::default()).unwrap().is_queued()
                    );
                }
                AcceptorEvent::Image { item, message, .. } => say("image", item.name, &message),
                AcceptorEvent::Update { item, message, .. } => say("update", item.name, &message),
                _ => {}
            };
        let done = match message {
            Some(received) => messages.receive(received, sender, |message, out| {
                acceptor.message(now, message, out, &mut application)
            }),
            None => acceptor.tick(now, &mut messages.outbox(sender), &mut application).map(|_| ()),
        };
        done.map_err(|over| over.to_string())
    }

    fn closed(&mut self, _id: ConnectionId, _client: Self::Client, _reason: &str) {}
}

/// Values that are published before the connection is open arrive as one image; later values arrive as updates.
#[test]
fn each_connection_begins_with_the_last_values() {
    let login = Login::user("me");
    let hub = Hub::listen();
    let mut publisher = Publisher::connect(&hub.address.to_string(), &login, 1, "NI_PUB").unwrap();
    publisher.publish("A", &[(fid::BID, Real::decimal(1, 0).into())]).unwrap();
    publisher.publish("A", &[(fid::ASK, Real::decimal(3, 0).into())]).unwrap();
    publisher.publish("A", &[(fid::BID, Real::decimal(2, 0).into())]).unwrap();
    publisher.flush().unwrap();
    assert_eq!(hub.take(1), ["image A BID=2 ASK=3"]);
    publisher.publish("A", &[(fid::ASK, Real::decimal(4, 0).into())]).unwrap();
    publisher.flush().unwrap();
    assert_eq!(hub.take(1), ["update A ASK=4"]);
}

/// Whether a publisher is closed or dropped: what it accepted arrives.
#[test]
fn closing_and_dropping_send_what_was_published() {
    let login = Login::user("me");
    for is_dropped in [false, true] {
        let hub = Hub::listen();
        let mut publisher = Publisher::connect(&hub.address.to_string(), &login, 1, "NI_PUB").unwrap();
        publisher.publish("A", &[(fid::BID, Real::decimal(1, 0).into())]).unwrap();
        if is_dropped {
            drop(publisher);
        } else {
            publisher.close(Duration::from_secs(60)).unwrap();
        }
        assert_eq!(hub.take(1), ["image A BID=1"]);
    }
}

/// Nobody listens: closing says which items were not sent.
#[test]
fn closing_names_what_was_not_sent() {
    let nobody = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let mut publisher = Publisher::connect(&address, &Login::user("me"), 1, "NI_PUB").unwrap();
    publisher.publish("B", &[(fid::BID, Real::decimal(1, 0).into())]).unwrap();
    publisher.publish("A", &[(fid::BID, Real::decimal(1, 0).into())]).unwrap();
    let Err(Error::NotSent { items, why }) = publisher.close(Duration::from_millis(1)) else {
        panic!("it was sent to nobody")
    };
    assert_eq!(items, ["A", "B"]);
    assert!(why.starts_with("no login within 1ms"), "{why}");
    let idle = Publisher::connect(&address, &Login::user("me"), 1, "NI_PUB").unwrap();
    idle.close(Duration::MAX).unwrap();
}

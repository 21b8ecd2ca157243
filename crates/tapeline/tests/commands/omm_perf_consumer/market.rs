//! A provider whose behaviour the test defines, in the test's own thread, until `tapeline omm consumer` has ended.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::domain::directory::{Info, ServiceEntry, ServicePart, ServiceState};
use tapeline_omm::domain::standby::ServerType;
use tapeline_omm::domain::{Directory, LoginFeatures};
use tapeline_omm::role::provider::{
    Provider, ProviderApplication, ProviderEvent, ProviderSettings, StreamHandle,
};
use tapeline_omm::role::{Outbox, Queue, Sent};
use tapeline_omm::rwf::{
    DataState, DataType, Domain, GenericHeader, MessageClass, MessageView, PostUserInfo, RefreshHeader,
    StatusHeader, StreamState, UpdateHeader, UpdateType, flags,
};
use tapeline_omm::{Fid, FieldList, FieldListEncoder, Qos, Real, State};
use tapeline_wire::rssl::{self, ConnectionId, Reactor};

use crate::omm_perf_consumer::stage;

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Image,
    Suspect,
    Closed,
}

/// A request from the consumer.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Number of the connection, from 0 in order of connection.
    pub(crate) connection: usize,
    pub(crate) item: String,
    pub(crate) domain: Domain,
    pub(crate) is_streaming: bool,
    pub(crate) is_private: bool,
}

/// A received post or generic message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) item: String,
    pub(crate) is_post: bool,
    /// TIM_TRK_2 or TIM_TRK_3, and TIM_TRK_4.
    pub(crate) sent: Option<u64>,
    pub(crate) due: Option<u64>,
    /// The payload without times.
    pub(crate) content: Vec<u8>,
}

/// The provider's data, and the messages that it received.
pub(crate) struct Market {
    pub(crate) services: Directory,
    /// The answer for an item, by its name.
    pub(crate) answer: fn(&str) -> Answer,
    /// Whether posts come back as updates, and generic messages unchanged.
    pub(crate) reflects: bool,
    /// Every login is refused.
    pub(crate) refuses: bool,
    /// Kinds of warm standby that the login offers.
    pub(crate) standby: Option<u64>,
    /// Each server type that a connection was assigned, in order.
    pub(crate) standings: Vec<(usize, ServerType)>,
    pub(crate) users: Vec<String>,
    pub(crate) requests: Vec<Request>,
    pub(crate) messages: Vec<Message>,
    /// Streams with an answer, in order of the requests, with their connection and item.
    pub(crate) open: Vec<(ConnectionId, StreamHandle, String)>,
    /// Connections in order of connection.
    pub(crate) connections: Vec<ConnectionId>,
    pub(crate) at: Option<ConnectionId>,
}

/// The result of a run.
pub(crate) struct Outcome {
    /// The record of the run.
    pub(crate) record: Value,
    /// The text on standard error.
    pub(crate) talk: String,
    pub(crate) is_success: bool,
    pub(crate) market: Market,
}

impl Outcome {
    pub(crate) fn count(&self, name: &str) -> u64 {
        let count = &self.record["counts"][name];
        count.as_u64().unwrap_or_else(|| panic!("{name}: {}\n{}", self.record, self.talk))
    }
}

/// A service in this state.
pub(crate) fn service(name: &str, id: u16, state: ServiceState) -> ServiceEntry {
    let info = Info {
        name: Some(name.to_owned()),
        capabilities: Some(vec![Domain::MARKET_PRICE, Domain::MARKET_BY_ORDER]),
        qos: Some(vec![Qos::REALTIME_TICK]),
        ..Info::default()
    };
    ServiceEntry::new(id, info, state)
}

/// A change of a service's state.
pub(crate) fn change(id: u16, state: ServiceState) -> ServiceEntry {
    ServiceEntry::change(id, ServicePart::State(state))
}

/// A field list with a bid and these times.
pub(crate) fn fields(times: &[(i16, u64)]) -> Vec<u8> {
    let mut bytes = vec![0; 128];
    let mut list = FieldListEncoder::new(&mut bytes).unwrap();
    list.real(Fid(22), Real::decimal(3991, 2)).unwrap();
    for (fid, time) in times {
        list.uint(Fid(*fid), *time).unwrap();
    }
    let len = list.finish();
    bytes.truncate(len);
    bytes
}

/// An update with these fields, and the user of its post if it reflects one.
pub(crate) fn update(fields: &[u8], poster: Option<PostUserInfo>) -> Vec<u8> {
    let header = UpdateHeader {
        post_user_info: poster,
        ..UpdateHeader::new(Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST)
    };
    let mut bytes = vec![0; 256];
    let copy = |room: &mut [u8]| {
        room[..fields.len()].copy_from_slice(fields);
        Ok(fields.len())
    };
    let len = header.encode_with(&mut bytes, copy).unwrap();
    bytes.truncate(len);
    bytes
}

impl Default for Market {
    fn default() -> Self {
        let mut services = Directory::new();
        services.apply(&service("DIRECT_FEED", 1, ServiceState::UP));
        Self {
            services,
            answer: |_| Answer::Image,
            reflects: false,
            refuses: false,
            standby: None,
            standings: Vec::new(),
            users: Vec::new(),
            requests: Vec::new(),
            messages: Vec::new(),
            open: Vec::new(),
            connections: Vec::new(),
            at: None,
        }
    }
}

impl Market {
    fn image(&self, provider: &mut Provider, out: &mut dyn Outbox, stream: StreamHandle, data: DataState) {
        let state = State { data, ..State::OPEN_OK };
        let header = RefreshHeader {
            flags: flags::refresh::REFRESH_COMPLETE,
            ..RefreshHeader::new(Domain::MARKET_PRICE, 0, state, DataType::FIELD_LIST)
        };
        let fields = fields(&[]);
        let sent = provider.refresh(out, stream, &header, &mut |room| {
            room[..fields.len()].copy_from_slice(&fields);
            Ok(fields.len())
        });
        assert_eq!(sent, Ok(Sent::Queued));
    }

    fn take(&mut self, provider: &Provider, stream: StreamHandle, message: &MessageView<'_>) -> Message {
        let is_post = message.class() == MessageClass::POST;
        let inner = if is_post { MessageView::parse(message.payload()).unwrap() } else { *message };
        let list = FieldList::parse(inner.payload()).unwrap();
        let time = |fid| list.find(Fid(fid)).unwrap().map(|field| field.uint().unwrap().unwrap());
        let content = list.iter().map(Result::unwrap).filter(|field| !(3902..=3905).contains(&field.fid.0));
        let message = Message {
            item: name(provider, stream),
            is_post,
            sent: time(if is_post { 3903 } else { 3904 }),
            due: time(3905),
            content: content.flat_map(|field| field.data.to_vec()).collect(),
        };
        self.messages.push(message.clone());
        message
    }
}

fn name(provider: &Provider, stream: StreamHandle) -> String {
    let key = provider.key(stream).unwrap();
    String::from_utf8(key.name.unwrap().to_vec()).unwrap()
}

impl ProviderApplication for Market {
    fn event(&mut self, provider: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>) {
        let id = self.at.unwrap();
        match event {
            ProviderEvent::Login { request, .. } => {
                self.users.push(String::from_utf8(request.user.to_vec()).unwrap());
                if self.refuses {
                    let state = State {
                        stream: StreamState::CLOSED,
                        data: DataState::SUSPECT,
                        text: b"This user is not let in",
                        ..State::OPEN_OK
                    };
                    let _ = provider.login_status(out, state);
                    return;
                }
                let features = LoginFeatures {
                    support_omm_post: Some(1),
                    support_standby: self.standby.map(|_| 1),
                    support_standby_mode: self.standby,
                    ..LoginFeatures::default()
                };
                let _ = provider.accept_login(Nanos(monotonic_ns()), out, &request, features).unwrap();
            }
            ProviderEvent::Directory { stream, .. } => {
                let _ = provider.directory(out, stream, &self.services).unwrap();
            }
            ProviderEvent::Open { stream, request } => {
                let item = name(provider, stream);
                let connection = self.connections.iter().position(|known| *known == id).unwrap();
                let (is_streaming, is_private) = (request.is_streaming(), request.is_private());
                let (item_of, domain) = (item.clone(), request.domain);
                self.requests.push(Request { connection, item: item_of, domain, is_streaming, is_private });
                match (self.answer)(&item) {
                    Answer::Image => self.image(provider, out, stream, DataState::OK),
                    Answer::Suspect => self.image(provider, out, stream, DataState::SUSPECT),
                    Answer::Closed => {
                        let state = State {
                            stream: StreamState::CLOSED,
                            data: DataState::SUSPECT,
                            text: b"no such item",
                            ..State::OPEN_OK
                        };
                        let header =
                            StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
                        let _ = provider.status(Nanos(monotonic_ns()), out, stream, &header).unwrap();
                    }
                }
                self.open.push((id, stream, item));
            }
            ProviderEvent::Post { stream: Some(stream), header, message, .. } => {
                let posted = self.take(provider, stream, &message);
                if self.reflects {
                    let times: Vec<_> =
                        [(3903, posted.sent), (3905, posted.due)].into_iter().filter_map(some).collect();
                    let update = update(&fields(&times), Some(header.post_user_info));
                    assert_eq!(provider.update(out, stream, &update), Sent::Queued);
                }
            }
            ProviderEvent::Generic { stream: Some(stream), header, message } => {
                self.take(provider, stream, &message);
                if self.reflects {
                    let payload = message.payload();
                    let echo = GenericHeader { ..header };
                    let sent = provider.generic(out, Some(stream), &echo, &mut |room| {
                        room[..payload.len()].copy_from_slice(payload);
                        Ok(payload.len())
                    });
                    assert_eq!(sent, Ok(Sent::Queued));
                }
            }
            ProviderEvent::Standing { takes_over } => {
                let connection = self.connections.iter().position(|known| *known == id).unwrap();
                let server = if takes_over { ServerType::Active } else { ServerType::Standby };
                self.standings.push((connection, server));
            }
            ProviderEvent::Malformed(fault) => panic!("{fault}"),
            _ => {}
        }
    }
}

fn some((fid, time): (i16, Option<u64>)) -> Option<(i16, u64)> {
    Some((fid, time?))
}

/// One connection.
struct Client {
    provider: Provider,
    out: Queue,
}

/// The market with its connections, and the consumer.
pub(crate) struct Session {
    pub(crate) market: Market,
    reactor: Reactor,
    clients: BTreeMap<ConnectionId, Client>,
    child: Child,
}

impl Session {
    /// Sends an update on the stream with this number.
    pub(crate) fn update(&mut self, number: usize, message: &[u8]) {
        let (id, stream, _) = self.market.open[number];
        let client = self.clients.get_mut(&id).unwrap();
        assert_eq!(client.provider.update(&mut client.out, stream, message), Sent::Queued);
    }

    /// Sends an unsolicited good image on the stream with this number.
    pub(crate) fn image(&mut self, number: usize) {
        let (id, stream, _) = self.market.open[number];
        let client = self.clients.get_mut(&id).unwrap();
        self.market.image(&mut client.provider, &mut client.out, stream, DataState::OK);
    }

    /// Sends a change of a service to every connection.
    pub(crate) fn change(&mut self, change: &ServiceEntry) {
        self.market.services.apply(change);
        for client in self.clients.values_mut() {
            let changes = std::slice::from_ref(change);
            assert_eq!(client.provider.directory_changed(&mut client.out, changes), Ok(Sent::Queued));
        }
    }

    /// Sends a change of a service to one connection.
    pub(crate) fn change_at(&mut self, connection: usize, change: &ServiceEntry) {
        let id = self.market.connections[connection];
        let client = self.clients.get_mut(&id).unwrap();
        let changes = std::slice::from_ref(change);
        assert_eq!(client.provider.directory_changed(&mut client.out, changes), Ok(Sent::Queued));
    }

    /// Number of open connections.
    pub(crate) fn connected(&self) -> usize {
        self.clients.len()
    }

    /// Closes a connection.
    pub(crate) fn hang_up_at(&mut self, connection: usize) {
        self.flush();
        let id = self.market.connections[connection];
        self.clients.remove(&id);
        self.reactor.close(id);
    }

    /// Closes every connection.
    pub(crate) fn hang_up(&mut self) {
        self.flush();
        for id in std::mem::take(&mut self.clients).into_keys() {
            self.reactor.close(id);
        }
    }

    /// The next line from the consumer on standard error.
    pub(crate) fn line_of_talk(&mut self) -> String {
        let talk = self.child.stderr.as_mut().unwrap();
        let (mut line, mut byte) = (Vec::new(), [0]);
        // Byte by byte: the rest belongs to the outcome.
        while talk.read(&mut byte).unwrap() > 0 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// Starts to listen.
    pub(crate) fn listen(&mut self, port: u16) {
        listen(&mut self.reactor, port);
    }

    /// The consumer's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM to the consumer.
    pub(crate) fn ask_to_end(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }

    fn flush(&mut self) {
        for (id, client) in &mut self.clients {
            let Some(mut sender) = self.reactor.sender(*id) else { continue };
            while let Some(message) = client.out.pop() {
                // The consumer may be gone; otherwise the queue has space.
                assert_ne!(sender.send(&message), rssl::Sent::Full);
            }
        }
        self.reactor.flush();
    }

    fn take(&mut self) {
        let now = Nanos(monotonic_ns());
        let Self { market, reactor, clients, .. } = self;
        let mut over = Vec::new();
        reactor.each(now, |id, event, sender| {
            market.at = Some(id);
            match event {
                rssl::Event::Connected(_) => {
                    market.connections.push(id);
                    let provider = Provider::new(ProviderSettings::default(), now);
                    clients.insert(id, Client { provider, out: Queue::new(64 << 20) });
                }
                rssl::Event::Message(bytes) => {
                    let Some(Client { provider, out }) = clients.get_mut(&id) else { return };
                    // The session ends when the consumer has logged out, or its login was refused.
                    if provider.message(now, bytes, out, market).is_err() {
                        while let Some(message) = out.pop() {
                            let _ = sender.send(&message);
                        }
                        clients.remove(&id);
                        over.push(id);
                    }
                }
                rssl::Event::Closed(_) => _ = clients.remove(&id),
                _ => {}
            }
        });
        over.into_iter().for_each(|id| reactor.close(id));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the consumer against the market. `turn` is called after every wait for events.
pub(crate) fn run(arguments: &[&str], market: Market, turn: impl FnMut(&mut Session)) -> Outcome {
    let mut reactor = Reactor::new(8).unwrap();
    let port = listen(&mut reactor, 0);
    run_at(reactor, port, arguments, market, turn)
}

/// Listens at a port (0 takes a free port), and returns the port.
pub(crate) fn listen(reactor: &mut Reactor, port: u16) -> u16 {
    let settings =
        rssl::ConnectionSettings { guaranteed_output_buffers: 4000, ..rssl::ConnectionSettings::default() };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    reactor.listen(address, &Arc::new(settings)).unwrap().port()
}

/// Like [`run`], with a reactor that listens at `port`, or will listen later.
pub(crate) fn run_at(
    reactor: Reactor,
    port: u16,
    arguments: &[&str],
    market: Market,
    mut turn: impl FnMut(&mut Session),
) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let server = format!("127.0.0.1:{port}");
    let mut all = vec!["omm", "consumer", "--server", &server, "--format", "json", "--run-folder", "run"];
    all.extend(arguments);
    let child = stage::tapeline(&all)
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut session = Session { market, reactor, clients: BTreeMap::new(), child };
    let status = loop {
        session.reactor.wait(Duration::from_millis(10)).unwrap();
        session.take();
        turn(&mut session);
        session.flush();
        if let Some(status) = session.child.try_wait().unwrap() {
            break status;
        }
    };
    let (mut record, mut talk) = (String::new(), String::new());
    session.child.stdout.take().unwrap().read_to_string(&mut record).unwrap();
    session.child.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
    let record = serde_json::from_str(&record).unwrap_or(Value::Null);
    let market = std::mem::take(&mut session.market);
    Outcome { record, talk, is_success: status.success(), market }
}

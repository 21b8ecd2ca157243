//! The other end of a performance tool, message by message: a consumer, or a hub.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::Nanos;
use tapeline_omm::domain::standby::ConnectionStatus;
use tapeline_omm::domain::{LoginFeatures, LoginRefresh, LoginRequest, RoundTrip, directory};
use tapeline_omm::rwf::{
    CloseHeader, Container, DataType, Domain, GenericHeader, Header, Key, MessageClass, MessageView, NakCode,
    PostHeader, PostUserInfo, RequestHeader, StateCode, StreamState, flags,
};
use tapeline_omm::{Fid, FieldList, FieldListEncoder, Real, Refused};
use tapeline_wire::rssl::{ConnectionId, ConnectionSettings, Event, Reactor, Sent};

use super::stage;

/// The contents of messages, each identified by its bid.
pub(crate) const MESSAGES: &str = r#"<msgFormat>
<marketPriceMsgList>
  <refreshMsg><dataBody><fieldList>
    <fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="100"/>
  </fieldList></dataBody></refreshMsg>
  <updateMsg><dataBody><fieldList>
    <fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="101"/>
  </fieldList></dataBody></updateMsg>
  <updateMsg><dataBody><fieldList>
    <fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="102"/>
  </fieldList></dataBody></updateMsg>
  <updateMsg><dataBody><fieldList>
    <fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="103"/>
  </fieldList></dataBody></updateMsg>
  <genMsg><dataBody><fieldList>
    <fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="71"/>
  </fieldList></dataBody></genMsg>
</marketPriceMsgList>
<marketByOrderMsgList>
  <refreshMsg><dataBody><map>
    <mapEntry action="RSSL_MPEA_ADD_ENTRY" key="A"><fieldList>
      <fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="200"/>
    </fieldList></mapEntry>
  </map></dataBody></refreshMsg>
  <updateMsg><dataBody><map>
    <mapEntry action="RSSL_MPEA_UPDATE_ENTRY" key="A"><fieldList>
      <fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="201"/>
    </fieldList></mapEntry>
  </map></dataBody></updateMsg>
  <genMsg><dataBody><map>
    <mapEntry action="RSSL_MPEA_UPDATE_ENTRY" key="A"><fieldList>
      <fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="271"/>
    </fieldList></mapEntry>
  </map></dataBody></genMsg>
</marketByOrderMsgList>
</msgFormat>
"#;

/// A running tool in its own folder, which contains [`MESSAGES`].
pub(crate) struct Tool {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) folder: tempfile::TempDir,
}

impl Tool {
    /// Starts a tool; its standard error is that of the test.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("MsgData.xml"), MESSAGES).unwrap();
        let mut command = stage::tapeline(arguments);
        let mut child = command.current_dir(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output, folder }
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Whether it is still running.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the first printed line with this beginning, and returns it.
    pub(crate) fn line(&mut self, begin: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended without '{begin}'");
            if line.starts_with(begin) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// The port from its line on the listening address.
    pub(crate) fn port(&mut self) -> u16 {
        let line = self.line("listening at ");
        let port = line.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        port.unwrap_or_else(|| panic!("where it listens: {line:?}"))
    }

    /// The rest of its output, until it has ended.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap();
        rest
    }

    /// Waits until it ends by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.wait()
    }

    /// Stops it with SIGTERM and returns its exit status. Its files exist until this is dropped.
    pub(crate) fn end(&mut self) -> ExitStatus {
        rustix::process::kill_process(self.pid(), rustix::process::Signal::TERM).unwrap();
        self.wait()
    }

    /// A file that it wrote.
    pub(crate) fn file(&self, name: &str) -> String {
        let path: PathBuf = self.folder.path().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The record in one of its run folders.
    pub(crate) fn record(&self, folder: &str) -> serde_json::Value {
        serde_json::from_str(&self.file(&format!("{folder}/run.json"))).unwrap()
    }

    fn wait(&mut self) -> ExitStatus {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `tapeline omm provider`.
pub(crate) struct Provider {
    pub(crate) tool: Tool,
    pub(crate) port: u16,
}

impl Provider {
    pub(crate) fn start(more: &[&str]) -> Self {
        let usual = ["omm", "provider", "--port", "0", "--no-display-stats", "--run-time", "100"];
        // A repeated option would be an error.
        let usual: Vec<&str> = match more.contains(&"--run-time") {
            true => usual[..5].to_vec(),
            false => usual.to_vec(),
        };
        let mut tool = Tool::start(&[&usual, more].concat());
        let port = tool.port();
        Self { tool, port }
    }
}

/// A connection at the level of frames.
struct Wire {
    socket: TcpStream,
    received: Vec<u8>,
}

/// A connect request of version 14.
const CONNECT: [u8; 19] = [0, 19, 0, 0, 0, 0, 0x17, 0, 17, 0, 30, 0, 0, 14, 1, 0, 0, 1, 0];
const DATA: u8 = 2;
const PACKED: u8 = 0x10;

impl Wire {
    fn connect(port: u16) -> Self {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.write_all(&CONNECT).unwrap();
        let mut wire = Self { socket, received: Vec::new() };
        wire.frame().expect("an answer to the connect request");
        wire
    }

    /// The next frame's flags and payload; `None` at the end of the connection.
    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let [high, low, flags, ..] = self.received[..] {
                let len = usize::from(u16::from_be_bytes([high, low]));
                if self.received.len() >= len {
                    let payload = self.received[3..len].to_vec();
                    self.received.drain(..len);
                    return Some((flags, payload));
                }
            }
            let mut bytes = [0; 65_536];
            match self.socket.read(&mut bytes) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
            }
        }
    }

    /// The messages of the next frame that is not empty.
    fn messages(&mut self) -> Option<Vec<Vec<u8>>> {
        loop {
            let (flags, payload) = self.frame()?;
            if flags & PACKED != 0 {
                let (mut rest, mut messages) = (&payload[..], Vec::new());
                while let [high, low, behind @ ..] = rest {
                    let (message, next) = behind.split_at(usize::from(u16::from_be_bytes([*high, *low])));
                    messages.push(message.to_vec());
                    rest = next;
                }
                return Some(messages);
            }
            assert_eq!(flags, DATA, "fragments are not looked at here");
            if !payload.is_empty() {
                return Some(vec![payload]);
            }
        }
    }

    fn say(&mut self, write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>) {
        let mut frame = vec![0; 6147];
        let len = 3 + write(&mut frame[3..]).unwrap();
        frame[..3].copy_from_slice(&[(len >> 8) as u8, len as u8, DATA]);
        self.socket.write_all(&frame[..len]).unwrap();
    }
}

/// A received message.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    class: MessageClass,
    pub(crate) stream: i32,
    pub(crate) domain: Domain,
    pub(crate) container: DataType,
    /// The payload.
    pub(crate) bytes: Vec<u8>,
    /// TIM_TRK_1 or 3, TIM_TRK_2, TIM_TRK_4.
    pub(crate) sent: Option<u64>,
    pub(crate) posted: Option<u64>,
    pub(crate) due: Option<u64>,
    /// 0 without a bid.
    pub(crate) bid: i64,
    pub(crate) name: Option<String>,
    /// The state of a status.
    pub(crate) state: Option<(StreamState, StateCode)>,
    pub(crate) ack: Option<(u32, Option<NakCode>)>,
    pub(crate) post_user_info: Option<PostUserInfo>,
}

impl Heard {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let message = MessageView::parse(bytes).unwrap();
        let header = message.header().unwrap();
        let mut heard = Self {
            class: message.class(),
            stream: message.stream_id(),
            domain: message.domain(),
            container: message.container(),
            bytes: message.payload().to_vec(),
            sent: None,
            posted: None,
            due: None,
            bid: 0,
            name: message
                .key()
                .unwrap()
                .and_then(|key| Some(String::from_utf8_lossy(key.name?).into_owned())),
            state: None,
            ack: None,
            post_user_info: None,
        };
        match header {
            Header::Status(status) => heard.state = status.state.map(|state| (state.stream, state.code)),
            Header::Ack(ack) => heard.ack = Some((ack.ack_id, ack.nak_code)),
            Header::Update(update) => heard.post_user_info = update.post_user_info,
            _ => {}
        }
        match message.open().unwrap() {
            Container::FieldList(list) => heard.look_at(&list),
            Container::Map(map) => {
                if let Some(summary) = map.head().summary {
                    heard.look_at(&FieldList::parse(summary).unwrap());
                }
            }
            _ => {}
        }
        heard
    }

    fn look_at(&mut self, list: &FieldList<'_>) {
        for field in list.iter() {
            let field = field.unwrap();
            match field.fid {
                Fid(22) => self.bid = field.real().unwrap().unwrap().to_string().parse().unwrap(),
                Fid(3902 | 3904) => self.sent = field.uint().unwrap(),
                Fid(3903) => self.posted = field.uint().unwrap(),
                Fid(3905) => self.due = field.uint().unwrap(),
                _ => {}
            }
        }
    }

    pub(crate) fn is_update(&self) -> bool {
        self.class == MessageClass::UPDATE && self.is_of_item()
    }

    pub(crate) fn is_image(&self) -> bool {
        self.class == MessageClass::REFRESH && self.is_of_item()
    }

    pub(crate) fn is_generic(&self) -> bool {
        self.class == MessageClass::GENERIC && self.is_of_item()
    }

    pub(crate) fn is_ack(&self) -> bool {
        self.class == MessageClass::ACK
    }

    fn is_of_item(&self) -> bool {
        !matches!(self.domain, Domain::LOGIN | Domain::SOURCE | Domain::DICTIONARY)
    }
}

/// A consumer.
pub(crate) struct Peer {
    wire: Wire,
    heard: Vec<Heard>,
    /// The streams of the first item and of the next item.
    pub(crate) first: i32,
    pub(crate) next: i32,
    /// The number of the service for item requests.
    pub(crate) service: u16,
}

const STREAMS_OF_ITEMS: i32 = 5;

impl Peer {
    pub(crate) fn log_in(port: u16) -> Self {
        Self::log_in_with(port, &LoginRequest::new(b"user"))
    }

    pub(crate) fn log_in_with(port: u16, request: &LoginRequest<'_>) -> Self {
        let mut wire = Wire::connect(port);
        wire.say(|room| request.encode(room));
        let (first, next) = (STREAMS_OF_ITEMS, STREAMS_OF_ITEMS);
        let mut peer = Self { wire, heard: Vec::new(), first, next, service: 1 };
        peer.until(|heard| heard.iter().any(|heard| heard.domain == Domain::LOGIN));
        peer
    }

    /// Receives until `so` returns true; returns all messages since the last call.
    pub(crate) fn until(&mut self, so: impl Fn(&[Heard]) -> bool) -> Vec<Heard> {
        while !so(&self.heard) {
            let messages = self.wire.messages().unwrap_or_else(|| {
                let last = self.heard.last();
                panic!("the connection has ended after {} messages, the last {last:?}", self.heard.len())
            });
            self.heard.extend(messages.iter().map(|message| Heard::new(message)));
        }
        std::mem::take(&mut self.heard)
    }

    /// Receives until the provider begins a round trip, and answers it if requested.
    pub(crate) fn round_trip(&mut self, answers: bool) {
        let is_trip =
            |message: &Vec<u8>| RoundTrip::read(&MessageView::parse(message).unwrap()).unwrap().is_some();
        let trip = loop {
            if let Some(trip) = self.wire.messages().unwrap().into_iter().find(is_trip) {
                break trip;
            }
        };
        if answers {
            self.wire.say(|room| {
                room.get_mut(..trip.len()).ok_or(Refused::Full)?.copy_from_slice(&trip);
                Ok(trip.len())
            });
        }
    }

    /// Receives until the connection is closed; returns all messages since the last call.
    pub(crate) fn until_closed(&mut self) -> Vec<Heard> {
        while let Some(messages) = self.wire.messages() {
            self.heard.extend(messages.iter().map(|message| Heard::new(message)));
        }
        std::mem::take(&mut self.heard)
    }

    /// Number and name of each service.
    pub(crate) fn services(&mut self) -> Vec<(u16, String)> {
        let key = Key { filter: Some(directory::filter::ALL), ..Key::default() };
        let header = RequestHeader::new(Domain::SOURCE, 2, key);
        self.wire.say(|room| RequestHeader { flags: flags::request::STREAMING, ..header }.encode(room));
        let heard = self.until(|heard| heard.iter().any(|heard| heard.domain == Domain::SOURCE));
        let directory = heard.iter().find(|heard| heard.domain == Domain::SOURCE).unwrap();
        directory.services()
    }

    /// Opens an item.
    pub(crate) fn open(&mut self, domain: Domain, name: &str) {
        let header = RequestHeader::new(domain, self.next, Key::item(self.service, name.as_bytes()));
        let header = RequestHeader { flags: flags::request::STREAMING, ..header };
        self.wire.say(|room| header.encode(room));
        self.next += 1;
    }

    /// Opens `count` items in MarketPrice.
    pub(crate) fn open_all(&mut self, count: usize) {
        (0..count).for_each(|number| self.open(Domain::MARKET_PRICE, &format!("RDT{number}")));
    }

    /// Opens `count` items in MarketPrice at once: all requests are in one frame.
    pub(crate) fn open_together(&mut self, count: usize) {
        let mut frame = vec![0; 3];
        for number in 0..count {
            let name = format!("PACK{number}");
            let key = Key::item(self.service, name.as_bytes());
            let header = RequestHeader::new(Domain::MARKET_PRICE, self.next, key);
            let header = RequestHeader { flags: flags::request::STREAMING, ..header };
            let mut room = [0; 256];
            let len = header.encode(&mut room).unwrap();
            frame.extend((len as u16).to_be_bytes());
            frame.extend(&room[..len]);
            self.next += 1;
        }
        let [high, low] = (frame.len() as u16).to_be_bytes();
        frame[..3].copy_from_slice(&[high, low, DATA | PACKED]);
        self.wire.socket.write_all(&frame).unwrap();
    }

    /// Sends the provider its server type: on the login stream, or on the directory stream, which must be open.
    pub(crate) fn tell(&mut self, status: &ConnectionStatus) {
        let stream = if matches!(status, ConnectionStatus::Login(_)) { 1 } else { 2 };
        self.wire.say(|room| status.encode(stream, room));
    }

    pub(crate) fn close(&mut self, stream: i32) {
        self.wire.say(|room| CloseHeader::new(Domain::MARKET_PRICE, stream).encode(room));
    }

    /// Posts a bid of 55 with this time, on an item's stream or on the login stream.
    pub(crate) fn post(&mut self, stream: Option<i32>, id: u32, time: u64) {
        let domain = Domain::MARKET_PRICE;
        let header = PostHeader {
            flags: flags::post::ACK | flags::post::POST_COMPLETE,
            post_id: Some(id),
            ..PostHeader::new(
                domain,
                stream.unwrap_or(1),
                PostUserInfo { address: 1, user_id: 2 },
                DataType::FIELD_LIST,
            )
        };
        self.wire.say(|room| {
            header.encode_with(room, |room| {
                let mut list = FieldListEncoder::new(room)?;
                list.real(Fid(22), Real::integer(55))?;
                list.uint(Fid(3903), time)?;
                Ok(list.finish())
            })
        });
    }

    /// Posts `bytes` opaque bytes without a request for an acknowledgement.
    pub(crate) fn post_bytes(&mut self, stream: i32, bytes: usize) {
        let poster = PostUserInfo { address: 1, user_id: 2 };
        let header = PostHeader {
            flags: flags::post::POST_COMPLETE,
            ..PostHeader::new(Domain::MARKET_PRICE, stream, poster, DataType::OPAQUE)
        };
        self.wire.say(|room| header.encode_with(room, |_| Ok(bytes)));
    }

    /// Receives until an item has its image; returns the number of updates before it.
    pub(crate) fn until_image(&mut self, stream: i32) -> usize {
        let mut updates = 0;
        loop {
            for message in self.wire.messages().expect("it is over") {
                let message = MessageView::parse(&message).unwrap();
                match message.class() {
                    MessageClass::REFRESH if message.stream_id() == stream => return updates,
                    MessageClass::UPDATE => updates += 1,
                    _ => {}
                }
            }
        }
    }

    /// Sends a generic message with the time at which its encoding began and its due time.
    pub(crate) fn generic(&mut self, stream: i32, sent: u64, due: u64) {
        let header = GenericHeader::new(Domain::MARKET_PRICE, stream, DataType::FIELD_LIST);
        self.wire.say(|room| {
            header.encode_with(room, |room| {
                let mut list = FieldListEncoder::new(room)?;
                list.uint(Fid(3904), sent)?;
                list.uint(Fid(3905), due)?;
                Ok(list.finish())
            })
        });
    }

    /// The number of messages in each of the next `frames` frames of updates.
    pub(crate) fn frames_of_updates(&mut self, frames: usize) -> Vec<usize> {
        let mut counts = Vec::new();
        while counts.len() < frames {
            let messages = self.wire.messages().unwrap();
            if messages.iter().all(|message| Heard::new(message).is_update()) {
                counts.push(messages.len());
            }
        }
        counts
    }
}

/// A hub that accepts every login.
pub(crate) struct Hub {
    reactor: Reactor,
    pub(crate) port: u16,
    /// For each connection, in order of connection: its messages, and whether it is closed.
    pub(crate) published: Vec<(ConnectionId, Vec<Heard>, bool)>,
}

impl Hub {
    pub(crate) fn open() -> Self {
        Self::open_with(ConnectionSettings::default())
    }

    pub(crate) fn open_with(settings: ConnectionSettings) -> Self {
        let mut reactor = Reactor::new(10).unwrap();
        let address = reactor.listen("127.0.0.1:0".parse().unwrap(), &Arc::new(settings)).unwrap();
        Self { reactor, port: address.port(), published: Vec::new() }
    }

    /// Receives until `so` returns true.
    pub(crate) fn until(&mut self, so: impl Fn(&Self) -> bool) {
        while !so(self) {
            self.reactor.wait(Duration::from_millis(100)).unwrap();
            let now = Nanos(tapeline_measure::monotonic_ns());
            let Self { reactor, published, .. } = self;
            reactor.each(now, |id, event, sender| match event {
                Event::Connected(_) => published.push((id, Vec::new(), false)),
                Event::Message(bytes) => {
                    let message = MessageView::parse(bytes).unwrap();
                    if let (Domain::LOGIN, Ok(Header::Request(request))) =
                        (message.domain(), message.header())
                    {
                        let request = LoginRequest::read(&request).unwrap();
                        let refresh = LoginRefresh::accepting(&request, LoginFeatures::default());
                        let mut room = [0; 4096];
                        let len = refresh.encode(&mut room).unwrap();
                        assert_eq!(sender.send(&room[..len]), Sent::Queued);
                    }
                    let of_it = published.iter_mut().find(|(of, ..)| *of == id);
                    of_it.unwrap().1.push(Heard::new(bytes));
                }
                Event::Closed(_) => {
                    published.iter_mut().filter(|(of, ..)| *of == id).for_each(|of| of.2 = true);
                }
                _ => {}
            });
        }
    }

    /// The messages from connection `number` so far.
    pub(crate) fn heard(&self, number: usize) -> &[Heard] {
        self.published.get(number).map_or(&[], |(_, heard, _)| heard)
    }

    /// Sends a message on connection `number`.
    pub(crate) fn send(&mut self, number: usize, message: &[u8]) {
        let (id, ..) = self.published[number];
        let mut sender = self.reactor.sender(id).unwrap();
        assert_eq!(sender.send(message), Sent::Queued);
        sender.flush();
    }

    /// Closes all connections.
    pub(crate) fn hang_up(&mut self) {
        self.published.iter().for_each(|(id, ..)| self.reactor.close(*id));
    }
}

impl Heard {
    /// Number and name of each service in a directory.
    pub(crate) fn services(&self) -> Vec<(u16, String)> {
        let entries = directory::services(&self.bytes).unwrap().map(Result::unwrap);
        entries.map(|entry| (entry.id, entry.name().unwrap().to_owned())).collect()
    }

    /// Whether this message closes the login.
    pub(crate) fn is_goodbye(&self) -> bool {
        self.class == MessageClass::CLOSE && self.domain == Domain::LOGIN
    }
}

//! A consumer with its application and its end of the wire: what it sends and what it tells are kept.

use tapeline_nanos::Nanos;
use tapeline_omm::domain::LoginRequest;
use tapeline_omm::role::consumer::{
    Consumer, ConsumerApplication, ConsumerEvent, ConsumerSettings, Handle, ItemRequest, ServiceName,
};
use tapeline_omm::role::{Outbox, Queue};
use tapeline_omm::rwf::{
    DataType, Domain, Header, Key, MessageClass, MessageView, RefreshHeader, StatusHeader, UpdateHeader,
    UpdateType, flags,
};
use tapeline_omm::{Dictionary, State};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// What the application was told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) lines: Vec<String>,
    pub(crate) connects: usize,
    pub(crate) disconnects: usize,
    pub(crate) is_ended: bool,
    pub(crate) is_ready: bool,
    pub(crate) has_dictionary: bool,
    pub(crate) round_trips: usize,
}

impl ConsumerApplication for Told {
    fn event(&mut self, _: &mut Consumer, _: &mut dyn Outbox, event: ConsumerEvent<'_>) {
        let line = match event {
            ConsumerEvent::Connect { attempt } => {
                self.connects += 1;
                format!("connect {attempt}")
            }
            ConsumerEvent::Disconnect => {
                self.disconnects += 1;
                "disconnect".into()
            }
            ConsumerEvent::TimedOut(wait) => format!("timed out: {wait:?}"),
            ConsumerEvent::Login { state, .. } => format!("login {state}"),
            ConsumerEvent::Ended { state } => {
                self.is_ended = true;
                format!("ended {state}")
            }
            ConsumerEvent::TokenDue => "token due".into(),
            ConsumerEvent::Directory(_) => "directory".into(),
            ConsumerEvent::Dictionary(dictionary) => {
                self.has_dictionary = true;
                format!("dictionary of {}", dictionary.len())
            }
            ConsumerEvent::DictionaryFailed(why) => format!("no dictionary: {why}"),
            ConsumerEvent::Ready => {
                self.is_ready = true;
                "ready".into()
            }
            ConsumerEvent::Message { closure, message, is_final, .. } => {
                let state =
                    message.header().unwrap().state().map_or_else(String::new, |state| format!(" {state}"));
                let last = if is_final { ", final" } else { "" };
                format!("item {closure}: {}{state}{last}", message.class())
            }
            ConsumerEvent::State { closure, state, is_final, .. } => {
                format!("item {closure}: {state}{}", if is_final { ", final" } else { "" })
            }
            ConsumerEvent::Ack { item, ack } => {
                format!(
                    "ack {} {:?}{}",
                    ack.ack_id,
                    ack.nak_code.map(|code| code.0),
                    if item.is_none() { " off-stream" } else { "" }
                )
            }
            ConsumerEvent::LoginGeneric(_) => "generic on the login".into(),
            ConsumerEvent::RoundTrip(_) => {
                self.round_trips += 1;
                "round trip".into()
            }
            ConsumerEvent::Malformed(fault) => format!("{fault}"),
            other => format!("{other:?}"),
        };
        self.lines.push(line);
    }
}

/// A consumer at a desk.
pub(crate) struct Desk {
    pub(crate) consumer: Consumer,
    pub(crate) told: Told,
    pub(crate) out: Queue,
    pub(crate) now: Nanos,
    pub(crate) next: Option<Nanos>,
}

impl Desk {
    pub(crate) fn new(settings: ConsumerSettings, login: &LoginRequest<'_>) -> Self {
        Self {
            consumer: Consumer::new(settings, login).unwrap(),
            told: Told::default(),
            out: Queue::new(1 << 24),
            now: Nanos(1_000 * SECOND),
            next: None,
        }
    }

    /// Connected to a provider that let it in and has service 1, `FEED`, of prices.
    pub(crate) fn ready(settings: ConsumerSettings) -> Self {
        let mut desk = Self::new(settings, &LoginRequest::new(b"user"));
        desk.connect();
        desk.log_in(&[]);
        desk.directory(&[(1, "FEED")]);
        assert!(desk.consumer.is_ready());
        desk.told.lines.clear();
        desk
    }

    /// Waits until a connection is wanted.
    pub(crate) fn connect_only(&mut self) {
        self.tick();
        while self.told.lines.last().is_none_or(|line| !line.starts_with("connect")) {
            self.wait();
        }
    }

    pub(crate) fn connect(&mut self) {
        self.connect_only();
        self.consumer.connected(self.now, &mut self.out);
        self.told.lines.clear();
    }

    pub(crate) fn log_in(&mut self, features: &[(&str, u64)]) {
        let request = self.pop_of(Domain::LOGIN);
        assert_eq!(MessageView::parse(&request).unwrap().class(), MessageClass::REQUEST);
        self.feed(&login_refresh(State { text: b"in", ..State::OPEN_OK }, features));
    }

    /// A complete directory of services of prices, each with its dictionaries.
    pub(crate) fn directory(&mut self, services: &[(u16, &str)]) {
        let request = self.pop_of(Domain::SOURCE);
        assert_eq!(MessageView::parse(&request).unwrap().class(), MessageClass::REQUEST);
        let services: Vec<_> =
            services.iter().map(|(id, name)| super::recovery::service(*id, name)).collect();
        let mut out = [0; 4096];
        let len = tapeline_omm::domain::directory::encode_refresh(
            2,
            tapeline_omm::domain::directory::SOLICITED,
            0x3F,
            &services,
            &mut out,
        )
        .unwrap();
        self.feed(&out[..len]);
    }

    pub(crate) fn feed(&mut self, message: &[u8]) {
        self.consumer.message(self.now, message, &mut self.out, &mut self.told);
        self.tick();
    }

    pub(crate) fn tick(&mut self) {
        self.next = self.consumer.tick(self.now, &mut self.out, &mut self.told);
    }

    /// Lets time pass until there is something to do.
    pub(crate) fn wait(&mut self) {
        self.now = self.now.max(self.next.expect("there is something to wait for"));
        self.tick();
    }

    /// Lets time pass until something is sent.
    pub(crate) fn wait_to_send(&mut self) -> Vec<String> {
        while self.out.is_empty() {
            self.wait();
        }
        self.sent()
    }

    /// Lets so much time pass, and does everything in between at its time.
    pub(crate) fn pass(&mut self, ns: u64) {
        let end = self.now + ns;
        while let Some(next) = self.next.filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.tick();
        }
        self.now = end;
        self.tick();
    }

    pub(crate) fn lose_connection(&mut self) {
        self.out = Queue::new(1 << 24);
        self.consumer.disconnected(self.now, &mut self.told);
        self.tick();
    }

    pub(crate) fn open(&mut self, name: &str, closure: u64) -> Handle {
        let request = ItemRequest { closure, ..ItemRequest::new(ServiceName::Name("FEED"), name.as_bytes()) };
        let handle = self.consumer.open(&request).unwrap();
        self.tick();
        handle
    }

    pub(crate) fn pop_of(&mut self, domain: Domain) -> Box<[u8]> {
        let message = self.out.pop().expect("something was sent");
        assert_eq!(MessageView::parse(&message).unwrap().domain(), domain);
        message
    }

    /// What was sent since last time, one line each.
    pub(crate) fn sent(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(message) = self.out.pop() {
            lines.push(brief(&message));
        }
        lines
    }

    /// What was told since last time.
    pub(crate) fn heard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told.lines)
    }
}

/// A message in a line: class, stream, name, and the flags that matter.
pub(crate) fn brief(message: &[u8]) -> String {
    let view = MessageView::parse(message).unwrap();
    let header = view.header().unwrap();
    let name = header.key().and_then(|key| key.name).map(String::from_utf8_lossy).unwrap_or_default();
    let mut line = format!("{} {}", view.class(), view.stream_id());
    if !name.is_empty() {
        line += &format!(" {name}");
    }
    if let Header::Request(request) = header {
        for (flag, word) in [
            (flags::request::NO_REFRESH, "no-refresh"),
            (flags::request::PAUSE, "pause"),
            (flags::request::PRIVATE_STREAM, "private"),
            (flags::request::HAS_VIEW, "view"),
            (flags::request::HAS_BATCH, "batch"),
        ] {
            if request.flags.has(flag) {
                line += &format!(" {word}");
            }
        }
        if !request.flags.has(flags::request::STREAMING) {
            line += " snapshot";
        }
    }
    line
}

pub(crate) fn login_refresh(state: State<'_>, features: &[(&str, u64)]) -> Vec<u8> {
    let mut attributes = [0; 512];
    let mut list = tapeline_omm::rwf::ElementListEncoder::new(&mut attributes).unwrap();
    for (name, value) in features {
        list.uint(name, *value).unwrap();
    }
    let len = list.finish();
    let attributes =
        tapeline_omm::rwf::Attributes { container: DataType::ELEMENT_LIST, data: &attributes[..len] };
    let header = RefreshHeader {
        flags: flags::refresh::SOLICITED | flags::refresh::REFRESH_COMPLETE,
        key: Some(Key { name: Some(b"user"), attributes: Some(attributes), ..Key::default() }),
        ..RefreshHeader::new(Domain::LOGIN, 1, state, DataType::NO_DATA)
    };
    encode(|out| header.encode(out))
}

pub(crate) fn encode(write: impl FnOnce(&mut [u8]) -> Result<usize, tapeline_omm::Refused>) -> Vec<u8> {
    let mut out = vec![0; 4096];
    let len = write(&mut out).unwrap();
    out.truncate(len);
    out
}

/// An empty image of prices.
pub(crate) fn image(id: i32, group: &[u8], state: State<'_>, extra: flags_of::Refresh) -> Vec<u8> {
    let header = RefreshHeader {
        flags: extra,
        group_id: group,
        ..RefreshHeader::new(Domain::MARKET_PRICE, id, state, DataType::FIELD_LIST)
    };
    encode(|out| header.encode(out))
}

pub(crate) mod flags_of {
    use tapeline_omm::rwf::Flags;
    use tapeline_omm::rwf::flags::refresh;

    pub(crate) type Refresh = Flags;
    pub(crate) const SOLICITED: Flags = Flags(refresh::SOLICITED.0 | refresh::REFRESH_COMPLETE.0);
    pub(crate) const PART: Flags = refresh::SOLICITED;
    pub(crate) const UNSOLICITED: Flags = refresh::REFRESH_COMPLETE;
}

/// The whole image that answers a request.
pub(crate) fn answer(id: i32) -> Vec<u8> {
    image(id, &[0, 1], State::OPEN_OK, flags_of::SOLICITED)
}

pub(crate) fn update(id: i32) -> Vec<u8> {
    let header = UpdateHeader::new(Domain::MARKET_PRICE, id, UpdateType::QUOTE, DataType::FIELD_LIST);
    encode(|out| header.encode(out))
}

pub(crate) fn status(id: i32, state: State<'_>) -> Vec<u8> {
    let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, id) };
    encode(|out| header.encode(out))
}

/// A message as people read it, by which two are compared: what it means and not how its lengths are written.
pub(crate) fn outline(message: &[u8]) -> String {
    MessageView::parse(message).unwrap().outline(Dictionary::builtin()).to_string()
}

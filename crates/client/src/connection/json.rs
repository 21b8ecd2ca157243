//! A connection that speaks simplified JSON: messages into texts, and back.

use std::sync::Arc;

use tapeline_omm::Dictionary;
use tapeline_omm::domain::Directory;
pub use tapeline_omm::json::JsonSettings;
use tapeline_omm::json::{Converter, MessageKind, Pack, Packed, PackedPlace, ServiceNames};
use tapeline_omm::rwf::{
    DataType, Domain, ElementListEncoder, Header, MessageClass, MessageView, RefreshHeader,
};

use super::texts::SharedTexts;
use super::{KEPT_CAPACITY, MOST_MALFORMED, Side};

/// The most bytes of RWF that [`Json::with_limits`] adds to a message.
const LIMITS: usize = 64;

/// The JSON converter of one connection.
#[derive(Debug)]
pub(super) struct Json {
    pub(super) meaning: Meaning,
    /// Seconds of silence after which the connection is closed.
    ping_timeout: u8,
    /// The longest text that the peer may send.
    max_received_bytes: usize,
    /// The text that is sent next.
    pub(super) text: Vec<u8>,
    /// Texts that connections of the same thread have made.
    pub(super) texts: Option<SharedTexts>,
}

/// The names of fields and services, and the conversion settings. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    side: Side,
    pub(super) dictionary: Arc<Dictionary>,
    services: Arc<Names>,
    /// Services are written as numbers, not names. Follows the form that the peer uses.
    pub(super) numbers_services: bool,
    settings: JsonSettings,
}

impl PartialEq for Meaning {
    fn eq(&self, other: &Self) -> bool {
        self.side == other.side
            && self.settings == other.settings
            && self.numbers_services == other.numbers_services
            && Arc::ptr_eq(&self.dictionary, &other.dictionary)
            && (Arc::ptr_eq(&self.services, &other.services) || self.services == other.services)
    }
}

/// Ids and names of services.
#[derive(Debug, Default, PartialEq)]
struct Names(Vec<(u16, String)>);

impl ServiceNames for Names {
    fn id(&self, name: &str) -> Option<u16> {
        self.0.iter().find(|(_, other)| other == name).map(|(id, _)| *id)
    }

    fn name(&self, id: u16) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == id).map(|(_, name)| name.as_str())
    }
}

/// Ids of services, for a peer that names services by number: LSEG's Java tools accept no other form.
#[derive(Debug)]
struct Numbers<'a>(&'a Names);

impl ServiceNames for Numbers<'_> {
    fn id(&self, name: &str) -> Option<u16> {
        self.0.id(name)
    }

    fn name(&self, _id: u16) -> Option<&str> {
        None
    }
}

/// The result of reading one part of a received text.
pub(super) enum Step<'a> {
    /// The peer changed between numbers and names of services; the message that did so follows.
    Form { numbers_services: bool },
    /// A message, as RWF.
    Message(&'a [u8]),
    /// A message or text cannot be read, with the reason. On a server an answer follows.
    Unreadable(String),
    /// The peer could not read a message, with the reason.
    Complaint(&'a str),
    /// A text to be sent back.
    Answer(&'a [u8]),
}

impl Json {
    pub(super) fn new(
        side: Side,
        ping_timeout: u8,
        max_received_bytes: usize,
        dictionary: &Arc<Dictionary>,
        settings: JsonSettings,
    ) -> Self {
        let meaning = Meaning {
            side,
            dictionary: Arc::clone(dictionary),
            services: Arc::default(),
            numbers_services: false,
            settings,
        };
        Self { meaning, ping_timeout, max_received_bytes, text: Vec::new(), texts: None }
    }

    pub(super) fn set_services(&mut self, directory: &Directory) {
        let named = directory.services().filter_map(|service| Some((service.id, service.name()?.to_owned())));
        self.meaning.services = Arc::new(Names(named.collect()));
    }

    /// Converts a message to text.
    ///
    /// # Errors
    /// The reason why the message cannot be converted: JSON cannot express every message.
    pub(super) fn write(&mut self, message: &[u8]) -> Result<(), String> {
        if self.text.capacity() > KEPT_CAPACITY {
            self.text = Vec::new();
        }
        self.text.clear();
        if let Some(texts) = &self.texts
            && texts.give(&self.meaning, message, &mut self.text)
        {
            return Ok(());
        }
        self.make(message)?;
        if let Some(texts) = &self.texts {
            texts.keep(&self.meaning, message, &self.text);
        }
        Ok(())
    }

    fn make(&mut self, message: &[u8]) -> Result<(), String> {
        let with_limits = self.with_limits(message);
        let numbers = Numbers(&self.meaning.services);
        let services: &dyn ServiceNames =
            if self.meaning.numbers_services { &numbers } else { &*self.meaning.services };
        let converter = self.meaning.converter(services);
        let message = MessageView::parse(with_limits.as_deref().unwrap_or(message));
        message.map_err(|fault| fault.to_string()).and_then(|message| {
            let written = match self.meaning.side {
                Side::Client => converter.write(&message, &mut self.text),
                Side::Server => {
                    let mut pack = Pack::new(&mut self.text);
                    let written = pack.message(&converter, &message);
                    pack.finish();
                    written
                }
            };
            written.map(|_| ()).map_err(|fault| fault.to_string())
        })
    }

    /// Adds `MaxMsgSize` and `PingTimeout` to a server's login refresh without contents. Clients of the WebSocket API
    /// read the ping interval there, and some need the elements to proceed.
    fn with_limits(&self, message: &[u8]) -> Option<Vec<u8>> {
        let message = MessageView::parse(message).ok().filter(|message| {
            self.meaning.side == Side::Server
                && (message.domain(), message.container()) == (Domain::LOGIN, DataType::NO_DATA)
        })?;
        let Ok(Header::Refresh(header)) = message.header() else { return None };
        let header = RefreshHeader { container: DataType::ELEMENT_LIST, ..header };
        let mut bytes = vec![0; message.header_len() + LIMITS];
        let written = header.encode_with(&mut bytes, |room| {
            let mut list = ElementListEncoder::new(room)?;
            list.uint("MaxMsgSize", self.max_received_bytes as u64)?;
            list.uint("PingTimeout", self.ping_timeout.into())?;
            Ok(list.finish())
        });
        bytes.truncate(written.ok()?);
        Some(bytes)
    }
}

impl Meaning {
    fn converter<'a>(&'a self, services: &'a dyn ServiceNames) -> Converter<'a> {
        let mut settings = self.settings;
        if self.side == Side::Server {
            // A client of the WebSocket API names a service only if it is not the default service.
            let first = || self.services.0.first().map(|(id, _)| *id);
            settings.default_service = settings.default_service.or_else(first);
        }
        Converter { dictionary: &self.dictionary, services, settings }
    }

    /// Reads the messages of a text, from its start or from a place in it, until they total `bytes` bytes. Returns the
    /// place of the next message. Both ends skip an unreadable message; a server also answers it. After
    /// [`MOST_MALFORMED`] unreadable messages the rest is skipped.
    pub(super) fn read<E>(
        &self,
        received: &[u8],
        from: Option<PackedPlace>,
        mut bytes: usize,
        mut each: impl FnMut(Step<'_>) -> Result<(), E>,
    ) -> Result<Option<PackedPlace>, E> {
        let mut most = MOST_MALFORMED;
        let mut answer = Vec::new();
        let text = String::from_utf8_lossy(received);
        let parsed = from.map_or_else(|| Packed::parse(&text), |place| Ok(Packed::resume(&text, &place)));
        let mut messages = match parsed {
            Ok(messages) => messages,
            Err(fault) => {
                each(Step::Unreadable(fault.to_string()))?;
                if self.side == Side::Server {
                    let mut pack = Pack::new(&mut answer);
                    pack.error(&fault, &text);
                    pack.finish();
                    each(Step::Answer(&answer))?;
                }
                return Ok(None);
            }
        };
        let converter = self.converter(&*self.services);
        let mut room = Vec::new();
        let mut form = self.numbers_services;
        while bytes > 0
            && let Some(incoming) = messages.next()
        {
            bytes = bytes.saturating_sub(incoming.text().len());
            if most == 0 {
                return Ok(None);
            }
            answer.clear();
            let mut pack = Pack::new(&mut answer);
            match incoming.kind() {
                MessageKind::Ping => pack.pong(),
                MessageKind::Pong => {}
                MessageKind::Error => each(Step::Complaint(&incoming.error_text().unwrap_or_default()))?,
                MessageKind::Message => match converter.read(&incoming, &mut room) {
                    Ok(message) => {
                        // Not checked for updates: they are frequent and seldom have a key.
                        if !is_update(message)
                            && let Some(numbers_services) = incoming.numbers_service()
                            && numbers_services != form
                        {
                            form = numbers_services;
                            each(Step::Form { numbers_services })?;
                        }
                        each(Step::Message(message))?;
                    }
                    Err(fault) => {
                        most -= 1;
                        each(Step::Unreadable(fault.to_string()))?;
                        if self.side == Side::Server {
                            pack.error(&fault, &text);
                        }
                    }
                },
            }
            let is_owed = !pack.is_empty();
            pack.finish();
            if is_owed {
                each(Step::Answer(&answer))?;
            }
        }
        Ok(messages.place())
    }
}

pub(super) fn is_update(message: &[u8]) -> bool {
    message.get(2).is_some_and(|class| class & 0x1F == MessageClass::UPDATE.0)
}

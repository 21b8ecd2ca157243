//! A connection that speaks simplified JSON: messages into texts, and back.

use std::sync::Arc;

use tapeline_omm::Dictionary;
use tapeline_omm::domain::Directory;
use tapeline_omm::json::{Converter, Kind, Pack, Packed, Services};
use tapeline_omm::rwf::MessageView;

use super::Side;

/// Room that is kept for the next text; more is given back.
const KEPT: usize = 64 << 10;

/// One connection's.
#[derive(Debug)]
pub(super) struct Json {
    side: Side,
    dictionary: Arc<Dictionary>,
    services: Arc<Names>,
    /// The text that is sent next.
    text: Vec<u8>,
}

/// Ids and names of services.
#[derive(Debug, Default)]
struct Names(Vec<(u16, String)>);

impl Services for Names {
    fn id(&self, name: &str) -> Option<u16> {
        self.0.iter().find(|(_, other)| other == name).map(|(id, _)| *id)
    }

    fn name(&self, id: u16) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == id).map(|(_, name)| name.as_str())
    }
}

/// What is to be done about something that came.
pub(super) enum Step<'a> {
    /// A message, as RWF.
    Message(&'a [u8]),
    /// A text to be sent back.
    Answer(&'a [u8]),
}

impl Json {
    pub(super) fn new(side: Side, dictionary: &Arc<Dictionary>) -> Self {
        Self { side, dictionary: Arc::clone(dictionary), services: Arc::default(), text: Vec::new() }
    }

    pub(super) fn set_services(&mut self, directory: &Directory) {
        let named = directory.services().filter_map(|service| Some((service.id, service.name()?.to_owned())));
        self.services = Arc::new(Names(named.collect()));
    }

    pub(super) fn set_dictionary(&mut self, dictionary: &Arc<Dictionary>) {
        self.dictionary = Arc::clone(dictionary);
    }

    /// Makes the text of a message. Whether there is one: what cannot be said in JSON is said on standard error, and not
    /// sent.
    pub(super) fn write(&mut self, message: &[u8]) -> bool {
        if self.text.capacity() > KEPT {
            self.text = Vec::new();
        }
        self.text.clear();
        let converter = Converter::new(&self.dictionary, &*self.services);
        let written = MessageView::parse(message).map_err(|fault| fault.to_string()).and_then(|message| {
            let written = match self.side {
                Side::Client => converter.write(&message, &mut self.text),
                Side::Server => {
                    let mut pack = Pack::new(&mut self.text);
                    let written = pack.message(&converter, &message);
                    pack.finish();
                    written
                }
            };
            written.map_err(|fault| fault.to_string())
        });
        if let Err(fault) = &written {
            anstream::eprintln!("note: a message cannot be sent as JSON: {fault}");
        }
        written.is_ok()
    }

    /// The text that was made last.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// What reads texts, apart from what writes them: both are needed at once.
    pub(super) fn reading(&self) -> Reading {
        Reading {
            side: self.side,
            dictionary: Arc::clone(&self.dictionary),
            services: Arc::clone(&self.services),
        }
    }
}

/// How texts are read.
pub(super) struct Reading {
    side: Side,
    dictionary: Arc<Dictionary>,
    services: Arc<Names>,
}

impl Reading {
    /// Takes a text apart. What cannot be read is answered by a server, and passed over by both.
    pub(super) fn read<E>(
        &self,
        received: &[u8],
        mut each: impl FnMut(Step<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut answer = Vec::new();
        let text = String::from_utf8_lossy(received);
        let messages = match Packed::parse(&text) {
            Ok(messages) => messages,
            Err(fault) => {
                anstream::eprintln!("note: a text cannot be read: {fault}");
                if self.side == Side::Server {
                    let mut pack = Pack::new(&mut answer);
                    pack.error(&fault, &text);
                    pack.finish();
                    each(Step::Answer(&answer))?;
                }
                return Ok(());
            }
        };
        let converter = Converter::new(&self.dictionary, &*self.services);
        let mut room = Vec::new();
        for incoming in messages {
            answer.clear();
            let mut pack = Pack::new(&mut answer);
            match incoming.kind() {
                Kind::Ping => pack.pong(),
                Kind::Pong => {}
                Kind::Error => {
                    let why = incoming.error_text().unwrap_or_default();
                    anstream::eprintln!("note: the peer could not read a message: {}", why.escape_debug());
                }
                Kind::Message => match converter.read(&incoming, &mut room) {
                    Ok(message) => each(Step::Message(message))?,
                    Err(fault) => {
                        anstream::eprintln!("note: a message cannot be read: {fault}");
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
        Ok(())
    }
}

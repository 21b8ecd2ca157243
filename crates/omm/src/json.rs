//! Simplified JSON, as WebSocket clients use it under the sub-protocols `tr_json2` and `rssl.json.v2`: conversion of
//! RWF messages to text and back, based on a dictionary.
//!
//! * [`Converter::write`] appends the text of a message to the caller's buffer; [`Pack`] puts several messages into the
//!   array that a server must always send;
//! * [`Packed`] splits a text into its messages without copying. Pings and pongs are for the caller;
//!   [`Converter::read`] converts the other messages to RWF bytes. A [`Fault`] describes an invalid message, and
//!   [`Pack::error`] writes the answer to it.
//!
//! ```
//! use tapeline_omm::json::{Converter, MessageKind, Pack, Packed};
//! use tapeline_omm::{Dictionary, rwf::MessageView};
//!
//! let services = [(1, "DIRECT_FEED")];
//! let converter = Converter::new(Dictionary::builtin(), &services);
//! let text = r#"{"ID":5,"Type":"Update","Key":{"Service":"DIRECT_FEED","Name":"A"},"Fields":{"BID":39.90}}"#;
//! let (mut room, mut out) = (Vec::new(), Vec::new());
//! let mut pack = Pack::new(&mut out);
//! for incoming in Packed::parse(text)? {
//!     match incoming.kind() {
//!         MessageKind::Ping => pack.pong(),
//!         MessageKind::Message => {
//!             let message = MessageView::parse(converter.read(&incoming, &mut room)?)?;
//!             pack.message(&converter, &message)?;
//!         }
//!         MessageKind::Pong | MessageKind::Error => {}
//!     }
//! }
//! pack.finish();
//! let back = r#"[{"ID":5,"Type":"Update","UpdateType":"Unspecified","Key":{"Service":"DIRECT_FEED","Name":"A"},"Fields":{"BID":39.90}}]"#;
//! assert_eq!(str::from_utf8(&out)?, back);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sources: the public specification of LSEG's WebSocket API, and the behaviour of EMA/ETA Java 3.9.1. Where the two
//! differ, and where that library loses data, this module follows the specification or the plain meaning:
//!
//! * numbers that JSON lacks are written quoted (`"Inf"`, `"-Inf"`, `"NaN"`) and read both ways; decimals keep their
//!   digits (`40.00` is four digits with two places, not `400` with one) up to 14 places; a FLOAT of `1` is 1, not 0;
//! * an unknown display text of an enumerated field is a fault, not blank; a code without a name is written as its
//!   number, not as `null`; characters that ASCII_STRING cannot hold are a fault, and RMTES text is written as RMTES;
//! * a batch may have any length, and Close, Request and Update accept an array of ids; elements of a request (symbol
//!   list behaviours) and flags are preserved; `Complete` of a Post is written;
//! * a date without a time, a time without a date, and a blank between the two are accepted;
//! * an element of no data is written with `null`, entries of a series without data as `{}`;
//! * `:ViewType` is written for views of names only.

mod fault;
mod names;
mod pack;
mod read;
mod scan;
mod short;
mod text;
mod write;

use crate::Dictionary;

pub use fault::{Fault, JsonProblem, WriteError};
pub use pack::Pack;
pub use scan::{Incoming, MessageKind, Packed, PackedPlace};

/// Ids and names of services. Implemented by the owner of the directory.
pub trait ServiceNames: std::fmt::Debug {
    /// Returns the id of a service; `None` if the service does not exist.
    fn id(&self, name: &str) -> Option<u16>;

    /// Returns the name of a service; for `None`, the id is written as a number.
    fn name(&self, id: u16) -> Option<&str>;
}

/// No services: ids stay numbers, and every name is unknown.
impl ServiceNames for () {
    fn id(&self, _name: &str) -> Option<u16> {
        None
    }

    fn name(&self, _id: u16) -> Option<&str> {
        None
    }
}

impl<S: AsRef<str> + std::fmt::Debug> ServiceNames for [(u16, S)] {
    fn id(&self, name: &str) -> Option<u16> {
        self.iter().find(|(_, other)| other.as_ref() == name).map(|(id, _)| *id)
    }

    fn name(&self, id: u16) -> Option<&str> {
        self.iter().find(|(other, _)| *other == id).map(|(_, name)| name.as_ref())
    }
}

impl<S: AsRef<str> + std::fmt::Debug, const N: usize> ServiceNames for [(u16, S); N] {
    fn id(&self, name: &str) -> Option<u16> {
        self.as_slice().id(name)
    }

    fn name(&self, id: u16) -> Option<&str> {
        self.as_slice().name(id)
    }
}

/// Options of a server's converter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonSettings {
    /// `true` to write enumerated fields as display texts, if the dictionary has them.
    pub expand_enumerations: bool,
    /// Service of requests and posts that name none, except logins and directories.
    pub default_service: Option<u16>,
    /// `true` to treat an unknown member as a fault, `false` to skip it (`catchUnknownJsonKeys` of LSEG's server).
    pub catch_unknown_members: bool,
    /// `true` to treat an unknown field as a fault, `false` to skip it (`catchUnknownJsonFids` of LSEG's server).
    pub catch_unknown_fields: bool,
    /// Maximum bytes of text for one message: a few bytes of RWF can stand for tens of thousands of entries.
    pub most_text: usize,
}

impl Default for JsonSettings {
    /// Returns the defaults: enumerations as numbers, no default service, unknown fields are faults, unknown members
    /// are not, 16 MiB.
    fn default() -> Self {
        Self {
            expand_enumerations: false,
            default_service: None,
            catch_unknown_members: false,
            catch_unknown_fields: true,
            most_text: 16 << 20,
        }
    }
}

/// Converter of messages to text and back.
#[derive(Debug, Clone, Copy)]
pub struct Converter<'c> {
    /// Dictionary of the field ids and names.
    pub dictionary: &'c Dictionary,
    /// Ids and names of the services.
    pub services: &'c dyn ServiceNames,
    /// Options.
    pub settings: JsonSettings,
}

impl<'c> Converter<'c> {
    /// Creates a converter with the default settings.
    #[must_use]
    pub fn new(dictionary: &'c Dictionary, services: &'c dyn ServiceNames) -> Self {
        Self { dictionary, services, settings: JsonSettings::default() }
    }
}

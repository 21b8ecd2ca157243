//! Simplified JSON, as WebSocket clients speak it under the sub-protocols `tr_json2` and `rssl.json.v2`: RWF messages as
//! text and back, driven by a dictionary.
//!
//! * [`Converter::write`] appends a message's text to the caller's buffer, [`Pack`] several of them in the array that a
//!   server must always send;
//! * [`Packed`] takes a text apart into its messages without copying it: pings and pongs for the caller, the others for
//!   [`Converter::read`], which gives their RWF bytes. What is wrong with one of them is a [`Fault`], and
//!   [`Pack::error`] the answer to it.
//!
//! ```
//! use tapeline_omm::json::{Converter, Kind, Pack, Packed};
//! use tapeline_omm::{Dictionary, rwf::MessageView};
//!
//! let services = [(1, "DIRECT_FEED")];
//! let converter = Converter::new(Dictionary::builtin(), &services);
//! let text = r#"{"ID":5,"Type":"Update","Key":{"Service":"DIRECT_FEED","Name":"A"},"Fields":{"BID":39.90}}"#;
//! let (mut room, mut out) = (Vec::new(), Vec::new());
//! let mut pack = Pack::new(&mut out);
//! for incoming in Packed::parse(text)? {
//!     match incoming.kind() {
//!         Kind::Ping => pack.pong(),
//!         Kind::Message => {
//!             let message = MessageView::parse(converter.read(&incoming, &mut room)?)?;
//!             pack.message(&converter, &message)?;
//!         }
//!         Kind::Pong | Kind::Error => {}
//!     }
//! }
//! pack.finish();
//! let back = r#"[{"ID":5,"Type":"Update","UpdateType":"Unspecified","Key":{"Service":"DIRECT_FEED","Name":"A"},"Fields":{"BID":39.90}}]"#;
//! assert_eq!(str::from_utf8(&out)?, back);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sources: the public specification of LSEG's WebSocket API, and what EMA/ETA Java 3.9.1 write and take. Where the two
//! differ, and where that library loses what it was given, this follows the specification or the plain meaning:
//!
//! * numbers that JSON has not are written quoted (`"Inf"`, `"-Inf"`, `"NaN"`) and read both ways; decimals keep their
//!   digits (`40.00` is four digits with two places, not `400` with one) up to 14 places; a FLOAT of `1` is 1, not 0;
//! * an unknown display text of an enumerated field is a fault, not blank; a code without a name is written as its number,
//!   not as `null`; characters that ASCII_STRING has no byte for are a fault, and RMTES text is written as RMTES;
//! * a batch is taken at any length, and an array of ids in Close, Request and Update; elements of a request (how a symbol
//!   list is wanted) are kept, and flags; `Complete` of a Post is written;
//! * a date without a time, a time without a date and a blank between the two are read as what they say;
//! * an element of no data is written with `null`, entries of a series without data as `{}`;
//! * `:ViewType` is written for views of names alone.

mod fault;
mod names;
mod pack;
mod read;
mod scan;
mod text;

mod write;

use crate::Dictionary;

pub use fault::{Fault, Problem, WriteError};
pub use pack::Pack;
pub use scan::{Incoming, Kind, Packed, PackedPlace};

/// Ids and names of services: whoever has the directory knows them.
pub trait Services: std::fmt::Debug {
    /// The id of a service; `None` if there is no such service.
    fn id(&self, name: &str) -> Option<u16>;

    /// The name of a service; `None` has the id written as a number.
    fn name(&self, id: u16) -> Option<&str>;
}

/// No services: ids stay numbers, and every name is unknown.
impl Services for () {
    fn id(&self, _name: &str) -> Option<u16> {
        None
    }

    fn name(&self, _id: u16) -> Option<&str> {
        None
    }
}

impl<S: AsRef<str> + std::fmt::Debug> Services for [(u16, S)] {
    fn id(&self, name: &str) -> Option<u16> {
        self.iter().find(|(_, other)| other.as_ref() == name).map(|(id, _)| *id)
    }

    fn name(&self, id: u16) -> Option<&str> {
        self.iter().find(|(other, _)| *other == id).map(|(_, name)| name.as_ref())
    }
}

impl<S: AsRef<str> + std::fmt::Debug, const N: usize> Services for [(u16, S); N] {
    fn id(&self, name: &str) -> Option<u16> {
        self.as_slice().id(name)
    }

    fn name(&self, id: u16) -> Option<&str> {
        self.as_slice().name(id)
    }
}

/// What a server can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Writes enumerated fields as their display texts, where the dictionary has one.
    pub expand_enumerations: bool,
    /// The service of requests and posts that name none, other than logins and directories.
    pub default_service: Option<u16>,
    /// Takes an unknown member for a fault; else it is passed over. (`catchUnknownJsonKeys` of LSEG's server.)
    pub catch_unknown_members: bool,
    /// Takes an unknown field for a fault; else it is passed over. (`catchUnknownJsonFids` of LSEG's server.)
    pub catch_unknown_fields: bool,
    /// The most bytes of text that one message may become: a few bytes of RWF can stand for tens of thousands of entries.
    pub most_text: usize,
}

impl Default for Settings {
    /// Numbers for enumerations, no default service, unknown fields are faults and unknown members are not, 16 MiB.
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

/// Turns messages into text and back.
#[derive(Debug, Clone, Copy)]
pub struct Converter<'c> {
    /// What field ids and names mean.
    pub dictionary: &'c Dictionary,
    /// What service ids and names mean.
    pub services: &'c dyn Services,
    /// What a server can choose.
    pub settings: Settings,
}

impl<'c> Converter<'c> {
    /// A converter with the default settings.
    #[must_use]
    pub fn new(dictionary: &'c Dictionary, services: &'c dyn Services) -> Self {
        Self { dictionary, services, settings: Settings::default() }
    }
}

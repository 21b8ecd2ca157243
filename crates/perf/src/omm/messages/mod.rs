//! What is in the messages: `MsgData.xml` of the guide's chapter 8.1.
//!
//! For each domain one image, and updates, posts and generic messages that are taken in turn.
//!
//! | file | owns |
//! |---|---|
//! | `payload.rs` | a payload: its values, and how they are encoded |
//! | `value.rs` | values of fields, read from text |
//! | `file.rs` | the file, checked against the dictionary |
//! | `MsgData.xml` | the messages that are built in |

mod file;
mod payload;
mod value;

use std::path::Path;

use tapeline_client::xml;
use tapeline_console::paths;
use tapeline_omm::Dictionary;

pub use self::payload::Payload;
use super::source::Source;

/// Bytes of a file at most: 400 times the public one.
const MOST_BYTES: u64 = 4 << 20;

/// The messages that are built in.
const BUILT_IN: &str = include_str!("MsgData.xml");

/// The messages of both domains.
#[derive(Debug)]
pub struct Messages {
    /// Contents of MarketPrice messages.
    pub market_price: DomainMessages,
    /// Contents of MarketByOrder messages; `None` if the file has none.
    pub market_by_order: Option<DomainMessages>,
}

/// The messages of one domain: an image and at least one update.
#[derive(Debug)]
pub struct DomainMessages {
    /// The image. It has the fields that carry times too, blank, as the public tools have it: caches then know them.
    pub refresh: Payload,
    /// Payloads of updates, sent in turn.
    pub updates: Vec<Payload>,
    /// Payloads of posts.
    pub posts: Vec<Payload>,
    /// Payloads of generic messages.
    pub generics: Vec<Payload>,
}

impl DomainMessages {
    /// The updates one after the other, and from the beginning again.
    pub fn update(&self, turn: u64) -> &Payload {
        // There is at least one, so the first is there.
        self.updates.get((turn % self.updates.len().max(1) as u64) as usize).unwrap_or(&self.refresh)
    }
}

impl Messages {
    /// The guide's name of the file.
    pub const FILE: &str = "MsgData.xml";

    /// Those of a file; without one, those of `MsgData.xml` in the working directory if it is there, else those that are
    /// built in. Each field is checked against the dictionary.
    ///
    /// # Errors
    /// It cannot be read; or file, line, field and what was expected.
    pub fn load(path: Option<&Path>, dictionary: &Dictionary) -> anyhow::Result<Self> {
        match Source::of(path, Self::FILE) {
            Source::File(path) => {
                let text = xml::text(paths::short(&path), MOST_BYTES, "a file of messages")?;
                Self::parse(&paths::shown(&path).to_string(), &text, dictionary)
            }
            Source::BuiltIn => Self::parse("the messages that are built in", BUILT_IN, dictionary),
        }
    }

    /// The text of a file of this name. What a cache may cut is said on standard error.
    fn parse(file: &str, text: &str, dictionary: &Dictionary) -> anyhow::Result<Self> {
        let mut notes = Vec::new();
        let messages = file::parse(text, dictionary, &mut notes).map_err(|fault| fault.in_file(file))?;
        if let [(line, first), others @ ..] = notes.as_slice() {
            let more = if others.is_empty() { String::new() } else { format!(" ({} more)", others.len()) };
            anstream::eprintln!("note: {file}:{line}: {first}{more}");
        }
        Ok(messages)
    }
}

#[cfg(test)]
mod tests;

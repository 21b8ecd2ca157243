//! Contents of the messages: `MsgData.xml` of the guide's chapter 8.1.
//!
//! Each domain has one image, and updates, posts and generic messages that are sent in turn.
//!
//! | file | owns |
//! |---|---|
//! | `payload.rs` | a payload: its values and their encoding |
//! | `value.rs` | field values, parsed from text |
//! | `file.rs` | the file, checked against the dictionary |
//! | `MsgData.xml` | the built-in messages |

mod file;
mod payload;
mod value;

use std::path::Path;

use tapeline_client::xml;
use tapeline_console::log;
use tapeline_console::paths;
use tapeline_omm::Dictionary;

pub use self::payload::Payload;
use super::source::InputSource;

/// Maximum bytes of a file: 400 times the public one.
const MOST_BYTES: u64 = 4 << 20;

/// The built-in messages.
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
    /// The image. As in the public tools, it also has the fields that carry times, blank, so that caches know them.
    pub refresh: Payload,
    /// Payloads of updates, sent in turn.
    pub updates: Vec<Payload>,
    /// Payloads of posts.
    pub posts: Vec<Payload>,
    /// Payloads of generic messages.
    pub generics: Vec<Payload>,
}

impl DomainMessages {
    /// The updates in turn, starting over after the last.
    pub fn update(&self, turn: u64) -> &Payload {
        // There is at least one update, so the index is valid.
        self.updates.get((turn % self.updates.len().max(1) as u64) as usize).unwrap_or(&self.refresh)
    }
}

impl Messages {
    /// The guide's name of the file.
    pub const FILE: &str = "MsgData.xml";

    /// Loads a file; without one, `MsgData.xml` if the working directory has it, else the built-in messages. Each
    /// field is checked against the dictionary.
    ///
    /// # Errors
    /// The file cannot be read; or file, line, field and the expected value.
    pub fn load(path: Option<&Path>, dictionary: &Dictionary) -> anyhow::Result<Self> {
        match InputSource::of(path, Self::FILE) {
            InputSource::File(path) => {
                let text = xml::text(paths::short(&path), MOST_BYTES, "a file of messages")?;
                Self::parse(&paths::shown(&path).to_string(), &text, dictionary)
            }
            InputSource::BuiltIn => Self::parse("the messages that are built in", BUILT_IN, dictionary),
        }
    }

    /// Parses the text of a file. Values that a cache may truncate are reported on standard error.
    fn parse(file: &str, text: &str, dictionary: &Dictionary) -> anyhow::Result<Self> {
        let mut notes = Vec::new();
        let messages = file::parse(text, dictionary, &mut notes).map_err(|fault| fault.in_file(file))?;
        if let [(line, first), others @ ..] = notes.as_slice() {
            let more = if others.is_empty() { String::new() } else { format!(" ({} more)", others.len()) };
            log::note(format_args!("{file}:{line}: {first}{more}"));
        }
        Ok(messages)
    }
}

#[cfg(test)]
mod tests;

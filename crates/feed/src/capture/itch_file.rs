//! Files of ITCH messages.

use super::window::Window;
use super::{Error, Place};
use crate::itch::MessageType;
use crate::itch::framing::{FileFraming, Step, step};

/// The maximum length of a message with its length of 16 bits.
const LONGEST_FRAME: usize = 2 + u16::MAX as usize;

/// Returns the framing of a file with this start, if it contains ITCH messages.
pub(super) fn recognise(start: &[u8]) -> Option<FileFraming> {
    let [high, low, letter] = *start.first_chunk()?;
    let known = MessageType::of(letter)?.length();
    match (usize::from(u16::from_be_bytes([high, low])), FileFraming::detect(start)) {
        (0, framing) => (framing == FileFraming::Type).then_some(framing),
        // A later edition may make a message longer, not shorter.
        (length, framing) => (length >= known && length <= 4 * known).then_some(framing),
    }
}

/// The messages of a file, in order.
#[derive(Debug)]
pub struct ItchFile<'r> {
    window: Window<'r>,
    framing: FileFraming,
    /// Bytes of the message returned last, which the next call skips.
    behind: usize,
    messages: u64,
    trailing: u64,
    marker: bool,
}

impl<'r> ItchFile<'r> {
    pub(super) fn new(window: Window<'r>, framing: FileFraming) -> Self {
        Self { window, framing, behind: 0, messages: 0, trailing: 0, marker: false }
    }

    /// Returns the next message without its frame, or `None` at the end.
    ///
    /// # Errors
    ///
    /// The stream fails, or the file has no lengths ([`FileFraming::Type`]) and a message of unknown type, after which nothing can be found.
    #[allow(clippy::should_implement_trait, reason = "what it gives borrows from the file")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        self.window.step(std::mem::take(&mut self.behind));
        let place = self.window.place();
        match step(self.window.fill(LONGEST_FRAME)?, self.framing) {
            Step::Message { consumed, .. } => {
                self.behind = consumed;
                self.messages += 1;
                Ok(self.window.bytes().get(2..consumed))
            }
            Step::EndOfSession => {
                self.window.step(2);
                self.marker = true;
                self.end()
            }
            Step::Incomplete => self.end(),
            Step::Lost => {
                let expected = "two zero bytes and a known type of message, since the file gives no lengths";
                Err(Error::Format { place, expected })
            }
        }
    }

    /// Returns the framing of the file.
    #[must_use]
    pub fn framing(&self) -> FileFraming {
        self.framing
    }

    /// Returns the number of messages so far.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns the bytes after the last whole message, or after the end marker. Known once [`next`](Self::next) has returned `None`.
    #[must_use]
    pub fn trailing_bytes(&self) -> u64 {
        self.trailing
    }

    /// Returns the start of the message within which the file ends; `None` for a complete file, or one with its end marker.
    #[must_use]
    pub fn cut_at(&self) -> Option<Place> {
        (self.trailing > 0 && !self.marker)
            .then(|| Place { offset: self.bytes_consumed(), ..self.window.place() })
    }

    /// Returns `true` if the file ended with a length of 0, as a complete BinaryFILE does.
    #[must_use]
    pub fn end_marker(&self) -> bool {
        self.marker
    }

    /// Returns the bytes of the file up to the end of the last whole message (and the end marker).
    #[must_use]
    pub fn bytes_consumed(&self) -> u64 {
        self.window.place().offset + self.behind as u64 - self.trailing
    }

    /// Ends the file: the remaining bytes are no message.
    fn end(&mut self) -> Result<Option<&[u8]>, Error> {
        self.trailing += self.window.skip(u64::MAX)?;
        Ok(None)
    }
}

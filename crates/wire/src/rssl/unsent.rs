//! Finds the messages in frames that wait to be sent.

use super::frame::{FragmentKind, HEADER, Header, flag};
use super::websocket::{self, Framed};

/// The format of a connection's frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Length of a fragment's id in bytes.
    pub(super) id_bytes: usize,
    /// Each frame is in a WebSocket frame of its own.
    pub(super) is_wrapped: bool,
    /// The payload of WebSocket frames is masked.
    pub(super) is_masked: bool,
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// No message: a ping, or the first half of a payload that compression made too long; the second half
    /// follows.
    Nothing,
    Message(&'a [u8]),
    /// Several messages, each after its length.
    Packed(&'a [u8]),
    /// A message, or several that share the frame, whose bytes are not accessible: compressed, masked or
    /// JSON.
    Hidden,
    /// The first fragment of a message.
    First,
    /// A further fragment.
    Next,
}

impl Shape {
    /// Returns the length of the first of these frames in bytes, and its content.
    pub(super) fn first(self, bytes: &[u8]) -> (usize, Content<'_>) {
        if !self.is_wrapped {
            return self.plain(bytes);
        }
        match websocket::first_frame(bytes) {
            Some((length, Framed::Binary(payload))) if !self.is_masked => (length, self.plain(payload).1),
            Some((length, Framed::Binary(payload))) if payload.len() == HEADER => (length, Content::Nothing),
            Some((length, Framed::Text(payload))) if payload.len() == websocket::PING.len() => {
                (length, Content::Nothing)
            }
            Some((length, Framed::Binary(_) | Framed::Text(_))) => (length, Content::Hidden),
            Some((length, Framed::Continued)) => (length, Content::Next),
            Some((length, Framed::Control)) => (length, Content::Nothing),
            None => (bytes.len(), Content::Nothing),
        }
    }

    fn plain(self, bytes: &[u8]) -> (usize, Content<'_>) {
        let Ok(Some(Header { length, size, flags, kind })) = Header::read(bytes, self.id_bytes) else {
            return (bytes.len(), Content::Nothing);
        };
        let payload = bytes.get(size..length).unwrap_or_default();
        let content = match kind {
            _ if payload.is_empty() || flags & flag::CUT != 0 => Content::Nothing,
            FragmentKind::First { .. } => Content::First,
            FragmentKind::Next { .. } => Content::Next,
            FragmentKind::Whole if flags & flag::COMPRESSED != 0 => Content::Hidden,
            FragmentKind::Whole if flags & flag::PACKED != 0 => Content::Packed(payload),
            FragmentKind::Whole => Content::Message(payload),
        };
        (length, content)
    }
}

impl Content<'_> {
    /// Returns the number of messages; a fragment counts as one.
    pub(super) fn count(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Packed(messages) => unpack(messages).count(),
            Self::Message(_) | Self::Hidden | Self::First | Self::Next => 1,
        }
    }

    /// Returns `true` for a fragment of a message.
    pub(super) fn is_piece(self) -> bool {
        matches!(self, Self::First | Self::Next)
    }
}

/// Returns the messages of a packed frame.
pub(super) fn unpack(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk()?;
        let (message, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        bytes = rest;
        Some(message)
    })
}

//! STATE: whether a stream is open and its data can be trusted (RWF chapter 2).

use std::fmt;

use super::{Cursor, DataState, StateCode, StreamState, Text, Writer};
use crate::{Malformed, Refused};

/// State of a stream and its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct State<'a> {
    /// Stream state: whether the stream is open.
    pub stream: StreamState,
    /// Data state: whether the data can be trusted.
    pub data: DataState,
    /// Reason code.
    pub code: StateCode,
    /// Human-readable reason. At most 32,767 bytes.
    pub text: &'a [u8],
}

impl<'a> State<'a> {
    /// Open and good: `09 00 00` on the wire.
    pub const OPEN_OK: Self =
        Self { stream: StreamState::OPEN, data: DataState::OK, code: StateCode::NONE, text: b"" };

    /// Decodes the bytes of an entry; `None` is blank.
    ///
    /// # Errors
    ///
    /// Fails if bytes are missing.
    pub fn decode(data: &'a [u8]) -> Result<Option<Self>, Malformed> {
        if data.is_empty() { Ok(None) } else { Self::read(&mut Cursor::new(data)).map(Some) }
    }

    /// Reads a state at `cursor`.
    pub(crate) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let states = cursor.u8("STATE")?;
        Ok(Self {
            stream: StreamState(states >> 3),
            data: DataState(states & 0x07),
            code: StateCode(cursor.u8("STATE code")?),
            text: cursor.b15("STATE text")?,
        })
    }

    /// Returns the number of bytes that [`State::write`] writes.
    pub(crate) const fn wire_len(&self) -> usize {
        let text = self.text.len();
        2 + if text < 0x80 { 1 } else { 2 } + text
    }

    /// Writes the state at `writer`.
    pub(crate) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Refused> {
        writer.whole(|w| {
            w.bytes(&[self.stream.0 << 3 | self.data.0 & 0x07, self.code.0])?;
            w.b15(self.text, "STATE text")
        })
    }
}

impl fmt::Display for State<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.stream, self.data, self.code)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, " \"{}\"", Text(self.text)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_examples() {
        assert_eq!(State::decode(&[0x09, 0, 0]), Ok(Some(State::OPEN_OK)));
        let gone = State {
            stream: StreamState::CLOSED,
            data: DataState::SUSPECT,
            code: StateCode::NOT_FOUND,
            text: b"gone",
        };
        let bytes = [0x22, 0x01, 0x04, b'g', b'o', b'n', b'e'];
        assert_eq!(State::decode(&bytes), Ok(Some(gone)));
        assert_eq!(gone.to_string(), "CLOSED/SUSPECT/NOT_FOUND \"gone\"");
        let mut out = [0; 7];
        gone.write(&mut Writer::new(&mut out)).unwrap();
        assert_eq!(out, bytes);
        for cut in 1..7 {
            assert!(State::decode(&bytes[..cut]).is_err(), "{cut} bytes");
        }
    }
}

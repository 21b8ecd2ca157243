//! WebSocket frames around the sent bytes.

use std::io::{Cursor, Write};

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::super::outgoing::Outgoing;
use super::code;

/// Maximum length of a frame's header in bytes.
pub(in super::super) const LONGEST_HEADER: usize = 14;

/// The sending side of a WebSocket.
pub(in super::super) struct Envelope {
    /// A client's masks: the frames that it sends are masked.
    masks: Option<Masks>,
}

/// The message type that a frame states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum MessageKind {
    Text,
    Binary,
    /// The message began in an earlier frame.
    Continued,
}

/// The role of a frame in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Part {
    pub(in super::super) kind: MessageKind,
    pub(in super::super) is_final: bool,
    pub(in super::super) compressed: bool,
}

impl Part {
    /// An uncompressed message in one frame.
    pub(in super::super) fn whole(kind: MessageKind) -> Self {
        Self { kind, is_final: true, compressed: false }
    }
}

impl Envelope {
    pub(in super::super) fn new(is_client: bool) -> Self {
        Self { masks: is_client.then(Masks::new) }
    }

    /// Returns `true` for a client's side.
    pub(in super::super) fn is_masked(&self) -> bool {
        self.masks.is_some()
    }

    /// Appends a frame to the waiting bytes, or nothing if there is no space.
    #[inline]
    pub(in super::super) fn put(&mut self, waiting: &mut Outgoing, part: Part, pieces: [&[u8]; 3]) -> bool {
        let data = match part.kind {
            MessageKind::Text => Data::Text,
            MessageKind::Binary => Data::Binary,
            MessageKind::Continued => Data::Continue,
        };
        self.frame(waiting, OpCode::Data(data), part.is_final, part.compressed, pieces)
    }

    /// Answers a ping. Without space, the waiting bytes serve as the sign of life.
    pub(in super::super) fn pong(&mut self, waiting: &mut Outgoing, payload: &[u8]) {
        self.frame(waiting, OpCode::Control(Control::Pong), true, false, [payload, &[], &[]]);
    }

    /// Sends a close message, if there is space.
    pub(in super::super) fn close(&mut self, waiting: &mut Outgoing, code: u16) {
        let text: &[u8] = if code == code::NORMAL { b"Normal Closure" } else { &[] };
        self.frame(waiting, OpCode::Control(Control::Close), true, false, [&code.to_be_bytes(), text, &[]]);
    }

    #[inline]
    fn frame(
        &mut self,
        waiting: &mut Outgoing,
        opcode: OpCode,
        is_final: bool,
        rsv1: bool,
        pieces: [&[u8]; 3],
    ) -> bool {
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let mask = self.masks.as_mut().map(Masks::next);
        let header = FrameHeader { is_final, rsv1, rsv2: false, rsv3: false, opcode, mask };
        let size = header.len(length as u64);
        let Some(room) = waiting.reserve(size + length) else { return false };
        let mut cursor = Cursor::new(&mut *room);
        let written = header.format(length as u64, &mut cursor).is_ok()
            && pieces.iter().all(|piece| cursor.write_all(piece).is_ok());
        debug_assert!(written, "there is room for all of it");
        apply(mask, 0, &mut room[size..]);
        waiting.commit(size + length);
        true
    }
}

/// The payload of a frame from this module, as it is in the frame: masked, if it is a client's.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Framed<'a> {
    Text(&'a [u8]),
    Binary(&'a [u8]),
    Continued,
    /// A ping, a pong or a close.
    Control,
}

/// Reads the frame at the front of these bytes: its length and its payload. `None` if they are no frame, or
/// an incomplete one.
pub(in super::super) fn first_frame(bytes: &[u8]) -> Option<(usize, Framed<'_>)> {
    let mut cursor = Cursor::new(bytes);
    let (header, length) = FrameHeader::parse(&mut cursor).ok()??;
    let start = cursor.position() as usize;
    let end = start + length as usize;
    let payload = bytes.get(start..end)?;
    let framed = match header.opcode {
        OpCode::Data(Data::Text) => Framed::Text(payload),
        OpCode::Data(Data::Binary) => Framed::Binary(payload),
        OpCode::Data(_) => Framed::Continued,
        OpCode::Control(_) => Framed::Control,
    };
    Some((end, framed))
}

/// Returns the length of the whole frames at the front of these bytes that fit into `most`: at least one
/// frame, however long. The bytes start with a frame.
pub(in super::super) fn whole_frames(bytes: &[u8], most: usize) -> usize {
    let mut end = 0;
    while let Some(rest) = bytes.get(end..).filter(|rest| !rest.is_empty()) {
        let length = first_frame(rest).map_or(rest.len(), |(length, _)| length);
        if end > 0 && end + length > most {
            break;
        }
        end += length;
    }
    end.min(bytes.len())
}

/// Masks or unmasks bytes; the first of them is at `at` in the payload.
#[inline]
pub(super) fn apply(mask: Option<[u8; 4]>, at: usize, bytes: &mut [u8]) {
    let Some(mut mask) = mask else { return };
    mask.rotate_left(at % 4);
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

/// Masks. They prevent intermediaries from reading a payload as HTTP (RFC 6455, section 10.3), which matters
/// if a foreign script chooses the payload. Here the program chooses it, so a simple generator with a random
/// seed is sufficient.
struct Masks(u64);

impl Masks {
    fn new() -> Self {
        // Sixteen random bytes as text; any of the bits are suitable.
        let key = super::new_key();
        let seed = key.bytes().fold(0_u64, |seed, byte| seed.rotate_left(6) ^ u64::from(byte));
        Self(seed | 1)
    }

    /// Marsaglia's xorshift64; returns the high half.
    fn next(&mut self) -> [u8; 4] {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) as u32).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_whole() {
        let mut waiting = Outgoing::new(1 << 20);
        let mut envelope = Envelope::new(true);
        let mut ends = Vec::new();
        for length in [1, 300, 70_000, 5] {
            assert!(envelope.put(
                &mut waiting,
                Part::whole(MessageKind::Binary),
                [&vec![7; length], &[], &[]]
            ));
            ends.push(waiting.len());
        }
        let [bytes, _] = waiting.pieces();
        assert_eq!(whole_frames(bytes, 10_000), ends[1]);
        assert_eq!(whole_frames(bytes, ends[0]), ends[0]);
        // Longer than the limit: alone.
        assert_eq!(whole_frames(&bytes[ends[1]..], 10_000), ends[2] - ends[1]);
        assert_eq!(whole_frames(bytes, 1 << 20), ends[3]);
        assert_eq!(whole_frames(&[], 10_000), 0);
    }
}

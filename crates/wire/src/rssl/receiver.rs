//! Reads frames: whole, packed, in fragments, compressed, and split because compression made them too long.

use super::assembly::Assemblies;
use super::compression::Inflater;
use super::fault::Fault;
use super::frame::{FragmentKind, HEADER, Header, flag};
use super::handshake::Version;
use super::session::Found;
use super::settings::{Compression, ConnectionSettings};

/// The location of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the input.
    Input,
    /// In the last inflated payload.
    Inflated,
    /// In the last assembled message.
    Assembled,
    /// In the last assembled WebSocket message, which the session owns.
    Joined,
}

/// A message's location, valid until the next message is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) place: Place,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A frame that is partly read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Nothing,
    /// This many bytes at the front are the rest of a packed frame.
    Packed(usize),
    /// From the first position to the second, the last inflated payload is the rest of a packed frame.
    PackedInflated(usize, usize),
}

/// A compressed payload whose second half is in the next frame.
struct Half {
    header: Header,
    compressed: Vec<u8>,
}

/// The receiving side of an open connection.
pub(super) struct Receiver {
    id_bytes: usize,
    inflater: Option<Inflater>,
    assemblies: Assemblies,
    begun: Begun,
    half: Option<Half>,
    /// Bytes consumed before the current input.
    position: u64,
    frames: u64,
}

impl Receiver {
    /// `position`: bytes received before the first frame.
    pub(super) fn new(
        version: Version,
        compression: Compression,
        settings: &ConnectionSettings,
        position: u64,
    ) -> Self {
        Self {
            id_bytes: version.id_bytes(),
            inflater: Inflater::new(compression),
            assemblies: Assemblies::new(settings.longest_received(), settings.max_open_messages as usize),
            begun: Begun::Nothing,
            half: None,
            position,
            frames: 0,
        }
    }

    /// Reads a frame at the front of `input` that is a whole, uncompressed message: the usual case, in a third of the time. Returns the
    /// message; `None`, without an effect, for anything else.
    #[inline(always)]
    pub(super) fn take_whole(&mut self, input: &[u8]) -> Option<Span> {
        let [high, low, flag::DATA, ..] = *input else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let is_whole = length > HEADER && length <= input.len();
        if !is_whole || self.begun != Begun::Nothing || self.half.is_some() {
            return None;
        }
        self.frames += 1;
        self.position += length as u64;
        Some(Span { place: Place::Input, start: HEADER, end: length })
    }

    /// Reads the front of `input`, up to and including the next message. Returns the number of bytes to consume after
    /// the message is handled, and the message; nothing if the rest of the input is not a whole frame. Pass unconsumed
    /// bytes again with the next call, in front.
    #[inline]
    pub(super) fn take(&mut self, input: &[u8]) -> Result<(usize, Option<Found>), Fault> {
        match self.take_whole(input) {
            Some(span) => Ok((span.end, Some(Found::Message(span)))),
            None => self.take_any(input),
        }
    }

    fn take_any(&mut self, input: &[u8]) -> Result<(usize, Option<Found>), Fault> {
        let mut at = 0;
        let found = loop {
            let (consumed, found) = match self.step(input, at) {
                Ok(Step::On(consumed)) => {
                    at += consumed;
                    continue;
                }
                Ok(Step::Inflated(consumed)) => (consumed, Some(Found::Nothing)),
                Ok(Step::Message(consumed, span)) => (consumed, Some(Found::Message(span))),
                Ok(Step::Short) => (0, None),
                Err(fault) => return Err(fault.at(self.position + at as u64)),
            };
            at += consumed;
            break found;
        };
        self.position += at as u64;
        Ok((at, found))
    }

    /// Returns the bytes of a message; `input` as passed to [`take`](Self::take).
    #[inline]
    pub(super) fn bytes<'a>(&'a self, span: Span, input: &'a [u8]) -> &'a [u8] {
        let place = match span.place {
            Place::Input | Place::Joined => input,
            Place::Inflated => self.inflater.as_ref().map_or(&[][..], |inflater| &inflater.payload),
            Place::Assembled => self.assemblies.done(),
        };
        &place[span.start..span.end]
    }

    /// Returns the messages in `rest`, the input behind the last message.
    #[inline]
    pub(super) fn following<'a>(&self, rest: &'a [u8]) -> Following<'a> {
        match (self.begun, &self.half) {
            (Begun::Nothing, None) => Following { rest, packed: 0 },
            (Begun::Packed(left), None) => Following { rest, packed: left },
            _ => Following::default(),
        }
    }

    /// Returns the number of frames read so far, including pings.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    #[inline]
    pub(super) fn inflated(&self) -> u64 {
        self.inflater.as_ref().map_or(0, |inflater| inflater.inflated)
    }

    /// Returns the bytes of memory used for incomplete messages and payloads.
    pub(super) fn memory(&self) -> usize {
        self.assemblies.memory() + self.half.as_ref().map_or(0, |half| half.compressed.capacity())
    }

    /// Frees the memory of the last message, if that is much. Call it when the message was handled.
    pub(super) fn let_go(&mut self) {
        self.assemblies.let_go();
    }

    #[inline]
    fn step(&mut self, input: &[u8], at: usize) -> Result<Step, Fault> {
        match self.begun {
            Begun::Nothing => self.frame(input, at),
            Begun::Packed(left) => {
                let Some(rest) = input.get(at..at + left) else { return Ok(Step::Short) };
                let length = packed(rest)?;
                self.begun =
                    if length + 2 == left { Begun::Nothing } else { Begun::Packed(left - length - 2) };
                let start = at + 2;
                Ok(message(length + 2, Span { place: Place::Input, start, end: start + length }))
            }
            Begun::PackedInflated(start, end) => {
                let payload = self.inflater.as_ref().map_or(&[][..], |inflater| &inflater.payload);
                let length = packed(&payload[start..end])?;
                let (start, next) = (start + 2, start + 2 + length);
                self.begun = if next == end { Begun::Nothing } else { Begun::PackedInflated(next, end) };
                Ok(message(0, Span { place: Place::Inflated, start, end: next }))
            }
        }
    }

    /// Reads one frame at `at`, if it is complete.
    #[inline]
    fn frame(&mut self, input: &[u8], at: usize) -> Result<Step, Fault> {
        let rest = &input[at..];
        let Some(header) = Header::read(rest, self.id_bytes)? else { return Ok(Step::Short) };
        if header.length > rest.len() {
            return Ok(Step::Short);
        }
        self.frames += 1;
        let payload = at + header.size..at + header.length;
        if payload.is_empty() && header.kind == FragmentKind::Whole {
            return Ok(Step::On(header.length));
        }
        if let Some(mut half) = self.half.take() {
            if header.flags != flag::COMPRESSED {
                return Err(Fault::new(
                    format!("frame with flags 0x{:02x}", header.flags),
                    "0x04: the second half of a compressed payload",
                ));
            }
            half.compressed.extend_from_slice(&input[payload]);
            return self.compressed(half.header, &half.compressed, header.length);
        }
        if header.flags & flag::CUT != 0 {
            self.half = Some(Half { header, compressed: input[payload].to_vec() });
            return Ok(Step::On(header.length));
        }
        if header.flags & flag::COMPRESSED != 0 {
            return self.compressed(header, &input[payload], header.length);
        }
        match header.kind {
            FragmentKind::Whole if header.flags & flag::PACKED != 0 => {
                self.begun = Begun::Packed(payload.len());
                Ok(Step::On(header.size))
            }
            FragmentKind::Whole => Ok(message(
                header.length,
                Span { place: Place::Input, start: payload.start, end: payload.end },
            )),
            kind => self.fragment(kind, &input[payload], header.length),
        }
    }

    fn compressed(&mut self, header: Header, compressed: &[u8], consumed: usize) -> Result<Step, Fault> {
        let Some(inflater) = &mut self.inflater else {
            return Err(Fault::new("compressed frame", "none: no compression was agreed on"));
        };
        let end = inflater.inflate(compressed)?;
        match header.kind {
            FragmentKind::Whole if header.flags & flag::PACKED != 0 => {
                if end > 0 {
                    self.begun = Begun::PackedInflated(0, end);
                }
                Ok(Step::Inflated(consumed))
            }
            FragmentKind::Whole => Ok(message(consumed, Span { place: Place::Inflated, start: 0, end })),
            kind => {
                let payload = std::mem::take(&mut inflater.payload);
                let step = self.fragment(kind, &payload[..end], consumed);
                if let Some(inflater) = &mut self.inflater {
                    inflater.payload = payload;
                }
                match step? {
                    Step::On(consumed) => Ok(Step::Inflated(consumed)),
                    step => Ok(step),
                }
            }
        }
    }

    fn fragment(&mut self, kind: FragmentKind, payload: &[u8], consumed: usize) -> Result<Step, Fault> {
        let complete = match kind {
            FragmentKind::First { id, total } => self.assemblies.first(id, total, payload)?,
            FragmentKind::Next { id } => self.assemblies.next(id, payload)?,
            FragmentKind::Whole => return Ok(Step::On(consumed)),
        };
        if !complete {
            return Ok(Step::On(consumed));
        }
        let end = self.assemblies.done().len();
        Ok(message(consumed, Span { place: Place::Assembled, start: 0, end }))
    }
}

/// The messages that have arrived behind an event and are events later, as far as they are whole and uncompressed. For prefetching: a
/// message here may still prove malformed.
#[derive(Clone, Debug, Default)]
pub struct Following<'a> {
    rest: &'a [u8],
    /// Bytes at the front that are the rest of a packed frame.
    packed: usize,
}

impl<'a> Iterator for Following<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if self.packed > 0 {
                let [high, low, ..] = *self.rest else { return None };
                let end = 2 + usize::from(u16::from_be_bytes([high, low]));
                self.packed = self.packed.checked_sub(end)?;
                let message = self.rest.get(2..end)?;
                self.rest = &self.rest[end..];
                return Some(message);
            }
            let [high, low, flags, ..] = *self.rest else { return None };
            let (frame, rest) = self.rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
            let payload = frame.get(HEADER..)?;
            match flags {
                flag::DATA => {
                    self.rest = rest;
                    if !payload.is_empty() {
                        return Some(payload);
                    }
                }
                PACKED => (self.rest, self.packed) = (&self.rest[HEADER..], payload.len()),
                _ => return None,
            }
        }
    }
}

/// The flags of an uncompressed frame of several messages.
const PACKED: u8 = flag::DATA | flag::PACKED;

enum Step {
    /// Consume this many bytes and continue.
    On(usize),
    /// As `On`, after a payload was inflated.
    Inflated(usize),
    /// Consume this many bytes after this message.
    Message(usize, Span),
    /// The next frame is incomplete.
    Short,
}

/// Skips a message without bytes: the protocol gives it no meaning.
#[inline]
fn message(consumed: usize, span: Span) -> Step {
    if span.start == span.end { Step::On(consumed) } else { Step::Message(consumed, span) }
}

/// Returns the length of the first message in the rest of a packed frame.
#[inline]
fn packed(rest: &[u8]) -> Result<usize, Fault> {
    let Some((length, messages)) = rest.split_first_chunk() else {
        return Err(Fault::new(
            "packed frame with one byte left over",
            "a length of two bytes, and its message",
        ));
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length > messages.len() {
        return Err(Fault::new(
            format!("packed message of {length} bytes"),
            format!("at most {}, the rest of its frame", messages.len()),
        ));
    }
    Ok(length)
}

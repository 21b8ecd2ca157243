//! Received WebSocket frames taken apart.

use std::fmt;
use std::io::Cursor;
use std::ops::Range;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::super::fault::Fault;
use super::super::settings::LONGEST_FRAME;
use super::deflate::{Inflated, TAIL};
use super::envelope::apply;

/// Memory that is kept for the next message that does not lie whole in what was received.
const KEPT: usize = 64 << 10;
/// The longest payload of a ping, pong or close (RFC 6455, section 5.5).
const LONGEST_CONTROL: usize = 125;

/// What is at the front of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum What {
    /// Not enough to say.
    Short,
    /// Nothing to hand out; go on behind it.
    Nothing,
    /// The payload of a message, in place and not masked any more. It ends where the frame does.
    Message(Range<usize>),
    /// A message that was put together: [`Unwrap::joined`].
    Joined,
    /// A ping, to be answered with the same payload, in place.
    Ping(Range<usize>),
    /// The peer is leaving.
    Close,
}

/// The receiving side of a WebSocket.
pub(in super::super) struct Unwrap {
    /// A server's: what it receives is masked.
    masked: bool,
    /// Text or binary.
    data: Data,
    limit: usize,
    inflater: Option<Inflated>,
    /// A message of which not all is there, or the last one that was put together.
    joined: Vec<u8>,
    /// Whether more frames of that follow, and whether it is compressed.
    open: Option<bool>,
    /// A frame of which only the beginning is there.
    streaming: Option<Streaming>,
}

struct Streaming {
    left: u64,
    mask: Option<[u8; 4]>,
    is_final: bool,
}

impl Unwrap {
    /// `limit`: the longest message, bytes.
    pub(in super::super) fn new(masked: bool, json: bool, limit: usize, deflate: bool) -> Self {
        Self {
            masked,
            data: if json { Data::Text } else { Data::Binary },
            limit,
            inflater: deflate.then(Inflated::new),
            joined: Vec::new(),
            open: None,
            streaming: None,
        }
    }

    /// The message that was put together last, until more is taken.
    pub(in super::super) fn joined(&self) -> &[u8] {
        &self.joined
    }

    /// Bytes that came of inflating so far.
    pub(in super::super) fn inflated(&self) -> u64 {
        self.inflater.as_ref().map_or(0, |inflater| inflater.bytes)
    }

    /// Bytes of memory that are held.
    pub(in super::super) fn memory(&self) -> usize {
        self.joined.capacity()
    }

    /// The last message has been looked at: gives back what it took, if that was much.
    pub(in super::super) fn let_go(&mut self) {
        if self.open.is_none() && self.streaming.is_none() {
            self.clear();
        }
    }

    /// Takes what is at the front of `input`, at most one frame: how many bytes are done with, and what they were.
    pub(in super::super) fn take(&mut self, input: &mut [u8]) -> Result<(usize, What), Fault> {
        if let Some(streaming) = self.streaming.take() {
            return self.stream(streaming, input);
        }
        let mut cursor = Cursor::new(&*input);
        let parsed = FrameHeader::parse(&mut cursor)
            .map_err(|cause| Fault::new(format!("WebSocket frame: {cause}"), "RFC 6455, section 5.2"))?;
        let size = cursor.position() as usize;
        let Some((header, length)) = parsed else { return Ok((0, What::Short)) };
        self.check(&header, length)?;
        if matches!(header.opcode, OpCode::Data(_)) {
            return self.data(&header, length, size, input);
        }
        let end = size + length as usize;
        let Some(payload) = input.get_mut(size..end) else { return Ok((0, What::Short)) };
        apply(header.mask, 0, payload);
        Ok((
            end,
            match header.opcode {
                OpCode::Control(Control::Close) => What::Close,
                OpCode::Control(Control::Ping) => What::Ping(size..end),
                _ => What::Nothing,
            },
        ))
    }

    fn check(&self, header: &FrameHeader, length: u64) -> Result<(), Fault> {
        let frame = |what: String, expected: &'static str| {
            Err(Fault::new(format!("WebSocket frame {what}"), expected))
        };
        if header.mask.is_some() != self.masked {
            let expected =
                if self.masked { "a client's frames masked" } else { "a server's frames not masked" };
            return frame(format!("with{} a mask", if self.masked { "out" } else { "" }), expected);
        }
        if header.rsv2 || header.rsv3 {
            return frame("with a reserved bit".to_owned(), "none: no such extension was agreed on");
        }
        let OpCode::Data(data) = header.opcode else {
            if header.rsv1 || !header.is_final || length > LONGEST_CONTROL as u64 {
                return frame(
                    format!("{} of {length} bytes", header.opcode),
                    "one whole plain frame of at most 125",
                );
            }
            return Ok(());
        };
        let goes_on_plain = data == Data::Continue && self.open != Some(true);
        if header.rsv1 && (self.inflater.is_none() || goes_on_plain) {
            let what = "with the bit of a compressed message".to_owned();
            return frame(what, "none: no compression was agreed on, or the message began without it");
        }
        match (data, self.open) {
            (Data::Continue, None) => frame("that goes on".to_owned(), "a message's first"),
            (Data::Continue, Some(_)) => Ok(()),
            (_, Some(_)) => frame(
                "that begins a message".to_owned(),
                "one that continues: the last message is not complete",
            ),
            (data, None) if data == self.data => Ok(()),
            (data, None) => frame(
                format!("of type {data}"),
                if self.data == Data::Text {
                    "TEXT, as the sub-protocol says"
                } else {
                    "BINARY, as the sub-protocol says"
                },
            ),
        }
    }

    fn data(
        &mut self,
        header: &FrameHeader,
        length: u64,
        size: usize,
        input: &mut [u8],
    ) -> Result<(usize, What), Fault> {
        let begins = header.opcode != OpCode::Data(Data::Continue);
        // ETA C compresses each frame by itself, and says so; by RFC 7692 only the first one has the bit, and the whole is
        // compressed. What is left out at the end of each makes one stream of them, and counts even where a frame is empty.
        let left_out: &[u8] = if header.rsv1 && !begins { &TAIL } else { &[] };
        let begun = if begins { 0 } else { self.joined.len() + left_out.len() };
        if (begun as u64).saturating_add(length) > self.limit as u64 {
            return Err(Fault::new(
                format!("WebSocket message of {} bytes or more", length.saturating_add(begun as u64)),
                format!("at most {}, the limit that is set", self.limit),
            ));
        }
        if begins && header.is_final && length <= (LONGEST_FRAME - size) as u64 {
            // The usual case: a message in one frame, looked at where it lies.
            let end = size + length as usize;
            let Some(payload) = input.get_mut(size..end) else { return Ok((0, What::Short)) };
            apply(header.mask, 0, payload);
            if !header.rsv1 {
                return Ok((end, if length == 0 { What::Nothing } else { What::Message(size..end) }));
            }
            self.clear();
            let Some(inflater) = &mut self.inflater else { return Ok((end, What::Nothing)) };
            inflater.inflate(payload, self.limit, &mut self.joined)?;
            return Ok((end, What::Joined));
        }
        if begins {
            self.clear();
            self.open = Some(header.rsv1);
        }
        self.joined.extend_from_slice(left_out);
        let streaming = Streaming { left: length, mask: header.mask, is_final: header.is_final };
        let (consumed, what) = self.stream(streaming, &mut input[size..])?;
        Ok((size + consumed, what))
    }

    /// Takes as much as there is of a frame that is put together with others, or is too long to wait for.
    fn stream(&mut self, mut streaming: Streaming, input: &mut [u8]) -> Result<(usize, What), Fault> {
        let count = usize::try_from(streaming.left).map_or(input.len(), |left| left.min(input.len()));
        let piece = &mut input[..count];
        apply(streaming.mask, 0, piece);
        if let Some(mask) = &mut streaming.mask {
            mask.rotate_left(count % 4);
        }
        self.joined.extend_from_slice(piece);
        streaming.left -= count as u64;
        if streaming.left > 0 {
            self.streaming = Some(streaming);
            return Ok((count, if count == 0 { What::Short } else { What::Nothing }));
        }
        if !streaming.is_final {
            return Ok((count, What::Nothing));
        }
        let compressed = self.open.take() == Some(true);
        if let (true, Some(inflater)) = (compressed, &mut self.inflater) {
            let compressed = std::mem::take(&mut self.joined);
            inflater.inflate(&compressed, self.limit, &mut self.joined)?;
        }
        Ok((count, if self.joined.is_empty() { What::Nothing } else { What::Joined }))
    }

    fn clear(&mut self) {
        self.joined.clear();
        self.joined.shrink_to(KEPT);
    }
}

impl fmt::Debug for Unwrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the bytes: there may be a password among them.
        f.debug_struct("Unwrap")
            .field("masked", &self.masked)
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}

//! Reads received WebSocket frames.

use std::io::Cursor;
use std::ops::Range;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::super::fault::Fault;
use super::super::settings::LONGEST_FRAME;
use super::deflate::{Inflated, TAIL};
use super::envelope::apply;

/// Maximum memory retained for the next message that is not whole in the input.
const KEPT: usize = 64 << 10;
/// The longest payload of a ping, pong or close (RFC 6455, section 5.5).
const LONGEST_CONTROL: usize = 125;

/// The result of reading the front of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum What {
    /// Too few bytes.
    Short,
    /// Nothing to return; continue after it.
    Nothing,
    /// The payload of a message, in place and unmasked. It ends with the frame.
    Message(Range<usize>),
    /// An assembled message: [`Unwrap::joined`].
    Joined,
    /// A ping, to be answered with the same payload, which is in place.
    Ping(Range<usize>),
    /// The peer closes the connection.
    Close,
}

/// The receiving side of a WebSocket.
pub(in super::super) struct Unwrap {
    /// A server's side: the frames that it receives are masked.
    masked: bool,
    /// Text or binary.
    data: Data,
    limit: usize,
    inflater: Option<Inflated>,
    /// An incomplete message, or the last assembled one.
    joined: Vec<u8>,
    /// Set if more frames of `joined` follow; `true` if the message is compressed.
    open: Option<bool>,
    /// A frame that has arrived in part.
    streaming: Option<Streaming>,
}

struct Streaming {
    left: u64,
    mask: Option<[u8; 4]>,
    is_final: bool,
}

impl Unwrap {
    /// `limit`: the maximum length of a message in bytes.
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

    /// Returns the last assembled message, valid until more is read.
    pub(in super::super) fn joined(&self) -> &[u8] {
        &self.joined
    }

    pub(in super::super) fn inflated(&self) -> u64 {
        self.inflater.as_ref().map_or(0, |inflater| inflater.bytes)
    }

    pub(in super::super) fn memory(&self) -> usize {
        self.joined.capacity()
    }

    /// Frees the memory of the last message, if that is much. Call it when the message was handled.
    pub(in super::super) fn let_go(&mut self) {
        if self.open.is_none() && self.streaming.is_none() {
            self.clear();
        }
    }

    /// Reads the front of `input`, at most one frame. Returns the number of consumed bytes, and the result.
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
        let frame = |what: &str, expected| Err(Fault::new(format!("WebSocket frame {what}"), expected));
        if header.mask.is_some() != self.masked {
            return match self.masked {
                true => frame("without a mask", "a client's frames masked"),
                false => frame("with a mask", "a server's frames not masked"),
            };
        }
        if header.rsv2 || header.rsv3 {
            return frame("with a reserved bit", "none: no such extension was agreed on");
        }
        let OpCode::Data(data) = header.opcode else {
            if header.rsv1 || !header.is_final || length > LONGEST_CONTROL as u64 {
                let what = format!("{} of {length} bytes", header.opcode);
                return frame(&what, "one whole plain frame of at most 125");
            }
            return Ok(());
        };
        let goes_on_plain = data == Data::Continue && self.open != Some(true);
        if header.rsv1 && (self.inflater.is_none() || goes_on_plain) {
            let expected = "none: no compression was agreed on, or the message began without it";
            return frame("with the bit of a compressed message", expected);
        }
        match (data, self.open) {
            (Data::Continue, None) => frame("that goes on", "a message's first"),
            (Data::Continue, Some(_)) => Ok(()),
            (_, Some(_)) => {
                frame("that begins a message", "one that continues: the last message is not complete")
            }
            (data, None) if data == self.data => Ok(()),
            (data, None) if self.data == Data::Text => {
                frame(&format!("of type {data}"), "TEXT, as the sub-protocol says")
            }
            (data, None) => frame(&format!("of type {data}"), "BINARY, as the sub-protocol says"),
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
        // ETA C compresses each frame by itself and sets the bit on each; by RFC 7692 only the first frame
        // has the bit, and the message is compressed as a whole. Restoring the omitted end of each frame
        // joins them to one stream. It also counts for the length limit, even if a frame is empty.
        let left_out: &[u8] = if header.rsv1 && !begins { &TAIL } else { &[] };
        let begun = if begins { 0 } else { self.joined.len() + left_out.len() };
        if (begun as u64).saturating_add(length) > self.limit as u64 {
            let what = format!("WebSocket message of {} bytes or more", length.saturating_add(begun as u64));
            return Err(Fault::over_limit(what, self.limit));
        }
        if begins && header.is_final && length <= (LONGEST_FRAME - size) as u64 {
            // The usual case: a message in one frame, read in place.
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

    /// Reads the available part of a frame that is assembled with others, or is too long to wait for.
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

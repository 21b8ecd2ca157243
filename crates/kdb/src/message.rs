//! Messages: a header of eight bytes, then one value.

use crate::cursor::Cursor;
use crate::error::{Fault, Malformed};
use crate::order::{Item, Order};
use crate::view::View;

/// Length of a header in bytes.
pub const HEADER: usize = 8;

/// The answer that a message expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MessageKind {
    /// No answer.
    Async = 0,
    /// An answer.
    Sync = 1,
    /// The message is the answer.
    Response = 2,
}

/// The first eight bytes of a message ([IPC protocol](https://code.kx.com/q/basics/ipc/#message-types)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The byte order of all numbers in the message, including the length in the header.
    pub order: Order,
    /// The answer that the message expects.
    pub kind: MessageKind,
    /// `true` if the message is compressed.
    pub is_packed: bool,
    /// Length of the whole message as sent, in bytes, header included.
    pub len: usize,
}

impl Header {
    /// Reads a header; `most` is the maximum message length in bytes.
    ///
    /// # Errors
    /// An invalid byte; a message without a value, or over `most`.
    pub fn parse(bytes: &[u8; HEADER], most: usize) -> Result<Self, Malformed> {
        let order = match bytes[0] {
            0 => Order::Big,
            1 => Order::Little,
            other => return Err(Malformed::new(0, Fault::Order(other))),
        };
        let kind = match bytes[1] {
            0 => MessageKind::Async,
            1 => MessageKind::Sync,
            2 => MessageKind::Response,
            other => return Err(Malformed::new(1, Fault::Kind(other))),
        };
        let is_packed = match bytes[2] {
            0 => false,
            1 => true,
            other => return Err(Malformed::new(2, Fault::Packing(other))),
        };
        let len = i32::from_bytes(&bytes[4..], order).cast_unsigned();
        // Messages over 4 GiB have the rest of the length in the formerly unused byte.
        let found = u64::from(bytes[3]) << 32 | u64::from(len);
        // The shortest value has two bytes; a compressed message has the size before it.
        let least = HEADER + if is_packed { 4 } else { 2 };
        match usize::try_from(found) {
            Ok(len) if (least..=most).contains(&len) => Ok(Self { order, kind, is_packed, len }),
            _ => Err(Malformed::new(4, Fault::Size { least, most, found })),
        }
    }
}

/// A whole message, decompressed.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The answer that the message expects.
    pub kind: MessageKind,
    /// The byte order of all numbers in the message.
    pub order: Order,
    /// The bytes of the message's value.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses a whole, uncompressed message.
    ///
    /// # Errors
    /// The header has an invalid byte or a wrong length; or the message is compressed: use [`unpack`](crate::unpack) or
    /// [`Frames`](crate::Frames).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes, Order::Little);
        let header = cursor.take(HEADER, "a header")?.try_into().unwrap_or_default();
        let header = Header::parse(&header, usize::MAX)?;
        if header.is_packed {
            return Err(Malformed::new(2, Fault::Packing(1)));
        }
        match bytes.len().checked_sub(header.len) {
            Some(0) => Ok(Self { kind: header.kind, order: header.order, body: cursor.rest() }),
            Some(more) => Err(Malformed::new(header.len, Fault::Trailing(more))),
            None => Err(cursor.cut("a message", header.len - HEADER)),
        }
    }

    /// Returns the message's value.
    ///
    /// # Errors
    /// The value is malformed; the offset is from the beginning of the message, the header included.
    pub fn view(&self) -> Result<View<'a>, Malformed> {
        View::parse(self.body, self.order).map_err(|fault| fault.within(HEADER))
    }
}

//! The header of a frame.

use super::fault::Fault;

/// Flags of a frame.
pub(super) mod flag {
    /// A byte of extended flags follows.
    pub(crate) const EXTENDED: u8 = 0x01;
    /// Uncompressed data.
    pub(crate) const DATA: u8 = 0x02;
    /// Compressed data.
    pub(crate) const COMPRESSED: u8 = 0x04;
    /// The first half of a compressed payload; the second is in the next frame.
    pub(crate) const CUT: u8 = 0x08;
    /// Several messages, each after its length.
    pub(crate) const PACKED: u8 = 0x10;
    /// All known flags.
    pub(crate) const KNOWN: u8 = EXTENDED | DATA | COMPRESSED | CUT | PACKED;
}

/// Extended flags.
pub(super) mod extended {
    /// A further fragment.
    pub(crate) const NEXT: u8 = 0x04;
    /// The first fragment.
    pub(crate) const FIRST: u8 = 0x08;
}

/// Bytes of a header: length and flags.
pub(super) const HEADER: usize = 3;
/// A ping frame: this side is alive.
pub(super) const PING: [u8; 3] = [0, 3, flag::DATA];

/// Whether a frame contains a fragment of a message, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FragmentKind {
    Whole,
    /// `total`: bytes of the whole message.
    First {
        id: u16,
        total: u32,
    },
    Next {
        id: u16,
    },
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Length of the whole frame in bytes.
    pub(super) length: usize,
    /// Length of this header in bytes; never more than `length`.
    pub(super) size: usize,
    pub(super) flags: u8,
    pub(super) kind: FragmentKind,
}

impl Header {
    /// Reads the header at the front of `bytes`; `None` if it is incomplete. `id_bytes`: length of a
    /// fragment's id, 1 or 2.
    #[inline]
    pub(super) fn read(bytes: &[u8], id_bytes: usize) -> Result<Option<Self>, Fault> {
        let [high, low, flags, ..] = *bytes else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length < HEADER {
            return Err(Fault::new(format!("frame of {length} bytes"), "at least 3, its header"));
        }
        if flags == flag::DATA {
            return Ok(Some(Self { length, size: HEADER, flags, kind: FragmentKind::Whole }));
        }
        Self::read_rest(bytes, id_bytes, length, flags)
    }

    fn read_rest(bytes: &[u8], id_bytes: usize, length: usize, flags: u8) -> Result<Option<Self>, Fault> {
        let compressed = flags & flag::COMPRESSED != 0;
        let odd = flags & !flag::KNOWN != 0
            || (compressed && flags & flag::DATA != 0)
            || (!compressed && flags & flag::CUT != 0)
            || flags & (flag::EXTENDED | flag::PACKED) == flag::EXTENDED | flag::PACKED;
        if odd {
            return Err(Fault::new(
                format!("frame with flags 0x{flags:02x}"),
                "0x02 (plain), 0x12 (packed), 0x03 (fragment), 0x04, 0x14, 0x05 (compressed) or these with 0x08",
            ));
        }
        if flags & flag::EXTENDED == 0 {
            return Ok(Some(Self { length, size: HEADER, flags, kind: FragmentKind::Whole }));
        }
        let short = |size| {
            Fault::new(format!("fragment's frame of {length} bytes"), format!("at least {size}, its header"))
        };
        let Some(&kind) = bytes.get(HEADER) else {
            return if length > HEADER { Ok(None) } else { Err(short(HEADER + 1)) };
        };
        let total_bytes = match kind {
            extended::FIRST => 4,
            extended::NEXT => 0,
            _ => {
                return Err(Fault::new(
                    format!("frame with extended flags 0x{kind:02x}"),
                    "0x08 (first fragment) or 0x04 (further fragment)",
                ));
            }
        };
        let size = HEADER + 1 + total_bytes + id_bytes;
        if length < size {
            return Err(short(size));
        }
        let Some(members) = bytes.get(HEADER + 1..size) else { return Ok(None) };
        let (total, id) = members.split_at(total_bytes);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        let id = number(id) as u16;
        let kind = if total_bytes > 0 {
            FragmentKind::First { id, total: number(total) }
        } else {
            FragmentKind::Next { id }
        };
        Ok(Some(Self { length, size, flags, kind }))
    }
}

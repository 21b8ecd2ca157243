//! The tick: the frame that the plant publishes on its ring.
//!
//! ```text
//!  0        64            64+n                    len-s        len
//!  ┌────────┬─────────────┬───────────────────────┬────────────┐
//!  │ header │ name (n)    │ RWF message           │ source (s) │
//!  └────────┴─────────────┴───────────────────────┴────────────┘
//! ```
//! The header is little-endian, like the machines that share a ring. The RWF message has stream id 0: a sender to a client patches the id
//! and copies the rest. The source is the feed's own message, byte for byte; it is present only if the plant publishes every
//! message.

use std::ops::BitOr;

use tapeline_measure::Nanos;

use crate::{ItemId, Seq, State};

/// The size of the header of every tick, in bytes.
pub const HEADER_BYTES: usize = 64;

/// The maximum length of an item name in bytes: its length is one byte.
pub const MAX_NAME_BYTES: usize = 255;

/// The kind of a tick, by the number of its RWF message class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// The whole image of an item.
    Refresh = 2,
    /// A change of state, of one item or (item 0) of the whole channel.
    Status = 3,
    /// Fields that changed.
    #[default]
    Update = 4,
}

impl Kind {
    /// Returns the name in reports and exports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refresh => "refresh",
            Self::Status => "status",
            Self::Update => "update",
        }
    }

    fn from_wire(value: u8) -> Option<Self> {
        match value {
            2 => Some(Self::Refresh),
            3 => Some(Self::Status),
            4 => Some(Self::Update),
            _ => None,
        }
    }
}

/// The value in place of a channel number for a post of a client of the plant to an item of the feeds.
pub const POSTED: u16 = u16::MAX;

/// The flags of a tick, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The feed has ended its session; no message of the session follows.
    pub const END_OF_SESSION: Self = Self(0x01);
    /// The feed's messages before this one are lost; data is suspect.
    pub const GAP: Self = Self(0x02);
    /// The feed started a new session: sequence reset, books empty. Also set on the blank images that follow.
    pub const RESET: Self = Self(0x04);
    /// The feed's own message follows the RWF message; it may be empty.
    pub const SOURCE: Self = Self(0x08);

    /// The state of the channel has changed to that in the header.
    pub const STATE: Self = Self(0x10);
    /// The contents of the tick may be wrong, because messages of the session were lost. On a status also: data is old, because the channel is
    /// recovering or stale. See [`Header::quality`].
    pub const SUSPECT: Self = Self(0x20);
    /// The item is over, and its number is free: the next tick with that number is of another item. A reader that knows items by number must
    /// forget this number here; a reader that misses a tick must forget the numbers of all items that are not of the feeds.
    pub const LAST: Self = Self(0x40);
    /// The last of the [rows](crate::rows) that a publisher sent together.
    pub const LAST_ROW: Self = Self(0x80);

    /// Returns `true` if all bits of `other` are set.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;

    /// Returns the bits of both.
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The degree to which the contents of a tick can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quality {
    /// All earlier messages arrived in time.
    Good,
    /// All earlier messages arrived, some by recovery: the values are right, but late.
    Late,
    /// Earlier messages are missing: the values may be wrong.
    Unknown,
}

impl Quality {
    /// Returns the name for tables and output lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Late => "late",
            Self::Unknown => "unknown",
        }
    }
}

/// The fixed part of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The plant's own sequence: the first tick is 1, or follows the last one in the plant's journal; no number is skipped.
    pub seq: Seq,
    /// The feed's sequence of the message behind this tick; 0 if there is none.
    pub feed_seq: u64,
    /// The time of the event, as stated by the exchange.
    pub event: Nanos,
    /// The arrival time of the datagram: the unchanged time stamp of the kernel or the card.
    pub wire: Nanos,
    /// The time at which the message was decoded and applied to its book.
    pub decoded: Nanos,
    /// The time at which the tick was written, just before readers could see it.
    pub sequenced: Nanos,
    /// The item within its service; 0 for the channel as a whole.
    pub item: ItemId,
    /// The service's number in the plant.
    pub service: u16,
    /// The channel's number in the plant, or [`POSTED`].
    pub channel: u16,
    /// The kind of the tick.
    pub kind: Kind,
    /// The flags of the tick.
    pub flags: Flags,
    /// The first byte of the feed's message, which is the message type in most protocols; 0 if there is none.
    pub source_type: u8,
    /// The state of the channel.
    pub state: State,
}

impl Header {
    /// Returns the degree to which the tick's values can be trusted. Messages after a gap wait until the gap is filled or given up, so a tick
    /// published while its channel is recovering or stale is complete unless it is [suspect](Flags::SUSPECT).
    #[inline]
    #[must_use]
    pub fn quality(&self) -> Quality {
        if self.flags.contains(Flags::SUSPECT) {
            Quality::Unknown
        } else if matches!(self.state, State::Recovering | State::Stale) {
            Quality::Late
        } else {
            Quality::Good
        }
    }

    /// Writes the header and the lengths of the parts that follow it.
    pub(crate) fn write(&self, out: &mut [u8; HEADER_BYTES], name_len: u8, source_len: u16) {
        out[0..8].copy_from_slice(&self.seq.0.to_le_bytes());
        out[8..16].copy_from_slice(&self.feed_seq.to_le_bytes());
        out[16..24].copy_from_slice(&self.event.0.to_le_bytes());
        out[24..32].copy_from_slice(&self.wire.0.to_le_bytes());
        out[32..40].copy_from_slice(&self.decoded.0.to_le_bytes());
        out[40..48].copy_from_slice(&self.sequenced.0.to_le_bytes());
        out[48..52].copy_from_slice(&self.item.0.to_le_bytes());
        out[52..54].copy_from_slice(&self.service.to_le_bytes());
        out[54..56].copy_from_slice(&self.channel.to_le_bytes());
        out[56..58].copy_from_slice(&source_len.to_le_bytes());
        out[58] = self.kind as u8;
        out[59] = self.flags.0;
        out[60] = self.source_type;
        out[61] = name_len;
        out[62] = self.state as u8;
        // One byte is spare: zero, so that a later use can recognise old ticks.
        out[63] = 0;
    }
}

/// The reason why a frame is not a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The frame is shorter than the header, or than the header states.
    #[error("not a tick: {needed} bytes are needed and {found} are there")]
    Short {
        /// The required number of bytes.
        needed: usize,
        /// The actual number of bytes.
        found: usize,
    },
    /// The kind is unknown to this version.
    #[error("not a tick that this version knows: kind {0} at offset 58")]
    UnknownKind(u8),
    /// The state is unknown to this version.
    #[error("not a tick that this version knows: state {0} at offset 62")]
    UnknownState(u8),
    /// The name is not UTF-8.
    #[error("not a tick: its name at offset 64 is not UTF-8")]
    Name,
}

/// A tick in place, in the frame that a subscriber borrows from the ring.
#[derive(Clone, Copy, Debug)]
pub struct Tick<'a> {
    /// The fixed part.
    pub header: Header,
    /// The item's name, such as a symbol; empty for the channel as a whole.
    pub name: &'a str,
    /// One RWF message with stream id 0.
    pub body: &'a [u8],
    /// The feed's own message if the plant publishes every message; else empty.
    pub source: &'a [u8],
}

impl<'a> Tick<'a> {
    /// Parses a frame; checks every length first.
    ///
    /// # Errors
    /// [`Malformed`]: the error in the frame.
    // Inlined: a tick is large, and a copy of what was just written waits for the writes.
    #[inline(always)]
    pub fn parse(frame: &'a [u8]) -> Result<Self, Malformed> {
        let short = |needed| Malformed::Short { needed, found: frame.len() };
        let (h, rest) = frame.split_first_chunk::<HEADER_BYTES>().ok_or(short(HEADER_BYTES))?;
        let u64_at = |i: usize| {
            u64::from_le_bytes([h[i], h[i + 1], h[i + 2], h[i + 3], h[i + 4], h[i + 5], h[i + 6], h[i + 7]])
        };
        let u16_at = |i: usize| u16::from_le_bytes([h[i], h[i + 1]]);
        let source_len = usize::from(u16_at(56));
        let name_len = usize::from(h[61]);
        if rest.len() < name_len + source_len {
            return Err(short(HEADER_BYTES + name_len + source_len));
        }
        let (name, rest) = rest.split_at(name_len);
        let (body, source) = rest.split_at(rest.len() - source_len);
        let header = Header {
            seq: Seq(u64_at(0)),
            feed_seq: u64_at(8),
            event: Nanos(u64_at(16)),
            wire: Nanos(u64_at(24)),
            decoded: Nanos(u64_at(32)),
            sequenced: Nanos(u64_at(40)),
            item: ItemId(u32::from_le_bytes([h[48], h[49], h[50], h[51]])),
            service: u16_at(52),
            channel: u16_at(54),
            kind: Kind::from_wire(h[58]).ok_or(Malformed::UnknownKind(h[58]))?,
            flags: Flags(h[59]),
            source_type: h[60],
            state: State::from_number(h[62]).ok_or(Malformed::UnknownState(h[62]))?,
        };
        Ok(Self { header, name: std::str::from_utf8(name).map_err(|_| Malformed::Name)?, body, source })
    }

    /// Returns the item of a frame's tick and what begins with its RWF message, without [the checks of the rest](Self::parse): to prepare for a
    /// tick that is not taken yet. `None` for a frame that is too short; for one that is no tick, they are wrong.
    #[inline]
    #[must_use]
    pub fn glance(frame: &[u8]) -> Option<(ItemId, &[u8])> {
        let (fixed, rest) = frame.split_first_chunk::<HEADER_BYTES>()?;
        let item = u32::from_le_bytes([fixed[48], fixed[49], fixed[50], fixed[51]]);
        Some((ItemId(item), rest.get(usize::from(fixed[61])..)?))
    }

    /// Appends the tick to `out` as one frame, which [`parse`](Self::parse) can read. Cuts a name longer than [`MAX_NAME_BYTES`] at a character,
    /// and leaves out a source of more than 65,535 bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let name = &self.name[..self.name.floor_char_boundary(MAX_NAME_BYTES)];
        let (source, source_len) =
            u16::try_from(self.source.len()).map_or((&[][..], 0), |length| (self.source, length));
        let mut fixed = [0; HEADER_BYTES];
        self.header.write(&mut fixed, name.len() as u8, source_len);
        out.extend_from_slice(&fixed);
        for part in [name.as_bytes(), self.body, source] {
            out.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        Header {
            seq: Seq(1),
            feed_seq: 0x0102_0304_0506_0708,
            event: Nanos(3),
            wire: Nanos(4),
            decoded: Nanos(5),
            sequenced: Nanos(6),
            item: ItemId(7),
            service: 8,
            channel: 9,
            kind: Kind::Update,
            flags: Flags::GAP,
            source_type: b'A',
            state: State::Recovering,
        }
    }

    fn frame(name: &[u8], body: &[u8], source: &[u8]) -> Vec<u8> {
        let mut fixed = [0xFF; HEADER_BYTES];
        header().write(&mut fixed, name.len() as u8, source.len() as u16);
        [&fixed[..], name, body, source].concat()
    }

    /// Other languages and the journal read these offsets: any change is a new layout.
    #[test]
    fn the_layout_is_pinned() {
        let bytes = frame(b"AAPL", b"body", b"src");
        let expected: Vec<u8> = [
            &1u64.to_le_bytes()[..],
            &[8, 7, 6, 5, 4, 3, 2, 1],
            &3u64.to_le_bytes(),
            &4u64.to_le_bytes(),
            &5u64.to_le_bytes(),
            &6u64.to_le_bytes(),
            &[7, 0, 0, 0, 8, 0, 9, 0, 3, 0, 4, 2, b'A', 4, 2, 0],
            b"AAPLbodysrc",
        ]
        .concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_tick_comes_back_as_it_was_written() {
        let bytes = frame(b"AAPL", b"body", b"source");
        let tick = Tick::parse(&bytes).unwrap();
        assert_eq!(tick.header, header());
        assert_eq!((tick.name, tick.body, tick.source), ("AAPL", &b"body"[..], &b"source"[..]));
        assert_eq!(Tick::glance(&bytes), Some((header().item, &b"bodysource"[..])));
        let mut again = b"before".to_vec();
        tick.write(&mut again);
        assert_eq!(again.strip_prefix(b"before").unwrap()[..63], bytes[..63]);
        assert_eq!(again[6 + HEADER_BYTES..], bytes[HEADER_BYTES..]);
    }

    #[test]
    fn a_cut_tick_is_refused_at_every_length() {
        let bytes = frame(b"AAPL", b"", b"source");
        for len in 0..bytes.len() {
            assert!(matches!(Tick::parse(&bytes[..len]), Err(Malformed::Short { .. })), "cut to {len} bytes");
        }
    }

    #[test]
    fn an_unknown_kind_and_a_name_that_is_no_text_are_refused() {
        let mut bytes = frame(b"\xFF\xFE", b"", b"");
        assert_eq!(Tick::parse(&bytes).unwrap_err(), Malformed::Name);
        bytes[58] = 99;
        assert_eq!(Tick::parse(&bytes).unwrap_err(), Malformed::UnknownKind(99));
        let mut bytes = frame(b"", b"", b"");
        bytes[62] = 4;
        assert_eq!(Tick::parse(&bytes).unwrap_err(), Malformed::UnknownState(4));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A ring may have any publisher: every byte of an accepted tick is accounted for, and other frames are refused.
        #[test]
        fn any_bytes_are_a_tick_or_refused(
            mut bytes in vec(any::<u8>(), 0..200),
            kind in 0..8_u8,
            state in 0..6_u8,
            lengths in any::<bool>(),
        ) {
            // Otherwise few frames would be parsed as far as the name.
            if let Some(fixed) = bytes.get_mut(56..64) {
                (fixed[2], fixed[6]) = (kind, state);
                if lengths {
                    (fixed[0], fixed[1], fixed[5]) = (fixed[0] % 64, 0, fixed[5] % 4);
                }
            }
            let glance = Tick::glance(&bytes);
            let parsed = Tick::parse(&bytes);
            let Ok(tick) = parsed else { return Ok(()) };
            let (item, body) = glance.unwrap();
            prop_assert_eq!(item, tick.header.item);
            prop_assert!(body.starts_with(tick.body));
            let mut again = [0; HEADER_BYTES];
            tick.header.write(&mut again, tick.name.len() as u8, tick.source.len() as u16);
            // The last byte of the header is spare.
            prop_assert_eq!(&again[..63], &bytes[..63]);
            let rest = [tick.name.as_bytes(), tick.body, tick.source].concat();
            prop_assert_eq!(rest, &bytes[HEADER_BYTES..]);
        }
    }
}

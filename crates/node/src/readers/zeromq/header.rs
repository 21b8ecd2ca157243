//! The second part of each ZeroMQ message: kind, numbers and times. `docs/zeromq.md` documents the layout for
//! subscribers: a change of any position needs another version.

use tapeline_measure::Nanos;
use tapeline_omm::rwf::Domain;
use tapeline_plant::tick;

/// Length in bytes.
pub const BYTES: usize = 64;
const VERSION: u8 = 1;
/// A flag among the tick's flags: the message repeats an image, with the changes since. It reuses the flag
/// that ends a group of rows, which has no use for subscribers of one item.
const IMAGE: u8 = tick::Flags::LAST_ROW.0;

/// Format of a message's third part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Body {
    /// One RWF message, stream id 0.
    #[default]
    Rwf,
    /// One message of simplified JSON.
    Json,
}

/// The header of one message.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    /// The message's number in its topic, from 1; for an image, the number of the last message contained in
    /// it.
    pub number: u64,
    /// Start of the publisher: another publisher starts its numbers from 1 again.
    pub begun: Nanos,
    /// When the message was passed to the socket.
    pub sent: Nanos,
    /// The OMM domain of the message in the third part.
    pub domain: Domain,
    /// Format of the third part.
    pub body: Body,
    /// `true` if the message repeats the image of an item, `false` if it carries a tick.
    pub is_image: bool,
    /// The tick, or the last tick contained in the image.
    pub tick: tick::Header,
}

impl Header {
    /// Encodes the header, little-endian like ticks.
    pub fn bytes(&self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        let kind = if self.is_image { tick::Kind::Refresh } else { self.tick.kind };
        out[0] = VERSION;
        out[1] = kind as u8;
        out[2] = self.tick.flags.0 & !IMAGE | if self.is_image { IMAGE } else { 0 };
        out[3] = self.tick.state as u8;
        out[4..6].copy_from_slice(&self.tick.channel.to_le_bytes());
        out[6] = self.domain.0;
        out[7] = self.body as u8;
        out[8..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..24].copy_from_slice(&self.tick.seq.0.to_le_bytes());
        out[24..32].copy_from_slice(&self.begun.0.to_le_bytes());
        out[32..40].copy_from_slice(&self.tick.event.0.to_le_bytes());
        out[40..48].copy_from_slice(&self.tick.wire.0.to_le_bytes());
        out[48..56].copy_from_slice(&self.tick.sequenced.0.to_le_bytes());
        out[56..64].copy_from_slice(&self.sent.0.to_le_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapeline_plant::State;
    use tapeline_plant::tick::Flags;

    /// Subscribers in other languages read these positions.
    #[test]
    fn the_layout_is_pinned() {
        let header = Header {
            number: 7,
            begun: Nanos(8),
            sent: Nanos(9),
            domain: Domain::MARKET_PRICE,
            body: Body::Json,
            is_image: false,
            tick: tick::Header {
                event: Nanos(11),
                wire: Nanos(12),
                sequenced: Nanos(13),
                channel: 0x0203,
                flags: Flags::SUSPECT | Flags::LAST_ROW,
                state: State::Live,
                ..crate::ticks::header(1, 10)
            },
        };
        let numbers = [7_u64, 10, 8, 11, 12, 13, 9].map(u64::to_le_bytes).concat();
        let state = State::Live as u8;
        assert_eq!(header.bytes()[..8], [1, 4, 0x20, state, 3, 2, 6, 1]);
        assert_eq!(header.bytes()[8..], numbers);
        let image = Header { is_image: true, ..header }.bytes();
        assert_eq!(image[..4], [1, 2, 0xA0, state]);
    }
}

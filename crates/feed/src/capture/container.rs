//! pcap and pcapng: from a stream of bytes to packets with a time and a link type.
//!
//! Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Framing is done here, so that every error has its place and a block of any length
//! can be skipped in bounded memory; `pcap-parser` decodes the fields.

use std::ops::Range;

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    Block, InterfaceDescriptionBlock, OptionCode, PcapHeader, parse_block_be, parse_block_le,
    parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};
use tapeline_nanos::Nanos;

use super::window::Window;
use super::{Error, LARGEST_PACKET, Place, Skip};

/// Types of blocks that contain a packet: an unreadable one is counted.
const PACKET_BLOCKS: [u32; 3] = [2, 3, 6];
/// The type of a section header; the same in both byte orders.
const SECTION_HEADER: u32 = 0x0A0D_0D0A;
/// Maximum length of a block that is read as a whole: the largest packet and its options.
const LARGEST_BLOCK: u32 = LARGEST_PACKET as u32 + 32 * 1024;
/// Maximum number of interfaces of a section; a real one has a handful.
const MOST_INTERFACES: usize = 4096;

/// A captured packet; `data` is its range in the window.
#[derive(Debug)]
pub(super) struct CapturedPacket {
    pub(super) time: Nanos,
    pub(super) link: i32,
    pub(super) whole: bool,
    pub(super) data: Range<usize>,
}

/// The next part of a container.
#[derive(Debug)]
pub(super) enum Next {
    /// A packet; the next call of [`Container::next`] skips it.
    Packet(CapturedPacket),
    /// An unusable packet.
    Skipped(Skip),
    /// The end of the file, with the position and length of an unfinished record.
    End { place: Place, trailing: u64 },
}

/// The format, with the data of its headers.
pub(super) enum Container {
    Pcap(PcapHeader),
    Ng(Section),
}

/// The present section of a pcapng file.
#[derive(Debug, Default)]
pub(super) struct Section {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Time of the previous packet: a simple packet block has no time.
    last: Nanos,
}

/// The properties of an interface that are needed to read its packets.
#[derive(Debug)]
struct Interface {
    link: i32,
    units_per_second: u64,
    offset_s: i64,
    snap_length: u32,
}

impl Container {
    /// Reads the file header of a pcap file.
    pub(super) fn pcap(window: &mut Window<'_>) -> Result<Self, Error> {
        let place = window.place();
        let expected = "a pcap file header of 24 bytes";
        match parse_pcap_header(window.fill(24)?) {
            Ok((_, header)) => {
                window.step(24);
                Ok(Self::Pcap(header))
            }
            Err(_) => Err(Error::Format { place, expected }),
        }
    }

    /// Creates a pcapng reader before its first section header.
    pub(super) fn ng() -> Self {
        Self::Ng(Section::default())
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Pcap(header) if header.is_nanosecond_precision() => "pcap, nanoseconds",
            Self::Pcap(_) => "pcap, microseconds",
            Self::Ng(_) => "pcapng",
        }
    }

    /// Returns the next packet. The window stays at the start of its record, and the record's length is added to `behind`: the next call skips it.
    pub(super) fn next(&mut self, window: &mut Window<'_>, behind: &mut usize) -> Result<Next, Error> {
        window.step(std::mem::take(behind));
        match self {
            Self::Pcap(header) => pcap_record(header, window, behind),
            Self::Ng(section) => section.next(window, behind),
        }
    }
}

fn pcap_record(header: &PcapHeader, window: &mut Window<'_>, behind: &mut usize) -> Result<Next, Error> {
    let place = window.place();
    let modified = header.is_modified_format();
    let header_length = if modified { 24 } else { 16 };
    let bytes = window.fill(header_length)?;
    let Some(length) =
        bytes.get(8..12).and_then(<[u8]>::first_chunk).filter(|_| bytes.len() >= header_length)
    else {
        return Ok(Next::End { place, trailing: bytes.len() as u64 });
    };
    let length =
        if header.is_bigendian() { u32::from_be_bytes(*length) } else { u32::from_le_bytes(*length) };
    if length as usize > LARGEST_PACKET {
        // After a wrong length no further record can be found.
        return Err(Error::Format { place, expected: "a packet record of at most 262,144 bytes" });
    }
    let record_length = header_length + length as usize;
    let bytes = window.fill(record_length)?;
    if bytes.len() < record_length {
        return Ok(Next::End { place, trailing: bytes.len() as u64 });
    }
    let parse = match (modified, header.is_bigendian()) {
        (true, _) => parse_pcap_frame_modified,
        (false, true) => parse_pcap_frame_be,
        (false, false) => parse_pcap_frame,
    };
    let Ok((_, packet)) = parse(&bytes[..record_length]) else {
        return Err(Error::Format { place, expected: "a pcap packet record" });
    };
    let fraction_ns = if header.is_nanosecond_precision() { 1 } else { 1_000 };
    let time = u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_usec) * fraction_ns;
    *behind = record_length;
    Ok(Next::Packet(CapturedPacket {
        time: Nanos(time),
        // The upper bits have another meaning (frame check sequence length).
        link: header.network.0 & 0xFFFF,
        whole: packet.caplen >= packet.origlen,
        data: header_length..record_length,
    }))
}

impl Section {
    const fn number(&self, bytes: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Reads the type and the length of a block from its first 12 bytes. A section header sets the byte order and forgets the interfaces.
    fn block_header(&mut self, start: &[u8; 12], place: Place) -> Result<(u32, u32), Error> {
        let wrong = |expected| Err(Error::Format { place, expected });
        let [kind, length, magic] =
            [0, 4, 8].map(|at| [start[at], start[at + 1], start[at + 2], start[at + 3]]);
        if u32::from_le_bytes(kind) == SECTION_HEADER {
            self.big_endian = match magic {
                [0x1A, 0x2B, 0x3C, 0x4D] => true,
                [0x4D, 0x3C, 0x2B, 0x1A] => false,
                _ => return wrong("the byte-order magic of a pcapng section"),
            };
            self.interfaces.clear();
        }
        let (kind, length) = (self.number(kind), self.number(length));
        if length < 12 || length % 4 != 0 {
            return wrong("a pcapng block length of at least 12 bytes, in whole 32-bit words");
        }
        Ok((kind, length))
    }

    fn next(&mut self, window: &mut Window<'_>, behind: &mut usize) -> Result<Next, Error> {
        loop {
            window.step(std::mem::take(behind));
            let place = window.place();
            let wrong = |expected| Err(Error::Format { place, expected });
            let bytes = window.fill(12)?;
            let Some(start) = bytes.first_chunk::<12>() else {
                return Ok(Next::End { place, trailing: bytes.len() as u64 });
            };
            let (kind, length) = self.block_header(start, place)?;
            if length > LARGEST_BLOCK {
                let skipped = window.skip(u64::from(length))?;
                if skipped < u64::from(length) {
                    return Ok(Next::End { place, trailing: skipped });
                }
                if PACKET_BLOCKS.contains(&kind) {
                    return Ok(Next::Skipped(Skip::TooLong));
                }
                continue;
            }
            let bytes = window.fill(length as usize)?;
            let Some(bytes) = bytes.get(..length as usize) else {
                return Ok(Next::End { place, trailing: bytes.len() as u64 });
            };
            if bytes.last_chunk().map(|copy| self.number(*copy)) != Some(length) {
                return wrong("the block's length again at its end");
            }
            *behind = length as usize;
            let parse = if self.big_endian { parse_block_be } else { parse_block_le };
            let Ok((_, block)) = parse(bytes) else {
                return wrong("a well-formed pcapng block");
            };
            match block {
                Block::InterfaceDescription(block) => {
                    if self.interfaces.len() >= MOST_INTERFACES {
                        return wrong("at most 4,096 interfaces in a section");
                    }
                    let Some(interface) = Interface::read(&block, self.big_endian) else {
                        return wrong("a time resolution that fits 64 bits");
                    };
                    self.interfaces.push(interface);
                }
                Block::EnhancedPacket(block) => {
                    let Some(interface) = self.interfaces.get(block.if_id as usize) else {
                        return Ok(Next::Skipped(Skip::Block));
                    };
                    let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                    self.last = interface.time(ticks);
                    let length = block.packet_data().len();
                    return Ok(Next::Packet(CapturedPacket {
                        time: self.last,
                        link: interface.link,
                        whole: length >= block.origlen as usize,
                        // Type, length, interface, time, two packet lengths.
                        data: 28..28 + length,
                    }));
                }
                Block::SimplePacket(block) => {
                    let Some(interface) = self.interfaces.first() else {
                        return Ok(Next::Skipped(Skip::Block));
                    };
                    let mut length = block.packet_data().len();
                    if interface.snap_length > 0 {
                        length = length.min(interface.snap_length as usize);
                    }
                    return Ok(Next::Packet(CapturedPacket {
                        time: self.last,
                        link: interface.link,
                        whole: length >= block.origlen as usize,
                        data: 12..12 + length,
                    }));
                }
                _ if PACKET_BLOCKS.contains(&kind) => return Ok(Next::Skipped(Skip::Block)),
                _ => {}
            }
        }
    }
}

impl Interface {
    fn read(block: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Option<Self> {
        let option = |code| block.options.iter().find(|option| option.code == code);
        // A power of ten, or with the top bit set a power of two (pcapng, section 4.2, if_tsresol).
        let units_per_second = match option(OptionCode::IfTsresol).and_then(|option| option.value.first()) {
            None => 1_000_000,
            Some(power) if power & 0x80 == 0 => 10_u64.checked_pow(u32::from(*power))?,
            Some(power) => 1_u64.checked_shl(u32::from(power & 0x7F))?,
        };
        let offset_s =
            option(OptionCode::IfTsoffset).and_then(|option| option.value.first_chunk()).map_or(0, |bytes| {
                if big_endian { i64::from_be_bytes(*bytes) } else { i64::from_le_bytes(*bytes) }
            });
        Some(Self { link: block.linktype.0, units_per_second, offset_s, snap_length: block.snaplen })
    }

    fn time(&self, ticks: u64) -> Nanos {
        const SECOND_NS: i128 = 1_000_000_000;
        let since = i128::from(ticks) * SECOND_NS / i128::from(self.units_per_second);
        let time = since + i128::from(self.offset_s) * SECOND_NS;
        Nanos(u64::try_from(time.max(0)).unwrap_or(u64::MAX))
    }
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

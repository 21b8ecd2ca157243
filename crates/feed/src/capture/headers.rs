//! From a captured frame to the payload of a UDP datagram or a TCP segment: link layer, IP, UDP or TCP.
//!
//! Checksums are not checked: captures taken on the sending host carry none, as the network card fills them in. IP fragments are not reassembled:
//! exchanges do not send any.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use crate::reasons::reasons;

reasons! {
    /// Returns the reason in words that fit after a count.
    name

    /// The reason why a packet did not yield a datagram.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Skip: 8 {
        /// The link type of the capture is not supported.
        LinkType = "unknown link type",
        /// ARP, LLDP and other frames without IP.
        NotIp = "not IP",
        /// TCP, ICMP, IGMP and other IP packets without UDP.
        NotUdp = "not UDP",
        /// A fragment of a larger IP packet.
        Fragment = "IP fragment",
        /// The capture kept only the beginning of the packet.
        Cut = "cut by the capture",
        /// Lengths in the headers contradict each other or the packet's own.
        Malformed = "malformed headers",
        /// The packet exceeds the maximum length.
        TooLong = "too long",
        /// A pcapng packet block of a kind that was abandoned in 2004, or of an interface without a description.
        Block = "unusable block",
    }
}

/// The addresses of a datagram, and the range of its payload in the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Udp {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) payload: Range<usize>,
}

/// The addresses of a segment, its position in its stream, and the range of its payload in the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tcp {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) sequence: u32,
    pub(super) flags: u8,
    pub(super) payload: Range<usize>,
}

/// The payload of an IP packet, and its addresses.
struct Carried {
    from: IpAddr,
    to: IpAddr,
    packet: Range<usize>,
}

/// The protocol after the link layer, and its offset.
enum Network {
    V4(usize),
    V6(usize),
}

const ETHER_IPV4: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86DD;
/// 802.1Q, 802.1ad, and the tag of earlier switches.
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88A8, 0x9100];
/// Maximum number of tags: more than any network uses.
const MOST_TAGS: usize = 4;
const UDP: u8 = 17;
const TCP: u8 = 6;

/// Returns the datagram in a frame of the given link type (numbers of the LINKTYPE_ registry, tcpdump.org). `whole` is false if the capture stored
/// only a part of the frame.
pub(super) fn datagram(link: i32, frame: &[u8], whole: bool) -> Result<Udp, Skip> {
    let short = short(whole);
    udp(frame, carried(link, frame, UDP, short)?, short)
}

/// Returns the TCP segment in a frame; [`Skip::NotUdp`] for any other protocol.
pub(super) fn segment(link: i32, frame: &[u8], whole: bool) -> Result<Tcp, Skip> {
    let short = short(whole);
    tcp(frame, carried(link, frame, TCP, short)?, short)
}

/// Returns the reason for truncated headers: the capture's if it cut the frame, otherwise the sender's.
fn short(whole: bool) -> Skip {
    if whole { Skip::Malformed } else { Skip::Cut }
}

/// Returns the payload of this protocol.
fn carried(link: i32, frame: &[u8], protocol: u8, short: Skip) -> Result<Carried, Skip> {
    let network = match link {
        1 => ethernet(frame, short)?,
        // Linux "cooked" capture, versions 1 and 2.
        113 => by_ether_type(be16(frame, 14).ok_or(short)?, 16)?,
        276 => by_ether_type(be16(frame, 0).ok_or(short)?, 20)?,
        // BSD loopback: the address family in the byte order of the capturing host, or in network order.
        0 | 108 => {
            let family: [u8; 4] = *frame.first_chunk().ok_or(short)?;
            match u32::from_le_bytes(family).min(u32::from_be_bytes(family)) {
                2 => Network::V4(4),
                // Linux, NetBSD, FreeBSD, Darwin.
                10 | 24 | 28 | 30 => Network::V6(4),
                _ => return Err(Skip::NotIp),
            }
        }
        // Raw IP; some systems wrote 12 and 14 for it.
        12 | 14 | 101 => match frame.first().ok_or(short)? >> 4 {
            4 => Network::V4(0),
            6 => Network::V6(0),
            _ => return Err(Skip::NotIp),
        },
        228 => Network::V4(0),
        229 => Network::V6(0),
        _ => return Err(Skip::LinkType),
    };
    match network {
        Network::V4(at) => v4(frame, at, protocol, short),
        Network::V6(at) => v6(frame, at, protocol, short),
    }
}

fn ethernet(frame: &[u8], short: Skip) -> Result<Network, Skip> {
    let mut at = 12;
    for _ in 0..=MOST_TAGS {
        let kind = be16(frame, at).ok_or(short)?;
        if !VLAN_TAGS.contains(&kind) {
            return by_ether_type(kind, at + 2);
        }
        at += 4;
    }
    Err(Skip::Malformed)
}

fn by_ether_type(kind: u16, at: usize) -> Result<Network, Skip> {
    match kind {
        ETHER_IPV4 => Ok(Network::V4(at)),
        ETHER_IPV6 => Ok(Network::V6(at)),
        _ => Err(Skip::NotIp),
    }
}

/// RFC 791.
fn v4(frame: &[u8], at: usize, protocol: u8, short: Skip) -> Result<Carried, Skip> {
    let packet = frame.get(at..).ok_or(short)?;
    let header: &[u8; 20] = packet.first_chunk().ok_or(short)?;
    let header_length = usize::from(header[0] & 0x0F) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[0] >> 4 != 4 || header_length < 20 || total < header_length {
        return Err(Skip::Malformed);
    }
    // "More fragments" or an offset.
    if u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0 {
        return Err(Skip::Fragment);
    }
    if header[9] != protocol {
        return Err(Skip::NotUdp);
    }
    let address =
        |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    Ok(Carried { from: address(12), to: address(16), packet: at + header_length..at + total })
}

/// RFC 8200; skips extension headers that do not affect the payload.
fn v6(frame: &[u8], at: usize, protocol: u8, short: Skip) -> Result<Carried, Skip> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION: u8 = 60;
    /// Maximum number of extension headers: more than any legitimate packet has.
    const MOST_EXTENSIONS: usize = 8;

    let packet = frame.get(at..).ok_or(short)?;
    let header: &[u8; 40] = packet.first_chunk().ok_or(short)?;
    if header[0] >> 4 != 6 {
        return Err(Skip::Malformed);
    }
    let end = at + 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    let mut next = header[6];
    let mut start = at + 40;
    for _ in 0..MOST_EXTENSIONS {
        let extension = || frame.get(start..)?.first_chunk::<4>();
        match next {
            _ if next == protocol => {
                // Extension lengths may exceed the packet.
                let packet = start..end.max(start);
                return Ok(Carried { from: address(8), to: address(24), packet });
            }
            HOP_BY_HOP | ROUTING | DESTINATION => {
                let &[following, length, ..] = extension().ok_or(short)?;
                next = following;
                start += (usize::from(length) + 1) * 8;
            }
            FRAGMENT => {
                let &[following, _, high, low] = extension().ok_or(short)?;
                // A fragment header without offset or successor is a whole packet (RFC 6946).
                if u16::from_be_bytes([high, low]) & 0xFFF9 != 0 {
                    return Err(Skip::Fragment);
                }
                next = following;
                start += 8;
            }
            _ => return Err(Skip::NotUdp),
        }
    }
    Err(Skip::Malformed)
}

/// RFC 768.
fn udp(frame: &[u8], Carried { from, to, packet }: Carried, short: Skip) -> Result<Udp, Skip> {
    if packet.len() < 8 {
        return Err(Skip::Malformed);
    }
    let start = packet.start;
    let word = |nth: usize| be16(frame, start + 2 * nth).ok_or(short);
    let length = usize::from(word(2)?);
    if length < 8 || length > packet.len() {
        return Err(Skip::Malformed);
    }
    if start + length > frame.len() {
        return Err(short);
    }
    Ok(Udp {
        source: SocketAddr::new(from, word(0)?),
        destination: SocketAddr::new(to, word(1)?),
        payload: start + 8..start + length,
    })
}

/// RFC 9293.
fn tcp(frame: &[u8], Carried { from, to, packet }: Carried, short: Skip) -> Result<Tcp, Skip> {
    let start = packet.start;
    let header: &[u8; 20] = frame.get(start..).and_then(|bytes| bytes.first_chunk()).ok_or(short)?;
    let length = usize::from(header[12] >> 4) * 4;
    if length < 20 || length > packet.len() {
        return Err(Skip::Malformed);
    }
    if packet.end > frame.len() {
        return Err(short);
    }
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    Ok(Tcp {
        source: SocketAddr::new(from, port(0)),
        destination: SocketAddr::new(to, port(2)),
        sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        flags: header[13],
        payload: start + length..packet.end,
    })
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet with a UDP datagram that carries "tape".
    fn v4_packet() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0x40, 0, 16, UDP, 0, 0, 10, 0, 0, 1, 239, 255, 0, 1];
        packet.extend([0x46, 0x50, 0x67, 0x6D, 0, 12, 0, 0]);
        packet.extend(b"tape");
        packet
    }

    fn v6_packet(next: u8, extensions: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, (12 + extensions.len()) as u8, next, 16];
        packet.extend([0xFD; 16]);
        packet.extend([0xFF; 16]);
        packet.extend(extensions);
        packet.extend([0, 1, 0, 2, 0, 12, 0, 0]);
        packet.extend(b"tape");
        packet
    }

    #[test]
    fn a_segment_is_found_and_a_datagram_is_none() {
        let mut packet = vec![0x45, 0, 0, 44, 0, 0, 0x40, 0, 16, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0x36, 0xB2, 0x80, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0x50, 0x18, 0, 0, 0, 0, 0, 0]);
        packet.extend(b"tape");
        let segment = segment(101, &packet, true).unwrap();
        assert_eq!((segment.source.port(), segment.destination.port()), (14_002, 32_769));
        assert_eq!((segment.sequence, segment.flags, &packet[segment.payload]), (256, 0x18, &b"tape"[..]));
        assert_eq!(super::segment(101, &v4_packet(), true), Err(Skip::NotUdp));
        assert_eq!(datagram(101, &packet, true), Err(Skip::NotUdp));
        for cut in 20..packet.len() {
            assert_eq!(super::segment(101, &packet[..cut], false), Err(Skip::Cut), "{cut} bytes");
        }
        packet[32] = 0x40;
        assert_eq!(super::segment(101, &packet, true), Err(Skip::Malformed));
    }

    fn behind(header: &[u8], packet: &[u8]) -> Vec<u8> {
        [header, packet].concat()
    }

    #[test]
    fn every_link_type_leads_to_the_payload() {
        let v4 = v4_packet();
        let mut ethernet = vec![0; 12];
        ethernet.extend([0x08, 0x00]);
        let mut tagged = vec![0; 12];
        tagged.extend([0x88, 0xA8, 0, 5, 0x81, 0x00, 0, 7, 0x08, 0x00]);
        let mut cooked = vec![0; 14];
        cooked.extend([0x08, 0x00]);
        let mut cooked_2 = vec![0x08, 0x00];
        cooked_2.extend([0; 18]);
        let frames = [
            (1, behind(&ethernet, &v4)),
            (1, behind(&tagged, &v4)),
            (1, behind(&behind(&ethernet, &v4), &[0; 18])),
            (113, behind(&cooked, &v4)),
            (276, behind(&cooked_2, &v4)),
            (0, behind(&[2, 0, 0, 0], &v4)),
            (0, behind(&[0, 0, 0, 2], &v4)),
            (108, behind(&[0, 0, 0, 2], &v4)),
            (101, v4.clone()),
            (12, v4.clone()),
            (228, v4),
            (101, v6_packet(UDP, &[])),
            (0, behind(&[30, 0, 0, 0], &v6_packet(UDP, &[]))),
            (229, v6_packet(60, &[UDP, 0, 0, 0, 0, 0, 0, 0])),
            (229, v6_packet(44, &[UDP, 0, 0, 0, 0, 0, 0, 0])),
        ];
        for (link, frame) in frames {
            let found = datagram(link, &frame, true).unwrap_or_else(|skip| panic!("{link}: {skip:?}"));
            assert_eq!(&frame[found.payload], b"tape", "link type {link}");
        }
        let found = datagram(101, &v4_packet(), true).unwrap();
        assert_eq!(found.source.to_string(), "10.0.0.1:18000");
        assert_eq!(found.destination.to_string(), "239.255.0.1:26477");
    }

    #[test]
    fn what_is_no_datagram_is_skipped_for_a_reason() {
        let changed = |at: usize, value: u8| {
            let mut packet = v4_packet();
            packet[at] = value;
            packet
        };
        let arp = [&[0; 12][..], &[0x08, 0x06, 0, 1]].concat();
        let cases = [
            (147, v4_packet(), Skip::LinkType),
            (1, arp, Skip::NotIp),
            (101, changed(9, 6), Skip::NotUdp),
            (101, changed(6, 0x20), Skip::Fragment),
            (101, changed(7, 0x01), Skip::Fragment),
            (101, changed(0, 0x44), Skip::Malformed),
            (101, changed(3, 19), Skip::Malformed),
            (101, changed(3, 33), Skip::Malformed),
            (101, changed(25, 7), Skip::Malformed),
            (101, changed(25, 13), Skip::Malformed),
            (101, v6_packet(44, &[UDP, 0, 0, 1, 0, 0, 0, 0]), Skip::Fragment),
            (101, v6_packet(58, &[]), Skip::NotUdp),
            (101, Vec::new(), Skip::Malformed),
        ];
        for (number, (link, frame, reason)) in cases.into_iter().enumerate() {
            // An IP length beyond the frame matters only if UDP's own length follows it.
            if number == 7 {
                assert!(datagram(link, &frame, true).is_ok());
                continue;
            }
            assert_eq!(datagram(link, &frame, true), Err(reason), "case {number}");
        }
    }

    #[test]
    fn cut_frames_are_told_from_malformed_ones() {
        let packet = v4_packet();
        for length in 0..packet.len() {
            assert_eq!(datagram(101, &packet[..length], false), Err(Skip::Cut), "{length}");
            assert_eq!(datagram(101, &packet[..length], true), Err(Skip::Malformed), "{length}");
        }
        let packet = v6_packet(60, &[UDP, 0, 0, 0, 0, 0, 0, 0]);
        for length in 0..packet.len() {
            assert_eq!(datagram(229, &packet[..length], false), Err(Skip::Cut), "{length}");
        }
    }
}

//! Writing a capture: UDP datagrams as a nanosecond pcap that every capture tool reads.

use std::io::{Error, ErrorKind, Write};
use std::net::SocketAddrV4;

use tapeline_nanos::Nanos;

/// Bytes of the Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;

/// A writer of a pcap file. Give it a buffered stream.
#[derive(Debug)]
pub struct PcapWriter<W> {
    stream: W,
    packets: u64,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header: nanoseconds, little-endian, Ethernet.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub fn new(mut stream: W) -> Result<Self, Error> {
        stream.write_all(&0xA1B2_3C4D_u32.to_le_bytes())?;
        // Version 2.4; no time zone, no accuracy; snapshot length; Ethernet.
        for word in [4 << 16 | 2, 0, 0, super::LARGEST_PACKET as u32, 1_u32] {
            stream.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { stream, packets: 0 })
    }

    /// Appends a datagram. The UDP checksum is omitted, as IPv4 allows.
    ///
    /// # Errors
    ///
    /// Those of the stream; a payload too long for UDP; a time after 2106, which pcap cannot represent.
    pub fn write(
        &mut self,
        time: Nanos,
        source: SocketAddrV4,
        destination: SocketAddrV4,
        payload: &[u8],
    ) -> Result<(), Error> {
        let invalid = |what| Error::new(ErrorKind::InvalidInput, what);
        let ip_length = u16::try_from(payload.len() + 28).map_err(|_| invalid("payload too long for UDP"))?;
        let seconds = u32::try_from(time.0 / 1_000_000_000).map_err(|_| invalid("time too late for pcap"))?;
        let length = (HEADERS + payload.len()) as u32;
        for word in [seconds, (time.0 % 1_000_000_000) as u32, length, length] {
            self.stream.write_all(&word.to_le_bytes())?;
        }

        let mut headers = [0; HEADERS];
        let (ethernet, rest) = headers.split_at_mut(14);
        let to = destination.ip().octets();
        // RFC 1112: the lower 23 bits of the group; otherwise an artificial address.
        let card = if destination.ip().is_multicast() {
            [0x01, 0x00, 0x5E, to[1] & 0x7F, to[2], to[3]]
        } else {
            [0x02, 0x00, to[0], to[1], to[2], to[3]]
        };
        ethernet[..6].copy_from_slice(&card);
        ethernet[6..].copy_from_slice(&[0x02, 0, 0, 0, 0, 1, 0x08, 0x00]);

        let (ip, udp) = rest.split_at_mut(20);
        ip[..2].copy_from_slice(&[0x45, 0]);
        ip[2..4].copy_from_slice(&ip_length.to_be_bytes());
        ip[4..6].copy_from_slice(&(self.packets as u16).to_be_bytes());
        // "Do not fragment"; one hop; UDP.
        ip[6..10].copy_from_slice(&[0x40, 0, 1, 17]);
        ip[12..16].copy_from_slice(&source.ip().octets());
        ip[16..].copy_from_slice(&to);
        let sum = ip_checksum(ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());

        udp[..2].copy_from_slice(&source.port().to_be_bytes());
        udp[2..4].copy_from_slice(&destination.port().to_be_bytes());
        udp[4..6].copy_from_slice(&(ip_length - 20).to_be_bytes());

        self.packets += 1;
        self.stream.write_all(&headers)?;
        self.stream.write_all(payload)
    }

    /// Returns the number of datagrams so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Flushes and returns the stream.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub fn finish(mut self) -> Result<W, Error> {
        self.stream.flush()?;
        Ok(self.stream)
    }
}

/// Returns the checksum of RFC 1071 over a header whose checksum field is zero.
fn ip_checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !((folded & 0xFFFF) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::super::{Recording, open};
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let (source, group) = ("10.1.2.3:18000".parse().unwrap(), "239.255.0.9:26477".parse().unwrap());
        let mut writer = PcapWriter::new(Vec::new()).unwrap();
        let time = Nanos(1_580_371_634_909_934_345);
        for payload in [&b"tape"[..], b"", &[7; 65_507]] {
            writer.write(time, source, group, payload).unwrap();
        }
        assert!(writer.write(time, source, group, &[0; 65_508]).is_err());
        assert!(writer.write(Nanos(u64::MAX), source, group, b"").is_err());
        assert_eq!(writer.packets(), 3);
        let file = writer.finish().unwrap();

        let Recording::Datagrams(mut capture) = open(&file[..]).unwrap() else { panic!() };
        for payload in [&b"tape"[..], b"", &[7; 65_507]] {
            let datagram = capture.next().unwrap().unwrap();
            assert_eq!(datagram.time, time);
            assert_eq!(datagram.source, source.into());
            assert_eq!(datagram.destination, group.into());
            assert!(datagram.payload == payload);
        }
        assert!(capture.next().unwrap().is_none());
        assert_eq!(capture.counts().trailing_bytes, 0);
    }

    #[test]
    fn the_header_sum_is_that_of_the_standard() {
        // The rule of RFC 1071: a header with its checksum sums to zero.
        let header =
            [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xC0, 0xA8, 0, 1, 0xC0, 0xA8, 0, 0xC7];
        assert_eq!(ip_checksum(&header), 0xB861);
    }
}

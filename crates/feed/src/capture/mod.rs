//! Reading captures: pcap, pcapng, files of ITCH messages and of DBN records, plain or compressed, from any [`Read`].
//!
//! [`open`] looks at the first bytes, not at a name, and gives either UDP datagrams with the time at which they were
//! captured ([`Capture`]), ITCH messages ([`ItchFile`]) or DBN records ([`dbn::File`]). Memory is bounded whatever the file
//! says: one window of under two mebibytes, packets of at most [`LARGEST_PACKET`] bytes, for files in Zstandard its own
//! window of up to 128 MiB, and DBN's metadata.
//!
//! What cannot be used is counted with its reason ([`Skip`]), not guessed. A file that stops in the middle of a
//! record gives all that came before and then says how many bytes were left and where ([`Counts::cut_at`]); a file that
//! contradicts itself is an [`Error`] with the place and what was expected there.
//!
//! ```
//! use tapeline_feed::capture::{self, Recording};
//!
//! let mut file = vec![0, 12]; // one ITCH message of 12 bytes
//! file.extend(*b"S\0\0\0\0\0\0\0\0\0\x07O");
//! let Recording::Messages(mut messages) = capture::open(&file[..])? else { panic!() };
//! assert_eq!(messages.next()?, Some(&file[2..]));
//! assert_eq!(messages.next()?, None);
//! # Ok::<(), capture::Error>(())
//! ```

mod container;
mod headers;
mod itch_file;
mod pack;
pub(crate) mod window;
mod write;

use std::fmt;
use std::io::{BufReader, Read};
use std::net::SocketAddr;

use flate2::read::MultiGzDecoder;
use tapeline_nanos::Nanos;

pub use crate::itch::framing::Framing;
pub use headers::Skip;
pub use itch_file::ItchFile;
pub use pack::{Packed, Packer, Packing};
pub use write::PcapWriter;

use container::{Container, Next, Record};
use window::Window;

use crate::dbn;

/// Bytes of the largest packet that is read: the largest snapshot length that capture tools use.
pub const LARGEST_PACKET: usize = 256 * 1024;

/// A position in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes before it.
    pub offset: u64,
    /// Whether they are counted after decompression.
    pub unpacked: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = if self.unpacked { " of the decompressed capture" } else { "" };
        write!(f, "byte {}{note}", self.offset)
    }
}

/// Why a capture could not be read (any further).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream failed, or its compression is damaged or cut.
    #[error("reading failed at {place}")]
    Read {
        /// Where.
        place: Place,
        /// What the stream said.
        source: std::io::Error,
    },
    /// The first bytes are those of no format that is read here.
    #[error(
        "not a capture: it begins with {start}; expected pcap, pcapng, length-prefixed ITCH messages or DBN records, plain, gzip or zstd"
    )]
    Unknown {
        /// The first bytes in hexadecimal, or "nothing".
        start: String,
    },
    /// The capture contradicts its format.
    #[error("{place}: expected {expected}")]
    Format {
        /// Where.
        place: Place,
        /// What should have been there.
        expected: &'static str,
    },
    /// A file of DBN records is damaged, or of a version that is not read.
    #[error("damaged at {place}")]
    Records {
        /// Where what is damaged begins.
        place: Place,
        /// What is wrong with it.
        source: dbn::Damage,
    },
    /// A message cannot be put into a datagram.
    #[error("message {sequence} cannot be packed")]
    Unpackable {
        /// Its number.
        sequence: u64,
        /// Why.
        source: crate::moldudp64::Refused,
    },
}

/// What a capture holds.
#[derive(Debug)]
pub enum Recording<'r> {
    /// Packets from a network.
    Datagrams(Capture<'r>),
    /// ITCH messages without packets.
    Messages(ItchFile<'r>),
    /// DBN records.
    Records(dbn::File<'r>),
}

/// The largest window that a file in Zstandard may want, as a power of two: that of Zstandard's own command.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Recognises a capture by its first bytes.
///
/// # Errors
///
/// The stream fails, is in no known format, or breaks off within its file header.
pub fn open<'r>(stream: impl Read + Send + 'r) -> Result<Recording<'r>, Error> {
    let mut window = Window::new(stream, false);
    match window.fill(4)? {
        // The magic and the method of gzip (RFC 1952).
        [0x1F, 0x8B, 8, ..] => window = Window::new(MultiGzDecoder::new(Remaining(window)), true),
        // Zstandard (RFC 8878): a frame, or one to be skipped. There may be several, one behind the other.
        [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => {
            window =
                Window::new(unpacked(window).map_err(|source| Error::Read { place: START, source })?, true);
        }
        _ => {}
    }
    // Enough for an ITCH message and the beginning of the next.
    let start = window.fill(64)?;
    let container = match start {
        [0x0A, 0x0D, 0x0D, 0x0A, ..] => Some(Container::ng()),
        // pcap: microseconds, nanoseconds, and Kuznetzov's modified form, each in both byte orders.
        [0xD4, 0xC3, 0xB2, 0xA1, ..]
        | [0xA1, 0xB2, 0xC3, 0xD4, ..]
        | [0x4D, 0x3C, 0xB2, 0xA1, ..]
        | [0xA1, 0xB2, 0x3C, 0x4D, ..]
        | [0x34, 0xCD, 0xB2, 0xA1, ..] => Some(Container::pcap(&mut window)?),
        _ => None,
    };
    if let Some(container) = container {
        let counts = Counts::default();
        return Ok(Recording::Datagrams(Capture { window, container, behind: 0, counts }));
    }
    if dbn::file::recognise(window.bytes()) {
        return Ok(Recording::Records(dbn::File::open(window)?));
    }
    match itch_file::recognise(window.bytes()) {
        Some(framing) => Ok(Recording::Messages(ItchFile::new(window, framing))),
        None => Err(Error::Unknown { start: hexadecimal(window.bytes()) }),
    }
}

const START: Place = Place { offset: 0, unpacked: false };

/// What a window in Zstandard holds when it is unpacked.
fn unpacked<'r>(window: Window<'r>) -> std::io::Result<impl Read + Send + 'r> {
    let mut stream = zstd::Decoder::with_buffer(BufReader::new(Remaining(window)))?;
    stream.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(stream)
}

/// The first eight bytes for an error message.
fn hexadecimal(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// What a window holds, and then the rest of its stream.
struct Remaining<'r>(Window<'r>);

impl Read for Remaining<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let held = self.0.fill(1).map_err(|error| match error {
            Error::Read { source, .. } => source,
            other => std::io::Error::other(other.to_string()),
        })?;
        let count = held.len().min(into.len());
        into[..count].copy_from_slice(&held[..count]);
        self.0.step(count);
        Ok(count)
    }
}

/// A UDP datagram from a capture.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// When it was captured.
    pub time: Nanos,
    /// Who sent it.
    pub source: SocketAddr,
    /// To where: the group, for multicast.
    pub destination: SocketAddr,
    /// What UDP carried.
    pub payload: &'a [u8],
}

/// A TCP segment from a capture.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// When it was captured.
    pub time: Nanos,
    /// Who sent it.
    pub source: SocketAddr,
    /// To whom.
    pub destination: SocketAddr,
    /// Where its first byte stands in what the sender sends, modulo 2³².
    pub sequence: u32,
    /// Whether it begins the stream: its sequence is one less than that of the first byte.
    pub is_first: bool,
    /// What it carried; empty for most receipts.
    pub payload: &'a [u8],
}

/// What a capture has given so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of all kinds.
    pub packets: u64,
    /// UDP datagrams among them.
    pub datagrams: u64,
    /// Bytes of the datagrams' payloads.
    pub payload_bytes: u64,
    /// Bytes of an unfinished record at the end of the file.
    pub trailing_bytes: u64,
    /// Where that record begins.
    pub cut_at: Option<Place>,
    skipped: [u64; Skip::ALL.len()],
}

impl Counts {
    /// Packets that gave no datagram, by reason; reasons that did not occur are left out.
    pub fn skipped(&self) -> impl Iterator<Item = (Skip, u64)> {
        Skip::ALL.into_iter().map(|skip| (skip, self.skipped[skip.index()])).filter(|(_, count)| *count > 0)
    }
}

/// The UDP datagrams of a pcap or pcapng capture, in file order.
#[derive(Debug)]
pub struct Capture<'r> {
    window: Window<'r>,
    container: Container,
    /// Bytes of the record that was given out last, and are still to be stepped over.
    behind: usize,
    counts: Counts,
}

impl Capture<'_> {
    /// The next datagram, or `None` at the end. Other packets are counted and passed over.
    ///
    /// # Errors
    ///
    /// The stream fails, or the capture contradicts its format; nothing can be read after that.
    #[allow(clippy::should_implement_trait, reason = "what it gives borrows from the capture")]
    pub fn next(&mut self) -> Result<Option<Datagram<'_>>, Error> {
        loop {
            let Some(record) = self.record()? else { return Ok(None) };
            let frame = self.window.bytes().get(record.data.clone()).unwrap_or(&[]);
            match headers::datagram(record.link, frame, record.whole) {
                Err(skip) => self.skip(skip),
                Ok(udp) => {
                    self.counts.packets += 1;
                    self.counts.datagrams += 1;
                    self.counts.payload_bytes += udp.payload.len() as u64;
                    let start = record.data.start;
                    let payload = start + udp.payload.start..start + udp.payload.end;
                    return Ok(Some(Datagram {
                        time: record.time,
                        source: udp.source,
                        destination: udp.destination,
                        payload: self.window.bytes().get(payload).unwrap_or(&[]),
                    }));
                }
            }
        }
    }

    /// The next TCP segment, or `None` at the end. Other packets are counted and passed over; not to be mixed with
    /// [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub fn next_segment(&mut self) -> Result<Option<Segment<'_>>, Error> {
        /// The flag of a segment that opens a connection.
        const SYN: u8 = 2;

        loop {
            let Some(record) = self.record()? else { return Ok(None) };
            let frame = self.window.bytes().get(record.data.clone()).unwrap_or(&[]);
            match headers::segment(record.link, frame, record.whole) {
                Err(skip) => self.skip(skip),
                Ok(tcp) => {
                    self.counts.packets += 1;
                    let start = record.data.start;
                    let payload = start + tcp.payload.start..start + tcp.payload.end;
                    return Ok(Some(Segment {
                        time: record.time,
                        source: tcp.source,
                        destination: tcp.destination,
                        sequence: tcp.sequence,
                        is_first: tcp.flags & SYN != 0,
                        payload: self.window.bytes().get(payload).unwrap_or(&[]),
                    }));
                }
            }
        }
    }

    /// The next packet, whatever it is; `None` at the end.
    fn record(&mut self) -> Result<Option<Record>, Error> {
        loop {
            match self.container.next(&mut self.window, &mut self.behind)? {
                Next::Packet(record) => return Ok(Some(record)),
                Next::Skipped(skip) => self.skip(skip),
                Next::End { place, trailing } => {
                    self.counts.trailing_bytes = trailing;
                    self.counts.cut_at = (trailing > 0).then_some(place);
                    return Ok(None);
                }
            }
        }
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The file's format in words.
    #[must_use]
    pub fn format(&self) -> &'static str {
        self.container.name()
    }

    fn skip(&mut self, skip: Skip) {
        self.counts.packets += 1;
        self.counts.skipped[skip.index()] += 1;
    }
}

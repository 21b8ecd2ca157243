//! Reading captures: pcap, pcapng, files of ITCH messages and of DBN records, plain or compressed, from any [`Read`].
//!
//! [`open`] examines the first bytes, not the file name, and returns UDP datagrams with their capture
//! time ([`Capture`]), ITCH messages ([`ItchFile`]) or DBN records ([`dbn::File`]). Memory is bounded for any
//! file: one window of under 2 MiB, packets of at most [`LARGEST_PACKET`] bytes, for Zstandard files their
//! window of up to 128 MiB, and DBN's metadata.
//!
//! Unusable packets are counted with their reason ([`Skip`]), not guessed. A file that stops in the middle of a
//! record yields all earlier records, then the number and place of the remaining bytes ([`Counts::cut_at`]). A file that
//! contradicts itself is an [`Error`] with the place and the expected contents.
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
use std::ops::Range;

use flate2::read::MultiGzDecoder;
use tapeline_nanos::Nanos;

pub use crate::itch::framing::FileFraming;
pub use headers::Skip;
pub use itch_file::ItchFile;
pub use pack::{Packed, Packer, Packing};
pub use write::PcapWriter;

use container::{CapturedPacket, Container, Next};
use window::Window;

use crate::dbn;

/// The maximum size of a packet in bytes: the largest snapshot length of capture tools.
pub const LARGEST_PACKET: usize = 256 * 1024;

/// A position in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of bytes before the position.
    pub offset: u64,
    /// `true` if the offset counts decompressed bytes.
    pub unpacked: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = if self.unpacked { " of the decompressed capture" } else { "" };
        write!(f, "byte {}{note}", self.offset)
    }
}

/// The reason why a capture could not be read (any further).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream failed, or its compression is damaged or cut.
    #[error("reading failed at {place}")]
    Read {
        /// The position.
        place: Place,
        /// The error of the stream.
        source: std::io::Error,
    },
    /// The first bytes belong to no supported format.
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
        /// The position.
        place: Place,
        /// The expected contents.
        expected: &'static str,
    },
    /// A file of DBN records is damaged, or of an unsupported version.
    #[error("damaged at {place}")]
    Records {
        /// The start of the damaged part.
        place: Place,
        /// The damage.
        source: dbn::Damage,
    },
    /// A message cannot be put into a datagram.
    #[error("message {sequence} cannot be packed")]
    Unpackable {
        /// The sequence of the message.
        sequence: u64,
        /// The reason.
        source: crate::moldudp64::PacketRefused,
    },
}

/// The contents of a capture.
#[derive(Debug)]
pub enum Recording<'r> {
    /// Packets from a network.
    Datagrams(Capture<'r>),
    /// ITCH messages without packets.
    Messages(ItchFile<'r>),
    /// DBN records.
    Records(dbn::File<'r>),
}

/// The maximum window of a Zstandard file, as a power of two: that of Zstandard's own command.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Opens a capture; recognises its format by its first bytes.
///
/// # Errors
///
/// The stream fails, is in no known format, or ends within its file header.
pub fn open<'r>(stream: impl Read + Send + 'r) -> Result<Recording<'r>, Error> {
    let mut window = Window::new(stream, false);
    match window.fill(4)? {
        // The magic and the method of gzip (RFC 1952).
        [0x1F, 0x8B, 8, ..] => window = Window::new(MultiGzDecoder::new(Remaining(window)), true),
        // Zstandard (RFC 8878): a frame, or one to be skipped. A file may have several frames in a row.
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

/// Returns a reader of the decompressed stream of a Zstandard window.
fn unpacked<'r>(window: Window<'r>) -> std::io::Result<impl Read + Send + 'r> {
    let mut stream = zstd::Decoder::with_buffer(BufReader::new(Remaining(window)))?;
    stream.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(stream)
}

/// Returns the first eight bytes for an error message.
fn hexadecimal(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// The bytes of a window, then the rest of its stream.
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
    /// The capture time.
    pub time: Nanos,
    /// The sender.
    pub source: SocketAddr,
    /// The receiver: the group, for multicast.
    pub destination: SocketAddr,
    /// The UDP payload.
    pub payload: &'a [u8],
}

/// A TCP segment from a capture.
#[derive(Clone, Copy, Debug)]
pub struct TcpSegment<'a> {
    /// The capture time.
    pub time: Nanos,
    /// The sender.
    pub source: SocketAddr,
    /// The receiver.
    pub destination: SocketAddr,
    /// The position of its first byte in the sender's stream, modulo 2³².
    pub sequence: u32,
    /// `true` if the segment begins the stream: its sequence is one less than that of the first byte.
    pub is_first: bool,
    /// The TCP payload; empty for most acknowledgements.
    pub payload: &'a [u8],
}

/// The counters of a capture so far.
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
    /// The start of that record.
    pub cut_at: Option<Place>,
    skipped: [u64; Skip::ALL.len()],
}

impl Counts {
    /// Returns the packets without a datagram, by reason; omits reasons that did not occur.
    pub fn skipped(&self) -> impl Iterator<Item = (Skip, u64)> {
        Skip::ALL.into_iter().map(|skip| (skip, self.skipped[skip.index()])).filter(|(_, count)| *count > 0)
    }
}

/// The UDP datagrams of a pcap or pcapng capture, in file order.
#[derive(Debug)]
pub struct Capture<'r> {
    window: Window<'r>,
    container: Container,
    /// Bytes of the record returned last, which the next call skips.
    behind: usize,
    counts: Counts,
}

impl Capture<'_> {
    /// Returns the next datagram, or `None` at the end. Counts and skips other packets.
    ///
    /// # Errors
    ///
    /// The stream fails, or the capture contradicts its format; nothing can be read after that.
    #[allow(clippy::should_implement_trait, reason = "what it gives borrows from the capture")]
    pub fn next(&mut self) -> Result<Option<Datagram<'_>>, Error> {
        let Some((record, udp)) = self.next_of(headers::datagram)? else { return Ok(None) };
        self.counts.datagrams += 1;
        self.counts.payload_bytes += udp.payload.len() as u64;
        Ok(Some(Datagram {
            time: record.time,
            source: udp.source,
            destination: udp.destination,
            payload: self.payload(&record, udp.payload),
        }))
    }

    /// Returns the next TCP segment, or `None` at the end. Counts and skips other packets. Do not mix with
    /// [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub fn next_segment(&mut self) -> Result<Option<TcpSegment<'_>>, Error> {
        /// The flag of a segment that opens a connection.
        const SYN: u8 = 2;

        let Some((record, tcp)) = self.next_of(headers::segment)? else { return Ok(None) };
        Ok(Some(TcpSegment {
            time: record.time,
            source: tcp.source,
            destination: tcp.destination,
            sequence: tcp.sequence,
            is_first: tcp.flags & SYN != 0,
            payload: self.payload(&record, tcp.payload),
        }))
    }

    /// Returns the next packet in whose frame `read` finds something, and counts it.
    fn next_of<T>(
        &mut self,
        read: impl Fn(i32, &[u8], bool) -> Result<T, Skip>,
    ) -> Result<Option<(CapturedPacket, T)>, Error> {
        loop {
            let Some(record) = self.record()? else { return Ok(None) };
            let frame = self.window.bytes().get(record.data.clone()).unwrap_or(&[]);
            match read(record.link, frame, record.whole) {
                Err(skip) => self.skip(skip),
                Ok(found) => {
                    self.counts.packets += 1;
                    return Ok(Some((record, found)));
                }
            }
        }
    }

    /// Returns the part `payload` of a packet's frame.
    fn payload(&self, record: &CapturedPacket, payload: Range<usize>) -> &[u8] {
        let start = record.data.start;
        self.window.bytes().get(start + payload.start..start + payload.end).unwrap_or(&[])
    }

    /// Returns the next packet of any kind; `None` at the end.
    fn record(&mut self) -> Result<Option<CapturedPacket>, Error> {
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

    /// Returns the counters so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the name of the file's format.
    #[must_use]
    pub fn format(&self) -> &'static str {
        self.container.name()
    }

    fn skip(&mut self, skip: Skip) {
        self.counts.packets += 1;
        self.counts.skipped[skip.index()] += 1;
    }
}

//! Reassembles the TCP streams of a capture.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use anyhow::Context;
use tapeline_feed::capture::Capture;
use tapeline_measure::Nanos;

/// Maximum size of all streams together.
const MOST_BYTES: usize = 1 << 30;
/// Maximum number of streams; later ones are ignored.
const MOST_STREAMS: usize = 10_000;

/// The bytes that one side of a connection sent.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    /// From the beginning up to the first byte that is not in the capture.
    pub(super) bytes: Vec<u8>,
    /// For each appended segment: the length of `bytes` after it, and its packet and time.
    marks: Vec<(usize, CapturedAt)>,
    /// Whether the capture has the beginning of the stream.
    pub(super) is_whole: bool,
    /// Number of bytes after the first gap.
    pub(super) behind: usize,
    /// The sequence of the next byte.
    next: u32,
    /// Segments that arrived early, by their offset from the beginning.
    early: BTreeMap<u64, Vec<u8>>,
    first: u32,
}

/// When a byte was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CapturedAt {
    /// Number of the TCP packet, from 1.
    pub(super) packet: u64,
    pub(super) time: Nanos,
}

impl Stream {
    fn new((source, destination): (SocketAddr, SocketAddr), first: u32, is_whole: bool) -> Self {
        Self {
            source,
            destination,
            bytes: Vec::new(),
            marks: Vec::new(),
            is_whole,
            behind: 0,
            next: first,
            early: BTreeMap::new(),
            first,
        }
    }

    /// When the bytes before `end` were complete.
    pub(super) fn at(&self, end: usize) -> CapturedAt {
        let at = self.marks.partition_point(|(upto, _)| *upto < end);
        let mark = self.marks.get(at).or(self.marks.last());
        mark.map_or(CapturedAt { packet: 0, time: Nanos(0) }, |(_, moment)| *moment)
    }

    /// Adds a segment: drops retransmitted bytes and restores the order.
    fn take(&mut self, sequence: u32, payload: &[u8], moment: CapturedAt) {
        let ahead = sequence.wrapping_sub(self.next) as i32;
        if ahead > 0 {
            let place = self.bytes.len() as u64 + ahead as u64;
            let early = self.early.entry(place).or_default();
            if early.len() < payload.len() {
                *early = payload.to_vec();
            }
            return;
        }
        self.append(payload.get(ahead.unsigned_abs() as usize..).unwrap_or_default(), moment);
        while let Some((place, early)) = self.early.pop_first() {
            let here = self.bytes.len() as u64;
            if place > here {
                self.early.insert(place, early);
                break;
            }
            self.append(early.get((here - place) as usize..).unwrap_or_default(), moment);
        }
    }

    fn append(&mut self, bytes: &[u8], moment: CapturedAt) {
        if !bytes.is_empty() {
            self.bytes.extend_from_slice(bytes);
            self.next = self.first.wrapping_add(self.bytes.len() as u32);
            self.marks.push((self.bytes.len(), moment));
        }
    }
}

/// All streams of a capture, in order of their first packet.
///
/// # Errors
/// The capture cannot be read, or exceeds the limits for reassembly.
pub(super) fn streams(capture: &mut Capture<'_>) -> anyhow::Result<Vec<Stream>> {
    let mut streams: Vec<Stream> = Vec::new();
    let mut places: HashMap<(SocketAddr, SocketAddr), usize> = HashMap::new();
    let (mut packet, mut held) = (0, 0);
    while let Some(segment) = capture.next_segment().context("the capture cannot be read")? {
        packet += 1;
        let ends = (segment.source, segment.destination);
        let first = segment.sequence.wrapping_add(u32::from(segment.is_first));
        let known = places.get(&ends).copied();
        // The same ports may be reused for another connection.
        let is_new = known.is_none_or(|place| segment.is_first && streams[place].first != first);
        if is_new {
            if streams.len() == MOST_STREAMS || (segment.payload.is_empty() && !segment.is_first) {
                continue;
            }
            places.insert(ends, streams.len());
            streams.push(Stream::new(ends, first, segment.is_first));
        }
        let Some(place) = places.get(&ends) else { continue };
        held += segment.payload.len();
        if held > MOST_BYTES {
            anyhow::bail!("more than {MOST_BYTES} bytes of TCP: decode a part of the capture");
        }
        streams[*place].take(first, segment.payload, CapturedAt { packet, time: segment.time });
    }
    for stream in &mut streams {
        stream.behind = stream.early.values().map(Vec::len).sum();
    }
    Ok(streams)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(packet: u64) -> CapturedAt {
        CapturedAt { packet, time: Nanos(packet) }
    }

    #[test]
    fn bytes_are_taken_once_and_in_order() {
        // Around the wrap of the sequence number.
        let first = u32::MAX - 2;
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut stream = Stream::new((nobody, nobody), first, true);
        let at = |offset: u32| first.wrapping_add(offset);
        stream.take(at(4), b"efgh", moment(1));
        stream.take(at(0), b"ab", moment(2));
        stream.take(at(1), b"bc", moment(3));
        assert_eq!(stream.bytes, b"abc");
        stream.take(at(2), b"cdef", moment(4));
        stream.take(at(0), b"ab", moment(5));
        assert_eq!(stream.bytes, b"abcdefgh");
        assert_eq!([1, 2, 3, 4, 8].map(|end| stream.at(end).packet), [2, 2, 3, 4, 4]);
        assert!(stream.early.is_empty());
    }
}

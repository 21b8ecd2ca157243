//! A line over TCP: the same datagrams, each after its length.
//!
//! ```text
//!  from below, once:              a request of MoldUDP64 (20): session (10)  first sequence (8)  65,535 (2)
//!  from below, then:              requests for the time, each when the one before is answered
//!  from above, again and again:   length (2)  datagram, or the answer with the time
//! ```
//! Numbers are big-endian, as in MoldUDP64; those of the [time](super::clocks) are not. No datagram of a session begins as an answer does. A server of re-requests does not answer that count; here it stands for everything from the first
//! sequence on. The line begins there, or with the oldest tick in memory. It ends after one heartbeat if the plant above is in another session.

use tapeline_feed::moldudp64::{HEADER_BYTES, Request};

use super::BridgeSession;
use super::clocks::{CLOCK_BYTES, ClockExchange, MAGIC};
use crate::Seq;

/// The length of what a plant below sends, in bytes.
pub const FOLLOW_BYTES: usize = HEADER_BYTES;
/// The count that stands for everything from a sequence on.
const EVERYTHING: u16 = u16::MAX;
/// A buffer of this size has space for any datagram with its length.
pub const LONGEST_PART: usize = 2 + u16::MAX as usize;

/// The reason why bytes are not those of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotALine {
    /// The peer is no plant below, or one of another version.
    #[error("the peer does not ask for a line of this version of the bridge")]
    Request,
    /// A plant that follows asks for the time, and for nothing else.
    #[error("it sends what is no request for the time")]
    Time,
    /// No datagram of MoldUDP64 has this length.
    #[error(
        "a datagram of {0} bytes is announced, less than the header of any: the peer is no line of a bridge"
    )]
    TooShort(usize),
}

/// Returns what a plant below sends that wants the line from the tick `next` of a session on.
#[must_use]
pub fn follow(session: BridgeSession, next: Seq) -> [u8; FOLLOW_BYTES] {
    Request { session: session.to_mold(), sequence: next.0, count: EVERYTHING }.encode()
}

/// Reads what a plant below has sent: the session that it follows, and the first sequence that it wants.
///
/// # Errors
/// [`NotALine::Request`].
pub fn followed(bytes: &[u8; FOLLOW_BYTES]) -> Result<(BridgeSession, Seq), NotALine> {
    let request = Request::decode(bytes).map_err(|_| NotALine::Request)?;
    let session = BridgeSession::from_mold(request.session).filter(|_| request.count == EVERYTHING);
    session.map(|session| (session, Seq(request.sequence))).ok_or(NotALine::Request)
}

/// Reads the request for the time at the front of what a plant below has sent; `None` if it has not arrived whole.
///
/// # Errors
/// [`NotALine::Time`].
pub fn time_asked(bytes: &[u8]) -> Result<Option<ClockExchange>, NotALine> {
    let Some(request) = bytes.first_chunk::<CLOCK_BYTES>() else {
        let length = bytes.len().min(MAGIC.len());
        return if bytes[..length] == MAGIC[..length] { Ok(None) } else { Err(NotALine::Time) };
    };
    let is_request = |it: &ClockExchange| *it == ClockExchange::request(it.plant, it.sent);
    ClockExchange::decode(request).filter(is_request).map(Some).ok_or(NotALine::Time)
}

/// Appends a datagram, of at most 65,535 bytes, with its length in front.
pub fn put_datagram(out: &mut Vec<u8>, datagram: &[u8]) {
    // Lossless: no datagram of UDP is longer.
    out.extend_from_slice(&(datagram.len() as u16).to_be_bytes());
    out.extend_from_slice(datagram);
}

/// Reads the datagram at the front of `bytes`; `None` if it has not arrived whole. It takes two bytes more than its length.
///
/// # Errors
/// [`NotALine::TooShort`].
#[inline]
pub fn datagram(bytes: &[u8]) -> Result<Option<&[u8]>, NotALine> {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*length));
    if length < HEADER_BYTES {
        return Err(NotALine::TooShort(length));
    }
    Ok(rest.get(..length))
}

#[cfg(test)]
mod tests {
    use tapeline_measure::Nanos;

    use super::*;
    use crate::bridge::Epoch;

    #[test]
    fn a_request_is_read_as_it_was_written_and_nothing_else_is_one() {
        let session = BridgeSession { plant: "NY1".parse().unwrap(), epoch: Epoch(9) };
        let bytes = follow(session, Seq(77));
        assert_eq!(followed(&bytes), Ok((session, Seq(77))));
        let again = Request::for_gap(session.to_mold(), 77, 77).encode();
        for other in [again, *b"GET / HTTP/1.1\r\nHost", [0; FOLLOW_BYTES], [255; FOLLOW_BYTES]] {
            assert_eq!(followed(&other), Err(NotALine::Request));
        }
    }

    #[test]
    fn a_request_for_the_time_is_found_when_it_is_whole_and_nothing_else_is_one() {
        let asked = ClockExchange::request("NY1".parse().unwrap(), Nanos(7));
        let bytes = asked.encode();
        for short in 0..CLOCK_BYTES {
            assert_eq!(time_asked(&bytes[..short]), Ok(None));
        }
        assert_eq!(time_asked(&[&bytes[..], b"more"].concat()), Ok(Some(asked)));
        let answer = ClockExchange { received: Nanos(8), ..asked }.encode();
        for other in [&answer[..], b"tapeclk2", b"GET", &[0; CLOCK_BYTES]] {
            assert_eq!(time_asked(other), Err(NotALine::Time));
        }
    }

    #[test]
    fn datagrams_are_found_when_they_are_whole() {
        let mut bytes = Vec::new();
        put_datagram(&mut bytes, &[b'x'; HEADER_BYTES]);
        for short in 0..bytes.len() {
            assert_eq!(datagram(&bytes[..short]), Ok(None));
        }
        bytes.push(0);
        assert_eq!(datagram(&bytes), Ok(Some(&[b'x'; HEADER_BYTES][..])));
        assert_eq!(datagram(&[0, 19]), Err(NotALine::TooShort(19)));
        assert_eq!(datagram(&vec![255; LONGEST_PART]).map(|found| found.map(<[u8]>::len)), Ok(Some(65_535)));
    }
}

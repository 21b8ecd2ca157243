//! MoldUDP64: the packet that carries numbered messages over UDP.
//!
//! Source: NASDAQ's MoldUDP64 protocol specification 1.00. All numbers are big-endian; one datagram is one packet: a
//! 20-byte header (session, sequence of the first message, count), then `count` blocks of a 16-bit length and that many bytes.
//! Two counts are special: 0 is a heartbeat and 0xFFFF the end of the session; both carry the *next* sequence.
//!
//! [`parse`] checks a packet as a whole, so a malformed one can be counted and dropped: nothing of it has been delivered
//! yet.

mod builder;
mod packet;
pub mod recover;
mod request;
pub mod retransmit;

pub use builder::{DEFAULT_PACKET_BYTES, PacketBuilder, PacketRefused, end_of_session, heartbeat};
pub use packet::{Data, MoldPacket, parse};

pub use crate::blocks::Messages;
pub use request::Request;

use std::fmt;

use crate::itch::encode::text;

/// The size of the header of a packet, and of a whole request, in bytes.
pub const HEADER_BYTES: usize = 20;

/// The count of a heartbeat.
pub const HEARTBEAT: u16 = 0;

/// The count of an end-of-session packet.
pub const END_OF_SESSION: u16 = 0xFFFF;

/// The maximum number of messages in a packet or a request: one less than [`END_OF_SESSION`].
pub const MAX_MESSAGES: u16 = 0xFFFE;

/// The name of a session: sequences count within it. Compared as ten raw bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MoldSession(pub [u8; 10]);

impl MoldSession {
    /// Creates the name of a session, left-justified and padded with spaces; a longer name is cut.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(text(name))
    }
}

/// Writes the name without its padding; unprintable bytes appear as `\x00`.
impl fmt::Display for MoldSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.trim_ascii_end().escape_ascii(), f)
    }
}

/// Returns the first 20 bytes in the form that packets and requests share.
fn header(session: MoldSession, sequence: u64, count: u16) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..10].copy_from_slice(&session.0);
    bytes[10..18].copy_from_slice(&sequence.to_be_bytes());
    bytes[18..].copy_from_slice(&count.to_be_bytes());
    bytes
}

/// Returns session, sequence and count of a [`header`].
fn fields(bytes: &[u8; HEADER_BYTES]) -> (MoldSession, u64, u16) {
    let [session @ .., s0, s1, s2, s3, s4, s5, s6, s7, c0, c1] = *bytes;
    (MoldSession(session), u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]), u16::from_be_bytes([c0, c1]))
}

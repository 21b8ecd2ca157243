//! Packets as bytes.

use super::{Login, Reject, SoupSession};
use crate::digits::Digits;

/// The size of a login in bytes.
pub const LOGIN_BYTES: usize = 3 + Login::BYTES;

/// The size of an accepted login in bytes.
pub const ACCEPTED_BYTES: usize = 3 + 10 + 20;

/// A client's heartbeat.
pub const CLIENT_HEARTBEAT: [u8; 3] = [0, 1, b'R'];

/// A client's logout.
pub const LOGOUT: [u8; 3] = [0, 1, b'O'];

/// A server's heartbeat.
pub const SERVER_HEARTBEAT: [u8; 3] = [0, 1, b'H'];

/// A server's end of session: no more messages follow.
pub const END_OF_SESSION: [u8; 3] = [0, 1, b'Z'];

/// The longest message of a packet.
const LONGEST_MESSAGE: usize = u16::MAX as usize - 1;

/// Encodes a login.
#[must_use]
pub fn login(login: &Login) -> [u8; LOGIN_BYTES] {
    let mut bytes = [0; LOGIN_BYTES];
    bytes[..3].copy_from_slice(&[0, (LOGIN_BYTES - 2) as u8, b'L']);
    bytes[3..9].copy_from_slice(&login.username.0);
    bytes[9..19].copy_from_slice(login.password.field());
    bytes[19..29].copy_from_slice(&login.session.0);
    bytes[29..].copy_from_slice(&number(login.sequence));
    bytes
}

/// Encodes the answer to an accepted login; `sequence` is that of the next message. The session is padded on the left, as
/// servers do.
#[must_use]
pub fn accepted(session: SoupSession, sequence: u64) -> [u8; ACCEPTED_BYTES] {
    let mut bytes = [b' '; ACCEPTED_BYTES];
    bytes[..3].copy_from_slice(&[0, (ACCEPTED_BYTES - 2) as u8, b'A']);
    let name = session.name();
    bytes[13 - name.len()..13].copy_from_slice(name);
    bytes[13..].copy_from_slice(&number(sequence));
    bytes
}

/// Encodes the answer to a refused login.
#[must_use]
pub const fn rejected(reject: Reject) -> [u8; 4] {
    [0, 2, b'J', reject.letter()]
}

/// Returns the header of the next message in sequence with this number of bytes; `None` if it is too long for a packet.
#[inline]
#[must_use]
pub fn sequenced_header(message_bytes: usize) -> Option<[u8; 3]> {
    header(b'S', message_bytes)
}

/// Returns the header of a message without a sequence, from either end.
#[must_use]
pub fn unsequenced_header(message_bytes: usize) -> Option<[u8; 3]> {
    header(b'U', message_bytes)
}

/// Returns the header of readable text, from either end.
#[must_use]
pub fn debug_header(text_bytes: usize) -> Option<[u8; 3]> {
    header(b'+', text_bytes)
}

#[inline]
fn header(kind: u8, bytes: usize) -> Option<[u8; 3]> {
    if bytes > LONGEST_MESSAGE {
        return None;
    }
    // Lossless: at most u16::MAX.
    let [high, low] = (1 + bytes as u16).to_be_bytes();
    Some([high, low, kind])
}

/// Returns a decimal number, padded on the left.
fn number(number: u64) -> [u8; 20] {
    let digits = Digits::of(number);
    let mut field = [b' '; 20];
    field[20 - digits.as_bytes().len()..].copy_from_slice(digits.as_bytes());
    field
}

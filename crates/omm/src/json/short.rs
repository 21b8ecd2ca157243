//! The text of short values, written to the start of a buffer of a known length: no part of the text needs a check of its
//! own. Each function returns the length of the text; the bytes behind it have no meaning.

use super::scan::{all, special};
use crate::rwf::{Hint, Real, Time, UpdateType};

/// Length of the buffer: the longest text is a time with nanoseconds, 20 bytes, whose parts are written as words.
pub(super) const ROOM: usize = 32;
/// A buffer for one value.
pub(super) type Room = [u8; ROOM];

/// Returns the eight digits of a number below 10⁸ as numbers, the first in the lowest byte: the halves of the number, their
/// halves, and then the digits, each step for all lanes of the word at once.
const fn eight_digits(value: u32) -> u64 {
    // Divisions by multiplications that are exact up to 9,999, and up to 99. A quotient stays in its lane and its multiple is
    // taken from the lane behind it: one multiplication for both.
    let fours = (value / 10_000) as u64 | ((value % 10_000) as u64) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7F_0000_007F;
    let pairs = (fours << 16).wrapping_sub(hundreds * ((100 << 16) - 1));
    let tens = ((pairs * 103) >> 10) & 0x000F_000F_000F_000F;
    (pairs << 8).wrapping_sub(tens * ((10 << 8) - 1))
}

/// Writes a word at `at`, which is below 16.
#[inline]
fn put(room: &mut Room, at: usize, word: u64) {
    let at = at & 15;
    room[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Writes a number below 10⁸ at `at`, which is below 8; returns its end, or `None` for any other number. Of its eight digits,
/// `1 + whole` are before the point, which is left out if all are.
#[inline]
fn digits(value: u64, whole: usize, at: usize, room: &mut Room) -> Option<usize> {
    if value >= 100_000_000 || whole > 7 {
        return None;
    }
    let digits = eight_digits(value as u32);
    let text = digits | all(b'0');
    // The last digit before the point stays, if it is a zero too.
    let last = 8 * whole;
    let zeros = (digits | 1 << last).trailing_zeros() & !7;
    put(room, at, text >> zeros);
    let end = at + 8 - zeros as usize / 8;
    if whole == 7 {
        return Some(end);
    }
    // That digit gives its byte to the point.
    let point = (end + whole - 7) & 15;
    put(room, point, text >> last);
    room[point] = b'.';
    Some(end + 1)
}

/// Writes the start of an update, with the name of the member that holds its fields; `None` for a long or negative id, and
/// for a type without a name.
#[inline]
pub(super) fn update_head(stream_id: i32, update_type: UpdateType, room: &mut [u8; 96]) -> Option<usize> {
    let (text, len) = UPDATE_HEADS.get(usize::from(update_type.0))?;
    let id = room.first_chunk_mut()?;
    id[..ID.len()].copy_from_slice(ID);
    let end = digits(stream_id.try_into().ok()?, 7, ID.len(), id)?;
    *room.get_mut(end..)?.first_chunk_mut()? = *text;
    Some(end + usize::from(*len))
}

const ID: &[u8] = br#"{"ID":"#;

/// For each type of update, the text between its id and its fields, with zeros behind, and the length of that text.
const UPDATE_HEADS: [([u8; 64], u8); UpdateType::WORDS.len()] = {
    let mut heads = [([0; 64], 0); UpdateType::WORDS.len()];
    let mut update_type = 0;
    while update_type < heads.len() {
        let (word, number) = UpdateType::WORDS[update_type];
        assert!(number as usize == update_type, "the words are in the order of their numbers");
        let parts: [&[u8]; 3] = [br#","Type":"Update","UpdateType":""#, word.as_bytes(), br#"","Fields":"#];
        let (text, len) = &mut heads[update_type];
        let mut part = 0;
        while part < parts.len() {
            let mut at = 0;
            while at < parts[part].len() {
                text[*len as usize] = parts[part][at];
                *len += 1;
                at += 1;
            }
            part += 1;
        }
        update_type += 1;
    }
    heads
};

/// Writes the value of a blank field.
#[inline]
pub(super) fn null(room: &mut Room) -> Option<usize> {
    *room.first_chunk_mut()? = *b"null";
    Some(4)
}

/// Writes a number below 10⁸; `None` for any other.
#[inline]
pub(super) fn unsigned(value: u64, room: &mut Room) -> Option<usize> {
    digits(value, 7, 0, room)
}

/// Writes the exact value with as many decimals as the form has, if it has at most eight digits and seven decimals.
#[inline]
pub(super) fn real(value: Real, room: &mut Room) -> Option<usize> {
    // Any other hint wraps to more digits than there are.
    let whole = value.hint.0.wrapping_sub(Hint::ONE.0 - 7);
    room[0] = b'-';
    digits(value.mantissa.unsigned_abs(), whole.into(), usize::from(value.mantissa < 0), room)
}

/// Writes a quoted [`bare_time`].
#[inline]
pub(super) fn time(value: Time, room: &mut Room) -> Option<usize> {
    room[0] = b'"';
    let end = bare_time(value, 1, room)?;
    *room.get_mut(end)? = b'"';
    Some(end + 1)
}

/// Writes `hh:mm:ss` and a fraction without trailing zeros at `at`, which is 0 or 1; returns its end, or `None` if a member
/// is unknown or has a value that no clock shows.
#[inline]
pub(super) fn bare_time(value: Time, at: usize, room: &mut Room) -> Option<usize> {
    let [hour, minute, second] = [u64::from(value.hour), u64::from(value.minute), u64::from(value.second)];
    let thousands =
        u64::from(value.millisecond) | u64::from(value.microsecond) << 24 | u64::from(value.nanosecond) << 48;
    // 24 more than 999 is the largest number of ten bits.
    let excess = (thousands | thousands.wrapping_add(24 | 24 << 24 | 24 << 48)) & 0xFC00_03FC_0003_FC00;
    // The bits of numbers below 64, as a clock shows them, are those of a number below 64.
    if (hour | minute | second) > 99 || excess != 0 {
        return None;
    }
    // As in `eight_digits`, with a byte between the lanes.
    let parts = hour | minute << 24 | second << 48;
    let tens = ((parts * 103) >> 10) & 0x000F_0000_0F00_000F;
    let digits = (parts << 8).wrapping_sub(tens * ((10 << 8) - 1));
    put(room, at, digits | u64::from_le_bytes(*b"00:00:00"));
    // The same for three digits each: by 100, exact up to 999, and by 10. The last digit is behind the word.
    if thousands == 0 {
        return Some(at + 8);
    }
    let hundreds = ((thousands * 41) >> 12) & 0x000F_0000_0F00_000F;
    let below = thousands - hundreds * 100;
    let tens = ((below * 103) >> 10) & 0x000F_0000_0F00_000F;
    let ones = below - tens * 10;
    let digits = hundreds | tens << 8 | ones << 16;
    let last = (ones >> 48) as u8;
    let zeros = if last == 0 { 1 + digits.leading_zeros() as usize / 8 } else { 0 };
    put(room, at + 8, u64::from(b'.'));
    put(room, at + 9, digits | all(b'0'));
    *room.get_mut(at + 17)? = last | b'0';
    Some(at + 18 - zeros)
}

/// Writes a string of at most eight bytes, given as a word with zeros behind it, if it is ASCII that needs no escape.
#[inline]
pub(super) fn plain(word: u64, len: usize, room: &mut Room) -> Option<usize> {
    // Blanks behind the text: a zero is special.
    let blanks = all(b' ').checked_shl(8 * len as u32).unwrap_or(0);
    if (special(word | blanks) | word) & all(0x80) != 0 {
        return None;
    }
    room[0] = b'"';
    put(room, 1, word);
    *room.get_mut(len + 1)? = b'"';
    Some(len + 2)
}

/// Returns at most eight bytes as a word, the first in the lowest byte, with zeros behind them. Two loads that may overlap
/// replace a loop.
pub(super) fn word(bytes: &[u8]) -> Option<u64> {
    let len = bytes.len();
    if len > 8 {
        return None;
    }
    if let (Some(head), Some(tail)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return Some(
            u64::from(u32::from_le_bytes(*head)) | u64::from(u32::from_le_bytes(*tail)) << (8 * (len - 4)),
        );
    }
    if let (Some(head), Some(tail)) = (bytes.first_chunk::<2>(), bytes.last_chunk::<2>()) {
        return Some(
            u64::from(u16::from_le_bytes(*head)) | u64::from(u16::from_le_bytes(*tail)) << (8 * (len - 2)),
        );
    }
    Some(bytes.first().map_or(0, |byte| u64::from(*byte)))
}

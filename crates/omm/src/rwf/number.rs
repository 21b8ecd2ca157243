//! INT, UINT, FLOAT, DOUBLE and ENUM values (RWF chapter 3).
//!
//! The length of a value is that of its entry. Length 0 is blank for every type, and reads as `None`.

use crate::Malformed;

/// Returns the length of the shortest INT that holds `value`: 1 to 8 bytes.
#[inline]
pub(crate) const fn int_len(value: i64) -> usize {
    // The sign bit counts too: 127 takes one byte, 128 two.
    (72 - (value ^ (value >> 63)).leading_zeros() as usize) / 8
}

/// Returns the length of the shortest UINT that holds `value`: 1 to 8 bytes.
#[inline]
pub(crate) const fn uint_len(value: u64) -> usize {
    (71 - (value | 1).leading_zeros() as usize) / 8
}

/// Returns the shortest INT: its bytes are the first `len` of the word, from the top.
#[inline]
pub(crate) const fn encode_int_wide(value: i64) -> (u64, usize) {
    let len = int_len(value);
    ((value as u64) << (64 - 8 * len), len)
}

/// Returns the shortest UINT: its bytes are the first `len` of the word, from the top.
#[inline]
pub(crate) const fn encode_uint_wide(value: u64) -> (u64, usize) {
    let len = uint_len(value);
    (value << (64 - 8 * len), len)
}

/// Returns the shortest INT: its bytes are the first `len` of the array.
#[inline]
pub(crate) const fn encode_int(value: i64) -> ([u8; 8], usize) {
    let (wide, len) = encode_int_wide(value);
    (wide.to_be_bytes(), len)
}

/// Returns the shortest UINT: its bytes are the first `len` of the array.
#[inline]
pub(crate) const fn encode_uint(value: u64) -> ([u8; 8], usize) {
    let (wide, len) = encode_uint_wide(value);
    (wide.to_be_bytes(), len)
}

/// Returns the shortest ENUM: its bytes are the first `len` of the array.
#[inline]
pub(crate) const fn encode_enum(value: u16) -> ([u8; 2], usize) {
    if value < 0x100 { ([value as u8, 0], 1) } else { (value.to_be_bytes(), 2) }
}

/// Returns one to eight bytes as a number with leading zeros. Two loads that may overlap replace a loop: the length of
/// a price changes from message to message, and so would the branches of a loop.
#[inline]
pub(crate) fn widen(data: &[u8]) -> Option<u64> {
    let len = data.len();
    if len > 8 {
        return None;
    }
    if let (Some(head), Some(tail)) = (data.first_chunk::<4>(), data.last_chunk::<4>()) {
        let head = u64::from(u32::from_be_bytes(*head));
        return Some(head << (8 * (len - 4)) | u64::from(u32::from_be_bytes(*tail)));
    }
    if let (Some(head), Some(tail)) = (data.first_chunk::<2>(), data.last_chunk::<2>()) {
        let head = u64::from(u16::from_be_bytes(*head));
        return Some(head << (8 * (len - 2)) | u64::from(u16::from_be_bytes(*tail)));
    }
    data.first().map(|byte| u64::from(*byte))
}

/// Returns one to eight bytes as a signed number; `ahead` is the same bytes and those after them.
///
/// If eight bytes are readable, the length needs no branch.
#[inline]
pub(crate) fn int_ahead(len: usize, ahead: &[u8]) -> Option<i64> {
    if let Some(wide) = ahead.first_chunk::<8>()
        && (1..=8).contains(&len)
    {
        return Some(i64::from_be_bytes(*wide) >> (64 - 8 * len));
    }
    int_at_end(ahead.get(..len)?)
}

/// The same near the end of a message, where fewer than eight bytes are readable.
#[cold]
pub(super) fn int_at_end(data: &[u8]) -> Option<i64> {
    let shift = 64_usize.saturating_sub(8 * data.len());
    Some(((widen(data)? << shift) as i64) >> shift)
}

/// Returns one to eight bytes as an unsigned number; see [`int_ahead`].
#[inline]
pub(crate) fn uint_ahead(len: usize, ahead: &[u8]) -> Option<u64> {
    if let Some(wide) = ahead.first_chunk::<8>()
        && (1..=8).contains(&len)
    {
        return Some(u64::from_be_bytes(*wide) >> (64 - 8 * len));
    }
    uint_at_end(ahead.get(..len)?)
}

/// The same near the end of a message, where fewer than eight bytes are readable.
#[cold]
fn uint_at_end(data: &[u8]) -> Option<u64> {
    widen(data)
}

/// Returns one or two bytes as an unsigned number; see [`int_ahead`].
#[inline]
pub(crate) fn enum_ahead(len: usize, ahead: &[u8]) -> Option<u16> {
    match ahead.first_chunk::<2>() {
        Some(wide) if (1..=2).contains(&len) => Some(u16::from_be_bytes(*wide) >> (16 - 8 * len)),
        _ => None,
    }
}

/// Decodes an INT of any length from 1 to 8; `None` is blank.
///
/// # Errors
///
/// Fails for more than eight bytes.
#[inline]
pub fn decode_int(data: &[u8]) -> Result<Option<i64>, Malformed> {
    if data.is_empty() {
        return Ok(None);
    }
    let shift = 64_usize.saturating_sub(8 * data.len());
    match widen(data) {
        Some(wide) => Ok(Some(((wide << shift) as i64) >> shift)),
        None => Err(Malformed::new(8, "INT")),
    }
}

/// Decodes a UINT of any length from 1 to 8; `None` is blank.
///
/// # Errors
///
/// Fails for more than eight bytes.
#[inline]
pub fn decode_uint(data: &[u8]) -> Result<Option<u64>, Malformed> {
    if data.is_empty() {
        return Ok(None);
    }
    widen(data).map(Some).ok_or(Malformed::new(8, "UINT"))
}

/// Decodes a FLOAT: four bytes, IEEE 754; `None` is blank.
///
/// # Errors
///
/// Fails for any other length.
#[inline]
pub fn decode_float(data: &[u8]) -> Result<Option<f32>, Malformed> {
    fixed(data, "FLOAT").map(|bytes| bytes.map(f32::from_be_bytes))
}

/// Decodes a DOUBLE: eight bytes, IEEE 754; `None` is blank.
///
/// # Errors
///
/// Fails for any other length.
#[inline]
pub fn decode_double(data: &[u8]) -> Result<Option<f64>, Malformed> {
    fixed(data, "DOUBLE").map(|bytes| bytes.map(f64::from_be_bytes))
}

/// Decodes an ENUM: one or two bytes; `None` is blank.
///
/// # Errors
///
/// Fails for more than two bytes.
#[inline]
pub fn decode_enum(data: &[u8]) -> Result<Option<u16>, Malformed> {
    match *data {
        [] => Ok(None),
        [low] => Ok(Some(u16::from(low))),
        [high, low] => Ok(Some(u16::from_be_bytes([high, low]))),
        _ => Err(Malformed::new(2, "ENUM")),
    }
}

/// Returns exactly `N` bytes, or `None` for no bytes.
#[inline]
fn fixed<const N: usize>(data: &[u8], what: &'static str) -> Result<Option<[u8; N]>, Malformed> {
    match data.first_chunk::<N>() {
        Some(bytes) if data.len() == N => Ok(Some(*bytes)),
        _ if data.is_empty() => Ok(None),
        _ => Err(Malformed::new(data.len().min(N), what)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_of_an_integer() {
        let mut edges = vec![0_i64, 1, -1];
        for bits in 1..64 {
            let power = 1_i64.wrapping_shl(bits);
            let below = power.wrapping_neg();
            edges.extend([power, power.wrapping_sub(1), below, below.wrapping_sub(1)]);
        }
        for value in edges {
            let (bytes, len) = encode_int(value);
            assert_eq!(decode_int(&bytes[..len]), Ok(Some(value)));
            assert_eq!(int_ahead(len, &bytes[..len]), Some(value));
            assert_eq!(int_ahead(len, &[&bytes[..len], &[0xA5; 8]].concat()), Some(value));
            if len > 1 {
                // Canonical: one byte less would give another number.
                assert_ne!(decode_int(&bytes[1..len]), Ok(Some(value)));
            }
            let unsigned = value as u64;
            let (bytes, len) = encode_uint(unsigned);
            assert_eq!(decode_uint(&bytes[..len]), Ok(Some(unsigned)));
            assert_eq!(uint_ahead(len, &bytes[..len]), Some(unsigned));
            assert_eq!(uint_ahead(len, &[&bytes[..len], &[0xA5; 8]].concat()), Some(unsigned));
        }
    }

    #[test]
    fn longer_forms_than_needed_are_read() {
        assert_eq!(decode_int(&[0, 0, 0, 5]), Ok(Some(5)));
        assert_eq!(decode_int(&[0xFF, 0xFF, 0xFF]), Ok(Some(-1)));
        assert_eq!(decode_uint(&[0, 0, 5]), Ok(Some(5)));
        assert_eq!(decode_enum(&[0, 5]), Ok(Some(5)));
    }

    #[test]
    fn blanks_and_wrong_lengths() {
        assert_eq!(decode_int(&[]), Ok(None));
        assert_eq!(decode_double(&[]), Ok(None));
        assert!(decode_int(&[0; 9]).is_err());
        assert!(decode_uint(&[0; 9]).is_err());
        assert!(decode_float(&[0; 3]).is_err());
        assert!(decode_float(&[0; 5]).is_err());
        assert!(decode_double(&[0; 4]).is_err());
        assert!(decode_enum(&[0; 3]).is_err());
    }
}

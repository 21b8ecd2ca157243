//! Cursors over wire bytes: reading and writing of the lengths and numbers of variable size of RWF chapter 1.
//!
//! | name | form |
//! |---|---|
//! | u15 | one byte below 0x80, else two with the top bit set |
//! | u16ob | one byte below 0xFE, else 0xFE and two bytes |
//! | u30 | the top two bits of the first byte state the size: 00 one, 10 two, 01 three, 11 four bytes |
//! | b8, b15, b16 | bytes with a u8, u15, u16ob length in front |

use crate::{Full, Malformed, Refused};

/// Maximum u15.
const U15_MAX: usize = 0x7FFF;
/// Maximum u30.
const U30_MAX: u32 = 0x3FFF_FFFF;

/// Reader of numbers and byte strings from the start of a slice.
///
/// Every read either moves past the bytes that it read, or fails and does not move. Reading does not allocate; a length
/// is trusted only if that many bytes exist.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of `bytes`.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the number of bytes read so far.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Returns the unread bytes.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Returns `true` if everything has been read.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Reads the next `N` bytes.
    #[inline]
    fn chunk<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let chunk = self.rest().first_chunk::<N>().ok_or(Malformed::new(self.at, what))?;
        self.at += N;
        Ok(*chunk)
    }

    /// Reads the next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let taken = self.rest().get(..len).ok_or(Malformed::new(self.at, what))?;
        self.at += len;
        Ok(taken)
    }

    /// Reads a byte.
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        self.chunk::<1>(what).map(|[byte]| byte)
    }

    /// Reads two bytes.
    #[inline]
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        self.chunk(what).map(u16::from_be_bytes)
    }

    /// Reads two bytes, signed.
    #[inline]
    pub fn i16(&mut self, what: &'static str) -> Result<i16, Malformed> {
        self.chunk(what).map(i16::from_be_bytes)
    }

    /// Reads four bytes.
    #[inline]
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        self.chunk(what).map(u32::from_be_bytes)
    }

    /// Reads four bytes, signed.
    #[inline]
    pub fn i32(&mut self, what: &'static str) -> Result<i32, Malformed> {
        self.chunk(what).map(i32::from_be_bytes)
    }

    /// Reads a u15: up to 32,767 in one or two bytes.
    #[inline]
    pub fn u15(&mut self, what: &'static str) -> Result<u16, Malformed> {
        let start = self.at;
        let first = self.u8(what)?;
        if first < 0x80 {
            return Ok(u16::from(first));
        }
        let Ok(second) = self.u8(what) else { return Err(self.back_to(start, what)) };
        Ok(u16::from_be_bytes([first & 0x7F, second]))
    }

    /// Reads a u16ob: up to 65,535 in one or three bytes. 0xFF is not a valid first byte.
    #[inline]
    pub fn u16ob(&mut self, what: &'static str) -> Result<u16, Malformed> {
        let start = self.at;
        match self.u8(what)? {
            0xFE => self.u16(what).map_err(|_| self.back_to(start, what)),
            0xFF => Err(self.back_to(start, what)),
            small => Ok(u16::from(small)),
        }
    }

    /// Reads a u30: up to 1,073,741,823 in one to four bytes.
    #[inline]
    pub fn u30(&mut self, what: &'static str) -> Result<u32, Malformed> {
        let start = self.at;
        let first = self.u8(what)?;
        let further = match first >> 6 {
            0b00 => 0,
            0b10 => 1,
            0b01 => 2,
            _ => 3,
        };
        let Ok(tail) = self.take(further, what) else { return Err(self.back_to(start, what)) };
        Ok(tail.iter().fold(u32::from(first & 0x3F), |value, byte| value << 8 | u32::from(*byte)))
    }

    /// Reads bytes with a u8 length.
    #[inline]
    pub fn b8(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let start = self.at;
        let len = self.u8(what)?;
        self.take(usize::from(len), what).map_err(|_| self.back_to(start, what))
    }

    /// Reads bytes with a u15 length.
    #[inline]
    pub fn b15(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let start = self.at;
        let len = self.u15(what)?;
        self.take(usize::from(len), what).map_err(|_| self.back_to(start, what))
    }

    /// Reads bytes with a u16ob length.
    #[inline]
    pub fn b16(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let start = self.at;
        let len = self.u16ob(what)?;
        self.take(usize::from(len), what).map_err(|_| self.back_to(start, what))
    }

    /// Undoes a failed read, so that the fault points at its first byte.
    #[cold]
    fn back_to(&mut self, start: usize, what: &'static str) -> Malformed {
        self.at = start;
        Malformed::new(start, what)
    }
}

/// Writer of numbers and byte strings to the start of the caller's slice.
///
/// Every write is either complete, or is refused and does not move.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Creates a writer at the start of `out`.
    #[inline]
    #[must_use]
    pub const fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// Returns the number of bytes written so far.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.at
    }

    /// Returns `true` if nothing has been written yet.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.at == 0
    }

    /// Writes bytes unchanged.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let room = self.out.get_mut(self.at..).ok_or(Full)?.get_mut(..bytes.len()).ok_or(Full)?;
        room.copy_from_slice(bytes);
        self.at += bytes.len();
        Ok(())
    }

    /// Writes a byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<(), Full> {
        self.bytes(&[value])
    }

    /// Writes two bytes.
    #[inline]
    pub fn u16(&mut self, value: u16) -> Result<(), Full> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes four bytes.
    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<(), Full> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes four bytes, signed.
    #[inline]
    pub fn i32(&mut self, value: i32) -> Result<(), Full> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes a u15 in its shortest form; `what` names the member if the value is too large.
    #[inline]
    pub fn u15(&mut self, value: usize, what: &'static str) -> Result<(), Refused> {
        match value {
            0..=0x7F => self.u8(value as u8)?,
            0x80..=U15_MAX => self.u16(0x8000 | value as u16)?,
            _ => return Err(Refused::TooLong { what, limit: U15_MAX }),
        }
        Ok(())
    }

    /// Writes a u16ob in its shortest form; `what` names the member if the value is too large.
    #[inline]
    pub fn u16ob(&mut self, value: usize, what: &'static str) -> Result<(), Refused> {
        match value {
            0..=0xFD => self.u8(value as u8)?,
            0xFE..=0xFFFF => {
                let [high, low] = (value as u16).to_be_bytes();
                self.bytes(&[0xFE, high, low])?;
            }
            _ => return Err(Refused::TooLong { what, limit: 0xFFFF }),
        }
        Ok(())
    }

    /// Writes a u30 in its shortest form; `what` names the member if the value is too large.
    #[inline]
    pub fn u30(&mut self, value: u32, what: &'static str) -> Result<(), Refused> {
        let [a, b, c, d] = value.to_be_bytes();
        match value {
            0..=0x3F => self.bytes(&[d])?,
            0x40..=0x3FFF => self.bytes(&[0x80 | c, d])?,
            0x4000..=0x3F_FFFF => self.bytes(&[0x40 | b, c, d])?,
            0x40_0000..=U30_MAX => self.bytes(&[0xC0 | a, b, c, d])?,
            _ => return Err(Refused::TooLong { what, limit: U30_MAX as usize }),
        }
        Ok(())
    }

    /// Writes bytes with a u8 length.
    #[inline]
    pub fn b8(&mut self, bytes: &[u8], what: &'static str) -> Result<(), Refused> {
        let len = u8::try_from(bytes.len()).map_err(|_| Refused::TooLong { what, limit: 0xFF })?;
        self.whole(|w| {
            w.u8(len)?;
            Ok(w.bytes(bytes)?)
        })
    }

    /// Writes bytes with a u15 length.
    #[inline]
    pub fn b15(&mut self, bytes: &[u8], what: &'static str) -> Result<(), Refused> {
        self.whole(|w| {
            w.u15(bytes.len(), what)?;
            Ok(w.bytes(bytes)?)
        })
    }

    /// Writes bytes with a u16ob length.
    #[inline]
    pub fn b16(&mut self, bytes: &[u8], what: &'static str) -> Result<(), Refused> {
        self.whole(|w| {
            w.u16ob(bytes.len(), what)?;
            Ok(w.bytes(bytes)?)
        })
    }

    /// Keeps everything that `write` writes, or nothing if `write` fails.
    #[inline]
    pub fn whole<E>(&mut self, write: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        let start = self.at;
        write(self).inspect_err(|_| self.at = start)
    }

    /// Reserves two bytes for a u16 or a long u15, to be filled in later.
    #[inline]
    pub(crate) fn reserve_u16(&mut self) -> Result<usize, Full> {
        let place = self.at;
        self.u16(0)?;
        Ok(place)
    }

    /// Lets `write` fill the free space; returns the length that `write` returns.
    #[inline]
    pub(crate) fn in_place(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<usize, Refused> {
        let room = self.out.get_mut(self.at..).ok_or(Full)?;
        let len = write(room)?;
        if len > room.len() {
            return Err(Refused::Full);
        }
        self.at += len;
        Ok(len)
    }

    /// Writes bytes with a u16ob length; `write` writes the bytes into the free space. The length has the three-byte
    /// form, because its space is reserved.
    #[inline]
    pub(crate) fn b16_in_place(
        &mut self,
        what: &'static str,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        self.whole(|w| {
            w.u8(0xFE)?;
            let place = w.reserve_u16()?;
            match u16::try_from(w.in_place(write)?) {
                Ok(len) => w.fill_u16(place, len),
                Err(_) => return Err(Refused::TooLong { what, limit: 0xFFFF }),
            }
            Ok(())
        })
    }

    /// Writes bytes with a u15 length; `write` writes the bytes into the free space. The length has the two-byte form,
    /// because its space is reserved.
    #[inline]
    pub(crate) fn b15_in_place(
        &mut self,
        what: &'static str,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        self.whole(|w| {
            let place = w.reserve_u16()?;
            match w.in_place(write)? {
                len @ 0..=U15_MAX => w.fill_u16(place, 0x8000 | len as u16),
                _ => return Err(Refused::TooLong { what, limit: U15_MAX }),
            }
            Ok(())
        })
    }

    /// Changes a byte that was written before.
    #[inline]
    pub(crate) fn fill_u8(&mut self, place: usize, value: u8) {
        if let Some(byte) = self.out.get_mut(place) {
            *byte = value;
        }
    }

    /// Fills in the value that [`Self::reserve_u16`] reserved.
    #[inline]
    pub(crate) fn fill_u16(&mut self, place: usize, value: u16) {
        if let Some(room) = self.out.get_mut(place..).and_then(|out| out.first_chunk_mut()) {
            *room = value.to_be_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const U30S: [(u32, &[u8]); 8] = [
        (63, &[0x3F]),
        (64, &[0x80, 0x40]),
        (16_383, &[0xBF, 0xFF]),
        (16_384, &[0x40, 0x40, 0x00]),
        (4_194_303, &[0x7F, 0xFF, 0xFF]),
        (4_194_304, &[0xC0, 0x40, 0x00, 0x00]),
        (1_073_741_823, &[0xFF, 0xFF, 0xFF, 0xFF]),
        (0, &[0x00]),
    ];

    fn written(write: impl FnOnce(&mut Writer<'_>) -> Result<(), Refused>) -> Vec<u8> {
        let mut out = [0; 8];
        let mut writer = Writer::new(&mut out);
        write(&mut writer).unwrap();
        let len = writer.len();
        out[..len].to_vec()
    }

    #[test]
    fn u30_takes_the_forms_of_the_specification() {
        for (value, bytes) in U30S {
            assert_eq!(written(|w| w.u30(value, "hint")), bytes, "{value}");
            assert_eq!(Cursor::new(bytes).u30("hint"), Ok(value));
        }
        let mut out = [0; 8];
        assert!(matches!(
            Writer::new(&mut out).u30(U30_MAX + 1, "hint"),
            Err(Refused::TooLong { what: "hint", .. })
        ));
    }

    #[test]
    fn short_and_long_forms_read_alike() {
        assert_eq!(Cursor::new(&[0x80, 0x05]).u15("length"), Ok(5));
        assert_eq!(Cursor::new(&[0x05]).u15("length"), Ok(5));
        assert_eq!(Cursor::new(&[0xFE, 0x00, 0x05]).u16ob("length"), Ok(5));
        assert_eq!(Cursor::new(&[0x05]).u16ob("length"), Ok(5));
        assert_eq!(Cursor::new(&[0xC0, 0, 0, 5]).u30("hint"), Ok(5));
        assert_eq!(Cursor::new(&[0xFE, 0, 2, 7, 8, 9]).b16("value"), Ok(&[7, 8][..]));
    }

    #[test]
    fn the_edges_of_each_form() {
        assert_eq!(written(|w| w.u15(0x7F, "n")), [0x7F]);
        assert_eq!(written(|w| w.u15(0x80, "n")), [0x80, 0x80]);
        assert_eq!(written(|w| w.u15(0x7FFF, "n")), [0xFF, 0xFF]);
        assert_eq!(written(|w| w.u16ob(0xFD, "n")), [0xFD]);
        assert_eq!(written(|w| w.u16ob(0xFE, "n")), [0xFE, 0x00, 0xFE]);
        assert_eq!(written(|w| w.u16ob(0xFFFF, "n")), [0xFE, 0xFF, 0xFF]);
        let mut out = [0; 8];
        assert!(matches!(Writer::new(&mut out).u15(0x8000, "n"), Err(Refused::TooLong { .. })));
        assert!(matches!(Writer::new(&mut out).u16ob(0x1_0000, "n"), Err(Refused::TooLong { .. })));
    }

    #[test]
    fn a_failed_read_stays_where_it_was_and_says_so() {
        let mut cursor = Cursor::new(&[1, 0x05, 1, 2]);
        cursor.u8("first").unwrap();
        assert_eq!(cursor.b15("text"), Err(Malformed::new(1, "text")));
        assert_eq!(cursor.offset(), 1);
        assert_eq!(Cursor::new(&[0xFF, 0, 0]).u16ob("length"), Err(Malformed::new(0, "length")));
        assert_eq!(Cursor::new(&[0xFE, 0]).b16("value"), Err(Malformed::new(0, "value")));
        assert_eq!(Cursor::new(&[0x80]).u15("length"), Err(Malformed::new(0, "length")));
    }

    #[test]
    fn a_refused_write_leaves_nothing_behind() {
        let mut out = [0; 3];
        let mut writer = Writer::new(&mut out);
        writer.u8(1).unwrap();
        assert_eq!(writer.b8(&[1, 2], "name"), Err(Refused::Full));
        assert_eq!(writer.len(), 1);
        writer.b8(&[9], "name").unwrap();
        assert_eq!(out, [1, 1, 9]);
    }
}

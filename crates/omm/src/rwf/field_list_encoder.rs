//! FIELD_LIST, written (RWF chapter 4).

use super::field_list::{HAS_INFO, HAS_STANDARD_DATA};
use super::number::{encode_int_wide, encode_uint_wide, widen};
use super::set_data::{encode_set, write_set};
use super::{
    ArrayEncoder, DataType, Date, DateTime, Info, Qos, Real, Rmtes, SetDataEncoder, SetDefinition, State,
    Time, Value, Writer,
};
use crate::{Fid, Full, Refused};

/// Flags, then the count.
const HEAD: usize = 3;
/// Maximum length of an info block: a dictionary id of up to two bytes and a list number.
const INFO_MAX: usize = 4;
/// Space that the common path requires: the id, the length, a REAL's hint and eight bytes more.
const SLOT: usize = 2 + 1 + 1 + 8;

/// Encoder that writes a field list in one pass into the caller's buffer: standard data, after an info block and set
/// data if there are any.
///
/// Each method appends one field. [`Full`] means that the field was not appended: no space in the buffer, more than
/// 65,535 fields, or a value of more than 65,535 bytes. Fields that were written before stay, and
/// [`finish`](FieldListEncoder::finish) makes a well-formed list of them. A short field costs two to four nanoseconds
/// (bench `field_list`).
#[derive(Debug)]
pub struct FieldListEncoder<'a> {
    out: &'a mut [u8],
    at: usize,
    count: u16,
    count_at: usize,
}

impl<'a> FieldListEncoder<'a> {
    /// Starts a list at the start of `out`.
    ///
    /// # Errors
    ///
    /// [`Full`] if not even an empty list (three bytes) fits.
    #[inline]
    pub fn new(out: &'a mut [u8]) -> Result<Self, Full> {
        let head = out.first_chunk_mut::<HEAD>().ok_or(Full)?;
        *head = [HAS_STANDARD_DATA, 0, 0];
        Ok(Self { out, at: HEAD, count: 0, count_at: 1 })
    }

    /// Starts a list that states the dictionary with which it is written.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for a dictionary number above 32,767.
    pub fn with_info(out: &'a mut [u8], info: Info) -> Result<Self, Refused> {
        Self::begin(out, HAS_STANDARD_DATA, Some(info), |_| Ok(()))
    }

    /// Starts a list with set data: `write` writes the first values by a set definition of the enclosing container.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], and what `write` returns; [`Refused::Misplaced`] if `write` writes fewer values than the
    /// definition has; [`Refused::TooLong`] for a dictionary number above 32,767.
    pub fn with_set(
        out: &'a mut [u8],
        info: Option<Info>,
        definition: &SetDefinition<'_>,
        write: impl FnOnce(&mut SetDataEncoder<'_, '_, '_>) -> Result<(), Refused>,
    ) -> Result<Self, Refused> {
        Self::begin(out, definition.flags() | HAS_STANDARD_DATA, info, |writer| {
            write_set(writer, definition, true, write)
        })
    }

    fn begin(
        out: &'a mut [u8],
        flags: u8,
        info: Option<Info>,
        write_set: impl FnOnce(&mut Writer<'_>) -> Result<(), Refused>,
    ) -> Result<Self, Refused> {
        let mut writer = Writer::new(&mut *out);
        writer.u8(flags | if info.is_some() { HAS_INFO } else { 0 })?;
        if let Some(info) = info {
            let mut block = [0; INFO_MAX];
            let mut inner = Writer::new(&mut block);
            inner.u15(usize::from(info.dictionary_id), "dictionary id")?;
            inner.bytes(&info.list_number.to_be_bytes())?;
            let len = inner.len();
            writer.b8(block.get(..len).unwrap_or_default(), "field list info")?;
        }
        write_set(&mut writer)?;
        let count_at = writer.reserve_u16()?;
        let at = writer.len();
        Ok(Self { out, at, count: 0, count_at })
    }

    /// Returns the number of fields so far, without those of a set.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns `true` if there is no field yet.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Ends the list; returns its length in bytes.
    #[inline]
    #[must_use = "the list is `len` bytes long"]
    pub fn finish(self) -> usize {
        if let Some(count) = self.out.get_mut(self.count_at..).and_then(|out| out.first_chunk_mut()) {
            *count = self.count.to_be_bytes();
        }
        self.at
    }

    /// Appends a REAL.
    #[inline]
    pub fn real(&mut self, fid: Fid, value: Real) -> Result<(), Full> {
        if value.hint.is_special() {
            return self.raw(fid, &[value.hint.0]);
        }
        let (wide, len) = encode_int_wide(value.mantissa);
        let count = self.count.checked_add(1).ok_or(Full)?;
        let Some(slot) = self.slot() else {
            let (bytes, len) = value.encode();
            return self.long(fid, bytes.get(..len).unwrap_or_default());
        };
        let [fid_high, fid_low] = fid.0.to_be_bytes();
        slot[..4].copy_from_slice(&[fid_high, fid_low, 1 + len as u8, value.hint.0]);
        slot[4..].copy_from_slice(&wide.to_be_bytes());
        self.at += 4 + len;
        self.count = count;
        Ok(())
    }

    /// Appends a UINT.
    #[inline]
    pub fn uint(&mut self, fid: Fid, value: u64) -> Result<(), Full> {
        let (wide, len) = encode_uint_wide(value);
        self.short(fid, wide, len)
    }

    /// Appends an INT.
    #[inline]
    pub fn int(&mut self, fid: Fid, value: i64) -> Result<(), Full> {
        let (wide, len) = encode_int_wide(value);
        self.short(fid, wide, len)
    }

    /// Appends a FLOAT.
    #[inline]
    pub fn float(&mut self, fid: Fid, value: f32) -> Result<(), Full> {
        self.short(fid, u64::from(value.to_bits()) << 32, 4)
    }

    /// Appends a DOUBLE.
    #[inline]
    pub fn double(&mut self, fid: Fid, value: f64) -> Result<(), Full> {
        self.short(fid, value.to_bits(), 8)
    }

    /// Appends a DATE.
    #[inline]
    pub fn date(&mut self, fid: Fid, value: Date) -> Result<(), Full> {
        self.short(fid, u64::from(u32::from_be_bytes(value.encode())) << 32, 4)
    }

    /// Appends a TIME, in the shortest form that keeps its members.
    #[inline]
    pub fn time(&mut self, fid: Fid, value: Time) -> Result<(), Full> {
        let (wide, len) = value.encode_wide();
        self.short(fid, wide, len)
    }

    /// Appends a DATETIME, in the shortest form that keeps its members.
    #[inline]
    pub fn date_time(&mut self, fid: Fid, value: DateTime) -> Result<(), Full> {
        let (bytes, len) = value.encode();
        self.raw(fid, bytes.get(..len).unwrap_or_default())
    }

    /// Appends a QOS.
    #[inline]
    pub fn qos(&mut self, fid: Fid, value: Qos) -> Result<(), Full> {
        let (bytes, len) = value.encode();
        self.raw(fid, bytes.get(..len).unwrap_or_default())
    }

    /// Appends a STATE.
    #[inline]
    pub fn state(&mut self, fid: Fid, value: &State<'_>) -> Result<(), Full> {
        self.whole(fid, |w| {
            w.u16ob(value.wire_len(), "STATE")?;
            value.write(w)
        })
    }

    /// Appends an ENUM.
    #[inline]
    pub fn enumeration(&mut self, fid: Fid, value: u16) -> Result<(), Full> {
        let (wide, len) = encode_uint_wide(u64::from(value));
        self.short(fid, wide, len)
    }

    /// Appends an ASCII_STRING.
    #[inline]
    pub fn ascii(&mut self, fid: Fid, value: &[u8]) -> Result<(), Full> {
        self.raw(fid, value)
    }

    /// Appends a UTF8_STRING.
    #[inline]
    pub fn utf8(&mut self, fid: Fid, value: &str) -> Result<(), Full> {
        self.raw(fid, value.as_bytes())
    }

    /// Appends an RMTES_STRING: ASCII and Latin-1 unchanged, UTF-8 after the escape `1B 25 30`, partial updates too.
    #[inline]
    pub fn rmtes(&mut self, fid: Fid, value: &[u8]) -> Result<(), Full> {
        self.raw(fid, value)
    }

    /// Appends a BUFFER.
    #[inline]
    pub fn buffer(&mut self, fid: Fid, value: &[u8]) -> Result<(), Full> {
        self.raw(fid, value)
    }

    /// Appends a blank.
    #[inline]
    pub fn blank(&mut self, fid: Fid) -> Result<(), Full> {
        self.short(fid, 0, 0)
    }

    /// Appends a value of any type.
    #[inline]
    pub fn value(&mut self, fid: Fid, value: &Value<'_>) -> Result<(), Full> {
        // The types of price records are written inline, all others by a call.
        match *value {
            Value::Real(value) => self.real(fid, value),
            Value::UInt(value) => self.uint(fid, value),
            Value::Enum(value) => self.enumeration(fid, value),
            Value::Rmtes(Rmtes(value)) => self.raw(fid, value),
            Value::Time(value) => self.time(fid, value),
            Value::Date(value) => self.date(fid, value),
            Value::Blank => self.blank(fid),
            _ => {
                let count = self.count.checked_add(1).ok_or(Full)?;
                self.at = rarer(self.out, self.at, fid, value)?;
                self.count = count;
                Ok(())
            }
        }
    }

    /// Appends an ARRAY, whose items `write` appends. Its length has the three-byte form, because its space is
    /// reserved.
    ///
    /// # Errors
    ///
    /// [`Full`], also if `write` returns any refusal.
    pub fn array(
        &mut self,
        fid: Fid,
        item_type: DataType,
        item_len: u16,
        write: impl FnOnce(&mut ArrayEncoder<'_>) -> Result<(), Refused>,
    ) -> Result<(), Full> {
        self.in_place(fid, |out| {
            let mut array = ArrayEncoder::new(out, item_type, item_len)?;
            write(&mut array)?;
            Ok(array.finish())
        })
    }

    /// Appends a value that `write` writes into the free space, such as a container or an array; `write` returns its
    /// length. The length has the three-byte form, because its space is reserved.
    ///
    /// # Errors
    ///
    /// [`Full`], also if `write` returns any refusal.
    pub fn in_place(
        &mut self,
        fid: Fid,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Full> {
        let count = self.count.checked_add(1).ok_or(Full)?;
        let room = self.out.get_mut(self.at..).ok_or(Full)?;
        let (head, room) = room.split_first_chunk_mut::<5>().ok_or(Full)?;
        let len = write(room).map_err(|_| Full)?;
        let short = u16::try_from(len).map_err(|_| Full)?;
        if len > room.len() {
            return Err(Full);
        }
        let ([fid_high, fid_low], [high, low]) = (fid.0.to_be_bytes(), short.to_be_bytes());
        *head = [fid_high, fid_low, 0xFE, high, low];
        self.at += head.len() + len;
        self.count = count;
        Ok(())
    }

    /// Appends the bytes of a value unchanged.
    #[inline]
    pub fn raw(&mut self, fid: Fid, value: &[u8]) -> Result<(), Full> {
        // Most texts are codes and names of a few letters: a word in registers, without a call to copy it.
        match widen(value) {
            Some(wide) => self.short(fid, wide << (64 - 8 * value.len()), value.len()),
            None => self.long(fid, value),
        }
    }

    /// As [`FieldListEncoder::raw`], for a value or a place that does not fit a [`SLOT`].
    #[inline]
    fn long(&mut self, fid: Fid, value: &[u8]) -> Result<(), Full> {
        let count = self.count.checked_add(1).ok_or(Full)?;
        self.at = append(self.out, self.at, fid, value)?;
        self.count = count;
        Ok(())
    }

    /// Writes one field with `write`, completely or not at all.
    #[inline]
    fn whole(
        &mut self,
        fid: Fid,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), Refused>,
    ) -> Result<(), Full> {
        let count = self.count.checked_add(1).ok_or(Full)?;
        let mut writer = Writer::new(self.out.get_mut(self.at..).ok_or(Full)?);
        writer.bytes(&fid.0.to_be_bytes())?;
        write(&mut writer).map_err(|_| Full)?;
        self.at += writer.len();
        self.count = count;
        Ok(())
    }

    /// Returns the space of a whole short field, if there is that much.
    #[inline]
    fn slot(&mut self) -> Option<&mut [u8; SLOT]> {
        self.out.get_mut(self.at..)?.first_chunk_mut()
    }

    /// Appends a value of up to eight bytes: the first `len` of `wide`, from the top. All eight are stored, so that no
    /// loop or branch depends on the length; the next field overwrites the rest.
    #[inline]
    fn short(&mut self, fid: Fid, wide: u64, len: usize) -> Result<(), Full> {
        let count = self.count.checked_add(1).ok_or(Full)?;
        let Some(slot) = self.slot() else {
            return self.long(fid, wide.to_be_bytes().get(..len).unwrap_or_default());
        };
        slot[..2].copy_from_slice(&fid.0.to_be_bytes());
        slot[2] = len as u8;
        slot[3..11].copy_from_slice(&wide.to_be_bytes());
        self.at += 3 + len;
        self.count = count;
        Ok(())
    }
}

// The two functions below take the buffer and the place, not the encoder, so that the encoder stays in registers around
// the calls.

/// Writes a field of any length at `at`; returns its end.
fn append(out: &mut [u8], at: usize, fid: Fid, value: &[u8]) -> Result<usize, Full> {
    let mut list = FieldListEncoder { out, at, count: 0, count_at: at };
    list.whole(fid, |w| w.b16(value, "field value"))?;
    Ok(list.at)
}

/// Writes a field of a type that is rare in price records at `at`; returns its end.
fn rarer(out: &mut [u8], at: usize, fid: Fid, value: &Value<'_>) -> Result<usize, Full> {
    let mut list = FieldListEncoder { out, at, count: 0, count_at: at };
    match value {
        Value::State(state) => list.state(fid, state),
        Value::Array(array) => list.in_place(fid, |out| {
            let mut writer = Writer::new(out);
            array.write(&mut writer)?;
            Ok(writer.len())
        }),
        _ => match (value.text(), value.short()) {
            (Some(text), _) => list.raw(fid, text),
            (None, Some((bytes, len))) => list.raw(fid, bytes.get(..len).unwrap_or_default()),
            (None, None) => Err(Full),
        },
    }?;
    Ok(list.at)
}

/// Writes a field list with only set data to the start of `out`; `write` writes the values. Returns its length. Fails
/// as [`FieldListEncoder::with_set`].
pub fn encode_field_set(
    out: &mut [u8],
    definition: &SetDefinition<'_>,
    write: impl FnOnce(&mut SetDataEncoder<'_, '_, '_>) -> Result<(), Refused>,
) -> Result<usize, Refused> {
    encode_set(out, definition, write)
}

#[cfg(test)]
mod tests {
    use super::super::entries_encoder::check_prefixes;
    use super::*;
    use crate::FieldList;

    #[test]
    fn the_worked_example() {
        let mut out = [0xAA; 64];
        let mut list = FieldListEncoder::new(&mut out).unwrap();
        list.real(Fid(22), Real::decimal(3991, 2)).unwrap();
        list.real(Fid(25), Real::decimal(4001, 2)).unwrap();
        list.real(Fid(30), Real::integer(10)).unwrap();
        list.real(Fid(31), Real::integer(20)).unwrap();
        list.uint(Fid(1021), 1).unwrap();
        let len = list.finish();
        assert_eq!(
            out[..len],
            [
                0x08, 0, 5, 0, 0x16, 3, 0x0C, 0x0F, 0x97, 0, 0x19, 3, 0x0C, 0x0F, 0xA1, 0, 0x1E, 2, 0x0E,
                0x0A, 0, 0x1F, 2, 0x0E, 0x14, 3, 0xFD, 1, 1,
            ]
        );
    }

    /// Tries every size of buffer: the list contains the accepted entries, and nothing else.
    #[test]
    fn a_full_buffer_holds_a_well_formed_prefix() {
        fn fill(list: &mut FieldListEncoder<'_>) -> usize {
            type Append<'a> = &'a dyn Fn(&mut FieldListEncoder<'_>) -> Result<(), Full>;
            let fields: [Append<'_>; 8] = [
                &|list| list.real(Fid(22), Real::decimal(123_456, 4)),
                &|list| list.ascii(Fid(3), b"a name of some length"),
                &|list| list.time(Fid(5), Time::from_ns_of_day(36_000_123_456_789)),
                &|list| list.blank(Fid(6)),
                &|list| list.state(Fid(-10), &State { text: b"gone", ..State::OPEN_OK }),
                &|list| list.array(Fid(-12), DataType::INT, 0, |array| array.value(&Value::Int(7))),
                &|list| list.uint(Fid(1), u64::MAX),
                &|list| list.value(Fid(2), &Value::Enum(300)),
            ];
            fields.iter().take_while(|field| field(list).is_ok()).count()
        }
        let mut large = [0; 256];
        let mut list = FieldListEncoder::new(&mut large).unwrap();
        assert_eq!(fill(&mut list), 8);
        let all = list.finish();
        let large: Vec<_> = FieldList::parse(&large[..all]).unwrap().iter().map(Result::unwrap).collect();
        let encode = |out: &mut [u8]| {
            let size = out.len();
            let mut list = FieldListEncoder::new(out).ok()?;
            let written = fill(&mut list);
            assert_eq!(written == 8, size == all, "{size} bytes are too few for all, or enough");
            Some((list.finish(), written))
        };
        check_prefixes::<9>(3, all + 1, encode, |bytes, written| {
            let list = FieldList::parse(bytes).unwrap();
            assert_eq!(list.iter().map(Result::unwrap).collect::<Vec<_>>(), large[..written]);
            let end: usize = list.iter().map(|field| field.unwrap().data.len()).sum();
            assert!(bytes.len() >= end + 3 * written + 3);
            assert!(written < 8 || bytes.len() == all);
        });
    }

    #[test]
    fn what_the_format_cannot_hold_is_full() {
        let mut out = vec![0; 300_000];
        let mut list = FieldListEncoder::new(&mut out).unwrap();
        assert_eq!(list.raw(Fid(1), &[0; 65_536]), Err(Full));
        list.raw(Fid(1), &[0; 65_535]).unwrap();
        let mut list = FieldListEncoder::new(&mut out).unwrap();
        for _ in 0..65_535 {
            list.blank(Fid(1)).unwrap();
        }
        assert_eq!(list.blank(Fid(1)), Err(Full));
        let len = list.finish();
        assert_eq!(FieldList::parse(&out[..len]).unwrap().len(), 65_535);
    }
}

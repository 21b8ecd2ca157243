//! ARRAY: a sequence of primitives of one type (RWF chapter 3).

use std::fmt;

use super::{Cursor, DataType, Value, Writer, fixed};
use crate::{Full, Malformed, Refused};

/// View of an array: its type and the bytes of its items.
///
/// ```
/// use tapeline_omm::{Value, rwf::{Array, DataType}};
///
/// let array = Array::decode(&[3, 0, 0, 2, 1, 5, 2, 0xFE, 0xD4])?.expect("not blank");
/// assert_eq!(array.item_type, DataType::INT);
/// let values: Result<Vec<_>, _> = array.values().collect();
/// assert_eq!(values?, [Value::Int(5), Value::Int(-300)]);
/// # Ok::<(), tapeline_omm::Malformed>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Array<'a> {
    /// Type of the items.
    pub item_type: DataType,
    /// Length of each item, bytes; 0 if each item has its own length.
    pub item_len: u16,
    /// Number of items.
    pub count: u16,
    items: &'a [u8],
    /// Offset of the items in the slice that was read.
    items_at: u8,
}

impl<'a> Array<'a> {
    /// Decodes the bytes of an entry; `None` is blank.
    ///
    /// # Errors
    ///
    /// Fails if there are fewer bytes than the count requires.
    pub fn decode(data: &'a [u8]) -> Result<Option<Self>, Malformed> {
        if data.is_empty() {
            return Ok(None);
        }
        let mut cursor = Cursor::new(data);
        let item_type = DataType(cursor.u8("ARRAY type")?);
        let item_len = cursor.u16ob("ARRAY item length")?;
        let count_at = cursor.offset();
        let count = cursor.u16("ARRAY count")?;
        let items = cursor.rest();
        // An item of variable length has at least its length byte.
        if usize::from(item_len).max(1).saturating_mul(usize::from(count)) > items.len() {
            return Err(Malformed::new(count_at, "ARRAY count"));
        }
        Ok(Some(Self { item_type, item_len, count, items, items_at: cursor.offset() as u8 }))
    }

    /// Returns the bytes of each item.
    #[must_use]
    pub fn iter(&self) -> Items<'a> {
        Items {
            item_len: self.item_len,
            left: self.count,
            cursor: Cursor::new(self.items),
            base: usize::from(self.items_at),
        }
    }

    /// Writes the array in the same form.
    pub(crate) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Refused> {
        writer.whole(|w| {
            w.u8(self.item_type.0)?;
            w.u16ob(usize::from(self.item_len), "ARRAY item length")?;
            w.u16(self.count)?;
            Ok(w.bytes(self.items)?)
        })
    }

    /// Returns the number of bytes that [`Array::write`] writes.
    pub(crate) const fn wire_len(&self) -> usize {
        3 + if self.item_len < 0xFE { 1 } else { 3 } + self.items.len()
    }

    /// Returns each item as a value.
    pub fn values(&self) -> impl Iterator<Item = Result<Value<'a>, Malformed>> + use<'a> {
        let item_type = self.item_type;
        self.iter().map(move |item| Value::decode(item_type, item?))
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Result<&'a [u8], Malformed>;
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

impl fmt::Display for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (n, value) in self.values().enumerate() {
            let separator = if n > 0 { ", " } else { "" };
            match value {
                Ok(value) => write!(f, "{separator}{value}")?,
                Err(fault) => write!(f, "{separator}<{fault}>")?,
            }
        }
        f.write_str("]")
    }
}

/// Iterator over the items of an [`Array`] in order. It ends after a fault.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    item_len: u16,
    left: u16,
    cursor: Cursor<'a>,
    base: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<&'a [u8], Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let item = match self.item_len {
            0 => self.cursor.b16("ARRAY item"),
            len => self.cursor.take(usize::from(len), "ARRAY item"),
        };
        Some(item.map_err(|fault| {
            self.left = 0;
            fault.within(self.base)
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(usize::from(self.left)))
    }
}

/// Encoder that writes an array in one pass into the caller's buffer.
#[derive(Debug)]
pub struct ArrayEncoder<'a> {
    writer: Writer<'a>,
    item_type: DataType,
    item_len: u16,
    count_at: usize,
    count: u16,
}

impl<'a> ArrayEncoder<'a> {
    /// Starts an array of `item_type`. Items have `item_len` bytes each; 0 if each item has its own length.
    ///
    /// # Errors
    ///
    /// [`Full`] if the head of the array does not fit.
    pub fn new(out: &'a mut [u8], item_type: DataType, item_len: u16) -> Result<Self, Full> {
        let mut writer = Writer::new(out);
        writer.u8(item_type.0)?;
        writer.u16ob(usize::from(item_len), "ARRAY item length").map_err(|_| Full)?;
        let count_at = writer.reserve_u16()?;
        Ok(Self { writer, item_type, item_len, count_at, count: 0 })
    }

    /// Appends the bytes of an item. With a fixed length, a shorter item is padded with zero bytes, as for strings and
    /// buffers.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], also after 65,535 items; [`Refused::TooLong`] for an item longer than the fixed length.
    pub fn item(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        let count = self.count.checked_add(1).ok_or(Full)?;
        match usize::from(self.item_len) {
            0 => self.writer.b16(bytes, "ARRAY item")?,
            width => fixed::padded(&mut self.writer, bytes, width, "ARRAY item")?,
        }
        self.count = count;
        Ok(())
    }

    /// Appends a value: in its shortest form if items have their own lengths, else in the fixed form.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] as [`ArrayEncoder::item`]; [`Refused::TooLong`] for a number that does not fit the fixed
    /// length; [`Refused::Misplaced`] for a value of another type than the array's, an array, a container, or a blank
    /// number of fixed length.
    pub fn value(&mut self, value: &Value<'_>) -> Result<(), Refused> {
        const WHAT: &str = "an ARRAY item of this type";
        if value.data_type().is_some_and(|data_type| data_type != self.item_type) {
            return Err(Refused::Misplaced(WHAT));
        }
        if matches!(value, Value::Array(_)) {
            return Err(Refused::Misplaced(WHAT));
        }
        let count = self.count.checked_add(1).ok_or(Full)?;
        match usize::from(self.item_len) {
            0 => value.write_b16(&mut self.writer, "ARRAY item")?,
            width => fixed::write(&mut self.writer, value, self.item_type, width, WHAT)?,
        }
        self.count = count;
        Ok(())
    }

    /// Ends the array; returns its length in bytes.
    #[must_use]
    pub fn finish(mut self) -> usize {
        self.writer.fill_u16(self.count_at, self.count);
        self.writer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Real, State, Time};

    fn encoded(item_type: DataType, item_len: u16, values: &[Value<'_>]) -> Result<Vec<u8>, Refused> {
        let mut out = [0; 64];
        let mut array = ArrayEncoder::new(&mut out, item_type, item_len)?;
        values.iter().try_for_each(|value| array.value(value))?;
        let len = array.finish();
        Ok(out[..len].to_vec())
    }

    #[test]
    fn fixed_and_variable_items() {
        let state = State { text: b"a", ..State::OPEN_OK };
        let time = Time { hour: 1, minute: 2, ..Time::default() };
        for (item_type, item_len, values, bytes) in [
            (
                DataType::INT,
                0,
                &[Value::Int(1), Value::Int(-300)][..],
                &[3, 0, 0, 2, 1, 1, 2, 0xFE, 0xD4][..],
            ),
            (DataType::INT, 2, &[Value::Int(1), Value::Int(-2)], &[3, 2, 0, 2, 0, 1, 0xFF, 0xFE]),
            (DataType::ENUM, 2, &[Value::Enum(300)], &[14, 2, 0, 1, 1, 0x2C]),
            (DataType::REAL, 0, &[Value::Real(Real::INFINITY)], &[8, 0, 0, 1, 1, 0x21]),
            (DataType::STATE, 0, &[Value::State(state)], &[13, 0, 0, 1, 4, 9, 0, 1, b'a']),
            (DataType::ASCII_STRING, 3, &[Value::Ascii(b"a")], &[17, 3, 0, 1, b'a', 0, 0]),
            (DataType::TIME, 5, &[Value::Time(time)], &[10, 5, 0, 1, 1, 2, 0, 0, 0]),
        ] {
            assert_eq!(encoded(item_type, item_len, values).unwrap(), bytes, "{item_type}");
        }
    }

    #[test]
    fn misfits_are_refused() {
        let too_long = |result| matches!(result, Err(Refused::TooLong { .. }));
        let misplaced = |result| matches!(result, Err(Refused::Misplaced(_)));
        assert!(too_long(encoded(DataType::INT, 1, &[Value::Int(128)])));
        assert!(too_long(encoded(DataType::INT, 9, &[Value::Int(1)])));
        assert!(misplaced(encoded(DataType::INT, 0, &[Value::UInt(1)])));
        assert!(misplaced(encoded(DataType::UINT, 4, &[Value::Blank])));
        assert!(too_long(encoded(DataType::ASCII_STRING, 2, &[Value::Ascii(b"abc")])));
        let mut out = [0; 5];
        let mut array = ArrayEncoder::new(&mut out, DataType::INT, 0).unwrap();
        assert_eq!(array.value(&Value::Int(1)), Err(Refused::Full));
        assert_eq!(array.finish(), 4);
        assert_eq!(Array::decode(&out[..4]).unwrap().unwrap().count, 0);
    }

    #[test]
    fn fixed_blanks_read_as_blanks() {
        for (item_type, widths) in [
            (DataType::DATE, &[4][..]),
            (DataType::TIME, &[2, 3, 5, 7, 8]),
            (DataType::DATETIME, &[6, 7, 9, 11, 12]),
        ] {
            for &width in widths {
                let bytes = encoded(item_type, width, &[Value::Blank]).unwrap();
                let array = Array::decode(&bytes).unwrap().unwrap();
                assert_eq!(array.values().collect::<Vec<_>>(), [Ok(Value::Blank)], "{item_type} {width}");
            }
        }
    }

    #[test]
    fn a_count_beyond_the_bytes_is_not_believed() {
        assert!(Array::decode(&[3, 2, 0xFF, 0xFF, 0, 1]).is_err());
        assert!(Array::decode(&[3, 0, 0xFF, 0xFF, 0, 1]).is_err());
        let array = Array::decode(&[3, 0, 0, 2, 5, 1, 2]).unwrap().unwrap();
        let items: Vec<_> = array.iter().collect();
        assert_eq!(items, [Err(Malformed::new(4, "ARRAY item"))]);
    }
}

//! ELEMENT_LIST, written (RWF chapter 4).

use super::entries_encoder::{EntriesWriter, counted};
use super::field_list::{HAS_INFO, HAS_STANDARD_DATA};
use super::set_data::{encode_set, write_set};
use super::{ArrayEncoder, DataType, SetDataEncoder, SetDefinition, Value, Writer};
use crate::{Full, Refused};

/// Encoder that writes an element list in one pass into the caller's buffer: standard data, after a list number or set
/// data if there is one.
///
/// Each method appends one element, or refuses it and leaves the list unchanged. Elements that were written before
/// stay, and [`finish`](ElementListEncoder::finish) makes a well-formed list of them.
///
/// Every method returns [`Refused::Full`] without space, also after 65,535 elements, and [`Refused::TooLong`] for a
/// name of more than 32,767 bytes or a value of more than 65,535.
#[derive(Debug)]
pub struct ElementListEncoder<'a> {
    entries: EntriesWriter<'a>,
}

counted!(ElementListEncoder, "list", "elements so far, without those of a set");

impl<'a> ElementListEncoder<'a> {
    /// Starts a list at the start of `out`.
    ///
    /// # Errors
    ///
    /// [`Full`] if not even an empty list (three bytes) fits.
    pub fn new(out: &'a mut [u8]) -> Result<Self, Full> {
        let mut writer = Writer::new(out);
        writer.u8(HAS_STANDARD_DATA)?;
        Ok(Self { entries: EntriesWriter::begin(writer)? })
    }

    /// Starts a list with a number (of its template). Fails as [`ElementListEncoder::new`].
    pub fn with_number(out: &'a mut [u8], number: u16) -> Result<Self, Full> {
        let mut writer = Writer::new(out);
        let [high, low] = number.to_be_bytes();
        writer.bytes(&[HAS_INFO | HAS_STANDARD_DATA, 2, high, low])?;
        Ok(Self { entries: EntriesWriter::begin(writer)? })
    }

    /// Starts a list with set data: `write` writes the first values by a set definition of the enclosing container.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], and what `write` returns; [`Refused::Misplaced`] if `write` writes fewer values than the
    /// definition has.
    pub fn with_set(
        out: &'a mut [u8],
        definition: &SetDefinition<'_>,
        write: impl FnOnce(&mut SetDataEncoder<'_, '_, '_>) -> Result<(), Refused>,
    ) -> Result<Self, Refused> {
        let mut writer = Writer::new(out);
        writer.u8(definition.flags() | HAS_STANDARD_DATA)?;
        write_set(&mut writer, definition, true, write)?;
        Ok(Self { entries: EntriesWriter::begin(writer)? })
    }

    /// Appends a UINT.
    pub fn uint(&mut self, name: impl AsRef<[u8]>, value: u64) -> Result<(), Refused> {
        self.value(name, value)
    }

    /// Appends an INT.
    pub fn int(&mut self, name: impl AsRef<[u8]>, value: i64) -> Result<(), Refused> {
        self.value(name, value)
    }

    /// Appends an ASCII_STRING.
    pub fn ascii(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Refused> {
        self.raw(name, DataType::ASCII_STRING, value.as_ref())
    }

    /// Appends a value with its own type.
    ///
    /// # Errors
    ///
    /// See [`ElementListEncoder`]; [`Refused::Misplaced`] for a value without a type ([`Value::Blank`],
    /// [`Value::Unknown`]): use [`ElementListEncoder::blank`] and [`ElementListEncoder::raw`] for these.
    pub fn value<'v>(&mut self, name: impl AsRef<[u8]>, value: impl Into<Value<'v>>) -> Result<(), Refused> {
        let value = value.into();
        let data_type = value.data_type().ok_or(Refused::Misplaced("an element without a type"))?;
        self.element(name.as_ref(), data_type, |w| value.write_b16(w, "element value"))
    }

    /// Appends a blank of a type.
    pub fn blank(&mut self, name: impl AsRef<[u8]>, data_type: DataType) -> Result<(), Refused> {
        self.raw(name, data_type, &[])
    }

    /// Appends the bytes of a value unchanged. Those of [`DataType::NO_DATA`] are not written.
    pub fn raw(&mut self, name: impl AsRef<[u8]>, data_type: DataType, value: &[u8]) -> Result<(), Refused> {
        self.element(name.as_ref(), data_type, |w| w.b16(value, "element value"))
    }

    /// Appends an ARRAY of `item_type`, whose items `write` appends. Items have `item_len` bytes each; 0 if each item
    /// has its own length. The length of the value has the three-byte form, because its space is reserved.
    ///
    /// # Errors
    ///
    /// See [`ElementListEncoder`], and what `write` returns.
    pub fn array(
        &mut self,
        name: impl AsRef<[u8]>,
        item_type: DataType,
        item_len: u16,
        write: impl FnOnce(&mut ArrayEncoder<'_>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.in_place(name, DataType::ARRAY, |room| {
            let mut array = ArrayEncoder::new(room, item_type, item_len)?;
            write(&mut array)?;
            Ok(array.finish())
        })
    }

    /// Appends a value that `write` writes into the free space, such as a container; `write` returns its length. The
    /// length has the three-byte form, because its space is reserved.
    ///
    /// # Errors
    ///
    /// See [`ElementListEncoder`], and what `write` returns.
    pub fn in_place(
        &mut self,
        name: impl AsRef<[u8]>,
        data_type: DataType,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        self.element(name.as_ref(), data_type, |w| w.b16_in_place("element value", write))
    }

    fn element(
        &mut self,
        name: &[u8],
        data_type: DataType,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.entries.append(|writer| {
            writer.b15(name, "element name")?;
            writer.u8(data_type.0)?;
            if data_type == DataType::NO_DATA { Ok(()) } else { write(writer) }
        })
    }
}

/// Writes an element list with only set data to the start of `out`; `write` writes the values. Returns its length.
/// Fails as [`ElementListEncoder::with_set`].
pub fn encode_element_set(
    out: &mut [u8],
    definition: &SetDefinition<'_>,
    write: impl FnOnce(&mut SetDataEncoder<'_, '_, '_>) -> Result<(), Refused>,
) -> Result<usize, Refused> {
    encode_set(out, definition, write)
}

#[cfg(test)]
mod tests {
    use super::super::ElementList;
    use super::super::entries_encoder::check_prefixes;
    use super::*;
    use crate::State;

    fn fill(list: &mut ElementListEncoder<'_>) -> usize {
        type Append<'a> = &'a dyn Fn(&mut ElementListEncoder<'_>) -> Result<(), Refused>;
        let elements: [Append<'_>; 7] = [
            &|list| list.uint("Role", 1),
            &|list| list.int("Below", -300),
            &|list| list.ascii("Position", "127.0.0.1/net"),
            &|list| list.value("Status", State { text: b"up", ..State::OPEN_OK }),
            &|list| list.blank("Nothing", DataType::REAL),
            &|list| list.raw("No", DataType::NO_DATA, b"dropped"),
            &|list| list.array("Capabilities", DataType::UINT, 0, |items| items.value(&Value::UInt(6))),
        ];
        elements.iter().take_while(|element| element(list).is_ok()).count()
    }

    #[test]
    fn a_full_buffer_holds_a_well_formed_prefix() {
        let all: [&[u8]; 7] = [b"Role", b"Below", b"Position", b"Status", b"Nothing", b"No", b"Capabilities"];
        let encode = |out: &mut [u8]| {
            let mut list = ElementListEncoder::new(out).ok()?;
            let written = fill(&mut list);
            assert_eq!(list.len(), written);
            Some((list.finish(), written))
        };
        check_prefixes::<8>(3, 160, encode, |bytes, written| {
            let list = ElementList::parse(bytes).unwrap();
            let names: Vec<_> = list.iter().map(|element| element.unwrap().name).collect();
            assert_eq!(names, all[..written]);
        });
    }

    #[test]
    fn the_worked_example_and_a_number() {
        let mut out = [0; 32];
        let mut list = ElementListEncoder::with_number(&mut out, 7).unwrap();
        list.uint(b"Role", 0).unwrap();
        assert_eq!(list.value("X", Value::Blank), Err(Refused::Misplaced("an element without a type")));
        let long = list.ascii([b'n'; 32_768], "");
        assert_eq!(long, Err(Refused::TooLong { what: "element name", limit: 0x7FFF }));
        let len = list.finish();
        assert_eq!(out[..len], [9, 2, 0, 7, 0, 1, 4, b'R', b'o', b'l', b'e', 4, 1, 0]);
    }
}

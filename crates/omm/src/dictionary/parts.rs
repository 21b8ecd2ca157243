//! A dictionary as the payload of refreshes: series of element lists, split into parts.
//!
//! The form is that of the dictionary domain (domain 5): the names, types and order of the elements below, a summary in
//! the first part, and in each part the set definition that its entries need.

use super::{Dictionary, EnumerationTable, FieldDefinition};
use crate::rwf::{
    ArrayEncoder, DataType, ElementListEncoder, SeriesEncoder, SeriesHead, SetDataEncoder, SetDefinition,
    SetDefinitions, SetDefinitionsEncoder, SetEntry, Value, encode_element_set,
};
use crate::{Full, Refused};

/// Buffer size for the set definition of a part, bytes.
const DEFINITION_MAX: usize = 128;

/// Detail level of a dictionary: the filter of a request's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Verbosity(pub u32);

impl Verbosity {
    /// Type and version only.
    pub const INFO: Self = Self(0x00);
    /// Data for decoding.
    pub const MINIMAL: Self = Self(0x03);
    /// Data for decoding and display.
    pub const NORMAL: Self = Self(0x07);
    /// All data, including the meanings of enumerated values.
    pub const VERBOSE: Self = Self(0x0F);
}

/// Result of encoding one part of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Length of the payload (a series), bytes.
    pub len: usize,
    /// Index of the first entry of the next part.
    pub next: usize,
    /// `true` for the last part.
    pub is_last: bool,
}

/// Entries of the [`SetDefinition`] of the fields; the last two from [`Verbosity::NORMAL`] on.
const FIELD_SET: [SetEntry<'static>; 9] = [
    SetEntry::element("NAME", DataType::ASCII_STRING),
    SetEntry::element("FID", DataType::INT_2),
    SetEntry::element("RIPPLETO", DataType::INT_2),
    SetEntry::element("TYPE", DataType::INT_1),
    SetEntry::element("LENGTH", DataType::UINT_2),
    SetEntry::element("RWFTYPE", DataType::UINT_1),
    SetEntry::element("RWFLEN", DataType::UINT_2),
    SetEntry::element("ENUMLENGTH", DataType::UINT_1),
    SetEntry::element("LONGNAME", DataType::ASCII_STRING),
];
/// Number of these entries that decoding needs.
const FIELD_SET_MINIMAL: usize = 7;

/// Entries of the set definition of the enumerations; the last one only with [`Verbosity::VERBOSE`].
const ENUMERATION_SET: [SetEntry<'static>; 4] = [
    SetEntry::element("FIDS", DataType::ARRAY),
    SetEntry::element("VALUE", DataType::ARRAY),
    SetEntry::element("DISPLAY", DataType::ARRAY),
    SetEntry::element("MEANING", DataType::ARRAY),
];
/// Number of these entries that display needs.
const ENUMERATION_SET_NORMAL: usize = 3;

impl Dictionary {
    /// Writes the payload of one part of the field dictionary (`RWFFld`) to the start of `out`: a series of as many
    /// fields as fit, from index `from` on. Continue with [`Part::next`] until [`Part::is_last`].
    ///
    /// ```
    /// use tapeline_omm::Dictionary;
    /// use tapeline_omm::dictionary::{Download, Verbosity};
    ///
    /// let (mut download, mut from) = (Download::new(), 0);
    /// loop {
    ///     let mut out = [0; 1024];
    ///     let part = Dictionary::builtin().encode_fields(from, Verbosity::NORMAL, &mut out)?;
    ///     download.fields(&out[..part.len])?;
    ///     if part.is_last {
    ///         break;
    ///     }
    ///     from = part.next;
    /// }
    /// let copy = download.finish();
    /// assert_eq!(copy.len(), Dictionary::builtin().len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] if not even one field fits; [`Refused::TooLong`] for a name that no entry can hold.
    pub fn encode_fields(&self, from: usize, verbosity: Verbosity, out: &mut [u8]) -> Result<Part, Refused> {
        let entries = if verbosity >= Verbosity::NORMAL { 9 } else { FIELD_SET_MINIMAL };
        let head = SeriesHead {
            count_hint: u32::try_from(self.fields.len()).ok().filter(|_| from == 0),
            ..SeriesHead::new(DataType::ELEMENT_LIST)
        };
        let rows =
            if verbosity == Verbosity::INFO { &[] } else { self.fields.get(from..).unwrap_or_default() };
        let write_summary = |list: &mut ElementListEncoder<'_>| {
            list.int("Type", 1)?;
            list.int("DictionaryId", number(self.field_tag("DictionaryId")))?;
            list.ascii("Version", self.field_tag("Version").unwrap_or_default())
        };
        let set = FIELD_SET.get(..entries).unwrap_or_default();
        encode(out, head, set, from, rows, write_summary, |room, definition, field| {
            self.encode_field(room, definition, field)
        })
    }

    fn encode_field(
        &self,
        room: &mut [u8],
        definition: &SetDefinition<'_>,
        field: &FieldDefinition,
    ) -> Result<usize, Refused> {
        encode_element_set(room, definition, |set| {
            set.ascii(&*field.name)?;
            set.value(i64::from(field.fid.0))?;
            set.value(i64::from(self.ripples_to(field.fid).map_or(0, |field| field.fid.0)))?;
            set.value(i64::from(field.marketfeed_type.number()))?;
            set.value(u64::from(field.marketfeed_len))?;
            set.value(u64::from(field.data_type.0))?;
            set.value(u64::from(field.data_len))?;
            if definition.len() > FIELD_SET_MINIMAL {
                // One byte on the wire; the longest known display text has 34 characters.
                set.value(u64::from(field.display_len.unwrap_or(0).min(u16::from(u8::MAX))))?;
                set.ascii(&*field.long_name)?;
            }
            Ok(())
        })
    }

    /// Writes the payload of one part of the enumerations (`RWFEnum`) to the start of `out`: a series of as many tables
    /// as fit, from index `from` on. Continue with [`Part::next`] until [`Part::is_last`].
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] if not even one table fits; [`Refused::TooLong`] for a table of more than 65,535 bytes, which
    /// no entry can hold.
    pub fn encode_enumerations(
        &self,
        from: usize,
        verbosity: Verbosity,
        out: &mut [u8],
    ) -> Result<Part, Refused> {
        let entries = if verbosity >= Verbosity::VERBOSE { 4 } else { ENUMERATION_SET_NORMAL };
        let head = SeriesHead::new(DataType::ELEMENT_LIST);
        let rows =
            if verbosity == Verbosity::INFO { &[] } else { self.tables.get(from..).unwrap_or_default() };
        let write_summary = |list: &mut ElementListEncoder<'_>| {
            let tag = |name| self.enumeration_tag(name);
            list.int("Type", 2)?;
            list.int("DictionaryId", number(tag("DictionaryId")))?;
            list.ascii("RT_Version", tag("RT_Version").unwrap_or_default())?;
            list.ascii("DT_Version", tag("DT_Version").unwrap_or_default())?;
            list.ascii("Version", tag("Version").or(tag("DT_Version")).unwrap_or_default())
        };
        let set = ENUMERATION_SET.get(..entries).unwrap_or_default();
        encode(out, head, set, from, rows, write_summary, encode_table)
    }
}

/// Returns the number in a tag; 0 if there is none.
fn number(tag: Option<&str>) -> i64 {
    tag.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn encode_table(
    room: &mut [u8],
    definition: &SetDefinition<'_>,
    table: &EnumerationTable,
) -> Result<usize, Refused> {
    let is_ascii = table.values().iter().all(|value| value.display_bytes().is_ascii());
    let text = if is_ascii { DataType::ASCII_STRING } else { DataType::RMTES_STRING };
    encode_element_set(room, definition, |set| {
        let values = table.values();
        array(set, DataType::INT, 2, &table.fids, |array, fid| array.value(&Value::Int(fid.0.into())))?;
        array(set, DataType::ENUM, 0, values, |array, value| array.value(&Value::Enum(value.number)))?;
        array(set, text, 0, values, |array, value| array.item(value.display_bytes()))?;
        if definition.len() > ENUMERATION_SET_NORMAL {
            let ascii = DataType::ASCII_STRING;
            array(set, ascii, 0, values, |array, value| array.item(value.meaning.as_bytes()))?;
        }
        Ok(())
    })
}

/// Writes an array as the next value of a set.
fn array<T>(
    set: &mut SetDataEncoder<'_, '_, '_>,
    item_type: DataType,
    item_len: u16,
    items: &[T],
    write: impl Fn(&mut ArrayEncoder<'_>, &T) -> Result<(), Refused>,
) -> Result<(), Refused> {
    set.in_place(|room| {
        let mut array = ArrayEncoder::new(room, item_type, item_len)?;
        items.iter().try_for_each(|item| write(&mut array, item))?;
        Ok(array.finish())
    })
}

/// Writes a series of as many `rows` as fit.
fn encode<T>(
    out: &mut [u8],
    head: SeriesHead<'_>,
    set: &[SetEntry<'_>],
    from: usize,
    rows: &[T],
    write_summary: impl FnOnce(&mut ElementListEncoder<'_>) -> Result<(), Refused>,
    write: impl Fn(&mut [u8], &SetDefinition<'_>, &T) -> Result<usize, Refused>,
) -> Result<Part, Refused> {
    let mut definitions = [0; DEFINITION_MAX];
    let mut encoder = SetDefinitionsEncoder::new(&mut definitions)?;
    encoder.set(0, set)?;
    let len = encoder.finish();
    let definitions = definitions.get(..len).unwrap_or_default();
    let sets = SetDefinitions::parse(definitions, DataType::ELEMENT_LIST).map_err(|_| Full)?;
    let definition = sets.get(0).ok_or(Full)?;
    let head = SeriesHead { set_definitions: Some(definitions), ..head };
    let mut series = if from == 0 {
        SeriesEncoder::with_summary(out, &head, |room| {
            let mut list = ElementListEncoder::new(room)?;
            write_summary(&mut list)?;
            Ok(list.finish())
        })?
    } else {
        SeriesEncoder::new(out, &head)?
    };
    for row in rows {
        match series.entry_in_place(|room| write(room, &definition, row)) {
            Err(Refused::Full) if !series.is_empty() => break,
            done => done?,
        }
    }
    let written = series.len();
    Ok(Part { len: series.finish(), next: from + written, is_last: written == rows.len() })
}

//! SERIES, read and written (RWF chapter 4).

use super::entries::{Entries, EntryIter, Head, Shared, SharedBits};
use super::entries_encoder::{Data, EntriesWriter, NoWrite, counted, entries_encoder};
use super::{Cursor, DataType, Writer};
use crate::{Malformed, Refused};

/// Flags in a series' first byte: set definitions, a summary, a count hint.
const SHARED: SharedBits = SharedBits { set_definitions: 1, summary: 2, count_hint: 4 };

/// Head of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesHead<'a> {
    /// Type of the summary and of every entry.
    pub container: DataType,
    /// Set definitions in wire form, at most 32,767 bytes; [`Series::sets`](Entries::sets) parses them.
    pub set_definitions: Option<&'a [u8]>,
    /// Data that all entries share, at most 32,767 bytes.
    pub summary: Option<&'a [u8]>,
    /// Number of entries in all parts of the image together, at most 1,073,741,823: a hint for a reader that allocates
    /// memory.
    pub count_hint: Option<u32>,
}

impl<'a> SeriesHead<'a> {
    /// Returns the head of a series without any optional part.
    #[must_use]
    pub const fn new(container: DataType) -> Self {
        Self { container, set_definitions: None, summary: None, count_hint: None }
    }
}

/// View of a series (rows of one kind), borrowed from its message. An entry is the bytes of its container.
///
/// ```
/// use tapeline_omm::rwf::{DataType, Series, SeriesEncoder, SeriesHead};
///
/// let mut out = [0; 64];
/// let mut series = SeriesEncoder::new(&mut out, &SeriesHead::new(DataType::OPAQUE))?;
/// series.entry(b"one")?;
/// series.entry(b"two")?;
/// let len = series.finish();
/// let rows: Vec<_> = Series::parse(&out[..len])?.iter().collect::<Result<_, _>>()?;
/// assert_eq!(rows, [b"one", b"two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Series<'a> = Entries<'a, SeriesHead<'a>>;

/// Iterator over the entries of a [`Series`] in order. It ends after a fault.
pub type SeriesEntries<'a> = EntryIter<'a, SeriesHead<'a>>;

impl<'a> Series<'a> {
    /// Reads the head of a series that occupies all of `bytes`.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes);
        let flags = cursor.u8("series flags")?;
        let container = DataType::from_container_byte(cursor.u8("series container type")?);
        let Shared { set_definitions, summary, count_hint } = Shared::read(flags, SHARED, &mut cursor)?;
        let count = cursor.u16("series entry count")?;
        let head = SeriesHead { container, set_definitions, summary, count_hint };
        Ok(Self::behind(head, count, &cursor, bytes.len()))
    }
}

impl<'a> Head<'a> for SeriesHead<'a> {
    type Entry = &'a [u8];

    fn container(&self) -> DataType {
        self.container
    }

    fn shared(&self) -> Shared<'a> {
        Shared { set_definitions: self.set_definitions, summary: self.summary, count_hint: self.count_hint }
    }

    fn read_entry(&self, cursor: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
        if self.container == DataType::NO_DATA { Ok(&[]) } else { cursor.b16("series entry") }
    }
}

/// Encoder that writes a series in one pass into the caller's buffer.
///
/// Each method appends one entry, or refuses it and leaves the series unchanged; [`finish`](SeriesEncoder::finish)
/// makes a well-formed series of the appended entries.
#[derive(Debug)]
pub struct SeriesEncoder<'a> {
    entries: EntriesWriter<'a>,
    container: DataType,
}

entries_encoder!(SeriesEncoder, SeriesHead, "series");

impl<'a> SeriesEncoder<'a> {
    fn begin(
        out: &'a mut [u8],
        head: &SeriesHead<'_>,
        write_summary: Option<impl FnOnce(&mut [u8]) -> Result<usize, Refused>>,
    ) -> Result<Self, Refused> {
        let mut writer = Writer::new(out);
        writer.bytes(&[head.shared().bits(SHARED), head.container.container_byte()])?;
        head.shared().write(&mut writer, write_summary)?;
        Ok(Self { entries: EntriesWriter::begin(writer)?, container: head.container })
    }

    /// Appends an entry; in a series of NO_DATA its bytes are not written.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], also after 65,535 entries; [`Refused::TooLong`] for more than 65,535 bytes.
    pub fn entry(&mut self, data: &[u8]) -> Result<(), Refused> {
        self.append(Data::<NoWrite>::Bytes(data))
    }

    /// Appends an entry that `write` writes into the free space; `write` returns its length. The length has the
    /// three-byte form, because its space is reserved. `write` is not called in a series of NO_DATA. Fails as
    /// [`SeriesEncoder::entry`], and with what `write` returns.
    pub fn entry_in_place(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        self.append(Data::InPlace(write))
    }

    fn append(
        &mut self,
        data: Data<'_, impl FnOnce(&mut [u8]) -> Result<usize, Refused>>,
    ) -> Result<(), Refused> {
        let data = if self.container == DataType::NO_DATA { Data::None } else { data };
        self.entries.append(|writer| data.write(writer, "series entry"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries_encoder::check_prefixes;
    use super::*;

    #[test]
    fn a_full_buffer_holds_a_well_formed_prefix() {
        let head = SeriesHead {
            set_definitions: Some(&[0, 0]),
            summary: Some(&[8, 0, 0]),
            count_hint: Some(70),
            ..SeriesHead::new(DataType::FIELD_LIST)
        };
        let entries: [&[u8]; 3] = [&[8, 0, 0], &[7; 300], &[]];
        let encode = |out: &mut [u8]| {
            let mut series = SeriesEncoder::new(out, &head).ok()?;
            let written = entries.iter().take_while(|entry| series.entry(entry).is_ok()).count();
            Some((series.finish(), written))
        };
        check_prefixes::<4>(13, 340, encode, |bytes, written| {
            let series = Series::parse(bytes).unwrap();
            assert_eq!(*series.head(), head);
            let found: Result<Vec<_>, _> = series.iter().collect();
            assert_eq!(found.unwrap(), entries[..written], "{} bytes", bytes.len());
        });
    }

    #[test]
    fn no_data_has_a_count_alone() {
        let mut out = [0; 64];
        let mut series = SeriesEncoder::new(&mut out, &SeriesHead::new(DataType::NO_DATA)).unwrap();
        series.entry(b"dropped").unwrap();
        series.entry_in_place(|_| panic!("there is no data")).unwrap();
        let len = series.finish();
        assert_eq!(out[..len], [0, 0, 0, 2]);
        assert_eq!(Series::parse(&out[..len]).unwrap().iter().filter(Result::is_ok).count(), 2);
    }
}

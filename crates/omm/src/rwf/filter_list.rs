//! FILTER_LIST, read and written (RWF chapter 4).

use super::entries::{Entries, EntryIter, Head};
use super::entries_encoder::{Data, EntriesWriter, NoWrite, counted};
use super::{Container, Cursor, DataType, FilterAction, SetDefinitions, Writer};
use crate::{Malformed, Refused};

/// Flag in a filter list's first byte: entries may have permission data. Without the flag, that of an entry is ignored.
const HAS_PERMISSION_DATA: u8 = 1;
/// Flag: the number of entries in all parts follows.
const HAS_COUNT_HINT: u8 = 2;
/// Flag in an entry's first byte, above the action: permission data follows.
const ENTRY_HAS_PERMISSION_DATA: u8 = 1;
/// Flag: the type of this entry's data follows.
const ENTRY_HAS_CONTAINER: u8 = 2;

/// Head of a filter list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterListHead {
    /// Type of the data of every entry that does not state its own.
    pub container: DataType,
    /// Number of entries in all parts of the image together: a hint for a reader that allocates memory.
    pub count_hint: Option<u8>,
    /// `true` if entries may have permission data.
    pub permission_data: bool,
}

impl FilterListHead {
    /// Returns the head of a filter list without any optional part.
    #[must_use]
    pub const fn new(container: DataType) -> Self {
        Self { container, count_hint: None, permission_data: false }
    }

    fn data_type(self, entry: &FilterEntry<'_>) -> DataType {
        entry.container.unwrap_or(self.container)
    }
}

/// One entry of a filter list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterEntry<'a> {
    /// Action on the entry.
    pub action: FilterAction,
    /// Id of the filter; the domain defines its meaning.
    pub id: u8,
    /// Type of the data, if it differs from that of the head.
    pub container: Option<DataType>,
    /// Permission data of this entry only, at most 32,767 bytes; only in a list whose head allows it.
    pub permission_data: Option<&'a [u8]>,
    /// Bytes of the container, at most 65,535; none for CLEAR or NO_DATA.
    pub data: &'a [u8],
}

impl<'a> FilterEntry<'a> {
    /// Returns an entry of the head's type.
    #[must_use]
    pub const fn new(action: FilterAction, id: u8, data: &'a [u8]) -> Self {
        Self { action, id, container: None, permission_data: None, data }
    }

    /// Opens the data, of the entry's own type or that of the list's `head`.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated; offsets count from the start of the data.
    pub fn open(&self, head: &FilterListHead) -> Result<Container<'a>, Malformed> {
        if self.action == FilterAction::CLEAR {
            return Ok(Container::NoData);
        }
        Container::parse(head.data_type(self), self.data, &SetDefinitions::NONE)
    }
}

/// View of a filter list, borrowed from its message.
///
/// ```
/// use tapeline_omm::rwf::{DataType, ElementListEncoder, FilterAction, FilterList, FilterListEncoder, FilterListHead};
///
/// let mut out = [0; 64];
/// let mut filters = FilterListEncoder::new(&mut out, &FilterListHead::new(DataType::ELEMENT_LIST))?;
/// filters.entry_in_place(FilterAction::SET, 2, |room| {
///     let mut state = ElementListEncoder::new(room)?;
///     state.uint("ServiceState", 1)?;
///     Ok(state.finish())
/// })?;
/// let len = filters.finish();
///
/// let filters = FilterList::parse(&out[..len])?;
/// let ids: Vec<_> = filters.iter().map(|entry| entry.map(|entry| entry.id)).collect::<Result<_, _>>()?;
/// assert_eq!(ids, [2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type FilterList<'a> = Entries<'a, FilterListHead>;

/// Iterator over the entries of a [`FilterList`] in order. It ends after a fault.
pub type FilterEntries<'a> = EntryIter<'a, FilterListHead>;

impl<'a> FilterList<'a> {
    /// Reads the head of a filter list that occupies all of `bytes`.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes);
        let flags = cursor.u8("filter list flags")?;
        let container = DataType::from_container_byte(cursor.u8("filter list container type")?);
        let has_hint = flags & HAS_COUNT_HINT != 0;
        let count_hint = has_hint.then(|| cursor.u8("filter list count hint")).transpose()?;
        let permission_data = flags & HAS_PERMISSION_DATA != 0;
        let head = FilterListHead { container, count_hint, permission_data };
        let count = u16::from(cursor.u8("filter list entry count")?);
        Ok(Self::behind(head, count, &cursor, bytes.len()))
    }
}

impl<'a> Head<'a> for FilterListHead {
    type Entry = FilterEntry<'a>;

    fn container(&self) -> DataType {
        self.container
    }

    fn read_entry(&self, cursor: &mut Cursor<'a>) -> Result<FilterEntry<'a>, Malformed> {
        let first = cursor.u8("filter entry")?;
        let flags = first >> 4;
        let mut entry = FilterEntry::new(FilterAction(first & 0x0F), cursor.u8("filter id")?, &[]);
        if flags & ENTRY_HAS_CONTAINER != 0 {
            entry.container = Some(DataType::from_container_byte(cursor.u8("filter entry container type")?));
        }
        if self.permission_data && flags & ENTRY_HAS_PERMISSION_DATA != 0 {
            entry.permission_data = Some(cursor.b15("filter entry permission data")?);
        }
        if entry.action != FilterAction::CLEAR && self.data_type(&entry) != DataType::NO_DATA {
            entry.data = cursor.b16("filter entry data")?;
        }
        Ok(entry)
    }
}

/// Encoder that writes a filter list in one pass into the caller's buffer.
///
/// Each method appends one entry, or refuses it and leaves the list unchanged; [`finish`](FilterListEncoder::finish)
/// makes a well-formed list of the appended entries.
#[derive(Debug)]
pub struct FilterListEncoder<'a> {
    entries: EntriesWriter<'a>,
    head: FilterListHead,
}

counted!(FilterListEncoder, "filter list", "entries so far");

impl<'a> FilterListEncoder<'a> {
    /// Starts a filter list at the start of `out`.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`].
    pub fn new(out: &'a mut [u8], head: &FilterListHead) -> Result<Self, Refused> {
        let flags = if head.permission_data { HAS_PERMISSION_DATA } else { 0 }
            | if head.count_hint.is_some() { HAS_COUNT_HINT } else { 0 };
        let mut writer = Writer::new(out);
        writer.bytes(&[flags, head.container.container_byte()])?;
        if let Some(hint) = head.count_hint {
            writer.u8(hint)?;
        }
        Ok(Self { entries: EntriesWriter::begin_u8(writer)?, head: *head })
    }

    /// Appends an entry. Data of a CLEAR or of type NO_DATA is not written.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], also after 255 entries; [`Refused::TooLong`] for a part that its length field cannot express;
    /// [`Refused::Misplaced`] for permission data if the head does not allow it.
    pub fn entry(&mut self, entry: &FilterEntry<'_>) -> Result<(), Refused> {
        self.append(entry, Data::<NoWrite>::Bytes(entry.data))
    }

    /// Appends an entry of the head's type whose data `write` writes into the free space; `write` returns its length.
    /// The length has the three-byte form, because its space is reserved. `write` is not called for an entry without
    /// data. Fails as [`FilterListEncoder::entry`], and with what `write` returns.
    pub fn entry_in_place(
        &mut self,
        action: FilterAction,
        id: u8,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        self.any_in_place(&FilterEntry::new(action, id, &[]), write)
    }

    /// As [`FilterListEncoder::entry_in_place`], with the optional members of `entry`, whose data is ignored. Fails as
    /// [`FilterListEncoder::entry`], and with what `write` returns.
    pub fn any_in_place(
        &mut self,
        entry: &FilterEntry<'_>,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        self.append(entry, Data::InPlace(write))
    }

    fn append(
        &mut self,
        entry: &FilterEntry<'_>,
        data: Data<'_, impl FnOnce(&mut [u8]) -> Result<usize, Refused>>,
    ) -> Result<(), Refused> {
        if entry.permission_data.is_some() && !self.head.permission_data {
            return Err(Refused::Misplaced("permission data of an entry"));
        }
        let flags = if entry.permission_data.is_some() { ENTRY_HAS_PERMISSION_DATA } else { 0 }
            | if entry.container.is_some() { ENTRY_HAS_CONTAINER } else { 0 };
        let has_data = entry.action != FilterAction::CLEAR && self.head.data_type(entry) != DataType::NO_DATA;
        let data = if has_data { data } else { Data::None };
        self.entries.append(|writer| {
            writer.bytes(&[flags << 4 | entry.action.0 & 0x0F, entry.id])?;
            if let Some(container) = entry.container {
                writer.u8(container.container_byte())?;
            }
            if let Some(data) = entry.permission_data {
                writer.b15(data, "filter entry permission data")?;
            }
            data.write(writer, "filter entry data")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries_encoder::check_prefixes;
    use super::*;

    fn head() -> FilterListHead {
        FilterListHead { container: DataType::ELEMENT_LIST, count_hint: Some(3), permission_data: true }
    }

    const ENTRIES: [FilterEntry<'static>; 4] = [
        FilterEntry::new(FilterAction::SET, 1, &[8, 0, 0]),
        FilterEntry {
            container: Some(DataType::MAP),
            permission_data: Some(b"pe"),
            ..FilterEntry::new(FilterAction::UPDATE, 6, &[7; 300])
        },
        FilterEntry::new(FilterAction::CLEAR, 3, &[]),
        FilterEntry { container: Some(DataType::NO_DATA), ..FilterEntry::new(FilterAction::SET, 4, &[]) },
    ];

    #[test]
    fn a_full_buffer_holds_a_well_formed_prefix() {
        let encode = |out: &mut [u8]| {
            let mut list = FilterListEncoder::new(out, &head()).ok()?;
            let written = ENTRIES.iter().take_while(|entry| list.entry(entry).is_ok()).count();
            Some((list.finish(), written))
        };
        check_prefixes::<{ ENTRIES.len() + 1 }>(4, 340, encode, |bytes, written| {
            let list = FilterList::parse(bytes).unwrap();
            assert_eq!(*list.head(), head());
            let found: Result<Vec<_>, _> = list.iter().collect();
            assert_eq!(found.unwrap(), ENTRIES[..written], "{} bytes", bytes.len());
        });
    }

    #[test]
    fn what_has_no_place_is_refused_or_left_out() {
        let mut out = [0; 1024];
        let mut list = FilterListEncoder::new(&mut out, &FilterListHead::new(DataType::MAP)).unwrap();
        assert_eq!(list.entry(&ENTRIES[1]), Err(Refused::Misplaced("permission data of an entry")));
        list.entry_in_place(FilterAction::CLEAR, 1, |_| panic!("there is no data")).unwrap();
        for _ in 1..255 {
            list.entry(&FilterEntry::new(FilterAction::CLEAR, 9, b"dropped")).unwrap();
        }
        assert_eq!(list.entry(&ENTRIES[0]), Err(Refused::Full));
        let len = list.finish();
        assert_eq!((len, out[2]), (3 + 2 * 255, 255));
    }

    #[test]
    fn a_cut_is_a_fault_that_says_where() {
        let bytes = [0, 5, 2, 0x02, 1, 3, 8, 0, 0, 0x22, 6, 9, 1, 0];
        assert_eq!(FilterList::parse(&bytes).unwrap().iter().filter(Result::is_ok).count(), 2);
        for cut in 0..bytes.len() {
            let Ok(list) = FilterList::parse(&bytes[..cut]) else {
                assert!(cut < 3);
                continue;
            };
            let faults: Vec<_> = list.iter().filter_map(Result::err).collect();
            assert_eq!(faults.len(), 1, "cut at {cut}");
            assert!((3..=cut).contains(&faults[0].offset), "cut at {cut}: {}", faults[0]);
        }
    }
}

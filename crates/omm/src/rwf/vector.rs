//! VECTOR, read and written (RWF chapter 4).

use super::entries::{Entries, EntryIter, Head, Shared, SharedBits};
use super::entries_encoder::{Data, EntriesWriter, NoWrite, counted, entries_encoder};
use super::{Cursor, DataType, VectorAction, Writer};
use crate::{Malformed, Refused};

/// Flags in a vector's first byte: set definitions, a summary, a count hint.
const SHARED: SharedBits = SharedBits { set_definitions: 1, summary: 2, count_hint: 8 };
/// Flag: entries may have permission data. Without the flag, that of an entry is ignored.
const HAS_PERMISSION_DATA: u8 = 4;
/// Flag: entries may be inserted and deleted.
const SUPPORTS_SORTING: u8 = 16;
/// Flag in an entry's first byte, above the action: permission data follows.
const ENTRY_HAS_PERMISSION_DATA: u8 = 1;

/// Head of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorHead<'a> {
    /// Type of the summary and of every entry's data.
    pub container: DataType,
    /// Set definitions in wire form, at most 32,767 bytes; [`Vector::sets`](Entries::sets) parses them.
    pub set_definitions: Option<&'a [u8]>,
    /// Data that all entries share, at most 32,767 bytes.
    pub summary: Option<&'a [u8]>,
    /// Number of entries in all parts of the image together, at most 1,073,741,823: a hint for a reader that allocates
    /// memory.
    pub count_hint: Option<u32>,
    /// `true` if entries may have permission data.
    pub permission_data: bool,
    /// `true` if entries may be inserted between others, and deleted, which moves the entries after them.
    pub sorting: bool,
}

impl<'a> VectorHead<'a> {
    /// Returns the head of a vector without any optional part.
    #[must_use]
    pub const fn new(container: DataType) -> Self {
        Self {
            container,
            set_definitions: None,
            summary: None,
            count_hint: None,
            permission_data: false,
            sorting: false,
        }
    }

    /// Returns `true` if an entry with this action has data.
    pub(super) fn has_data(&self, action: VectorAction) -> bool {
        !matches!(action, VectorAction::CLEAR | VectorAction::DELETE) && self.container != DataType::NO_DATA
    }
}

/// One entry of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorEntry<'a> {
    /// Action on the entry.
    pub action: VectorAction,
    /// Index of the entry, at most 1,073,741,823.
    pub index: u32,
    /// Permission data of this entry only, at most 32,767 bytes; only in a vector whose head allows it.
    pub permission_data: Option<&'a [u8]>,
    /// Bytes of the container, at most 65,535; none for a CLEAR or DELETE, or in a vector of NO_DATA.
    pub data: &'a [u8],
}

/// View of a vector, borrowed from its message.
///
/// ```
/// use tapeline_omm::rwf::{DataType, ElementListEncoder, Vector, VectorAction, VectorEncoder, VectorHead};
///
/// let mut out = [0; 64];
/// let mut vector = VectorEncoder::new(&mut out, &VectorHead::new(DataType::ELEMENT_LIST))?;
/// vector.entry_in_place(VectorAction::SET, 7, None, |room| {
///     let mut list = ElementListEncoder::new(room)?;
///     list.uint("Port", 14002)?;
///     Ok(list.finish())
/// })?;
/// let len = vector.finish();
///
/// let vector = Vector::parse(&out[..len])?;
/// let places: Vec<_> = vector.iter().map(|entry| entry.map(|entry| entry.index)).collect::<Result<_, _>>()?;
/// assert_eq!(places, [7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Vector<'a> = Entries<'a, VectorHead<'a>>;

/// Iterator over the entries of a [`Vector`] in order. It ends after a fault.
pub type VectorEntries<'a> = EntryIter<'a, VectorHead<'a>>;

impl<'a> Vector<'a> {
    /// Reads the head of a vector that occupies all of `bytes`.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes);
        let flags = cursor.u8("vector flags")?;
        let container = DataType::from_container_byte(cursor.u8("vector container type")?);
        let Shared { set_definitions, summary, count_hint } = Shared::read(flags, SHARED, &mut cursor)?;
        let head = VectorHead {
            container,
            set_definitions,
            summary,
            count_hint,
            permission_data: flags & HAS_PERMISSION_DATA != 0,
            sorting: flags & SUPPORTS_SORTING != 0,
        };
        let count = cursor.u16("vector entry count")?;
        Ok(Self::behind(head, count, &cursor, bytes.len()))
    }
}

impl<'a> Head<'a> for VectorHead<'a> {
    type Entry = VectorEntry<'a>;

    fn container(&self) -> DataType {
        self.container
    }

    fn shared(&self) -> Shared<'a> {
        Shared { set_definitions: self.set_definitions, summary: self.summary, count_hint: self.count_hint }
    }

    fn read_entry(&self, cursor: &mut Cursor<'a>) -> Result<VectorEntry<'a>, Malformed> {
        let first = cursor.u8("vector entry")?;
        let action = VectorAction(first & 0x0F);
        let index = cursor.u30("vector index")?;
        let has_permission_data = self.permission_data && first >> 4 & ENTRY_HAS_PERMISSION_DATA != 0;
        let permission_data =
            if has_permission_data { Some(cursor.b15("vector entry permission data")?) } else { None };
        let data = if self.has_data(action) { cursor.b16("vector entry data")? } else { &[] };
        Ok(VectorEntry { action, index, permission_data, data })
    }
}

/// Encoder that writes a vector in one pass into the caller's buffer.
///
/// Each method appends one entry, or refuses it and leaves the vector unchanged; [`finish`](VectorEncoder::finish)
/// makes a well-formed vector of the appended entries.
#[derive(Debug)]
pub struct VectorEncoder<'a> {
    entries: EntriesWriter<'a>,
    /// Head without its parts of variable size: the entries depend on it.
    head: VectorHead<'static>,
}

entries_encoder!(VectorEncoder, VectorHead, "vector");

impl<'a> VectorEncoder<'a> {
    fn begin(
        out: &'a mut [u8],
        head: &VectorHead<'_>,
        write_summary: Option<impl FnOnce(&mut [u8]) -> Result<usize, Refused>>,
    ) -> Result<Self, Refused> {
        let flags = head.shared().bits(SHARED)
            | if head.permission_data { HAS_PERMISSION_DATA } else { 0 }
            | if head.sorting { SUPPORTS_SORTING } else { 0 };
        let mut writer = Writer::new(out);
        writer.bytes(&[flags, head.container.container_byte()])?;
        head.shared().write(&mut writer, write_summary)?;
        let head = VectorHead { permission_data: head.permission_data, ..VectorHead::new(head.container) };
        Ok(Self { entries: EntriesWriter::begin(writer)?, head })
    }

    /// Appends an entry. Data of a CLEAR or DELETE, or in a vector of NO_DATA, is not written.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], also after 65,535 entries; [`Refused::TooLong`] for a part that its length field cannot
    /// express; [`Refused::Misplaced`] for permission data if the head does not allow it.
    pub fn entry(&mut self, entry: &VectorEntry<'_>) -> Result<(), Refused> {
        let data = Data::<NoWrite>::Bytes(entry.data);
        self.append(entry.action, entry.index, entry.permission_data, data)
    }

    /// Appends an entry whose data `write` writes into the free space; `write` returns its length. The length has the
    /// three-byte form, because its space is reserved. `write` is not called for an entry without data. Fails as
    /// [`VectorEncoder::entry`], and with what `write` returns.
    pub fn entry_in_place(
        &mut self,
        action: VectorAction,
        index: u32,
        permission_data: Option<&[u8]>,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        self.append(action, index, permission_data, Data::InPlace(write))
    }

    fn append(
        &mut self,
        action: VectorAction,
        index: u32,
        permission_data: Option<&[u8]>,
        data: Data<'_, impl FnOnce(&mut [u8]) -> Result<usize, Refused>>,
    ) -> Result<(), Refused> {
        if permission_data.is_some() && !self.head.permission_data {
            return Err(Refused::Misplaced("permission data of an entry"));
        }
        let flags = if permission_data.is_some() { ENTRY_HAS_PERMISSION_DATA } else { 0 };
        let data = if self.head.has_data(action) { data } else { Data::None };
        self.entries.append(|writer| {
            writer.u8(flags << 4 | action.0 & 0x0F)?;
            writer.u30(index, "vector index")?;
            if let Some(data) = permission_data {
                writer.b15(data, "vector entry permission data")?;
            }
            data.write(writer, "vector entry data")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries_encoder::check_prefixes;
    use super::*;

    fn head() -> VectorHead<'static> {
        VectorHead {
            set_definitions: Some(&[0, 0]),
            summary: Some(&[8, 0, 0]),
            count_hint: Some(70),
            permission_data: true,
            sorting: true,
            ..VectorHead::new(DataType::FIELD_LIST)
        }
    }

    const ENTRIES: [VectorEntry<'static>; 5] = [
        VectorEntry { action: VectorAction::SET, index: 0, permission_data: Some(b"pe"), data: &[8, 0, 0] },
        VectorEntry { action: VectorAction::INSERT, index: 64, permission_data: None, data: &[7; 300] },
        VectorEntry { action: VectorAction::CLEAR, index: 16_384, permission_data: None, data: &[] },
        VectorEntry { action: VectorAction::DELETE, index: 1 << 22, permission_data: Some(b""), data: &[] },
        VectorEntry { action: VectorAction::UPDATE, index: (1 << 30) - 1, permission_data: None, data: &[] },
    ];

    #[test]
    fn a_full_buffer_holds_a_well_formed_prefix() {
        let encode = |out: &mut [u8]| {
            let mut vector = VectorEncoder::new(out, &head()).ok()?;
            let written = ENTRIES.iter().take_while(|entry| vector.entry(entry).is_ok()).count();
            Some((vector.finish(), written))
        };
        check_prefixes::<{ ENTRIES.len() + 1 }>(13, 360, encode, |bytes, written| {
            let vector = Vector::parse(bytes).unwrap();
            assert_eq!(*vector.head(), head());
            let found: Result<Vec<_>, _> = vector.iter().collect();
            assert_eq!(found.unwrap(), ENTRIES[..written], "{} bytes", bytes.len());
        });
    }

    #[test]
    fn what_has_no_place_is_refused_or_left_out() {
        let mut out = [0; 64];
        let plain = VectorHead::new(DataType::NO_DATA);
        let mut vector = VectorEncoder::new(&mut out, &plain).unwrap();
        assert_eq!(vector.entry(&ENTRIES[0]), Err(Refused::Misplaced("permission data of an entry")));
        vector.entry_in_place(VectorAction::SET, 5, None, |_| panic!("there is no data")).unwrap();
        let too_far = VectorEntry { index: 1 << 30, ..ENTRIES[1] };
        assert_eq!(
            vector.entry(&too_far),
            Err(Refused::TooLong { what: "vector index", limit: 0x3FFF_FFFF })
        );
        let len = vector.finish();
        assert_eq!(out[..len], [0, 0, 0, 1, 2, 5]);
    }
}

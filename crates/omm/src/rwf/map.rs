//! MAP, read (RWF chapter 4).

use super::entries::{Entries, EntryIter, Head, Shared, SharedBits};
use super::{Cursor, DataType, MapAction};
use crate::{Fid, Malformed, Value};

/// Flags in a map's first byte: set definitions, a summary, a count hint.
pub(super) const SHARED: SharedBits = SharedBits { set_definitions: 1, summary: 2, count_hint: 8 };
/// Flag: entries may have permission data. Without the flag, that of an entry is ignored.
pub(super) const HAS_PERMISSION_DATA: u8 = 4;
/// Flag: the field id of the keys follows.
pub(super) const HAS_KEY_FID: u8 = 16;
/// Flag in an entry's first byte, above the action: permission data follows.
pub(super) const ENTRY_HAS_PERMISSION_DATA: u8 = 1;

/// Head of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapHead<'a> {
    /// Type of the keys: a primitive, not ARRAY.
    pub key_type: DataType,
    /// Type of the summary and of every entry's data.
    pub container: DataType,
    /// Field of the keys, such as ORDER_ID.
    pub key_fid: Option<Fid>,
    /// Set definitions in wire form, at most 32,767 bytes; [`Map::sets`](Entries::sets) parses them.
    pub set_definitions: Option<&'a [u8]>,
    /// Data that all entries share, at most 32,767 bytes.
    pub summary: Option<&'a [u8]>,
    /// Number of entries in all parts of the image together, at most 1,073,741,823: a hint for a reader that allocates
    /// memory.
    pub count_hint: Option<u32>,
    /// `true` if entries may have permission data.
    pub permission_data: bool,
}

impl<'a> MapHead<'a> {
    /// Returns the head of a map without any optional part.
    #[must_use]
    pub const fn new(key_type: DataType, container: DataType) -> Self {
        Self {
            key_type,
            container,
            key_fid: None,
            set_definitions: None,
            summary: None,
            count_hint: None,
            permission_data: false,
        }
    }

    /// Returns `true` if an entry with this action has data.
    #[inline]
    pub(super) fn has_data(&self, action: MapAction) -> bool {
        action != MapAction::DELETE && self.container != DataType::NO_DATA
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let flags = cursor.u8("map flags")?;
        let key_type = DataType(cursor.u8("map key type")?);
        let container = DataType::from_container_byte(cursor.u8("map container type")?);
        let has_fid = flags & HAS_KEY_FID != 0;
        let key_fid = has_fid.then(|| cursor.i16("map key field id")).transpose()?.map(Fid);
        let Shared { set_definitions, summary, count_hint } = Shared::read(flags, SHARED, cursor)?;
        let permission_data = flags & HAS_PERMISSION_DATA != 0;
        Ok(Self { key_type, container, key_fid, set_definitions, summary, count_hint, permission_data })
    }
}

/// One entry of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapEntry<'a> {
    /// Action on the entry.
    pub action: MapAction,
    /// Permission data of this entry only, at most 32,767 bytes; only in a map whose head allows it.
    pub permission_data: Option<&'a [u8]>,
    /// Bytes of the key, at most 32,767, of the head's key type.
    pub key: &'a [u8],
    /// Bytes of the container, at most 65,535; none for a DELETE, or in a map of NO_DATA.
    pub data: &'a [u8],
}

impl<'a> MapEntry<'a> {
    /// Returns the key as a value of the type in the map's head.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not valid for the type.
    pub fn key_value(&self, key_type: DataType) -> Result<Value<'a>, Malformed> {
        Value::decode(key_type, self.key)
    }
}

/// View of a map, borrowed from its message.
///
/// Reading the head does not check the entries; iteration checks them one by one.
pub type Map<'a> = Entries<'a, MapHead<'a>>;

/// Iterator over the entries of a [`Map`] in order. It ends after a fault.
pub type MapEntries<'a> = EntryIter<'a, MapHead<'a>>;

impl<'a> Map<'a> {
    /// Reads the head of a map that occupies all of `bytes`.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes);
        let head = MapHead::read(&mut cursor)?;
        let count = cursor.u16("map entry count")?;
        Ok(Self::behind(head, count, &cursor, bytes.len()))
    }
}

impl<'a> Head<'a> for MapHead<'a> {
    type Entry = MapEntry<'a>;

    fn container(&self) -> DataType {
        self.container
    }

    fn shared(&self) -> Shared<'a> {
        Shared { set_definitions: self.set_definitions, summary: self.summary, count_hint: self.count_hint }
    }

    #[inline]
    fn read_entry(&self, cursor: &mut Cursor<'a>) -> Result<MapEntry<'a>, Malformed> {
        let first = cursor.u8("map entry")?;
        let action = MapAction(first & 0x0F);
        let has_permission_data = self.permission_data && first >> 4 & ENTRY_HAS_PERMISSION_DATA != 0;
        let permission_data =
            if has_permission_data { Some(cursor.b15("map entry permission data")?) } else { None };
        let key = cursor.b15("map key")?;
        let data = if self.has_data(action) { cursor.b16("map entry data")? } else { &[] };
        Ok(MapEntry { action, permission_data, key, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The market by order refresh on the format's page, with its first entry.
    const REFRESH: &[u8] = &[
        0x1A, 0x10, 0x04, 0x0D, 0x62, 0x10, 0x08, 0, 3, 0, 0x0F, 2, 3, 0x48, 0, 0x35, 1, 2, 3, 0xFD, 1, 0, 4,
        0, 1, 2, 9, b'O', b'R', b'D', b'1', b'0', b'0', b'0', b'0', b'0', 4, 8, 0, 0, 0,
    ];

    #[test]
    fn a_market_by_order_refresh() {
        let map = Map::parse(REFRESH).unwrap();
        let head = map.head();
        assert_eq!((head.key_type, head.container), (DataType::BUFFER, DataType::FIELD_LIST));
        assert_eq!((head.key_fid, head.count_hint), (Some(Fid(3426)), Some(4)));
        assert_eq!(head.summary.map(<[u8]>::len), Some(16));
        let entries: Result<Vec<_>, _> = map.iter().collect();
        let entries = entries.unwrap();
        assert_eq!((entries[0].action, entries[0].key), (MapAction::ADD, &b"ORD100000"[..]));
        assert_eq!(entries[0].data, [8, 0, 0, 0]);
        assert_eq!(entries[0].key_value(head.key_type), Ok(Value::Buffer(b"ORD100000")));
    }

    #[test]
    fn a_cut_is_a_fault_that_says_where() {
        for cut in 0..REFRESH.len() {
            match Map::parse(&REFRESH[..cut]) {
                Err(fault) => assert!(fault.offset <= cut && cut < 25, "cut at {cut}: {fault}"),
                Ok(map) => {
                    let faults: Vec<_> = map.iter().filter_map(Result::err).collect();
                    assert_eq!(faults.len(), 1, "cut at {cut}");
                    assert!((25..=cut).contains(&faults[0].offset), "cut at {cut}: {}", faults[0]);
                }
            }
        }
    }

    #[test]
    fn permission_data_counts_only_where_the_head_allows_it() {
        let with = Map::parse(&[4, 4, 0, 0, 1, 0x12, 1, 0xEE, 1, 5]).unwrap();
        let entry = with.iter().next().unwrap().unwrap();
        assert_eq!((entry.permission_data, entry.key), (Some(&[0xEE][..]), &[5][..]));
        let without = Map::parse(&[0, 4, 0, 0, 1, 0x12, 1, 5]).unwrap();
        let entry = without.iter().next().unwrap().unwrap();
        assert_eq!((entry.permission_data, entry.key), (None, &[5][..]));
    }
}

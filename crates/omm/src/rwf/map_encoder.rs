//! MAP, written (RWF chapter 4).

use super::entries::Head;
use super::entries_encoder::{Data, EntriesWriter, NoWrite, counted, entries_encoder};
use super::map::{ENTRY_HAS_PERMISSION_DATA, HAS_KEY_FID, HAS_PERMISSION_DATA, SHARED};
use super::{MapAction, MapEntry, MapHead, Value, Writer};
use crate::Refused;

/// Encoder that writes a map in one pass into the caller's buffer.
///
/// Each method appends one entry, or refuses it and leaves the map unchanged; [`finish`](MapEncoder::finish) makes a
/// well-formed map of the appended entries. An image of any size can therefore be sent in parts: append until
/// [`Refused::Full`], finish, send, and continue with the refused entry in a new map.
///
/// ```
/// use tapeline_omm::rwf::{DataType, Map, MapAction, MapEncoder, MapHead};
/// use tapeline_omm::{Fid, FieldListEncoder, Real};
///
/// let mut out = [0; 128];
/// let head = MapHead { key_fid: Some(Fid(3426)), ..MapHead::new(DataType::BUFFER, DataType::FIELD_LIST) };
/// let mut map = MapEncoder::new(&mut out, &head)?;
/// map.entry_in_place(MapAction::ADD, b"7001", None, |room| {
///     let mut fields = FieldListEncoder::new(room)?;
///     fields.real(Fid(3427), Real::decimal(4000, 2))?;
///     Ok(fields.finish())
/// })?;
/// map.delete(b"6999")?;
/// let len = map.finish();
///
/// let map = Map::parse(&out[..len])?;
/// let keys: Vec<_> = map.iter().map(|entry| entry.map(|entry| (entry.action, entry.key))).collect::<Result<_, _>>()?;
/// assert_eq!(keys, [(MapAction::ADD, &b"7001"[..]), (MapAction::DELETE, b"6999")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MapEncoder<'a> {
    entries: EntriesWriter<'a>,
    /// Head without its parts of variable size: the entries depend on it.
    head: MapHead<'static>,
}

entries_encoder!(MapEncoder, MapHead, "map");

impl<'a> MapEncoder<'a> {
    fn begin(
        out: &'a mut [u8],
        head: &MapHead<'_>,
        write_summary: Option<impl FnOnce(&mut [u8]) -> Result<usize, Refused>>,
    ) -> Result<Self, Refused> {
        let flags = head.shared().bits(SHARED)
            | if head.permission_data { HAS_PERMISSION_DATA } else { 0 }
            | if head.key_fid.is_some() { HAS_KEY_FID } else { 0 };
        let mut writer = Writer::new(out);
        writer.bytes(&[flags, head.key_type.0, head.container.container_byte()])?;
        if let Some(fid) = head.key_fid {
            writer.bytes(&fid.0.to_be_bytes())?;
        }
        head.shared().write(&mut writer, write_summary)?;
        let head =
            MapHead { permission_data: head.permission_data, ..MapHead::new(head.key_type, head.container) };
        Ok(Self { entries: EntriesWriter::begin(writer)?, head })
    }

    /// Appends an entry. Data of a DELETE, or in a map of NO_DATA, is not written.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], also after 65,535 entries; [`Refused::TooLong`] for a part that its length field cannot
    /// express; [`Refused::Misplaced`] for permission data if the head does not allow it.
    pub fn entry(&mut self, entry: &MapEntry<'_>) -> Result<(), Refused> {
        self.append(entry.action, entry.permission_data, Data::<NoWrite>::Bytes(entry.data), |writer| {
            writer.b15(entry.key, "map key")
        })
    }

    /// Appends a DELETE. Fails as [`MapEncoder::entry`].
    #[inline]
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Refused> {
        self.append(MapAction::DELETE, None, Data::<NoWrite>::None, |writer| writer.b15(key, "map key"))
    }

    /// Appends an entry whose data, such as a field list, `write` writes into the free space; `write` returns its
    /// length. The length has the three-byte form, because its space is reserved. `write` is not called for an entry
    /// without data. Fails as [`MapEncoder::entry`], and with what `write` returns.
    #[inline]
    pub fn entry_in_place(
        &mut self,
        action: MapAction,
        key: &[u8],
        permission_data: Option<&[u8]>,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        self.append(action, permission_data, Data::InPlace(write), |writer| writer.b15(key, "map key"))
    }

    /// As [`MapEncoder::entry_in_place`], with a key that is a value, such as a number. Fails as [`MapEncoder::entry`];
    /// [`Refused::Misplaced`] for a key of another type than the head's; what `write` returns.
    pub fn keyed_in_place<'v>(
        &mut self,
        action: MapAction,
        key: impl Into<Value<'v>>,
        permission_data: Option<&[u8]>,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        let key = key.into();
        if key.data_type().is_some_and(|data_type| data_type != self.head.key_type) {
            return Err(Refused::Misplaced("a map key of this type"));
        }
        self.append(action, permission_data, Data::InPlace(write), |writer| key.write_b15(writer, "map key"))
    }

    /// Appends an entry completely, or nothing of it.
    #[inline]
    fn append(
        &mut self,
        action: MapAction,
        permission_data: Option<&[u8]>,
        data: Data<'_, impl FnOnce(&mut [u8]) -> Result<usize, Refused>>,
        write_key: impl FnOnce(&mut Writer<'a>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        if permission_data.is_some() && !self.head.permission_data {
            return Err(Refused::Misplaced("permission data of an entry"));
        }
        let flags = if permission_data.is_some() { ENTRY_HAS_PERMISSION_DATA } else { 0 };
        let data = if self.head.has_data(action) { data } else { Data::None };
        self.entries.append(|writer| {
            writer.u8(flags << 4 | action.0 & 0x0F)?;
            if let Some(data) = permission_data {
                writer.b15(data, "map entry permission data")?;
            }
            write_key(writer)?;
            data.write(writer, "map entry data")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries_encoder::check_prefixes;
    use super::super::{DataType, Map};
    use super::*;
    use crate::{Fid, Full};

    fn head() -> MapHead<'static> {
        MapHead {
            key_fid: Some(Fid(3426)),
            set_definitions: Some(&[0, 0]),
            summary: Some(&[8, 0, 0]),
            count_hint: Some(70),
            permission_data: true,
            ..MapHead::new(DataType::ASCII_STRING, DataType::FIELD_LIST)
        }
    }

    const ENTRIES: [MapEntry<'static>; 4] = [
        MapEntry { action: MapAction::ADD, permission_data: Some(b"pe"), key: b"K1", data: &[8, 0, 0] },
        MapEntry { action: MapAction::UPDATE, permission_data: None, key: b"K2", data: &[8, 0, 0] },
        MapEntry { action: MapAction::DELETE, permission_data: None, key: b"K1", data: &[] },
        MapEntry { action: MapAction::ADD, permission_data: None, key: &[b'k'; 200], data: &[7; 300] },
    ];

    fn fill(map: &mut MapEncoder<'_>, in_place: bool) -> usize {
        let append = |entry: &&MapEntry<'_>| {
            let done = if in_place {
                map.entry_in_place(entry.action, entry.key, entry.permission_data, |room| {
                    room.get_mut(..entry.data.len()).ok_or(Full)?.copy_from_slice(entry.data);
                    Ok(entry.data.len())
                })
            } else {
                map.entry(entry)
            };
            done.is_ok()
        };
        ENTRIES.iter().take_while(append).count()
    }

    #[test]
    fn a_full_buffer_holds_a_well_formed_prefix() {
        for in_place in [false, true] {
            let encode = |out: &mut [u8]| {
                let mut map = MapEncoder::new(out, &head()).ok()?;
                let written = fill(&mut map, in_place);
                assert_eq!(map.len(), written);
                Some((map.finish(), written))
            };
            check_prefixes::<{ ENTRIES.len() + 1 }>(16, 600, encode, |bytes, written| {
                let map = Map::parse(bytes).unwrap();
                assert_eq!(*map.head(), head());
                let found: Result<Vec<_>, _> = map.iter().collect();
                assert_eq!(found.unwrap(), ENTRIES[..written], "{} bytes", bytes.len());
            });
        }
    }

    #[test]
    fn what_has_no_place_is_refused_or_left_out() {
        let mut out = vec![0; 300_000];
        let plain = MapHead::new(DataType::UINT, DataType::NO_DATA);
        let mut map = MapEncoder::new(&mut out, &plain).unwrap();
        assert_eq!(map.entry(&ENTRIES[0]), Err(Refused::Misplaced("permission data of an entry")));
        map.entry(&MapEntry { permission_data: None, ..ENTRIES[0] }).unwrap();
        map.entry_in_place(MapAction::ADD, b"K", None, |_| panic!("there is no data")).unwrap();
        let len = map.finish();
        assert_eq!(out[..len], [0, 4, 0, 0, 2, 2, 2, b'K', b'1', 2, 1, b'K']);

        let lists = MapHead::new(DataType::UINT, DataType::FIELD_LIST);
        let mut map = MapEncoder::new(&mut out, &lists).unwrap();
        let long = map.entry_in_place(MapAction::ADD, b"K", None, |_| Ok(65_536));
        assert_eq!(long, Err(Refused::TooLong { what: "map entry data", limit: 0xFFFF }));
        assert_eq!(
            map.entry_in_place(MapAction::ADD, b"K", None, |room| Ok(room.len() + 1)),
            Err(Refused::Full)
        );
        assert_eq!(map.delete(&[0; 32_768]), Err(Refused::TooLong { what: "map key", limit: 0x7FFF }));
        for _ in 0..65_535 {
            map.delete(b"").unwrap();
        }
        assert_eq!(map.delete(b""), Err(Refused::Full));
        let len = map.finish();
        assert_eq!(Map::parse(&out[..len]).unwrap().iter().filter(Result::is_ok).count(), 65_535);
    }

    #[test]
    fn a_summary_in_place_takes_the_long_form() {
        let mut out = [0; 32];
        let head = MapHead { summary: None, ..MapHead::new(DataType::UINT, DataType::FIELD_LIST) };
        let map = MapEncoder::with_summary(&mut out, &head, |room| {
            room[..3].copy_from_slice(&[8, 0, 0]);
            Ok(3)
        });
        let len = map.unwrap().finish();
        assert_eq!(out[..len], [2, 4, 4, 0x80, 3, 8, 0, 0, 0, 0]);
        let long = MapEncoder::with_summary(&mut [0; 40_000], &head, |_| Ok(32_768)).map(|_| ());
        assert_eq!(long, Err(Refused::TooLong { what: "summary", limit: 0x7FFF }));
        let full = MapEncoder::with_summary(&mut out, &head, |_| Err(Refused::Full)).map(|_| ());
        assert_eq!(full, Err(Refused::Full));
    }
}

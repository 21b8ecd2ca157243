//! MAP, written (RWF chapter 4).

use super::map::{
    ENTRY_HAS_PERMISSION_DATA, HAS_COUNT_HINT, HAS_KEY_FID, HAS_PERMISSION_DATA, HAS_SET_DEFINITIONS,
    HAS_SUMMARY,
};
use super::{MapAction, MapEntry, MapHead, Writer};
use crate::{Full, Refused};

/// The longest length in the two bytes that are reserved for a summary.
const SUMMARY_MAX: usize = 0x7FFF;

/// Writes a map in one pass into the caller's buffer.
///
/// Each method appends one entry or, refused, leaves everything as it was; [`finish`](MapEncoder::finish) makes a
/// well-formed map of the entries that went in. So an image of any size goes out in parts: append until
/// [`Refused::Full`], finish, send, go on with that entry in a new map.
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
    writer: Writer<'a>,
    /// The head without its parts of variable size: what the entries depend on.
    head: MapHead<'static>,
    count_at: usize,
    count: u16,
}

impl<'a> MapEncoder<'a> {
    /// Begins a map at the start of `out`.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for set definitions, a summary or a hint beyond the format's limits.
    pub fn new(out: &'a mut [u8], head: &MapHead<'_>) -> Result<Self, Refused> {
        Self::begin(out, head, head.summary.is_some(), |writer| match head.summary {
            Some(summary) => writer.b15(summary, "map summary"),
            None => Ok(()),
        })
    }

    /// Begins a map whose summary `write` puts into the room that is left, returning its length. The summary of `head`
    /// is passed over; the length takes the two-byte form, as its room is reserved.
    ///
    /// # Errors
    ///
    /// As [`MapEncoder::new`], and what `write` comes back with.
    pub fn with_summary(
        out: &'a mut [u8],
        head: &MapHead<'_>,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Self, Refused> {
        Self::begin(out, head, true, |writer| {
            let place = writer.reserve_u16()?;
            let len = writer.in_place(write)?;
            if len > SUMMARY_MAX {
                return Err(Refused::TooLong { what: "map summary", limit: SUMMARY_MAX });
            }
            writer.fill_u16(place, 0x8000 | len as u16);
            Ok(())
        })
    }

    fn begin(
        out: &'a mut [u8],
        head: &MapHead<'_>,
        has_summary: bool,
        write_summary: impl FnOnce(&mut Writer<'a>) -> Result<(), Refused>,
    ) -> Result<Self, Refused> {
        let flag = |bit: u8, is_set: bool| if is_set { bit } else { 0 };
        let flags = flag(HAS_SET_DEFINITIONS, head.set_definitions.is_some())
            | flag(HAS_SUMMARY, has_summary)
            | flag(HAS_PERMISSION_DATA, head.permission_data)
            | flag(HAS_COUNT_HINT, head.count_hint.is_some())
            | flag(HAS_KEY_FID, head.key_fid.is_some());
        let mut writer = Writer::new(out);
        writer.bytes(&[flags, head.key_type.0, head.container.container_byte()])?;
        if let Some(fid) = head.key_fid {
            writer.bytes(&fid.0.to_be_bytes())?;
        }
        if let Some(definitions) = head.set_definitions {
            writer.b15(definitions, "map set definitions")?;
        }
        write_summary(&mut writer)?;
        if let Some(hint) = head.count_hint {
            writer.u30(hint, "map count hint")?;
        }
        let count_at = writer.reserve_u16()?;
        let head =
            MapHead { permission_data: head.permission_data, ..MapHead::new(head.key_type, head.container) };
        Ok(Self { writer, head, count_at, count: 0 })
    }

    /// Entries so far.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no entry yet.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends an entry. Data that has no place (of a DELETE, or in a map of NO_DATA) is not written.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`], also after 65,535 entries; [`Refused::TooLong`] for a part that its length cannot express, and
    /// with a limit of 0 for permission data where the head allows none.
    pub fn entry(&mut self, entry: &MapEntry<'_>) -> Result<(), Refused> {
        let has_data = self.head.has_data(entry.action);
        self.append(entry.action, entry.key, entry.permission_data, |writer| match has_data {
            true => writer.b16(entry.data, "map entry data"),
            false => Ok(()),
        })
    }

    /// Appends a DELETE.
    ///
    /// # Errors
    ///
    /// As [`MapEncoder::entry`].
    #[inline]
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Refused> {
        self.append(MapAction::DELETE, key, None, |_| Ok(()))
    }

    /// Appends an entry whose data `write` puts into the room that is left, returning its length: a field list, say. The
    /// length takes the three-byte form, as its room is reserved. For an entry that has no data, `write` is not called.
    ///
    /// # Errors
    ///
    /// As [`MapEncoder::entry`], and what `write` comes back with.
    #[inline]
    pub fn entry_in_place(
        &mut self,
        action: MapAction,
        key: &[u8],
        permission_data: Option<&[u8]>,
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<(), Refused> {
        let has_data = self.head.has_data(action);
        self.append(action, key, permission_data, |writer| {
            if !has_data {
                return Ok(());
            }
            writer.u8(0xFE)?;
            let place = writer.reserve_u16()?;
            let len = writer.in_place(write)?;
            match u16::try_from(len) {
                Ok(len) => writer.fill_u16(place, len),
                Err(_) => return Err(Refused::TooLong { what: "map entry data", limit: 0xFFFF }),
            }
            Ok(())
        })
    }

    /// An entry as a whole, or nothing of it.
    #[inline]
    fn append(
        &mut self,
        action: MapAction,
        key: &[u8],
        permission_data: Option<&[u8]>,
        write_data: impl FnOnce(&mut Writer<'a>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let count = self.count.checked_add(1).ok_or(Full)?;
        if permission_data.is_some() && !self.head.permission_data {
            return Err(Refused::TooLong { what: "permission data in a map without", limit: 0 });
        }
        let flags = if permission_data.is_some() { ENTRY_HAS_PERMISSION_DATA } else { 0 };
        self.writer.whole(|writer| {
            writer.u8(flags << 4 | action.0 & 0x0F)?;
            if let Some(data) = permission_data {
                writer.b15(data, "map entry permission data")?;
            }
            writer.b15(key, "map key")?;
            write_data(writer)
        })?;
        self.count = count;
        Ok(())
    }

    /// Ends the map; returns its length in bytes.
    #[inline]
    #[must_use = "the map is `len` bytes long"]
    pub fn finish(mut self) -> usize {
        self.writer.fill_u16(self.count_at, self.count);
        self.writer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DataType, Map};
    use super::*;
    use crate::Fid;

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

    /// Tries every size of buffer: what went in is there, and nothing else.
    #[test]
    fn a_full_buffer_holds_a_well_formed_prefix() {
        for in_place in [false, true] {
            let mut seen = [false; ENTRIES.len() + 1];
            for size in 0..600 {
                let mut out = vec![0xAA; size];
                let Ok(mut map) = MapEncoder::new(&mut out, &head()) else {
                    assert!(size < 16, "{size}");
                    continue;
                };
                let written = fill(&mut map, in_place);
                assert_eq!(map.len(), written);
                let len = map.finish();
                let map = Map::parse(&out[..len]).unwrap();
                assert_eq!(*map.head(), head());
                let found: Result<Vec<_>, _> = map.iter().collect();
                assert_eq!(found.unwrap(), ENTRIES[..written], "{size} bytes");
                seen[written] = true;
            }
            assert_eq!(seen, [true; ENTRIES.len() + 1]);
        }
    }

    #[test]
    fn what_has_no_place_is_refused_or_left_out() {
        let mut out = vec![0; 300_000];
        let plain = MapHead::new(DataType::UINT, DataType::NO_DATA);
        let mut map = MapEncoder::new(&mut out, &plain).unwrap();
        assert!(matches!(map.entry(&ENTRIES[0]), Err(Refused::TooLong { limit: 0, .. })));
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
        assert_eq!(long, Err(Refused::TooLong { what: "map summary", limit: SUMMARY_MAX }));
        let full = MapEncoder::with_summary(&mut out, &head, |_| Err(Refused::Full)).map(|_| ());
        assert_eq!(full, Err(Refused::Full));
    }
}

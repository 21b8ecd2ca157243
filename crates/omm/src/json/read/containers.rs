//! Containers of every type.

use std::borrow::Cow;

use super::super::fault::{JsonProblem, quote};
use super::super::names::{self, Names};
use super::super::scan::{Raw, Token};
use super::Reading;
use super::members::{EntriesMembers, EntryMembers, TypedMembers};
use super::values::Room;
use crate::rwf::{
    DataType, ElementListEncoder, FieldListEncoder, FilterAction, FilterEntry, FilterListEncoder,
    FilterListHead, MapAction, MapEncoder, MapHead, SeriesEncoder, SeriesHead, VectorAction, VectorEncoder,
    VectorHead, Writer,
};
use crate::{Fid, Refused};

/// Maximum count hint or index.
const MOST_U30: u32 = 0x3FFF_FFFF;

impl Reading<'_> {
    /// Writes a container to the start of `room`; returns its length.
    pub(super) fn container(
        &mut self,
        data_type: DataType,
        raw: Raw<'_>,
        room: &mut [u8],
        depth: usize,
    ) -> Result<usize, Refused> {
        let depth = self.deeper(depth, raw)?;
        match data_type {
            DataType::FIELD_LIST => self.fields(raw, room, depth),
            DataType::ELEMENT_LIST => self.elements(raw, room, depth),
            DataType::MAP => self.map(raw, room, depth),
            DataType::VECTOR => self.vector(raw, room, depth),
            DataType::SERIES => self.series(raw, room, depth),
            DataType::FILTER_LIST => self.filter_list(raw, room, depth),
            DataType::MSG => self.message(raw, room, depth),
            DataType::NO_DATA => Ok(0),
            _ => self.opaque(data_type, raw, room),
        }
    }

    fn opaque(&mut self, data_type: DataType, raw: Raw<'_>, room: &mut [u8]) -> Result<usize, Refused> {
        let bytes = match data_type {
            DataType::JSON => Cow::Borrowed(raw.text().as_bytes()),
            _ if raw.is_null() => Cow::Borrowed(&[][..]),
            DataType::XML => match self.text("Xml", raw)? {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            },
            DataType::ANSI_PAGE => {
                let text = self.text("AnsiPage", raw)?;
                Cow::Owned(self.latin1("AnsiPage", &text, raw)?)
            }
            _ => Cow::Owned(self.bytes("Opaque", raw)?),
        };
        let mut writer = Writer::new(room);
        writer.bytes(&bytes)?;
        Ok(writer.len())
    }

    fn fields(&mut self, raw: Raw<'_>, room: &mut [u8], depth: usize) -> Result<usize, Refused> {
        let mut list = FieldListEncoder::new(room)?;
        self.object_or_null("Fields", raw)?;
        for (name, value) in raw.members() {
            let Some(field) = self.field(&name) else {
                if self.converter.settings.catch_unknown_fields {
                    return Err(self.stop(JsonProblem::Field(quote(&name)), value));
                }
                continue;
            };
            let (fid, data_type) = (field.fid, field.data_type);
            if value.is_null() {
                list.blank(fid)?;
            } else if data_type == DataType::ARRAY {
                list.in_place(fid, |room| self.array(&name, Some(fid), value, room))?;
            } else if data_type.is_container() {
                list.in_place(fid, |room| self.container(data_type, value, room, depth))?;
            } else {
                let mut room = Room::default();
                let value = self.value(&name, data_type, Some(fid), value, &mut room)?;
                list.value(fid, &value)?;
            }
        }
        Ok(list.finish())
    }

    fn elements(&mut self, raw: Raw<'_>, room: &mut [u8], depth: usize) -> Result<usize, Refused> {
        let mut list = ElementListEncoder::new(room)?;
        self.each_element(raw, &mut list, depth)?;
        Ok(list.finish())
    }

    /// Appends elements to a list.
    pub(super) fn each_element(
        &mut self,
        raw: Raw<'_>,
        list: &mut ElementListEncoder<'_>,
        depth: usize,
    ) -> Result<(), Refused> {
        self.object_or_null("Elements", raw)?;
        for (name, value) in raw.members() {
            match value.token() {
                Token::String => {
                    let mut room = Room::default();
                    let value = self.value(&name, DataType::ASCII_STRING, None, value, &mut room)?;
                    list.value(name.as_bytes(), value)?;
                }
                Token::Primitive => list.uint(name.as_bytes(), self.integer(&name, value)?)?,
                Token::Object => self.typed(&name, value, list, depth)?,
                Token::Array | Token::Null => {
                    return Err(self.stop(JsonProblem::kind(&name, "OBJECT", value), value));
                }
            }
        }
        Ok(())
    }

    /// Appends an element that states its type.
    fn typed(
        &mut self,
        name: &str,
        raw: Raw<'_>,
        list: &mut ElementListEncoder<'_>,
        depth: usize,
    ) -> Result<(), Refused> {
        let members = TypedMembers::of(self, name, raw)?;
        let data_type = members.r#type.ok_or_else(|| self.missing("Type", raw))?;
        let data_type = DataType(self.code("Type", data_type, DataType::WORDS)?);
        // A member that is `null` is gathered as absent.
        let Some(data) = members.data else {
            if data_type != DataType::NO_DATA && raw.member("Data").is_none() {
                return Err(self.missing("Data", raw));
            }
            return list.blank(name.as_bytes(), data_type);
        };
        if data_type == DataType::ARRAY {
            list.in_place(name.as_bytes(), data_type, |room| self.array(name, None, data, room))
        } else if data_type.is_container() {
            list.in_place(name.as_bytes(), data_type, |room| self.container(data_type, data, room, depth))
        } else {
            let mut room = Room::default();
            let value = self.value(name, data_type, None, data, &mut room)?;
            match value.data_type() {
                Some(_) => list.value(name.as_bytes(), value),
                None => list.blank(name.as_bytes(), data_type),
            }
        }
    }

    fn object_or_null(&mut self, key: &str, raw: Raw<'_>) -> Result<(), Refused> {
        match raw.token() {
            Token::Object | Token::Null => Ok(()),
            _ => Err(self.stop(JsonProblem::kind(key, "OBJECT", raw), raw)),
        }
    }

    fn map(&mut self, raw: Raw<'_>, room: &mut [u8], depth: usize) -> Result<usize, Refused> {
        let members = EntriesMembers::of(self, "Map", raw)?;
        let key_type = members.key_type.ok_or_else(|| self.missing("KeyType", raw))?;
        let data_type = DataType(self.code("KeyType", key_type, DataType::WORDS)?);
        if data_type == DataType::ARRAY || data_type.is_container() {
            return Err(self.stop(JsonProblem::value("KeyType", key_type), key_type));
        }
        let all = self.entries(&members)?;
        let mut head = MapHead::new(data_type, all.container);
        head.key_fid = self.optional_integer("KeyFieldID", members.key_fid)?.map(Fid);
        head.count_hint = self.u30("CountHint", members.count_hint)?;
        head.permission_data = all.has_permission_data;
        let mut map = match all.summary {
            Some(summary) => MapEncoder::with_summary(room, &head, |room| {
                self.entry_data(all.container, Some(summary), summary.1, room, depth)
            })?,
            None => MapEncoder::new(room, &head)?,
        };
        for raw in all.items() {
            let entry = EntryMembers::of(self, "Entries", raw)?;
            let action = MapAction(self.action(entry.action, raw, MapAction::WORDS)?);
            // A member that is `null` (here a blank key) is gathered as absent.
            let key = entry.key.or_else(|| raw.member("Key")).ok_or_else(|| self.missing("Key", raw))?;
            let permission_data = self.optional_bytes("PermData", entry.perm_data)?;
            let mut key_room = Room::default();
            let key = self.value("Key", data_type, head.key_fid, key, &mut key_room)?;
            map.keyed_in_place(action, key, permission_data.as_deref(), |room| {
                self.entry_data(all.container, entry.payload, raw, room, depth)
            })?;
        }
        Ok(map.finish())
    }

    fn vector(&mut self, raw: Raw<'_>, room: &mut [u8], depth: usize) -> Result<usize, Refused> {
        let members = EntriesMembers::of(self, "Vector", raw)?;
        let all = self.entries(&members)?;
        let mut head = VectorHead::new(all.container);
        head.count_hint = self.u30("CountHint", members.count_hint)?;
        head.sorting = self.boolean("SupportSorting", members.sorting, false)?;
        head.permission_data = all.has_permission_data;
        let mut vector = match all.summary {
            Some(summary) => VectorEncoder::with_summary(room, &head, |room| {
                self.entry_data(all.container, Some(summary), summary.1, room, depth)
            })?,
            None => VectorEncoder::new(room, &head)?,
        };
        for raw in all.items() {
            let entry = EntryMembers::of(self, "Entries", raw)?;
            let action = VectorAction(self.action(entry.action, raw, VectorAction::WORDS)?);
            let index = self.u30("Index", entry.index)?.ok_or_else(|| self.missing("Index", raw))?;
            let permission_data = self.optional_bytes("PermData", entry.perm_data)?;
            vector.entry_in_place(action, index, permission_data.as_deref(), |room| {
                self.entry_data(all.container, entry.payload, raw, room, depth)
            })?;
        }
        Ok(vector.finish())
    }

    fn series(&mut self, raw: Raw<'_>, room: &mut [u8], depth: usize) -> Result<usize, Refused> {
        let members = EntriesMembers::of(self, "Series", raw)?;
        let all = self.entries(&members)?;
        let mut head = SeriesHead::new(all.container);
        head.count_hint = self.u30("CountHint", members.count_hint)?;
        let mut series = match all.summary {
            Some(summary) => SeriesEncoder::with_summary(room, &head, |room| {
                self.entry_data(all.container, Some(summary), summary.1, room, depth)
            })?,
            None => SeriesEncoder::new(room, &head)?,
        };
        for raw in all.items() {
            let entry = EntryMembers::of(self, "Entries", raw)?;
            series.entry_in_place(|room| self.entry_data(all.container, entry.payload, raw, room, depth))?;
        }
        Ok(series.finish())
    }

    fn filter_list(&mut self, raw: Raw<'_>, room: &mut [u8], depth: usize) -> Result<usize, Refused> {
        let members = EntriesMembers::of(self, "FilterList", raw)?;
        let all = self.entries(&members)?;
        let mut head = FilterListHead::new(all.container);
        head.count_hint = self.optional_integer("CountHint", members.count_hint)?;
        head.permission_data = all.has_permission_data;
        let mut list = FilterListEncoder::new(room, &head)?;
        for raw in all.items() {
            let members = EntryMembers::of(self, "Entries", raw)?;
            let id = members.id.ok_or_else(|| self.missing("ID", raw))?;
            let action = FilterAction(self.action(members.action, raw, FilterAction::WORDS)?);
            let permission_data = self.optional_bytes("PermData", members.perm_data)?;
            // Each entry has its own type; the type of the list is that of the first entry.
            let data_type = members.payload.map_or(DataType::NO_DATA, |(data_type, _)| data_type);
            let is_other = data_type != all.container && action != FilterAction::CLEAR;
            let mut entry = FilterEntry::new(action, self.integer("ID", id)?, &[]);
            entry.container = is_other.then_some(data_type);
            entry.permission_data = permission_data.as_deref();
            list.any_in_place(&entry, |room| self.entry_data(data_type, members.payload, raw, room, depth))?;
        }
        Ok(list.finish())
    }

    /// Gathers the common properties of entries, in a pass before they are written.
    fn entries<'t>(&mut self, members: &EntriesMembers<'t>) -> Result<AllEntries<'t>, Refused> {
        let mut all = AllEntries {
            container: DataType::NO_DATA,
            summary: None,
            has_permission_data: false,
            entries: members.entries,
        };
        if let Some(raw) = members.summary {
            all.summary =
                Some(EntryMembers::of(self, "Summary", raw)?.payload.unwrap_or((DataType::NO_DATA, raw)));
        }
        if let Some(raw) = members.entries
            && raw.token() != Token::Array
        {
            return Err(self.stop(JsonProblem::kind("Entries", "ARRAY", raw), raw));
        }
        let of_summary = all.summary.map(|(data_type, _)| data_type);
        let mut container = of_summary.filter(|found| *found != DataType::NO_DATA);
        for raw in all.items() {
            for (key, value) in raw.members() {
                all.has_permission_data |= key == "PermData" && !value.is_null();
                if container.is_none() {
                    container = names::number(names::CONTAINERS, &key).map(DataType);
                }
            }
        }
        all.container = container.unwrap_or(DataType::NO_DATA);
        Ok(all)
    }

    /// Writes the data of an entry or a summary; its type must be that of the other entries.
    fn entry_data(
        &mut self,
        container: DataType,
        payload: Option<(DataType, Raw<'_>)>,
        entry: Raw<'_>,
        room: &mut [u8],
        depth: usize,
    ) -> Result<usize, Refused> {
        match payload {
            Some((data_type, raw)) if data_type == container => self.container(data_type, raw, room, depth),
            None | Some((DataType::NO_DATA, _)) => Ok(0),
            Some((data_type, _)) => {
                let found = names::word(names::CONTAINERS, data_type.0).unwrap_or_default();
                Err(self.stop(JsonProblem::Key(found.to_owned()), entry))
            }
        }
    }

    /// Returns the action of an entry, in four bits.
    fn action(&mut self, action: Option<Raw<'_>>, entry: Raw<'_>, names: Names) -> Result<u8, Refused> {
        let raw = action.ok_or_else(|| self.missing("Action", entry))?;
        let action = self.code("Action", raw, names)?;
        self.at_most(0x0F, "Action", action, raw)
    }

    fn u30(&mut self, key: &str, raw: Option<Raw<'_>>) -> Result<Option<u32>, Refused> {
        let Some(raw) = raw else { return Ok(None) };
        let value = self.integer(key, raw)?;
        self.at_most(MOST_U30, key, value, raw).map(Some)
    }
}

/// Properties of the entries of a container, gathered before they are written.
struct AllEntries<'t> {
    /// Type of all entries.
    container: DataType,
    summary: Option<(DataType, Raw<'t>)>,
    has_permission_data: bool,
    entries: Option<Raw<'t>>,
}

impl<'t> AllEntries<'t> {
    fn items(&self) -> impl Iterator<Item = Raw<'t>> + use<'t> {
        self.entries.into_iter().flat_map(Raw::items)
    }
}

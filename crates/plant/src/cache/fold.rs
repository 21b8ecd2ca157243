//! Containers that are folded as bytes: lists, filter lists, and all containers in entries.
//!
//! The result is a container in wire form, with standard data and with the entry actions of an image: the actions of the updates are not stored.

use std::borrow::Cow;
use std::collections::HashMap;

use tapeline_omm::rwf::{
    DEPTH_LIMIT, DataType, Element, ElementList, ElementListEncoder, FilterAction, FilterEntry, FilterList,
    FilterListEncoder, FilterListHead, Map, MessageView, Rmtes, Series, SetDefinitions, Vector,
};
use tapeline_omm::{Dictionary, FieldList, FieldListEncoder, Full, Malformed, Refused};

use super::fields::{self, MOST_BYTES, Merging};
use super::limits::{Limits, NotApplied};
use super::rows::Entries;

pub(super) struct Folding<'t> {
    pub(super) merging: &'t mut Merging,
    pub(super) dictionary: Option<&'t Dictionary>,
    pub(super) limits: &'t Limits,
    /// Buffers for folding, one for each level, kept between messages.
    pub(super) rooms: &'t mut Vec<Vec<u8>>,
}

/// Reads a whole container and all containers in it, so that no error is found when half of it is applied.
///
/// # Errors
/// [`NotApplied::Malformed`], [`NotApplied::Undefined`], [`NotApplied::TooDeep`].
pub(super) fn check<'a>(
    data_type: DataType,
    bytes: &'a [u8],
    sets: &SetDefinitions<'a>,
    depth: usize,
) -> Result<(), NotApplied> {
    if depth >= DEPTH_LIMIT {
        return Err(NotApplied::TooDeep);
    }
    let below = depth + 1;
    match data_type {
        DataType::FIELD_LIST => {
            let list = FieldList::parse_with(bytes, sets)?;
            if list.set_data().is_some() && list.set_definition().is_none() {
                return Err(NotApplied::Undefined);
            }
            for field in list.typed() {
                if let (field, Some(data_type)) = field?
                    && data_type.base() != data_type
                {
                    fields::standard(data_type, field.data, &mut [0; 16])?;
                }
            }
        }
        DataType::ELEMENT_LIST => {
            let list = ElementList::parse_with(bytes, sets)?;
            if list.set_data().is_some() && list.set_definition().is_none() {
                return Err(NotApplied::Undefined);
            }
            for element in list {
                let element = element?;
                if element.data_type.base() != element.data_type {
                    fields::standard(element.data_type, element.data, &mut [0; 16])?;
                }
            }
        }
        // Without bytes it is not a container but a blank.
        _ if bytes.is_empty() => {}
        DataType::FILTER_LIST => {
            let list = FilterList::parse(bytes)?;
            for entry in list {
                let entry = entry?;
                let data_type = entry.container.unwrap_or(list.head().container);
                check(data_type, entry.data, &SetDefinitions::NONE, below)?;
            }
        }
        DataType::MAP => {
            let map = Map::parse(bytes)?;
            let (sets, head) = (map.sets()?, *map.head());
            let rows = map.into_iter().map(|entry| entry.map(|entry| entry.data));
            check_rows(head.container, head.summary, rows, &sets, below)?;
        }
        DataType::VECTOR => {
            let vector = Vector::parse(bytes)?;
            let (sets, head) = (vector.sets()?, *vector.head());
            let rows = vector.into_iter().map(|entry| entry.map(|entry| entry.data));
            check_rows(head.container, head.summary, rows, &sets, below)?;
        }
        DataType::SERIES => {
            let series = Series::parse(bytes)?;
            let (sets, head) = (series.sets()?, *series.head());
            check_rows(head.container, head.summary, series.into_iter(), &sets, below)?;
        }
        // Stored unchanged; its reader decodes it.
        DataType::MSG => {
            MessageView::parse(bytes)?;
        }
        _ => {}
    }
    Ok(())
}

/// Checks the summary and all rows of a map, vector or series.
fn check_rows<'a>(
    container: DataType,
    summary: Option<&'a [u8]>,
    rows: impl Iterator<Item = Result<&'a [u8], Malformed>>,
    sets: &SetDefinitions<'a>,
    depth: usize,
) -> Result<(), NotApplied> {
    if let Some(summary) = summary {
        check(container, summary, sets, depth)?;
    }
    for row in rows {
        check(container, row?, sets, depth)?;
    }
    Ok(())
}

/// An entry of a filter list while it is folded.
struct Filter<'a> {
    id: u8,
    container: DataType,
    permission: Option<&'a [u8]>,
    /// Cleared entries exist without data.
    data: Option<Vec<u8>>,
}

impl Filter<'_> {
    /// Returns an upper limit of the encoded bytes.
    fn encoded_len(&self) -> usize {
        self.permission.map_or(0, <[u8]>::len) + self.data.as_ref().map_or(0, Vec::len) + 8
    }
}

impl Folding<'_> {
    /// Appends to `out` the fold of `new` into `old`; empty bytes stand for no old container. `most` is the maximum number of bytes.
    ///
    /// # Errors
    /// [`NotApplied::Limit`], if `new` was [checked](check). `out` is then unusable.
    pub(super) fn fold<'a>(
        &mut self,
        data_type: DataType,
        old: &[u8],
        (new, sets): (&'a [u8], &SetDefinitions<'a>),
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), NotApplied> {
        let start = out.len();
        match data_type {
            DataType::FIELD_LIST => self.fold_fields(old, (new, sets), out)?,
            DataType::ELEMENT_LIST => fold_elements(old, (new, sets), most, out)?,
            // Without bytes it is blank, and changes nothing.
            DataType::FILTER_LIST | DataType::MAP | DataType::VECTOR | DataType::SERIES if new.is_empty() => {
                out.extend_from_slice(old);
            }
            DataType::FILTER_LIST => self.fold_filters(old, new, most, out)?,
            DataType::MAP | DataType::VECTOR | DataType::SERIES => {
                // Rare: containers of entries within entries. They are decoded, and encoded again.
                let mut rows = Entries::default();
                if !old.is_empty() && rows.takes(data_type, old)? {
                    rows.apply(data_type, old, self)?;
                }
                if !rows.takes(data_type, new)? {
                    rows = Entries::default();
                }
                rows.apply(data_type, new, self)?;
                rows.put(most, out)?;
            }
            _ => out.extend_from_slice(new),
        }
        if out.len() - start > most {
            return Err(NotApplied::Limit { what: "bytes of an entry", limit: most });
        }
        Ok(())
    }

    fn fold_fields<'a>(
        &mut self,
        old: &[u8],
        (new, sets): (&'a [u8], &SetDefinitions<'a>),
        out: &mut Vec<u8>,
    ) -> Result<(), NotApplied> {
        let list = FieldList::parse_with(new, sets)?;
        let old_list = FieldList::parse(old)?;
        let mut head = [0; 16];
        // The buffer is large enough, and a dictionary number from the wire can be encoded.
        let written = fields::begin(list.info().or(old_list.info()), &mut head).map(FieldListEncoder::finish);
        out.extend_from_slice(head.get(..written.unwrap_or(0)).unwrap_or_default());
        let start = out.len();
        let old_entries = fields::entries_of(old);
        self.merging.merge(old_entries, (&list, new), &[], self.dictionary, out)?;
        // At most 21,845: each takes three of 65,535 bytes.
        let count = fields::walk(out.get(start..).unwrap_or_default()).count() as u16;
        if let Some(place) = start.checked_sub(2).and_then(|at| out.get_mut(at..start)) {
            place.copy_from_slice(&count.to_be_bytes());
        }
        Ok(())
    }

    fn fold_filters(
        &mut self,
        old: &[u8],
        new: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), NotApplied> {
        let list = FilterList::parse(new)?;
        let old = if old.is_empty() { None } else { Some(FilterList::parse(old)?) };
        let head_container = old.map_or(list.head().container, |old| old.head().container);
        let mut filters: Vec<Filter<'_>> = Vec::new();
        for entry in old.iter().flat_map(FilterList::iter) {
            let FilterEntry { action, id, container, permission_data: permission, data } = entry?;
            let container = container.unwrap_or(head_container);
            let data = (action != FilterAction::CLEAR).then(|| data.to_vec());
            filters.push(Filter { id, container, permission, data });
        }
        for entry in list {
            let FilterEntry { action, id, container, permission_data: permission, data } = entry?;
            let container = container.unwrap_or(list.head().container);
            let new = (data, &SetDefinitions::NONE);
            let mut folded = Vec::new();
            match (action, filters.iter_mut().find(|filter| filter.id == id)) {
                (FilterAction::CLEAR, Some(filter)) => {
                    (filter.data, filter.permission) = (None, permission.or(filter.permission));
                }
                (FilterAction::CLEAR, None) => filters.push(Filter { id, container, permission, data: None }),
                (FilterAction::UPDATE, Some(filter)) if filter.container == container => {
                    let before = filter.data.as_deref().unwrap_or_default();
                    self.fold(container, before, new, MOST_BYTES, &mut folded)?;
                    (filter.data, filter.permission) = (Some(folded), permission.or(filter.permission));
                }
                (FilterAction::SET, filter) => {
                    self.fold(container, &[], new, MOST_BYTES, &mut folded)?;
                    let set = Filter { id, container, permission, data: Some(folded) };
                    match filter {
                        Some(filter) => *filter = set,
                        None => filters.push(set),
                    }
                }
                // An update of an unset entry "can be ignored" (`rsslFilterList.h`), and so can unknown actions.
                _ => {}
            }
        }
        write_filters(head_container, &filters, most, out)
    }
}

/// Appends a filter list with these entries to `out`.
fn write_filters(
    container: DataType,
    filters: &[Filter<'_>],
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), NotApplied> {
    let permission_data = filters.iter().any(|filter| filter.permission.is_some());
    let head = FilterListHead { container, count_hint: None, permission_data };
    let capacity = filters.iter().map(Filter::encoded_len).sum::<usize>() + 8;
    write(capacity, most, out, |to| {
        let mut encoder = FilterListEncoder::new(to, &head)?;
        for filter in filters {
            encoder.entry(&FilterEntry {
                action: if filter.data.is_some() { FilterAction::SET } else { FilterAction::CLEAR },
                id: filter.id,
                container: (filter.container != head.container).then_some(filter.container),
                permission_data: filter.permission,
                data: filter.data.as_deref().unwrap_or_default(),
            })?;
        }
        Ok(encoder.finish())
    })
}

fn fold_elements<'a>(
    old: &[u8],
    (new, sets): (&'a [u8], &SetDefinitions<'a>),
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), NotApplied> {
    let list = ElementList::parse_with(new, sets)?;
    let old_list = ElementList::parse(old)?;
    struct Named<'a> {
        name: &'a [u8],
        data_type: DataType,
        data: Cow<'a, [u8]>,
    }
    let mut elements: Vec<Named<'_>> = Vec::new();
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    let mut room = 16;
    for element in old_list.iter().chain(list.iter()) {
        let Element { name, data_type, data } = element?;
        let place = *places.entry(name).or_insert(elements.len());
        let before = elements.get(place).map_or(&[][..], |known| &known.data);
        let data = if data_type.base() != data_type {
            Cow::Owned(fields::standard(data_type, data, &mut [0; 16])?.to_vec())
        } else if data_type == DataType::RMTES_STRING
            && fields::may_be_partial(data)
            && Rmtes(data).is_partial()
        {
            let mut text = Vec::new();
            let len = fields::apply_partial(&mut text, fields::UNSAID_ROOM, before, data).len();
            text.truncate(len);
            Cow::Owned(text)
        } else {
            Cow::Borrowed(data)
        };
        room += name.len() + data.len() + 8;
        // Set data of a few bytes may become long.
        if room > most.saturating_mul(4).saturating_add(64) {
            return Err(NotApplied::Limit { what: "bytes of an entry", limit: most });
        }
        let element = Named { name, data_type: data_type.base(), data };
        match elements.get_mut(place) {
            Some(known) => *known = element,
            None => elements.push(element),
        }
    }
    write(room, most, out, |room| {
        let mut encoder = begin_elements(list.number().or(old_list.number()), room)?;
        for Named { name, data_type, data } in &elements {
            encoder.raw(name, *data_type, data)?;
        }
        Ok(encoder.finish())
    })
}

/// Begins an element list with a number, if it has one.
pub(super) fn begin_elements(number: Option<u16>, room: &mut [u8]) -> Result<ElementListEncoder<'_>, Full> {
    match number {
        Some(number) => ElementListEncoder::with_number(room, number),
        None => ElementListEncoder::new(room),
    }
}

/// Appends the output of an encoder with a buffer of this size.
pub(super) fn write(
    room: usize,
    most: usize,
    out: &mut Vec<u8>,
    encode: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
) -> Result<(), NotApplied> {
    let start = out.len();
    out.resize(start + room, 0);
    match encode(out.get_mut(start..).unwrap_or_default()) {
        Ok(len) => {
            out.truncate(start + len);
            Ok(())
        }
        // More entries than the count allows, or more bytes than a length allows.
        Err(_) => Err(NotApplied::Limit { what: "bytes of an entry", limit: most }),
    }
}

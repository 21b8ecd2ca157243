//! What a cache should hold, in the simplest words: a container is a tree, and a message another one that is laid over it.

use tapeline_omm::rwf::{
    Container, DataType, ElementListEncoder, FilterAction, FilterEntry, FilterListEncoder, FilterListHead,
    MapAction, MapEncoder, MapEntry, MapHead, Rmtes, RmtesCache, SeriesEncoder, SeriesHead, SetDefinitions,
    Value, VectorAction, VectorEncoder, VectorEntry, VectorHead, Writer,
};
use tapeline_omm::{Fid, FieldListEncoder, Malformed};

/// A container: as a message has it, or, with the actions of an image, as it is held.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// No bytes, or NO_DATA.
    Blank,
    Fields(Vec<(i16, Vec<u8>)>),
    Elements(Vec<(Vec<u8>, u8, Vec<u8>)>),
    Filters(Vec<Entry>),
    Map {
        key_type: u8,
        key_fid: Option<i16>,
        of: DataType,
        summary: Option<Box<Node>>,
        entries: Vec<Entry>,
    },
    Vector {
        sorting: bool,
        of: DataType,
        summary: Option<Box<Node>>,
        entries: Vec<Entry>,
    },
    Series {
        of: DataType,
        summary: Option<Box<Node>>,
        entries: Vec<Entry>,
    },
    Bytes(Vec<u8>),
}

/// An entry of any of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) action: u8,
    /// Of a map.
    pub(crate) key: Vec<u8>,
    /// Index of a vector, id of a filter list.
    pub(crate) index: u32,
    pub(crate) of: DataType,
    pub(crate) permission: Option<Vec<u8>>,
    pub(crate) data: Node,
}

const UPDATE: u8 = 1;
/// ADD of a map, SET of the others.
const SET: u8 = 2;
/// DELETE of a map, CLEAR of the others.
const CLEAR: u8 = 3;
const INSERT: u8 = 4;
const DELETE: u8 = 5;

/// `old` with `new` laid over it.
pub(crate) fn laid(old: &Node, new: &Node) -> Node {
    match (old, new) {
        (old, Node::Blank) => old.clone(),
        (_, Node::Bytes(bytes)) => Node::Bytes(bytes.clone()),
        (old, Node::Fields(new)) => {
            let mut fields = if let Node::Fields(old) = old { old.clone() } else { vec![] };
            for (fid, data) in new {
                fields.retain(|(known, _)| known != fid);
                fields.push((*fid, data.clone()));
            }
            fields.sort();
            Node::Fields(fields)
        }
        (old, Node::Elements(new)) => {
            let mut elements = if let Node::Elements(old) = old { old.clone() } else { vec![] };
            for (name, data_type, data) in new {
                let place = elements.iter().position(|(known, ..)| known == name);
                let before = place.map(|place| elements.remove(place).2).unwrap_or_default();
                elements.push((name.clone(), *data_type, text(*data_type, before, data)));
            }
            elements.sort();
            Node::Elements(elements)
        }
        (old, Node::Filters(new)) => {
            let mut filters = if let Node::Filters(old) = old { old.clone() } else { vec![] };
            for entry in new {
                lay_entry(&mut filters, entry, |known| known.index == entry.index, entry.action == SET);
            }
            filters.sort_by_key(|entry| entry.index);
            Node::Filters(filters)
        }
        (old, Node::Map { key_type, key_fid, of, summary, entries }) => {
            let (mut rows, mut fid, before, was_of) = match old {
                Node::Map { key_fid, summary, entries, of, .. } => {
                    (entries.clone(), *key_fid, summary.clone(), *of)
                }
                _ => (vec![], None, None, DataType::NO_DATA),
            };
            for entry in entries {
                match entry.action {
                    CLEAR => rows.retain(|row| row.key != entry.key),
                    _ => lay_entry(&mut rows, entry, |row| row.key == entry.key, entry.action == SET),
                }
            }
            rows.sort_by(|a, b| a.key.cmp(&b.key));
            fid = key_fid.or(fid);
            let of = if *of == DataType::NO_DATA { was_of } else { *of };
            let summary = laid_summary(&before, summary);
            Node::Map { key_type: *key_type, key_fid: fid, of, summary, entries: rows }
        }
        (old, Node::Vector { sorting, of, summary, entries }) => {
            let (mut rows, before, sorted, was_of) = match old {
                Node::Vector { sorting, summary, entries, of } => {
                    (entries.clone(), summary.clone(), *sorting, *of)
                }
                _ => (vec![], None, false, DataType::NO_DATA),
            };
            let sorting = *sorting || sorted;
            for entry in entries {
                let same = |row: &Entry| row.index == entry.index;
                match entry.action {
                    INSERT if sorting => {
                        rows.iter_mut().filter(|row| row.index >= entry.index).for_each(|row| row.index += 1);
                        lay_entry(&mut rows, &Entry { action: SET, ..entry.clone() }, same, true);
                    }
                    INSERT => lay_entry(&mut rows, &Entry { action: SET, ..entry.clone() }, same, true),
                    DELETE => {
                        rows.retain(|row| row.index != entry.index);
                        if sorting {
                            rows.iter_mut()
                                .filter(|row| row.index > entry.index)
                                .for_each(|row| row.index -= 1);
                        }
                    }
                    _ => lay_entry(&mut rows, entry, same, entry.action == SET),
                }
            }
            rows.sort_by_key(|entry| entry.index);
            let of = if *of == DataType::NO_DATA { was_of } else { *of };
            Node::Vector { sorting, of, summary: laid_summary(&before, summary), entries: rows }
        }
        (old, Node::Series { of, summary, entries }) => {
            let (mut rows, before) = match old {
                Node::Series { summary, entries, .. } => (entries.clone(), summary.clone()),
                _ => (vec![], None),
            };
            rows.extend(
                entries.iter().map(|entry| Entry { data: laid(&Node::Blank, &entry.data), ..entry.clone() }),
            );
            Node::Series { of: *of, summary: laid_summary(&before, summary), entries: rows }
        }
    }
}

fn laid_summary(old: &Option<Box<Node>>, new: &Option<Box<Node>>) -> Option<Box<Node>> {
    match (old, new) {
        (old, None) => old.clone(),
        (old, Some(new)) => Some(Box::new(laid(old.as_deref().unwrap_or(&Node::Blank), new))),
    }
}

/// SET, UPDATE or CLEAR of the entry that is the `same`.
fn lay_entry(rows: &mut Vec<Entry>, entry: &Entry, same: impl Fn(&Entry) -> bool, is_new: bool) {
    let place = rows.iter().position(same);
    match (entry.action, place) {
        _ if is_new => {
            place.map(|place| rows.remove(place));
            rows.push(Entry { action: SET, data: laid(&Node::Blank, &entry.data), ..entry.clone() });
        }
        (UPDATE, Some(place)) if rows[place].of == entry.of || entry.of == DataType::NO_DATA => {
            let row = &mut rows[place];
            row.data = laid(&row.data, &entry.data);
            row.permission = entry.permission.clone().or(row.permission.take());
            row.action = SET;
        }
        (CLEAR, Some(place)) => {
            let row = &mut rows[place];
            (row.action, row.data) = (CLEAR, Node::Blank);
            row.permission = entry.permission.clone().or(row.permission.take());
        }
        (CLEAR, None) => rows.push(entry.clone()),
        _ => {}
    }
}

fn text(data_type: u8, old: Vec<u8>, new: &[u8]) -> Vec<u8> {
    if DataType(data_type) != DataType::RMTES_STRING || !Rmtes(new).is_partial() {
        return new.to_vec();
    }
    let mut room = old.clone();
    room.resize(old.len().max(255), 0);
    let mut cached = RmtesCache::with_len(&mut room, old.len());
    Rmtes(new).apply(&mut cached);
    cached.bytes().to_vec()
}

/// A value of a set, as it stands outside of one.
fn plain(data_type: DataType, data: &[u8]) -> Result<Vec<u8>, Malformed> {
    if data_type.base() == data_type {
        return Ok(data.to_vec());
    }
    let mut room = [0; 16];
    let mut writer = Writer::new(&mut room);
    Value::decode(data_type, data)?.write(&mut writer).unwrap();
    let len = writer.len();
    Ok(room[..len].to_vec())
}

/// A container as a tree.
pub(crate) fn read<'a>(
    data_type: DataType,
    bytes: &'a [u8],
    sets: &SetDefinitions<'a>,
) -> Result<Node, Malformed> {
    Ok(match Container::parse(data_type, bytes, sets)? {
        Container::NoData => Node::Blank,
        Container::FieldList(list) => {
            let fields = list.typed().map(|field| {
                let (field, set_type) = field?;
                Ok((field.fid.0, plain(set_type.unwrap_or(DataType::UINT), field.data)?))
            });
            Node::Fields(fields.collect::<Result<_, Malformed>>()?)
        }
        Container::ElementList(list) => {
            let elements = list.iter().map(|element| {
                let element = element?;
                let data = plain(element.data_type, element.data)?;
                Ok((element.name.to_vec(), element.data_type.base().0, data))
            });
            Node::Elements(elements.collect::<Result<_, Malformed>>()?)
        }
        Container::FilterList(list) => {
            let entries = list.iter().map(|entry| {
                let entry = entry?;
                let of = entry.container.unwrap_or(list.head().container);
                Ok(Entry {
                    action: entry.action.0,
                    key: vec![],
                    index: entry.id.into(),
                    of,
                    permission: entry.permission_data.map(<[u8]>::to_vec),
                    data: if entry.action == FilterAction::CLEAR {
                        Node::Blank
                    } else {
                        read(of, entry.data, &SetDefinitions::NONE)?
                    },
                })
            });
            Node::Filters(entries.collect::<Result<_, Malformed>>()?)
        }
        Container::Map(map) => {
            let head = map.head();
            let sets = map.sets()?;
            let of = head.container;
            let entries = map.iter().map(|entry| {
                let entry = entry?;
                let has_data = entry.action != MapAction::DELETE;
                Ok(Entry {
                    action: entry.action.0,
                    key: entry.key.to_vec(),
                    index: 0,
                    of,
                    permission: entry.permission_data.map(<[u8]>::to_vec),
                    data: if has_data { read(of, entry.data, &sets)? } else { Node::Blank },
                })
            });
            Node::Map {
                key_type: head.key_type.0,
                key_fid: head.key_fid.map(|fid| fid.0),
                of,
                summary: read_summary(of, head.summary, &sets)?,
                entries: entries.collect::<Result<_, Malformed>>()?,
            }
        }
        Container::Vector(vector) => {
            let head = vector.head();
            let sets = vector.sets()?;
            let of = head.container;
            let entries = vector.iter().map(|entry| {
                let entry = entry?;
                let has_data = ![VectorAction::CLEAR, VectorAction::DELETE].contains(&entry.action);
                Ok(Entry {
                    action: entry.action.0,
                    key: vec![],
                    index: entry.index,
                    of,
                    permission: entry.permission_data.map(<[u8]>::to_vec),
                    data: if has_data { read(of, entry.data, &sets)? } else { Node::Blank },
                })
            });
            Node::Vector {
                sorting: head.sorting,
                of,
                summary: read_summary(of, head.summary, &sets)?,
                entries: entries.collect::<Result<_, Malformed>>()?,
            }
        }
        Container::Series(series) => {
            let of = series.head().container;
            let sets = series.sets()?;
            let entries = series.iter().map(|data| {
                let data = read(of, data?, &sets)?;
                Ok(Entry { action: SET, key: vec![], index: 0, of, permission: None, data })
            });
            Node::Series {
                of,
                summary: read_summary(of, series.head().summary, &sets)?,
                entries: entries.collect::<Result<_, Malformed>>()?,
            }
        }
        _ => Node::Bytes(bytes.to_vec()),
    })
}

fn read_summary<'a>(
    of: DataType,
    summary: Option<&'a [u8]>,
    sets: &SetDefinitions<'a>,
) -> Result<Option<Box<Node>>, Malformed> {
    summary.map(|summary| read(of, summary, sets).map(Box::new)).transpose()
}

/// A tree as bytes.
pub(crate) fn written(node: &Node) -> Vec<u8> {
    let mut out = vec![0; 60_000];
    let summary_of = |summary: &Option<Box<Node>>| summary.as_deref().map(written);
    let has_permission = |entries: &[Entry]| entries.iter().any(|entry| entry.permission.is_some());
    let len = match node {
        Node::Blank => 0,
        Node::Bytes(bytes) => {
            out[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        }
        Node::Fields(fields) => {
            let mut list = FieldListEncoder::new(&mut out).unwrap();
            fields.iter().for_each(|(fid, data)| list.raw(Fid(*fid), data).unwrap());
            list.finish()
        }
        Node::Elements(elements) => {
            let mut list = ElementListEncoder::new(&mut out).unwrap();
            elements.iter().for_each(|(name, of, data)| list.raw(name, DataType(*of), data).unwrap());
            list.finish()
        }
        Node::Filters(entries) => {
            let container = entries.first().map_or(DataType::ELEMENT_LIST, |entry| entry.of);
            let permission_data = has_permission(entries);
            let head = FilterListHead { permission_data, ..FilterListHead::new(container) };
            let mut list = FilterListEncoder::new(&mut out, &head).unwrap();
            for entry in entries {
                list.entry(&FilterEntry {
                    container: (entry.of != container).then_some(entry.of),
                    permission_data: entry.permission.as_deref(),
                    ..FilterEntry::new(FilterAction(entry.action), entry.index as u8, &written(&entry.data))
                })
                .unwrap();
            }
            list.finish()
        }
        Node::Map { key_type, key_fid, of, summary, entries } => {
            let summary = summary_of(summary);
            let head = MapHead {
                key_fid: key_fid.map(Fid),
                summary: summary.as_deref(),
                permission_data: has_permission(entries),
                ..MapHead::new(DataType(*key_type), *of)
            };
            let mut map = MapEncoder::new(&mut out, &head).unwrap();
            for entry in entries {
                map.entry(&MapEntry {
                    action: MapAction(entry.action),
                    permission_data: entry.permission.as_deref(),
                    key: &entry.key,
                    data: &written(&entry.data),
                })
                .unwrap();
            }
            map.finish()
        }
        Node::Vector { sorting, of, summary, entries } => {
            let summary = summary_of(summary);
            let head = VectorHead {
                sorting: *sorting,
                summary: summary.as_deref(),
                permission_data: has_permission(entries),
                ..VectorHead::new(*of)
            };
            let mut vector = VectorEncoder::new(&mut out, &head).unwrap();
            for entry in entries {
                vector
                    .entry(&VectorEntry {
                        action: VectorAction(entry.action),
                        index: entry.index,
                        permission_data: entry.permission.as_deref(),
                        data: &written(&entry.data),
                    })
                    .unwrap();
            }
            vector.finish()
        }
        Node::Series { of, summary, entries } => {
            let summary = summary_of(summary);
            let head = SeriesHead { summary: summary.as_deref(), ..SeriesHead::new(*of) };
            let mut series = SeriesEncoder::new(&mut out, &head).unwrap();
            entries.iter().for_each(|entry| series.entry(&written(&entry.data)).unwrap());
            series.finish()
        }
    };
    out.truncate(len);
    out
}

/// All parts of an image as one.
pub(crate) fn image_of(container: DataType, payloads: &[Vec<u8>]) -> Node {
    let mut image = Node::Blank;
    for payload in payloads {
        let part = read(container, payload, &SetDefinitions::NONE).unwrap();
        match (&mut image, part) {
            (Node::Map { entries, .. }, Node::Map { entries: more, summary: None, .. })
            | (Node::Vector { entries, .. }, Node::Vector { entries: more, summary: None, .. })
            | (Node::Series { entries, .. }, Node::Series { entries: more, summary: None, .. }) => {
                entries.extend(more);
            }
            (Node::Blank, part) => image = part,
            (_, part) => panic!("another part: {part:?}"),
        }
    }
    sort(&mut image);
    image
}

/// Puts what has no order into one.
fn sort(node: &mut Node) {
    let (entries, summary) = match node {
        Node::Fields(fields) => return fields.sort(),
        Node::Elements(elements) => return elements.sort(),
        Node::Blank | Node::Bytes(_) => return,
        Node::Filters(entries) => (entries, None),
        Node::Map { entries, summary, .. }
        | Node::Vector { entries, summary, .. }
        | Node::Series { entries, summary, .. } => (entries, summary.as_deref_mut()),
    };
    entries.sort_by(|a, b| (&a.key, a.index).cmp(&(&b.key, b.index)));
    entries.iter_mut().for_each(|entry| sort(&mut entry.data));
    summary.into_iter().for_each(sort);
}

//! Maps, vectors and series: containers whose entries are added, changed and deleted one by one.
//!
//! Each entry is a separate allocation with its key, its permission data and its data. The entries of a map are found by hash, those of a vector by
//! search in the separate [order](order) of their indexes.

mod given;
mod order;

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tapeline_omm::rwf::{
    DataType, Map, MapAction, MapHead, Series, SeriesHead, SetDefinitions, Vector, VectorAction, VectorHead,
};
use tapeline_omm::{Fid, Malformed};

use super::fields::MOST_BYTES;
use super::fold::Folding;
use super::limits::NotApplied;
use order::{Order, Position};

/// Maximum bytes of a summary: its length is a u15.
const MOST_SUMMARY: usize = 0x7FFF;
/// Maximum index of a vector: a u30.
const MOST_INDEX: u32 = 0x3FFF_FFFF;

/// The kind of container, with the common data in its head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    Map {
        key_type: DataType,
        key_fid: Option<Fid>,
    },
    Vector {
        sorting: bool,
    },
    #[default]
    Series,
}

/// The entries of a map, a vector or a series.
#[derive(Debug)]
pub(super) struct Entries {
    kind: Kind,
    /// Type of the summary and of all data; NO_DATA until a message sets it.
    container: DataType,
    summary: Option<Vec<u8>>,
    rows: Vec<Row>,
    /// The indexes of a vector, whose rows are in arbitrary order.
    order: Order,
    /// Free places in `rows` of a vector.
    free: Vec<u32>,
    /// Places in `rows` by a map's keys.
    index: HashTable<u32>,
    hasher: RandomState,
    /// Bytes of the rows' own memory.
    held: usize,
}

#[derive(Debug, Default)]
struct Row {
    /// Key, permission data, data.
    bytes: Vec<u8>,
    key: u16,
    permission: u16,
    has_permission: bool,
    /// In a vector: `true` if the entry exists, but is cleared.
    is_blank: bool,
}

impl Row {
    fn new(key: &[u8]) -> Self {
        // Lossless: keys and permission data have lengths of u15.
        Self { bytes: key.to_vec(), key: key.len() as u16, ..Self::default() }
    }

    fn key(&self) -> &[u8] {
        self.bytes.get(..self.key.into()).unwrap_or_default()
    }

    fn data_at(&self) -> usize {
        usize::from(self.key) + usize::from(self.permission)
    }

    fn permission(&self) -> Option<&[u8]> {
        let bytes = self.bytes.get(self.key.into()..self.data_at()).unwrap_or_default();
        self.has_permission.then_some(bytes)
    }

    fn data(&self) -> &[u8] {
        self.bytes.get(self.data_at()..).unwrap_or_default()
    }

    fn set(&mut self, permission: Option<&[u8]>, data: &[u8]) {
        self.set_permission(permission);
        self.bytes.truncate(self.data_at());
        let missing = data.len().saturating_sub(self.bytes.capacity() - self.bytes.len());
        if missing > 0 {
            // Reserves a little more, because a value that has grown once tends to grow again.
            self.bytes.reserve_exact(data.len() + data.len() / 8);
        }
        self.bytes.extend_from_slice(data);
        self.is_blank = false;
    }

    /// Turns the row into another entry with the same key.
    fn renew(&mut self) {
        self.bytes.truncate(self.key.into());
        (self.permission, self.has_permission) = (0, false);
    }

    fn clear(&mut self, permission: Option<&[u8]>) {
        self.set_permission(permission);
        self.bytes.truncate(self.data_at());
        self.is_blank = true;
    }

    /// Sets the permission data and drops the data after it.
    fn set_permission(&mut self, permission: Option<&[u8]>) {
        if let Some(permission) = permission
            && self.permission() != Some(permission)
        {
            self.bytes.truncate(self.key.into());
            self.bytes.extend_from_slice(permission);
            (self.permission, self.has_permission) = (permission.len() as u16, true);
        }
    }
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            kind: Kind::default(),
            container: DataType::NO_DATA,
            summary: None,
            rows: Vec::new(),
            order: Order::default(),
            free: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::default(),
            held: 0,
        }
    }
}

/// The data of all entries in a message's head.
struct Said<'a> {
    kind: Kind,
    container: DataType,
    summary: Option<&'a [u8]>,
}

impl<'a> Said<'a> {
    fn of(data_type: DataType, bytes: &'a [u8]) -> Result<Self, Malformed> {
        Ok(match data_type {
            DataType::MAP => {
                let MapHead { key_type, key_fid, container, summary, .. } = *Map::parse(bytes)?.head();
                Self { kind: Kind::Map { key_type, key_fid }, container, summary }
            }
            DataType::VECTOR => {
                let VectorHead { sorting, container, summary, .. } = *Vector::parse(bytes)?.head();
                Self { kind: Kind::Vector { sorting }, container, summary }
            }
            _ => {
                let SeriesHead { container, summary, .. } = *Series::parse(bytes)?.head();
                Self { kind: Kind::Series, container, summary }
            }
        })
    }
}

impl Entries {
    /// Returns `true` if a message has the same shape: the same kind of entries, keys and data. A container type of no data, as in a map of
    /// deletes, is not a difference.
    pub(super) fn takes(&self, data_type: DataType, bytes: &[u8]) -> Result<bool, Malformed> {
        Ok(self.mismatch(data_type, bytes)?.is_none())
    }

    /// Returns the difference of a message's shape, if there is one: the type here, and the type in the message.
    pub(super) fn mismatch(
        &self,
        data_type: DataType,
        bytes: &[u8],
    ) -> Result<Option<(DataType, DataType)>, Malformed> {
        let said = Said::of(data_type, bytes)?;
        if self.is_new() {
            return Ok(None);
        }
        if let (Kind::Map { key_type: here, .. }, Kind::Map { key_type: there, .. }) = (self.kind, said.kind)
            && here != there
        {
            return Ok(Some((here, there)));
        }
        let differs = ![self.container, said.container].contains(&DataType::NO_DATA)
            && self.container != said.container;
        Ok(differs.then_some((self.container, said.container)))
    }

    fn is_new(&self) -> bool {
        self.len() == 0 && self.summary.is_none()
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.rows.capacity() * size_of::<Row>()
            + self.order.bytes()
            + self.free.capacity() * size_of::<u32>()
            + self.index.capacity() * (size_of::<u32>() + 1)
            + self.summary.as_ref().map_or(0, Vec::capacity)
            + self.held
    }

    /// Applies a container of the same type that was [checked](super::fold::check).
    ///
    /// # Errors
    /// [`NotApplied::Limit`]; a part of it may be applied then.
    pub(super) fn apply(
        &mut self,
        data_type: DataType,
        bytes: &[u8],
        folding: &mut Folding<'_>,
    ) -> Result<(), NotApplied> {
        let said = Said::of(data_type, bytes)?;
        self.note(&said);
        match data_type {
            DataType::MAP => {
                let map = Map::parse(bytes)?;
                let sets = map.sets()?;
                self.fold_summary(said.summary, &sets, folding)?;
                for entry in map {
                    let entry = entry?;
                    let hash = self.hasher.hash_one(entry.key);
                    let place = self.place_of(hash, entry.key);
                    match (entry.action, place) {
                        (action @ (MapAction::ADD | MapAction::UPDATE), Some(place)) => {
                            if action == MapAction::ADD
                                && let Some(row) = self.rows.get_mut(place)
                            {
                                // Its deletion was missed: for example an order of a past session whose number was reused.
                                row.renew();
                            }
                            self.fold_row(place, entry.permission_data, (entry.data, &sets), folding)?;
                        }
                        (MapAction::ADD, None) => {
                            let place = self.push(Row::new(entry.key), folding)?;
                            self.note_key(hash, place);
                            self.fold_row(place, entry.permission_data, (entry.data, &sets), folding)?;
                        }
                        (MapAction::DELETE, Some(place)) => self.delete_key(hash, place),
                        // An update of an entry that was never added "can be ignored" (`rsslMap.h`).
                        _ => {}
                    }
                }
            }
            DataType::VECTOR => {
                let vector = Vector::parse(bytes)?;
                let sets = vector.sets()?;
                self.fold_summary(said.summary, &sets, folding)?;
                for entry in vector {
                    let entry = entry?;
                    let at = (entry.index, entry.action);
                    self.apply_at(at, entry.permission_data, (entry.data, &sets), folding)?;
                }
            }
            _ => {
                let series = Series::parse(bytes)?;
                let sets = series.sets()?;
                self.fold_summary(said.summary, &sets, folding)?;
                for entry in series {
                    let place = self.push(Row::default(), folding)?;
                    self.fold_row(place, None, (entry?, &sets), folding)?;
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, said: &Said<'_>) {
        self.kind = match (self.kind, said.kind) {
            (Kind::Map { key_fid: old, .. }, Kind::Map { key_type, key_fid }) => {
                Kind::Map { key_type, key_fid: key_fid.or(old) }
            }
            (Kind::Vector { sorting: old }, Kind::Vector { sorting }) => {
                Kind::Vector { sorting: sorting || old }
            }
            (_, kind) => kind,
        };
        if said.container != DataType::NO_DATA {
            self.container = said.container;
        }
    }

    fn fold_summary<'a>(
        &mut self,
        summary: Option<&'a [u8]>,
        sets: &SetDefinitions<'a>,
        folding: &mut Folding<'_>,
    ) -> Result<(), NotApplied> {
        let Some(new) = summary else { return Ok(()) };
        let mut room = folding.rooms.pop().unwrap_or_default();
        room.clear();
        let old = self.summary.as_deref().unwrap_or_default();
        let done = folding.fold(self.container, old, (new, sets), MOST_SUMMARY, &mut room);
        if done.is_ok() {
            let summary = self.summary.get_or_insert_default();
            summary.clear();
            summary.extend_from_slice(&room);
        }
        folding.rooms.push(room);
        done
    }

    /// Folds the data of a message into a row.
    fn fold_row<'a>(
        &mut self,
        place: usize,
        permission: Option<&[u8]>,
        new: (&'a [u8], &SetDefinitions<'a>),
        folding: &mut Folding<'_>,
    ) -> Result<(), NotApplied> {
        let container = self.container;
        let Some(row) = self.rows.get_mut(place) else { return Ok(()) };
        let mut room = folding.rooms.pop().unwrap_or_default();
        room.clear();
        let done = folding.fold(container, row.data(), new, MOST_BYTES, &mut room);
        if done.is_ok() {
            let before = row.bytes.capacity();
            row.set(permission, &room);
            self.held = self.held - before + row.bytes.capacity();
        }
        folding.rooms.push(room);
        done?;
        self.check_bytes(folding)
    }

    fn check_bytes(&self, folding: &Folding<'_>) -> Result<(), NotApplied> {
        let limit = folding.limits.image_bytes;
        let too_many = NotApplied::Limit { what: "bytes of an image", limit };
        if self.bytes() <= limit { Ok(()) } else { Err(too_many) }
    }

    fn push(&mut self, row: Row, folding: &Folding<'_>) -> Result<usize, NotApplied> {
        let limit = folding.limits.entries;
        if self.len() >= limit {
            return Err(NotApplied::Limit { what: "entries", limit });
        }
        self.held += row.bytes.capacity();
        let place = self.free.pop().map_or(self.rows.len(), |place| place as usize);
        match self.rows.get_mut(place) {
            Some(free) => *free = row,
            None => self.rows.push(row),
        }
        // An entry without data takes memory too.
        self.check_bytes(folding)?;
        Ok(place)
    }

    /// Inserts an entry of a vector at the position of its index.
    fn put_in(&mut self, position: Position, index: u32, folding: &Folding<'_>) -> Result<usize, NotApplied> {
        let place = self.push(Row::default(), folding)?;
        // Lossless: there are at most `Limits::entries` rows, and memory for fewer than u32::MAX.
        self.order.insert(position, index, place as u32);
        Ok(place)
    }

    /// Removes an entry of a vector.
    fn remove(&mut self, position: Position) {
        let Some(place) = self.order.place(position) else { return };
        self.order.remove(position);
        if let Some(row) = self.rows.get_mut(place) {
            self.held -= std::mem::take(row).bytes.capacity();
            self.free.push(place as u32);
        }
    }

    fn place_of(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let is_same = |place: &u32| self.rows.get(*place as usize).is_some_and(|row| row.key() == key);
        self.index.find(hash, is_same).map(|place| *place as usize)
    }

    fn note_key(&mut self, hash: u64, place: usize) {
        let (rows, hasher) = (&self.rows, &self.hasher);
        // Lossless: there are at most `Limits::entries` rows, and memory for fewer than u32::MAX.
        self.index.insert_unique(hash, place as u32, |place| {
            rows.get(*place as usize).map_or(0, |row| hasher.hash_one(row.key()))
        });
    }

    /// Removes a map's row; the last row takes its place.
    fn delete_key(&mut self, hash: u64, place: usize) {
        if let Ok(found) = self.index.find_entry(hash, |found| *found as usize == place) {
            found.remove();
        }
        let last = self.rows.len() - 1;
        if place != last
            && let Some(row) = self.rows.get(last)
        {
            let hash = self.hasher.hash_one(row.key());
            if let Some(found) = self.index.find_mut(hash, |found| *found as usize == last) {
                *found = place as u32;
            }
        }
        self.held -= self.rows.swap_remove(place).bytes.capacity();
    }

    /// Applies an entry of a vector. A vector without sorting has no INSERT and DELETE; other entries must not move there, so they are handled as
    /// SET and as removal.
    fn apply_at<'a>(
        &mut self,
        (index, action): (u32, VectorAction),
        permission: Option<&[u8]>,
        new: (&'a [u8], &SetDefinitions<'a>),
        folding: &mut Folding<'_>,
    ) -> Result<(), NotApplied> {
        let sorting = self.kind == Kind::Vector { sorting: true };
        let found = self.order.find(index);
        let place = found.ok().and_then(|position| self.order.place(position));
        match (action, found) {
            (VectorAction::UPDATE, Ok(_)) => {
                if let Some(place) = place {
                    self.fold_row(place, permission, new, folding)?;
                }
            }
            (VectorAction::INSERT, Ok(position) | Err(position)) if sorting => {
                self.shift_up(position)?;
                let place = self.put_in(position, index, folding)?;
                self.fold_row(place, permission, new, folding)?;
            }
            (VectorAction::SET | VectorAction::INSERT, Ok(position) | Err(position)) => {
                let place = match place {
                    Some(place) => {
                        if let Some(row) = self.rows.get_mut(place) {
                            row.renew();
                        }
                        place
                    }
                    None => self.put_in(position, index, folding)?,
                };
                self.fold_row(place, permission, new, folding)?;
            }
            (VectorAction::CLEAR, Ok(position) | Err(position)) => {
                let place = match place {
                    Some(place) => place,
                    None => self.put_in(position, index, folding)?,
                };
                if let Some(row) = self.rows.get_mut(place) {
                    let before = row.bytes.capacity();
                    row.clear(permission);
                    self.held = self.held - before + row.bytes.capacity();
                }
            }
            (VectorAction::DELETE, Ok(_) | Err(_)) => {
                if let Ok(position) = found {
                    self.remove(position);
                }
                // Entries above the index move down even if there was none at the index.
                if sorting && let Err(position) = self.order.find(index) {
                    self.order.shift(position, -1);
                }
            }
            // An update of an entry that was never set "can be ignored" (`rsslVector.h`).
            _ => {}
        }
        Ok(())
    }

    /// Increments the indexes from a position on.
    fn shift_up(&mut self, from: Position) -> Result<(), NotApplied> {
        if self.order.last() == Some(MOST_INDEX) && !self.order.is_end(from) {
            return Err(NotApplied::Limit { what: "indexes", limit: MOST_INDEX as usize });
        }
        self.order.shift(from, 1);
        Ok(())
    }
}

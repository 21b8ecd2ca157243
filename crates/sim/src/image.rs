//! The image of an item, derived from its messages.
//!
//! This is an independent implementation that shares no code with the plant's cache.

use std::collections::BTreeMap;

use tapeline_omm::FieldList;
use tapeline_omm::rwf::{DataType, Map, MapAction, MessageClass, MessageView, flags};

use crate::record::is_in;
use crate::trace::{fnv, mix};

/// Fields by id, as bytes.
pub(crate) type Fields = BTreeMap<i16, Vec<u8>>;

/// An image: fields, and for a map also entries.
#[derive(Debug, Default)]
pub(crate) struct Image {
    /// The fields of a field list, or of a map's summary.
    pub(crate) fields: Fields,
    pub(crate) entries: BTreeMap<Box<[u8]>, Fields>,
    /// A hash of the image: the sum of the hashes of all fields and keys, so that a change of one needs no access to the others.
    pub(crate) hash: u64,
}

impl Image {
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Applies a refresh or an update.
    ///
    /// # Errors
    /// The message cannot be read.
    pub(crate) fn fold(&mut self, message: &MessageView<'_>) -> Result<(), String> {
        if clears(message) {
            self.clear();
        }
        self.fold_data(message.container(), message.payload(), 0)
    }

    /// Applies the data of a message, restricted to a view. Views select fields; entries are always whole.
    pub(crate) fn fold_data(
        &mut self,
        container: DataType,
        payload: &[u8],
        view: usize,
    ) -> Result<(), String> {
        match container {
            DataType::FIELD_LIST => self.fold_fields(payload, view),
            DataType::MAP => self.fold_map(payload),
            _ => Ok(()),
        }
    }

    fn fold_fields(&mut self, list: &[u8], view: usize) -> Result<(), String> {
        let change = fold_list(&mut self.fields, list, view, 0)?;
        self.hash = self.hash.wrapping_add(change);
        Ok(())
    }

    fn fold_map(&mut self, payload: &[u8]) -> Result<(), String> {
        let map = Map::parse(payload).map_err(|fault| fault.to_string())?;
        if let Some(summary) = map.head().summary {
            self.fold_fields(summary, 0)?;
        }
        for entry in map {
            let entry = entry.map_err(|fault| fault.to_string())?;
            let key = fnv(entry.key);
            // An update of an absent entry, as after lost ticks, changes nothing.
            if entry.action == MapAction::UPDATE {
                if let Some(fields) = self.entries.get_mut(entry.key) {
                    self.hash = self.hash.wrapping_add(fold_list(fields, entry.data, 0, key)?);
                }
                continue;
            }
            if let Some(before) = self.entries.remove(entry.key) {
                self.hash = before.iter().fold(self.hash.wrapping_sub(key), |sum, (fid, value)| {
                    sum.wrapping_sub(hash(key, *fid, value))
                });
            }
            if entry.action == MapAction::ADD {
                let mut fields = Fields::new();
                let change = fold_list(&mut fields, entry.data, 0, key)?;
                self.hash = self.hash.wrapping_add(key).wrapping_add(change);
                self.entries.insert(entry.key.into(), fields);
            }
        }
        Ok(())
    }
}

/// Whether a message replaces the whole image.
pub(crate) fn clears(message: &MessageView<'_>) -> bool {
    message.class() == MessageClass::REFRESH && message.flags().has(flags::refresh::CLEAR_CACHE)
}

/// Applies a refresh or an update with a field list to fields.
///
/// # Errors
/// The message cannot be read.
pub(crate) fn fold(fields: &mut Fields, message: &MessageView<'_>) -> Result<(), String> {
    if clears(message) {
        fields.clear();
    }
    if message.container() == DataType::FIELD_LIST {
        fold_list(fields, message.payload(), 0, 0)?;
    }
    Ok(())
}

/// Applies a list to the fields of an entry whose key has the hash `of`. Returns the change of the sum.
fn fold_list(fields: &mut Fields, list: &[u8], view: usize, of: u64) -> Result<u64, String> {
    let mut change = 0_u64;
    let list = FieldList::parse(list).map_err(|fault| fault.to_string())?;
    for field in list {
        let field = field.map_err(|fault| fault.to_string())?;
        if is_in(view, field.fid) {
            let fid = field.fid.0;
            let value = fields.entry(fid).or_insert_with(|| {
                change = change.wrapping_add(hash(of, fid, &[]));
                Vec::new()
            });
            change = change.wrapping_sub(hash(of, fid, value)).wrapping_add(hash(of, fid, field.data));
            value.clear();
            value.extend_from_slice(field.data);
        }
    }
    Ok(change)
}

fn hash(of: u64, fid: i16, value: &[u8]) -> u64 {
    mix(mix(of, fid as u64), fnv(value))
}

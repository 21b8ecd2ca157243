//! The image of a field list: its entries as the wire has them, and where each begins.
//!
//! One block of memory: for each slot of the [`Shape`] two bytes that say where its entry begins, then the entries. An
//! update looks a field up in the shape, whose table all items of the kind share, and writes the value over the old one;
//! one of another length moves what is behind it. An image goes out by copying.

use std::hint::black_box;

use tapeline_omm::rwf::Info;
use tapeline_omm::{Dictionary, Fid, FieldList};

use super::fields::{self, MOST_BYTES, Merging, stored, walk};
use super::limits::Refused;
use super::shape::{Found, Shape, ShapeId, Shapes};

/// Bytes that the processor fetches at a time.
const LINE: usize = 64;
/// Bytes of a slot's entry in the index.
const INDEX: usize = 2;
/// Fields of an update that is applied in place; thirteen are usual. With more, which nothing but a refresh has, all is merged anew: moving
/// what is behind for each of them would cost the square of their number.
const MOST_IN_PLACE: usize = 32;

/// A field of an update, looked up.
#[derive(Clone, Copy, Default)]
struct Change {
    found: Found,
    /// Where in the list's bytes the value is.
    at: u16,
    len: u16,
    /// Whether it is a partial update of a text.
    is_partial: bool,
}

/// The image of a field list.
#[derive(Debug)]
pub(super) struct Record {
    /// The index, then the entries.
    block: Vec<u8>,
    shape: ShapeId,
    slots: u16,
    /// What the last list that said so was written with.
    info: Option<Info>,
}

/// What applying needs, kept so that it takes no memory each time.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) merging: Merging,
    entries: Vec<u8>,
    rippled: Vec<u8>,
    fids: Vec<Fid>,
    text: Vec<u8>,
}

/// The dictionary of an item, and its number in the cache.
pub(super) type Words<'d> = Option<(u16, &'d Dictionary)>;

impl Record {
    /// No field yet.
    pub(super) fn new(shapes: &mut Shapes, words: Words<'_>) -> Self {
        let shape =
            shapes.take(&[], words.map(|(number, _)| number), words.map(|(_, dictionary)| dictionary));
        Self { block: Vec::new(), shape, slots: 0, info: None }
    }

    /// Gives its shape back.
    pub(super) fn release(self, shapes: &mut Shapes) {
        shapes.release(self.shape);
    }

    /// The entries as the wire has them.
    #[inline]
    pub(super) fn entries(&self) -> &[u8] {
        self.block.get(self.index_len()..).unwrap_or_default()
    }

    /// Number of fields.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.slots as usize
    }

    /// What the list was written with.
    pub(super) const fn info(&self) -> Option<Info> {
        self.info
    }

    /// Bytes of memory.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.block.capacity()
    }

    /// Has the processor fetch it: one byte of each line.
    #[inline]
    pub(super) fn expect(&self) {
        black_box(self.block.iter().step_by(LINE).fold(0, |sum: u8, byte| sum ^ byte));
    }

    #[inline]
    const fn index_len(&self) -> usize {
        self.slots as usize * INDEX
    }

    /// Where an entry begins, from the start of the block.
    #[inline]
    fn entry_at(&self, slot: usize) -> Option<usize> {
        let place = self.block.get(slot * INDEX..)?.first_chunk()?;
        Some(self.index_len() + usize::from(u16::from_le_bytes(*place)))
    }

    /// Merges a list of a refresh or an update. Costs a few nanoseconds a field where the lengths are as they were (bench
    /// `cache`), and takes no memory there.
    ///
    /// # Errors
    ///
    /// A fault in the list, or more than 65,535 bytes: the record is as it was.
    pub(super) fn apply(
        &mut self,
        (list, bytes): (&FieldList<'_>, &[u8]),
        ripples: bool,
        words: Words<'_>,
        shapes: &mut Shapes,
        scratch: &mut Scratch,
    ) -> Result<(), Refused> {
        let dictionary = words.map(|(_, dictionary)| dictionary);
        scratch.rippled.clear();
        if let Some(shape) = shapes.shape(self.shape) {
            // First everything is read and looked up, so that a fault changes nothing.
            let mut changes = [Change::default(); MOST_IN_PLACE];
            let (mut count, mut is_known, mut is_special, mut texts) = (0, true, false, 0);
            for field in list.iter() {
                let field = field?;
                let Some(found) = shape.find(field.fid) else {
                    is_known = false;
                    continue;
                };
                let mut is_partial = false;
                if found.is_special() {
                    is_special = true;
                    if let Some(room) = fields::partial_room(dictionary, field.fid, &[], field.data) {
                        (is_partial, texts) = (true, texts + room);
                    }
                }
                if let Some(change) = changes.get_mut(count) {
                    // A value lies in the bytes of its list, so its place is the distance. What a u16 would cut goes the
                    // long way below.
                    let at = field.data.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
                    *change = Change { found, at: at as u16, len: field.data.len() as u16, is_partial };
                }
                count += 1;
            }
            if is_special && ripples && shape.ripples() {
                self.ripple(list, shape, scratch);
            }
            // No field grows by more than its new entry has, or its room if the value is a partial update. Where that may be
            // too much, merging finds out.
            let most = self.entries().len() + bytes.len() + scratch.rippled.len() + texts;
            if is_known && most <= MOST_BYTES && list.set_data().is_none() {
                // Of more than there is room for, none is applied here.
                if let Some(changes) = changes.get(..count) {
                    self.note_info(list);
                    self.apply_in_place(changes, bytes, shape, dictionary, scratch);
                    return Ok(());
                }
            }
        }
        self.merge((list, bytes), words, shapes, scratch)
    }

    fn note_info(&mut self, list: &FieldList<'_>) {
        if let Some(info) = list.info() {
            self.info = Some(info);
        }
    }

    #[inline]
    fn apply_in_place(
        &mut self,
        changes: &[Change],
        bytes: &[u8],
        shape: &Shape,
        dictionary: Option<&Dictionary>,
        scratch: &mut Scratch,
    ) {
        for entry in walk(&scratch.rippled) {
            if let Some(found) = shape.find(entry.fid) {
                self.set(found.slot(), entry.data);
            }
        }
        for change in changes {
            let (at, len) = (usize::from(change.at), usize::from(change.len));
            let (index, entries) = self.block.split_at_mut(usize::from(self.slots) * INDEX);
            // The length is in the third byte if it is below 0xFE, so an equal one says that nothing moves.
            if let Some(place) = index.as_chunks::<INDEX>().0.get(change.found.slot())
                && let Some([_, _, old_len, value @ ..]) =
                    entries.get_mut(usize::from(u16::from_le_bytes(*place))..)
                && usize::from(*old_len) == len
                && len < 0xFE
                && !change.is_partial
                && let Some(data) = bytes.get(at..)
                && put(value, data, len)
            {
                continue;
            }
            let data = bytes.get(at..).and_then(|data| data.get(..len)).unwrap_or_default();
            if change.is_partial {
                self.set_text(change.found, data, shape, dictionary, &mut scratch.text);
            } else {
                self.set(change.found.slot(), data);
            }
        }
    }

    /// A partial update of a text.
    #[cold]
    fn set_text(
        &mut self,
        found: Found,
        data: &[u8],
        shape: &Shape,
        dictionary: Option<&Dictionary>,
        room: &mut Vec<u8>,
    ) {
        let old = self.value(found.slot());
        let fid = shape.fid(found);
        if let Some(most) = fid.and_then(|fid| fields::partial_room(dictionary, fid, old, data)) {
            let len = fields::apply_partial(room, most, old, data).len();
            self.set(found.slot(), room.get(..len).unwrap_or_default());
        }
    }

    /// The value in a slot.
    fn value(&self, slot: usize) -> &[u8] {
        self.entry_at(slot).and_then(|at| stored(&self.block, at)).map_or(&[], |entry| entry.data)
    }

    /// Puts a value in the place of another.
    fn set(&mut self, slot: usize, data: &[u8]) {
        if let Some(at) = self.entry_at(slot) {
            self.move_and_set(slot, at, data);
        }
    }

    /// Puts a value of another length in place, and what is behind it where it then belongs.
    #[inline(never)]
    fn move_and_set(&mut self, slot: usize, at: usize, data: &[u8]) {
        let Some(old) = stored(&self.block, at) else { return };
        let old_end = at + old.bytes.len();
        let (head, head_len) = fields::value_head(data.len());
        let data_at = at + 2 + head_len;
        let new_end = data_at + data.len();
        let len = self.block.len();
        if new_end > old_end {
            self.make_room(new_end - old_end);
            self.block.resize(len + (new_end - old_end), 0);
        }
        self.block.copy_within(old_end..len, new_end);
        if new_end < old_end {
            self.block.truncate(len - (old_end - new_end));
        }
        if let Some(place) = self.block.get_mut(at + 2..data_at) {
            place.copy_from_slice(head.get(..head_len).unwrap_or_default());
        }
        if let Some(place) = self.block.get_mut(data_at..new_end) {
            place.copy_from_slice(data);
        }
        // The entries behind moved all by as much.
        let moved = (new_end as u16).wrapping_sub(old_end as u16);
        let behind = (slot + 1) * INDEX..self.index_len();
        for place in self.block.get_mut(behind).unwrap_or_default().as_chunks_mut::<INDEX>().0 {
            *place = u16::from_le_bytes(*place).wrapping_add(moved).to_le_bytes();
        }
    }

    /// Room for so many bytes more, and an eighth on top: a record seldom grows, and a hundred thousand stay small.
    fn make_room(&mut self, more: usize) {
        if self.block.capacity() - self.block.len() < more {
            self.block.reserve_exact(more + self.block.len() / 8);
        }
    }

    /// Notes what the fields of a list ripple: to each field of their chains the old value of the one before, up to a
    /// field that the list has itself. Fields that the image does not have end a chain too.
    #[cold]
    fn ripple(&self, list: &FieldList<'_>, shape: &Shape, scratch: &mut Scratch) {
        scratch.merging.begin();
        for field in list.iter().flatten() {
            scratch.merging.mark(field.fid);
        }
        for field in list.iter().flatten() {
            let Some(first) = shape.find(field.fid) else { continue };
            let mut from = first.slot();
            for (to, fid) in shape.chain(from) {
                // What is marked has its value already: from the list, or from an earlier field that ripples there.
                if !scratch.merging.mark(fid) {
                    break;
                }
                fields::push(&mut scratch.rippled, fid, self.value(from));
                from = to;
            }
        }
    }

    /// The long way: writes all entries anew, and finds the shape that they have now.
    fn merge(
        &mut self,
        list: (&FieldList<'_>, &[u8]),
        words: Words<'_>,
        shapes: &mut Shapes,
        scratch: &mut Scratch,
    ) -> Result<(), Refused> {
        let dictionary = words.map(|(_, dictionary)| dictionary);
        scratch.entries.clear();
        scratch.merging.merge(self.entries(), list, &scratch.rippled, dictionary, &mut scratch.entries)?;
        scratch.fids.clear();
        scratch.fids.extend(walk(&scratch.entries).map(|entry| entry.fid));
        let shape = shapes.take(&scratch.fids, words.map(|(number, _)| number), dictionary);
        shapes.release(std::mem::replace(&mut self.shape, shape));
        self.note_info(list.0);
        // At most 21,845: each takes three bytes of 65,535.
        self.slots = scratch.fids.len() as u16;
        let len = self.index_len() + scratch.entries.len();
        self.block.clear();
        if self.block.capacity() < len {
            self.block.reserve_exact(len);
        }
        for entry in walk(&scratch.entries) {
            self.block.extend_from_slice(&(entry.at as u16).to_le_bytes());
        }
        self.block.extend_from_slice(&scratch.entries);
        Ok(())
    }
}

/// Puts the first `len` bytes of `data` in place of those of `value`. Those of eight at most, which nearly all are, go without
/// a call, and without a branch that depends on how many they are: where eight are readable on both sides.
#[inline]
fn put(value: &mut [u8], data: &[u8], len: usize) -> bool {
    if let (Some(old), Some(new)) = (value.first_chunk_mut::<8>(), data.first_chunk::<8>())
        && len <= 8
    {
        // In this order the first byte is the lowest; as two shifts, since one by 64 there is not.
        let kept = !0_u64 << (len * 4) << (len * 4);
        *old = (u64::from_le_bytes(*old) & kept | u64::from_le_bytes(*new) & !kept).to_le_bytes();
        return true;
    }
    let (Some(old), Some(new)) = (value.get_mut(..len), data.get(..len)) else { return false };
    old.copy_from_slice(new);
    true
}

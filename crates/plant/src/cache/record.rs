//! The image of a field list: its entries as the wire has them, and where each begins.
//!
//! One block of memory: for each slot of the [`Shape`] two bytes that say where its entry begins, two more for where the last one
//! ends, then the entries. An update looks a field up in the shape, whose table all items of the kind share, and writes the value
//! over the old one. A shorter one leaves a gap behind it, into which a longer one can grow again; one for which there is no room
//! moves what is behind it, once: lengths of prices and sizes go up and down all day. An image goes out by copying what is between
//! the gaps.

use std::hint::black_box;

use tapeline_omm::rwf::Info;
use tapeline_omm::{Dictionary, Fid, FieldList, Refused as NoRoom};

use super::fields::{self, MOST_BYTES, MOST_SHORT, Merging, Stored, stored, walk};
use super::limits::Refused;
use super::shape::{Found, Shape, ShapeId, Shapes};

/// Bytes that the processor fetches at a time.
const LINE: usize = 64;
/// Bytes of a slot's entry in the index.
const INDEX: usize = 2;
/// Bytes in front of a short value: the field's id, the length.
const SHORT_HEAD: usize = 3;
/// Fields of an update that is applied in place; thirteen are usual. With more, which nothing but a refresh has, all is merged anew: moving
/// what is behind for each of them would cost the square of their number.
const MOST_IN_PLACE: usize = 32;

/// The first byte of a list that has standard data and nothing else: nearly every update's (RWF chapter 4).
const STANDARD_DATA: u8 = 8;

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
    /// Some entry is shorter than its place.
    has_gaps: bool,
    /// What the last list that said so was written with.
    info: Option<Info>,
}

/// What applying needs, kept so that it takes no memory each time.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) merging: Merging,
    /// Of the record that is merged, without gaps.
    old: Vec<u8>,
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
        Self { block: Vec::new(), shape, slots: 0, has_gaps: false, info: None }
    }

    /// Gives its shape back.
    pub(super) fn release(self, shapes: &mut Shapes) {
        shapes.release(self.shape);
    }

    /// The entries with the gaps between them.
    #[inline]
    fn places(&self) -> &[u8] {
        self.block.get(self.index_len()..).unwrap_or_default()
    }

    /// The entries in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Stored<'_>> {
        (0..self.len()).map_while(|slot| stored(self.places(), self.place(slot)?.0))
    }

    /// Writes the entries to the front of `room` as the wire has them, one behind the other: their length.
    ///
    /// # Errors
    ///
    /// There is no room.
    pub(super) fn write(&self, room: &mut [u8]) -> Result<usize, NoRoom> {
        let places = self.places();
        let (mut from, mut len) = (0, 0);
        let mut copy = |from: usize, to: usize| {
            let piece = places.get(from..to).unwrap_or_default();
            room.get_mut(len..len + piece.len()).ok_or(NoRoom::Full)?.copy_from_slice(piece);
            len += piece.len();
            Ok::<(), NoRoom>(())
        };
        if self.has_gaps {
            for slot in 0..self.len() {
                let Some((at, end)) = self.place(slot) else { break };
                let used = stored(places, at).map_or(end, |entry| at + entry.bytes.len());
                if used < end {
                    copy(from, used)?;
                    from = end;
                }
            }
        }
        copy(from, places.len())?;
        Ok(len)
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
        (self.slots as usize + 1) * INDEX
    }

    /// Where the place of an entry begins and ends.
    #[inline]
    fn place(&self, slot: usize) -> Option<(usize, usize)> {
        let [at, end, ..] = self.block.as_chunks::<INDEX>().0.get(slot..)? else { return None };
        Some((usize::from(u16::from_le_bytes(*at)), usize::from(u16::from_le_bytes(*end))))
    }

    /// Merges a list of a refresh or an update that is not [just another value of each field](Self::overwrite).
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
            let most = self.places().len() + bytes.len() + scratch.rippled.len() + texts;
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

    /// Applies what nearly every update is: standard data alone, short values of fields that the image has, each with enough room in
    /// its place, none of which ripples or changes a part of a text. `false`: it is something else, or has a fault; where it has none,
    /// values in front of what is something else may be in place already, which does no harm: they come again with all the others.
    /// Costs little more than decoding the values (bench `cache`).
    #[inline(never)]
    pub(super) fn overwrite(&mut self, bytes: &[u8], ripples: bool, shapes: &Shapes) -> bool {
        let [STANDARD_DATA, high, low, entries @ ..] = bytes else { return false };
        let count = u16::from_be_bytes([*high, *low]);
        // First whether all of it can be read: a fault changes nothing.
        let (true, Some(shape)) = (are_short(entries, count), shapes.shape(self.shape)) else { return false };
        let index_len = self.index_len();
        let Self { block, has_gaps, .. } = self;
        let mut next = bytes.len() - entries.len();
        for _ in 0..count {
            let entry = bytes.get(next..).and_then(|entry| entry.first_chunk());
            let Some([high, low, len]) = entry else { return false };
            let (at, len) = (next + SHORT_HEAD, usize::from(*len));
            next = at + len;
            let Some(found) = shape.find(Fid(i16::from_be_bytes([*high, *low]))) else { return false };
            let place = block.get(found.slot() * INDEX..).and_then(|place| place.first_chunk());
            let Some([begin, begin_high, end, end_high]) = place else { return false };
            let begin = index_len + usize::from(u16::from_le_bytes([*begin, *begin_high]));
            let end = index_len + usize::from(u16::from_le_bytes([*end, *end_high]));
            let new_end = begin + SHORT_HEAD + len;
            if new_end > end
                || found.is_special()
                    && !shape.takes_as_it_is(found, bytes.get(at..next).unwrap_or_default(), ripples)
            {
                return false;
            }
            if let Some(old_len) = block.get_mut(begin + 2) {
                *old_len = len as u8;
            }
            put((block, new_end), (bytes, next), len);
            *has_gaps |= new_end < end;
        }
        true
    }

    fn note_info(&mut self, list: &FieldList<'_>) {
        if let Some(info) = list.info() {
            self.info = Some(info);
        }
    }

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
            let data = bytes.get(usize::from(change.at)..).unwrap_or_default();
            let data = data.get(..usize::from(change.len)).unwrap_or_default();
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
        let entry = self.place(slot).and_then(|(at, _)| stored(self.places(), at));
        entry.map_or(&[], |entry| entry.data)
    }

    /// Puts a value in the place of another, and moves what is behind it where it is longer than its place.
    fn set(&mut self, slot: usize, data: &[u8]) {
        let Some((at, end)) = self.place(slot) else { return };
        let index_len = self.index_len();
        let (head, head_len) = fields::value_head(data.len());
        let data_at = at + 2 + head_len;
        let new_end = data_at + data.len();
        if new_end > end {
            let more = new_end - end;
            let len = self.block.len();
            self.make_room(more);
            self.block.resize(len + more, 0);
            self.block.copy_within(index_len + end..len, index_len + new_end);
            // What is behind moved all by as much.
            let behind = (slot + 1) * INDEX..index_len;
            for place in self.block.get_mut(behind).unwrap_or_default().as_chunks_mut::<INDEX>().0 {
                // Cannot cut: who calls this has seen to it that all of it stays below 65,536.
                *place = u16::from_le_bytes(*place).wrapping_add(more as u16).to_le_bytes();
            }
        }
        self.has_gaps |= new_end < end;
        if let Some(place) = self.block.get_mut(index_len + at + 2..index_len + data_at) {
            place.copy_from_slice(head.get(..head_len).unwrap_or_default());
        }
        if let Some(place) = self.block.get_mut(index_len + data_at..index_len + new_end) {
            place.copy_from_slice(data);
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
        scratch.old.resize(self.places().len(), 0);
        let len = self.write(&mut scratch.old).unwrap_or_default();
        scratch.old.truncate(len);
        scratch.entries.clear();
        scratch.merging.merge(&scratch.old, list, &scratch.rippled, dictionary, &mut scratch.entries)?;
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
        // At most 65,535.
        self.block.extend_from_slice(&(scratch.entries.len() as u16).to_le_bytes());
        self.block.extend_from_slice(&scratch.entries);
        self.has_gaps = false;
        Ok(())
    }
}

/// Whether so many entries are there, none with a long value.
#[inline]
fn are_short(mut entries: &[u8], count: u16) -> bool {
    for _ in 0..count {
        let [_, _, len, rest @ ..] = entries else { return false };
        let (true, Some(rest)) = (usize::from(*len) <= MOST_SHORT, rest.get(usize::from(*len)..)) else {
            return false;
        };
        entries = rest;
    }
    true
}

/// The last so many bytes of eight, the first of which is the lowest.
const LAST: [u64; 9] = {
    let mut last = [!0; 9];
    let mut len = 0;
    while len < 8 {
        last[len] = !(!0 >> (8 * len));
        len += 1;
    }
    last
};

/// Puts the `len` bytes that end there in `from` in place of those that end there in `to`. Those of eight at most, which nearly all
/// are, go without a call, and without a branch that depends on how many they are: there are always as many in front of their end.
#[inline]
fn put((to, to_end): (&mut [u8], usize), (from, from_end): (&[u8], usize), len: usize) {
    let (Some(to), Some(from)) = (to.get_mut(..to_end), from.get(..from_end)) else { return };
    if let (Some(old), Some(new), Some(last)) =
        (to.last_chunk_mut::<8>(), from.last_chunk::<8>(), LAST.get(len))
    {
        *old = (u64::from_le_bytes(*old) & !last | u64::from_le_bytes(*new) & last).to_le_bytes();
        return;
    }
    let (old_at, new_at) = (to_end.saturating_sub(len), from_end.saturating_sub(len));
    if let (Some(old), Some(new)) = (to.get_mut(old_at..), from.get(new_at..)) {
        old.copy_from_slice(new);
    }
}

//! The image of a field list: its entries in wire form, with an index of their offsets.
//!
//! One block of memory contains two bytes for each slot of the [`Shape`] with the offset of its entry, two more for the end of the last entry, then
//! the entries. An update looks a field up in the shape, whose table is shared by all items of the kind, and overwrites the value. A shorter value
//! leaves a gap after it, into which a longer one can grow again. A longer value without such a gap moves the entries after it, once, because
//! lengths of prices and sizes vary during the day. An image is encoded by copying the bytes between the gaps.

use tapeline_feed::prefetch_lines;
use tapeline_omm::rwf::Info;
use tapeline_omm::{Dictionary, Fid, FieldList, Refused as NoRoom};

use super::fields::{
    self, MOST_BYTES, MOST_SHORT, Merging, SHORT_HEAD, Stored, may_be_partial, stored, walk,
};
use super::limits::NotApplied;
use super::shape::{Found, GAPS, Put, Shape, ShapeId, Shapes};

/// Bytes of a slot in the index.
const INDEX: usize = 2;
/// Bytes before the entries of a list with only standard data: the flags, the count.
const LIST_HEAD: u32 = 3;
/// Size of a chunk that is copied at once.
const CHUNK: usize = 64;
/// Maximum number of fields of an update that is applied in place; thirteen are usual. More fields, which occur only in a refresh, are merged:
/// moving the entries after each field would have quadratic cost.
const MOST_IN_PLACE: usize = 32;

/// The first byte of a list with only standard data: that of nearly every update (RWF chapter 4).
const STANDARD_DATA: u8 = 8;

/// A field of an update after its lookup.
#[derive(Clone, Copy, Default)]
struct Change {
    found: Found,
    /// Offset of the value in the list's bytes.
    at: u16,
    len: u16,
    /// `true` for a partial update of a text.
    is_partial: bool,
}

/// The image of a field list.
#[derive(Debug)]
pub(super) struct Record {
    /// The index, then the places of the entries, then spare capacity.
    block: Box<[u8]>,
    /// Entries that may be shorter than their places: bit `n` stands for the slots `n`, `n + 64`, `n + 128` and so on.
    gaps: u64,
    shape: ShapeId,
    slots: u16,
    /// The info of the last list that contained one.
    pub(super) info: Option<Info>,
}

/// The working memory for applying, reused to avoid allocation.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) merging: Merging,
    /// The entries of the record in a merge, without gaps.
    old: Vec<u8>,
    entries: Vec<u8>,
    rippled: Vec<u8>,
    fids: Vec<Fid>,
    text: Vec<u8>,
}

/// The dictionary of an item, and its number in the cache.
pub(super) type Words<'d> = Option<(u16, &'d Dictionary)>;

impl Record {
    /// Creates a record without fields.
    pub(super) fn new(shapes: &mut Shapes, words: Words<'_>) -> Self {
        let shape =
            shapes.take(&[], words.map(|(number, _)| number), words.map(|(_, dictionary)| dictionary));
        Self { block: Box::default(), gaps: 0, shape, slots: 0, info: None }
    }

    /// Creates the record of a list whose fields, in this order, already are a shape: of nearly every image but the first one of its kind. Returns
    /// `None` for any other list, a long value, and a text that may be partial.
    pub(super) fn of_known_shape(
        (list, bytes): (&FieldList<'_>, &[u8]),
        words: Words<'_>,
        shapes: &mut Shapes,
        scratch: &mut Scratch,
    ) -> Option<Self> {
        let slots = u16::try_from(list.len()).ok().filter(|slots| *slots > 0 && list.set_data().is_none())?;
        let entries = fields::entries_of(bytes);
        let index_len = (usize::from(slots) + 1) * INDEX;
        if entries.len() > MOST_BYTES {
            return None;
        }
        scratch.fids.resize(slots.into(), Fid(0));
        let mut block = vec![0; index_len + entries.len()].into_boxed_slice();
        let (index, places) = block.split_at_mut_checked(index_len)?;
        let ([ends @ .., end], _) = index.as_chunks_mut::<INDEX>() else { return None };
        let mut at = 0;
        for (begin, fid) in ends.iter_mut().zip(&mut scratch.fids) {
            let [high, low, len] = chunk(entries, at)?;
            if usize::from(*len) > MOST_SHORT {
                return None;
            }
            *begin = (at as u16).to_le_bytes();
            *fid = Fid(i16::from_be_bytes([*high, *low]));
            at += u32::from(SHORT_HEAD) + u32::from(*len);
        }
        // The whole list: at most 65,535 bytes.
        if at as usize != entries.len() {
            return None;
        }
        *end = (at as u16).to_le_bytes();
        let (shape, texts) = shapes.find(&scratch.fids, words.map(|(number, _)| number))?;
        for slot in texts {
            let (begin, end) = place(index, usize::from(*slot))?;
            if may_be_partial(entries.get(usize::from(begin)..usize::from(end))?) {
                return None;
            }
        }
        places.copy_from_slice(entries);
        Some(Self { block, gaps: 0, shape: shapes.share(shape), slots, info: list.info() })
    }

    pub(super) fn release(self, shapes: &mut Shapes) {
        shapes.release(self.shape);
    }

    /// Returns the entries with the gaps between them, and the spare capacity.
    #[inline]
    fn places(&self) -> &[u8] {
        self.block.get(self.index_len()..).unwrap_or_default()
    }

    /// Returns the end of the last place.
    #[inline]
    fn end(&self) -> usize {
        let end = chunk(&self.block, (self.len() * INDEX) as u32);
        end.map_or(0, |end| usize::from(u16::from_le_bytes(*end)))
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Stored<'_>> {
        (0..self.len()).map_while(|slot| stored(self.places(), self.place(slot)?.0))
    }

    /// Writes the entries to the front of `room` in wire form, without gaps; returns their length. May overwrite the bytes of `room` after them.
    ///
    /// # Errors
    /// `room` is too short.
    pub(super) fn write(&self, room: &mut [u8]) -> Result<usize, NoRoom> {
        let (index, places) = self.block.split_at_checked(self.index_len()).unwrap_or_default();
        let (mut from, mut len) = (0, 0);
        if self.gaps != 0 {
            for first in (0..self.len()).step_by(GAPS) {
                let mut gaps = self.gaps;
                while gaps != 0 {
                    let slot = first + gaps.trailing_zeros() as usize;
                    gaps &= gaps - 1;
                    // The last numbers with a bit may not be slots.
                    let Some((at, end)) = place(index, slot) else { break };
                    let (at, end) = (usize::from(at), usize::from(end));
                    let used = at + entry_len(places, at);
                    if used < end {
                        copy_piece(places, (from, used), room, &mut len)?;
                        from = end;
                    }
                }
            }
        }
        copy_piece(places, (from, self.end()), room, &mut len)?;
        Ok(len)
    }

    /// Returns the number of fields.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.slots as usize
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.block.len()
    }

    /// Prefetches the record.
    #[inline]
    pub(super) fn expect(&self) {
        prefetch_lines(&*self.block);
    }

    #[inline]
    const fn index_len(&self) -> usize {
        (self.slots as usize + 1) * INDEX
    }

    /// Returns start and end of an entry's place.
    #[inline]
    fn place(&self, slot: usize) -> Option<(usize, usize)> {
        let (at, end) = place(self.block.get(..self.index_len())?, slot)?;
        Some((usize::from(at), usize::from(end)))
    }

    /// Merges a list of a refresh or an update that is not [just another value of each field](Self::overwrite).
    ///
    /// # Errors
    /// An error in the list, or more than 65,535 bytes: the record is unchanged.
    pub(super) fn apply(
        &mut self,
        (list, bytes): (&FieldList<'_>, &[u8]),
        ripples: bool,
        words: Words<'_>,
        shapes: &mut Shapes,
        scratch: &mut Scratch,
    ) -> Result<(), NotApplied> {
        let dictionary = words.map(|(_, dictionary)| dictionary);
        scratch.rippled.clear();
        if let Some(shape) = shapes.shape(self.shape) {
            // Everything is read and looked up first, so that an error changes nothing.
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
                    // A value lies in the bytes of its list, so its offset is the distance. An offset beyond a u16 takes the slow path below.
                    let at = field.data.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
                    *change = Change { found, at: at as u16, len: field.data.len() as u16, is_partial };
                }
                count += 1;
            }
            if is_special && ripples && shape.ripples() {
                self.ripple(list, shape, scratch);
            }
            // No field grows by more than its new entry, or its capacity for a partial update. If that bound is too large, the merge decides.
            let most = self.end() + bytes.len() + scratch.rippled.len() + texts;
            if is_known && most <= MOST_BYTES && list.set_data().is_none() {
                // An update with more fields is not applied here.
                if let Some(changes) = changes.get(..count) {
                    self.note_info(list);
                    self.apply_in_place(changes, bytes, shape, dictionary, scratch);
                    return Ok(());
                }
            }
        }
        self.merge((list, bytes), words, shapes, scratch)
    }

    /// Applies a typical update: only standard data, only short values of existing fields, each of which fits in its place and neither ripples nor
    /// changes a part of a text. Returns `false` for any other or malformed list, without a change. Costs some 1.3 times the decoding of the
    /// values (bench `cache`).
    #[inline]
    pub(super) fn overwrite(&mut self, bytes: &[u8], ripples: bool, shapes: &mut Shapes) -> bool {
        let index_len = self.index_len();
        let Some((index, places)) = self.block.split_at_mut_checked(index_len) else { return false };
        let Some(shape) = shapes.shape_mut(self.shape) else { return false };
        let mut puts = shape.take_puts();
        let gaps = look_up(bytes, &mut puts, index, shape, ripples);
        if let Some(gaps) = gaps {
            self.gaps |= gaps;
            put(bytes, &puts, places);
        }
        shape.keep_puts(puts);
        gaps.is_some()
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
                self.set_text(change.found, data, dictionary, &mut scratch.text);
            } else {
                self.set(change.found.slot(), data);
            }
        }
    }

    /// Applies a partial update of a text.
    #[cold]
    fn set_text(&mut self, found: Found, data: &[u8], dictionary: Option<&Dictionary>, room: &mut Vec<u8>) {
        let old = self.value(found.slot());
        if let Some(most) = fields::partial_room(dictionary, found.fid(), old, data) {
            let len = fields::apply_partial(room, most, old, data).len();
            self.set(found.slot(), room.get(..len).unwrap_or_default());
        }
    }

    fn value(&self, slot: usize) -> &[u8] {
        let entry = self.place(slot).and_then(|(at, _)| stored(self.places(), at));
        entry.map_or(&[], |entry| entry.data)
    }

    /// Replaces a value, and moves the entries after it if it is longer than its place.
    fn set(&mut self, slot: usize, data: &[u8]) {
        let Some((at, end)) = self.place(slot) else { return };
        let index_len = self.index_len();
        let (head, head_len) = fields::value_head(data.len());
        let data_at = at + 2 + head_len;
        let new_end = data_at + data.len();
        if new_end > end {
            let more = new_end - end;
            let len = index_len + self.end();
            self.make_room(len + more);
            self.block.copy_within(index_len + end..len, index_len + new_end);
            // All later entries have moved by the same distance.
            let behind = (slot + 1) * INDEX..index_len;
            for place in self.block.get_mut(behind).unwrap_or_default().as_chunks_mut::<INDEX>().0 {
                // Lossless: the caller ensures that the total stays below 65,536.
                *place = u16::from_le_bytes(*place).wrapping_add(more as u16).to_le_bytes();
            }
        }
        self.gaps |= u64::from(new_end < end) << (slot % GAPS);
        if let Some(place) = self.block.get_mut(index_len + at + 2..index_len + data_at) {
            place.copy_from_slice(head.get(..head_len).unwrap_or_default());
        }
        if let Some(place) = self.block.get_mut(index_len + data_at..index_len + new_end) {
            place.copy_from_slice(data);
        }
    }

    /// Ensures a capacity of `len` bytes, and an eighth more: a record rarely grows, and a hundred thousand of them stay small.
    fn make_room(&mut self, len: usize) {
        if self.block.len() < len {
            let mut block = std::mem::take(&mut self.block).into_vec();
            block.reserve_exact(len + len / 8 - block.len());
            block.resize(len + len / 8, 0);
            self.block = block.into_boxed_slice();
        }
    }

    /// Records the ripples of a list's fields: each field of a chain gets the old value of the one before, up to a field that the list itself
    /// contains. A field that the image does not have ends a chain too.
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
                // A marked field has its value already: from the list, or from an earlier ripple.
                if !scratch.merging.mark(fid) {
                    break;
                }
                fields::push(&mut scratch.rippled, fid, self.value(from));
                from = to;
            }
        }
    }

    /// The slow path: writes all entries again, and determines their new shape.
    fn merge(
        &mut self,
        list: (&FieldList<'_>, &[u8]),
        words: Words<'_>,
        shapes: &mut Shapes,
        scratch: &mut Scratch,
    ) -> Result<(), NotApplied> {
        let dictionary = words.map(|(_, dictionary)| dictionary);
        scratch.old.resize(self.end(), 0);
        let len = self.write(&mut scratch.old).unwrap_or_default();
        scratch.old.truncate(len);
        scratch.entries.clear();
        scratch.merging.merge(&scratch.old, list, &scratch.rippled, dictionary, &mut scratch.entries)?;
        scratch.fids.clear();
        scratch.fids.extend(walk(&scratch.entries).map(|entry| entry.fid));
        let shape = shapes.take(&scratch.fids, words.map(|(number, _)| number), dictionary);
        shapes.release(std::mem::replace(&mut self.shape, shape));
        self.note_info(list.0);
        // At most 21,845: each takes three of 65,535 bytes.
        self.slots = scratch.fids.len() as u16;
        let index_len = self.index_len();
        let len = index_len + scratch.entries.len();
        if self.block.len() < len {
            self.block = vec![0; len].into_boxed_slice();
        }
        let (index, places) = self.block.split_at_mut(index_len);
        // At most 65,535.
        let begins = walk(&scratch.entries).map(|entry| entry.at).chain([scratch.entries.len()]);
        for (place, begin) in index.as_chunks_mut::<INDEX>().0.iter_mut().zip(begins) {
            *place = (begin as u16).to_le_bytes();
        }
        if let Some(places) = places.get_mut(..scratch.entries.len()) {
            places.copy_from_slice(&scratch.entries);
        }
        self.gaps = 0;
        Ok(())
    }
}

/// Looks up the fields of an update; returns the bits of the entries that leave gaps if each field is just another value that fits in its place.
/// `None` if that does not hold for all, or the list is malformed. Separate from [`put`], so that each loop has all registers of the processor.
#[inline(never)]
fn look_up(bytes: &[u8], puts: &mut [Put], index: &[u8], shape: &Shape, ripples: bool) -> Option<u64> {
    let [STANDARD_DATA, high, low, ..] = bytes else { return None };
    let (index, _) = index.as_chunks::<INDEX>();
    let (mut at, mut gaps) = (LIST_HEAD, 0);
    // More fields than in the image are another case.
    for put in puts.get_mut(..usize::from(u16::from_be_bytes([*high, *low])))? {
        let [high, low, len] = chunk(bytes, at)?;
        let fid = [*high, *low];
        if usize::from(*len) > MOST_SHORT || put.fid != fid && !put.find(fid, shape) {
            return None;
        }
        let slot = put.slot();
        let (Some(end), Some(begin)) = (index.get(slot + 1), index.get(slot)) else { return None };
        let (begin, end) = (u16::from_le_bytes(*begin), u32::from(u16::from_le_bytes(*end)));
        put.to = begin;
        put.len = *len;
        let data_at = at + u32::from(SHORT_HEAD);
        // The bound is checked after the loop.
        at = data_at + u32::from(*len);
        let used = u32::from(begin) + u32::from(put.entry_len());
        if used > end || put.is_special() && !put.takes_as_it_is(bytes, data_at, ripples) {
            return None;
        }
        if used < end {
            gaps |= put.gap;
        }
    }
    (at as usize <= bytes.len()).then_some(gaps)
}

/// Writes the entries of an update to the places that were [looked up](look_up).
#[inline(never)]
fn put(bytes: &[u8], puts: &[Put], places: &mut [u8]) {
    let [_, high, low, rest @ ..] = bytes else { return };
    let (mut rest, count) = (rest, usize::from(u16::from_be_bytes([*high, *low])));
    for put in puts.get(..count).unwrap_or_default() {
        let (to, len) = (usize::from(put.to), usize::from(put.entry_len()));
        let Some((entry, behind)) = rest.split_at_checked(len) else { return };
        if let Some(place) = places.get_mut(to..to + len) {
            overwrite_entry(place, entry);
        }
        rest = behind;
    }
}

/// Returns the length of the entry at offset `at`.
#[inline]
fn entry_len(entries: &[u8], at: usize) -> usize {
    match entries.get(at + 2) {
        Some(len) if usize::from(*len) <= MOST_SHORT => usize::from(SHORT_HEAD + u16::from(*len)),
        _ => stored(entries, at).map_or(0, |entry| entry.bytes.len()),
    }
}

/// Overwrites an entry with another of the same length. Lengths of 4 to 16 bytes, which nearly all have, need no call.
#[inline]
fn overwrite_entry(to: &mut [u8], from: &[u8]) {
    match from.len() {
        4..=8 => put_ends::<4>(to, from),
        9..=16 => put_ends::<8>(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last `N` bytes, which overlap if there are fewer than twice as many.
#[inline]
fn put_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk()) {
        *to = *from;
    }
}

/// Returns the bytes from `at` on. Additions to a u32 do not overflow a usize.
#[inline]
fn chunk<const N: usize>(bytes: &[u8], at: u32) -> Option<&[u8; N]> {
    bytes.get(at as usize..at as usize + N)?.try_into().ok()
}

/// Returns start and end of a slot's place.
#[inline]
fn place(index: &[u8], slot: usize) -> Option<(u16, u16)> {
    let both = u32::from_le_bytes(*chunk(index, (slot * INDEX) as u32)?);
    Some((both as u16, (both >> 16) as u16))
}

/// Appends a piece after the first `len` bytes of `room`. Many pieces between gaps are short: they are copied as a whole chunk, whose excess is
/// overwritten by the next piece.
#[inline]
fn copy_piece(
    places: &[u8],
    (from, to): (usize, usize),
    room: &mut [u8],
    len: &mut usize,
) -> Result<(), NoRoom> {
    let (places, room) = (places.get(from..).unwrap_or_default(), room.get_mut(*len..).unwrap_or_default());
    let piece = to - from;
    *len += piece;
    if piece <= CHUNK
        && let (Some(room), Some(chunk)) = (room.first_chunk_mut::<CHUNK>(), places.first_chunk())
    {
        *room = *chunk;
    } else if let (Some(room), Some(piece)) = (room.get_mut(..piece), places.get(..piece)) {
        copy_long(room, piece);
    } else {
        return Err(NoRoom::Full);
    }
    Ok(())
}

/// Separate, so that short pieces have all registers of the processor.
#[inline(never)]
fn copy_long(room: &mut [u8], piece: &[u8]) {
    room.copy_from_slice(piece);
}

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

use super::fields::{self, MOST_BYTES, MOST_SHORT, Merging, SHORT_HEAD, Stored, stored, walk};
use super::limits::Refused;
use super::shape::{Found, Put, Shape, ShapeId, Shapes};

/// Bytes that the processor fetches at a time.
const LINE: usize = 64;
/// Bytes of a slot's entry in the index.
const INDEX: usize = 2;
/// Bytes in front of the entries of a list that has nothing but standard data: the flags, the count.
const LIST_HEAD: u32 = 3;
/// A piece that is copied at once.
const CHUNK: usize = 64;
/// Bits that say where gaps are.
const GAPS: usize = u64::BITS as usize;
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
    /// The index, then the places of the entries, then what is spare.
    block: Box<[u8]>,
    /// Which entries may be shorter than their places: bit `n` is of the slots `n`, `n + 64`, `n + 128` and so on.
    gaps: u64,
    shape: ShapeId,
    slots: u16,
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
        Self { block: Box::default(), gaps: 0, shape, slots: 0, info: None }
    }

    /// Gives its shape back.
    pub(super) fn release(self, shapes: &mut Shapes) {
        shapes.release(self.shape);
    }

    /// The entries with the gaps between them, and what is spare.
    #[inline]
    fn places(&self) -> &[u8] {
        self.block.get(self.index_len()..).unwrap_or_default()
    }

    /// Where the last place ends.
    #[inline]
    fn end(&self) -> usize {
        let end = chunk(&self.block, (self.len() * INDEX) as u32);
        end.map_or(0, |end| usize::from(u16::from_le_bytes(*end)))
    }

    /// The entries in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Stored<'_>> {
        (0..self.len()).map_while(|slot| stored(self.places(), self.place(slot)?.0))
    }

    /// Writes the entries to the front of `room` as the wire has them, one behind the other: their length. What is in `room`
    /// behind them may be written over.
    ///
    /// # Errors
    ///
    /// There is no room.
    pub(super) fn write(&self, room: &mut [u8]) -> Result<usize, NoRoom> {
        let (index, places) = self.block.split_at_checked(self.index_len()).unwrap_or_default();
        let (mut from, mut len) = (0, 0);
        if self.gaps != 0 {
            for first in (0..self.len()).step_by(GAPS) {
                let mut gaps = self.gaps;
                while gaps != 0 {
                    let slot = first + gaps.trailing_zeros() as usize;
                    gaps &= gaps - 1;
                    // The last ones that have a bit are no slots any more.
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
        self.block.len()
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
        let (at, end) = place(self.block.get(..self.index_len())?, slot)?;
        Some((usize::from(at), usize::from(end)))
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
            let most = self.end() + bytes.len() + scratch.rippled.len() + texts;
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
    /// its place, none of which ripples or changes a part of a text. `false`: it is something else, or has a fault, and nothing is
    /// changed. Costs no more than half as much again as decoding the values (bench `cache`).
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

    /// A partial update of a text.
    #[cold]
    fn set_text(&mut self, found: Found, data: &[u8], dictionary: Option<&Dictionary>, room: &mut Vec<u8>) {
        let old = self.value(found.slot());
        if let Some(most) = fields::partial_room(dictionary, found.fid(), old, data) {
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
            let len = index_len + self.end();
            self.make_room(len + more);
            self.block.copy_within(index_len + end..len, index_len + new_end);
            // What is behind moved all by as much.
            let behind = (slot + 1) * INDEX..index_len;
            for place in self.block.get_mut(behind).unwrap_or_default().as_chunks_mut::<INDEX>().0 {
                // Cannot cut: who calls this has seen to it that all of it stays below 65,536.
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

    /// Room for so many bytes, and an eighth on top: a record seldom grows, and a hundred thousand stay small.
    fn make_room(&mut self, len: usize) {
        if self.block.len() < len {
            let mut block = std::mem::take(&mut self.block).into_vec();
            block.reserve_exact(len + len / 8 - block.len());
            block.resize(len + len / 8, 0);
            self.block = block.into_boxed_slice();
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
        // At most 21,845: each takes three bytes of 65,535.
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

/// Looks the fields of an update up, and whether each is just another value that has room in its place: the bits of those that leave
/// gaps. `None` if that does not hold for all, or there is a fault. Apart from [`put`], so that each loop has the processor's registers
/// to itself.
#[inline(never)]
fn look_up(bytes: &[u8], puts: &mut [Put], index: &[u8], shape: &Shape, ripples: bool) -> Option<u64> {
    let [STANDARD_DATA, high, low, ..] = bytes else { return None };
    let (mut at, mut gaps) = (LIST_HEAD, 0);
    // More than there are in the image are something else.
    for put in puts.get_mut(..usize::from(u16::from_be_bytes([*high, *low])))? {
        let [high, low, len] = chunk(bytes, at)?;
        let fid = Fid(i16::from_be_bytes([*high, *low]));
        if usize::from(*len) > MOST_SHORT || put.found.fid() != fid && !put.find(fid, shape) {
            return None;
        }
        let (begin, end) = place(index, put.found.slot())?;
        put.to = begin;
        put.len = *len;
        let data_at = at + u32::from(SHORT_HEAD);
        // No further than the end of the bytes, which is looked at behind the loop.
        at = data_at + u32::from(*len);
        let (used, end) = (u32::from(begin) + u32::from(put.entry_len()), u32::from(end));
        if used > end || put.is_special() && !put.takes_as_it_is(bytes, data_at, ripples) {
            return None;
        }
        gaps |= u64::from(used < end) << (put.found.slot() % GAPS);
    }
    (at as usize <= bytes.len()).then_some(gaps)
}

/// Puts the entries of an update where they were [looked up](look_up).
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

/// The length of the entry that begins at `at`.
#[inline]
fn entry_len(entries: &[u8], at: usize) -> usize {
    match entries.get(at + 2) {
        Some(len) if usize::from(*len) <= MOST_SHORT => usize::from(SHORT_HEAD + u16::from(*len)),
        _ => stored(entries, at).map_or(0, |entry| entry.bytes.len()),
    }
}

/// Puts one entry in place of another that is as long. Those of four to sixteen bytes, which nearly all are, go without a call.
#[inline]
fn overwrite_entry(to: &mut [u8], from: &[u8]) {
    match from.len() {
        4..=8 => put_ends::<4>(to, from),
        9..=16 => put_ends::<8>(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// The first bytes and the last ones, which overlap in those that are less than both.
#[inline]
fn put_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk()) {
        *to = *from;
    }
}

/// The bytes from `at` on. A u32 can be added to without being too much.
#[inline]
fn chunk<const N: usize>(bytes: &[u8], at: u32) -> Option<&[u8; N]> {
    bytes.get(at as usize..at as usize + N)?.try_into().ok()
}

/// Where the place of a slot begins and ends.
#[inline]
fn place(index: &[u8], slot: usize) -> Option<(u16, u16)> {
    let both = u32::from_le_bytes(*chunk(index, (slot * INDEX) as u32)?);
    Some((both as u16, (both >> 16) as u16))
}

/// Appends a piece to the first `len` bytes of `room`. There are many short ones between gaps: they go as a whole chunk, the rest of
/// which what comes behind is written over.
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

/// Kept apart, so that the short ones have the processor's registers to themselves.
#[inline(never)]
fn copy_long(room: &mut [u8], piece: &[u8]) {
    room.copy_from_slice(piece);
}

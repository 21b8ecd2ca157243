//! Field lists, merged by field: the entries of a list in wire form, each field once, in their shortest form.

use tapeline_omm::rwf::{DataType, Info, Rmtes, RmtesCache, Value, Writer};
use tapeline_omm::{Dictionary, Fid, FieldList, FieldListEncoder, Malformed, Refused};

use super::limits::NotApplied;

/// Maximum bytes of a list's entries: lists are also parts of entries, whose lengths end there.
pub(super) const MOST_BYTES: usize = 65_535;
/// Capacity for a text whose field has no length in the dictionary.
pub(super) const UNSAID_ROOM: usize = 255;
/// No earlier change of the same field.
const NONE: u32 = u32::MAX;
/// The longest value with a length of one byte.
pub(super) const MOST_SHORT: usize = 0xFD;
/// Bytes before a short value: the field's id, the length.
pub(super) const SHORT_HEAD: u16 = 3;

/// A list's fields as a slice of entries: the part of the list after its head.
///
/// `entries` is well-formed, because it was written here; a malformed entry would end the walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk<'a> {
    entries: &'a [u8],
    at: usize,
}

/// Returns the entries of a list that was written here, which has only standard data; empty for no list.
pub(super) fn entries_of(list: &[u8]) -> &[u8] {
    // The flag of an info block with its length, then the count.
    let head = match list {
        [flags, info, ..] if flags & 1 != 0 => 2 + usize::from(*info) + 2,
        _ => 3,
    };
    list.get(head..).unwrap_or_default()
}

/// One entry of a [`Walk`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'a> {
    pub(super) fid: Fid,
    /// The entry's offset.
    pub(super) at: usize,
    pub(super) data: &'a [u8],
    /// The entry with its id and length.
    pub(super) bytes: &'a [u8],
}

pub(super) const fn walk(entries: &[u8]) -> Walk<'_> {
    Walk { entries, at: 0 }
}

/// Returns the entry at offset `at`.
#[inline]
pub(super) fn stored(entries: &[u8], at: usize) -> Option<Stored<'_>> {
    let entry = entries.get(at..)?;
    let (fid, head, len) = match entry {
        [a, b, 0xFE, high, low, ..] => ([*a, *b], 5, usize::from(u16::from_be_bytes([*high, *low]))),
        [a, b, len, ..] => ([*a, *b], 3, usize::from(*len)),
        _ => return None,
    };
    let bytes = entry.get(..head + len)?;
    Some(Stored { fid: Fid(i16::from_be_bytes(fid)), at, data: bytes.get(head..)?, bytes })
}

impl<'a> Iterator for Walk<'a> {
    type Item = Stored<'a>;

    fn next(&mut self) -> Option<Stored<'a>> {
        let entry = stored(self.entries, self.at)?;
        self.at += entry.bytes.len();
        Some(entry)
    }
}

/// Returns the length field of a value in its shortest form, and its number of bytes.
#[inline]
pub(super) const fn value_head(len: usize) -> ([u8; 3], usize) {
    if len <= MOST_SHORT { ([len as u8, 0, 0], 1) } else { ([0xFE, (len >> 8) as u8, len as u8], 3) }
}

/// Appends an entry.
pub(super) fn push(out: &mut Vec<u8>, fid: Fid, data: &[u8]) {
    let (head, head_len) = value_head(data.len());
    out.extend_from_slice(&fid.0.to_be_bytes());
    out.extend_from_slice(head.get(..head_len).unwrap_or_default());
    out.extend_from_slice(data);
}

/// Begins a list with an info, if it has one.
pub(super) fn begin(info: Option<Info>, room: &mut [u8]) -> Result<FieldListEncoder<'_>, Refused> {
    match info {
        Some(info) => FieldListEncoder::with_info(room, info),
        None => Ok(FieldListEncoder::new(room)?),
    }
}

/// Converts a set value with a type of fixed size to its standard form, of at most twelve bytes.
pub(super) fn standard<'r>(
    data_type: DataType,
    data: &[u8],
    room: &'r mut [u8; 16],
) -> Result<&'r [u8], Malformed> {
    let value = Value::decode(data_type, data)?;
    let mut writer = Writer::new(room);
    if value.write(&mut writer).is_err() {
        return Err(Malformed::new(0, "set value"));
    }
    let len = writer.len();
    Ok(room.get(..len).unwrap_or_default())
}

/// Returns `true` if a value may be a partial update: only with one of these bytes.
#[inline]
pub(super) fn may_be_partial(data: &[u8]) -> bool {
    data.iter().any(|byte| matches!(byte, 0x1B | 0x9B))
}

/// As [`may_be_partial`] for the first `len` bytes of `ahead`. Most texts are short: they are read as one word.
#[inline]
pub(super) fn may_be_partial_ahead(len: u8, ahead: &[u8]) -> bool {
    match ahead.first_chunk() {
        Some(word) if (1..=8).contains(&len) => {
            has_escape(u64::from_le_bytes(*word) << (64 - 8 * u32::from(len)))
        }
        _ => may_be_partial_long(ahead.get(..usize::from(len)).unwrap_or(ahead)),
    }
}

/// Separate, so that short texts have all registers of the processor.
#[inline(never)]
fn may_be_partial_long(data: &[u8]) -> bool {
    let (words, rest) = data.as_chunks();
    words.iter().any(|word| has_escape(u64::from_le_bytes(*word))) || may_be_partial(rest)
}

/// Returns `true` if a byte of a word is 0x1B or 0x9B: 0x1B without the highest bit.
#[inline]
const fn has_escape(word: u64) -> bool {
    /// The lowest bit of each byte.
    const EACH: u64 = 0x0101_0101_0101_0101;
    let others = (word & (0x7F * EACH)) ^ (0x1B * EACH);
    // Clear in the highest bit of a byte only if the byte is none of the others; no byte carries.
    (others + 0x7F * EACH) & (0x80 * EACH) != 0x80 * EACH
}

/// Returns the capacity of a string with partial updates: the length in the dictionary, so that an image never exceeds its field's length. Longer
/// text is cut, as in LSEG's payload cache (`rsslPayloadEntryApply`: "data truncated for exceeding size allocated in the field dictionary").
fn room_of(dictionary: &Dictionary, fid: Fid, so_far: usize) -> usize {
    let said = dictionary.field(fid).map_or(0, |field| usize::from(field.data_len));
    (if said == 0 { UNSAID_ROOM } else { said }).max(so_far)
}

/// Applies the partial update `data` to `old` in `room`; returns the result.
pub(super) fn apply_partial<'r>(room: &'r mut Vec<u8>, most: usize, old: &[u8], data: &[u8]) -> &'r [u8] {
    room.clear();
    room.extend_from_slice(old);
    room.resize(most.max(old.len()), 0);
    let mut cached = RmtesCache::with_len(room, old.len());
    // Text beyond the capacity is cut.
    let _is_whole = Rmtes(data).apply(&mut cached);
    let len = cached.len();
    room.get(..len).unwrap_or_default()
}

/// Returns the capacity of the string if the value is a partial update of a field of this dictionary; `None` for any other value.
pub(super) fn partial_room(
    dictionary: Option<&Dictionary>,
    fid: Fid,
    old: &[u8],
    data: &[u8],
) -> Option<usize> {
    let dictionary = dictionary?;
    let is_partial = may_be_partial(data)
        && dictionary.data_type(fid) == Some(DataType::RMTES_STRING)
        && Rmtes(data).is_partial();
    is_partial.then(|| room_of(dictionary, fid, old.len()))
}

/// The working memory of a merge, reused to avoid allocation.
#[derive(Debug)]
pub(super) struct Merging {
    /// For each field id: in the upper half the number of the last merge that contained it, in the lower half its last change.
    seen: Box<[u64]>,
    merge: u32,
    changes: Vec<Change>,
    /// New values that are not in the list: rippled ones, and set values in standard form.
    own: Vec<u8>,
    /// Buffers for strings with partial updates, used alternately.
    texts: [Vec<u8>; 2],
    chain: Vec<u32>,
}

/// A new value of a field.
#[derive(Clone, Copy, Debug)]
struct Change {
    fid: Fid,
    /// `true` if the value is in `own`, not in the list.
    is_own: bool,
    /// Offset of the value.
    at: u32,
    len: u32,
    /// The previous change of the same field.
    previous: u32,
    /// `true` if this is the first change of its field, and the image does not have the field.
    is_new: bool,
}

impl Default for Merging {
    fn default() -> Self {
        Self {
            seen: vec![0; 1 << 16].into_boxed_slice(),
            merge: 0,
            changes: Vec::new(),
            own: Vec::new(),
            texts: [Vec::new(), Vec::new()],
            chain: Vec::new(),
        }
    }
}

impl Merging {
    /// Begins a merge: no field is marked.
    pub(super) fn begin(&mut self) {
        self.changes.clear();
        self.own.clear();
        self.merge = self.merge.wrapping_add(1);
        if self.merge == 0 {
            self.seen.fill(0);
            self.merge = 1;
        }
    }

    /// Marks a field; returns `true` if it was not marked before.
    pub(super) fn mark(&mut self, fid: Fid) -> bool {
        self.change_of(fid).is_none() && {
            self.see(fid, NONE - 1);
            true
        }
    }

    fn see(&mut self, fid: Fid, change: u32) {
        if let Some(seen) = self.seen.get_mut(usize::from(fid.0 as u16)) {
            *seen = u64::from(self.merge) << 32 | u64::from(change);
        }
    }

    fn change_of(&self, fid: Fid) -> Option<u32> {
        let seen = *self.seen.get(usize::from(fid.0 as u16))?;
        (seen >> 32 == u64::from(self.merge)).then_some(seen as u32)
    }

    /// Adds a value at offset `at` of the list or of `own`.
    fn add(&mut self, fid: Fid, is_own: bool, at: usize, len: usize) {
        let previous = self.change_of(fid).unwrap_or(NONE);
        self.see(fid, self.changes.len() as u32);
        let (at, len, is_new) = (at as u32, len as u32, previous == NONE);
        self.changes.push(Change { fid, is_own, at, len, previous, is_new });
    }

    fn add_own(&mut self, fid: Fid, data: &[u8]) {
        let at = self.own.len();
        self.own.extend_from_slice(data);
        self.add(fid, true, at, data.len());
    }

    /// Appends `old`, merged with the fields of `list`, to `out`; `bytes` are the bytes of the list. Existing fields keep their places, others
    /// follow in the list's order. If a list contains a field twice, the values apply one after the other. The entries in `rippled` apply first.
    ///
    /// # Errors
    /// An error in the list, or more than 65,535 bytes; `out` is then unusable.
    pub(super) fn merge(
        &mut self,
        old: &[u8],
        (list, bytes): (&FieldList<'_>, &[u8]),
        rippled: &[u8],
        dictionary: Option<&Dictionary>,
        out: &mut Vec<u8>,
    ) -> Result<(), NotApplied> {
        if list.set_data().is_some() && list.set_definition().is_none() {
            return Err(NotApplied::Undefined);
        }
        self.begin();
        for entry in walk(rippled) {
            self.add_own(entry.fid, entry.data);
        }
        for field in list.typed() {
            match field? {
                (field, Some(data_type)) if data_type.base() != data_type => {
                    let mut room = [0; 16];
                    self.add_own(field.fid, standard(data_type, field.data, &mut room)?);
                }
                (field, _) => {
                    // A value lies in the bytes of its list, so its offset is the distance. A value without bytes may be anywhere.
                    let at = field.data.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
                    self.add(field.fid, false, if field.data.is_empty() { 0 } else { at }, field.data.len());
                }
            }
        }
        let start = out.len();
        let full = NotApplied::Limit { what: "bytes of a list", limit: MOST_BYTES };
        for entry in walk(old) {
            match self.change_of(entry.fid) {
                None => out.extend_from_slice(entry.bytes),
                Some(last) => self.push_changed(last, entry.data, bytes, dictionary, out),
            }
            if out.len() - start > MOST_BYTES {
                return Err(full);
            }
        }
        for at in 0..self.changes.len() {
            let Some(change) = self.changes.get(at).filter(|change| change.is_new) else { continue };
            let Some(last) = self.change_of(change.fid) else { continue };
            self.push_changed(last, &[], bytes, dictionary, out);
            if out.len() - start > MOST_BYTES {
                return Err(full);
            }
        }
        Ok(())
    }

    /// Appends the entry of a field with this last change.
    fn push_changed(
        &mut self,
        last: u32,
        old: &[u8],
        bytes: &[u8],
        dictionary: Option<&Dictionary>,
        out: &mut Vec<u8>,
    ) {
        let own = &self.own;
        let data = |change: &Change| {
            let within = if change.is_own { own } else { bytes };
            within.get(change.at as usize..).and_then(|at| at.get(..change.len as usize)).unwrap_or_default()
        };
        // From the last change back to the last whole value, with each partial one on the way.
        self.chain.clear();
        let (mut at, mut fid, mut whole) = (last, Fid(0), old);
        while let Some(change) = self.changes.get_mut(at as usize) {
            fid = change.fid;
            if change.previous == NONE {
                change.is_new = false;
            }
            let value = data(change);
            let previous = change.previous;
            if partial_room(dictionary, fid, &[], value).is_none() {
                whole = value;
                break;
            }
            self.chain.push(at);
            at = previous;
        }
        // The first change of a field represents it.
        while let Some(change) = self.changes.get_mut(at as usize) {
            change.is_new = false;
            at = change.previous;
        }
        if self.chain.is_empty() {
            return push(out, fid, whole);
        }
        let [now, next] = &mut self.texts;
        now.clear();
        now.extend_from_slice(whole);
        while let Some(change) = self.chain.pop().and_then(|at| self.changes.get(at as usize)) {
            let value = data(change);
            let most = dictionary.map_or(UNSAID_ROOM, |dictionary| room_of(dictionary, fid, now.len()));
            let len = apply_partial(next, most, now, value).len();
            next.truncate(len);
            std::mem::swap(now, next);
        }
        push(out, fid, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_finds_the_same_partial_updates_as_a_walk() {
        for len in 0..=18_u8 {
            for behind in [0, 1, 8] {
                for byte in 0..=u8::MAX {
                    for at in 0..usize::from(len) + behind {
                        for filler in [0, b'a', 0x1A, 0x1C, 0x7F, 0x80, 0x9A, 0x9C, 0xFF] {
                            let mut text = vec![filler; usize::from(len) + behind];
                            text[at] = byte;
                            assert_eq!(
                                may_be_partial_ahead(len, &text),
                                may_be_partial(&text[..len.into()]),
                                "{len} of {text:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

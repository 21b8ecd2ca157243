//! The field order that images share, and the position of each field in it.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tapeline_omm::rwf::DataType;
use tapeline_omm::{Dictionary, Fid};

use super::fields::{SHORT_HEAD, may_be_partial_ahead};

/// Number of bits in the bitmap of an image's gaps.
pub(super) const GAPS: usize = u64::BITS as usize;
/// No slot.
const NONE: u16 = u16::MAX;
/// A free place of a table: no slot has such a high number, see [`MOST_SLOTS`].
const EMPTY: u32 = u32::MAX;
/// A flag in a place of a table: the field is an RMTES string, or ripples.
const SPECIAL: u32 = 1;
/// Maximum number of slots of a shape: each field takes three of a list's 65,535 bytes.
const MOST_SLOTS: usize = 65_535 / 3;
const _: () = assert!(MOST_SLOTS < 0x7FFF, "a slot has 15 bits");
/// Maximum length of a ripple chain; the longest chain of LSEG's dictionary (TRDPRC_1 to TRDPRC_5) has five fields.
const LONGEST_CHAIN: usize = 16;

/// The id of a shape, valid while it is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShapeId(u32);

/// The result of a field's lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found(u32);

impl Found {
    /// Returns the field's slot.
    #[inline]
    pub(super) const fn slot(self) -> usize {
        (self.0 >> 1 & 0x7FFF) as usize
    }

    #[inline]
    pub(super) const fn fid(self) -> Fid {
        Fid((self.0 >> 16) as i16)
    }

    /// Returns `true` if an update of the field may do more than replace its value.
    #[inline]
    pub(super) const fn is_special(self) -> bool {
        self.0 & SPECIAL != 0
    }
}

/// An entry of an update whose value replaces the existing one. The next update of the shape mostly has the same fields in the same order, and
/// reuses their lookups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    /// The field's id, as in the entry.
    pub(super) fid: [u8; 2],
    slot: u16,
    /// Offset of its place among the entries of the image.
    pub(super) to: u16,
    /// Bytes of its value.
    pub(super) len: u8,
    /// Flags: an RMTES string, rippling.
    special: u8,
    /// The bit of its slot among the gaps of an image.
    pub(super) gap: u64,
}

/// Bits of [`Put::special`].
const IS_TEXT: u8 = 1;
const RIPPLES: u8 = 2;

impl Put {
    /// Looks up another field than in the last update; returns `true` if it exists.
    #[cold]
    #[inline(never)]
    pub(super) fn find(&mut self, fid: [u8; 2], shape: &Shape) -> bool {
        let found = shape.find(Fid(i16::from_be_bytes(fid)));
        found.map(|found| *self = Self::new(found, shape)).is_some()
    }

    fn new(found: Found, shape: &Shape) -> Self {
        let ripples = shape.slots.get(found.slot()).is_some_and(|slot| slot.ripples_to != NONE);
        let special = (u8::from(found.is_special()) * IS_TEXT) | (u8::from(ripples) * RIPPLES);
        let slot = found.slot();
        let (fid, gap) = (found.fid().0.to_be_bytes(), 1 << (slot % GAPS));
        Self { fid, slot: slot as u16, to: 0, len: 0, special, gap }
    }

    /// Returns the field's slot.
    #[inline]
    pub(super) const fn slot(&self) -> usize {
        self.slot as usize
    }

    /// Returns the bytes of the entry: the value, and before it the id and the length, which exist already or may be written again.
    #[inline]
    pub(super) const fn entry_len(&self) -> u16 {
        SHORT_HEAD + self.len as u16
    }

    /// Returns `true` if a value may do more than replace the old one.
    #[inline]
    pub(super) const fn is_special(&self) -> bool {
        self.special != 0
    }

    /// Returns `true` if the value at offset `at` only replaces the old one: it neither ripples nor may change a part of a text.
    #[inline]
    pub(super) fn takes_as_it_is(&self, bytes: &[u8], at: u32, ripples: bool) -> bool {
        let is_rippling = ripples && self.special & RIPPLES != 0;
        !is_rippling && !may_be_partial_ahead(self.len, bytes.get(at as usize..).unwrap_or_default())
    }
}

#[derive(Debug)]
struct Slot {
    fid: Fid,
    /// The slot that gets its old value.
    ripples_to: u16,
}

/// One order of fields. The order never changes: an image with another field gets another shape.
#[derive(Debug)]
pub(super) struct Shape {
    slots: Box<[Slot]>,
    /// Open addressing, at most half full: field id, slot (15 bits), special (1 bit).
    table: Box<[u32]>,
    /// The entries of the last update; as many as there are slots.
    puts: Box<[Put]>,
    /// The slots whose values may be partial updates of a text.
    texts: Box<[u16]>,
    /// Shift of a hash to a place.
    shift: u32,
    dictionary: Option<u16>,
    ripples: bool,
    users: u32,
    hash: u64,
}

impl Shape {
    fn new(fids: &[Fid], number: Option<u16>, dictionary: Option<&Dictionary>, hash: u64) -> Self {
        let places = (2 * fids.len()).next_power_of_two().max(16);
        let shift = u32::BITS - places.trailing_zeros();
        let mut shape = Self {
            slots: fids.iter().map(|fid| Slot { fid: *fid, ripples_to: NONE }).collect(),
            table: vec![EMPTY; places].into_boxed_slice(),
            puts: Box::default(),
            texts: Box::default(),
            shift,
            dictionary: number,
            ripples: false,
            users: 0,
            hash,
        };
        let is_text = |fid: &Fid| dictionary?.data_type(*fid).filter(|kind| *kind == DataType::RMTES_STRING);
        shape.texts = (0..).zip(fids).filter_map(|(slot, fid)| is_text(fid).map(|_| slot)).collect();
        for (slot, fid) in fids.iter().enumerate() {
            let ripples = dictionary.is_some_and(|dictionary| dictionary.ripples_to(*fid).is_some());
            let special = is_text(fid).is_some() || ripples;
            shape.insert(u32::from(fid.0 as u16) << 16 | (slot as u32) << 1 | u32::from(special));
        }
        if let Some(dictionary) = dictionary {
            for slot in 0..fids.len() {
                let target = fids.get(slot).and_then(|fid| dictionary.ripples_to(*fid));
                let target = target.and_then(|target| shape.find(target.fid));
                if let (Some(target), Some(slot)) = (target, shape.slots.get_mut(slot)) {
                    slot.ripples_to = target.slot() as u16;
                    shape.ripples = true;
                }
            }
        }
        shape.puts =
            fids.iter().filter_map(|fid| shape.find(*fid)).map(|found| Put::new(found, &shape)).collect();
        shape
    }

    fn insert(&mut self, place: u32) {
        let mask = self.table.len() - 1;
        let mut at = self.start((place >> 16) as u16);
        while let Some(found) = self.table.get_mut(at) {
            if *found == EMPTY {
                *found = place;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    const fn start(&self, fid: u16) -> usize {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the id.
        ((fid as u32).wrapping_mul(0x9E37_79B9) >> self.shift) as usize
    }

    /// Returns the field's lookup. Takes one or two probes, because half of the table is free.
    #[inline]
    pub(super) fn find(&self, fid: Fid) -> Option<Found> {
        let wanted = fid.0 as u16;
        let mask = self.table.len() - 1;
        let mut at = self.start(wanted);
        loop {
            let place = *self.table.get(at)?;
            // True if the upper halves are equal and the place is not free: only a free place has that lower half.
            if place ^ u32::from(wanted) << 16 < EMPTY & 0xFFFF {
                return Some(Found(place));
            }
            if place == EMPTY {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// Takes the entries of the last update, to be [returned](Self::keep_puts) for the next one.
    #[inline]
    pub(super) fn take_puts(&mut self) -> Box<[Put]> {
        std::mem::take(&mut self.puts)
    }

    /// Returns the entries of [`take_puts`](Self::take_puts).
    #[inline]
    pub(super) fn keep_puts(&mut self, puts: Box<[Put]>) {
        self.puts = puts;
    }

    /// Returns `true` if any field ripples to another of the same order.
    #[inline]
    pub(super) const fn ripples(&self) -> bool {
        self.ripples
    }

    /// Returns the slots to which a new value of `slot` moves old values: each gets the value of the one before it, the first that of `slot`.
    pub(super) fn chain(&self, slot: usize) -> impl Iterator<Item = (usize, Fid)> {
        let next = |slot: usize| self.slots.get(slot).map(|slot| slot.ripples_to).filter(|to| *to != NONE);
        let mut from = slot;
        std::iter::from_fn(move || {
            from = usize::from(next(from)?);
            Some((from, self.slots.get(from)?.fid))
        })
        .take(LONGEST_CHAIN)
    }

    fn bytes(&self) -> usize {
        let tables = size_of_val(&*self.slots) + size_of_val(&*self.table);
        size_of::<Self>() + tables + size_of_val(&*self.puts) + size_of_val(&*self.texts)
    }
}

/// All shapes in use, each once.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    shapes: Vec<Option<Shape>>,
    free: Vec<u32>,
    index: HashTable<u32>,
    /// The last shape that was looked up: mostly the next one too.
    last: u32,
    hasher: RandomState,
    bytes: usize,
}

impl Shapes {
    /// Returns the shape of these fields with the dictionary `number`. Each use has to be [released](Self::release).
    pub(super) fn take(
        &mut self,
        fids: &[Fid],
        number: Option<u16>,
        dictionary: Option<&Dictionary>,
    ) -> ShapeId {
        let hash = self.hash(fids, number);
        if let Some(id) = self.find_hashed(hash, fids, number) {
            return self.share(id);
        }
        let shape = Shape::new(fids, number, dictionary, hash);
        self.bytes += shape.bytes();
        let id = self.free.pop().unwrap_or(self.shapes.len() as u32);
        match self.shapes.get_mut(id as usize) {
            Some(place) => *place = Some(shape),
            None => self.shapes.push(Some(shape)),
        }
        let shapes = &self.shapes;
        self.index.insert_unique(hash, id, |id| {
            shapes.get(*id as usize).and_then(Option::as_ref).map_or(0, |shape| shape.hash)
        });
        self.share(ShapeId(id))
    }

    /// Returns the shape of these fields if it is in use, and the slots of its texts. It is not a use of the shape, see [`share`](Self::share).
    pub(super) fn find(&mut self, fids: &[Fid], number: Option<u16>) -> Option<(ShapeId, &[u16])> {
        let mut id = ShapeId(self.last);
        if !self.is(id, fids, number) {
            id = self.find_hashed(self.hash(fids, number), fids, number)?;
            self.last = id.0;
        }
        Some((id, self.shape(id)?.texts.as_ref()))
    }

    fn find_hashed(&self, hash: u64, fids: &[Fid], number: Option<u16>) -> Option<ShapeId> {
        self.index.find(hash, |id| self.is(ShapeId(*id), fids, number)).map(|id| ShapeId(*id))
    }

    fn is(&self, id: ShapeId, fids: &[Fid], number: Option<u16>) -> bool {
        self.shape(id).is_some_and(|shape| {
            shape.dictionary == number && shape.slots.iter().map(|slot| slot.fid).eq(fids.iter().copied())
        })
    }

    /// Four fields at once: an image is looked up by all its fields.
    fn hash(&self, fids: &[Fid], number: Option<u16>) -> u64 {
        let mut state = self.hasher.build_hasher();
        let (fours, rest) = fids.as_chunks::<4>();
        for [a, b, c, d] in fours {
            let both = |high: &Fid, low: &Fid| u64::from(high.0 as u16) << 16 | u64::from(low.0 as u16);
            state.write_u64(both(a, b) << 32 | both(c, d));
        }
        rest.iter().for_each(|fid| state.write_i16(fid.0));
        number.hash(&mut state);
        state.finish()
    }

    /// Begins one more use of a shape in use, which has to be [released](Self::release).
    pub(super) fn share(&mut self, id: ShapeId) -> ShapeId {
        if let Some(shape) = self.shape_mut(id) {
            shape.users += 1;
        }
        id
    }

    /// Releases one use; the last one removes the shape.
    pub(super) fn release(&mut self, ShapeId(id): ShapeId) {
        let Some(place) = self.shapes.get_mut(id as usize) else { return };
        let Some(shape) = place else { return };
        shape.users -= 1;
        if shape.users > 0 {
            return;
        }
        self.bytes -= shape.bytes();
        let hash = shape.hash;
        *place = None;
        if let Ok(entry) = self.index.find_entry(hash, |found| *found == id) {
            entry.remove();
        }
        self.free.push(id);
    }

    #[inline]
    pub(super) fn shape(&self, ShapeId(id): ShapeId) -> Option<&Shape> {
        self.shapes.get(id as usize)?.as_ref()
    }

    /// Returns a shape in use for changes.
    #[inline]
    pub(super) fn shape_mut(&mut self, ShapeId(id): ShapeId) -> Option<&mut Shape> {
        self.shapes.get_mut(id as usize)?.as_mut()
    }

    /// Returns the number of shapes in use.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.shapes.capacity() * size_of::<Option<Shape>>()
    }
}

//! The field order that images share, and the position of each field in it.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tapeline_omm::rwf::DataType;
use tapeline_omm::{Dictionary, Fid};

use super::fields::{SHORT_HEAD, may_be_partial};

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
    pub(super) found: Found,
    /// Offset of its place among the entries of the image.
    pub(super) to: u16,
    /// Bytes of its value.
    pub(super) len: u8,
    /// Flags: an RMTES string, rippling.
    special: u8,
}

/// Bits of [`Put::special`].
const IS_TEXT: u8 = 1;
const RIPPLES: u8 = 2;

impl Put {
    /// Looks up another field than in the last update; returns `true` if it exists.
    #[cold]
    #[inline(never)]
    pub(super) fn find(&mut self, fid: Fid, shape: &Shape) -> bool {
        shape.find(fid).map(|found| *self = Self::new(found, shape)).is_some()
    }

    fn new(found: Found, shape: &Shape) -> Self {
        let ripples = shape.slots.get(found.slot()).is_some_and(|slot| slot.ripples_to != NONE);
        let special = (u8::from(found.is_special()) * IS_TEXT) | (u8::from(ripples) * RIPPLES);
        Self { found, to: 0, len: 0, special }
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
    #[inline(never)]
    pub(super) fn takes_as_it_is(&self, bytes: &[u8], at: u32, ripples: bool) -> bool {
        let data = bytes.get(at as usize..).and_then(|data| data.get(..usize::from(self.len)));
        let is_rippling = ripples && self.special & RIPPLES != 0;
        !is_rippling && !data.is_some_and(may_be_partial)
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
            shift,
            dictionary: number,
            ripples: false,
            users: 0,
            hash,
        };
        for (slot, fid) in fids.iter().enumerate() {
            let special = dictionary.is_some_and(|dictionary| {
                dictionary.data_type(*fid) == Some(DataType::RMTES_STRING)
                    || dictionary.ripples_to(*fid).is_some()
            });
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
        let tables = size_of_val(&*self.slots) + size_of_val(&*self.table) + size_of_val(&*self.puts);
        size_of::<Self>() + tables
    }
}

/// All shapes in use, each once.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    shapes: Vec<Option<Shape>>,
    free: Vec<u32>,
    index: HashTable<u32>,
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
        let hash = self.hasher.hash_one((fids, number));
        let is_same = |id: &u32| {
            self.shapes.get(*id as usize).and_then(Option::as_ref).is_some_and(|shape| {
                shape.dictionary == number && shape.slots.iter().map(|slot| slot.fid).eq(fids.iter().copied())
            })
        };
        let id = match self.index.find(hash, is_same) {
            Some(id) => *id,
            None => {
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
                id
            }
        };
        if let Some(Some(shape)) = self.shapes.get_mut(id as usize) {
            shape.users += 1;
        }
        ShapeId(id)
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

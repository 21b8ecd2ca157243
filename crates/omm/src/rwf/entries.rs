//! What filter lists, maps, vectors and series have in common: a head, then entries behind a count.
//!
//! Each of the four is this view with a head of its own, and its entries are read one after the other by that head.

use super::{Cursor, DataType, SetDefinitions};
use crate::Malformed;

/// A head that knows how its entries are read. Heads of this crate alone are ones.
pub trait Head<'a>: Copy {
    /// One entry.
    type Entry;

    /// Type of the entries' data, where an entry does not say otherwise.
    fn container(&self) -> DataType;

    /// Set definitions as they are on the wire.
    fn set_definitions(&self) -> Option<&'a [u8]>;

    /// Data that all entries share.
    fn summary(&self) -> Option<&'a [u8]>;

    /// The entry at which `cursor` stands.
    #[doc(hidden)]
    fn read_entry(&self, cursor: &mut Cursor<'a>) -> Result<Self::Entry, Malformed>;
}

/// A head, and entries behind a count, borrowed from the message that they came in.
///
/// Reading the head checks nothing of the entries; they are checked one by one as they are passed.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a, H> {
    head: H,
    count: u16,
    entries: &'a [u8],
    /// Length of the whole container: offsets of faults count from its start.
    end: usize,
}

impl<'a, H: Head<'a>> Entries<'a, H> {
    /// A container of `end` bytes whose last ones, where `cursor` stands, are `count` entries.
    pub(super) fn behind(head: H, count: u16, cursor: &Cursor<'a>, end: usize) -> Self {
        Self { head, count, entries: cursor.rest(), end }
    }

    /// What stands before the entries.
    #[inline]
    #[must_use]
    pub const fn head(&self) -> &H {
        &self.head
    }

    /// As many entries as the container says that it has.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no entry.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The definitions by which lists with set data are read in this container, its summary among them; none if it
    /// brings none.
    ///
    /// # Errors
    ///
    /// A definition that is cut off, or has a number that there is not.
    pub fn sets(&self) -> Result<SetDefinitions<'a>, Malformed> {
        match self.head.set_definitions() {
            Some(bytes) => SetDefinitions::parse(bytes, self.head.container()),
            None => Ok(SetDefinitions::NONE),
        }
    }

    /// The entries in order. After a fault there are no more.
    #[inline]
    #[must_use]
    pub const fn iter(&self) -> EntryIter<'a, H> {
        EntryIter { head: self.head, rest: self.entries, left: self.count, end: self.end }
    }
}

impl<'a, H: Head<'a>> IntoIterator for Entries<'a, H> {
    type Item = Result<H::Entry, Malformed>;
    type IntoIter = EntryIter<'a, H>;

    #[inline]
    fn into_iter(self) -> EntryIter<'a, H> {
        self.iter()
    }
}

/// Entries in order. After a fault there are no more.
#[derive(Debug, Clone)]
pub struct EntryIter<'a, H> {
    head: H,
    rest: &'a [u8],
    left: u16,
    end: usize,
}

impl<'a, H: Head<'a>> Iterator for EntryIter<'a, H> {
    type Item = Result<H::Entry, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut cursor = Cursor::new(self.rest);
        match self.head.read_entry(&mut cursor) {
            Ok(entry) => {
                self.rest = cursor.rest();
                Some(Ok(entry))
            }
            Err(fault) => {
                self.left = 0;
                Some(Err(fault.within(self.end - self.rest.len())))
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(usize::from(self.left)))
    }
}

/// What maps, vectors and series may say for all their entries, in this order on the wire.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    pub(super) set_definitions: Option<&'a [u8]>,
    pub(super) summary: Option<&'a [u8]>,
    pub(super) count_hint: Option<u32>,
}

/// Which bits of a container's first byte say that a part of [`Shared`] is there.
#[derive(Clone, Copy)]
pub(super) struct SharedBits {
    pub(super) set_definitions: u8,
    pub(super) summary: u8,
    pub(super) count_hint: u8,
}

impl<'a> Shared<'a> {
    pub(super) fn read(flags: u8, bits: SharedBits, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let has = |bit: u8| flags & bit != 0;
        Ok(Self {
            set_definitions: if has(bits.set_definitions) {
                Some(cursor.b15("set definitions")?)
            } else {
                None
            },
            summary: if has(bits.summary) { Some(cursor.b15("summary")?) } else { None },
            count_hint: if has(bits.count_hint) { Some(cursor.u30("count hint")?) } else { None },
        })
    }
}

//! Common parts of filter lists, maps, vectors and series: a head, then a count and entries.
//!
//! Each of the four types is this view with a head of its own, which reads the entries one after the other.

use super::{Cursor, DataType, SetDefinitions};
use crate::Malformed;

/// Head of a container, which reads the entries. Only heads of this crate implement it.
pub trait Head<'a>: Copy {
    /// Type of an entry.
    type Entry;

    /// Returns the type of the entries' data, unless an entry states its own.
    fn container(&self) -> DataType;

    /// Returns the parts that all entries share; none, unless the container can have them.
    #[doc(hidden)]
    fn shared(&self) -> Shared<'a> {
        Shared { set_definitions: None, summary: None, count_hint: None }
    }

    /// Returns the set definitions in wire form.
    fn set_definitions(&self) -> Option<&'a [u8]> {
        self.shared().set_definitions
    }

    /// Returns the data that all entries share.
    fn summary(&self) -> Option<&'a [u8]> {
        self.shared().summary
    }

    /// Reads the entry at `cursor`.
    #[doc(hidden)]
    fn read_entry(&self, cursor: &mut Cursor<'a>) -> Result<Self::Entry, Malformed>;
}

/// View of a head and of counted entries, borrowed from their message.
///
/// Reading the head does not check the entries; iteration checks them one by one.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a, H> {
    head: H,
    count: u16,
    entries: &'a [u8],
    /// Length of the whole container: offsets of faults count from its start.
    end: usize,
}

impl<'a, H: Head<'a>> Entries<'a, H> {
    /// Returns a container of `end` bytes; `count` entries begin at `cursor` and occupy the last bytes.
    pub(super) fn behind(head: H, count: u16, cursor: &Cursor<'a>, end: usize) -> Self {
        Self { head, count, entries: cursor.rest(), end }
    }

    /// Returns the head.
    #[inline]
    #[must_use]
    pub const fn head(&self) -> &H {
        &self.head
    }

    /// Returns the number of entries that the container states.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns `true` if there is no entry.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the set definitions for the lists in this container, including its summary; none if the container has
    /// none.
    ///
    /// # Errors
    ///
    /// Fails if a definition is truncated or has an invalid number.
    pub fn sets(&self) -> Result<SetDefinitions<'a>, Malformed> {
        match self.head.set_definitions() {
            Some(bytes) => SetDefinitions::parse(bytes, self.head.container()),
            None => Ok(SetDefinitions::NONE),
        }
    }

    /// Returns the entries in order. Iteration ends after a fault.
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

/// Iterator over entries in order. It ends after a fault.
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

/// Data that maps, vectors and series can share among all entries, in wire order.
#[derive(Debug, Clone, Copy)]
pub struct Shared<'a> {
    pub(super) set_definitions: Option<&'a [u8]>,
    pub(super) summary: Option<&'a [u8]>,
    pub(super) count_hint: Option<u32>,
}

/// Bits of a container's first byte that mark the parts of [`Shared`] as present.
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
            set_definitions: has(bits.set_definitions).then(|| cursor.b15("set definitions")).transpose()?,
            summary: has(bits.summary).then(|| cursor.b15("summary")).transpose()?,
            count_hint: has(bits.count_hint).then(|| cursor.u30("count hint")).transpose()?,
        })
    }
}

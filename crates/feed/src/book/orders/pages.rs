//! Contiguous orders, in pages by reference.

use super::StoredOrder;
use super::table::Table;
use crate::memory::{Piece, Pieces};
use crate::processor::prefetch;

/// Number of orders of a page: 16 KiB. Small enough to be scanned in half a microsecond when its remaining orders move to the table.
const PAGE: usize = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 10;

/// Number of references to examine before they are classified as dense or not.
const SEEN: u32 = 256;

/// Maximum number of places for each dense reference on average, as a power of two: at worst half of the pages are empty.
const SPARSEST: u32 = 2;

/// Maximum number of low bits that all references may share, such as NASDAQ's two: they rise by four.
const MOST_SHARED: u32 = 6;

/// Maximum number of pages by which a new page may be ahead of the newest.
const AHEAD: u64 = 4;

/// Minimum number of orders for which a page was worth its cost.
const WORTH: u32 = 16;

/// Number of successive pages below [`WORTH`] after which references no longer count as dense.
const STRIKES: u32 = 64;

/// Not a page number: a reference has 64 bits, of which the place in a page takes ten.
const NOBODY: u64 = u64::MAX;

/// A window over the newest references: a table of pages by page number. The newer of two pages with the same place replaces the older.
#[derive(Debug)]
pub(super) struct Pages {
    entries: Box<[Entry]>,
    /// Number of low bits that all references share; `shift` is that plus the bits of the place in a page.
    shared: u32,
    shift: u32,
    dense: bool,
    /// The newest page.
    front: u64,
    /// The highest reference that was moved to the table since the table was last empty.
    highest_left: Option<u64>,
    /// Free pages, all of them blank.
    blank: Vec<Piece<Page>>,
    pieces: Pieces<Page>,
    seen: Seen,
    strikes: u32,
    most_entries: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Page([StoredOrder; PAGE]);

/// 32 bytes, on one cache line.
#[derive(Debug)]
#[repr(align(32))]
struct Entry {
    number: u64,
    page: Option<Piece<Page>>,
    /// In the lower half the present number of orders, in the upper half the number ever added.
    orders: u32,
    mixed: bool,
}

/// References under examination before they are classified as dense.
#[derive(Debug, Default)]
struct Seen {
    count: u32,
    lowest: u64,
    highest: u64,
    differing: u64,
}

/// The place of an order on a page, occupied or not.
pub(in super::super) struct OrderPlace<'a> {
    pub(in super::super) order: &'a mut StoredOrder,
    /// The bits of the reference that the place does not determine.
    pub(in super::super) tag: u8,
    orders: &'a mut u32,
    mixed: &'a mut bool,
}

impl OrderPlace<'_> {
    /// Returns `true` if the order in the place has the reference.
    #[inline(always)]
    pub(in super::super) const fn is_its(&self) -> bool {
        self.order.shares != 0 && self.order.mark >> 1 == self.tag
    }

    /// Returns `true` if the reference may be in the table when it is not here.
    #[inline(always)]
    pub(in super::super) const fn is_mixed(&self) -> bool {
        *self.mixed
    }

    /// Counts an added order.
    #[inline(always)]
    pub(in super::super) const fn came(self) {
        *self.orders = self.orders.wrapping_add(0x1_0001);
    }

    /// Counts a removed order; returns `true` if it was the last one of the page.
    #[inline(always)]
    pub(in super::super) const fn went(self) -> bool {
        *self.orders = self.orders.wrapping_sub(1);
        *self.orders as u16 == 0
    }

    /// Counts an added order, a removed one, or neither, without a branch. Returns `true` if the page is empty.
    #[inline(always)]
    pub(in super::super) const fn changed(self, came: bool, went: bool) -> bool {
        *self.orders = self.orders.wrapping_add(came as u32 * 0x1_0001).wrapping_sub(went as u32);
        *self.orders as u16 == 0
    }

    /// Records that a reference of this page is in the table.
    pub(in super::super) const fn mix(self) {
        *self.mixed = true;
    }
}

const _: () = assert!(size_of::<Entry>() == 32);

const fn entry() -> Entry {
    Entry { number: NOBODY, page: None, orders: 0, mixed: false }
}

impl Pages {
    /// Creates an empty set with a capacity of at most four times `limit` orders.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            entries: Box::new([entry()]),
            shared: 0,
            shift: PAGE_BITS,
            dense: false,
            front: 0,
            highest_left: None,
            blank: Vec::new(),
            pieces: Pieces::new(),
            seen: Seen::default(),
            strikes: 0,
            most_entries: Self::most_entries(limit),
        }
    }

    fn most_entries(limit: usize) -> usize {
        (limit.saturating_mul(4) / PAGE).clamp(4, 1 << 24).next_power_of_two()
    }

    /// Returns the maximum memory in bytes.
    #[cfg(test)]
    pub(super) fn most_bytes(limit: usize) -> usize {
        Self::most_entries(limit) * (size_of::<Entry>() + 2 * size_of::<Page>())
    }

    pub(super) fn bytes(&self) -> usize {
        let pages = self.entries.iter().filter(|entry| entry.page.is_some()).count() + self.blank.len();
        self.entries.len() * size_of::<Entry>() + pages * size_of::<Page>() + self.pieces.spare_bytes()
    }

    pub(super) fn clear(&mut self) {
        let most_entries = self.most_entries;
        *self = Self { most_entries, ..Self::new(0) };
    }

    #[inline(always)]
    fn at(&self, number: u64) -> usize {
        number as usize & (self.entries.len() - 1)
    }

    #[inline(always)]
    pub(super) const fn tag(&self, reference: u64) -> u8 {
        (reference & ((1 << self.shared) - 1)) as u8
    }

    /// Returns the place of a reference, if its page exists.
    #[inline(always)]
    pub(super) fn place(&mut self, reference: u64) -> Option<OrderPlace<'_>> {
        let number = reference >> self.shift;
        let (at, tag) = (self.at(number), self.tag(reference));
        let entry = &mut self.entries[at];
        if entry.number != number {
            return None;
        }
        let order = &mut entry.page.as_mut()?.0[(reference >> self.shared) as usize % PAGE];
        Some(OrderPlace { order, tag, orders: &mut entry.orders, mixed: &mut entry.mixed })
    }

    /// Returns the order; otherwise `Err(true)` if it may be in the table.
    #[inline]
    pub(super) fn order(&self, reference: u64) -> Result<StoredOrder, bool> {
        let number = reference >> self.shift;
        let entry = &self.entries[self.at(number)];
        let Some(page) = entry.page.as_ref().filter(|_| entry.number == number) else { return Err(true) };
        let order = page.0[(reference >> self.shared) as usize % PAGE];
        if order.shares != 0 && order.mark >> 1 == self.tag(reference) { Ok(order) } else { Err(entry.mixed) }
    }

    /// Prefetches and returns the place of a reference, if its page exists.
    #[inline(always)]
    pub(super) fn near(&self, reference: u64) -> Option<&StoredOrder> {
        let number = reference >> self.shift;
        let entry = &self.entries[self.at(number)];
        let page = entry.page.as_ref().filter(|_| entry.number == number)?;
        let order = &page.0[(reference >> self.shared) as usize % PAGE];
        prefetch(order);
        Some(order)
    }

    /// Records that an order is about to be added to the table.
    pub(super) fn has_left(&mut self, reference: u64, table_was_empty: bool) {
        let before = self.highest_left.filter(|_| !table_was_empty);
        self.highest_left = Some(before.map_or(reference, |before| before.max(reference)));
    }

    /// Frees the page of a reference, which has become empty, except for the newest page.
    pub(super) fn emptied(&mut self, reference: u64) {
        let number = reference >> self.shift;
        let at = self.at(number);
        let entry = &mut self.entries[at];
        if entry.number == number
            && number != self.front
            && let Some(page) = entry.page.take()
        {
            entry.number = NOBODY;
            self.blank.push(page);
        }
    }

    /// Creates a page for the reference of a new order, if references are dense and the page is the next one.
    pub(super) fn make_room(&mut self, reference: u64, table: &mut Table) {
        let number = reference >> self.shift;
        if self.dense && self.entries[self.at(number)].number == number {
            return;
        }
        if self.dense && number.wrapping_sub(self.front) <= AHEAD {
            self.claim(number, table);
        } else {
            self.watch(reference, table);
        }
    }

    #[cold]
    fn claim(&mut self, number: u64, table: &mut Table) {
        let at = self.at(self.front);
        let left = &self.entries[at];
        if left.number == self.front {
            let worth = left.orders >> 16 >= WORTH;
            // An empty page was kept because it was the newest.
            if left.orders as u16 == 0 && number != self.front {
                let front = self.front << self.shift;
                self.front = number;
                self.emptied(front);
            }
            self.strikes = if worth { 0 } else { self.strikes + 1 };
            if self.strikes >= STRIKES {
                self.dense = false;
                self.strikes = 0;
                return;
            }
        }
        self.front = number;
        let at = self.at(number);
        self.move_out(at, table);
        let highest_left = self.highest_left.filter(|_| table.len() > 0);
        let page = self.blank.pop().unwrap_or_else(|| self.pieces.take(Page([StoredOrder::default(); PAGE])));
        self.entries[at] = Entry {
            number,
            page: Some(page),
            orders: 0,
            mixed: highest_left.is_some_and(|highest| number <= highest >> self.shift),
        };
    }

    /// Moves the remaining orders of a page to the table, and blanks the page.
    fn move_out(&mut self, at: usize, table: &mut Table) {
        let Some(mut page) = self.entries[at].page.take() else { return };
        let Entry { number, orders, .. } = self.entries[at];
        self.entries[at].number = NOBODY;
        if orders as u16 > 0 {
            for (k, order) in page.0.iter_mut().enumerate() {
                if order.shares == 0 {
                    continue;
                }
                let tag = u64::from(order.mark >> 1);
                let reference = number << self.shift | (k as u64) << self.shared | tag;
                let before = self.highest_left.filter(|_| table.len() > 0);
                self.highest_left = Some(before.map_or(reference, |before| before.max(reference)));
                table.insert(reference, StoredOrder { mark: order.mark & 1, ..*order });
            }
            page.0.fill(StoredOrder::default());
        }
        self.blank.push(page);
    }

    /// Examines references without a page, until they turn out to be dense.
    #[cold]
    fn watch(&mut self, reference: u64, table: &mut Table) {
        let seen = &mut self.seen;
        if seen.count == 0 {
            *seen = Seen { count: 0, lowest: reference, highest: reference, differing: 0 };
        }
        seen.count += 1;
        seen.differing |= reference ^ seen.lowest;
        seen.lowest = seen.lowest.min(reference);
        seen.highest = seen.highest.max(reference);
        if seen.count < SEEN {
            return;
        }
        seen.count = 0;
        let shared = seen.differing.trailing_zeros().min(MOST_SHARED);
        if (seen.highest - seen.lowest) >> shared > u64::from(SEEN) << SPARSEST {
            return;
        }
        let highest = seen.highest;
        if self.entries.len() < self.most_entries {
            self.entries = (0..self.most_entries).map(|_| entry()).collect();
        }
        if !self.dense && shared != self.shared {
            // Existing orders have places of another numbering.
            for at in 0..self.entries.len() {
                self.move_out(at, table);
            }
            self.shared = shared;
            self.shift = shared + PAGE_BITS;
        }
        self.dense = true;
        self.front = highest >> self.shift;
    }
}

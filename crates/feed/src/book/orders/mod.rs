//! Every order on the books, by its reference.
//!
//! An exchange assigns references in ascending order with few gaps, so the newest orders are contiguous in [`Pages`], and finding one costs a
//! single load. This is detected, not assumed: orders are stored in a hash [`Table`] until references turn out to be dense, and so are orders that
//! do not fit in a page. When a newer page needs the place of an old one, the remaining orders of the old page move to the table.
//!
//! Each order is in one of the two only. An order can be in the table although its page exists: if another reference has its place, or if it was in
//! the table before the page was created. Such a page is *mixed*, and a reference that is not found in it is looked up in the table.

mod pages;
mod table;

pub(super) use pages::OrderPlace;
use pages::Pages;
use table::Table;

use crate::itch::Side;

/// The stored data of an order: 16 bytes, four to a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct StoredOrder {
    pub(super) price: u32,
    /// 0 if there is no order.
    pub(super) shares: u32,
    /// Its node in the queues, if orders are queued.
    pub(super) node: u32,
    pub(super) locate: u16,
    /// Its side in bit 0; above it the bits of the reference that its place does not determine.
    pub(super) mark: u8,
}

const _: () = assert!(size_of::<StoredOrder>() == 16);

impl StoredOrder {
    /// No order.
    pub(super) const NONE: Self = Self { price: 0, shares: 0, node: u32::MAX, locate: 0, mark: 0 };

    #[inline(always)]
    pub(super) const fn side(&self) -> Side {
        if self.mark & 1 == 0 { Side::Bid } else { Side::Ask }
    }
}

/// The orders, bounded in number.
#[derive(Debug)]
pub(super) struct StoredOrders {
    pages: Pages,
    table: Table,
    len: usize,
    limit: usize,
}

/// The result of adding an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// The order was added.
    New,
    /// Another order has its reference.
    Duplicate,
    /// The maximum number of orders is reached.
    Refused,
}

/// The result of taking shares from an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// The order before the change.
    pub(super) order: StoredOrder,
    /// Shares taken: the requested number, or all shares of the order.
    pub(super) shares: u32,
    /// `true` if no shares are left.
    pub(super) gone: bool,
    /// `true` if more shares were requested than the order had.
    pub(super) excess: bool,
}

impl StoredOrders {
    pub(super) fn new(limit: usize, reserve: usize) -> Self {
        Self { pages: Pages::new(limit), table: Table::new(reserve.min(limit)), len: 0, limit }
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(super) const fn is_full(&self) -> bool {
        self.len >= self.limit
    }

    pub(super) fn clear(&mut self) {
        self.pages.clear();
        self.table.clear();
        self.len = 0;
    }

    /// Returns the present memory of the orders in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.pages.bytes() + self.table.bytes()
    }

    /// Returns the place of a reference on a page, with or without an order. A caller that adds or removes an order there must call [`OrderPlace::came`]
    /// or [`OrderPlace::went`], and [`changed`](Self::changed).
    #[inline(always)]
    pub(super) fn place(&mut self, reference: u64) -> Option<OrderPlace<'_>> {
        self.pages.place(reference)
    }

    /// Updates the number of orders after one was added or removed through its place.
    #[inline(always)]
    pub(super) const fn changed(&mut self, came: bool, went: bool) {
        self.len = self.len + came as usize - went as usize;
    }

    /// Puts an order in a free place, and removes one from its place on a page. The new one comes first: both may be on the same page.
    #[inline(always)]
    pub(super) fn replaced(&mut self, old: u64, new: Option<(u64, StoredOrder)>) {
        if let Some((reference, order)) = new
            && let Some(place) = self.pages.place(reference)
        {
            *place.order = order;
            place.came();
            self.len += 1;
        }
        if let Some(place) = self.pages.place(old) {
            place.order.shares = 0;
            self.len -= 1;
            if place.went() {
                self.emptied(old);
            }
        }
    }

    /// Frees the page of a reference, which has become empty.
    #[cold]
    pub(super) fn emptied(&mut self, reference: u64) {
        self.pages.emptied(reference);
    }

    /// Prefetches the place of an order, and returns it if it is on a page; it may be empty or have another reference.
    #[inline(always)]
    pub(super) fn near(&self, reference: u64) -> &StoredOrder {
        self.pages.near(reference).unwrap_or_else(|| {
            self.table.prefetch(reference);
            &StoredOrder::NONE
        })
    }

    /// Returns the order of a reference.
    #[inline]
    pub(super) fn order(&self, reference: u64) -> Option<StoredOrder> {
        match self.pages.order(reference) {
            Ok(found) => Some(found),
            Err(elsewhere) => elsewhere.then(|| self.table.order(reference)).flatten(),
        }
    }

    /// Adds an order. Allocates if a page or a larger table is needed.
    pub(super) fn add(&mut self, reference: u64, mut order: StoredOrder) -> Added {
        if self.order(reference).is_some() {
            return Added::Duplicate;
        }
        if self.is_full() {
            return Added::Refused;
        }
        self.len += 1;
        self.pages.make_room(reference, &mut self.table);
        match self.pages.place(reference) {
            Some(place) if place.order.shares == 0 => {
                order.mark = order.mark & 1 | place.tag << 1;
                *place.order = order;
                place.came();
            }
            place => {
                if let Some(place) = place {
                    place.mix();
                }
                self.pages.has_left(reference, self.table.len() == 0);
                order.mark &= 1;
                self.table.insert(reference, order);
            }
        }
        Added::New
    }

    /// Takes shares from an order, at most all of them; removes the order if none are left.
    pub(super) fn take(&mut self, reference: u64, shares: u32) -> Option<Taken> {
        let taken = |order: StoredOrder| Taken {
            order,
            shares: shares.min(order.shares),
            gone: shares >= order.shares,
            excess: shares > order.shares,
        };
        let mut elsewhere = true;
        if let Some(place) = self.pages.place(reference) {
            if place.is_its() {
                let taken = taken(*place.order);
                place.order.shares -= taken.shares;
                if taken.gone {
                    self.len -= 1;
                    if place.went() {
                        self.pages.emptied(reference);
                    }
                }
                return Some(taken);
            }
            elsewhere = place.is_mixed();
        }
        if !elsewhere {
            return None;
        }
        let order = self.table.get_mut(reference)?;
        let taken = taken(*order);
        if taken.gone {
            self.len -= 1;
            self.table.remove(reference);
        } else {
            order.shares -= taken.shares;
        }
        Some(taken)
    }

    /// Removes an order.
    pub(super) fn remove(&mut self, reference: u64) -> Option<StoredOrder> {
        self.take(reference, u32::MAX).map(|taken| taken.order)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn order(shares: u32, side: u8) -> StoredOrder {
        StoredOrder { price: 7, shares, node: 0, locate: 3, mark: side }
    }

    /// Ascending references, some left out, some late, some arbitrary.
    fn references() -> impl Strategy<Value = Vec<u64>> {
        let step = prop_oneof![
            60 => 1_u64..3, 5 => 3_u64..2_000, 1 => Just(1_u64 << 40), 1 => Just(u64::MAX / 3), 3 => Just(0)
        ];
        (prop::collection::vec(step, 600..3_000), 0_u32..4).prop_map(|(steps, shift)| {
            let mut at = 0_u64;
            steps
                .into_iter()
                .map(|step| {
                    if step > 1 << 30 {
                        return at.wrapping_add(step);
                    }
                    at += step << shift;
                    if step == 0 { at / 2 } else { at }
                })
                .collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

        #[test]
        fn what_was_added_is_found_until_it_is_gone(references in references(), seed in any::<u64>()) {
            let mut orders = StoredOrders::new(900, 0);
            let mut model: HashMap<u64, u32> = HashMap::new();
            let mut random = seed | 1;
            for reference in references {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let wanted = if model.contains_key(&reference) {
                    Added::Duplicate
                } else if model.len() >= 900 {
                    Added::Refused
                } else {
                    model.insert(reference, 10);
                    Added::New
                };
                prop_assert_eq!(orders.add(reference, order(10, (random >> 40) as u8 & 1)), wanted);
                let mut victim = *model.keys().nth((random >> 33) as usize % model.len()).unwrap();
                // Most orders are removed soon; the reference of a neighbour is not found.
                if random >> 61 != 0 {
                    victim = reference;
                }
                if random >> 60 & 1 == 0 {
                    victim ^= 1;
                }
                let shares = (random >> 50) as u32 % 16;
                let taken = orders.take(victim, shares);
                let before = model.get(&victim).copied();
                prop_assert_eq!(taken.map(|taken| taken.order.shares), before);
                if let Some(before) = before {
                    let left = before.saturating_sub(shares);
                    prop_assert_eq!(taken.map(|taken| (taken.gone, taken.excess)), Some((left == 0, shares > before)));
                    if left == 0 { model.remove(&victim); } else { model.insert(victim, left); }
                }
                prop_assert_eq!(orders.len(), model.len());
                prop_assert_eq!(orders.order(victim).map(|order| order.shares), model.get(&victim).copied());
            }
            for (reference, shares) in &model {
                prop_assert_eq!(orders.order(*reference).map(|order| order.shares), Some(*shares));
            }
            let bound = Pages::most_bytes(900) + 900 * 24 * 5 + 64 * 1024;
            prop_assert!(orders.bytes() <= bound, "{} of {bound}", orders.bytes());
            orders.clear();
            prop_assert_eq!(orders.len(), 0);
            prop_assert!(model.keys().all(|reference| orders.order(*reference).is_none()));
        }
    }

    #[test]
    fn dense_references_live_on_pages_and_few_survivors_in_the_table() {
        let mut orders = StoredOrders::new(10_000, 0);
        // Every hundredth order stays.
        for k in 0..1_000_000_u64 {
            assert_eq!(orders.add(k * 4, order(1, 0)), Added::New);
            if k % 100 != 0 || k < 990_000 && k % 1_000 != 0 {
                assert!(orders.take(k * 4, 1).is_some_and(|taken| taken.gone));
            }
        }
        assert_eq!(orders.len(), 990 + 100);
        assert!(orders.table.len() > 500, "the old ones: {}", orders.table.len());
        assert!(orders.place(999_999 * 4).is_some());
        assert!(orders.bytes() < Pages::most_bytes(10_000) + 200_000);
        for k in (0..990_000).step_by(1_000).chain((990_000..1_000_000).step_by(100)) {
            assert!(orders.remove(k * 4).is_some(), "{k}");
        }
        assert_eq!((orders.len(), orders.table.len()), (0, 0));
    }

    #[test]
    fn two_references_of_one_place_are_told_apart() {
        let mut orders = StoredOrders::new(10_000, 0);
        // In steps of four until that is detected, then in steps of one.
        for k in 0..3_000_u64 {
            assert_eq!(orders.add(k * 4, order(1, 0)), Added::New);
        }
        assert_eq!(orders.pages.tag(3), 3, "two bits are shared");
        for reference in 9_000..9_400_u64 {
            let wanted = if reference % 4 == 0 { Added::Duplicate } else { Added::New };
            assert_eq!(orders.add(reference, order(2 + (reference % 4) as u32, 1)), wanted, "{reference}");
        }
        for reference in 9_000..9_400_u64 {
            let shares = if reference % 4 == 0 { 1 } else { 2 + (reference % 4) as u32 };
            assert_eq!(orders.order(reference).map(|order| order.shares), Some(shares), "{reference}");
            assert_eq!(orders.add(reference, order(9, 0)), Added::Duplicate);
        }
        for reference in (9_000..9_400_u64).rev() {
            assert!(orders.remove(reference).is_some(), "{reference}");
            assert!(orders.take(reference, 1).is_none(), "{reference}");
        }
        assert_eq!((orders.len(), orders.table.len()), (2_900, 256));
    }

    #[test]
    fn references_without_order_stay_in_the_table() {
        let mut orders = StoredOrders::new(100_000, 0);
        for k in 0..50_000_u64 {
            assert_eq!(orders.add(k.wrapping_mul(0x9E37_79B9_7F4A_7C15), order(1, 1)), Added::New);
        }
        assert_eq!(orders.table.len(), 50_000);
        assert!(orders.pages.bytes() < 1_000);
    }
}

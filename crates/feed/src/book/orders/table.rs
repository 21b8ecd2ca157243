//! The hash table of orders.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use super::StoredOrder;
use crate::processor::prefetch;

/// Maximum load before the table doubles: nine in twenty places. Fuller tables have long runs.
const FULLEST: (usize, usize) = (9, 20);

const LEAST: usize = 64;

/// Open addressing with linear probing and no tombstones: a removal closes its gap.
///
/// References come from outside, so the hash has a new seed in each process: a multiplication by a secret number, both halves of the product
/// folded. Memory: 24 bytes for each place, 53 to 107 for each order.
#[derive(Debug)]
pub(super) struct Table {
    places: Box<[Entry]>,
    len: usize,
    secret: (u64, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    reference: u64,
    order: StoredOrder,
}

impl Table {
    /// Creates a table with capacity for `reserve` orders.
    pub(super) fn new(reserve: usize) -> Self {
        let random = |k: u64| {
            let mut hasher = RandomState::default().build_hasher();
            hasher.write_u64(k);
            hasher.finish()
        };
        let places = (reserve.saturating_mul(FULLEST.1) / FULLEST.0).next_power_of_two().max(LEAST);
        Self { places: vec![Entry::default(); places].into(), len: 0, secret: (random(1), random(2) | 1) }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.places)
    }

    pub(super) fn clear(&mut self) {
        self.places.fill(Entry::default());
        self.len = 0;
    }

    /// Returns the first place to probe for a reference.
    #[inline(always)]
    fn home(&self, reference: u64) -> usize {
        let product = u128::from(reference ^ self.secret.0) * u128::from(self.secret.1);
        ((product >> 64) as u64 ^ product as u64) as usize & (self.places.len() - 1)
    }

    #[inline(always)]
    fn find(&self, reference: u64) -> Result<usize, usize> {
        let mut at = self.home(reference);
        // Ends, because more than half of the places are free.
        loop {
            let entry = &self.places[at];
            if entry.order.shares == 0 {
                return Err(at);
            }
            if entry.reference == reference {
                return Ok(at);
            }
            at = (at + 1) & (self.places.len() - 1);
        }
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, reference: u64) {
        prefetch(&self.places[self.home(reference)]);
    }

    #[inline]
    pub(super) fn order(&self, reference: u64) -> Option<StoredOrder> {
        self.find(reference).ok().map(|at| self.places[at].order)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, reference: u64) -> Option<&mut StoredOrder> {
        match self.find(reference) {
            Ok(at) => Some(&mut self.places[at].order),
            Err(_) => None,
        }
    }

    /// Inserts an order that is not in the table.
    #[inline]
    pub(super) fn insert(&mut self, reference: u64, order: StoredOrder) {
        if (self.len + 1) * FULLEST.1 > self.places.len() * FULLEST.0 {
            self.grow();
        }
        let (Ok(at) | Err(at)) = self.find(reference);
        self.places[at] = Entry { reference, order };
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![Entry::default(); self.places.len() * 2].into();
        for entry in std::mem::replace(&mut self.places, larger) {
            if entry.order.shares != 0 {
                let (Ok(at) | Err(at)) = self.find(entry.reference);
                self.places[at] = entry;
            }
        }
    }

    /// Removes an order, and moves up later entries that it had displaced.
    #[inline]
    pub(super) fn remove(&mut self, reference: u64) {
        let Ok(mut hole) = self.find(reference) else { return };
        let mask = self.places.len() - 1;
        self.len -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.places[at];
            if entry.order.shares == 0 {
                break;
            }
            // The entry's home is at the hole or before it.
            let pushed = at.wrapping_sub(self.home(entry.reference)) & mask;
            if pushed >= at.wrapping_sub(hole) & mask {
                self.places[hole] = entry;
                hole = at;
            }
        }
        self.places[hole] = Entry::default();
    }
}

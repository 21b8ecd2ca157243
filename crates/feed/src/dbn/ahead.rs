//! Prefetching what the next orders need.

use super::books::{DbnBook, DbnBooks};
use super::ladder::DbnLadder;
use super::record::{Header, RecordKind};
use crate::processor::prefetch;

/// Number of records that are prefetched together.
const BATCH: u32 = 16;
/// Number of live orders from which they exceed the second-level cache, so that prefetching is worth its time.
const MANY: usize = 20_000;
/// Offset of an order's id in its record.
const ORDER_ID: usize = 16;

impl DbnBooks {
    /// Prefetches what the next records need. `ahead` are the bytes behind the last record, as [`File::ahead`](super::File::ahead) returns them.
    /// Call it after each record: it acts once for 16 of them, and only with many orders, which it makes up to twice as fast.
    #[inline]
    pub fn expect(&mut self, ahead: &[u8]) {
        if self.expected > 0 {
            self.expected -= 1;
        } else if self.live_orders() > MANY {
            self.prefetch(ahead);
            self.expected = BATCH - 1;
        }
    }

    /// Prefetches the books of a batch first, then their tables, then the orders in them, and then the best levels: no step waits for one line alone.
    fn prefetch(&self, ahead: &[u8]) {
        let mut coming: [Option<(&DbnBook, u64)>; BATCH as usize] = [None; BATCH as usize];
        let mut rest = ahead;
        for coming in &mut coming {
            let Some((record, behind)) =
                rest.first().and_then(|words| rest.split_at_checked(usize::from(*words) * 4))
            else {
                break;
            };
            *coming = self.order_of(record);
            rest = behind;
        }
        let coming = coming.iter().flatten();
        coming.clone().filter_map(|(book, _)| book.orders()).for_each(prefetch);
        coming
            .clone()
            .filter_map(|(book, id)| Some(book.orders()?.ladder_of(*id)))
            .for_each(DbnLadder::prefetch);
    }

    /// Returns the book and the id of an order, and prefetches the book.
    #[inline]
    fn order_of(&self, record: &[u8]) -> Option<(&DbnBook, u64)> {
        let header = Header::of(record).filter(|header| header.kind == RecordKind::ORDER)?;
        let id = record.get(ORDER_ID..)?.first_chunk()?;
        let book = self.of(&header)?;
        book.prefetch();
        Some((book, u64::from_le_bytes(*id)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DbnSettings, DbnSymbols, decode};
    use super::*;

    fn order(id: u64, instrument: u32) -> [u8; 56] {
        let mut record = [0; 56];
        record[..2].copy_from_slice(&[14, RecordKind::ORDER.0]);
        record[4..8].copy_from_slice(&instrument.to_le_bytes());
        record[ORDER_ID..][..8].copy_from_slice(&id.to_le_bytes());
        record[24..32].copy_from_slice(&(id as i64 % 50).to_le_bytes());
        record[32] = 1;
        record[36] = 0x80;
        record[38..40].copy_from_slice(b"AB");
        record
    }

    #[test]
    fn whatever_is_ahead_is_only_looked_at() {
        let mut books = DbnBooks::new(DbnSettings::default(), DbnSymbols::default());
        for id in 0..=MANY as u64 {
            let record = order(id, id as u32 % 7);
            let _ = books.apply(&Header::of(&record).unwrap(), &decode(&record).unwrap());
            books.expect(&[]);
        }
        let whole = [order(5, 5), order(1 << 60, 5), order(6, 1 << 30)].concat();
        let levels = |books: &DbnBooks| {
            books
                .iter()
                .map(|(_, book)| book.levels(crate::itch::Side::Bid).collect())
                .collect::<Vec<Vec<_>>>()
        };
        let before = levels(&books);
        for ahead in [
            &whole[..],
            &whole[..100],
            &whole[..57],
            &whole[..9],
            &[0; 64],
            &[255; 300],
            &[1; 300],
            &[14, 160],
        ] {
            books.expected = 0;
            books.expect(ahead);
            assert_eq!(books.expected, BATCH - 1, "it acts");
        }
        assert_eq!((levels(&books), books.live_orders()), (before, MANY + 1));
    }
}

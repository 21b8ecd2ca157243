//! Rows that a publisher sends together, as ticks that become visible together.
//!
//! The receiver of rows writes an [`Update`] of them. The plant's thread makes a tick of each row, with its own sequence and the row itself as
//! source, and commits all ticks at once. All ticks of an update carry its number, from 1, as
//! [`feed_seq`](crate::tick::Header::feed_seq), and the last tick is [marked](Flags::LAST_ROW): an update that takes much of the ring comes in
//! parts, and a reader must know when it is complete.

use tapeline_measure::Nanos;
use tapeline_omm::rwf::{self, DataType, Domain, State as ItemState, UpdateType};

use crate::body;
use crate::publish::{FRAME_BYTES, Publish, Refused};
use crate::sequencer::{Origin, Sequencer, Stamps, Time, Together};
use crate::tick::{Flags, HEADER_BYTES, Kind, MAX_NAME_BYTES};
use crate::{ItemId, State};

/// Bytes before each row of an [`Update`]: the lengths of name, fields and source.
const LENGTHS: usize = 5;
/// Maximum size of the header of a row's message in bytes.
const MESSAGE_HEADER_BYTES: usize = 64;

/// Rows that were sent together.
#[derive(Debug, Default)]
pub struct Update {
    bytes: Vec<u8>,
    rows: usize,
    arrived: Nanos,
}

/// The error for a row that does not fit in a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// One row of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// The item's name; empty for none.
    pub name: &'a str,
    /// The fields of its message: a field list.
    pub fields: &'a [u8],
    /// The row as its publisher sent it.
    pub source: &'a [u8],
}

impl Update {
    /// Empties the update, for rows that have arrived now. Keeps its memory.
    pub fn begin(&mut self, arrived: Nanos) {
        self.bytes.clear();
        (self.rows, self.arrived) = (0, arrived);
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The name has more than [`MAX_NAME_BYTES`], the fields or the source more than 65,535 bytes.
    pub fn push(&mut self, row: Row<'_>) -> Result<(), TooLong> {
        let Row { name, fields, source } = row;
        let lengths = (u8::try_from(name.len()), u16::try_from(fields.len()), u16::try_from(source.len()));
        let (Ok(name_len), Ok(fields_len), Ok(source_len)) = lengths else { return Err(TooLong) };
        const { assert!(MAX_NAME_BYTES == u8::MAX as usize) };
        self.bytes.push(name_len);
        self.bytes.extend_from_slice(&fields_len.to_le_bytes());
        self.bytes.extend_from_slice(&source_len.to_le_bytes());
        for part in [name.as_bytes(), fields, source] {
            self.bytes.extend_from_slice(part);
        }
        self.rows += 1;
        Ok(())
    }

    /// Returns the number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Returns `true` if there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the size of the rows in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the maximum size of the rows' ticks on a ring in bytes.
    #[must_use]
    pub const fn ring_bytes(&self) -> usize {
        self.bytes.len() + self.rows * (HEADER_BYTES + MESSAGE_HEADER_BYTES + FRAME_BYTES)
    }

    /// Returns the size of the allocated memory in bytes.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        // It was valid text when it was added.
        let name = |name| std::str::from_utf8(name).unwrap_or_default();
        self.parts().map(move |Parts { name: its, fields, source }| Row { name: name(its), fields, source })
    }

    fn parts(&self) -> PartsOfRows<'_> {
        PartsOfRows(&self.bytes)
    }
}

/// One row of an update, with its name as bytes.
#[derive(Clone, Copy)]
struct Parts<'a> {
    name: &'a [u8],
    fields: &'a [u8],
    source: &'a [u8],
}

/// An iterator over the rows of an update.
#[derive(Clone)]
struct PartsOfRows<'a>(&'a [u8]);

impl<'a> Iterator for PartsOfRows<'a> {
    type Item = Parts<'a>;

    #[inline]
    fn next(&mut self) -> Option<Parts<'a>> {
        let ([name, f, g, s, t], rest) = self.0.split_first_chunk::<LENGTHS>()?;
        let (name, rest) = rest.split_at_checked(usize::from(*name))?;
        let (fields, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([*f, *g])))?;
        let (source, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([*s, *t])))?;
        self.0 = rest;
        Some(Parts { name, fields, source })
    }
}

/// The counters of a [`RowChannel`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounters {
    /// Published updates.
    pub updates: u64,
    /// Rows of those updates, each a tick.
    pub rows: u64,
    /// Rows without an item, because the plant has no place for it.
    pub items_refused: u64,
}

/// The channel of rows, which turns updates into ticks.
#[derive(Debug)]
pub struct RowChannel {
    number: u16,
    refresh: Box<[u8]>,
    update: Box<[u8]>,
    /// The number of the last update.
    last: u64,
    /// Item and kind of each tick of an update.
    ticks: Vec<(ItemId, Kind)>,
    counters: RowCounters,
}

impl RowChannel {
    /// Creates the channel with this number in the plant.
    #[must_use]
    pub fn new(number: u16) -> Self {
        let mut room = [0; MESSAGE_HEADER_BYTES];
        let (domain, container) = (Domain::MARKET_PRICE, DataType::FIELD_LIST);
        let update = rwf::update_header(&mut room, domain, 0, UpdateType::UNSPECIFIED, container);
        // Both fit easily.
        let update = room[..update.unwrap_or(0)].into();
        let refresh = body::image(&mut room, (domain, container), ItemState::OPEN_OK, false);
        let refresh = room[..refresh.unwrap_or(0)].into();
        Self { number, refresh, update, last: 0, ticks: Vec::new(), counters: RowCounters::default() }
    }

    /// Publishes that the channel has received data.
    fn begin<P: Publish>(&self, to: &mut Sequencer<P>, time: &impl Time) -> Result<(), Refused> {
        let stamps = Stamps::at(time.now());
        let origin = Origin { channel: self.number, state: State::Live, ..Origin::default() };
        let write = |out: &mut [u8]| body::state(out, State::Initial, State::Live, 0, None).unwrap_or(0);
        to.tick(Kind::Status, Flags::STATE, &origin, stamps, time, write).map(|_| ())
    }

    /// Returns the maximum total size of name, fields and source of a row in bytes, for a maximum tick size of `most_tick` bytes.
    #[must_use]
    pub fn most_row(&self, most_tick: usize) -> usize {
        most_tick.saturating_sub(HEADER_BYTES + self.refresh.len().max(self.update.len()))
    }

    /// Publishes the rows of an update. The first row of an item is its image. Allocates only for new items.
    ///
    /// # Errors
    /// As [`Sequencer::tick`]: none is published with a row that is longer than [`most_row`](Self::most_row).
    pub fn publish<P: Publish>(
        &mut self,
        update: &Update,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        if update.is_empty() {
            return Ok(());
        }
        if self.last == 0 {
            self.begin(to, time)?;
        }
        self.ticks.clear();
        for row in update.rows() {
            let tick = if row.name.is_empty() {
                (ItemId(0), Kind::Update)
            } else if let Some(item) = to.find_item(row.name) {
                (item, Kind::Update)
            } else if let Ok(item) = to.item_by(self.number, row.name) {
                (item, Kind::Refresh)
            } else {
                self.counters.items_refused += 1;
                (ItemId(0), Kind::Update)
            };
            self.ticks.push(tick);
        }
        let feed_seq = self.last + 1;
        let stamps = Stamps { decoded: time.now(), ..Stamps::at(update.arrived) };
        let last = update.len() - 1;
        let origin = Origin { channel: self.number, state: State::Live, feed_seq, ..Origin::default() };
        let ticks = self.ticks.iter().zip(update.parts()).enumerate().map(|(at, (tick, row))| {
            let (item, kind) = *tick;
            Together {
                kind,
                flags: if at == last { Flags::SOURCE | Flags::LAST_ROW } else { Flags::SOURCE },
                item,
                name: row.name,
                header: if kind == Kind::Refresh { &self.refresh } else { &self.update },
                payload: row.fields,
                source: row.source,
            }
        });
        to.ticks_together(ticks, &origin, stamps, time)?;
        self.last = feed_seq;
        self.counters.updates += 1;
        self.counters.rows += update.rows as u64;
        Ok(())
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> RowCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Items;
    use crate::tick::Tick;

    /// Stores ticks of at most `most` bytes.
    struct Kept {
        most: usize,
        ticks: Vec<Vec<u8>>,
    }

    impl Publish for Kept {
        fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
            let mut frame = vec![0; len];
            let len = fill(&mut frame);
            if len > self.most {
                return Err(Refused::TooLong { len, max: self.most });
            }
            frame.truncate(len);
            self.ticks.push(frame);
            Ok(())
        }
    }

    struct Still;

    impl Time for Still {
        fn now(&self) -> Nanos {
            Nanos(7)
        }
    }

    /// Returns an update with rows of an item with these sources.
    fn update(name: &str, sources: &[&[u8]]) -> Update {
        let mut update = Update::default();
        update.begin(Nanos(5));
        for source in sources {
            update.push(Row { name, fields: &[], source }).unwrap();
        }
        update
    }

    #[test]
    fn the_last_row_of_an_update_says_so_and_the_longest_fits() {
        let most_tick = 200;
        let mut channel = RowChannel::new(3);
        let most = channel.most_row(most_tick) - "A".len();
        let to = Kept { most: most_tick, ticks: Vec::new() };
        let mut to = Sequencer::new(1, Items::new(8), to);
        let longest = vec![b'x'; most];
        for sources in [&[&longest[..], b"b", b"c"][..], &[b"d"]] {
            channel.publish(&update("A", sources), &mut to, &Still).unwrap();
        }
        let longer = vec![b'x'; most + 1];
        let refused = channel.publish(&update("B", &[&longer]), &mut to, &Still);
        assert!(matches!(refused, Err(Refused::TooLong { .. })), "{refused:?}");
        let kept = to.into_publisher().ticks;
        let rows = kept.iter().map(|tick| Tick::parse(tick).unwrap()).filter(|tick| !tick.source.is_empty());
        let found: Vec<_> =
            rows.map(|tick| (tick.header.feed_seq, tick.header.flags.contains(Flags::LAST_ROW))).collect();
        assert_eq!(found, [(1, false), (1, false), (1, true), (2, true)]);
        assert_eq!(channel.counters(), RowCounters { updates: 2, rows: 4, items_refused: 0 });
    }
}

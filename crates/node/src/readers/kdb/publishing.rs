//! Rows that kdb+ clients publish, on their way to the plant's thread, which turns them into ticks.

use std::collections::VecDeque;
use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::Thread;

use serde::{Deserialize, Serialize};
use tapeline_kdb::Type;
use tapeline_measure::{Clock, Nanos};
use tapeline_omm::rwf::DataType;
use tapeline_omm::{Fid, FieldListEncoder};
use tapeline_plant::rows::{Row, RowChannel, RowCounters, Update};
use tapeline_plant::{Refused, RingPublish, Sequencer};
use tapeline_tickerplant::{KeptRows, Passing, PassingRow};

use super::fields;
use super::filling::Content;
use crate::numbering::Lending;
use crate::queue::{Bytes, Entry, Exit, bytes, queue};

/// Maximum number of updates queued for the plant's thread; beyond it the publishers' sockets fill up.
const QUEUE: usize = 4_096;
/// Maximum bytes queued; one update may exceed it. Rows that fit in a core's own cache come to the plant's thread faster
/// than those of a long queue, and no row waits for long.
const QUEUE_BYTES: usize = 4 << 20;
/// Rows published per turn; one update may exceed it.
const BATCH: usize = 4_096;
/// Maximum bytes on the ring of rows that this thread publishes in place of the plant's, in ticks that it has not read back:
/// with more, two threads that work at the same time are faster than one, until there are few.
const PUBLISHED_HERE: usize = 64 << 10;
const FEW: usize = 4 << 10;
/// Maximum rows of an update: the feeds wait while they are published.
const MOST_ROWS: usize = 65_536;
/// Maximum bytes of a row's fields.
const FIELDS: usize = u16::MAX as usize;
/// Maximum number of empty updates kept for reuse, and the maximum memory of each in bytes.
const SPARE: usize = 64;
const SPARE_BYTES: usize = 1 << 20;
/// Maximum bytes of the rows that are kept until their ticks come back; one update may exceed it. No more updates are kept
/// than the queue takes. Rows of further updates are read from the ticks.
const KEPT_BYTES: usize = 32 << 20;
/// Maximum bytes of publishers' rows that are on their way: in the queue, and kept until their ticks come back. One
/// update may exceed it.
pub const ROWS_BYTES: usize = QUEUE_BYTES + KEPT_BYTES;

bytes! { Update }

/// How a row of a table is expressed for readers other than kdb+ clients.
#[derive(Clone, Debug, Default)]
pub struct Saying {
    /// Columns with a field, by ascending field id: the column's index and type, the field and its type.
    pub fields: Vec<(usize, Type, Fid, DataType)>,
}

impl Saying {
    /// Selects the columns with fields; of several columns with the same field the first, as a message
    /// contains a field once.
    pub fn of(columns: &[(Option<Content>, Type)]) -> Self {
        let fields = columns.iter().enumerate().filter_map(|(at, (content, kind))| match content {
            Some(Content::Field(fid, is)) => Some((at, *kind, *fid, *is)),
            _ => None,
        });
        let mut fields: Vec<_> = fields.collect();
        fields.sort_by_key(|(_, _, fid, _)| *fid);
        fields.dedup_by_key(|(_, _, fid, _)| *fid);
        Self { fields }
    }
}

/// Totals of published rows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PublishedReport {
    /// Updates that became ticks.
    pub updates: u64,
    /// Rows of those updates; each row is a tick.
    pub rows: u64,
    /// Rows of items beyond the plant's item limit.
    pub items_refused: u64,
}

/// The tickerplant's end.
#[derive(Debug)]
pub struct Giving {
    /// This plant numbers no ticks of its own.
    is_refused: bool,
    to: Entry<Update>,
    /// Empty updates for reuse.
    spare: Receiver<Update>,
    /// Updates that did not fit in the queue, in order.
    held: VecDeque<Update>,
    /// The tickerplant has ticks to read from the ring first: see [`Self::set_behind`].
    is_behind: bool,
    /// The number of the last update taken, counted from 1.
    pub(crate) taken: u64,
    /// Bytes on the ring of each update that was sent and has not come back, in order, and of all together.
    sent: VecDeque<usize>,
    on_their_way: usize,
    /// The last update that has come back.
    come_back: u64,
    /// So many bytes are on their way that the plant's thread publishes.
    is_crowded: bool,
    /// Updates were sent, and nobody was told to publish them.
    is_untold: bool,
    lending: Lending,
    /// The rows of updates that have not come back, with the numbers of their updates, in order.
    kept: VecDeque<(u64, KeptRows)>,
    kept_bytes: usize,
    /// Memory for the next rows to keep.
    spare_rows: Vec<KeptRows>,
    writing: Update,
    plant: Thread,
    tables: Vec<Saying>,
    suffix: String,
    /// Maximum bytes of a row's name, fields and source: more does not fit in a tick.
    most_row: usize,
    name: String,
    fields: Vec<u8>,
    source: Vec<u8>,
}

/// The plant's end.
#[derive(Debug)]
pub struct Publishing {
    from: Exit<Update>,
    spare: SyncSender<Update>,
    channel: RowChannel,
}

/// Creates a channel for rows of these tables, from the tickerplant's thread to this one, which turns them
/// into ticks of at most `most_tick` bytes.
pub(crate) fn open(
    tables: Vec<Saying>,
    suffix: String,
    channel: u16,
    most_tick: usize,
    lending: Lending,
) -> (Giving, Publishing) {
    open_for((QUEUE, lending), tables, suffix, RowChannel::new(channel), most_tick)
}

/// The same with a queue of `most` updates.
fn open_for(
    (most, lending): (usize, Lending),
    tables: Vec<Saying>,
    suffix: String,
    channel: RowChannel,
    most_tick: usize,
) -> (Giving, Publishing) {
    let (to, from) = queue(most, QUEUE_BYTES);
    let (give_back, spare) = sync_channel(SPARE);
    let giving = Giving {
        to,
        spare,
        held: VecDeque::new(),
        is_behind: false,
        taken: 0,
        sent: VecDeque::new(),
        on_their_way: 0,
        come_back: 0,
        is_crowded: false,
        is_untold: false,
        lending,
        kept: VecDeque::new(),
        kept_bytes: 0,
        spare_rows: Vec::new(),
        writing: Update::default(),
        plant: std::thread::current(),
        tables,
        suffix,
        is_refused: false,
        most_row: channel.most_row(most_tick),
        name: String::new(),
        fields: vec![0; FIELDS],
        source: Vec::new(),
    };
    (giving, Publishing { from, spare: give_back, channel })
}

impl Giving {
    /// Whether the rows of one more update can be taken. While this is false, nothing is read from clients.
    pub(crate) fn has_room(&mut self) -> bool {
        !self.is_behind && self.send_held()
    }

    /// Takes no rows from here on: their publishers get the reason.
    pub(crate) const fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// Sets whether the tickerplant has ticks to read from the ring before it takes further rows: else rows would be taken
    /// faster than they are published, and wait on the ring.
    pub(crate) const fn set_behind(&mut self, is_behind: bool) {
        self.is_behind = is_behind;
    }

    /// Sends the updates that did not fit in the queue. Returns whether none is left.
    fn send_held(&mut self) -> bool {
        while let Some(held) = self.held.pop_front() {
            if let Some(update) = self.try_send(held) {
                self.held.push_front(update);
                return false;
            }
        }
        true
    }

    /// Takes the rows of an update that arrived at `arrived`.
    ///
    /// # Errors
    /// Why none of the rows are taken; their publisher gets this text.
    pub(crate) fn take(&mut self, rows: &mut Passing<'_>, arrived: Nanos) -> Result<(), &'static str> {
        if self.is_refused {
            return Err("this plant takes its ticks from another plant: publish there");
        }
        let mut update = mem::take(&mut self.writing);
        update.begin(arrived);
        let table = rows.table();
        if rows.len() > MOST_ROWS {
            self.writing = update;
            return Err("an update has 65,536 rows at most");
        }
        while let Some(row) = rows.next_row() {
            if let Err(why) = self.push(table, &row, &mut update) {
                self.writing = update;
                return Err(why);
            }
        }
        self.writing = self.spare.try_recv().unwrap_or_default();
        if !update.is_empty() {
            self.taken += 1;
            self.keep(rows);
            self.send(update);
        }
        Ok(())
    }

    /// Has the updates published that were sent since the last call: here if the plant's thread sleeps and they are few, else
    /// by that thread. Returns whether they were published here.
    pub(crate) fn publish(&mut self) -> bool {
        if !mem::take(&mut self.is_untold) {
            return false;
        }
        let is_done = self.lending.publish_rows(self.on_their_way);
        if !is_done {
            self.plant.unpark();
        }
        is_done
    }

    /// The update with this number has come back from the ring, and all before it.
    pub(crate) fn has_come_back(&mut self, number: u64) {
        while self.come_back < number
            && let Some(bytes) = self.sent.pop_front()
        {
            self.come_back += 1;
            self.on_their_way -= bytes;
        }
        self.is_crowded &= self.on_their_way > FEW;
    }

    /// The rows of the update with this number, to publish them, if they were kept. Rows of updates before it are
    /// dropped: those updates will not come back.
    pub(crate) fn kept(&mut self, number: u64) -> Option<KeptRows> {
        while let Some((its, _)) = self.kept.front()
            && *its <= number
        {
            let (its, rows) = self.kept.pop_front()?;
            self.kept_bytes -= rows.bytes();
            if its == number {
                return Some(rows);
            }
            self.release(rows);
        }
        None
    }

    /// Takes back the memory of kept rows.
    pub(crate) fn release(&mut self, rows: KeptRows) {
        if rows.capacity() <= SPARE_BYTES && self.spare_rows.len() < SPARE {
            self.spare_rows.push(rows);
        }
    }

    /// Keeps the rows of the last update taken until its ticks come back, if there is memory for them.
    fn keep(&mut self, rows: &mut Passing<'_>) {
        if self.kept_bytes < KEPT_BYTES && self.kept.len() < QUEUE {
            let mut kept = self.spare_rows.pop().unwrap_or_default();
            rows.keep(&mut kept);
            self.kept_bytes += kept.bytes();
            self.kept.push_back((self.taken, kept));
        }
    }

    fn push(&mut self, table: usize, row: &PassingRow<'_>, update: &mut Update) -> Result<(), &'static str> {
        let symbol = std::str::from_utf8(row.symbol()).map_err(|_| "a symbol is not UTF-8")?;
        self.name.clear();
        if !symbol.is_empty() {
            self.name.push_str(symbol);
            self.name.push_str(&self.suffix);
        }
        let long = "a row's fields have 64 KiB at most";
        let mut list = FieldListEncoder::new(&mut self.fields).map_err(|_| long)?;
        for (column, kind, fid, is) in self.tables.get(table).map_or(&[][..], |saying| &saying.fields) {
            fields::write(row.cell(*column), *kind, *fid, *is, &mut list).map_err(|_| long)?;
        }
        let len = list.finish();
        self.source.clear();
        row.write(&mut self.source);
        if self.name.len() + len + self.source.len() > self.most_row {
            return Err("a row is longer than the plant's ring takes (ring_size)");
        }
        update
            .push(Row { name: &self.name, fields: &self.fields[..len], source: &self.source })
            .map_err(|_| "a row has 64 KiB at most, its symbol 255 bytes")
    }

    /// Sends an update after those that wait.
    fn send(&mut self, update: Update) {
        if self.send_held() {
            let refused = self.try_send(update);
            self.held.extend(refused);
        } else {
            self.held.push_back(update);
        }
    }

    /// Sends an update; returns it if the queue has no capacity.
    fn try_send(&mut self, update: Update) -> Option<Update> {
        let bytes = update.ring_bytes();
        match self.to.try_send(update) {
            Ok(()) => {
                self.sent.push_back(bytes);
                self.on_their_way += bytes;
                self.is_crowded |= self.on_their_way > PUBLISHED_HERE;
                self.is_untold = !self.is_crowded;
                if self.is_crowded {
                    self.plant.unpark();
                }
                None
            }
            Err(TrySendError::Full(update)) => Some(update),
            // The plant has ended.
            Err(TrySendError::Disconnected(_)) => None,
        }
    }
}

impl Publishing {
    /// Publishes the rows that have arrived. Returns whether there were any.
    pub fn turn(&mut self, clock: &Clock, to: &mut Sequencer<RingPublish>) -> Result<bool, Refused> {
        let Self { from, spare, channel } = self;
        let mut rows = 0;
        while rows < BATCH {
            let (taken, _) = from.take(1, |mut update| {
                channel.publish(&update, to, clock)?;
                rows += update.len();
                update.begin(Nanos(0));
                if update.capacity() <= SPARE_BYTES {
                    // With enough spare updates, this one is dropped.
                    let _ = spare.try_send(update);
                }
                Ok(())
            })?;
            if taken == 0 {
                break;
            }
        }
        if rows > 0 {
            to.publisher().ring().flush();
        }
        Ok(rows > 0)
    }

    /// Returns the counts of updates and rows that became ticks so far.
    pub const fn report(&self) -> PublishedReport {
        let RowCounters { updates, rows, items_refused } = self.channel.counters();
        PublishedReport { updates, rows, items_refused }
    }
}

#[cfg(test)]
mod tests {
    use tapeline_kdb::{Encoder, Message, MessageKind};
    use tapeline_plant::Items;
    use tapeline_plant::tick::Tick;
    use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber};
    use tapeline_tickerplant::{Column, Local, Outlets, Rights, Schema, SessionId, Settings, Tickerplant};

    use super::*;
    use crate::numbering::Numbering;

    struct Out(Giving);

    impl Outlets for Out {
        fn send(&mut self, _: SessionId, _: &[u8]) {}

        fn pass_on(&mut self, rows: &mut Passing<'_>) -> Result<(), &'static str> {
            self.0.take(rows, Nanos(7))
        }
    }

    /// A tickerplant with one publisher, and at most `most` updates queued for the plant's thread.
    fn scene(most: usize, lending: Lending) -> (Tickerplant, Out, Publishing) {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let columns = vec![column("time", Type::TIMESPAN), column("sym", Type::SYMBOL)];
        let settings =
            Settings { passes_on: true, ..Settings::new(vec![Schema::new("t", columns).unwrap()]) };
        let mut tickerplant = Tickerplant::new(settings, 0);
        tickerplant.open(SessionId(0), Rights::all(1), false);
        let tables = vec![Saying::default()];
        let (giving, publishing) =
            open_for((most, lending), tables, ".X".to_owned(), RowChannel::new(3), 1 << 10);
        (tickerplant, Out(giving), publishing)
    }

    /// The publisher sends a row.
    fn send(tickerplant: &mut Tickerplant, symbol: &[u8], out: &mut Out) {
        let mut room = [0; 64];
        let mut message = Encoder::message(&mut room, MessageKind::Sync).unwrap();
        message.list(3).unwrap();
        [b".u.upd".as_slice(), b"t"].into_iter().for_each(|name| message.symbol(name).unwrap());
        message.list(1).unwrap();
        message.symbol(symbol).unwrap();
        let len = message.finish().unwrap();
        tickerplant.receive(SessionId(0), &Message::parse(&room[..len]).unwrap(), Local(0), out);
    }

    #[test]
    fn what_finds_no_room_waits_in_its_order() {
        let (mut tickerplant, mut out, publishing) = scene(1, Lending::default());
        for symbol in [b"A", b"B", b"C", b"D"] {
            send(&mut tickerplant, symbol, &mut out);
        }
        assert_eq!((out.0.taken, out.0.has_room()), (4, false));
        let mut names = Vec::new();
        for _ in 0..4 {
            names.extend(
                publishing.from.try_iter().map(|update| update.rows().next().unwrap().name.to_owned()),
            );
            out.0.has_room();
        }
        assert_eq!(names, ["A.X", "B.X", "C.X", "D.X"]);
        assert!(out.0.has_room());
        out.0.set_behind(true);
        assert!(!out.0.has_room());
    }

    #[test]
    fn rows_become_ticks_here_while_the_plants_thread_sleeps_and_no_reader_is_waited_for() {
        let name: Name = format!("test-lending-{}", std::process::id()).parse().unwrap();
        let ring = Publisher::open(&name, &Options { capacity: 1 << 16, ..Options::default() }).unwrap();
        let mut slow = Subscriber::join(&name, Start::Newest).unwrap();
        let publish = RingPublish::new(ring, Box::new(|_, _| panic!("this thread waited for a reader")));
        let lending = Lending::default();
        let (mut tickerplant, mut out, publishing) = scene(4_096, lending.clone());
        let sequencer = Sequencer::new(1, Items::new(10), publish);
        let (rows, clock) = (Some(publishing), Clock::calibrate());
        let mut numbering = Numbering { sequencer, clock, rows, meanwhile: 0, refused: None };
        let rows = |numbering: &Numbering| numbering.rows.as_ref().unwrap().report().rows;
        send(&mut tickerplant, b"A", &mut out);
        assert!(!out.0.publish(), "the plant's thread is awake and has the sequencer");
        assert_eq!(rows(&numbering), 0);
        send(&mut tickerplant, b"B", &mut out);
        numbering = lending.during(numbering, || {
            assert!(out.0.publish());
            assert!(!out.0.publish(), "nothing is left");
        });
        assert_eq!((rows(&numbering), numbering.meanwhile), (2, 1));
        // This thread reads what it has published, another reader nothing: the plant's thread, which can wait, gets the row for which
        // the ring has no capacity.
        let mut sent = 2;
        numbering = lending.during(numbering, || {
            while {
                out.0.has_come_back(sent);
                send(&mut tickerplant, b"B", &mut out);
                sent += 1;
                out.0.publish()
            } {}
        });
        assert!(sent > 100 && rows(&numbering) == sent - 1, "{sent}");
        let mut read = 0;
        while let Poll::Frame(frame) = slow.next() {
            let tick = Tick::parse(frame.bytes()).unwrap();
            read += 1;
            assert_eq!(tick.header.seq.0, read);
            // The first tick is the channel's state.
            assert_eq!(tick.name, ["", "A.X", "B.X"][(read - 1).min(2) as usize]);
        }
        out.0.has_come_back(sent);
        send(&mut tickerplant, b"B", &mut out);
        numbering = lending.during(numbering, || assert!(out.0.publish()));
        assert_eq!(rows(&numbering), sent + 1);
    }
}

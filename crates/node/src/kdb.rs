//! The plant's tickerplant: ticks as rows for kdb+ clients, from one more reader of the ring, and rows of theirs as ticks. `[kdb]` in
//! its configuration.
//!
//! A publisher's rows go to the plant's thread, come back from the ring, and are published then: what subscribers and the log have is
//! what the ring had, in its order.
//!
//! | file | owns |
//! |---|---|
//! | `filling.rs` | which ticks are rows of which tables |
//! | `cells.rs` | a field's value as a cell |
//! | `publishing.rs` | rows of publishers, on their way to the plant's thread |
//! | `fields.rs` | a cell, or another q value, as a field's value |

pub mod cells;
pub mod fields;
pub mod filling;
pub mod publishing;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_measure::Clock;
use tapeline_plant::Seq;
use tapeline_plant::tick::{Flags, Tick};
use tapeline_ring::Name;

use self::filling::{Filler, Filling};
use self::publishing::{PublishedReport, Publishing, Saying};
use crate::counting::Serving;
use crate::cursor::{self, RingCursor};
use crate::events::Events;
use crate::journal::{Gate, WHILE_HELD};
use crate::reader::{Reader, Signs};
use crate::sequence_cursor::{Kept, SequenceCursor, Taken};
use crate::socket_waker::SocketWaker;
use crate::tick::config::TickerplantConfig;
use crate::tick::server::{Listening, Report, Server};

/// Ticks that are taken before clients have their turn, where the ring always has more. Those of one turn are one update of a table.
const BATCH: usize = 1_024;
/// The longest sleep: whether the plant lives is looked at so often.
const NAP: Duration = Duration::from_millis(10);

/// What a plant's tickerplant is to be.
#[derive(Debug)]
pub struct KdbConfig {
    /// Sockets, limits, log, tables and access of the tickerplant.
    pub serve: TickerplantConfig,
    /// The tables that ticks fill.
    pub fillers: Vec<Filler>,
    /// Items at most that have a row.
    pub max_items: usize,
    /// How each table's rows are said to others.
    pub saying: Vec<Saying>,
    /// What stands behind a symbol in the name of its item.
    pub suffix: String,
    /// The number that ticks of publishers have in the place of a channel's.
    pub channel: u16,
}

/// What it did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct KdbReport {
    /// What the tickerplant did for its clients; JSON has these fields at the level of the report.
    #[serde(flatten)]
    pub served: Report,
    /// Ticks that were read.
    pub ticks: u64,
    /// Ticks whose message cannot be read.
    pub unusable: u64,
    /// Times that it lost its place on the ring.
    #[serde(default)]
    pub rejoined: u64,
    /// Ticks that it missed by that, and that no journal has.
    #[serde(default)]
    pub missing: u64,
    /// Rows of kdb+ clients that became ticks.
    pub published: PublishedReport,
}

impl fmt::Display for KdbReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PublishedReport { updates, rows, items_refused } = &self.published;
        write!(
            f,
            "{} ticks, {} unusable; {updates} updates of {rows} rows became ticks, {items_refused} rows refused at the item limit; {}",
            self.ticks, self.unusable, self.served
        )?;
        f.write_str(&cursor::losses(self.rejoined, self.missing))
    }
}

/// Its thread.
#[derive(Debug)]
pub(crate) struct RunningKdb {
    /// Where clients connect.
    pub(crate) listening: Listening,
    reader: Reader<KdbReport>,
}

impl RunningKdb {
    /// Opens the ports and the log and makes the thread, which waits for the ring. As a hub's, before this thread is pinned.
    /// The plant's thread is this one: it is woken for rows, and publishes them; its ring takes ticks of so many bytes at most. Of the
    /// plant's journal: what keeps ticks back until they are on disk, where they are then, and
    /// the last one of the plants before.
    pub(crate) fn start(
        config: KdbConfig,
        (gate, journal, after): (Option<Gate>, Option<Kept>, Seq),
        most_tick: usize,
        events: &Events,
    ) -> crate::Result<(Self, Publishing)> {
        let KdbConfig { serve, fillers, max_items, saying, suffix, channel } = config;
        let spins = serve.spins;
        let (giving, publishing) = publishing::open(saying, suffix, channel, most_tick);
        let server = Server::open(serve, "[kdb]", Some(Box::new(giving)), events)?;
        if server.is_open() {
            events.warning(
                "kdb+ clients need no password: whoever reaches the port can read and publish everything; \
                 [kdb.access] sets users",
            );
        }
        let listening = server.listening();
        let socket_waker = SocketWaker::begin("kdb waker", server.lookout()?)?;
        let filling = Filling::new(fillers, max_items);
        let of_ring = events.clone();
        let rows = Rows { server, filling, channel, is_open: false, report: KdbReport::default() };
        let reader = Reader::start("kdb", events, move |ring, subscriber, signs| {
            let ring = RingCursor::on_ring("kdb", ring, subscriber, gate, &of_ring);
            let place = SequenceCursor::new(ring, journal, after, "in kdb+'s tables and log");
            Outlet { rows, place, socket_waker, spins, clock: Clock::calibrate(), signs }.run()
        })?;
        Ok((Self { listening, reader }, publishing))
    }

    /// For who tells the outside whether it serves.
    pub(crate) fn standing(&self) -> Serving {
        Serving { pulse: self.reader.pulse(), address: self.listening.places() }
    }

    /// The ring is there: returns when it is read.
    pub(crate) fn join(self, ring: &Name) -> crate::Result<Self> {
        let (reader, _) = self.reader.join(ring)?;
        Ok(Self { reader, ..self })
    }

    /// The ring has ended.
    pub(crate) fn end(self) -> crate::Result<KdbReport> {
        self.reader.end()
    }
}

/// All of it.
struct Outlet {
    rows: Rows,
    place: SequenceCursor,
    socket_waker: SocketWaker,
    spins: bool,
    clock: Clock,
    signs: Arc<Signs>,
}

/// Where ticks become rows.
struct Rows {
    server: Server,
    filling: Filling,
    /// The channel of publishers' ticks, and whether some of an update were taken and others are still to come.
    channel: u16,
    is_open: bool,
    report: KdbReport,
}

impl Outlet {
    /// Serves until the ring ends.
    fn run(mut self) -> crate::Result<KdbReport> {
        let mut is_alive = true;
        loop {
            self.signs.turned.store(self.clock.now().0, Ordering::Relaxed);
            let (taken, is_over) = self.take_ticks()?;
            let has_come = self.rows.server.turn(Duration::ZERO)?;
            if is_over {
                break;
            }
            if has_come && !self.spins {
                // What clients cost is this thread's alone: plant and hub go before it where there are fewer cores than threads.
                std::thread::yield_now();
            }
            if taken > 0 || has_come || self.spins {
                continue;
            }
            // What waits for the disk comes before the ring's end.
            crate::error::ensure!(is_alive || self.place.is_held(), "the plant has died");
            if self.place.is_held() {
                // The ring has something, so that it would not wait.
                std::thread::sleep(WHILE_HELD);
            } else {
                self.place
                    .ring
                    .ticks
                    .subscriber
                    .wait_or(self.socket_waker.bell(), self.rows.server.nap().min(NAP));
            }
            self.socket_waker.answer();
            // Who ends the ring lets go of it too: one more look tells that from death.
            is_alive = self.place.ring.ticks.subscriber.publisher_alive()?;
        }
        let report = KdbReport { rejoined: self.place.ring.rejoined, ..self.rows.report };
        drop(self.place);
        Ok(KdbReport { served: self.rows.server.end()?, ..report })
    }

    /// Takes ticks, as many as are there, and publishes their rows: how many, and whether there will be no more.
    fn take_ticks(&mut self) -> crate::Result<(usize, bool)> {
        let Self { rows, place, signs, .. } = self;
        let (taken, is_over) = place.take(BATCH, |taken| match taken {
            Taken::Tick(tick) => rows.take(tick),
            Taken::Gone(count) => {
                rows.report.missing += count;
                signs.missing.fetch_add(count, Ordering::Relaxed);
            }
        })?;
        // The rest of an update may not be on the ring yet, or on disk, or in this turn.
        if !self.rows.is_open {
            self.rows.server.publish_added();
        }
        Ok((taken, is_over))
    }
}

impl Rows {
    /// Takes a tick's rows.
    fn take(&mut self, tick: &Tick<'_>) {
        let header = &tick.header;
        self.report.ticks += 1;
        let is_published = header.channel == self.channel && header.flags.contains(Flags::SOURCE);
        let done = if is_published {
            if !self.is_open {
                // A publisher's rows are an update of their own.
                self.server.publish_added();
            }
            self.server.add(tick.source, header.sequenced)
        } else {
            let (plant, zone) = self.server.rows();
            self.filling.take(tick, zone, plant).is_ok()
        };
        self.report.unusable += u64::from(!done);
        if is_published {
            self.is_open = !header.flags.contains(Flags::LAST_ROW);
            if !self.is_open {
                self.server.publish_added();
                // Whoever has sent them may know.
                self.server.has_published(header.feed_seq);
            }
        }
    }
}

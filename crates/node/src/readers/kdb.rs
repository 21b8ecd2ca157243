//! The plant's tickerplant: ticks become rows for kdb+ clients, read by one more reader of the ring, and
//! clients' rows become ticks. `[kdb]` in the configuration.
//!
//! A publisher's rows go to the ring, come back from it, and are published then: subscribers
//! and the log get what the ring had, in its order. The plant's thread puts them there, or, while that sleeps, this one.
//! The rows themselves are kept meanwhile, so that they need not be read again from their ticks.
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
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::Seq;
use tapeline_plant::tick::{Flags, Tick};
use tapeline_tickerplant::KeptRows;

use self::filling::{Filler, Filling};
use self::publishing::{PublishedReport, Publishing, Saying};
use crate::cursor::{self, RingCursor};
use crate::events::Events;
use crate::journal::{Gate, WHILE_HELD};
use crate::numbering::Lending;
use crate::readers::counting::Serving;
use crate::readers::reader::{Reader, Signs};
use crate::readers::sequence_cursor::{Kept, SequenceCursor, Taken};
use crate::socket_waker::SocketWaker;
use crate::tick::config::TickerplantConfig;
use crate::tick::server::{Listening, Report, Server};
use crate::ticks::OnRing;

/// Maximum ticks before clients have their turn. The rows of one turn are one update of a table.
const BATCH: usize = 1_024;
/// While the ring has more ticks than one turn takes, publishers' rows are taken once in so many turns, so that feeds
/// which keep the ring full do not shut the publishers out.
const TURNS_WITHOUT_ROWS: u64 = 16;
/// How long to look for the ticks of rows that were passed on before sleeping, in ns: about the time of two wake-ups.
const POLL_BEFORE_SLEEP_NS: i64 = 50_000;
/// The longest sleep: the interval at which the plant is checked.
const NAP: Duration = Duration::from_millis(10);

/// The settings of a plant's tickerplant.
#[derive(Debug)]
pub struct KdbConfig {
    /// Sockets, limits, log, tables and access of the tickerplant.
    pub serve: TickerplantConfig,
    /// The tables that ticks fill.
    pub fillers: Vec<Filler>,
    /// Maximum number of items with rows.
    pub max_items: usize,
    /// How each table's rows are expressed for other readers.
    pub saying: Vec<Saying>,
    /// Suffix of item names, after the symbol.
    pub suffix: String,
    /// The channel number of publishers' ticks.
    pub channel: u16,
}

/// Totals of the tickerplant.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct KdbReport {
    /// Totals of its service for clients; JSON has these fields at the level of the report.
    #[serde(flatten)]
    pub served: Report,
    /// Ticks read from the ring.
    pub ticks: u64,
    /// Ticks whose message cannot be decoded.
    pub unusable: u64,
    /// Times that the tickerplant lost its position on the ring.
    #[serde(default)]
    pub rejoined: u64,
    /// Ticks that the tickerplant missed by that and that no journal has.
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

/// The thread of the tickerplant.
#[derive(Debug)]
pub(crate) struct RunningKdb {
    /// Where clients connect.
    pub(crate) listening: Listening,
    pub(crate) reader: Reader<KdbReport>,
}

impl RunningKdb {
    /// Opens the ports and the log and starts the thread, which waits for the ring. Call before this thread
    /// is pinned. The calling thread is the plant's: it is woken for rows, and publishes them as ticks of at
    /// most `most_tick` bytes, if it takes any. The plant's journal gives the gate that holds ticks back until they are
    /// durable, the folder where they are then, and the last tick of the plants before this one.
    pub(crate) fn start(
        config: KdbConfig,
        (gate, journal, after): (Option<Gate>, Option<Kept>, Seq),
        (most_tick, (takes_rows, are_rows_all)): (usize, (bool, bool)),
        events: &Events,
    ) -> crate::Result<(Self, Option<(Publishing, Lending)>)> {
        let KdbConfig { serve, fillers, max_items, saying, suffix, channel } = config;
        let spins = serve.spins;
        let lending = Lending::default();
        let (mut giving, publishing) = publishing::open(saying, suffix, channel, most_tick, lending.clone());
        if !takes_rows {
            giving.refuse();
        }
        let server = Server::open(serve, "[kdb]", Some(giving), events)?;
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
        let rows = Rows { server, filling, channel, open: None, day: Ok(()), report: KdbReport::default() };
        let reader = Reader::start("kdb", events, move |ring, subscriber, signs| {
            let ring = RingCursor::new("kdb", OnRing { ring, subscriber }, gate, &of_ring);
            let place = SequenceCursor::new(ring, journal, after, "in kdb+'s tables and log");
            let clock = Clock::calibrate();
            Outlet { rows, place, socket_waker, are_rows_all, spins, clock, signs }.run()
        })?;
        Ok((Self { listening, reader }, takes_rows.then_some((publishing, lending))))
    }

    /// Returns the thread's state for the counters.
    pub(crate) fn standing(&self) -> Serving {
        Serving { pulse: self.reader.pulse(), address: self.listening.places() }
    }
}

/// The running tickerplant.
struct Outlet {
    rows: Rows,
    place: SequenceCursor,
    socket_waker: SocketWaker,
    /// The plant has no ticks but rows of these clients.
    are_rows_all: bool,
    spins: bool,
    clock: Clock,
    signs: Arc<Signs>,
}

/// Turns ticks into rows.
struct Rows {
    server: Server,
    filling: Filling,
    /// The channel of publishers' ticks.
    channel: u16,
    /// The publisher's update of which some rows were taken and others are still to come.
    open: Option<OpenUpdate>,
    /// Why the next day could not begin.
    day: crate::Result<()>,
    report: KdbReport,
}

/// A publisher's update whose ticks are coming back from the ring.
struct OpenUpdate {
    number: u64,
    /// Its rows, if they were kept; otherwise they are read from the ticks.
    kept: Option<KeptRows>,
}

impl Outlet {
    /// Serves until the ring ends.
    fn run(mut self) -> crate::Result<KdbReport> {
        let mut is_alive = true;
        let mut active = self.clock.now();
        let mut nap = Duration::ZERO;
        self.rows.server.has_added_up_to(Nanos(0));
        for turn in 0_u64.. {
            let begun = self.clock.now();
            self.signs.turned.store(begun.0, Ordering::Relaxed);
            let (taken, is_over) = self.take_ticks()?;
            if taken == 0 && !self.place.is_held() {
                self.rows.server.has_added_up_to(begun);
            }
            // A full batch: the ring has more.
            self.rows.server.set_behind(taken == BATCH && !turn.is_multiple_of(TURNS_WITHOUT_ROWS));
            let has_come = self.rows.server.turn(mem::take(&mut nap))?;
            if is_over {
                break;
            }
            if !self.rows.server.publish_passed_on() && has_come && !self.spins {
                // Clients cost this thread's time only: with fewer cores than threads, plant and hub go
                // first.
                std::thread::yield_now();
            }
            if taken > 0 || has_come || self.spins {
                active = self.clock.now();
                continue;
            }
            if self.rows.server.awaits_rows() && self.clock.now().since(active) < POLL_BEFORE_SLEEP_NS {
                // The plant's thread turns rows into ticks within microseconds, on another core or on this one.
                std::thread::yield_now();
                continue;
            }
            // Ticks that wait for the disk come before the ring's end.
            crate::error::ensure!(is_alive || self.place.is_held(), "the plant has died");
            let longest = self.rows.server.nap().min(NAP);
            if self.are_rows_all && !self.place.is_held() && !self.rows.server.awaits_rows() {
                // Ticks come from clients' input only, so the next turn waits for that: nobody has to wake this thread for it.
                nap = longest;
            } else {
                if self.place.is_held() {
                    // The ring has ticks, so waiting on it would return at once.
                    std::thread::sleep(WHILE_HELD);
                } else {
                    self.place.subscriber().wait_or(&self.socket_waker.bell, longest);
                }
                self.socket_waker.answer();
            }
            // A publisher releases the ring when it ends it: one more look distinguishes that from its death.
            is_alive = self.place.subscriber().publisher_alive()?;
        }
        // An update of which the rest did not come is not answered: an answer means that all of its rows are in the log.
        let report = KdbReport { rejoined: self.place.ring.rejoined, ..self.rows.report };
        drop(self.place);
        Ok(KdbReport { served: self.rows.server.end()?, ..report })
    }

    /// Takes a batch of ticks and publishes their rows. Returns their number, and whether the ring has ended.
    fn take_ticks(&mut self) -> crate::Result<(usize, bool)> {
        let Self { rows, place, signs, .. } = self;
        let (taken, is_over) = place.take(BATCH, |taken| match taken {
            Taken::Tick(tick) => rows.take(tick),
            Taken::Gone(count) => {
                rows.report.missing += count;
                signs.missing.fetch_add(count, Ordering::Relaxed);
                rows.server.has_lost_rows();
            }
        })?;
        mem::replace(&mut rows.day, Ok(()))?;
        // The rest of an update may not yet be on the ring, on disk, or in this turn.
        if self.rows.open.is_none() {
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
        // The rows of an update follow each other: before another tick, the reader has lost the others. Kept rows are whole.
        if let Some(open) = self.open.take_if(|open| !is_published || open.number != header.feed_seq) {
            self.close(open);
        }
        if self.open.is_none()
            && let Err(error) = self.server.row_of(header.sequenced)
        {
            self.day = Err(error);
        }
        if !is_published {
            let (plant, zone) = self.server.rows();
            self.report.unusable += u64::from(self.filling.take(tick, zone, plant).is_err());
            return;
        }
        let (number, server) = (header.feed_seq, &mut self.server);
        let open = self.open.get_or_insert_with(|| {
            // A publisher's rows form an update of their own.
            server.publish_added();
            OpenUpdate { number, kept: server.kept(number) }
        });
        if open.kept.is_none() {
            self.report.unusable += u64::from(!server.add(tick.source, header.sequenced));
        }
        if header.flags.contains(Flags::LAST_ROW)
            && let Some(open) = self.open.take()
        {
            self.close(open);
        }
    }

    /// Publishes the rows of a publisher's update, and lets its publisher have the answer.
    fn close(&mut self, open: OpenUpdate) {
        if let Some(kept) = open.kept {
            self.server.add_kept(kept);
        }
        self.server.publish_added();
        self.server.has_published(open.number);
    }
}

#[cfg(test)]
mod tests;

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

pub(crate) mod cells;
pub(crate) mod fields;
pub(crate) mod filling;
pub(crate) mod publishing;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_plant::tick::Flags;
use tapeline_ring::{Name, Seat, Subscriber};

use self::filling::{Filler, Filling};
use self::publishing::{PublishedReport, Publishing, Saying};
use super::counting::OfKdb;
use super::journal::{Gate, WHILE_HELD};
use super::reader::Reader;
use super::sentry::Sentry;
use super::ticks::{self, Next};
use crate::stat::snapshot::Kdb;
use crate::tick::config::Config;
use crate::tick::server::{Listening, Report, Server};

/// Ticks that are taken before clients have their turn, where the ring always has more. Those of one turn are one update of a table.
const BATCH: usize = 1_024;
/// The longest sleep: whether the plant lives is looked at so often.
const NAP: Duration = Duration::from_millis(10);

/// What a plant's tickerplant is to be.
#[derive(Debug)]
pub(crate) struct KdbConfig {
    pub(crate) serve: Config,
    /// The tables that ticks fill.
    pub(crate) fillers: Vec<Filler>,
    /// Items at most that have a row.
    pub(crate) max_items: usize,
    /// How each table's rows are said to others.
    pub(crate) saying: Vec<Saying>,
    /// What stands behind a symbol in the name of its item.
    pub(crate) suffix: String,
    /// The number that ticks of publishers have in the place of a channel's.
    pub(crate) channel: u16,
}

/// What it did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct KdbReport {
    #[serde(flatten)]
    pub(crate) served: Report,
    /// Ticks that were read.
    pub(crate) ticks: u64,
    /// Ticks whose message cannot be read.
    pub(crate) unusable: u64,
    /// Rows of kdb+ clients that became ticks.
    pub(crate) published: PublishedReport,
}

impl fmt::Display for KdbReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PublishedReport { updates, rows, items_refused } = &self.published;
        write!(
            f,
            "{} ticks, {} of them unusable; {updates} updates of {rows} rows became ticks, {items_refused} rows without a place for \
             their item; {}",
            self.ticks, self.unusable, self.served
        )
    }
}

/// Its thread.
#[derive(Debug)]
pub(super) struct RunningKdb {
    /// Where clients connect.
    pub(super) listening: Listening,
    reader: Reader<KdbReport>,
}

impl RunningKdb {
    /// Opens the ports and the log and makes the thread, which waits for the ring. As a hub's, before this thread is pinned.
    /// The plant's thread is this one: it is woken for rows, and publishes them; its ring takes ticks of so many bytes at most.
    pub(super) fn start(
        config: KdbConfig,
        gate: Option<Gate>,
        most_tick: usize,
    ) -> anyhow::Result<(Self, Publishing)> {
        let KdbConfig { serve, fillers, max_items, saying, suffix, channel } = config;
        let spins = serve.spins;
        let (giving, publishing) = publishing::open(saying, suffix, channel, most_tick);
        let server = Server::open(serve, "[kdb]", Some(Box::new(giving)))?;
        if server.is_open() {
            anstream::eprintln!(
                "warning: everybody who reaches kdb+'s port may have all of it: [kdb.access] names users"
            );
        }
        let listening = server.listening();
        let sentry = Sentry::begin("kdb-sentry", server.lookout()?)?;
        let filling = Filling::new(fillers, max_items);
        let reader = Reader::start("kdb", move |subscriber| {
            let report = KdbReport::default();
            let (is_held, is_open) = (false, false);
            Outlet { server, filling, channel, is_open, subscriber, gate, is_held, sentry, spins, report }
                .run()
        })?;
        Ok((Self { listening, reader }, publishing))
    }

    /// For who tells the outside whether it serves.
    pub(super) fn standing(&self) -> OfKdb {
        OfKdb { pulse: self.reader.pulse(), begin: Kdb { address: self.listening.places(), ended: false } }
    }

    /// The ring is there: returns when it is read. Its place there is to be exempt from the stall limit, as the log would lack what it
    /// missed.
    pub(super) fn join(self, ring: &Name) -> anyhow::Result<(Self, Seat)> {
        let (reader, seat) = self.reader.join(ring)?;
        Ok((Self { reader, ..self }, seat))
    }

    /// The ring has ended.
    pub(super) fn end(self) -> anyhow::Result<KdbReport> {
        self.reader.end()
    }
}

/// All of it.
struct Outlet {
    server: Server,
    filling: Filling,
    /// The channel of publishers' ticks, and whether some of an update were taken and others are still to come.
    channel: u16,
    is_open: bool,
    subscriber: Subscriber,
    /// What keeps ticks back until they are on disk, and whether it does.
    gate: Option<Gate>,
    is_held: bool,
    sentry: Sentry,
    spins: bool,
    report: KdbReport,
}

impl Outlet {
    /// Serves until the ring ends.
    fn run(mut self) -> anyhow::Result<KdbReport> {
        let mut is_alive = true;
        loop {
            let (taken, is_over) = self.take_ticks()?;
            let has_come = self.server.turn(Duration::ZERO)?;
            if is_over {
                break;
            }
            if taken > 0 || has_come || self.spins {
                continue;
            }
            // What waits for the disk comes before the ring's end.
            anyhow::ensure!(is_alive || self.is_held, "the plant has died");
            if self.is_held {
                // The ring has something, so that it would not wait.
                std::thread::sleep(WHILE_HELD);
            } else {
                self.subscriber.wait_or(self.sentry.bell(), self.server.nap().min(NAP));
            }
            self.sentry.answer();
            // Who ends the ring lets go of it too: one more look tells that from death.
            is_alive = self.subscriber.publisher_alive()?;
        }
        drop(self.subscriber);
        Ok(KdbReport { served: self.server.end()?, ..self.report })
    }

    /// Takes ticks, as many as are there, and publishes their rows: how many, and whether there will be no more.
    fn take_ticks(&mut self) -> anyhow::Result<(usize, bool)> {
        let (mut taken, mut is_over) = (0, false);
        self.is_held = false;
        while taken < BATCH && !is_over {
            let next = match &self.gate {
                Some(gate) => gate.next(&mut self.subscriber)?,
                None => Some(ticks::next(&mut self.subscriber)?),
            };
            match next {
                Some(Next::Tick(tick)) => {
                    taken += 1;
                    self.report.ticks += 1;
                    let header = &tick.header;
                    let is_published = header.channel == self.channel && header.flags.contains(Flags::SOURCE);
                    let done = if is_published {
                        if !self.is_open {
                            // A publisher's rows are an update of their own.
                            self.server.publish_added();
                        }
                        self.server.add(tick.source, header.sequenced)
                    } else {
                        let (plant, zone) = self.server.rows();
                        self.filling.take(&tick, zone, plant).is_ok()
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
                None => {
                    self.is_held = true;
                    break;
                }
                Some(Next::Nothing) => break,
                Some(Next::End) => is_over = true,
                Some(Next::Lost(lost)) => return Err(lost.of("kdb+")),
            }
        }
        // The rest of an update may not be on the ring yet, or on disk, or in this turn.
        if !self.is_open {
            self.server.publish_added();
        }
        Ok((taken, is_over))
    }
}

//! A plant's ring with synthetic ticks: what one core cannot make of a feed, at any rate.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tapeline_measure::{Clock, Lateness, Pacer, Trend, Waiting, monotonic_ns};
use tapeline_plant::tick::{Flags, Kind};
use tapeline_plant::{ItemId, Items, Origin, RingPublish, Sequencer, Stamps};
use tapeline_ring::{Name, Options, Publisher};

use crate::messages::Messages;

/// Bursts a second, as LSEG's tools send them.
const SLICES: u64 = 1_000;
/// Ticks after which sleepers are woken within a burst: as many as some datagrams bring a plant.
const WAKE_EVERY: u64 = 64;
/// Ticks under way at most where there is no rate: some milliseconds of the hub's work, so that it has always something to do, and
/// less than the ring holds.
pub(crate) const AHEAD: u64 = 20_000;

/// The plant, as far as its readers can tell.
pub(crate) struct Market {
    sequencer: Sequencer<RingPublish>,
    items: Vec<(ItemId, String)>,
    clock: Clock,
}

/// What was published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    /// Updates.
    pub(crate) updates: u64,
    pub(crate) seconds: f64,
    /// How far behind its schedule the publisher was.
    pub(crate) lateness: Trend,
    /// The share of the time in which the ring was full, or enough was under way.
    pub(crate) held_back: f64,
}

/// What LSEG's tools call their items, which they count from 1.
pub(crate) fn item_name(number: usize) -> String {
    format!("RDT{}", number + 1)
}

impl Market {
    /// A ring of the plant's usual size.
    pub(crate) fn open(ring: &Name) -> anyhow::Result<Self> {
        let options = Options { capacity: 8 << 20, wake_on_commit: false, ..Options::default() };
        let publish =
            RingPublish::new(Publisher::open(ring, &options)?, Box::new(|_, stalled| stalled < PATIENCE));
        let sequencer = Sequencer::new(1, Items::new(1_000_000), publish);
        Ok(Self { sequencer, items: Vec::new(), clock: Clock::calibrate() })
    }

    /// The images of items 0 to `count`.
    pub(crate) fn images(&mut self, count: usize, messages: &Messages) -> anyhow::Result<()> {
        self.items.clear();
        for number in 0..count {
            let name = item_name(number);
            let id = self.sequencer.item(&name)?;
            self.items.push((id, name));
            self.tick(Kind::Refresh, number, |out| {
                out[..messages.image.len()].copy_from_slice(&messages.image);
                messages.image.len()
            })?;
        }
        self.sequencer.publisher().ring().flush();
        Ok(())
    }

    /// Updates of all items in turn, at `rate` a second for so long. Each carries when it was due.
    pub(crate) fn updates(
        &mut self,
        rate: u64,
        time: Duration,
        messages: &Messages,
    ) -> anyhow::Result<Published> {
        let slices = Pacer::per_second(SLICES, self.clock.now());
        let all = (time.as_secs_f64() * SLICES as f64) as u64;
        let (begun, stalled) = (self.clock.now(), self.sequencer.publisher().stalled_ns());
        let (mut sent, mut lateness) = (0, Lateness::new(begun));
        for slice in 0..all {
            let due = slices.due(slice);
            // Its core is the clients' too.
            let now = slices.wait(&self.clock, due, Waiting::Sleep);
            lateness.record(now, now.since(due));
            let late = now.since(due).max(0) as u64;
            let due_ns = monotonic_ns().saturating_sub(late);
            self.burst(&mut sent, (slice + 1) * rate / SLICES, due_ns, messages)?;
        }
        let seconds = self.clock.now().since(begun) as f64 / 1e9;
        let stalled = self.sequencer.publisher().stalled_ns() - stalled;
        let held_back = stalled as f64 / 1e9 / seconds;
        Ok(Published { updates: sent, seconds, lateness: lateness.trend(), held_back })
    }

    /// Updates of all items in turn for so long, as fast as they get through: never more than [`AHEAD`] of those that have come,
    /// so that who reads them finds time beside this thread, on the same core.
    pub(crate) fn flat_out(
        &mut self,
        time: Duration,
        messages: &Messages,
        come: &AtomicU64,
    ) -> anyhow::Result<Published> {
        let begun = self.clock.now();
        let (mut sent, mut waited_ns, mut now) = (0, 0, begun);
        while now.since(begun) < time.as_nanos() as i64 {
            if sent < come.load(Ordering::Relaxed) + AHEAD {
                let until = sent + WAKE_EVERY;
                self.burst(&mut sent, until, monotonic_ns(), messages)?;
                now = self.clock.now();
            } else {
                std::thread::sleep(Duration::from_micros(100));
                let woken = self.clock.now();
                waited_ns += woken.since(now);
                now = woken;
            }
        }
        let seconds = now.since(begun) as f64 / 1e9;
        let held_back = waited_ns as f64 / 1e9 / seconds;
        Ok(Published { updates: sent, seconds, lateness: Trend::default(), held_back })
    }

    /// Updates until so many are sent, all due then.
    fn burst(&mut self, sent: &mut u64, until: u64, due_ns: u64, messages: &Messages) -> anyhow::Result<()> {
        while *sent < until {
            let number = *sent as usize % self.items.len();
            self.tick(Kind::Update, number, |out| messages.update(due_ns, out))?;
            *sent += 1;
            if sent.is_multiple_of(WAKE_EVERY) {
                self.sequencer.publisher().ring().flush();
            }
        }
        self.sequencer.publisher().ring().flush();
        Ok(())
    }

    /// The end: readers read what is left.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        Ok(self.sequencer.into_publisher().close()?)
    }

    fn tick(
        &mut self,
        kind: Kind,
        number: usize,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> anyhow::Result<()> {
        let (item, name) = &self.items[number];
        let origin = Origin { channel: 0, item: *item, name, ..Origin::default() };
        self.sequencer.tick(kind, Flags::default(), &origin, Stamps::default(), &self.clock, write)?;
        Ok(())
    }
}

/// A reader that reads nothing for so long has died.
const PATIENCE: Duration = Duration::from_secs(10);

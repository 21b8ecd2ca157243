//! Who numbers and publishes: the plant's thread, or, while that sleeps, the thread of kdb+ clients for their rows.
//!
//! A hand-over between threads takes about as long as everything else that happens to a row, and one of the two
//! cores of a small machine. So the plant's thread leaves the sequencer where the other thread finds it before it
//! sleeps, and takes it back when it wakes. While it is awake it has the sequencer to itself: feeds take no lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use tapeline_measure::Clock;
use tapeline_plant::{Refused, RingPublish, Sequencer};

use crate::config::Config;
use crate::kdb::publishing::Publishing;

/// The sequencer, and the rows that wait for it.
#[derive(Debug)]
pub(crate) struct Numbering {
    pub(crate) sequencer: Sequencer<RingPublish>,
    /// The clock of the ticks' time stamps, whoever publishes.
    pub(crate) clock: Clock,
    /// What kdb+ clients publish.
    pub(crate) rows: Option<Publishing>,
    /// How often rows were published while the plant's thread slept, since it last looked.
    pub(crate) meanwhile: usize,
    /// Why rows could not be published while the plant's thread slept.
    pub(crate) refused: Option<Refused>,
}

/// Where the plant's thread leaves the sequencer while it sleeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lending(Arc<Place>);

#[derive(Debug, Default)]
struct Place {
    lent: Mutex<Option<Numbering>>,
    /// The plant's thread is awake and waits for the sequencer.
    is_wanted: AtomicBool,
}

/// A loan, which ends with this: if the plant's thread panics, nobody numbers any more.
struct Loan<'a>(&'a Place);

impl Loan<'_> {
    /// Takes the sequencer back. If rows are being published, waits until those are.
    fn take(&self) -> Option<Numbering> {
        self.0.is_wanted.store(true, Ordering::Relaxed);
        let numbering = self.0.lock().take();
        self.0.is_wanted.store(false, Ordering::Relaxed);
        numbering
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Option<Numbering>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lending {
    /// Lends the sequencer while `sleep` runs. If rows are being published when `sleep` returns, waits until
    /// that is done.
    pub(crate) fn during(&self, numbering: Numbering, sleep: impl FnOnce()) -> Numbering {
        *self.0.lock() = Some(numbering);
        let loan = Loan(&self.0);
        sleep();
        loan.take().expect("only the plant's thread takes the sequencer out")
    }

    /// Publishes the rows that wait if the plant's thread sleeps and the ring has capacity for `bytes` of rows.
    /// Does not wait for the plant's thread, nor for the subscribers that there are. Returns whether nothing is left for the
    /// plant's thread to do; else it must be woken.
    pub(crate) fn publish_rows(&self, bytes: usize) -> bool {
        if self.0.is_wanted.load(Ordering::Relaxed) {
            return false;
        }
        let mut lent = match self.0.lent.try_lock() {
            Ok(lent) => lent,
            Err(TryLockError::Poisoned(lent)) => lent.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let Some(Numbering { sequencer, clock, rows: Some(rows), meanwhile, refused }) = lent.as_mut() else {
            return false;
        };
        // Whoever calls reads the ring too: it must not wait for its own reading.
        if refused.is_some() || !sequencer.publisher().has_room(bytes) {
            return false;
        }
        *refused = rows.turn(clock, sequencer).err();
        *meanwhile += 1;
        refused.is_none()
    }
}

/// Whether rows of kdb+ clients become ticks, and whether the plant has no other ticks.
pub(crate) const fn rows_of(config: &Config, has_sources: bool) -> (bool, bool) {
    let takes_rows = config.upstream.is_none();
    (takes_rows, takes_rows && config.feeds.is_empty() && !has_sources)
}

#[cfg(test)]
mod tests {
    use tapeline_feed::Protocol;
    use tapeline_measure::Nanos;

    use super::*;
    use crate::config::Feed;
    use crate::upstream::UpstreamConfig;

    #[test]
    fn a_plant_below_takes_no_rows_and_one_with_feeds_has_other_ticks_too() {
        let config = || Config::new("A", tapeline_ring::Name::new("test-rows-of").unwrap());
        assert_eq!(rows_of(&config(), false), (true, true));
        assert_eq!(rows_of(&config(), true), (true, false), "providers");
        let mut feeds = config();
        feeds.feeds.push(Feed::new("f", Protocol::ItchMoldUdp64, Nanos(0)));
        assert_eq!(rows_of(&feeds, false), (true, false));
        let mut below = config();
        let server = ([127, 0, 0, 1], 9).into();
        below.upstream = Some(UpstreamConfig::new("u", "UP".parse().unwrap(), server));
        assert_eq!(rows_of(&below, false), (false, false));
    }
}

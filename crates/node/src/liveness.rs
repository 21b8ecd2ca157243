//! The view of a running plant for its supervisor.

use std::sync::Arc;

use tapeline_measure::Nanos;

use crate::readers::counting::LatestSnapshot;
use crate::readers::web::health;
use crate::stat::snapshot::Snapshot;

/// Tells whether the threads of a plant work, from the figures that each of them reports once a second. A supervisor,
/// such as systemd's watchdog, restarts a plant whose threads do not.
#[derive(Clone, Debug)]
pub struct Liveness(pub(crate) Arc<LatestSnapshot>);

impl Liveness {
    /// Names the first thread that has ended, or has been silent for five seconds at `now`. `None` while every thread works.
    /// A stale feed is no failure of a thread: a restart would not mend the feed.
    #[must_use]
    pub fn failed_thread(&self, now: Nanos) -> Option<String> {
        health::failed_thread(&self.0.read(), now)
    }

    /// Returns the latest figures of the plant.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.read()
    }
}

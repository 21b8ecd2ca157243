//! A clock that advances by one step at every look.

use std::cell::Cell;
use std::time::Duration;

thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Time that passes between two looks: enough for the publisher to look at its subscribers again.
pub(crate) const STEP: Duration = Duration::from_millis(1);

/// A moment of the model's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(NOW.replace(NOW.get() + STEP))
    }

    pub(crate) fn duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

pub(crate) fn begin() {
    NOW.set(Duration::ZERO);
}

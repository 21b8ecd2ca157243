//! Ends a plant from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that ends a plant, or a hub on its own, once it is set: by a signal handler, another thread, or a test.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Requests the end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns `true` once the end was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        // Relaxed: the flag publishes nothing but itself.
        self.0.load(Ordering::Relaxed)
    }
}

impl From<Arc<AtomicBool>> for Stop {
    /// A flag that a signal handler sets.
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

//! An event that borrows nothing.

use std::sync::Arc;

use tapeline_omm::Dictionary;

use super::Event;
use super::inbox::Waiting;

/// An event of a consumer that borrows nothing, so that it can go to another task or thread.
#[derive(Clone, Debug)]
pub struct OwnedEvent {
    pub(super) waiting: Waiting,
    /// The names of the item and of its service.
    pub(super) names: Option<(Arc<str>, Arc<str>)>,
    /// The bytes of the message.
    pub(super) bytes: Box<[u8]>,
    pub(super) dictionary: Arc<Dictionary>,
}

impl OwnedEvent {
    /// Returns the event.
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        let names = self.names.as_ref().map_or(("", ""), |(name, service)| (&**name, &**service));
        // The bytes were parsed when they were received, so that there is always an event.
        self.waiting.event(&self.bytes, names, &self.dictionary).unwrap_or(Event::Note(""))
    }
}

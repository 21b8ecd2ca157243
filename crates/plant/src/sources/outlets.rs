//! Where messages to the sources go out.

use tapeline_omm::role::Outbox;

/// A source as its connection is known by: no two have had the same. Those of interactive providers are their places in
/// [`Settings::providers`](super::Settings::providers), for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// Whoever has the connections.
pub trait Outlets {
    /// Calls `send`, once, with the way out of a connection; with [`Nowhere`](tapeline_omm::role::Nowhere) where there is none.
    fn with(&mut self, link: LinkId, send: &mut dyn FnMut(&mut dyn Outbox));
}

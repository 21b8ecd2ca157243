//! The connections to the sources.

use tapeline_omm::role::Outbox;

/// The number of a source's connection, never reused. For interactive providers it is permanent: the index in
/// [`Settings::providers`](super::Settings::providers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// The owner of the connections.
pub trait Outlets {
    /// Calls `send` once with the outbox of a connection; with [`Nowhere`](tapeline_omm::role::Nowhere) if there is none.
    fn with(&mut self, link: LinkId, send: &mut dyn FnMut(&mut dyn Outbox));
}

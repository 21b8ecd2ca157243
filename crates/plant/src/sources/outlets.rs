//! Where messages to the sources go out.

use tapeline_omm::role::Outbox;

/// A source as its connection is known by: no two have had the same. Those of interactive providers are their places in
/// [`Settings::providers`](super::Settings::providers), for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// Whoever has the connections.
pub trait Outlets {
    /// Calls `send`, once, with the way out of a connection; with [`Nowhere`] where there is none.
    fn with(&mut self, link: LinkId, send: &mut dyn FnMut(&mut dyn Outbox));
}

/// The way out where there is no connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Outbox for Nowhere {
    fn most(&self) -> usize {
        MOST
    }

    fn claim(&mut self, _len: usize) -> Option<&mut [u8]> {
        None
    }

    fn commit(&mut self, _len: usize) {}
}

/// So that nothing is too long, but has no room.
const MOST: usize = 16 << 20;

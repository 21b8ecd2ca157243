//! Packets that start a session or a numbering, or follow an end, held until a second packet confirms them.

use tapeline_nanos::Nanos;

use crate::framing::{DatagramKind, Packet, Session};

/// A copy of one unconfirmed packet. One for each line; memory is allocated on first use, at most the size of a datagram.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    doubted: Option<Doubted>,
    blocks: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Doubted {
    session: Session,
    kind: DatagramKind<'static>,
    received: Nanos,
}

impl Doubt {
    /// Returns `true` if there is no packet.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.doubted.is_none()
    }

    /// Returns the packet's session and sequences.
    pub(super) fn about(&self) -> Option<(Session, (u64, u64))> {
        self.doubted.map(|doubted| (doubted.session, doubted.kind.sequences()))
    }

    /// Returns the packet's receive time.
    pub(super) fn received(&self) -> Option<Nanos> {
        self.doubted.map(|doubted| doubted.received)
    }

    /// Stores a copy in place of the previous packet.
    pub(super) fn keep(&mut self, packet: &Packet<'_>, received: Nanos) {
        let (kind, blocks) = packet.kind.apart();
        self.blocks.clear();
        self.blocks.extend_from_slice(blocks);
        self.doubted = Some(Doubted { session: packet.session, kind, received });
    }

    /// Drops the packet. Returns `true` if there was one.
    pub(super) fn drop(&mut self) -> bool {
        self.doubted.take().is_some()
    }

    /// Removes and returns the packet.
    pub(super) fn take(&mut self) -> Option<Believed> {
        let Doubted { session, kind, .. } = self.doubted.take()?;
        Some(Believed { session, kind, blocks: std::mem::take(&mut self.blocks) })
    }
}

/// A confirmed packet with its own bytes.
#[derive(Debug)]
pub(super) struct Believed {
    session: Session,
    kind: DatagramKind<'static>,
    blocks: Vec<u8>,
}

impl Believed {
    pub(super) fn packet(&self) -> Packet<'_> {
        Packet { session: self.session, kind: self.kind.over(&self.blocks), trailing: 0 }
    }
}

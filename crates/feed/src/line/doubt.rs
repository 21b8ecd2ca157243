//! Packets that say that everything begins again, or goes on behind its end, kept until a second one says so too.

use tapeline_nanos::Nanos;

use crate::framing::{Kind, Packet, Session};

/// A copy of one packet that is not believed yet. One for each line; it takes memory when it is first needed, at most a
/// datagram's.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    doubted: Option<Doubted>,
    blocks: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Doubted {
    session: Session,
    kind: Kind<'static>,
    received: Nanos,
}

impl Doubt {
    /// Whether there is none.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.doubted.is_none()
    }

    /// The session that the packet names, and the sequences that it holds.
    pub(super) fn about(&self) -> Option<(Session, (u64, u64))> {
        self.doubted.map(|doubted| (doubted.session, doubted.kind.sequences()))
    }

    /// When it came.
    pub(super) fn received(&self) -> Option<Nanos> {
        self.doubted.map(|doubted| doubted.received)
    }

    /// Keeps a copy in place of what was kept before.
    pub(super) fn keep(&mut self, packet: &Packet<'_>, received: Nanos) {
        let (kind, blocks) = packet.kind.apart();
        self.blocks.clear();
        self.blocks.extend_from_slice(blocks);
        self.doubted = Some(Doubted { session: packet.session, kind, received });
    }

    /// Forgets it; whether there was one.
    pub(super) fn drop(&mut self) -> bool {
        self.doubted.take().is_some()
    }

    /// Takes the packet out.
    pub(super) fn take(&mut self) -> Option<Believed> {
        let Doubted { session, kind, .. } = self.doubted.take()?;
        Some(Believed { session, kind, blocks: std::mem::take(&mut self.blocks) })
    }
}

/// A packet that was doubted, with its own bytes.
#[derive(Debug)]
pub(super) struct Believed {
    session: Session,
    kind: Kind<'static>,
    blocks: Vec<u8>,
}

impl Believed {
    pub(super) fn packet(&self) -> Packet<'_> {
        Packet { session: self.session, kind: self.kind.over(&self.blocks), trailing: 0 }
    }
}

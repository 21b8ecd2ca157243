//! The connections to the clients.

use tapeline_omm::role::Outbox;

use crate::backlog::Backlog;

/// The number of a session of the hub: one client's connection. The number of a closed session is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u32);

impl SessionId {
    /// Returns the number as an index, counted from 0 with few gaps.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The outboxes of the sessions: connections in a real hub, queues in a test.
pub trait Connections {
    /// Calls `send` with the outbox of a session; returns `None` if the connection no longer exists.
    fn with<R>(&mut self, session: SessionId, send: impl FnOnce(&mut dyn Outbox) -> R) -> Option<R>;

    /// Returns `true` if all output of a session has left this process, or if its connection no longer exists. A session that was ended has up
    /// to 2 s for this, so that its client gets the reason.
    fn is_flushed(&mut self, session: SessionId) -> bool {
        let _ = session;
        true
    }
}

/// An outbox with a queue before it: while messages are queued, later ones are queued after them.
pub(crate) struct Behind<'a> {
    pub(crate) backlog: &'a mut Backlog,
    pub(crate) out: &'a mut dyn Outbox,
    /// `true` if the present claim is in the queue.
    in_backlog: bool,
}

impl<'a> Behind<'a> {
    pub(crate) fn new(backlog: &'a mut Backlog, out: &'a mut dyn Outbox) -> Self {
        Self { backlog, out, in_backlog: false }
    }
}

impl Outbox for Behind<'_> {
    fn most(&self) -> usize {
        self.out.most()
    }

    fn left(&self) -> usize {
        if self.backlog.is_empty() { self.out.left() } else { self.backlog.left() }
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        self.in_backlog = !self.backlog.is_empty() && !self.backlog.send_on(self.out);
        if self.in_backlog { self.backlog.claim(len) } else { self.out.claim(len) }
    }

    fn commit(&mut self, len: usize) {
        if self.in_backlog {
            self.backlog.commit(len);
        } else {
            self.out.commit(len);
        }
    }
}

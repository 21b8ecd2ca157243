//! The queued output that no policy drops, of all clients together: the rest of images in parts, messages of private streams.
//!
//! An image in parts is built at one time, so the parts that exceed a connection's capacity have to be queued. One limit applies to all sessions.
//! While it is reached, sessions that need such an image wait in line, and the image is built at their turn, with the item's state at that time.
//! While a session waits, no other may hold queue capacity for longer than the limit for a stuck client: otherwise a client that reads a few bytes
//! now and then would block all others forever.

use std::collections::VecDeque;

use tapeline_nanos::Nanos;

use crate::SessionId;
use crate::backlog::Backlog;
use crate::session::SessionState;

/// The amount of queued output, and the sessions in line.
#[derive(Debug)]
pub(crate) struct OverflowBudget {
    /// Queued bytes, as of the last step of each session.
    held: usize,
    most: usize,
    /// Maximum queued bytes of one image.
    image: usize,
    line: VecDeque<SessionId>,
}

impl OverflowBudget {
    /// Creates an empty budget of `most` bytes; `image` is the maximum of one image.
    pub(crate) fn new(most: usize, image: usize) -> Self {
        // Otherwise no image could ever be built.
        Self { held: 0, most: most.max(image), image, line: VecDeque::new() }
    }

    /// Returns `true` if `bytes` more bytes may be queued.
    pub(crate) const fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.most.saturating_sub(self.held)
    }

    /// Returns `true` if a session may build an image in parts; otherwise it waits in line.
    pub(crate) fn admits(&mut self, id: SessionId, session_state: &mut SessionState) -> bool {
        let is_first = self.line.front().is_none_or(|first| *first == id);
        if is_first && self.has_room(self.image) {
            self.leave(id, session_state);
            return true;
        }
        if !std::mem::replace(&mut session_state.is_in_line, true) {
            self.line.push_back(id);
        }
        false
    }

    /// Removes a session from the line: it has its image, needs none, or could not take one now.
    #[inline]
    pub(crate) fn leave(&mut self, id: SessionId, session_state: &mut SessionState) {
        if session_state.is_in_line {
            session_state.is_in_line = false;
            self.line.retain(|other| *other != id);
        }
    }

    /// Returns the next session to build an image, if there is capacity for it.
    pub(crate) fn next(&self) -> Option<SessionId> {
        self.line.front().copied().filter(|_| self.has_room(self.image))
    }

    /// Returns `true` if a session waits in line.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.line.is_empty()
    }

    /// Records the present queued output of a session.
    pub(crate) fn count(&mut self, now: Nanos, session_state: &mut SessionState, backlog: &Backlog) {
        let waits = backlog.rest();
        session_state.rests = if waits == 0 { None } else { session_state.rests.or(Some(now)) };
        self.held = self.held + waits - std::mem::replace(&mut session_state.overflow, waits);
    }

    /// Handles the end of a session.
    pub(crate) fn forget(&mut self, id: SessionId, session_state: &mut SessionState) {
        self.leave(id, session_state);
        self.held -= std::mem::take(&mut session_state.overflow);
    }
}

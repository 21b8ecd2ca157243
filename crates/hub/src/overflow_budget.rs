//! What waits for clients and no policy leaves out, of all of them together: the rest of images in parts, messages of private streams.
//!
//! An image that has several messages is made at one moment, so what finds no room of it has to be kept. One cap is for all
//! sessions: while it is reached, who wants such an image stands in line, and has it made when it is its turn, as the item is then.
//! While somebody stands in line, nobody keeps room for longer than a client may be stuck: a client that reads a few bytes now
//! and then would otherwise hold up all the others for ever.

use std::collections::VecDeque;

use tapeline_nanos::Nanos;

use crate::SessionId;
use crate::backlog::Backlog;
use crate::session::SessionState;

/// How much waits, and who stands in line.
#[derive(Debug)]
pub(crate) struct OverflowBudget {
    /// Bytes, as of the last look at each session.
    held: usize,
    most: usize,
    /// What an image leaves at most.
    image: usize,
    line: VecDeque<SessionId>,
}

impl OverflowBudget {
    /// Nothing, and room for so many bytes; an image leaves so many at most.
    pub(crate) fn new(most: usize, image: usize) -> Self {
        // Else none could ever be made.
        Self { held: 0, most: most.max(image), image, line: VecDeque::new() }
    }

    /// Whether so many bytes more may wait.
    pub(crate) const fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.most.saturating_sub(self.held)
    }

    /// Whether a session may have an image made that has several messages; else it stands in line from now on.
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

    /// A session stands in line no longer: it has its image, wants none, or could not take one now.
    pub(crate) fn leave(&mut self, id: SessionId, session_state: &mut SessionState) {
        if std::mem::take(&mut session_state.is_in_line) {
            self.line.retain(|other| *other != id);
        }
    }

    /// Who is to have an image made next, if there is room for one.
    pub(crate) fn next(&self) -> Option<SessionId> {
        self.line.front().copied().filter(|_| self.has_room(self.image))
    }

    /// Whether somebody stands in line.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.line.is_empty()
    }

    /// Counts what waits for a session now.
    pub(crate) fn count(&mut self, now: Nanos, session_state: &mut SessionState, backlog: &Backlog) {
        let waits = backlog.rest();
        session_state.rests = if waits == 0 { None } else { session_state.rests.or(Some(now)) };
        self.held = self.held + waits - std::mem::replace(&mut session_state.overflow, waits);
    }

    /// A session is over.
    pub(crate) fn forget(&mut self, id: SessionId, session_state: &mut SessionState) {
        self.leave(id, session_state);
        self.held -= std::mem::take(&mut session_state.overflow);
    }
}

//! One client.

use std::collections::VecDeque;
use std::sync::Arc;

use tapeline_nanos::Nanos;
use tapeline_omm::domain::OwnedState;
use tapeline_omm::role::provider::{Provider, StreamHandle};
use tapeline_omm::rwf::{State, StateCode, StreamState};

use crate::access::Pass;
use crate::backlog::Backlog;
use crate::event::{End, SessionCounters};
use crate::lagging_streams::LaggingStreams;
use crate::parts::Parts;
use crate::refusals::Refusals;
use crate::settings::Settings;
use crate::slow_clients::SlowPolicy;
use crate::statuses::suspect;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) provider: Provider,
    /// Updates queued after the output in the connection.
    pub(crate) backlog: Backlog,
    pub(crate) session_state: SessionState,
}

/// The state of a session without its role and its queue.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    /// A unique number: session numbers are reused.
    pub(crate) serial: u64,
    /// Time of the connection.
    pub(crate) since: Nanos,
    /// `true` if the client prefers closed streams to suspect data.
    pub(crate) refuses_suspect: bool,
    /// The last round-trip time, ns; 0 before the first.
    pub(crate) round_trip_ns: u64,
    /// Pending answers to its streams.
    owed: VecDeque<(StreamHandle, PendingReply)>,
    /// The last output found no capacity: no attempt is made before a report of capacity.
    pub(crate) is_full: bool,
    /// The session is in the list of those with deferred replies.
    pub(crate) is_owed_more: bool,
    /// Time since which the client has taken nothing.
    pub(crate) stuck: Option<Nanos>,
    pub(crate) user: String,
    pub(crate) pass: Pass,
    /// The login is paused, and with it all streams.
    pub(crate) is_paused: bool,
    pub(crate) over: Option<End>,
    /// The client has got the reason for the end, and may take it until this time.
    pub(crate) leaves: Option<Nanos>,
    pub(crate) slow: SlowPolicy,
    /// The sources of its private streams have been asked to pause.
    pub(crate) holds: bool,
    /// Streams with updates queued since the queue was last empty.
    pub(crate) behind: LaggingStreams,
    /// Incomplete posts.
    pub(crate) parts: Parts,
    pub(crate) counters: SessionCounters,
    /// Refused items in the log.
    pub(crate) refusals: Refusals,
    /// Number of its open streams, as included in the total.
    pub(crate) streams: usize,
    /// Queued bytes that no policy drops, as included in the total.
    pub(crate) overflow: usize,
    /// Time since which there have been such bytes.
    pub(crate) rests: Option<Nanos>,
    /// Position among its streams from which streams may need their items' states.
    pub(crate) restates: Option<usize>,
    /// The session waits in line to build an image in parts.
    pub(crate) is_in_line: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum PendingReply {
    /// The image of its item.
    Image,
    /// The final status.
    Closed(Refusal),
    /// The status of an item without an image.
    Pending,
    /// A status of the item or the stream; the last one if it is final.
    State(Arc<OwnedState>),
}

/// The reason for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: StateCode,
    pub(crate) text: &'static str,
    /// The client should retry.
    pub(crate) may_recover: bool,
}

impl Refusal {
    /// Creates a refusal that a retry does not change.
    pub(crate) const fn closed(code: StateCode, text: &'static str) -> Self {
        Self { code, text, may_recover: false }
    }

    /// Creates a refusal after which the client should retry.
    pub(crate) const fn recover(code: StateCode, text: &'static str) -> Self {
        Self { code, text, may_recover: true }
    }

    /// Returns the state that a client gets.
    pub(crate) const fn state(&self) -> State<'static> {
        let stream = if self.may_recover { StreamState::CLOSED_RECOVER } else { StreamState::CLOSED };
        suspect(stream, self.code, self.text)
    }
}

/// Number of pending replies above which those to closed streams are removed.
const MOST_CLOSED: usize = 1024;

impl Session {
    pub(crate) fn new(settings: &Settings, now: Nanos) -> Self {
        Self {
            provider: Provider::new(settings.session.clone(), now),
            backlog: Backlog::new(settings.slow.bytes(), settings.image_bytes),
            session_state: SessionState { since: now, slow: settings.slow, ..SessionState::default() },
        }
    }

    /// Returns `true` if the client has not sent a login yet.
    pub(crate) fn is_stranger(&self) -> bool {
        !self.provider.is_logged_in()
            && self.session_state.pass.pending.is_none()
            && self.session_state.over.is_none()
    }

    /// Returns `true` if output waits for capacity.
    pub(crate) fn is_behind(&self) -> bool {
        self.session_state.is_full || !self.backlog.is_empty() || !self.session_state.owed.is_empty()
    }
}

impl SessionState {
    /// Adds a pending reply. A stream has at most two, so there are at most twice as many as open streams, and some of closed ones.
    pub(crate) fn owe(&mut self, provider: &Provider, stream: StreamHandle, owed: PendingReply) {
        if self.owed.len() >= 4 * provider.open_streams() + MOST_CLOSED {
            self.owed.retain(|(stream, _)| provider.stream_id(*stream).is_some());
        }
        self.owed.push_back((stream, owed));
    }

    pub(crate) fn first_owed(&self) -> Option<(StreamHandle, PendingReply)> {
        self.owed.front().cloned()
    }

    /// Removes the first pending reply.
    pub(crate) fn settled(&mut self) {
        self.owed.pop_front();
        if self.owed.is_empty() && self.owed.capacity() > MOST_CLOSED {
            self.owed = VecDeque::new();
        }
        self.stuck = None;
    }

    /// Records that output found no capacity.
    pub(crate) fn found_no_room(&mut self, now: Nanos) {
        self.is_full = true;
        self.stuck.get_or_insert(now);
    }

    /// Drops the pending replies: the session is over.
    pub(crate) fn owe_nothing(&mut self) {
        self.owed = VecDeque::new();
    }

    /// Returns the number of pending replies.
    pub(crate) fn owed(&self) -> usize {
        self.owed.len()
    }

    /// Returns `true` if there are no pending replies.
    pub(crate) fn owes_nothing(&self) -> bool {
        self.owed.is_empty()
    }

    /// Ends the session; the first reason counts.
    pub(crate) fn end(&mut self, end: End) {
        self.over.get_or_insert(end);
    }
}

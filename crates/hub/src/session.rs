//! One client.

use std::collections::VecDeque;
use std::sync::Arc;

use tapeline_nanos::Nanos;
use tapeline_omm::domain::OwnedState;
use tapeline_omm::role::provider::{Provider, StreamHandle};
use tapeline_omm::rwf::StateCode;

use crate::access::Pass;
use crate::backlog::Backlog;
use crate::event::{End, SessionCounters, TooMuch};
use crate::lagging_streams::LaggingStreams;
use crate::parts::Parts;
use crate::settings::{Settings, SlowPolicy};

/// A client's session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) provider: Provider,
    /// Updates that wait behind what the connection holds.
    pub(crate) backlog: Backlog,
    pub(crate) session_state: SessionState,
}

/// All of a session but its role and what waits.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    /// No other session before or after has it: a place among the sessions is used again.
    pub(crate) serial: u64,
    /// When its client connected.
    pub(crate) since: Nanos,
    /// It would rather ask again than have a stream whose data is suspect.
    pub(crate) refuses_suspect: bool,
    /// The last round trip, ns; 0 before there is one.
    pub(crate) round_trip_ns: u64,
    /// Answers to its streams that there was no room for.
    owed: VecDeque<(StreamHandle, PendingReply)>,
    /// There was no room when something was sent last: nothing is tried before there is news.
    pub(crate) is_full: bool,
    /// It is among those that are owed replies for which there is room.
    pub(crate) is_owed_more: bool,
    /// Since when it has taken nothing.
    pub(crate) stuck: Option<Nanos>,
    pub(crate) user: String,
    pub(crate) pass: Pass,
    /// Its login is paused, and all its streams.
    pub(crate) is_paused: bool,
    pub(crate) over: Option<End>,
    /// It has been told why it is over, and has until then to take that.
    pub(crate) leaves: Option<Nanos>,
    /// What becomes of its updates when it is slow.
    pub(crate) slow: SlowPolicy,
    /// The sources of its own streams have been asked to pause.
    pub(crate) holds: bool,
    /// Streams whose updates had to wait, since nothing waited last.
    pub(crate) behind: LaggingStreams,
    /// Posts of which not all parts have come.
    pub(crate) parts: Parts,
    pub(crate) counters: SessionCounters,
    /// Its open streams, as counted among all.
    pub(crate) streams: usize,
    /// What waits for it and no policy leaves out, as counted among all, bytes.
    pub(crate) overflow: usize,
    /// Since when there has been some of that.
    pub(crate) rests: Option<Nanos>,
    /// The place among its streams from which on there may be some that are to be told their items' states.
    pub(crate) restates: Option<usize>,
    /// It waits until an image in parts may be made for it.
    pub(crate) is_in_line: bool,
}

/// What a stream is owed.
#[derive(Debug, Clone)]
pub(crate) enum PendingReply {
    /// The image of its item.
    Image,
    /// The last word.
    Closed(Refusal),
    /// The state of an item without an image.
    Pending,
    /// What was said of the item or the stream; the last word where it is final.
    State(Arc<OwnedState>),
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: StateCode,
    pub(crate) text: &'static str,
    /// The client should ask again.
    pub(crate) may_recover: bool,
}

/// Answers to streams that are closed meanwhile are looked for only above so many.
const MOST_STALE: usize = 1024;

impl Session {
    pub(crate) fn new(settings: &Settings, now: Nanos) -> Self {
        Self {
            provider: Provider::new(settings.session.clone(), now),
            backlog: Backlog::new(settings.slow.bytes(), settings.image_bytes),
            session_state: SessionState { since: now, slow: settings.slow, ..SessionState::default() },
        }
    }

    /// Whether its client has sent no login yet.
    pub(crate) fn is_stranger(&self) -> bool {
        !self.provider.is_logged_in()
            && self.session_state.pass.pending.is_none()
            && self.session_state.over.is_none()
    }

    /// What waits has waited for too long: under this policy the session is over, or its updates are dropped. `lost`: a
    /// stream that lost one.
    pub(crate) fn too_old(
        &mut self,
        age_ms: u64,
        mut lost: impl FnMut(&mut SessionState, &Provider, StreamHandle),
    ) {
        let Self { provider, backlog, session_state } = self;
        match session_state.slow {
            SlowPolicy::Conflate => {}
            SlowPolicy::Cut { .. } | SlowPolicy::Block { .. } => {
                session_state.end(End::Slow(TooMuch::Age(age_ms)));
            }
            SlowPolicy::DropWithGap { .. } => {
                let before = backlog.len();
                backlog.drop_updates(|stream| lost(session_state, provider, stream));
                session_state.counters.dropped += (before - backlog.len()) as u64;
            }
        }
    }

    /// Whether something waits for room.
    pub(crate) fn is_behind(&self) -> bool {
        self.session_state.is_full || !self.backlog.is_empty() || !self.session_state.owed.is_empty()
    }
}

impl SessionState {
    /// A stream is owed something. One stream is owed two things at most, so that there are no more than twice the streams
    /// that a client has open, and some that it closed meanwhile.
    pub(crate) fn owe(&mut self, provider: &Provider, stream: StreamHandle, owed: PendingReply) {
        if self.owed.len() >= 4 * provider.open_streams() + MOST_STALE {
            self.owed.retain(|(stream, _)| provider.stream_id(*stream).is_some());
        }
        self.owed.push_back((stream, owed));
    }

    /// What is owed first.
    pub(crate) fn first_owed(&self) -> Option<(StreamHandle, PendingReply)> {
        self.owed.front().cloned()
    }

    /// That is done.
    pub(crate) fn settled(&mut self) {
        self.owed.pop_front();
        if self.owed.is_empty() && self.owed.capacity() > MOST_STALE {
            self.owed = VecDeque::new();
        }
        self.stuck = None;
    }

    /// Something found no room.
    pub(crate) fn found_no_room(&mut self, now: Nanos) {
        self.is_full = true;
        self.stuck.get_or_insert(now);
    }

    /// What was owed is forgotten: the session is over.
    pub(crate) fn owe_nothing(&mut self) {
        self.owed = VecDeque::new();
    }

    /// How much is owed.
    pub(crate) fn owed(&self) -> usize {
        self.owed.len()
    }

    /// Whether nothing is owed.
    pub(crate) fn owes_nothing(&self) -> bool {
        self.owed.is_empty()
    }

    /// The session is to be ended, for the first reason that there is.
    pub(crate) fn end(&mut self, end: End) {
        self.over.get_or_insert(end);
    }
}

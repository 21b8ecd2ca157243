//! One client.

use std::collections::VecDeque;

use tapeline_measure::Nanos;
use tapeline_omm::role::Queue;
use tapeline_omm::role::provider::{Provider, StreamHandle};
use tapeline_omm::rwf::StateCode;

use crate::note::{End, SessionCounters};
use crate::settings::{Settings, SlowPolicy};

/// A client's session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) provider: Provider,
    /// Updates that wait behind what the connection holds.
    pub(crate) backlog: Queue,
    pub(crate) account: Account,
}

/// All of a session but its role and what waits.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Answers to its streams that there was no room for.
    owed: VecDeque<(StreamHandle, Owed)>,
    /// There was no room when something was sent last: nothing is tried before there is news.
    pub(crate) is_full: bool,
    /// Since when it has taken nothing.
    pub(crate) stuck: Option<Nanos>,
    pub(crate) user: String,
    /// Its login is paused, and all its streams.
    pub(crate) is_paused: bool,
    pub(crate) over: Option<End>,
    pub(crate) counters: SessionCounters,
}

/// What a stream is owed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owed {
    /// The image of its item.
    Image,
    /// The last word.
    Closed(Refusal),
    /// The state of an item without an image.
    Pending,
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
        let backlog = match settings.slow {
            SlowPolicy::Conflate => 0,
            SlowPolicy::Cut { bytes, .. } => bytes,
        };
        Self {
            provider: Provider::new(settings.session.clone(), now),
            backlog: Queue::new(backlog),
            account: Account::default(),
        }
    }

    /// Whether something waits for room.
    pub(crate) fn is_behind(&self) -> bool {
        self.account.is_full || !self.backlog.is_empty() || !self.account.owed.is_empty()
    }
}

impl Account {
    /// A stream is owed something. One stream is owed two things at most, so that there are no more than twice the streams
    /// that a client has open, and some that it closed meanwhile.
    pub(crate) fn owe(&mut self, provider: &Provider, stream: StreamHandle, owed: Owed) {
        if self.owed.len() >= 4 * provider.open_streams() + MOST_STALE {
            self.owed.retain(|(stream, _)| provider.stream_id(*stream).is_some());
        }
        self.owed.push_back((stream, owed));
    }

    /// What is owed first.
    pub(crate) fn first_owed(&self) -> Option<(StreamHandle, Owed)> {
        self.owed.front().copied()
    }

    /// That is done.
    pub(crate) fn settled(&mut self) {
        self.owed.pop_front();
        self.stuck = None;
    }

    /// Something found no room.
    pub(crate) fn found_no_room(&mut self, now: Nanos) {
        self.is_full = true;
        self.stuck.get_or_insert(now);
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

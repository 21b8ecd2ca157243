//! Slow clients: what a client gets that does not take its messages fast enough.
//!
//! [`offer`] sends or queues a message by the client's [`SlowPolicy`]; [`give_up`] is what a stream gets instead of a message for which there is no
//! capacity. Sessions that take nothing for too long end in [`Hub`](crate::Hub)'s step.

use tapeline_nanos::Nanos;
use tapeline_omm::role::provider::{Provider, StreamHandle};
use tapeline_omm::role::{Outbox, Sent};

use crate::backlog::Backlog;
use crate::connections::{Behind, Connections, SessionId};
use crate::event::{End, TooMuch};
use crate::interest::{Open, StreamPhase};
use crate::session::{PendingReply, Session, SessionState};
use crate::settings::Settings;
use crate::shared_state::SharedState;

/// The usual maximum of bytes that are queued for a client, in addition to the buffers of its connection.
pub const SLOW_BYTES: usize = 8 << 20;
/// The usual maximum of messages that are queued for a client.
pub const SLOW_MESSAGES: usize = 100_000;
/// The usual time after which a client that takes nothing is disconnected, in milliseconds.
pub const SLOW_TIME_MS: u64 = 60_000;

/// The handling of a client that does not take its messages fast enough.
///
/// No policy delays other clients: output for which the connection has no capacity is queued within a limit, or dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SlowPolicy {
    /// Drops updates while the connection has no capacity, then sends one new image of each item that changed meanwhile. The client follows the
    /// market, but does not get every update. The default.
    #[default]
    Conflate,
    /// Delivers every update or none: updates are queued for capacity, and beyond these limits the client is disconnected.
    Cut {
        /// Maximum queued bytes, in addition to the buffers of the connection.
        bytes: usize,
        /// Maximum queued messages.
        messages: usize,
    },
    /// Queues updates, and drops those that exceed the limits. Each stream that lost an update gets a status (suspect, gap detected), and an
    /// image as soon as the connection has capacity.
    DropWithGap {
        /// Maximum queued bytes.
        bytes: usize,
        /// Maximum queued messages.
        messages: usize,
    },
    /// Queues updates for at most [`Settings::stuck_ms`], and meanwhile pauses a source that only this client uses. A feed is never paused, nor
    /// a source that other clients have open: for those this policy is [`Cut`](Self::Cut) with a time limit.
    Block {
        /// Maximum queued bytes.
        bytes: usize,
        /// Maximum queued messages.
        messages: usize,
    },
}

impl SlowPolicy {
    /// Returns the maximum number of queued bytes; 0 for [`Self::Conflate`].
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.limits().0
    }

    /// Returns the maximum number of queued messages; 0 for [`Self::Conflate`].
    #[must_use]
    pub const fn messages(self) -> usize {
        self.limits().1
    }

    const fn limits(self) -> (usize, usize) {
        match self {
            Self::Conflate => (0, 0),
            Self::Cut { bytes, messages }
            | Self::DropWithGap { bytes, messages }
            | Self::Block { bytes, messages } => (bytes, messages),
        }
    }

    /// Returns the maximum age of a queued update, in milliseconds; 0 for no limit.
    const fn age_ms(self, settings: &Settings) -> u64 {
        match self {
            Self::Block { .. } if settings.slow_age_ms == 0 || settings.stuck_ms < settings.slow_age_ms => {
                settings.stuck_ms
            }
            _ => settings.slow_age_ms,
        }
    }
}

/// Sends a message to a stream's client according to its policy. [`Sent::Full`]: the stream now waits for an image, or the session is over.
pub(crate) fn offer(
    now: Nanos,
    session: &mut Session,
    open: &mut Open,
    settings: &Settings,
    connections: &mut impl Connections,
    mut send: impl FnMut(&mut Provider, &mut dyn Outbox) -> Sent,
) -> Sent {
    let Session { provider, backlog, session_state } = session;
    let mut sent = Sent::Full;
    if !session_state.is_full {
        let there = connections.with(open.session, |out| send(provider, &mut Behind::new(backlog, out)));
        sent = there.unwrap_or(Sent::NotOpen);
    }
    if sent != Sent::Full {
        return sent;
    }
    session_state.found_no_room(now);
    let slow = session_state.slow;
    let full = if slow == SlowPolicy::Conflate {
        TooMuch::Messages(0)
    } else if let Some(age_ms) = age_of_too_old(now, backlog, slow.age_ms(settings)) {
        TooMuch::Age(age_ms)
    } else if backlog.limited() >= slow.messages() {
        TooMuch::Messages(slow.messages())
    } else {
        backlog.at(now);
        // Earlier messages in the queue may be receipts that the role owed, which no policy drops.
        sent = send(provider, backlog);
        // The image of a snapshot is the last message of its stream: without it, the client would wait for ever.
        if sent.is_queued() && provider.stream_id(open.stream).is_some() {
            backlog.mark_update(open.stream);
        }
        TooMuch::Bytes(slow.bytes())
    };
    if sent != Sent::Full {
        session_state.counters.queued += u64::from(sent == Sent::Queued);
        if matches!(slow, SlowPolicy::Block { .. }) && !std::mem::replace(&mut open.is_behind, true) {
            let is_open = |stream| provider.stream_id(stream).is_some();
            session_state.behind.add(open.stream, provider.open_streams(), is_open);
        }
        return sent;
    }
    give_up(session_state, provider, open, full);
    sent
}

/// Handles a message that finds no capacity: the stream gets an image later, or the session ends.
pub(crate) fn give_up(session_state: &mut SessionState, provider: &Provider, open: &mut Open, full: TooMuch) {
    match session_state.slow {
        SlowPolicy::Conflate | SlowPolicy::DropWithGap { .. } => {
            let is_gap = session_state.slow != SlowPolicy::Conflate;
            open.phase = if is_gap { StreamPhase::GapOwed } else { StreamPhase::ImageOwed };
            session_state.owe(provider, open.stream, PendingReply::Image);
        }
        SlowPolicy::Cut { .. } | SlowPolicy::Block { .. } => session_state.end(End::Slow(full)),
    }
}

impl SharedState {
    /// Drops updates that have waited in a session's backlog for longer than its policy allows; their streams get images instead.
    #[inline]
    pub(crate) fn drop_old(&mut self, now: Nanos, id: SessionId, session: &mut Session) {
        if session.backlog.limited() == 0 {
            return;
        }
        let age_ms = session.session_state.slow.age_ms(&self.settings);
        let Some(age_ms) = age_of_too_old(now, &session.backlog, age_ms) else { return };
        session.too_old(age_ms, |session_state, provider, stream| {
            if let Some(open) = self.interest.stream_mut(id, stream)
                && open.phase == StreamPhase::Current
            {
                open.phase = StreamPhase::GapOwed;
                session_state.owe(provider, stream, PendingReply::Image);
            }
        });
    }
}

impl Session {
    /// Handles queued output that exceeds the age limit: the policy ends the session, or drops the updates. `lost` gets each stream that lost an
    /// update.
    fn too_old(&mut self, age_ms: u64, mut lost: impl FnMut(&mut SessionState, &Provider, StreamHandle)) {
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
}

/// Returns the age limit if the oldest queued message exceeds it.
pub(crate) fn age_of_too_old(now: Nanos, backlog: &Backlog, age_ms: u64) -> Option<u64> {
    let oldest = backlog.oldest().filter(|_| age_ms > 0)?;
    (now.0.saturating_sub(oldest.0) >= age_ms.saturating_mul(1_000_000)).then_some(age_ms)
}

//! The pausing of sources that only one client uses, while that client lags.
//!
//! Under [`Block`](crate::SlowPolicy::Block), an interactive provider's item that only one client has open is paused when the client has lagged for
//! 50 ms. It is resumed, with a new image, when the client has taken all queued output, or as soon as another client opens the item. Updates that
//! arrive meanwhile are queued within the policy's limits.

use tapeline_nanos::Nanos;
use tapeline_omm::role::provider::StreamHandle;

use crate::SessionId;
use crate::session::Session;
use crate::shared_state::SharedState;
use crate::slow_clients::age_of_too_old;

/// Minimum age of a queued update, ms. A pause costs an image at its end, and most clients regain capacity sooner.
const PATIENCE_MS: u64 = 50;
/// Number of entries above which closed streams are removed.
const MOST_CLOSED: usize = 1024;

/// Streams of a session with queued updates.
#[derive(Debug, Default)]
pub(crate) struct LaggingStreams {
    streams: Vec<StreamHandle>,
    /// Number of streams examined so far.
    seen: usize,
}

impl LaggingStreams {
    /// Adds a stream that is not in the list.
    pub(crate) fn add(
        &mut self,
        stream: StreamHandle,
        open_streams: usize,
        is_open: impl Fn(StreamHandle) -> bool,
    ) {
        if self.streams.len() >= 2 * open_streams + MOST_CLOSED {
            self.streams.retain(|stream| is_open(*stream));
            self.seen = 0;
        }
        self.streams.push(stream);
    }
}

impl SharedState {
    /// Pauses the sources of a session's queued streams if only this session uses them, or resumes them. Costs a test of each stream that starts to
    /// lag, and one more when the queue is empty.
    pub(crate) fn hold_back(&mut self, now: Nanos, id: SessionId, session: &mut Session) {
        let Session { backlog, session_state, .. } = session;
        if session_state.behind.streams.is_empty() {
            return;
        }
        if backlog.is_empty() && !session_state.is_full {
            for stream in std::mem::take(&mut session_state.behind).streams {
                self.let_go_on(id, stream);
            }
        } else if age_of_too_old(now, backlog, PATIENCE_MS).is_some() {
            let behind = &mut session_state.behind;
            for stream in behind.streams.get(behind.seen..).unwrap_or_default() {
                session_state.counters.held += u64::from(self.hold_source(id, *stream));
            }
            behind.seen = behind.streams.len();
        }
    }

    /// Pauses the source of an item, if only this session has it and the source can be paused. Returns `true` if it is paused now.
    fn hold_source(&mut self, id: SessionId, stream: StreamHandle) -> bool {
        let Some(place) = self.interest.place_of(id, stream) else { return false };
        if !self.is_on_demand(place) {
            return false;
        }
        let Some(item) = self.interest.get_mut(place) else { return false };
        let is_alone = item.streams.iter().all(|open| open.session == id);
        let Some(upstream) = item.upstream.as_mut().filter(|upstream| is_alone && upstream.is_told()) else {
            return false;
        };
        let is_new = !std::mem::replace(&mut upstream.is_held, true);
        self.tell_source(place);
        is_new
    }

    fn let_go_on(&mut self, id: SessionId, stream: StreamHandle) {
        if let Some(open) = self.interest.stream_mut(id, stream) {
            open.is_behind = false;
        }
        let Some(place) = self.interest.place_of(id, stream) else { return };
        if let Some(upstream) = self.interest.get_mut(place).and_then(|item| item.upstream.as_mut()) {
            upstream.is_held = false;
            self.tell_source(place);
        }
    }
}

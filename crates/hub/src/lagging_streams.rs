//! Sources that are one client's alone are held back while it does not take what they say.
//!
//! Under [`Block`](crate::SlowPolicy::Block) an interactive provider's item that nobody else has open is paused once its client
//! has been behind for a moment, and goes on, with a new image, when the client has taken all that waited, or as soon as
//! somebody else opens the item. What comes meanwhile all the same is queued within the policy's limits.

use tapeline_nanos::Nanos;
use tapeline_omm::role::provider::StreamHandle;

use crate::SessionId;
use crate::fan_out::age_of_too_old;
use crate::session::Session;
use crate::shared_state::SharedState;

/// How long an update must have waited, ms. A pause costs an image when it ends, and most clients that have no room have it
/// again sooner.
const PATIENCE_MS: u64 = 50;
/// Streams that are closed meanwhile are looked for only above so many.
const MOST_STALE: usize = 1024;

/// Streams of a session whose updates had to wait for room.
#[derive(Debug, Default)]
pub(crate) struct LaggingStreams {
    streams: Vec<StreamHandle>,
    /// So many of them have been looked at.
    seen: usize,
}

impl LaggingStreams {
    /// One more, which is not among them.
    pub(crate) fn add(
        &mut self,
        stream: StreamHandle,
        open_streams: usize,
        is_open: impl Fn(StreamHandle) -> bool,
    ) {
        if self.streams.len() >= 2 * open_streams + MOST_STALE {
            self.streams.retain(|stream| is_open(*stream));
            self.seen = 0;
        }
        self.streams.push(stream);
    }

    fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }
}

impl SharedState {
    /// Holds back the sources of what waits for a session, where they are its alone, or lets them go on. Costs a look at each
    /// stream that falls behind, and one when nothing waits any more.
    pub(crate) fn hold_back(&mut self, now: Nanos, id: SessionId, session: &mut Session) {
        let Session { backlog, session_state, .. } = session;
        if session_state.behind.is_empty() {
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

    /// The source of an item pauses, if this session alone has it and it can be asked: whether it is asked now.
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

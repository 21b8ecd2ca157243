//! Pings, and the ping time-out.

use tapeline_nanos::Nanos;

use super::super::fault::Reason;

const NS_PER_S: i64 = 1_000_000_000;

/// The times of the last receipt (`heard`) and the last send (`wrote`).
#[derive(Default)]
pub(super) struct Pings {
    pub(super) started: Nanos,
    pub(super) heard: Nanos,
    pub(super) wrote: Nanos,
    /// Frames sent by then.
    pub(super) frames: u64,
    /// The ping time-out in seconds.
    pub(super) timeout: Option<u8>,
    pub(super) sends: bool,
    /// The peer only answers pings and sends none itself, as JSON clients do.
    pub(super) asks: bool,
    /// When the last ping was sent.
    pub(super) asked: Nanos,
}

impl Pings {
    /// Returns `true` if a ping is due: nothing was sent for a third of the time-out, or nothing was received
    /// from a peer that only answers pings, however much is sent to it.
    pub(super) fn turn(&mut self, now: Nanos, frames: u64) -> Result<bool, Reason> {
        let Some(seconds) = self.timeout else { return Ok(false) };
        let timeout = i64::from(seconds) * NS_PER_S;
        if now.since(self.heard) >= timeout {
            return Err(Reason::Silent { seconds });
        }
        if frames != self.frames {
            (self.frames, self.wrote) = (frames, now);
        }
        let since = |then| now.since(then) >= timeout / 3;
        let asks = self.asks && since(self.heard) && since(self.asked);
        if self.sends && (since(self.wrote) || asks) {
            (self.frames, self.wrote, self.asked) = (frames + 1, now, now);
            return Ok(true);
        }
        Ok(false)
    }
}

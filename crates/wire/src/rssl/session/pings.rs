//! Pings, and how long silence may last.

use tapeline_nanos::Nanos;

use super::super::fault::Reason;

const NS_PER_S: i64 = 1_000_000_000;

/// When something was last heard and said.
#[derive(Debug)]
pub(super) struct Pings {
    pub(super) started: Nanos,
    pub(super) heard: Nanos,
    pub(super) wrote: Nanos,
    /// Frames that had been sent then.
    pub(super) frames: u64,
    /// Seconds.
    pub(super) timeout: Option<u8>,
    pub(super) sends: bool,
    /// The peer says nothing unless it is asked: it answers pings. So do clients that speak JSON.
    pub(super) asks: bool,
    /// When it was asked last.
    pub(super) asked: Nanos,
}

impl Pings {
    /// Whether a ping is due: nothing was sent for a third of the time-out, or nothing heard of a peer that has to be asked,
    /// however much it is sent.
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

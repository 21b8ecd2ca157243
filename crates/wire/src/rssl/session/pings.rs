//! Pings, and how long silence may last.

use tapeline_measure::Nanos;

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
}

impl Pings {
    /// Whether a ping is due: nothing was sent for a third of the time-out.
    pub(super) fn turn(&mut self, now: Nanos, frames: u64) -> Result<bool, Reason> {
        let Some(seconds) = self.timeout else { return Ok(false) };
        let timeout = i64::from(seconds) * NS_PER_S;
        if now.since(self.heard) >= timeout {
            return Err(Reason::Silent { seconds });
        }
        if frames != self.frames {
            (self.frames, self.wrote) = (frames, now);
        }
        if self.sends && now.since(self.wrote) >= timeout / 3 {
            (self.frames, self.wrote) = (frames + 1, now);
            return Ok(true);
        }
        Ok(false)
    }
}

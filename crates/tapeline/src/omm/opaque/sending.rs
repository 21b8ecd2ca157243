//! One connection's sending: what is due, for as long as the connection takes it.

use tapeline_measure::{Nanos, Pacer, monotonic_ns};
use tapeline_wire::rssl::{Sender, Sent};

use super::message::{Said, Template};
use super::totals::Totals;

/// What is asked of each connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Messages a second; 0 for as many as it takes, `None` for none at all.
    pub(super) rate_hz: Option<u64>,
    /// Of them with a time stamp, a second.
    pub(super) stamps_hz: u64,
    /// Bytes.
    pub(super) len: usize,
    /// Messages in a frame at most.
    pub(super) pack: u32,
}

/// Messages before it is the turn of others, and of what has come.
const BURST: u64 = 256;

/// How long JSON waits for the client to settle: ETA C's (3.6.2) loses its place now and then in a stream of it that comes
/// close behind the opening of the WebSocket.
const SETTLING_NS: u64 = 200_000_000;

#[derive(Debug)]
pub(super) struct Sending {
    template: Template,
    /// Nothing is sent before.
    start: Nanos,
    /// None: as fast as it goes.
    pacer: Option<Pacer>,
    stamps: Pacer,
    stamped: u64,
    /// Sent so far, and so the next sequence number.
    sent: u64,
    pack: u32,
    /// Messages in the frame that is being filled.
    packed: u32,
    /// Since when the connection takes nothing.
    held_since: Option<Nanos>,
}

impl Sending {
    /// On a connection that is open from now on; `None` where nothing is to be sent.
    pub(super) fn new(load: Load, is_json: bool, now: Nanos) -> Option<Self> {
        let rate_hz = load.rate_hz?;
        let start = if is_json { now + SETTLING_NS } else { now };
        Some(Self {
            template: Template::new(load.len, is_json),
            start,
            pacer: (rate_hz > 0).then(|| Pacer::per_second(rate_hz, start)),
            stamps: Pacer::per_second(load.stamps_hz, start),
            // No number of stamps is ever due beyond this one.
            stamped: if load.stamps_hz == 0 { u64::MAX } else { 0 },
            sent: 0,
            // What is packed as JSON has to be some.
            pack: if is_json { 1 } else { load.pack },
            packed: 0,
            held_since: None,
        })
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// When there is something to send next; `None` while the connection takes nothing.
    pub(super) fn due(&self) -> Option<Nanos> {
        if self.held_since.is_some() {
            return None;
        }
        Some(self.pacer.map_or(self.start, |pacer| pacer.due(self.sent)))
    }

    /// The connection takes messages again.
    pub(super) fn goes_on(&mut self, now: Nanos, totals: &mut Totals) {
        if let Some(since) = self.held_since.take() {
            totals.held_ns += u64::try_from(now.since(since)).unwrap_or(0);
        }
    }

    /// Sends what is due, none of it due at `end` or later.
    pub(super) fn turn(&mut self, now: Nanos, end: Nanos, sender: &mut Sender<'_>, totals: &mut Totals) {
        if self.held_since.is_some() || now < self.start {
            return;
        }
        let due = self.pacer.map_or(BURST, |pacer| pacer.due_by(now).saturating_sub(self.sent).min(BURST));
        let mut next_stamp = self.stamps.due(self.stamped);
        for _ in 0..due {
            let planned = self.pacer.map_or(now, |pacer| pacer.due(self.sent));
            if planned >= end {
                break;
            }
            let is_stamped = planned >= next_stamp;
            let stamp_ns = if is_stamped { monotonic_ns() } else { 0 };
            let message = self.template.say(Said { sequence: self.sent, stamp_ns });
            let sent = if self.pack > 1 { sender.pack(message) } else { sender.send(message) };
            match sent {
                Sent::Queued => {}
                Sent::Full => {
                    self.held_since = Some(now);
                    break;
                }
                // Its end is the next event.
                Sent::Unfit | Sent::NotOpen => break,
            }
            totals.sent += 1;
            totals.sent_bytes += message.len() as u64;
            self.sent += 1;
            self.packed += 1;
            if self.packed >= self.pack {
                sender.seal();
                self.packed = 0;
            }
            if is_stamped {
                totals.sender.record(now, now.since(planned));
                // Those that were due meanwhile are this one.
                self.stamped = self.stamps.due_by(planned);
                next_stamp = self.stamps.due(self.stamped);
            }
        }
        // What is left does not wait for the next turn.
        sender.seal();
        self.packed = 0;
    }
}

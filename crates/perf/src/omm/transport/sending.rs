//! Sending on one connection: due messages, as far as the connection accepts them.

use tapeline_measure::{Nanos, Pacer, monotonic_ns};
use tapeline_wire::rssl::{Sender, Sent};

use super::super::bursts::Bursts;
use super::super::options::{StampRate, TransportPerfArgs};
use super::super::slices::Slices;
use super::super::tally::Tally;
use super::message::{Said, Template};

/// Maximum messages before other connections and received messages are processed.
const TURN: u64 = 1_024;

/// Delay of the first JSON messages, so that the client can settle: ETA C's client (3.6.2) occasionally loses the
/// framing of a JSON stream that follows closely after the WebSocket handshake.
const SETTLING_NS: u64 = 200_000_000;

/// The sending side of one connection.
#[derive(Debug)]
pub(super) struct FlowSender {
    template: Template,
    /// Whether messages with a time also carry their due time.
    says_due: bool,
    pace: Pace,
    /// Messages sent so far, and so the next sequence number.
    pub(super) sent: u64,
    /// Maximum messages in a frame.
    pack: u32,
    /// Messages in the current frame.
    packed: u32,
    /// Whether there is back pressure on the connection.
    is_held: bool,
    /// Whether the message is too long for the connection: nothing is sent any more.
    pub(super) is_unfit: bool,
}

#[derive(Debug)]
enum Pace {
    Bursts {
        slices: Slices,
        bursts: Bursts,
        /// Slices that had begun at the last turn.
        begun: u64,
    },
    Unpaced {
        start: Nanos,
        stamps: StampRate,
        /// Due times of messages with a time, and how many were sent.
        stamp_pacer: Pacer,
        stamped: u64,
    },
}

impl FlowSender {
    /// For a connection that has just been opened; `None` if nothing is to be sent. Equal seeds draw equally.
    pub(super) fn new(args: &TransportPerfArgs, is_json: bool, now: Nanos, seed: u64) -> Option<Self> {
        if args.reflect_msgs || args.msg_rate == 0 && !args.unpaced {
            return None;
        }
        let start = if is_json { now + SETTLING_NS } else { now };
        let stamps = args.stamps();
        let pace = if args.unpaced {
            let hz = if let StampRate::PerSecond(hz) = stamps { hz } else { 0 };
            Pace::Unpaced { start, stamps, stamp_pacer: Pacer::per_second(hz, start), stamped: 0 }
        } else {
            Pace::Bursts {
                slices: Slices::new(args.pace.tick_rate, start),
                bursts: Bursts::new(args.msg_rate, stamps, args.pace.tick_rate, 0, seed),
                begun: 0,
            }
        };
        Some(Self {
            template: Template::new(args.msg_size as usize, is_json),
            says_due: !args.no_due,
            pace,
            sent: 0,
            // Only real JSON can be packed on a JSON connection.
            pack: if is_json { 1 } else { args.pack },
            packed: 0,
            is_held: false,
            is_unfit: false,
        })
    }

    /// When the next message is due; `None` under back pressure.
    pub(super) fn due(&self) -> Option<Nanos> {
        match &self.pace {
            _ if self.is_held => None,
            Pace::Bursts { slices, bursts, .. } => bursts.due().or_else(|| Some(slices.due())),
            Pace::Unpaced { start, .. } => Some(*start),
        }
    }

    /// The connection accepts messages again.
    pub(super) fn goes_on(&mut self) {
        self.is_held = false;
    }

    /// Sends due messages, up to the limit of one turn.
    pub(super) fn turn(&mut self, now: Nanos, sender: &mut Sender<'_>, tally: &mut Tally) {
        if let Pace::Bursts { slices, bursts, begun } = &mut self.pace {
            let before = std::mem::replace(begun, slices.begun(now));
            tally.counts.messages_due += bursts.due_between(before, *begun);
            if self.is_held {
                tally.counts.held_back += *begun - before;
            }
        }
        if self.is_held {
            return;
        }
        for _ in 0..TURN {
            let Some(next) = self.next(now, tally) else { break };
            let sequence = self.sent;
            let message = match next {
                None => self.template.number(sequence),
                Some(due) => {
                    let due_ns = if self.says_due { due.map_or(0, |due| due.0) } else { 0 };
                    self.template.say(Said { sequence, stamp_ns: monotonic_ns(), due_ns })
                }
            };
            let len = message.len() as u64;
            let sent = if self.pack > 1 { sender.pack(message) } else { sender.send(message) };
            if next.is_some() {
                self.template.say(Said { sequence, stamp_ns: 0, due_ns: 0 });
            }
            match sent {
                Sent::Queued => self.is_sent(next.is_some(), len, tally),
                Sent::Full => {
                    self.is_held = true;
                    tally.counts.held_back += 1;
                    break;
                }
                Sent::Unfit => {
                    self.is_unfit = true;
                    break;
                }
                // The close event follows.
                Sent::NotOpen => break,
            }
            self.packed += 1;
            if self.packed >= self.pack {
                sender.seal();
                self.packed = 0;
            }
        }
        // The rest of the frame does not wait for the next turn.
        sender.seal();
        self.packed = 0;
    }

    /// The next message: with a time (and its due time, if it has one) or without. `None`: no message is due.
    #[inline]
    fn next(&mut self, now: Nanos, tally: &mut Tally) -> Option<Option<Option<Nanos>>> {
        match &mut self.pace {
            Pace::Bursts { slices, bursts, .. } => loop {
                if let Some(due) = bursts.next(slices, slices.taken()) {
                    return Some(due.is_stamped.then_some(Some(due.at)));
                }
                let (_, due) = slices.begin(now)?;
                tally.slice(now.since(due));
            },
            Pace::Unpaced { start, stamps, stamp_pacer, stamped } => {
                if now < *start {
                    return None;
                }
                let is_stamped = match stamps {
                    StampRate::All => true,
                    StampRate::PerSecond(0) => false,
                    StampRate::PerSecond(_) => now >= stamp_pacer.due(*stamped),
                };
                Some(is_stamped.then_some(None))
            }
        }
    }

    #[inline]
    fn is_sent(&mut self, is_stamped: bool, len: u64, tally: &mut Tally) {
        self.sent += 1;
        let counts = &mut tally.counts;
        counts.messages_sent += 1;
        counts.bytes_sent += len;
        counts.stamped_messages += u64::from(is_stamped);
        match &mut self.pace {
            Pace::Bursts { bursts, .. } => bursts.sent(),
            Pace::Unpaced { stamps, stamp_pacer, stamped, start }
                if is_stamped && *stamps != StampRate::All =>
            {
                // Stamps that were due meanwhile are covered by this one.
                let now = Nanos(monotonic_ns()).max(*start);
                *stamped = stamp_pacer.due_by(now).max(*stamped + 1);
            }
            Pace::Unpaced { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tapeline_wire::rssl::{ConnectionSettings, Event, Reactor};

    use super::*;
    use crate::omm::options::of;
    use crate::omm::tally::Terms;

    #[test]
    fn a_message_that_can_never_be_sent_is_not_tried_again_and_again() {
        let settings =
            Arc::new(ConnectionSettings { max_message_bytes: 50, ..ConnectionSettings::default() });
        let [mut server, mut client] = [1, 1].map(|limit| Reactor::new(limit).unwrap());
        let address = server.listen("127.0.0.1:0".parse().unwrap(), &settings).unwrap();
        let now = || Nanos(monotonic_ns());
        let id = client.connect_to_any(&[address], &settings, now()).unwrap();
        let mut is_open = false;
        while !is_open {
            server.wait(Duration::from_millis(10)).unwrap();
            while server.next(now()).is_some() {}
            client.wait(Duration::from_millis(10)).unwrap();
            while let Some((_, event, _)) = client.next(now()) {
                is_open |= matches!(event, Event::Connected(_));
            }
        }
        let sent = |len: usize, client: &mut Reactor| {
            let load = "--msg-rate 1000 --latency-msg-rate 0 --no-due --tick-rate 1";
            let args = of(&format!("{load} --msg-size {len}"));
            let mut sending = FlowSender::new(&args, false, Nanos(0), 1).unwrap();
            let mut tally = Tally::new(Terms::default());
            sending.turn(Nanos(0), &mut client.sender(id).unwrap(), &mut tally);
            (sending.is_unfit, tally.counts.messages_sent)
        };
        assert_eq!(sent(50, &mut client), (false, 1_000));
        assert_eq!(sent(51, &mut client), (true, 0));
    }
}

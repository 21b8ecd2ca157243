//! Messages received on one connection, in sequence or not.

use tapeline_measure::monotonic_ns;

use super::super::tally::{Kind, Tally, Timed};
use super::message::{self, Said};

/// Counts of messages received on one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    pub(super) received: u64,
    /// Missing sequence numbers, by gaps before later messages.
    pub(super) lost: u64,
    /// Messages whose sequence number had already passed.
    pub(super) out_of_order: u64,
    /// Received data that is not in the messages' format.
    pub(super) malformed: u64,
    /// The next sequence number.
    expected: u64,
}

impl Heard {
    /// Processes a message, or several packed into one.
    #[inline]
    pub(super) fn take(&mut self, bytes: &[u8], is_json: bool, tally: &mut Tally) {
        tally.counts.bytes_received += bytes.len() as u64;
        let is_understood = message::read(bytes, is_json, |said| {
            self.received += 1;
            tally.counts.updates += 1;
            if said.sequence == self.expected {
                self.expected = self.expected.wrapping_add(1);
            } else {
                self.jump(said.sequence, tally);
            }
            if said.stamp_ns > 0 {
                time(said, tally);
            }
        });
        if !is_understood {
            self.malformed += 1;
            tally.counts.malformed += 1;
        }
    }

    #[cold]
    fn jump(&mut self, sequence: u64, tally: &mut Tally) {
        let Some(hole) = sequence.checked_sub(self.expected) else {
            self.out_of_order += 1;
            tally.counts.out_of_order += 1;
            return;
        };
        self.lost = self.lost.saturating_add(hole);
        tally.counts.lost = tally.counts.lost.saturating_add(hole);
        self.expected = sequence.saturating_add(1);
    }

    /// Counts a message to reflect, without parsing it.
    #[inline]
    pub(super) fn pass(&mut self, bytes: &[u8], tally: &mut Tally) {
        self.received += 1;
        tally.counts.updates += 1;
        tally.counts.bytes_received += bytes.len() as u64;
    }
}

fn time(said: Said, tally: &mut Tally) {
    let due = (said.due_ns > 0).then_some(said.due_ns);
    tally.time(Timed { kind: Kind::Update, sent: said.stamp_ns, due, received: monotonic_ns() });
}

#[cfg(test)]
mod tests {
    use super::super::message::Template;
    use super::*;
    use crate::omm::tally::Terms;

    #[test]
    fn what_is_missing_late_or_strange_is_counted() {
        let mut tally = Tally::new(Terms::default());
        let mut heard = Heard::default();
        let mut template = Template::new(76, false);
        for sequence in [0, 1, 2, 5, 4, 6] {
            let due_ns = sequence % 2;
            heard.take(template.say(Said { sequence, stamp_ns: 1, due_ns }), false, &mut tally);
        }
        heard.take(b"short", false, &mut tally);
        let Heard { received, lost, out_of_order, malformed, expected } = heard;
        assert_eq!((received, lost, out_of_order, malformed, expected), (6, 2, 1, 1, 7));
        let counts = tally.counts;
        assert_eq!((counts.updates, counts.lost, counts.out_of_order, counts.malformed), (6, 2, 1, 1));
        assert_eq!(counts.bytes_received, 6 * 76 + 5);
        assert_eq!((tally.updates.service.samples(), tally.updates.response.samples()), (6, 2));
    }

    #[test]
    fn any_sequence_is_counted() {
        let mut tally = Tally::new(Terms::default());
        let mut heard = Heard::default();
        let mut template = Template::new(76, false);
        for sequence in [u64::MAX, 0, u64::MAX, u64::MAX - 1] {
            let said = Said { sequence, stamp_ns: u64::MAX, due_ns: u64::MAX };
            heard.take(template.say(said), false, &mut tally);
        }
        assert_eq!((heard.received, heard.lost), (4, u64::MAX));
    }
}

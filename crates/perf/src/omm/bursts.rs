//! The messages of a rate that are due on a connection, slice by slice.

use tapeline_measure::Nanos;

use super::options::StampRate;
use super::slices::{Lots, Share, Slices};

/// The bursts of one kind of message on one connection. Back pressure skips no slice: each message keeps its due time.
#[derive(Clone, Debug)]
pub(super) struct Bursts {
    share: Share,
    lots: Lots,
    /// All messages carry a time.
    stamps_all: bool,
    /// Whether the rate is not 0.
    pub(super) is_any: bool,
    /// Messages sent in total.
    out: u64,
    /// The slice whose burst is next.
    next: u64,
    /// Due time of the current burst, and the number of its messages left to send.
    due: Nanos,
    left: u64,
    /// Number of messages left after the one that carries a time.
    behind_stamp: Option<u64>,
}

/// A message that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// When its slice began.
    pub(super) at: Nanos,
    /// Whether it carries a time.
    pub(super) is_stamped: bool,
}

impl Bursts {
    /// `rate` messages per second, `stamps` of them with a time, in `tick_rate` slices per second from slice `begun` on.
    pub(super) fn new(rate: u64, stamps: StampRate, tick_rate: u64, begun: u64, seed: u64) -> Self {
        let stamped = match stamps {
            StampRate::PerSecond(stamped) => stamped,
            StampRate::All => 0,
        };
        Self {
            share: Share::new(rate, tick_rate),
            lots: Lots::new(stamped, tick_rate, seed),
            stamps_all: stamps == StampRate::All,
            is_any: rate > 0,
            out: 0,
            next: begun,
            due: Nanos(0),
            left: 0,
            behind_stamp: None,
        }
    }

    /// The next message of the slices before number `begun`; `None` if all are sent.
    #[inline]
    pub(super) fn next(&mut self, slices: &Slices, begun: u64) -> Option<Due> {
        while self.left == 0 {
            if self.next >= begun {
                return None;
            }
            self.left = self.share.burst(self.next);
            self.behind_stamp = self.lots.draw(self.left);
            self.due = slices.due_of(self.next);
            self.next += 1;
        }
        let is_stamped = self.stamps_all || self.behind_stamp == Some(self.left - 1);
        Some(Due { at: self.due, is_stamped })
    }

    /// Due time of the current burst, if a message of it is unsent.
    pub(super) fn due(&self) -> Option<Nanos> {
        (self.left > 0).then_some(self.due)
    }

    /// Messages due in the slices from number `from` on and before number `to`.
    pub(super) fn due_between(&self, from: u64, to: u64) -> u64 {
        self.share.in_first(to) - self.share.in_first(from)
    }

    /// The last message returned by `next` has been sent.
    #[inline]
    pub(super) fn sent(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.out += 1;
    }

    /// Skips the slices before number `begun`, because there is no recipient.
    pub(super) fn skip(&mut self, begun: u64) {
        (self.next, self.left) = (begun, 0);
    }

    /// Whether a message of the slices before number `begun` is unsent.
    pub(super) fn is_behind(&self, begun: u64) -> bool {
        self.is_any && (self.left > 0 || self.next < begun)
    }

    /// Messages due in the slices before number `begun`, and how many of them are sent.
    pub(super) fn served(&self, begun: u64) -> Served {
        let behind = match begun.checked_sub(self.next) {
            Some(_) => self.left + self.due_between(self.next, begun),
            // The current burst belongs to a later slice.
            None => 0,
        };
        Served { due: self.out + behind, sent: self.out }
    }
}

/// Messages that were due on one connection, and messages sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) due: u64,
    pub(super) sent: u64,
}

impl Served {
    /// Total of both kinds of message of a connection.
    pub(super) fn and(self, other: Self) -> Self {
        Self { due: self.due + other.due, sent: self.sent + other.sent }
    }

    /// The share of the due messages that was sent; 1 if none was due.
    pub(super) fn share(self) -> f64 {
        if self.due == 0 { 1.0 } else { self.sent as f64 / self.due as f64 }
    }

    /// The one with the smaller share. One with no due messages is ignored.
    pub(super) fn worse(self, other: Self) -> Self {
        if self.due == 0 || (other.due > 0 && other.share() < self.share()) { other } else { self }
    }
}

/// How a connection was served up to its second-last turn. What came due during a delayed last turn, before the
/// connection's end is known, does not count against it: the peer may have disconnected meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    begun: u64,
    pub(super) served: Served,
}

impl Standing {
    /// Begins a turn in which `begun` slices have begun. `served`: messages due in a number of slices, and those sent.
    pub(super) fn turn(&mut self, begun: u64, served: impl FnOnce(u64) -> Served) {
        self.served = served(std::mem::replace(&mut self.begun, begun));
    }
}

/// Progress of sending on a connection. The progress of several is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// All due messages are sent.
    Done,
    /// Back pressure: the connection accepts no more for now.
    Held,
    /// More messages are due: other connections and received messages come first.
    More,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of messages in each slice from `next` on, and how many of them carry a time.
    fn counts(bursts: &mut Bursts, slices: &Slices, numbers: std::ops::Range<u64>) -> Vec<(u64, u64)> {
        let mut count = |number: u64| {
            let (mut all, mut stamped) = (0, 0);
            while let Some(due) = bursts.next(slices, number + 1) {
                assert_eq!(due.at, slices.due_of(number));
                (all, stamped) = (all + 1, stamped + u64::from(due.is_stamped));
                bursts.sent();
            }
            (all, stamped)
        };
        numbers.map(&mut count).collect()
    }

    #[test]
    fn each_second_has_its_rate_and_its_stamps() {
        let slices = Slices::new(100, Nanos(1_000));
        for (rate, stamps, expected) in [
            (1_000, StampRate::PerSecond(7), 7),
            (150, StampRate::PerSecond(100), 100),
            (150, StampRate::All, 150),
            (150, StampRate::PerSecond(0), 0),
            (0, StampRate::All, 0),
        ] {
            let mut bursts = Bursts::new(rate, stamps, 100, 0, 3);
            for second in 0..3 {
                let counts = counts(&mut bursts, &slices, second * 100..(second + 1) * 100);
                let sums =
                    counts.iter().fold((0, 0), |sums, (all, stamped)| (sums.0 + all, sums.1 + stamped));
                assert_eq!(sums, (rate, expected), "{rate} {stamps:?} {second}");
                let even = rate / 100;
                assert!(counts.iter().all(|(all, _)| (even..=even + 1).contains(all)), "{counts:?}");
            }
        }
    }

    #[test]
    fn what_was_held_back_comes_later_with_the_time_at_which_it_was_due() {
        let slices = Slices::new(10, Nanos(0));
        let mut bursts = Bursts::new(30, StampRate::PerSecond(0), 10, 4, 3);
        let mut due = |begun: u64, most: usize| {
            let mut due = Vec::new();
            while due.len() < most {
                let Some(message) = bursts.next(&slices, begun) else { break };
                due.push(message.at.0 / 100_000_000);
                bursts.sent();
            }
            (due, bursts.is_behind(begun))
        };
        assert_eq!(due(4, 9), (vec![], false));
        assert_eq!(due(5, 1), (vec![4], true));
        assert_eq!(due(8, 100), (vec![4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7], false));
        bursts.skip(100);
        assert!(!bursts.is_behind(100) && bursts.is_behind(101));
    }

    #[test]
    fn what_was_due_and_is_not_out_shows() {
        let slices = Slices::new(10, Nanos(0));
        let mut bursts = Bursts::new(30, StampRate::PerSecond(0), 10, 4, 3);
        assert_eq!(bursts.served(4), Served::default());
        for _ in 0..4 {
            assert!(bursts.next(&slices, 20).is_some());
            bursts.sent();
        }
        // Slices 4 and 5 have begun, three messages in each; then all slices up to 20.
        assert_eq!(bursts.served(6), Served { due: 6, sent: 4 });
        assert_eq!(bursts.served(20), Served { due: 48, sent: 4 });
        // Messages without a recipient are not due.
        bursts.skip(20);
        assert_eq!(bursts.served(20), Served { due: 4, sent: 4 });
        assert_eq!(bursts.served(3), Served { due: 4, sent: 4 });
    }

    #[test]
    fn what_came_due_in_a_stall_at_the_end_of_a_connection_does_not_count() {
        let slices = Slices::new(10, Nanos(0));
        let mut bursts = Bursts::new(30, StampRate::PerSecond(0), 10, 0, 3);
        let mut standing = Standing::default();
        let mut turn = |begun: u64, takes: u64| {
            standing.turn(begun, |begun| bursts.served(begun));
            for _ in 0..takes {
                if bursts.next(&slices, begun).is_some() {
                    bursts.sent();
                }
            }
            standing.served
        };
        for begun in 1..=40 {
            assert_eq!(turn(begun, 3).share(), 1.0, "{begun}");
        }
        // A stall of two seconds: nothing is accepted. The peer disconnects, and the next turn finds it gone.
        assert_eq!(turn(60, 0), Served { due: 120, sent: 120 });
        // It did not disconnect: this counts.
        assert_eq!(turn(60, 0), Served { due: 180, sent: 120 });
    }

    #[test]
    fn the_worst_served_is_the_one_with_the_least_of_what_was_due_to_it() {
        let [nobody, well, badly] = [(0, 0), (100, 99), (50, 10)].map(|(due, sent)| Served { due, sent });
        for order in [[nobody, well, badly], [badly, nobody, well], [well, badly, nobody]] {
            assert_eq!(order.into_iter().fold(Served::default(), Served::worse), badly);
        }
        assert_eq!((nobody.share(), badly.share()), (1.0, 0.2));
        assert_eq!(well.and(badly), Served { due: 150, sent: 109 });
    }
}

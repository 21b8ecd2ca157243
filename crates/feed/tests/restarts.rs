//! Numbers that begin again within a session: what is believed, from when on, and that nothing of it is lost.

use tapeline_feed::Framing;
use tapeline_feed::iex::tp;
use tapeline_feed::line::{self, Arbiter, ArbiterSettings, Line, Restart, Sink};
use tapeline_feed::moldudp64::recover::{self, Rejected, RetransmissionClient};
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder, Request, end_of_session, heartbeat};
use tapeline_nanos::Nanos;

const SESSION: MoldSession = MoldSession(*b"SESSION-01");
const MS: u64 = 1_000_000;

/// What an arbiter said; messages with the numbering that they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Message(u8, u64),
    Gap(u64, u64),
    End(u64),
    Reset,
}

use Event::{End, Gap, Message, Reset};

#[derive(Default)]
struct Log(Vec<Event>);

impl Sink for Log {
    fn message(&mut self, sequence: u64, bytes: &[u8], _received: Nanos) {
        assert_eq!(bytes[1..], sequence.to_be_bytes(), "each message says its number");
        self.0.push(Message(bytes[0], sequence));
    }

    fn gap(&mut self, first: u64, last: u64) {
        self.0.push(Gap(first, last));
    }

    fn end_of_session(&mut self, next: u64) {
        self.0.push(End(next));
    }

    fn reset(&mut self, _session: line::Session) {
        self.0.push(Reset);
    }
}

/// A packet of the messages `from` to before `to` of a numbering.
fn packet(numbering: u8, from: u64, to: u64) -> Vec<u8> {
    let mut buffer = vec![0; 1_400];
    let mut packet = PacketBuilder::new(&mut buffer, SESSION, from).unwrap();
    for sequence in from..to {
        packet.push(&[&[numbering][..], &sequence.to_be_bytes()].concat()).unwrap();
    }
    let length = packet.finish();
    buffer.truncate(length);
    buffer
}

struct Rig {
    arbiter: Arbiter,
    log: Log,
}

impl Rig {
    fn new(settings: ArbiterSettings) -> Self {
        Self { arbiter: Arbiter::new(settings), log: Log::default() }
    }

    fn at(&mut self, ms: u64, line: Line, datagram: &[u8]) -> Vec<Event> {
        self.arbiter.datagram(line, datagram, Nanos(ms * MS), &mut self.log).unwrap();
        std::mem::take(&mut self.log.0)
    }

    /// The messages `from` to before `to` of the first numbering on both lines, ten in a packet.
    fn run(&mut self, from: u64, to: u64) {
        for first in (from..to).step_by(10) {
            for line in [Line::A, Line::B] {
                self.at(0, line, &packet(1, first, (first + 10).min(to)));
            }
        }
    }
}

fn messages(numbering: u8, from: u64, to: u64) -> impl Iterator<Item = Event> {
    (from..to).map(move |sequence| Message(numbering, sequence))
}

fn rig() -> Rig {
    Rig::new(ArbiterSettings::default())
}

#[test]
fn a_second_packet_that_is_no_copy_begins_anew_and_nothing_of_the_first_is_lost() {
    for end in [12, 101, 9_001] {
        let mut rig = rig();
        rig.run(1, end);
        assert_eq!(rig.at(1, Line::A, &packet(2, 1, 4)), []);
        let wanted: Vec<_> = [Reset].into_iter().chain(messages(2, 1, 6)).collect();
        assert_eq!(rig.at(2, Line::A, &packet(2, 4, 6)), wanted);
        assert_eq!(rig.at(3, Line::A, &packet(2, 6, 9)), messages(2, 6, 9).collect::<Vec<_>>());
        let total = rig.arbiter.statistics();
        assert_eq!((total.restarts, total.sessions, total.missing), (1, 2, 0));
    }
}

#[test]
fn another_line_that_says_the_same_is_a_second_word() {
    let mut rig = rig();
    rig.run(1, 101);
    assert_eq!(rig.at(1, Line::A, &packet(2, 1, 4)), []);
    // The other line is still in what was; and the same once more proves nothing.
    assert_eq!(rig.at(1, Line::B, &packet(1, 91, 101)), []);
    assert_eq!(rig.at(1, Line::A, &packet(2, 1, 4)), []);
    let wanted = [Reset, Message(2, 1), Message(2, 2), Message(2, 3)];
    assert_eq!(rig.at(2, Line::B, &packet(2, 1, 4)), wanted);
    assert_eq!(rig.at(3, Line::A, &packet(2, 4, 5)), [Message(2, 4)]);
}

#[test]
fn its_beginning_may_be_lost_on_every_line() {
    for (first, end) in [(11, 101), (2_001, 9_001), (8_001, 9_001)] {
        let mut rig = rig();
        rig.run(1, end);
        assert_eq!(rig.at(1, Line::A, &packet(2, first, first + 10)), []);
        assert_eq!(rig.at(2, Line::A, &packet(2, first + 10, first + 20)), [Reset]);
        let wanted: Vec<_> = [Gap(1, first - 1)].into_iter().chain(messages(2, first, first + 21)).collect();
        assert_eq!(rig.at(23, Line::A, &packet(2, first + 20, first + 21)), wanted, "from {first}");
    }
}

#[test]
fn copies_and_damaged_ones_begin_nothing() {
    let mut rig = rig();
    rig.run(1, 101);
    for round in 0..40 {
        let next = 101 + 2 * round;
        // A late copy, a copy with bytes changed in some messages, one that is changed altogether.
        assert_eq!(rig.at(1, Line::A, &packet(1, 1, 11)), []);
        let mut damaged = packet(1, 11, 21);
        damaged[22] ^= 1;
        assert_eq!(rig.at(1, Line::A, &damaged), []);
        assert_eq!(rig.at(1, Line::A, &packet(3 + round as u8, 21 + round, 22 + round)), []);
        let wanted: Vec<_> = messages(1, next, next + 2).collect();
        assert_eq!(rig.at(1, Line::A, &packet(1, next, next + 2)), wanted);
    }
    assert_eq!(rig.arbiter.statistics().restarts, 0);
    assert!(rig.arbiter.line(Line::A).strays > 20, "{:?}", rig.arbiter.line(Line::A));
}

#[test]
fn who_joined_late_knows_nothing_of_the_beginning_and_wants_eight_packets() {
    let mut rig = rig();
    rig.run(5_001, 5_101);
    for at in 1..8 {
        assert_eq!(rig.at(1, Line::A, &packet(2, at, at + 1)), []);
    }
    let wanted: Vec<_> = [Reset].into_iter().chain(messages(2, 1, 9)).collect();
    assert_eq!(rig.at(1, Line::A, &packet(2, 8, 9)), wanted);
    // Late ones of what came before, with the line going on between them, are no such thing.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.run(5_001, 5_101);
    for at in 0..30 {
        assert_eq!(rig.at(1, Line::A, &packet(1, 4_001 + at, 4_002 + at)), []);
        assert_eq!(rig.at(1, Line::A, &packet(1, 5_101 + at, 5_102 + at)), [Message(1, 5_101 + at)]);
    }
}

#[test]
fn heartbeats_that_go_back_are_believed_when_nobody_goes_on() {
    let mut rig = rig();
    rig.run(1, 101);
    for ms in [1_000, 2_000, 2_999] {
        assert_eq!(rig.at(ms, Line::A, &heartbeat(SESSION, 7)), []);
    }
    assert_eq!(rig.at(3_000, Line::A, &heartbeat(SESSION, 7)), [Reset]);
    assert_eq!(rig.at(3_021, Line::A, &heartbeat(SESSION, 7)), [Gap(1, 6)]);
    assert_eq!(rig.at(3_022, Line::A, &packet(2, 7, 8)), [Message(2, 7)]);
    // As long as one line goes on, the other's heartbeats say nothing.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.run(1, 101);
    for second in 1..10 {
        assert_eq!(rig.at(1_000 * second, Line::A, &heartbeat(SESSION, 7)), []);
        let next = 100 + second;
        assert_eq!(rig.at(1_000 * second, Line::B, &packet(1, next, next + 1)), [Message(1, next)]);
    }
}

#[test]
fn what_is_late_of_the_numbering_before_is_not_delivered_in_the_next() {
    let mut rig = rig();
    rig.run(1, 101);
    rig.at(1, Line::A, &packet(1, 111, 113));
    rig.at(2, Line::A, &packet(2, 1, 4));
    let wanted = [Gap(101, 110), Message(1, 111), Message(1, 112), Reset];
    assert_eq!(rig.at(2, Line::A, &packet(2, 4, 5))[..4], wanted);
    // A copy; what was still missing; what came behind it. On the line that has begun again, and on one that has not.
    for line in [Line::A, Line::B] {
        for (from, to) in [(91, 101), (101, 111), (111, 113), (113, 114)] {
            assert_eq!(rig.at(3, line, &packet(1, from, to)), [], "{from}");
        }
    }
    assert_eq!(rig.at(4, Line::A, &heartbeat(SESSION, 114)), []);
    assert_eq!(rig.at(4, Line::B, &packet(2, 1, 7)), [Message(2, 5), Message(2, 6)]);
    assert_eq!(rig.at(5, Line::A, &packet(2, 5, 8)), [Message(2, 7)]);
    assert_eq!(rig.arbiter.next_expiry(), None);
    // A copy does not even fit when the numbers have come so far.
    let before = rig.at(6, Line::A, &packet(2, 8, 91)).len();
    assert_eq!(before, 83);
    assert_eq!(rig.at(6, Line::A, &packet(1, 91, 101)), []);
    assert_eq!(rig.at(7, Line::A, &packet(2, 91, 93)), [Message(2, 91), Message(2, 92)]);
    assert_eq!(rig.arbiter.statistics().restarts, 1);
}

#[test]
fn a_line_that_was_dead_shows_by_what_it_brings_where_it_is() {
    // It died, the other one too; then it comes back in another numbering, ahead of where it was.
    let mut rig = rig();
    rig.run(1, 51);
    for first in (51..1_001).step_by(10) {
        rig.at(0, Line::A, &packet(1, first, first + 10));
    }
    assert_eq!(rig.at(1, Line::B, &packet(2, 101, 111)), []);
    assert_eq!(rig.at(1, Line::B, &packet(2, 111, 121)), [Reset]);
    // It was never there before.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 1, 51));
    assert_eq!(rig.at(1, Line::B, &packet(2, 1, 11)), []);
    assert_eq!(rig.at(1, Line::B, &packet(2, 11, 12)).len(), 12);
}

#[test]
fn what_is_set_aside_when_nothing_more_comes_is_told_too() {
    // The end of the new numbering is a second word.
    let mut rig = rig();
    rig.run(1, 101);
    assert_eq!(rig.at(1, Line::A, &packet(2, 1, 3)), []);
    assert_eq!(rig.at(2, Line::A, &end_of_session(SESSION, 3)), []);
    rig.arbiter.flush(&mut rig.log);
    assert_eq!(rig.log.0, [Reset, Message(2, 1), Message(2, 2), End(3)]);
}

/// Messages 11 and 12 are missing and asked for, and again of the numbering that begins then.
struct Asking {
    rig: Rig,
    client: RetransmissionClient,
}

impl Asking {
    const TIMEOUT_MS: u64 = 100;

    fn new(max_tries: u32) -> Self {
        let settings = ArbiterSettings {
            recovery_age_ns: 60_000 * MS,
            expire_on_packet: false,
            ..ArbiterSettings::default()
        };
        let timeout_ns = Self::TIMEOUT_MS * MS;
        let client = RetransmissionClient::new(recover::ClientSettings {
            max_tries,
            timeout_ns,
            ..recover::ClientSettings::default()
        });
        let mut asking = Self { rig: Rig::new(settings), client };
        asking.rig.run(1, 11);
        asking.rig.run(13, 23);
        assert_eq!(asking.ask(1), Some(Request::for_gap(SESSION, 11, 12)));
        asking
    }

    /// What the client asks for.
    fn ask(&mut self, ms: u64) -> Option<Request> {
        self.client.update(SESSION, self.rig.arbiter.wanted(), Nanos(ms * MS));
        self.client.poll(Nanos(ms * MS)).map(|ask| ask.request)
    }

    /// The numbers begin again, and the same two messages are missing.
    fn begins_again(&mut self, ms: u64) -> Vec<Event> {
        let mut came = Vec::new();
        for (from, to) in [(1, 6), (6, 11), (13, 23)] {
            came.extend(self.rig.at(ms, Line::A, &packet(2, from, to)));
        }
        self.client.begin_again();
        came
    }
}

#[test]
fn an_answer_to_a_request_for_the_numbering_before_is_not_taken_for_the_next() {
    let mut asking = Asking::new(3);
    // What waited behind the hole is delivered, and the hole said to be missing.
    let mut wanted = vec![Gap(11, 12)];
    wanted.extend(messages(1, 13, 23).chain([Reset]).chain(messages(2, 1, 11)));
    assert_eq!(asking.begins_again(50), wanted);
    assert_eq!(asking.ask(51), None, "an old answer may come");
    assert_eq!(asking.client.next_due(Nanos(51 * MS)), Some(Nanos(101 * MS)));
    assert_eq!(asking.client.answer(0, &packet(1, 11, 13)), Err(Rejected::NotWanted));
    assert_eq!(asking.ask(100), None);
    // The server has to show that it has begun anew.
    assert_eq!(asking.ask(101), Some(Request::for_gap(SESSION, 10, 10)));
    assert_eq!(asking.ask(101), Some(Request::for_gap(SESSION, 11, 12)));
    let answer = packet(2, 10, 11);
    assert!(asking.client.answer(0, &answer).is_ok());
    assert_eq!(asking.rig.at(102, Line::RECOVERY, &answer), []);
    let answer = packet(2, 11, 13);
    assert!(asking.client.answer(0, &answer).is_ok());
    assert_eq!(asking.rig.at(102, Line::RECOVERY, &answer), messages(2, 11, 23).collect::<Vec<_>>());
}

#[test]
fn what_was_given_up_of_the_numbering_before_is_asked_for_in_the_next() {
    let mut asking = Asking::new(1);
    assert_eq!(asking.ask(101), None);
    assert_eq!(asking.client.given_up(), Some(11..=12));
    asking.rig.arbiter.give_up(11..=12, Nanos(101 * MS), &mut asking.rig.log);
    let wanted: Vec<_> = [Gap(11, 12)].into_iter().chain(messages(1, 13, 23)).collect();
    assert_eq!(std::mem::take(&mut asking.rig.log.0), wanted);
    let wanted: Vec<_> = [Reset].into_iter().chain(messages(2, 1, 11)).collect();
    assert_eq!(asking.begins_again(150), wanted);
    // Nothing is under way any more.
    assert_eq!(asking.ask(151), Some(Request::for_gap(SESSION, 10, 10)));
    assert_eq!(asking.ask(151), Some(Request::for_gap(SESSION, 11, 12)));
}

#[test]
fn where_it_is_to_be_ignored_it_is() {
    let mut rig = Rig::new(ArbiterSettings { restart: Restart::Ignore, ..ArbiterSettings::default() });
    rig.run(1, 101);
    for first in 1..50 {
        assert_eq!(rig.at(1, Line::A, &packet(2, first, first + 1)), []);
    }
    assert_eq!(rig.arbiter.line(Line::A).duplicates, 49);
}

#[test]
fn a_restart_of_iex_is_seen_though_its_first_segments_were_lost() {
    let session = tp::IexSession { protocol: tp::MessageProtocol::DEEP_1_0, channel: 1, number: 7 };
    let segment = |numbering: u8, from: u64, to: u64| {
        let mut bytes = vec![0; 1_400];
        // Each message with its length has 11 bytes.
        let mut segment = tp::SegmentBuilder::new(&mut bytes, session, from, 11 * (from - 1)).unwrap();
        for sequence in from..to {
            segment.push(&[&[numbering][..], &sequence.to_be_bytes()].concat()).unwrap();
        }
        let length = segment.finish(1);
        bytes.truncate(length);
        bytes
    };
    let mut rig = Rig::new(ArbiterSettings {
        framing: Framing::IexTp,
        restart: Restart::Reset,
        ..ArbiterSettings::default()
    });
    for first in (1..101).step_by(10) {
        rig.at(0, Line::A, &segment(1, first, first + 10));
    }
    assert_eq!(rig.at(1, Line::A, &segment(2, 5, 8)), []);
    assert_eq!(rig.at(2, Line::A, &segment(2, 8, 9)), [Reset]);
    let wanted: Vec<_> = [Gap(1, 4)].into_iter().chain(messages(2, 5, 10)).collect();
    assert_eq!(rig.at(30, Line::A, &segment(2, 9, 10)), wanted);
}

/// Who waits for recovery for a minute.
fn patient() -> Rig {
    Rig::new(ArbiterSettings { recovery_age_ns: 60_000 * MS, ..ArbiterSettings::default() })
}

#[test]
fn a_server_that_still_has_the_numbering_before_fills_nothing() {
    let mut rig = patient();
    rig.run(1, 101);
    // Both lines lose the beginning.
    assert_eq!(rig.at(1, Line::A, &packet(2, 21, 31)), []);
    assert_eq!(rig.at(2, Line::A, &packet(2, 31, 41)), [Reset]);
    assert_eq!(
        rig.arbiter.wanted().collect::<Vec<_>>(),
        [1..=20],
        "nothing is delivered that would show more"
    );
    assert_eq!(rig.at(3, Line::RECOVERY, &packet(1, 1, 21)), []);
    let asked = rig.arbiter.line(Line::RECOVERY);
    assert_eq!((asked.stale_session, asked.messages, rig.arbiter.statistics().recovered), (1, 0, 0));
    assert_eq!(rig.arbiter.missing().collect::<Vec<_>>(), [1..=20]);
    // It has begun anew at last.
    let wanted: Vec<_> = messages(2, 1, 41).collect();
    assert_eq!(rig.at(4, Line::RECOVERY, &packet(2, 1, 21)), wanted);
    assert_eq!(rig.arbiter.statistics().recovered, 20);
}

#[test]
fn where_nothing_can_be_compared_the_server_has_to_show_its_numbering_first() {
    let mut rig = patient();
    rig.run(1, 11);
    rig.run(13, 23);
    // The same two messages are missing in both.
    for (from, to) in [(1, 6), (6, 11), (13, 23)] {
        rig.at(1, Line::A, &packet(2, from, to));
    }
    let stale = |rig: &Rig| rig.arbiter.line(Line::RECOVERY).stale_session;
    assert_eq!(rig.arbiter.missing().collect::<Vec<_>>(), [11..=12]);
    assert_eq!(rig.arbiter.wanted().collect::<Vec<_>>(), [10..=10, 11..=12]);
    for (numbering, from, to) in [(1, 11, 13), (2, 11, 13), (1, 10, 11), (2, 11, 13)] {
        assert_eq!(rig.at(2, Line::RECOVERY, &packet(numbering, from, to)), []);
    }
    assert_eq!(stale(&rig), 4);
    assert_eq!(rig.at(3, Line::RECOVERY, &packet(2, 10, 11)), []);
    assert_eq!(rig.arbiter.wanted().collect::<Vec<_>>(), [11..=12]);
    // Another server has to show it again.
    rig.arbiter.other_server();
    assert_eq!(rig.at(3, Line::RECOVERY, &packet(1, 11, 13)), []);
    assert_eq!(rig.arbiter.wanted().collect::<Vec<_>>(), [10..=10, 11..=12]);
    assert_eq!(stale(&rig), 5);
    rig.at(4, Line::RECOVERY, &packet(2, 10, 11));
    assert_eq!(rig.at(4, Line::RECOVERY, &packet(2, 11, 13)), messages(2, 11, 23).collect::<Vec<_>>());
}

#[test]
fn what_recovery_brought_of_the_numbering_before_is_known_too() {
    let mut rig = patient();
    rig.run(1, 11);
    rig.run(13, 23);
    rig.at(1, Line::RECOVERY, &packet(1, 11, 13));
    for (from, to) in [(1, 6), (6, 11), (13, 23)] {
        rig.at(2, Line::A, &packet(2, from, to));
    }
    assert_eq!(rig.at(3, Line::RECOVERY, &packet(1, 11, 13)), []);
    assert_eq!(rig.at(3, Line::RECOVERY, &packet(2, 11, 13)), messages(2, 11, 23).collect::<Vec<_>>());
}

#[test]
fn far_behind_the_end_of_the_numbering_before_nothing_has_to_be_shown() {
    let mut rig = patient();
    rig.run(1, 11);
    rig.at(1, Line::A, &packet(2, 1, 6));
    rig.at(1, Line::A, &packet(2, 6, 11));
    for first in (11..65_551).step_by(20) {
        assert_eq!(rig.at(5_000, Line::A, &packet(2, first, first + 20)).len(), 20);
    }
    rig.at(5_000, Line::A, &packet(2, 65_553, 65_554));
    let wanted: Vec<_> = messages(2, 65_551, 65_554).collect();
    assert_eq!(rig.at(5_001, Line::RECOVERY, &packet(2, 65_551, 65_553)), wanted);
}

#[test]
fn what_waits_behind_a_contradiction_is_counted_or_long_after_a_restart_taken() {
    // Soon after it, it may be of the numbering before.
    for (ms, strays, fills) in [(2, 2, vec![]), (10_000, 1, vec![Message(3, 42), Message(3, 43)])] {
        let mut rig = patient();
        rig.run(1, 101);
        rig.at(1, Line::A, &packet(2, 1, 11));
        rig.at(1, Line::A, &packet(2, 11, 31));
        rig.at(ms, Line::A, &packet(2, 31, 41));
        // A copy that goes further, its first two messages damaged, and another one that goes on from there.
        assert_eq!(rig.at(ms, Line::A, &packet(3, 39, 45)), []);
        assert_eq!(rig.at(ms, Line::A, &packet(3, 45, 47)), []);
        assert_eq!(rig.at(ms, Line::A, &packet(2, 41, 42)), [Message(2, 41)]);
        // Two messages are lost, and the line goes on.
        let mut came = Vec::new();
        for next in 44..62 {
            came.extend(rig.at(ms, Line::A, &packet(2, next, next + 1)));
        }
        assert_eq!(came.iter().take(2).copied().collect::<Vec<_>>(), fills, "after {ms} ms");
        assert_eq!(rig.arbiter.line(Line::A).strays, strays, "after {ms} ms");
    }
}

#[test]
fn what_was_counted_as_copies_is_counted_once_when_numbers_begin_again() {
    // Known, and joined late.
    for (first, end) in [(1, 101), (5_001, 5_101)] {
        let mut rig = rig();
        rig.run(first, end);
        for at in 1..9 {
            rig.at(1, Line::A, &packet(2, at, at + 1));
        }
        assert_eq!(rig.arbiter.statistics().restarts, 1);
        let line = rig.arbiter.line(Line::A);
        assert_eq!((line.messages, line.first, line.duplicates), (108, 108, 0), "{line:?}");
        assert_eq!((line.late, line.before_start), (0, 0));
    }
}

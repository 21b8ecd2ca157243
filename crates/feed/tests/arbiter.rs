//! Arbitration: random lines against a simple model of the rules, and the rules one by one.

use crate::arbitration;

use std::collections::BTreeSet;

use arbitration::Event::{self, Again, End, Gap, Message, Reset};
use arbitration::{Log, MS, OTHER, Rig, SESSION, content, packet, packet_of};
use proptest::prelude::*;
use tapeline_feed::line::{
    self, Arbiter, ArbiterSettings, Jump, Line, MalformedDatagram, Restart, Sink, Start,
};
use tapeline_feed::moldudp64::{end_of_session, heartbeat};
use tapeline_nanos::Nanos;

/// What a line sends, in terms of the rules.
#[derive(Clone, Debug)]
enum Sent {
    Data(u64, u64),
    Heartbeat(u64),
    Garbage(usize),
}

impl Sent {
    fn datagram(&self) -> Vec<u8> {
        match *self {
            Self::Data(from, to) => packet(from, to),
            Self::Heartbeat(next) => heartbeat(SESSION, next).to_vec(),
            Self::Garbage(length) => packet(3, 6)[..length].to_vec(),
        }
    }
}

/// One line's copy of the messages 1 to before `end`: packets of its own boundaries, some of them lost, doubled or
/// late, with heartbeats and damaged datagrams among them. Each with the time at which it arrives.
fn line(end: u64) -> impl Strategy<Value = Vec<(u64, Sent)>> {
    let packets = (end / 3) as usize + 1;
    let each = (1_u64..7, 0_u8..20, 0_u64..400, 0_u64..400);
    (prop::collection::vec(each, packets), 0_u64..100).prop_map(move |(packets, start)| {
        let (mut at, mut time) = (1, start);
        let mut sent = Vec::new();
        for (count, fate, delay, pause) in packets {
            let to = (at + count).min(end);
            if at == to {
                break;
            }
            time += pause;
            match fate {
                0 | 1 => {}
                2 => sent.extend([(time, Sent::Data(at, to)), (time + delay, Sent::Data(at, to))]),
                3 => sent.push((time + 20 * delay, Sent::Data(at, to))),
                4 => sent.extend([(time, Sent::Data(at, to)), (time + 1, Sent::Heartbeat(to))]),
                5 => sent.push((time, Sent::Garbage((delay % 30) as usize))),
                _ => sent.push((time + delay, Sent::Data(at, to))),
            }
            at = to;
        }
        sent
    })
}

/// The rules, as simply as they can be put: a set for every question, and no thought of speed.
struct Model {
    window: u64,
    window_bytes: usize,
    next: u64,
    known_end: u64,
    held: BTreeSet<u64>,
    declared: BTreeSet<u64>,
    events: Vec<Event>,
    /// First, duplicates, late.
    counts: [[u64; 3]; 2],
    came: [BTreeSet<u64>; 2],
    named: [u64; 2],
}

impl Model {
    fn new(settings: &ArbiterSettings) -> Self {
        Self {
            window: settings.window_messages as u64,
            window_bytes: settings.window_bytes,
            next: 1,
            known_end: 1,
            held: BTreeSet::new(),
            declared: BTreeSet::new(),
            events: vec![Reset(SESSION)],
            counts: [[0; 3]; 2],
            came: [BTreeSet::new(), BTreeSet::new()],
            named: [1; 2],
        }
    }

    fn take(&mut self, line: usize, sent: &Sent) {
        let (from, to) = match *sent {
            Sent::Garbage(_) => return,
            Sent::Heartbeat(next) => (next, next),
            Sent::Data(from, to) => (from, to),
        };
        self.named[line] = self.named[line].max(to);
        self.known_end = self.known_end.max(to);
        for sequence in from..to {
            self.came[line].insert(sequence);
            let what = if self.declared.remove(&sequence) {
                2
            } else if sequence < self.next || !self.held.insert(sequence) {
                1
            } else {
                self.drain();
                self.make_room(sequence);
                0
            };
            self.counts[line][what] += 1;
        }
    }

    fn drain(&mut self) {
        while self.held.remove(&self.next) {
            self.events.push(Message(self.next));
            self.next += 1;
        }
    }

    fn make_room(&mut self, sequence: u64) {
        let bytes =
            |held: &BTreeSet<u64>| held.iter().map(|sequence| content(*sequence).len()).sum::<usize>();
        while self.held.contains(&sequence)
            && (sequence - self.next >= self.window || bytes(&self.held) > self.window_bytes)
        {
            self.declare_front();
        }
    }

    fn declare_front(&mut self) {
        let until = self.held.first().copied().unwrap_or(self.known_end);
        self.events.push(Gap(self.next, until - 1));
        self.declared.extend(self.next..until);
        self.next = until;
        self.drain();
    }

    fn flush(&mut self) {
        while self.next < self.known_end {
            self.declare_front();
        }
    }
}

/// What is declared missing now has not arrived until now.
fn check(events: &[Event], arrived: &BTreeSet<u64>) -> Result<(), TestCaseError> {
    for event in events {
        if let Gap(first, last) = event {
            let came = arrived.range(first..=last).next();
            prop_assert!(came.is_none(), "declared {} to {}, but {:?} came", first, last, came);
        }
    }
    Ok(())
}

/// Both lines' datagrams in the order of their arrival.
fn merged(lines: [Vec<(u64, Sent)>; 2]) -> Vec<(u64, usize, Sent)> {
    let mut all: Vec<_> = lines
        .into_iter()
        .enumerate()
        .flat_map(|(line, sent)| sent.into_iter().map(move |(time, sent)| (time, line, sent)))
        .collect();
    all.sort_by_key(|(time, line, _)| (*time, *line));
    all
}

fn settings(window: usize, bytes: usize, age_ns: u64) -> ArbiterSettings {
    ArbiterSettings {
        window_messages: window,
        window_bytes: bytes,
        window_age_ns: age_ns,
        start: Start::FromOne,
        ..ArbiterSettings::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn random_lines_agree_with_the_model(
        a in line(200),
        b in line(200),
        window in 0_usize..60,
        bytes in 0_usize..400,
    ) {
        let settings = settings(window, bytes, u64::MAX);
        let mut arbiter = Arbiter::new(settings);
        let mut model = Model::new(&settings);
        let mut log = Log::default();
        let mut malformed = 0;
        for (time, line, sent) in merged([a, b]) {
            if log.0.is_empty() {
                // The session begins with the first packet that is one; before it there is nothing to compare.
                prop_assert!(arbiter.next_sequence().is_none());
            }
            let before = (log.0.len(), *arbiter.statistics());
            let taken = arbiter.datagram(Line::new(line).unwrap(), &sent.datagram(), Nanos(time), &mut log);
            if let Sent::Garbage(_) = sent {
                prop_assert!(taken.is_err());
                malformed += 1;
                prop_assert_eq!(before, (log.0.len(), *arbiter.statistics()), "malformed, and still a change");
            } else {
                prop_assert!(taken.is_ok());
                model.take(line, &sent);
            }
        }
        arbiter.flush(&mut log);
        model.flush();
        if !log.0.is_empty() {
            prop_assert_eq!(&log.0, &model.events);
        }
        let total = arbiter.statistics();
        let gaps: Vec<(u64, u64)> =
            log.0.iter().filter_map(|event| match event { Gap(first, last) => Some((*first, *last)), _ => None }).collect();
        prop_assert_eq!(total.gaps, gaps.len() as u64);
        prop_assert_eq!(total.missing, gaps.iter().map(|(first, last)| last - first + 1).sum::<u64>());
        prop_assert_eq!(total.delivered + total.missing, model.known_end - 1);
        let mut reasons = 0;
        for number in 0..2 {
            let line = arbiter.line(Line::new(number).unwrap());
            prop_assert_eq!([line.first, line.duplicates, line.late], model.counts[number]);
            prop_assert_eq!(line.messages, line.first + line.duplicates + line.late);
            prop_assert_eq!(line.missing(), model.named[number] - 1 - model.came[number].len() as u64);
            reasons += line.malformed.iter().sum::<u64>();
        }
        prop_assert_eq!(reasons, malformed);
    }

    #[test]
    fn whatever_the_age_nothing_is_lost_in_silence(
        a in line(200),
        b in line(200),
        age in 0_u64..3_000,
        asks in prop::collection::vec(0_u64..12_000, 0..20),
    ) {
        let mut arbiter = Arbiter::new(settings(64, 10_000, age));
        let mut log = Log::default();
        let mut arrived = BTreeSet::new();
        let mut asks = asks;
        asks.sort_unstable();
        let mut end = 1;
        let mut seen = 0;
        for (time, line, sent) in merged([a, b]) {
            while let Some(ask) = asks.first().copied().filter(|ask| *ask <= time) {
                asks.remove(0);
                arbiter.expire(Nanos(ask), &mut log);
                prop_assert!(arbiter.next_expiry().is_none_or(|expiry| expiry.0 > ask));
            }
            check(&log.0[seen..], &arrived)?;
            seen = log.0.len();
            if let Sent::Data(from, to) = sent {
                arrived.extend(from..to);
                end = end.max(to);
            }
            if let Sent::Heartbeat(next) = sent {
                end = end.max(next);
            }
            let taken = arbiter.datagram(Line::new(line).unwrap(), &sent.datagram(), Nanos(time), &mut log);
            // A malformed one does nothing, so it does not look at the age either.
            prop_assert!(taken.is_err() || arbiter.next_expiry().is_none_or(|expiry| expiry.0 > time));
            check(&log.0[seen..], &arrived)?;
            seen = log.0.len();
        }
        arbiter.flush(&mut log);
        // Every sequence once: delivered, or in a gap.
        let mut next = 1;
        for event in &log.0 {
            match event {
                Message(sequence) => { prop_assert_eq!(*sequence, next); next += 1; }
                Gap(first, last) => { prop_assert_eq!(*first, next); next = last + 1; }
                Reset(session) => prop_assert_eq!(*session, SESSION),
                End(_) | Again(_) => prop_assert!(false),
            }
        }
        prop_assert_eq!(next, end);
        prop_assert!(arbiter.next_expiry().is_none());
    }

    #[test]
    fn no_datagrams_at_all_make_it_stumble(
        datagrams in prop::collection::vec((0_usize..8, 0_u64..3, any::<u64>(), 0_u16..5, 0_u64..10_000_000_000), 0..60),
        on_jump in prop_oneof![Just(Jump::Confirm), Just(Jump::Believe), Just(Jump::Ignore)],
        restart in prop_oneof![Just(Restart::Ignore), Just(Restart::Changed), Just(Restart::Reset)],
        recovery_age_ns in 0..2 * MS,
    ) {
        let settings = ArbiterSettings { on_jump, restart, recovery_age_ns, ..settings(32, 64, MS) };
        let mut arbiter = Arbiter::new(settings);
        let mut log = Unchecked::default();
        for (line, session, sequence, count, time) in datagrams {
            let mut bytes = vec![session as u8; 10];
            bytes.extend((if line % 2 == 0 { sequence } else { sequence % 100 }).to_be_bytes());
            bytes.extend((if count == 4 { 0xFFFF } else { count }).to_be_bytes());
            bytes.extend([0, 1, 7, 0, 0, 0, 2, 7, 7]);
            let line = if line == 7 { Line::RECOVERY } else { Line::new(line).unwrap() };
            let _ = arbiter.datagram(line, &bytes, Nanos(time), &mut log);
            let holes: Vec<_> = arbiter.missing().collect();
            prop_assert!(holes.is_empty() || arbiter.next_expiry().is_some());
            prop_assert!(holes.iter().all(|hole| hole.start() <= hole.end()));
            prop_assert!(holes.windows(2).all(|pair| pair[0].end() < pair[1].start()));
            if count == 3 && let Some(hole) = holes.last() {
                arbiter.give_up(hole.clone(), Nanos(time), &mut log);
                let left = arbiter.missing().all(|left| left.end() < hole.start() || left.start() > hole.end());
                prop_assert!(left, "given up, and still asked for");
            }
        }
        arbiter.expire(Nanos(u64::MAX), &mut log);
        prop_assert!(arbiter.next_expiry().is_none());
        arbiter.flush(&mut log);
        prop_assert_eq!(log.0, arbiter.statistics().delivered);
    }
}

/// Counts messages.
#[derive(Default)]
struct Unchecked(u64);

impl Sink for Unchecked {
    fn message(&mut self, _: u64, _: &[u8], _: Nanos) {
        self.0 += 1;
    }

    fn gap(&mut self, first: u64, last: u64) {
        assert!(first <= last);
    }

    fn end_of_session(&mut self, _: u64) {}

    fn reset(&mut self, _: line::Session) {}
}

#[test]
fn who_joins_late_starts_with_what_comes_first() {
    let mut rig = Rig::new(ArbiterSettings::default());
    assert_eq!(rig.at(0, Line::A, &packet(100, 102)), [Reset(SESSION), Message(100), Message(101)]);
    assert_eq!(rig.at(1, Line::B, &packet(98, 103)), [Message(102)]);
    let b = rig.arbiter.line(Line::B);
    assert_eq!((b.before_start, b.duplicates, b.first, b.missing()), (2, 2, 1, 0));

    let mut rig = Rig::new(ArbiterSettings { start: Start::FromOne, ..ArbiterSettings::default() });
    assert_eq!(rig.at(0, Line::A, &packet(3, 4)), [Reset(SESSION)]);
    assert_eq!(rig.at(30, Line::A, &packet(4, 5)), [Gap(1, 2), Message(3), Message(4)]);
}

#[test]
fn a_heartbeat_reveals_the_lost_tail() {
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    assert_eq!(rig.at(1, Line::A, &heartbeat(SESSION, 3)), []);
    assert_eq!(rig.arbiter.next_expiry(), None);
    assert_eq!(rig.at(2, Line::A, &heartbeat(SESSION, 5)), []);
    // The other line may still bring it, until it is too old.
    assert_eq!(rig.arbiter.next_expiry(), Some(Nanos(22 * MS)));
    assert_eq!(rig.at(5, Line::B, &packet(3, 4)), [Message(3)]);
    rig.arbiter.expire(Nanos(21 * MS), &mut rig.log);
    assert_eq!(rig.log.take(), []);
    rig.arbiter.expire(Nanos(22 * MS), &mut rig.log);
    assert_eq!(rig.log.take(), [Gap(4, 4)]);
    assert_eq!(rig.at(23, Line::B, &packet(4, 6)), [Message(5)]);
    assert_eq!((rig.arbiter.line(Line::B).late, rig.arbiter.statistics().late), (1, 1));
    // A's heartbeat and B's first packet were ahead of what the lines had brought themselves.
    assert_eq!((rig.arbiter.line(Line::A).jumps, rig.arbiter.line(Line::B).jumps), (1, 1));
    // A second late copy is a duplicate.
    assert_eq!(rig.at(24, Line::A, &packet(4, 5)), []);
    assert_eq!((rig.arbiter.line(Line::A).late, rig.arbiter.line(Line::A).duplicates), (0, 1));
}

#[test]
fn the_end_comes_once_and_after_the_tail() {
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    rig.at(0, Line::B, &packet(1, 3));
    let end = end_of_session(SESSION, 4);
    assert_eq!(rig.at(1, Line::A, &end), []);
    // B still has the last message.
    assert_eq!(rig.at(2, Line::B, &packet(3, 4)), [Message(3), End(4)]);
    assert!(rig.arbiter.is_ended());
    assert_eq!(rig.at(3, Line::A, &end), []);
    assert_eq!(rig.at(3, Line::B, &end), []);
    assert_eq!(rig.at(4, Line::B, &packet(3, 7)), []);
    let b = rig.arbiter.line(Line::B);
    assert_eq!((b.after_end, b.duplicates, b.ends_of_session), (3, 3, 1));

    // When every line has ended, nobody can bring the tail any more.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    rig.at(0, Line::B, &packet(1, 3));
    assert_eq!(rig.at(1, Line::A, &end), []);
    assert_eq!(rig.at(1, Line::B, &end), [Gap(3, 3), End(4)]);

    // An end before messages that have come already is none.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 9));
    assert_eq!(rig.at(1, Line::A, &end), []);
    assert!(!rig.arbiter.is_ended());
    assert_eq!(rig.arbiter.line(Line::A).absurd, 1);
    assert_eq!(rig.at(2, Line::A, &packet(9, 10)), [Message(9)]);
}

#[test]
fn a_new_session_resets_and_the_old_one_does_not_come_back() {
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    assert_eq!(rig.at(1, Line::A, &packet(5, 6)), []);
    // What was held is delivered, and numbering starts again with 1, whatever comes first.
    // Once it is confirmed.
    assert_eq!(rig.at(2, Line::A, &packet_of(OTHER, 2, 3)), []);
    assert_eq!(
        rig.at(3, Line::B, &packet_of(OTHER, 1, 3)),
        [Gap(3, 4), Message(5), Reset(OTHER), Message(1), Message(2)]
    );
    // B was behind with the old session.
    assert_eq!(rig.at(4, Line::B, &packet(5, 7)), []);
    assert_eq!(rig.arbiter.line(Line::B).stale_session, 1);
    // If the new one stays silent for long, it was a mistake: the old one goes on where it was.
    assert_eq!(rig.at(5_000, Line::B, &packet(5, 8)), [Reset(SESSION), Message(6), Message(7)]);
    assert_eq!(rig.arbiter.statistics().sessions, 3);
}

#[test]
fn sequence_zero_is_ignored() {
    let mut rig = Rig::new(ArbiterSettings::default());
    assert_eq!(rig.at(0, Line::A, &packet(0, 2)), []);
    assert_eq!(rig.at(0, Line::A, &heartbeat(SESSION, 0)), []);
    assert_eq!((rig.arbiter.line(Line::A).absurd, rig.arbiter.session()), (2, None));
}

#[test]
fn an_absurd_jump_has_to_be_confirmed() {
    let far = 1 << 40;
    let jumps = [
        (Jump::Confirm, [vec![], vec![Gap(2, far + 2), Message(far + 3)]]),
        (Jump::Believe, [vec![Gap(2, far - 1), Message(far)], vec![]]),
        (Jump::Ignore, [vec![], vec![]]),
    ];
    for (on_jump, wanted) in jumps {
        let mut rig = Rig::new(ArbiterSettings { on_jump, ..settings(8, 100, 20 * MS) });
        rig.at(0, Line::A, &packet(1, 2));
        assert_eq!(rig.at(1, Line::A, &packet(far, far + 1)), wanted[0], "{on_jump:?}");
        assert_eq!(rig.at(2, Line::A, &packet(far + 3, far + 4)), wanted[1], "{on_jump:?}");
    }
    // Two that agree are believed, and are no reason to count what nobody sends.
    for far in [1 << 62, u64::MAX - 8] {
        let mut rig = Rig::new(settings(8, 100, 20 * MS));
        rig.at(0, Line::A, &packet(1, 2));
        rig.at(1, Line::A, &packet(3, 4));
        rig.at(2, Line::A, &packet(far, far + 1));
        rig.at(3, Line::A, &packet(far + 2, far + 3));
        let (all, line) = (rig.arbiter.statistics(), rig.arbiter.line(Line::A));
        assert_eq!((all.gaps, all.missing, all.absurd_gaps, line.missing()), (2, 1, 1, 1), "{far}");
    }
    // A stray packet alone does no harm.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 2));
    assert_eq!(rig.at(1, Line::B, &packet(far, far + 1)), []);
    assert_eq!(rig.at(2, Line::A, &packet(2, 3)), [Message(2)]);
    assert_eq!(rig.arbiter.line(Line::B).absurd, 1);
}

#[test]
fn skew_is_measured_between_lines_and_not_within_one() {
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(10, Line::A, &packet(1, 3));
    rig.at(11, Line::A, &packet(1, 3));
    rig.at(13, Line::B, &packet(1, 2));
    rig.at(20, Line::B, &packet(3, 4));
    rig.at(21, Line::A, &packet(3, 5));
    let (a, b) = (rig.arbiter.line(Line::A).skew, rig.arbiter.line(Line::B).skew);
    assert_eq!((a.samples, a.min_ns, a.max_ns), (1, 1_000_000, 1_000_000));
    assert_eq!((b.samples, b.mean_ns()), (1, Some(3_000_000.0)));
}

#[test]
fn malformed_datagrams_are_counted_by_reason() {
    let mut rig = Rig::new(ArbiterSettings::default());
    let mut log = Log::default();
    let whole = packet(1, 4);
    for length in 0..whole.len() {
        assert!(rig.arbiter.datagram(Line::A, &whole[..length], Nanos(0), &mut log).is_err());
    }
    let line = rig.arbiter.line(Line::A);
    assert_eq!(line.datagrams, whole.len() as u64);
    assert_eq!(line.malformed[MalformedDatagram::ShortHeader.index()], 20);
    assert_eq!(line.malformed_by_reason().map(|(_, count)| count).sum::<u64>(), line.datagrams);
    assert_eq!((rig.arbiter.session(), log.0.len()), (None, 0));
}

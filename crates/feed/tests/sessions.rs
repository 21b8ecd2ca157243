//! When a session begins, or begins again, and when a stray packet only says so.

use crate::arbitration;

use arbitration::Event::{Again, End, Gap, Message, Reset};
use arbitration::{MS, OTHER, Rig, SESSION, packet, packet_of};
use proptest::prelude::*;
use tapeline_feed::line::{ArbiterSettings, Line, Restart};
use tapeline_feed::moldudp64::{MoldSession, end_of_session, heartbeat};

const STRAY: MoldSession = MoldSession(*b"EVIL000001");

#[test]
fn strays_do_not_clear_the_books_of_a_session_that_is_alive() {
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    for (ms, stray) in [
        packet_of(STRAY, 1, 9),
        packet_of(STRAY, 9, 11),
        heartbeat(STRAY, 1).to_vec(),
        end_of_session(STRAY, 1).to_vec(),
        packet_of(OTHER, 7, 8),
    ]
    .iter()
    .enumerate()
    {
        let (ms, next) = (ms as u64, 3 + ms as u64);
        // The same one twice is no second word, and the line goes on with its own session.
        assert_eq!(rig.at(ms, Line::A, stray), []);
        assert_eq!(rig.at(ms, Line::A, stray), []);
        assert_eq!(rig.at(ms, Line::A, &packet(next, next + 1)), [Message(next)]);
    }
    assert_eq!(rig.arbiter.line(Line::A).strays, 10);
    assert_eq!(rig.arbiter.statistics().sessions, 1);
    // One stray on each line, of different sessions.
    assert_eq!(rig.at(9, Line::A, &packet_of(STRAY, 1, 2)), []);
    assert_eq!(rig.at(9, Line::B, &packet_of(OTHER, 1, 2)), []);
    assert_eq!(rig.at(9, Line::B, &packet(8, 9)), [Message(8)]);
    assert_eq!(rig.at(9, Line::A, &packet(9, 10)), [Message(9)]);
    assert_eq!(rig.arbiter.session(), Some(SESSION.into()));
}

#[test]
fn a_second_packet_confirms_and_nothing_of_the_first_is_lost() {
    // The next on the same line.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    assert_eq!(rig.at(1, Line::A, &packet_of(OTHER, 1, 4)), []);
    assert_eq!(
        rig.at(2, Line::A, &packet_of(OTHER, 4, 5)),
        [Reset(OTHER), Message(1), Message(2), Message(3), Message(4)]
    );
    assert_eq!(rig.arbiter.line(Line::A).strays, 0);

    // Or the other line, with the same packet.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    assert_eq!(rig.at(1, Line::A, &packet_of(OTHER, 1, 3)), []);
    assert_eq!(rig.at(2, Line::B, &packet(1, 3)), []);
    assert_eq!(rig.at(3, Line::B, &packet_of(OTHER, 1, 3)), [Reset(OTHER), Message(1), Message(2)]);
    let (a, b) = (rig.arbiter.line(Line::A), rig.arbiter.line(Line::B));
    assert_eq!((a.first, b.first, b.duplicates, b.missing()), (4, 0, 4, 0));
}

#[test]
fn an_ended_or_silent_session_makes_way_at_once() {
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    assert_eq!(rig.at(1, Line::A, &end_of_session(SESSION, 3)), [End(3)]);
    assert_eq!(rig.at(2, Line::A, &packet_of(OTHER, 1, 2)), [Reset(OTHER), Message(1)]);

    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    assert_eq!(rig.at(2_999, Line::A, &packet_of(OTHER, 1, 2)), []);
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    assert_eq!(rig.at(3_000, Line::A, &packet_of(OTHER, 1, 2)), [Reset(OTHER), Message(1)]);
}

#[test]
fn an_end_that_is_none_loses_nothing() {
    for restart in [Restart::Ignore, Restart::Changed, Restart::Reset] {
        let mut rig = Rig::new(ArbiterSettings { restart, ..ArbiterSettings::default() });
        rig.at(0, Line::A, &packet(1, 101));
        assert_eq!(rig.at(1, Line::A, &end_of_session(SESSION, 101)), [End(101)]);
        assert_eq!(rig.at(2, Line::A, &packet(101, 103)), []);
        assert_eq!(rig.arbiter.line(Line::A).after_end, 2);
        // The same once more, and what is old, prove nothing.
        assert_eq!(rig.at(2, Line::A, &packet(101, 103)), []);
        assert_eq!(rig.at(2, Line::A, &packet(99, 101)), []);
        assert!(rig.arbiter.is_ended());
        let got = rig.at(3, Line::A, &packet(103, 105));
        assert_eq!(got, [Again(101), Message(101), Message(102), Message(103), Message(104)]);
        assert!(!rig.arbiter.is_ended());
        let wanted: Vec<_> = (105..3_101).map(Message).collect();
        let got: Vec<_> = (105..3_101).flat_map(|at| rig.at(4, Line::A, &packet(at, at + 1))).collect();
        assert_eq!(got, wanted);
        assert_eq!(rig.at(5, Line::A, &end_of_session(SESSION, 3_101)), [End(3_101)]);
        let (total, a) = (rig.arbiter.statistics(), rig.arbiter.line(Line::A));
        assert_eq!((total.false_ends, total.ends, total.missing), (1, 1, 0));
        assert_eq!((a.messages, a.strays, a.missing()), (3_102, 1, 0));
    }
}

#[test]
fn an_end_is_taken_back_by_either_line_and_by_what_says_where_the_feed_is() {
    // The other line brings the same, in a packet that began before the end.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    rig.at(0, Line::B, &packet(1, 3));
    assert_eq!(rig.at(1, Line::A, &end_of_session(SESSION, 4)), []);
    assert_eq!(rig.at(2, Line::A, &packet(4, 6)), []);
    assert_eq!(rig.at(3, Line::B, &packet(3, 6)), [Message(3), Message(4), Message(5)]);
    assert_eq!((rig.arbiter.statistics().false_ends, rig.arbiter.is_ended()), (1, false));
    // What was lost behind a false end is a gap.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    rig.at(1, Line::A, &end_of_session(SESSION, 3));
    assert_eq!(rig.at(2, Line::A, &end_of_session(SESSION, 9)), []);
    assert_eq!(rig.at(3, Line::A, &end_of_session(SESSION, 9)), [Again(3), Gap(3, 8), End(9)]);
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 3));
    rig.at(1, Line::A, &end_of_session(SESSION, 3));
    assert_eq!(rig.at(2, Line::A, &packet(3, 5)), []);
    assert_eq!(rig.at(3, Line::A, &packet(7, 8)), [Again(3), Message(3), Message(4)]);
    assert_eq!(rig.at(40, Line::A, &heartbeat(SESSION, 8)), [Gap(5, 6), Message(7)]);
}

#[test]
fn a_stray_behind_the_end_does_not_take_it_back() {
    let mut rig = resetting();
    rig.at(0, Line::A, &packet(1, 5));
    rig.at(1, Line::A, &end_of_session(SESSION, 5));
    assert_eq!(rig.at(2, Line::A, &packet(5, 7)), []);
    // The line says again that this was the end.
    assert_eq!(rig.at(3, Line::A, &end_of_session(SESSION, 5)), []);
    assert_eq!(rig.at(4, Line::A, &packet(7, 8)), []);
    assert!(rig.arbiter.is_ended());
    let a = rig.arbiter.line(Line::A);
    assert_eq!((a.after_end, a.strays, rig.arbiter.statistics().false_ends), (3, 1, 0));
    // Nor does it come back when everything begins again, or another session comes.
    assert_eq!(rig.at(5, Line::A, &packet(1, 2)), []);
    assert_eq!(rig.at(6, Line::A, &packet(2, 3)), [Reset(SESSION), Message(1), Message(2)]);
    rig.at(7, Line::A, &end_of_session(SESSION, 3));
    assert_eq!(rig.at(8, Line::A, &packet(3, 4)), []);
    assert_eq!(rig.at(9, Line::A, &packet_of(OTHER, 1, 2)), [Reset(OTHER), Message(1)]);
    assert_eq!(rig.at(10, Line::A, &packet_of(OTHER, 2, 3)), [Message(2)]);
}

fn resetting() -> Rig {
    Rig::new(ArbiterSettings { restart: Restart::Reset, ..ArbiterSettings::default() })
}

#[test]
fn a_line_that_goes_on_from_the_beginning_starts_the_session_again() {
    let mut rig = resetting();
    rig.at(0, Line::A, &packet(1, 9));
    assert_eq!(rig.at(1, Line::A, &packet(1, 3)), []);
    assert_eq!(rig.at(2, Line::A, &packet(3, 4)), [Reset(SESSION), Message(1), Message(2), Message(3)]);
    assert_eq!(rig.arbiter.statistics().restarts, 1);

    // Also where it was short.
    let mut rig = resetting();
    rig.at(0, Line::A, &packet(1, 3));
    assert_eq!(rig.at(1, Line::A, &packet(1, 6)), []);
    assert_eq!(rig.at(2, Line::A, &packet(6, 7)).len(), 7);

    // Heartbeats say so too; what was missing before is declared.
    let mut rig = resetting();
    rig.at(0, Line::A, &packet(1, 4));
    assert_eq!(rig.at(3, Line::A, &packet(6, 9)), []);
    assert_eq!(rig.at(4, Line::A, &heartbeat(SESSION, 1)), []);
    assert_eq!(
        rig.at(5, Line::A, &heartbeat(SESSION, 1)),
        [Gap(4, 5), Message(6), Message(7), Message(8), Reset(SESSION)]
    );
    assert_eq!(rig.at(6, Line::A, &packet(1, 2)), [Message(1)]);
    // Where sequences count through the session, what comes again is a duplicate.
    let mut rig = Rig::new(ArbiterSettings::default());
    rig.at(0, Line::A, &packet(1, 9));
    rig.at(1, Line::A, &packet(1, 3));
    assert_eq!(rig.at(2, Line::A, &packet(3, 4)), []);
    assert_eq!(rig.arbiter.line(Line::A).duplicates, 3);
}

#[test]
fn a_stray_beginning_does_not() {
    let mut rig = resetting();
    rig.at(0, Line::A, &packet(1, 9));
    assert_eq!(rig.at(1, Line::A, &packet(1, 3)), []);
    assert_eq!(rig.at(2, Line::A, &packet(9, 10)), [Message(9)]);
    // The first packet, doubled, where the line goes on behind it all the same.
    let mut rig = resetting();
    rig.at(0, Line::A, &packet(1, 3));
    assert_eq!(rig.at(1, Line::A, &packet(1, 3)), []);
    assert_eq!(rig.at(2, Line::A, &packet(3, 5)), [Message(3), Message(4)]);
    assert_eq!((rig.arbiter.statistics().restarts, rig.arbiter.line(Line::A).strays), (0, 1));
    // A line that is behind brings the beginning for the first time.
    assert_eq!(rig.at(3, Line::B, &packet(1, 3)), []);
    assert_eq!(rig.at(4, Line::B, &packet(3, 6)), [Message(5)]);
    assert_eq!(rig.arbiter.statistics().restarts, 0);
}

#[test]
fn the_line_that_is_behind_ends_what_was_before_it_starts_again() {
    let mut rig = resetting();
    rig.at(0, Line::A, &packet(1, 99));
    rig.at(0, Line::B, &packet(1, 90));
    rig.at(1, Line::A, &packet(1, 3));
    assert_eq!(rig.at(2, Line::A, &packet(3, 4)).first(), Some(&Reset(SESSION)));
    assert_eq!(rig.at(3, Line::B, &packet(90, 99)), []);
    assert_eq!(rig.arbiter.line(Line::B).stale_session, 1);
    assert_eq!(rig.at(4, Line::B, &packet(1, 5)), [Message(4)]);
    assert_eq!(rig.at(5, Line::A, &packet(4, 7)), [Message(5), Message(6)]);
    assert_eq!(rig.arbiter.next_expiry(), None);
    // Its beginning lost: it is believed where it says what is known already.
    rig.at(6, Line::A, &packet(7, 90));
    rig.at(6, Line::B, &packet(5, 90));
    rig.at(7, Line::A, &packet(1, 3));
    rig.at(8, Line::A, &packet(3, 8));
    assert_eq!(rig.at(9, Line::B, &packet(5, 7)), []);
    assert_eq!(rig.at(10, Line::B, &packet(7, 9)), [Message(8)]);
    assert_eq!(rig.arbiter.line(Line::B).missing(), 4);
}

#[test]
fn a_beginning_that_was_lost_shows_when_nothing_new_comes() {
    let mut rig = resetting();
    rig.at(0, Line::A, &packet(1, 99));
    for ms in [1_000, 2_000, 2_999] {
        assert_eq!(rig.at(ms, Line::A, &packet(5, 7)), []);
    }
    // Nothing of what came meanwhile is lost.
    assert_eq!(rig.at(3_000, Line::A, &packet(7, 9)), [Reset(SESSION)]);
    let wanted = [Gap(1, 4), Message(5), Message(6), Message(7), Message(8)];
    assert_eq!(rig.at(3_021, Line::A, &heartbeat(SESSION, 9)), wanted);
}

#[test]
fn recovery_fills_holes_and_nothing_else() {
    let mut rig = Rig::new(ArbiterSettings { recovery_age_ns: 1_000 * MS, ..ArbiterSettings::default() });
    rig.at(0, Line::A, &packet(1, 3));
    rig.at(1, Line::A, &packet(5, 6));
    rig.at(2, Line::A, &packet(9, 10));
    assert_eq!(rig.arbiter.missing().collect::<Vec<_>>(), [3..=4, 6..=8]);
    // The lines have had their time; recovery has its own.
    rig.arbiter.expire(tapeline_nanos::Nanos(900 * MS), &mut rig.log);
    assert_eq!(rig.log.take(), []);
    // Of another session, or of what nobody has announced.
    assert_eq!(rig.at(900, Line::RECOVERY, &packet_of(OTHER, 3, 5)), []);
    assert_eq!(rig.at(900, Line::RECOVERY, &packet(10, 12)), []);
    assert_eq!(rig.at(900, Line::RECOVERY, &heartbeat(SESSION, 50)), []);
    assert_eq!(rig.at(900, Line::RECOVERY, &end_of_session(SESSION, 10)), []);
    assert_eq!(rig.arbiter.missing().collect::<Vec<_>>(), [3..=4, 6..=8]);
    assert_eq!(rig.at(901, Line::RECOVERY, &packet(7, 8)), []);
    assert_eq!(rig.at(902, Line::RECOVERY, &packet(2, 6)), [Message(3), Message(4), Message(5)]);
    assert_eq!(rig.arbiter.missing().collect::<Vec<_>>(), [6..=6, 8..=8]);
    // It says no: that much is lost, once.
    rig.arbiter.give_up(6..=6, tapeline_nanos::Nanos(903 * MS), &mut rig.log);
    assert_eq!(rig.log.take(), [Gap(6, 6), Message(7)]);
    // Or is too late.
    rig.arbiter.expire(tapeline_nanos::Nanos(1_022 * MS), &mut rig.log);
    assert_eq!(rig.log.take(), [Gap(8, 8), Message(9)]);
    assert_eq!(rig.at(1_030, Line::RECOVERY, &packet(8, 9)), []);
    let (total, asked) = (rig.arbiter.statistics(), rig.arbiter.line(Line::RECOVERY));
    assert_eq!((total.recovered, total.missing, total.late), (3, 2, 1));
    assert_eq!((asked.first, asked.late, asked.duplicates, asked.stale_session), (3, 1, 2, 1));
    assert_eq!(rig.arbiter.heard(), Some(tapeline_nanos::Nanos(2 * MS)), "a server is no line");
}

#[test]
fn a_hole_is_given_up_as_far_as_recovery_says() {
    let mut rig = Rig::new(ArbiterSettings { recovery_age_ns: 1_000 * MS, ..ArbiterSettings::default() });
    rig.at(0, Line::A, &packet(1, 2));
    rig.at(1, Line::A, &packet(9, 10));
    rig.arbiter.give_up(2..=4, tapeline_nanos::Nanos(2 * MS), &mut rig.log);
    assert_eq!(rig.log.take(), [Gap(2, 4)]);
    assert_eq!(
        rig.at(3, Line::RECOVERY, &packet(5, 9)),
        [Message(5), Message(6), Message(7), Message(8), Message(9)]
    );
    assert_eq!(rig.arbiter.next_expiry(), None);
}

#[test]
fn what_is_given_up_waits_for_what_is_older() {
    let mut rig = Rig::new(ArbiterSettings { recovery_age_ns: 1_000 * MS, ..ArbiterSettings::default() });
    rig.at(0, Line::A, &packet(1, 2));
    rig.at(1, Line::A, &packet(4, 5));
    rig.at(2, Line::A, &packet(9, 10));
    rig.arbiter.give_up(6..=7, tapeline_nanos::Nanos(3 * MS), &mut rig.log);
    assert_eq!(rig.log.take(), []);
    // It is not asked for any more.
    assert_eq!(rig.arbiter.missing().collect::<Vec<_>>(), [2..=3, 5..=5, 8..=8]);
    assert_eq!(rig.at(4, Line::RECOVERY, &packet(5, 6)), []);
    assert_eq!(
        rig.at(4, Line::RECOVERY, &packet(2, 4)),
        [Message(2), Message(3), Message(4), Message(5), Gap(6, 7)]
    );
    assert_eq!(rig.at(5, Line::B, &packet(6, 9)), [Message(8), Message(9)]);
    assert_eq!(rig.arbiter.line(Line::B).late, 2);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Two lines in flow, with strays of made-up sessions thrown in one at a time: every message comes, once, in order.
    #[test]
    fn whatever_strays_there_are_the_feed_goes_on(
        strays in prop::collection::vec((0_usize..60, 0_u8..2, 0_u8..4, 1_u64..200, 0_u64..4, 0_u8..3), 0..40),
        reset in any::<bool>(),
    ) {
        let restart = if reset { Restart::Reset } else { Restart::Changed };
        let mut rig = Rig::new(ArbiterSettings { restart, ..ArbiterSettings::default() });
        let mut got = rig.at(0, Line::A, &packet(1, 2));
        rig.at(0, Line::B, &packet(1, 2));
        for at in 0..60_usize {
            let next = 2 + 2 * at as u64;
            for (line, number) in [(Line::A, 0), (Line::B, 1)] {
                // At most one between two packets of the line, so no line speaks twice of a session that it does not have;
                // each line has sessions of its own.
                if let Some((_, _, name, first, count, kind)) =
                    strays.iter().find(|(when, on, ..)| *when == at && *on == number)
                {
                    let session = MoldSession([b'0' + 10 * number + name; 10]);
                    let stray = match kind {
                        0 => heartbeat(session, *first).to_vec(),
                        1 => end_of_session(session, *first).to_vec(),
                        _ => packet_of(session, *first, first + count + 1),
                    };
                    got.extend(rig.at(1, line, &stray));
                }
                got.extend(rig.at(1, line, &packet(next, next + 2)));
            }
        }
        let mut wanted = vec![Reset(SESSION)];
        wanted.extend((1..122).map(Message));
        prop_assert_eq!(got, wanted);
    }
}

//! What subscribers are told of a channel's state.

use crate::bench;

use bench::{Bench, SESSION, add, delete, directory, packet, packet_of, real};
use proptest::prelude::*;
use tapeline_feed::Protocol;
use tapeline_feed::iex::encode::{QuoteUpdate, TradeReport};
use tapeline_feed::iex::{self, tp};
use tapeline_feed::line::{self, Line};
use tapeline_feed::moldudp64::{MoldSession, end_of_session, heartbeat};
use tapeline_feed::normalise::Instrument;
use tapeline_measure::Nanos;
use tapeline_omm::fid;
use tapeline_omm::rwf::{DataState, Header, MessageView};
use tapeline_plant::tick::{Flags, Kind, Quality, Tick};
use tapeline_plant::{ChannelSettings, PublishPolicy, State};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const AAPL: Instrument = Instrument(13);

/// A channel whose holes are given a second to be recovered.
fn recovering() -> Bench {
    recovering_and_stale_after(3 * SECOND)
}

fn recovering_and_stale_after(stale_after_ns: u64) -> Bench {
    let settings = Bench::settings(PublishPolicy::Changes);
    let arbitration = line::ArbiterSettings {
        window_age_ns: MS,
        recovery_age_ns: SECOND,
        expire_on_packet: false,
        ..settings.arbitration
    };
    Bench::with(ChannelSettings { arbitration, stale_after_ns, ..settings })
}

trait Story {
    fn after(&mut self, ns: u64) -> Vec<(Kind, State, Option<DataState>, String)>;
    fn gets(&mut self, line: Line, datagram: &[u8]) -> Vec<(Kind, State, Option<DataState>, String)>;
    fn told(&mut self, from: usize) -> Vec<(Kind, State, Option<DataState>, String)>;
    fn qualities(&mut self) -> String;
}

impl Story for Bench {
    /// Time goes by, and the channel looks around.
    fn after(&mut self, ns: u64) -> Vec<(Kind, State, Option<DataState>, String)> {
        let from = self.frames().len();
        self.clock.0.set(self.clock.0.get() + ns);
        let told = self.channel.expire(&self.clock, &mut self.sequencer).unwrap();
        assert_eq!(told, self.frames().len() > from);
        self.told(from)
    }

    fn gets(&mut self, line: Line, datagram: &[u8]) -> Vec<(Kind, State, Option<DataState>, String)> {
        let from = self.frames().len();
        self.datagram(line, datagram).unwrap();
        self.told(from)
    }

    /// The ticks from one on: kind, the header's state, the data's state where the body names one, text or name.
    fn told(&mut self, from: usize) -> Vec<(Kind, State, Option<DataState>, String)> {
        let of = |frame: &Vec<u8>| {
            let tick = Tick::parse(frame).unwrap();
            let message = MessageView::parse(tick.body).unwrap();
            let (data, text) = match message.header().unwrap() {
                Header::Status(status) => {
                    let state = status.state.unwrap();
                    (Some(state.data), String::from_utf8(state.text.to_vec()).unwrap())
                }
                Header::Refresh(refresh) => (Some(refresh.state.data), tick.name.to_owned()),
                _ => (None, tick.name.to_owned()),
            };
            if data.is_some_and(|data| data != DataState::NO_CHANGE) {
                let suspect = data == Some(DataState::SUSPECT);
                // An image that recovery brings is old, and right.
                let late = tick.header.kind != Kind::Status && tick.header.quality() == Quality::Late;
                assert_eq!(tick.header.flags.contains(Flags::SUSPECT), suspect && !late, "{text}");
            }
            (tick.header.kind, tick.header.state, data, text)
        };
        self.frames()[from..].iter().map(of).collect()
    }

    /// How far each tick can be trusted, but for statuses: good, late or unknown, a letter each.
    fn qualities(&mut self) -> String {
        let of = |frame: &Vec<u8>| {
            let header = Tick::parse(frame).unwrap().header;
            (header.kind != Kind::Status).then(|| header.quality().name()[..1].to_uppercase())
        };
        self.frames().iter().filter_map(of).collect()
    }
}

fn status(state: State, data: DataState, text: &str) -> (Kind, State, Option<DataState>, String) {
    (Kind::Status, state, Some(data), text.to_owned())
}

fn update(state: State) -> (Kind, State, Option<DataState>, String) {
    (Kind::Update, state, None, "AAPL".to_owned())
}

fn image(state: State, data: DataState) -> (Kind, State, Option<DataState>, String) {
    (Kind::Refresh, state, Some(data), "AAPL".to_owned())
}

#[test]
fn a_silent_channel_is_stale_until_it_is_heard_of() {
    let mut bench = Bench::new(PublishPolicy::Changes);
    assert_eq!(bench.after(60 * SECOND), [], "nothing has come, and nobody was told otherwise");
    assert!(bench.channel.is_suspect(AAPL));
    assert_eq!(
        bench.gets(Line::A, &packet(1, &[directory()])),
        [
            status(State::Live, DataState::OK, "the feed's session TESTDAY001 begins"),
            image(State::Live, DataState::OK)
        ]
    );
    assert!(!bench.channel.is_suspect(AAPL));
    assert_eq!(bench.after(2 * SECOND), []);
    let alive = heartbeat(MoldSession::new(SESSION), 2);
    assert_eq!(bench.gets(Line::A, &alive), []);
    assert_eq!(bench.after(2 * SECOND), []);
    assert_eq!(bench.after(SECOND), [status(State::Stale, DataState::SUSPECT, "stale: no line is heard of")]);
    assert_eq!(bench.after(9 * SECOND), []);
    assert!(bench.channel.is_suspect(AAPL));
    // What is no word of the feed does not wake it.
    assert_eq!(bench.gets(Line::A, b"noise"), []);
    assert_eq!(bench.gets(Line::RECOVERY, &packet(1, &[directory()])), []);
    assert_eq!(bench.channel.state(), State::Stale);
    // A message does: the state is told first.
    assert_eq!(
        bench.gets(Line::A, &packet(2, &[add(4, b'B', 1, 1)])),
        [status(State::Live, DataState::OK, "live: the feed is heard of"), update(State::Live)]
    );
    assert_eq!(bench.after(3 * SECOND).len(), 1);
    let alive = heartbeat(MoldSession::new(SESSION), 3);
    assert_eq!(
        bench.gets(Line::A, &alive),
        [status(State::Live, DataState::OK, "live: the feed is heard of")]
    );
    // After the end of a session nothing is to be heard.
    assert_eq!(bench.gets(Line::A, &end_of_session(MoldSession::new(SESSION), 3)).len(), 1);
    assert_eq!(bench.after(60 * SECOND), []);
    assert_eq!(bench.channel.state(), State::Live);
}

#[test]
fn a_line_that_is_silent_while_others_go_on_is_named() {
    let mut bench = Bench::new(PublishPolicy::Changes);
    bench.gets(Line::A, &packet(1, &[directory()]));
    bench.gets(Line::B, &packet(1, &[directory()]));
    let alive = heartbeat(MoldSession::new(SESSION), 2);
    let mut told = Vec::new();
    for _ in 0..5 {
        told.extend(bench.after(SECOND));
        told.extend(bench.gets(Line::A, &alive));
    }
    assert_eq!(told, [status(State::Live, DataState::NO_CHANGE, "line B is silent, others go on")]);
    assert_eq!(bench.channel.line_state(Line::A), State::Live);
    assert_eq!(bench.channel.line_state(Line::B), State::Stale);
    assert!(!bench.channel.is_suspect(AAPL));
    bench.gets(Line::B, &alive);
    assert_eq!(bench.after(SECOND), [status(State::Live, DataState::NO_CHANGE, "line B is heard of again")]);
}

#[test]
fn what_is_missing_makes_suspect_until_it_has_come() {
    let mut bench = recovering();
    bench.gets(Line::A, &packet(1, &[directory(), add(4, b'B', 1, 1)]));
    assert_eq!(bench.gets(Line::A, &packet(4, &[add(12, b'B', 1, 3)])), []);
    assert_eq!(bench.gets(Line::A, &packet(6, &[add(20, b'B', 1, 5)])), []);
    assert_eq!(bench.channel.state(), State::Live, "the other line may still bring it");
    assert_eq!(
        bench.after(2 * MS),
        [status(
            State::Recovering,
            DataState::SUSPECT,
            "recovering: messages from 3 on are missing and asked for"
        )]
    );
    assert!(bench.channel.is_suspect(AAPL));
    let missing: Vec<_> = bench.channel.arbiter().missing().collect();
    assert_eq!(missing, [3..=3, 5..=5]);
    // One of two holes.
    assert_eq!(
        bench.gets(Line::RECOVERY, &packet(3, &[add(8, b'B', 1, 2)])),
        [update(State::Recovering), update(State::Recovering)]
    );
    assert_eq!(
        bench.gets(Line::RECOVERY, &packet(5, &[add(16, b'B', 1, 4)])),
        [
            update(State::Recovering),
            update(State::Recovering),
            status(State::Live, DataState::OK, "live: every message that was missing has come")
        ]
    );
    assert!(!bench.channel.is_suspect(AAPL));
    assert_eq!(bench.after(5 * MS), []);
    // What was recovered is late, and what stood behind it too; none of it is in doubt.
    bench.gets(Line::A, &packet(7, &[add(24, b'B', 1, 6)]));
    assert_eq!(bench.qualities(), "GGLLLLG");
}

/// A segment of TOPS with one message, and that one in `write`'s bytes.
fn tops(sequence: u64, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let session = tp::IexSession { protocol: tp::MessageProtocol::TOPS_1_6, channel: 1, number: 77 };
    let (mut message, mut segment) = ([0; iex::encode::LONGEST], vec![0; 100]);
    let length = write(&mut message).unwrap();
    let mut builder = tp::SegmentBuilder::new(&mut segment, session, sequence, 0).unwrap();
    builder.push(&message[..length]).unwrap();
    let length = builder.finish(1);
    segment.truncate(length);
    segment
}

/// Behind a loss a quote that is told whole stands for itself; a trade, with the volume of the day, does not.
#[test]
fn after_a_loss_only_what_stands_for_itself_is_good() {
    let symbol = iex::encode::text("AAPL");
    let quote = |sequence, bid| {
        let quote = QuoteUpdate { flags: 0, symbol, bid_size: 100, bid, ask: 2_000_000, ask_size: 100 };
        tops(sequence, |out| quote.encode(sequence, out))
    };
    let trade = |sequence| {
        let trade = TradeReport { flags: 0, symbol, size: 5, price: 1_500_000, trade: sequence };
        tops(sequence, |out| trade.encode(sequence, out))
    };
    let settings = Bench::settings(PublishPolicy::Changes);
    let mut bench = Bench::with(ChannelSettings { protocol: Protocol::IexTops, ..settings });
    // Its first is an image.
    for datagram in [quote(1, 1_000_000), trade(2), quote(4, 1_010_000), trade(5), quote(6, 1_020_000)] {
        bench.datagram(Line::A, &datagram).unwrap();
        bench.after(MS);
    }
    assert_eq!((bench.channel.counters().missing, bench.qualities().as_str()), (1, "GGGUG"));
}

#[test]
fn recovery_delivers_to_a_stale_channel_and_does_not_wake_it() {
    let mut bench = recovering_and_stale_after(300 * MS);
    bench.gets(Line::A, &packet(1, &[directory(), add(4, b'B', 1, 1)]));
    bench.gets(Line::A, &packet(4, &[add(12, b'B', 1, 3)]));
    bench.gets(Line::A, &packet(6, &[add(20, b'B', 1, 5)]));
    assert_eq!(bench.after(2 * MS).len(), 1);
    let silent = [status(State::Stale, DataState::SUSPECT, "stale: no line is heard of")];
    assert_eq!(bench.after(300 * MS), silent);
    // A slow server: the channel looks around between its answers.
    for (sequence, order) in [(3, add(8, b'B', 1, 2)), (5, add(16, b'B', 1, 4))] {
        let came = bench.gets(Line::RECOVERY, &packet(sequence, &[order]));
        assert_eq!(came, [update(State::Stale), update(State::Stale)]);
        assert_eq!(bench.after(10 * MS), []);
    }
    assert_eq!(bench.channel.arbiter().missing().count(), 0);
    assert_eq!(
        bench.gets(Line::A, &heartbeat(MoldSession::new(SESSION), 7)),
        [status(State::Live, DataState::OK, "live: the feed is heard of")]
    );

    // Silent again behind a hole, of which a line then brings the first message.
    bench.gets(Line::A, &packet(9, &[add(32, b'B', 1, 8)]));
    assert_eq!(bench.after(2 * MS).len(), 1);
    assert_eq!(bench.after(300 * MS), silent);
    let missing = "recovering: messages from 7 on are missing and asked for";
    assert_eq!(
        bench.gets(Line::A, &packet(7, &[add(24, b'B', 1, 6)])),
        [status(State::Recovering, DataState::SUSPECT, missing), update(State::Recovering)]
    );
    // What recovery brings when the lines have fallen silent meanwhile makes nothing live.
    bench.clock.0.set(bench.clock.0.get() + 300 * MS);
    assert_eq!(
        bench.gets(Line::RECOVERY, &packet(8, &[add(28, b'B', 1, 7)])),
        [&[update(State::Recovering), update(State::Recovering)], &silent[..]].concat()
    );
}

#[test]
fn a_session_whose_end_was_said_is_not_stale_while_the_rest_of_it_is_recovered() {
    let mut bench = recovering_and_stale_after(300 * MS);
    bench.gets(Line::A, &packet(1, &[directory()]));
    bench.gets(Line::A, &end_of_session(MoldSession::new(SESSION), 3));
    assert_eq!(bench.after(2 * MS).len(), 1);
    assert_eq!(bench.after(600 * MS), [], "nothing is to be heard any more");
    let came = bench.gets(Line::RECOVERY, &packet(2, &[add(4, b'B', 1, 1)]));
    assert_eq!(came.len(), 3, "{came:?}");
    assert_eq!(came[2], status(State::Live, DataState::OK, "live: every message that was missing has come"));
}

#[test]
fn what_is_lost_makes_suspect_until_the_next_session() {
    let mut bench = recovering();
    bench.gets(Line::A, &packet(1, &[directory(), add(4, b'B', 7, 3_000_000)]));
    bench.gets(Line::A, &packet(4, &[add(12, b'B', 1, 3)]));
    bench.after(2 * MS);
    let from = bench.frames().len();
    bench.channel.give_up(3..=3, &bench.clock, &mut bench.sequencer).unwrap();
    let lost = "live: but what was built without message 3 may be wrong until the next session";
    assert_eq!(
        bench.told(from),
        [
            status(State::Recovering, DataState::SUSPECT, "message 3 is missing on every line"),
            status(State::Live, DataState::SUSPECT, lost),
        ]
    );
    assert_eq!((bench.channel.damaged_from(), bench.channel.is_suspect(AAPL)), (Some(3), true));
    // An image that is given meanwhile says so too.
    assert_eq!(bench.gets(Line::A, &packet(5, &[directory()])), [image(State::Live, DataState::SUSPECT)]);
    // The next session is another beginning, and the old one's quotes go.
    bench.gets(Line::A, &end_of_session(MoldSession::new(SESSION), 6));
    let from = bench.frames().len();
    assert_eq!(
        bench.gets(Line::A, &packet_of("TESTDAY002", 1, &[directory()])),
        [
            status(State::Live, DataState::OK, "the feed's session TESTDAY002 begins"),
            image(State::Live, DataState::OK),
            image(State::Live, DataState::OK),
        ]
    );
    let frames = bench.frames()[from..].to_vec();
    let blank = Tick::parse(&frames[1]).unwrap();
    assert_eq!(blank.header.flags, Flags::RESET);
    assert_eq!((real(&blank, fid::BID), real(&blank, fid::TRDPRC_1)), (None, None));
    assert!(!bench.channel.is_suspect(AAPL));
}

#[test]
fn a_new_session_is_a_new_day_where_none_is_given() {
    const DAY: u64 = 86_400 * SECOND;
    let mut settings = Bench::settings(PublishPolicy::Changes);
    settings.midnight_before = Some(|now| Some(Nanos(now.0 / DAY * DAY)));
    let mut bench = Bench::with(settings);
    bench.clock.0.set(20_000 * DAY + 34_200 * SECOND);
    bench.gets(Line::A, &packet(1, &[directory(), add(4, b'B', 1, 1)]));
    bench.gets(Line::A, &end_of_session(MoldSession::new(SESSION), 3));
    bench.clock.0.set(20_001 * DAY + 34_200 * SECOND);
    bench.gets(Line::A, &packet_of("TESTDAY002", 1, &[directory(), add(4, b'B', 1, 1)]));
    let frames = bench.frames().to_vec();
    let events: Vec<_> = frames
        .iter()
        .map(|frame| Tick::parse(frame).unwrap().header)
        .filter(|header| header.kind == Kind::Update)
        .map(|header| header.event.0 / DAY)
        .collect();
    assert_eq!(events, [20_000, 20_001]);
}

proptest! {
    /// Whatever comes, or does not: who hears the ticks knows the state, and hears no change twice.
    #[test]
    fn the_ticks_tell_the_state(
        steps in prop::collection::vec((0_usize..6, 1_u64..30, 0_u64..4_000), 1..80),
    ) {
        let mut bench = recovering();
        let (mut told, mut seen) = (State::Initial, 0);
        for (what, sequence, ms) in steps {
            let messages = [add(4 * sequence, b'B', 1, sequence as u32)];
            match what {
                0 | 1 => { bench.gets(Line::new(what).unwrap(), &packet(sequence, &messages)); }
                2 => { bench.gets(Line::RECOVERY, &packet(sequence, &messages)); }
                3 => { bench.gets(Line::A, &heartbeat(MoldSession::new(SESSION), sequence)); }
                4 => {
                    let first = bench.channel.arbiter().missing().next();
                    if let Some(hole) = first {
                        bench.channel.give_up(hole, &bench.clock, &mut bench.sequencer).unwrap();
                    }
                }
                _ => { bench.after(ms * MS); }
            }
            let frames = bench.frames()[seen..].to_vec();
            seen += frames.len();
            for frame in &frames {
                let header = Tick::parse(frame).unwrap().header;
                if header.flags.contains(Flags::STATE) {
                    prop_assert_ne!(header.state, told, "told twice");
                    told = header.state;
                }
                prop_assert_eq!(header.state, told, "a change that nobody was told");
            }
            prop_assert_eq!(bench.channel.state(), told);
        }
    }
}

#[test]
fn an_end_that_is_none_is_taken_back_and_subscribers_are_told() {
    let mut bench = Bench::with(ChannelSettings {
        stale_after_ns: 3 * SECOND,
        ..Bench::settings(PublishPolicy::Changes)
    });
    bench.gets(Line::A, &packet(1, &[directory()]));
    bench.gets(Line::A, &end_of_session(MoldSession::new(SESSION), 2));
    assert!(bench.channel.counters().ended);
    bench.after(2 * SECOND);
    assert_eq!(bench.gets(Line::A, &packet(2, &[add(4, b'B', 1, 1)])), []);
    bench.after(2 * SECOND);
    assert!(!bench.channel.is_over(Nanos(bench.clock.0.get())), "something has come from behind the end");
    let told = bench.gets(Line::A, &packet(3, &[add(5, b'B', 1, 1)]));
    let text = "the feed's session goes on after message 1: its end was announced in error";
    assert_eq!((told[0].0, told[0].1, told[0].3.as_str()), (Kind::Status, State::Live, text));
    assert_eq!(bench.channel.counters().messages, 3);
    assert!(!bench.channel.counters().ended);
    // Silence is a fault again.
    assert_eq!(bench.after(4 * SECOND).len(), 1);
    assert_eq!(bench.channel.state(), State::Stale);
    // The next end stands.
    bench.gets(Line::A, &end_of_session(MoldSession::new(SESSION), 4));
    bench.after(2 * SECOND);
    assert!(!bench.channel.is_over(Nanos(bench.clock.0.get())));
    bench.after(SECOND);
    assert!(bench.channel.is_over(Nanos(bench.clock.0.get())));
}

/// Books of orders that lack their beginning are not good, whatever has come since: only another session makes them so.
#[test]
fn what_was_before_a_session_was_heard_of_leaves_its_books_in_doubt() {
    let mut bench = Bench::new(PublishPolicy::Changes);
    // The order that is deleted came before: what stood behind it on the book is not known either.
    let heard = bench.gets(Line::A, &packet(500, &[directory(), add(4, b'B', 1, 1), delete(999)]));
    let late = "heard from message 500 on: books without those before it may be wrong until the next session";
    assert_eq!(
        heard,
        [
            status(State::Live, DataState::OK, "the feed's session TESTDAY001 begins"),
            status(State::Live, DataState::SUSPECT, late),
            image(State::Live, DataState::SUSPECT),
            update(State::Live),
        ]
    );
    let all_suspect = |frames: &[Vec<u8>]| {
        frames.iter().all(|frame| Tick::parse(frame).unwrap().header.flags.contains(Flags::SUSPECT))
    };
    assert!(all_suspect(&bench.frames()[2..]) && bench.channel.is_suspect(AAPL));
    let counters = *bench.channel.counters();
    assert_eq!((counters.missing, counters.gaps), (0, 0), "nobody lost them");
    assert_eq!((bench.channel.begun_late_at(), bench.channel.normaliser().unknown_orders()), (Some(500), 1));
    let before = bench.frames().len();
    bench.gets(Line::A, &packet(503, &[add(8, b'S', 1, 2)]));
    assert!(all_suspect(&bench.frames()[before..]), "an hour later it is no better");
    // The next session is heard of from its beginning.
    bench.gets(Line::A, &end_of_session(MoldSession::new(SESSION), 504));
    let next = packet_of("TESTDAY002", 1, &[directory(), add(4, b'B', 1, 1)]);
    let told = bench.gets(Line::A, &next);
    assert_eq!(told.last(), Some(&update(State::Live)));
    assert!(!bench.channel.is_suspect(AAPL) && bench.channel.begun_late_at().is_none());
}

/// A heartbeat tells that the session is under way; and who is told each quote whole needs nothing of what was before.
#[test]
fn whether_a_beginning_is_missed_depends_on_what_is_built() {
    let mut bench = Bench::new(PublishPolicy::Changes);
    bench.gets(Line::A, &heartbeat(MoldSession::new(SESSION), 77));
    assert_eq!(bench.channel.begun_late_at(), Some(77));
    let mut bench = Bench::new(PublishPolicy::Changes);
    bench.gets(Line::A, &heartbeat(MoldSession::new(SESSION), 1));
    assert_eq!(bench.channel.begun_late_at(), None);
    let needs = |protocol: Protocol| protocol.builds_on_history();
    assert_eq!(Protocol::ALL.map(needs), [true, false, true, false, false, false, false, false]);
}

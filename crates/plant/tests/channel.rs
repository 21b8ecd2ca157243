//! A channel from datagrams to ticks, on a made clock and a made ring.

use crate::bench;

use bench::{Bench, Kept, MIDNIGHT, SESSION, add, delete, directory, packet, real};
use proptest::prelude::*;
use tapeline_feed::line::Line;
use tapeline_feed::moldudp64::{MoldSession, end_of_session};
use tapeline_measure::Nanos;
use tapeline_omm::rwf::{Header, MessageClass, MessageView, StateCode};
use tapeline_omm::{Real, fid};
use tapeline_plant::tick::{Flags, Kind, Tick};
use tapeline_plant::{ItemSource, Items, PublishPolicy, Refused, Sequencer};

#[test]
fn a_changed_quote_becomes_an_update_with_its_stamps() {
    let mut bench = Bench::new(PublishPolicy::Changes);
    let messages = [
        directory(),
        add(4, b'B', 100, 3_208_000),
        add(8, b'B', 100, 3_200_000),
        add(12, b'S', 5, 3_214_000),
    ];
    bench.datagram(Line::A, &packet(1, &messages)).unwrap();

    // A reset, the image of the new stock, the bid, the ask; the second bid is not the best and changes nothing.
    let frames = bench.frames().to_vec();
    let ticks: Vec<_> = frames.iter().map(|frame| Tick::parse(frame).unwrap()).collect();
    let kinds: Vec<_> =
        ticks.iter().map(|tick| (tick.header.kind, tick.header.feed_seq, tick.name)).collect();
    assert_eq!(
        kinds,
        [
            (Kind::Status, 0, ""),
            (Kind::Refresh, 1, "AAPL"),
            (Kind::Update, 2, "AAPL"),
            (Kind::Update, 4, "AAPL"),
        ]
    );
    let bid = &ticks[2];
    assert_eq!(real(bid, fid::BID), Some(Real::decimal(3_208_000, 4)));
    assert_eq!(real(bid, fid::BIDSIZE), Some(Real::integer(100)));
    assert_eq!(real(bid, fid::ASK), None);
    assert_eq!(real(&ticks[3], fid::ASK), Some(Real::decimal(3_214_000, 4)));
    let header = bid.header;
    assert_eq!(header.event, Nanos(MIDNIGHT.0 + 34_200_000_000_004));
    assert!(header.wire < header.decoded && header.decoded < header.sequenced);
    assert_eq!((header.service, header.channel, header.source_type), (1, 3, b'A'));
    assert_eq!(bid.source, b"");
}

#[test]
fn every_message_is_one_tick_that_carries_it() {
    let mut bench = Bench::new(PublishPolicy::EveryMessage);
    let unknown = vec![b'z', 0, 13, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let short = vec![b'A', 0, 13];
    let messages = [directory(), add(4, b'B', 100, 3_208_000), unknown, short, delete(4), delete(999)];
    bench.datagram(Line::A, &packet(1, &messages)).unwrap();
    let frames = bench.frames().to_vec();
    let ticks: Vec<_> = frames.iter().skip(1).map(|frame| Tick::parse(frame).unwrap()).collect();
    assert_eq!(ticks.len(), messages.len());
    for ((tick, message), feed_seq) in ticks.iter().zip(&messages).zip(1..) {
        assert_eq!(tick.source, message);
        assert_eq!(tick.header.feed_seq, feed_seq);
        assert_eq!(tick.header.seq.0, feed_seq + 1, "one more for the reset in front");
        assert_eq!(tick.header.source_type, message[0]);
        assert!(MessageView::parse(tick.body).is_ok());
    }
    assert_eq!(bench.channel.counters().malformed_messages, 1);
    assert_eq!(bench.channel.normaliser().live_orders(), 0);
}

#[test]
fn a_gap_is_said_once_and_the_sequence_has_no_hole() {
    let mut bench = Bench::new(PublishPolicy::EveryMessage);
    bench.datagram(Line::A, &packet(1, &[directory()])).unwrap();
    bench.datagram(Line::A, &packet(4, &[add(4, b'B', 1, 1)])).unwrap();
    assert_eq!(bench.channel.counters().missing, 0, "the missing messages have their time to come");
    bench.clock.0.set(bench.clock.0.get() + 10_000);
    bench.channel.expire(&bench.clock, &mut bench.sequencer).unwrap();
    bench.datagram(Line::B, &packet(2, &[delete(1), delete(2)])).unwrap();
    bench.datagram(Line::A, &end_of_session(MoldSession::new(SESSION), 5)).unwrap();
    bench.datagram(Line::A, &end_of_session(MoldSession::new(SESSION), 5)).unwrap();

    let counters = *bench.channel.counters();
    assert_eq!((counters.gaps, counters.missing, counters.ended), (1, 2, true));
    let frames = bench.frames().to_vec();
    let ticks: Vec<_> = frames.iter().map(|frame| Tick::parse(frame).unwrap()).collect();
    let flags: Vec<_> = ticks.iter().map(|tick| tick.header.flags).collect();
    let suspect = |flags: Flags| flags | Flags::SUSPECT;
    assert_eq!(
        flags,
        [
            Flags::RESET | Flags::STATE,
            Flags::SOURCE,
            suspect(Flags::GAP),
            suspect(Flags::SOURCE),
            suspect(Flags::END_OF_SESSION)
        ]
    );
    assert!(ticks.iter().zip(1..).all(|(tick, seq)| tick.header.seq.0 == seq));
    let message = MessageView::parse(ticks[2].body).unwrap();
    let Header::Status(status) = message.header().unwrap() else { panic!("{:?}", message.header()) };
    let state = status.state.unwrap();
    assert_eq!(state.code, StateCode::GAP_DETECTED);
    assert_eq!(state.text, b"messages 2 to 3 are missing on every line");
}

#[test]
fn a_refused_tick_uses_up_no_sequence_and_nothing_follows_it() {
    let mut bench = Bench::new(PublishPolicy::EveryMessage);
    bench.sequencer.publisher().refuse_from = Some(2);
    let messages = [directory(), add(4, b'B', 1, 1), delete(4)];
    assert_eq!(bench.datagram(Line::A, &packet(1, &messages)), Err(Refused::Stopping));
    assert_eq!(bench.sequencer.published(), 2);
    assert_eq!(bench.frames().len(), 2);
}

#[test]
fn a_name_that_finds_no_room_goes_out_without_a_number() {
    let mut bench = Bench::new(PublishPolicy::Changes);
    bench.sequencer = Sequencer::new(1, Items::new(0), Kept::default());
    bench.datagram(Line::A, &packet(1, &[directory()])).unwrap();
    let frames = bench.frames().to_vec();
    let tick = Tick::parse(&frames[1]).unwrap();
    assert_eq!((tick.header.item.0, tick.name), (0, "AAPL"));
    assert_eq!(bench.channel.counters().items_refused, 1);
}

/// The places that are left are those of the other feed.
#[test]
fn a_feed_whose_symbols_have_no_place_but_those_of_another_is_refused() {
    let mut bench = Bench::new(PublishPolicy::Changes);
    let sources = [ItemSource::Channel(3), ItemSource::Channel(1)];
    let mut items = Items::new(4).share(sources, 2);
    for name in ["A", "B"] {
        items.id_by(ItemSource::Channel(3), 1, name).unwrap();
    }
    bench.sequencer = Sequencer::new(1, items, Kept::default());
    bench.datagram(Line::A, &packet(1, &[directory()])).unwrap();
    assert_eq!((bench.channel.counters().items_refused, bench.sequencer.items().len()), (1, 2));
}

proptest! {
    /// Whatever arrives, there is no panic, sequences are whole, and every tick holds a message that can be read.
    #[test]
    fn hostile_datagrams_do_no_harm(
        datagrams in prop::collection::vec(
            (0usize..2, prop::collection::vec(any::<u8>(), 0..80), prop::option::of(0u16..4)), 1..60),
        every in any::<bool>(),
    ) {
        let mut bench = Bench::new(if every { PublishPolicy::EveryMessage } else { PublishPolicy::Changes });
        for (line, mut bytes, count) in datagrams {
            if let Some(count) = count {
                // Close to the real thing: a plausible header in front of noise.
                let mut header = packet(u64::from(bytes.first().copied().unwrap_or(1)), &[]);
                header.truncate(18);
                header.extend(count.to_be_bytes());
                header.append(&mut bytes);
                bytes = header;
            }
            bench.datagram(Line::new(line).unwrap(), &bytes).unwrap();
        }
        bench.channel.finish(&bench.clock, &mut bench.sequencer).unwrap();
        for (frame, seq) in bench.frames().iter().zip(1..) {
            let tick = Tick::parse(frame).unwrap();
            prop_assert_eq!(tick.header.seq.0, seq);
            let class = MessageView::parse(tick.body).unwrap().class();
            prop_assert!([MessageClass::UPDATE, MessageClass::REFRESH, MessageClass::STATUS].contains(&class));
        }
    }
}

/// Whoever reads an item's ticks has to begin with an image; the listing of a feed that is joined later, or that has lost it,
/// does not come.
#[test]
fn an_item_whose_listing_never_came_begins_with_an_image() {
    for policy in [PublishPolicy::Changes, PublishPolicy::EveryMessage] {
        let mut bench = Bench::new(policy);
        bench.datagram(Line::A, &packet(7, &[add(4, b'B', 100, 10_000), add(8, b'B', 100, 10_100)])).unwrap();
        let kinds: Vec<_> = bench
            .frames()
            .iter()
            .map(|frame| Tick::parse(frame).unwrap())
            .filter(|tick| tick.name == "AAPL")
            .map(|tick| (tick.header.kind, real(&tick, fid::BID)))
            .collect();
        let bid = |price| Some(Real::decimal(price, 4));
        assert_eq!(kinds, [(Kind::Refresh, bid(10_000)), (Kind::Update, bid(10_100))], "{policy:?}");
    }
}

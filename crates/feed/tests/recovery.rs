//! Asking for missing messages and answering, both ends without sockets or clock: losses, liars, limits.

use crate::shared_data;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use tapeline_feed::capture::{self, Recording};
use tapeline_feed::history::{History, Limits};
use tapeline_feed::line::{self, Arbiter, Line, Sink};
use tapeline_feed::moldudp64::recover::{Ask, ClientSettings, PIECE, Rejected, RetransmissionClient};
use tapeline_feed::moldudp64::retransmit::{self, LONGEST_ANSWER, RetransmissionServer, Unanswered};
use tapeline_feed::moldudp64::{
    self, END_OF_SESSION, HEADER_BYTES, MoldPacket, MoldSession, PacketBuilder, Request, end_of_session,
    heartbeat,
};
use tapeline_nanos::Nanos;

const MS: u64 = 1_000_000;
const START: Nanos = Nanos(1_700_000_000_000_000_000);
const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn session() -> MoldSession {
    MoldSession::new("DAY1")
}

/// A history of `messages` messages, each of which says its sequence.
fn history(messages: u64) -> History {
    let mut history = History::new(Limits { messages: 1 << 16, bytes: 4 << 20 });
    history.begin(session());
    for sequence in 1..=messages {
        assert!(history.push(sequence, format!("message {sequence}").as_bytes()));
    }
    history
}

/// The ranges that a set of missing messages makes.
fn ranges(missing: &BTreeSet<u64>) -> Vec<RangeInclusive<u64>> {
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    for &sequence in missing {
        match ranges.last_mut() {
            Some(last) if *last.end() + 1 == sequence => *last = *last.start()..=sequence,
            _ => ranges.push(sequence..=sequence),
        }
    }
    ranges
}

/// Takes an answer's messages out of what is missing; they are what they should be.
fn fill(missing: &mut BTreeSet<u64>, data: moldudp64::Data<'_>) {
    for (sequence, message) in data.messages() {
        assert_eq!(message, format!("message {sequence}").as_bytes());
        missing.remove(&sequence);
    }
}

#[test]
fn the_requests_for_the_holes_of_the_real_lines_are_these_bytes() {
    let Some(expected) = shared_data::expected("moldudp64-derived/expected.json") else { return };
    let mut client = RetransmissionClient::new(ClientSettings::default());
    let holes = expected["A_and_B_arbitrated_without_recovery"]["missing_ranges"].as_array().unwrap();
    let holes = holes.iter().map(|hole| hole[0].as_u64().unwrap()..=hole[1].as_u64().unwrap());
    client.update(MoldSession::new("AAPL200130"), holes, START);
    let requests: Vec<String> = std::iter::from_fn(|| client.poll(START))
        .map(|ask| ask.request.encode().iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    let wanted = expected["recovery"]["requests"].as_array().unwrap();
    assert_eq!(requests.len(), wanted.len());
    for (request, wanted) in requests.iter().zip(wanted) {
        assert_eq!(request, wanted["packet_hex"].as_str().unwrap());
    }
}

#[test]
fn a_hole_is_filled_packet_by_packet_and_never_asked_for_twice() {
    let history = history(2_000);
    let mut server = RetransmissionServer::new(retransmit::ServerSettings::default());
    let mut client = RetransmissionClient::new(ClientSettings { burst: 1_000, ..ClientSettings::default() });
    let mut missing: BTreeSet<u64> = (100..=1_500).chain(1_700..=1_700).collect();
    let mut buffer = [0; LONGEST_ANSWER];
    let (mut asked, mut received) = (0, 0);
    client.update(session(), ranges(&missing), START);
    while !missing.is_empty() {
        let ask = client.poll(START).expect("something is missing");
        assert_eq!(ask.server, 0);
        asked += 1;
        let answer = server.answer(HERE, &ask.request.encode(), &history, START, &mut buffer).unwrap();
        assert!(answer.len() <= moldudp64::DEFAULT_PACKET_BYTES);
        let data = client.answer(0, answer).unwrap();
        received += u64::from(data.count());
        fill(&mut missing, data);
        client.update(session(), ranges(&missing), START);
    }
    assert_eq!(received, 1_402);
    assert_eq!((client.poll(START), client.next_due(START), client.is_busy()), (None, None, false));
    assert_eq!(client.given_up(), None);
    let statistics = client.statistics();
    assert_eq!((statistics.requests, statistics.answers, statistics.messages), (asked, asked, 1_402));
    assert_eq!((server.statistics().answers, server.statistics().messages), (asked, 1_402));
}

#[test]
fn silence_moves_on_to_the_next_server_and_then_gives_up_once() {
    let settings =
        ClientSettings { servers: 2, max_tries: 3, timeout_ns: 100 * MS, ..ClientSettings::default() };
    let mut client = RetransmissionClient::new(settings);
    let missing = [10..=12, 20..=20];
    client.update(session(), missing.clone(), START);
    let mut now = START;
    let mut servers = Vec::new();
    for _ in 0..3 {
        let asks: Vec<Ask> = std::iter::from_fn(|| client.poll(now)).collect();
        assert_eq!(asks.len(), 2);
        assert!(asks[0].server == asks[1].server, "{asks:?}");
        servers.push(asks[0].server);
        assert_eq!(client.next_due(now), Some(now + 100 * MS));
        now = now + 100 * MS;
        assert_eq!(client.given_up(), None);
    }
    assert_eq!(servers, [0, 1, 0]);
    assert_eq!(client.poll(now), None);
    assert_eq!(client.given_up(), Some(10..=12));
    assert_eq!(client.given_up(), Some(20..=20));
    for _ in 0..3 {
        // The caller may go on to call them missing: it is not said again, nor asked for.
        client.update(session(), missing.clone(), now);
        assert_eq!((client.poll(now), client.given_up(), client.next_due(now)), (None, None, None));
        now = now + 1_000 * MS;
    }
    assert_eq!((client.statistics().timeouts, client.statistics().given_up), (6, 4));

    // The server that answered is asked first the next time.
    client.update(session(), [30..=30], now);
    let ask = client.poll(now).unwrap();
    let mut buffer = [0; LONGEST_ANSWER];
    let mut server = RetransmissionServer::new(retransmit::ServerSettings::default());
    let answer = server.answer(HERE, &ask.request.encode(), &history(50), now, &mut buffer).unwrap();
    assert!(client.answer(0, answer).is_ok());
    client.update(session(), [31..=31], now);
    assert_eq!(client.poll(now).unwrap().server, 0);
}

#[test]
fn a_hole_beyond_the_bound_is_given_up_at_once_and_whole() {
    let mut client =
        RetransmissionClient::new(ClientSettings { max_hole: 1_000, ..ClientSettings::default() });
    client.update(session(), [5..=1_004, 2_000..=5_000], START);
    assert_eq!(client.given_up(), Some(2_000..=5_000));
    assert_eq!(client.given_up(), None);
    let asked: Vec<(u64, u16)> = std::iter::from_fn(|| client.poll(START))
        .map(|ask| (ask.request.sequence, ask.request.count))
        .collect();
    assert_eq!(asked, [(5, PIECE as u16), (5 + PIECE, 1_000 - PIECE as u16)]);
    // Without an answer its pieces are given up as one hole.
    let mut now = START;
    for _ in 0..3 {
        now = now + 1_000 * MS;
        while client.poll(now).is_some() {}
    }
    assert_eq!((client.given_up(), client.given_up()), (Some(5..=1_004), None));

    // Everything that a sequence can be.
    let mut client = RetransmissionClient::new(ClientSettings::default());
    client.update(session(), [1..=u64::MAX], now);
    assert_eq!((client.poll(now), client.given_up()), (None, Some(1..=u64::MAX)));
}

#[test]
fn what_is_missing_is_left_to_the_lines_for_a_while() {
    let settings = ClientSettings { delay_ns: 5 * MS, overtaking_ns: MS, ..ClientSettings::default() };
    let mut client = RetransmissionClient::new(settings);
    client.update(session(), [10..=12], START);
    client.update(session(), [11..=12, 20..=20], START + 3 * MS);
    assert_eq!((client.poll(START + 4 * MS), client.next_due(START)), (None, Some(START + 5 * MS)));
    assert_eq!(client.poll(START + 5 * MS).unwrap().request, Request::for_gap(session(), 11, 12));
    assert_eq!(client.poll(START + 7 * MS), None);
    // It came on a line.
    client.update(session(), [11..=12], START + 8 * MS);
    assert_eq!(client.poll(START + 8 * MS), None);
    // Every line has passed it, or only a part of it.
    client.update(session(), [11..=12, 21..=22, 26..=27], START + 9 * MS);
    client.passed(27, START + 10 * MS);
    client.passed(27, START + 11 * MS);
    assert_eq!(client.next_due(START), Some(START + 11 * MS));
    assert_eq!(client.poll(START + 10 * MS), None);
    assert_eq!(client.poll(START + 11 * MS).unwrap().request, Request::for_gap(session(), 21, 22));
    assert_eq!(client.poll(START + 13 * MS), None);
    assert_eq!(client.poll(START + 14 * MS).unwrap().request, Request::for_gap(session(), 26, 27));
    // Nothing more will.
    client.update(session(), [11..=12, 30..=30], START + 15 * MS);
    client.hurry();
    assert_eq!(client.poll(START + 15 * MS).unwrap().request, Request::for_gap(session(), 30, 30));
}

#[test]
fn a_message_is_lost_on_every_line_once_every_living_line_has_gone_past_it() {
    let mut arbiter = Arbiter::new(line::ArbiterSettings::default());
    let mut passed = |line, session, next, after_ms| {
        let datagram = heartbeat(MoldSession::new(session), next);
        arbiter.datagram(line, &datagram, START + after_ms * MS, &mut Tape::default()).unwrap();
        arbiter.passed_by_all()
    };
    assert_eq!(passed(Line::A, "DAY1", 10, 0), 10);
    assert_eq!(passed(Line::A, "DAY1", 20, 1), 20, "B was never heard");
    assert_eq!(passed(Line::B, "DAY1", 12, 2), 12);
    assert_eq!(passed(Line::B, "DAY1", 20, 3), 20);
    // B has been silent for three seconds, and is heard again.
    assert_eq!(passed(Line::A, "DAY1", 30, 3_100), 30);
    assert_eq!(passed(Line::B, "DAY1", 25, 3_101), 25);
    // Another session, which a second packet confirms, and which B has not begun.
    passed(Line::A, "DAY2", 5, 3_200);
    assert_eq!(passed(Line::A, "DAY2", 6, 3_201), 1);
    assert_eq!(passed(Line::B, "DAY2", 6, 3_202), 6);
}

#[test]
fn the_rate_and_the_number_of_open_requests_are_bounded() {
    let settings =
        ClientSettings { max_outstanding: 3, requests_per_second: 10, burst: 5, ..ClientSettings::default() };
    let mut client = RetransmissionClient::new(settings);
    let holes: Vec<RangeInclusive<u64>> = (1..=40).map(|number| number * 10..=number * 10).collect();
    client.update(session(), holes.iter().cloned(), START);
    assert_eq!(std::iter::from_fn(|| client.poll(START)).count(), 3);
    // As they are filled two more go at once, and then one each tenth of a second.
    client.update(session(), holes[3..].iter().cloned(), START);
    assert_eq!(std::iter::from_fn(|| client.poll(START)).count(), 2);
    client.update(session(), holes[5..].iter().cloned(), START);
    assert_eq!((client.poll(START), client.next_due(START)), (None, Some(START + 100 * MS)));
    assert!(client.poll(START + 100 * MS).is_some());
    assert!(client.poll(START + 100 * MS).is_none());
}

#[test]
fn holes_without_end_take_no_more_memory_and_are_asked_for_later() {
    let mut client = RetransmissionClient::new(ClientSettings {
        max_outstanding: 10_000,
        burst: 10_000,
        ..ClientSettings::default()
    });
    let holes = |from: u64| (from..=5_000).map(|number| number * 2..=number * 2);
    client.update(session(), holes(1), START);
    assert_eq!(std::iter::from_fn(|| client.poll(START)).count(), 1_024);
    client.update(session(), holes(1_025), START);
    assert_eq!(std::iter::from_fn(|| client.poll(START)).count(), 1_024);
    // What is new in front waits as well.
    client.update(session(), holes(500), START);
    assert_eq!(client.poll(START), None);
}

#[test]
fn nonsense_is_counted_by_reason_and_a_liar_runs_out_of_tries() {
    let settings = ClientSettings { max_tries: 4, timeout_ns: 10 * MS, ..ClientSettings::default() };
    let mut client = RetransmissionClient::new(settings);
    client.update(session(), [10..=12], START);
    let packet = |session, first, count: usize| {
        let mut buffer = [0; 200];
        let mut packet = PacketBuilder::new(&mut buffer, session, first).unwrap();
        (0..count).for_each(|_| packet.push(b"lie").unwrap());
        let length = packet.finish();
        buffer[..length].to_vec()
    };
    let lies = [
        (vec![], 0),
        (packet(session(), 10, 3)[..25].to_vec(), 0),
        (packet(MoldSession::new("OTHER"), 10, 3), 1),
        (heartbeat(session(), 10).to_vec(), 2),
        (end_of_session(session(), 10).to_vec(), 2),
        (packet(session(), 9, 2), 3),
        (packet(session(), 12, 2), 3),
        (packet(session(), u64::MAX - 2, 2), 3),
        (packet(session(), 0, 1), 3),
    ];
    let mut now = START;
    let mut expected = [0; Rejected::REASONS.len()];
    for round in 0..4 {
        assert!(client.poll(now).is_some(), "{round}");
        for (lie, reason) in &lies {
            assert_eq!(client.answer(0, lie).unwrap_err().index(), *reason, "{lie:?}");
            expected[*reason] += 1;
        }
        assert_eq!(client.statistics().rejected, expected);
        assert_eq!(client.poll(now), None);
        now = now + 10 * MS;
    }
    assert_eq!((client.poll(now), client.given_up()), (None, Some(10..=12)));

    // An answer that is no lie but never helps: always the last message only.
    client.update(session(), [20..=22], now);
    for _ in 0..4 {
        assert!(client.poll(now).is_some());
        assert!(client.answer(0, &packet(session(), 22, 1)).is_ok());
        client.update(session(), [20..=22], now);
    }
    assert_eq!((client.poll(now), client.given_up()), (None, Some(20..=22)));
    // Another session begins: nothing of the one before is asked for.
    client.update(session(), [30..=30], now);
    client.update(MoldSession::new("DAY2"), [7..=7], now);
    assert_eq!(client.poll(now).unwrap().request, Request::for_gap(MoldSession::new("DAY2"), 7, 7));
    assert_eq!(client.answer(0, &packet(session(), 30, 1)), Err(Rejected::OtherSession));
}

#[test]
fn a_server_answers_what_it_has_and_nothing_else() {
    let mut history = history(100);
    history.push(105, b"after a hole");
    let mut server = RetransmissionServer::new(retransmit::ServerSettings::default());
    let mut buffer = [0; LONGEST_ANSWER];
    let mut ask = |session, sequence, count| {
        let request = Request { session, sequence, count }.encode();
        server.answer(HERE, &request, &history, START, &mut buffer).map(|answer| {
            let Ok(MoldPacket::Data(data)) = moldudp64::parse(answer) else { panic!("{answer:?}") };
            assert_eq!((data.session, data.sequence(), data.trailing), (session, sequence, 0));
            data.count()
        })
    };
    assert_eq!(ask(session(), 1, 1), Ok(1));
    assert_eq!(ask(session(), 99, 9), Ok(2));
    assert_eq!(ask(session(), 105, 0xFFFE), Ok(1));
    assert_eq!(ask(session(), 1, 0xFFFE), Ok(100));
    assert_eq!(ask(session(), 101, 1), Err(Unanswered::NotHere));
    assert_eq!(ask(session(), 106, 1), Err(Unanswered::NotHere));
    assert_eq!(ask(session(), u64::MAX, 5), Err(Unanswered::NotHere));
    assert_eq!(ask(session(), 0, 5), Err(Unanswered::Absurd));
    assert_eq!(ask(session(), 5, 0), Err(Unanswered::Absurd));
    assert_eq!(ask(session(), 5, END_OF_SESSION), Err(Unanswered::Absurd));
    assert_eq!(ask(MoldSession::new("DAY2"), 5, 1), Err(Unanswered::OtherSession));
    assert_eq!(server.answer(HERE, &[1; 19], &history, START, &mut buffer), Err(Unanswered::Malformed));
    let counted: Vec<(&str, u64)> = server.statistics().unanswered_by_reason().collect();
    let expected = [("malformed", 1), ("other-session", 1), ("absurd", 3), ("not-here", 3)];
    assert_eq!(counted[..4], expected);
    assert_eq!((server.statistics().requests, server.statistics().answers), (12, 4));

    // A message that is longer than a packet should be gets one of its own.
    let mut history = History::new(Limits { messages: 10, bytes: 100_000 });
    history.begin(session());
    assert!(history.push(1, &[7; 5_000]) && history.push(2, &[8; 65_500]));
    let long = Request::for_gap(session(), 1, 2).encode();
    let answer = server.answer(HERE, &long, &history, START, &mut buffer).unwrap();
    assert_eq!(answer.len(), HEADER_BYTES + 2 + 5_000);
    // Not even a datagram can hold this one.
    let longest = Request::for_gap(session(), 2, 2).encode();
    assert_eq!(server.answer(HERE, &longest, &history, START, &mut buffer), Err(Unanswered::NotHere));
}

#[test]
fn no_address_is_sent_more_than_its_share_nor_all_together() {
    let history = history(1_000);
    let settings = retransmit::ServerSettings {
        requester_bytes_per_second: 70_000,
        bytes_per_second: 140_000,
        max_requesters: 3,
        ..retransmit::ServerSettings::default()
    };
    let mut server = RetransmissionServer::new(settings);
    let mut buffer = [0; LONGEST_ANSWER];
    let request = Request::for_gap(session(), 1, 1_000).encode();
    let address = |last| Ipv4Addr::new(192, 0, 2, last);
    let mut flood = |from: u8, now: Nanos, times: u64| {
        let mut bytes = 0;
        let mut refused = Vec::new();
        for _ in 0..times {
            match server.answer(address(from), &request, &history, now, &mut buffer) {
                Ok(answer) => bytes += answer.len() as u64,
                Err(unanswered) => refused.push(unanswered),
            }
        }
        refused.dedup();
        (bytes, refused)
    };
    // Once what is saved up, and the share of ten seconds.
    let mut total = 0;
    for second in 0..10 {
        let (bytes, refused) = flood(1, START + second * 1_000 * MS, 1_000);
        assert_eq!(refused, [Unanswered::TooMuch]);
        total += bytes;
    }
    assert!((600_000..=9 * 70_000 + LONGEST_ANSWER as u64).contains(&total), "{total}");
    // Another has its own, a third what is left of all, and a fourth address nothing.
    let now = START + 20_000 * MS;
    assert_eq!(flood(2, now, 1_000).1, [Unanswered::TooMuch]);
    assert_eq!(flood(3, now, 1_000).1, [Unanswered::Busy]);
    assert_eq!(flood(4, now, 1_000), (0, vec![Unanswered::Busy]));
    // When the others have been silent for long enough there is room again.
    assert!(flood(4, now + 5_000 * MS, 1).0 > 0);
}

/// What becomes of messages that an arbiter delivers: rejoined, and the gaps.
#[derive(Default)]
struct Tape {
    messages: Sha256,
    count: u64,
    gaps: Vec<(u64, u64)>,
    ends: Vec<u64>,
}

impl Sink for Tape {
    fn message(&mut self, _: u64, bytes: &[u8], _: Nanos) {
        self.messages.update((bytes.len() as u16).to_be_bytes());
        self.messages.update(bytes);
        self.count += 1;
    }

    fn gap(&mut self, first: u64, last: u64) {
        self.gaps.push((first, last));
    }

    fn end_of_session(&mut self, next: u64) {
        self.ends.push(next);
    }

    fn reset(&mut self, _: line::Session) {}
}

/// The datagrams of a shared capture with the line and the time.
fn datagrams(path: &str, line: Line) -> Vec<(Nanos, Line, Vec<u8>)> {
    let bytes = shared_data::bytes(path).unwrap();
    let Recording::Datagrams(mut capture) = capture::open(&bytes[..]).unwrap() else { panic!("a capture") };
    let mut datagrams = Vec::new();
    while let Some(datagram) = capture.next().unwrap() {
        datagrams.push((datagram.time, line, datagram.payload.to_vec()));
    }
    datagrams
}

/// The real lines A and B through an arbiter whose holes are asked for; `answer` is the server.
fn recover(mut answer: impl FnMut(&Request) -> Option<Vec<u8>>) -> (Tape, RetransmissionClient, Arbiter) {
    let mut arbiter = Arbiter::new(line::ArbiterSettings {
        recovery_age_ns: 60_000_000_000,
        expire_on_packet: false,
        ..line::ArbiterSettings::default()
    });
    let settings = ClientSettings { delay_ns: 20 * MS, timeout_ns: MS, ..ClientSettings::default() };
    let (mut client, mut tape) = (RetransmissionClient::new(settings), Tape::default());
    let mut all = datagrams("moldudp64-derived/aapl5000-A.pcap", Line::A);
    all.extend(datagrams("moldudp64-derived/aapl5000-B.pcap", Line::B));
    all.sort_by_key(|(time, ..)| *time);
    let mut now = Nanos(0);
    let mut turn = |arbiter: &mut Arbiter, tape: &mut Tape, now: Nanos| {
        let Some(line::Session::MoldUdp64(session)) = arbiter.session() else { return };
        client.update(session, arbiter.missing(), now);
        while let Some(ask) = client.poll(now) {
            let Some(datagram) = answer(&ask.request) else { continue };
            if client.answer(ask.server, &datagram).is_ok() {
                arbiter.datagram(Line::RECOVERY, &datagram, now, tape).unwrap();
                client.update(session, arbiter.missing(), now);
            }
        }
        while let Some(range) = client.given_up() {
            arbiter.give_up(range, now, tape);
        }
    };
    for (time, line, datagram) in all {
        // Time goes on between datagrams, too.
        while now < time && arbiter.missing().next().is_some() {
            now = now + MS;
            turn(&mut arbiter, &mut tape, now.min(time));
        }
        now = time;
        arbiter.datagram(line, &datagram, now, &mut tape).unwrap();
        turn(&mut arbiter, &mut tape, now);
    }
    for _ in 0..100 {
        now = now + MS;
        turn(&mut arbiter, &mut tape, now);
    }
    (tape, client, arbiter)
}

#[test]
fn the_fourteen_messages_that_both_real_lines_lost_are_recovered() {
    let Some(expected) = shared_data::expected("moldudp64-derived/expected.json") else { return };
    let mut history = History::new(Limits::default());
    let mut arbiter = Arbiter::new(line::ArbiterSettings::default());
    for (time, line, datagram) in datagrams("moldudp64-derived/aapl5000-clean.pcap", Line::A) {
        arbiter.datagram(line, &datagram, time, &mut history).unwrap();
    }
    let mut server = RetransmissionServer::new(retransmit::ServerSettings::default());
    let mut buffer = [0; LONGEST_ANSWER];
    let mut requests = Vec::new();
    let (tape, client, arbiter) = recover(|request| {
        requests.push((request.sequence, request.sequence + u64::from(request.count) - 1));
        let answer = server.answer(HERE, &request.encode(), &history, START, &mut buffer);
        Some(answer.unwrap().to_vec())
    });
    let holes: Vec<(u64, u64)> =
        serde_json::from_value(expected["A_and_B_arbitrated_without_recovery"]["missing_ranges"].clone())
            .unwrap();
    assert_eq!(requests, holes);
    assert_eq!((tape.count, &tape.gaps[..], &tape.ends[..]), (5_000, &[][..], &[5_001][..]));
    let sha256 = format!("{:x}", tape.messages.finalize());
    assert_eq!(sha256, expected["clean_messages_rejoined_sha256"].as_str().unwrap());
    assert_eq!((arbiter.statistics().recovered, client.statistics().messages), (14, 14));

    // Nobody answers: each gap is said once, with the same messages, and all others come.
    let (tape, client, _) = recover(|_| None);
    assert_eq!((tape.count, &tape.gaps, &tape.ends[..]), (4_986, &holes, &[5_001][..]));
    assert_eq!((client.statistics().given_up, client.statistics().timeouts), (14, 15));

    // One that lies about the session, and one that answers with what was not asked for.
    let (tape, client, _) = recover(|request| {
        let mut buffer = [0; 200];
        let mut packet = PacketBuilder::new(&mut buffer, MoldSession::new("LIES"), request.sequence).unwrap();
        packet.push(b"lie").unwrap();
        let length = packet.finish();
        Some(buffer[..length].to_vec())
    });
    assert_eq!((tape.count, &tape.gaps), (4_986, &holes));
    assert_eq!(client.statistics().rejected, [0, 15, 0, 0]);
    let (tape, client, _) = recover(|request| {
        let sequence = request.sequence + u64::from(request.count);
        let request = Request { sequence, ..*request };
        Some(server.answer(HERE, &request.encode(), &history, START, &mut buffer).unwrap().to_vec())
    });
    assert_eq!((tape.count, &tape.gaps), (4_986, &holes));
    assert_eq!(client.statistics().rejected, [0, 0, 0, 15]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Over a network that loses, doubles and delays, with servers some of which are dead, every hole is filled or given
    /// up, never both, and never forgotten.
    #[test]
    fn every_missing_message_comes_or_is_given_up(
        holes in vec((1_u64..3_000, 1_u64..300), 1..20),
        dead in vec(any::<bool>(), 1..4),
        fates in vec(0_u8..8, 64),
    ) {
        let history = history(4_000);
        let mut server = RetransmissionServer::new(retransmit::ServerSettings::default());
        let settings = ClientSettings { servers: dead.len(), timeout_ns: 20 * MS, max_tries: 6, ..ClientSettings::default() };
        let mut client = RetransmissionClient::new(settings);
        let mut missing: BTreeSet<u64> =
            holes.iter().flat_map(|(first, count)| *first..first + count).collect();
        let all = missing.len() as u64;
        let (mut now, mut round, mut lost) = (START, 0, 0);
        let mut buffer = [0; LONGEST_ANSWER];
        let mut flying: Vec<(Nanos, usize, Vec<u8>)> = Vec::new();
        client.update(session(), ranges(&missing), now);
        while !missing.is_empty() {
            while let Some(ask) = client.poll(now) {
                round += 1;
                let fate = fates[round % fates.len()];
                if dead[ask.server] || fate == 0 {
                    continue;
                }
                if let Ok(answer) = server.answer(HERE, &ask.request.encode(), &history, now, &mut buffer) {
                    // Some come when nobody waits for them any more.
                    for copy in 0..=u64::from(fate == 1) {
                        flying.push((now + (u64::from(fate) * 4 + copy) * MS, ask.server, answer.to_vec()));
                    }
                }
            }
            let (landed, rest) = flying.into_iter().partition(|(at, ..)| *at <= now);
            flying = rest;
            for (_, server, answer) in landed {
                if let Ok(data) = client.answer(server, &answer) {
                    fill(&mut missing, data);
                }
                client.update(session(), ranges(&missing), now);
            }
            while let Some(range) = client.given_up() {
                for sequence in range {
                    lost += u64::from(missing.remove(&sequence));
                }
                client.update(session(), ranges(&missing), now);
            }
            now = now + MS;
            prop_assert!(round < 100_000);
        }
        prop_assert_eq!(client.is_busy(), false);
        if dead.iter().all(|dead| *dead) {
            prop_assert_eq!(lost, all);
        }
    }

    /// Any datagram at all leaves both ends alive; a client that is told nothing new has not changed.
    #[test]
    fn hostile_datagrams_change_nothing(datagrams in vec(vec(any::<u8>(), 0..80), 0..20)) {
        let history = history(10);
        let mut server = RetransmissionServer::new(retransmit::ServerSettings::default());
        let mut client = RetransmissionClient::new(ClientSettings::default());
        client.update(session(), [3..=4], START);
        let ask = client.poll(START).unwrap();
        let mut buffer = [0; LONGEST_ANSWER];
        for datagram in &datagrams {
            prop_assert!(client.answer(0, datagram).is_err());
            prop_assert!(server.answer(HERE, datagram, &history, START, &mut buffer).is_err());
        }
        prop_assert_eq!(client.statistics().rejected.iter().sum::<u64>(), datagrams.len() as u64);
        prop_assert_eq!(client.poll(START), None);
        let answer = server.answer(HERE, &ask.request.encode(), &history, START, &mut buffer).unwrap();
        prop_assert!(client.answer(0, answer).is_ok());
    }
}

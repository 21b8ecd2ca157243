//! `tapeline omm provider`: the messages that consumers get.
use crate::perf_peer;
use crate::stage;

use perf_peer::{Heard, MESSAGES, Peer, Provider};
use tapeline_omm::domain::standby::{ConnectionStatus, ServerType};
use tapeline_omm::domain::{LoginRequest, login};
use tapeline_omm::rwf::{DataType, Domain, NakCode, PostUserInfo, StateCode, StreamState};

/// A provider with this update rate in 100 slices a second, with times in nanoseconds.
fn provider(rate: &str, more: &[&str]) -> Provider {
    let usual = ["--tick-rate", "100", "--update-rate", rate, "--nano-time"];
    // The rate of stamped updates must not exceed the update rate.
    let none: &[&str] = if rate == "0" { &["--latency-update-rate", "0"] } else { &[] };
    Provider::start(&[&usual, none, more].concat())
}

/// A slice of [`provider`], in nanoseconds.
const SLICE: u64 = 10_000_000;

/// Updates by due time, without the first and the last slice, which may be incomplete.
fn slices(heard: &[Heard]) -> Vec<(u64, Vec<&Heard>)> {
    let mut slices: Vec<(u64, Vec<&Heard>)> = Vec::new();
    for update in heard.iter().filter(|heard| heard.is_update()) {
        let due = update.due.unwrap();
        match slices.last_mut() {
            Some((of, updates)) if *of == due => updates.push(update),
            _ => slices.push((due, vec![update])),
        }
    }
    slices.pop();
    slices.split_off(1)
}

#[test]
fn every_slice_has_its_share_of_the_rate_and_says_when_it_was_due() {
    let provider = provider("250", &["--latency-update-rate", "all"]);
    let mut peer = Peer::log_in(provider.port);
    // Together, so that each gets updates from the first slice on.
    peer.open_together(3);
    let heard = peer.until(|heard| updates(heard) >= 200);
    let slices = slices(&heard);
    // No slice of the time grid is missing; two and three updates in turn.
    for pair in slices.windows(2) {
        let [(before, first), (due, second)] = pair else { unreachable!() };
        assert_eq!(due - before, SLICE);
        assert_eq!(first.len() + second.len(), 5, "{due}");
    }
    for (due, updates) in &slices {
        assert!(updates.iter().all(|update| update.sent.unwrap() >= *due), "{updates:?}");
    }
    // The streams in turn.
    let streams: Vec<i32> =
        heard.iter().filter(|heard| heard.is_update()).map(|heard| heard.stream).collect();
    for window in streams.windows(4) {
        assert_eq!(window[0], window[3]);
        assert!(window[0] != window[1] && window[1] != window[2]);
    }
}

#[test]
fn contents_come_in_turn_for_each_item() {
    let provider = provider("1000", &["--latency-update-rate", "0"]);
    let mut peer = Peer::log_in(provider.port);
    peer.open_together(2);
    let heard = peer.until(|heard| updates(heard) >= 60);
    for stream in [peer.first, peer.first + 1] {
        let bids: Vec<i64> = heard
            .iter()
            .filter(|heard| heard.is_update() && heard.stream == stream)
            .map(|heard| heard.bid)
            .collect();
        let in_turn: Vec<i64> = (0..bids.len()).map(|turn| [101, 102, 103][turn % 3]).collect();
        assert_eq!(bids, in_turn);
    }
    assert!(heard.iter().all(|heard| heard.sent.is_none() && heard.due.is_none()), "none is stamped");
    let images: Vec<_> = heard.iter().filter(|heard| heard.is_image()).map(|heard| heard.bid).collect();
    assert_eq!(images, [100, 100]);
}

/// The images and updates of a stream.
fn of_stream(heard: &[Heard], stream: i32) -> Vec<&Heard> {
    heard.iter().filter(|heard| heard.stream == stream && (heard.is_image() || heard.is_update())).collect()
}

#[test]
fn one_that_stands_by_sends_data_when_it_is_the_active_one() {
    let of_login: fn(ServerType) -> ConnectionStatus = ConnectionStatus::Login;
    let of_service: fn(ServerType) -> ConnectionStatus =
        |server| ConnectionStatus::Services(vec![(1, server)]);
    for status in [of_login, of_service] {
        let provider = provider("1000", &["--latency-update-rate", "0"]);
        let mut peer = Peer::log_in(provider.port);
        peer.services();
        peer.tell(&status(ServerType::Standby));
        peer.open_all(3);
        let heard = peer.until(|heard| heard.iter().filter(|heard| heard.is_image()).count() >= 3);
        assert!(heard.iter().all(|heard| !heard.is_update() && heard.bytes.is_empty()), "{heard:?}");
        for round in 0..2 {
            peer.tell(&status(ServerType::Active));
            let heard = peer.until(|heard| updates(heard) >= 30);
            for stream in peer.first..peer.first + 3 {
                let all = of_stream(&heard, stream);
                let Some((image, updates)) = all.split_first() else { continue };
                assert!(image.is_image() && image.bid == 100, "round {round}: {all:?}");
                assert!(updates.iter().all(|heard| heard.is_update()), "round {round}: {all:?}");
            }
            // An answer to a later request shows that the status was handled.
            peer.tell(&status(ServerType::Standby));
            let last = peer.next;
            peer.open(Domain::MARKET_PRICE, &format!("LAST{round}"));
            let heard = peer.until(|heard| !of_stream(heard, last).is_empty());
            assert!(of_stream(&heard, last)[0].bytes.is_empty());
            peer.close(last);
        }
    }
}

#[test]
fn so_many_a_second_carry_a_time() {
    let provider = provider("1000", &["--latency-update-rate", "20"]);
    let mut peer = Peer::log_in(provider.port);
    peer.open_all(1);
    // Three seconds of slices, two of them complete.
    let heard = peer.until(|heard| updates(heard) >= 3_000);
    let stamped = heard.iter().filter(|heard| heard.sent.is_some()).count();
    assert!((40..=80).contains(&stamped), "{stamped}");
    let dues: Vec<u64> = heard.iter().filter_map(|heard| heard.due).collect();
    assert!(dues.windows(2).all(|pair| pair[0] < pair[1] && (pair[1] - pair[0]) % SLICE == 0), "{dues:?}");
    assert!(dues.windows(2).any(|pair| pair[1] - pair[0] != dues[1] - dues[0]), "not at random: {dues:?}");
}

#[test]
fn times_are_in_microseconds_unless_they_are_to_be_in_nanoseconds_and_can_be_without_the_due() {
    let usual = ["--tick-rate", "100", "--update-rate", "1000", "--latency-update-rate", "all"];
    let in_micros = Provider::start(&usual);
    let without_due = Provider::start(&[&usual[..], &["--no-due", "--nano-time"]].concat());
    let heard = |provider: &Provider| {
        let mut peer = Peer::log_in(provider.port);
        peer.open_all(1);
        peer.until(|heard| updates(heard) >= 30).into_iter().find(Heard::is_update).unwrap()
    };
    let before = tapeline_measure::monotonic_ns();
    let [micros, nanos] = [heard(&in_micros), heard(&without_due)];
    let after = tapeline_measure::monotonic_ns();
    assert!((before / 1_000..=after / 1_000).contains(&micros.sent.unwrap()), "{micros:?}");
    assert!(micros.due.unwrap() <= micros.sent.unwrap(), "{micros:?}");
    assert!((before..=after).contains(&nanos.sent.unwrap()), "{nanos:?}");
    assert_eq!(nanos.due, None);
}

#[test]
fn what_is_encoded_once_is_what_is_encoded_each_time() {
    let bytes = |more: &[&str]| {
        let provider = provider("1000", &[&["--latency-update-rate", "0"], more].concat());
        let mut peer = Peer::log_in(provider.port);
        // Together: after a stall, the first item would otherwise get all updates before the second is open.
        peer.open_together(2);
        let heard = peer.until(|heard| updates(heard) >= 12);
        let mut of_first = heard.into_iter().filter(Heard::is_update);
        of_first.by_ref().find(|heard| heard.stream == peer.first + 1);
        of_first.take(6).map(|heard| heard.bytes).collect::<Vec<_>>()
    };
    assert_eq!(bytes(&[]), bytes(&["--pre-enc"]));
    // Updates with a time are encoded each time.
    let provider = provider("200", &["--pre-enc", "--latency-update-rate", "100"]);
    let mut peer = Peer::log_in(provider.port);
    peer.open_all(1);
    let heard = peer.until(|heard| updates(heard) >= 30);
    let stamped = heard.iter().filter(|heard| heard.sent.is_some()).count();
    assert!((14..=16).contains(&stamped), "one in each slice of two: {stamped}");
}

#[test]
fn books_have_their_own_messages() {
    let provider = provider("1000", &["--latency-update-rate", "all"]);
    let mut peer = Peer::log_in(provider.port);
    peer.open(Domain::MARKET_BY_ORDER, "BOOK");
    let heard = peer.until(|heard| updates(heard) >= 10);
    let of_items = heard.iter().filter(|heard| heard.is_update() || heard.is_image());
    for heard in of_items {
        assert_eq!((heard.domain, heard.container), (Domain::MARKET_BY_ORDER, DataType::MAP));
        assert_eq!(heard.sent.is_some(), heard.is_update());
    }
}

#[test]
fn generic_messages_have_a_rate_of_their_own() {
    let more =
        ["--generic-msg-rate", "100", "--generic-msg-latency-rate", "all", "--latency-update-rate", "all"];
    let provider = provider("200", &more);
    let mut peer = Peer::log_in(provider.port);
    peer.open_together(2);
    let heard = peer.until(|heard| heard.iter().filter(|heard| heard.is_generic()).count() >= 100);
    let generics: Vec<_> = heard.iter().filter(|heard| heard.is_generic()).collect();
    assert!(generics.iter().all(|heard| heard.sent.is_some() && heard.due.is_some()));
    // One in each slice of two updates.
    let dues: Vec<u64> = generics.iter().map(|heard| heard.due.unwrap()).collect();
    assert!(dues.windows(2).all(|pair| pair[1] - pair[0] == SLICE), "{dues:?}");
    // After a delay, the updates of all late slices come before generic messages, also those of later slices.
    let until = dues[dues.len() - 1];
    let updates = heard.iter().filter(|heard| heard.is_update() && heard.due.unwrap() <= until);
    assert_eq!(updates.count(), 2 * dues.len());
    // The items in turn.
    assert!(generics.windows(2).all(|pair| pair[0].stream != pair[1].stream));
}

#[test]
fn a_post_is_answered_and_goes_back_as_it_came() {
    let provider = provider("0", &[]);
    let mut peer = Peer::log_in(provider.port);
    peer.open_all(1);
    peer.until(|heard| heard.iter().any(Heard::is_image));
    peer.post(Some(peer.first), 7, 424_242);
    let heard = peer.until(|heard| heard.iter().any(Heard::is_update) && heard.iter().any(Heard::is_ack));
    let update = heard.iter().find(|heard| heard.is_update()).unwrap();
    assert_eq!((update.stream, update.posted, update.bid), (peer.first, Some(424_242), 55));
    assert_eq!(update.post_user_info, Some(PostUserInfo { address: 1, user_id: 2 }));
    assert_eq!(heard.iter().find(|heard| heard.is_ack()).unwrap().ack, Some((7, None)));
    // A post without an item is refused.
    peer.post(None, 8, 1);
    let heard = peer.until(|heard| heard.iter().any(Heard::is_ack));
    let ack = heard.iter().find(|heard| heard.is_ack()).unwrap();
    assert_eq!(ack.ack, Some((8, Some(NakCode::INVALID_CONTENT))));
}

#[test]
fn no_more_items_are_open_than_may_be() {
    let provider = provider("0", &["--open-limit", "2"]);
    let mut peer = Peer::log_in(provider.port);
    peer.open_all(3);
    let heard = peer.until(|heard| heard.iter().any(|heard| heard.state.is_some()));
    let refused = heard.iter().find(|heard| heard.state.is_some()).unwrap();
    assert_eq!(refused.state, Some((StreamState::CLOSED, StateCode::TOO_MANY_ITEMS)));
    assert_eq!(refused.stream, peer.first + 2);
    // A closed item frees its slot.
    peer.close(peer.first);
    peer.open(Domain::MARKET_PRICE, "AGAIN");
    let newest = peer.next - 1;
    let heard = peer.until(|heard| heard.iter().any(|heard| heard.stream == newest));
    assert!(heard.iter().any(Heard::is_image), "{heard:?}");
}

#[test]
fn what_is_not_there_is_refused() {
    let provider = provider("0", &["--service-name", "ANOTHER", "--service-id", "9"]);
    let mut peer = Peer::log_in(provider.port);
    assert_eq!(peer.services(), [(9, "ANOTHER".to_owned())]);
    peer.service = 1;
    peer.open(Domain::MARKET_PRICE, "A");
    peer.service = 9;
    peer.open(Domain::MARKET_MAKER, "A");
    peer.open(Domain::MARKET_PRICE, "A");
    let heard = peer.until(|heard| heard.iter().any(Heard::is_image));
    let states: Vec<_> =
        heard.iter().filter_map(|heard| Some((heard.stream - peer.first, heard.state?))).collect();
    assert_eq!(
        states,
        [
            (0, (StreamState::CLOSED, StateCode::SOURCE_UNKNOWN)),
            (1, (StreamState::CLOSED, StateCode::NOT_FOUND))
        ]
    );
}

#[test]
fn messages_share_frames_where_they_may() {
    let frames = |more: &[&str]| {
        let provider = provider("10000", &[&["--latency-update-rate", "0"], more].concat());
        let mut peer = Peer::log_in(provider.port);
        peer.open_all(1);
        peer.frames_of_updates(20)
    };
    assert!(frames(&[]).iter().all(|messages| *messages == 1));
    let packed = frames(&["--max-pack-count", "8"]);
    assert!(packed.iter().all(|messages| *messages <= 8), "{packed:?}");
    assert!(packed.contains(&8), "{packed:?}");
    // An update takes 22 bytes with its length: two of them fit, three do not.
    let small = frames(&["--max-pack-count", "8", "--pack-buffer-size", "55"]);
    assert!(small.iter().all(|messages| *messages <= 2), "{small:?}");
    assert!(small.contains(&2), "{small:?}");
}

#[test]
fn connections_are_balanced_over_the_threads() {
    let more = ["--threads=-1,-1", "--latency-update-rate", "0", "--write-stats-interval", "1"];
    let mut provider = provider("100", &more);
    let mut peers: Vec<Peer> = (0..4).map(|_| Peer::log_in(provider.port)).collect();
    for peer in &mut peers {
        peer.open_all(1);
        // Statistics are written once a second.
        peer.until(|heard| updates(heard) >= 200);
    }
    assert!(provider.tool.end().code().is_some());
    // Each of the two threads has two of the four connections, and so two requests.
    let requests = |thread: usize| {
        let file = provider.tool.file(&format!("ProvStats{thread}.csv"));
        let of = |line: &str| line.split(',').nth(1).unwrap().trim().parse::<u64>().unwrap();
        file.lines().skip(1).map(of).sum::<u64>()
    };
    assert_eq!([requests(1), requests(2)], [2, 2]);
}

#[test]
fn a_consumer_that_does_not_read_misses_nothing() {
    let more =
        ["--latency-update-rate", "all", "--sys-send-buf-size", "4096", "--guaranteed-output-buffers", "2"];
    let provider = provider("20000", &more);
    let mut peer = Peer::log_in(provider.port);
    peer.open_all(1);
    peer.until(|heard| heard.iter().any(Heard::is_update));
    // The peer does not read until a second of slices has begun.
    let begun = tapeline_measure::monotonic_ns();
    let mut other = Peer::log_in(provider.port);
    other.open_all(1);
    other
        .until(|heard| heard.iter().any(|heard| heard.sent.is_some_and(|sent| sent > begun + 1_000_000_000)));
    drop(other);
    let heard =
        peer.until(|heard| heard.iter().any(|heard| heard.due.is_some_and(|due| due > begun + 500_000_000)));
    let slices = slices(&heard);
    assert!(slices.windows(2).all(|pair| pair[1].0 - pair[0].0 == SLICE));
    assert!(slices.iter().all(|(_, updates)| updates.len() == 200));
    // Late updates show their due time.
    let late =
        slices.iter().flat_map(|(due, updates)| updates.iter().map(move |update| update.sent.unwrap() - due));
    assert!(late.max().unwrap() > 10 * SLICE);
    assert!(
        heard
            .iter()
            .map(|heard| heard.bid)
            .filter(|bid| *bid > 100)
            .collect::<Vec<_>>()
            .windows(2)
            .all(|pair| { pair[1] == [102, 103, 101][(pair[0] - 101) as usize] })
    );
}

#[test]
fn a_consumer_that_starves_beside_another_shows_in_the_verdict() {
    let more = ["--latency-update-rate", "all", "--sys-send-buf-size", "4096"];
    let more = [&more[..], &["--guaranteed-output-buffers", "2", "--run-folder", "run"]].concat();
    let mut provider = provider("20000", &more);
    // One peer reads nothing after its first update; the other reads everything, for three seconds.
    let mut starving = Peer::log_in(provider.port);
    starving.open_all(1);
    starving.until(|heard| heard.iter().any(Heard::is_update));
    let mut other = Peer::log_in(provider.port);
    other.open_all(1);
    let until = tapeline_measure::monotonic_ns() + 3_000_000_000;
    loop {
        let heard = other.until(|heard| !heard.is_empty());
        if heard.iter().any(|heard| heard.due.is_some_and(|due| due > until)) {
            break;
        }
    }
    drop((starving, other));
    assert!(!provider.tool.end().success());
    let record = provider.tool.record("run");
    let why = record["why"].as_str().unwrap();
    assert_eq!(record["verdict"], "OVERLOAD", "{why}");
    assert!(why.contains("where 20.0 k msgs/s were asked"), "{why}");
    assert!(why.contains("the connection that had the least had"), "{why}");
}

#[test]
fn what_is_on_its_way_when_the_time_is_over_comes_and_is_counted() {
    let more = ["--latency-update-rate", "all", "--sys-send-buf-size", "4096", "--run-folder", "run"];
    let mut provider = provider("20000", &more);
    let mut peer = Peer::log_in(provider.port);
    peer.open_all(1);
    let mut came = updates(&peer.until(|heard| heard.iter().any(Heard::is_update)));
    // The peer does not read until a backlog has built up.
    let until = tapeline_measure::monotonic_ns() + 200_000_000;
    let mut other = Peer::log_in(provider.port);
    other.open_all(1);
    let mut is_late = false;
    while !is_late {
        let heard = other.until(|heard| updates(heard) > 0);
        is_late = heard.iter().any(|heard| heard.due.is_some_and(|due| due > until));
        came += updates(&heard);
    }
    let pid = provider.tool.pid();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    came += updates(&peer.until_closed()) + updates(&other.until_closed());
    provider.tool.rest();
    assert_eq!(provider.tool.record("run")["counts"]["updates"], came);
}

#[test]
fn what_does_not_go_out_in_time_is_not_counted_as_sent() {
    let more = ["--latency-update-rate", "0", "--sys-send-buf-size", "4096", "--run-folder", "run"];
    let mut provider = provider("20000", &more);
    let mut peer = Peer::log_in(provider.port);
    peer.open_all(1);
    let mut came = updates(&peer.until(|heard| heard.iter().any(Heard::is_update)));
    // The peer does not read until its backlog exceeds the kernel's buffers: 1 MB.
    let mut other = Peer::log_in(provider.port);
    other.open_all(1);
    let mut of_other = 0;
    while of_other < 40_000 {
        of_other += updates(&other.until(|heard| !heard.is_empty()));
    }
    came += of_other;
    rustix::process::kill_process(provider.tool.pid(), rustix::process::Signal::TERM).unwrap();
    // No peer reads before the provider has ended.
    provider.tool.rest();
    came += updates(&peer.until_closed()) + updates(&other.until_closed());
    let counts = provider.tool.record("run")["counts"].take();
    assert_eq!(counts["updates"], came);
    let unsent = counts["unsent"].as_u64().unwrap();
    assert!(unsent > 0, "{counts}");
    let summary = provider.tool.file("IProvSummary.out");
    assert!(summary.contains(&format!("Messages not sent: {unsent}")), "{summary}");
    assert!(summary.contains("did not go out before the end"), "{summary}");
}

#[test]
fn images_come_however_many_updates_are_behind() {
    let more = ["--latency-update-rate", "0", "--guaranteed-output-buffers", "20", "--max-pack-count", "100"];
    let provider = provider("1M", &more);
    let mut peer = Peer::log_in(provider.port);
    peer.open_all(1);
    peer.until_image(peer.first);
    // From now on, more is due than can be sent.
    for number in 1..=2_000 {
        peer.open(Domain::MARKET_PRICE, &format!("LATE{number}"));
    }
    // At most the updates in flight at the request, and 256 updates for each ten images.
    let updates = peer.until_image(peer.first + 2_000);
    assert!(updates < 300_000, "{updates}");
}

#[test]
fn posts_that_find_no_room_wait_and_too_many_are_counted_as_dropped() {
    const POSTS: u64 = 8_000;
    let more = ["--sys-send-buf-size", "4096", "--guaranteed-output-buffers", "2", "--run-folder", "run"];
    let mut provider = provider("0", &more);
    let mut peer = Peer::log_in(provider.port);
    peer.open_all(1);
    peer.until(|heard| heard.iter().any(Heard::is_image));
    // 40 MB; at most 17 MB are queued.
    (0..POSTS).for_each(|_| peer.post_bytes(peer.first, 5_000));
    let updates = |heard: &[Heard]| heard.iter().filter(|heard| heard.is_update()).count() as u64;
    let mut back = updates(&peer.until(|heard| updates(heard) >= 1_000));
    // One more post, repeated until it is accepted; it is queued after all others.
    let (mut more, mut is_taken, mut is_last) = (0_u32, false, false);
    while !is_taken {
        more += 1;
        peer.post(Some(peer.first), more, 424_242);
        let heard = peer.until(|heard| heard.iter().any(Heard::is_ack));
        back += updates(&heard);
        is_last |= heard.iter().any(|heard| heard.posted == Some(424_242));
        is_taken = heard.iter().any(|heard| heard.ack == Some((more, None)));
    }
    while !is_last {
        let heard = peer.until(|heard| updates(heard) > 0);
        back += updates(&heard);
        is_last = heard.iter().any(|heard| heard.posted == Some(424_242));
    }
    let posts = POSTS + u64::from(more);
    let _ = provider.tool.end();
    let counts = provider.tool.record("run")["counts"].take();
    assert!(back < POSTS, "{back}");
    assert_eq!(
        [&counts["posts"], &counts["reflected_posts"], &counts["dropped_posts"]],
        [posts, back, posts - back]
    );
    let summary = provider.tool.file("IProvSummary.out");
    assert!(summary.contains(&format!("Posts dropped: {}", posts - back)), "{summary}");
}

#[test]
fn what_is_encoded_once_is_not_encoded_again() {
    let counted = |more: &[&str]| {
        let usual = ["--latency-update-rate", "20", "--measure-encode", "--run-folder", "run"];
        let mut provider = provider("1000", &[&usual, more].concat());
        let mut peer = Peer::log_in(provider.port);
        peer.open_all(1);
        peer.until(|heard| updates(heard) >= 1_500);
        let _ = provider.tool.end();
        let record = provider.tool.record("run");
        let encoding = record["hops"].as_array().unwrap().iter().find(|hop| hop["name"] == "encoding");
        let counts = &record["counts"];
        [&encoding.unwrap()["samples"], &counts["updates"], &counts["stamped_updates"]]
            .map(|count| count.as_u64().unwrap())
    };
    let [encoded, updates, stamped] = counted(&[]);
    assert!(encoded == updates && stamped < updates, "{encoded} {updates} {stamped}");
    let [encoded, updates, stamped] = counted(&["--pre-enc"]);
    assert!(encoded == stamped && stamped < updates, "{encoded} {updates} {stamped}");
}

#[test]
fn what_is_encoded_and_decoded_is_timed_if_it_is_to_be() {
    let hops = |more: &[&str]| {
        let usual = ["--run-folder", "run", "--generic-msg-rate", "100"];
        let mut provider = provider("200", &[&usual, more].concat());
        let mut peer = Peer::log_in(provider.port);
        peer.open_all(1);
        peer.until(|heard| updates(heard) >= 20);
        let now = tapeline_measure::monotonic_ns();
        peer.generic(peer.first, now, now - 5);
        peer.post(Some(peer.first), 7, 1);
        peer.until(|heard| heard.iter().any(Heard::is_ack));
        assert!(provider.tool.end().code().is_some());
        let record = provider.tool.record("run");
        let samples = |hop: &serde_json::Value| {
            (hop["name"].as_str().unwrap().to_owned(), hop["samples"].as_u64().unwrap())
        };
        record["hops"].as_array().unwrap().iter().map(samples).collect::<std::collections::BTreeMap<_, _>>()
    };
    // The latency of a consumer's generic message is always measured.
    let without = hops(&[]);
    assert_eq!(without.get("generic service"), Some(&1), "{without:?}");
    assert_eq!(without.get("generic response"), Some(&1), "{without:?}");
    assert!(!without.contains_key("encoding") && !without.contains_key("decoding"), "{without:?}");
    let with = hops(&["--measure-encode", "--measure-decode"]);
    // Encoded: updates and generic messages. Decoded: the generic message and the post.
    assert!(with["encoding"] >= 29, "{with:?}");
    assert_eq!(with["decoding"], 2);
}

#[test]
fn round_trips_are_measured_if_they_are_to_be() {
    let mut request = LoginRequest::new(b"user");
    request.attributes.round_trip_latency = Some(login::ROUND_TRIP_WANTED);
    let measured = |provider: &mut Provider| {
        let _ = provider.tool.end();
        let hops = provider.tool.record("run")["hops"].take();
        let hops = hops.as_array().unwrap().iter().find(|hop| hop["name"] == "round trip").cloned();
        let summary = provider.tool.file("IProvSummary.out");
        (hops.map(|hop| hop["samples"].as_u64().unwrap()), summary)
    };
    let mut unasked = provider("0", &["--run-folder", "run"]);
    let mut peer = Peer::log_in_with(unasked.port, &request);
    peer.open_all(1);
    peer.until(|heard| heard.iter().any(Heard::is_image));
    let (trips, summary) = measured(&mut unasked);
    assert!(trips.is_none() && !summary.contains("Round trip"), "{summary}");

    let mut asked = provider("0", &["--rtt", "1", "--run-folder", "run"]);
    let mut peer = Peer::log_in_with(asked.port, &request);
    (0..3).for_each(|_| peer.round_trip(true));
    // A round trip begins after the answer to the previous one, so three are complete.
    peer.round_trip(false);
    let (trips, summary) = measured(&mut asked);
    assert_eq!(trips, Some(3));
    assert!(summary.contains("Round trips: 3") && summary.contains("Round trip max (usec): "), "{summary}");
    assert!(summary.contains("Round Trip Interval: 1"), "{summary}");
    let log = asked.tool.file("run/latency.hlog");
    assert!(log.contains("Tag=round"), "{log}");
}

#[test]
fn it_ends_when_its_time_is_over() {
    let provider = provider("0", &["--run-time", "1"]);
    let mut peer = Peer::log_in(provider.port);
    peer.until_closed();
    assert!(provider.tool.ended().code().is_some());
}

#[test]
fn generic_messages_without_contents_are_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.xml");
    let start = MESSAGES.find("<genMsg>").unwrap();
    let end = MESSAGES.find("</marketPriceMsgList>").unwrap();
    std::fs::write(&path, format!("{}{}", &MESSAGES[..start], &MESSAGES[end..])).unwrap();
    let path = path.to_str().unwrap();
    let arguments = ["omm", "provider", "--port", "0", "--msg-file", path, "--generic-msg-rate", "1000"];
    let output = stage::tapeline(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("--generic-msg-rate") && said.contains("hint"),
        "{said}"
    );
}

fn updates(heard: &[Heard]) -> usize {
    heard.iter().filter(|heard| heard.is_update()).count()
}

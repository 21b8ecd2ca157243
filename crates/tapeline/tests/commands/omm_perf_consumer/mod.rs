//! `tapeline omm consumer` against a provider whose behaviour each test defines. Counts are exact; nothing here depends
//! on speed.

mod dispatching;
mod market;
use crate::stage;
mod standby;

use std::collections::BTreeSet;

use tapeline_measure::monotonic_ns;
use tapeline_omm::domain::directory::ServiceState;
use tapeline_omm::rwf::{Domain, PostUserInfo};
use tapeline_wire::rssl::Reactor;

use market::{Answer, Market, Session, change, fields, run, service, update};
use stage::Running;

/// A few items, to the end: long enough for a busy machine that takes a second to connect.
fn few<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["--item-count", "5", "--steady-state-time", "10"], more].concat()
}

/// A few items, not all of which get an image.
fn too_few<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["--item-count", "5", "--steady-state-time", "8"], more].concat()
}

/// Stops the consumer when `when` returns true.
fn until(when: impl Fn(&Session) -> bool) -> impl FnMut(&mut Session) {
    move |session| {
        if when(session) {
            session.ask_to_end();
        }
    }
}

const DOWN: ServiceState = ServiceState { service_state: Some(0), accepting_requests: Some(0), status: None };

#[test]
fn every_item_is_asked_for_once_and_has_its_image() {
    let outcome = run(&few(&[]), Market::default(), |_| {});
    assert!(outcome.is_success, "{}", outcome.talk);
    let items: Vec<&str> = outcome.market.requests.iter().map(|request| request.item.as_str()).collect();
    assert_eq!(items, ["RDT1", "RDT2", "RDT3", "RDT4", "RDT5"]);
    assert!(outcome.market.requests.iter().all(|request| request.is_streaming && !request.is_private));
    assert_eq!([outcome.count("requests"), outcome.count("images")], [5, 5]);
    assert_eq!(outcome.count("statuses"), 0, "its own goodbye is nothing that happened to items");
}

#[test]
fn items_are_divided_over_threads_and_some_are_common() {
    let arguments = [
        "--item-count",
        "25",
        "--common-item-count",
        "3",
        "--threads",
        "-1,-1",
        "--snapshot",
        "--user",
        "me",
    ];
    let outcome = run(&arguments, Market::default(), |_| {});
    assert!(outcome.is_success, "{}", outcome.talk);
    assert_eq!(outcome.market.users, ["me", "me"]);
    let mut of: [Vec<&str>; 2] = [Vec::new(), Vec::new()];
    for request in &outcome.market.requests {
        of[request.connection].push(&request.item);
    }
    of.sort_by_key(|items| std::cmp::Reverse(items.len()));
    let named = |numbers: std::ops::RangeInclusive<usize>| numbers.map(|number| format!("RDT{number}"));
    assert_eq!(of[0], named(1..=13).collect::<Vec<_>>());
    assert_eq!(of[1], named(1..=3).chain(named(14..=22)).collect::<Vec<_>>());
    assert_eq!([outcome.count("requests"), outcome.count("images")], [25, 25]);
}

#[test]
fn snapshots_end_it_without_a_steady_state() {
    // The test would time out if there were a steady state.
    let arguments = ["--item-count", "5", "--snapshot", "--steady-state-time", "86400"];
    let outcome = run(&arguments, Market::default(), |_| {});
    assert!(outcome.is_success, "{}", outcome.talk);
    assert!(outcome.market.requests.iter().all(|request| !request.is_streaming));
    assert_eq!(outcome.count("images"), 5);
}

#[test]
fn requests_keep_their_rate() {
    // Ten a second in ten slices: the fifth is due 400 ms after the first.
    let arguments = ["--item-count", "5", "--snapshot", "--request-rate", "10", "--tick-rate", "10"];
    let outcome = run(&arguments, Market::default(), |_| {});
    let seconds = outcome.record["counts"]["image_retrieval_seconds"].as_f64().unwrap();
    assert!(seconds >= 0.399, "{seconds}");
    assert_eq!(outcome.count("images"), 5);
}

#[test]
fn suspect_images_do_not_count() {
    let market = Market {
        answer: |item| if item == "RDT2" { Answer::Suspect } else { Answer::Image },
        ..Market::default()
    };
    let outcome = run(&too_few(&[]), market, |_| {});
    assert!(!outcome.is_success);
    assert!(outcome.talk.contains("did not reach steady state: 4 of 5 images"), "{}", outcome.talk);
    assert!(outcome.talk.contains("the image of RDT2 is suspect and does not count"), "{}", outcome.talk);
    assert_eq!([outcome.count("images"), outcome.count("suspect_images")], [4, 1]);
}

#[test]
fn an_image_that_is_good_at_last_counts() {
    let market = Market { answer: |_| Answer::Suspect, ..Market::default() };
    let mut are_good = false;
    let outcome = run(&few(&[]), market, |session| {
        if session.market.open.len() == 5 && !std::mem::replace(&mut are_good, true) {
            (0..5).for_each(|number| session.image(number));
        }
    });
    assert!(outcome.is_success, "{}", outcome.talk);
    assert_eq!([outcome.count("images"), outcome.count("suspect_images")], [5, 5]);
}

#[test]
fn an_item_that_is_closed_is_said() {
    let market = Market {
        answer: |item| if item == "RDT4" { Answer::Closed } else { Answer::Image },
        ..Market::default()
    };
    let outcome = run(&too_few(&[]), market, |_| {});
    assert!(!outcome.is_success);
    let said =
        "an item is closed that has had no image, the first RDT4: CLOSED/SUSPECT/NONE \"no such item\"";
    assert!(outcome.talk.contains(said), "{}", outcome.talk);
    assert!(outcome.talk.contains("did not reach steady state: 4 of 5 images"), "{}", outcome.talk);
    assert_eq!([outcome.count("images"), outcome.count("statuses")], [4, 1]);
}

#[test]
fn a_service_is_waited_for() {
    for name in ["OTHER_FEED", "DIRECT_FEED"] {
        let mut market = Market::default();
        market.services.apply(&service(name, 1, DOWN));
        let mut is_up = false;
        let outcome = run(&few(&[]), market, |session| {
            assert!(is_up || session.market.requests.is_empty());
            // The consumer is logged in.
            if !session.market.users.is_empty() && !std::mem::replace(&mut is_up, true) {
                session.change(&service("DIRECT_FEED", 1, ServiceState::UP));
            }
        });
        assert!(outcome.is_success, "{}", outcome.talk);
        assert_eq!(outcome.count("images"), 5);
    }
}

#[test]
fn a_service_that_is_not_there_is_said() {
    let mut market = Market::default();
    market.services.apply(&service("OTHER_FEED", 1, ServiceState::UP));
    let outcome = run(&too_few(&["--service-name", "MY_FEED"]), market, |_| {});
    assert!(!outcome.is_success);
    let said = "there is no service MY_FEED but OTHER_FEED; it is waited for";
    assert!(outcome.talk.contains(said), "{}", outcome.talk);
    assert!(outcome.talk.contains("did not reach steady state: 0 of 5 images"), "{}", outcome.talk);
    // Without any load, the result says nothing about performance.
    assert_eq!(outcome.record["verdict"], "NO-RESULT");
    assert!(outcome.market.requests.is_empty());
}

#[test]
fn a_service_that_goes_down_ends_it() {
    let arguments = ["--item-count", "5", "--steady-state-time", "86400"];
    let mut is_down = false;
    let outcome = run(&arguments, Market::default(), |session| {
        if session.market.open.len() == 5 && !std::mem::replace(&mut is_down, true) {
            session.change(&change(1, DOWN));
        }
    });
    assert!(!outcome.is_success);
    let said = "connection 1 was lost: the service DIRECT_FEED is down, or gone";
    assert!(outcome.talk.contains(said), "{}", outcome.talk);
    assert_eq!(outcome.count("images"), 5);
}

#[test]
fn who_asks_by_number_does_not_mind_another_name() {
    for (by, more) in [("name", &[][..]), ("number", &["--use-service-id"])] {
        let mut is_renamed = false;
        let outcome = run(&few(more), Market::default(), |session| {
            if session.market.open.len() == 5 && !std::mem::replace(&mut is_renamed, true) {
                session.change(&service("RENAMED", 1, ServiceState::UP));
            }
        });
        assert_eq!(outcome.is_success, by == "number", "{by}: {}", outcome.talk);
    }
}

#[test]
fn a_connection_that_is_lost_ends_it() {
    let arguments = ["--item-count", "5", "--steady-state-time", "86400"];
    let outcome = run(&arguments, Market::default(), |session| {
        if session.market.open.len() == 5 {
            session.hang_up();
            session.market.open.clear();
        }
    });
    assert!(!outcome.is_success);
    assert!(outcome.talk.contains("connection 1 was lost: 127.0.0.1:"), "{}", outcome.talk);
    assert_eq!([outcome.count("images"), outcome.count("statuses")], [5, 0]);
    assert_eq!(outcome.market.users.len(), 1, "it does not come again");
}

#[test]
fn a_provider_that_is_not_there_yet_is_tried_again() {
    let nobody = stage::Nobody::new();
    let (port, mut said) = (nobody.port, None);
    let arguments = ["--item-count", "5", "--snapshot"];
    let outcome = market::run_at(Reactor::new(8).unwrap(), port, &arguments, Market::default(), |session| {
        if said.is_none() {
            // It reports this after the first failed attempt.
            said = Some(session.line_of_talk());
            session.listen(port);
        }
    });
    assert!(outcome.is_success, "{}", outcome.talk);
    assert!(
        said.as_deref().is_some_and(|said| said.contains("it is tried again until there is one")),
        "{said:?}"
    );
}

#[test]
fn a_login_that_is_refused_is_an_error() {
    let market = Market { refuses: true, ..Market::default() };
    let outcome = run(&few(&["--user", "nobody"]), market, |_| {});
    assert!(!outcome.is_success);
    assert!(outcome.talk.contains("not let in") && outcome.talk.contains("hint: --user"), "{}", outcome.talk);
}

#[test]
fn updates_are_counted_and_timed() {
    for (more, unit) in [(&[][..], 1_000), (&["--nano-time"][..], 1)] {
        let arguments = [&["--item-count", "5", "--steady-state-time", "86400"], more].concat();
        let mut is_sent = false;
        let outcome = run(&arguments, Market::default(), |session| {
            if session.market.open.len() == 5 && !std::mem::replace(&mut is_sent, true) {
                for number in 0..100 {
                    let now = monotonic_ns() / unit;
                    let times =
                        if number % 10 == 0 { vec![(3902, now), (3905, now - 1)] } else { Vec::new() };
                    session.update(number % 5, &update(&fields(&times), None));
                }
                // The disconnect follows the last update, so all updates are received first.
                session.hang_up();
            }
        });
        assert_eq!(outcome.count("updates"), 100, "{}", outcome.talk);
        for name in ["service", "response"] {
            let hop = hop(&outcome.record, name).unwrap();
            assert_eq!(hop["samples"], 10, "{hop}");
            // In a wrong unit the value would be about the machine's uptime.
            assert!(hop["mean_ns"].as_u64().unwrap() < 60_000_000_000, "{hop}");
        }
    }
}

#[test]
fn what_comes_before_the_delay_is_over_is_counted_and_not_timed() {
    for (delay, samples) in [("0", Some(100)), ("30000", None)] {
        let arguments =
            ["--item-count", "5", "--steady-state-time", "86400", "--delay-steady-state-calc", delay];
        let mut is_sent = false;
        let outcome = run(&arguments, Market::default(), |session| {
            if session.market.open.len() == 5 && !std::mem::replace(&mut is_sent, true) {
                for number in 0..100 {
                    let now = monotonic_ns() / 1_000;
                    session.update(number % 5, &update(&fields(&[(3902, now), (3905, now)]), None));
                }
                session.hang_up();
            }
        });
        assert_eq!(outcome.count("updates"), 100, "{}", outcome.talk);
        let found = hop(&outcome.record, "service").map(|hop| hop["samples"].as_u64().unwrap());
        assert_eq!(found, samples, "{}", outcome.record);
    }
}

#[test]
fn items_are_asked_for_and_sent_to_as_they_are_marked() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let items = "<itemList>\n\
        <item domain=\"MarketPrice\" name=\"POSTED\" post=\"true\"/>\n\
        <item domain=\"MarketPrice\" name=\"TOLD\" generic=\"true\"/>\n\
        <item domain=\"MarketPrice\" name=\"ONCE\" snapshot=\"true\"/>\n\
        <item domain=\"MarketByOrder\" name=\"BOOK\"/>\n</itemList>\n";
    std::fs::write(path("items.xml"), items).unwrap();
    // A bid of 5 in images and updates, 6 in posts and 7 in generic messages.
    let body = |bid: u8| {
        format!(
            "<dataBody><fieldList><fieldEntry fieldId=\"22\" dataType=\"RSSL_DT_REAL\" data=\"{bid}\"/></fieldList></dataBody>"
        )
    };
    let [other, post, generic] = [5, 6, 7].map(body);
    let messages = format!(
        "<msgFormat><marketPriceMsgList><refreshMsg>{other}</refreshMsg><updateMsg>{other}</updateMsg>\
         <postMsg><updateMsg>{post}</updateMsg></postMsg><genMsg>{generic}</genMsg></marketPriceMsgList></msgFormat>"
    );
    std::fs::write(path("messages.xml"), messages).unwrap();
    let (items, messages) = (path("items.xml"), path("messages.xml"));
    let arguments = ["--item-file", &items, "--item-count", "4", "--msg-file", &messages];
    let rates = ["--posting-rate", "1000", "--generic-msg-rate", "1000", "--steady-state-time", "86400"];
    let has = |session: &Session, is_post: bool| {
        session.market.messages.iter().filter(|message| message.is_post == is_post).count() >= 20
    };
    let ends = until(|session| has(session, true) && has(session, false));
    let outcome = run(&[&arguments[..], &rates].concat(), Market::default(), ends);
    let asked: Vec<_> = outcome
        .market
        .requests
        .iter()
        .map(|request| (&*request.item, request.domain, request.is_streaming, request.is_private))
        .collect();
    let (prices, books) = (Domain::MARKET_PRICE, Domain::MARKET_BY_ORDER);
    assert_eq!(
        asked,
        [
            ("POSTED", prices, true, false),
            ("TOLD", prices, true, true),
            ("ONCE", prices, false, false),
            ("BOOK", books, true, false)
        ]
    );
    for message in &outcome.market.messages {
        let (item, bid) = if message.is_post { ("POSTED", 6) } else { ("TOLD", 7) };
        assert_eq!((&*message.item, message.content.last()), (item, Some(&bid)), "{message:?}");
    }
}

/// A latency distribution in the record.
fn hop<'a>(record: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    record["hops"].as_array()?.iter().find(|hop| hop["name"] == name)
}

#[test]
fn decoding_is_measured_if_it_is_asked_for() {
    for (more, samples) in [(&[][..], None), (&["--measure-decode"][..], Some(7))] {
        let arguments = [&["--item-count", "5", "--steady-state-time", "86400"], more].concat();
        let outcome = run(&arguments, Market::default(), |session| {
            if session.market.open.len() == 5 {
                (0..7).for_each(|_| session.update(0, &update(&fields(&[]), None)));
                session.hang_up();
                session.market.open.clear();
            }
        });
        let found = hop(&outcome.record, "decoding").map(|hop| hop["samples"].as_u64().unwrap());
        assert_eq!(found, samples, "{}", outcome.record);
    }
}

#[test]
fn posts_are_sent_at_their_rate_and_come_back() {
    sends(true, &[]);
}

#[test]
fn generic_messages_are_sent_at_their_rate_and_come_back() {
    sends(false, &[]);
}

/// Checks 300 messages a second in a hundred slices, 50 of them with a time, to the items in turn.
fn sends(posts: bool, more: &[&str]) {
    let options = match posts {
        true => ["--posting-rate", "300", "--posting-latency-rate", "50"],
        false => ["--generic-msg-rate", "300", "--generic-msg-latency-rate", "50"],
    };
    let arguments = [
        &["--item-count", "4", "--steady-state-time", "86400", "--tick-rate", "100", "--nano-time"],
        &options[..],
        more,
    ]
    .concat();
    let market = Market { reflects: true, ..Market::default() };
    let outcome = run(&arguments, market, until(|session| session.market.messages.len() >= 300));
    let messages = &outcome.market.messages;
    assert!(messages.iter().all(|message| message.is_post == posts));
    for (number, message) in messages.iter().enumerate() {
        assert_eq!(message.item, format!("RDT{}", number % 4 + 1), "message {number}");
    }
    let contents: BTreeSet<&[u8]> = messages.iter().map(|message| &*message.content).collect();
    assert!(!contents.is_empty());
    // In each second of slices 50 messages have a time; at most one in a slice, at varying positions.
    let stamped: Vec<usize> = (0..messages.len()).filter(|number| messages[*number].sent.is_some()).collect();
    assert_eq!(stamped.iter().filter(|number| **number < 300).count(), 50);
    let slices: BTreeSet<usize> = stamped.iter().map(|number| number / 3).collect();
    assert_eq!(slices.len(), stamped.len());
    assert_eq!(stamped.iter().map(|number| number % 3).collect::<BTreeSet<_>>().len(), 3);
    // Each is due at its slice: ten milliseconds after the previous one.
    let first = stamped[0];
    for number in &stamped {
        let (sent, due) = (messages[*number].sent.unwrap(), messages[*number].due.unwrap());
        let slices = (number / 3 - first / 3) as u64;
        assert_eq!(due - messages[first].due.unwrap(), slices * 10_000_000, "message {number}");
        assert!(sent >= due);
    }
    let (sent, all, back) = match posts {
        true => ("posts", "stamped_posts", "reflected_posts"),
        false => ("generics_sent", "stamped_generics", "generics_received"),
    };
    // Every message counted as sent was sent before the end.
    assert_eq!(outcome.count(sent), messages.len() as u64);
    assert_eq!(outcome.count(all), stamped.len() as u64);
    assert!(outcome.count(back) > 0 && outcome.count(back) <= outcome.count(sent));
    let hop = hop(&outcome.record, if posts { "post response" } else { "generic response" }).unwrap();
    assert!(hop["samples"].as_u64().unwrap() > 0);
    assert_eq!(outcome.market.requests[0].is_private, !posts, "what is generic is between the two ends");
}

#[test]
fn due_times_are_left_out_if_that_is_asked_for() {
    for (more, is_there) in [(&[][..], true), (&["--no-due"][..], false)] {
        let options = [
            &["--item-count", "1", "--steady-state-time", "86400", "--tick-rate", "100"][..],
            &["--posting-rate", "100", "--posting-latency-rate", "100"],
            more,
        ];
        let ends = until(|session| session.market.messages.len() >= 10);
        let outcome = run(&options.concat(), Market::default(), ends);
        for message in &outcome.market.messages {
            assert_eq!((message.sent.is_some(), message.due.is_some()), (true, is_there));
        }
    }
}

#[test]
fn posts_of_others_are_not_ones_own() {
    let arguments = ["--item-count", "1", "--steady-state-time", "86400", "--posting-rate", "1000"];
    let mut is_sent = false;
    let outcome = run(&arguments, Market::default(), |session| {
        if session.market.open.len() == 1 && !std::mem::replace(&mut is_sent, true) {
            let other = PostUserInfo { address: 0x0A00_0001, user_id: 7 };
            let now = monotonic_ns() / 1_000;
            session.update(0, &update(&fields(&[(3903, now)]), Some(other)));
            session.hang_up();
        }
    });
    assert_eq!([outcome.count("updates"), outcome.count("reflected_posts")], [1, 0]);
    assert!(hop(&outcome.record, "post service").is_none(), "{}", outcome.record);
}

#[test]
fn every_transport_brings_images() {
    for (server, more) in [
        (&[][..], &["--websocket", "rwf"][..]),
        (&[], &["--websocket", "json"]),
        (&["--compression", "zlib"], &["--compression", "zlib"]),
        (&["--compression", "lz4"], &["--compression", "lz4"]),
    ] {
        let mut provider = Running::start(&[&["omm", "serve", "--port", "0"], server].concat());
        let server = format!("localhost:{}", provider.says()["port"]);
        let folder = tempfile::tempdir().unwrap();
        let all = ["omm", "consumer", "--server", &server, "--format", "json", "--run-folder", "run"];
        let output = stage::tapeline(&[&all[..], &["--item-count", "5", "--snapshot"], more].concat())
            .current_dir(folder.path())
            .output()
            .unwrap();
        let talk = String::from_utf8_lossy(&output.stderr);
        let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!(record["counts"]["images"], 5, "{more:?}: {talk}");
        assert_eq!(record["counts"]["malformed"], 0, "{more:?}: {talk}");
        assert!(!talk.contains("is not in the dictionary"), "{more:?}: {talk}");
    }
}

#[test]
fn updates_that_cannot_be_read_are_counted() {
    let arguments = ["--item-count", "1", "--steady-state-time", "86400"];
    let outcome = run(&arguments, Market::default(), |session| {
        if session.market.open.len() == 1 {
            // A field list that is cut.
            let good = update(&fields(&[]), None);
            (0..3).for_each(|_| session.update(0, &good[..good.len() - 1]));
            session.update(0, &good);
            session.hang_up();
            session.market.open.clear();
        }
    });
    assert_eq!([outcome.count("updates"), outcome.count("malformed")], [4, 3]);
    assert_eq!(outcome.talk.matches("a message cannot be read").count(), 1, "{}", outcome.talk);
}

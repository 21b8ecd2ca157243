//! Warm standby: two servers, of which one is active.

use tapeline_omm::domain::standby::{BY_LOGIN, BY_SERVICE, ServerType};
use tapeline_wire::rssl::Reactor;

use crate::omm_perf_consumer::DOWN;
use crate::omm_perf_consumer::market::{self, Market, Outcome, Session, change, fields, update};
use crate::omm_perf_consumer::stage::Nobody;

const ITEMS: usize = 5;

/// The server type that a connection was assigned last.
fn is(session: &Session, connection: usize) -> Option<ServerType> {
    session.market.standings.iter().rev().find(|(of, _)| *of == connection).map(|(_, server)| *server)
}

/// The connection that was assigned standby. The other is active: it may have no assignment.
fn standby(session: &Session) -> Option<usize> {
    (0..session.market.connections.len()).find(|number| is(session, *number) == Some(ServerType::Standby))
}

/// Numbers of a connection's streams.
fn streams(session: &Session, connection: usize) -> Vec<usize> {
    let id = session.market.connections[connection];
    (0..session.market.open.len()).filter(|number| session.market.open[*number].0 == id).collect()
}

/// Sends `count` updates to the streams of a connection in turn.
fn send(session: &mut Session, connection: usize, count: usize) {
    let streams = streams(session, connection);
    for number in 0..count {
        session.update(streams[number % streams.len()], &update(&fields(&[]), None));
    }
}

/// Runs the consumer against a market with two servers. `turn` gets the active connection and the standby connection.
/// It is called once all items are open at both, until it returns true.
fn run(
    more: &[&str],
    offers: Option<u64>,
    mut turn: impl FnMut(&mut Session, usize, usize) -> bool,
) -> Outcome {
    let mut reactor = Reactor::new(8).unwrap();
    let ports = [market::listen(&mut reactor, 0), market::listen(&mut reactor, 0)];
    let standby_at = format!("127.0.0.1:{}", ports[1]);
    let usual = ["--item-count", "5", "--steady-state-time", "86400", "--standby", &standby_at];
    let market = Market { standby: offers, ..Market::default() };
    let (mut both, mut is_done) = (None, false);
    market::run_at(reactor, ports[0], &[&usual, more].concat(), market, |session| {
        if both.is_none()
            && let Some(waiting) = standby(session)
        {
            let active = 1 - waiting;
            let are_open = [active, waiting]
                .iter()
                .all(|of| session.market.connections.len() == 2 && streams(session, *of).len() == ITEMS);
            both = are_open.then_some((active, waiting));
        }
        if let Some((active, waiting)) = both.filter(|_| !is_done) {
            is_done = turn(session, active, waiting);
        }
    })
}

/// When the standby server becomes active: sends images and updates, and disconnects.
fn take_over(session: &mut Session, waiting: usize, updates: usize) -> bool {
    if is(session, waiting) != Some(ServerType::Active) {
        return false;
    }
    for number in streams(session, waiting) {
        session.image(number);
    }
    send(session, waiting, updates);
    // The disconnect follows the last update, so all updates are received first.
    session.hang_up();
    true
}

#[test]
fn another_server_takes_over_when_the_active_one_is_lost() {
    for more in [&[][..], &["--standby-mode", "login"], &["--standby-mode", "service"], &["--api-dispatch"]] {
        let mut is_lost = false;
        let outcome = run(more, Some(BY_LOGIN | BY_SERVICE), |session, active, waiting| {
            if !std::mem::replace(&mut is_lost, true) {
                send(session, active, 20);
                session.hang_up_at(active);
            }
            take_over(session, waiting, 17)
        });
        // Each update once: 20 from the first server, 17 from the second.
        assert_eq!(outcome.count("updates"), 37, "{more:?}: {}", outcome.talk);
        assert_eq!(outcome.count("standby_updates"), 0, "{more:?}");
        // If there is time, the first server is connected again as the standby, and becomes active for a moment.
        assert!(outcome.count("standby_switches") >= 1, "{more:?}");
        assert!(outcome.count("standby_resumed") >= 1, "{more:?}");
        assert_eq!(outcome.count("images"), 2 * ITEMS as u64, "{more:?}");
        assert!(outcome.talk.contains(" is active now"), "{more:?}: {}", outcome.talk);
        assert!(outcome.talk.contains("every item has its image again"), "{more:?}: {}", outcome.talk);
        let inputs = &outcome.record["settings"]["inputs"];
        assert_eq!(inputs["Standby Mode"], if more.contains(&"service") { "service" } else { "login" });
    }
}

#[test]
fn a_service_that_goes_down_has_another_server_take_over_if_services_stand_by() {
    for (mode, updates) in [("service", 37), ("login", 20)] {
        let mut is_down = false;
        let outcome =
            run(&["--standby-mode", mode], Some(BY_LOGIN | BY_SERVICE), |session, active, waiting| {
                if !std::mem::replace(&mut is_down, true) {
                    send(session, active, 20);
                    session.change_at(active, &change(1, DOWN));
                }
                take_over(session, waiting, 17)
            });
        assert_eq!(outcome.count("updates"), updates, "{mode}: {}", outcome.talk);
        assert_eq!(outcome.talk.contains(" is active now"), mode == "service", "{mode}: {}", outcome.talk);
        assert!(
            outcome.talk.contains("the service DIRECT_FEED is down, or gone"),
            "{mode}: {}",
            outcome.talk
        );
    }
}

#[test]
fn a_server_that_cannot_stand_by_is_left_out() {
    for (offers, mode) in [(None, "login"), (Some(BY_SERVICE), "login"), (Some(BY_LOGIN), "service")] {
        let mut reactor = Reactor::new(8).unwrap();
        let ports = [market::listen(&mut reactor, 0), market::listen(&mut reactor, 0)];
        let standby_at = format!("127.0.0.1:{}", ports[1]);
        let arguments = [
            "--item-count",
            "5",
            "--steady-state-time",
            "86400",
            "--standby",
            &standby_at,
            "--standby-mode",
            mode,
        ];
        let market = Market { standby: offers, ..Market::default() };
        let outcome = market::run_at(reactor, ports[0], &arguments, market, |session| {
            let is_left_out = session.market.connections.len() == 2 && session.connected() == 1;
            if is_left_out && session.market.open.len() == ITEMS {
                session.hang_up();
            }
        });
        let expected = format!("{standby_at} is left out: its login does not offer to stand by for {mode}");
        assert!(outcome.talk.contains(&expected), "{}", outcome.talk);
        assert_eq!(outcome.count("standby_switches"), 0, "{}", outcome.talk);
        assert!(outcome.talk.contains("connection 1 was lost"), "{}", outcome.talk);
    }
}

#[test]
fn a_first_server_that_is_not_there_is_replaced_before_the_test_begins() {
    let mut reactor = Reactor::new(8).unwrap();
    let port = market::listen(&mut reactor, 0);
    let nobody = Nobody::new();
    let standby_at = format!("127.0.0.1:{port}");
    let arguments = ["--item-count", "5", "--steady-state-time", "86400", "--standby", &standby_at];
    let market = Market { standby: Some(BY_LOGIN), ..Market::default() };
    let mut is_over = false;
    let outcome = market::run_at(reactor, nobody.port, &arguments, market, |session| {
        if is(session, 0) == Some(ServerType::Active) && !std::mem::replace(&mut is_over, true) {
            for number in streams(session, 0) {
                session.image(number);
            }
            send(session, 0, 7);
            session.hang_up();
        }
    });
    let counts = ["images", "updates", "standby_switches"].map(|name| outcome.count(name));
    assert_eq!(counts, [5, 7, 0], "{}", outcome.talk);
}

#[test]
fn posts_go_to_whoever_is_active() {
    let folder = tempfile::tempdir().unwrap();
    let items = folder.path().join("items.xml");
    std::fs::write(
        &items,
        "<itemList>\n<item domain=\"MarketPrice\" name=\"A\" post=\"true\"/>\n</itemList>\n",
    )
    .unwrap();
    let mut reactor = Reactor::new(8).unwrap();
    let ports = [market::listen(&mut reactor, 0), market::listen(&mut reactor, 0)];
    let standby_at = format!("127.0.0.1:{}", ports[1]);
    let arguments = [
        "--item-count",
        "1",
        "--steady-state-time",
        "86400",
        "--standby",
        &standby_at,
        "--posting-rate",
        "1000",
        "--item-file",
        items.to_str().unwrap(),
    ];
    let market = Market { standby: Some(BY_LOGIN), ..Market::default() };
    let (mut posted, mut is_over) = (None, false);
    market::run_at(reactor, ports[0], &arguments, market, |session| match (posted, standby(session)) {
        (None, Some(waiting)) => {
            if session.market.open.len() == 2 && !session.market.messages.is_empty() {
                session.hang_up_at(1 - waiting);
                posted = Some((waiting, session.market.messages.len()));
            }
        }
        (Some((waiting, before)), _) => {
            let is_active = is(session, waiting) == Some(ServerType::Active);
            if is_active && session.market.messages.len() > before {
                is_over = true;
                session.ask_to_end();
            }
        }
        (None, None) => {}
    });
    assert!(is_over);
}

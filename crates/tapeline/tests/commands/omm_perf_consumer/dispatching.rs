//! API dispatch: an extra thread for each connection handles received messages.

use std::collections::BTreeMap;

use crate::omm_perf_consumer::market::{Market, change, fields, run, service, update};
use crate::omm_perf_consumer::{DOWN, sends, until};
use tapeline_measure::{cores, monotonic_ns};
use tapeline_omm::domain::directory::ServiceState;

/// The threads of a process by name, each with its allowed cores in the kernel's notation.
fn threads(pid: u32) -> BTreeMap<String, String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |task: std::path::PathBuf| {
        // A thread may end during the scan.
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        let status = std::fs::read_to_string(task.join("status")).ok()?;
        let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some((name.trim().to_owned(), cores.trim().to_owned()))
    };
    tasks.filter_map(|task| of(task.unwrap().path())).collect()
}

/// A few items, until the test stops the consumer.
const STEADY: [&str; 4] = ["--item-count", "5", "--steady-state-time", "86400"];

/// The threads and their cores after all requests have been sent.
fn dispatching(more: &[&str]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let outcome = run(&[&STEADY, more].concat(), Market::default(), |session| {
        // Both threads exist once the directory was read and the items were requested.
        if session.market.requests.len() == 5 && found.is_empty() {
            found = threads(session.pid());
            session.ask_to_end();
        }
    });
    assert_eq!(outcome.count("requests"), 5, "{more:?}: {}", outcome.talk);
    found
}

#[test]
fn a_further_thread_dispatches_if_that_is_asked_for() {
    let core = cores()[0].to_string();
    let any = threads(std::process::id())
        [&std::fs::read_to_string("/proc/thread-self/comm").unwrap().trim().to_owned()]
        .clone();
    let named = |found: &BTreeMap<String, String>, name: &str| found.get(name).cloned();
    let found = dispatching(&[]);
    assert_eq!(named(&found, "connection-1"), Some(any.clone()));
    assert_eq!(named(&found, "dispatch-1"), None, "{found:?}");
    // One thread is bound to a core, the other is not.
    let found = dispatching(&["-useUserDispatch", "0", "--threads", &core]);
    assert_eq!(
        [named(&found, "connection-1"), named(&found, "dispatch-1")],
        [Some(core.clone()), Some(any.clone())]
    );
    let found = dispatching(&["-apiThreads", &core]);
    assert_eq!([named(&found, "connection-1"), named(&found, "dispatch-1")], [Some(any), Some(core)]);
    let found = dispatching(&["--api-threads=-1,-1", "--threads=-1,-1"]);
    assert!(found.contains_key("dispatch-1") && found.contains_key("dispatch-2"), "{found:?}");
}

#[test]
fn posts_are_sent_beside_a_thread_that_dispatches() {
    sends(true, &["--api-dispatch"]);
}

#[test]
fn generic_messages_are_sent_beside_a_thread_that_dispatches() {
    sends(false, &["--api-dispatch"]);
}

#[test]
fn what_comes_is_timed_by_the_thread_that_dispatches() {
    let arguments = [&STEADY[..], &["--api-dispatch"]].concat();
    let outcome = run(&arguments, Market::default(), |session| {
        if session.market.open.len() == 5 {
            let now = monotonic_ns() / 1_000;
            (0..5).for_each(|item| session.update(item, &update(&fields(&[(3902, now)]), None)));
            session.hang_up();
            session.market.open.clear();
        }
    });
    assert_eq!(["images", "updates"].map(|name| outcome.count(name)), [5, 5]);
    assert_eq!(outcome.record["settings"]["inputs"]["useUserDispatch"], "0");
    assert_eq!(outcome.record["settings"]["inputs"]["ApiThread List"], "-1");
}

#[test]
fn it_ends_as_without_when_the_service_or_the_connection_goes() {
    let steady = [&STEADY[..], &["--api-dispatch"]].concat();
    let outcome = run(&steady, Market::default(), |session| {
        if session.market.open.len() == 5 {
            session.change(&change(1, DOWN));
            session.market.open.clear();
        }
    });
    assert!(!outcome.is_success && outcome.talk.contains("DIRECT_FEED is down"), "{}", outcome.talk);
    let outcome = run(&steady, Market::default(), |session| {
        if session.market.open.len() == 5 {
            session.hang_up();
            session.market.open.clear();
        }
    });
    assert!(!outcome.is_success && outcome.talk.contains("127.0.0.1:"), "{}", outcome.talk);
    // The login is refused: the run fails with the dispatching thread's error.
    let outcome = run(&steady, Market { refuses: true, ..Market::default() }, |_| {});
    assert!(!outcome.is_success && outcome.talk.contains("This user is not let in"), "{}", outcome.talk);
    // A service that comes up later wakes the requesting thread.
    let mut market = Market::default();
    market.services.apply(&service("DIRECT_FEED", 1, DOWN));
    let mut is_up = false;
    let outcome = run(&steady, market, |session| {
        if session.market.users.len() == 1 && !std::mem::replace(&mut is_up, true) {
            session.change(&change(1, ServiceState::UP));
        }
        until(|session| session.market.requests.len() == 5)(session);
    });
    assert_eq!(outcome.count("requests"), 5, "{}", outcome.talk);
}

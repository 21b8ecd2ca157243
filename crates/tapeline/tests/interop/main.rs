//! Tapeline and LSEG's own library against each other, over every transport: `make interop`.
//!
//! The library's side consists of the programs in Java and Python of `tests/interop` in the root, which
//! `make interop` builds. This test starts each pair, runs every scenario on one connection, and collects the outcomes
//! in the tables of `docs/interop.md`. The library against itself is the control, run after a failure and for the
//! page: where the control fails too, the fault is not Tapeline's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::print_stderr, reason = "it takes minutes: how far it is")]
#![allow(clippy::print_stdout, reason = "the tables")]

mod asking;
mod column;
mod consuming;
mod hub;
mod local_server;
mod page;
mod perf;
mod program;
mod publishing;
#[path = "../commands/remains/mod.rs"]
mod remains;
mod through;
mod tools;
mod way;

use std::path::PathBuf;

use column::{Column, Outcome};
use program::Place;

#[test]
fn every_pair_over_every_transport() {
    let Some(place) = place() else {
        eprintln!("skipped: `make interop` builds the other side and runs this");
        return;
    };
    let columns = vec![
        consuming::tapeline_provider(),
        asking::tapeline_consumer(),
        publishing::tapeline_acceptor(),
        publishing::tapeline_ni_provider(),
        hub::ema(),
        hub::websocket(),
        hub::lseg_data(),
        hub::zeromq(),
        through::interactive(),
        through::published(),
    ];
    // The control is useful only after a failure.
    let controls = || vec![consuming::control(), publishing::control()];
    meet(&place, 3, "make interop DOC=1", columns, controls);
    local_server::follow(&place).unwrap_or_else(|why| panic!("docs/local-real-time-server.md: {why}"));
    println!("{}", perf::agree(&place).unwrap_or_else(|why| panic!("performance tools: {why}")));
    println!("docs/local-real-time-server.md, docs/zeromq.md: done as they say");
}

#[test]
fn every_tool_over_every_transport() {
    let (Some(place), Some(sdk)) = (place(), std::env::var_os("RTSDK")) else {
        eprintln!("skipped: `make interop-rtsdk RTSDK=FOLDER` says where the tools are and runs this");
        return;
    };
    let place = Place { tools: PathBuf::from(sdk).join("bin"), ..place };
    let columns = vec![
        tools::consumers::column(),
        tools::providers::column(),
        tools::ni_providers::column(),
        tools::opaque::column(),
        tools::through::column(),
    ];
    meet(&place, 4, "make interop-rtsdk DOC=1", columns, Vec::new);
}

/// The other side, from the environment; `None` without it.
fn place() -> Option<Place> {
    let built = PathBuf::from(std::env::var_os("INTEROP")?);
    let items = std::env::var("INTEROP_ITEMS")
        .map_or(10_000, |text| text.parse().unwrap_or_else(|_| panic!("INTEROP_ITEMS={text}")));
    Some(Place { built, tools: PathBuf::new(), items, updates: 2 })
}

/// Runs all pairs, `at_once` at a time: the Java programs work more than they wait. Runs the controls after a
/// failure, and for the page.
fn meet(
    place: &Place,
    at_once: usize,
    command: &str,
    columns: Vec<Column>,
    controls: impl FnOnce() -> Vec<Column>,
) {
    std::fs::create_dir_all(place.logs()).unwrap();
    let writes_page = std::env::var_os("DOC").is_some_and(|text| !text.is_empty());
    // `ONLY` selects columns, for debugging.
    let only = std::env::var("ONLY").unwrap_or_default();
    let run = |columns: Vec<Column>| {
        let wanted = columns.into_iter().filter(|column| column.title.contains(&only));
        Column::run_all(wanted.collect(), place, at_once)
    };
    let mut columns = run(columns);
    if writes_page || !only.is_empty() || columns.iter().any(|column| !column.failures().is_empty()) {
        columns.extend(run(controls()));
    }

    let tables = page::tables(&columns);
    println!("{tables}");
    if writes_page && only.is_empty() {
        page::write(command, &tables, place.items);
    }
    let failures: Vec<String> = columns.iter().flat_map(Column::failures).collect();
    assert!(failures.is_empty(), "{}\nlogs: {}", failures.join("\n"), place.logs().display());
    assert!(columns.iter().any(|column| column.cells.values().any(|cell| *cell == Outcome::Passed)));
}

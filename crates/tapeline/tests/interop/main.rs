//! Tapeline and LSEG's own library against each other, over every transport: `make interop`.
//!
//! The library's side are the Java programs of `tests/interop` in the root, which `make interop` builds; this test
//! starts each pair, lets it go through every scenario on one connection, and collects the answers in the tables of
//! `docs/interop.md`. The library against itself is the control, run when something failed and for the page: where that
//! fails too, the fault is not ours.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::print_stderr, reason = "it takes minutes: how far it is")]

mod asking;
mod column;
mod consuming;
mod page;
mod program;
mod publishing;
mod way;

use std::path::PathBuf;

use column::{Column, Outcome};
use program::Place;

#[test]
fn every_pair_over_every_transport() {
    let Some(built) = std::env::var_os("INTEROP") else {
        eprintln!("skipped: `make interop` builds the other side and runs this");
        return;
    };
    let number = |name: &str, otherwise: u32| {
        std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
    };
    let place = Place { built: PathBuf::from(built), items: number("INTEROP_ITEMS", 10_000), updates: 2 };
    std::fs::create_dir_all(place.logs()).unwrap();

    let writes_page = std::env::var_os("DOC").is_some_and(|text| !text.is_empty());
    // For whoever looks into one of them.
    let only = std::env::var("ONLY").unwrap_or_default();
    let run = |columns: Vec<Column>| {
        let wanted = columns.into_iter().filter(|column| column.title.contains(&only));
        wanted.map(|column| column.run(&place)).collect::<Vec<_>>()
    };
    let mut columns = run(vec![
        consuming::tapeline_provider(),
        asking::tapeline_consumer(),
        publishing::tapeline_acceptor(),
        publishing::tapeline_ni_provider(),
    ]);
    let have_failed = |columns: &[Column]| columns.iter().any(|column| !column.failures().is_empty());
    // The library alone tells nothing of us while all is well.
    if writes_page || !only.is_empty() || have_failed(&columns) {
        columns.extend(run(vec![consuming::control(), publishing::control()]));
    }

    let tables = page::tables(&columns);
    println!("{tables}");
    if writes_page && only.is_empty() {
        page::write(&tables, place.items);
    }
    let failures: Vec<String> = columns.iter().flat_map(Column::failures).collect();
    assert!(failures.is_empty(), "{}\nlogs: {}", failures.join("\n"), place.logs().display());
    assert!(columns.iter().any(|column| column.cells.values().any(|cell| *cell == Outcome::Passed)));
}

//! Arbitrary bytes, for the readers of connections and of logs: the inputs of `fuzz/corpus`, and thousands of
//! mutations. `make fuzz TARGET=q_ipc` and `q_log` do the same for longer, guided by coverage.
use crate::invariants;
use crate::mutations;

use std::path::{Path, PathBuf};

use tapeline_kdb::{Frames, Hello, Log, Order};

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

#[test]
fn connections_hold() {
    mutations::each(&corpus("q_ipc"), 20_000, invariants::connection);
}

#[test]
fn logs_hold() {
    mutations::each(&corpus("q_log"), 20_000, invariants::log);
}

/// Mutations of a seed that cannot be read completely would only produce faults.
#[test]
fn the_seeds_are_whole() {
    let seeds = |target| {
        std::fs::read_dir(corpus(target)).unwrap().map(|seed| std::fs::read(seed.unwrap().path()).unwrap())
    };
    let (mut messages, mut entries) = (0, 0);
    for seed in seeds("q_ipc") {
        let (_, len) = Hello::parse(&seed[1..]).unwrap().unwrap();
        let stream = &seed[1 + len..];
        let mut frames = Frames::new(1 << 20);
        frames.room()[..stream.len()].copy_from_slice(stream);
        frames.received(stream.len());
        while let Some(message) = frames.next().unwrap() {
            message.view().unwrap();
            messages += 1;
        }
        assert_eq!(frames.waiting(), 0);
    }
    for seed in seeds("q_log") {
        let mut log = Log::parse(&seed, Order::Little).unwrap();
        entries += log.by_ref().count();
        assert_eq!(log.torn(), None);
    }
    assert!(messages >= 8 && entries >= 5, "{messages} messages, {entries} entries");
}

//! Any bytes at all for every decoder: the inputs of `fuzz/corpus`, and thousands of changed ones, must leave its
//! invariants as they are. The same invariants, led by coverage, are tried at length by `make fuzz`.
//!
//! An input that `make fuzz` finds to break one goes into `fuzz/corpus` under a name that says what was wrong. The inputs to begin
//! with are written by `WRITE_CORPUS=1 cargo test -p tapeline-feed --test feed hostile::`.

use crate::invariants;
use crate::mutations;

use std::path::PathBuf;

use invariants::{arbiter, capture, dbn, iex, itch, moldudp64, recovery, soupbintcp, venues};

/// Changed inputs for each decoder.
const CHANGED: u32 = 10_000;

fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn holds(target: &str, seeds: Vec<(&'static str, Vec<u8>)>, check: fn(&[u8])) {
    let corpus = corpus(target);
    for (name, seed) in seeds {
        let path = corpus.join(name);
        if std::env::var_os("WRITE_CORPUS").is_some() {
            std::fs::create_dir_all(&corpus).unwrap();
            std::fs::write(&path, &seed).unwrap();
        }
        check(&seed);
    }
    mutations::each(&corpus, CHANGED, check);
}

#[test]
fn moldudp64_holds() {
    holds("moldudp64", moldudp64::seeds(), moldudp64::packet);
}

#[test]
fn itch_holds() {
    holds("itch", itch::seeds(), itch::file);
}

#[test]
fn iex_segments_hold() {
    holds("iex_tp", iex::segment_seeds(), iex::segment);
}

#[test]
fn iex_messages_hold() {
    holds("iex", iex::seeds(), iex::pieces);
}

#[test]
fn captures_hold() {
    holds("capture", capture::seeds(), capture::file);
}

#[test]
fn arbitration_holds() {
    holds("arbiter", arbiter::seeds(), arbiter::datagrams);
}

#[test]
fn soupbintcp_holds() {
    holds("soupbintcp", soupbintcp::seeds(), soupbintcp::stream);
}

#[test]
fn asking_again_holds() {
    holds("recover", recovery::client_seeds(), recovery::client);
}

#[test]
fn answering_holds() {
    holds("retransmit", recovery::server_seeds(), recovery::server);
}

#[test]
fn dbn_records_hold() {
    holds("dbn", dbn::seeds(), dbn::records);
}

#[test]
fn dbn_files_hold() {
    holds("dbn_file", dbn::file_seeds(), dbn::file);
}

#[test]
fn venues_hold() {
    holds("venues", venues::seeds(), venues::messages);
}

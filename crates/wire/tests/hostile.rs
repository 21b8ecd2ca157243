//! A session must keep its invariants for any input: the inputs of `fuzz/corpus`, and thousands of changed
//! ones. `make fuzz` tests the same invariants at length, guided by coverage.
//!
//! An input with which `make fuzz` breaks an invariant goes into `fuzz/corpus` under a name that states the
//! fault. `WRITE_CORPUS=1 cargo test -p tapeline-wire --test wire hostile::` writes the seed inputs.

use crate::invariants;
use crate::mutations;

use std::path::PathBuf;

use invariants::{output, session, zmtp};

fn holds(target: &str, changed: u32, seeds: Vec<(&'static str, Vec<u8>)>, check: fn(&[u8])) {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    for (name, seed) in seeds {
        if std::env::var_os("WRITE_CORPUS").is_some() {
            std::fs::create_dir_all(&corpus).unwrap();
            std::fs::write(corpus.join(name), &seed).unwrap();
        }
        check(&seed);
    }
    mutations::each(&corpus, changed, check);
}

#[test]
fn sessions_hold() {
    holds("rssl", 10_000, session::seeds(), session::bytes);
}

/// Longer than a seed should be: so many frames that any memory per frame would exceed the bound.
#[test]
fn frames_of_nothing_hold_nothing() {
    session::bytes(&session::frames_of_nothing(200_000));
}

#[test]
fn outputs_hold() {
    holds("rssl_output", 5_000, output::seeds(), output::script);
}

#[test]
fn subscribers_hold() {
    holds("zmtp", 10_000, zmtp::seeds(), zmtp::bytes);
}

//! Arbitrary bytes in a journal's files: the inputs of `fuzz/corpus`, and thousands of mutations. `make fuzz
//! TARGET=journal` does the same for longer, guided by coverage.
use crate::invariants;
use crate::mutations;

use std::path::Path;

#[test]
fn journals_hold() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/journal");
    mutations::each(&corpus, 5_000, invariants::journal);
}

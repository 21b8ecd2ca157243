//! Any bytes in a journal's files: the inputs of `fuzz/corpus`, and thousands of changed ones. The same, led by coverage, is tried at
//! length by `make fuzz TARGET=journal`.
use crate::invariants;
use crate::mutations;

use std::path::Path;

#[test]
fn journals_hold() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/journal");
    mutations::each(&corpus, 5_000, invariants::journal);
}

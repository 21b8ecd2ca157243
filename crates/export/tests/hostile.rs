//! Any bytes as ticks: the inputs of `fuzz/corpus`, and thousands of changed ones. The same, led by coverage, is tried at length by
//! `make fuzz TARGET=rows`.
use crate::invariants;
use crate::mutations;

use std::path::Path;

#[test]
fn rows_of_any_ticks_can_be_written_or_are_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rows");
    mutations::each(&corpus, 3_000, invariants::rows);
}

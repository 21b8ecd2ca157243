//! Arbitrary bytes as ticks: the inputs of `fuzz/corpus`, and thousands of mutations. `make fuzz TARGET=rows` does the
//! same for longer, guided by coverage.
use crate::invariants;
use crate::mutations;

use std::path::Path;

#[test]
fn rows_of_any_ticks_can_be_written_or_are_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rows");
    mutations::each(&corpus, 3_000, invariants::rows);
}

//! Any bytes at all for the readers of RWF: the inputs of `fuzz/corpus`, and thousands of changed ones. The same readers, led
//! by coverage, are tried at length by `make fuzz TARGET=rwf`.

#[path = "../../feed/tests/mutations/mod.rs"]
mod mutations;
mod readers;

use std::path::Path;

#[test]
fn rwf_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/rwf");
    mutations::each(&corpus, 10_000, readers::any);
}

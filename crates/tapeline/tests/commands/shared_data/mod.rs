//! Real feeds and the results of independent parsers: the folder `shared` next to the repository, or the one that
//! `TAPELINE_SHARED` names. Tests without it print a note and pass.

#![allow(
    dead_code,
    clippy::print_stdout,
    reason = "not every test file uses all of it, and a skipped test says so"
)]

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file of the folder's real data, if it exists.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let found =
        std::env::var_os("TAPELINE_SHARED").map_or_else(beside, PathBuf::from).join("data").join(path);
    if found.exists() {
        return Some(found);
    }
    println!("skipped: no shared test data beside the repository");
    None
}

/// An independent parser's results, as JSON.
pub(crate) fn expected(path: &str) -> Option<Value> {
    let text = std::fs::read_to_string(shared(path)?).expect("a shared file can be read");
    Some(serde_json::from_str(&text).expect("expected.json is JSON"))
}

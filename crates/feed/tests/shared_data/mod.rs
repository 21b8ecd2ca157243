//! Real feeds and what independent parsers found in them: the folder `shared` beside the repository, or where
//! `TAPELINE_SHARED` says. Tests that find none say so and pass.

#![allow(
    dead_code,
    clippy::print_stdout,
    reason = "not every test file uses all of it, and a skipped test says so"
)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file of the shared folder, where there is one.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let found = std::env::var_os("TAPELINE_SHARED").map_or_else(beside, PathBuf::from).join(path);
    if found.exists() {
        return Some(found);
    }
    println!("skipped: no shared test data beside the repository");
    None
}

/// The bytes of a file.
pub(crate) fn bytes(path: &str) -> Option<Vec<u8>> {
    Some(fs::read(shared(path)?).expect("a shared file can be read"))
}

/// What `expected.json` of a folder says.
pub(crate) fn expected(folder: &str) -> Option<Value> {
    let bytes = bytes(&format!("data/{folder}/expected.json"))?;
    Some(serde_json::from_slice(&bytes).expect("expected.json is JSON"))
}

//! Test data that lies beside the repository: golden vectors and dictionaries.

use std::path::PathBuf;

/// The file or folder `path` of the shared test data; `None`, and a line that says so, where there is none.
///
/// The environment variable `TAPELINE_SHARED` names the folder; without it, it is `shared` beside the repository.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("TAPELINE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    println!("skipped: no shared test data beside the repository");
    None
}

/// The text of the file `path` of the shared test data.
pub(crate) fn shared_text(path: &str) -> Option<String> {
    shared(path).map(|found| std::fs::read_to_string(found).unwrap())
}

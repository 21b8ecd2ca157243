//! Test data next to the repository: golden vectors and dictionaries.

use std::path::PathBuf;

/// Returns the file or folder `path` of the shared test data; prints a line and returns `None` if there is none.
///
/// The environment variable `TAPELINE_SHARED` names the folder; the default is `shared` next to the repository.
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

/// Returns the text of the file `path` of the shared test data.
pub(crate) fn shared_text(path: &str) -> Option<String> {
    shared(path).map(|found| std::fs::read_to_string(found).unwrap())
}

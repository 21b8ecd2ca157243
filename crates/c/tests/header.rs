//! The committed header must be the one that cbindgen generates from the sources.
#![allow(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use std::path::Path;

/// `TAPELINE_WRITE_HEADER=1 cargo test -p tapeline-c --test header` rewrites it.
#[test]
fn the_header_is_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::generate_with_config(folder, config).unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let header = folder.join("include/tapeline.h");
    if std::env::var_os("TAPELINE_WRITE_HEADER").is_some() {
        std::fs::write(&header, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&header).unwrap_or_default();
    let differs = made.lines().zip(committed.lines()).position(|(made, committed)| made != committed);
    assert!(
        made == committed,
        "include/tapeline.h differs from the sources from line {} on: write it anew with \
         `TAPELINE_WRITE_HEADER=1 cargo test -p tapeline-c --test header` and look at the difference",
        differs.map_or(made.lines().count().min(committed.lines().count()) + 1, |line| line + 1)
    );
}

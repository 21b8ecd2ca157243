//! Files that releases have left behind, kept as they were: every later build has to read them. docs/versions.md is the promise.

use std::path::{Path, PathBuf};

use serde_json::Value;
use stage::{Place, Running, tapeline};

use crate::stage;

/// A copy of a kept folder, because programs take locks in it.
fn copied(name: &str, folder: &Path) -> PathBuf {
    let to = folder.join(name);
    std::fs::create_dir(&to).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands/kept_formats").join(name);
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    to
}

fn json(arguments: &[&str]) -> Value {
    let output = tapeline(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_journal_of_version_1_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let journal = copied("journal-1", folder.path());
    let journal = journal.to_str().unwrap();
    let verified = json(&["journal", "verify", journal, "--format", "json"]);
    assert_eq!(
        (&verified["ticks"], &verified["damage"], &verified["end"]),
        (&110.into(), &Value::Null, &"closed".into())
    );

    let found = json(&["journal", "inspect", journal, "--count", "200", "--format", "json"]);
    let line = |tick: &Value| {
        let word = |key: &str| match &tick[key] {
            Value::String(text) if text.is_empty() => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        ["sequence", "kind", "service", "channel", "item", "name", "bytes"].map(word).join(" ") + "\n"
    };
    let lines: String = found["ticks"].as_array().unwrap().iter().map(line).collect();
    assert_eq!(lines, include_str!("journal-1.txt"));
}

#[test]
fn a_plant_continues_a_journal_of_version_1() {
    let place = Place::new(1);
    let journal = copied("journal-1", place.folder.path());
    let config = place.config("");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text + "[journal]\nfolder = \"journal-1\"\n").unwrap();
    let mut plant =
        Running::start(&["plant", "--config", &config, "--until-end-of-session", "--format", "json"]);
    plant.says();
    let day = place.folder.path().join("day.itch");
    let write = ["feed", "simulate", "--symbols", "2", "--messages", "60", "--write", day.to_str().unwrap()];
    assert!(tapeline(&write).output().unwrap().status.success());
    place.replay(&day, 0);
    plant.says();
    assert!(plant.child.wait().unwrap().success());
    let verified = json(&["journal", "verify", journal.to_str().unwrap(), "--format", "json"]);
    assert_eq!((&verified["first"]["sequence"], &verified["missing"]), (&1.into(), &0.into()), "{verified}");
    assert!(verified["ticks"].as_u64().unwrap() > 110 && verified["damage"].is_null(), "{verified}");
}

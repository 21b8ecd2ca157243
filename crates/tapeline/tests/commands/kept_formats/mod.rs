//! Files that releases have left behind, kept as they were: every later build has to read them. docs/versions.md is the promise.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
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

/// What a plant that was killed has left in shared memory. A ring of another layout is read by nobody: both versions are named.
#[test]
fn a_ring_of_layout_2_is_read_whole_and_one_of_the_next_layout_is_refused_with_both() {
    let place = Place::new(0);
    let file = Path::new("/dev/shm").join(format!("tapeline-{}", place.ring));
    let mut kept = Vec::new();
    GzDecoder::new(&include_bytes!("ring-2.gz")[..]).read_to_end(&mut kept).unwrap();
    std::fs::write(&file, &kept).unwrap();
    let watch =
        ["plant", "watch", "--ring", &place.ring, "--from", "oldest", "--ticks", "200", "--format", "json"];
    let output = tapeline(&watch).output().unwrap();
    let ticks =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().map(Result::<Value, _>::unwrap);
    let line = |tick: Value| {
        ["seq", "feed_seq", "kind", "item", "fields"].map(|key| tick[key].to_string()).join(" ")
    };
    let lines: Vec<String> = ticks.map(line).collect();
    let expected: Vec<&str> = include_str!("ring-2.txt").lines().collect();
    assert_eq!(lines, expected, "{}", String::from_utf8_lossy(&output.stderr));

    // The layout's version is behind the eight bytes of the magic.
    kept[8] = 3;
    std::fs::write(&file, &kept).unwrap();
    let inspect = ["ring", "stat", &place.ring];
    for command in [&watch[..], &inspect] {
        let refused = tapeline(command).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "{command:?}");
        for part in ["is a ring of layout 3; this build reads layout 2", "of the same release"] {
            assert!(said.contains(part), "{command:?}: {said}");
        }
    }
    std::fs::remove_file(&file).unwrap();
}

//! DBN files through the real binary: the output of `tapeline feed inspect` for whole and damaged files.

use crate::shared_data;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use shared_data::{expected, shared};

fn inspect(path: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.args(["feed", "inspect"]).arg(path).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn report(output: &Output) -> Value {
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(whole["protocol"], "DBN");
    whole["files"][0].clone()
}

#[test]
fn inspect_finds_what_another_parser_found() {
    for (folder, file) in [
        ("dbn-databento", "multi-frame.definition.v1.dbn.frag.zst"),
        ("dbn-databento", "test_data.mbp-10.dbn"),
        ("dbn-databento", "test_data.statistics.dbn"),
        ("dbn-cme-opra", "orderbooks_mbo_2024-05-08.dbn.zst"),
        ("dbn-cme-opra", "futures_mbp-1_2024-07-01.dbn.zst"),
        ("dbn-cme-opra", "definition-opra.dbn.zst"),
    ] {
        let Some(path) = shared(&format!("{folder}/{file}")) else { return };
        let expected = &expected(&format!("{folder}/expected.json")).unwrap()["files"][file];
        let output = inspect(&path, &["--format", "json", "--records", "2", "--symbol", "ESM4"]);
        assert!(output.status.success());
        let found = report(&output);
        for member in ["records", "by_rtype", "record_sizes", "first_ts_event", "last_ts_event", "publishers"]
        {
            assert_eq!(found[member], expected[member], "{file}: {member}");
        }
        for member in ["actions", "sides", "flags", "first_ts_recv", "last_ts_recv", "first_sequence"] {
            if expected.get(member).is_some_and(|value| !value.is_null()) {
                assert_eq!(found[member], expected[member], "{file}: {member}");
            }
        }
        assert_eq!(found["bytes_consumed"], expected["decompressed_bytes"], "{file}");
        let decoded = |report: &Value| report["records_decoded"].as_array().unwrap().clone();
        assert!(decoded(&found).len() == 2 && !decoded(expected).is_empty());
        for (found, expected) in decoded(&found).iter().zip(decoded(expected)) {
            assert_eq!(*found, expected, "{file}");
        }
        assert_eq!(found["metadata"]["metadata_length"], expected["metadata"]["metadata_length"], "{file}");
        if let Some(traded) = expected["volume_by_instrument"].as_object() {
            for (number, volume) in traded {
                let number: u64 = number.parse().unwrap();
                let of = |symbol: &&Value| symbol["instrument"] == number;
                let symbol = found["symbols"].as_array().unwrap().iter().find(of).unwrap();
                assert_eq!(symbol["volume"], *volume, "{file}");
            }
        }
    }
}

#[test]
fn names_come_from_metadata_and_books_are_shown() {
    let folder = "dbn-cme-opra";
    let Some(path) = shared(&format!("{folder}/orderbooks_mbo_2024-05-08.dbn.zst")) else { return };
    let expected = &expected(&format!("{folder}/expected.json")).unwrap()["files"]["orderbooks_mbo_2024-05-08.dbn.zst"]
        ["books"]["5602"];
    let found = report(&inspect(&path, &["--format", "json", "--symbol", "ESM4"]));
    let [symbol] = found["symbols"].as_array().unwrap().as_slice() else { panic!("one instrument") };
    assert_eq!(symbol["name"], "ESM4");
    assert_eq!(symbol["book"], json!({ "bids": expected[0], "asks": expected[1] }));
    assert_eq!((&symbol["bid"], &symbol["ask"]), (&expected[0][0], &expected[1][0]));
    assert_eq!(symbol["live_orders"], expected[2]);

    let unknown = inspect(&path, &["--symbol", "ESM44"]);
    let said = String::from_utf8(unknown.stderr).unwrap();
    assert!(unknown.status.success() && said.contains("nothing is called ESM44; there is ESM4"), "{said}");
    let output = inspect(&path, &["--symbol", "ESM4", "--levels", "1"]);
    let said = String::from_utf8(output.stdout).unwrap();
    for part in [
        "DBN version 1, GLBX.MDP3, schema mbo, from 2024-05-08 00:00:00.000000000",
        "mbo      0xA0    13,796",
        "5214 × 28",
        "5214.25 × 17",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_damaged_file_is_read_up_to_the_damage_and_says_where_it_is() {
    let Some(path) = shared("dbn-databento/test_data.mbo.v3.dbn") else { return };
    let whole = std::fs::read(path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged.dbn");
    // Two records of 56 bytes after 360 bytes of metadata.
    let mut wrong_length = whole.clone();
    wrong_length[416] = 15;
    for (bytes, records, said) in [
        (&whole[..470], 1, "damaged at byte 416: the file ends after 54 of 56 bytes"),
        (
            &wrong_length[..],
            1,
            "damaged at byte 416: a record of kind mbo (0xa0) with 60 bytes; 56 are expected",
        ),
    ] {
        std::fs::write(&damaged, bytes).unwrap();
        let output = inspect(&damaged, &["--format", "json"]);
        assert_eq!(output.status.code(), Some(1));
        let found = report(&output);
        assert_eq!((&found["records"], &found["error"]), (&json!(records), &json!(said)));
        assert!(String::from_utf8(output.stderr).unwrap().contains(&format!("error: damaged.dbn: {said}")));
    }
    let mut version = whole;
    version[3] = 4;
    std::fs::write(&damaged, version).unwrap();
    let output = inspect(&damaged, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("DBN version 4; versions 1 to 3 are read"), "{said}");
}

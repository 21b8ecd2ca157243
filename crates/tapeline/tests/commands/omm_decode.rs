//! `tapeline omm decode`, through the real binary.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::shared_data;

/// An update of stream 3: BID 39.91, BIDSIZE 10.
const UPDATE: &str = "0009 0406 0000 0003 00 04 01  08 0002 0016 03 0c0f97 001e 02 0e0a";
const SHOWN: &str = "UPDATE MarketPrice stream 3
  update type QUOTE
  FIELD_LIST
    22 BID = 39.91
    30 BIDSIZE = 10
";

fn decode(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.args(["omm", "decode"]).args(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that does not read its input is no failure of this test.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn bytes() -> Vec<u8> {
    let digits: Vec<u8> =
        UPDATE.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn a_message_in_any_form() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("message.bin");
    std::fs::write(&file, bytes()).unwrap();
    let packed = UPDATE.replace(' ', "");
    for (arguments, input) in [
        (vec![UPDATE], &b""[..]),
        (vec![packed.as_str()], b""),
        (vec![file.to_str().unwrap()], b""),
        (vec![], UPDATE.as_bytes()),
        (vec![], &bytes()),
    ] {
        let output = decode(&arguments, input);
        assert_eq!(text(output.stdout), SHOWN, "{arguments:?} {}", text(output.stderr));
        assert!(output.status.success());
    }
    let lines = format!("{packed}\n{packed}\n");
    assert_eq!(text(decode(&["--lines"], lines.as_bytes()).stdout), SHOWN.repeat(2));
}

#[test]
fn as_json_and_with_another_dictionary() {
    let line = |arguments: &[&str]| -> Value {
        serde_json::from_slice(&decode(&[&[UPDATE, "--format", "json"], arguments].concat(), b"").stdout)
            .unwrap()
    };
    let shown = line(&[]);
    assert_eq!((&shown["event"], &shown["stream_id"]), (&"update".into(), &3.into()));
    assert_eq!((&shown["fields"]["BID"], &shown["fields"]["BIDSIZE"]), (&39.91.into(), &10.into()));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fields");
    std::fs::write(&file, "OFFER \"OFFER\" 22 NULL PRICE 17 REAL64 7\n").unwrap();
    let shown = line(&["--dictionary", file.to_str().unwrap()]);
    assert_eq!((&shown["fields"]["OFFER"], &shown["fields"]["30"]), (&39.91.into(), &"0e0a".into()));
}

#[test]
fn json_says_what_it_is_as_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("texts");
    let update = r#"{"ID":3,"Type":"Update","UpdateType":"Quote","Fields":{"BID":39.91,"BIDSIZE":10}}"#;
    std::fs::write(&file, update).unwrap();
    for (arguments, input) in
        [(vec![update], ""), (vec![file.to_str().unwrap()], ""), (vec![], update), (vec!["--lines"], update)]
    {
        let output = decode(&arguments, input.as_bytes());
        assert_eq!(text(output.stdout), SHOWN, "{arguments:?} {}", text(output.stderr));
        assert!(output.status.success());
    }
    let several =
        format!(r#"[{update},{{"Type":"Ping"}},{{"ID":4}},{{"ID":0,"Type":"Error","Text":"bad"}}]"#);
    let output = decode(&[&several], b"");
    assert_eq!(text(output.stdout), format!("{SHOWN}Ping\nError bad\n"));
    assert!(!output.status.success() && text(output.stderr).contains("Missing required key 'Key'"));
    let output = decode(&["--format", "json", &several], b"");
    let lines = text(output.stdout);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["update", "ping", "error"]);
    assert_eq!(lines[0]["fields"]["BID"], 39.91);
    let output = decode(&[r#"{"ID":3,"Key":"#], b"");
    assert!(!output.status.success() && text(output.stderr).contains("at byte"));
}

#[test]
fn a_container_by_itself() {
    let output = decode(&["--type", "field-list", "08 0001 0016 03 0c0f97"], b"");
    assert_eq!(text(output.stdout), "FIELD_LIST\n  22 BID = 39.91\n");
    let output = decode(&["--type", "fieldlists", "00"], b"");
    assert!(text(output.stderr).contains("'fieldlists' is not a container"));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let refused = |arguments: &[&str], input: &[u8], expected: &str| {
        let output = decode(arguments, input);
        let talk = text(output.stderr);
        assert!(!output.status.success() && talk.contains(expected), "{talk}");
    };
    refused(&["000904"], b"", "of 3 bytes of a MSG");
    refused(&["0g"], b"", "'g' at character 2");
    refused(&["012"], b"", "odd");
    refused(&[], b"", "standard input is empty");
    refused(&["--lines"], b"000904\n", "standard input:1: malformed");
    refused(&["00", "--dictionary", "/nonexistent"], b"", "cannot read /nonexistent");
    // The readable part is shown; the error names the position of the rest.
    let output = decode(&[&UPDATE[..UPDATE.len() - 2]], b"");
    assert!(text(output.stdout).contains("22 BID = 39.91\n    <malformed"));
}

#[test]
fn dictionaries_that_contradict_themselves_are_refused() {
    let Some(folder) = shared_data::shared("refinitiv/negative") else { return };
    for (name, expected) in [
        ("RDMFieldDictionaryDuplicateFid", "RDMFieldDictionaryDuplicateFid"),
        ("RDMFieldDictionaryInvalidRWFType", "RDMFieldDictionaryInvalidRWFType"),
    ] {
        let file = folder.join(name);
        let output = decode(&[UPDATE, "--dictionary", file.to_str().unwrap()], b"");
        let talk = text(output.stderr);
        assert!(!output.status.success() && talk.contains(expected) && talk.contains("line"), "{talk}");
    }
}

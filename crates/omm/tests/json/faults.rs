//! What is refused, in which words and where.

use tapeline_omm::json::{Fault, JsonProblem, Packed, WriteError};
use tapeline_omm::rwf::MessageView;

use crate::json::texts::converter;

/// The fault of a text whose first message is at fault.
fn fault(text: &str) -> Fault {
    let mut room = Vec::new();
    match Packed::parse(text) {
        Ok(mut messages) => converter().read(&messages.next().unwrap(), &mut room).expect_err(text),
        Err(fault) => fault,
    }
}

#[test]
fn each_problem_in_its_words_at_its_place() {
    for (text, words, at, id) in [
        ("5", "JSON Converter parse error: expected a message or an array of messages", "5", 0),
        (r#"{"ID":5,}"#, "JSON Converter parse error: expected the name of a member", "}", 0),
        (r#"{"Key":{}}"#, "JSON Missing required key 'ID'", r#"{"Key""#, 0),
        (r#"{"ID":5}"#, "JSON Missing required key 'Key'", r#"{"ID""#, 5),
        (
            r#"{"ID":"5","Key":{}}"#,
            "JSON Converter Token Type error: Expected 'PRIMITIVE' for key 'ID' Received 'STRING'",
            r#""5""#,
            0,
        ),
        (
            r#"{"ID":5,"Type":"Nope"}"#,
            "JSON Unexpected Value. Received 'Nope' for key 'Type'",
            r#""Nope""#,
            5,
        ),
        (r#"{"ID":5,"Type":9}"#, "JSON Unexpected Value. Received '9' for key 'Type'", "{", 5),
        (
            r#"{"ID":5,"Type":"Update","Fields":{"X":1}}"#,
            "JSON Unexpected FID. Received 'X' for key 'Fields'",
            "1}",
            5,
        ),
        (
            r#"{"ID":5,"Type":"Update","Fields":{"INT":1.0}}"#,
            "JSON Unexpected Value. Received '1.0' for key 'INT'",
            "1.0",
            5,
        ),
        (
            r#"{"ID":5,"Type":"Update","Fields":{"ENUM":"NYS"}}"#,
            "JSON Unexpected Value. Received 'NYS' for key 'ENUM'",
            r#""NYS""#,
            5,
        ),
        (
            r#"{"ID":5,"Type":"Update","Fields":{"ARRAY":{"Type":"Int","Data":[1,"a"]}}}"#,
            "JSON Mixed Types in OMM Array: Received 'PRIMITIVE' and 'STRING' for key 'Data'",
            r#""a"]"#,
            5,
        ),
        (
            r#"{"ID":5,"Type":"Generic","Fields":{},"Elements":{}}"#,
            "JSON Unexpected Key. Received 'Elements'",
            "{}}",
            5,
        ),
        (
            r#"{"ID":5,"Type":"Generic","Map":{"KeyType":"Int","Entries":[{"Action":"Add","Key":1,"Fields":{}},{"Action":"Add","Key":2,"Elements":{}}]}}"#,
            "JSON Unexpected Key. Received 'Elements'",
            r#"{"Action":"Add","Key":2"#,
            5,
        ),
        (
            r#"{"ID":5,"Type":"Post","PostUserInfo":{"Address":"127.0.0.1/net","UserID":1}}"#,
            "JSON Unexpected Value. Received '127.0.0.1/net' for key 'Address'",
            r#""127"#,
            5,
        ),
    ] {
        let fault = fault(text);
        assert_eq!(fault.problem.to_string(), words, "{text}");
        assert_eq!(fault.offset, text.find(at).unwrap(), "{text}: {fault}");
        assert_eq!(fault.id, id, "{text}");
    }
}

#[test]
fn unknown_members_and_fields_are_as_the_settings_say() {
    let text = r#"{"ID":5,"Nope":1,"Type":"Update","Fields":{"X":1,"BID":2}}"#;
    let incoming = Packed::parse(text).unwrap().next().unwrap();
    let (mut room, mut converter) = (Vec::new(), converter());
    converter.settings.catch_unknown_fields = false;
    assert!(converter.read(&incoming, &mut room).is_ok());
    converter.settings.catch_unknown_members = true;
    let fault = converter.read(&incoming, &mut room).unwrap_err();
    assert_eq!(fault.problem, JsonProblem::Key("Nope".to_owned()));
}

/// Containers in containers, `depth` of them.
fn nested(depth: usize) -> String {
    let open = r#""Series":{"Entries":[{"#.repeat(depth);
    format!(r#"{{"ID":5,"Type":"Generic",{open}{}}}"#, "}]}".repeat(depth))
}

#[test]
fn depth_is_bounded_both_ways() {
    let mut room = Vec::new();
    let deepest = nested(16);
    let incoming = Packed::parse(&deepest).unwrap().next().unwrap();
    let rwf = converter().read(&incoming, &mut room).unwrap();
    let mut out = Vec::new();
    assert!(converter().write(&MessageView::parse(rwf).unwrap(), &mut out).is_ok());
    assert!(fault(&nested(17)).problem.to_string().contains("nested too deep"));
    assert!(fault(&nested(100_000)).problem.to_string().contains("too deeply nested"));

    // A series of series without end.
    let mut rwf = vec![0, 8, 7, 6, 0, 0, 0, 3, 0, 10];
    for level in (0..40_u16).rev() {
        rwf.extend([0, 10, 0, 1, 0xFE]);
        rwf.extend((level * 7).to_be_bytes());
    }
    let written = converter().write(&MessageView::parse(&rwf).unwrap(), &mut out);
    assert_eq!(written, Err(WriteError::TooDeep(16)));
}

#[test]
fn text_is_bounded() {
    let mut converter = converter();
    converter.settings.most_text = 1_000;
    // A series of 65,535 entries of no data in four bytes.
    let rwf = [0, 8, 7, 6, 0, 0, 0, 3, 0, 10, 0, 0, 0xFF, 0xFF];
    let mut out = b"[".to_vec();
    let written = converter.write(&MessageView::parse(&rwf).unwrap(), &mut out);
    assert_eq!(written, Err(WriteError::TooLong(1_000)));
    assert_eq!(out, b"[");
    assert!(out.capacity() < 4_096, "{}", out.capacity());
}

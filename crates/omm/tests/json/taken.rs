//! The 238 texts that LSEG's converter was given: what it took and refused, and what we do.

use serde_json::Value as Json;
use tapeline_omm::json::{Converter, Incoming, MessageKind, Packed};
use tapeline_omm::rwf::MessageView;

use crate::json::equal::difference;
use crate::json::vectors::{SERVICES, dictionary, records, text_of, unhex};

/// What a text comes to: RWF, or the kind of message that has none.
type Taken = Result<Vec<Result<Vec<u8>, MessageKind>>, String>;

fn taken(converter: &Converter<'_>, text: &str) -> Taken {
    let one = |incoming: Incoming<'_>| match incoming.kind() {
        MessageKind::Message => {
            let mut room = Vec::new();
            Ok(Ok(converter.read(&incoming, &mut room).map_err(|fault| fault.to_string())?.to_vec()))
        }
        kind => Ok(Err(kind)),
    };
    Packed::parse(text).map_err(|fault| fault.to_string())?.map(one).collect()
}

fn theirs(record: &Json) -> Option<Vec<Result<Vec<u8>, MessageKind>>> {
    if record.get("error").is_some() {
        return None;
    }
    let messages = record.get("messages").and_then(Json::as_array).cloned().unwrap_or_default();
    let one = |message: &Json| match (message.get("hex"), message["kind"].as_str()) {
        (Some(hex), _) => Ok(unhex(hex.as_str().unwrap())),
        (None, Some("ping")) => Err(MessageKind::Ping),
        (None, Some("pong")) => Err(MessageKind::Pong),
        (None, _) => Err(MessageKind::Error),
    };
    Some(messages.iter().map(one).collect())
}

#[test]
fn texts_are_taken_as_their_converter_takes_them() {
    let Some(dictionary) = dictionary() else { return };
    let converter = Converter::new(&dictionary, &SERVICES);
    let (mut bytes, mut meaning, mut refused, mut kinds) = (0, 0, 0, 0);
    let (mut only_ours, mut only_theirs, mut otherwise) = (Vec::new(), Vec::new(), Vec::new());
    let records = records("json-to-rwf").unwrap();
    for record in &records {
        let number = record["n"].as_u64().unwrap();
        let text = record["jsonText"].as_str().unwrap();
        match (taken(&converter, text), theirs(record)) {
            (Err(_), None) => refused += 1,
            (Ok(_), None) => only_ours.push(number),
            (Err(_), Some(_)) => only_theirs.push(number),
            (Ok(ours), Some(theirs)) => {
                assert_eq!(ours.len(), theirs.len(), "{text}");
                for pair in ours.iter().zip(&theirs) {
                    match pair {
                        (Err(ours), Err(theirs)) if ours == theirs => kinds += 1,
                        (Ok(ours), Ok(theirs)) if ours == theirs => bytes += 1,
                        (Ok(ours), Ok(theirs)) if same(&converter, ours, theirs) => meaning += 1,
                        _ => otherwise.push(number),
                    }
                }
            }
        }
    }
    // Its own mistakes: a batch and a Close of several ids are too short for its encoder, it reads no view of names, no
    // number of 14 places or above 10^9, and no element of the type that it writes without a value. Requests with several
    // ids its specification has, and it has not.
    assert_eq!(only_ours, [27, 33, 34, 45, 116, 117, 120, 207]);
    // Unknown display texts, which it makes blank; characters that ASCII does not have, of which it keeps the low byte.
    assert_eq!(only_theirs, [162, 169]);
    // Flags and QoS it loses (13, 52, 61) or makes up (230), whole numbers that become 0 (92, 101), dates and times that
    // become others (149, 150, 152), a display text of blanks (163), UTF-8 without its escape (172), an array that it cannot
    // read itself (178).
    assert_eq!(otherwise, [13, 52, 61, 92, 101, 149, 150, 152, 163, 172, 178, 230]);
    assert_eq!((bytes, meaning, refused, kinds, records.len()), (51, 126, 36, 3, 238));
}

/// Whether two messages have the same members and values; lengths may be written in other forms.
fn same(converter: &Converter<'_>, ours: &[u8], theirs: &[u8]) -> bool {
    let mut out = Vec::new();
    if converter.write(&MessageView::parse(theirs).unwrap(), &mut out).is_err() {
        return false;
    }
    let theirs: Json = serde_json::from_slice(&out).unwrap();
    let ours: Json = serde_json::from_str(&text_of(converter, ours)).unwrap();
    difference(&ours, &theirs).is_none()
}

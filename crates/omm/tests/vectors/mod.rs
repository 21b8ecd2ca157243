//! The golden vectors: every message decodes to what the reference decoder says of it, and encodes to the same
//! bytes again.
use crate::shared_data;

mod again;
mod captures;
mod headers;
mod trees;
mod values;

use again::{Again, Form};
use serde_json::Value as Json;
use shared_data::shared_text;
use tapeline_omm::rwf::{DataState, DataType, Map, MessageView, StateCode, StreamState, Vector};
use tapeline_omm::{Dictionary, Fid, FieldList, FieldListEncoder, Real, State};
use trees::{Check, Tally};

/// One record of a vector file.
struct Record {
    name: String,
    bytes: Vec<u8>,
    json: Json,
}

impl Record {
    /// What the reference decoder says; `None` where it is wrong or gives up.
    fn decoded(&self) -> Option<&Json> {
        self.json.get("decoded").filter(|_| !self.is_quirk())
    }

    fn is_quirk(&self) -> bool {
        self.json.get("quirk").is_some()
    }
}

/// The records of a vector file, with the dictionary that they were made with.
fn vectors(file: &str) -> Option<(Vec<Record>, Dictionary)> {
    let text = shared_text(&format!("protocol/vectors/{file}.json"))?;
    let dictionary = Dictionary::parse(&shared_text("protocol/dictionary/RDMFieldDictionary")?).unwrap();
    // A number that JSON has not; it stands in a member that is not looked at here.
    let text = text.replace(":NaN", ":null");
    let json: Json = serde_json::from_str(&text).unwrap();
    let records = json["records"].as_array().unwrap().iter().map(|record| Record {
        name: record["name"].as_str().unwrap().to_owned(),
        bytes: unhex(record["hex"].as_str().unwrap()),
        json: record.clone(),
    });
    Some((records.collect(), dictionary))
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "odd number of digits");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// A message with its header written anew and its payload as it was.
fn encode_header_again(message: &MessageView<'_>) -> Vec<u8> {
    let mut out = vec![0; 4096];
    let len = message.header().unwrap().encode(&mut out).unwrap();
    out.truncate(len);
    out.extend(message.payload());
    out
}

/// The fields of a list written anew, each from its decoded value.
fn encode_fields_again(list: &FieldList<'_>, dictionary: &Dictionary) -> Vec<u8> {
    let mut out = vec![0; 4096];
    let mut encoder = FieldListEncoder::new(&mut out).unwrap();
    for field in list.iter() {
        let field = field.unwrap();
        values::encode_again(&mut encoder, &field, dictionary.data_type(field.fid).unwrap());
    }
    let len = encoder.finish();
    out.truncate(len);
    out
}

fn check_fields(name: &str, list: &FieldList<'_>, payload: &Json, dictionary: &Dictionary) -> usize {
    let mut check = Check::new(name, dictionary);
    check.field_list(list, payload);
    assert_eq!(list.find(Fid(31_999)), Ok(None));
    check.tally.fields
}

/// The reference encoder gives a long state a length of the wrong kind, `80 CC` for 204, which reads as 128. What it
/// meant is behind that; we write the right length.
fn check_state_of_wrong_length(message: &MessageView<'_>) {
    let meant = &message.payload()[7..];
    let state = State::decode(meant).unwrap().unwrap();
    assert_eq!((state.stream, state.data), (StreamState::CLOSED, DataState::SUSPECT));
    assert_eq!((state.code, state.text), (StateCode::NOT_FOUND, &[b'g'; 200][..]));
    let field = FieldList::parse(message.payload()).unwrap().iter().next().unwrap().unwrap();
    assert_ne!(field.state(), Ok(Some(state)));
    let mut out = [0; 256];
    let mut list = FieldListEncoder::new(&mut out).unwrap();
    list.state(field.fid, &state).unwrap();
    let len = list.finish();
    assert_eq!(out[..6], [8, 0, 1, 0xFF, 0xF6, 204]);
    assert_eq!(out[6..len], *meant);
}

#[test]
fn primitives() {
    let Some((records, dictionary)) = vectors("codec-primitives") else { return };
    let (mut same, mut quirks, mut fields) = (0, 0, 0);
    for record in &records {
        let message = MessageView::parse(&record.bytes).unwrap();
        assert_eq!(message.container(), DataType::FIELD_LIST);
        let list = FieldList::parse(message.payload()).unwrap();
        let Some(decoded) = record.decoded() else {
            assert_eq!(record.name, "STATE text 200");
            check_state_of_wrong_length(&message);
            quirks += 1;
            continue;
        };
        headers::check(&record.name, &message, decoded);
        fields += check_fields(&record.name, &list, &decoded["payload"], &dictionary);
        assert_eq!(encode_header_again(&message), record.bytes, "{}", record.name);
        let again = encode_fields_again(&list, &dictionary);
        assert_eq!(again, message.payload(), "{}", record.name);
        same += 1;
    }
    assert_eq!((records.len(), same, quirks, fields), (204, 203, 1, 218));
}

#[test]
fn messages() {
    let Some((records, dictionary)) = vectors("codec-messages") else { return };
    let (mut lists, mut nested) = (0, 0);
    for record in &records {
        let message = MessageView::parse(&record.bytes).unwrap();
        let decoded = record.decoded().unwrap();
        headers::check(&record.name, &message, decoded);
        assert_eq!(encode_header_again(&message), record.bytes, "{}", record.name);
        let (mut message, mut decoded) = (message, decoded);
        if message.container() == DataType::MSG {
            message = MessageView::parse(message.payload()).unwrap();
            decoded = &decoded["payload"];
            headers::check(&record.name, &message, decoded);
            nested += 1;
        }
        if message.container() == DataType::FIELD_LIST {
            let list = FieldList::parse(message.payload()).unwrap();
            check_fields(&record.name, &list, &decoded["payload"], &dictionary);
            assert_eq!(encode_fields_again(&list, &dictionary), message.payload(), "{}", record.name);
            lists += 1;
        }
        for cut in 0..message.header_len().min(record.bytes.len()) {
            assert!(MessageView::parse(&record.bytes[..cut]).is_err(), "{} cut at {cut}", record.name);
        }
    }
    assert_eq!((records.len(), lists, nested), (47, 5, 1));
}

/// The reference encoder gives a long key a length of the wrong kind, which its own decoder does not read: `80 6B…` for
/// 128 bytes. We write the right one, which is that of the record beside it.
fn check_key_of_wrong_length(record: &Record, records: &[Record]) {
    let right = record.name.replace("given as a value", "given pre-encoded");
    let right = records.iter().find(|record| record.name == right).unwrap();
    let message = MessageView::parse(&right.bytes).unwrap();
    let right = Map::parse(message.payload()).unwrap();
    let entry = right.iter().next().unwrap().unwrap();
    assert_eq!(entry.key, vec![b'k'; entry.key.len()]);
    assert!(record.name.contains(&format!("of {} bytes", entry.key.len())), "{}", record.name);
    let wrong = MessageView::parse(&record.bytes).unwrap();
    let wrong = Map::parse(wrong.payload()).unwrap();
    assert!(wrong.iter().all(|found| found != Ok(entry)), "{}", record.name);
}

/// Reads a message, compares all of it, writes it again from the views in both forms of lengths, and compares what that
/// reads as.
pub(crate) fn both_ways(check: &mut Check<'_>, bytes: &[u8], decoded: &Json) -> Outcome {
    let message = MessageView::parse(bytes).unwrap();
    check.message(&message, decoded);
    let mut outcome = Outcome::Alike;
    for form in [Form::Short, Form::InPlace] {
        let again = Again { dictionary: check.dictionary, form }.message(&message).unwrap();
        if again == bytes {
            outcome = Outcome::Same;
            continue;
        }
        // Lengths of another form change the size of the payload, which is said too.
        let mut decoded = decoded.clone();
        let again = MessageView::parse(&again).unwrap();
        trees::say_payload_of(&mut decoded, &again);
        Check::new(check.place.as_str(), check.dictionary).message(&again, &decoded);
    }
    let _ = message.outline(check.dictionary).to_string();
    outcome
}

/// How what was written again compares with what was read.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// One of the two forms gives the same bytes.
    Same,
    /// Both read the same.
    Alike,
}

#[test]
fn containers() {
    let Some((records, dictionary)) = vectors("codec-containers") else { return };
    let (mut quirks, mut same) = (0, 0);
    let mut tally = Tally::default();
    for record in &records {
        let Some(decoded) = record.decoded() else {
            check_key_of_wrong_length(record, &records);
            quirks += 1;
            continue;
        };
        let mut check = Check::new(record.name.as_str(), &dictionary);
        same += usize::from(both_ways(&mut check, &record.bytes, decoded) == Outcome::Same);
        tally.add(check.tally);
    }
    assert_eq!((records.len(), quirks), (52, 5));
    let expected = Tally { messages: 48, containers: 78, entries: 43, fields: 24, elements: 11 };
    assert_eq!((tally, same), (expected, 47));
}

#[test]
fn rmtes() {
    let Some((records, dictionary)) = vectors("codec-rmtes") else { return };
    for record in &records {
        let message = MessageView::parse(&record.bytes).unwrap();
        let decoded = record.decoded().unwrap();
        let list = FieldList::parse(message.payload()).unwrap();
        check_fields(&record.name, &list, &decoded["payload"], &dictionary);
        let is_partial = decoded["payload"]["fields"][0]["rmtesPartial"] == true;
        assert_eq!(list.iter().next().unwrap().unwrap().rmtes().is_partial(), is_partial, "{}", record.name);
        assert_eq!(encode_fields_again(&list, &dictionary), message.payload(), "{}", record.name);
    }
    assert_eq!(records.len(), 6);
}

/// Set data by every kind of definition, also those that the reference decoder does not find.
#[test]
fn set_definitions() {
    let Some((records, dictionary)) = vectors("codec-set-definitions") else { return };
    let (mut unwritten, mut same) = (0, 0);
    let mut tally = Tally::default();
    for record in &records {
        let mut decoded = record.json["decoded"].clone();
        if record.is_quirk() {
            if record.name.starts_with("REAL_") {
                check_reals_of_sets(record);
                unwritten += 1;
                continue;
            }
            let meant = &record.json["expectedPayload"];
            if meant.is_null() {
                check_second_set(record);
                unwritten += 1;
                continue;
            }
            decoded = record.json["decodedByEtaJava"].clone();
            decoded["payload"] = meant.clone();
        }
        let mut check = Check::new(record.name.as_str(), &dictionary);
        same += usize::from(both_ways(&mut check, &record.bytes, &decoded) == Outcome::Same);
        tally.add(check.tally);
    }
    assert_eq!((records.len(), unwritten), (16, 4));
    // Room for definitions is reserved there: the long form of their length.
    let expected = Tally { messages: 12, containers: 35, entries: 23, fields: 106, elements: 4 };
    assert_eq!((tally, same), (expected, 0));
}

/// REAL_4RB and REAL_8RB are read as well as they can be.
fn check_reals_of_sets(record: &Record) {
    let message = MessageView::parse(&record.bytes).unwrap();
    let map = Map::parse(message.payload()).unwrap();
    let sets = map.sets().unwrap();
    let values: Vec<_> = map
        .iter()
        .map(|entry| {
            let list = FieldList::parse_with(entry.unwrap().data, &sets).unwrap();
            let field = list.typed().next().unwrap();
            field.and_then(|(field, set_type)| field.value(set_type.unwrap())).map(|value| value.to_string())
        })
        .collect();
    let read: Vec<_> = values.iter().map(|value| value.as_deref().unwrap_or("unreadable")).collect();
    let expected: &[&str] = match record.name.as_str() {
        // Of 128, 255 and 40,000 it wrote a size that is one too small.
        "REAL_4RB" => &["0.01", "1.27", "0.00", "0.00", "123.45", "1.56", "1000000", "2000000000", ""],
        "REAL_8RB" => &["unreadable", "123.45", "unreadable", "unreadable", "1152921504606846976", ""],
        _ => &["unreadable"],
    };
    assert_eq!(read, expected, "{}", record.name);
}

/// Two definitions in one vector: each list finds its own.
fn check_second_set(record: &Record) {
    let message = MessageView::parse(&record.bytes).unwrap();
    let vector = Vector::parse(message.payload()).unwrap();
    let sets = vector.sets().unwrap();
    let mut lists = vector.iter().map(|entry| FieldList::parse_with(entry.unwrap().data, &sets).unwrap());
    lists.next().unwrap();
    let second: Vec<_> = lists.next().unwrap().iter().map(Result::unwrap).collect();
    assert_eq!((second[0].fid, second[0].real()), (Fid(25), Ok(Some(Real::integer(2)))));
    assert_eq!((second[1].fid, second[1].uint()), (Fid(1021), Ok(Some(9))));
}

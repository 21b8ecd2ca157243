//! The golden vectors: every message decodes to what the reference decoder says of it, and encodes to the same
//! bytes again.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../shared_data/mod.rs"]
mod shared_data;

mod captures;
mod headers;
mod maps;
mod values;

use serde_json::Value as Json;
use shared_data::shared_text;
use tapeline_omm::rwf::{DataState, DataType, Map, MessageView, StateCode, StreamState};
use tapeline_omm::{Dictionary, Fid, FieldList, FieldListEncoder, State};

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
    let expected = payload["fields"].as_array().unwrap();
    let fields: Vec<_> = list.iter().map(Result::unwrap).collect();
    assert_eq!(fields.len(), expected.len(), "{name}");
    for (field, expected) in fields.iter().zip(expected) {
        assert_eq!(i64::from(field.fid.0), expected["fid"].as_i64().unwrap(), "{name}");
        let definition = dictionary.field(field.fid).unwrap();
        assert_eq!(definition.name.as_ref(), expected["name"], "{name}");
        assert_eq!(definition.data_type.name().unwrap(), expected["dataType"], "{name}");
        if definition.data_type.is_container() {
            continue;
        }
        // Long values are cut in the files.
        let hex = expected["hex"].as_str().unwrap();
        if let Some((front, _)) = hex.split_once("...") {
            assert!(field.data.starts_with(&unhex(&front[..front.len() & !1])), "{name}");
            continue;
        }
        assert_eq!(field.data, unhex(hex), "{name}");
        let value = field.value(definition.data_type).unwrap();
        values::check(name, value, expected);
        assert_eq!(list.find(field.fid).unwrap().unwrap().fid, field.fid);
    }
    assert_eq!(list.find(Fid(31_999)), Ok(None));
    fields.len()
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

/// Headers of every record; field lists where they are the payload or stand in a field; maps.
#[test]
fn containers() {
    let Some((records, dictionary)) = vectors("codec-containers") else { return };
    let (mut lists, mut maps, mut quirks, mut entries) = (0, 0, 0, 0);
    for record in &records {
        let message = MessageView::parse(&record.bytes).unwrap();
        assert_eq!(encode_header_again(&message), record.bytes, "{}", record.name);
        let Some(decoded) = record.decoded() else {
            check_key_of_wrong_length(record, &records);
            quirks += 1;
            continue;
        };
        headers::check(&record.name, &message, decoded);
        if message.container() == DataType::MAP {
            let map = Map::parse(message.payload()).unwrap();
            entries += maps::check(&record.name, &map, &decoded["payload"], &dictionary).0;
            assert!(maps::is_same(&map, message.payload()), "{}", record.name);
            maps += 1;
        }
        if message.container() == DataType::FIELD_LIST {
            let list = FieldList::parse(message.payload()).unwrap();
            check_fields(&record.name, &list, &decoded["payload"], &dictionary);
            let info = &decoded["payload"];
            let of_list =
                list.info().map(|info| (i64::from(info.dictionary_id), i64::from(info.list_number)));
            let expected = info["dictionaryId"].as_i64().zip(info["fieldListNum"].as_i64());
            assert_eq!(of_list, expected, "{}", record.name);
            lists += 1;
        }
    }
    assert_eq!((records.len(), lists, maps, quirks, entries), (52, 4, 33, 5, 27));
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

/// Field lists with set data: the standard data beside it is reached, the rest is handed out as it is.
#[test]
fn set_data_without_definitions() {
    let Some((records, _)) = vectors("codec-set-definitions") else { return };
    assert_eq!(records.len(), 16);
    let mut maps = 0;
    for record in &records {
        let message = MessageView::parse(&record.bytes).unwrap();
        assert_eq!(encode_header_again(&message), record.bytes, "{}", record.name);
        if message.container() == DataType::MAP {
            let map = Map::parse(message.payload()).unwrap();
            assert!(map.head().set_definitions.is_some() && maps::reads_alike(&map), "{}", record.name);
            maps += 1;
        }
    }
    assert_eq!(maps, 14);
    let record = records.iter().find(|record| record.name == "set data plus standard data").unwrap();
    let entry = record.bytes.windows(3).position(|window| window == [0x0A, 0x80, 9]).unwrap();
    let list = FieldList::parse(&record.bytes[entry..]).unwrap();
    assert_eq!(list.set_data().unwrap().data, unhex("030c0fa00101020e64"));
    assert_eq!(list.iter().filter(Result::is_ok).count(), 2);
}

//! A map against what the reference decoder says of it, and written again.

use serde_json::Value as Json;
use tapeline_omm::rwf::{DataType, Map, MapEncoder, MapEntry, MapHead};
use tapeline_omm::{Dictionary, FieldList, Refused};

use super::{check_fields, unhex, values};

/// Compares a map with its description; returns how many entries and fields it holds. Parts that the files show cut
/// are passed over.
pub(crate) fn check(name: &str, map: &Map<'_>, said: &Json, dictionary: &Dictionary) -> (usize, usize) {
    let head = map.head();
    let has = |flag: &str| said["flags"].as_array().unwrap().iter().any(|said| said == flag);
    assert_eq!(head.key_type.name().unwrap(), said["keyPrimitiveType"], "{name}");
    assert_eq!(head.container.name().unwrap(), said["containerType"], "{name}");
    assert_eq!(head.key_fid.map(|fid| i64::from(fid.0)), said["keyFieldId"].as_i64(), "{name}");
    assert_eq!(head.count_hint.map(u64::from), said["totalCountHint"].as_u64(), "{name}");
    assert_eq!(head.permission_data, has("HAS_PER_ENTRY_PERM_DATA"), "{name}");
    assert_eq!(head.summary.is_some(), has("HAS_SUMMARY_DATA"), "{name}");
    let definitions = said["setDefsHex"].as_str().map(unhex);
    assert_eq!(head.set_definitions.map(<[u8]>::to_vec), definitions, "{name}");
    let mut fields = head.summary.map_or(0, |data| data_of(name, head, data, &said["summary"], dictionary));
    let entries: Vec<_> = map.iter().map(Result::unwrap).collect();
    let expected = said["entries"].as_array().unwrap();
    let is_cut = !expected.iter().all(Json::is_object);
    assert!(is_cut || expected.len() == entries.len(), "{name}");
    for (entry, expected) in entries.iter().zip(expected).take_while(|(_, expected)| expected.is_object()) {
        assert_eq!(entry.action.name().unwrap(), expected["action"], "{name}");
        assert_eq!(entry.permission_data.map(<[u8]>::to_vec), expected["permDataHex"].as_str().map(unhex));
        let key = &expected["key"];
        assert_eq!(head.key_type.name().unwrap(), key["dataType"], "{name}");
        assert_eq!(entry.key, unhex(key["hex"].as_str().unwrap()), "{name}");
        values::check(name, entry.key_value(head.key_type).unwrap(), key);
        fields += data_of(name, head, entry.data, &expected["data"], dictionary);
    }
    (entries.len(), fields)
}

/// Fields of a list without set data, and of maps inside; other containers are not opened.
fn data_of(name: &str, head: &MapHead<'_>, data: &[u8], said: &Json, dictionary: &Dictionary) -> usize {
    match head.container {
        DataType::FIELD_LIST if said.is_object() => {
            let list = FieldList::parse(data).unwrap();
            if list.set_data().is_none() { check_fields(name, &list, said, dictionary) } else { 0 }
        }
        DataType::MAP => check(name, &Map::parse(data).unwrap(), said, dictionary).1,
        _ => 0,
    }
}

/// The map written anew: its lengths in the shortest form, or in the one that is reserved for what is written in place.
pub(crate) fn encode_again(map: &Map<'_>, in_place: bool) -> Vec<u8> {
    let mut out = vec![0; 0x2_0000];
    let copy = |data: &[u8], room: &mut [u8]| -> Result<usize, Refused> {
        room[..data.len()].copy_from_slice(data);
        Ok(data.len())
    };
    let mut encoder = match (in_place, map.head().summary) {
        (true, Some(summary)) => MapEncoder::with_summary(&mut out, map.head(), |room| copy(summary, room)),
        _ => MapEncoder::new(&mut out, map.head()),
    }
    .unwrap();
    for entry in map.iter() {
        let entry = entry.unwrap();
        // The key by way of its value.
        let mut key = [0; 400];
        let mut writer = tapeline_omm::rwf::Writer::new(&mut key);
        entry.key_value(map.head().key_type).unwrap().write(&mut writer).unwrap();
        let len = writer.len();
        let key = &key[..len];
        if in_place {
            let MapEntry { action, permission_data, data, .. } = entry;
            encoder.entry_in_place(action, key, permission_data, |room| copy(data, room)).unwrap();
        } else {
            encoder.entry(&MapEntry { key, ..entry }).unwrap();
        }
    }
    let len = encoder.finish();
    out.truncate(len);
    out
}

/// Whether one of the two ways to write it gives these bytes.
pub(crate) fn is_same(map: &Map<'_>, bytes: &[u8]) -> bool {
    encode_again(map, false) == bytes || encode_again(map, true) == bytes
}

/// Whether what was written again says the same, whatever the forms of its lengths.
pub(crate) fn reads_alike(map: &Map<'_>) -> bool {
    let again = encode_again(map, false);
    let again = Map::parse(&again).unwrap();
    again.head() == map.head() && again.iter().eq(map.iter())
}

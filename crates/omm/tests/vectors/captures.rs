//! Every message of the captures between real clients and servers: header, and field list or map where that is the
//! payload.

use serde_json::Value as Json;
use tapeline_omm::rwf::{DataType, Domain, Map, MessageView};
use tapeline_omm::{Dictionary, FieldList};

use super::shared_data::{shared, shared_text};
use super::{check_fields, encode_header_again, headers, maps, unhex};

/// Bytes of an RSSL frame before its message.
const FRAME_HEADER: usize = 3;

#[test]
fn captures() {
    let Some(folder) = shared("protocol/vectors") else { return };
    let text = shared_text("protocol/dictionary/RDMFieldDictionary").unwrap();
    let dictionary = Dictionary::parse(&text).unwrap();
    let (mut cut, mut unknown, mut messages, mut same, mut lists, mut fields) = (0, 0, 0, 0, 0, 0);
    let (mut orders, mut orders_same, mut entries, mut order_fields, mut other_maps) = (0, 0, 0, 0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name.starts_with("codec") || name.starts_with("json") {
            continue;
        }
        let json: Json = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for record in json["records"].as_array().unwrap() {
            for message in record["messages"].as_array().into_iter().flatten() {
                // Without bytes of its own a message is the rest of its frame. Long ones are cut in the files.
                let own = message["hex"].as_str();
                let hex = own.unwrap_or_else(|| record["hex"].as_str().unwrap());
                if hex.contains("...") {
                    cut += 1;
                    continue;
                }
                let bytes = unhex(hex).split_off(if own.is_some() { 0 } else { FRAME_HEADER });
                let place = format!("{name}, record {}", record["n"]);
                let decoded = &message["decoded"];
                messages += 1;
                let Ok(message) = MessageView::parse(&bytes) else {
                    // Servers that were made to send a class that there is not.
                    assert_eq!(decoded["msgClassValue"], 9, "{place}");
                    unknown += 1;
                    continue;
                };
                headers::check(&place, &message, decoded);
                let again = encode_header_again(&message);
                let second = MessageView::parse(&again).unwrap();
                assert_eq!(second.header(), message.header(), "{place}");
                assert_eq!(second.payload(), message.payload(), "{place}");
                same += usize::from(again == bytes);
                if message.container() == DataType::MAP {
                    let map = Map::parse(message.payload()).unwrap();
                    let (map_entries, map_fields) =
                        maps::check(&place, &map, &decoded["payload"], &dictionary);
                    assert!(maps::reads_alike(&map), "{place}");
                    if message.domain() == Domain::MARKET_BY_ORDER {
                        orders += 1;
                        orders_same += usize::from(maps::is_same(&map, message.payload()));
                        (entries, order_fields) = (entries + map_entries, order_fields + map_fields);
                    } else {
                        other_maps += 1;
                    }
                }
                let listed = decoded["payload"]["fields"].as_array();
                if message.container() == DataType::FIELD_LIST
                    && let Some(listed) = listed
                    && listed.iter().all(Json::is_object)
                    && !listed.iter().any(is_state_of_wrong_length)
                {
                    let list = FieldList::parse(message.payload()).unwrap();
                    fields += check_fields(&place, &list, &decoded["payload"], &dictionary);
                    lists += 1;
                }
            }
        }
    }
    // Market by order to the byte; what differs in the others is the long form of lengths.
    assert_eq!((orders, orders_same, entries, order_fields, other_maps), (27, 27, 36, 196, 116));
    // The others differ in long forms of lengths alone: their headers read alike.
    assert_eq!((cut, unknown, messages, same, lists, fields), (7, 1, 1_099, 1_023, 568, 2_499));
}

/// What the reference reads of its own long state, whose length has the wrong form: states that there are not.
fn is_state_of_wrong_length(field: &Json) -> bool {
    field["dataType"] == "STATE" && field["value"]["data"] == "Unknown Data State"
}

//! Every message of the captures between real clients and servers, and every one that the vendor's JSON converter made.

use serde_json::Value as Json;
use tapeline_omm::Dictionary;
use tapeline_omm::rwf::MessageView;

use super::shared_data::{shared, shared_text};
use super::trees::{Check, Tally};
use super::{Outcome, both_ways, headers, unhex};

/// Bytes of an RSSL frame before its message.
const FRAME_HEADER: usize = 3;

#[test]
fn captures() {
    let Some(folder) = shared("protocol/vectors") else { return };
    let text = shared_text("protocol/dictionary/RDMFieldDictionary").unwrap();
    let dictionary = Dictionary::parse(&text).unwrap();
    let (mut cut, mut unknown, mut odd, mut same) = (0, 0, 0, 0);
    let mut tally = Tally::default();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name.starts_with("codec") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap().replace(":NaN", ":null");
        let json: Json = serde_json::from_str(&text).unwrap();
        for record in json["records"].as_array().unwrap() {
            for message in record["messages"].as_array().into_iter().flatten() {
                let decoded = &message["decoded"];
                if decoded.is_null() {
                    // Pings and the like, in JSON alone.
                    assert!(["ping", "pong", "error"].contains(&message["kind"].as_str().unwrap()));
                    continue;
                }
                // Without bytes of its own a message is the rest of its frame.
                let own = message["hex"].as_str();
                let hex = own.unwrap_or_else(|| record["hex"].as_str().unwrap());
                let place = format!("{name}, record {}", record["n"]);
                if let Some((front, _)) = hex.split_once("...") {
                    // Long ones are cut in the files: the header is there.
                    let bytes = unhex(&front[..front.len() & !1]);
                    headers::check_all_but_payload(&place, &MessageView::parse(&bytes).unwrap(), decoded);
                    cut += 1;
                    continue;
                }
                let bytes = unhex(hex).split_off(if own.is_some() { 0 } else { FRAME_HEADER });
                if decoded["msgClassValue"] == 9 {
                    // Servers that were made to send a class that there is not.
                    assert!(MessageView::parse(&bytes).is_err(), "{place}");
                    unknown += 1;
                    continue;
                }
                if is_misread(record, decoded) {
                    let message = MessageView::parse(&bytes).unwrap();
                    if decoded["undecodable"].is_null() {
                        headers::check(&place, &message, decoded);
                    }
                    odd += 1;
                    continue;
                }
                let mut check = Check::new(place, &dictionary);
                same += usize::from(both_ways(&mut check, &bytes, decoded) == Outcome::Same);
                tally.add(check.tally);
            }
        }
    }
    assert_eq!((cut, unknown, odd), (7, 1, 2));
    // What is not the same to the byte differs in the forms of lengths, and reads alike.
    let expected = Tally { messages: 1_296, containers: 1_539, entries: 847, fields: 2_863, elements: 2_882 };
    assert_eq!((tally, same), (expected, 1_066));
}

/// What the reference misreads of what it wrote itself: its long state, whose length has the wrong form and an
/// array from a JSON text.
fn is_misread(record: &Json, decoded: &Json) -> bool {
    let fields = decoded["payload"]["fields"].as_array();
    let is_state =
        |field: &Json| field["dataType"] == "STATE" && field["value"]["data"] == "Unknown Data State";
    fields.is_some_and(|fields| fields.iter().any(is_state))
        || !decoded["undecodable"].is_null()
        || !record["quirk"].is_null()
}

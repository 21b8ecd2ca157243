//! RWF to JSON: every message of the codec's vectors.

use serde_json::Value as Json;
use tapeline_omm::json::Converter;

use crate::json::equal::{difference, repaired};
use crate::json::vectors::{SERVICES, dictionary, name, records, text_of, unhex};

/// What LSEG's converter loses, and we do not.
pub(crate) fn restored(record: &Json, mut json: Json) -> Json {
    match name(record) {
        // It does not write this where there are no updates.
        "request, minimal: only a name, no flags" | "request, negative stream id, name of 255 bytes" => {
            json["KeyInUpdates"] = false.into();
        }
        // Of a refresh without any flag it says none of the three.
        "refresh, minimal" | "refresh, group id of four bytes" => {
            for flag in ["Solicited", "Complete", "ClearCache"] {
                json[flag] = false.into();
            }
        }
        "post, minimal" => json["Complete"] = false.into(),
        "status, state 4/2/127" => json["State"]["Code"] = 127.into(),
        "SERIES of no data entries" => json["Series"]["Entries"] = serde_json::json!([{}, {}]),
        // It shows the control character as what is no UTF-8.
        "partial update: CSI 3 ` then text, ESC [ 8 ` then text" => {
            json["Fields"]["X_RMTES"] = "\u{9B}3`QQ\u{1B}[8`Z".into();
        }
        // It does not find a definition of a field set with an id but 0.
        "two set definitions (ids 0 and 15) in a vector, each used once" => {
            json["Vector"]["Entries"][1]["Fields"] = serde_json::json!({"ASK": 2, "SEQNUM": 9});
        }
        _ => {}
    }
    json
}

/// The files of the codec's vectors.
pub(crate) const CODEC: [&str; 5] =
    ["codec-primitives", "codec-messages", "codec-containers", "codec-set-definitions", "codec-rmtes"];

/// What LSEG's converter makes of a record, with what it loses.
pub(crate) fn theirs(record: &Json) -> Option<Json> {
    let theirs = match (record.get("json"), record.get("jsonText")) {
        (_, Some(text)) => repaired(text.as_str().unwrap()),
        (Some(json), None) => json.clone(),
        (None, None) => return None,
    };
    Some(restored(record, theirs))
}

#[test]
fn messages_are_written_as_their_converter_writes_them() {
    let Some(dictionary) = dictionary() else { return };
    let plain = Converter::new(&dictionary, &SERVICES);
    let mut expanding = plain;
    expanding.settings.expand_enumerations = true;
    let (mut compared, mut expanded, mut different) = (0, 0, Vec::new());
    for file in CODEC {
        for record in records(file).unwrap() {
            let Some(theirs) = theirs(&record) else { continue };
            let bytes = unhex(record["hex"].as_str().unwrap());
            let ours: Json = serde_json::from_str(&text_of(&plain, &bytes)).unwrap();
            if let Some(found) = difference(&ours, &theirs) {
                different.push(format!("{file}: {}: {found}", name(&record)));
            }
            compared += 1;
            if let Some(theirs) = record.get("jsonExpandedEnums") {
                let ours: Json = serde_json::from_str(&text_of(&expanding, &bytes)).unwrap();
                if let Some(found) = difference(&ours, theirs) {
                    different.push(format!("{file}: {} expanded: {found}", name(&record)));
                }
                expanded += 1;
            }
        }
    }
    assert_eq!(different, [""; 0]);
    assert_eq!((compared, expanded), (307, 3));
}

//! Whole conversations in JSON: every text to RWF and back to an equal one.

use serde_json::{Value as Json, json};
use tapeline_omm::json::{Converter, MessageKind, Packed, ServiceNames};

use crate::json::equal::difference;
use crate::json::vectors::{dictionary, records, text_of};

/// Takes the name of the one service and writes its number, as EMA does.
#[derive(Debug)]
struct Numbered;

impl ServiceNames for Numbered {
    fn id(&self, name: &str) -> Option<u16> {
        (name == "DIRECT_FEED").then_some(1)
    }

    fn name(&self, _id: u16) -> Option<&str> {
        None
    }
}

/// A message with what it leaves to be assumed, and in our words where there are several.
fn explicit(message: &mut Json) {
    let message = message.as_object_mut().unwrap();
    message.retain(|key, value| {
        let is_assumed = match key.as_str() {
            "Domain" => value == "MarketPrice",
            "Streaming" | "Refresh" | "Complete" | "Solicited" => *value == true,
            "UnknownThing" => true,
            _ => false,
        };
        !is_assumed
    });
    let kind = message.entry("Type").or_insert(json!("Request")).clone();
    if kind == "Update" {
        message.entry("UpdateType").or_insert(json!("Unspecified"));
    }
    if kind == "Post" {
        message.entry("PostUserInfo").or_insert(json!({"Address": "0.0.0.0", "UserID": 0}));
    }
    if let Some(service) = message.get_mut("Key").and_then(|key| key.get_mut("Service"))
        && *service == "DIRECT_FEED"
    {
        *service = json!(1);
    }
    if let Some(view) = message.get_mut("View").and_then(Json::as_array_mut) {
        for (name, fid) in [("BID", 22), ("ASK", 25)] {
            view.iter_mut().filter(|item| **item == name).for_each(|item| *item = json!(fid));
        }
        message.insert("ViewType".to_owned(), json!("FidList"));
    }
    if let Some(inner) = message.get_mut("Message") {
        explicit(inner);
    }
}

#[test]
fn every_text_to_rwf_and_back() {
    let Some(dictionary) = dictionary() else { return };
    let mut room = Vec::new();
    let (mut texts, mut messages, mut kinds, mut refused) = (0, 0, 0, Vec::new());
    for file in [
        "ws-json-01-baseline",
        "ws-json-02-permessage-deflate",
        "ws-json-03-pings",
        "ws-json-04-big",
        "ws-json-05-market-by-order",
        "ws-json-07-script-client-tr_json2",
        "ws-json-08-script-client-rssl.json.v2",
    ] {
        let mut converter = Converter::new(&dictionary, &Numbered);
        // The server of this one was set so.
        converter.settings.expand_enumerations = file.contains("-08-");
        for record in records(file).unwrap() {
            let Some(text) = record.get("text").and_then(Json::as_str).filter(|_| record.get("ws").is_some())
            else {
                continue;
            };
            texts += 1;
            let Ok(packed) = Packed::parse(text) else {
                refused.push(text.chars().take(60).collect::<String>());
                continue;
            };
            for incoming in packed {
                if incoming.kind() != MessageKind::Message {
                    kinds += 1;
                    continue;
                }
                match converter.read(&incoming, &mut room) {
                    Ok(rwf) => {
                        let ours: Json = serde_json::from_str(&text_of(&converter, rwf)).unwrap();
                        let mut theirs: Json = serde_json::from_str(incoming.text()).unwrap();
                        explicit(&mut theirs);
                        assert_eq!(difference(&ours, &theirs), None, "{file}: {}", incoming.text());
                        messages += 1;
                    }
                    Err(fault) => refused.push(format!("{} {fault}", incoming.text())),
                }
            }
        }
    }
    // What its server refuses too, in the order of the files: requests without a key, a domain that there is not, a text
    // that is cut off.
    let refused: Vec<_> =
        refused.iter().map(|text| text.split_once(" JSON ").map_or(&**text, |(_, why)| why)).collect();
    assert_eq!(
        refused,
        [
            "Missing required key 'Key' (at byte 0)",
            "Unexpected Value. Received 'NoSuchDomain' for key 'Domain' (at byte 17)",
            "Missing required key 'Key' (at byte 0)",
            "{\"ID\":7,\"Key\":{\"Name\":",
        ]
    );
    assert_eq!((texts, messages, kinds), (162, 143, 16));
}

//! The golden vectors and what they were made with.

use serde_json::Value as Json;
use tapeline_omm::Dictionary;
use tapeline_omm::json::Converter;

use crate::json::shared_data::shared_text;

/// The one service of the vectors.
pub(crate) const SERVICES: [(u16, &str); 1] = [(1, "DIRECT_FEED")];

/// The dictionary of the vectors.
pub(crate) fn dictionary() -> Option<Dictionary> {
    let fields = shared_text("protocol/dictionary/RDMFieldDictionary")?;
    let enumerations = shared_text("protocol/dictionary/enumtype.def")?;
    Some(Dictionary::parse(&fields).unwrap().with_enumerations(&enumerations).unwrap())
}

/// The records of a vector file.
pub(crate) fn records(file: &str) -> Option<Vec<Json>> {
    // A number that JSON has not; only in what their converter wrote.
    let text = shared_text(&format!("protocol/vectors/{file}.json"))?.replace(":NaN", ":\"NaN\"");
    let json: Json = serde_json::from_str(&text).unwrap();
    Some(json["records"].as_array().unwrap().clone())
}

pub(crate) fn name(record: &Json) -> &str {
    record["name"].as_str().unwrap()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The one message in `bytes` as text.
pub(crate) fn text_of(converter: &Converter<'_>, bytes: &[u8]) -> String {
    let mut out = Vec::new();
    let message = tapeline_omm::rwf::MessageView::parse(bytes).unwrap();
    let left_out = converter.write(&message, &mut out).unwrap();
    assert_eq!(left_out, 0, "unknown fields");
    String::from_utf8(out).unwrap()
}

//! The messages of a capture.

use serde_json::Value as Json;

use super::shared_data::shared;

/// Bytes of an RSSL frame before its message.
const FRAME_HEADER: usize = 3;

/// One message that a connection carried.
pub(crate) struct Recorded {
    pub(crate) place: String,
    pub(crate) connection: u64,
    pub(crate) is_from_client: bool,
    pub(crate) bytes: Vec<u8>,
    /// The file has the beginning of it only.
    pub(crate) is_cut: bool,
}

/// The messages of every capture whose name begins so, by capture.
pub(crate) fn captures(prefix: &str) -> Option<Vec<(String, Vec<Recorded>)>> {
    let folder = shared("protocol/vectors")?;
    let mut captures = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name.starts_with(prefix) {
            let text = std::fs::read_to_string(&path).unwrap().replace(":NaN", ":null");
            captures.push((name.clone(), messages(&name, &serde_json::from_str(&text).unwrap())));
        }
    }
    captures.sort_by(|(a, _), (b, _)| a.cmp(b));
    Some(captures)
}

fn messages(name: &str, json: &Json) -> Vec<Recorded> {
    let mut all = Vec::new();
    for record in json["records"].as_array().unwrap() {
        for message in record["messages"].as_array().into_iter().flatten() {
            let own = message["hex"].as_str();
            // What is neither is a ping in JSON.
            let Some(hex) = own.or_else(|| record["hex"].as_str()) else { continue };
            let front = hex.split_once("...").map(|(front, _)| &front[..front.len() & !1]);
            let bytes = unhex(front.unwrap_or(hex)).split_off(if own.is_some() { 0 } else { FRAME_HEADER });
            all.push(Recorded {
                place: format!("{name}, record {}", record["n"]),
                connection: record["conn"].as_u64().unwrap_or(0),
                is_from_client: record["dir"] == "client>server",
                bytes,
                is_cut: front.is_some(),
            });
        }
    }
    all
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

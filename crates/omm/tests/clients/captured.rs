//! The messages of captured conversations.

use serde_json::Value as Json;

/// Bytes of an RSSL frame before its message.
const FRAME_HEADER: usize = 3;

/// A message of a conversation.
pub(crate) struct Captured {
    /// Number of its record.
    pub(crate) record: u64,
    /// Number of its connection.
    pub(crate) connection: u64,
    /// Whether the client sent it.
    pub(crate) is_clients: bool,
    pub(crate) bytes: Vec<u8>,
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// All messages of a conversation that are whole: very long ones are cut in the files.
pub(crate) fn messages(json: &Json) -> Vec<Captured> {
    let mut messages = Vec::new();
    for record in json["records"].as_array().unwrap() {
        for message in record["messages"].as_array().into_iter().flatten() {
            // Without bytes of its own a message is the rest of its frame.
            let own = message["hex"].as_str();
            let hex = own.unwrap_or_else(|| record["hex"].as_str().unwrap());
            if !hex.contains("...") {
                messages.push(Captured {
                    record: record["n"].as_u64().unwrap(),
                    connection: record["conn"].as_u64().unwrap(),
                    is_clients: record["dir"] == "client>server",
                    bytes: unhex(hex).split_off(if own.is_some() { 0 } else { FRAME_HEADER }),
                });
            }
        }
    }
    messages
}

/// The conversations whose names begin with one of these, with their messages.
pub(crate) fn conversations(beginnings: &[&str]) -> Vec<(String, Vec<Captured>)> {
    let Some(folder) = super::shared_data::shared("protocol/vectors") else { return Vec::new() };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .into_iter()
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?.to_owned();
            beginnings.iter().find(|beginning| name.starts_with(**beginning))?;
            let json: Json = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            Some((name, messages(&json)))
        })
        .collect()
}

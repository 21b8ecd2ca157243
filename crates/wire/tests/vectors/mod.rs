//! Golden vectors: recorded connections, with the meaning of each frame.

#![allow(dead_code, reason = "each test uses a part of it")]

use serde_json::Value;

use crate::shared_data::{shared, shared_text};

/// One record of a connection.
pub(crate) struct Record {
    pub(crate) connection: u64,
    /// From the server.
    pub(crate) from_server: bool,
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) value: Value,
}

/// A message that a record completes: its bytes, or for long messages their beginning and (with one
/// exception) the CRC-32 of all.
pub(crate) struct Expected {
    length: usize,
    beginning: Vec<u8>,
    crc32: Option<u32>,
}

impl Expected {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is(&self, message: &[u8]) -> bool {
        let mut crc = flate2::Crc::new();
        crc.update(message);
        message.len() == self.length
            && message.starts_with(&self.beginning)
            && self.crc32.is_none_or(|crc32| crc32 == crc.sum())
    }
}

/// Returns the vector files whose names start with one of these.
pub(crate) fn files(beginnings: &[&str]) -> Vec<String> {
    let Some(folder) = shared("protocol/vectors") else { return Vec::new() };
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| beginnings.iter().any(|beginning| name.starts_with(beginning)));
    names.sort();
    assert!(!names.is_empty(), "no vectors {beginnings:?}");
    names
}

/// Returns all records of a file, in order.
pub(crate) fn records(file: &str) -> Vec<Record> {
    let text = shared_text(&format!("protocol/vectors/{file}")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let records = value["records"].as_array().unwrap();
    let taken = records.iter().filter(|record| {
        record["hex"].as_str().is_some_and(|hex| !hex.is_empty())
            || record["ws"].is_object()
            || record["text"].is_string()
    });
    taken
        .map(|record| Record {
            connection: record["conn"].as_u64().unwrap(),
            from_server: record["dir"] == "server>client",
            name: record["name"].as_str().unwrap().to_owned(),
            bytes: record["hex"].as_str().map(hex).unwrap_or_default(),
            value: record.clone(),
        })
        .collect()
}

impl Record {
    pub(crate) fn is_handshake(&self) -> bool {
        self.value["handshake"].is_object()
    }

    pub(crate) fn flags(&self) -> u8 {
        let text = self.value["frame"]["flags"].as_str().map_or("0x02", |text| text);
        u8::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
    }

    /// Returns the messages that this record completes.
    pub(crate) fn messages(&self) -> Vec<Expected> {
        let messages = self.value["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let expected = |message: &Value| {
            let length = message["bytes"].as_u64().unwrap() as usize;
            let text = match message["hex"].as_str() {
                Some(text) => {
                    text.split(|letter: char| !letter.is_ascii_hexdigit()).next().unwrap().to_owned()
                }
                // The rest of the frame.
                None => {
                    let text = self.value["hex"].as_str().unwrap();
                    text[text.len() - 2 * length..].to_owned()
                }
            };
            let crc32 = message["crc32"].as_str().map(|crc| u32::from_str_radix(crc, 16).unwrap());
            Expected { length, beginning: hex(&text), crc32 }
        };
        messages.iter().map(expected).collect()
    }
}

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

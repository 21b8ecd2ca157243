//! A cache of JSON texts for messages that go to many connections.

use std::io::Write;
use std::sync::{Arc, Mutex};

use super::json::{Meaning, is_update};

/// A cache of the most recent update texts, shared by the connections of one thread. One update goes to every connection that has its item
/// open, in one form per view and form of service name. Each form is made once; for the other connections only its id is changed.
///
/// Only one thread ever uses the cache. The lock exists for connections that may move to another thread, and is never contended.
#[derive(Clone, Debug, Default)]
pub struct SharedTexts(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    made: Vec<Made>,
    /// The index of the entry to replace next.
    next: usize,
}

#[derive(Debug)]
struct Made {
    meaning: Meaning,
    message: Vec<u8>,
    text: Vec<u8>,
    /// The offset of the text after the id.
    behind_id: usize,
}

/// The most entries in the cache.
const MOST: usize = 8;
/// The longest text in the cache, in bytes.
const LONGEST: usize = 16 << 10;
/// The start of a text; the stream id follows.
const BEGIN: &[u8] = b"[{\"ID\":";
/// The position of the stream id in a message (RWF chapter 2).
const ID: std::ops::Range<usize> = 4..8;

impl SharedTexts {
    /// Writes the cached text of a message to `out`. Returns `false` if it is not in the cache.
    pub(super) fn give(&self, meaning: &Meaning, message: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(id) = id_of_update(message) else { return false };
        let Ok(kept) = self.0.try_lock() else { return false };
        let Some(made) = kept.made.iter().find(|made| made.is(meaning, message)) else { return false };
        out.extend_from_slice(BEGIN);
        // Writing to memory does not fail.
        let _ = write!(out, "{id}");
        out.extend_from_slice(made.text.get(made.behind_id..).unwrap_or_default());
        true
    }

    /// Stores the text of a message, if other connections can use it.
    pub(super) fn keep(&self, meaning: &Meaning, message: &[u8], text: &[u8]) {
        let is_short = text.len() <= LONGEST;
        let (Some(id), Some(behind)) = (id_of_update(message), text.strip_prefix(BEGIN)) else { return };
        let digits = behind.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
        let is_its = behind.get(..digits).is_some_and(|digits| digits == id.to_string().as_bytes());
        if !is_short || !is_its {
            return;
        }
        let Ok(mut kept) = self.0.try_lock() else { return };
        let Kept { made, next } = &mut *kept;
        let behind_id = BEGIN.len() + digits;
        let place = *next % MOST;
        *next = place + 1;
        match made.get_mut(place) {
            Some(made) => {
                made.message.clear();
                made.message.extend_from_slice(message);
                made.text.clear();
                made.text.extend_from_slice(text);
                made.behind_id = behind_id;
                if made.meaning != *meaning {
                    made.meaning = meaning.clone();
                }
            }
            None => made.push(Made {
                meaning: meaning.clone(),
                message: message.to_vec(),
                text: text.to_vec(),
                behind_id,
            }),
        }
    }
}

impl Made {
    /// Returns `true` if the entry belongs to this message, on any stream.
    fn is(&self, meaning: &Meaning, message: &[u8]) -> bool {
        self.message.len() == message.len()
            && self.message.get(ID.end..) == message.get(ID.end..)
            && self.message.get(..ID.start) == message.get(..ID.start)
            && self.meaning == *meaning
    }
}

/// Returns the stream id of an update; `None` for other messages, which seldom go to many connections.
fn id_of_update(message: &[u8]) -> Option<i32> {
    let id = message.get(ID)?.first_chunk()?;
    is_update(message).then(|| i32::from_be_bytes(*id))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tapeline_omm::rwf::{DataType, Domain, UpdateType, update_header};
    use tapeline_omm::{Dictionary, FieldListEncoder, Real, fid};

    use super::super::Side;
    use super::super::json::{Json, JsonSettings};
    use super::*;

    fn update(id: i32, bid: i64) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        let quote = UpdateType::QUOTE;
        let start = update_header(&mut bytes, Domain::MARKET_PRICE, id, quote, DataType::FIELD_LIST).unwrap();
        let mut list = FieldListEncoder::new(&mut bytes[start..]).unwrap();
        list.real(fid::BID, Real::decimal(bid, 2)).unwrap();
        let len = start + list.finish();
        bytes.truncate(len);
        bytes
    }

    fn text(json: &mut Json, message: &[u8]) -> String {
        json.write(message).unwrap();
        String::from_utf8(json.text.clone()).unwrap()
    }

    #[test]
    fn a_text_that_another_connection_made_is_what_it_would_have_made_itself() {
        let dictionary = Arc::new(Dictionary::builtin().clone());
        let new = |side| Json::new(side, 60, 1000, &dictionary, JsonSettings::default());
        let texts = SharedTexts::default();
        let (mut alone, mut first, mut second) = (new(Side::Server), new(Side::Server), new(Side::Server));
        first.texts = Some(texts.clone());
        second.texts = Some(texts.clone());
        for (id, bid) in [(5, 3991), (123_456, 3991), (7, 3992), (-3, 3992), (5, 3991)] {
            let message = update(id, bid);
            let wanted = text(&mut alone, &message);
            assert!(wanted.contains(&format!("\"ID\":{id},")), "{wanted}");
            assert_eq!(text(&mut first, &message), wanted);
            assert_eq!(text(&mut second, &message), wanted);
        }
        // Two entries: one per message, not per stream.
        assert_eq!(texts.0.lock().unwrap().made.len(), 2);
        // A connection with a different converter gets its own text: a client's text is not in an array.
        let mut client = new(Side::Client);
        client.texts = Some(texts.clone());
        assert!(text(&mut client, &update(5, 3991)).starts_with("{\"ID\":5,"));
    }

    #[test]
    fn more_forms_than_are_kept_are_right_all_the_same() {
        let dictionary = Arc::new(Dictionary::builtin().clone());
        let mut json = Json::new(Side::Server, 60, 1000, &dictionary, JsonSettings::default());
        let texts = SharedTexts::default();
        json.texts = Some(texts.clone());
        for bid in (0..3 * MOST as i64).chain(0..3 * MOST as i64) {
            assert!(text(&mut json, &update(9, bid)).contains(&format!("\"BID\":{}", bid as f64 / 100.0)));
        }
        assert_eq!(texts.0.lock().unwrap().made.len(), MOST);
    }
}

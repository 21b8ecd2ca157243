//! What must hold of a cache, whatever messages it is given.

use std::sync::Arc;

use tapeline_omm::rwf::{Domain, MessageView, SetDefinitions};
use tapeline_omm::{Dictionary, Fid};
use tapeline_plant::Seq;
use tapeline_plant::cache::{AnswerParameters, Cache, ItemKey, Limits, NotApplied, View};

use super::model;

/// Small enough to be met by an input of a few kilobytes.
const LIMITS: Limits = Limits { items: 3, bytes: 60_000, image_bytes: 20_000, entries: 40 };

/// Everything that the cache gives out of an item: none of it may be unreadable.
fn given_out(cache: &Cache, key: &ItemKey<'_>, view: View<'_>) -> Option<Vec<Vec<u8>>> {
    let mut parts = cache.image(key)?.parts(AnswerParameters { view, ..AnswerParameters::to(1) });
    let mut out = vec![0xEE; 70_000];
    let mut all = Vec::new();
    while let Some(len) = parts.write(&mut out).expect("there is room for every entry") {
        let message = MessageView::parse(&out[..len]).expect("a message was written");
        model::read(message.container(), message.payload(), &SetDefinitions::NONE)
            .expect("what was written can be read");
        all.push(message.payload().to_vec());
    }
    Some(all)
}

/// Applies messages that stand one behind the other, each behind its length (two bytes, of which the upper two bits
/// choose the item).
pub(crate) fn any(bytes: &[u8]) {
    let mut cache = Cache::new(LIMITS);
    cache.set_dictionary(1, &Arc::new(dictionary()));
    let mut rest = bytes;
    let mut seq = 0;
    while let [high, low, behind @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([high & 0x3F, *low])).min(behind.len());
        let name = [b'A' + (high >> 6)];
        let key = ItemKey { service: 1, domain: Domain::MARKET_PRICE, name: &name };
        let (message, next) = behind.split_at(len);
        rest = next;
        seq += 1;
        applied(&mut cache, &key, Seq(seq), message);
        // What is over the limit was let go.
        assert!(cache.memory().bytes <= LIMITS.bytes, "{:?}", cache.memory());
        let _ = given_out(&cache, &key, View::Fields(&[Fid(22), Fid(3427)]));
        let _ = given_out(&cache, &key, View::Elements(&[b"Name"]));
    }
    let counters = cache.counters();
    let sum = counters.refreshes + counters.updates + counters.statuses + counters.passed_by;
    assert_eq!(sum + counters.malformed + counters.over_limit, seq);
}

/// Applies one message, and looks at what it did.
pub(crate) fn applied(cache: &mut Cache, key: &ItemKey<'_>, seq: Seq, message: &[u8]) {
    let before = given_out(cache, key, View::All);
    let done = cache.apply(key, seq, message);
    let after = given_out(cache, key, View::All);
    match done {
        Ok(_) => {}
        Err(NotApplied::Limit { .. }) => {
            if let Some(image) = cache.image(key) {
                assert!(!image.is_complete(), "an image over a limit");
            }
        }
        Err(why) => {
            // A new item is there, but has nothing.
            assert!(before == after || before.is_none(), "{why} changed an image");
            if let Some(image) = cache.image(key) {
                assert!(!image.is_complete(), "{why}, yet the image counts as complete");
            }
        }
    }
}

/// Fields of the seeds: 22 ripples to 23, 3 is a text.
fn dictionary() -> Dictionary {
    let text = "BID \"BID\" 22 BID_1 PRICE 17 REAL64 7\nBID_1 \"BID_1\" 23 NULL PRICE 17 REAL64 7\n\
        DSPLY_NAME \"NAME\" 3 NULL ALPHANUMERIC 16 RMTES_STRING 16\n";
    Dictionary::parse(text).expect("well-formed")
}

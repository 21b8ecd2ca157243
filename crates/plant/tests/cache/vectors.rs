//! Golden messages, whole and damaged, and a corpus of any bytes.

use std::path::{Path, PathBuf};

use tapeline_omm::rwf::{DataType, MessageClass, MessageView, SetDefinitions};
use tapeline_plant::Seq;
use tapeline_plant::cache::{AnswerParameters, Cache, Limits};

use crate::cache::messages::{CLEAR, COMPLETE, ITEM, apply, refresh, written};
use crate::cache::model::{Node, image_of, laid, read};
use crate::cache::shared_data::shared_text;
use crate::cache::{holds, mutations};

/// Every message of the vector files about the codec.
fn golden() -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for file in
        ["codec-containers", "codec-messages", "codec-primitives", "codec-rmtes", "codec-set-definitions"]
    {
        let text = shared_text(&format!("protocol/vectors/{file}.json"))?;
        let hex = text.split("\"hex\"").skip(1).filter_map(|rest| rest.split('"').nth(1));
        let byte = |hex: &str| u8::from_str_radix(hex, 16).ok();
        let bytes = |hex: &str| {
            (0..hex.len() / 2).map(|at| byte(&hex[2 * at..2 * at + 2])).collect::<Option<Vec<u8>>>()
        };
        all.extend(hex.filter_map(bytes));
    }
    assert!(all.len() > 100, "{} messages", all.len());
    Some(all)
}

#[test]
fn golden_containers_are_kept_as_they_are() {
    let Some(messages) = golden() else { return };
    let mut cache = Cache::new(Limits::default());
    let (mut kept, mut entries) = (0, 0);
    for (n, message) in messages.iter().enumerate() {
        let Ok(message) = MessageView::parse(message) else { continue };
        let (container, payload) = (message.container(), message.payload());
        let Ok(node) = read(container, payload, &SetDefinitions::NONE) else { continue };
        apply(&mut cache, n as u64, &refresh(CLEAR | COMPLETE, container, payload));
        let image = cache.image(&ITEM).unwrap();
        let payloads: Vec<_> = written(image.parts(AnswerParameters::to(1)), 1 << 16)
            .iter()
            .map(|part| MessageView::parse(part).unwrap().payload().to_vec())
            .collect();
        let expected = laid(&Node::Blank, &node);
        let empty = [Node::Fields(vec![]), Node::Elements(vec![])].contains(&expected);
        assert!(empty || image.container() == container || node == Node::Blank, "{n}");
        if !empty {
            assert_eq!(image_of(container, &payloads), expected, "message {n}");
        }
        kept += 1;
        if let Node::Map { entries: all, .. }
        | Node::Vector { entries: all, .. }
        | Node::Series { entries: all, .. } = &expected
        {
            entries += all.len();
        }
    }
    assert!(kept > 100 && entries > 30, "{kept} containers, {entries} entries");
}

/// Every cut and three changes of every byte: the image is what it was, or what the damaged message says, never a half of
/// it.
#[test]
fn damaged_messages_are_applied_as_a_whole_or_not_at_all() {
    let Some(messages) = golden() else { return };
    let mut cache = Cache::new(Limits::default());
    let mut seq = 0;
    for message in &messages {
        let Ok(view) = MessageView::parse(message) else { continue };
        if ![MessageClass::REFRESH, MessageClass::UPDATE, MessageClass::STATUS].contains(&view.class()) {
            continue;
        }
        let begin = refresh(CLEAR | COMPLETE, view.container(), view.payload());
        let mut tries = |damaged: &[u8]| {
            seq += 1;
            if cache.apply(&ITEM, Seq(seq), &begin).is_ok() {
                holds::applied(&mut cache, &ITEM, Seq(seq), damaged);
            }
            cache.remove(&ITEM);
        };
        for at in 0..message.len() {
            tries(&message[..at]);
            for change in [0x01, 0x80, 0xFF] {
                let mut damaged = message.clone();
                damaged[at] ^= change;
                tries(&damaged);
            }
        }
    }
    let counters = cache.counters();
    assert!(counters.malformed > 1_000 && counters.updates + counters.refreshes > 10_000, "{counters:?}");
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/cache")
}

/// Any bytes at all: the inputs of the corpus, and thousands of changed ones. `make fuzz TARGET=cache` goes on for longer, led by
/// coverage.
#[test]
fn a_cache_holds() {
    mutations::each(&corpus(), 10_000, holds::any);
}

/// Seeds of which nothing is applied would lead nowhere.
#[test]
fn the_seeds_are_whole() {
    for seed in std::fs::read_dir(corpus()).unwrap() {
        let seed = seed.unwrap().path();
        let bytes = std::fs::read(&seed).unwrap();
        let (mut rest, mut count) = (&bytes[..], 0);
        let mut cache = Cache::new(Limits::default());
        while let [high, low, behind @ ..] = rest {
            let (message, next) = behind.split_at(usize::from(u16::from_be_bytes([high & 0x3F, *low])));
            apply(&mut cache, count, message);
            count += 1;
            rest = next;
        }
        assert!(count > 2 && cache.image(&ITEM).is_some(), "{}", seed.display());
        assert_ne!(cache.image(&ITEM).unwrap().container(), DataType::NO_DATA, "{}", seed.display());
    }
}

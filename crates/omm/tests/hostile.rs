//! Any bytes at all for the readers of RWF: the inputs of `fuzz/corpus`, and thousands of changed ones. The same readers, led
//! by coverage, are tried at length by `make fuzz TARGET=rwf`.

use crate::dictionary_files;
use crate::mutations;
use crate::peers;
use crate::readers;
use crate::rmtes_values;
use crate::servers;
use crate::texts;

use std::path::{Path, PathBuf};

use tapeline_omm::Dictionary;
use tapeline_omm::rwf::{Container, DataType, SetDefinitions};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rwf")
}

#[test]
fn rwf_holds() {
    mutations::each(&corpus(), 10_000, readers::any_thoroughly);
}

/// A seed that cannot be read whole would lead to nothing but faults.
#[test]
fn the_seeds_are_whole() {
    let mut lines = 0;
    for seed in std::fs::read_dir(corpus()).unwrap() {
        let seed = seed.unwrap().path();
        let bytes = std::fs::read(&seed).unwrap();
        let data_type = DataType(bytes[0]);
        if seed.file_name().is_some_and(|name| name.to_string_lossy().starts_with("message-0"))
            || !data_type.is_container()
        {
            continue;
        }
        let container = Container::parse(data_type, &bytes[1..], &SetDefinitions::NONE).unwrap();
        let text = container.outline(Dictionary::builtin()).to_string();
        assert!(!text.contains("malformed") && !text.contains("by set definition"), "{seed:?}: {text}");
        lines += text.lines().count();
    }
    assert!(lines > 100, "{lines} lines");
}

/// A corpus of conversations, for both roles that are logged in to: a consumer's messages and an NI provider's.
fn conversations() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/peers")
}

#[test]
fn a_provider_holds() {
    mutations::each(&conversations(), 10_000, peers::provider);
}

#[test]
fn an_acceptor_holds() {
    mutations::each(&conversations(), 10_000, peers::acceptor);
}

/// A corpus of the other side of conversations: a provider's messages, and a hub's.
fn answers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/servers")
}

#[test]
fn a_consumer_holds() {
    mutations::each(&answers(), 10_000, servers::consumer);
}

#[test]
fn an_ni_provider_holds() {
    mutations::each(&answers(), 10_000, servers::ni_provider);
}

/// A corpus of texts, one with every member, container and type.
fn texts_corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/json")
}

#[test]
fn texts_hold() {
    mutations::each(&texts_corpus(), 20_000, texts::text);
}

#[test]
fn messages_hold_as_texts() {
    mutations::each(&corpus(), 20_000, texts::rwf);
}

fn of_target(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

#[test]
fn cached_rmtes_strings_hold() {
    mutations::each(&of_target("rmtes"), 20_000, rmtes_values::any);
}

#[test]
fn dictionary_files_hold() {
    mutations::each(&of_target("dictionary"), 2_000, dictionary_files::any);
}

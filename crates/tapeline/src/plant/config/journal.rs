//! `[journal]`: the journal's folder, durability and retention.

use std::path::Path;

use serde::Deserialize;
use tapeline_console::arguments;
use tapeline_journal::{Durability, OnFailure, Retention, Settings};
use tapeline_node::journal::JournalConfig;
use toml::Spanned;

use super::Source;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawJournal {
    folder: Spanned<String>,
    durability: Option<Spanned<String>>,
    on_failure: Option<Spanned<String>>,
    segment_size: Option<Spanned<String>>,
    keep_for: Option<Spanned<String>>,
    keep_size: Option<Spanned<String>>,
}

impl Source<'_> {
    /// Checks the journal settings of a plant.
    pub(super) fn journal(&self, raw: &RawJournal) -> JournalConfig {
        let usual = Settings::default();
        let bytes = self.or(self.size(&raw.segment_size, usual.segment_bytes as usize), 0) as u64;
        let possible = Settings::LEAST_SEGMENT_BYTES..=Settings::MOST_SEGMENT_BYTES;
        let segment_bytes = if possible.contains(&bytes) { bytes } else { usual.segment_bytes };
        if let Some(size) = raw.segment_size.as_ref().filter(|_| segment_bytes != bytes) {
            let what = format!("segment_size is {bytes} bytes; 64KiB to 64GiB are expected");
            self.fault(size.span(), what, "\"256MiB\" is the default");
        }
        let hint = "if left out, ticks are kept for ever; \"168h\" is a week";
        let age = self.time(&raw.keep_for, arguments::some_duration, hint);
        let bytes = self.given_size(&raw.keep_size).map(|bytes| bytes as u64);
        JournalConfig {
            folder: self.beside(Path::new(raw.folder.get_ref())),
            settings: Settings {
                durability: self.word(
                    "durability",
                    &raw.durability,
                    [("written", Durability::Written), ("synced", Durability::Synced)],
                    "\"synced\" survives a crash of the machine, and the hub waits for it; without [journal] nothing is kept",
                ),
                on_failure: self.word(
                    "on_failure",
                    &raw.on_failure,
                    [("stop", OnFailure::Stop), ("continue", OnFailure::Continue)],
                    "\"stop\" ends the plant when its journal cannot be written",
                ),
                segment_bytes,
                retention: Retention { age, bytes },
            },
        }
    }
}

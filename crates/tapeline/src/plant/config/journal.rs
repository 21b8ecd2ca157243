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
        let durability = self.one_of(
            "durability",
            raw.durability.as_ref(),
            &[("written", Durability::Written), ("synced", Durability::Synced)],
            "\"synced\" survives a crash of the machine, and the hub waits for it; without [journal] nothing is kept",
        );
        let on_failure = self.one_of(
            "on_failure",
            raw.on_failure.as_ref(),
            &[("stop", OnFailure::Stop), ("continue", OnFailure::Continue)],
            "\"stop\" ends the plant when its journal cannot be written",
        );
        let bytes = self.or(self.size(raw.segment_size.as_ref(), usual.segment_bytes as usize), 0) as u64;
        let possible = Settings::LEAST_SEGMENT_BYTES..=Settings::MOST_SEGMENT_BYTES;
        let segment_bytes = if possible.contains(&bytes) { bytes } else { usual.segment_bytes };
        if let Some(size) = raw.segment_size.as_ref().filter(|_| segment_bytes != bytes) {
            let what = format!("segment_size is {bytes} bytes; 64KiB to 64GiB are expected");
            self.sound::<()>(Err(self.wrong(size.span(), what, "\"256MiB\" is the default")));
        }
        let age = raw.keep_for.as_ref().and_then(|time| {
            let hint = "if left out, ticks are kept for ever; \"168h\" is a week";
            let age = arguments::some_duration(time.get_ref());
            self.sound(age.map_err(|error| self.wrong(time.span(), error, hint)))
        });
        let bytes = raw.keep_size.as_ref().and_then(|size| self.sound(self.size(Some(size), 0)));
        JournalConfig {
            folder: self.beside(Path::new(raw.folder.get_ref())),
            settings: Settings {
                durability: self.or(durability, usual.durability),
                on_failure: self.or(on_failure, usual.on_failure),
                segment_bytes,
                retention: Retention { age, bytes: bytes.map(|bytes| bytes as u64) },
            },
        }
    }
}

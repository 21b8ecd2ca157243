//! Any text as a configuration under EMA's names, in XML or TOML.

#![no_main]

use tapeline_client::ema_config::{Config, Group};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match Config::parse("file".to_owned(), text) {
        Ok(config) => {
            for group in [Group::Consumer, Group::IProvider, Group::NiProvider] {
                for name in [None, Some("A"), Some("another")] {
                    match config.choose(group, name) {
                        Ok(chosen) => assert!(chosen.idle.iter().all(|(_, line)| has_line(text, *line))),
                        Err(fault) => names_its_line(&fault.to_string(), text),
                    }
                }
            }
        }
        Err(fault) => names_its_line(&fault.to_string(), text),
    }
});

/// What is wrong is said as `file:LINE: …`.
fn names_its_line(said: &str, text: &str) {
    let line = said.split(':').nth(1).and_then(|line| line.parse().ok());
    assert!(line.is_some_and(|line| has_line(text, line)), "{said}");
}

/// Behind the last line break is a line too.
fn has_line(text: &str, line: usize) -> bool {
    (1..=text.matches('\n').count() + 1).contains(&line)
}

//! Names of items.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use quick_xml::events::Event;
use quick_xml::{Reader, XmlVersion};

use crate::failure::Hinted;

/// Which items.
#[derive(Clone, Debug, Args)]
pub(crate) struct ItemArgs {
    /// Items, by name
    #[arg(value_name = "ITEM")]
    items: Vec<String>,
    /// Items from a file: one a line, or the item list of LSEG's performance tools (XML)
    #[arg(long, value_name = "FILE")]
    item_file: Option<PathBuf>,
}

/// Names in a file at most, and its size: of a million names of a RIC's usual length.
const MOST_NAMES: usize = 1_000_000;
const MOST_BYTES: u64 = 64 << 20;

impl ItemArgs {
    /// All of them.
    pub(crate) fn load_any(&self) -> anyhow::Result<Vec<String>> {
        let mut items = self.items.clone();
        if let Some(path) = &self.item_file {
            items.extend(names(path)?);
        }
        Ok(items)
    }

    /// All of them, at least one.
    pub(crate) fn load(&self) -> anyhow::Result<Vec<String>> {
        let items = self.load_any()?;
        if items.is_empty() {
            let hint = "name some behind the command, or a file with --item-file";
            return Err(Hinted::new("there are no items", hint).into());
        }
        Ok(items)
    }
}

/// The names in a file, one a line; empty lines and those that begin with `#` are none.
fn names(path: &Path) -> anyhow::Result<Vec<String>> {
    let place = path.display();
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {place}"))?.len();
    if size > MOST_BYTES {
        anyhow::bail!("{place} has {size} bytes; a list of items has {MOST_BYTES} at most");
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {place}"))?;
    if text.trim_start().starts_with('<') {
        return listed(&text).with_context(|| format!("in {place}"));
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.take(MOST_NAMES).map(str::to_owned).collect())
}

/// The names of an item list: `<item domain="MarketPrice" name="RDT1"/>`.
fn listed(text: &str) -> anyhow::Result<Vec<String>> {
    let mut reader = Reader::from_str(text);
    let mut names = Vec::new();
    loop {
        match reader.read_event().with_context(|| format!("byte {}", reader.error_position()))? {
            Event::Start(item) | Event::Empty(item) if item.name().as_ref() == "item" => {
                let name = item.try_get_attribute("name")?.context("an item has no name")?;
                names.push(name.normalized_value(XmlVersion::Implicit1_0)?.into_owned());
            }
            Event::DocType(_) => anyhow::bail!("there is a document type; leave it out"),
            Event::Eof => break,
            _ => {}
        }
        if names.len() > MOST_NAMES {
            anyhow::bail!("there are more than {MOST_NAMES} items");
        }
    }
    Ok(names)
}

//! Item names.

use clap::Args;
use tapeline_console::{FilePath, Hinted};
use tapeline_perf::omm::item_list;

/// Names of items.
#[derive(Clone, Debug, Args)]
pub(crate) struct ItemArgs {
    /// Names of items
    #[arg(value_name = "ITEM")]
    items: Vec<String>,
    /// File of items: one name a line, or an item list of LSEG's performance tools (XML)
    #[arg(long, value_name = "FILE")]
    item_file: Option<FilePath>,
}

impl ItemArgs {
    /// All item names, which may be none.
    pub(crate) fn load_any(&self) -> anyhow::Result<Vec<String>> {
        let mut items = self.items.clone();
        if let Some(path) = &self.item_file {
            items.extend(item_list::read(path, item_list::MOST_ITEMS)?.into_iter().map(|item| item.name));
        }
        Ok(items)
    }

    /// All item names, at least one.
    pub(crate) fn load(&self) -> anyhow::Result<Vec<String>> {
        let items = self.load_any()?;
        if items.is_empty() {
            let hint = "name items after the command, or in a file with --item-file";
            return Err(Hinted::new("there are no items", hint).into());
        }
        Ok(items)
    }
}

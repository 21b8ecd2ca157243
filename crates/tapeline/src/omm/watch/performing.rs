//! Carries out commands.

use std::rc::Rc;

use tapeline_console::failure::Hinted;
use tapeline_console::log;
use tapeline_omm::domain::{List, View};
use tapeline_omm::role::consumer::{Consumer, Handle, Reissue};

use super::asking;
use super::commands::{Change, HELP, WatchCommand};
use super::watching::{Sending, Watching};

impl Watching<'_> {
    /// Carries out a command that concerns items.
    ///
    /// # Errors
    /// The command names an item that is not open, or an unknown field; then it has no effect.
    pub(super) fn perform(&mut self, consumer: &mut Consumer, command: WatchCommand) -> anyhow::Result<()> {
        match command {
            WatchCommand::Open { items, is_snapshot } => {
                if let Some(name) = items.iter().find(|name| self.number_open(name).is_some()) {
                    let hint = "refresh requests its image again, close closes it";
                    return Err(Hinted::new(format!("{name} is open"), hint).into());
                }
                let from = self.asked.items.len();
                for name in items {
                    self.add(name);
                }
                self.open(consumer, from, !is_snapshot)?;
            }
            WatchCommand::Change(names, change) => self.change(consumer, &names, &change)?,
            WatchCommand::Post { item, fields } => {
                let number = self.named(&item)?;
                let fields = asking::fields(&fields, &self.dictionary)?;
                self.queue_post(number, fields.into());
            }
            WatchCommand::Generic { item, text } => {
                let number = self.named(&item)?;
                self.to_send.push_back(Sending::Generic(number, Rc::from(text)));
            }
            WatchCommand::List => self.list(),
            WatchCommand::Help => anstream::eprintln!("{HELP}"),
            WatchCommand::Wait(_) | WatchCommand::Quit => {}
        }
        Ok(())
    }

    fn change(&mut self, consumer: &mut Consumer, names: &[String], change: &Change) -> anyhow::Result<()> {
        let mut numbers = Vec::new();
        for name in names {
            if name == "*" {
                numbers.extend((0..self.items.len()).filter(|number| self.items[*number].handle.is_some()));
            } else {
                numbers.push(self.named(name)?);
            }
        }
        let fids = match change {
            Change::View(fields) => asking::fids(fields, &self.dictionary)?,
            _ => Vec::new(),
        };
        let view = (!fids.is_empty()).then_some(View::Fids(List::Given(&fids)));
        let reissue = match change {
            Change::Close => {
                numbers.iter().for_each(|number| self.dismiss(consumer, *number));
                return Ok(());
            }
            Change::Refresh => Reissue { wants_image: true, ..Reissue::default() },
            Change::View(_) => Reissue { view: Some(view), ..Reissue::default() },
            Change::Pause | Change::Resume => {
                if consumer.is_ready() && !consumer.can_pause() {
                    log::note("this provider's login says that it cannot hold back updates");
                }
                Reissue { is_paused: Some(*change == Change::Pause), ..Reissue::default() }
            }
        };
        let handles: Vec<Handle> = numbers.iter().filter_map(|number| self.items[*number].handle).collect();
        for handle in handles {
            consumer.reissue(handle, &reissue);
        }
        Ok(())
    }

    /// The number of the open item with that name.
    fn number_open(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied().filter(|number| self.items[*number].handle.is_some())
    }

    fn named(&self, name: &str) -> anyhow::Result<usize> {
        self.number_open(name).ok_or_else(|| {
            let what = format!("no item {name} is open");
            Hinted::new(what, "list shows the open items, open opens more").into()
        })
    }

    fn list(&mut self) {
        for (number, item) in self.items.iter().enumerate() {
            let state = match item.handle {
                None => "closed",
                Some(_) if item.has_image => "open",
                Some(_) => "asked for",
            };
            let name = self.asked.items[number].as_str();
            let members = [("item", name.into()), ("is", state.into()), ("updates", item.updates.into())];
            self.lines.event("item", &members);
        }
    }
}

//! Best bid and ask of each item, carried on from tick to tick: a tick has the changed fields, a row of quotes has all.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use tapeline_omm::rwf::NamedValue;
use tapeline_omm::{Real, fid};

use crate::Error;
use crate::details::{put, shown};
use crate::message::{ns_of_day, real};

/// Maximum number of items whose quotes are carried on: a few hundred megabytes.
pub const MOST_ITEMS: usize = 1_000_000;

/// The quote of an item. `None` means that there is no value, or that it is unknown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Best {
    pub(crate) bid: Option<Real>,
    pub(crate) bid_size: Option<Real>,
    pub(crate) ask: Option<Real>,
    pub(crate) ask_size: Option<Real>,
    pub(crate) bid_source: Option<Box<str>>,
    pub(crate) ask_source: Option<Box<str>>,
    pub(crate) time_ns: Option<i64>,
}

impl Best {
    /// Stores a field, if it belongs to a quote.
    pub(crate) fn take(&mut self, field: &NamedValue<'_, '_>) -> bool {
        let value = &field.value;
        match field.fid {
            fid::BID => put(&mut self.bid, real(value)),
            fid::BIDSIZE => put(&mut self.bid_size, real(value)),
            fid::ASK => put(&mut self.ask, real(value)),
            fid::ASKSIZE => put(&mut self.ask_size, real(value)),
            fid::BID_SRC => put(&mut self.bid_source, Some(shown(field).map(Into::into))),
            fid::ASK_SRC => put(&mut self.ask_source, Some(shown(field).map(Into::into))),
            fid::QUOTIM_NS => put(&mut self.time_ns, ns_of_day(value)),
            _ => false,
        }
    }
}

/// The quotes of all items.
#[derive(Debug, Default)]
pub(crate) struct Bests {
    /// By service and name: item numbers are assigned again with each start of a plant.
    services: HashMap<u16, HashMap<Box<str>, Best, RandomState>, RandomState>,
    items: usize,
}

impl Bests {
    /// Returns the quote of an item.
    pub(crate) fn of(&mut self, service: u16, name: &str) -> Result<&mut Best, Error> {
        let items = self.services.entry(service).or_default();
        if !items.contains_key(name) {
            if self.items == MOST_ITEMS {
                return Err(Error::Items(MOST_ITEMS));
            }
            self.items += 1;
        }
        Ok(items.entry(name.into()).or_default())
    }

    /// Removes an item that is closed.
    pub(crate) fn forget(&mut self, service: u16, name: &str) {
        let was_there = self.services.get_mut(&service).and_then(|items| items.remove(name));
        self.items -= usize::from(was_there.is_some());
    }

    /// Removes all items, because ticks are missing.
    pub(crate) fn forget_all(&mut self) {
        self.services.clear();
        self.items = 0;
    }
}

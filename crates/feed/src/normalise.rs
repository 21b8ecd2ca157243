//! From an exchange's message to a draft of an update.
//!
//! Each protocol's normaliser keeps what is known of its instruments (books, quotes, trades, trading states) and says
//! what a message changed of what is published. [`Normaliser`] is any of them: another one is a module beside
//! [`Itch`]'s and an arm in each method below.

mod dbn;
mod iex;
mod itch;

pub use dbn::Dbn;
pub use iex::Iex;
pub use itch::{Counters, Itch};

use tapeline_nanos::Nanos;

use crate::depth::{self, Depth};
use crate::draft::{Detail, Draft};
use crate::levels::Levels;

/// An instrument's number within its feed: dense, and stable within a session. 0 means none. ITCH: the locate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instrument(pub u32);

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The instrument that it is about.
    pub instrument: Instrument,
    /// The byte that names the message's type in its protocol.
    pub letter: u8,
    /// When it happened, as the exchange says.
    pub event: Nanos,
    /// The update to publish, where a published field changed.
    pub change: Option<Draft>,
    /// The instrument is new, or its number stands for another one now: its whole [image](Normaliser::image) is to be
    /// published in place of the change.
    pub image: bool,
}

/// The message could not be decoded. It was counted, by reason, in its protocol's own counters, and changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message could not be decoded")]
pub struct Malformed;

/// The normaliser of a feed, whatever protocol it speaks.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "one for each feed, and never moved")]
pub enum Normaliser {
    /// NASDAQ TotalView-ITCH 5.0.
    Itch(Itch),
    /// IEX TOPS 1.6 or DEEP 1.0.
    Iex(Iex),
    /// Databento's records.
    Dbn(Box<Dbn>),
}

impl Normaliser {
    /// Says which messages will be applied next: those of a datagram that has come. It changes nothing, and makes them
    /// quicker to apply.
    #[inline]
    pub fn expect<'a>(&mut self, messages: impl Iterator<Item = &'a [u8]>) {
        if let Self::Itch(itch) = self {
            itch.expect(messages);
        }
    }

    /// Applies one message.
    ///
    /// # Errors
    /// [`Malformed`]: it was counted, and nothing else has changed.
    #[inline]
    pub fn apply(&mut self, bytes: &[u8]) -> Result<Applied, Malformed> {
        match self {
            Self::Itch(itch) => itch.apply(bytes).map_err(|_| Malformed),
            Self::Iex(iex) => iex.apply(bytes).map_err(|_| Malformed),
            Self::Dbn(dbn) => dbn.apply(bytes).map_err(|_| Malformed),
        }
    }

    /// Everything that is known of an instrument, all fields marked as changed; `None` for one without a name.
    #[must_use]
    pub fn image(&self, instrument: Instrument) -> Option<Draft> {
        match self {
            Self::Itch(itch) => itch.image(instrument),
            Self::Iex(iex) => iex.image(instrument),
            Self::Dbn(dbn) => dbn.image(instrument),
        }
    }

    /// What the last message told beside the fields that last, where its change [has a detail](crate::draft::Changed::has_detail).
    #[must_use]
    pub fn detail(&self) -> Option<&Detail> {
        match self {
            Self::Itch(itch) => itch.detail(),
            Self::Iex(iex) => iex.detail(),
            Self::Dbn(dbn) => dbn.detail(),
        }
    }

    /// The instrument's name, such as a symbol; `None` while no message has told it.
    #[inline]
    #[must_use]
    pub fn name(&self, instrument: Instrument) -> Option<&str> {
        match self {
            Self::Itch(itch) => itch.name(instrument),
            Self::Iex(iex) => iex.name(instrument),
            Self::Dbn(dbn) => dbn.name(instrument),
        }
    }

    /// Every instrument that has a name, by number.
    pub fn instruments(&self) -> impl Iterator<Item = Instrument> {
        let (mut itch, mut iex, mut dbn) = (None, None, None);
        match self {
            Self::Itch(feed) => itch = Some(feed.instruments()),
            Self::Iex(feed) => iex = Some(feed.instruments()),
            Self::Dbn(feed) => dbn = Some(feed.instruments()),
        }
        itch.into_iter().flatten().chain(iex.into_iter().flatten()).chain(dbn.into_iter().flatten())
    }

    /// Orders on the books; 0 for a protocol without orders.
    #[must_use]
    pub fn live_orders(&self) -> usize {
        match self {
            Self::Itch(itch) => itch.books().live_orders(),
            Self::Iex(_) => 0,
            Self::Dbn(dbn) => dbn.books().live_orders(),
        }
    }

    /// Messages about orders that are not on the books: they came before, or were lost; 0 for a protocol without orders.
    #[must_use]
    pub fn unknown_orders(&self) -> u64 {
        match self {
            Self::Itch(itch) => itch.books().counters().unknown_reference.total(),
            Self::Iex(_) | Self::Dbn(_) => 0,
        }
    }

    /// Keeps the orders themselves from now on, at most `max_orders` at once. Whether the protocol has orders; without, nothing
    /// changes.
    pub fn keep_orders(&mut self, max_orders: usize) -> bool {
        match self {
            Self::Itch(itch) => {
                itch.keep_orders(max_orders);
                true
            }
            Self::Iex(_) | Self::Dbn(_) => false,
        }
    }

    /// The orders themselves, where they are kept, and what the last message that was applied did to them.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> Option<&Depth> {
        match self {
            Self::Itch(itch) => itch.depth(),
            Self::Iex(_) | Self::Dbn(_) => None,
        }
    }

    /// The price levels of each instrument, where the source keeps them, and what the last message that was applied did to them.
    #[inline]
    #[must_use]
    pub fn levels(&self) -> Option<&Levels> {
        match self {
            Self::Dbn(dbn) => Some(dbn.levels()),
            Self::Itch(_) | Self::Iex(_) => None,
        }
    }

    /// What the orders of an instrument share; `None` for one without a name, or where the protocol has no orders.
    #[must_use]
    pub fn order_summary(&self, instrument: Instrument) -> Option<depth::Summary> {
        match self {
            Self::Itch(itch) => itch.order_summary(instrument),
            Self::Iex(_) | Self::Dbn(_) => None,
        }
    }

    /// Forgets what was known of all instruments: a session begins. The counters stay.
    pub fn reset(&mut self) {
        match self {
            Self::Itch(itch) => itch.reset(),
            Self::Iex(iex) => iex.reset(),
            Self::Dbn(dbn) => dbn.reset(),
        }
    }

    /// The trading day begins at `midnight`; for protocols that count time from it.
    pub fn begin_day(&mut self, midnight: Nanos) {
        match self {
            Self::Itch(itch) => itch.begin_day(midnight),
            // Their times count from 1970.
            Self::Iex(_) | Self::Dbn(_) => {}
        }
    }
}

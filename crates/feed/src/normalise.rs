//! From an exchange's message to a draft of an update.
//!
//! Each protocol's normaliser stores the state of its instruments (books, quotes, trades, trading states) and returns
//! the changes of published fields by each message. [`Normaliser`] is any of them. To add one, write a module like
//! [`Itch`]'s and add an arm in each method below.

mod dbn;
mod iex;
mod itch;

pub use dbn::Dbn;
pub use iex::Iex;
pub use itch::{Itch, NormaliserCounters};

use tapeline_nanos::Nanos;

use crate::depth::{self, Depth};
use crate::draft::{Detail, Draft};
use crate::levels::Levels;
use crate::venues::VenueFeed;

/// Nanoseconds of a day.
const DAY_NS: u64 = 86_400_000_000_000;

/// An instrument's number within its feed: dense, and stable within a session. 0 means no instrument. ITCH: the locate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instrument(pub u32);

/// The effect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The instrument of the message.
    pub instrument: Instrument,
    /// The type byte of the message in its protocol.
    pub letter: u8,
    /// The time of the event, as stated by the exchange.
    pub event: Nanos,
    /// The update to publish, if a published field changed.
    pub change: Option<Draft>,
    /// `true` if the instrument is new, or its number now stands for another one: publish its [image](Normaliser::image) in place of
    /// the change.
    pub image: bool,
}

/// The error for a message that could not be decoded. It was counted by reason in its protocol's own counters, and changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message could not be decoded")]
pub struct MalformedMessage;

impl From<crate::itch::MalformedItchMessage> for MalformedMessage {
    fn from(_: crate::itch::MalformedItchMessage) -> Self {
        Self
    }
}

/// The normaliser of a feed, in any protocol.
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
    /// A crypto venue's messages.
    Venue(Box<VenueFeed>),
}

impl Normaliser {
    /// Announces the messages that will be applied next: those of a received datagram. Returns the number of messages that are prepared for
    /// [`apply_expected`](Self::apply_expected); it may be lower than that of the messages, and 0.
    #[inline]
    pub fn expect<'a>(&mut self, messages: impl Iterator<Item = &'a [u8]>) -> usize {
        match self {
            Self::Itch(itch) => itch.expect(messages),
            Self::Iex(iex) => iex.expect(messages),
            Self::Dbn(_) | Self::Venue(_) => 0,
        }
    }

    /// Applies message `at` of those that were announced last. Does the same as [`apply`](Self::apply), and is faster.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    #[inline]
    pub fn apply_expected(&mut self, at: usize, bytes: &[u8]) -> Result<Applied, MalformedMessage> {
        match self {
            Self::Itch(itch) => itch.apply_expected(at, bytes),
            Self::Iex(_) | Self::Dbn(_) | Self::Venue(_) => self.apply(bytes),
        }
    }

    /// Applies one message.
    ///
    /// # Errors
    /// [`MalformedMessage`]: it was counted, and nothing else has changed.
    #[inline]
    pub fn apply(&mut self, bytes: &[u8]) -> Result<Applied, MalformedMessage> {
        match self {
            Self::Itch(itch) => itch.apply_any(bytes),
            Self::Iex(iex) => iex.apply(bytes).map_err(|_| MalformedMessage),
            Self::Dbn(dbn) => dbn.apply(bytes).map_err(|_| MalformedMessage),
            Self::Venue(venue) => venue.apply(bytes).map_err(|_| MalformedMessage),
        }
    }

    /// Returns the next result of the last message: a venue's message may have several.
    pub fn more(&mut self) -> Option<Applied> {
        match self {
            Self::Itch(_) | Self::Iex(_) | Self::Dbn(_) => None,
            Self::Venue(venue) => venue.more(),
        }
    }

    /// Returns all values of an instrument, all fields marked as changed; `None` for one without a name.
    #[must_use]
    pub fn image(&self, instrument: Instrument) -> Option<Draft> {
        match self {
            Self::Itch(itch) => itch.image(instrument),
            Self::Iex(iex) => iex.image(instrument),
            Self::Dbn(dbn) => dbn.image(instrument),
            Self::Venue(venue) => venue.image(instrument),
        }
    }

    /// Returns the detail of the last message, if its change [has a detail](crate::draft::Changed::has_detail).
    #[must_use]
    pub fn detail(&self) -> Option<&Detail> {
        match self {
            Self::Itch(itch) => itch.detail(),
            Self::Iex(iex) => iex.detail(),
            Self::Dbn(dbn) => dbn.detail(),
            Self::Venue(_) => None,
        }
    }

    /// Returns the instrument's name, such as a symbol; `None` until a message contains it.
    #[inline]
    #[must_use]
    pub fn name(&self, instrument: Instrument) -> Option<&str> {
        match self {
            Self::Itch(itch) => itch.name(instrument),
            Self::Iex(iex) => iex.name(instrument),
            Self::Dbn(dbn) => dbn.name(instrument),
            Self::Venue(venue) => venue.name(instrument),
        }
    }

    /// Returns all instruments that have a name, by number.
    pub fn instruments(&self) -> impl Iterator<Item = Instrument> {
        let (mut itch, mut iex, mut dbn, mut venue) = (None, None, None, None);
        match self {
            Self::Itch(feed) => itch = Some(feed.instruments()),
            Self::Iex(feed) => iex = Some(feed.instruments()),
            Self::Dbn(feed) => dbn = Some(feed.instruments()),
            Self::Venue(feed) => venue = Some(feed.instruments()),
        }
        let before = itch.into_iter().flatten().chain(iex.into_iter().flatten());
        before.chain(dbn.into_iter().flatten()).chain(venue.into_iter().flatten())
    }

    /// Returns the number of orders on the books; 0 for a protocol without orders.
    #[must_use]
    pub fn live_orders(&self) -> usize {
        match self {
            Self::Itch(itch) => itch.books().live_orders(),
            Self::Iex(_) | Self::Venue(_) => 0,
            Self::Dbn(dbn) => dbn.books().live_orders(),
        }
    }

    /// Returns the number of messages about orders that are not on the books: sent earlier, or lost; 0 for a protocol without orders.
    #[must_use]
    pub fn unknown_orders(&self) -> u64 {
        match self {
            Self::Itch(itch) => itch.books().counters().unknown_reference.total(),
            Self::Iex(_) | Self::Dbn(_) | Self::Venue(_) => 0,
        }
    }

    /// Starts storing the single orders, at most `max_orders` at once. Returns `false`, without any effect, if the protocol has no orders.
    pub fn keep_orders(&mut self, max_orders: usize) -> bool {
        match self {
            Self::Itch(itch) => {
                itch.keep_orders(max_orders);
                true
            }
            Self::Iex(_) | Self::Dbn(_) | Self::Venue(_) => false,
        }
    }

    /// Returns the single orders, if they are stored, and the changes by the last applied message.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> Option<&Depth> {
        match self {
            Self::Itch(itch) => itch.depth(),
            Self::Iex(_) | Self::Dbn(_) | Self::Venue(_) => None,
        }
    }

    /// Returns the price levels of each instrument, if the source maintains them, and the changes by the last applied message.
    #[inline]
    #[must_use]
    pub fn levels(&self) -> Option<&Levels> {
        match self {
            Self::Dbn(dbn) => Some(dbn.levels()),
            Self::Venue(venue) => Some(venue.levels()),
            Self::Itch(_) | Self::Iex(_) => None,
        }
    }

    /// Returns the common data of an instrument's orders; `None` for one without a name, or if the protocol has no orders.
    #[must_use]
    pub fn order_summary(&self, instrument: Instrument) -> Option<depth::OrdersSummary> {
        match self {
            Self::Itch(itch) => itch.order_summary(instrument),
            Self::Iex(_) | Self::Dbn(_) | Self::Venue(_) => None,
        }
    }

    /// Clears the state of all instruments at the start of a session. The counters stay.
    pub fn reset(&mut self) {
        match self {
            Self::Itch(itch) => itch.reset(),
            Self::Iex(iex) => iex.reset(),
            Self::Dbn(dbn) => dbn.reset(),
            Self::Venue(venue) => venue.reset(),
        }
    }

    /// Sets `midnight`, the start of the trading day, for protocols that count time from it.
    pub fn begin_day(&mut self, midnight: Nanos) {
        match self {
            Self::Itch(itch) => itch.begin_day(midnight),
            // Their times count from 1970.
            Self::Iex(_) | Self::Dbn(_) | Self::Venue(_) => {}
        }
    }
}

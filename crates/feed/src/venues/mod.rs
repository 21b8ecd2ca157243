//! The public streams of crypto venues: JSON messages in, books, trades and drafts out.
//!
//! A venue sends the book of a symbol as a snapshot and differences, and has a rule that joins the two. [`VenueFeed`] reads the messages of one
//! connection, maintains a [book](PriceBook) for each symbol, and applies the venue's rule. If the rule shows that a message is missing, the book is
//! *apart*: the feed reports a [`VenueGap`], asks for a new snapshot by a [`VenueRequest`], and joins the book again when the snapshot arrives. The same
//! holds for the books that a message concerns which cannot be read.
//!
//! | file | owns |
//! |---|---|
//! | `binance.rs`, `coinbase.rs`, `kraken.rs`, `bitmex.rs` | a venue's messages and its rule |
//! | `core.rs` | symbols, requests and gaps, common to all venues |
//! | `instrument.rs` | one symbol: book, trades, best bid and ask |
//! | `price_book.rs` | the levels of both sides |
//! | `resync.rs` | new snapshots, and the pauses between their requests |
//! | `json.rs`, `decimal.rs` | JSON texts, numbers and times |
//!
//! ```
//! use tapeline_feed::venues::{CryptoVenue, VenueFeed, VenueSettings};
//!
//! let mut feed = VenueFeed::new(VenueSettings::new(CryptoVenue::Coinbase, ["BTC-USD"]));
//! feed.connected();
//! feed.apply(br#"{"type":"snapshot","product_id":"BTC-USD","bids":[["61737.63","0.5"]],"asks":[["61737.64","2"]]}"#)?;
//! let book = feed.book("BTC-USD").expect("a symbol of the settings");
//! assert_eq!(book.best(tapeline_feed::itch::Side::Bid).map(|quote| quote.price.mantissa), Some(6_173_763));
//! # Ok::<(), tapeline_feed::venues::VenueFault>(())
//! ```

mod binance;
mod bitmex;
mod coinbase;
mod core;
mod decimal;
mod instrument;
mod json;
mod kraken;
mod price_book;
mod resync;

use std::fmt;

pub use self::core::{SymbolCounters, VenueCounters, VenueFeed, VenueSymbol};
pub use price_book::PriceBook;

/// A venue whose public streams are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CryptoVenue {
    /// Binance, spot and USD-M futures.
    Binance,
    /// Coinbase Exchange.
    Coinbase,
    /// Kraken, version 1 of its WebSocket API.
    Kraken,
    /// BitMEX, from its documentation alone.
    Bitmex,
}

impl CryptoVenue {
    /// Returns the address of the venue's WebSocket.
    #[must_use]
    pub const fn stream_url(self) -> &'static str {
        match self {
            Self::Binance => "wss://stream.binance.com:9443/stream",
            Self::Coinbase => "wss://ws-feed.exchange.coinbase.com",
            Self::Kraken => "wss://ws.kraken.com",
            Self::Bitmex => "wss://ws.bitmex.com/realtime",
        }
    }

    /// Returns the address at which the venue serves snapshots of books by HTTPS; `None` if snapshots arrive on the stream.
    #[must_use]
    pub const fn snapshot_url(self) -> Option<&'static str> {
        match self {
            Self::Binance => Some("https://api.binance.com/api/v3/depth"),
            Self::Coinbase | Self::Kraken | Self::Bitmex => None,
        }
    }

    /// Returns an example of a symbol, in the venue's own notation.
    #[must_use]
    pub const fn example(self) -> &'static str {
        match self {
            Self::Binance => "BTCUSDT",
            Self::Coinbase => "BTC-USD",
            Self::Kraken => "XBT/USD",
            Self::Bitmex => "XBTUSD",
        }
    }
}

/// The settings of a venue's feed.
#[derive(Clone, Debug)]
pub struct VenueSettings {
    /// The venue.
    pub venue: CryptoVenue,
    /// The symbols, in the venue's own notation.
    pub symbols: Vec<String>,
    /// Maximum number of price levels of one side of a book: the worst beyond it are dropped.
    pub max_levels: usize,
    /// Maximum number of bytes of differences that wait for one symbol's snapshot.
    pub max_waiting_bytes: usize,
}

/// Maximum number of symbols of one feed.
pub const MAX_SYMBOLS: usize = 200;

/// The longest symbol in bytes.
pub const MAX_SYMBOL_BYTES: usize = 32;

impl VenueSettings {
    /// Creates settings with the default limits: 16,384 levels, 4 MiB of waiting differences.
    pub fn new<'a>(venue: CryptoVenue, symbols: impl IntoIterator<Item = &'a str>) -> Self {
        let symbols = symbols.into_iter().map(str::to_owned).collect();
        Self { venue, symbols, max_levels: 16_384, max_waiting_bytes: 4 << 20 }
    }
}

/// What the feed needs from its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VenueRequest {
    /// Send this text on the WebSocket.
    Send(String),
    /// Fetch a snapshot by HTTPS from the snapshot address with this query, and apply it in the [envelope](snapshot_message).
    Snapshot {
        /// The symbol.
        symbol: String,
        /// The query behind the address, such as `symbol=BTCUSDT&limit=1000`.
        query: String,
    },
}

/// Puts a snapshot that was fetched by HTTPS into a message for [`VenueFeed::apply`]: the body itself does not name its symbol.
#[must_use]
pub fn snapshot_message(symbol: &str, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(body.len() + symbol.len() + 24);
    message.extend_from_slice(SNAPSHOT_OF);
    message.extend_from_slice(symbol.as_bytes());
    message.extend_from_slice(b"\",\"data\":");
    message.extend_from_slice(body);
    message.push(b'}');
    message
}

/// The begin of the envelope of a fetched snapshot.
const SNAPSHOT_OF: &[u8] = b"{\"snapshot\":\"";

/// Returns the symbol of a fetched snapshot, even if its body cannot be read; `None` for other messages.
fn snapshot_symbol(message: &[u8]) -> Option<&[u8]> {
    message.strip_prefix(SNAPSHOT_OF)?.split(|byte| *byte == b'"').next()
}

/// The evidence that messages of a symbol are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueGap {
    /// The symbol; `None` if several are concerned.
    pub symbol: Option<Box<str>>,
    /// The evidence.
    pub kind: GapKind,
}

/// The kinds of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GapKind {
    /// Updates of the book with these numbers are missing.
    Updates {
        /// The first missing number.
        first: u64,
        /// The last missing number.
        last: u64,
    },
    /// Trades with these numbers are missing. The book is not affected.
    Trades {
        /// The first missing number.
        first: u64,
        /// The last missing number.
        last: u64,
    },
    /// The book differs from the venue's checksum.
    Checksum {
        /// The checksum of this book.
        ours: u32,
        /// The venue's.
        theirs: u32,
    },
    /// A change of a level that the book does not have.
    UnknownLevel {
        /// The venue's number of the level.
        id: u64,
    },
    /// A message that cannot be read or applied.
    Unreadable,
}

impl GapKind {
    /// Returns the number of missing messages, as far as the venue's numbers tell: 1 if they do not.
    #[must_use]
    pub const fn missing(self) -> u64 {
        match self {
            Self::Trades { first, last } => last.saturating_sub(first).saturating_add(1),
            Self::Updates { .. } | Self::Checksum { .. } | Self::UnknownLevel { .. } | Self::Unreadable => 1,
        }
    }
}

impl fmt::Display for VenueGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbol = self.symbol.as_deref().unwrap_or("several symbols");
        match self.kind {
            GapKind::Updates { first, last } => {
                write!(
                    f,
                    "{symbol}: updates {first} to {last} of the book are missing: its snapshot is requested again"
                )
            }
            GapKind::Trades { first, last } if first == last => {
                write!(f, "{symbol}: trade {first} is missing")
            }
            GapKind::Trades { first, last } => write!(f, "{symbol}: trades {first} to {last} are missing"),
            GapKind::Checksum { ours, theirs } => write!(
                f,
                "{symbol}: the book has checksum {ours}, the venue's has {theirs}: its snapshot is requested again"
            ),
            GapKind::UnknownLevel { id } => {
                write!(
                    f,
                    "{symbol}: level {id} changes, but is not in the book: its snapshot is requested again"
                )
            }
            GapKind::Unreadable => {
                write!(f, "{symbol}: a message cannot be read: a snapshot of the book is requested again")
            }
        }
    }
}

/// Why a message could not be read. The fault is the venue's, or of somebody who claims to be the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VenueFault {
    /// The text ends too early.
    #[error("the text ends too early")]
    Truncated,
    /// The text is not JSON.
    #[error("the text is not JSON")]
    Syntax,
    /// Objects and arrays are nested too deep.
    #[error("objects and arrays are nested deeper than 16 levels")]
    TooDeep,
    /// A name, a symbol or a number has an escape.
    #[error("a name, a symbol or a number has an escape")]
    Escape,
    /// A number or a time is not one, or has too many digits.
    #[error("a number or a time is not one, or has too many digits")]
    Number,
    /// A member is missing.
    #[error("a member is missing")]
    Missing,
}

//! A simulated exchange: a plausible NASDAQ day as ITCH 5.0 messages, the same for the same seed.
//!
//! The flow follows counts of real days: the activity of symbols follows Zipf's law, messages are in short bursts about one symbol, seven in ten
//! deletes take one of the youngest orders, executions take the order first in line at the best price, books never cross, and references rise by
//! four. Not modelled: auctions (a cross is printed but executes nothing on the book), the time of day (the caller determines the speed of the
//! day), and any relation between stocks.
//!
//! The exchange maintains the books that its messages describe, so they are a reference for books built from the messages: compare
//! [`Exchange::checksum`] with [`checksum`] over your own.
//!
//! ```
//! use tapeline_feed::itch::encode::LONGEST;
//! use tapeline_feed::simulate::{Exchange, SimulatedDay};
//!
//! let mut exchange = Exchange::new(SimulatedDay { seed: 7, symbols: 10, ..SimulatedDay::default() });
//! let mut message = [0; LONGEST];
//! let length = exchange.next(34_200_000_000_000, &mut message);
//! assert_eq!(length, Some(12)); // the day begins with a system event, `O`
//! assert_eq!((message[0], message[11]), (b'S', b'O'));
//! ```

mod book;
mod exchange;
mod listing;
mod mix;
pub(crate) mod random;
pub(crate) mod schedule;

pub use exchange::Exchange;
pub use schedule::{Burst, FASTEST_HZ, NotABurst, Schedule};

/// A tick of one cent in prices with four decimals.
const TICK: u32 = 100;

/// The number of messages that end the day: system events `M`, `E` and `C`.
pub const CLOSING_MESSAGES: u64 = 3;

/// The settings of a simulated day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedDay {
    /// The seed. The same seed and settings give the same messages, byte for byte, for the same event times.
    pub seed: u64,
    /// Number of stocks, 1..=65,000 (other values are set to the nearest limit).
    pub symbols: u16,
    /// Number of live orders over all symbols at which the books stop growing (every symbol may have 32 in any case). Memory is at most about 50
    /// bytes for each order.
    pub live_orders: u32,
}

impl Default for SimulatedDay {
    fn default() -> Self {
        Self { seed: 1, symbols: 500, live_orders: 400_000 }
    }
}

/// Price (four decimals) and shares of a best level.
pub type Best = Option<(u32, u64)>;

/// Counters of a day so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages of all types.
    pub messages: u64,
    /// Shares traded: E + C if printable + P + Q, less broken trades (B).
    pub traded_shares: u64,
}

/// Returns a hash over best bids and asks, in the given order: FNV-1a (64 bits) over price and shares as little-endian 64-bit words, zeros for a
/// side without orders. Equal books have equal hashes.
pub fn checksum(tops: impl Iterator<Item = (Best, Best)>) -> u64 {
    let mut sum = 0xCBF2_9CE4_8422_2325_u64;
    for (bid, ask) in tops {
        for (price, shares) in [bid.unwrap_or((0, 0)), ask.unwrap_or((0, 0))] {
            for byte in [u64::from(price), shares].into_iter().flat_map(u64::to_le_bytes) {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
            }
        }
    }
    sum
}

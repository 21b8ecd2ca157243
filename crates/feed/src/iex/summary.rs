//! A summary of messages for people.

use super::{IexBooks, IexChange, IexMessage, IexSettings, MalformedIexMessage, decode};
use crate::itch::{ByType, Code};

/// Maximum number of listed system events; further ones are only counted by type.
const MAX_EVENTS: usize = 64;

/// Messages by type and by their flags.
#[derive(Clone, Debug)]
pub struct MessageCounts {
    /// Messages, malformed ones included.
    pub messages: u64,
    /// Bytes of those messages, without framing.
    pub message_bytes: u64,
    /// Messages by their first byte, unknown types included, malformed ones not.
    pub by_type: ByType,
    /// Messages shorter than their type, by type.
    pub short: ByType,
    /// Messages with bytes after their known fields, by type.
    pub longer: ByType,
    /// Messages of zero bytes.
    pub empty: u64,
    /// Earliest and latest time of an event, ns since 1970 in UTC.
    pub ts_ns: Option<(u64, u64)>,
    /// System events with their times; the first 64 of them.
    pub events: Vec<(Code, u64)>,
    /// Quote updates by their flags.
    pub quote_flags: [u64; 256],
    /// Trades by their sale conditions.
    pub sale_flags: [u64; 256],
    /// Price level updates by their event flags.
    pub level_flags: [u64; 256],
}

impl Default for MessageCounts {
    fn default() -> Self {
        Self {
            messages: 0,
            message_bytes: 0,
            by_type: ByType::new(),
            short: ByType::new(),
            longer: ByType::new(),
            empty: 0,
            ts_ns: None,
            events: Vec::new(),
            quote_flags: [0; 256],
            sale_flags: [0; 256],
            level_flags: [0; 256],
        }
    }
}

impl MessageCounts {
    /// Counts and decodes a message without framing.
    ///
    /// # Errors
    /// [`MalformedIexMessage`]: it was counted by reason.
    pub fn message<'a>(&mut self, bytes: &'a [u8]) -> Result<IexMessage<'a>, MalformedIexMessage> {
        self.messages += 1;
        self.message_bytes += bytes.len() as u64;
        let message = decode(bytes).inspect_err(|malformed| match malformed {
            MalformedIexMessage::Empty => self.empty += 1,
            MalformedIexMessage::Short { kind, .. } => self.short.count(kind.letter()),
        })?;
        self.by_type.count(message.letter());
        if message.extra_bytes(bytes) > 0 {
            self.longer.count(message.letter());
        }
        if let Some(ts_ns) = message.ts_ns() {
            let (earliest, latest) = self.ts_ns.unwrap_or((ts_ns, ts_ns));
            self.ts_ns = Some((earliest.min(ts_ns), latest.max(ts_ns)));
        }
        match message {
            IexMessage::SystemEvent(m) if self.events.len() < MAX_EVENTS => {
                self.events.push((m.event(), m.ts_ns()));
            }
            IexMessage::QuoteUpdate(m) => self.quote_flags[usize::from(m.flags())] += 1,
            IexMessage::TradeReport(m) => self.sale_flags[usize::from(m.flags())] += 1,
            IexMessage::PriceLevel(m) => self.level_flags[usize::from(m.flags())] += 1,
            _ => {}
        }
        Ok(message)
    }
}

/// Numbers of messages about one symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerSymbol {
    /// Messages of all types.
    pub messages: u64,
    /// Quote updates.
    pub quotes: u64,
    /// Price level updates.
    pub levels: u64,
    /// Messages of auction information.
    pub auctions: u64,
    /// Changes of price or size of the best bid or ask.
    pub top_changes: u64,
}

/// Counts and books of the messages since the last [`reset`](Self::reset).
#[derive(Debug)]
pub struct IexSummary {
    /// The messages by type and flags.
    pub counts: MessageCounts,
    /// The books.
    pub books: IexBooks,
    /// The messages by instrument, in the order of [`IexBooks::iter`].
    pub per_symbol: Vec<PerSymbol>,
}

impl IexSummary {
    /// Creates an empty summary.
    #[must_use]
    pub fn new(settings: IexSettings) -> Self {
        Self { counts: MessageCounts::default(), books: IexBooks::new(settings), per_symbol: Vec::new() }
    }

    /// Adds a message without framing.
    pub fn message(&mut self, bytes: &[u8]) {
        // Malformed messages are in the counts now.
        let Ok(message) = self.counts.message(bytes) else { return };
        let change = self.books.apply(&message);
        let IexChange { instrument: Some(instrument), .. } = change else { return };
        let at = instrument.0 as usize;
        if at >= self.per_symbol.len() {
            self.per_symbol.resize(at + 1, PerSymbol::default());
        }
        let symbol = &mut self.per_symbol[at];
        symbol.messages += 1;
        symbol.top_changes += u64::from(change.fields.is_quote());
        match message {
            IexMessage::QuoteUpdate(_) => symbol.quotes += 1,
            IexMessage::PriceLevel(_) => symbol.levels += 1,
            IexMessage::AuctionInformation(_) => symbol.auctions += 1,
            _ => {}
        }
    }

    /// Handles the start of a session or a sequence reset: counts and books start empty.
    pub fn reset(&mut self) {
        self.counts = MessageCounts::default();
        self.books.clear();
        self.per_symbol.clear();
    }
}

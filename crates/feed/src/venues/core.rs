//! The common part of all venues: symbols, requests, gaps, and the drafts of a message.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tapeline_nanos::Nanos;

use super::instrument::{Join, Traded, VenueInstrument};
use super::price_book::{Change, PriceBook};
use super::resync::Resync;
use super::{CryptoVenue, GapKind, MAX_SYMBOL_BYTES, VenueFault, VenueGap, VenueRequest, VenueSettings};
use super::{binance, bitmex, coinbase, kraken};
use crate::draft::{Changed, Draft};
use crate::itch::{ByType, Side};
use crate::levels::{Levels, MOST_LEVELS};
use crate::normalise::{Applied, Instrument};

/// The type bytes of a venue's messages, in ticks and counters.
pub(super) mod letter {
    /// A difference of a book.
    pub(crate) const DIFFERENCE: u8 = b'D';
    /// A snapshot of a book.
    pub(crate) const SNAPSHOT: u8 = b'S';
    /// A best bid and ask.
    pub(crate) const QUOTE: u8 = b'Q';
    /// A trade.
    pub(crate) const TRADE: u8 = b'T';
    /// Anything else: an answer, a heartbeat.
    pub(crate) const OTHER: u8 = b'O';
}

/// Maximum number of reported gaps and refusals that wait to be taken.
const MOST_NEWS: usize = 64;

/// The counters of a venue's feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VenueCounters {
    /// Messages that could not be read.
    pub malformed: u64,
    /// Messages about symbols that are not in the settings.
    pub unknown_symbols: u64,
    /// Differences that a snapshot already contains.
    pub old_differences: u64,
    /// Differences that were applied to a book.
    pub differences: u64,
    /// Snapshots that a book was joined with.
    pub snapshots: u64,
    /// Snapshots that were older than the differences, and were requested again.
    pub old_snapshots: u64,
    /// Differences that were dropped because too many waited for a snapshot.
    pub dropped_differences: u64,
    /// Evidence of missing messages.
    pub gaps: u64,
}

/// The counters of one symbol of a venue's feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SymbolCounters {
    /// Messages that name the symbol.
    pub messages: u64,
    /// Snapshots that the book was joined with.
    pub snapshots: u64,
    /// Evidence of missing messages of the symbol.
    pub gaps: u64,
    /// When the last of the messages arrived.
    pub arrived: Option<Nanos>,
}

/// A symbol of a venue's feed, seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueSymbol<'f> {
    /// The symbol.
    pub symbol: &'f str,
    /// `true` if the book is joined with its snapshot.
    pub is_joined: bool,
    /// Its counters.
    pub counters: SymbolCounters,
}

/// A result of the last message that was not returned yet.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one or a few for each message, in a queue that stays")]
enum Pending {
    Trade(Applied),
    Book { at: usize, ns: u64, letter: u8, image: bool },
}

/// The symbols of a feed, and what its messages lead to.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) settings: VenueSettings,
    pub(super) instruments: Vec<VenueInstrument>,
    by_symbol: HashMap<Box<str>, usize, RandomState>,
    pending: VecDeque<Pending>,
    requests: VecDeque<VenueRequest>,
    gaps: VecDeque<VenueGap>,
    refusals: VecDeque<String>,
    pub(super) counters: VenueCounters,
    /// The latest time that the venue has stated, ns since 1970 UTC.
    pub(super) latest_ns: u64,
    /// The number of the present message, and when it arrived.
    message: u64,
    pub(super) arrived: Option<Nanos>,
    /// The letter of the present message as far as it was read: `OTHER` until its kind is known.
    pub(super) kind: u8,
    /// `true` if requests for snapshots wait until their pause has passed.
    pub(super) owes_requests: bool,
    /// When a snapshot that had not come was last requested again.
    pub(super) late_requested: Nanos,
}

impl Core {
    /// Returns the index of the symbol that a message is about, and counts the message, once however many of its parts name the symbol; counts a
    /// symbol that is not in the settings.
    #[inline]
    pub(super) fn find(&mut self, symbol: &[u8]) -> Option<usize> {
        let found = self.index_of(symbol);
        self.counters.unknown_symbols += u64::from(found.is_none());
        let it = &mut self.instruments[found?];
        if it.counted != self.message {
            it.counted = self.message;
            it.counters.messages += 1;
            it.counters.arrived = self.arrived;
        }
        found
    }

    /// Returns the index of a symbol.
    #[inline]
    pub(super) fn index_of(&self, symbol: &[u8]) -> Option<usize> {
        self.by_symbol.get(std::str::from_utf8(symbol).ok()?).copied()
    }

    pub(super) fn request(&mut self, request: VenueRequest) {
        self.requests.push_back(request);
    }

    /// Stores the text with which a venue refuses a request, for the operator. At most 200 bytes of it.
    pub(super) fn refused(&mut self, text: &[u8]) {
        if self.refusals.len() < MOST_NEWS {
            let text = &text[..text.len().min(200)];
            self.refusals.push_back(String::from_utf8_lossy(text).into_owned());
        }
    }

    /// Reports missing messages. Unless only trades are missing, the book is apart from now on.
    pub(super) fn gap(&mut self, at: usize, kind: GapKind) {
        self.counters.gaps += 1;
        let it = &mut self.instruments[at];
        it.counters.gaps += 1;
        if !matches!(kind, GapKind::Trades { .. }) {
            it.join = Join::Apart;
        }
        let symbol = Some(it.symbol.clone());
        self.report(VenueGap { symbol, kind });
    }

    /// Stores a gap until it is taken.
    pub(super) fn report(&mut self, gap: VenueGap) {
        if self.gaps.len() < MOST_NEWS {
            self.gaps.push_back(gap);
        }
    }

    /// Handles a trade. Numbers of trades go up by one, if the venue has numbers: others are missing. A trade that was received before has no effect.
    pub(super) fn trade(&mut self, at: usize, trade: Traded, counts: bool) {
        self.latest_ns = self.latest_ns.max(trade.at_ns);
        let it = &mut self.instruments[at];
        if trade.id > 0 {
            let known = it.trade_id;
            it.trade_id = known.max(trade.id);
            if known > 0 && trade.id <= known {
                return;
            }
            if known > 0 && trade.id > known + u64::from(counts) {
                self.gap(at, GapKind::Trades { first: known + 1, last: trade.id - u64::from(counts) });
            }
        }
        let it = &mut self.instruments[at];
        it.trade(trade, counts);
        let draft = it.draft(Changed { trade: true, ..Changed::default() });
        self.pending.push_back(Pending::Trade(Applied {
            instrument: number(at),
            letter: letter::TRADE,
            event: Nanos(trade.at_ns),
            change: Some(draft),
            image: false,
        }));
    }

    /// Announces that the book or the ticker of a symbol changed, at `ns` by the venue's clock.
    #[inline]
    pub(super) fn changed(&mut self, at: usize, ns: u64, letter: u8, image: bool) {
        self.latest_ns = self.latest_ns.max(ns);
        // Several changes by one message, such as differences that waited, are published at once.
        if let Some(Pending::Book { at: last, ns: time, image: is_image, .. }) = self.pending.back_mut()
            && *last == at
        {
            *time = ns.max(*time);
            *is_image |= image;
            return;
        }
        self.pending.push_back(Pending::Book { at, ns, letter, image });
    }

    /// Applies changes of both sides to a book, if all of them fit.
    #[inline]
    pub(super) fn set_levels(
        &mut self,
        at: usize,
        bids: &[Change],
        asks: &[Change],
    ) -> Result<(), VenueFault> {
        let book = &mut self.instruments[at].book;
        book.fit(bids)?;
        book.fit(asks)?;
        book.apply(Side::Bid, bids);
        book.apply(Side::Ask, asks);
        Ok(())
    }

    /// Replaces a book by a snapshot.
    pub(super) fn set_book(&mut self, at: usize, bids: &[Change], asks: &[Change]) -> Result<(), VenueFault> {
        let book = &mut self.instruments[at].book;
        book.fit(bids)?;
        book.fit(asks)?;
        book.clear();
        self.set_levels(at, bids, asks)?;
        self.counters.snapshots += 1;
        let it = &mut self.instruments[at];
        it.counters.snapshots += 1;
        it.resync.done();
        Ok(())
    }
}

/// Returns the instrument of an index.
fn number(at: usize) -> Instrument {
    // There are at most `MAX_SYMBOLS`.
    Instrument(u32::try_from(at + 1).unwrap_or(u32::MAX))
}

/// The feed of one connection to a venue.
#[derive(Debug)]
pub struct VenueFeed {
    core: Core,
    reading: Reading,
    levels: Levels,
    by_letter: ByType,
}

/// What a venue's messages are read into; kept, so that reading allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) bids: Vec<Change>,
    pub(super) asks: Vec<Change>,
    /// Rows of messages that name each change's symbol.
    pub(super) rows: Vec<bitmex::TableRow>,
}

impl VenueFeed {
    /// Creates a feed without a connection. Symbols beyond [`MAX_SYMBOLS`](super::MAX_SYMBOLS), longer ones than [`MAX_SYMBOL_BYTES`] and
    /// repeated ones are left out.
    #[must_use]
    pub fn new(settings: VenueSettings) -> Self {
        let (mut instruments, mut by_symbol) = (Vec::new(), HashMap::default());
        for symbol in settings.symbols.iter().take(super::MAX_SYMBOLS) {
            if symbol.len() <= MAX_SYMBOL_BYTES && !by_symbol.contains_key(symbol.as_str()) {
                by_symbol.insert(symbol.as_str().into(), instruments.len());
                instruments.push(VenueInstrument::new(symbol, settings.max_levels));
            }
        }
        Self {
            core: Core {
                settings,
                instruments,
                by_symbol,
                pending: VecDeque::new(),
                requests: VecDeque::new(),
                gaps: VecDeque::new(),
                refusals: VecDeque::new(),
                counters: VenueCounters::default(),
                latest_ns: 0,
                message: 0,
                arrived: None,
                kind: letter::OTHER,
                owes_requests: false,
                late_requested: Nanos(0),
            },
            reading: Reading::default(),
            levels: Levels::default(),
            by_letter: ByType::default(),
        }
    }

    /// Returns the venue.
    #[must_use]
    pub const fn venue(&self) -> CryptoVenue {
        self.core.settings.venue
    }

    /// Begins a connection: requests the subscriptions.
    pub fn connected(&mut self) {
        self.disconnected();
        match self.venue() {
            CryptoVenue::Binance => binance::subscribe(&mut self.core),
            CryptoVenue::Coinbase => coinbase::subscribe(&mut self.core),
            CryptoVenue::Kraken => kraken::subscribe(&mut self.core),
            CryptoVenue::Bitmex => bitmex::subscribe(&mut self.core),
        }
        self.core.subscribed();
    }

    /// Ends a connection: all books are apart, and requests that were not taken are void.
    pub fn disconnected(&mut self) {
        self.core.requests.clear();
        for it in &mut self.core.instruments {
            it.join = Join::Apart;
            it.ticker = None;
            it.forget_waiting();
            it.resync = Resync::default();
        }
    }

    /// Sets the time at which the next message arrived. Without a time, requests for snapshots do not wait for their pause.
    #[inline]
    pub const fn arrives(&mut self, at: Nanos) {
        self.core.arrived = Some(at);
    }

    /// Returns the time at which the last message arrived, if that was [set](Self::arrives).
    #[must_use]
    pub const fn arrived(&self) -> Option<Nanos> {
        self.core.arrived
    }

    /// Applies one message, and returns its first result; [`more`](Self::more) returns further ones.
    ///
    /// Costs one pass over the text and a search for each level; allocates only if a book gets deeper, or while differences wait for a snapshot.
    ///
    /// # Errors
    /// [`VenueFault`]: it was counted. The books that the message may concern are apart, with a reported [gap](Self::next_gap); a trade, or a best
    /// bid and ask of its own, concerns no book.
    pub fn apply(&mut self, bytes: &[u8]) -> Result<Applied, VenueFault> {
        self.core.pending.clear();
        self.core.message += 1;
        self.core.kind = letter::OTHER;
        self.levels.begin();
        let read = match self.core.settings.venue {
            CryptoVenue::Binance => binance::apply(&mut self.core, &mut self.reading, bytes),
            CryptoVenue::Coinbase => coinbase::apply(&mut self.core, &mut self.reading, bytes),
            CryptoVenue::Kraken => kraken::apply(&mut self.core, &mut self.reading, bytes),
            CryptoVenue::Bitmex => bitmex::apply(&mut self.core, &mut self.reading, bytes),
        };
        match read {
            Ok(letter) => {
                self.by_letter.count(letter);
                let nothing = Applied {
                    instrument: Instrument(0),
                    letter,
                    event: Nanos(self.core.latest_ns),
                    change: None,
                    image: false,
                };
                Ok(self.more().unwrap_or(nothing))
            }
            Err(fault) => {
                self.core.counters.malformed += 1;
                self.core.unreadable(bytes);
                Err(fault)
            }
        }
    }

    /// Returns the next result of the last message.
    #[inline]
    pub fn more(&mut self) -> Option<Applied> {
        let (at, ns, letter, image) = match self.core.pending.pop_front()? {
            Pending::Trade(applied) => {
                self.levels.begin();
                return Some(applied);
            }
            Pending::Book { at, ns, letter, image } => (at, ns, letter, image),
        };
        let it = &mut self.core.instruments[at];
        let fields = it.show(ns);
        let change = fields.is_any().then(|| it.draft(fields));
        self.levels.begin();
        if it.is_joined() && letter != letter::QUOTE {
            self.levels.show(number(at), ns % 86_400_000_000_000, it.book.shown(MOST_LEVELS));
        }
        Some(Applied { instrument: number(at), letter, event: Nanos(ns), change, image })
    }

    /// Requests the snapshots that had to wait: see [`next_request`](Self::next_request).
    #[inline]
    pub fn request_due(&mut self, now: Nanos) {
        self.core.request_due(Some(now));
    }

    /// Returns the next request for the connection.
    pub fn next_request(&mut self) -> Option<VenueRequest> {
        self.core.requests.pop_front()
    }

    /// Returns the next reported gap.
    pub fn next_gap(&mut self) -> Option<VenueGap> {
        self.core.gaps.pop_front()
    }

    /// Returns the next text with which the venue refused a request.
    pub fn next_refusal(&mut self) -> Option<String> {
        self.core.refusals.pop_front()
    }

    /// Requests the snapshot of a symbol again, after a fetch that failed.
    pub fn snapshot_failed(&mut self, symbol: &str) {
        if let Some(at) = self.core.index_of(symbol.as_bytes())
            && self.core.instruments[at].join == Join::Requested
        {
            self.core.resync(at);
        }
    }

    /// Returns `true` if every book is joined with its snapshot.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.core.instruments.iter().all(VenueInstrument::is_joined)
    }

    /// Returns the book of a symbol.
    #[must_use]
    pub fn book(&self, symbol: &str) -> Option<&PriceBook> {
        self.core.instruments.get(*self.core.by_symbol.get(symbol)?).map(|it| &it.book)
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &VenueCounters {
        &self.core.counters
    }

    /// Returns the state and the counters of each symbol, in the order of the settings.
    pub fn symbols(&self) -> impl Iterator<Item = VenueSymbol<'_>> {
        self.core.instruments.iter().map(|it| VenueSymbol {
            symbol: &it.symbol,
            is_joined: it.is_joined(),
            counters: it.counters,
        })
    }

    /// Returns the messages by kind, malformed ones excluded: `D` differences, `S` snapshots, `Q` best bids and asks, `T` trades, `O` others.
    #[must_use]
    pub const fn by_letter(&self) -> &ByType {
        &self.by_letter
    }

    /// Returns all values of an instrument, all fields marked as changed.
    #[must_use]
    pub fn image(&self, instrument: Instrument) -> Option<Draft> {
        Some(self.of(instrument)?.draft(Changed::ALL))
    }

    /// Returns the symbol of an instrument.
    #[must_use]
    pub fn name(&self, instrument: Instrument) -> Option<&str> {
        Some(&self.of(instrument)?.symbol)
    }

    fn of(&self, instrument: Instrument) -> Option<&VenueInstrument> {
        self.core.instruments.get((instrument.0 as usize).checked_sub(1)?)
    }

    /// Returns all instruments.
    pub fn instruments(&self) -> impl Iterator<Item = Instrument> + use<> {
        (0..self.core.instruments.len()).map(number)
    }

    /// Returns the best ten price levels of each side of each joined book, and the changes by the last result.
    #[must_use]
    pub const fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Clears all symbols. The counters stay.
    pub fn reset(&mut self) {
        let settings = self.core.settings.clone();
        let (counters, by_letter) = (self.core.counters, std::mem::take(&mut self.by_letter));
        let of_symbols = self.core.instruments.iter().map(|it| it.counters).collect::<Vec<_>>();
        *self = Self { by_letter, ..Self::new(settings) };
        self.core.counters = counters;
        for (it, counters) in self.core.instruments.iter_mut().zip(of_symbols) {
            it.counters = counters;
        }
    }
}

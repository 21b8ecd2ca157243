//! Binance's spot and USD-M futures streams.
//!
//! Subscribed streams: `SYMBOL@depth@100ms`, `SYMBOL@bookTicker`, `SYMBOL@trade`. The snapshot is fetched by HTTPS.
//!
//! The rule. Spot: drop differences with `u` ≤ the snapshot's `lastUpdateId`; the first applied has `U` ≤ `lastUpdateId` + 1 ≤ `u`; each later one
//! begins with `U` = the `u` before + 1. Futures: drop differences with `u` < `lastUpdateId`; the first applied has `U` ≤ `lastUpdateId` ≤ `u`; each
//! later one has `pu` = the `u` before. If the snapshot is older than the first waiting difference, it is fetched again. Sources: Binance Spot API
//! documentation, "How to manage a local order book correctly"; Binance USD-M futures documentation, the section of the same name. A message
//! with `pu` is one of the futures.

use std::fmt::Write as _;

use super::core::{Core, Reading, letter};
use super::decimal::{milliseconds, shortest, whole};
use super::instrument::{Join, Ticker, Traded};
use super::json::Reader;
use super::price_book::Change;
use super::{GapKind, VenueFault, VenueRequest};
use crate::itch::Side;

/// Levels of each side of a snapshot.
const SNAPSHOT_LEVELS: usize = 1_000;

/// Requests the streams of all symbols.
pub(super) fn subscribe(core: &mut Core) {
    // A request for the streams of 64 symbols stays below 8 KiB.
    let mut texts = Vec::new();
    for (symbols, id) in core.instruments.chunks(64).zip(1_u32..) {
        let mut text = String::from(r#"{"method":"SUBSCRIBE","params":["#);
        for (at, it) in symbols.iter().enumerate() {
            let symbol = it.symbol.to_ascii_lowercase();
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(text, r#"{comma}"{symbol}@depth@100ms","{symbol}@bookTicker","{symbol}@trade""#);
        }
        let _ = write!(text, r#"],"id":{id}}}"#);
        texts.push(text);
    }
    texts.into_iter().for_each(|text| core.request(VenueRequest::Send(text)));
}

/// The members of a message, whatever its kind.
#[derive(Debug, Default)]
struct Members<'a> {
    event: Option<&'a [u8]>,
    symbol: Option<&'a [u8]>,
    snapshot_of: Option<&'a [u8]>,
    snapshot_update: Option<u64>,
    first: Option<u64>,
    last: Option<u64>,
    before: Option<u64>,
    event_ms: Option<u64>,
    trade_ms: Option<u64>,
    trade_id: Option<u64>,
    price: Option<&'a [u8]>,
    size: Option<&'a [u8]>,
    is_buyer_maker: Option<bool>,
    /// The kind of a futures trade, such as `MARKET`.
    trade_kind: Option<&'a [u8]>,
    bid: Option<&'a [u8]>,
    bid_size: Option<&'a [u8]>,
    ask: Option<&'a [u8]>,
    ask_size: Option<&'a [u8]>,
    are_levels: bool,
    refusal: Option<&'a [u8]>,
}

impl<'a> Members<'a> {
    fn read(bytes: &'a [u8], reading: &mut Reading) -> Result<Self, VenueFault> {
        let mut members = Self::default();
        reading.bids.clear();
        reading.asks.clear();
        let mut reader = Reader::new(bytes);
        members.object(&mut reader, reading)?;
        reader.end()?;
        Ok(members)
    }

    fn object(&mut self, reader: &mut Reader<'a>, reading: &mut Reading) -> Result<(), VenueFault> {
        reader.object(|reader, name| {
            match name {
                b"data" => return self.object(reader, reading),
                b"e" => self.event = Some(reader.string()?),
                b"s" => self.symbol = Some(reader.string()?),
                b"snapshot" => self.snapshot_of = Some(reader.string()?),
                b"lastUpdateId" => self.snapshot_update = Some(whole(reader.scalar()?)?),
                b"U" => self.first = Some(whole(reader.scalar()?)?),
                b"u" => self.last = Some(whole(reader.scalar()?)?),
                b"pu" => self.before = Some(whole(reader.scalar()?)?),
                b"E" => self.event_ms = Some(milliseconds(reader.scalar()?)?),
                b"T" => self.trade_ms = Some(milliseconds(reader.scalar()?)?),
                b"t" => self.trade_id = Some(whole(reader.scalar()?)?),
                b"p" => self.price = Some(reader.string()?),
                b"q" => self.size = Some(reader.string()?),
                b"m" => self.is_buyer_maker = Some(reader.scalar()? == b"true"),
                b"X" => self.trade_kind = Some(reader.string()?),
                b"B" => self.bid_size = Some(reader.string()?),
                b"A" => self.ask_size = Some(reader.string()?),
                b"b" if reader.peek()? == b'"' => self.bid = Some(reader.string()?),
                b"a" if reader.peek()? == b'"' => self.ask = Some(reader.string()?),
                b"b" | b"bids" => {
                    self.are_levels = true;
                    return levels(reader, &mut reading.bids);
                }
                b"a" | b"asks" => {
                    self.are_levels = true;
                    return levels(reader, &mut reading.asks);
                }
                b"msg" => self.refusal = Some(reader.text()?),
                b"error" if reader.peek()? == b'{' => return self.object(reader, reading),
                _ => return reader.skip(),
            }
            Ok(())
        })
    }

    /// Returns the time of the event: that of the matching engine if it is stated.
    fn ns(&self) -> Option<u64> {
        self.trade_ms.or(self.event_ms)
    }
}

/// Reads an array of levels, each an array of price and size. Of two arrays under one name, the last counts.
fn levels(reader: &mut Reader<'_>, changes: &mut Vec<Change>) -> Result<(), VenueFault> {
    changes.clear();
    reader.array(|reader| {
        let mut parts = [None; 2];
        let mut at = 0;
        reader.array(|reader| {
            let number = shortest(reader.scalar()?)?;
            if let Some(part) = parts.get_mut(at) {
                *part = Some(number);
            }
            at += 1;
            Ok(())
        })?;
        let [Some(price), Some(size)] = parts else { return Err(VenueFault::Missing) };
        changes.push((price, size));
        Ok(())
    })
}

/// Applies one message; returns its letter.
pub(super) fn apply(core: &mut Core, reading: &mut Reading, bytes: &[u8]) -> Result<u8, VenueFault> {
    let members = Members::read(bytes, reading)?;
    if let Some(symbol) = members.snapshot_of {
        let update = members.snapshot_update.ok_or(VenueFault::Missing)?;
        if let Some(at) = core.find(symbol) {
            snapshot(core, reading, at, update)?;
        }
        return Ok(letter::SNAPSHOT);
    }
    if let Some(text) = members.refusal {
        core.refused(text);
        return Ok(letter::OTHER);
    }
    let Some(symbol) = members.symbol else { return Ok(letter::OTHER) };
    let letter = match members.event {
        Some(b"depthUpdate") => letter::DIFFERENCE,
        Some(b"trade") => letter::TRADE,
        Some(b"bookTicker") => letter::QUOTE,
        // The spot stream's best bid and ask does not name its kind.
        None if members.bid.is_some() => letter::QUOTE,
        _ => return Ok(letter::OTHER),
    };
    core.kind = letter;
    let Some(at) = core.find(symbol) else { return Ok(letter) };
    match letter {
        letter::DIFFERENCE => difference(core, reading, at, &members, bytes)?,
        letter::TRADE => trade(core, at, &members)?,
        _ => ticker(core, at, &members)?,
    }
    Ok(letter)
}

fn trade(core: &mut Core, at: usize, members: &Members<'_>) -> Result<(), VenueFault> {
    let price = shortest(members.price.ok_or(VenueFault::Missing)?)?;
    let size = shortest(members.size.ok_or(VenueFault::Missing)?)?;
    let trade = Traded {
        price,
        size,
        id: members.trade_id.ok_or(VenueFault::Missing)?,
        // If the buyer's order was on the book, the incoming order was a sale.
        aggressor: members.is_buyer_maker.map(|is_maker| if is_maker { Side::Ask } else { Side::Bid }),
        at_ns: members.ns().ok_or(VenueFault::Missing)?,
    };
    core.trade(at, trade, true);
    Ok(())
}

fn ticker(core: &mut Core, at: usize, members: &Members<'_>) -> Result<(), VenueFault> {
    let number = |text: Option<&[u8]>| shortest(text.ok_or(VenueFault::Missing)?);
    let bid = (number(members.bid)?, number(members.bid_size)?);
    let ask = (number(members.ask)?, number(members.ask_size)?);
    let update = members.last.ok_or(VenueFault::Missing)?;
    let ns = members.ns().unwrap_or(core.latest_ns);
    let it = &mut core.instruments[at];
    if it.ticker.is_some_and(|known| known.update >= update) {
        return Ok(());
    }
    it.book.fit(&[bid, ask])?;
    it.ticker = Some(Ticker { update, bid, ask });
    core.changed(at, ns, letter::QUOTE, false);
    Ok(())
}

fn difference(
    core: &mut Core,
    reading: &Reading,
    at: usize,
    members: &Members<'_>,
    bytes: &[u8],
) -> Result<(), VenueFault> {
    let (Some(first), Some(last), true) = (members.first, members.last, members.are_levels) else {
        return Err(VenueFault::Missing);
    };
    let ns = members.ns().ok_or(VenueFault::Missing)?;
    let it = &mut core.instruments[at];
    let Join::Joined { is_first } = it.join else {
        wait(core, at, bytes);
        return Ok(());
    };
    let known = it.update;
    let (is_old, continues) = match (members.before, is_first) {
        // `pu` = `lastUpdateId`: none is missing, though the documentation does not name the case.
        (Some(before), true) => (last < known, first <= known || before == known),
        (Some(before), false) => (last < known, before == known),
        (None, true) => (last <= known, first <= known.saturating_add(1)),
        (None, false) => (last <= known, first == known.saturating_add(1)),
    };
    if is_old {
        core.counters.old_differences += 1;
        return Ok(());
    }
    if !continues {
        let missing = known.saturating_add(1);
        let last = members.before.unwrap_or(first.saturating_sub(1)).max(missing);
        core.gap(at, GapKind::Updates { first: missing, last });
        wait(core, at, bytes);
        return Ok(());
    }
    core.set_levels(at, &reading.bids, &reading.asks)?;
    let it = &mut core.instruments[at];
    (it.update, it.join) = (last, Join::Joined { is_first: false });
    core.counters.differences += 1;
    core.changed(at, ns, letter::DIFFERENCE, false);
    Ok(())
}

/// Stores a difference until the snapshot arrives, which the first one requests. Beyond the limit the oldest are dropped: the snapshot will then be
/// too old, and is fetched again.
fn wait(core: &mut Core, at: usize, bytes: &[u8]) {
    let most = core.settings.max_waiting_bytes;
    let it = &mut core.instruments[at];
    it.waiting_bytes += bytes.len();
    it.waiting.push_back(bytes.into());
    while it.waiting_bytes > most
        && let Some(oldest) = it.waiting.pop_front()
    {
        it.waiting_bytes -= oldest.len();
        core.counters.dropped_differences += 1;
    }
    if it.join == Join::Apart {
        core.resync(at);
    }
}

/// Requests the snapshots of these books.
pub(super) fn resubscribe(core: &mut Core, books: &[usize]) {
    for at in books {
        let symbol = core.instruments[*at].symbol.to_string();
        let query = format!("symbol={symbol}&limit={SNAPSHOT_LEVELS}");
        core.request(VenueRequest::Snapshot { symbol, query });
    }
}

/// Joins a book with its snapshot, and applies the differences that waited for it.
fn snapshot(core: &mut Core, reading: &mut Reading, at: usize, update: u64) -> Result<(), VenueFault> {
    if core.instruments[at].is_joined() {
        // Nobody asked for it.
        return Ok(());
    }
    let mut waiting = std::mem::take(&mut core.instruments[at].waiting);
    core.instruments[at].waiting_bytes = 0;
    if let Some(first) = waiting.front() {
        let mut first_levels = Reading::default();
        let Members { first, before, .. } = Members::read(first, &mut first_levels)?;
        if first.unwrap_or(0) > update.saturating_add(1) && before != Some(update) {
            core.counters.old_snapshots += 1;
            core.instruments[at].join = Join::Apart;
            waiting.iter().for_each(|bytes| wait(core, at, bytes));
            return Ok(());
        }
    }
    core.set_book(at, &reading.bids, &reading.asks)?;
    let it = &mut core.instruments[at];
    (it.update, it.join) = (update, Join::Joined { is_first: true });
    let ns = core.latest_ns;
    core.changed(at, ns, letter::SNAPSHOT, true);
    for bytes in waiting.drain(..) {
        let members = Members::read(&bytes, reading)?;
        difference(core, reading, at, &members, &bytes)?;
    }
    Ok(())
}

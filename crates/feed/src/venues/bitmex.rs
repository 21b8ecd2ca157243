//! BitMEX's tables `orderBookL2` and `trade`, from BitMEX's documentation alone: no recorded stream was at hand.
//!
//! The rule: the table begins with a `partial`, its whole contents; messages before it are ignored. Then rows are inserted, updated (a new size) and
//! deleted, each under the number of its level. Messages have no numbers: a row for an unknown level shows that one is missing, and the receiver
//! subscribes again. Sizes are contracts. Source: BitMEX API documentation, "WebSocket API", the sections on the message format and on
//! `orderBookL2`.

use super::core::{Core, Reading, letter};
use super::decimal::{Decimal, date_time, decimal, whole};
use super::instrument::{Join, Traded, VenueInstrument};
use super::json::Reader;
use super::{GapKind, VenueFault, VenueRequest};
use crate::itch::Side;

/// A row of a table. It owns its symbol, so that the memory of the rows is kept between messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableRow {
    /// A longer symbol than those of the settings is cut at one byte more than they can have.
    symbol: [u8; super::MAX_SYMBOL_BYTES + 1],
    symbol_length: usize,
    id: u64,
    side: Option<Side>,
    price: Option<Decimal>,
    size: Option<Decimal>,
    at_ns: u64,
}

/// Requests the tables of all symbols.
pub(super) fn subscribe(core: &mut Core) {
    let topics = topics(core.instruments.iter(), true);
    core.request(VenueRequest::Send(format!(r#"{{"op":"subscribe","args":[{topics}]}}"#)));
}

/// The tables of these symbols.
fn topics<'a>(of: impl Iterator<Item = &'a VenueInstrument>, with_trades: bool) -> String {
    let topics = of.map(|VenueInstrument { symbol, .. }| match with_trades {
        true => format!(r#""orderBookL2:{symbol}","trade:{symbol}""#),
        false => format!(r#""orderBookL2:{symbol}""#),
    });
    topics.collect::<Vec<_>>().join(",")
}

/// Requests the snapshots of these books, and their trades if wanted: by another subscription of their tables.
pub(super) fn resubscribe(core: &mut Core, books: &[usize], with_trades: bool) {
    let topics = topics(books.iter().map(|at| &core.instruments[*at]), with_trades);
    for op in ["unsubscribe", "subscribe"] {
        core.request(VenueRequest::Send(format!(r#"{{"op":"{op}","args":[{topics}]}}"#)));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Partial,
    Insert,
    Update,
    Delete,
}

/// Applies one message; returns its letter.
pub(super) fn apply(core: &mut Core, reading: &mut Reading, bytes: &[u8]) -> Result<u8, VenueFault> {
    let (mut table, mut action, mut error) = (None, None, None);
    reading.rows.clear();
    let mut reader = Reader::new(bytes);
    let read = reader.object(|reader, name| {
        match name {
            b"table" => table = Some(reader.string()?),
            b"action" => action = Some(reader.string()?),
            b"error" => error = Some(reader.text()?),
            b"data" => {
                reading.rows.clear();
                return reader.array(|reader| {
                    reading.rows.push(row(reader)?);
                    Ok(())
                });
            }
            _ => return reader.skip(),
        }
        Ok(())
    });
    if table == Some(b"trade") {
        core.kind = letter::TRADE;
    }
    read?;
    reader.end()?;
    if let Some(error) = error {
        core.refused(error);
    }
    let Some(table) = table else { return Ok(letter::OTHER) };
    let action = match action.ok_or(VenueFault::Missing)? {
        b"partial" => Action::Partial,
        b"insert" => Action::Insert,
        b"update" => Action::Update,
        b"delete" => Action::Delete,
        _ => return Err(VenueFault::Missing),
    };
    match table {
        b"trade" => trades(core, &reading.rows, action).map(|()| letter::TRADE),
        b"orderBookL2" => {
            let letter = if action == Action::Partial { letter::SNAPSHOT } else { letter::DIFFERENCE };
            book(core, reading, action, letter).map(|()| letter)
        }
        _ => Ok(letter::OTHER),
    }
}

fn row(reader: &mut Reader<'_>) -> Result<TableRow, VenueFault> {
    let mut row = TableRow {
        symbol: [0; super::MAX_SYMBOL_BYTES + 1],
        symbol_length: 0,
        id: 0,
        side: None,
        price: None,
        size: None,
        at_ns: 0,
    };
    reader.object(|reader, name| {
        match name {
            b"symbol" => {
                let symbol = reader.string()?;
                row.symbol_length = symbol.len().min(row.symbol.len());
                row.symbol[..row.symbol_length].copy_from_slice(&symbol[..row.symbol_length]);
            }
            b"id" => row.id = whole(reader.scalar()?)?,
            b"side" => {
                row.side = match reader.string()? {
                    b"Buy" => Some(Side::Bid),
                    b"Sell" => Some(Side::Ask),
                    _ => None,
                }
            }
            b"price" => row.price = Some(decimal(reader.scalar()?)?),
            b"size" => row.size = Some(decimal(reader.scalar()?)?),
            b"timestamp" => row.at_ns = date_time(reader.string()?)?,
            _ => return reader.skip(),
        }
        Ok(())
    })?;
    Ok(row)
}

/// Handles trades. The `partial` has trades from before the subscription: the last sets the last price.
fn trades(core: &mut Core, rows: &[TableRow], action: Action) -> Result<(), VenueFault> {
    let counts = action == Action::Insert;
    let rows = if counts { rows } else { &rows[rows.len().saturating_sub(1)..] };
    for row in rows {
        let Some(at) = core.find(&row.symbol[..row.symbol_length]) else { continue };
        let price = row.price.ok_or(VenueFault::Missing)?;
        let size = row.size.ok_or(VenueFault::Missing)?;
        core.trade(at, Traded { price, size, id: 0, aggressor: row.side, at_ns: row.at_ns }, counts);
    }
    Ok(())
}

fn book(core: &mut Core, reading: &mut Reading, action: Action, letter: u8) -> Result<(), VenueFault> {
    let Reading { bids, asks, rows } = reading;
    let mut rest = rows.as_slice();
    // Rows of one symbol follow each other.
    'symbols: while let Some(first) = rest.first() {
        let symbol = &first.symbol[..first.symbol_length];
        if symbol.is_empty() {
            return Err(VenueFault::Missing);
        }
        let count = rest.iter().take_while(|row| row.symbol[..row.symbol_length] == *symbol).count();
        let (of_symbol, others) = rest.split_at(count);
        rest = others;
        let Some(at) = core.find(symbol) else { continue };
        bids.clear();
        asks.clear();
        if action == Action::Partial {
            core.instruments[at].by_id.clear();
        } else if !core.instruments[at].is_joined() {
            core.counters.old_differences += 1;
            continue;
        }
        for row in of_symbol {
            let Some((side, price)) = level_of(core, at, row, action)? else { continue 'symbols };
            let none = Decimal { mantissa: 0, decimals: 0 };
            let size = match action {
                Action::Delete => none,
                Action::Partial | Action::Insert | Action::Update => row.size.ok_or(VenueFault::Missing)?,
            };
            if side == Side::Bid { bids.push((price, size)) } else { asks.push((price, size)) }
        }
        if action == Action::Partial {
            core.set_book(at, bids, asks)?;
            core.instruments[at].join = Join::Joined { is_first: true };
        } else {
            core.set_levels(at, bids, asks)?;
            core.counters.differences += 1;
        }
        let stated = of_symbol.iter().map(|row| row.at_ns).max().unwrap_or(0);
        let ns = if stated > 0 { stated } else { core.latest_ns };
        core.changed(at, ns, letter, action == Action::Partial);
    }
    Ok(())
}

/// Returns side and price of a row's level. `None` if the level is unknown: then the tables are requested again.
fn level_of(
    core: &mut Core,
    at: usize,
    row: &TableRow,
    action: Action,
) -> Result<Option<(Side, Decimal)>, VenueFault> {
    let most = core.settings.max_levels;
    let it = &mut core.instruments[at];
    let known = match action {
        Action::Partial | Action::Insert => {
            let level = row.side.zip(row.price).ok_or(VenueFault::Missing)?;
            // The book has the same limit: what is beyond it will be an unknown level.
            if it.by_id.len() < 2 * most {
                it.by_id.insert(row.id, level);
            }
            Some(level)
        }
        Action::Update => it.by_id.get(&row.id).copied(),
        Action::Delete => it.by_id.remove(&row.id),
    };
    if known.is_none() {
        core.gap(at, GapKind::UnknownLevel { id: row.id });
        core.resync(at);
    }
    Ok(known)
}

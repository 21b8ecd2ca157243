//! Kraken's WebSocket API, version 1: the channels `book-1000` and `trade`.
//!
//! The rule: the channel sends a snapshot (`as`, `bs`), then changes of levels (`a`, `b`); size zero removes a level. A side never has more levels
//! than were subscribed: the worst beyond that are dropped by the receiver. Each message has the CRC-32 of the best ten levels in `c`; if it differs
//! from that of the receiver's book, a message is missing, and the receiver subscribes again. For the checksum each price and size is written without
//! its point and without leading zeros, the ten asks first. Source: Kraken's WebSocket documentation, version 1, "book" and "Book checksum".

use flate2::Crc;

use super::core::{Core, Reading, letter};
use super::decimal::{decimal, seconds, whole};
use super::instrument::{Join, Traded};
use super::json::Reader;
use super::price_book::{Change, PriceBook};
use super::{GapKind, VenueFault, VenueRequest};
use crate::digits::Digits;
use crate::draft::DraftQuote;
use crate::itch::Side;

/// The number of levels of each side that is subscribed.
const DEPTH: usize = 1_000;

/// The number of levels of each side in a checksum.
const CHECKED: usize = 10;

/// Requests the channels of all pairs.
pub(super) fn subscribe(core: &mut Core) {
    let pairs: Vec<String> = core.instruments.iter().map(|it| format!("\"{}\"", it.symbol)).collect();
    let pairs = pairs.join(",");
    core.request(VenueRequest::Send(books("subscribe", &pairs)));
    let trades = format!(r#"{{"event":"subscribe","pair":[{pairs}],"subscription":{{"name":"trade"}}}}"#);
    core.request(VenueRequest::Send(trades));
}

/// Requests the snapshots of these books: by another subscription of their pairs.
pub(super) fn resubscribe(core: &mut Core, of: &[usize]) {
    let pairs: Vec<String> = of.iter().map(|at| format!("\"{}\"", core.instruments[*at].symbol)).collect();
    let pairs = pairs.join(",");
    core.request(VenueRequest::Send(books("unsubscribe", &pairs)));
    core.request(VenueRequest::Send(books("subscribe", &pairs)));
}

fn books(event: &str, pairs: &str) -> String {
    format!(r#"{{"event":"{event}","pair":[{pairs}],"subscription":{{"name":"book","depth":{DEPTH}}}}}"#)
}

/// Applies one message; returns its letter.
pub(super) fn apply(core: &mut Core, reading: &mut Reading, bytes: &[u8]) -> Result<u8, VenueFault> {
    let mut reader = Reader::new(bytes);
    if reader.peek()? == b'{' {
        return event(core, reader);
    }
    // The channel and the pair are the last two members: the contents are read when both are known.
    let (mut names, mut is_snapshot, mut are_changes, mut checksum) = ([&[][..]; 2], false, false, None);
    let (mut trades, mut latest_ns) = (None, 0);
    reading.bids.clear();
    reading.asks.clear();
    reader.array(|reader| match reader.peek()? {
        b'{' => reader.object(|reader, name| match name {
            b"as" | b"a" | b"bs" | b"b" => {
                let changes = if name[0] == b'a' { &mut reading.asks } else { &mut reading.bids };
                is_snapshot |= name.len() == 2;
                are_changes = true;
                levels(reader, changes, &mut latest_ns)
            }
            b"c" => {
                checksum = Some(whole(reader.scalar()?)?);
                Ok(())
            }
            _ => reader.skip(),
        }),
        b'[' => {
            let from = reader.clone();
            reader.skip()?;
            trades = Some(from);
            Ok(())
        }
        _ => {
            let text = reader.scalar()?;
            names = [names[1], text];
            Ok(())
        }
    })?;
    reader.end()?;
    let [channel, pair] = names;
    if channel == b"trade" {
        core.kind = letter::TRADE;
        let (Some(trades), Some(at)) = (trades, core.find(pair)) else { return Ok(letter::TRADE) };
        return self::trades(core, at, trades).map(|()| letter::TRADE);
    }
    if !channel.starts_with(b"book-") || !are_changes {
        return Ok(letter::OTHER);
    }
    let letter = if is_snapshot { letter::SNAPSHOT } else { letter::DIFFERENCE };
    let Some(at) = core.find(pair) else { return Ok(letter) };
    let ns = if latest_ns > 0 { latest_ns } else { core.latest_ns };
    if is_snapshot {
        core.set_book(at, &reading.bids, &reading.asks)?;
        core.instruments[at].join = Join::Joined { is_first: true };
        core.changed(at, ns, letter, true);
        return Ok(letter);
    }
    if !core.instruments[at].is_joined() {
        core.counters.old_differences += 1;
        return Ok(letter);
    }
    core.set_levels(at, &reading.bids, &reading.asks)?;
    core.instruments[at].book.limit(DEPTH);
    core.counters.differences += 1;
    if let Some(theirs) = checksum {
        check(core, at, theirs);
    }
    core.changed(at, ns, letter, false);
    Ok(letter)
}

/// Compares the book with the venue's checksum; after a difference subscribes again.
fn check(core: &mut Core, at: usize, theirs: u64) {
    let ours = checksum(&core.instruments[at].book);
    if u64::from(ours) == theirs {
        return;
    }
    core.gap(at, GapKind::Checksum { ours, theirs: u32::try_from(theirs).unwrap_or(u32::MAX) });
    core.resync(at);
}

/// Returns the checksum of the best ten levels of each side. One text for all, because a checksum of a few bytes costs nearly as much as one of hundreds.
fn checksum(book: &PriceBook) -> u32 {
    const LONGEST: usize = 2 * CHECKED * 2 * Digits::MOST;
    let (mut text, mut length) = ([0; LONGEST], 0);
    for side in [Side::Ask, Side::Bid] {
        for DraftQuote { price, size, .. } in book.quotes(side).take(CHECKED) {
            for number in [price.mantissa.unsigned_abs(), size] {
                length += Digits::write(number, &mut text[length..]);
            }
        }
    }
    let mut crc = Crc::new();
    crc.update(&text[..length]);
    crc.sum()
}

/// Reads an array of levels, each an array of price, size, time and perhaps `r` for a level that was sent before.
fn levels(reader: &mut Reader<'_>, changes: &mut Vec<Change>, latest_ns: &mut u64) -> Result<(), VenueFault> {
    changes.clear();
    reader.array(|reader| {
        let (mut price, mut size, mut at) = (None, None, 0);
        reader.array(|reader| {
            let text = reader.scalar()?;
            match at {
                0 => price = Some(decimal(text)?),
                1 => size = Some(decimal(text)?),
                2 => *latest_ns = seconds(text)?.max(*latest_ns),
                _ => {}
            }
            at += 1;
            Ok(())
        })?;
        changes.push(price.zip(size).ok_or(VenueFault::Missing)?);
        Ok(())
    })
}

/// Reads an array of trades, each an array of price, size, time, side, kind and a text. They have no numbers.
fn trades(core: &mut Core, at: usize, mut reader: Reader<'_>) -> Result<(), VenueFault> {
    reader.array(|reader| {
        let mut parts: [&[u8]; 4] = [&[]; 4];
        let mut count = 0;
        reader.array(|reader| {
            match parts.get_mut(count) {
                Some(part) => *part = reader.scalar()?,
                None => reader.skip()?,
            }
            count += 1;
            Ok(())
        })?;
        let [price, size, time, side] = parts;
        let aggressor = match side {
            b"b" => Some(Side::Bid),
            b"s" => Some(Side::Ask),
            _ => None,
        };
        let (price, size, at_ns) = (decimal(price)?, decimal(size)?, seconds(time)?);
        core.trade(at, Traded { price, size, id: 0, aggressor, at_ns }, true);
        Ok(())
    })
}

/// Reads an event: a heartbeat, a status, the answer to a subscription.
fn event(core: &mut Core, mut reader: Reader<'_>) -> Result<u8, VenueFault> {
    let mut error = None;
    reader.object(|reader, name| match name {
        b"errorMessage" => {
            error = Some(reader.text()?);
            Ok(())
        }
        _ => reader.skip(),
    })?;
    reader.end()?;
    if let Some(error) = error {
        core.refused(error);
    }
    Ok(letter::OTHER)
}

//! Coinbase Exchange's channels `level2_batch` and `matches`.
//!
//! The rule: the channel sends a snapshot of each product, then changes of levels, and promises to deliver all of them in order; the changes have no
//! numbers. Trades have consecutive numbers for each product, which show missing trades. `last_match` is the last trade before the
//! subscription: it sets the last price, and counts in no volume. The side of a match is that of the resting order. Source: Coinbase Exchange
//! documentation, "Exchange WebSocket channels", level2 and matches.

use super::core::{Core, Reading, letter};
use super::decimal::{date_time, decimal, whole};
use super::instrument::{Join, Traded};
use super::json::Reader;
use super::price_book::Change;
use super::{VenueFault, VenueRequest};
use crate::itch::Side;

/// Requests the channels of all products.
pub(super) fn subscribe(core: &mut Core) {
    let products: Vec<String> = core.instruments.iter().map(|it| format!("\"{}\"", it.symbol)).collect();
    let products = products.join(",");
    core.request(request("subscribe", &products, ALL_CHANNELS));
}

const BOOK_CHANNEL: &str = r#""level2_batch""#;
const ALL_CHANNELS: &str = r#""level2_batch","matches","heartbeat""#;

fn request(kind: &str, products: &str, channels: &str) -> VenueRequest {
    VenueRequest::Send(format!(r#"{{"type":"{kind}","product_ids":[{products}],"channels":[{channels}]}}"#))
}

/// Requests the snapshots of these books, and their trades if wanted: by another subscription of their products.
pub(super) fn resubscribe(core: &mut Core, books: &[usize], with_trades: bool) {
    let products: Vec<String> =
        books.iter().map(|at| format!("\"{}\"", core.instruments[*at].symbol)).collect();
    let products = products.join(",");
    let channels = if with_trades { ALL_CHANNELS } else { BOOK_CHANNEL };
    for kind in ["unsubscribe", "subscribe"] {
        core.request(request(kind, &products, channels));
    }
}

#[derive(Debug, Default)]
struct Members<'a> {
    kind: Option<&'a [u8]>,
    product: Option<&'a [u8]>,
    side: Option<&'a [u8]>,
    price: Option<&'a [u8]>,
    size: Option<&'a [u8]>,
    trade_id: Option<&'a [u8]>,
    time: Option<&'a [u8]>,
    reason: Option<&'a [u8]>,
    message: Option<&'a [u8]>,
    has_bids: bool,
    has_asks: bool,
    has_changes: bool,
}

impl<'a> Members<'a> {
    fn read(bytes: &'a [u8], reading: &mut Reading) -> Result<Self, VenueFault> {
        let mut members = Self::default();
        reading.bids.clear();
        reading.asks.clear();
        let mut reader = Reader::new(bytes);
        reader.object(|reader, name| {
            match name {
                b"type" => members.kind = Some(reader.string()?),
                b"product_id" => members.product = Some(reader.string()?),
                b"side" => members.side = Some(reader.string()?),
                b"price" => members.price = Some(reader.scalar()?),
                b"size" => members.size = Some(reader.scalar()?),
                b"trade_id" => members.trade_id = Some(reader.scalar()?),
                b"time" => members.time = Some(reader.string()?),
                b"reason" => members.reason = Some(reader.text()?),
                b"message" => members.message = Some(reader.text()?),
                b"bids" => {
                    members.has_bids = true;
                    return levels(reader, &mut reading.bids);
                }
                b"asks" => {
                    members.has_asks = true;
                    return levels(reader, &mut reading.asks);
                }
                b"changes" => {
                    members.has_changes = true;
                    return changes(reader, reading);
                }
                _ => return reader.skip(),
            }
            Ok(())
        })?;
        reader.end()?;
        Ok(members)
    }

    fn ns(&self) -> Result<u64, VenueFault> {
        date_time(self.time.ok_or(VenueFault::Missing)?)
    }
}

/// Reads an array of levels, each an array of price and size.
fn levels(reader: &mut Reader<'_>, changes: &mut Vec<Change>) -> Result<(), VenueFault> {
    changes.clear();
    reader.array(|reader| {
        let [price, size] = texts(reader)?;
        changes.push((decimal(price)?, decimal(size)?));
        Ok(())
    })
}

/// Reads an array of changes, each an array of side, price and new size.
fn changes(reader: &mut Reader<'_>, reading: &mut Reading) -> Result<(), VenueFault> {
    reading.bids.clear();
    reading.asks.clear();
    reader.array(|reader| {
        let [side, price, size] = texts(reader)?;
        let change = (decimal(price)?, decimal(size)?);
        match side {
            b"buy" => reading.bids.push(change),
            b"sell" => reading.asks.push(change),
            _ => return Err(VenueFault::Missing),
        }
        Ok(())
    })
}

/// Reads an array that begins with `N` strings or numbers.
fn texts<'a, const N: usize>(reader: &mut Reader<'a>) -> Result<[&'a [u8]; N], VenueFault> {
    let mut texts: [&[u8]; N] = [&[]; N];
    let mut count = 0;
    reader.array(|reader| {
        match texts.get_mut(count) {
            Some(text) => *text = reader.scalar()?,
            None => reader.skip()?,
        }
        count += 1;
        Ok(())
    })?;
    if count < N { Err(VenueFault::Missing) } else { Ok(texts) }
}

/// Applies one message; returns its letter.
pub(super) fn apply(core: &mut Core, reading: &mut Reading, bytes: &[u8]) -> Result<u8, VenueFault> {
    let members = Members::read(bytes, reading)?;
    let letter = match members.kind.ok_or(VenueFault::Missing)? {
        b"snapshot" => letter::SNAPSHOT,
        b"l2update" => letter::DIFFERENCE,
        b"match" | b"last_match" => letter::TRADE,
        b"error" => {
            core.refused(members.reason.or(members.message).unwrap_or_default());
            return Ok(letter::OTHER);
        }
        _ => return Ok(letter::OTHER),
    };
    core.kind = letter;
    let Some(at) = core.find(members.product.ok_or(VenueFault::Missing)?) else { return Ok(letter) };
    match letter {
        letter::SNAPSHOT => {
            if !(members.has_bids && members.has_asks) {
                return Err(VenueFault::Missing);
            }
            core.set_book(at, &reading.bids, &reading.asks)?;
            core.instruments[at].join = Join::Joined { is_first: true };
            let ns = members.ns().unwrap_or(core.latest_ns);
            core.changed(at, ns, letter, true);
        }
        letter::DIFFERENCE => {
            let ns = members.ns()?;
            if !members.has_changes {
                return Err(VenueFault::Missing);
            }
            if !core.instruments[at].is_joined() {
                // Of an earlier subscription: the snapshot follows.
                core.counters.old_differences += 1;
                return Ok(letter);
            }
            core.set_levels(at, &reading.bids, &reading.asks)?;
            core.counters.differences += 1;
            core.changed(at, ns, letter, false);
        }
        _ => {
            let trade = Traded {
                price: decimal(members.price.ok_or(VenueFault::Missing)?)?,
                size: decimal(members.size.ok_or(VenueFault::Missing)?)?,
                id: whole(members.trade_id.ok_or(VenueFault::Missing)?)?,
                aggressor: match members.side {
                    Some(b"sell") => Some(Side::Bid),
                    Some(b"buy") => Some(Side::Ask),
                    _ => None,
                },
                at_ns: members.ns()?,
            };
            core.trade(at, trade, members.kind == Some(b"match"));
        }
    }
    Ok(letter)
}

//! The throughput of reading and writing updates of a trade table with six columns, in million messages a second on one
//! core.
//!
//! ```text
//! cargo bench -p tapeline-kdb --bench updates -- [--core N] [--seconds S] [--repeats N] [--json]
//!     [--case WHAT/ROWS/trade] [--rounds N]
//! ```
//!
//! `decode` reads the header and every cell in place, by the columns' types; `encode` writes header and columns from slices.
//! `pack` and `unpack` compress and decompress a message of 1,000 rows. The harness describes the options and figures;
//! its fields are rows here.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

// The common harness of these benches.
#[path = "../../omm/benches/harness/mod.rs"]
mod harness;

use std::hint::black_box;

use harness::{Bench, VARIED};
use tapeline_kdb::{Column, Encoder, Message, MessageKind, Refused, Type, Update, pack, unpack};

const SYMBOLS: [&[u8]; 8] = [b"AAPL", b"MSFT", b"IBM", b"GOOG", b"INTC", b"AMD", b"HPQ", b"DELL"];

fn main() {
    let mut bench = Bench::new("kdb");
    for rows in [1, 100] {
        updates(&mut bench, rows);
    }
    compression(&mut bench);
    bench.print();
}

/// The columns of a table in a publisher.
struct Trades {
    times: Vec<i64>,
    symbols: Vec<&'static [u8]>,
    prices: Vec<f64>,
    sizes: Vec<i64>,
    conditions: Vec<u8>,
    stops: Vec<bool>,
}

impl Trades {
    fn new(rows: usize, turn: usize) -> Self {
        let numbers = || (0..rows).map(|row| turn * 31 + row * 7);
        Self {
            times: numbers().map(|number| 708_697_697_727_152_000 + number as i64).collect(),
            symbols: numbers().map(|number| SYMBOLS[number % SYMBOLS.len()]).collect(),
            prices: numbers().map(|number| 80.0 + (number % 1_000) as f64 / 100.0).collect(),
            sizes: numbers().map(|number| 100 * (number % 40) as i64).collect(),
            conditions: numbers().map(|number| b'A' + (number % 26) as u8).collect(),
            stops: numbers().map(|number| number % 11 == 0).collect(),
        }
    }
}

#[inline(never)]
fn encode(trades: &Trades, out: &mut [u8]) -> Result<usize, Refused> {
    let mut message = Encoder::message(out, MessageKind::Async)?;
    message.list(3)?;
    message.symbol(b"upd")?;
    message.symbol(b"trade")?;
    message.list(6)?;
    message.column(Type::TIMESTAMP, trades.times.iter().copied())?;
    message.symbols(trades.symbols.iter().copied())?;
    message.column(Type::FLOAT, trades.prices.iter().copied())?;
    message.column(Type::LONG, trades.sizes.iter().copied())?;
    message.column(Type::CHAR, trades.conditions.iter().copied())?;
    message.column(Type::BOOLEAN, trades.stops.iter().copied())?;
    message.finish()
}

#[inline(never)]
fn decode(message: &[u8]) -> u64 {
    let view = Message::parse(message).unwrap().view().unwrap();
    let update = Update::of(&view).unwrap();
    let mut sum = update.rows.len() as u64 ^ update.table.len() as u64;
    for column in update.rows.columns() {
        let Column::Vector(vector) = column else { continue };
        sum = match vector.kind() {
            Type::SYMBOL => {
                vector.symbols().unwrap().fold(sum, |sum, name| sum.wrapping_mul(31) ^ u64::from(name[0]))
            }
            Type::FLOAT => {
                vector.items::<f64>().unwrap().fold(sum, |sum, price| sum.wrapping_add(price.to_bits()))
            }
            Type::CHAR => vector.items::<u8>().unwrap().fold(sum, |sum, byte| sum.wrapping_add(byte.into())),
            Type::BOOLEAN => {
                vector.items::<bool>().unwrap().fold(sum, |sum, flag| sum.wrapping_add(flag.into()))
            }
            _ => vector.items::<i64>().unwrap().fold(sum, |sum, number| sum.wrapping_add(number as u64)),
        };
    }
    sum
}

fn updates(bench: &mut Bench, rows: usize) {
    let all: Vec<_> = (0..VARIED).map(|turn| Trades::new(rows, turn)).collect();
    let mut out = vec![0; 16 * 1_024];
    let messages: Vec<Vec<u8>> = all
        .iter()
        .map(|trades| {
            let len = encode(trades, &mut out).unwrap();
            out[..len].to_vec()
        })
        .collect();
    let bytes = messages.iter().map(Vec::len).sum::<usize>() as f64 / VARIED as f64;
    bench.add(("decode", rows, "trade"), bytes, |place| decode(black_box(&messages[place % VARIED])));
    bench.add(("encode", rows, "trade"), bytes, |place| {
        let len = encode(black_box(&all[place % VARIED]), &mut out).unwrap();
        u64::from(out[len - 1]) ^ len as u64
    });
}

fn compression(bench: &mut Bench) {
    let mut out = vec![0; 64 * 1_024];
    // Prices and sizes that change in steps compress like market data: to a half.
    let mut trades = Trades::new(1_000, 1);
    for (row, price) in trades.prices.iter_mut().enumerate() {
        *price = 80.0 + (row / 50) as f64 / 4.0;
    }
    let len = encode(&trades, &mut out).unwrap();
    let plain = out[..len].to_vec();
    let len = pack(&plain, &mut out).unwrap();
    let packed = out[..len].to_vec();
    bench.add(("pack", 1_000, "trade"), plain.len() as f64, |_| {
        pack(black_box(&plain), &mut out).unwrap() as u64
    });
    let mut again = Vec::new();
    bench.add(("unpack", 1_000, "trade"), plain.len() as f64, |_| {
        unpack(black_box(&packed), 1 << 20, &mut again).unwrap();
        u64::from(again[again.len() - 1])
    });
}

//! DBN: the single orders of all symbols (MBO).
//!
//! Of 100 events, 45 add an order, 40 cancel one whole, 10 change the size of one, and 5 are a cancel and another order in its place. Prices
//! are up to twenty ticks from the middle of the symbol.

use std::collections::{BTreeMap, HashMap};

use dbn::VersionUpgradePolicy;
use tapeline_feed::capture::{self, Recording};
use tapeline_feed::dbn::{DbnBooks, DbnRecord, DbnSettings, DbnSymbols, Header, decode};

use crate::random::Random;
use crate::rows::{Rows, memory};
use crate::{Measuring, Size};

/// Bytes of the metadata of a file.
const METADATA: usize = 128;
/// Bytes of the record of an order.
const RECORD: usize = 56;
/// The price step, in billionths.
const TICK: i64 = 10_000_000;

/// An order of the generator.
#[derive(Clone, Copy)]
struct Order {
    id: u64,
    instrument: u32,
    is_bid: bool,
    price: i64,
    size: u32,
}

/// A generator of records.
struct Exchange {
    random: Random,
    live: Vec<Order>,
    symbols: u32,
    records: u64,
}

impl Exchange {
    /// Begins a file of version 3.
    fn file(&self) -> Vec<u8> {
        let mut metadata = vec![0; METADATA - 8];
        metadata[45] = 71;
        [b"DBN\x03".as_slice(), &(metadata.len() as u32).to_le_bytes(), &metadata].concat()
    }

    fn price(&mut self, instrument: u32, is_bid: bool) -> i64 {
        // Near the best more often than far from it.
        let ticks = 1 + (self.random.below(21) * self.random.below(21) / 20) as i64;
        let middle = i64::from(instrument % 200 + 10) * 1_000_000_000;
        if is_bid { middle - ticks * TICK } else { middle + ticks * TICK }
    }

    /// Writes a record; `is_last` if it ends its event.
    fn put(&mut self, out: &mut Vec<u8>, action: u8, is_last: bool, order: Order) {
        let at = self.records;
        self.records += 1;
        let time = 1_700_000_000_000_000_000 + at * 1_000;
        let mut record = [0; RECORD];
        record[..4].copy_from_slice(&[14, 0xA0, 1, 0]);
        record[4..8].copy_from_slice(&order.instrument.to_le_bytes());
        record[8..16].copy_from_slice(&time.to_le_bytes());
        record[16..24].copy_from_slice(&order.id.to_le_bytes());
        record[24..32].copy_from_slice(&order.price.to_le_bytes());
        record[32..36].copy_from_slice(&order.size.to_le_bytes());
        record[36] = u8::from(is_last) << 7;
        record[38..40].copy_from_slice(&[action, if order.is_bid { b'B' } else { b'A' }]);
        record[40..48].copy_from_slice(&(time + 80_000).to_le_bytes());
        record[52..56].copy_from_slice(&(at as u32).to_le_bytes());
        out.extend(record);
    }

    fn add(&mut self, out: &mut Vec<u8>) {
        // The square of a uniform number makes the first symbols the busiest.
        let uniform = self.random.below(1 << 20) as f64 / (1 << 20) as f64;
        let instrument = 1 + (uniform * uniform * f64::from(self.symbols)) as u32;
        let is_bid = self.random.below(2) == 0;
        let price = self.price(instrument, is_bid);
        let size = 1 + self.random.below(500) as u32;
        let order = Order { id: self.records + 1, instrument, is_bid, price, size };
        self.live.push(order);
        self.put(out, b'A', true, order);
    }

    fn go_on(&mut self, out: &mut Vec<u8>) {
        let which = self.random.below(100);
        if which < 45 || self.live.is_empty() {
            return self.add(out);
        }
        let at = self.random.below(self.live.len() as u64) as usize;
        if which < 85 {
            // A cancel takes the whole order.
            let order = self.live.swap_remove(at);
            return self.put(out, b'C', true, order);
        }
        let mut order = self.live[at];
        if which < 95 {
            order.size = 1 + self.random.below(500) as u32;
            self.live[at] = order;
            return self.put(out, b'M', true, order);
        }
        // Another price is another order, in the same event.
        self.put(out, b'C', false, order);
        order.id = self.records + 1;
        order.price = self.price(order.instrument, order.is_bid);
        self.live[at] = order;
        self.put(out, b'A', true, order);
    }
}

#[inline(never)]
fn theirs(bytes: &[u8], packed: bool) -> u64 {
    let mut sum = 0_u64;
    let mut add = |record: &dbn::MboMsg| {
        sum = sum.wrapping_add(record.price as u64).wrapping_add(u64::from(record.size));
    };
    // The crate's own way for compressed files is the same library behind the same decoder.
    if packed {
        let stream = zstd::Decoder::new(bytes).unwrap();
        let policy = VersionUpgradePolicy::AsIs;
        let mut decoder = dbn::decode::dbn::Decoder::with_upgrade_policy(stream, policy).unwrap();
        while let Some(record) = decoder.decode_ref().unwrap() {
            add(record.get().unwrap());
        }
    } else {
        let policy = VersionUpgradePolicy::AsIs;
        let mut decoder = dbn::decode::dbn::Decoder::with_upgrade_policy(bytes, policy).unwrap();
        while let Some(record) = decoder.decode_ref().unwrap() {
            add(record.get().unwrap());
        }
    }
    sum
}

#[inline(never)]
fn ours(bytes: &[u8]) -> u64 {
    let mut sum = 0_u64;
    each(bytes, |_, record| {
        let DbnRecord::Mbo(record) = record else { panic!("orders only") };
        sum = sum.wrapping_add(record.price().0 as u64).wrapping_add(u64::from(record.size()));
    });
    sum
}

/// Reads a file to its end.
#[inline(always)]
fn each(bytes: &[u8], mut take: impl FnMut(&[u8], &DbnRecord<'_>)) {
    let Recording::Records(mut file) = capture::open(bytes).unwrap() else { panic!("records") };
    while let Some(bytes) = file.next().unwrap() {
        take(bytes, &decode(bytes).unwrap());
    }
}

/// Steps from length to length, which the first byte of a record has in words of four bytes.
#[inline(never)]
fn framing(file: &[u8]) -> u64 {
    let (mut rest, mut sum) = (&file[METADATA..], 0);
    while let Some((record, behind)) =
        rest.first().and_then(|words| rest.split_at_checked(usize::from(*words) * 4))
    {
        sum += record.len() as u64;
        rest = behind;
    }
    sum
}

#[inline(never)]
fn books(bytes: &[u8], books: &mut DbnBooks, expects: bool) -> u64 {
    let Recording::Records(mut file) = capture::open(bytes).unwrap() else { panic!("records") };
    let mut changes = 0_u64;
    while let Some(bytes) = file.next().unwrap() {
        let record = decode(bytes).unwrap();
        changes += u64::from(books.apply(&Header::of(bytes).unwrap(), &record).fields.is_any());
        if expects {
            books.expect(file.ahead());
        }
    }
    changes
}

/// What a person would write with the collections of the standard library: a map of orders, and for each side of a symbol a sorted map of levels.
#[derive(Default)]
struct PlainBooks {
    orders: HashMap<u64, (bool, i64, u32)>,
    levels: HashMap<u32, [BTreeMap<i64, u64>; 2]>,
}

impl PlainBooks {
    #[inline(never)]
    fn apply_all(&mut self, bytes: &[u8]) -> u64 {
        each(bytes, |bytes, record| {
            let DbnRecord::Mbo(record) = record else { panic!("orders only") };
            let sides = self.levels.entry(Header::of(bytes).unwrap().instrument).or_default();
            if record.action().0 != b'A'
                && let Some((is_bid, price, size)) = self.orders.remove(&record.order_id())
                && let Some(level) = sides[usize::from(is_bid)].get_mut(&price)
            {
                *level -= u64::from(size);
                if *level == 0 {
                    sides[usize::from(is_bid)].remove(&price);
                }
            }
            if record.action().0 != b'C' {
                let order = (record.side().0 == b'B', record.price().0, record.size());
                self.orders.insert(record.order_id(), order);
                *sides[usize::from(order.0)].entry(order.1).or_default() += u64::from(order.2);
            }
        });
        self.orders.len() as u64
    }

    /// The sum over the best prices of all symbols.
    fn tops(&self) -> u64 {
        let tops = self.levels.iter().map(|(instrument, [asks, bids])| {
            let own = |level: Option<(&i64, &u64)>| level.map(|(price, size)| (*price, *size));
            mixed(*instrument, own(bids.last_key_value()), own(asks.first_key_value()))
        });
        tops.fold(0, u64::wrapping_add)
    }
}

/// Mixes a symbol's best prices and sizes into a number.
fn mixed(instrument: u32, bid: Option<(i64, u64)>, ask: Option<(i64, u64)>) -> u64 {
    let mut mixed = u64::from(instrument);
    for (price, size) in [bid, ask].map(Option::unwrap_or_default) {
        for part in [price as u64, size] {
            mixed = (mixed ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        }
    }
    mixed
}

fn tops(books: &DbnBooks) -> u64 {
    let tops = books.iter().map(|(_, book)| {
        let own = |best: Option<tapeline_feed::dbn::Best>| best.map(|best| (best.price.0, best.size));
        mixed(book.instrument, own(book.top.bid), own(book.top.ask))
    });
    tops.fold(0, u64::wrapping_add)
}

/// Measures DBN.
pub(crate) fn measure(measuring: &Measuring, size: &Size) -> Rows {
    let random = Random::new(measuring.seed);
    let mut exchange = Exchange { random, live: Vec::new(), symbols: size.symbols, records: 0 };
    let mut before = exchange.file();
    for _ in 0..size.orders {
        exchange.add(&mut before);
    }
    let mut file = exchange.file();
    let begun = exchange.records;
    while exchange.records - begun < measuring.messages {
        exchange.go_on(&mut file);
    }
    let records = exchange.records - begun;
    let packed = zstd::encode_all(&file[..], 3).unwrap();
    let mut rows = Rows::new(measuring.clock, records);
    for _ in 0..measuring.runs {
        rows.time("all bytes summed as words of eight", || memory(&file));
        rows.time("from length to length, lengths summed", || framing(&file));
        let sums = [
            rows.time("the `dbn` crate's decoder, price and size summed", || theirs(&file, false)),
            rows.time("ours: the same", || ours(&file)),
            rows.time("the `dbn` crate's decoder, from Zstandard", || theirs(&packed, true)),
            rows.time("ours: the same, from Zstandard", || ours(&packed)),
        ];
        assert_eq!(sums, [sums[0]; 4], "all read the same fields");
        let mut plain = PlainBooks::default();
        plain.apply_all(&before);
        let live =
            rows.time("hash map of orders, sorted maps of levels, our views", || plain.apply_all(&file));
        for (what, expects) in
            [("ours: books, record by record", false), ("ours: books, 16 records expected at a time", true)]
        {
            let mut state = DbnBooks::new(DbnSettings::default(), DbnSymbols::default());
            books(&before, &mut state, expects);
            rows.time(what, || books(&file, &mut state, expects));
            assert_eq!(state.live_orders() as u64, live, "orders on the books at the end");
            assert_eq!(tops(&state), plain.tops(), "the best prices at the end");
        }
        assert_eq!(live, exchange.live.len() as u64, "orders on the books at the end");
    }
    rows.title = format!(
        "DBN, {}: {} records, {} bytes, {} in Zstandard of level 3; {} symbols, {} orders on the books at the end",
        size.name,
        records,
        file.len(),
        packed.len(),
        size.symbols,
        exchange.live.len()
    );
    rows
}

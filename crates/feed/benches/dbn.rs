//! How fast records are read, beside the `dbn` crate's own decoder: million records a second on one core, from memory.
//!
//! ```text
//! cargo bench -p tapeline-feed --bench dbn -- [--records N] [--runs N]
//! ```
//!
//! | what | does |
//! |---|---|
//! | `dbn crate` | the crate's `Decoder` over the bytes; reads price and size of each order |
//! | `file` | ours: [`File::next`], `decode`, the same fields |
//! | `books` | ours: as `file`, and keeps the order book with its top |
//! | `…, zstd` | the same over Zstandard of level 3; both decompress with the same library |
//!
//! Orders come and go around a price, one in 20 records ends an event of several. Min / median / max over the runs, which
//! take turns; the sums are compared, so that nothing can be left out.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

use std::hint::black_box;

use dbn::VersionUpgradePolicy;
use tapeline_feed::capture::{self, Recording};
use tapeline_feed::dbn::{DbnBooks, DbnRecord, DbnSettings, DbnSymbols, Header, decode};
use tapeline_measure::{Clock, cores, pin, ticks_ordered};

fn options() -> (u64, usize) {
    let (mut records, mut runs, mut benched) = (2_000_000, 5, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number =
            || arguments.next().and_then(|text| text.replace(['_', ','], "").parse::<u64>().ok());
        let set = match argument.as_str() {
            "--records" => number().map(|n| records = n),
            "--runs" => number().map(|n| runs = n.max(1) as usize),
            "--bench" => {
                benched = true;
                Some(())
            }
            _ => None,
        };
        if set.is_none() {
            eprintln!("dbn: {argument} is not known, or needs a number");
            std::process::exit(2);
        }
    }
    // Run as a test: enough to see that it works.
    if benched { (records, runs) } else { (20_000, 1) }
}

/// A file of version 3: orders come and go around a price.
fn file(records: u64) -> Vec<u8> {
    let mut metadata = vec![0; 120];
    metadata[45] = 71;
    let mut bytes = [b"DBN\x03".as_slice(), &120_u32.to_le_bytes(), &metadata].concat();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for at in 0..records {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Every second record cancels an order of some 1,000 before.
        let (action, id) = if at % 2 == 0 || at < 2_000 { (b'A', at) } else { (b'C', (at - 1_999) & !1) };
        let side = if id % 4 == 0 { b'B' } else { b'A' };
        let step = (random >> 60) as i64 * 250_000_000;
        let price = 5_000_000_000_000 + if side == b'B' { -step } else { step + 250_000_000 };
        let mut record = [0; 56];
        record[..2].copy_from_slice(&[14, 0xA0]);
        record[2] = 1;
        record[4] = 7;
        record[8..16].copy_from_slice(&(1_700_000_000_000_000_000 + at * 1_000).to_le_bytes());
        record[16..24].copy_from_slice(&id.to_le_bytes());
        record[24..32].copy_from_slice(&price.to_le_bytes());
        // A cancel takes the whole order, so that some 1,000 are live throughout.
        record[32] = 1 + (id % 50) as u8;
        record[36] = if at % 20 == 7 { 0 } else { 0x80 };
        record[38..40].copy_from_slice(&[action, side]);
        record[40..48].copy_from_slice(&(1_700_000_000_000_000_000 + at * 1_000 + 80_000).to_le_bytes());
        record[52..56].copy_from_slice(&(at as u32).to_le_bytes());
        bytes.extend(record);
    }
    bytes
}

fn theirs(bytes: &[u8], packed: bool) -> i64 {
    let mut sum = 0_i64;
    let mut add = |record: &dbn::MboMsg| {
        sum = sum.wrapping_add(record.price).wrapping_add(i64::from(record.size));
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

fn ours(bytes: &[u8]) -> i64 {
    let Recording::Records(mut file) = capture::open(bytes).unwrap() else { panic!("records") };
    let mut sum = 0_i64;
    while let Some(bytes) = file.next().unwrap() {
        let DbnRecord::Mbo(record) = decode(bytes).unwrap() else { panic!("orders only") };
        sum = sum.wrapping_add(record.price().0).wrapping_add(i64::from(record.size()));
    }
    sum
}

fn books(bytes: &[u8]) -> i64 {
    let Recording::Records(mut file) = capture::open(bytes).unwrap() else { panic!("records") };
    let mut books = DbnBooks::new(DbnSettings::default(), DbnSymbols::default());
    let (mut sum, mut changes) = (0_i64, 0_u64);
    while let Some(bytes) = file.next().unwrap() {
        let record = decode(bytes).unwrap();
        changes += u64::from(books.apply(&Header::of(bytes).unwrap(), &record).fields.is_any());
        if let DbnRecord::Mbo(record) = record {
            sum = sum.wrapping_add(record.price().0).wrapping_add(i64::from(record.size()));
        }
    }
    black_box((changes, books.live_orders()));
    sum
}

fn main() {
    let (records, runs) = options();
    if let Some(core) = cores().last() {
        let _ = pin(*core);
    }
    let plain = file(records);
    let packed = zstd::encode_all(&plain[..], 3).unwrap();
    let clock = Clock::calibrate();
    let ways: [(&str, &dyn Fn() -> i64); 6] = [
        ("dbn crate", &|| theirs(&plain, false)),
        ("file", &|| ours(&plain)),
        ("books", &|| books(&plain)),
        ("dbn crate, zstd", &|| theirs(&packed, true)),
        ("file, zstd", &|| ours(&packed)),
        ("books, zstd", &|| books(&packed)),
    ];
    let expected = theirs(&plain, false);
    let mut rates = vec![Vec::new(); ways.len()];
    for _ in 0..runs {
        for ((name, way), rates) in ways.iter().zip(&mut rates) {
            let begun = ticks_ordered();
            let sum = black_box(way());
            let ns = clock.ns_between(begun, ticks_ordered());
            assert_eq!(sum, expected, "{name}");
            rates.push(records as f64 * 1e3 / ns as f64);
        }
    }
    println!(
        "{records} orders, {} bytes, in Zstandard {} ({:.1} : 1); {runs} runs",
        plain.len(),
        packed.len(),
        plain.len() as f64 / packed.len() as f64
    );
    for ((name, _), rates) in ways.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        println!(
            "{name:<16} {:>7.1} / {:>7.1} / {:>7.1} M records/s",
            rates[0],
            rates[rates.len() / 2],
            rates[rates.len() - 1]
        );
    }
}

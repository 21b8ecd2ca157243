//! How fast the messages of a crypto venue become books: thousand messages a second on one core, from memory.
//!
//! ```text
//! cargo bench -p tapeline-feed --bench venues -- [--runs N]
//! ```
//!
//! | what | does |
//! |---|---|
//! | `bytes` | sums the bytes of the messages: the floor |
//! | `serde_json` | reads each message into serde_json's tree, nothing else |
//! | `books` | reads each message, applies it to the book, drafts updates, and finds the changes of the best ten levels |
//!
//! The messages are Binance's recorded USD-M futures in the folder `shared` beside the repository (`TAPELINE_SHARED` names another), 93,954 messages
//! with 274 bytes on average; without it, a stream made here of the same kinds. Min / median / max over the runs, which take turns; the
//! book at the end must be the same each time.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

use std::hint::black_box;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tapeline_feed::itch::Side;
use tapeline_feed::venues::{CryptoVenue, VenueFeed, VenueSettings, snapshot_message};
use tapeline_measure::{Clock, cores, pin, ticks_ordered};

const SYMBOL: &str = "BTCUSDT";

fn wrong(text: &str) -> ! {
    eprintln!("venues: {text}");
    std::process::exit(2);
}

/// The recorded messages, where they are.
fn recorded() -> Option<Vec<Vec<u8>>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("TAPELINE_SHARED").map_or_else(beside, PathBuf::from);
    let file =
        std::fs::File::open(root.join("data/crypto-binance-20240808/usdm_btcusdt_20240808.gz")).ok()?;
    let mut all = String::new();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut all).unwrap();
    let message = |line: &str| {
        let (_, json) = line.split_once(' ').unwrap();
        if json.starts_with("{\"lastUpdateId\"") {
            snapshot_message(SYMBOL, json.as_bytes())
        } else {
            json.as_bytes().to_vec()
        }
    };
    Some(all.lines().map(message).collect())
}

/// A stream of the same kinds: a snapshot of a thousand levels of each side, then differences, tickers and trades.
fn made(count: u64) -> Vec<Vec<u8>> {
    let levels = |from: i64, step: i64| -> String {
        (0..1_000).map(|k| format!("[\"{}.5\",\"1.25\"]", from + step * k)).collect::<Vec<_>>().join(",")
    };
    let body =
        format!(r#"{{"lastUpdateId":2,"bids":[{}],"asks":[{}]}}"#, levels(60_000, -1), levels(60_001, 1));
    let difference = |update: u64| {
        let level =
            |k: u64| format!("[\"{}.5\",\"{}.125\"]", 60_000 - (update * 7 + k * k) % 400, (update + k) % 3);
        let bids = (0..5).map(level).collect::<Vec<_>>().join(",");
        format!(
            r#"{{"stream":"btcusdt@depth@100ms","data":{{"e":"depthUpdate","E":1723161256299,"s":"{SYMBOL}","U":{update},"u":{update},"b":[{bids}],"a":[]}}}}"#
        )
    };
    let mut all = vec![difference(2).into_bytes(), snapshot_message(SYMBOL, body.as_bytes())];
    all.extend((3..count).map(|at| {
        let text = match at % 4 {
            0 => format!(
                r#"{{"stream":"btcusdt@trade","data":{{"e":"trade","E":1723161256322,"T":1723161256322,"s":"{SYMBOL}","t":{at},"p":"61800.30","q":"0.006","X":"MARKET","m":false}}}}"#
            ),
            1 => difference(2 + at / 4),
            _ => format!(
                r#"{{"stream":"btcusdt@bookTicker","data":{{"e":"bookTicker","u":1,"s":"{SYMBOL}","b":"60000.5","B":"2.507","a":"60001.5","A":"2.510","T":1723161256313,"E":1723161256313}}}}"#
            ),
        };
        text.into_bytes()
    }));
    all
}

fn bytes(messages: &[Vec<u8>]) -> u64 {
    messages.iter().flatten().map(|byte| u64::from(*byte)).sum()
}

fn trees(messages: &[Vec<u8>]) -> u64 {
    let parsed = messages.iter().map(|message| serde_json::from_slice::<serde_json::Value>(message).unwrap());
    parsed.map(|value| u64::from(black_box(value).is_object())).sum()
}

fn books(messages: &[Vec<u8>]) -> u64 {
    let mut feed = VenueFeed::new(VenueSettings::new(CryptoVenue::Binance, [SYMBOL]));
    feed.connected();
    let mut drafts = 0;
    for message in messages {
        let first = feed.apply(message).unwrap();
        drafts += u64::from(first.change.is_some());
        while let Some(more) = feed.more() {
            drafts += u64::from(more.change.is_some());
        }
    }
    assert_eq!((feed.counters().malformed, feed.is_whole()), (0, true));
    let book = feed.book(SYMBOL).unwrap();
    drafts << 32 | (book.len(Side::Bid) as u64) << 16 | book.len(Side::Ask) as u64
}

/// What is done with all messages; the result shows that it was done.
type Work = fn(&[Vec<u8>]) -> u64;

fn main() {
    let (mut runs, mut is_bench) = (7, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => is_bench = true,
            "--runs" => {
                let number = arguments.next().and_then(|text| text.parse().ok()).filter(|runs| *runs > 0);
                runs = number.unwrap_or_else(|| wrong("--runs needs a number above 0"));
            }
            _ => wrong(&format!("{argument} is not known")),
        }
    }
    // Run as a test: enough to see that it works.
    let messages = if is_bench { recorded().unwrap_or_else(|| made(100_000)) } else { made(2_000) };
    runs = if is_bench { runs } else { 1 };
    let _ = cores().last().map(|core| pin(*core));
    let clock = Clock::calibrate();
    let length: usize = messages.iter().map(Vec::len).sum();
    println!("{} messages, {} bytes on average", messages.len(), length / messages.len());
    let work: [(&str, Work); 3] = [("bytes", bytes), ("serde_json", trees), ("books", books)];
    let mut rates = work.map(|_| Vec::new());
    let mut results = work.map(|_| None);
    for _ in 0..runs {
        for (((_, work), rates), first) in work.iter().zip(&mut rates).zip(&mut results) {
            let start = ticks_ordered();
            let result = black_box(work(black_box(&messages)));
            let ns = clock.ns_between(start, ticks_ordered());
            rates.push(messages.len() as f64 * 1e6 / ns as f64);
            assert_eq!(*first.get_or_insert(result), result, "the result is the same each time");
        }
    }
    for ((what, _), rates) in work.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        let (least, median, most) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
        println!("{what:12} {least:9.0} {median:9.0} {most:9.0} thousand messages a second");
    }
}

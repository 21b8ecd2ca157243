//! How fast the messages of a crypto venue become books, in million messages a second on one core, from memory.
//!
//! ```text
//! cargo bench -p tapeline-feed --bench venues -- [--core N] [--seconds S] [--repeats N] [--json] [--case books/1/kraken] [--rounds N]
//! ```
//!
//! `tree` reads each message into serde_json's tree, and does nothing else. `books` reads each message, applies it to the book by the venue's rule, drafts
//! updates, and finds the changes of the best ten levels. At the end of a stream both begin again, `books` with a new feed. The harness describes the
//! options and figures; its fields are symbols here.
//!
//! The messages are those recorded in the folder `shared` beside the repository (`TAPELINE_SHARED` names another): `futures` and `spot` of Binance,
//! `coinbase` and `kraken`; for a recording that is not there, and for `bitmex`, a stream made here of the same kinds of messages. With `--rounds`,
//! which counts instructions, all streams are made, so that the counts are the same everywhere.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

// The common harness of these benches.
#[path = "../../../omm/benches/harness/mod.rs"]
mod harness;
mod made;
mod recorded;

use std::hint::black_box;

use harness::Bench;
use tapeline_feed::venues::{CryptoVenue, VenueFeed, VenueSettings};

/// The messages of one connection, the snapshots that HTTPS brings among them.
struct Stream {
    venue: CryptoVenue,
    symbols: Vec<String>,
    messages: Vec<Vec<u8>>,
}

impl Stream {
    fn feed(&self) -> VenueFeed {
        let mut feed =
            VenueFeed::new(VenueSettings::new(self.venue, self.symbols.iter().map(String::as_str)));
        feed.connected();
        feed
    }
}

/// Reads a recorded stream; `None` where it is absent.
type Recorded = fn() -> Option<Stream>;
/// Makes a stream like it.
type Made = fn() -> Stream;

fn main() {
    let mut bench = Bench::new("venues");
    let is_counting = std::env::args().any(|argument| argument == "--rounds");
    let streams: [(&'static str, Recorded, Made); 5] = [
        ("futures", recorded::futures, made::binance),
        ("spot", recorded::spot, made::binance),
        ("coinbase", recorded::coinbase, made::coinbase),
        ("kraken", recorded::kraken, made::kraken),
        ("bitmex", || None, made::bitmex),
    ];
    for (name, recorded, made) in streams {
        if is_counting && name == "spot" {
            // It is made as the futures are.
            continue;
        }
        let stream = if is_counting { made() } else { recorded().unwrap_or_else(made) };
        let symbols = stream.symbols.len();
        let bytes = stream.messages.iter().map(Vec::len).sum::<usize>() as f64 / stream.messages.len() as f64;
        if !is_counting {
            let mut at = 0;
            bench.add(("tree", symbols, name), bytes, |_| {
                let value: serde_json::Value =
                    serde_json::from_slice(&stream.messages[at % stream.messages.len()]).unwrap();
                at += 1;
                u64::from(black_box(value).is_object())
            });
        }
        let (mut feed, mut at) = (stream.feed(), 0);
        bench.add(("books", symbols, name), bytes, |_| {
            if at == stream.messages.len() {
                assert_eq!((feed.counters().malformed, feed.counters().gaps, feed.is_whole()), (0, 0, true));
                (feed, at) = (stream.feed(), 0);
            }
            let mut drafts = u64::from(feed.apply(black_box(&stream.messages[at])).unwrap().change.is_some());
            while let Some(more) = feed.more() {
                drafts += u64::from(more.change.is_some());
            }
            at += 1;
            drafts
        });
    }
    bench.print();
}

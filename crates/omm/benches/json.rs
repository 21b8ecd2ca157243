//! How fast messages become simplified JSON and come back: million messages a second on one core.
//!
//! ```text
//! cargo bench -p tapeline-omm --bench json -- [--core N] [--seconds S] [--repeats N] [--json]
//!     [--case WHAT/FIELDS/INPUT] [--rounds N]
//! ```
//!
//! `encode` makes the RWF of an update of prices, sizes and times, `write` turns that RWF into text, `read` the text into RWF; `tree` is what a reader
//! on top of a general library would begin with, `serde_json`'s parse of the text into its tree of values. `bytes` are those
//! of the text. The harness says what the options and the figures are.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod harness;

use std::hint::black_box;

use harness::{Bench, VARIED};
use tapeline_omm::json::{Converter, Packed};
use tapeline_omm::rwf::{DataType, Domain, MessageView, UpdateType, update_header};
use tapeline_omm::{Dictionary, FieldListEncoder, Real, Time, fid};

fn main() {
    let mut bench = Bench::new("json");
    for fields in [5, 13] {
        updates(&mut bench, fields);
    }
    bench.print();
}

/// An update of the first so many fields, by its place among the varied ones.
fn encode(place: usize, fields: usize, out: &mut [u8]) -> usize {
    let header =
        update_header(out, Domain::MARKET_PRICE, 5, UpdateType::QUOTE, DataType::FIELD_LIST).unwrap();
    let mut list = FieldListEncoder::new(&mut out[header..]).unwrap();
    let n = place as i64;
    for field in 0..fields {
        match field % 5 {
            0 => list.real(fid::BID, Real::decimal(1_000_000 + n * 37, 4)),
            1 => list.real(fid::ASK, Real::decimal(1_000_100 + n * 37, 4)),
            2 => list.real(fid::BIDSIZE, Real::integer(100 * n)),
            3 => list.time(fid::QUOTIM_NS, Time::from_ns_of_day(36_000_000_000_000 + place as u64 * 1_001)),
            _ => list.rmtes(fid::MMID, b"NSDQ"),
        }
        .unwrap();
    }
    header + list.finish()
}

fn updates(bench: &mut Bench, fields: usize) {
    let converter = Converter::new(Dictionary::builtin(), &());
    let mut out = vec![0; 1_024];
    let messages: Vec<_> = (0..VARIED)
        .map(|place| {
            let len = encode(place, fields, &mut out);
            out[..len].to_vec()
        })
        .collect();
    let texts: Vec<_> = messages
        .iter()
        .map(|message| {
            let mut text = Vec::new();
            converter.write(&MessageView::parse(message).unwrap(), &mut text).unwrap();
            String::from_utf8(text).unwrap()
        })
        .collect();
    let bytes = texts.iter().map(String::len).sum::<usize>() as f64 / VARIED as f64;
    bench.add(("encode", fields, "update"), bytes, |place| {
        let len = encode(black_box(place & (VARIED - 1)), fields, &mut out);
        len as u64 ^ u64::from(out[len - 1])
    });
    let mut text = Vec::new();
    bench.add(("write", fields, "update"), bytes, |place| {
        text.clear();
        let message = MessageView::parse(black_box(&messages[place & (VARIED - 1)])).unwrap();
        converter.write(&message, &mut text).unwrap();
        text.len() as u64 ^ u64::from(text[text.len() - 3])
    });
    bench.add(("tree", fields, "update"), bytes, |place| {
        let tree: serde_json::Value = serde_json::from_str(black_box(&texts[place & (VARIED - 1)])).unwrap();
        tree.as_object().map_or(0, serde_json::Map::len) as u64
    });
    let mut room = Vec::new();
    bench.add(("read", fields, "update"), bytes, |place| {
        let incoming = Packed::parse(black_box(&texts[place & (VARIED - 1)])).unwrap().next().unwrap();
        let rwf = converter.read(&incoming, &mut room).unwrap();
        rwf.len() as u64 ^ u64::from(rwf[rwf.len() - 1])
    });
}

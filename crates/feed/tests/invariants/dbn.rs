//! Databento's files and records: metadata, the decoder, a filter, and books made of any records.

use tapeline_feed::capture::{self, Error, Recording};
use tapeline_feed::dbn::{
    DbnBooks, DbnEvent, DbnFilter, DbnRecord, DbnSettings, DbnSymbols, HEADER_BYTES, Header,
    MOST_METADATA_BYTES, Metadata, RecordKind, decode,
};
use tapeline_feed::symbols;

const BOUNDS: DbnSettings = DbnSettings { max_instruments: 6, max_orders: 20, max_levels: 8 };

/// The bytes as records one behind the other, as long as their headers say.
pub(crate) fn records(bytes: &[u8]) {
    let mut books = DbnBooks::new(BOUNDS, DbnSymbols::default());
    let mut rest = bytes;
    while let Some(words) = rest.first() {
        let length = (usize::from(*words) * 4).clamp(1, rest.len());
        let (record, after) = rest.split_at(length);
        rest = after;
        one(record, &mut books);
    }
}

/// A file gives its records one behind the other, all of them but for what is damaged, and compressed it gives the same.
pub(crate) fn file(bytes: &[u8]) {
    let whole = taken(bytes);
    let compressed = starts_compressed(bytes);
    match &whole {
        Some((consumed, None)) => assert!(compressed || *consumed == bytes.len() as u64),
        Some((consumed, Some(Error::Records { place, .. }))) => assert_eq!(*consumed, place.offset),
        Some((_, Some(other))) => assert!(compressed, "{other}"),
        None => {}
    }
    if !compressed {
        let packed = taken(&zstd::bulk::compress(bytes, 1).unwrap());
        let consumed = |taken: &Option<(u64, Option<Error>)>| taken.as_ref().map(|(consumed, _)| *consumed);
        assert_eq!(consumed(&whole), consumed(&packed));
    }
}

/// Whether the first bytes are those of gzip or of Zstandard.
fn starts_compressed(bytes: &[u8]) -> bool {
    matches!(bytes, [0x1F, 0x8B, ..] | [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..])
}

/// How far a file was read, and what ended that early; `None` where it is none, or its metadata are damaged.
fn taken(bytes: &[u8]) -> Option<(u64, Option<Error>)> {
    let Ok(Recording::Records(mut file)) = capture::open(bytes) else { return None };
    let symbols = file.metadata().map_or_else(DbnSymbols::default, about);
    let mut consumed = file.metadata().map_or(0, |metadata| 8 + u64::from(metadata.length));
    let mut filter = DbnFilter::new(symbols::Symbols::new(["ES*", "AB"]).unwrap());
    filter.name_by(symbols.clone());
    let mut books = DbnBooks::new(BOUNDS, symbols);
    let mut records = 0;
    let end = loop {
        assert_eq!(file.bytes_consumed(), consumed);
        assert_eq!(file.records(), records);
        // A few kilobytes of Zstandard can hold millions.
        if records == MOST {
            return Some((consumed, None)).filter(|_| starts_compressed(bytes));
        }
        match file.next() {
            Ok(Some(record)) => {
                assert_eq!(usize::from(record[0]) * 4, record.len());
                assert!(decode(record).is_ok(), "a file gives only what can be decoded");
                let passed_over = filter.passed_over();
                assert_eq!(filter.wants(record), filter.passed_over() == passed_over);
                one(record, &mut books);
                (consumed, records) = (consumed + record.len() as u64, records + 1);
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(matches!(file.next(), Ok(None)), "after the end and after an error there is nothing");
    assert_eq!((file.bytes_consumed(), file.records()), (consumed, records));
    Some((consumed, end))
}

/// More than a seed's worth of records: 4,096 bytes hold 256 of the shortest.
const MOST: u64 = 2_000;

/// What metadata say takes no more than they have bytes: an entry of a list has four at least, a symbol 22.
fn about(metadata: &Metadata) -> DbnSymbols {
    let about = &metadata.about;
    assert!((100..=MOST_METADATA_BYTES).contains(&metadata.length) && (1..=3).contains(&about.version));
    let names = about.symbols.len() + about.partial.len() + about.not_found.len() + about.mappings.len();
    let intervals: usize = about.mappings.iter().map(|mapping| mapping.intervals.len()).sum();
    assert!(22 * names + 30 * intervals <= metadata.length as usize);
    let symbols = DbnSymbols::of(metadata);
    assert!(symbols.len() <= intervals);
    symbols
}

fn one(bytes: &[u8], books: &mut DbnBooks) {
    let header = Header::of(bytes);
    assert_eq!(header.is_some(), bytes.len() >= HEADER_BYTES);
    let Ok(record) = decode(bytes) else { return };
    let header = header.unwrap();
    assert_eq!(usize::from(bytes[0]) * 4, bytes.len());
    assert_eq!(header.kind, RecordKind(bytes[1]));
    if !matches!(record, DbnRecord::Unknown(_)) {
        // In some version, with a gateway's time of eight bytes or without.
        let lengths = header.kind.lengths().unwrap();
        assert!(lengths.contains(&bytes.len()) || lengths.contains(&(bytes.len() - 8)));
    }
    // Reads every field.
    let mut fields = 0;
    record.fields(&mut |name, value| fields += name.len() + format!("{value:?}").len());
    assert!(fields > 0 || matches!(record, DbnRecord::Unknown(_)));
    let _ = DbnEvent::of(&record);
    let _ = books.apply(&header, &record);
    assert!(books.iter().len() <= BOUNDS.max_instruments);
    assert!(books.live_orders() <= BOUNDS.max_orders);
    let on_books: usize = books.iter().filter_map(|(_, book)| book.live_orders()).sum();
    assert_eq!(on_books, books.live_orders());
}

/// Inputs to begin with: a record of every kind and length that there is, and orders that meet.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut kinds = Vec::new();
    for kind in 0..=u8::MAX {
        let mut lengths: Vec<usize> =
            RecordKind(kind).lengths().into_iter().flatten().filter(|length| *length > 0).collect();
        lengths.dedup();
        for length in lengths {
            let mut record = vec![0; length];
            record[..3].copy_from_slice(&[(length / 4) as u8, kind, 1]);
            record[4] = 7;
            kinds.extend(record);
        }
    }
    let order = |action: u8, side: u8, id: u8, price: u8| {
        let mut record = [0; 56];
        record[..3].copy_from_slice(&[14, 0xA0, 1]);
        record[4] = 7;
        (record[16], record[24], record[32], record[36]) = (id, price, 5, 0x80);
        record[38..40].copy_from_slice(&[action, side]);
        record
    };
    let orders = [
        order(b'A', b'B', 1, 10),
        order(b'A', b'A', 2, 12),
        order(b'M', b'B', 1, 11),
        order(b'F', b'A', 2, 12),
        order(b'C', b'B', 1, 11),
        order(b'R', b'N', 0, 0),
    ];
    vec![("kinds", kinds), ("orders", orders.concat())]
}

/// Metadata with two instruments, one of which changes its symbol, and a symbol that there is not; symbols have `length`
/// bytes.
fn metadata(version: u8, length: usize, ts_out: bool) -> Vec<u8> {
    let text = |text: &[u8], bytes: usize| {
        let mut field = text.to_vec();
        field.resize(bytes, 0);
        field
    };
    let mut fixed = [0; 100];
    fixed[..16].copy_from_slice(&text(b"GLBX.MDP3", 16));
    // Symbols in, numbers out. Version 1 has a count of records in front of them.
    let stypes = if version == 1 { 50 } else { 42 };
    fixed[stypes..stypes + 3].copy_from_slice(&[1, 0, u8::from(ts_out)]);
    if version > 1 {
        fixed[45..47].copy_from_slice(&(length as u16).to_le_bytes());
    }
    let interval = |from: u32, to: u32, number: &[u8]| {
        [&from.to_le_bytes()[..], &to.to_le_bytes(), &text(number, length)].concat()
    };
    let symbols = [&2u32.to_le_bytes()[..], &text(b"ESM4", length), &text(b"NQM4", length)].concat();
    let not_found = [&1u32.to_le_bytes()[..], &text(b"NONE", length)].concat();
    let first = [interval(20_240_501, 20_240_601, b"7"), interval(20_240_601, 20_240_701, b"8")].concat();
    let mappings = [
        &2u32.to_le_bytes()[..],
        &text(b"ESM4", length),
        &2u32.to_le_bytes(),
        &first,
        &text(b"NQM4", length),
        &1u32.to_le_bytes(),
        &interval(20_240_501, 20_240_701, b"9"),
    ]
    .concat();
    let said = [&fixed[..], &[0; 4], &symbols, &[0; 4], &not_found, &mappings].concat();
    [b"DBN", &[version][..], &(said.len() as u32).to_le_bytes(), &said].concat()
}

/// Inputs to begin with, for [`file`]: every version, with a gateway's times, without metadata, and in two compressed frames.
pub(crate) fn file_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let [_, (_, orders)] = <[_; 2]>::try_from(seeds()).unwrap();
    let file = |version, length| [metadata(version, length, false), orders.clone()].concat();
    let longer = orders.chunks(56).flat_map(|order| [&[16], &order[1..], &[9; 8]].concat());
    let packed = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
    let skipped = [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let (whole, cut) = (file(3, 71), metadata(3, 71, false).len() + 30);
    vec![
        ("version-1", file(1, 22)),
        ("version-2", file(2, 71)),
        ("version-3", whole.clone()),
        ("times", [metadata(3, 71, true), longer.collect()].concat()),
        ("frames", [&packed(&whole[..cut])[..], &skipped, &packed(&whole[cut..])].concat()),
        ("short-symbols", file(3, 2)),
        ("fragment", orders),
    ]
}

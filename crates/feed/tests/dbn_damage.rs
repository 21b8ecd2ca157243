//! Files that are damaged, cut or made to do harm: what is whole is read, and the rest is an error with its place.

use crate::shared_data;

use std::io::{Cursor, Read};

use dbn::VersionUpgradePolicy;
use proptest::prelude::*;
use tapeline_feed::capture::{self, Error, Recording};
use tapeline_feed::dbn::{
    self as ours, Damage, DbnBooks, DbnSettings, DbnSymbols, Header, MOST_METADATA_BYTES,
};

/// The records of a file and how reading ended. Every record is applied to books of small bounds.
fn read(bytes: impl Read + Send) -> (Vec<Vec<u8>>, Option<Error>) {
    let mut file = match capture::open(bytes) {
        Ok(Recording::Records(file)) => file,
        Ok(_) => return (Vec::new(), None),
        Err(error) => return (Vec::new(), Some(error)),
    };
    let bounds = DbnSettings { max_instruments: 16, max_orders: 64, max_levels: 16 };
    let mut books = DbnBooks::new(bounds, file.metadata().map_or_else(DbnSymbols::default, DbnSymbols::of));
    let mut records = Vec::new();
    let error = loop {
        match file.next() {
            Ok(Some(bytes)) => {
                let record = ours::decode(bytes).expect("a file gives only what can be decoded");
                let _ = books.apply(&Header::of(bytes).unwrap(), &record);
                records.push(bytes.to_vec());
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(matches!(file.next(), Ok(None)), "after the end and after an error there is nothing");
    assert_eq!(file.records(), records.len() as u64);
    assert!(books.iter().len() <= bounds.max_instruments && books.live_orders() <= bounds.max_orders);
    (records, error)
}

fn damage(error: Option<Error>) -> (u64, Damage) {
    match error {
        Some(Error::Records { place, source }) => (place.offset, source),
        other => panic!("{other:?}"),
    }
}

/// A file of version 3 with the symbols of nothing, and its records.
fn file(version: u8, symbol_length: u16, records: &[u8]) -> Vec<u8> {
    // The fixed part, the length of a schema, and four empty lists.
    let mut fixed = vec![0; 120];
    fixed[45..47].copy_from_slice(&symbol_length.to_le_bytes());
    let mut bytes = [b"DBN".as_slice(), &[version], &(fixed.len() as u32).to_le_bytes(), &fixed].concat();
    bytes.extend(records);
    bytes
}

/// Of kind mbo: an order of instrument 7.
fn order(id: u64) -> [u8; 56] {
    let mut record = [0; 56];
    record[..2].copy_from_slice(&[14, 0xA0]);
    record[4] = 7;
    record[16..24].copy_from_slice(&id.to_le_bytes());
    record[32] = 1;
    record[36] = 0x80;
    record[38..40].copy_from_slice(b"AB");
    record
}

#[test]
fn the_publishers_own_decoder_gives_the_same_records() {
    for folder in ["dbn-databento", "dbn-cme-opra"] {
        let Some(expected) = shared_data::expected(folder) else { return };
        for name in expected["files"].as_object().unwrap().keys() {
            let packed = shared_data::bytes(&format!("data/{folder}/{name}")).unwrap();
            let plain = match name.ends_with(".zst") {
                true => zstd::decode_all(&packed[..]).unwrap(),
                false => packed.clone(),
            };
            if !plain.starts_with(b"DBN") {
                continue;
            }
            let mut theirs = dbn::decode::dbn::Decoder::with_upgrade_policy(
                Cursor::new(&plain),
                VersionUpgradePolicy::AsIs,
            )
            .unwrap();
            let (records, error) = read(&packed[..]);
            assert!(error.is_none(), "{name}");
            for record in &records {
                assert_eq!(theirs.decode_ref().unwrap().unwrap().as_ref(), &record[..], "{name}");
            }
            assert!(theirs.decode_ref().unwrap().is_none(), "{name}");
        }
    }
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_records_and_says_where_it_was_cut() {
    let whole = file(3, 71, &[order(1), order(2), order(3)].concat());
    let first = whole.len() - 3 * 56;
    for cut in 8..whole.len() {
        let (records, error) = read(&whole[..cut]);
        assert_eq!(records.len(), cut.saturating_sub(first) / 56);
        if cut >= first && (cut - first).is_multiple_of(56) {
            assert!(error.is_none());
            continue;
        }
        let (place, damage) = damage(error);
        let Damage::Cut { held, wanted } = damage else { panic!("{damage}") };
        assert_eq!(place as usize + held, cut, "the place is that of what was cut");
        assert!(held < wanted);
    }
}

#[test]
fn a_compressed_file_cut_anywhere_is_an_error_behind_what_was_whole() {
    let records: Vec<u8> = (0..200).flat_map(order).collect();
    let packed = zstd::encode_all(&file(3, 71, &records)[..], 3).unwrap();
    assert_eq!(read(&packed[..]).0.len(), 200);
    for cut in 5..packed.len() {
        let (records, error) = read(&packed[..cut]);
        assert!(records.len() < 200 && matches!(error, Some(Error::Read { .. })), "{cut}: {error:?}");
    }
}

#[test]
fn what_the_lengths_say_is_checked_before_it_is_believed() {
    let with = |version, symbols, records: &[u8]| read(&file(version, symbols, records)[..]).1;
    assert_eq!(damage(with(0, 71, &[])), (0, Damage::Version { version: 0 }));
    assert_eq!(damage(with(4, 71, &[])), (0, Damage::Version { version: 4 }));
    assert_eq!(damage(with(2, 1, &[])), (0, Damage::SymbolLength { said: 1 }));
    let mut long = file(3, 71, &[]);
    long[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(damage(read(&long[..]).1), (0, Damage::MetadataLength { length: u32::MAX }));
    long[4..8].copy_from_slice(&MOST_METADATA_BYTES.to_le_bytes());
    assert!(matches!(damage(read(&long[..]).1), (0, Damage::Cut { held: 128, .. })));
    let mut lists = file(3, 71, &[]);
    lists[112..116].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(damage(read(&lists[..]).1), (0, Damage::Metadata { .. })));

    let wrong = |words: u8, kind: u8| {
        let mut records = [order(1), order(2)].concat();
        records[56..58].copy_from_slice(&[words, kind]);
        let (before, error) = read(&file(3, 71, &records)[..]);
        assert_eq!(before.len(), 1);
        damage(error)
    };
    assert_eq!(wrong(3, 0xA0), (184, Damage::Impossible { length: 12 }));
    // An odd number of words would leave all that follows misaligned.
    for words in [13, 15, 16, 255] {
        assert!(matches!(wrong(words, 0xA0), (184, Damage::Length { wanted: Some(56), .. })));
    }
    // A definition of version 1 in a file of version 3.
    assert!(matches!(wrong(90, 0x13), (184, Damage::Length { wanted: Some(520), length: 360, .. })));
}

#[test]
fn records_of_unknown_kind_are_passed_over() {
    let mut unknown = [0; 40];
    unknown[..2].copy_from_slice(&[10, 0x77]);
    let records = [&order(1)[..], &unknown, &order(2)].concat();
    let (records, error) = read(&file(3, 71, &records)[..]);
    assert!(error.is_none());
    assert!(matches!(ours::decode(&records[1]), Ok(ours::DbnRecord::Unknown(_))));
    assert_eq!(records.len(), 3);
}

#[test]
fn what_unpacks_to_much_more_is_read_in_bounded_memory() {
    // Zeros without end are no record.
    let zeros = zstd::encode_all(std::io::repeat(0).take(256 << 20), 3).unwrap();
    assert!(zeros.len() < 64 << 10);
    assert!(matches!(capture::open(&zeros[..]), Err(Error::Unknown { .. })));
    // Metadata of 63 MB, packed to a few kilobytes: a list of a million symbols.
    let mut bomb = file(3, 71, &[]);
    bomb[4..8].copy_from_slice(&(63_u32 << 20).to_le_bytes());
    bomb[112..116].copy_from_slice(&900_000_u32.to_le_bytes());
    let stream = (&bomb[..]).chain(std::io::repeat(b'A').take(63 << 20));
    let packed = zstd::encode_all(stream, 3).unwrap();
    assert!(packed.len() < 64 << 10);
    assert!(matches!(damage(read(&packed[..]).1), (0, Damage::Metadata { .. })));
    // A frame that wants a window of 2 GB: the descriptor's largest exponent but two.
    let mut window = vec![0x28, 0xB5, 0x2F, 0xFD, 0, (31 - 10) << 3];
    window.extend([0; 64]);
    assert!(matches!(capture::open(&window[..]), Err(Error::Read { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_records_or_an_error(
        start in prop_oneof![Just(file(1, 22, &[])), Just(file(2, 71, &[])), Just(file(3, 71, &[])), Just(Vec::new())],
        records in proptest::collection::vec(
            (0_u8..140, prop::sample::select(&[0_u8, 1, 0x0A, 0x12, 0x13, 0x16, 0x18, 0x20, 0xA0, 0xB1, 0xC0, 0xC3, 0x77][..]),
             any::<bool>(), proptest::collection::vec(any::<u8>(), 0..64)),
            0..20,
        ),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = start;
        for (words, kind, right, body) in records {
            // Mostly of the right length: most tests should get beyond the first record.
            let lengths = ours::RecordKind(kind).lengths().unwrap_or([40; 3]);
            let length = if right { lengths[2] } else { usize::from(words) * 4 };
            let at = bytes.len();
            bytes.resize(at + length.max(2), 0);
            for (to, from) in bytes[at..].iter_mut().skip(16).zip(body) {
                *to = from;
            }
            bytes[at] = (length / 4) as u8;
            bytes[at + 1] = kind;
        }
        for (at, value) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        let (records, error) = read(&bytes[..]);
        let taken: usize = records.iter().map(Vec::len).sum();
        prop_assert!(taken <= bytes.len());
        if let Some(Error::Records { place, .. }) = error {
            prop_assert!(place.offset as usize <= bytes.len());
        }
    }
}

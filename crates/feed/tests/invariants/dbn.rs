//! Databento's records: the decoder, and books made of any of them.

use tapeline_feed::dbn::{Books, Event, HEADER_BYTES, Header, Kind, Record, Settings, Symbols, decode};

const BOUNDS: Settings = Settings { max_instruments: 6, max_orders: 20, max_levels: 8 };

/// The bytes as records one behind the other, as long as their headers say.
pub(crate) fn records(bytes: &[u8]) {
    let mut books = Books::new(BOUNDS, Symbols::default());
    let mut rest = bytes;
    while let Some(words) = rest.first() {
        let length = (usize::from(*words) * 4).clamp(1, rest.len());
        let (record, after) = rest.split_at(length);
        rest = after;
        one(record, &mut books);
    }
}

fn one(bytes: &[u8], books: &mut Books) {
    let header = Header::of(bytes);
    assert_eq!(header.is_some(), bytes.len() >= HEADER_BYTES);
    let Ok(record) = decode(bytes) else { return };
    let header = header.unwrap();
    assert_eq!(usize::from(bytes[0]) * 4, bytes.len());
    assert_eq!(header.kind, Kind(bytes[1]));
    if !matches!(record, Record::Unknown(_)) {
        // In some version, with a gateway's time of eight bytes or without.
        let lengths = header.kind.lengths().unwrap();
        assert!(lengths.contains(&bytes.len()) || lengths.contains(&(bytes.len() - 8)));
    }
    // Reads every field.
    let mut fields = 0;
    record.fields(&mut |name, value| fields += name.len() + format!("{value:?}").len());
    assert!(fields > 0 || matches!(record, Record::Unknown(_)));
    let _ = Event::of(&record);
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
            Kind(kind).lengths().into_iter().flatten().filter(|length| *length > 0).collect();
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

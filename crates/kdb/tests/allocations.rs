//! The work per message of a feed allocates nothing: reading, writing, framing, decompressing.
#![allow(clippy::unwrap_used)]

use allocation_counter::measure;
use tapeline_kdb::{
    Column, Encoder, Frames, Log, LogWriter, Message, MessageKind, Order, Refused, Type, Update, pack, unpack,
};

/// Writes an update of a trade table with `rows` rows that compress well.
fn update(message: &mut Encoder<'_>, rows: usize, turn: i64) -> Result<(), Refused> {
    message.list(3)?;
    message.symbol(b"upd")?;
    message.symbol(b"trade")?;
    message.list(5)?;
    message.column(Type::TIMESTAMP, (0..rows).map(|_| turn))?;
    message.symbols((0..rows).map(|row| [b"AAPL".as_slice(), b"IBM", b"MSFT"][row % 3]))?;
    message.column(Type::FLOAT, (0..rows).map(|_| turn as f64))?;
    message.column(Type::INT, (0..rows).map(|row| row as i32 / 10))?;
    message.column(Type::BOOLEAN, (0..rows).map(|row| row % 2 == 0))
}

/// Reads every cell.
fn read(update: &Update<'_>) -> usize {
    let mut cells = 0;
    for column in update.rows.columns() {
        let Column::Vector(vector) = column else { panic!("{column:?}") };
        cells += match vector.kind() {
            Type::SYMBOL => vector.symbols().unwrap().map(<[u8]>::len).map(|len| len.min(1)).sum(),
            Type::TIMESTAMP => vector.items::<i64>().unwrap().count(),
            _ => vector.iter().filter(|atom| !atom.is_null()).count(),
        };
    }
    cells
}

/// Runs `work` once, which may allocate buffers, and then `times` times. Returns the number of allocations after the
/// first run.
fn allocations(times: u64, mut work: impl FnMut(i64)) -> u64 {
    work(0);
    measure(|| (1..=times).for_each(|turn| work(turn as i64))).count_total
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(3, |size| drop(std::hint::black_box(vec![0_u8; 1 + size as usize]))), 3);
}

#[test]
fn updates_are_written_and_read() {
    let mut room = vec![0; 8_192];
    for rows in [1, 100] {
        let count = allocations(100, |turn| {
            let mut message = Encoder::message(&mut room, MessageKind::Async).unwrap();
            update(&mut message, rows, turn).unwrap();
            let len = message.finish().unwrap();
            let view = Message::parse(&room[..len]).unwrap().view().unwrap();
            assert_eq!(read(&Update::of(&view).unwrap()), 5 * rows);
        });
        assert_eq!(count, 0, "{rows} rows");
    }
}

#[test]
fn messages_are_framed_and_decompressed() {
    let (mut room, mut packed, mut plain) = (vec![0; 8_192], vec![0; 4_096], Vec::new());
    let mut frames = Frames::new(1 << 20);
    let count = allocations(100, |turn| {
        let mut message = Encoder::message(&mut room, MessageKind::Async).unwrap();
        update(&mut message, 200, turn).unwrap();
        let len = message.finish().unwrap();
        let packed_len = pack(&room[..len], &mut packed).unwrap();
        unpack(&packed[..packed_len], 1 << 20, &mut plain).unwrap();
        for bytes in [&room[..len], &packed[..packed_len]] {
            frames.room()[..bytes.len()].copy_from_slice(bytes);
            frames.received(bytes.len());
            let view = frames.next().unwrap().unwrap().view().unwrap();
            assert_eq!(read(&Update::of(&view).unwrap()), 1_000);
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn logs_are_written_and_read() {
    let mut file = vec![0; 65_536];
    let count = allocations(100, |turn| {
        let (mut writer, mut len) = LogWriter::begin(&mut file).unwrap();
        for rows in [1, 100, 7] {
            len += writer.append(&mut file[len..], |message| update(message, rows, turn)).unwrap();
        }
        let log = Log::parse(&file[..len], Order::Little).unwrap();
        let cells: usize = log.map(|entry| read(&Update::of(&entry.value).unwrap())).sum();
        assert_eq!(cells, 5 * 108);
    });
    assert_eq!(count, 0);
}

//! The invariants for arbitrary bytes, for `hostile.rs` and the fuzz targets.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test that cannot go on should stop; each test that has it uses a part"
)]

use tapeline_kdb::{Column, Encoder, Frames, Hello, Log, Message, Order, Update, Value, View};

/// The longest message that is accepted.
const MOST: usize = 1 << 20;

/// Reads a connection: the first byte is the size of the pieces that arrive; a handshake and messages follow.
pub(crate) fn connection(bytes: &[u8]) {
    let Some((&size, bytes)) = bytes.split_first() else { return };
    let bytes = match Hello::parse(bytes) {
        Ok(Some((hello, len))) => {
            assert!(len <= bytes.len() && hello.user.len() + hello.password.len() < len);
            &bytes[len..]
        }
        Ok(None) | Err(_) => bytes,
    };
    let mut frames = Frames::new(MOST);
    for piece in bytes.chunks(usize::from(size).max(1)) {
        let room = frames.room();
        assert!(room.len() >= piece.len());
        room[..piece.len()].copy_from_slice(piece);
        frames.received(piece.len());
        loop {
            match frames.next() {
                Ok(Some(message)) => check_message(&message),
                Ok(None) => break,
                Err(fault) => {
                    assert!(!fault.to_string().is_empty());
                    return;
                }
            }
        }
        assert!(frames.waiting() <= bytes.len());
    }
}

/// Reads a log, in either byte order: each entry has its bytes at its offset, and no bytes are left out.
pub(crate) fn log(bytes: &[u8]) {
    for order in [Order::Little, Order::Big] {
        let Ok(mut log) = Log::parse(bytes, order) else { return };
        let mut end = 8;
        for entry in log.by_ref() {
            assert_eq!(entry.offset, end);
            end += entry.bytes.len();
            assert_eq!(&bytes[entry.offset..end], entry.bytes);
            check_value(&entry.value, entry.bytes, order);
        }
        assert_eq!(log.offset(), end);
        match log.torn() {
            None => assert_eq!(end, bytes.len()),
            Some(torn) => {
                assert_eq!((torn.offset, torn.offset + torn.bytes), (end, bytes.len()));
                assert!((torn.offset..=bytes.len()).contains(&torn.fault.offset), "{torn:?}");
            }
        }
    }
}

fn check_message(message: &Message<'_>) {
    assert!(message.body.len() <= MOST);
    match message.view() {
        Ok(view) => check_value(&view, message.body, message.order),
        Err(fault) => assert!(fault.offset <= 8 + message.body.len(), "{fault}"),
    }
}

/// A value that is read can be written; the result is an equal value; all columns have the same number of cells.
fn check_value(view: &View<'_>, bytes: &[u8], order: Order) {
    let value = view.to_value();
    let mut room = vec![0; bytes.len()];
    let mut encoder = Encoder::value_alone(&mut room);
    // Never longer than the input: a long count becomes a short one, a boolean of 2 becomes 1.
    encoder.value(&value).unwrap();
    let len = encoder.finish().unwrap();
    assert_eq!(Value::parse(&room[..len], Order::Little).as_ref(), Ok(&value));
    if order == Order::Little && len == bytes.len() {
        assert!(View::parse(bytes, order).is_ok());
    }
    let Ok(update) = Update::of(view) else { return };
    let columns = update.rows.columns();
    assert!(update.rows.names().is_none_or(|names| names.len() == columns.len()));
    let width = columns.len();
    let mut came = 0;
    for column in columns {
        assert_eq!(column.len(), update.rows.len());
        let cells = match column {
            Column::Vector(vector) => vector.iter().count(),
            Column::List(list) => list.iter().count(),
        };
        assert_eq!(cells, update.rows.len());
        came += 1;
    }
    assert_eq!(came, width);
}

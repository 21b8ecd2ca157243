//! The work per update allocates nothing: accepting rows, logging, publishing to all and by symbol.
#![allow(clippy::unwrap_used)]

mod support;

use allocation_counter::measure;
use support::{FEED, NOW, OTHER, RDB, ask, plant, upd};
use tapeline_kdb::{LogWriter, Message, MessageKind};
use tapeline_tickerplant::{Outlets, SessionId};

#[derive(Default)]
struct Bytes(usize);

impl Outlets for Bytes {
    fn send(&mut self, _: SessionId, message: &[u8]) {
        self.0 += message.len();
    }
}

#[test]
fn updates_pass_through() {
    for is_timed in [false, true] {
        let mut plant = plant(is_timed);
        let (writer, _) = LogWriter::begin(&mut [0; 8]).unwrap();
        plant.log_to("log", writer);
        ask(&mut plant, RDB, ".u.sub[`;`]");
        ask(&mut plant, OTHER, ".u.sub[`trade;`A`C]");
        let updates = [
            upd(MessageKind::Async, "trade", &[("A", 1.0, "x")]),
            upd(MessageKind::Async, "trade", &[("A", 1.0, "x"), ("B", 2.0, ""), ("C", 3.0, "yy")]),
            upd(MessageKind::Async, "quote", &[("Z", 1.0, "")]),
        ];
        let mut sent = Bytes::default();
        let mut pass = || {
            for update in &updates {
                plant.receive(FEED, &Message::parse(update).unwrap(), NOW, &mut sent);
            }
            plant.publish_all(&mut sent);
            plant.has_logged();
        };
        pass();
        let count = measure(|| (0..100).for_each(|_| pass())).count_total;
        assert_eq!(count, 0, "timed: {is_timed}");
        assert!(sent.0 > 0);
    }
}

#[test]
fn so_do_rows_that_are_added() {
    let mut plant = plant(false);
    let (writer, _) = LogWriter::begin(&mut [0; 8]).unwrap();
    plant.log_to("log", writer);
    ask(&mut plant, RDB, ".u.sub[`;`]");
    let mut sent = Bytes::default();
    let mut pass = || {
        for _ in 0..3 {
            let is_added = plant.add_row(0, |column, cell| match column {
                0 => cell.extend_from_slice(&1_i64.to_le_bytes()),
                1 => cell.extend_from_slice(b"A\0"),
                2 => cell.extend_from_slice(&1_f64.to_le_bytes()),
                // A char, as an encoded value: the column is a list.
                _ => cell.extend_from_slice(&[0xF6, b'x']),
            });
            assert!(is_added);
        }
        plant.publish_added(&mut sent);
        plant.has_logged();
    };
    pass();
    assert_eq!(measure(|| (0..100).for_each(|_| pass())).count_total, 0);
    assert!(sent.0 > 0);
}

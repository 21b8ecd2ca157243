//! Thousands of damaged messages: none causes a panic, and all output stays valid.
use crate::invariants;
use crate::mutations;
use crate::support;

use std::path::Path;

use support::{FEED, NOW, RDB, Sent, ask, message, plant, upd};
use tapeline_kdb::{Log, LogWriter, Message, MessageKind, Order, View};

/// Pseudorandom numbers, the same in each run (xorshift, Marsaglia 2003).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Arbitrary messages from clients, over days: the scripts of `fuzz/corpus`, and thousands of mutations. `make fuzz
/// TARGET=tickerplant` does the same for longer, guided by coverage.
#[test]
fn whatever_is_said_what_leaves_is_whole() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/tickerplant");
    mutations::each(&corpus, 5_000, invariants::machine);
}

#[test]
fn damaged_calls_do_nothing_but_what_they_say() {
    let calls = [
        upd(MessageKind::Async, "trade", &[("A", 1.0, "x")]),
        upd(MessageKind::Sync, "quote", &[("A", 1.0, "x"), ("B", 2.0, "yy")]),
        message(MessageKind::Sync, |out| out.string(b"(.u.sub[`trade;`A`B];`.u `i`L)")),
        message(MessageKind::Sync, |out| {
            out.list(3)?;
            out.string(b".u.sub")?;
            out.symbol(b"")?;
            out.symbols([b"A".as_slice(), b"B"])
        }),
    ];
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut plant = plant(false);
    let (writer, begin) =
        LogWriter::begin(&mut [0; 8]).map(|(writer, _)| (writer, tapeline_kdb::LOG_HEADER)).unwrap();
    plant.log_to("log", writer);
    ask(&mut plant, RDB, ".u.sub[`;`]");
    let mut taken = 0;
    for turn in 0..20_000 {
        let mut damaged = calls[turn % calls.len()].clone();
        for _ in 0..1 + numbers.below(3) {
            // After the header, which `Frames` checks; below sometimes the byte order or the kind of message.
            let at = 8 + numbers.below(damaged.len() - 8);
            damaged[at] = numbers.below(256) as u8;
        }
        if numbers.below(8) == 0 {
            let at = numbers.below(2);
            damaged[at] = numbers.below(2) as u8;
        }
        let Ok(call) = Message::parse(&damaged) else { continue };
        taken += 1;
        let mut sent = Sent::default();
        plant.receive(FEED, &call, NOW, &mut sent);
        for (_, out) in &sent.0 {
            Message::parse(out).unwrap().view().unwrap();
        }
    }
    assert!(taken > 15_000, "{taken} were calls at all");
    let counters = plant.counters();
    assert!(counters.updates > 100 && counters.refused > 100, "{counters:?}");
    // The log contains only whole updates.
    let file = [&begin[..], plant.unlogged()].concat();
    let mut log = Log::parse(&file, Order::Little).unwrap();
    let entries =
        log.by_ref().filter(|entry| matches!(&entry.value, View::List(list) if list.len() == 3)).count();
    assert_eq!(log.torn(), None);
    assert_eq!(entries as u64, plant.log_messages());
}

//! The invariants of a tickerplant for arbitrary messages, for `hostile.rs` and the fuzz target.
use tapeline_kdb::{LOG_HEADER, Log, LogWriter, Message, MessageKind, Order, Update};
use tapeline_tickerplant::{Local, Rights, SessionId, Tickerplant};

use crate::support::{FEED, NOW, OTHER, RDB, Sent, plant};

const DAY_NS: i64 = 86_400_000_000_000;
/// The most steps of a script: a longer script finds nothing more.
const MOST_STEPS: usize = 200;
/// The most bytes encoded for an answer: every buffer size that is tried, up to 4 MiB, and the refusal.
const MOST_ANSWER_BYTES: u64 = (8 << 20) + 1_024;

/// Runs a script: a byte of settings, then steps. A step is a byte for the action, a length of two bytes, and that
/// number of bytes: for most actions the value of a message.
pub(crate) fn machine(bytes: &[u8]) {
    let Some((&settings, mut script)) = bytes.split_first() else { return };
    let mut day = Day { plant: plant(settings & 1 != 0), now: NOW, is_logged: settings & 2 != 0, rows: 0 };
    day.begin_log();
    for _ in 0..MOST_STEPS {
        let [what, low, high, rest @ ..] = script else { break };
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (value, rest) = rest.split_at(length);
        script = rest;
        let from = [FEED, RDB, OTHER][usize::from(what >> 4) % 3];
        match what & 7 {
            0 | 1 => day.say(from, MessageKind::Async, value),
            2 | 3 => day.say(from, MessageKind::Sync, value),
            4 => day.say(from, MessageKind::Response, value),
            5 => day.publish(settings & 1 != 0),
            6 => day.end(),
            _ => {
                day.plant.close(from);
                let rights = |bit: u8| vec![low & bit == 0, low & (bit << 1) == 0];
                let rights = Rights { publish: rights(1), subscribe: rights(4), end_day: low & 16 == 0 };
                day.plant.open(from, rights, settings & 4 != 0);
            }
        }
    }
    day.end();
}

/// A tickerplant with the log of its day.
struct Day {
    plant: Tickerplant,
    now: Local,
    is_logged: bool,
    /// Rows of the days before.
    rows: u64,
}

impl Day {
    fn begin_log(&mut self) {
        if self.is_logged {
            let (writer, _) = LogWriter::begin(&mut [0; 8]).unwrap();
            self.plant.log_to("log", writer);
        }
    }

    /// Receives a message. Only a sender that waits for an answer gets one.
    fn say(&mut self, from: SessionId, kind: MessageKind, value: &[u8]) {
        let length = (8 + value.len()) as u32;
        let message = [&[1, kind as u8, 0, 0], &length.to_le_bytes()[..], value].concat();
        // A message too short for any value ends the connection before it reaches the tickerplant.
        let Ok(message) = Message::parse(&message) else { return };
        let before = self.plant.counters();
        let mut sent = Sent::default();
        self.plant.receive(from, &message, self.now, &mut sent);
        let answers = check(&sent).iter().filter(|kind| **kind == MessageKind::Response).count();
        assert_eq!(answers, usize::from(kind == MessageKind::Sync));
        let of_asker = sent.0.iter().filter(|(to, _)| *to == from).count();
        assert!(of_asker >= answers);
        let counters = self.plant.counters();
        let (done, did) = (counters.answered + counters.refused, before.answered + before.refused);
        assert_eq!(done - did, u64::from(kind != MessageKind::Response));
        // Nothing is encoded for a sender that does not wait, and no answer exceeds the limit.
        let made = counters.answer_bytes - before.answer_bytes;
        assert!(
            made <= if kind == MessageKind::Sync { MOST_ANSWER_BYTES } else { 0 },
            "{made} bytes for {kind:?}"
        );
        assert!(counters.rows >= before.rows && counters.updates - before.updates <= 1);
    }

    fn publish(&mut self, is_timed: bool) {
        assert!(is_timed || !self.plant.has_rows(), "rows wait only for a timer");
        let mut sent = Sent::default();
        self.plant.publish_all(&mut sent);
        assert!(check(&sent).iter().all(|kind| *kind == MessageKind::Async));
        assert!(!self.plant.has_rows());
    }

    /// Ends the day: its log has every accepted row, in whole updates, and the reported number of messages.
    fn end(&mut self) {
        if self.is_logged {
            let file = [&LOG_HEADER[..], self.plant.unlogged()].concat();
            let mut log = Log::parse(&file, Order::Little).unwrap();
            let rows: usize = log.by_ref().map(|entry| Update::of(&entry.value).unwrap().rows.len()).sum();
            assert_eq!((log.torn(), log.messages()), (None, self.plant.log_messages()));
            assert_eq!(self.rows + rows as u64, self.plant.counters().rows);
            self.plant.has_logged();
        }
        self.rows = self.plant.counters().rows;
        self.now = Local(self.now.0 + DAY_NS);
        assert!(self.plant.is_day_over(self.now));
        let mut sent = Sent::default();
        self.plant.end_day(self.now, &mut sent);
        check(&sent);
        assert_eq!(self.plant.date(), self.now.date());
        self.begin_log();
    }
}

/// Checks that every sent message is valid. Returns the kinds of the messages.
fn check(sent: &Sent) -> Vec<MessageKind> {
    let kind = |(_, bytes): &(SessionId, Vec<u8>)| {
        let message = Message::parse(bytes).unwrap();
        // Compressed messages are not parsed here.
        if bytes[2] == 0 {
            message.view().unwrap();
        }
        message.kind
    };
    sent.0.iter().map(kind).collect()
}

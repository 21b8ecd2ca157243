//! Clients of a tickerplant, without sockets.
#![allow(clippy::unwrap_used, dead_code)]

use tapeline_kdb::{Encoder, Message, MessageKind, Refused, Type, Value};
use tapeline_tickerplant::{Column, Local, Outlets, Rights, Schema, SessionId, Settings, Tickerplant};

pub(crate) const FEED: SessionId = SessionId(0);
pub(crate) const RDB: SessionId = SessionId(1);
pub(crate) const OTHER: SessionId = SessionId(2);

/// 2026.11.22, an hour after midnight.
pub(crate) const NOW: Local = Local(9_822 * 86_400_000_000_000 + 3_600_000_000_000);

/// The messages that were sent, with their sessions.
#[derive(Debug, Default)]
pub(crate) struct Sent(pub(crate) Vec<(SessionId, Vec<u8>)>);

impl Outlets for Sent {
    fn send(&mut self, to: SessionId, message: &[u8]) {
        self.0.push((to, message.to_vec()));
    }
}

pub(crate) fn schema(name: &str) -> Schema {
    let columns =
        [("time", Type::TIMESPAN), ("sym", Type::SYMBOL), ("price", Type::FLOAT), ("note", Type::LIST)];
    let column = |(name, kind): (&str, Type)| Column { name: name.into(), kind };
    Schema::new(name, columns.map(column).into()).unwrap()
}

/// Creates a tickerplant with the tables `trade` and `quote`, both with time, sym, price and note, and three sessions
/// with all rights.
pub(crate) fn plant(is_timed: bool) -> Tickerplant {
    let settings = Settings { is_timed, ..Settings::new(vec![schema("trade"), schema("quote")]) };
    let mut plant = Tickerplant::new(settings, NOW.date());
    for session in [FEED, RDB, OTHER] {
        plant.open(session, Rights::all(2), false);
    }
    plant
}

/// Returns a client's message.
pub(crate) fn message(
    kind: MessageKind,
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), Refused>,
) -> Vec<u8> {
    let mut room = vec![0; 64 << 10];
    let mut message = Encoder::message(&mut room, kind).unwrap();
    write(&mut message).unwrap();
    let len = message.finish().unwrap();
    room.truncate(len);
    room
}

/// Passes a message to a plant. Returns everything that the plant sends.
pub(crate) fn say(plant: &mut Tickerplant, from: SessionId, message: &[u8]) -> Vec<(SessionId, Value)> {
    let mut sent = Sent::default();
    plant.receive(from, &Message::parse(message).unwrap(), NOW, &mut sent);
    values(&sent)
}

pub(crate) fn values(sent: &Sent) -> Vec<(SessionId, Value)> {
    sent.0.iter().map(|(to, message)| (*to, value(message))).collect()
}

pub(crate) fn value(message: &[u8]) -> Value {
    Message::parse(message).unwrap().view().unwrap().to_value()
}

/// Sends a text as a query. Returns the only answer.
pub(crate) fn ask(plant: &mut Tickerplant, from: SessionId, text: &str) -> Value {
    let mut answers = say(plant, from, &message(MessageKind::Sync, |out| out.string(text.as_bytes())));
    assert_eq!(answers.len(), 1, "{answers:?}");
    let (to, answer) = answers.remove(0);
    assert_eq!(to, from);
    answer
}

/// Returns `.u.upd` with rows of symbols, prices and notes, without a time: one row as cells, more rows as columns.
pub(crate) fn upd(kind: MessageKind, table: &str, rows: &[(&str, f64, &str)]) -> Vec<u8> {
    message(kind, |out| {
        out.list(3)?;
        out.symbol(b".u.upd")?;
        out.symbol(table.as_bytes())?;
        out.list(3)?;
        if let [(symbol, price, note)] = rows {
            out.symbol(symbol.as_bytes())?;
            out.atom(&tapeline_kdb::Atom::<&[u8]>::Float(*price))?;
            return out.string(note.as_bytes());
        }
        out.symbols(rows.iter().map(|row| row.0.as_bytes()))?;
        out.column(Type::FLOAT, rows.iter().map(|row| row.1))?;
        out.list(rows.len())?;
        rows.iter().try_for_each(|row| out.string(row.2.as_bytes()))
    })
}

/// Returns symbols and prices of an `upd`, which must be for this table.
pub(crate) fn rows(update: &Value, of: &str) -> Vec<(String, f64)> {
    let Value::List(parts) = update else { panic!("{update:?}") };
    assert_eq!(parts[..2], [Value::symbol("upd"), Value::symbol(of)]);
    let Value::Table { names, columns } = &parts[2] else { panic!("{update:?}") };
    assert_eq!(
        names.iter().map(|name| str::from_utf8(name).unwrap()).collect::<Vec<_>>(),
        ["time", "sym", "price", "note"]
    );
    let items = |at: usize| match &columns[at] {
        Value::Vector { items, .. } => items.clone(),
        other => panic!("{other:?}"),
    };
    let text = |atom: &tapeline_kdb::Atom<Box<[u8]>>| match atom {
        tapeline_kdb::Atom::Symbol(name) => String::from_utf8(name.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    };
    let number = |atom: &tapeline_kdb::Atom<Box<[u8]>>| match atom {
        tapeline_kdb::Atom::Float(number) => *number,
        other => panic!("{other:?}"),
    };
    items(1).iter().map(text).zip(items(2).iter().map(number)).collect()
}

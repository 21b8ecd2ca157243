//! The content of logs, for people and for programs.

use serde_json::{Value as Json, json};
use tapeline_console::output::{self, table};
use tapeline_kdb::{Atom, Fault, Order, Type, Value};
use tapeline_measure::figures::thousands;
use tapeline_node::tick::log_file::Tail;

use super::tally::{ColumnTally, LogTally, Table};

/// Maximum number of characters of a cell in a table.
const MOST_SHOWN: usize = 40;

pub(super) struct LogReport {
    /// The path as given.
    pub(super) path: String,
    /// Bytes up to the end of the last whole message.
    pub(super) whole_bytes: u64,
    pub(super) tally: LogTally,
    pub(super) tail: Option<Tail>,
    /// Why the read stopped before the end of the file.
    pub(super) failure: Option<String>,
}

impl LogReport {
    /// All members, as documented in `docs/kdb.md`.
    pub(super) fn json(&self) -> Json {
        let tally = &self.tally;
        let tables: serde_json::Map<_, _> =
            tally.tables.iter().map(|(name, table)| (name.clone(), table.json())).collect();
        let first_other = tally
            .first_other
            .map(|(offset, reason)| json!({ "offset": offset, "reason": reason.to_string() }));
        let torn = self.tail.as_ref().map(|tail| {
            json!({
                "offset": tail.offset,
                "bytes": tail.bytes,
                "fault": { "offset": tail.fault_offset, "reason": tail.fault.to_string() },
            })
        });
        json!({
            "file": self.path,
            "log_bytes": self.whole_bytes + self.tail.as_ref().map_or(0, |tail| tail.bytes),
            "whole_bytes": self.whole_bytes,
            "messages": tally.messages,
            "rows": tally.rows(),
            "tables": tables,
            "untold": tally.untold,
            "others": tally.others,
            "first_other": first_other,
            "torn": torn,
            "failure": self.failure,
        })
    }

    pub(super) fn print_tables(&self) -> anyhow::Result<()> {
        let tally = &self.tally;
        let (path, [messages, bytes]) = (&self.path, [tally.messages, self.whole_bytes].map(thousands));
        output::print(&format!("{path}: a kdb+ log of {messages} messages in {bytes} bytes\n"))?;
        if tally.tables.is_empty() {
            return Ok(());
        }
        let mut tables = table(["table", "messages", "rows", "columns", "called"]);
        for (name, table) in &tally.tables {
            let (messages, rows) = (thousands(table.messages), thousands(table.rows));
            tables.add_row([name.clone(), messages, rows, table.widths(), table.called()]);
        }
        output::print(&tables.to_string())?;
        for (name, of) in &tally.tables {
            let mut columns = table([name.as_str(), "type", "first row", "last row"]);
            for (number, column) in of.columns.iter().enumerate() {
                let shown = |row: &[Value]| row.get(number).map(shown).unwrap_or_default();
                let name = column.name.clone().unwrap_or_else(|| (number + 1).to_string());
                columns.add_row([name, column.types(), shown(&of.first), shown(&of.last)]);
            }
            output::print(&format!("\n{columns}"))?;
        }
        Ok(())
    }

    /// Prints faults on standard error.
    pub(super) fn print_faults(&self) {
        let Self { path, tally, .. } = self;
        if let Some((offset, reason)) = tally.first_other {
            let count = thousands(tally.others);
            anstream::eprintln!(
                "note: {path}: messages that are not updates: {count}, the first at byte {offset}: {reason}"
            );
        }
        if tally.untold > 0 {
            let (count, told) = (thousands(tally.untold), thousands(tally.tables.len() as u64));
            anstream::eprintln!(
                "note: {path}: {count} updates of tables after the first {told} are not shown"
            );
        }
        if let Some(failure) = &self.failure {
            let whole = self.whole_bytes;
            anstream::eprintln!(
                "error: {path}: cannot be read to its end; its last whole message ends at byte {whole}"
            );
            anstream::eprintln!("  because: {failure}");
        } else if let Some(tail) = &self.tail {
            anstream::eprintln!(
                "error: {path}: {} bytes after the last whole message, from byte {} on, are not a message: at byte {}: {}",
                thousands(tail.bytes),
                tail.offset,
                tail.fault_offset,
                tail.fault,
            );
            anstream::eprintln!("hint: {}", hint(tail, tally.messages));
        }
    }
}

/// A hint on the bytes after the last whole message.
fn hint(tail: &Tail, messages: u64) -> String {
    if let (0, Some(order)) = (messages, tail.order) {
        let how = if order == Order::Big { "with" } else { "without" };
        return format!("its first message can be read {how} --big-endian");
    }
    let what = match tail.fault {
        Fault::Cut { .. } => "a torn tail, as a tickerplant leaves when it dies while writing",
        _ => "damage, after which there may be more messages",
    };
    format!("{what}; `-11!({messages};file)` replays what is before it, {} bytes", tail.offset)
}

impl Table {
    fn json(&self) -> Json {
        let row = |values: &[Value]| Json::Array(values.iter().map(cell).collect());
        let columns: Vec<Json> = self
            .columns
            .iter()
            .map(|column| {
                let types: Vec<&str> = column.types.iter().map(|kind| kind.name()).collect();
                let letters: String = column.types.iter().map(|kind| kind.letter()).collect();
                json!({ "name": column.name, "types": types, "letters": letters })
            })
            .collect();
        let (fewest, most) = self.width.unwrap_or_default();
        json!({
            "messages": self.messages,
            "rows": self.rows,
            "functions": self.functions,
            "fewest_columns": fewest,
            "most_columns": most,
            "columns": columns,
            "first_row": row(&self.first),
            "last_row": row(&self.last),
        })
    }

    fn widths(&self) -> String {
        match self.width.unwrap_or_default() {
            (fewest, most) if fewest == most => most.to_string(),
            (fewest, most) => format!("{fewest} to {most}"),
        }
    }

    fn called(&self) -> String {
        self.functions.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

impl ColumnTally {
    /// Column names, followed by q's type letters.
    fn types(&self) -> String {
        let named = |kind: &Type| match kind.letter() {
            ' ' => kind.name().to_owned(),
            letter => format!("{} ({letter})", kind.name()),
        };
        self.types.iter().map(named).collect::<Vec<_>>().join(", ")
    }
}

/// A cell in JSON: numbers and times as encoded, text, nulls as null, infinities as in q.
fn cell(value: &Value) -> Json {
    match value {
        Value::Atom(atom) => match atom {
            Atom::Symbol(name) => json!(String::from_utf8_lossy(name)),
            Atom::Char(byte) => json!(char::from(*byte).to_string()),
            Atom::Boolean(value) => json!(value),
            Atom::Byte(value) => json!(value),
            atom if atom.is_null() => Json::Null,
            atom if atom.is_infinite() => json!(atom.to_string()),
            Atom::Short(value) => json!(value),
            Atom::Int(value)
            | Atom::Month(value)
            | Atom::Date(value)
            | Atom::Minute(value)
            | Atom::Second(value)
            | Atom::Time(value) => json!(value),
            Atom::Long(value) | Atom::Timestamp(value) | Atom::Timespan(value) => json!(value),
            Atom::Real(value) => json!(value),
            Atom::Float(value) | Atom::Datetime(value) => json!(value),
            Atom::Guid(_) => json!(atom.to_string()),
        },
        Value::Vector { kind: Type::CHAR, items, .. } => json!(text(items)),
        Value::Vector { items, .. } => items.iter().map(|atom| cell(&Value::Atom(atom.clone()))).collect(),
        Value::List(values) => values.iter().map(cell).collect(),
        Value::Dict { .. } => json!({ "type": "dictionary" }),
        Value::Table { .. } => json!({ "type": "table" }),
        Value::Function { .. } => json!({ "type": "function" }),
        Value::Error(text) => json!({ "error": String::from_utf8_lossy(text) }),
        _ => Json::Null,
    }
}

/// A cell as in q, cut if it is long.
fn shown(value: &Value) -> String {
    let mut whole = match value {
        Value::Atom(atom) => atom.to_string(),
        Value::Vector { kind: Type::CHAR, items, .. } => format!("\"{}\"", text(items).escape_debug()),
        Value::Vector { items, .. } => {
            items.iter().take(MOST_SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(" ")
        }
        other => cell(other).to_string(),
    };
    if let Some((end, _)) = whole.char_indices().nth(MOST_SHOWN) {
        whole.truncate(end);
        whole.push('…');
    }
    whole
}

/// The characters of a string as text.
fn text(items: &[Atom<Box<[u8]>>]) -> String {
    let bytes: Vec<u8> = items
        .iter()
        .filter_map(|atom| if let Atom::Char(byte) = atom { Some(*byte) } else { None })
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_shown_to_people_and_to_programs() {
        let cases = [
            (
                Value::Atom(Atom::Timestamp(708_697_697_727_152_000)),
                "2022.06.16D12:28:17.727152000",
                json!(708_697_697_727_152_000_i64),
            ),
            (Value::Atom(Atom::Float(f64::NAN)), "0n", Json::Null),
            (Value::Atom(Atom::Long(i64::MAX)), "0W", json!("0W")),
            (Value::Atom(Atom::Char(b' ')), "\" \"", json!(" ")),
            (Value::symbol("AAPL"), "`AAPL", json!("AAPL")),
            (Value::symbol(""), "`", json!("")),
            (Value::string("a note"), "\"a note\"", json!("a note")),
            (
                Value::List(vec![Value::symbol("a"), Value::null()]),
                r#"["a",{"type":"function"}]"#,
                json!(["a", { "type": "function" }]),
            ),
        ];
        for (value, text, json) in cases {
            assert_eq!((shown(&value).as_str(), cell(&value)), (text, json));
        }
        assert_eq!(shown(&Value::string(&"x".repeat(50))).chars().count(), MOST_SHOWN + 1);
    }
}

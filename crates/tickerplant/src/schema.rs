//! Tables and their columns.

use tapeline_kdb::{Attribute, Encoder, Refused, Type};

use crate::Local;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column's name.
    pub name: Box<str>,
    /// The column's type, a positive number; [`Type::LIST`] for cells of any kind, such as strings.
    pub kind: Type,
}

/// A table that clients can publish to and subscribe to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    name: Box<str>,
    columns: Vec<Column>,
    /// The first bytes of a row as `tick.q` logs it: `(upd; table; (` and the number of cells.
    row_head: Box<[u8]>,
}

/// Why a tickerplant cannot have a table: the caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSchema {
    /// A name that q could not write.
    #[error("\"{0}\" is no name: letters, digits and _ are expected, a letter first")]
    Name(String),
    /// Two columns of the same name.
    #[error("there are two columns \"{0}\"")]
    Twice(String),
    /// A table that `tick.q` refuses as `'timesym`.
    #[error("expected time (a timespan, a timestamp or a time) and sym (symbols) as the first two columns")]
    TimeSym,
    /// A column of a type that neither a vector nor a list can have.
    #[error("column \"{0}\" has no type that columns have")]
    Type(String),
}

/// The index of the column of symbols by which subscribers choose rows.
pub(crate) const SYM: usize = 1;

impl Schema {
    /// Creates a table with this name and these columns.
    ///
    /// # Errors
    /// An invalid name or type, or first columns other than those that `tick.q` requires.
    pub fn new(name: &str, columns: Vec<Column>) -> Result<Self, BadSchema> {
        for (at, Column { name, kind }) in columns.iter().enumerate() {
            check_name(name)?;
            if columns[..at].iter().any(|other| other.name == *name) {
                return Err(BadSchema::Twice(name.to_string()));
            }
            if kind.width() == 0 && *kind != Type::SYMBOL && *kind != Type::LIST || kind.0 < 0 {
                return Err(BadSchema::Type(name.to_string()));
            }
        }
        check_name(name)?;
        let [time, sym, ..] = columns.as_slice() else { return Err(BadSchema::TimeSym) };
        let is_time = matches!(time.kind, Type::TIMESPAN | Type::TIMESTAMP | Type::TIME);
        if !is_time || &*time.name != "time" || sym.kind != Type::SYMBOL || &*sym.name != "sym" {
            return Err(BadSchema::TimeSym);
        }
        let row_head = row_head(name, columns.len());
        Ok(Self { name: name.into(), columns, row_head })
    }

    /// Returns the first bytes of a row as `tick.q` logs it: `(upd; table; cells)`, up to the first cell.
    pub(crate) const fn row_head(&self) -> &[u8] {
        &self.row_head
    }

    /// Returns the table's name.
    #[must_use]
    pub const fn name(&self) -> &str {
        &self.name
    }

    /// Returns the table's columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the names of the columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.columns.iter().map(|column| column.name.as_bytes())
    }

    /// Appends the time for `rows` rows, in the type of the first column.
    pub(crate) fn append_time(&self, now: Local, rows: usize, out: &mut Vec<u8>) {
        let (ns, ms) = (now.of_day_ns(), now.of_day_ns() / 1_000_000);
        for _ in 0..rows {
            match self.columns[0].kind {
                Type::TIMESTAMP => out.extend_from_slice(&now.0.to_le_bytes()),
                Type::TIME => out.extend_from_slice(&(ms as i32).to_le_bytes()),
                _ => out.extend_from_slice(&ns.to_le_bytes()),
            }
        }
    }

    /// Writes the table without rows, for a new subscriber: `sym` is grouped, as in `tick.q`.
    pub(crate) fn write_empty(&self, out: &mut Encoder<'_>) -> Result<(), Refused> {
        out.table(self.names())?;
        for (at, column) in self.columns.iter().enumerate() {
            match column.kind {
                Type::SYMBOL => {
                    let attribute = if at == SYM { Attribute::GROUPED } else { Attribute::NONE };
                    out.symbols_with(attribute, [])?;
                }
                kind => out.cells(kind, 0, &[])?,
            }
        }
        Ok(())
    }
}

/// Writes `(upd; name; (` and the number of cells.
fn row_head(name: &str, cells: usize) -> Box<[u8]> {
    let mut room = vec![0; 64 + name.len()];
    let mut entry = Encoder::value_alone(&mut room);
    let written = begin_update(&mut entry, name).and_then(|()| entry.list(cells));
    // Cannot be refused: the name was checked, and the capacity suffices.
    debug_assert!(written.is_ok(), "{written:?}");
    let len = entry.len();
    room.truncate(len);
    room.into()
}

/// Begins the update of a table: `(upd; table; rows)`, up to the rows.
pub(crate) fn begin_update(out: &mut Encoder<'_>, table: &str) -> Result<(), Refused> {
    out.list(3)?;
    out.symbol(b"upd")?;
    out.symbol(table.as_bytes())
}

fn check_name(name: &str) -> Result<(), BadSchema> {
    let mut letters = name.chars();
    let is_name = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_name { Ok(()) } else { Err(BadSchema::Name(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(columns: &[(&str, Type)]) -> Vec<Column> {
        columns.iter().map(|(name, kind)| Column { name: (*name).into(), kind: *kind }).collect()
    }

    #[test]
    fn tables_are_those_of_tick_q() {
        let usual = [("time", Type::TIMESPAN), ("sym", Type::SYMBOL), ("note", Type::LIST)];
        assert_eq!(Schema::new("trade", columns(&usual)).unwrap().names().count(), 3);
        type Columns<'a> = &'a [(&'a str, Type)];
        let wrong: [(&str, Columns<'_>, BadSchema); 6] = [
            ("1st", &usual, BadSchema::Name("1st".to_owned())),
            ("trade", &usual[1..], BadSchema::TimeSym),
            ("trade", &[("time", Type::LONG), usual[1]], BadSchema::TimeSym),
            ("trade", &[usual[0], usual[1], usual[1]], BadSchema::Twice("sym".to_owned())),
            ("trade", &[usual[0], usual[1], ("t", Type::TABLE)], BadSchema::Type("t".to_owned())),
            ("trade", &[usual[0], usual[1], ("", Type::LONG)], BadSchema::Name(String::new())),
        ];
        for (name, those, expected) in wrong {
            assert_eq!(Schema::new(name, columns(those)), Err(expected));
        }
    }

    #[test]
    fn times_are_those_of_the_first_column() {
        let now = Local(3 * 86_400_000_000_000 + 5_000_000);
        for (kind, bytes) in [
            (Type::TIMESPAN, 5_000_000_i64.to_le_bytes().to_vec()),
            (Type::TIMESTAMP, now.0.to_le_bytes().to_vec()),
            (Type::TIME, 5_i32.to_le_bytes().to_vec()),
        ] {
            let schema = Schema::new("t", columns(&[("time", kind), ("sym", Type::SYMBOL)])).unwrap();
            let mut out = Vec::new();
            schema.append_time(now, 2, &mut out);
            assert_eq!(out, bytes.repeat(2));
        }
    }
}

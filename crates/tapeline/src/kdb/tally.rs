//! Counts the updates of a log by table.

use std::collections::BTreeMap;

use tapeline_kdb::{Column, NoUpdate, Type, Update, Value, View};

/// Maximum number of tables to count separately; updates of others share one count.
const MOST_TABLES: usize = 1_000;
/// Maximum number of functions to count for each table; a log usually has one.
const MOST_FUNCTIONS: usize = 100;
/// Maximum number of columns of a table to examine.
const MOST_COLUMNS: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct LogTally {
    pub(super) messages: u64,
    pub(super) tables: BTreeMap<String, Table>,
    /// Updates of tables beyond the limit.
    pub(super) untold: u64,
    /// Messages that are not updates.
    pub(super) others: u64,
    /// The first of these messages: its offset, and why it is no update.
    pub(super) first_other: Option<(u64, NoUpdate)>,
}

/// The content of a log for one table.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) messages: u64,
    pub(super) rows: u64,
    /// Number of calls of each function with this table; usually only `upd`.
    pub(super) functions: BTreeMap<String, u64>,
    pub(super) columns: Vec<ColumnTally>,
    /// Minimum and maximum number of columns in an update.
    pub(super) width: Option<(usize, usize)>,
    pub(super) first: Vec<Value>,
    pub(super) last: Vec<Value>,
}

/// The known properties of a column.
#[derive(Debug, Default)]
pub(super) struct ColumnTally {
    /// Its name, if rows arrived as a table.
    pub(super) name: Option<String>,
    /// Its types, in order of first appearance; usually one.
    pub(super) types: Vec<Type>,
}

impl LogTally {
    /// Adds the message at this offset.
    pub(super) fn add(&mut self, offset: u64, message: &View<'_>) {
        self.messages += 1;
        let update = match Update::of(message) {
            Ok(update) => update,
            Err(reason) => {
                self.others += 1;
                self.first_other.get_or_insert((offset, reason));
                return;
            }
        };
        let name = String::from_utf8_lossy(update.table);
        if let Some(table) = self.tables.get_mut(name.as_ref()) {
            table.add(&update);
        } else if self.tables.len() < MOST_TABLES {
            self.tables.entry(name.into_owned()).or_default().add(&update);
        } else {
            self.untold += 1;
        }
    }

    pub(super) fn rows(&self) -> u64 {
        self.tables.values().map(|table| table.rows).sum()
    }
}

impl Table {
    fn add(&mut self, update: &Update<'_>) {
        self.messages += 1;
        self.rows += update.rows.len() as u64;
        let function = String::from_utf8_lossy(update.function);
        if let Some(count) = self.functions.get_mut(function.as_ref()) {
            *count += 1;
        } else if self.functions.len() < MOST_FUNCTIONS {
            self.functions.insert(function.into_owned(), 1);
        }
        let columns = update.rows.columns();
        let width = columns.len();
        let (fewest, most) = self.width.unwrap_or((width, width));
        self.width = Some((fewest.min(width), most.max(width)));
        let looked_at = width.min(MOST_COLUMNS);
        if self.columns.len() < looked_at {
            self.columns.resize_with(looked_at, ColumnTally::default);
        }
        if let Some(names) = update.rows.names().and_then(|names| names.symbols()) {
            for (column, name) in self.columns.iter_mut().zip(names) {
                column.name.get_or_insert_with(|| String::from_utf8_lossy(name).into_owned());
            }
        }
        let is_first = self.first.is_empty();
        if !update.rows.is_empty() {
            self.last.clear();
        }
        for (known, column) in self.columns.iter_mut().zip(columns) {
            if !known.types.contains(&column.kind()) {
                known.types.push(column.kind());
            }
            let Some((first, last)) = ends(&column) else { continue };
            if is_first {
                self.first.push(first);
            }
            self.last.push(last);
        }
    }
}

/// The first and the last cell of a column; `None` if it is empty.
fn ends(column: &Column<'_>) -> Option<(Value, Value)> {
    Some(match column {
        Column::Vector(vector) => {
            (Value::Atom(vector.iter().next()?.boxed()), Value::Atom(vector.last()?.boxed()))
        }
        Column::List(list) => (list.iter().next()?.to_value(), list.iter().last()?.to_value()),
    })
}

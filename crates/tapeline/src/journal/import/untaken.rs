//! What could not be taken.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tapeline_measure::figures::thousands;

/// Kinds of it that are told apart; what is beyond is added up.
const MOST_KINDS: usize = 1_000;

/// Rows, cells and messages that became nothing, by table, column and reason.
#[derive(Debug, Default)]
pub(super) struct Untaken {
    kinds: BTreeMap<(String, Option<String>, String), Count>,
    beyond: u64,
}

#[derive(Debug)]
struct Count {
    count: u64,
    /// Where the first message of them begins, in bytes of its log.
    first: u64,
}

impl Untaken {
    /// Counts so many of a table's (`""`: of none), of its rows or, with a column, of that one's cells.
    pub(super) fn count(&mut self, table: &str, column: Option<&str>, reason: &str, count: u64, offset: u64) {
        let kind = (table.to_owned(), column.map(str::to_owned), reason.to_owned());
        if let Some(known) = self.kinds.get_mut(&kind) {
            known.count += count;
        } else if self.kinds.len() < MOST_KINDS {
            self.kinds.insert(kind, Count { count, first: offset });
        } else {
            self.beyond += count;
        }
    }

    /// As the report has it.
    pub(super) fn json(&self) -> Value {
        let kinds = self.kinds.iter().map(|((table, column, reason), Count { count, first })| {
            let table = (!table.is_empty()).then_some(table);
            json!({ "table": table, "column": column, "reason": reason, "count": count, "first_offset": first })
        });
        kinds.collect()
    }

    /// For people, on standard error.
    pub(super) fn say(&self) {
        for ((table, column, reason), Count { count, first }) in &self.kinds {
            let what = match (table.as_str(), column) {
                ("", _) => "messages".to_owned(),
                (table, None) => format!("rows of {table}"),
                (table, Some(column)) => format!("cells of {table}.{column}"),
            };
            anstream::eprintln!(
                "note: {} {what} not taken: {reason} (first at byte {first})",
                thousands(*count)
            );
        }
        if self.beyond > 0 {
            anstream::eprintln!("note: {} more not taken, for other reasons", thousands(self.beyond));
        }
    }
}

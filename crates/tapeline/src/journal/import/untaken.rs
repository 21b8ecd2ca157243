//! Data that an import could not take.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tapeline_measure::figures::thousands;

/// Maximum number of separate kinds; the rest are added up.
const MOST_KINDS: usize = 1_000;
/// Maximum number of characters of a name that are shown.
const MOST_SHOWN: usize = 64;

/// Rows, cells and messages that were not imported, by table, column and reason.
#[derive(Debug, Default)]
pub(super) struct Untaken {
    kinds: BTreeMap<(String, Option<String>, String), Count>,
    beyond: u64,
}

#[derive(Debug)]
struct Count {
    count: u64,
    /// Byte offset of the first such message in its log.
    first: u64,
}

impl Untaken {
    /// Adds to the count of a table's rows or, with a column, of its cells; `""` stands for messages without a
    /// table.
    pub(super) fn count(&mut self, table: &str, column: Option<&str>, reason: &str, count: u64, offset: u64) {
        let kind = (named(table), column.map(named), reason.to_owned());
        if let Some(known) = self.kinds.get_mut(&kind) {
            known.count += count;
        } else if self.kinds.len() < MOST_KINDS {
            self.kinds.insert(kind, Count { count, first: offset });
        } else {
            self.beyond += count;
        }
    }

    pub(super) fn json(&self) -> Value {
        let kinds = self.kinds.iter().map(|((table, column, reason), Count { count, first })| {
            let table = (!table.is_empty()).then_some(table);
            json!({ "table": table, "column": column, "reason": reason, "count": count, "first_offset": first })
        });
        kinds.collect()
    }

    /// The number of rows and messages, with the reason for most of them; `None` if there are none.
    pub(super) fn rows(&self) -> Option<(u64, String)> {
        let whole = || {
            self.kinds.iter().filter(|((_, column, _), Count { count, .. })| column.is_none() && *count > 0)
        };
        let ((table, _, reason), most) = whole().max_by_key(|(_, count)| count.count)?;
        let why = format!("{} {} not taken: {reason}", thousands(most.count), what(table, None));
        Some((whole().map(|(_, count)| count.count).sum(), why))
    }

    /// Reports the kinds for people, on standard error.
    pub(super) fn say(&self) {
        for ((table, column, reason), Count { count, first }) in &self.kinds {
            anstream::eprintln!(
                "note: {} {} not taken: {reason} (first at byte {first})",
                thousands(*count),
                what(table, column.as_deref())
            );
        }
        if self.beyond > 0 {
            anstream::eprintln!("note: {} more not taken, for other reasons", thousands(self.beyond));
        }
    }
}

/// Names the rows or cells of a table, or messages (`""`).
fn what(table: &str, column: Option<&str>) -> String {
    match (table, column) {
        ("", _) => "messages".to_owned(),
        (table, None) => format!("rows of {table}"),
        (table, Some(column)) => format!("cells of {table}.{column}"),
    }
}

/// Shortens and escapes a name from a log, which may have any length and content.
fn named(name: &str) -> String {
    name.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_from_cells() {
        let mut untaken = Untaken::default();
        untaken.count("trade", Some("column 5"), "no field", 9, 0);
        untaken.count("empty", None, "no such table", 0, 0);
        assert_eq!(untaken.rows(), None);
        untaken.count("other", None, "no such table", 3, 0);
        untaken.count("", None, "no update", 2, 0);
        assert_eq!(untaken.rows(), Some((5, "3 rows of other not taken: no such table".to_owned())));
    }

    #[test]
    fn names_of_a_log_are_short_and_harmless() {
        let mut untaken = Untaken::default();
        untaken.count("\u{1b}[2J", Some(&"x".repeat(1_000_000)), "a reason", 1, 0);
        let kinds = untaken.json();
        assert_eq!(kinds[0]["table"], "\\u{1b}[2J");
        assert_eq!(kinds[0]["column"].as_str().map(str::len), Some(MOST_SHOWN));
    }
}

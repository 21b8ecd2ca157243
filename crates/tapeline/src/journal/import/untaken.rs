//! What could not be taken.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tapeline_measure::figures::thousands;

/// Kinds of it that are told apart; what is beyond is added up.
const MOST_KINDS: usize = 1_000;
/// Characters of a name that are shown.
const MOST_SHOWN: usize = 64;

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
        let kind = (named(table), column.map(named), reason.to_owned());
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

/// A name out of a log, which may be of any length and hold anything, as it is kept and shown.
fn named(name: &str) -> String {
    name.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_log_are_short_and_harmless() {
        let mut untaken = Untaken::default();
        untaken.count("\u{1b}[2J", Some(&"x".repeat(1_000_000)), "a reason", 1, 0);
        let kinds = untaken.json();
        assert_eq!(kinds[0]["table"], "\\u{1b}[2J");
        assert_eq!(kinds[0]["column"].as_str().map(str::len), Some(MOST_SHOWN));
    }
}

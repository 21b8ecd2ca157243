//! The tables of `docs/interop.md`.

use std::fmt::Write as _;
use std::path::Path;

use crate::column::{Column, Outcome};

/// End of a command's tables; their beginning names the command.
const END: &str = "<!-- end of the tables -->";

/// A table for each pair, with scenarios as rows and transports as columns, and the notes of its cells.
pub(crate) fn tables(columns: &[Column]) -> String {
    let mut notes: Vec<&str> = Vec::new();
    let mut text = String::new();
    for column in columns {
        let _ = writeln!(text, "### {}\n", column.title);
        let titles: Vec<String> = column.ways.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "| | {} |\n|---|{}", titles.join(" | "), "---|".repeat(titles.len()));
        for (name, title) in column.scenarios {
            let cells = column.ways.iter().map(|way| match &column.cells[&(*name, *way)] {
                Outcome::Passed => "✓".to_owned(),
                Outcome::Failed(_) => "**fails**".to_owned(),
                Outcome::Explained(why) => {
                    let number = notes.iter().position(|note| note == why).unwrap_or_else(|| {
                        notes.push(why);
                        notes.len() - 1
                    });
                    format!("({})", number + 1)
                }
            });
            let cells: Vec<String> = cells.collect();
            let _ = writeln!(text, "| {title} | {} |", cells.join(" | "));
        }
        text.push('\n');
    }
    for (number, note) in notes.iter().enumerate() {
        let _ = writeln!(text, "({}) {note}.\n", number + 1);
    }
    text
}

/// Replaces this command's tables in the page.
pub(crate) fn write(command: &str, tables: &str, items: u32) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/interop.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let begin = format!("<!-- tables: `{command}` -->");
    let (before, rest) = page.split_once(&begin).expect("where the tables begin");
    let (_, after) = rest.split_once(END).expect("where the tables end");
    let page = format!("{before}{begin}\n\nWith {items} items.\n\n{}\n{END}{after}", tables.trim_end());
    std::fs::write(&path, page).unwrap();
}

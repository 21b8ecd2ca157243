//! The tables of `docs/interop.md`.

use std::fmt::Write as _;
use std::path::Path;

use crate::column::{Column, Outcome};

/// Ends the tables of a command; what begins them has its name.
const END: &str = "<!-- end of the tables -->";

/// A table for each pair, scenarios down and ways across, and the notes that its cells refer to.
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

/// Puts them into the page, where those of this command are.
pub(crate) fn write(command: &str, tables: &str, items: u32) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/interop.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let begin = format!("<!-- tables: `{command}` -->");
    let (before, rest) = page.split_once(&begin).expect("where the tables begin");
    let (_, after) = rest.split_once(END).expect("where the tables end");
    let page = format!("{before}{begin}\n\nWith {items} items.\n\n{}\n{END}{after}", tables.trim_end());
    std::fs::write(&path, page).unwrap();
}

//! A table as text and as Markdown.

use std::fmt::Write;

/// A title, headings, and rows; the first column to the left, the others to the right.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) headings: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'a>(title: &str, headings: impl IntoIterator<Item = &'a str>) -> Self {
        let headings = headings.into_iter().map(str::to_owned).collect();
        Self { title: title.to_owned(), headings, rows: Vec::new() }
    }

    /// For a terminal.
    pub(crate) fn text(&self) -> String {
        let width = |text: &str| text.chars().count();
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.chain([&self.headings[column]]).map(|cell| width(cell)).max().unwrap_or(0)
            })
            .collect();
        let mut text = format!("{}\n\n", self.title);
        let mut line = |cells: &[String]| {
            let mut line = String::new();
            for (column, (cell, wide)) in cells.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(wide - width(cell));
                line += &if column == 0 { format!("{cell}{padding}") } else { format!("   {padding}{cell}") };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        };
        line(&self.headings);
        line(&widths.iter().map(|wide| "-".repeat(*wide)).collect::<Vec<_>>());
        self.rows.iter().for_each(|row| line(row));
        text
    }

    /// For a page.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n", self.title);
        let mut line = |cells: &[String]| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        };
        line(&self.headings);
        let rules = (0..self.headings.len()).map(|column| if column == 0 { "---" } else { "--:" });
        line(&rules.map(str::to_owned).collect::<Vec<_>>());
        self.rows.iter().for_each(|row| line(row));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new("Of things", ["name", "µs"]);
        table.rows.push(vec!["a".to_owned(), "100".to_owned()]);
        assert_eq!(table.text(), "Of things\n\nname    µs\n----   ---\na      100\n");
        assert_eq!(table.markdown(), "### Of things\n\n| name | µs |\n| --- | --: |\n| a | 100 |\n");
    }
}

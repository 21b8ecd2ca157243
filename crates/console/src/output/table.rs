//! A plain table of text.

use std::fmt;

use super::width;

/// Creates an empty table with these headings.
pub fn table<'a>(headings: impl IntoIterator<Item = &'a str>) -> Table {
    Table { headings: headings.into_iter().map(str::to_owned).collect(), rows: Vec::new() }
}

/// A table with a heading and a rule above each column. The first column is aligned left, the others, usually
/// numbers, right. No line ends in spaces, and the last line has no line end.
#[derive(Clone, Debug)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a row. Missing cells are empty; excess cells are ignored.
    pub fn add_row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).take(self.headings.len()).collect();
        row.resize(self.headings.len(), String::new());
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| &row[column]).chain([&self.headings[column]]);
                cells.map(|cell| width(cell)).max().unwrap_or(0)
            })
            .collect();
        let line = |cells: &[String]| {
            let mut line = String::new();
            for (column, (cell, &wide)) in cells.iter().zip(&widths).enumerate() {
                if column == 0 {
                    line.push_str(&format!("{cell:<wide$}"));
                } else {
                    line.push_str(&format!("   {cell:>wide$}"));
                }
            }
            line.trim_end().to_owned()
        };
        let rules: Vec<String> = widths.iter().map(|&wide| "-".repeat(wide)).collect();
        write!(f, "{}\n{}", line(&self.headings), line(&rules))?;
        for row in &self.rows {
            write!(f, "\n{}", line(row))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = table(["name", "max", "n"]);
        table.add_row(["a", "2.1 µs", "1", "too much"]);
        table.add_row(["long", "10 ns"]);
        let expected = "name      max   n\n----   ------   -\na      2.1 µs   1\nlong    10 ns";
        assert_eq!(table.to_string(), expected);
    }
}

//! A report as a list of blocks, rendered as HTML or as Markdown.

use std::fs;
use std::path::Path;

use crate::plot::Chart;
use anyhow::Context;

/// A report, including its plots.
#[derive(Debug)]
pub(super) struct Document {
    title: String,
    blocks: Vec<Block>,
}

#[derive(Debug)]
pub(super) enum Block {
    Heading(String),
    Paragraph(String),
    /// Preformatted lines.
    Code(String),
    Table(Vec<String>, Vec<Vec<String>>),
    /// The file's name without an extension, the title, and the drawing.
    Plot(String, String, String),
}

const STYLE: &str = "\
body{font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#222}\
h1{font-size:26px}h2{font-size:20px;margin-top:2em}pre{background:#f5f5f5;padding:.8em;overflow-x:auto;font-size:13px}\
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}\
th,td{padding:.2em .7em;text-align:right;border-bottom:1px solid #e5e5e5;white-space:nowrap}\
svg{max-width:100%;height:auto}figure{margin:1.5em 0}";

impl Document {
    pub(super) fn new(title: &str) -> Self {
        Self { title: title.to_owned(), blocks: Vec::new() }
    }

    /// Begins a section with its first paragraph.
    pub(super) fn section(&mut self, heading: &str, text: &str) {
        self.blocks.push(Block::Heading(heading.to_owned()));
        self.paragraph(text);
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        self.blocks.push(Block::Paragraph(text.to_owned()));
    }

    pub(super) fn code(&mut self, text: &str) {
        self.blocks.push(Block::Code(text.to_owned()));
    }

    pub(super) fn table(&mut self, headings: &[&str], rows: Vec<Vec<String>>) {
        self.blocks.push(Block::Table(headings.iter().map(|&heading| heading.to_owned()).collect(), rows));
    }

    pub(super) fn plot(&mut self, file: &str, chart: Chart) {
        self.blocks.push(Block::Plot(file.to_owned(), chart.title.clone(), chart.svg()));
    }

    /// Writes `report.html`, which needs no other file, `report.md`, and the plots that it shows under `plots/`.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        let plots = folder.join("plots");
        fs::create_dir_all(&plots).with_context(|| format!("cannot make {}", plots.display()))?;
        for block in &self.blocks {
            if let Block::Plot(file, _, svg) = block {
                write(&format!("plots/{file}.svg"), svg)?;
            }
        }
        write("report.md", &self.markdown())?;
        write("report.html", &self.html())
    }

    fn markdown(&self) -> String {
        let mut text = format!("# {}\n", self.title);
        for block in &self.blocks {
            text.push('\n');
            match block {
                Block::Heading(heading) => text.push_str(&format!("## {heading}\n")),
                Block::Paragraph(paragraph) => text.push_str(&format!("{paragraph}\n")),
                Block::Code(code) => text.push_str(&format!("```text\n{code}\n```\n")),
                Block::Table(headings, rows) => {
                    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('*', "\\*"));
                    text.push_str(&line(headings));
                    text.push_str(&format!("|{}\n", "---:|".repeat(headings.len())));
                    rows.iter().for_each(|row| text.push_str(&line(row)));
                }
                Block::Plot(file, title, _) => text.push_str(&format!("![{title}](plots/{file}.svg)\n")),
            }
        }
        text
    }

    fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n<h1>{title}</h1>\n"
        );
        for block in &self.blocks {
            match block {
                Block::Heading(heading) => text.push_str(&format!("<h2>{}</h2>\n", escaped(heading))),
                Block::Paragraph(paragraph) => text.push_str(&format!("<p>{}</p>\n", escaped(paragraph))),
                Block::Code(code) => text.push_str(&format!("<pre>{}</pre>\n", escaped(code))),
                Block::Table(headings, rows) => {
                    let line = |cells: &[String], tag: &str| {
                        let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
                        format!("<tr>{}</tr>\n", cells.collect::<String>())
                    };
                    let rows: String = rows.iter().map(|row| line(row, "td")).collect();
                    text.push_str(&format!("<table>\n{}{rows}</table>\n", line(headings, "th")));
                }
                Block::Plot(_, _, svg) => text.push_str(&format!("<figure>\n{svg}</figure>\n")),
            }
        }
        text.push_str("</html>\n");
        text
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let mut document = Document::new("A report");
        document.section("Part", "1 < 2");
        document.code("a command");
        document.table(&["n", "what"], vec![vec!["1".to_owned(), "x*".to_owned()]]);
        let markdown = "# A report\n\n## Part\n\n1 < 2\n\n```text\na command\n```\n\n| n | what |\n|---:|---:|\n| 1 | x\\* |\n";
        assert_eq!(document.markdown(), markdown);
        let html = document.html();
        for said in ["<h2>Part</h2>", "<p>1 &lt; 2</p>", "<pre>a command</pre>", "<td>x*</td>"] {
            assert!(html.contains(said), "{html}");
        }
    }
}

//! Their side: a program on LSEG's C library, which the user has built.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Its name in the folder that `RTSDK` names.
pub(crate) const PROGRAM: &str = "codecbench";

pub(crate) struct Figure {
    pub(crate) task: String,
    pub(crate) bytes: usize,
    pub(crate) millions_per_s: f64,
}

/// Runs it once on the message of so many fields: one figure for each task.
///
/// It reads its files from the folder that it runs in, and prints `fields bytes task min median max ns` for each task.
pub(crate) fn rates(folder: &Path, seconds: f64, fields: usize) -> anyhow::Result<Vec<Figure>> {
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let program = folder.join(PROGRAM);
    let output = Command::new(&program)
        .args([seconds.to_string(), "1".to_owned(), fields.to_string()])
        .current_dir(&folder)
        .output()
        .with_context(|| program.display().to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{PROGRAM} failed ({}): {text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let figures: Vec<_> = text.lines().filter_map(|line| figure(line, fields)).collect();
    ensure!(!figures.is_empty(), "{PROGRAM} printed no figures for {fields} fields: {text}");
    Ok(figures)
}

fn figure(line: &str, fields: usize) -> Option<Figure> {
    let mut columns = line.split_whitespace();
    if columns.next()?.parse() != Ok(fields) {
        return None;
    }
    let bytes = columns.next()?.parse().ok()?;
    let task = columns.next()?.to_owned();
    let millions_per_s = columns.nth(1)?.parse().ok()?;
    Some(Figure { task, bytes, millions_per_s })
}

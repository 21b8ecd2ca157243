//! The figures as a page.

use std::fmt::Write;

use crate::{FIND, Row};

/// What each task does.
const MEANINGS: &[(&str, &str)] = &[
    ("walk", "header, then every field's id and bytes, without values"),
    ("decode", "as `walk`, with each field's type from the dictionary and each value decoded as that type"),
    (
        "convert",
        "as `decode`, with REALs converted to floating point, ENUMs to their texts, TIMEs to a number",
    ),
    ("encode", "header and every field, from values of all types"),
    (FIND, "header, then only the last field; Tapeline only, as the other libraries have no such call"),
];

/// How many times the C library's rate is aimed at.
const AIMS: &[(&str, f64)] = &[("decode", 1.5), ("encode", 1.3)];

pub(crate) fn page(rows: &[Row], turns: u16, seconds: f64, environment: &str) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = write_page(&mut page, rows, turns, seconds, environment);
    page
}

fn write_page(
    page: &mut String,
    rows: &[Row],
    turns: u16,
    seconds: f64,
    environment: &str,
) -> std::fmt::Result {
    writeln!(page, "# RWF: the codec compared with LSEG's C and Java libraries\n")?;
    writeln!(
        page,
        "Written by `make bench-peers-rwf DOC=1 RTSDK=DIR ETA_JARS=DIR`; [how it is measured](../../peers/rwf/README.md)."
    )?;
    writeln!(
        page,
        "RWF is the binary message format of LSEG's OMM. All rates are million messages a second on one core, min / **median** / max of \
         {turns} turns of {seconds} s. *Ratio* is Tapeline's rate divided by the \
         other library's, taken within each turn; *aim* is the ratio to ETA C aimed at. Another machine, or this one at another hour, has other figures.\n"
    )?;
    writeln!(page, "```text\n{}\n```\n", environment.trim_end())?;
    writeln!(page, "| task | fields | bytes | Tapeline | ETA C | ratio | aim | ETA Java | ratio |")?;
    writeln!(page, "|---|---:|---:|---:|---:|---:|---|---:|---:|")?;
    for (task, _) in MEANINGS {
        for row in rows.iter().filter(|row| row.task == *task) {
            let Row { fields, bytes, rates, .. } = row;
            let by = |theirs: &[f64]| -> Vec<f64> {
                rates.ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
            };
            let ratios = by(&rates.theirs);
            let aim = AIMS.iter().find(|(of, _)| of == task).map(|(_, aim)| *aim);
            let verdict = match (aim, median(&ratios)) {
                (Some(aim), Some(ratio)) if ratio >= aim => format!("{aim} met"),
                (Some(aim), Some(_)) => format!("{aim} NOT MET"),
                _ => String::new(),
            };
            writeln!(
                page,
                "| {task} | {fields} | {bytes} | {} | {} | {} | {verdict} | {} | {} |",
                spread(&rates.ours),
                spread(&rates.theirs),
                spread(&ratios),
                spread(&rates.java),
                spread(&by(&rates.java))
            )?;
        }
    }
    writeln!(page)?;
    for (task, meaning) in MEANINGS {
        writeln!(page, "* `{task}`: {meaning}.")?;
    }
    Ok(())
}

fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn median(figures: &[f64]) -> Option<f64> {
    sorted(figures).get(figures.len() / 2).copied()
}

fn spread(figures: &[f64]) -> String {
    let sorted = sorted(figures);
    match (sorted.first(), median(figures), sorted.last()) {
        (Some(least), Some(median), Some(most)) => format!("{least:.2} / **{median:.2}** / {most:.2}"),
        _ => "–".to_owned(),
    }
}

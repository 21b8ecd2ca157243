//! The figures as a page.

use std::fmt::Write;

use tapeline_feed::itch::Decoder;

use crate::{Figures, Row};

/// Whose a row is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Floor,
    Ours,
    Theirs,
}

use Whose::{Floor, Ours, Theirs};

/// Every row: its name, what it does, whose it is, and the row that its ratio is to.
const ROWS: &[(&str, &str, Whose, &str)] = &[
    ("memory", "all bytes summed as words of eight", Floor, "switch"),
    ("framing", "from length to length, lengths summed", Floor, "switch"),
    ("switch", "hand-written `match`, every field summed", Floor, "switch"),
    ("lunary views", "lunary 0.2 `ZeroCopyParser`, every field summed", Theirs, "switch"),
    ("lunary enum", "lunary 0.2 `Parser`, owned messages, fields of orders summed", Theirs, "switch"),
    ("itchy", "itchy 0.3 `MessageStream`, owned messages, fields of orders summed", Theirs, "switch"),
    ("views", "ours: views, every field summed", Ours, "switch"),
    ("portable", "ours: records of 64 bytes, all fields, by type", Ours, "switch"),
    ("permuted", "ours: the same records, bytes permuted (AVX-512 VBMI)", Ours, "switch"),
    ("plain book", "hash map of orders, sorted maps of levels, our views", Floor, "plain book"),
    ("books", "ours: permuted records, books, one message after another", Ours, "plain book"),
    ("batched", "ours: the same, 32 messages at a time", Ours, "plain book"),
    ("portable batched", "ours: the same, portable records", Ours, "plain book"),
    ("queues", "ours: as batched, with the orders of each level in line", Ours, "plain book"),
];

fn median(row: &Row) -> f64 {
    row.rates[row.rates.len() / 2]
}

pub(crate) fn page(figures: &[Figures], runs: u16, environment: &str) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = write_page(&mut page, figures, runs, environment);
    page
}

fn write_page(page: &mut String, figures: &[Figures], runs: u16, environment: &str) -> std::fmt::Result {
    writeln!(page, "# ITCH: decoding and books beside other libraries\n")?;
    writeln!(
        page,
        "Written by `make bench-peers-itch DOC=1`; [how it is measured](../../peers/itch/README.md)."
    )?;
    writeln!(
        page,
        "Million messages a second on one core, min / **median** / max of {runs} runs in turns.\n"
    )?;
    if !Decoder::new().is_permuting() {
        writeln!(page, "This processor has no AVX-512 VBMI: *permuted* is as *portable* here.\n")?;
    }
    writeln!(page, "```text\n{}\n```", environment.trim_end())?;
    for figures in figures {
        let Figures { size, bytes, messages, live_orders, levels, books_bytes, .. } = figures;
        writeln!(page, "\n## Input `{}`\n", size.name)?;
        writeln!(
            page,
            "{messages} messages, {bytes} bytes, {} symbols; {live_orders} orders and {levels} levels on the books at the \
             end, for which ours take {} MB.\n",
            size.symbols,
            books_bytes / 1_000_000
        )?;
        writeln!(
            page,
            "| what | whose | min | median | max | ns | ratio |\n|---|---|---:|---:|---:|---:|---:|"
        )?;
        for (name, does, whose, base) in ROWS {
            let Some(row) = figures.rows.iter().find(|row| row.what == *name) else { continue };
            let Some(base) = figures.rows.iter().find(|row| row.what == *base) else { continue };
            let whose = match whose {
                Floor => "yardstick",
                Ours => "Tapeline",
                Theirs => "peer",
            };
            writeln!(
                page,
                "| {does} | {whose} | {:.1} | **{:.1}** | {:.1} | {:.1} | {:.2} |",
                row.rates[0],
                median(row),
                row.rates[row.rates.len() - 1],
                1e3 / median(row),
                median(row) / median(base)
            )?;
        }
        writeln!(page, "\nRatios are to the `match` above, and for books to the plain book.\n")?;
        let of = |times: &tapeline_measure::Recorder| {
            [0.5, 0.9, 0.99, 0.999].map(|share| times.value_at(share).unwrap_or_default())
        };
        let ([a, b, c, d], [none, ..]) = (of(&figures.alone), of(&figures.two_stamps));
        writeln!(
            page,
            "A message that comes alone, from its bytes to its event: {a} ns in the median, {b} at 90 %, {c} at 99 %, {d} at \
             99.9 %, of which {none} ns are the two stamps."
        )?;
    }
    Ok(())
}

//! The figures as a page.

use std::fmt::Write;

use tapeline_feed::itch::Decoder;

use crate::cpp::Program;
use crate::{Figures, Row};

/// An input's size, ours, the best open peer of the kind in C++, and how many times as quick we want to be.
const AIMS: &[(&str, &str, &str, f64)] = &[
    ("small", "batched", "itch-order-book", 1.37),
    ("small", "queues", "book-project", 2.2),
    ("day", "batched", "itch-order-book", 1.58),
    ("day", "queues", "book-project", 2.2),
];

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
    ("itch-order-book", "charles-cooper/itch-order-book (C++), levels only, no events", Theirs, "plain book"),
    ("queues", "ours: as batched, with the orders of each level in line", Ours, "plain book"),
    ("book-project", "book-project `OrderBook` (C++), orders in line, no events", Theirs, "plain book"),
];

fn row_of<'a>(figures: &'a Figures, name: &str) -> Option<&'a Row> {
    figures.rows.iter().find(|row| row.what == name)
}

fn median(row: &Row) -> f64 {
    row.rates[row.rates.len() / 2]
}

pub(crate) fn page(figures: &[Figures], runs: u16, environment: &str, programs: &[Program]) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = write_page(&mut page, figures, runs, environment, programs);
    page
}

fn write_page(
    page: &mut String,
    figures: &[Figures],
    runs: u16,
    environment: &str,
    programs: &[Program],
) -> std::fmt::Result {
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
    for Program { sources, .. } in programs {
        writeln!(page, "\nIn C++: {sources}.")?;
    }
    for figures in figures {
        let Figures { size, bytes, messages, live_orders, levels, memory, .. } = figures;
        writeln!(page, "\n## Input `{}`\n", size.name)?;
        writeln!(
            page,
            "{messages} messages, {bytes} bytes, {} symbols; {live_orders} orders and {levels} levels on the books at the \
             end.\n",
            size.symbols,
        )?;
        if let Some(books) = row_of(figures, "batched") {
            let events = books.sum;
            writeln!(
                page,
                "{events} times a best price or size changes, by every book of ours and by the plain one.\n"
            )?;
        }
        let megabytes = |bytes: usize| bytes as f64 / 1e6;
        writeln!(
            page,
            "Ours take {:.1} MB for orders ({} bytes for each on the books), {:.1} for levels ({} bytes each), {:.1} for stocks, \
             and {:.1} more with orders in line ({} bytes each).\n",
            megabytes(memory.orders),
            memory.orders / live_orders.max(&1),
            megabytes(memory.levels),
            memory.levels / levels.max(&1),
            megabytes(memory.stocks),
            megabytes(memory.queues),
            memory.queues / live_orders.max(&1),
        )?;
        writeln!(
            page,
            "| what | whose | min | median | max | ns | ratio |\n|---|---|---:|---:|---:|---:|---:|"
        )?;
        for (name, does, whose, base) in ROWS {
            let Some(row) = row_of(figures, name) else { continue };
            let Some(base) = row_of(figures, base) else { continue };
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
        for (_, ours, theirs, aim) in AIMS.iter().filter(|(name, ..)| *name == size.name) {
            let (Some(our_row), Some(their_row)) = (row_of(figures, ours), row_of(figures, theirs)) else {
                continue;
            };
            let ratio = median(our_row) / median(their_row);
            let verdict = if ratio >= *aim { "reached" } else { "missed" };
            writeln!(
                page,
                "*{ours}* beside {theirs}: **{ratio:.2}** times as many messages; the aim, {aim}, is {verdict}.\n"
            )?;
        }
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

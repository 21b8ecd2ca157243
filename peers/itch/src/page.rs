//! The figures as a page.

use std::fmt::Write;

use tapeline_feed::itch::Decoder;

use crate::cpp::Program;
use crate::{Figures, Row};

/// How many times as many messages as an open peer in C++ a book of ours is to take, by what both were on one core of a Zen 5:
/// the rate set for ours there, and what the peer did, in million messages a second.
struct Aim {
    size: &'static str,
    ours: &'static str,
    theirs: &'static str,
    set: f64,
    peer: f64,
}

impl Aim {
    fn ratio(&self) -> f64 {
        self.set / self.peer
    }
}

const AIMS: &[Aim] = &[
    Aim { size: "small", ours: "batched", theirs: "CppTrader", set: 40.0, peer: 21.3 },
    Aim { size: "day", ours: "batched", theirs: "CppTrader", set: 30.0, peer: 13.5 },
    Aim { size: "small", ours: "queues", theirs: "book-project", set: 20.0, peer: 8.9 },
    // Set without a size; the ratio is that of the small input.
    Aim { size: "day", ours: "queues", theirs: "book-project", set: 20.0, peer: 8.9 },
];

const WHERE_AIMS_COME_FROM: &str = "\
    Each aim is a ratio of two rates on one core of an AMD Zen 5 (family 26, virtual, 2.6 GHz), on simulated input of the same \
    two sizes: the rate that was set as Tapeline's target there, divided by the peer's there (median of five runs). For orders in \
    queue order one target was set; its ratio is that of the small input.";

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
    (
        "CppTrader",
        "CppTrader `ITCHHandler`, \"optimized aggressive\" books (C++), levels only, no events",
        Theirs,
        "plain book",
    ),
    ("queues", "ours: 32 messages at a time, orders in queue order", Ours, "plain book"),
    (
        "book-project",
        "book-project `OrderBook` (C++), orders in queue order, no events",
        Theirs,
        "plain book",
    ),
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
    writeln!(page, "# ITCH: decoding and books compared with other libraries\n")?;
    writeln!(
        page,
        "Written by `make bench-peers-itch DOC=1`; [how it is measured](../../peers/itch/README.md)."
    )?;
    writeln!(
        page,
        "All rates are million messages a second on one core: min / **median** / max of {runs} runs, in which the programs take turns. A \
         *book* has the open orders of one symbol, by price level. *ns* is the time for each message at \
         the median.\n\n\
         *Orders in queue order* means that a book also keeps the orders of each price level in time priority, not only their \
         total. An *event* is a change of a symbol's best price or size; the books in C++ report no events. A *yardstick* is code written \
         only for comparison; a *peer* is another library.\n"
    )?;
    if !Decoder::new().is_permuting() {
        writeln!(
            page,
            "This processor has no AVX-512 VBMI: the permuted records are the portable ones here.\n"
        )?;
    }
    writeln!(page, "```text\n{}\n```", environment.trim_end())?;
    for Program { sources, .. } in programs {
        writeln!(page, "\nIn C++: {sources}.")?;
    }
    if !programs.is_empty() {
        writeln!(page, "\n{WHERE_AIMS_COME_FROM}")?;
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
                "A best price or size changes {events} times: every book of ours and the plain book agree.\n"
            )?;
        }
        let megabytes = |bytes: usize| bytes as f64 / 1e6;
        writeln!(
            page,
            "Memory of our books: {:.1} MB for orders ({} bytes for each live order), {:.1} MB for levels ({} bytes each), {:.1} MB for \
             stocks; in queue order {:.1} MB more ({} bytes for each live order).\n",
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
        writeln!(
            page,
            "\n*Ratio* is to the hand-written `match`, and for books to the plain book (hash map and sorted maps).\n"
        )?;
        for aim in AIMS.iter().filter(|aim| aim.size == size.name) {
            let (Some(our_row), Some(their_row)) = (row_of(figures, aim.ours), row_of(figures, aim.theirs))
            else {
                continue;
            };
            let ratio = median(our_row) / median(their_row);
            let verdict = if ratio >= aim.ratio() { "reached" } else { "missed" };
            let ours = if aim.ours == "queues" { "in queue order" } else { "32 messages at a time" };
            writeln!(
                page,
                "Ours, {ours}, compared with {}: **{ratio:.2}** ×; the aim, {:.2} × ({} / {}), is {verdict}.\n",
                aim.theirs,
                aim.ratio(),
                aim.set,
                aim.peer,
            )?;
        }
        let of = |times: &tapeline_measure::Recorder| {
            [0.5, 0.9, 0.99, 0.999].map(|share| times.value_at(share).unwrap_or_default())
        };
        let ([a, b, c, d], [none, ..]) = (of(&figures.alone), of(&figures.two_stamps));
        writeln!(
            page,
            "A single message, from its bytes to its event: p50 {a} ns, p90 {b} ns, p99 {c} ns, p99.9 {d} ns; {none} ns of each are \
             the two time stamps."
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SIZES;
    use crate::cpp::names;

    /// A row that is measured but not named here, or an aim beside a row that is not, would be left out without a word.
    #[test]
    fn every_book_in_cpp_has_a_row_and_every_aim_its_rows() {
        let is_row = |name: &str| ROWS.iter().any(|(row, ..)| *row == name);
        assert!(names().all(is_row));
        for aim in AIMS {
            assert!(is_row(aim.ours) && names().any(|name| name == aim.theirs), "{}", aim.theirs);
            assert!(SIZES.iter().any(|size| size.name == aim.size), "{}", aim.size);
        }
    }
}

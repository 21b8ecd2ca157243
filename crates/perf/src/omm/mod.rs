//! The performance tools: `tapeline omm consumer`, `provider` and `ni-provider`, as LSEG's *Open Source Performance
//! Tools Guide* describes them. Tapeline adds distributions, a verdict and a run folder.
//!
//! A tool has a main thread, which collects and writes results, and one working thread for each connection (for a
//! provider: for each share of its clients). A working thread runs a reactor, a role of [`tapeline_omm::role`], and
//! the time slices.
//!
//! | file | owns |
//! |---|---|
//! | `guide.rs` | the guide's own spelling of commands and options |
//! | `options/` | the options of each tool, and the rules between them |
//! | `source.rs` | the source of an input: a file or a built-in |
//! | `messages/` | contents of the messages: `MsgData.xml` |
//! | `item_list.rs` | item list: `350k.xml` |
//! | `division.rs` | how items are divided among threads |
//! | `slices.rs` | the fixed grid of slices, and the number of messages in each |
//! | `bursts.rs` | messages due on one connection at a rate |
//! | `publishing.rs` | traffic that both providers send |
//! | `stamp.rs` | the fields that carry times: TIM_TRK_1 to 4 |
//! | `tool.rs` | the tools |
//! | `tally.rs` | counts and times of one thread |
//! | `link.rs` | the link between a working thread and the main thread |
//! | `dispatching.rs` | API dispatch: a working thread split in two |
//! | `collect.rs` | the main thread: statistics at each interval, the summary at the end |
//! | `sums.rs` | totals of a run's tallies |
//! | `values.rs` | field values in text form |
//! | `verdict.rs` | the verdict on a run, and its reasons |
//! | `output/` | the guide's files and lines, and the run folder |
//! | `consumer/` | `tapeline omm consumer` |
//! | `provider/` | `tapeline omm provider` |
//! | `ni_provider/` | `tapeline omm ni-provider` |
//! | `transport/` | `tapeline omm transport` |

#[cfg(test)]
mod allocations;
mod bursts;
mod collect;
mod consumer;
mod dispatching;
mod division;
pub mod guide;
pub mod item_list;
mod link;
pub mod messages;
mod ni_provider;
pub mod options;
mod output;
mod provider;
mod publishing;
mod slices;
mod source;
mod stamp;
mod sums;
mod tally;
mod tool;
mod transport;
pub mod values;
mod verdict;

/// The rows of a table of test cases, with `=>` between columns. A line that begins with it goes on with its row.
#[cfg(test)]
fn cases<const N: usize>(table: &str) -> impl Iterator<Item = [String; N]> {
    let mut rows: Vec<String> = Vec::new();
    let lines = table.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
        match rows.last_mut() {
            Some(row) if line.starts_with("=>") => row.push_str(line),
            _ => rows.push(line.to_owned()),
        }
    }
    rows.into_iter().map(|row| {
        let columns: Vec<String> = row.split("=>").map(|column| column.trim().to_owned()).collect();
        columns.try_into().unwrap_or_else(|_| panic!("{row} has not {N} columns"))
    })
}

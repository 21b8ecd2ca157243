//! The performance tools: `tapeline omm consumer`, `provider` and `ni-provider`, as LSEG's *Open Source Performance Tools
//! Guide* describes them: their options, rules, input and output files; and distributions, a verdict and a run folder beside.
//!
//! A tool is a main thread, which collects and writes, and one thread for each connection (of a provider: for each share of
//! its clients), which does all the work: a reactor, a role of [`tapeline_omm::role`], and the slices of time.
//!
//! | file | owns |
//! |---|---|
//! | `guide.rs` | the guide's own spelling of commands and options |
//! | `options/` | the options of each tool, and the rules between them |
//! | `source.rs` | where an input comes from: a file, or what is built in |
//! | `messages/` | what is in the messages: `MsgData.xml` |
//! | `item_list.rs` | which items: `350k.xml` |
//! | `division.rs` | how items are divided among threads |
//! | `slices.rs` | the fixed grid of slices, and how many messages each of them has |
//! | `bursts.rs` | what of a rate is due on one connection |
//! | `publishing.rs` | what both providers send |
//! | `stamp.rs` | the fields that carry times: TIM_TRK_1 to 4 |
//! | `tally.rs` | what a thread counts and times |
//! | `link.rs` | between a working thread and the main one |
//! | `dispatching.rs` | API dispatch: a working thread in two |
//! | `collect.rs` | the main thread: statistics at each interval, the summary in the end |
//! | `sums.rs` | what the tallies of a run come to |
//! | `values.rs` | values of fields as people write them |
//! | `verdict.rs` | the verdict on it, and why |
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
mod transport;
pub mod values;
mod verdict;

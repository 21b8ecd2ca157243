//! `tapeline feed`: replay, inspect, simulate or serve a market feed.
//!
//! | file | owns |
//! |---|---|
//! | `lines.rs` | where datagrams go: one or two lines, back pressure, batches |
//! | `faults.rs` | what goes wrong on the way there, if asked for |
//! | `replay.rs` | a capture onto the network: options, what is played |
//! | `player.rs` | datagrams onto the lines when they are due |
//! | `simulate.rs`, `generator.rs`, `sending.rs` | the simulated exchange onto the network or into a file: options, what is due, sending it |
//! | `inspect.rs`, `report.rs` | what captures hold: reading them, and showing what was found |
//! | `dbn_report.rs` | files of DBN records |
//! | `serve_retransmit.rs`, `serve_soup.rs`, `past.rs` | answering requests for messages, over UDP and TCP, and where those come from |
//! | `fetch_soup.rs` | a feed over TCP, into a file or a summary |
//! | `tally.rs`, `itch_report.rs` | adding up messages, and showing what they amount to |
//! | `iex.rs`, `iex_report.rs` | the same for IEX's TOPS and DEEP |

mod dbn_report;
mod faults;
mod fetch_soup;
mod generator;
mod iex;
mod iex_report;
mod inspect;
mod itch_report;
mod lines;
mod past;
mod player;
mod replay;
mod report;
mod sending;
mod serve_retransmit;
mod serve_soup;
mod simulate;
mod tally;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub(crate) use self::inspect::check_readable_by_a_plant;
pub(crate) use self::itch_report::ItchReport;
pub(crate) use self::lines::{Lines, Route};
pub(crate) use self::player::{Pace, Player};
pub(crate) use self::tally::Tally;

/// Replay, inspect or simulate a market feed.
#[derive(Debug, Args)]
pub(crate) struct Feed {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send a capture's datagrams onto multicast or unicast UDP, or pack a file of messages and send that
    ///
    /// The payloads of a capture's UDP datagrams are sent as they are. Files of ITCH messages behind their lengths are packed into
    /// MoldUDP64, with heartbeats where the feed is silent for a second and three end-of-session packets at the end; sequences go on over
    /// several files and loops.
    Replay(replay::Replay),
    /// Show what captures hold: message types, sequences, gaps, symbols, books
    ///
    /// Several captures are taken as the lines A, B, … of one feed and arbitrated by sequence, in the order of their times. Several files
    /// of messages are read one after another.
    Inspect(inspect::Inspect),
    /// Generate a plausible exchange day at any rate, on one or two lines or into a file
    ///
    /// The same seed gives the same messages but for their times. Event times are those at which messages were due, so that a receiver
    /// can tell its latency from due. With --write, nothing is sent and the day is generated as fast as it goes, with the times that the
    /// rate gives from 09:30 on.
    Simulate(simulate::Simulate),
    /// Answer MoldUDP64 requests for missing messages, from captures or from a plant's ring
    ///
    /// Reads the captures once, as `inspect` does: several as the lines of one feed. Each request is answered by one packet of as many of
    /// the messages as fit in 1,400 bytes; whoever wants more asks again. What is not here is not answered. No address is sent more than
    /// its share of bytes, and all together no more than theirs, so that nobody can be flooded by requests in his name.
    ServeRetransmit(serve_retransmit::ServeRetransmit),
    /// Serve captures or a plant's ring over SoupBinTCP, to any number of clients, each from the message it asks for
    ///
    /// Reads the captures once, as `inspect` does. A client logs in with the sequence of the first message that it wants; after the last
    /// one it is told that the session is over. With --ring it gets what the plant publishes, as it comes. A client that reads slowly holds up nobody; one that reads nothing for 15 s, or says
    /// nothing, is cut.
    ServeSoup(serve_soup::ServeSoup),
    /// Fetch a session's messages over SoupBinTCP: into a file of messages, or just to see what they are
    ///
    /// Logs in at the sequence asked for, follows until the session's end or the last message asked for, and logs out. A connection that
    /// breaks is made again where it left off.
    FetchSoup(fetch_soup::FetchSoup),
}

impl Feed {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Replay(replay) => replay.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::Simulate(simulate) => simulate.run(),
            Command::ServeRetransmit(serve) => serve.run(),
            Command::ServeSoup(serve) => serve.run(),
            Command::FetchSoup(fetch) => fetch.run(),
        }
    }
}

//! `tapeline feed`: replay, inspect, simulate or serve a market feed.
//!
//! `replay` and `simulate`, the sending side, are `tapeline_perf::exchange`.
//!
//! | file | owns |
//! |---|---|
//! | `inspect.rs`, `report.rs` | content of captures: reading, and reporting |
//! | `dbn_report.rs` | files of DBN records |
//! | `serve_retransmit.rs`, `serve_soup.rs`, `past.rs` | serving messages over UDP and TCP, and their source |
//! | `fetch_soup.rs` | a feed over TCP, into a file or a summary |
//! | `tally.rs`, `itch_report.rs` | counting messages, and reporting the counts |
//! | `iex.rs`, `iex_report.rs` | the same for IEX's TOPS and DEEP |

mod dbn_report;
mod fetch_soup;
mod iex;
mod iex_report;
mod inspect;
mod itch_report;
mod past;
mod report;
mod serve_retransmit;
mod serve_soup;
mod tally;

use std::process::ExitCode;

use clap::Subcommand;
use tapeline_perf::exchange::{Replay, Simulate};

pub(crate) use self::inspect::check_readable_by_a_plant;
pub(crate) use self::itch_report::ItchReport;
pub(crate) use self::tally::FeedTally;

/// Replay, inspect or simulate a market feed.
#[derive(Debug, Subcommand)]
pub(crate) enum Feed {
    /// Send a capture's datagrams over multicast or unicast UDP, or send a file of messages packed into datagrams
    ///
    /// The UDP payloads of a capture are sent unchanged. Files of length-prefixed ITCH messages are packed into MoldUDP64, with
    /// heartbeats when the feed is silent for a second and three end-of-session packets at the end. Sequences continue across files
    /// and loops.
    Replay(Replay),
    /// Show the content of captures: message types, sequences, gaps, symbols, books
    ///
    /// Several captures are taken as the lines A, B, … of one feed and arbitrated by sequence, in time order. Several files of
    /// messages are read one after another.
    Inspect(inspect::InspectFeed),
    /// Generate a plausible exchange day at any rate, on one or two lines or into a file
    ///
    /// The same seed gives the same messages except for their times. The event time of a message is its due time, so
    /// that a receiver can measure latency from it. With --write, nothing is sent: the day is generated as fast as
    /// possible, with event times from 09:30 on at the given rate.
    Simulate(Simulate),
    /// Answer MoldUDP64 retransmission requests, from captures or from a plant's ring
    ///
    /// Reads the captures once, as `inspect` does: several captures are the lines of one feed. The answer to a request
    /// is one packet with as many of the requested messages as fit in 1,400 bytes; a client requests the rest again.
    /// Requests for unknown messages get no answer. The bytes a second are limited for each address and in total, so
    /// that forged requests cannot flood anyone.
    ServeRetransmit(serve_retransmit::ServeRetransmit),
    /// Serve captures or a plant's ring over SoupBinTCP, to any number of clients, each from the sequence number that
    /// it requests
    ///
    /// Reads the captures once, as `inspect` does. A client logs in with the sequence number of its first message;
    /// after the last message it gets an end of session. With --ring, it gets the plant's messages live. A slow client
    /// delays no other client; a client that reads nothing or sends nothing for 15 s is disconnected.
    ServeSoup(serve_soup::ServeSoup),
    /// Fetch a session's messages over SoupBinTCP, into a file or for a summary
    ///
    /// Logs in at the requested sequence number, receives until the session ends or the last requested message arrives,
    /// and logs out. After a disconnection it connects again and continues with the next message.
    FetchSoup(fetch_soup::FetchSoup),
}

impl Feed {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        run!(self, Feed: Replay Inspect Simulate ServeRetransmit ServeSoup FetchSoup)
    }
}

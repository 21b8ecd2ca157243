//! `tapeline omm`: consumers and providers of the Open Message Model, over RSSL.
//!
//! Each program is one thread: connections on a [`Reactor`](tapeline_wire::rssl::Reactor), and the roles of
//! [`tapeline_omm::role`] for the messages on them. This module combines the two, and prints what arrives.
//!
//! | file | owns |
//! |---|---|
//! | `watch.rs`, `watch/` | `tapeline omm watch` |
//! | `serve.rs`, `serve/` | `tapeline omm serve`: connections, and their requests |
//! | `publish.rs` | `tapeline omm publish` |
//! | `accept.rs` | `tapeline omm accept`: an acceptor of NI providers |
//! | `serving.rs` | listening addresses and refusals of the provider and the acceptor |
//! | `decode.rs` | `tapeline omm decode` |
//! | `items.rs` | item names from the command line and from files |
//! | `market.rs` | items of the provider: images, changes and books |
//! | `lines.rs`, `shown.rs` | output: events as lines, messages as JSON |
//!
//! The performance tools are in [`tapeline_perf::omm`], the options that all of these share in [`tapeline_console::omm`].

mod accept;
mod decode;
mod items;
mod lines;
mod market;
mod publish;
mod serve;
mod serving;
mod shown;
mod watch;

pub(crate) use tapeline_perf::omm::guide::{Translated, translate};

use std::process::ExitCode;

use clap::Subcommand;
use tapeline_perf::omm::options;

/// Consume, provide and decode Open Message Model data.
#[derive(Debug, Subcommand)]
pub(crate) enum Omm {
    /// Open many items of a provider, and measure latency and throughput
    ///
    /// Each thread logs in on its own connection and requests its items in bursts. The measurement starts when every
    /// item has its image. Options are also accepted under the names of LSEG's performance tools, such as -itemCount
    /// 100000.
    Consumer(Box<options::ConsumerArgs>),
    /// Open items of a provider and show their messages
    ///
    /// Logs in, reads the service directory, requests the items and prints fields as they change. If the connection,
    /// the service or an item is lost, requests the items again until they are back.
    Watch(watch::OmmWatchArgs),
    /// Serve items to consumers, with simulated prices
    ///
    /// Any item name can be requested. A MarketPrice item has a quote and trades, a MarketByOrder item an order book.
    /// Four names are special: BIG has a book of more than a megabyte, posts to NAK are refused, UNKNOWN does not
    /// exist, and GONE is closed after its first update.
    Serve(serve::OmmServeArgs),
    /// Publish items to a hub, as a non-interactive provider
    ///
    /// Connects, logs in as a provider, and publishes its service, an image of every item, then updates. After a
    /// disconnection, it publishes all images again on the next connection.
    Publish(publish::PublishArgs),
    /// Accept non-interactive providers, and show what they publish
    Accept(accept::AcceptArgs),
    /// Serve many items to consumers, at a rate, as LSEG's IProvPerf does
    ///
    /// Any item name can be requested. Each connection gets updates of its open items in turn, in bursts on a fixed
    /// time grid. Some updates carry a time stamp.
    Provider(Box<options::ProviderArgs>),
    /// Publish many items to a hub, at a rate, as LSEG's NIProvPerf does
    ///
    /// Each thread connects and publishes the service and its share of the items: images first, then updates of items that have an
    /// image, in bursts on a fixed time grid.
    NiProvider(Box<options::NiProviderArgs>),
    /// Send test messages over RSSL, and time them
    ///
    /// Both ends send, each at its own rate, and check what they receive: losses, order and latency. The messages are those of
    /// LSEG's TransportPerf. Latency needs one clock: run both ends on one machine.
    Transport(Box<options::TransportPerfArgs>),
    /// Decode messages from hexadecimal text, JSON or files
    Decode(decode::DecodeArgs),
}

impl Omm {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        run!(self, Omm: Consumer Watch Serve Publish Accept Provider NiProvider Transport Decode)
    }
}

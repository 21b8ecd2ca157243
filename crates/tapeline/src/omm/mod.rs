//! `tapeline omm`: consumers and providers of the Open Message Model, over RSSL.
//!
//! Each program is one thread: connections on a [`Reactor`](tapeline_wire::rssl::Reactor), and the roles of
//! [`tapeline_omm::role`] for what is said on them. What is here puts the two together, and shows what comes.
//!
//! | file | owns |
//! |---|---|
//! | `consumer.rs`, `consumer/` | `tapeline omm consumer` |
//! | `provider.rs`, `provider/` | `tapeline omm provider`: connections, and what they ask of the market |
//! | `ni_provider.rs` | `tapeline omm ni-provider` |
//! | `acceptor.rs` | `tapeline omm acceptor`: what NI providers publish to |
//! | `opaque/` | `tapeline omm transport` |
//! | `serving.rs` | what provider and acceptor do alike with their connections |
//! | `decode.rs` | `tapeline omm decode` |
//! | `config/` | `EmaConfig.xml` and the same in TOML |
//! | `items.rs` | names of items from the command line and from files |
//! | `market.rs` | items that a provider serves: their images, changes and books |
//! | `message_file.rs` | the same from a file of LSEG's performance tools |
//! | `values.rs` | values of fields as people write them |
//! | `out.rs`, `out/json.rs` | what a role sends, into a connection, and what comes; JSON there and RWF here |
//! | `transport.rs` | where and how to connect: options, and the settings that they become |
//! | `login.rs` | who logs in, and with which password |
//! | `dictionaries.rs` | the dictionary from files |
//! | `lines.rs`, `shown.rs` | what is printed: events as lines, messages as JSON |

mod acceptor;
mod config;
mod consumer;
mod decode;
pub(crate) mod dictionaries;
mod items;
mod lines;
mod login;
mod market;
mod message_file;
mod ni_provider;
mod opaque;
pub(crate) mod out;
mod provider;
mod serving;
mod shown;
mod transport;
mod values;

pub(crate) use self::transport::resolve;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Messages that cannot be read until a server cuts the connection that they come on: a good peer sends none.
pub(crate) const MOST_MALFORMED: u64 = 100;

/// Consume, provide and decode Open Message Model data.
#[derive(Debug, Args)]
pub(crate) struct Omm {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Open items of a provider and show what comes
    ///
    /// Logs in, learns which services there are, asks for the items and prints fields as they change. Whatever is lost (the
    /// provider, the service, an item) is asked for again until it is back.
    Consumer(consumer::ConsumerArgs),
    /// Serve items to consumers, with simulated prices
    ///
    /// Every name is an item. In MarketPrice it has a quote and trades, in MarketByOrder a book of orders. Four names are special: BIG
    /// has a book of more than a megabyte, posts to NAK are refused, UNKNOWN is not there, and GONE is closed after its first update.
    Provider(provider::ProviderArgs),
    /// Publish items to a hub, unasked
    ///
    /// Connects, logs in as a provider, publishes its service, then an image of every item and its updates. What is lost is
    /// published again on the next connection.
    NiProvider(ni_provider::NiProviderArgs),
    /// Take what non-interactive providers publish, and show it
    Acceptor(acceptor::AcceptorArgs),
    /// Send messages without a meaning over RSSL, and time them
    ///
    /// Both ends send, each at its own rate, and check what comes: none lost, all in order, how long it took. The messages are
    /// those of LSEG's TransportPerf. Latency is from one clock: both ends on one machine.
    Transport(opaque::Transport),
    /// Show messages of bytes: hexadecimal text, or files of them
    Decode(decode::DecodeArgs),
}

impl Omm {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Consumer(command) => command.run(),
            Command::Provider(command) => command.run(),
            Command::NiProvider(command) => command.run(),
            Command::Acceptor(command) => command.run(),
            Command::Transport(command) => command.run(),
            Command::Decode(command) => command.run(),
        }
    }
}

//! `tapeline omm`: consumers and providers of the Open Message Model, over RSSL.
//!
//! Each program is one thread: connections on a [`Reactor`](tapeline_wire::rssl::Reactor), and the roles of
//! [`tapeline_omm::role`] for what is said on them. What is here puts the two together, and shows what comes.
//!
//! | file | owns |
//! |---|---|
//! | `consumer.rs`, `consumer/` | `tapeline omm consumer` |
//! | `provider.rs`, `provider/` | `tapeline omm provider`: connections, and what they ask of the market |
//! | `market.rs` | items that a provider serves: their images, changes and books |
//! | `out.rs` | what a role sends, into a connection |
//! | `transport.rs` | where and how to connect: options, and the settings that they become |
//! | `login.rs` | who logs in, and with which password |
//! | `dictionaries.rs` | the dictionary from files |
//! | `lines.rs`, `shown.rs` | what is printed: events as lines, messages as JSON |

mod consumer;
mod dictionaries;
mod lines;
mod login;
mod market;
mod out;
mod provider;
mod shown;
mod transport;

use std::process::ExitCode;

use clap::{Args, Subcommand};

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
}

impl Omm {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Consumer(command) => command.run(),
            Command::Provider(command) => command.run(),
        }
    }
}

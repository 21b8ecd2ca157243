//! The work of all threads: the options, with their files loaded and their items divided.

use std::sync::Arc;
use std::time::Duration;

use tapeline_client::connection::JsonSettings;
use tapeline_client::ema_config::{Chosen, Group};
use tapeline_client::login::Login;
use tapeline_console::failure::Hinted;
use tapeline_console::paths;
use tapeline_omm::Dictionary;
use tapeline_omm::role::consumer::{Backoff, ConsumerSettings};
use tapeline_omm::rwf::Domain;

use super::super::division::Division;
use super::super::item_list::{self, ListedItem};
use super::super::messages::{DomainMessages, Messages, Payload};
use super::super::options::ConsumerArgs;
use super::super::source::InputSource;
use super::super::stamp::Unit;
use super::super::tally::Kind;
use super::servers::{Servers, names};

/// The work of all threads.
pub(super) struct ConsumerPlan {
    /// The options, with the dictionary's files that are used.
    pub(super) args: ConsumerArgs,
    /// Per thread.
    pub(super) servers: Vec<Servers>,
    pub(super) credentials: Login,
    pub(super) settings: ConsumerSettings,
    pub(super) json: JsonSettings,
    pub(super) dictionary: Arc<Dictionary>,
    /// Contents of posts and generic messages; `None` if neither is sent.
    pub(super) messages: Option<Messages>,
    /// Of all threads: first the common ones.
    items: Vec<ListedItem>,
    pub(super) division: Division,
    pub(super) unit: Unit,
}

impl ConsumerPlan {
    /// Loads the files; refuses options that contradict each other or the files.
    pub(super) fn new(args: &ConsumerArgs) -> anyhow::Result<Self> {
        let mut chosen = args.run.config.load(Group::Consumer)?;
        let dictionary_files = args.dictionary.clone().or(chosen.dictionary.take()).or_usual();
        let dictionary = dictionary_files.load()?;
        let threads = args.run.threads().max(1);
        let division = args.items.division(threads);
        let items = item_list::load(args.items.item_file.as_deref(), division.listed())?;
        let servers = Servers::of_threads(args, &mut chosen, threads)?;
        let has_standby = servers.iter().any(|servers| servers.standby.is_some());
        if let Some(item) = items.iter().find(|item| item.is_snapshot).filter(|_| has_standby) {
            let what =
                format!("servers stand by, and item {} is a snapshot, which ends with its image", item.name);
            let hint = "take snapshot=\"true\" from the item list, or leave out the standby";
            return Err(Hinted::new(what, hint).into());
        }
        let messages = match args.posting_rate + args.generic_msg_rate {
            0 => None,
            _ => Some(Messages::load(args.msg_file.as_deref(), &dictionary)?),
        };
        if let Some(messages) = &messages {
            for kind in [Kind::Post, Kind::Generic] {
                if rates(args, kind).0 > 0 {
                    check(&items, messages, kind, args)?;
                }
            }
        }
        Ok(Self {
            settings: settings(&chosen, items.len()),
            json: chosen.json,
            servers,
            credentials: args
                .login
                .credentials()?
                .with_round_trips(!args.no_rtt && chosen.takes_round_trips.unwrap_or(true)),
            dictionary,
            messages,
            items,
            division,
            unit: args.run.unit(),
            args: ConsumerArgs { dictionary: dictionary_files, ..args.clone() },
        })
    }

    pub(super) fn items_of(&self, thread: usize) -> impl Iterator<Item = &ListedItem> + Clone {
        self.division.items(&self.items, thread)
    }

    /// Payloads for items of this domain, sent in turn.
    pub(super) fn payloads(&self, kind: Kind, domain: Domain) -> &[Payload] {
        self.messages.as_ref().map_or(&[], |messages| payloads(messages, kind, domain))
    }

    pub(super) fn images(&self) -> Vec<u64> {
        (0..self.division.threads).map(|thread| self.division.of(thread) as u64).collect()
    }

    pub(super) fn inputs(&self) -> Vec<(&'static str, String)> {
        let count = self.servers.iter().map(|servers| servers.all.len()).max().unwrap_or_default();
        let names: Vec<String> = (0..count).map(|number| self.names(number)).collect();
        let standby = self.servers.iter().find_map(|servers| servers.standby);
        self.args.test_inputs(self.credentials.name(), &names, standby)
    }

    /// Display names of all threads' endpoints for one server.
    fn names(&self, number: usize) -> String {
        let of_thread =
            |servers: &Servers| servers.all.get(number).map_or_else(String::new, |all| names(all));
        let mut names: Vec<String> = self.servers.iter().map(of_thread).collect();
        names.dedup();
        names.join("; ")
    }
}

/// The role's settings, from the configuration; by default one connection attempt per second, as in the guide.
fn settings(chosen: &Chosen, items: usize) -> ConsumerSettings {
    let usual = chosen.consumer();
    ConsumerSettings { reconnect: backoff(chosen), most_items: usual.most_items.max(items), ..usual }
}

/// The time between connection attempts.
pub(in super::super) fn backoff(chosen: &Chosen) -> Backoff {
    let first = chosen.reconnect_min.unwrap_or(Duration::from_secs(1));
    Backoff { first, most: chosen.reconnect_max.unwrap_or(first).max(first) }
}

/// Messages of this kind per second, and those that carry a time.
pub(super) fn rates(args: &ConsumerArgs, kind: Kind) -> (u64, u64) {
    match kind {
        Kind::Post => (args.posting_rate, args.posting_latency_rate),
        Kind::Generic => (args.generic_msg_rate, args.generic_msg_latency_rate),
        Kind::Update => (0, 0),
    }
}

/// Whether an item accepts messages of this kind.
pub(super) fn takes(item: &ListedItem, kind: Kind) -> bool {
    match kind {
        Kind::Post => item.takes_posts,
        Kind::Generic => item.takes_generics,
        Kind::Update => false,
    }
}

fn payloads(messages: &Messages, kind: Kind, domain: Domain) -> &[Payload] {
    let of_domain: Option<&DomainMessages> = match domain {
        Domain::MARKET_PRICE => Some(&messages.market_price),
        Domain::MARKET_BY_ORDER => messages.market_by_order.as_ref(),
        _ => None,
    };
    of_domain.map_or(&[], |messages| match kind {
        Kind::Post => &messages.posts,
        Kind::Generic => &messages.generics,
        Kind::Update => &messages.updates,
    })
}

/// Checks that the messages have a recipient, and contents for every domain.
fn check(items: &[ListedItem], messages: &Messages, kind: Kind, args: &ConsumerArgs) -> Result<(), Hinted> {
    let (option, attribute, what) = match kind {
        Kind::Post => ("--posting-rate", "post", "posts"),
        _ => ("--generic-msg-rate", "generic", "generic messages"),
    };
    let mut taking = items.iter().filter(|item| takes(item, kind) && !item.is_snapshot).peekable();
    if taking.peek().is_none() {
        let hint = format!("mark streaming items of --item-file with {attribute}=\"true\"");
        return Err(Hinted::new(format!("{option} is given, and no item that is opened takes {what}"), hint));
    }
    let without = taking.find(|item| payloads(messages, kind, item.domain).is_empty());
    let Some(ListedItem { name, domain, .. }) = without else { return Ok(()) };
    let file = match InputSource::of(args.msg_file.as_deref(), Messages::FILE) {
        InputSource::File(path) => paths::shown(&path).to_string(),
        InputSource::BuiltIn => "the built-in file".to_owned(),
    };
    let hint = format!("give {file} {what} of {domain}, or take {attribute}=\"true\" from its items");
    let what = format!("{option} is given, item {name} is of {domain}, and {file} has no {what} for that");
    Err(Hinted::new(what, hint))
}

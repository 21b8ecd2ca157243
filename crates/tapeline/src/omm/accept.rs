//! `tapeline omm accept`: accepts non-interactive providers, and shows what they publish.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::Value as Json;
use tapeline_client::connection::{JsonSettings, MOST_MALFORMED, RoleConnection, Side};
use tapeline_client::ema_config::Group;
use tapeline_client::server::{Connections, Serve};
use tapeline_console::omm::dictionaries::DictionaryArgs;
use tapeline_console::omm::transport::{ConfigArgs, ServerArgs};
use tapeline_console::omm::{say_accept_error, say_notes};
use tapeline_console::stop::Stop;
use tapeline_console::{LogArgs, log};
use tapeline_measure::{Clock, Nanos};
use tapeline_omm::domain::login::{LoginFeatures, ROLE_PROVIDER};
use tapeline_omm::role::Outbox;
use tapeline_omm::role::acceptor::{
    Acceptor, AcceptorApplication, AcceptorEvent, AcceptorSettings, PublishedItem,
};
use tapeline_omm::rwf::{Container, MessageView, StateCode};
use tapeline_omm::{Dictionary, FieldList};
use tapeline_wire::rssl::{ConnectionId, Negotiated, Sender};

use super::lines::{LineFormat, Lines};
use super::serving::{self, closed};

/// Accept non-interactive providers, and show what they publish.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline omm accept                                 on localhost:14003, the default port of EMA's NI providers\n  \
    tapeline omm accept --port 0 --quiet                a free port; only connections, disconnections and totals")]
pub(crate) struct AcceptArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// User to refuse
    #[arg(long, value_name = "NAME")]
    deny: Option<String>,
    /// Maximum number of connections; further ones are refused
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    max_connections: usize,
    /// Maximum number of items that one connection can publish
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    max_items: u32,
    #[command(flatten)]
    dictionary: DictionaryArgs,
    /// Output format [default: text on a terminal, JSON lines in a pipe]
    #[arg(long, value_enum)]
    format: Option<LineFormat>,
    #[command(flatten)]
    log: LogArgs,
    /// Print connections, disconnections and the totals of each connection, but no item messages
    #[arg(long)]
    quiet: bool,
}

/// Default hub port of EMA's NI providers.
const USUAL_PORT: u16 = 14_003;
/// Maximum wait between two checks for a stop request.
const TURN: Duration = Duration::from_millis(100);

impl AcceptArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        self.log.begin("accept")?;
        let stop = Stop::on_signals()?;
        let clock = Clock::calibrate();
        // EMA has no acceptor: use the settings of a provider that consumers connect to.
        let chosen = self.config.load(Group::IProvider)?;
        let mut hub = Hub {
            settings: AcceptorSettings { most_items: self.max_items, ..AcceptorSettings::default() },
            json: chosen.json,
            dictionary: self.dictionary.load()?,
            deny: self.deny.clone(),
            lines: Lines::new(self.format),
            is_quiet: self.quiet,
        };
        let mut reactor =
            serving::listen(&self.server, chosen.hosts, USUAL_PORT, self.max_connections, &mut hub.lines)?;
        let mut publishers = Connections::default();
        while !stop.requested() {
            hub.lines.flush()?;
            reactor.wait(TURN)?;
            let now = clock.now();
            publishers.receive(&mut hub, &mut reactor, now);
            say_accept_error(&mut reactor);
            publishers.tick(&mut hub, &mut reactor, now);
        }
        publishers.leave(&mut hub);
        hub.lines.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// State that all connections share.
struct Hub {
    settings: AcceptorSettings,
    json: JsonSettings,
    dictionary: Arc<Dictionary>,
    deny: Option<String>,
    lines: Lines,
    is_quiet: bool,
}

struct Publisher {
    acceptor: Acceptor,
    room: RoleConnection,
    user: String,
    tally: Tally,
}

/// Counts of what a provider published.
#[derive(Debug, Default)]
struct Tally {
    refreshes: u64,
    updates: u64,
    statuses: u64,
    /// Map entries.
    orders: u64,
    fields: u64,
    /// Bytes of the largest payload.
    largest: usize,
    /// Payloads with a decoding error.
    unreadable: u64,
}

impl Serve for Hub {
    type Client = Publisher;

    fn open(&mut self, agreed: &Negotiated, now: Nanos) -> Publisher {
        Publisher {
            acceptor: Acceptor::new(self.settings.clone(), now),
            room: RoleConnection::new(Side::Server, agreed, &self.dictionary, self.json),
            user: String::new(),
            tally: Tally::default(),
        }
    }

    fn closed(&mut self, _id: ConnectionId, publisher: Publisher, reason: &str) {
        let Publisher { acceptor, room, user, tally } = publisher;
        let malformed = acceptor.counters().malformed + room.unreadable() + tally.unreadable;
        let members: [(&str, Json); 11] = [
            ("user", user.into()),
            ("services", acceptor.directory().services().len().into()),
            ("items", acceptor.items().len().into()),
            ("refreshes", tally.refreshes.into()),
            ("updates", tally.updates.into()),
            ("statuses", tally.statuses.into()),
            ("orders", tally.orders.into()),
            ("fields", tally.fields.into()),
            ("malformed", malformed.into()),
            ("largest", tally.largest.into()),
            ("reason", reason.into()),
        ];
        self.lines.event("gone", &members);
    }

    fn step(
        &mut self,
        publisher: &mut Publisher,
        _id: ConnectionId,
        sender: &mut Sender<'_>,
        message: Option<&[u8]>,
        now: Nanos,
    ) -> Result<(), String> {
        let Publisher { acceptor, room, user, tally } = publisher;
        let mut taking = Taking { hub: self, user, tally, has_news: false };
        let done = match message {
            Some(received) => room
                .receive(received, sender, |message, out| acceptor.message(now, message, out, &mut taking)),
            None => acceptor.tick(now, &mut room.outbox(sender), &mut taking).map(|_| ()),
        };
        if taking.has_news {
            room.set_services(acceptor.directory());
        }
        say_notes(room);
        done.map_err(|over| over.to_string())?;
        if acceptor.counters().malformed + room.unreadable() >= MOST_MALFORMED {
            return Err(format!("{MOST_MALFORMED} of its messages could not be read"));
        }
        Ok(())
    }
}

/// A provider's connection while one of its messages is handled.
struct Taking<'a> {
    hub: &'a mut Hub,
    user: &'a mut String,
    tally: &'a mut Tally,
    /// The directory changed.
    has_news: bool,
}

impl AcceptorApplication for Taking<'_> {
    fn event(&mut self, acceptor: &mut Acceptor, out: &mut dyn Outbox, event: AcceptorEvent<'_>) {
        match event {
            AcceptorEvent::Login { request, is_reissue } => {
                *self.user = String::from_utf8_lossy(request.user).into_owned();
                let is_denied = self.hub.deny.as_ref().is_some_and(|denied| denied == self.user);
                if is_denied || request.attributes.role != Some(ROLE_PROVIDER) {
                    let text: &[u8] = match is_denied {
                        true => b"This user is not let in",
                        false => b"Providers alone are let in here: the login's role is another",
                    };
                    let _ = acceptor.login_status(out, closed(StateCode::NOT_ENTITLED, text));
                    self.hub.lines.event("denied", &[("user", self.user.as_str().into())]);
                    return;
                }
                let features = LoginFeatures {
                    application_id: request.attributes.application_id,
                    application_name: Some(b"tapeline"),
                    position: request.attributes.position,
                    single_open: Some(1),
                    support_provider_dictionary_download: Some(1),
                    ..LoginFeatures::default()
                };
                if let Err(refused) = acceptor.accept_login(out, &request, features) {
                    log::note(format_args!("an answer to {} cannot be written: {refused}", self.user));
                    // The login's attributes leave no space for the features of this side.
                    let text = b"The login is too long to be answered";
                    let _ = acceptor.login_status(out, closed(StateCode::USAGE_ERROR, text));
                    return;
                }
                if !is_reissue {
                    self.hub.lines.event("login", &[("user", self.user.as_str().into())]);
                }
            }
            AcceptorEvent::Service(service) => {
                self.has_news = true;
                let name = service.name().unwrap_or_default();
                let members = [("service", service.id.into()), ("name", name.into())];
                self.hub.lines.event("directory", &members);
            }
            AcceptorEvent::Image { item, message, .. } => {
                self.tally.refreshes += 1;
                self.take(&item, &message);
            }
            AcceptorEvent::Update { item, message, .. } => {
                self.tally.updates += 1;
                self.take(&item, &message);
            }
            AcceptorEvent::Status { item, message, .. } => {
                self.tally.statuses += 1;
                self.take(&item, &message);
            }
            AcceptorEvent::Dictionary(request) => {
                let _ = acceptor.dictionary(out, request.stream_id, &self.hub.dictionary);
            }
            AcceptorEvent::Generic { message, .. } => {
                self.hub.lines.message("", &message, &self.hub.dictionary);
            }
            // One line a connection: a peer can send any number of malformed messages.
            AcceptorEvent::Malformed(fault) if acceptor.counters().malformed == 1 => {
                log::note(format_args!("a message of {} cannot be read: {fault}", self.user));
            }
            _ => {}
        }
    }
}

impl Taking<'_> {
    fn take(&mut self, item: &PublishedItem<'_>, message: &MessageView<'_>) {
        self.tally.largest = self.tally.largest.max(message.payload().len());
        match message.open() {
            Ok(Container::FieldList(list)) => self.count(&list),
            Ok(Container::Map(map)) => {
                for entry in map.iter() {
                    let Ok(entry) = entry else {
                        self.tally.unreadable += 1;
                        break;
                    };
                    self.tally.orders += 1;
                    let sets = map.sets().unwrap_or(tapeline_omm::rwf::SetDefinitions::NONE);
                    if !entry.data.is_empty() {
                        match map.open(entry.data, &sets) {
                            Ok(Container::FieldList(list)) => self.count(&list),
                            Ok(_) => {}
                            Err(_) => self.tally.unreadable += 1,
                        }
                    }
                }
            }
            Ok(_) => {}
            Err(_) => self.tally.unreadable += 1,
        }
        if !self.hub.is_quiet {
            let name = String::from_utf8_lossy(item.name);
            self.hub.lines.message(&name, message, &self.hub.dictionary);
        }
    }

    fn count(&mut self, list: &FieldList<'_>) {
        for field in list.iter() {
            match field {
                Ok(_) => self.tally.fields += 1,
                Err(_) => self.tally.unreadable += 1,
            }
        }
    }
}

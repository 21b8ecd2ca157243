//! `tapeline omm publish`: publishes items to a hub.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tapeline_client::dialer::{ConnectionEvent, Dialer, Dialing};
use tapeline_client::ema_config::Group;
use tapeline_client::login::Login;
use tapeline_console::omm::login::LoginArgs;
use tapeline_console::omm::transport::{ClientArgs, ConfigArgs};
use tapeline_console::{Hinted, LogArgs, Stop, arguments, log};
use tapeline_measure::{Clock, Nanos};
use tapeline_omm::domain::ServiceEntry;
use tapeline_omm::domain::directory::{Info, ServiceState};
use tapeline_omm::role::consumer::{Backoff, Handle};
use tapeline_omm::role::ni_provider::{
    NiProvider, NiProviderApplication, NiProviderEvent, NiProviderSettings, Publish,
};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{DataType, Domain, Header, RefreshHeader, UpdateHeader, UpdateType, flags};
use tapeline_omm::{Dictionary, Qos, Refused, State};

use super::items::ItemArgs;
use super::lines::{LineFormat, Lines};
use super::market::Moment;
use super::shown;

/// Publish items to a hub, as a non-interactive provider.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline omm publish IBM.N AAPL.O                 to localhost:14003, until Ctrl-C\n  \
    tapeline omm publish --server hub:14003 --service NI_PUB --item-file names --update-rate 1000\n  \
    tapeline omm publish A --book B --updates 3       three updates of each item, then all are withdrawn")]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    items: ItemArgs,
    /// Item with an order book (domain MarketByOrder); the item BIG has a book of one megabyte
    #[arg(long = "book", value_name = "ITEM")]
    books: Vec<String>,
    /// Service name of the items [default: the first of the configuration, or DIRECT_FEED]
    #[arg(long)]
    service: Option<String>,
    /// Service number [default: that of the configuration, or 1]
    #[arg(long, value_name = "NUMBER")]
    service_id: Option<u16>,
    /// Updates a second in total; the items are updated in turn
    #[arg(long, value_name = "RATE", default_value = "10", value_parser = arguments::rate)]
    update_rate: u64,
    /// Updates to publish for each item; then withdraw all items and end
    #[arg(long, value_name = "COUNT")]
    updates: Option<u64>,
    /// Connection attempts before giving up [default: no limit]
    #[arg(long, value_name = "COUNT")]
    attempts: Option<u32>,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    server: ClientArgs,
    #[command(flatten)]
    login: LoginArgs,
    /// Output format [default: text on a terminal, JSON lines in a pipe]
    #[arg(long, value_enum)]
    format: Option<LineFormat>,
    #[command(flatten)]
    log: LogArgs,
}

/// Maximum wait between two checks for a stop request.
const TURN: Duration = Duration::from_millis(100);
/// Maximum number of overdue updates to catch up on after a busy phase.
const MOST_BEHIND: u64 = 10_000;
/// Time limit for the last messages.
const GOODBYE: Duration = Duration::from_secs(10);
/// Buffer size for an image; only the book of `BIG` is large.
const LONGEST: usize = 4 << 20;

impl PublishArgs {
    /// The services, and the number of the one with the items: the one from the command line, or the first of the
    /// configuration. The others are published without items.
    fn services(&self, mut chosen: Vec<(u16, String, Option<String>)>) -> (u16, Vec<ServiceEntry>) {
        if chosen.is_empty() {
            chosen.push((1, "DIRECT_FEED".to_owned(), Some("Tapeline".to_owned())));
        }
        let is_meant = |(id, name, _): &(u16, String, _)| match (self.service_id, &self.service) {
            (Some(wanted), _) => wanted == *id,
            (None, Some(wanted)) => wanted == name,
            (None, None) => true,
        };
        let meant = chosen.iter().position(is_meant).unwrap_or_else(|| {
            // The requested service is not in the configuration: it replaces all of them.
            chosen.truncate(1);
            0
        });
        let (id, name, _) = &mut chosen[meant];
        *id = self.service_id.unwrap_or(*id);
        *name = self.service.clone().unwrap_or(std::mem::take(name));
        let service_id = *id;
        let entry = |(id, name, vendor)| {
            let info = Info {
                name: Some(name),
                vendor,
                capabilities: Some(vec![Domain::MARKET_PRICE, Domain::MARKET_BY_ORDER]),
                dictionaries_used: Some(vec!["RWFFld".to_owned(), "RWFEnum".to_owned()]),
                qos: Some(vec![Qos::REALTIME_TICK]),
                ..Info::default()
            };
            ServiceEntry::new(id, info, ServiceState::UP)
        };
        (service_id, chosen.into_iter().map(entry).collect())
    }

    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        self.log.begin("publish")?;
        let stop = Stop::on_signals()?;
        let clock = Clock::calibrate();
        let mut program = Program::new(self)?;
        while !stop.requested() && !program.is_done() && !program.dialer.role().is_ended() {
            let now = clock.now();
            program.publisher.now = now;
            program.publisher.due = TURN;
            let next = program.dialer.turn(now, &mut program.publisher);
            program.publisher.failure.take().map_or(Ok(()), Err)?;
            program.publisher.lines.flush()?;
            let next = next.map_or(TURN, |next| Duration::from_nanos(next.0.saturating_sub(now.0)));
            program.dialer.wait(next.min(program.publisher.due).min(TURN))?;
        }
        program.end(&clock, stop.requested())
    }
}

#[derive(Debug)]
struct Item {
    handle: Handle,
    domain: Domain,
    name: String,
    turn: u64,
    updates: u64,
}

#[derive(Debug, Default)]
struct Tally {
    refreshes: u64,
    updates: u64,
    statuses: u64,
    logins: u64,
    malformed: u64,
}

struct Publisher {
    items: Vec<Item>,
    dictionary: Arc<Dictionary>,
    lines: Lines,
    tally: Tally,
    payload: Vec<u8>,
    now: Nanos,
    /// Images sent on this connection.
    images: usize,
    pace: Pace,
    /// After all images are sent: when the first update was due, and the number of updates since.
    begun: Option<(Nanos, u64)>,
    /// Index of the next item to update.
    next: usize,
    /// Time until the next update.
    due: Duration,
    /// The first failed send: the program ends with it.
    failure: Option<anyhow::Error>,
    is_ending: bool,
    /// The hub has answered the last login.
    is_heard: bool,
    refusal: Option<String>,
}

struct Program {
    credentials: Login,
    dialer: Dialer<NiProvider>,
    publisher: Publisher,
}

impl Program {
    fn new(args: &PublishArgs) -> anyhow::Result<Self> {
        let credentials = args.login.credentials()?;
        let chosen = args.config.load(Group::NiProvider)?;
        let usual = NiProviderSettings::default();
        let most = chosen.reconnect_max.unwrap_or(usual.reconnect.most);
        let first = chosen.reconnect_min.unwrap_or(usual.reconnect.first);
        let settings = NiProviderSettings {
            reconnect_attempts: args.attempts.or(chosen.reconnect_attempts),
            reconnect: Backoff { first, most: most.max(first) },
            login_timeout: chosen.login_timeout.unwrap_or(usual.login_timeout),
            ..usual
        };
        let (service_id, services) = args.services(chosen.services);
        let mut provider = NiProvider::new(settings, &credentials.request(), &services)?;
        let names = if args.books.is_empty() { args.items.load()? } else { args.items.load_any()? };
        let prices = names.into_iter().map(|name| (Domain::MARKET_PRICE, name));
        let books = args.books.iter().map(|name| (Domain::MARKET_BY_ORDER, name.clone()));
        let mut items = Vec::new();
        for (number, (domain, name)) in prices.chain(books).enumerate() {
            let handle = provider.add(service_id, domain, name.as_bytes(), number as u64)?;
            items.push(Item { handle, domain, name, turn: 0, updates: 0 });
        }
        let dictionary = Arc::new(Dictionary::builtin().clone());
        let endpoints = args.server.endpoints(chosen.hosts, "localhost:14003")?;
        Ok(Self {
            credentials,
            dialer: Dialer::new(provider, endpoints, dictionary.clone(), chosen.json)?,
            publisher: Publisher {
                items,
                dictionary,
                lines: Lines::new(args.format),
                tally: Tally::default(),
                payload: vec![0; LONGEST],
                now: Nanos(0),
                images: 0,
                pace: Pace { rate: args.update_rate, wanted: args.updates },
                begun: None,
                next: 0,
                due: TURN,
                failure: None,
                is_ending: false,
                is_heard: false,
                refusal: None,
            },
        })
    }

    fn is_done(&self) -> bool {
        let items = &self.publisher.items;
        self.publisher.pace.wanted.is_some_and(|wanted| items.iter().all(|item| item.updates >= wanted))
            && self.publisher.images == items.len()
    }

    /// Withdraws the items, logs out after the hub has read everything, and prints the totals.
    fn end(mut self, clock: &Clock, is_interrupted: bool) -> anyhow::Result<ExitCode> {
        let is_done = self.is_done();
        self.publisher.is_ending = true;
        let handles: Vec<Handle> = self.publisher.items.iter().map(|item| item.handle).collect();
        let mut left = handles.iter().peekable();
        let deadline = clock.now() + GOODBYE.as_nanos() as u64;
        let (mut is_asked, mut is_out) = (false, false);
        while self.dialer.is_connected() && clock.now() < deadline {
            let Self { dialer, publisher, credentials } = &mut self;
            dialer.turn(clock.now(), publisher);
            dialer.act(|provider, out| {
                while let Some(handle) = left.peek() {
                    match provider.withdraw(out, **handle, b"withdrawn")? {
                        Sent::Full => break,
                        Sent::Queued => publisher.tally.statuses += 1,
                        _ => {}
                    }
                    left.next();
                }
                if left.peek().is_none() && !is_asked {
                    // ETA drops unread input when a TLS connection closes. The answer to a login shows that the hub
                    // has read all before it.
                    provider.renew_login(out, &credentials.request())?;
                    is_asked = true;
                }
                if is_asked && !is_out && (publisher.is_heard || !provider.is_ready()) {
                    provider.log_out(out, publisher);
                    is_out = true;
                }
                anyhow::Ok(())
            })?;
            if dialer.flush() && is_out {
                dialer.close();
                break;
            }
            dialer.wait(TURN)?;
        }
        let tally = &self.publisher.tally;
        let members = [
            ("items", self.publisher.items.len().into()),
            ("refreshes", tally.refreshes.into()),
            ("updates", tally.updates.into()),
            ("statuses", tally.statuses.into()),
            ("logins", tally.logins.into()),
            ("malformed", tally.malformed.into()),
        ];
        self.publisher.lines.event("end", &members);
        self.publisher.lines.flush()?;
        if let Some(why) = self.publisher.refusal {
            let what = format!("the session with {} is over: {why}", self.dialer.server());
            return Err(Hinted::new(what, "--user names another user, --server another hub").into());
        }
        Ok(match (self.publisher.pace.wanted, is_interrupted) {
            (Some(_), true) if !is_done => ExitCode::from(130),
            (Some(_), false) if !is_done => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Pace {
    rate: u64,
    wanted: Option<u64>,
}

impl Publisher {
    /// Publishes the updates that are due, after all images are sent.
    fn publish_due(&mut self, provider: &mut NiProvider, out: &mut dyn Outbox) -> Result<(), Refused> {
        let Pace { rate, wanted } = self.pace;
        if rate == 0 || self.is_ending || !provider.is_ready() || self.images != self.items.len() {
            return Ok(());
        }
        let (started, mut updates) = self.begun.unwrap_or((self.now, 0));
        let elapsed = u128::from(self.now.0.saturating_sub(started.0));
        let due = u64::try_from(elapsed * u128::from(rate) / 1_000_000_000).unwrap_or(u64::MAX);
        updates = updates.max(due.saturating_sub(MOST_BEHIND));
        while updates < due {
            let place = self.next % self.items.len();
            let is_wanted = wanted.is_none_or(|wanted| self.items[place].updates < wanted);
            if is_wanted && self.update(provider, out, place)? == Sent::Full {
                break;
            }
            self.next = place + 1;
            updates += 1;
        }
        self.begun = Some((started, updates));
        let after = u128::from(updates + 1) * 1_000_000_000 / u128::from(rate);
        self.due = Duration::from_nanos(u64::try_from(after.saturating_sub(elapsed)).unwrap_or(u64::MAX));
        Ok(())
    }

    fn image(
        &mut self,
        provider: &mut NiProvider,
        out: &mut dyn Outbox,
        number: usize,
    ) -> Result<(), Refused> {
        let Some(item) = self.items.get(number) else { return Ok(()) };
        let moment =
            Moment { name: item.name.as_bytes(), turn: item.turn, now_ns: self.now.0, messages: None };
        let (container, len) = if item.domain == Domain::MARKET_BY_ORDER {
            (DataType::MAP, moment.book(&mut self.payload)?)
        } else {
            (DataType::FIELD_LIST, moment.prices(None, &mut self.payload)?)
        };
        let header = RefreshHeader {
            flags: flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE,
            qos: Some(Qos::REALTIME_TICK),
            ..RefreshHeader::new(item.domain, 0, State { text: b"published", ..State::OPEN_OK }, container)
        };
        let sent = provider.publish(out, item.handle, &Publish::Refresh(header), &self.payload[..len])?;
        if sent.is_queued() {
            self.tally.refreshes += 1;
            self.images += 1;
            if self.images == self.items.len() {
                self.lines.event("published", &[("items", self.images.into())]);
            }
        }
        Ok(())
    }

    fn update(
        &mut self,
        provider: &mut NiProvider,
        out: &mut dyn Outbox,
        number: usize,
    ) -> Result<Sent, Refused> {
        let item = &mut self.items[number];
        let moment =
            Moment { name: item.name.as_bytes(), turn: item.turn + 1, now_ns: self.now.0, messages: None };
        let (update_type, container, len) = if item.domain == Domain::MARKET_BY_ORDER {
            (UpdateType::UNSPECIFIED, DataType::MAP, moment.book_change(&mut self.payload)?)
        } else {
            (moment.update_type(), DataType::FIELD_LIST, moment.price_change(None, &mut self.payload)?.0)
        };
        let header = UpdateHeader::new(item.domain, 0, update_type, container);
        let sent = provider.publish(out, item.handle, &Publish::Update(header), &self.payload[..len])?;
        if sent.is_queued() {
            item.turn += 1;
            item.updates += 1;
            self.tally.updates += 1;
        }
        Ok(sent)
    }
}

impl Dialing<NiProvider> for Publisher {
    fn connection(&mut self, _provider: &mut NiProvider, event: ConnectionEvent<'_>) {
        match event {
            ConnectionEvent::Connected { server, .. } => {
                self.lines.event("connected", &[("server", server.into())]);
            }
            ConnectionEvent::Disconnected { server, reason } => {
                log::note(format_args!("no connection to {server}: {reason}"));
                self.lines.event("disconnected", &[("server", server.into()), ("reason", reason.into())]);
            }
            ConnectionEvent::Note(note) => log::note(note),
            _ => {}
        }
    }

    fn send(&mut self, provider: &mut NiProvider, out: &mut dyn Outbox) {
        if let Err(refused) = self.publish_due(provider, out) {
            self.failure.get_or_insert(refused.into());
        }
    }
}

impl NiProviderApplication for Publisher {
    fn event(&mut self, provider: &mut NiProvider, out: &mut dyn Outbox, event: NiProviderEvent<'_>) {
        match event {
            NiProviderEvent::Disconnect => self.begun = None,
            NiProviderEvent::Lost => (self.images, self.begun) = (0, None),
            NiProviderEvent::TimedOut => log::note("the hub does not answer the login"),
            NiProviderEvent::Login { .. } if self.is_ending => self.is_heard = true,
            NiProviderEvent::Login { state, .. } => {
                self.lines.event("login", &[("state", shown::state_json(&state))]);
            }
            NiProviderEvent::Ended { state } if !self.is_ending => self.refusal = Some(state.to_string()),
            NiProviderEvent::Ready => {
                self.tally.logins += 1;
                self.lines.event("ready", &[]);
            }
            NiProviderEvent::ImageWanted { closure, .. } => {
                if let Err(refused) = self.image(provider, out, closure as usize) {
                    log::note(format_args!("an image cannot be written: {refused}"));
                }
            }
            NiProviderEvent::Message { message, .. } => {
                // A post from a hub gets its acknowledgement; nothing else is done with it.
                if let Ok(Header::Post(post)) = message.header()
                    && tapeline_omm::domain::post::wants_ack(&post)
                {
                    let _ = provider.ack(out, &tapeline_omm::domain::post::ack(&post, None));
                }
                self.lines.message("", message, &self.dictionary);
            }
            NiProviderEvent::Malformed(fault) => {
                // Only the first: the total is in the `end` event.
                if self.tally.malformed == 0 {
                    log::note(format_args!("a message cannot be read: {fault}"));
                }
                self.tally.malformed += 1;
            }
            _ => {}
        }
    }
}

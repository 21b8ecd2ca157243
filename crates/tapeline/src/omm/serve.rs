//! `tapeline omm serve`: an interactive provider for any number of consumers.

mod answers;
mod board;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tapeline_client::connection::{JsonSettings, MOST_MALFORMED, RoleConnection, Side};
use tapeline_client::ema_config::{Chosen, Group};
use tapeline_client::server::{Connections, Serve};
use tapeline_console::omm::dictionaries::DictionaryArgs;
use tapeline_console::omm::transport::{ConfigArgs, ServerArgs};
use tapeline_console::omm::{say_accept_error, say_notes};
use tapeline_console::{FilePath, LogArgs, Stop, arguments, log};
use tapeline_measure::{Clock, Nanos};
use tapeline_omm::domain::directory::{Info, ServiceState};
use tapeline_omm::domain::{Directory, ServiceEntry};
use tapeline_omm::role::Sent;
use tapeline_omm::role::provider::{Provider, ProviderSettings};
use tapeline_omm::rwf::Domain;
use tapeline_omm::{Dictionary, Qos};
use tapeline_perf::omm::messages::Messages;
use tapeline_wire::rssl::{ConnectionId, Negotiated, Reactor, Sender};

use self::answers::{Answer, AnswerTally, Answers, Unanswered};
use self::board::{Board, ItemChange};
use super::lines::{LineFormat, Lines};
use super::market::{self, View};
use super::serving;

/// Serve items to consumers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline omm serve                         on localhost:14002, the default port of EMA's consumers\n  \
    tapeline omm serve --bind 0.0.0.0 --service ELEKTRON_DD --update-rate 1000\n  \
    tapeline omm serve --cert server.pem --key server.key --port 14004    over TLS")]
pub(crate) struct OmmServeArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// Service name [default: those of the configuration, or DIRECT_FEED]
    #[arg(long)]
    service: Option<String>,
    /// Service number [default: that of the configuration, or 1]
    #[arg(long, value_name = "NUMBER")]
    service_id: Option<u16>,
    /// Updates a second in total; the open items are updated in turn
    #[arg(long, value_name = "RATE", default_value = "10", value_parser = arguments::rate)]
    update_rate: u64,
    /// Read the fields of quoted items from a message file of LSEG's performance tools (MsgData.xml) instead of
    /// simulating them
    #[arg(long, value_name = "FILE")]
    message_file: Option<FilePath>,
    /// User to refuse
    #[arg(long, value_name = "NAME")]
    deny: Option<String>,
    /// Maximum number of connections; further ones are refused
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    max_connections: usize,
    /// Maximum number of open streams on one connection
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    max_streams: u32,
    #[command(flatten)]
    dictionary: DictionaryArgs,
    /// Output format [default: text on a terminal, JSON lines in a pipe]
    #[arg(long, value_enum)]
    format: Option<LineFormat>,
    #[command(flatten)]
    log: LogArgs,
}

/// Default provider port of EMA's consumers.
const USUAL_PORT: u16 = 14_002;
/// Maximum wait between two checks for a stop request.
const TURN: Duration = Duration::from_millis(100);
/// How long a consumer may leave no buffer space for a pending answer before it is disconnected.
const LONGEST_STUCK: Duration = Duration::from_secs(30);
/// Maximum pending bytes for a consumer that does not read: one echo of maximum length, or many short ones.
const MOST_OWED: usize = 17 << 20;
/// Maximum number of overdue updates to catch up on after a busy phase.
const MOST_BEHIND: u64 = 10_000;

impl OmmServeArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        self.log.begin("serve")?;
        let stop = Stop::on_signals()?;
        let clock = Clock::calibrate();
        let mut chosen = self.config.load(Group::IProvider)?;
        let hosts = std::mem::take(&mut chosen.hosts);
        let mut program = Program::new(self, chosen, clock.now())?;
        let lines = &mut program.market.lines;
        let mut reactor = serving::listen(&self.server, hosts, USUAL_PORT, self.max_connections, lines)?;
        while !stop.requested() {
            let now = clock.now();
            let due = program.publish(&mut reactor, now)?;
            program.market.lines.flush()?;
            reactor.wait(due.min(TURN))?;
            program.clients.receive(&mut program.market, &mut reactor, clock.now());
            say_accept_error(&mut reactor);
        }
        program.clients.leave(&mut program.market);
        let members = program.market.tally.members();
        program.market.lines.event("end", &members);
        program.market.lines.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    /// The services of the configuration, or the one from the command line.
    fn services(&self, chosen: Vec<(u16, String, Option<String>)>) -> Vec<(u16, String, Option<String>)> {
        if !chosen.is_empty() && self.service.is_none() && self.service_id.is_none() {
            return chosen;
        }
        let usual = (1, "DIRECT_FEED".to_owned(), Some("Tapeline".to_owned()));
        let (id, name, vendor) = chosen.into_iter().next().unwrap_or(usual);
        vec![(self.service_id.unwrap_or(id), self.service.clone().unwrap_or(name), vendor)]
    }
}

struct Client {
    provider: Provider,
    room: RoleConnection,
    user: String,
    unanswered: Unanswered,
    tally: AnswerTally,
}

impl Client {
    /// Messages from this consumer that could not be read.
    fn malformed(&self) -> u64 {
        self.provider.counters().malformed + self.room.unreadable()
    }
}

/// State that all clients share.
struct Market {
    services: Directory,
    dictionary: Arc<Dictionary>,
    deny: Option<String>,
    board: Board,
    /// The view of the last request that had one.
    last_view: View,
    lines: Lines,
    settings: ProviderSettings,
    json: JsonSettings,
    /// Some answers wait for their consumer's next turn.
    is_busy: bool,
    /// Totals of closed connections.
    tally: AnswerTally,
}

impl Serve for Market {
    type Client = Client;

    fn open(&mut self, agreed: &Negotiated, now: Nanos) -> Client {
        let mut room = RoleConnection::new(Side::Server, agreed, &self.dictionary, self.json);
        room.set_services(&self.services);
        Client {
            provider: Provider::new(self.settings.clone(), now),
            room,
            user: String::new(),
            unanswered: Unanswered::default(),
            tally: AnswerTally::default(),
        }
    }

    fn step(
        &mut self,
        client: &mut Client,
        id: ConnectionId,
        sender: &mut Sender<'_>,
        message: Option<&[u8]>,
        now: Nanos,
    ) -> Result<(), String> {
        let Client { provider, room, user, unanswered, tally } = client;
        if message.is_none() {
            unanswered.begin_turn();
        }
        let mut answers = Answers { id, now, market: self, user, unanswered, tally };
        let done = match message {
            Some(received) => room.receive(received, sender, |message, out| {
                let done = provider.message(now, message, out, &mut answers);
                answers.go_on(provider, out);
                done
            }),
            None => {
                let mut out = room.outbox(sender);
                let done = provider.tick(now, &mut out, &mut answers).map(|_| ());
                answers.go_on(provider, &mut out);
                done
            }
        };
        say_notes(room);
        done.map_err(|over| over.to_string())?;
        if client.malformed() >= MOST_MALFORMED {
            return Err(format!("{MOST_MALFORMED} of its messages could not be read"));
        }
        let is_stuck = |since: Nanos| now.0.saturating_sub(since.0) >= LONGEST_STUCK.as_nanos() as u64;
        if client.unanswered.stuck.is_some_and(is_stuck) {
            return Err(format!("it took nothing for {} s", LONGEST_STUCK.as_secs()));
        }
        Ok(())
    }

    fn closed(&mut self, id: ConnectionId, client: Client, reason: &str) {
        self.board.leave(id);
        let malformed = client.malformed();
        let mut members = vec![("user", client.user.into())];
        members.extend(client.tally.members());
        members.push(("malformed", malformed.into()));
        members.push(("reason", reason.into()));
        self.lines.event("gone", &members);
        self.tally.add(&client.tally);
    }
}

/// The program without its sockets.
struct Program {
    market: Market,
    clients: Connections<Market>,
    /// Updates a second.
    rate: u64,
    started: Nanos,
    /// Updates since `started`, sent or without a subscriber.
    updates: u64,
    /// Buffer for a message that goes to several streams.
    message: Vec<u8>,
}

impl Program {
    fn new(args: &OmmServeArgs, chosen: Chosen, now: Nanos) -> anyhow::Result<Self> {
        let dictionary = args.dictionary.load()?;
        note_lacking(&dictionary, args.message_file.is_some());
        let messages =
            args.message_file.as_deref().map(|path| Messages::load(Some(path), &dictionary)).transpose()?;
        let mut services = Directory::new();
        for (id, name, vendor) in args.services(chosen.services) {
            let dictionaries = || vec!["RWFFld".to_owned(), "RWFEnum".to_owned()];
            let info = Info {
                name: Some(name),
                vendor,
                is_source: Some(1),
                capabilities: Some(vec![Domain::DICTIONARY, Domain::MARKET_PRICE, Domain::MARKET_BY_ORDER]),
                dictionaries_provided: Some(dictionaries()),
                dictionaries_used: Some(dictionaries()),
                qos: Some(vec![Qos::REALTIME_TICK]),
                ..Info::default()
            };
            services.apply(&ServiceEntry::new(id, info, ServiceState::UP));
        }
        Ok(Self {
            market: Market {
                services,
                dictionary,
                deny: args.deny.clone(),
                board: Board::new(messages.map(|messages| messages.market_price)),
                last_view: None,
                lines: Lines::new(args.format),
                settings: ProviderSettings {
                    most_streams: args.max_streams,
                    owed_bytes: MOST_OWED,
                    ..ProviderSettings::default()
                },
                json: chosen.json,
                is_busy: false,
                tally: AnswerTally::default(),
            },
            clients: Connections::default(),
            rate: args.update_rate,
            started: now,
            updates: 0,
            message: Vec::new(),
        })
    }

    /// Does what is due: pings of the roles, posts to pass on, updates. Returns the time until the next update.
    fn publish(&mut self, reactor: &mut Reactor, now: Nanos) -> anyhow::Result<Duration> {
        self.market.is_busy = false;
        self.clients.tick(&mut self.market, reactor, now);
        while let Some(change) = self.market.board.posted() {
            self.send(reactor, now, &change)?;
        }
        if self.rate == 0 || self.market.board.is_empty() {
            (self.started, self.updates) = (now, 0);
            return Ok(if self.market.is_busy { Duration::ZERO } else { TURN });
        }
        let elapsed = u128::from(now.0.saturating_sub(self.started.0));
        let due = u64::try_from(elapsed * u128::from(self.rate) / 1_000_000_000).unwrap_or(u64::MAX);
        self.updates = self.updates.max(due.saturating_sub(MOST_BEHIND));
        while self.updates < due {
            self.updates += 1;
            if let Some(change) = self.market.board.next() {
                self.send(reactor, now, &change)?;
            }
        }
        if self.market.is_busy {
            return Ok(Duration::ZERO);
        }
        let next = u128::from(self.updates + 1) * 1_000_000_000 / u128::from(self.rate);
        Ok(Duration::from_nanos(u64::try_from(next.saturating_sub(elapsed)).unwrap_or(u64::MAX)))
    }

    /// Sends an item's change to every stream that has it open. A stream without buffer space gets a new image later.
    fn send(&mut self, reactor: &mut Reactor, now: Nanos, change: &ItemChange) -> anyhow::Result<()> {
        if self.message.len() < change.longest() {
            self.message.resize(change.longest(), 0);
        }
        let mut encoded: Option<(&View, Option<usize>)> = None;
        let (streams, messages) = self.market.board.streams(change.item());
        for open in streams {
            let Some(client) = self.clients.open.get_mut(&open.connection) else { continue };
            // The pending image includes this change.
            if open.wants_image {
                continue;
            }
            if change.is_last() {
                client.unanswered.push(&client.provider, open.stream, Answer::Image);
                continue;
            }
            let Some(mut sender) = reactor.sender(open.connection) else { continue };
            let mut out = client.room.outbox(&mut sender);
            // Most streams have the same view, or none.
            let len = match encoded {
                Some((view, len)) if *view == open.view || change.is_posted() => len,
                _ => change.encode(open.view.as_deref(), now, messages, &mut self.message)?,
            };
            encoded = Some((&open.view, len));
            let Some(message) = len.and_then(|len| self.message.get(..len)) else { continue };
            match client.provider.update(&mut out, open.stream, message) {
                Sent::Queued => client.tally.updates += 1,
                Sent::Full => {
                    open.wants_image = true;
                    client.unanswered.push(&client.provider, open.stream, Answer::Image);
                }
                _ => {}
            }
        }
        if change.is_last() {
            self.market.board.forget(change.item());
        }
        Ok(())
    }
}

/// Notes which served fields are missing from the consumers' dictionary. With a message file, only the fields of order
/// books are checked.
fn note_lacking(dictionary: &Dictionary, has_messages: bool) {
    let prices = if has_messages { &[] } else { market::PRICE_FIELDS };
    let lacks: Vec<String> = (prices.iter().chain(market::BOOK_FIELDS))
        .filter_map(|fid| Dictionary::builtin().field(*fid))
        .filter(|ours| dictionary.data_type(ours.fid) != Some(ours.data_type))
        .map(|ours| match dictionary.field(ours.fid) {
            None => format!("{} ({})", ours.name, ours.fid),
            Some(theirs) => {
                format!("{} ({}, there {} as {})", ours.name, ours.fid, theirs.name, theirs.data_type)
            }
        })
        .collect();
    if !lacks.is_empty() {
        let what = format!(
            "the dictionary lacks {} of the fields that are served: {}",
            lacks.len(),
            lacks.join(", ")
        );
        log::warning_with(
            what,
            "consumers cannot read these; without --dictionary they are given one that has them all",
        );
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;

    use clap::Parser;
    use tapeline_omm::Refused;
    use tapeline_omm::domain::LoginRequest;
    use tapeline_omm::rwf::{Key, RequestHeader, flags};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: OmmServeArgs,
    }

    /// A provider, and a consumer that requests and never reads.
    struct Desk {
        program: Program,
        reactor: Reactor,
        peer: TcpStream,
        now: Nanos,
        said: u64,
    }

    impl Desk {
        fn open(buffers: &str) -> Self {
            let options =
                "provider --port 0 --update-rate 0 --sys-send-buf-size 4096 --guaranteed-output-buffers";
            let Line { args } = Line::parse_from(options.split(' ').chain([buffers]));
            let now = Nanos(1_000_000_000);
            let program = Program::new(&args, Chosen::default(), now).unwrap();
            let (address, settings) = args.server.listen(Vec::new(), 0).unwrap();
            let mut reactor = Reactor::new(1).unwrap();
            let mut peer = TcpStream::connect(reactor.listen(address, &settings).unwrap()).unwrap();
            // A connect request of version 14.
            peer.write_all(&[0, 19, 0, 0, 0, 0, 0x17, 0, 17, 0, 30, 0, 0, 14, 1, 0, 0, 1, 0]).unwrap();
            let mut desk = Self { program, reactor, peer, now, said: 0 };
            desk.say(|room| LoginRequest::new(b"user").encode(room));
            desk
        }

        fn say(&mut self, write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>) {
            let mut frame = vec![0; 4096];
            let len = 3 + write(&mut frame[3..]).unwrap();
            frame[..3].copy_from_slice(&[(len >> 8) as u8, len as u8, 2]);
            self.peer.write_all(&frame[..len]).unwrap();
            self.said += 1;
        }

        fn ask(&mut self, id: i32) {
            let header = RequestHeader::new(Domain::MARKET_BY_ORDER, id, Key::item(1, b"BIG"));
            let header = RequestHeader { flags: flags::request::STREAMING, ..header };
            self.say(|room| header.encode(room));
        }

        fn client(&self) -> &Client {
            self.program.clients.open.values().next().unwrap()
        }

        /// Runs until the provider has handled every message from the peer.
        fn settle(&mut self) {
            let taken = |desk: &Self| {
                let clients = desk.program.clients.open.values();
                clients.map(|client| client.provider.counters().messages).sum::<u64>()
            };
            while taken(self) < self.said {
                self.reactor.wait(TURN).unwrap();
                self.program.clients.receive(&mut self.program.market, &mut self.reactor, self.now);
            }
        }
    }

    /// Six images are requested; one or two fit.
    fn stuck() -> Desk {
        // A small buffer, so that one long image fills it.
        let mut desk = Desk::open("2");
        (5..11).for_each(|id| desk.ask(id));
        desk.settle();
        desk.program.clients.tick(&mut desk.program.market, &mut desk.reactor, desk.now);
        assert!(desk.client().unanswered.stuck.is_some());
        desk
    }

    #[test]
    fn a_consumer_that_does_not_read_is_owed_one_answer_for_each_stream() {
        let mut desk = stuck();
        let owed = desk.client().unanswered.len();
        assert!((3..=5).contains(&owed), "{owed}");
        for _ in 0..3000 {
            desk.ask(10);
        }
        desk.settle();
        assert_eq!(desk.client().unanswered.len(), owed, "images that are asked for again");
        for _ in 0..3000 {
            let change = desk.program.market.board.next().unwrap();
            desk.program.send(&mut desk.reactor, desk.now, &change).unwrap();
        }
        // Streams that already got their image miss an update, so each needs a new image.
        assert!(desk.client().unanswered.len() <= 6, "updates without room");
    }

    #[test]
    fn a_consumer_that_takes_all_has_its_turn_and_no_more() {
        let mut desk = Desk::open("4000");
        (5..11).for_each(|id| desk.ask(id));
        desk.settle();
        // A turn ends after two images at most, however much buffer space there is.
        let mut owed = desk.client().unanswered.len();
        assert!(owed >= 4, "{owed}");
        while owed > 0 {
            let due = desk.program.publish(&mut desk.reactor, desk.now).unwrap();
            let left = desk.client().unanswered.len();
            assert!((1..=2).contains(&(owed - left)), "{owed} {left}");
            assert_eq!(due.is_zero(), left > 0, "{left}");
            owed = left;
        }
    }

    #[test]
    fn a_consumer_that_takes_nothing_is_cut_in_time() {
        let mut desk = stuck();
        let mut tick = |after: Duration| {
            let now = desk.now + after.as_nanos() as u64;
            desk.program.clients.tick(&mut desk.program.market, &mut desk.reactor, now);
            desk.program.clients.open.len()
        };
        assert_eq!(tick(LONGEST_STUCK - Duration::from_nanos(1)), 1);
        assert_eq!(tick(LONGEST_STUCK), 0);
        assert!(desk.reactor.is_empty() && desk.program.market.board.is_empty());
    }
}

//! `tapeline tick serve`: the loop between sockets, tickerplant and log.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tapeline_hub::access::{CheckNumber, Checks, Proof, Secret};
use tapeline_hub::{Check, Verdict};
use tapeline_kdb::{Capability, Frames};
use tapeline_measure::{Clock, Nanos};
use tapeline_tickerplant::{Counters, Outlets, Rights, SessionId, Settings, Tickerplant};
use tapeline_wire::streams::{self, Ready, StreamId, Streams};

use super::bench::pin;
use super::config::{self, Config};
use super::log::DayLog;
use super::zone::Zone;
use crate::failure::{self, Hinted};
use crate::output::{self, Format};
use crate::plant::access::worker::{Done, Worker};
use crate::stop::Stop;

/// Serve publishers and subscribers of kdb+ from a TOML file.
#[derive(Debug, Args)]
#[command(
    after_help = "What a tickerplant of kdb+ does: `.u.sub`, `.u.upd`, `.u.end`, a log for each day that `-11!` replays. Publishers, RDBs and \
    Python clients connect to this port in place of `tick.q`'s. Nothing that they send is evaluated.\n\n\
    Examples:\n  \
        tapeline tick serve --config tick.toml\n  \
        q tick/r.q localhost:5010"
)]
pub(crate) struct Serve {
    /// Tables, ports, log and users
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The core to run on
    #[arg(long, value_name = "CORE")]
    cpu: Option<usize>,
    /// How to print where it listens, and at the end what was done
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The longest sleep: a signal to end is heeded so soon, and midnight.
const NAP: Duration = Duration::from_millis(100);
/// The longest sleep while a password is being looked at.
const SHORT_NAP: Duration = Duration::from_millis(1);
/// How often the clock is compared with the kernel's, and who says nothing is looked at.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;
/// Who has not said who he is after so long is closed.
const HELLO_LIMIT_NS: i64 = 10_000_000_000;
/// Lines about clients in a second; of more there is only a count.
const MOST_SAID: u64 = 10;
/// For how long what waits for subscribers is sent when it has ended.
const LAST_WORDS_NS: i64 = 1_000_000_000;

/// What is said at the beginning, for programs.
#[derive(Serialize)]
struct Listening<'a> {
    address: Option<SocketAddr>,
    unix: Option<&'a PathBuf>,
    log: Option<String>,
    messages: u64,
}

/// What was done.
#[derive(Debug, Default, Serialize)]
struct Report {
    connections: u64,
    turned_away: u64,
    cut: u64,
    updates: u64,
    rows: u64,
    sent: u64,
    answered: u64,
    refused: u64,
}

/// One client.
struct Client {
    frames: Frames,
    stage: Stage,
    since: Nanos,
}

/// How far a client has come.
enum Stage {
    /// He has not said who he is.
    Hello,
    /// His password is being looked at.
    Checking { number: CheckNumber, user: String, is_user: bool, capability: Capability },
    /// He is in.
    In,
}

impl Client {
    /// Whether it has had time to say who it is, and has not. Whoever waits for his password to be looked at has said it: how long that
    /// takes is not his fault.
    fn is_silent(&self, now: Nanos) -> bool {
        matches!(self.stage, Stage::Hello) && now.since(self.since) >= HELLO_LIMIT_NS
    }
}

/// All of it.
struct Server {
    config: Config,
    streams: Streams,
    clients: Vec<Option<Client>>,
    plant: Tickerplant,
    log: Option<DayLog>,
    clock: Clock,
    zone: Zone,
    passwords: Option<Worker>,
    /// Passwords to be looked at, one for each connection at most: addresses take turns, so that who sends many wrong ones keeps the
    /// others waiting for one alone.
    checks: Checks,
    /// The number of the last one.
    last_check: u64,
    /// Clients whose password was not looked at yet.
    waiting: usize,
    /// Clients of whom something was to be said in this second.
    said: u64,
    report: Report,
}

/// The ways out to the clients.
struct Out<'a>(&'a mut Streams);

impl Outlets for Out<'_> {
    #[inline]
    fn send(&mut self, to: SessionId, message: &[u8]) {
        self.0.send(StreamId(to.0), message);
    }
}

impl Serve {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let config = config::read(&self.config)?;
        // The thread that checks passwords is there by then, and goes where it likes.
        let (mut server, address) = Server::open(config)?;
        pin(self.cpu)?;
        server.tell(self.format, address)?;
        server.run(&stop)?;
        let report = server.report();
        match self.format {
            Format::Json => output::print_json_line(&report)?,
            Format::Table => output::print(&format!(
                "{} updates of {} rows, {} messages to subscribers; {} calls answered, {} refused; {} connections, {} turned away, {} cut",
                report.updates,
                report.rows,
                report.sent,
                report.answered,
                report.refused,
                report.connections,
                report.turned_away,
                report.cut
            ))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Server {
    /// Opens the ports and the log.
    fn open(config: Config) -> anyhow::Result<(Self, Option<SocketAddr>)> {
        let clock = Clock::calibrate();
        let now = clock.now();
        let zone = Zone::named(&config.timezone, now).ok_or_else(|| {
            let what = format!("there is no time zone \"{}\"", config.timezone);
            Hinted::new(what, "timezone takes names such as \"America/New_York\"; \"UTC\" is usual")
        })?;
        let settings =
            streams::Settings { max_connections: config.max_connections, queue_bytes: config.queue_bytes };
        let streams = Streams::new(settings)?;
        let settings =
            Settings { is_timed: config.publish_every.is_some(), ..Settings::new(config.tables.clone()) };
        let passwords = config.access.is_some().then(Worker::start).transpose()?;
        let mut server = Self {
            plant: Tickerplant::new(settings, zone.local(now).date()),
            config,
            streams,
            clients: Vec::new(),
            log: None,
            clock,
            zone,
            passwords,
            checks: Checks::default(),
            last_check: 0,
            waiting: 0,
            said: 0,
            report: Report::default(),
        };
        // The log's lock first: who has it may take the socket's name from whoever left it.
        server.begin_log()?;
        let refused =
            |error| failure::of_port("the tickerplant cannot listen".to_owned(), "the configuration", error);
        let Self { config, streams, .. } = &mut server;
        let address = config.address.map(|address| streams.listen(address)).transpose().map_err(refused)?;
        if let Some(path) = &config.unix {
            // Without a log there is no lock: its name is not to be taken from one who is there.
            if tapeline_wire::local::connect(path).is_ok() {
                let what = format!("somebody listens at {} already", path.display());
                return Err(Hinted::new(what, "unix gives this tickerplant a name of its own").into());
            }
            streams.listen_local(path)?;
        }
        Ok((server, address))
    }

    fn tell(&self, format: Format, address: Option<SocketAddr>) -> anyhow::Result<()> {
        let log = self.log.as_ref().map(|log| log.path().display().to_string());
        let unix = self.config.unix.as_ref();
        if format == Format::Json {
            return output::print_json_line(&Listening {
                address,
                unix,
                log,
                messages: self.plant.log_messages(),
            });
        }
        let places: Vec<_> = address
            .map(|address| address.to_string())
            .into_iter()
            .chain(unix.map(|path| path.display().to_string()))
            .collect();
        let log = log.map_or_else(|| "no log is kept".to_owned(), |log| format!("the log is {log}"));
        anstream::eprintln!("kdb+ clients connect to {}; {log}; Ctrl-C ends it", places.join(" and "));
        if self.config.access.is_none() && address.is_some_and(|address| !address.ip().is_loopback()) {
            anstream::eprintln!("warning: everybody who reaches this port may publish: [access] names users");
        }
        Ok(())
    }

    /// The log of the tickerplant's day.
    fn begin_log(&mut self) -> anyhow::Result<()> {
        if let Some(config) = &self.config.log {
            let (log, writer) = DayLog::open(config, self.plant.date())?;
            self.plant.log_to(&log.path().display().to_string(), writer);
            self.log = Some(log);
        }
        Ok(())
    }

    fn run(&mut self, stop: &Stop) -> anyhow::Result<()> {
        let mut housekept = self.clock.now();
        let mut published = housekept;
        while !stop.requested() {
            self.streams.wait(Some(self.nap(published)))?;
            let now = self.clock.now();
            if self.plant.is_day_over(self.zone.local(now)) {
                self.end_day(now)?;
            }
            while let Some(ready) = self.streams.ready() {
                match ready {
                    Ready::Connected(id) => self.let_in(id, now),
                    Ready::Readable(id) => self.read(id, now),
                    Ready::Over(id) => self.over(id),
                }
            }
            if let Some(every) = self.config.publish_every
                && now.since(published) >= every.as_nanos() as i64
            {
                published = now;
                self.plant.publish_all(&mut Out(&mut self.streams));
            }
            // Nothing has left for a socket since the last turn that is not in the log now.
            self.write_log()?;
            self.streams.flush();
            self.look_at_passwords()?;
            if now.since(housekept) >= HOUSEKEEPING_NS {
                housekept = now;
                self.keep_house(now);
            }
        }
        self.plant.publish_all(&mut Out(&mut self.streams));
        self.write_log()?;
        let ended = self.clock.now();
        let all = |server: &Self| {
            (0..server.clients.len() as u32).all(|id| server.streams.is_flushed(StreamId(id)))
        };
        while !all(self) && self.clock.now().since(ended) < LAST_WORDS_NS {
            self.streams.wait(Some(SHORT_NAP))?;
            // Those who are over meanwhile need no last words.
            while self.streams.ready().is_some() {}
        }
        Ok(())
    }

    /// How long to sleep if nothing happens.
    fn nap(&self, published: Nanos) -> Duration {
        if self.config.spins {
            return Duration::ZERO;
        }
        let is_checking = self.waiting > 0;
        let longest = if is_checking { SHORT_NAP } else { NAP };
        match self.config.publish_every {
            Some(every) if self.plant.has_rows() => {
                let since = u64::try_from(self.clock.now().since(published)).unwrap_or(0);
                every.saturating_sub(Duration::from_nanos(since)).min(longest)
            }
            _ => longest,
        }
    }

    fn write_log(&mut self) -> anyhow::Result<()> {
        if let Some(log) = &mut self.log
            && !self.plant.unlogged().is_empty()
        {
            log.append(self.plant.unlogged())?;
            self.plant.has_logged();
        }
        Ok(())
    }

    fn end_day(&mut self, now: Nanos) -> anyhow::Result<()> {
        self.write_log()?;
        self.plant.end_day(self.zone.local(now), &mut Out(&mut self.streams));
        self.begin_log()
    }

    fn let_in(&mut self, id: StreamId, now: Nanos) {
        let at = id.0 as usize;
        if self.clients.len() <= at {
            self.clients.resize_with(at + 1, || None);
        }
        self.report.connections += 1;
        let frames = Frames::new(self.config.most_message);
        self.clients[at] = Some(Client { frames, stage: Stage::Hello, since: now });
    }

    /// Takes what somebody has sent.
    fn read(&mut self, id: StreamId, now: Nanos) {
        let Some(Some(client)) = self.clients.get_mut(id.0 as usize) else { return };
        if matches!(client.stage, Stage::Checking { .. }) {
            // Until that is done it stays in the socket.
            return;
        }
        let count = self.streams.receive(id, client.frames.room());
        client.frames.received(count);
        if matches!(client.stage, Stage::Hello) && !self.greet(id) {
            return;
        }
        let Some(Some(Client { frames, .. })) = self.clients.get_mut(id.0 as usize) else { return };
        let local = self.zone.local(now);
        loop {
            match frames.next() {
                Ok(Some(message)) => {
                    self.plant.receive(SessionId(id.0), &message, local, &mut Out(&mut self.streams));
                }
                Ok(None) => return,
                Err(fault) => return self.turn_away(id, &format!("it has sent what is no message: {fault}")),
            }
        }
    }

    /// Somebody says who he is: whether he is in.
    fn greet(&mut self, id: StreamId) -> bool {
        let Some(Some(client)) = self.clients.get_mut(id.0 as usize) else { return false };
        let hello = match client.frames.hello() {
            Ok(Some(hello)) => hello,
            Ok(None) => return false,
            Err(fault) => {
                self.turn_away(id, &fault.to_string());
                return false;
            }
        };
        let capability = hello.capability;
        let Some(access) = &self.config.access else {
            self.welcome(id, capability, Rights::all(self.config.tables.len()));
            return true;
        };
        let user = String::from_utf8_lossy(hello.user).into_owned();
        // Who is no user with a password is held against somebody else's, so that it takes as long.
        let (hash, is_user) = access.users.password_hash(&user);
        let proof = Proof::Password { password: Secret::new(hello.password), hash };
        self.last_check += 1;
        let number = CheckNumber(self.last_check);
        let address = self.streams.peer_address(id).map(|address| address.ip());
        self.checks.push(address, Check { number, proof });
        self.waiting += 1;
        client.stage = Stage::Checking { number, user, is_user, capability };
        false
    }

    /// Answers a greeting: the one byte that both ends can do.
    fn welcome(&mut self, id: StreamId, capability: Capability, rights: Rights) {
        let Some(Some(client)) = self.clients.get_mut(id.0 as usize) else { return };
        client.stage = Stage::In;
        let common = capability.common(Capability::OURS);
        self.streams.send(id, &[common.0]);
        let is_far = self.streams.peer_address(id).is_some_and(|address| !address.ip().is_loopback());
        self.plant.open(SessionId(id.0), rights, is_far && common.unpacks());
    }

    /// Gives the thread that checks passwords what is next, and takes what it found.
    fn look_at_passwords(&mut self) -> anyhow::Result<()> {
        let Some(worker) = &mut self.passwords else { return Ok(()) };
        let done = worker.done()?;
        if !worker.is_busy()
            && let Some(check) = self.checks.next()
        {
            worker.check(check);
        }
        if let Some(Done::Checked(number, verdict)) = done {
            self.waiting = self.waiting.saturating_sub(1);
            self.checked(number, verdict);
        }
        Ok(())
    }

    /// A password was looked at.
    fn checked(&mut self, number: CheckNumber, verdict: Verdict) {
        let is_whose =
            |client: &Client| matches!(&client.stage, Stage::Checking { number: its, .. } if *its == number);
        // Whoever it was may have gone.
        let Some(at) = self.clients.iter().position(|client| client.as_ref().is_some_and(is_whose)) else {
            return;
        };
        let id = StreamId(at as u32);
        let Some(Some(Client { stage: Stage::Checking { user, is_user, capability, .. }, .. })) =
            self.clients.get(at)
        else {
            return;
        };
        let capability = *capability;
        let is_right = *is_user && verdict == Verdict::Right(0);
        let tables = self.config.tables.len();
        let rights =
            self.config.access.as_ref().filter(|_| is_right).and_then(|access| access.rights(user, tables));
        match rights {
            Some(rights) => {
                self.welcome(id, capability, rights);
                // What he has sent meanwhile was not read.
                self.streams.look_again(id);
            }
            None => {
                let why =
                    format!("\"{}\" is no user with this password, or may nothing", user.escape_debug());
                self.turn_away(id, &why);
            }
        }
    }

    /// Somebody is let go for what he did.
    fn turn_away(&mut self, id: StreamId, why: &str) {
        self.report.turned_away += 1;
        self.say_of(id, "was turned away", why);
        // What still waits for it is lost: rows among it may not be in the log yet.
        self.forget(id);
    }

    /// A connection is over.
    fn over(&mut self, id: StreamId) {
        let why = match self.streams.why(id) {
            Some(why @ streams::Over::TooSlow { .. }) => {
                self.report.cut += 1;
                Some(why.to_string())
            }
            Some(why @ streams::Over::Broken(_)) => Some(why.to_string()),
            _ => None,
        };
        if let Some(why) = why {
            self.say_of(id, "was cut", &why);
        }
        self.forget(id);
    }

    /// Says what became of somebody: of the first few in a second. Standard error is slow, and whoever scans ports is quick.
    fn say_of(&mut self, id: StreamId, what: &str, why: &str) {
        self.said += 1;
        if self.said > MOST_SAID {
            return;
        }
        match self.streams.peer_address(id) {
            Some(address) => anstream::eprintln!("note: client {} ({address}) {what}: {why}", id.0),
            None => anstream::eprintln!("note: client {} {what}: {why}", id.0),
        }
    }

    fn forget(&mut self, id: StreamId) {
        self.plant.close(SessionId(id.0));
        self.streams.close(id);
        if let Some(Some(Client { stage: Stage::Checking { number, .. }, .. })) =
            self.clients.get(id.0 as usize)
        {
            // The one that is being looked at comes back all the same.
            self.waiting -= usize::from(self.checks.forget(*number));
        }
        if let Some(client) = self.clients.get_mut(id.0 as usize) {
            *client = None;
        }
    }

    /// What is done once a second.
    fn keep_house(&mut self, now: Nanos) {
        self.clock.recalibrate();
        self.zone.look(now);
        let said = std::mem::take(&mut self.said);
        if said > MOST_SAID {
            anstream::eprintln!("note: {} more clients were turned away or cut", said - MOST_SAID);
        }
        if let Some(cause) = self.streams.accept_error() {
            anstream::eprintln!("warning: nobody can be let in: {cause}");
        }
        for at in 0..self.clients.len() {
            if self.clients[at].as_ref().is_some_and(|client| client.is_silent(now)) {
                self.turn_away(StreamId(at as u32), "it has not said who it is");
            }
        }
    }

    fn report(&self) -> Report {
        let Report { connections, turned_away, cut, .. } = self.report;
        let Counters { updates, rows, sent, answered, refused } = self.plant.counters();
        let turned_away = turned_away + self.streams.refused();
        Report { connections, turned_away, cut, updates, rows, sent, answered, refused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_says_nothing_is_silent() {
        let client = |stage| Client { frames: Frames::new(1_024), stage, since: Nanos(5) };
        let checking = Stage::Checking {
            number: CheckNumber(1),
            user: "me".to_owned(),
            is_user: true,
            capability: Capability::OURS,
        };
        let late = Nanos(5) + HELLO_LIMIT_NS as u64;
        assert!(client(Stage::Hello).is_silent(late));
        assert!(!client(Stage::Hello).is_silent(Nanos(late.0 - 1)));
        // However long the thread that checks takes.
        assert!(!client(checking).is_silent(late));
        assert!(!client(Stage::In).is_silent(late));
    }
}

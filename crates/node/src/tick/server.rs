//! A tickerplant's sockets, sessions, log and days: the loop that serves kdb+ clients, whatever the source of
//! the rows.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_hub::access::{BackOff, CheckNumber, Checks};
use tapeline_kdb::{Capability, Frames, Message, MessageKind, Order, Update, View};
use tapeline_measure::{Clock, Nanos};
use tapeline_tickerplant::{
    Counters, KeptRows, Local, Outlets, Passing, SessionId, Settings, Tickerplant, is_update,
};
use tapeline_wire::rssl::{Readiness, Waker};
use tapeline_wire::streams::{self, Ready, StreamId, Streams};

use super::log::DayLog;
use super::turns::{Held, Spent};
use super::zone::Zone;
use crate::Error;
use crate::access::worker::Worker;
use crate::events::{Events, Kind, Severity};
use crate::kdb::publishing::Giving;
use crate::tick::config::TickerplantConfig;

mod logins;

/// The longest sleep. A stop signal and midnight are noticed within this time.
const NAP: Duration = Duration::from_millis(100);
/// The longest sleep while a password check is pending.
const SHORT_NAP: Duration = Duration::from_millis(1);
/// How often the clock is compared with the kernel's and silent clients are looked for.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;
/// A client that has not logged in within this time is disconnected.
const HELLO_LIMIT_NS: i64 = 10_000_000_000;
/// How long output queued for subscribers is still sent after the end.
const LAST_WORDS_NS: i64 = 1_000_000_000;

/// Where the tickerplant listens and what it logs, for programs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listening {
    /// TCP address at which clients connect; `None` without a TCP port.
    pub address: Option<SocketAddr>,
    /// Name of the Unix-domain socket, `@` in front in the abstract namespace; `None` without one.
    pub unix: Option<PathBuf>,
    /// Path of the day's log; `None` without a log.
    pub log: Option<String>,
    /// Messages in the log.
    pub messages: u64,
}

/// Totals of a tickerplant.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Connections accepted, without those closed at once because there were too many.
    pub connections: u64,
    /// Clients disconnected for what they sent or did not send, and connections closed at once because there were too many.
    pub turned_away: u64,
    /// Clients disconnected because they were too slow: too many bytes were queued for them.
    pub cut: u64,
    /// Updates of tables accepted, those made of a plant's ticks included.
    pub updates: u64,
    /// Rows of those updates.
    pub rows: u64,
    /// Messages sent to subscribers, counted once per subscriber.
    pub sent: u64,
    /// Calls and queries of clients that were carried out.
    pub answered: u64,
    /// Calls and queries of clients that were refused.
    pub refused: u64,
}

impl Listening {
    /// Returns the addresses as text.
    pub fn places(&self) -> String {
        let tcp = self.address.map(|address| address.to_string());
        let unix = self.unix.as_ref().map(|unix| unix.display().to_string());
        tcp.into_iter().chain(unix).collect::<Vec<_>>().join(" and ")
    }
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kdb+ clients connect to {}", self.places())?;
        match &self.log {
            Some(log) => write!(f, "; the log is {log}"),
            None => f.write_str("; no log is kept"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connections, turned_away, cut, updates, rows, sent, answered, refused } = self;
        write!(
            f,
            "{updates} updates of {rows} rows, {sent} messages to subscribers; {answered} calls answered, {refused} refused; \
             {connections} connections, {turned_away} turned away, {cut} cut"
        )
    }
}

struct Client {
    frames: Frames,
    stage: Stage,
    since: Nanos,
    /// The number of the client's last update that was passed on.
    passed: u64,
    /// What waits until that update is published. Until then, nothing more is read from the client.
    asks: Option<Asks>,
    /// Messages of this client wait here for a later turn, before more is read from it.
    is_behind: bool,
    /// Bytes of memory that the client's messages take, as last counted.
    held: usize,
}

/// What waits for an update of a client to be published.
enum Asks {
    /// A message that is no update, of this kind and byte order. It is handled after the client's updates, so
    /// that a query finds what the client has published.
    Question(MessageKind, Order, Box<[u8]>),
    /// The answer to the update itself: an acknowledged update is in the log.
    Answer(Box<[u8]>),
}

/// How far a client's login has come.
enum Stage {
    /// The client has not logged in.
    Hello,
    /// The client's password is being checked.
    Checking { number: CheckNumber, user: String, is_user: bool, capability: Capability },
    /// The client is logged in.
    In,
}

impl Client {
    fn new(most_message: usize, stage: Stage, since: Nanos) -> Self {
        let frames = Frames::new(most_message);
        Self { frames, stage, since, passed: 0, asks: None, is_behind: false, held: 0 }
    }

    /// A message of the client was handled, before which this many updates of all clients had been passed on.
    const fn has_passed(&mut self, before: u64, onward: Option<&Giving>) {
        if let Some(onward) = onward
            && onward.taken > before
        {
            self.passed = onward.taken;
        }
    }

    /// Whether the client has exceeded the time to log in. A client whose password is being checked has sent
    /// its login, and is not responsible for how long the check takes.
    fn is_silent(&self, now: Nanos) -> bool {
        matches!(self.stage, Stage::Hello) && now.since(self.since) >= HELLO_LIMIT_NS
    }
}

/// A running tickerplant.
pub struct Server {
    config: TickerplantConfig,
    streams: Streams,
    clients: BTreeMap<StreamId, Client>,
    plant: Tickerplant,
    log: Option<DayLog>,
    clock: Clock,
    zone: Zone,
    passwords: Option<Worker>,
    /// Passwords to check, at most one for each connection. Addresses take turns, so a client that sends many
    /// wrong passwords delays the others by one check only.
    checks: Checks,
    back_off: BackOff,
    last_check: u64,
    /// Clients whose password has not been checked yet.
    waiting: usize,
    housekept: Nanos,
    /// All rows up to this time were added; `None` if rows get their time here, when they arrive.
    added_up_to: Option<Nanos>,
    published: Nanos,
    report: Report,
    /// The plant to which rows of publishers are passed on; `None` without a plant: they are published directly.
    onward: Option<Giving>,
    /// In this turn the receiver of passed-on rows had no capacity.
    is_full: bool,
    /// What clients have cost in this turn.
    spent: Spent,
    /// Memory of incoming messages.
    held: Held,
    /// The number of the last passed-on update that came back and was published.
    published_up_to: u64,
    /// The clients with a question or an answer that waits for that.
    asking: Vec<StreamId>,
    /// The TCP address on which the tickerplant listens.
    address: Option<SocketAddr>,
    events: Events,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

/// The outlets: to the clients, and onward.
struct Out<'a> {
    streams: &'a mut Streams,
    onward: Option<&'a mut Giving>,
    now: Nanos,
    /// The session whose answer is collected here instead of sent.
    kept: Option<(SessionId, Vec<u8>)>,
    /// Bytes sent to clients.
    sent: usize,
}

impl Outlets for Out<'_> {
    #[inline]
    fn send(&mut self, to: SessionId, message: &[u8]) {
        self.sent += message.len();
        match &mut self.kept {
            Some((whose, answer)) if *whose == to => answer.extend_from_slice(message),
            _ => self.streams.send(StreamId(to.0), message),
        }
    }

    fn pass_on(&mut self, rows: &mut Passing<'_>) -> Result<(), &'static str> {
        match &mut self.onward {
            Some(onward) => onward.take(rows, self.now),
            None => Err("nobody takes rows"),
        }
    }
}

impl<'a> Out<'a> {
    /// An outlet to the clients only.
    const fn to(streams: &'a mut Streams) -> Self {
        Self { streams, onward: None, now: Nanos(0), kept: None, sent: 0 }
    }
}

impl Server {
    /// Opens the ports and the log. `table` is the name of the configuration's table. `onward` receives
    /// publishers' rows that are not published directly.
    pub fn open(
        config: TickerplantConfig,
        table: &str,
        onward: Option<Giving>,
        events: &Events,
    ) -> crate::Result<Self> {
        let clock = Clock::calibrate();
        let now = clock.now();
        Self::open_at(config, table, onward, events, (clock, now))
    }

    /// As [`open`](Self::open), in the day of this time.
    pub(crate) fn open_at(
        config: TickerplantConfig,
        table: &str,
        onward: Option<Giving>,
        events: &Events,
        (clock, now): (Clock, Nanos),
    ) -> crate::Result<Self> {
        let zone = Zone::named(&config.timezone, now).ok_or_else(|| {
            let what = format!("there is no time zone \"{}\"", config.timezone);
            Error::hinted(what, "timezone takes names such as \"America/New_York\"; \"UTC\" is usual")
        })?;
        let settings = streams::StreamSettings {
            max_connections: config.max_connections,
            queue_bytes: config.queue_bytes,
        };
        let streams = Streams::new(settings)?;
        let settings = Settings {
            is_timed: config.publish_every.is_some(),
            passes_on: onward.is_some(),
            ..Settings::new(config.tables.clone())
        };
        let held = Held::most(config.incoming_bytes);
        let passwords = config.access.is_some().then(Worker::start).transpose()?;
        let mut server = Self {
            plant: Tickerplant::new(settings, zone.local(now).date()),
            config,
            streams,
            clients: BTreeMap::new(),
            log: None,
            clock,
            zone,
            passwords,
            checks: Checks::default(),
            back_off: BackOff::default(),
            last_check: 0,
            waiting: 0,
            housekept: now,
            added_up_to: None,
            published: now,
            report: Report::default(),
            onward,
            is_full: false,
            spent: Spent::default(),
            held,
            published_up_to: 0,
            asking: Vec::new(),
            address: None,
            events: events.clone(),
        };
        // The log's lock first: its owner may replace the socket's name that an earlier process has left.
        server.begin_log()?;
        let refused = |error| Error::of_port("the tickerplant cannot listen".to_owned(), table, error);
        let Self { config, streams, .. } = &mut server;
        let address = config.address.map(|address| streams.listen(address)).transpose().map_err(refused)?;
        if let Some(path) = &config.unix {
            // Without a log there is no lock: the name must not be taken from a process that still listens.
            if tapeline_wire::local::connect(path).is_ok() {
                let what = format!("another process listens at {}", path.display());
                return Err(Error::hinted(what, "set unix to another name for this tickerplant"));
            }
            streams.listen_local(path)?;
        }
        server.address = address;
        Ok(server)
    }

    /// Where the tickerplant listens and what it logs.
    pub fn listening(&self) -> Listening {
        Listening {
            address: self.address,
            unix: self.config.unix.clone(),
            log: self.log.as_ref().map(|log| log.path.display().to_string()),
            messages: self.plant.log_messages(),
        }
    }

    /// Whether every client that reaches the port may publish, and other machines reach it.
    pub fn is_open(&self) -> bool {
        self.config.access.is_none() && self.address.is_some_and(|address| !address.ip().is_loopback())
    }

    /// Opens the log of the tickerplant's day.
    fn begin_log(&mut self) -> crate::Result<()> {
        if let Some(config) = &self.config.log {
            let (log, writer) = DayLog::open(config, self.plant.date(), &self.events)?;
            self.plant.log_to(&log.path.display().to_string(), writer);
            self.log = Some(log);
        }
        Ok(())
    }

    /// Sets whether rows of publishers wait until ticks were read: see [`Giving::set_behind`].
    pub(crate) const fn set_behind(&mut self, is_behind: bool) {
        if let Some(onward) = &mut self.onward {
            onward.set_behind(is_behind);
        }
    }

    /// Whether rows were passed on that have not come back.
    pub(crate) fn awaits_rows(&self) -> bool {
        self.onward.as_ref().is_some_and(|onward| onward.taken > self.published_up_to)
    }

    /// Has rows published that were passed on. Returns whether this thread has published them.
    pub(crate) fn publish_passed_on(&mut self) -> bool {
        self.onward.as_mut().is_some_and(Giving::publish)
    }

    /// Serves clients that have sent something, after sleeping at most `sleep`. Returns whether there was
    /// input.
    pub fn turn(&mut self, sleep: Duration) -> crate::Result<bool> {
        // Waiting sends what was published since the last turn.
        self.write_log()?;
        self.streams.wait(Some(sleep))?;
        let now = self.clock.now();
        let until = self.added_up_to.unwrap_or(now);
        if self.plant.is_day_over(self.zone.local(until)) {
            self.end_day(until)?;
        }
        let mut has_come = false;
        self.spent = Spent::default();
        // Input that was refused for lack of capacity in the last turn may be taken now, even if no client
        // sends anything.
        self.is_full = !has_room(&mut self.onward);
        self.answer();
        while !self.spent.is_enough()
            && let Some(ready) = self.streams.ready()
        {
            has_come = true;
            match ready {
                Ready::Connected(id) => self.let_in(id, now),
                Ready::Readable(id) => self.read(id, now),
                Ready::Over(id) => self.over(id, now),
            }
        }
        if let Some(every) = self.config.publish_every
            && now.since(self.published) >= every.as_nanos() as i64
        {
            self.published = now;
            self.plant.publish_all(&mut Out::to(&mut self.streams));
        }
        has_come |= self.check_passwords()?;
        // Everything that left for a socket since the last turn is in the log now.
        self.write_log()?;
        self.streams.flush();
        if now.since(self.housekept) >= HOUSEKEEPING_NS {
            self.housekept = now;
            self.keep_house(now);
        }
        // While no rows are taken onward, another turn at once is of no use.
        Ok((has_come || self.spent.is_enough()) && !self.is_full)
    }

    /// The tickerplant, for rows that no client has sent, and its time zone.
    pub const fn rows(&mut self) -> (&mut Tickerplant, &Zone) {
        (&mut self.plant, &self.zone)
    }

    /// Tells that all rows up to this time were added. From then on the day ends when the time of these calls or of a [row](Self::row_of) is of the
    /// next one: rows that were stamped before midnight and are read after it belong to the old day.
    pub(crate) const fn has_added_up_to(&mut self, at: Nanos) {
        self.added_up_to = Some(at);
    }

    /// Ends the day if the next row, which was stamped at this time, belongs to a later one. A stamp ahead of the clock ends no day.
    pub(crate) fn row_of(&mut self, at: Nanos) -> crate::Result<()> {
        if self.plant.is_day_over(self.zone.local(at)) && at <= self.clock.now() {
            self.end_day(at)?;
        }
        Ok(())
    }

    /// Adds the rows of a message that calls `upd`, in little-endian order. Returns whether a table takes
    /// them.
    pub fn add(&mut self, message: &[u8], at: Nanos) -> bool {
        let Ok(view) = View::parse(message, Order::Little) else { return false };
        let Ok(update) = Update::of(&view) else { return false };
        self.plant.add(&update, self.zone.local(at)).is_ok()
    }

    /// The rows of the passed-on update with this number, if they were kept.
    pub fn kept(&mut self, number: u64) -> Option<KeptRows> {
        self.onward.as_mut()?.kept(number)
    }

    /// Adds kept rows.
    pub fn add_kept(&mut self, rows: KeptRows) {
        self.plant.add_kept(&rows);
        if let Some(onward) = &mut self.onward {
            onward.release(rows);
        }
    }

    /// Publishes the added rows as one update of each table.
    pub fn publish_added(&mut self) {
        self.plant.publish_added(&mut Out::to(&mut self.streams));
    }

    /// Readiness for a thread that reports client input while this thread waits for something else.
    pub fn lookout(&self) -> Result<(Readiness, Waker), tapeline_wire::Error> {
        self.streams.lookout()
    }

    /// Publishes what is pending and sends what subscribers still read. Ends the tickerplant.
    pub fn end(&mut self) -> crate::Result<Report> {
        self.plant.publish_all(&mut Out::to(&mut self.streams));
        self.write_log()?;
        let ended = self.clock.now();
        let all = |server: &Self| server.clients.keys().all(|id| server.streams.is_flushed(*id));
        while !all(self) && self.clock.now().since(ended) < LAST_WORDS_NS {
            self.streams.wait(Some(SHORT_NAP))?;
            // Connections that close meanwhile need no more output.
            while self.streams.ready().is_some() {}
        }
        self.events.end(self.clock.now());
        Ok(self.report())
    }

    /// How long to sleep if nothing happens.
    pub fn nap(&self) -> Duration {
        if self.config.spins {
            return Duration::ZERO;
        }
        let is_short = self.waiting > 0 || self.is_full;
        let longest = if is_short { SHORT_NAP } else { NAP };
        match self.config.publish_every {
            Some(every) if self.plant.has_rows() => {
                let since = u64::try_from(self.clock.now().since(self.published)).unwrap_or(0);
                every.saturating_sub(Duration::from_nanos(since)).min(longest)
            }
            _ => longest,
        }
    }

    fn write_log(&mut self) -> crate::Result<()> {
        if let Some(log) = &mut self.log
            && !self.plant.unlogged().is_empty()
        {
            log.append(self.plant.unlogged())?;
            self.plant.has_logged();
        }
        Ok(())
    }

    fn end_day(&mut self, now: Nanos) -> crate::Result<()> {
        self.plant.publish_all(&mut Out::to(&mut self.streams));
        self.write_log()?;
        self.plant.end_day(self.zone.local(now), &mut Out::to(&mut self.streams));
        self.begin_log()
    }

    fn let_in(&mut self, id: StreamId, now: Nanos) {
        self.report.connections += 1;
        self.clients.insert(id, Client::new(self.config.most_message, Stage::Hello, now));
    }

    /// Reads and handles a client's input.
    fn read(&mut self, id: StreamId, now: Nanos) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if matches!(client.stage, Stage::Checking { .. }) || client.asks.is_some() {
            // Until that is done, the input stays in the socket.
            return;
        }
        if !has_room(&mut self.onward) {
            self.is_full = true;
            return self.streams.look_again(id);
        }
        if std::mem::take(&mut client.is_behind) && !self.take_messages(id, now) {
            return;
        }
        let Some(client) = self.clients.get_mut(&id) else { return };
        let count = self.streams.receive(id, client.frames.room());
        client.frames.received(count);
        if matches!(client.stage, Stage::Hello) && !self.greet(id) {
            return;
        }
        self.take_messages(id, now);
        self.count_held(id);
    }

    /// Counts the memory that a client's messages take. If all clients together exceed the bound, the client
    /// that takes most is disconnected.
    fn count_held(&mut self, id: StreamId) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let now = client.frames.held();
        if !self.held.change(std::mem::replace(&mut client.held, now), now) {
            return;
        }
        if let Some((most, client)) = self.clients.iter().max_by_key(|(_, client)| client.held) {
            let (most, its, bound) = (*most, client.held, self.held.most);
            let why = format!(
                "incoming messages of all connections may take {bound} bytes, and those of this client take {its}"
            );
            self.turn_away(most, &why);
        }
    }

    /// Handles the messages read from a client. Returns whether all of them were handled.
    fn take_messages(&mut self, id: StreamId, now: Nanos) -> bool {
        let Some(client) = self.clients.get_mut(&id) else { return true };
        if client.asks.is_some() || !matches!(client.stage, Stage::In) {
            return client.asks.is_none();
        }
        let local = self.zone.local(now);
        let mut his = 0;
        loop {
            let is_full = !has_room(&mut self.onward);
            if is_full || self.spent.is_enough_for(his) {
                // The rest of the client's input waits in its buffer.
                self.is_full |= is_full;
                client.is_behind = true;
                self.streams.look_again(id);
                return false;
            }
            let message = match client.frames.next() {
                Ok(Some(message)) => message,
                Ok(None) => return true,
                Err(fault) => {
                    self.turn_away(id, &format!("it sent something that is not a message: {fault}"));
                    return true;
                }
            };
            let is_update = message.kind == MessageKind::Async && is_update(&message);
            if !is_update && client.passed > self.published_up_to {
                client.asks = Some(Asks::Question(message.kind, message.order, message.body.into()));
                self.asking.push(id);
                return false;
            }
            let (plant, streams, onward) = (&mut self.plant, &mut self.streams, &mut self.onward);
            let taken = message.body.len();
            let passed = onward.as_ref().map_or(0, |onward| onward.taken);
            let (answer, sent) = hand_over(&message, id, (local, now), plant, streams, onward.as_mut());
            his += self.spent.add(taken, sent);
            client.has_passed(passed, onward.as_ref());
            if let Some(answer) = answer {
                client.asks = Some(Asks::Answer(answer));
                self.asking.push(id);
                return false;
            }
        }
    }

    /// All passed-on updates up to this number were published. Clients that asked after their updates get an
    /// answer.
    pub fn has_published(&mut self, number: u64) {
        self.published_up_to = number;
        if let Some(onward) = &mut self.onward {
            onward.has_come_back(number);
        }
        self.answer();
    }

    /// Ticks were lost before they were read, and rows that are on their way may be among them. Nobody may be told that those are in the log: their
    /// publishers are disconnected.
    pub(crate) fn has_lost_rows(&mut self) {
        let on_their_way = |client: &Client| client.passed > self.published_up_to;
        let of_lost: Vec<_> =
            self.clients.iter().filter(|(_, client)| on_their_way(client)).map(|(id, _)| *id).collect();
        for id in of_lost {
            self.turn_away(id, "ticks were lost, and rows that it has published may be among them");
        }
    }

    /// Answers clients whose updates were published, as far as there is capacity for their questions.
    fn answer(&mut self) {
        if self.asking.is_empty() {
            return;
        }
        let now = self.clock.now();
        let local = self.zone.local(now);
        let Self { plant, streams, onward, clients, published_up_to, spent, .. } = self;
        self.asking.retain(|id| {
            // Another client may have this stream number now; it asks nothing.
            let Some(client) = clients.get_mut(id) else { return false };
            if client.passed > *published_up_to {
                return client.asks.is_some();
            }
            match client.asks.take() {
                None => return false,
                Some(Asks::Answer(answer)) => streams.send(*id, &answer),
                Some(question) if spent.is_enough() || !has_room(onward) => {
                    client.asks = Some(question);
                    return true;
                }
                Some(Asks::Question(kind, order, body)) => {
                    let message = Message { kind, order, body: &body };
                    let passed = onward.as_ref().map_or(0, |onward| onward.taken);
                    let (answer, sent) =
                        hand_over(&message, *id, (local, now), plant, streams, onward.as_mut());
                    spent.add(body.len(), sent);
                    client.has_passed(passed, onward.as_ref());
                    if let Some(answer) = answer {
                        client.asks = Some(Asks::Answer(answer));
                        return true;
                    }
                }
            }
            streams.look_again(*id);
            false
        });
    }

    /// Disconnects a client for what it did.
    fn turn_away(&mut self, id: StreamId, why: &str) {
        self.report.turned_away += 1;
        self.say_of(id, "was turned away", why);
        // Output still queued for it is lost: rows in it may not be in the log yet.
        self.forget(id);
    }

    /// A connection is closed. What the client sent before is still handled, as soon as there is capacity.
    fn over(&mut self, id: StreamId, now: Nanos) {
        if !self.take_messages(id, now) {
            return;
        }
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

    /// Reports what happened to a client.
    fn say_of(&self, id: StreamId, what: &str, why: &str) {
        let now = self.clock.now();
        let from = self.streams.peer_address(id).map(|address| format!(" ({address})")).unwrap_or_default();
        let said = format_args!("client {}{from} {what}: {why}", id.0);
        self.events.peer(now, Kind::Kdb, Severity::Note, said);
    }

    fn forget(&mut self, id: StreamId) {
        self.plant.close(SessionId(id.0));
        self.streams.close(id);
        let Some(client) = self.clients.remove(&id) else { return };
        if let Stage::Checking { number, .. } = client.stage {
            // A check already in progress still returns.
            self.waiting -= usize::from(self.checks.forget(number));
        }
        self.held.change(client.held, 0);
    }

    /// The work done once a second.
    fn keep_house(&mut self, now: Nanos) {
        self.clock.recalibrate();
        self.zone.look(now);
        self.events.left_out(now);
        if let Some(cause) = self.streams.accept_error() {
            let said = format_args!("cannot accept connections of kdb+ clients: {cause}");
            self.events.peer(now, Kind::Accept, Severity::Warning, said);
        }
        let silent = self.clients.iter().filter(|(_, client)| client.is_silent(now));
        let silent: Vec<_> = silent.map(|(id, _)| *id).collect();
        for id in silent {
            self.turn_away(id, "it did not log in in time");
        }
    }

    fn report(&self) -> Report {
        let Report { connections, turned_away, cut, .. } = self.report;
        let Counters { updates, rows, sent, answered, refused, .. } = self.plant.counters();
        let turned_away = turned_away + self.streams.refused();
        Report { connections, turned_away, cut, updates, rows, sent, answered, refused }
    }
}

/// Passes a message to the tickerplant. The answer to rows that went onward is returned instead of sent. Also
/// returns the number of bytes that were sent, or written for an answer that turned out too long.
fn hand_over(
    message: &Message<'_>,
    from: StreamId,
    (local, now): (Local, Nanos),
    plant: &mut Tickerplant,
    streams: &mut Streams,
    onward: Option<&mut Giving>,
) -> (Option<Box<[u8]>>, usize) {
    let session = SessionId(from.0);
    let before = onward.as_ref().map(|onward| onward.taken);
    let is_kept = before.is_some() && message.kind == MessageKind::Sync;
    let kept = is_kept.then(|| (session, Vec::new()));
    let written = plant.counters().answer_bytes;
    let mut out = Out { streams, onward, now, kept, sent: 0 };
    plant.receive(session, message, local, &mut out);
    let Out { streams, onward, kept, sent, .. } = out;
    let written = plant.counters().answer_bytes - written;
    let sent = sent.max(usize::try_from(written).unwrap_or(usize::MAX));
    let Some((_, answer)) = kept else { return (None, sent) };
    if onward.map(|onward| onward.taken) == before {
        streams.send(from, &answer);
        return (None, sent);
    }
    (Some(answer.into()), sent)
}

/// Whether one more update would be taken.
fn has_room(onward: &mut Option<Giving>) -> bool {
    onward.as_mut().is_none_or(Giving::has_room)
}

#[cfg(test)]
mod tests;

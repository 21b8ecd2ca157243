//! `tapeline feed serve-soup`: captures or a plant's ring over SoupBinTCP, to any number of clients.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use tapeline_console::failure::of_socket;
use tapeline_console::{FilePath, Format, LogArgs, Stop, arguments, log, output};
use tapeline_feed::history::History;
use tapeline_feed::soupbintcp::{Accounts, Over, SILENCE_NS, ServerState, SoupServer, Username};
use tapeline_measure::{Clock, Nanos, figures};
use tapeline_wire::tcp::{self, Interest, Listener, Received, Stream};

use super::past::{Past, PastArgs};
use super::serve_retransmit::Ready;
use crate::password;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline feed serve-soup day.itch --session DAY1 --listen 127.0.0.1:26480\n  \
    tapeline feed serve-soup day.pcap.gz --listen 10.0.0.5:26480 --user user01 --password-file soup.password")]
pub(crate) struct ServeSoup {
    #[command(flatten)]
    past: PastArgs,
    /// Local address to listen on; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddrV4>)]
    listen: SocketAddrV4,
    /// Accept only this user, with the password in --password-file or in TAPELINE_SOUP_PASSWORD [default: accept anyone]
    #[arg(long, value_name = "NAME", value_parser = arguments::soup_user)]
    user: Option<String>,
    /// File whose first line is the user's password
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<FilePath>,
    /// Maximum number of connections. A further connection replaces the oldest one that has had no login for a second;
    /// if there is none, the further connection is closed at once
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    max_connections: usize,
    /// End after this long [default: run until stopped]
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    duration: Option<Duration>,
    /// Output format of the ready message and the summary
    #[arg(long, default_value = "table")]
    format: Format,
    #[command(flatten)]
    log: LogArgs,
}

/// Output buffer of one client: enough to keep a fast connection busy, little for a slow one.
const ROOM: usize = 256 << 10;
/// Input buffer of one client. A login has 49 bytes.
const INPUT_BYTES: usize = 4 << 10;
/// How often one client's output buffer is filled before the other clients have their turn.
const ROUNDS: usize = 16;
/// Maximum length of one wait, so that heartbeats and a stop request are handled in time.
const LOOK: Duration = Duration::from_millis(100);

/// Pause after a failed accept: pending connections would repeat the error at once.
const REST_NS: u64 = 1_000_000_000;

/// Time limit for a login when other connections wait for the slot.
const OPENING_NS: u64 = 1_000_000_000;

struct Connection {
    stream: Stream,
    server: SoupServer,
    began: Nanos,
    /// When the client last took output.
    moved: Nanos,
    /// Output is closed after the last packet; the client's disconnect is pending.
    finished: bool,
}

/// The result, for programs.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    connections: u64,
    messages: u64,
    bytes: u64,
    /// Connections by how they ended.
    ended: BTreeMap<&'static str, u64>,
}

impl ServeSoup {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        self.log.begin("serve-soup")?;
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let mut accounts = Accounts::default();
        if let Some(user) = &self.user {
            accounts.add(Username::new(user), password::read(self.password_file.as_deref())?);
        }
        let mut past = self.past.open(&stop)?;
        let mut listener = Listener::open(self.listen).map_err(of_socket)?;
        Ready::of(listener.local_address(), past.history()).say(self.format)?;
        let outcome = self.serve(&mut listener, &accounts, &mut past, &stop)?;
        self.print(&outcome)?;
        Ok(ExitCode::SUCCESS)
    }

    fn serve(
        &self,
        listener: &mut Listener,
        accounts: &Accounts,
        past: &mut Past,
        stop: &Stop,
    ) -> anyhow::Result<Outcome> {
        let clock = Clock::calibrate();
        let begun = clock.now();
        let mut connections: Vec<Connection> = Vec::new();
        let mut outcome = Outcome::default();
        let mut accepts_from = begun;
        loop {
            let now = clock.now();
            let over = |limit: Duration| now.since(begun) >= limit.as_nanos() as i64;
            if stop.requested() || self.duration.is_some_and(over) {
                for connection in &connections {
                    outcome.ended("stopped", connection);
                }
                return Ok(outcome);
            }
            let sockets = connections.iter().map(|c| (c.stream.as_fd(), c.stream.interest()));
            let door = (now >= accepts_from).then(|| (listener.as_fd(), Interest::Read));
            tcp::wait(sockets.chain(door), past.patience(LOOK));
            past.follow()?;
            let now = clock.now();
            if now >= accepts_from
                && let Err(error) = self.accept(listener, &mut connections, now, &mut outcome)
            {
                // For example too many open files: open connections continue.
                log::warning(format_args!("{error}; accepts no connections for one second"));
                accepts_from = now + REST_NS;
            }
            connections.retain_mut(|connection| match connection.step(accounts, past.history(), now) {
                None => true,
                Some(end) => {
                    outcome.ended(end, connection);
                    false
                }
            });
        }
    }

    fn accept(
        &self,
        listener: &mut Listener,
        connections: &mut Vec<Connection>,
        now: Nanos,
        outcome: &mut Outcome,
    ) -> Result<(), tapeline_wire::Error> {
        loop {
            match listener.accept(INPUT_BYTES)? {
                None => return Ok(()),
                Some(_)
                    if connections.len() >= self.max_connections && !make_room(connections, now, outcome) =>
                {
                    *outcome.ended.entry("turned-away").or_default() += 1;
                }
                Some(stream) => {
                    outcome.connections += 1;
                    let server = SoupServer::new(now);
                    connections.push(Connection { stream, server, began: now, moved: now, finished: false });
                }
            }
        }
    }

    fn print(&self, outcome: &Outcome) -> anyhow::Result<()> {
        if self.format == Format::Json {
            return output::print_json_line(outcome);
        }
        let [messages, bytes, connections] =
            [outcome.messages, outcome.bytes, outcome.connections].map(figures::thousands);
        let mut text = format!("sent {messages} messages in {bytes} bytes on {connections} connections");
        for (end, count) in &outcome.ended {
            text.push_str(&format!("; {end}: {}", figures::thousands(*count)));
        }
        output::print(&text)
    }
}

/// Ends the oldest connection without a login, if it is older than [`OPENING_NS`]; returns whether one was ended.
fn make_room(connections: &mut Vec<Connection>, now: Nanos, outcome: &mut Outcome) -> bool {
    // In order of connection.
    let silent = connections.iter().position(|there| there.server.state() == ServerState::AwaitingLogin);
    match silent {
        Some(at) if now >= connections[at].began + OPENING_NS => {
            outcome.ended("gave-way", &connections.remove(at));
            true
        }
        _ => false,
    }
}

impl Outcome {
    fn ended(&mut self, end: &'static str, connection: &Connection) {
        *self.ended.entry(end).or_default() += 1;
        self.messages += connection.server.sent();
        self.bytes += connection.server.sent_bytes();
    }
}

impl Connection {
    /// Handles received packets and sends due output; returns how the connection ended, if it did.
    fn step(&mut self, accounts: &Accounts, history: &History, now: Nanos) -> Option<&'static str> {
        let Ok(received) = self.stream.receive() else { return Some("broken") };
        let mut taken = 0;
        loop {
            let (bytes, out) = self.stream.split();
            match self.server.receive(bytes, accounts, history, now, out) {
                Ok(0) => break,
                Ok(count) => {
                    self.stream.consume(count);
                    taken += count;
                }
                Err(_) => return Some("violation"),
            }
        }
        if received == Received::Full && taken == 0 {
            // A packet that a client of a feed never sends.
            return Some("violation");
        }
        if let Some(end) = self.send(history, now) {
            return Some(end);
        }
        self.end(received, now)
    }

    /// Sends due output, as much as the socket takes; returns how that ended the connection, if it did.
    fn send(&mut self, history: &History, now: Nanos) -> Option<&'static str> {
        for _ in 0..ROUNDS {
            self.server.serve(history, now, self.stream.output(), ROOM);
            let unsent = self.stream.unsent();
            if unsent == 0 {
                break;
            }
            let Ok(all) = self.stream.flush() else { return Some("broken") };
            if self.stream.unsent() < unsent {
                self.moved = now;
            } else if now >= self.moved + SILENCE_NS {
                return Some("stalled");
            }
            if !all {
                break;
            }
        }
        None
    }

    /// How the connection ended, if it did. The last packets must reach the client, so the server waits for the client
    /// to close first, up to the silence limit.
    fn end(&mut self, received: Received, now: Nanos) -> Option<&'static str> {
        let left = received == Received::Closed;
        let end = match self.server.state() {
            ServerState::AwaitingLogin | ServerState::Live { .. } => return left.then_some("left"),
            ServerState::Over(Over::Logout) => return Some("logout"),
            ServerState::Over(Over::Silent) => return Some("silent"),
            ServerState::Over(Over::Rejected(_)) => "rejected",
            ServerState::Over(Over::EndOfSession) => "end-of-session",
            ServerState::Over(Over::NotHere { .. }) => "not-here",
            ServerState::Over(_) => "over",
        };
        if self.stream.unsent() == 0 && !self.finished {
            self.stream.finish();
            (self.finished, self.moved) = (true, now);
        }
        (left || (self.finished && now >= self.moved + SILENCE_NS)).then_some(end)
    }
}

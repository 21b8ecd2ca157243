//! `tapeline feed fetch-soup`: a session's messages over SoupBinTCP, into a file of messages or a summary.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddrV4;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use tapeline_console::output::Progress;
use tapeline_console::{FilePath, Format, Hinted, Stop, arguments, output, paths};
use tapeline_feed::soupbintcp::{ClientEvent, Login, Password, Reject, SoupSession, Username};
use tapeline_measure::{Clock, figures};
use tapeline_node::soup::{Broken, Link};

use super::itch_report::ItchReport;
use super::tally::FeedTally;
use crate::password;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline feed fetch-soup 10.0.0.5:26480 --user user01 --password-file soup.password --write day.itch\n  \
    tapeline feed fetch-soup 127.0.0.1:26480 --session DAY1 --from 982 --count 3 --format json")]
pub(crate) struct FetchSoup {
    /// Address and port of the server
    #[arg(value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddrV4>)]
    server: SocketAddrV4,
    /// User to log in as; the password is in --password-file or in TAPELINE_SOUP_PASSWORD
    #[arg(long, value_name = "NAME", value_parser = arguments::soup_user)]
    user: Option<String>,
    /// File whose first line is the password
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<FilePath>,
    /// Session to fetch; empty means the server's current session
    #[arg(long, value_name = "NAME", default_value = "", value_parser = arguments::session)]
    session: String,
    /// Sequence number of the first message; 0 means the most recent message
    #[arg(long, value_name = "SEQUENCE", default_value_t = 1)]
    from: u64,
    /// End after this many messages [default: at the end of the session]
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
    /// Write the messages to this file, each with a length prefix
    #[arg(long, value_name = "FILE")]
    write: Option<FilePath>,
    /// Give up after this many connections in a row without a message
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    tries: u32,
    /// Pause between two connections
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = arguments::duration)]
    pause: Duration,
    /// Show the books of these stocks
    #[arg(long = "symbol", value_name = "SYMBOL", value_delimiter = ',')]
    symbols: Vec<String>,
    /// Price levels of a book to show
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    levels: usize,
    /// Output format
    #[arg(long, default_value = "table")]
    format: Format,
}

/// Maximum length of one wait, so that heartbeats and a stop request are handled in time.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum End {
    SessionOver,
    Count,
    Stopped,
    GaveUp,
}

/// The result, for programs.
#[derive(Debug, Serialize)]
struct Outcome {
    end: End,
    session: Option<String>,
    /// Sequence of the first message, which may be later than requested.
    first_sequence: Option<u64>,
    next_sequence: Option<u64>,
    /// Gaps: a server that lacks a message continues after it.
    missing_messages: u64,
    connections: u64,
    #[serde(flatten)]
    itch: ItchReport,
}

struct Fetch {
    tally: FeedTally,
    file: Option<BufWriter<File>>,
    session: Option<SoupSession>,
    first: Option<u64>,
    next: u64,
    missing: u64,
    left: u64,
    /// The first failed write.
    failed: Option<std::io::Error>,
}

impl FetchSoup {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let password = match &self.user {
            Some(_) => password::read(self.password_file.as_deref())?,
            None => Password::new(""),
        };
        let create = |path: &FilePath| {
            File::create(path)
                .with_context(|| format!("cannot write {}", paths::shown(&path)))
                .map(BufWriter::new)
        };
        let mut fetch = Fetch {
            tally: FeedTally::new(),
            file: self.write.as_ref().map(create).transpose()?,
            session: None,
            first: None,
            next: self.from,
            missing: 0,
            left: self.count.unwrap_or(u64::MAX),
            failed: None,
        };
        let (end, connections) = self.fetch(&mut fetch, password, &stop)?;
        if let Some(file) = &mut fetch.file {
            file.flush().context("cannot write the received messages")?;
        }
        self.print(&fetch, end, connections)?;
        Ok(match end {
            End::SessionOver | End::Count => ExitCode::SUCCESS,
            End::Stopped => ExitCode::from(130),
            End::GaveUp => ExitCode::from(3),
        })
    }

    /// Connects, and reconnects after a disconnect, until the fetch is complete; returns the number of connections too.
    fn fetch(&self, fetch: &mut Fetch, password: Password, stop: &Stop) -> anyhow::Result<(End, u64)> {
        let clock = Clock::calibrate();
        let mut progress = Progress::counting("fetching", "messages", self.count);
        let (mut connections, mut fruitless) = (0, 0);
        loop {
            let session = fetch.session.unwrap_or_else(|| SoupSession::new(&self.session));
            let username = Username::new(self.user.as_deref().unwrap_or_default());
            let login = Login { username, password, session, sequence: fetch.next };
            let before = fetch.next;
            connections += 1;
            let broken = match self.follow(fetch, login, &clock, &mut progress, stop) {
                Ok(end) => return Ok((end, connections)),
                Err(error) => error.downcast::<Broken>()?,
            };
            fruitless = if fetch.next > before { 0 } else { fruitless + 1 };
            progress.apart(|| anstream::eprintln!("warning: {broken}"));
            if fruitless >= self.tries {
                let hint = if let Broken::Wire(error) = &broken { error.hint() } else { None };
                let hint = hint.unwrap_or_default();
                if fetch.first.is_none() {
                    let what = format!("nothing could be fetched from {}", self.server);
                    return Err(anyhow::Error::new(broken).context(Hinted::new(what, hint)));
                }
                anstream::eprintln!("hint: --from {} continues where it stopped", fetch.next);
                return Ok((End::GaveUp, connections));
            }
            let resume_at = clock.now() + u64::try_from(self.pause.as_nanos()).unwrap_or(u64::MAX);
            while clock.now() < resume_at {
                if stop.requested() {
                    return Ok((End::Stopped, connections));
                }
                std::thread::sleep(self.pause.min(LOOK));
            }
        }
    }

    /// Runs one connection.
    fn follow(
        &self,
        fetch: &mut Fetch,
        login: Login,
        clock: &Clock,
        progress: &mut Progress,
        stop: &Stop,
    ) -> anyhow::Result<End> {
        let asked_for = login.session;
        let mut link = Link::connect(self.server, login, clock.now())?;
        let mut refused = None;
        while fetch.left > 0 {
            let over = link.step(clock.now(), |event| match event {
                ClientEvent::Rejected(reject) => {
                    refused = Some(reject);
                    false
                }
                event => fetch.take(&event),
            })?;
            if let Some(failed) = fetch.failed.take() {
                return Err(failed).context("cannot write the received messages");
            }
            if let Some(reject) = refused {
                let hint = match reject {
                    Reject::NotAuthorized => "see --user and --password-file",
                    Reject::SessionNotAvailable => {
                        "without --session, the login enters the server's current session"
                    }
                    Reject::Other(_) => "",
                };
                let what = format!("{} refused the login to session \"{asked_for}\": {reject}", self.server);
                bail!(Hinted::new(what, hint));
            }
            if over {
                return Ok(End::SessionOver);
            }
            progress.set(fetch.tally.summary.messages);
            if stop.requested() {
                link.log_out();
                return Ok(End::Stopped);
            }
            if fetch.left > 0 {
                link.wait(LOOK);
            }
        }
        link.log_out();
        Ok(End::Count)
    }

    fn print(&self, fetch: &Fetch, end: End, connections: u64) -> anyhow::Result<()> {
        let outcome = Outcome {
            end,
            session: fetch.session.map(|session| session.to_string()),
            first_sequence: fetch.first,
            next_sequence: fetch.first.map(|_| fetch.next),
            missing_messages: fetch.missing,
            connections,
            itch: ItchReport::of(&fetch.tally, &self.symbols, self.levels),
        };
        if self.format == Format::Json {
            return output::print_json(&outcome);
        }
        let mut parts = outcome.itch.tables(&fetch.tally, 10);
        parts.push(format!(
            "session {}: messages {} to {}, {} missing; {}",
            outcome.session.as_deref().unwrap_or("(none)"),
            outcome.first_sequence.unwrap_or(0),
            fetch.next.saturating_sub(1),
            figures::thousands(fetch.missing),
            match end {
                End::SessionOver => "the session is over",
                End::Count => "as many as asked for",
                End::Stopped => "stopped",
                End::GaveUp => "gave up",
            }
        ));
        output::print(&parts.join("\n\n"))
    }
}

impl Fetch {
    /// Handles an event from the server; returns whether to continue.
    fn take(&mut self, event: &ClientEvent<'_>) -> bool {
        match *event {
            ClientEvent::Accepted { session, sequence } => {
                self.session = Some(session);
                if self.first.is_some() || self.next > 0 {
                    self.missing += sequence.saturating_sub(self.next);
                }
                self.next = sequence;
            }
            ClientEvent::Message { sequence, bytes } => {
                self.first.get_or_insert(sequence);
                self.next = sequence + 1;
                self.left -= 1;
                self.tally.message(bytes);
                self.write(bytes);
            }
            _ => {}
        }
        self.left > 0 && self.failed.is_none()
    }

    fn write(&mut self, message: &[u8]) {
        let Some(file) = &mut self.file else { return };
        // Cannot truncate: the length of a packet has 16 bits.
        let length = (message.len() as u16).to_be_bytes();
        if let Err(error) = file.write_all(&length).and_then(|()| file.write_all(message)) {
            self.failed = Some(error);
        }
    }
}

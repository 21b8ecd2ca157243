//! `tapeline omm watch`: opens items and prints their messages.

mod asking;
mod commands;
mod performing;
mod timing;
mod watching;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tapeline_client::dialer::Dialer;
use tapeline_client::ema_config::{Chosen, Group};
use tapeline_console::omm::dictionaries::DictionaryArgs;
use tapeline_console::omm::login::LoginArgs;
use tapeline_console::omm::transport::{ClientArgs, ConfigArgs};
use tapeline_console::{Hinted, LogArgs, Stop, arguments, log};
use tapeline_measure::{Clock, Nanos};
use tapeline_omm::role::consumer::{Consumer, ConsumerSettings};

use self::asking::Asked;
use self::commands::{Commands, WatchCommand};
use self::timing::Timing;
use self::watching::Watching;
use super::items::ItemArgs;
use super::lines::{LineFormat, Lines};

/// Open items of a provider and show their messages.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline omm watch IBM.N AAPL.O                    two items from localhost:14002, until Ctrl-C\n  \
    tapeline omm watch --server feed:14002 --service ELEKTRON_DD --view BID,ASK IBM.N\n  \
    tapeline omm watch --domain MarketByOrder --snapshot IBM.N | jq .entries\n  \
    tapeline omm watch IBM.N --post BID=39.91,BIDSIZE=10 --updates 1\n  \
    tapeline omm watch --commands                      then: open IBM.N, view IBM.N BID,ASK, pause IBM.N, help\n  \
    printf 'open A B\\nwait\\nclose A\\nwait 2s\\n' | tapeline omm watch --commands")]
pub(crate) struct OmmWatchArgs {
    #[command(flatten)]
    items: ItemArgs,
    /// Name of the items' service
    #[arg(long, default_value = "DIRECT_FEED")]
    service: String,
    /// Domain of the items, by name or number
    #[arg(long, default_value = "MarketPrice", value_parser = asking::domain)]
    domain: tapeline_omm::rwf::Domain,
    /// Request images only, and end when all have arrived
    #[arg(long)]
    snapshot: bool,
    /// Request all items in batches
    #[arg(long)]
    batch: bool,
    /// Fields to request, by name or number [default: all]
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    view: Vec<String>,
    /// Open private streams
    #[arg(long)]
    private: bool,
    /// Open the items paused: no updates until a resume; the provider must support this
    #[arg(long, conflicts_with_all = ["snapshot", "updates"])]
    pause: bool,
    /// Read commands from standard input, one a line: open, close, view, refresh, pause, resume, post, generic, list, wait, quit;
    /// the command help explains them. After the last command, end when every request is answered
    #[arg(long)]
    commands: bool,
    /// Post these fields to each item after its image, and request an acknowledgement
    #[arg(long, value_name = "FIELD=VALUE", value_delimiter = ',')]
    post: Vec<String>,
    /// Post on the login stream, by item name, instead of the item's own stream
    #[arg(long, requires = "post")]
    off_stream: bool,
    /// Send this text to each item as a generic message after its image
    #[arg(long, value_name = "TEXT")]
    generic: Option<String>,
    /// End when every item has had this many updates, and every post is acknowledged or refused
    #[arg(long, value_name = "COUNT")]
    updates: Option<u64>,
    /// End after this long
    #[arg(long = "for", value_name = "DURATION", value_parser = arguments::some_duration)]
    duration: Option<Duration>,
    /// Connection attempts before giving up [default: no limit]
    #[arg(long, value_name = "COUNT")]
    attempts: Option<u32>,
    /// End with status 0 when the provider disconnects after a successful login
    #[arg(long)]
    until_closed: bool,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    server: ClientArgs,
    #[command(flatten)]
    login: LoginArgs,
    #[command(flatten)]
    dictionary: DictionaryArgs,
    /// Download the provider's dictionary
    #[arg(long, conflicts_with = "dictionary", help_heading = "Dictionary")]
    download_dictionary: bool,
    /// Output format [default: text on a terminal, JSON lines in a pipe]
    #[arg(long, value_enum)]
    format: Option<LineFormat>,
    #[command(flatten)]
    log: LogArgs,
    /// Measure the age of a plant's updates, which carry times in ns (QUOTIM_NS, SALTIM_NS), after this warm-up, and
    /// print the distribution at the end
    #[arg(long, value_name = "WARM-UP", num_args = 0..=1, default_missing_value = "0s", value_parser = arguments::duration)]
    timed: Option<Duration>,
    /// Print only the totals at the end, no item messages
    #[arg(long)]
    quiet: bool,
}

/// Maximum wait between two checks for a stop request.
const TURN: Duration = Duration::from_millis(100);

impl OmmWatchArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        self.log.begin("watch")?;
        let stop = Stop::on_signals()?;
        let clock = Clock::calibrate();
        let mut chosen = self.config.load(Group::Consumer)?;
        if chosen.one_after_the_other() {
            log::note("there is only one connection: standby servers are tried in turn");
        }
        let dictionary = self.dictionary.clone().or(chosen.dictionary.take());
        let dictionary = dictionary.load()?;
        let asked = Asked::new(self, &dictionary)?;
        let credentials =
            self.login.credentials()?.with_round_trips(chosen.takes_round_trips.unwrap_or(true));
        let settings = self.settings(&chosen);
        let consumer = Consumer::new(settings, &credentials.request())?;
        let mut watching = Watching::new(asked, dictionary, Lines::new(self.format));
        watching.timing = self.timed.map(|warm_up| Timing::new(warm_up.as_nanos() as u64, clock));
        let endpoints = self.server.endpoints(chosen.hosts, "localhost:14002")?;
        let dialer = Dialer::new(consumer, endpoints, watching.dictionary.clone(), chosen.json)?;
        let mut program = Program { dialer, watching, commands: None };
        if self.commands {
            let waker = program.dialer.waker()?;
            // If the wake-up fails, the next turn reads the command.
            program.commands = Some(Commands::begin(move || _ = waker.wake())?);
        }
        let started = clock.now();
        let deadline = self.duration.map(|duration| started + duration.as_nanos() as u64);
        program.watching.open(program.dialer.role(), 0, !self.snapshot)?;
        loop {
            let now = clock.now();
            let goes_on = program.obey(now);
            let next = program.dialer.turn(now, &mut program.watching);
            program.watching.failure.take().map_or(Ok(()), Err)?;
            program.watching.lines.flush()?;
            if stop.requested() || !goes_on || deadline.is_some_and(|deadline| now >= deadline) {
                break;
            }
            if program.is_done(deadline.is_some()) || program.dialer.role().is_ended() {
                break;
            }
            let due = next.map_or(TURN, |next| Duration::from_nanos(next.0.saturating_sub(now.0)));
            program.dialer.wait(due.min(TURN))?;
        }
        program.end(clock.now(), stop.requested())
    }

    /// The consumer's settings: the command line overrides the configuration.
    fn settings(&self, chosen: &Chosen) -> ConsumerSettings {
        let usual = chosen.consumer();
        ConsumerSettings {
            downloads_dictionary: self.download_dictionary || usual.downloads_dictionary,
            reconnect_attempts: self.attempts.or(self.until_closed.then_some(1)).or(usual.reconnect_attempts),
            ..usual
        }
    }
}

struct Program<'a> {
    dialer: Dialer<Consumer>,
    watching: Watching<'a>,
    commands: Option<Commands>,
}

impl Program<'_> {
    /// Runs the pending commands; returns `false` if a command ends the program.
    fn obey(&mut self, now: Nanos) -> bool {
        let Self { commands: Some(commands), watching, dialer } = self else { return true };
        while let Some(line) = commands.next(now, watching.is_settled()) {
            let done = match WatchCommand::parse(&line) {
                Ok(Some(WatchCommand::Quit)) => return false,
                Ok(Some(WatchCommand::Wait(duration))) => {
                    commands.wait(now, duration);
                    Ok(())
                }
                Ok(Some(command)) => watching.perform(dialer.role(), command),
                Ok(None) => Ok(()),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = done {
                // The program continues: the user can repeat the command.
                let _ = tapeline_console::failure::report(&fault, &str::to_owned);
            }
        }
        true
    }

    /// Whether everything expected has arrived. `has_deadline`: the program ends at a set time.
    fn is_done(&mut self, has_deadline: bool) -> bool {
        let consumer = self.dialer.role();
        match &self.commands {
            Some(commands) if !commands.is_over => false,
            // Some closes are still unsent.
            Some(_) if consumer.is_ready() && consumer.streams() > consumer.items() => false,
            Some(_) if !self.watching.is_finite() => !has_deadline && self.watching.is_settled(),
            _ => self.watching.is_done(),
        }
    }

    /// Logs out, and prints the totals.
    fn end(mut self, now: Nanos, is_interrupted: bool) -> anyhow::Result<ExitCode> {
        let is_early = is_interrupted && self.watching.is_finite() && !self.watching.is_done();
        self.watching.is_ending = true;
        let watching = &mut self.watching;
        if self.dialer.is_connected() {
            self.dialer.act(|consumer, out| {
                consumer.tick(now, out, watching);
                consumer.log_out(out, watching);
            });
            self.dialer.flush();
            self.dialer.close();
        }
        let unreadable = self.dialer.unreadable();
        watching.report(self.dialer.role().counters(), unreadable);
        self.watching.lines.flush()?;
        let was_in = self.watching.was_ready;
        let until_closed = self.watching.asked.args.until_closed;
        if let Some(why) = self.watching.refusal.take().filter(|_| !(was_in && until_closed)) {
            let what = format!("the session with {} is over: {why}", self.dialer.server());
            let hint = match was_in {
                true => "--attempts sets how often to reconnect; --until-closed treats this end as success",
                false => "check --user, --password-file and --server",
            };
            return Err(Hinted::new(what, hint).into());
        }
        if is_early {
            return Ok(ExitCode::from(130));
        }
        Ok(if self.watching.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

//! `tapeline plant --config FILE`: sockets in, ring out, one thread, or one more for each feed that receives.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tapeline_console::failure::Hinted;
use tapeline_console::output::Format;
use tapeline_console::paths::FilePath;
use tapeline_console::stop::{Again, Stop};
use tapeline_feed::book;
use tapeline_feed::line::{self, Restart, Start};
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::{
    Channel, ChannelSettings, ItemSource, Items, Note, Refused, RingPublish, Seq, Sequencer,
};
use tapeline_wire::http::Server;
use tapeline_wire::udp::{ReceiveOptions, Receiver, wait_any, wait_any_or};

use super::config::{self, Config, Feed, Receive};
use super::counting::{
    Counting, FeedFigures, LatestSnapshot, OfHub, PlantFigures, Served, SnapshotWriter, telling,
};
use super::hub::{Joining, RunningHub};
use super::image_server::RunningImageServer;
use super::intake::{Complaints, LONGEST_SLEEP, Source};
use super::journal::{Gate, RunningJournal};
use super::kdb::publishing::Publishing;
use super::kdb::{KdbReport, RunningKdb};
use super::recorded::Recorded;
use super::recovery::Recovery;
use super::report::{PlantReport, Ready};
use super::sources::RunningSources;
use super::web;
use super::zeromq::RunningZeromq;
use crate::peer_log;
use crate::stat::file::{self, Found};
use crate::stat::snapshot;

/// Run the plant that a TOML file describes.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The plant's configuration; `tapeline plant sample` prints one to start from
    #[arg(long, value_name = "FILE")]
    pub(crate) config: FilePath,
    /// End when every feed has ended its session and sent nothing beyond that end for its `stale_after`
    #[arg(long)]
    until_end_of_session: bool,
    /// Run without the hub, its page and ZeroMQ; `tapeline plant serve` serves the clients
    #[arg(long)]
    without_hub: bool,
    /// Output format of the summary at the end
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Subscribers that sleep are woken after this many datagrams, and after the last of a batch. Less often would let them
/// sleep through a burst; more often, they would fall asleep again in the middle of it.
const WAKE_EVERY: usize = 8;
/// How long the plant sleeps while an answer is waited for: as long as one takes on the same host.
const WHILE_RECOVERING: Duration = Duration::from_micros(200);
/// How long the plant sleeps at most while it waits for other threads, which cannot wake it together with sockets.
const BETWEEN_THREADS: Duration = Duration::from_micros(500);
/// Bytes that are kept for each message that may wait for recovery; ITCH's have 30 on average.
const WAITING_BYTES: usize = 48;
/// For how long a plant that is told to stop goes on with what has already arrived.
const LAST_WORDS_NS: i64 = 500_000_000;
/// How often the clock is compared with the kernel's and the note is rewritten.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;

/// One feed with its sockets, or the file that takes their place.
struct Inlet {
    name: String,
    channel: Channel,
    source: Source,
    file: Option<Recorded>,
    recovery: Option<Recovery>,
    /// Where it began late, as the operator was told.
    told_late: Option<u64>,
    /// Whether the user knows that new symbols find no place.
    has_said_no_place: bool,
}

impl Inlet {
    /// Tells the operator once that a session is heard of from its middle on, what that means, and what helps.
    fn tell_late(&mut self) {
        let late = self.channel.begun_late_at();
        if late != self.told_late
            && let Some(first) = late
        {
            let with =
                if self.recovery.is_some() { "asks [feed.recovery]" } else { "with [feed.recovery] asks" };
            anstream::eprintln!(
                "warning: feed {}: heard from message {first} of its session on: items are suspect until the next session, as books lack \
                 what came before\nhint: start = \"from-one\" {with} for it",
                self.name
            );
        }
        self.told_late = late;
    }

    /// Whether nothing more is to be expected.
    fn is_over(&self, now: Nanos) -> bool {
        self.file.as_ref().map_or_else(|| self.channel.is_over(now), Recorded::is_over)
    }
}

/// A plant at work.
struct Running {
    inlets: Vec<Inlet>,
    sources: Option<RunningSources>,
    /// What kdb+ clients publish.
    rows: Option<Publishing>,
    clock: Clock,
    sequencer: Sequencer<RingPublish>,
    journal: Option<RunningJournal>,
    stop: Stop,
    housekept: Nanos,
    /// The ring has lost its name.
    is_name_removed: bool,
    truncated: u64,
    /// Of the ring's subscribers, as last told.
    evicted: u64,
    complaints: Complaints,
    teller: SnapshotWriter<PlantFigures>,
    /// Where nothing of this plant is read again, whoever asks for that is told so.
    again: Option<Again>,
}

impl RunArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let mut config = config::read(&self.config)?;
        if self.without_hub {
            config.hub = None;
        }
        let is_read_again = config.hub.as_ref().is_some_and(|hub| hub.access.again.is_some());
        let journal = config.journal.as_ref().map(RunningJournal::start).transpose()?;
        let after = journal.as_ref().map(|journal| journal.after).unwrap_or_default();
        // Each reader that gives ticks to others is held back by itself, and waited for while it is.
        let mut excuses = Vec::new();
        let mut gate = || {
            let gate = journal.as_ref().and_then(RunningJournal::gate);
            excuses.extend(gate.as_ref().map(Gate::excuse));
            gate
        };
        let keeper = config.keeper.take();
        let keeper = keeper.map(|keeper| RunningImageServer::start(keeper, &config.ring)).transpose()?;
        let (sources, demanding) = config.sources.take().map(RunningSources::open).transpose()?.unzip();
        // Before this thread is pinned: see `RunningHub::start`.
        let (teller, of_plant) = telling();
        let (hub_teller, of_hub) = telling();
        let begin = config.hub.as_ref().map(config::hub::HubConfig::begin);
        let latest = Arc::new(LatestSnapshot::default());
        let web = match &mut config.hub {
            Some(hub) => web::open(hub, &latest)?,
            None => None,
        };
        let page = web.as_ref().map(Server::address);
        let zeromq = config.hub.as_mut().and_then(|hub| hub.zeromq.take());
        let kdb = config.kdb.take();
        let most_tick = ring_options(&config).longest_frame();
        let folder = config.journal.as_ref().map(|journal| journal.folder.clone());
        let kept = folder.zip(journal.as_ref().map(RunningJournal::progress));
        let zeromq =
            zeromq.map(|zeromq| RunningZeromq::start(zeromq, (gate(), kept.clone(), after))).transpose()?;
        let kdb = kdb.map(|kdb| RunningKdb::start(kdb, (gate(), kept, after), most_tick)).transpose()?;
        let (kdb, rows) = kdb.unzip();
        let hub =
            config.hub.take().map(|hub| RunningHub::start(hub, demanding, hub_teller, gate())).transpose()?;
        let of_hub = begin.zip(hub.as_ref()).map(|(begin, hub)| OfHub {
            hearer: of_hub,
            begin: snapshot::Hub {
                address: hub.address.to_string(),
                web: page.map(|address| address.to_string()),
                ..begin
            },
        });
        // Gone, and the file with it, before the plant has reported its end.
        let progress = journal.as_ref().map(RunningJournal::progress);
        let served = Served {
            kdb: kdb.as_ref().map(RunningKdb::standing),
            zeromq: zeromq.as_ref().map(RunningZeromq::standing),
        };
        let counting = Counting::start(&config, of_plant, of_hub, (progress, served), &latest)?;
        let pin = || config.cpu.map_or(Ok(()), tapeline_measure::pin);
        // A thread inherits where its maker is bound, and a receiving thread is to have a core of its own.
        if matches!(config.receive, Receive::Inline) {
            pin()?;
        }
        let mut plant = Running::open(&config, (sources, rows, after), &stop, teller)?;
        if !is_read_again {
            plant.again = Some(Again::on_signal()?);
        }
        pin()?;
        counting.begin();
        // Before the first tick, so that nothing is left out.
        if let Some(journal) = journal {
            let (journal, seat) = journal.join(&config.ring)?;
            plant.sequencer.publisher().ring().exempt(seat);
            plant.journal = Some(journal);
        }
        for excuse in excuses {
            plant.sequencer.publisher().ring().excuse_while(excuse);
        }
        // Before the first tick, so that images and logs are whole.
        let hub =
            hub.map(|hub| hub.join(&config.ring, Joining::First(after))).transpose()?.map(|(hub, _)| hub);
        let zeromq = zeromq.map(|zeromq| zeromq.join(&config.ring)).transpose()?;
        let kdb = kdb.map(|kdb| kdb.join(&config.ring)).transpose()?;
        let keeper = match keeper {
            None => None,
            Some(keeper) => {
                let (keeper, seat) = keeper.join(&config.ring)?;
                plant.sequencer.publisher().ring().exempt(seat);
                Some(keeper)
            }
        };
        let publishers = plant.sources.as_ref().and_then(|sources| sources.address);
        match self.format {
            Format::Json => {
                let ready = Ready {
                    kdb: kdb.as_ref().map(|kdb| kdb.listening.clone()),
                    ..Ready::of(&config, hub.as_ref(), publishers, page, zeromq.as_ref())
                };
                tapeline_console::output::print_json_line(&ready)?;
            }
            Format::Table => {
                eprintln_ready(&config, hub.as_ref(), publishers, page, zeromq.as_ref());
                if let Some(kdb) = &kdb {
                    anstream::eprintln!("{}", kdb.listening);
                }
            }
        }
        let outcome = plant.run(&config, self.until_end_of_session);
        let mut report = plant.report(&config, outcome.as_ref().err());
        let journal = plant.journal.take();
        let published = plant.rows.as_ref().map(Publishing::report);
        let mut failed = Failed::default();
        failed.unless(plant.close());
        // The ring has ended, and with it the hub, once its clients have what they are owed. Whatever became of one, the others are waited
        // for: the journal writes what it has still to read.
        report.hub = hub.and_then(|hub| failed.unless(hub.end()));
        report.zeromq = zeromq.and_then(|zeromq| failed.unless(zeromq.end()));
        let kdb = kdb.and_then(|kdb| failed.unless(kdb.end()));
        report.kdb = kdb.map(|kdb| KdbReport { published: published.unwrap_or_default(), ..kdb });
        if let Some(keeper) = keeper {
            failed.unless(keeper.end());
        }
        report.journal = journal.and_then(|journal| failed.unless(journal.end()));
        drop(web);
        drop(counting);
        match self.format {
            Format::Json => tapeline_console::output::print_json_line(&report)?,
            Format::Table => report.print()?,
        }
        if report.kernel_drops() > 0 {
            anstream::eprintln!(
                "warning: the kernel dropped {} datagrams because a socket's buffer was full; what no other line \
                 carried, and no later message showed to be missing, is not counted as missing",
                report.kernel_drops()
            );
        }
        failed.first()?;
        match outcome {
            Ok(()) if !report.files_are_whole() => Ok(ExitCode::FAILURE),
            // Readers were told where.
            Ok(()) if report.is_anything_missing() => Ok(ExitCode::from(3)),
            Ok(()) => Ok(ExitCode::SUCCESS),
            // The user asked to stop while a subscriber held the ring: what had arrived was not all published.
            Err(Refused::Stopping) if stop.requested() => Ok(ExitCode::from(3)),
            Err(refused) => Err(refused).context("the plant cannot go on"),
        }
    }
}

/// What went wrong first, while the rest is still brought to its end.
#[derive(Default)]
struct Failed(Option<anyhow::Error>);

impl Failed {
    /// What was done, unless it failed.
    fn unless<T>(&mut self, done: anyhow::Result<T>) -> Option<T> {
        done.map_err(|error| _ = self.0.get_or_insert(error)).ok()
    }

    fn first(self) -> anyhow::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Who names items, each of whom has places of its own.
fn sources_of(config: &Config) -> impl Iterator<Item = ItemSource> {
    let feeds = (0..config.feeds.len()).map(|number| ItemSource::Channel(number as u16));
    let kdb = config.kdb.iter().map(|kdb| ItemSource::Channel(kdb.channel));
    let services = config.sources.iter().flat_map(|sources| &sources.settings.services);
    feeds.chain(kdb).chain(services.map(|service| ItemSource::Service(service.id)))
}

/// What the plant's ring is like.
fn ring_options(config: &Config) -> tapeline_ring::Options {
    tapeline_ring::Options {
        capacity: config.ring_bytes,
        keep: config.keep_ring,
        stall_limit: config.stall_limit,
        // Datagrams bring many messages at once: see `WAKE_EVERY`.
        wake_on_commit: false,
        ..tapeline_ring::Options::default()
    }
}

impl Running {
    fn open(
        config: &Config,
        (sources, rows, after): (Option<RunningSources>, Option<Publishing>, Seq),
        stop: &Stop,
        teller: SnapshotWriter<PlantFigures>,
    ) -> anyhow::Result<Self> {
        let inlets = config
            .feeds
            .iter()
            .zip(0u16..)
            .map(|(feed, number)| Inlet::open(feed, number, config))
            .collect::<anyhow::Result<Vec<_>>>()?;
        if let Ok(Found::Live(other)) = file::read(&config.ring)
            && !config.ring.path().exists()
        {
            let what = format!(
                "process {} publishes ring {} still, although its name was removed",
                other.pid, config.ring
            );
            return Err(
                Hinted::new(what, "end that plant first, or give this one's ring another name").into()
            );
        }
        let ring = tapeline_ring::Publisher::open(&config.ring, &ring_options(config)).map_err(|error| {
            let hint = error.hint().unwrap_or_default();
            anyhow::Error::new(error).context(Hinted::new("cannot publish the plant's ring", hint))
        })?;
        let clock = Clock::calibrate();
        let publish = RingPublish::new(ring, on_stall(config.ring.clone(), stop.clone()));
        let mut items = Items::new(config.max_items);
        if !config.feeds.is_empty() {
            // Providers name what they like, and clients ask them for what they like: feeds' new symbols need places still.
            items = items.reserve(config.service_id, config.max_items.div_ceil(2));
        }
        items = items.share(sources_of(config), config.reserved_items);
        let mut running = Self {
            inlets,
            sources,
            rows,
            housekept: clock.now(),
            clock,
            sequencer: Sequencer::new(config.service_id, items, publish).after(after),
            journal: None,
            stop: stop.clone(),
            is_name_removed: false,
            truncated: 0,
            evicted: 0,
            complaints: Complaints::default(),
            teller,
            again: None,
        };
        if let Some(nbbo) = &config.nbbo {
            running.sequencer.consolidate(nbbo);
        }
        running.write_note();
        Ok(running)
    }

    /// Takes datagrams and publishes ticks until it is told to stop, or every session is over.
    fn run(&mut self, config: &Config, until_end_of_session: bool) -> Result<(), Refused> {
        let mut stopping: Option<Nanos> = None;
        if let Some(sources) = &mut self.sources {
            sources.begin(&self.clock, &mut self.sequencer)?;
        }
        loop {
            let mut taken = 0;
            for inlet in &mut self.inlets {
                let (channel, sequencer, clock) = (&mut inlet.channel, &mut self.sequencer, &self.clock);
                let truncated = &mut self.truncated;
                let turn = inlet.source.turn(&mut self.complaints, |arrived| {
                    *truncated += u64::from(arrived.truncated);
                    let wire = arrived.received.unwrap_or_else(|| clock.now());
                    channel.datagram(arrived.line, arrived.bytes, wire, clock, sequencer)?;
                    if arrived.left % WAKE_EVERY == 0 {
                        sequencer.publisher().ring().flush();
                    }
                    Ok(())
                })?;
                taken += turn.taken;
                let mut all_read = turn.all_read;
                if let Some(file) = &mut inlet.file {
                    let played = file.play(&mut inlet.channel, &self.clock, &mut self.sequencer)?;
                    taken += played;
                    all_read &= played == 0;
                }
                if let Some(recovery) = &mut inlet.recovery
                    && recovery.turn(&mut inlet.channel, &self.clock, &mut self.sequencer)?
                {
                    self.sequencer.publisher().ring().flush();
                }
                // Only now is what is missing on one line known not to lie unread on another.
                if all_read && inlet.channel.expire(&self.clock, &mut self.sequencer)? {
                    self.sequencer.publisher().ring().flush();
                }
            }
            if let Some(sources) = &mut self.sources {
                let has_come = sources.turn(taken > 0, &self.clock, &mut self.sequencer)?;
                taken += usize::from(has_come);
            }
            if let Some(rows) = &mut self.rows {
                taken += usize::from(rows.turn(&self.clock, &mut self.sequencer)?);
            }
            if self.journal.as_ref().is_some_and(RunningJournal::has_stopped) {
                return Err(Refused::NotKept);
            }
            let now = self.clock.now();
            if self.stop.requested() {
                // What has arrived is still published, but a feed that never pauses is not followed for ever.
                let since = *stopping.get_or_insert(now);
                if taken == 0 || now.since(since) >= LAST_WORDS_NS {
                    return self
                        .inlets
                        .iter_mut()
                        .try_for_each(|inlet| inlet.channel.finish(&self.clock, &mut self.sequencer));
                }
            }
            if taken == 0 {
                let are_over = !self.inlets.is_empty() && self.inlets.iter().all(|inlet| inlet.is_over(now));
                if until_end_of_session && are_over {
                    return Ok(());
                }
                if !config.spin {
                    self.sleep();
                }
            }
            if now.since(self.housekept) >= HOUSEKEEPING_NS {
                self.housekept = now;
                self.clock.recalibrate();
                self.look_after_name(config)?;
                self.write_note();
            }
        }
    }

    fn sleep(&mut self) {
        let publisher = self.sequencer.publisher().ring();
        // Those who look from outside see where the ring stands while nothing moves.
        publisher.flush();
        let files = self.inlets.iter().filter_map(|inlet| inlet.file.as_ref());
        let longest = files.map(|file| file.until_due(&self.clock)).fold(LONGEST_SLEEP, Duration::min);
        let recovers = |inlet: &Inlet| inlet.recovery.as_ref().is_some_and(Recovery::is_busy);
        let longest = if self.inlets.iter().any(recovers) { longest.min(WHILE_RECOVERING) } else { longest };
        if let Some(sources) = &self.sources {
            let longest = longest.min(sources.until_due(self.clock.now()));
            let all: Vec<&Receiver> = self.inlets.iter().flat_map(|inlet| inlet.source.receivers()).collect();
            let is_threaded = self.rows.is_some() || self.inlets.iter().any(|inlet| inlet.source.is_thread());
            wait_any_or(&all, sources, if is_threaded { longest.min(BETWEEN_THREADS) } else { longest });
            return;
        }
        let are_sockets = self.inlets.iter().any(|inlet| !inlet.source.receivers().is_empty());
        let longest = if are_sockets && self.rows.is_some() { longest.min(BETWEEN_THREADS) } else { longest };
        match self.inlets.as_slice() {
            // All that have lines have a thread, or none has.
            all if all.iter().all(|inlet| inlet.source.receivers().is_empty()) => {
                std::thread::park_timeout(longest);
            }
            [one] => _ = wait_any(one.source.receivers(), longest),
            many => {
                let all: Vec<&Receiver> = many.iter().flat_map(|inlet| inlet.source.receivers()).collect();
                wait_any(&all, longest);
            }
        }
    }

    fn write_note(&mut self) {
        self.tell();
        peer_log::say_left_out(self.clock.now());
        self.say_who_has_no_place();
        if self.again.as_ref().is_some_and(Again::is_requested) {
            anstream::eprintln!(
                "note: SIGHUP has [hub.access] read again, and this plant has none; Ctrl-C or SIGTERM ends it"
            );
        }
        let note = Note {
            calibration: self.clock.calibration(),
            messages: self.inlets.iter().map(|inlet| inlet.channel.counters().messages).sum(),
            missing: self.inlets.iter().map(|inlet| inlet.channel.counters().missing).sum(),
            kernel_drops: self.kernel_drops(),
            state: Note::worst(self.inlets.iter().map(|inlet| inlet.channel.state())),
        };
        let ring = self.sequencer.publisher().ring();
        ring.set_note(note.to_words());
        let evicted = ring.evicted();
        if evicted > self.evicted {
            anstream::eprintln!(
                "warning: {} of the ring's subscribers read nothing for the stall limit and lost their place",
                evicted - self.evicted
            );
            self.evicted = evicted;
        }
    }

    /// Names a feed, once, whose new symbols find no place.
    fn say_who_has_no_place(&mut self) {
        for inlet in &mut self.inlets {
            if inlet.channel.counters().items_refused > 0 && !inlet.has_said_no_place {
                inlet.has_said_no_place = true;
                anstream::eprintln!(
                    "warning: feed {}: new symbols have no place: their ticks are of no item\n\
                     hint: does the feed make symbols up? If not, raise max_items in [plant]; reserved_items is what each feed is sure to have",
                    inlet.name
                );
            }
        }
    }

    /// Tells the outside how it stands.
    /// Notices that the ring has lost its name, once.
    fn look_after_name(&mut self, config: &Config) -> Result<(), Refused> {
        // What the system refuses to say is asked again.
        if self.is_name_removed || self.sequencer.publisher().ring().is_named().unwrap_or(true) {
            return Ok(());
        }
        self.is_name_removed = true;
        anstream::eprintln!(
            "warning: the name of the ring, {}, was removed: those who have joined read on, nobody else can join\n\
             hint: systemd removes the shared memory of a user whose last session ends, unless RemoveIPC=no is in \
             /etc/systemd/logind.conf; start the plant again for a ring that has a name",
            config.ring.path().display()
        );
        if config.ends_without_name { Err(Refused::NameRemoved) } else { Ok(()) }
    }

    fn tell(&mut self) {
        let publisher = self.sequencer.publisher();
        let (stalls, stalled_ns) = (publisher.stalls(), publisher.stalled_ns());
        let figures = &mut self.teller.figures;
        figures.at = self.clock.now();
        figures.ticks = self.sequencer.published();
        figures.is_name_removed = self.is_name_removed;
        figures.items = self.sequencer.items().len();
        (figures.stalls, figures.stalled_ns) = (stalls, stalled_ns);
        self.inlets.iter_mut().for_each(Inlet::tell_late);
        figures.feeds.clear();
        figures.feeds.extend(self.inlets.iter_mut().map(|inlet| FeedFigures {
            state: inlet.channel.state(),
            counters: *inlet.channel.counters(),
            is_suspect: inlet.channel.damaged_from().is_some(),
            unknown_orders: inlet.channel.normaliser().unknown_orders(),
            kernel_drops: inlet.source.kernel_drops(),
        }));
        if let Some(sources) = &self.sources {
            sources.tell(&mut figures.sources, &mut figures.unserved);
        }
        self.teller.tell();
    }

    fn kernel_drops(&mut self) -> u64 {
        self.inlets.iter_mut().map(|inlet| inlet.source.kernel_drops()).sum()
    }

    fn report(&mut self, config: &Config, refused: Option<&Refused>) -> PlantReport {
        self.write_note();
        let mut report = PlantReport::of(
            config,
            &mut self.sequencer,
            self.truncated,
            refused,
            self.inlets.iter_mut().map(|inlet| {
                let (receivers, pool) = inlet.source.end();
                (&inlet.channel, receivers, pool, inlet.recovery.as_ref())
            }),
        );
        report.sources = self.sources.as_ref().map(RunningSources::report);
        for (feed, inlet) in report.feeds.iter_mut().zip(&self.inlets) {
            feed.damage = inlet.file.as_ref().and_then(Recorded::damage).map(str::to_owned);
        }
        report
    }

    fn close(mut self) -> anyhow::Result<()> {
        self.write_note();
        drop(self.inlets);
        if let Some(sources) = self.sources {
            sources.end();
        }
        self.sequencer.into_publisher().close().context("cannot end the plant's ring")
    }
}

impl Inlet {
    fn open(feed: &Feed, number: u16, config: &Config) -> anyhow::Result<Self> {
        let receivers = feed
            .lines
            .iter()
            .map(|line| {
                let options = ReceiveOptions {
                    interface: line.interface.clone(),
                    source: line.source,
                    receive_buffer: feed.receive_buffer,
                    ..ReceiveOptions::new(line.address)
                };
                let receiver = Receiver::open(&options).map_err(|error| {
                    let hint = error.hint().unwrap_or_default();
                    let what =
                        format!("feed {}, line {}: cannot receive on {}", feed.name, line.name, line.address);
                    anyhow::Error::new(error).context(Hinted::new(what, hint))
                })?;
                if let Some(advice) = receiver.advice() {
                    anstream::eprintln!("warning: feed {}, line {}: {advice}", feed.name, line.name);
                }
                Ok(receiver)
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        let delay_ns = feed.reorder_time.as_nanos() as u64;
        let recovery =
            feed.recovery.as_ref().map(|recovery| Recovery::open(recovery, delay_ns)).transpose()?;
        let defaults = line::Settings::default();
        let arbitration = line::Settings {
            window_messages: feed.reorder_messages,
            window_bytes: match recovery {
                Some(_) => defaults.window_bytes.max(WAITING_BYTES * feed.reorder_messages),
                None => defaults.window_bytes,
            },
            window_age_ns: delay_ns,
            recovery_age_ns: feed.recovery.as_ref().map_or(0, |recovery| recovery.time.as_nanos() as u64),
            expire_on_packet: false,
            start: if feed.from_one { Start::FromOne } else { Start::First },
            restart: if feed.restart { defaults.restart } else { Restart::Ignore },
            ..defaults
        };
        let mut channel = Channel::new(ChannelSettings {
            number,
            lines: feed.lines.len(),
            stale_after_ns: feed.stale_after.as_nanos() as u64,
            midnight_before: feed.midnight_before,
            protocol: feed.protocol,
            midnight: feed.midnight,
            publish: config.publish,
            arbitration,
            books: book::Settings::default(),
        });
        channel.name_items(&feed.suffix);
        if let Some(symbols) = &feed.symbols {
            channel.choose_symbols(symbols.clone());
        }
        if feed.market_by_order {
            channel.publish_orders(book::Settings::default().max_orders);
        }
        let file = match &feed.file {
            Some(recording) => Some(Recorded::open(
                recording,
                feed.protocol,
                config.publish,
                feed.symbols.as_ref(),
                &mut channel,
            )?),
            None => None,
        };
        let source = match &config.receive {
            Receive::Thread(pool) if !receivers.is_empty() => {
                Source::thread(receivers, pool, config.spin, &feed.name)?
            }
            _ => Source::inline(receivers),
        };
        Ok(Self {
            name: feed.name.clone(),
            channel,
            source,
            file,
            recovery,
            told_late: None,
            has_said_no_place: false,
        })
    }
}

/// While a subscriber holds the ring full: says once a second who it is, and waits until it moves or we are to stop.
fn on_stall(ring: tapeline_ring::Name, stop: Stop) -> tapeline_plant::OnStall {
    let mut said = 0;
    Box::new(move |_, stalled| {
        if stalled.as_secs() > said {
            said = stalled.as_secs();
            let holders =
                tapeline_ring::inspect(&ring).map(|view| super::report::slowest(&view)).unwrap_or_default();
            anstream::eprintln!("warning: the ring {ring} has been full for {said} s: {holders}");
        } else if stalled.as_secs() < said {
            said = 0;
        }
        !stop.requested()
    })
}

fn eprintln_ready(
    config: &Config,
    hub: Option<&RunningHub>,
    publishers: Option<SocketAddr>,
    page: Option<SocketAddr>,
    zeromq: Option<&RunningZeromq>,
) {
    let lines: usize = config.feeds.iter().map(|feed| feed.lines.len()).sum();
    let files = config.feeds.iter().filter(|feed| feed.file.is_some()).count();
    anstream::eprintln!(
        "plant {} publishes to ring {}; {} feed(s) on {lines} line(s) and {files} file(s); Ctrl-C ends it",
        config.name,
        config.ring,
        config.feeds.len()
    );
    if let Some(hub) = hub {
        let most = hub.memory_bytes >> 20;
        anstream::eprintln!(
            "clients connect to {}; by its limits the hub takes {most} MiB at most",
            hub.address
        );
    }
    if let Some(address) = publishers {
        anstream::eprintln!("non-interactive providers connect to {address}");
    }
    if let Some(page) = page {
        anstream::eprintln!("the live page, metrics and health: http://{page}/, /metrics, /health");
    }
    if let Some(zeromq) = zeromq {
        anstream::eprintln!("subscribers of ZeroMQ connect to tcp://{}", zeromq.address);
    }
}

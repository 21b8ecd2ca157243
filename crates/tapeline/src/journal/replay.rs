//! `tapeline journal replay`: ticks onto a ring, then the live ticks; that ring served to clients
//! (`replay/service.rs`); or a feed's messages onto UDP (`replay/feed.rs`).

mod behind;
mod feed;
mod numbers;
mod service;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tapeline_console::{FilePath, Format, Hinted, LogArgs, Stop, arguments, log, output};
use tapeline_journal::{Directory, From, Next, Reader, Record};
use tapeline_measure::figures::thousands;
use tapeline_measure::{Clock, Nanos};
use tapeline_node::journal_follower::JournalFollower;
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Options, Publisher, Refused, Start, Subscriber, Wait};

use self::feed::ToFeed;
use self::service::Service;
use super::place::Place;
use super::{broken, hinted, warn_of_missing};
use crate::events;

/// How long to wait when no data is available.
const NAP: Duration = Duration::from_millis(1);
/// Ticks between two checks for an interrupt.
const LOOK_EVERY: u64 = 4_096;

#[derive(Debug, Args)]
#[command(
    after_help = "The ring has the plant's original ticks, so that `tapeline plant watch`, `plant measure` and your own programs \
    can read it. With --then, the replay continues with the plant's live ticks, without a gap or a duplicate.\n\n\
    With --serve, the [hub] of the configuration serves the ring on its port, as in a plant. Clients start with images of the state \
    before the start of the replay; to build them, the command reads the journal up to that start. At the end of the journal, \
    clients see the end of a plant.\n\n\
    With --to, the messages of a feed are sent in MoldUDP64 with the feed's own sequence numbers. The plant must have recorded them \
    (publish = \"every-message\").\n\nExamples:\n  \
    tapeline journal replay journal --onto yesterday --speed max --keep\n  \
    tapeline journal replay journal --from-sequence 1000001 --onto mine --then tapeline --speed max\n  \
    tapeline journal replay journal --serve plant.toml --from-time 2026-11-21T14:30:00Z --requests 1\n  \
    tapeline journal replay journal --to 239.255.12.111:26477 --speed 10"
)]
pub(crate) struct Replay {
    #[command(flatten)]
    place: Place,
    /// The ring to create and publish to; with --serve, the default is the configuration's ring
    #[arg(long, value_name = "RING", required_unless_present_any = ["to", "serve"])]
    onto: Option<Name>,
    /// Serve the ring to clients, with the [hub] of this plant configuration
    #[arg(long, value_name = "FILE")]
    serve: Option<FilePath>,
    /// Start when clients have requested this many items
    #[arg(long, value_name = "N", default_value = "0", requires = "serve")]
    requests: u64,
    #[command(flatten)]
    to_feed: ToFeed,
    /// Continue with live ticks of this ring, which must be the ring of the journal's plant
    #[arg(long, value_name = "RING")]
    then: Option<Name>,
    /// Replay speed: 1 is the original speed, 10 is ten times as fast, max is as fast as possible
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: Speed,
    /// Size of the ring
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = arguments::some_size)]
    ring_size: u64,
    /// Start when this many subscribers have joined
    #[arg(long, value_name = "N", default_value = "0")]
    subscribers: usize,
    /// Keep the ring at the end, for later subscribers
    #[arg(long)]
    keep: bool,
    /// Output format of the summary
    #[arg(long, default_value = "table")]
    format: Format,
    #[command(flatten)]
    log: LogArgs,
}

/// The speed as a multiple of the original; `None` without a pause.
#[derive(Clone, Copy, Debug)]
struct Speed(Option<f64>);

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed(None));
    }
    let factor = text.parse().ok().filter(|factor| (1e-6..=1e9).contains(factor));
    factor.map(|factor| Speed(Some(factor))).ok_or_else(|| "a number above 0, or max, is expected".to_owned())
}

#[derive(Debug, Default)]
struct Done {
    /// Ticks before the starting point, published for images.
    before: u64,
    history: u64,
    live: u64,
    missing: u64,
    /// The last tick that was published, is missing, or is before the starting point.
    last: Option<u64>,
    /// The user stopped it before the whole journal was published, or while it waited for the journal.
    is_interrupted: bool,
}

impl Done {
    /// The last tick that was published or is missing; `None` if there was none.
    fn last(&self) -> Option<u64> {
        self.last.filter(|_| self.before + self.history + self.live + self.missing > 0)
    }
}

/// The target of a replay, and its state.
struct Onto<'a> {
    ring: Publisher,
    service: Option<Service>,
    stop: &'a Stop,
    clock: Clock,
    speed: Speed,
    /// When the first tick was published: now, and originally.
    begun: Option<(Nanos, Nanos)>,
    /// Ticks before this time are skipped, until the first one that is not before it.
    earliest: Nanos,
    /// A copy of a live tick: the live ring may overwrite the original while the target ring has no capacity.
    copy: Vec<u8>,
    done: Done,
}

impl Replay {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        self.log.begin("replay")?;
        let stop = Stop::on_signals()?;
        let mut reader = self.place.open()?;
        if let Some(to) = self.to_feed.to {
            return self.to_feed.run(to, &mut reader, self.speed, stop, self.format);
        }
        let service = self.serve.as_deref().map(Service::open).transpose()?;
        let of_service = service.as_ref().map(|service| service.config.ring.clone());
        let name = self.onto.clone().or(of_service).context("--onto names the ring to publish to")?;
        if let Some(live) = &self.then {
            // Report a wrong ring at once, not after a day's ticks.
            let what = "name different rings with --onto and --then";
            anyhow::ensure!(*live != name, Hinted::new(format!("{live} would be read and written"), what));
            tapeline_ring::inspect(live).with_context(|| no_plant(live))?;
        }
        let capacity = usize::try_from(self.ring_size).unwrap_or(usize::MAX);
        let options = Options { capacity, keep: self.keep, wake_on_commit: false, ..Options::default() };
        let mut ring = Publisher::open(&name, &options).map_err(|error| {
            let another = self.onto.is_none().then(|| "--onto overrides the configuration's ring".to_owned());
            let hint = error.hint().into_iter().chain(another).collect::<Vec<_>>().join("; ");
            anyhow::Error::new(error).context(Hinted::new("cannot make the ring", hint))
        })?;
        let service = service.map(|service| service.join(&name, &mut ring)).transpose()?;
        let mut onto = Onto {
            ring,
            service,
            stop: &stop,
            clock: Clock::calibrate(),
            speed: self.speed,
            begun: None,
            earliest: self.place.from_time.unwrap_or_default(),
            copy: Vec::new(),
            done: Done::default(),
        };
        let outcome = self.play(&name, &mut reader, &mut onto);
        let Onto { ring, service, done, .. } = onto;
        ring.close()?;
        // Wait until the hub's clients have received their queued messages.
        let hub = service.map(Service::end).transpose()?;
        if self.format == Format::Json {
            let mut report = json!({
                "history": done.history, "live": done.live, "missing": done.missing, "last": done.last(),
                "interrupted": done.is_interrupted,
            });
            if let Some(hub) = &hub {
                report["before"] = json!(done.before);
                report["hub"] = json!(hub);
            }
            output::print_json_line(&report)?;
        } else {
            let [history, live, missing] = [done.history, done.live, done.missing].map(thousands);
            let end = if done.is_interrupted { " (interrupted)" } else { "" };
            output::print(&format!(
                "{history} ticks of the journal and {live} live ones published to {name}, {missing} missing{end}"
            ))?;
            hub.map_or(Ok(()), |hub| output::print(&hub.to_string()))?;
        }
        outcome.map(|()| match (done.is_interrupted, done.missing) {
            (true, _) => ExitCode::from(130),
            (false, 0) => ExitCode::SUCCESS,
            (false, _) => ExitCode::from(3),
        })
    }

    /// Publishes everything that is to be published.
    fn play(&self, name: &Name, reader: &mut Reader<Directory>, onto: &mut Onto<'_>) -> anyhow::Result<()> {
        if onto.service.is_some() {
            onto.before(reader, self.place.from())?;
        }
        if let Some(service) = &mut onto.service {
            service.let_in();
            service.say_ready(name, onto.done.before, self.format)?;
            while service.hub.requests() < self.requests && !service.hub.has_ended() && onto.stop.sleep(NAP) {
            }
        }
        while onto.ring.subscribers() < self.subscribers && onto.stop.sleep(NAP) {}
        onto.history(reader)?;
        let Some(ring) = &self.then else {
            if onto.done.last.is_none() && !onto.done.is_interrupted {
                log::note(format_args!(
                    "the journal has nothing from there on; it ends at tick {}",
                    reader.passed()
                ));
            }
            return Ok(());
        };
        if onto.done.last.is_none() {
            // The journal has no wanted tick so far: the live ticks may begin before that place.
            onto.done.last = Some(match self.place.from() {
                From::Seq(seq) => seq.saturating_sub(1),
                From::Oldest | From::Time(_) => reader.passed(),
            });
        }
        onto.live(reader, ring)
    }
}

impl Onto<'_> {
    /// Publishes the journal up to the starting point: clients do not see these ticks, but their images contain
    /// them.
    fn before(&mut self, reader: &mut Reader<Directory>, from: From) -> anyhow::Result<()> {
        let broken = |error| hinted("the journal cannot be read up to the start of the replay", error);
        let first = match reader.next().map_err(broken)? {
            Next::Record(record) => record.seq,
            Next::Missing { to, .. } => to + 1,
            Next::End => u64::MAX,
        };
        reader.seek(From::Oldest).map_err(broken)?;
        while self.goes_on()? {
            match reader.next().map_err(broken)? {
                Next::Record(record) => {
                    if self.done.last.is_none() && record.seq > 1 {
                        log::warning(format_args!(
                            "the journal begins with tick {}: an item with an earlier image has no image until its next one",
                            thousands(record.seq)
                        ));
                    }
                    if record.seq >= first {
                        break;
                    }
                    self.publish(record.body)?;
                    self.done.before += 1;
                    self.done.last = Some(record.seq);
                }
                // Clients notice the gap by the sequence.
                Next::Missing { .. } => {}
                Next::End => break,
            }
        }
        self.ring.flush();
        reader.seek(from).map_err(broken)
    }

    /// Whether to continue.
    ///
    /// # Errors
    /// The hub has ended: its report states the reason.
    fn goes_on(&self) -> anyhow::Result<bool> {
        let is_over = self.service.as_ref().is_some_and(|service| service.hub.has_ended());
        anyhow::ensure!(!is_over, "the hub has ended early");
        Ok(!self.stop.requested())
    }

    fn history(&mut self, reader: &mut Reader<Directory>) -> anyhow::Result<()> {
        loop {
            if !self.goes_on()? {
                self.done.is_interrupted = true;
                break;
            }
            match reader.next().map_err(broken)? {
                Next::Record(record) => self.record(&record)?,
                Next::Missing { from, to } => self.miss(from, to),
                Next::End => {
                    reader.ending().map_err(broken)?;
                    break;
                }
            }
        }
        self.ring.flush();
        Ok(())
    }

    /// Publishes a tick of the journal when it is due.
    fn record(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        if self.is_early(record.time) {
            self.done.last = Some(record.seq);
            return Ok(());
        }
        self.pause(record.time);
        if self.publish(record.body)? {
            self.done.history += 1;
            self.done.last = Some(record.seq);
        }
        Ok(())
    }

    /// Reports ticks that neither the journal nor the ring has.
    fn miss(&mut self, from: u64, to: u64) {
        self.done.missing += warn_of_missing(from, to);
        self.done.last = Some(to);
    }

    /// Continues with a ring after the last tick; ticks that the ring no longer has are in the journal.
    fn live(&mut self, reader: &mut Reader<Directory>, ring: &Name) -> anyhow::Result<()> {
        self.speed = Speed(None);
        let mut live = Subscriber::join(ring, Start::Oldest).with_context(|| no_plant(ring))?;
        let mut beside = JournalFollower::of(ring.clone(), "replay", &events::printed());
        let (mut is_alive, mut is_known) = (true, false);
        while self.goes_on()? {
            let epoch = live.epoch();
            match live.next() {
                // From a killed plant: its ticks in the journal are published already, and other ticks now have the
                // numbers of the rest.
                tapeline_ring::Poll::Frame(frame) if frame.epoch() < epoch => {}
                tapeline_ring::Poll::Frame(frame) => {
                    self.copy.clear();
                    self.copy.extend_from_slice(frame.bytes());
                    let copy = std::mem::take(&mut self.copy);
                    if !std::mem::replace(&mut is_known, true) {
                        self.know(reader, ring, &copy)?;
                    }
                    self.live_tick(&copy, reader, &mut live, &mut beside)?;
                    self.copy = copy;
                }
                tapeline_ring::Poll::Ended => break,
                tapeline_ring::Poll::Empty => {
                    self.ring.flush();
                    anyhow::ensure!(is_alive, "the plant has died");
                    live.wait(Wait::Park, Duration::from_millis(20));
                    // A publisher that ends the ring also releases it: one more poll distinguishes that from death.
                    is_alive = live.publisher_alive()?;
                }
                // The lost ticks are in the journal, or will be.
                tapeline_ring::Poll::Evicted { .. } => match Subscriber::join(ring, Start::Oldest) {
                    Ok(again) => {
                        beside = JournalFollower::of(ring.clone(), "replay", &events::printed());
                        live = again;
                    }
                    // The plant has removed the ring meanwhile.
                    Err(tapeline_ring::Error::NotFound { .. }) => {
                        self.go_behind(reader)?;
                        self.catch_up(reader, &mut live, &mut beside)?;
                        break;
                    }
                    Err(error) => return Err(error.into()),
                },
                _ => anyhow::bail!("the ring {ring} is damaged"),
            }
        }
        Ok(())
    }

    /// Publishes a live tick after all ticks before it.
    fn live_tick(
        &mut self,
        bytes: &[u8],
        reader: &mut Reader<Directory>,
        live: &mut Subscriber,
        beside: &mut JournalFollower,
    ) -> anyhow::Result<()> {
        let header = tick_of(bytes)?.header;
        let (seq, last) = (header.seq.0, self.done.last.unwrap_or_default());
        if seq <= last {
            return Ok(());
        }
        if seq > last + 1 && !self.fill(reader, seq - 1)? {
            // The journal has this tick too, or will have it.
            beside.take(seq);
            return self.catch_up(reader, live, beside);
        }
        if self.is_early(header.sequenced) {
            self.done.last = Some(seq);
        } else if self.publish(bytes)? {
            self.done.live += 1;
            self.done.last = Some(seq);
        }
        Ok(())
    }

    /// Whether a tick with this time is before the starting point.
    fn is_early(&mut self, time: Nanos) -> bool {
        let is_early = time < self.earliest;
        if !is_early {
            self.earliest = Nanos(0);
        }
        is_early
    }

    /// Checks that the first tick of a ring equals the journal's tick of the same number.
    ///
    /// # Errors
    /// The ticks differ: the journal belongs to another plant.
    fn know(&self, reader: &mut Reader<Directory>, ring: &Name, bytes: &[u8]) -> anyhow::Result<()> {
        let seq = tick_of(bytes)?.header.seq.0;
        reader.seek(From::Seq(seq)).map_err(broken)?;
        let is_other = matches!(
            reader.next().map_err(broken)?,
            Next::Record(record) if record.seq == seq && record.body != bytes
        );
        let what = || format!("tick {seq} of the ring {ring} differs from the journal's");
        anyhow::ensure!(
            !is_other,
            Hinted::new(what(), "name the ring of the journal's own plant with --then")
        );
        self.go_behind(reader)
    }

    /// Moves the journal's reader to the tick after the last one.
    fn go_behind(&self, reader: &mut Reader<Directory>) -> anyhow::Result<()> {
        self.done.last.map_or(Ok(()), |last| reader.seek(From::Seq(last + 1)).map_err(broken))
    }

    /// Waits until a tick with this time is due.
    fn pause(&mut self, time: Nanos) {
        let Speed(Some(factor)) = self.speed else { return };
        let now = self.clock.now();
        let (begun, first) = *self.begun.get_or_insert((now, time));
        let due = time.since(first).max(0) as f64 / factor;
        let left = due - now.since(begun) as f64;
        if left >= 1_000.0 {
            self.ring.flush();
            self.stop.sleep(Duration::from_nanos(left as u64));
        }
    }

    /// Publishes a tick when the ring has capacity; `false` if the user stops it before.
    fn publish(&mut self, tick: &[u8]) -> anyhow::Result<bool> {
        let Done { before, history, live, .. } = self.done;
        if (before + history + live).is_multiple_of(LOOK_EVERY) {
            self.ring.flush();
        }
        let tick = match &mut self.service {
            Some(service) => service.tick(tick)?,
            None => tick,
        };
        loop {
            match self.ring.publish(tick) {
                Ok(_) => return Ok(true),
                Err(Refused::TooLong) => {
                    let what = format!("a tick of {} bytes is too long for the ring", tick.len());
                    return Err(
                        Hinted::new(what, "raise --ring-size: a tick can take a quarter of it").into()
                    );
                }
                Err(Refused::Full) if self.stop.requested() => return Ok(false),
                Err(Refused::Full) => {
                    self.ring.flush();
                    std::thread::yield_now();
                }
            }
        }
    }
}

fn no_plant(ring: &Name) -> Hinted {
    Hinted::new(format!("cannot join the ring {ring}"), "is its plant running?")
}

fn tick_of(bytes: &[u8]) -> anyhow::Result<Tick<'_>> {
    Tick::parse(bytes).context("the ring holds something that is not a tick")
}

//! The thread that keeps a plant's lease.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tapeline_journal::{Directory, From, Next, Reader};
use tapeline_measure::{Nanos, boot_time, utc_now};
use tapeline_plant::Seq;
use tapeline_plant::bridge::lease::{
    JournalEnd, LEASE_BYTES, LeaseAnswer, LeaseHolder, LeaseOutcome, LeaseSettings, LeaseStanding, Outlook,
};
use tapeline_plant::bridge::{BridgeSession, Epoch, PlantId};
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

use super::{LeaseConfig, LeaseState, Term};
use crate::config::Config;
use crate::error::Context;
use crate::events::Events;
use crate::readers::bridge::epochs::Epochs;
use crate::stat::snapshot::LeaseSnapshot;
use crate::{Error, Result, Stop};

/// The longest sleep of the thread: so long may the end of the plant wait.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// How long a lease that is given back is offered to witnesses that do not answer.
const FAREWELL_NS: i64 = 500_000_000;
const ANSWERS: usize = 32;
/// A plant whose own thread has not come for so long hangs: another one is to number.
const HANGS_NS: i64 = 5_000_000_000;

/// A lease with its thread, which is kept from one change of the plant's part to the next. Dropped, it gives the lease back.
#[derive(Debug)]
pub struct RunningLease {
    state: Arc<LeaseState>,
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Control {
    ends: AtomicBool,
    /// The lease is to be given back now.
    gives_back: AtomicBool,
    /// It is known whether the plant leads or follows at first.
    is_decided: AtomicBool,
}

impl RunningLease {
    /// Starts the thread. `folder` is that of the plant's journal.
    ///
    /// # Errors
    /// The socket cannot be opened, or the journal cannot be read.
    pub fn start(config: &LeaseConfig, plant: PlantId, folder: &Path, events: &Events) -> Result<Self> {
        let is_local = config.witnesses.iter().all(|witness| witness.ip().is_loopback());
        let own = if is_local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let options =
            ReceiveOptions { receive_buffer: 64 << 10, ..ReceiveOptions::new(SocketAddrV4::new(own, 0)) };
        let socket = UdpReceiver::open(&options).context("cannot open a socket for the lease")?;
        let duration_ns = config.time.as_nanos() as u64;
        let settings = LeaseSettings {
            plant,
            holder: config.holder,
            incarnation: utc_now().0 ^ u64::from(std::process::id()).rotate_right(16),
            witnesses: config.witnesses.len(),
            duration_ns,
            margin_ns: LeaseSettings::usual_margin_ns(duration_ns),
            takes: config.takes,
        };
        let (state, control) = (Arc::<LeaseState>::default(), Arc::<Control>::default());
        let mut keeping = Keeping {
            holder: LeaseHolder::new(settings, boot_time()),
            settings,
            witnesses: config.witnesses.clone(),
            socket,
            batch: Batch::new(ANSWERS, LEASE_BYTES + 1),
            folder: folder.to_owned(),
            journal_ends: last_of(folder)?,
            outlook: (Outlook::default(), Nanos(0)),
            state: Arc::clone(&state),
            control: Arc::clone(&control),
            is_decided: false,
            snapshot: LeaseSnapshot {
                holder: config.holder.to_string(),
                witnesses: config.witnesses.len(),
                ..LeaseSnapshot::default()
            },
            said: Said::default(),
            events: events.clone(),
        };
        // Before the first request: a journal whose epochs cannot be read must not lead.
        keeping.look_at_journal(boot_time())?;
        let run = move || keeping.run();
        let thread = std::thread::Builder::new().name("lease".to_owned()).spawn(run);
        let thread = Some(thread.context("cannot start the thread of the lease")?);
        Ok(Self { state, control, thread })
    }

    /// Waits until the lease is held, or the witnesses have refused it, or have not answered for the time of two leases.
    pub fn wait(&self, stop: &Stop) {
        while !self.control.is_decided.load(Ordering::Acquire) && !stop.is_requested() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Makes a configuration that of the plant's present part: a leader has its feeds and its bridge, a standby only the plant above.
    pub fn assign(&self, config: &mut Config) {
        // Until its thread runs.
        self.state.turned.store(0, Ordering::Relaxed);
        let term = Term { state: Arc::clone(&self.state), leads: self.state.held() };
        if term.leads.is_some() {
            config.upstream = None;
            if let Some(bridge) = &mut config.bridge {
                bridge.term = Some(term.clone());
            }
        } else {
            if let Some(upstream) = &mut config.upstream {
                upstream.passes_over_older = true;
            }
            config.feeds.clear();
            (config.nbbo, config.bridge) = (None, None);
        }
        config.term = Some(term);
    }

    /// Gives the lease back, if it is held: the plant no longer numbers.
    pub fn give_back(&self) {
        self.control.gives_back.store(true, Ordering::Release);
    }
}

impl Drop for RunningLease {
    fn drop(&mut self) {
        self.control.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The last sequence of a journal; 0 if there is none.
fn last_of(folder: &Path) -> Result<u64> {
    if !folder.exists() {
        return Ok(0);
    }
    let failed = |error| Error::of_journal(format!("cannot read the journal in {}", folder.display()), error);
    let mut journal = Directory::open(folder).and_then(Reader::open).map_err(failed)?;
    journal.seek(From::Seq(u64::MAX)).map_err(failed)?;
    while !matches!(journal.next().map_err(failed)?, Next::End) {}
    Ok(journal.passed())
}

/// What was told last, so that it is told once.
#[derive(Debug, Default)]
struct Said {
    leads: Option<Epoch>,
    other: Option<String>,
    problem: Option<String>,
    /// Since when there is another problem, or none.
    since: Option<(Option<String>, Nanos)>,
}

struct Keeping {
    holder: LeaseHolder,
    settings: LeaseSettings,
    witnesses: Vec<SocketAddrV4>,
    socket: UdpReceiver,
    batch: Batch,
    folder: PathBuf,
    /// The journal's end as of the start, until the plant has opened it.
    journal_ends: u64,
    /// What this plant has, and when that was looked at.
    outlook: (Outlook, Nanos),
    state: Arc<LeaseState>,
    control: Arc<Control>,
    is_decided: bool,
    snapshot: LeaseSnapshot,
    said: Said,
    events: Events,
}

impl Keeping {
    fn run(&mut self) {
        let mut ending: Option<Nanos> = None;
        loop {
            let now = boot_time();
            self.take_answers(now);
            if self.control.ends.load(Ordering::Acquire) && ending.is_none() {
                ending = Some(now);
                self.holder.release(now);
            }
            if self.control.gives_back.swap(false, Ordering::AcqRel) {
                self.holder.release(now);
            }
            if ending.is_some_and(|since| !self.holder.is_releasing() || now.since(since) >= FAREWELL_NS) {
                self.publish(boot_time());
                return;
            }
            // Four times in the time between two requests.
            if now.since(self.outlook.1) >= self.settings.duration_ns as i64 / 12
                && let Err(error) = self.look_at_journal(now)
            {
                self.problem(Some(format!("{error:#}")), now);
            }
            // A request that cannot be sent is treated as lost.
            while !self.hangs(now)
                && let Some((witness, request)) = self.holder.poll(&self.outlook.0, boot_time())
            {
                let _ = self.socket.send_to(&request.encode(), self.witnesses[witness]);
            }
            let now = boot_time();
            self.publish(now);
            self.tell(now);
            let due = self.holder.next_due().since(now).max(0).unsigned_abs();
            self.socket.wait(Duration::from_nanos(due).min(LONGEST_SLEEP));
        }
    }

    fn take_answers(&mut self, now: Nanos) {
        // A socket that fails is silent, as a witness is that does not run.
        let count = self.socket.receive(&mut self.batch).unwrap_or(0);
        for datagram in self.batch.iter().take(count) {
            let Some(at) = self.witnesses.iter().position(|it| *it == datagram.source) else { continue };
            if let Some(answer) = LeaseAnswer::decode(datagram.bytes) {
                self.holder.answer(at, &answer, now);
            }
        }
    }

    /// Whether the thread that numbers has not come for so long that the lease is left to end.
    fn hangs(&self, now: Nanos) -> bool {
        let turned = Nanos(self.state.turned.load(Ordering::Relaxed));
        turned > Nanos(0) && now.since(turned) >= HANGS_NS
    }

    /// Looks how far the journal reaches, and in which epoch.
    fn look_at_journal(&mut self, now: Nanos) -> Result<()> {
        let progress = self.state.journal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(progress) = progress {
            self.journal_ends = progress.written_up_to();
        }
        let epochs = Epochs::of(Some(&self.folder))?;
        let last = Seq(self.journal_ends);
        let epoch = epochs.of_tick(last).map_or(Epoch(0), |session| session.epoch);
        let position = JournalEnd { epoch, last };
        self.outlook = (Outlook { position, next_epoch: epochs.later(Epoch::at(utc_now())) }, now);
        Ok(())
    }

    /// Tells the plant's threads whether the lease is held.
    fn publish(&mut self, now: Nanos) {
        match self.holder.standing(now) {
            LeaseStanding::Leader(epoch, until) => {
                if self.state.epoch.load(Ordering::Relaxed) != epoch.0 {
                    // Never the end of one lease with the epoch of another.
                    self.state.until.store(0, Ordering::Release);
                    self.state.epoch.store(epoch.0, Ordering::Release);
                }
                self.state.until.store(until.0, Ordering::Release);
            }
            _ => self.state.until.store(0, Ordering::Release),
        }
        if self.holder.is_decided(now) {
            self.is_decided = true;
            self.control.is_decided.store(true, Ordering::Release);
        }
    }

    fn session(&self, epoch: Epoch) -> BridgeSession {
        BridgeSession { plant: self.settings.plant, epoch }
    }

    /// Tells changes, and writes the figures.
    fn tell(&mut self, now: Nanos) {
        let (plant, own) = (self.settings.plant, self.settings.holder);
        let leads = match self.holder.standing(now) {
            LeaseStanding::Leader(epoch, _) => Some(epoch),
            _ => None,
        };
        let answers: Vec<Option<LeaseAnswer>> = self.holder.heard(now).map(Option::<&_>::copied).collect();
        let heard = answers.iter().flatten();
        // The latest epoch that a witness says to be held.
        let held = heard.clone().filter(|answer| answer.outcome == LeaseOutcome::Held);
        let other = held.max_by_key(|answer| answer.epoch).filter(|_| leads.is_none());
        if leads != self.said.leads {
            self.snapshot.changes += 1;
            match leads {
                Some(epoch) => self.events.note(format_args!(
                    "lease: this plant, {own}, leads plant {plant} from now on, as session {}",
                    self.session(epoch)
                )),
                None => self
                    .events
                    .warning(format_args!("lease: this plant, {own}, no longer leads plant {plant}")),
            }
            self.said.leads = leads;
            self.said.other = None;
        }
        let named = other.map(|answer| answer.holder.to_string());
        if named.is_some() && named != self.said.other {
            if let Some(answer) = other {
                self.events.info(format_args!(
                    "lease: {} leads plant {plant}, as session {}; this plant, {own}, follows",
                    answer.holder,
                    self.session(answer.epoch)
                ));
            }
            self.said.other = named.clone();
        }
        let silent = answers.iter().filter(|answer| answer.is_none()).count();
        let latest = heard.clone().map(|answer| answer.epoch).max().unwrap_or_default();
        self.snapshot.silent = if self.is_decided { silent } else { 0 };
        self.snapshot.leader = if leads.is_some() { own.to_string() } else { named.unwrap_or_default() };
        self.snapshot.epoch = leads.unwrap_or(latest).0;
        self.snapshot.session = if self.snapshot.epoch > 0 {
            self.session(Epoch(self.snapshot.epoch)).to_string()
        } else {
            String::new()
        };
        if self.is_decided {
            let hangs = "the plant's own thread has not come for 5 s: it hangs, or waits for a reader of the ring; the lease is not renewed";
            let problem = if self.hangs(now) {
                Some(hangs.to_owned())
            } else {
                self.what_is_wrong(&answers, leads.is_some())
            };
            self.problem(problem, now);
        }
        *self.state.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = self.snapshot.clone();
    }

    /// What an operator should know, if there is something: why nobody leads before that a witness is silent.
    fn what_is_wrong(&self, answers: &[Option<LeaseAnswer>], leads: bool) -> Option<String> {
        let majority = answers.len() / 2 + 1;
        let with =
            |wanted: LeaseOutcome| answers.iter().flatten().filter(move |answer| answer.outcome == wanted);
        let silent: Vec<_> = answers.iter().zip(&self.witnesses).filter(|(it, _)| it.is_none()).collect();
        let unanswered = || {
            let which = silent.iter().map(|(_, at)| at.to_string()).collect::<Vec<_>>().join(", ");
            let verb = if silent.len() == 1 { "does" } else { "do" };
            format!("{} of {} witnesses {verb} not answer: {which}", silent.len(), answers.len())
        };
        if answers.len() - silent.len() < majority {
            return Some(unanswered());
        }
        if with(LeaseOutcome::Held).any(|it| it.holder == self.settings.holder && !leads) {
            return Some(format!(
                "another plant, or this one before it was started again, holds the lease under the name {}",
                self.settings.holder
            ));
        }
        if with(LeaseOutcome::Behind).count() >= majority
            && let Some(answer) = with(LeaseOutcome::Behind).max_by_key(|answer| answer.position)
        {
            let ours = self.outlook.0.position;
            return Some(format!(
                "this plant's journal ends with tick {} of epoch {}, and {} had tick {} of epoch {}: it waits for {}; --take-lease goes on without \
                 those ticks",
                ours.last.0,
                ours.epoch.0,
                answer.holder,
                answer.position.last.0,
                answer.position.epoch.0,
                answer.holder
            ));
        }
        [
            (LeaseOutcome::InvalidDuration, "grant no lease of this duration"),
            (LeaseOutcome::Full, "know as many plants as they may"),
            (LeaseOutcome::Failed, "cannot write their files"),
        ]
        .into_iter()
        .find(|(outcome, _)| with(*outcome).count() >= majority)
        .map(|(_, what)| format!("the witnesses {what}"))
        // The others suffice.
        .or_else(|| (!silent.is_empty()).then(unanswered))
    }

    /// Tells a problem once it has lasted for the time of a lease, and that it is over: a plant that stood still has heard nobody for a while.
    fn problem(&mut self, problem: Option<String>, now: Nanos) {
        if problem == self.said.problem {
            self.said.since = None;
            return;
        }
        match &self.said.since {
            Some((before, since)) if *before == problem => {
                if now.since(*since) < self.settings.duration_ns as i64 {
                    return;
                }
            }
            _ => {
                self.said.since = Some((problem, now));
                return;
            }
        }
        self.snapshot.problem = problem.clone().unwrap_or_default();
        match &problem {
            Some(problem) => self.events.warning(format_args!("lease: {problem}")),
            None => {
                let before = self.said.problem.as_deref().unwrap_or_default();
                self.events.note(format_args!("lease: no longer so: {before}"));
            }
        }
        self.said.problem = problem;
    }
}

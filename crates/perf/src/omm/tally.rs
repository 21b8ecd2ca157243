//! What a thread counts and times, and hands to the main thread at each interval.

use tapeline_measure::{Lateness, Nanos, Recorder, monotonic_ns};
use tapeline_omm::rwf::{Domain, MessageClass, MessageView, flags};

use super::bursts::Served;
use super::stamp::Stamp;

/// What a thread did since it last handed a tally over. Each tool counts what it does, and leaves the others at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Requests that a consumer sent, or a provider received.
    pub(super) requests: u64,
    /// Images in open/ok state that a consumer received, or that were sent.
    pub(super) images: u64,
    /// Images whose data was suspect: they do not count towards the steady state.
    pub(super) suspect_images: u64,
    /// Statuses of items: closed, or in doubt.
    pub(super) statuses: u64,
    /// Updates that were received or sent.
    pub(super) updates: u64,
    /// Of those that were sent, those with a time.
    pub(super) stamped_updates: u64,
    /// Updates of servers that stand by: they are not among the others.
    pub(super) standby_updates: u64,
    /// Posts that a consumer sent, or a provider received.
    pub(super) posts: u64,
    /// Of those that were sent, those with a time.
    pub(super) stamped_posts: u64,
    /// Posts that a provider sent back as updates, or that came back to the consumer.
    pub(super) reflected_posts: u64,
    /// Posts that found no place among those that wait to go back.
    pub(super) dropped_posts: u64,
    /// Generic messages that were sent.
    pub(super) generics_sent: u64,
    /// Of these, those with a time.
    pub(super) stamped_generics: u64,
    /// Generic messages that were received.
    pub(super) generics_received: u64,
    /// Messages that could not be read.
    pub(super) malformed: u64,
    /// Slices in which the connection took nothing more: what was due then went in a later one.
    pub(super) held_back: u64,
    /// Messages without a meaning that were due, sent or not.
    pub(super) messages_due: u64,
    /// Those that were sent. What is received of them are updates.
    pub(super) messages_sent: u64,
    /// Of those that were sent, those with a time.
    pub(super) stamped_messages: u64,
    /// Bytes of them, without what the transport adds or compression saves.
    pub(super) bytes_sent: u64,
    /// Bytes of those that were received, counted alike.
    pub(super) bytes_received: u64,
    /// Messages that are missing, by the numbers of those that came after them.
    pub(super) lost: u64,
    /// Messages whose number had passed already.
    pub(super) out_of_order: u64,
    /// Messages that were given to a connection and did not go out in the end: none of them is among those that were sent.
    pub(super) unsent: u64,
}

impl Counts {
    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        let Self {
            requests,
            images,
            suspect_images,
            statuses,
            updates,
            stamped_updates,
            standby_updates,
            posts,
            stamped_posts,
            reflected_posts,
            dropped_posts,
            generics_sent,
            stamped_generics,
            generics_received,
            malformed,
            held_back,
            messages_due,
            messages_sent,
            stamped_messages,
            bytes_sent,
            bytes_received,
            lost,
            out_of_order,
            unsent,
        } = other;
        self.requests += requests;
        self.images += images;
        self.suspect_images += suspect_images;
        self.statuses += statuses;
        self.updates += updates;
        self.stamped_updates += stamped_updates;
        self.standby_updates += standby_updates;
        self.posts += posts;
        self.stamped_posts += stamped_posts;
        self.reflected_posts += reflected_posts;
        self.dropped_posts += dropped_posts;
        self.generics_sent += generics_sent;
        self.stamped_generics += stamped_generics;
        self.generics_received += generics_received;
        self.malformed += malformed;
        self.held_back += held_back;
        self.messages_due += messages_due;
        self.messages_sent += messages_sent;
        self.stamped_messages += stamped_messages;
        self.bytes_sent += bytes_sent;
        self.bytes_received += bytes_received;
        // By numbers that a peer made up, if it likes.
        self.lost = self.lost.saturating_add(*lost);
        self.out_of_order += out_of_order;
        self.unsent += unsent;
    }

    /// Takes off what was counted as sent and did not go out.
    pub(super) fn take_off(&mut self, unsent: &Self) {
        for (sent, unsent) in [
            (&mut self.images, unsent.images),
            (&mut self.updates, unsent.updates),
            (&mut self.posts, unsent.posts),
            (&mut self.reflected_posts, unsent.reflected_posts),
            (&mut self.generics_sent, unsent.generics_sent),
            (&mut self.messages_sent, unsent.messages_sent),
        ] {
            let unsent = unsent.min(*sent);
            *sent -= unsent;
            self.unsent += unsent;
        }
        self.bytes_sent = self.bytes_sent.saturating_sub(unsent.bytes_sent);
        // Which of them carried a time is not looked at: no more than there are.
        self.stamped_updates = self.stamped_updates.min(self.updates);
        self.stamped_posts = self.stamped_posts.min(self.posts);
        self.stamped_generics = self.stamped_generics.min(self.generics_sent);
        self.stamped_messages = self.stamped_messages.min(self.messages_sent);
    }
}

/// What a time is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An update of an item: `Upd` in the latency file.
    Update,
    /// A post that came back as an update: `Pst`.
    Post,
    /// A generic message: `Gen`.
    Generic,
}

/// One message that carried times, all on CLOCK_MONOTONIC in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timed {
    pub(super) kind: Kind,
    /// When its encoding began.
    pub(super) sent: u64,
    /// When it was due, if it says so.
    pub(super) due: Option<u64>,
    /// When it was decoded.
    pub(super) received: u64,
}

/// The times of one kind of message.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// From the start of encoding to decoded: what the guide calls latency.
    pub(super) service: Recorder,
    /// From when it was due: of messages that say so.
    pub(super) response: Recorder,
    /// Sums of the service times in nanoseconds and of their squares, for mean and standard deviation.
    pub(super) sum: f64,
    pub(super) sum_of_squares: f64,
}

impl Times {
    /// Adds one.
    pub(super) fn record(&mut self, timed: &Timed) {
        let since = |time: u64| timed.received.wrapping_sub(time).cast_signed();
        let service = since(timed.sent);
        self.service.record(service);
        self.sum += service as f64;
        self.sum_of_squares += service as f64 * service as f64;
        if let Some(due) = timed.due {
            self.response.record(since(due));
        }
    }

    /// Adds another's.
    pub(super) fn merge(&mut self, other: &Self) {
        // Most kinds of message are not timed in most runs: a whole distribution is not added for nothing.
        if other.is_empty() {
            return;
        }
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    /// Forgets everything, and keeps its memory.
    pub(super) fn clear(&mut self) {
        if !self.is_empty() {
            self.service.clear();
            self.response.clear();
            self.sum = 0.0;
            self.sum_of_squares = 0.0;
        }
    }

    fn is_empty(&self) -> bool {
        self.service.samples() + self.service.negatives() == 0
    }
}

/// How late senders were, and whether that, or the way of their messages, grew longer and longer.
#[derive(Clone, Debug)]
pub(super) struct Trends {
    terms: Terms,
    /// Start of encoding less due, of messages that say so; begun less due, of this thread's own slices.
    pub(super) sender: Lateness,
    /// Decoded less start of encoding.
    pub(super) system: Lateness,
    /// Messages and slices that were begun later than by a whole slice.
    pub(super) late: u64,
}

impl Trends {
    /// Nothing yet.
    pub(super) fn new(terms: Terms) -> Self {
        let lateness = || Lateness::new(terms.start);
        Self { terms, sender: lateness(), system: lateness(), late: 0 }
    }

    fn record(&mut self, timed: &Timed) {
        let at = Nanos(timed.received);
        self.system.record(at, timed.received.wrapping_sub(timed.sent).cast_signed());
        if let Some(due) = timed.due {
            self.begun(at, timed.sent.wrapping_sub(due).cast_signed());
        }
    }

    fn begun(&mut self, at: Nanos, late_ns: i64) {
        self.sender.record(at, late_ns);
        self.late += u64::from(late_ns > self.terms.slice_ns);
    }

    /// Adds another's, of the same run.
    pub(super) fn merge(&mut self, other: &Self) {
        self.sender.merge(&other.sender);
        self.system.merge(&other.system);
        self.late += other.late;
    }
}

/// What is the same in all tallies of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Whether every single time is kept, for the latency file.
    pub(super) keeps: bool,
    /// When the run began, on CLOCK_MONOTONIC.
    pub(super) start: Nanos,
    /// A slice of time, in nanoseconds.
    pub(super) slice_ns: i64,
}

impl Default for Terms {
    /// A run that begins now, in slices of a millisecond.
    fn default() -> Self {
        Self { keeps: false, start: Nanos(monotonic_ns()), slice_ns: 1_000_000 }
    }
}

/// Where a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Until every item has its image.
    #[default]
    Startup,
    /// From then on. A provider is always in this one.
    Steady,
}

/// Times kept one by one for an interval, at most; more are counted.
pub(super) const MOST_KEPT: usize = 1 << 20;

/// What one thread did in one interval of one phase.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) phase: Phase,
    /// Whether the main thread asked for it: it also comes at a change of phase, and in the end.
    pub(super) asked: bool,
    pub(super) counts: Counts,
    /// What was counted as sent, in this tally or in one before it, and did not go out in the end.
    pub(super) unsent: Counts,
    pub(super) updates: Times,
    pub(super) posts: Times,
    pub(super) generics: Times,
    /// Every timed message in order, for the latency file; `None` without one.
    pub(super) kept: Option<Vec<Timed>>,
    /// Those that found no place in `kept`.
    pub(super) unkept: u64,
    /// Nanoseconds that encodings took, with `--measure-encode`.
    pub(super) encoding: Recorder,
    /// Nanoseconds that decodings took, with `--measure-decode`.
    pub(super) decoding: Recorder,
    /// Nanoseconds that round trips took, with `--rtt`.
    pub(super) round_trips: Recorder,
    pub(super) trends: Trends,
    /// Of the connections that are over, which were sent something for a second at least, the one that had the least.
    pub(super) worst: Served,
}

impl Tally {
    /// Empty.
    pub(super) fn new(terms: Terms) -> Self {
        Self {
            phase: Phase::default(),
            asked: false,
            counts: Counts::default(),
            unsent: Counts::default(),
            updates: Times::default(),
            posts: Times::default(),
            generics: Times::default(),
            kept: terms.keeps.then(Vec::new),
            unkept: 0,
            encoding: Recorder::new(),
            decoding: Recorder::new(),
            round_trips: Recorder::new(),
            trends: Trends::new(terms),
            worst: Served::default(),
        }
    }

    /// Forgets everything, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.phase = Phase::default();
        self.asked = false;
        (self.counts, self.unsent) = (Counts::default(), Counts::default());
        for times in [&mut self.updates, &mut self.posts, &mut self.generics] {
            times.clear();
        }
        if let Some(kept) = &mut self.kept {
            kept.clear();
        }
        self.unkept = 0;
        for recorder in [&mut self.encoding, &mut self.decoding, &mut self.round_trips] {
            if recorder.samples() + recorder.negatives() > 0 {
                recorder.clear();
            }
        }
        self.trends = Trends::new(self.trends.terms);
        self.worst = Served::default();
    }

    /// A slice of this thread began so many nanoseconds after it was due: to be called in each slice in which it sends.
    pub(super) fn slice(&mut self, late_ns: i64) {
        self.trends.begun(Nanos(monotonic_ns()), late_ns);
    }

    /// A message of the model did not go out; one that cannot be looked at any more is taken for what is sent most.
    pub(super) fn take_back(&mut self, message: Option<&[u8]>, most: MessageClass) {
        let view = message.and_then(|message| MessageView::parse(message).ok());
        // Login, directory and dictionaries are not counted, nor are round trips.
        if view.as_ref().is_some_and(|view| view.domain() < Domain::MARKET_PRICE) {
            return;
        }
        let goes_back = view.as_ref().is_some_and(|view| view.flags().has(flags::update::HAS_POST_USER_INFO));
        match view.map_or(most, |view| view.class()) {
            MessageClass::UPDATE if goes_back => self.unsent.reflected_posts += 1,
            MessageClass::UPDATE => self.unsent.updates += 1,
            MessageClass::REFRESH => self.unsent.images += 1,
            MessageClass::POST => self.unsent.posts += 1,
            MessageClass::GENERIC => self.unsent.generics_sent += 1,
            // Nobody counts as sent what roles say by themselves.
            _ => {}
        }
    }

    /// A message with times was decoded.
    pub(super) fn time(&mut self, timed: Timed) {
        match timed.kind {
            Kind::Update => self.updates.record(&timed),
            Kind::Post => self.posts.record(&timed),
            Kind::Generic => self.generics.record(&timed),
        }
        self.trends.record(&timed);
        match &mut self.kept {
            Some(kept) if kept.len() < MOST_KEPT => kept.push(timed),
            Some(_) => self.unkept += 1,
            None => {}
        }
    }
}

impl Timed {
    /// A stamp whose times are in nanoseconds already, and when it was decoded.
    pub(super) fn new(kind: Kind, stamp: Stamp, received: u64) -> Self {
        Self { kind, sent: stamp.sent, due: stamp.due, received }
    }
}

/// What happens once in a thread's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Milestone {
    /// The connection is there, the login accepted and the service up.
    Ready,
    /// The first request went out.
    FirstRequest(Nanos),
    /// Every item that was to have an image has it: a consumer's steady state begins.
    AllImages(Nanos),
    /// A snapshot consumer has all its images: it has nothing more to do.
    Done(Nanos),
    /// Another server than before is the active one: its images follow.
    Switched,
    /// They are all there, so many nanoseconds after the last message of the server before.
    Resumed(u64),
    /// A connection is over, and others may go on or follow.
    Parted,
    /// The connection or the service was lost: this thread's test is over.
    Lost(String),
}

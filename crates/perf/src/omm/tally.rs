//! Counts and times of a thread, handed to the main thread at each interval.

use tapeline_measure::{Lateness, Nanos, Recorder, monotonic_ns};
use tapeline_omm::rwf::{Domain, MessageClass, MessageView, flags};

use super::bursts::Served;
use super::stamp::Unit;

/// Defines the counts, and their sums.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of a thread since its last tally. Each tool counts its own actions and leaves the others at zero.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(super) struct Counts {
            $($(#[$doc])* pub(super) $name: u64,)*
        }

        impl Counts {
            /// Adds another tally's counts.
            pub(super) fn add(&mut self, other: &Self) {
                // Saturating: the peer controls the numbers that `lost` is of.
                $(self.$name = self.$name.saturating_add(other.$name);)*
            }
        }
    };
}

counts! {
    /// Requests that a consumer sent, or a provider received.
    requests,
    /// Images in open/ok state that a consumer received or a provider sent.
    images,
    /// Images whose data was suspect: they do not count towards the steady state.
    suspect_images,
    /// Item statuses: closed or suspect.
    statuses,
    /// Updates received or sent.
    updates,
    /// Sent updates that carry a time.
    stamped_updates,
    /// Updates from standby servers: not included in `updates`.
    standby_updates,
    /// Posts that a consumer sent, or a provider received.
    posts,
    /// Sent posts that carry a time.
    stamped_posts,
    /// Posts that a provider reflected as updates, or that the consumer received back.
    reflected_posts,
    /// Posts that were dropped because the queue of posts to send back was full.
    dropped_posts,
    /// Sent generic messages.
    generics_sent,
    /// Sent generic messages that carry a time.
    stamped_generics,
    /// Received generic messages.
    generics_received,
    /// Messages that could not be parsed.
    malformed,
    /// Slices with back pressure on the connection: their messages were sent in a later slice.
    held_back,
    /// Transport messages that were due, sent or not.
    messages_due,
    /// Transport messages sent. Received ones count as updates.
    messages_sent,
    /// Sent transport messages that carry a time.
    stamped_messages,
    /// Bytes of sent transport messages, without transport overhead and before compression.
    bytes_sent,
    /// Bytes of received transport messages, counted in the same way.
    bytes_received,
    /// Missing messages, by gaps in the sequence numbers of later messages.
    lost,
    /// Messages whose sequence number had already passed.
    out_of_order,
    /// Messages that were queued on a connection and never sent: not included in the sent counts.
    unsent,
}

impl Counts {
    /// Subtracts messages that were counted as sent and never went out.
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
        // Which of them carried a time is not known: the counts are capped at the totals.
        self.stamped_updates = self.stamped_updates.min(self.updates);
        self.stamped_posts = self.stamped_posts.min(self.posts);
        self.stamped_generics = self.stamped_generics.min(self.generics_sent);
        self.stamped_messages = self.stamped_messages.min(self.messages_sent);
    }
}

/// The kind of message that a time belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An update of an item: `Upd` in the latency file.
    Update,
    /// A reflected post: `Pst`.
    Post,
    /// A generic message: `Gen`.
    Generic,
}

/// One message that carried times, all on CLOCK_MONOTONIC in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timed {
    pub(super) kind: Kind,
    /// Start of encoding.
    pub(super) sent: u64,
    /// Due time, if the message has one.
    pub(super) due: Option<u64>,
    /// When it was decoded.
    pub(super) received: u64,
}

/// The times of one kind of message.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// From the start of encoding to decoding: the guide's latency.
    pub(super) service: Recorder,
    /// From the due time, for messages that have one.
    pub(super) response: Recorder,
    /// Sums of the service times in nanoseconds and of their squares, for mean and standard deviation.
    pub(super) sum: f64,
    pub(super) sum_of_squares: f64,
}

impl Times {
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

    pub(super) fn merge(&mut self, other: &Self) {
        // Most runs time few kinds of message: skip merging empty distributions.
        if other.is_empty() {
            return;
        }
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    /// Clears all times and retains the memory.
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

/// Lateness of senders, and whether it or the transit time kept growing.
#[derive(Clone, Debug)]
pub(super) struct Trends {
    terms: Terms,
    /// Start of encoding minus due time, of messages that have one; start minus due time of this thread's slices.
    pub(super) sender: Lateness,
    /// Decoding minus start of encoding.
    pub(super) system: Lateness,
    /// Messages and slices that began more than one slice late.
    pub(super) late: u64,
}

impl Default for Trends {
    fn default() -> Self {
        Self::new(Terms::default())
    }
}

impl Trends {
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

    /// Adds another's trends of the same run.
    pub(super) fn merge(&mut self, other: &Self) {
        self.sender.merge(&other.sender);
        self.system.merge(&other.system);
        self.late += other.late;
    }
}

/// Properties that all tallies of a run share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Whether every single time is recorded, for the latency file.
    pub(super) keeps: bool,
    /// When the run began, on CLOCK_MONOTONIC.
    pub(super) start: Nanos,
    /// Length of a time slice, in nanoseconds.
    pub(super) slice_ns: i64,
}

impl Default for Terms {
    /// A run that begins now, in slices of a millisecond.
    fn default() -> Self {
        Self { keeps: false, start: Nanos(monotonic_ns()), slice_ns: 1_000_000 }
    }
}

/// The phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RunPhase {
    /// Until every item has its image.
    #[default]
    Startup,
    /// From then on. A provider is always in this phase.
    Steady,
}

/// Maximum single times stored per interval; further ones are only counted.
pub(super) const MOST_KEPT: usize = 1 << 20;

/// A thread's counts and times in one interval of one phase.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) phase: RunPhase,
    /// Whether the main thread asked for it: a tally is also sent at a change of phase and at the end.
    pub(super) asked: bool,
    pub(super) counts: Counts,
    /// Messages that were counted as sent, in this tally or an earlier one, and never went out.
    pub(super) unsent: Counts,
    pub(super) updates: Times,
    pub(super) posts: Times,
    pub(super) generics: Times,
    /// Every timed message in order, for the latency file; `None` without one.
    pub(super) kept: Option<Vec<Timed>>,
    /// Timed messages that exceeded the capacity of `kept`.
    pub(super) unkept: u64,
    /// Encoding times in nanoseconds, with `--measure-encode`.
    pub(super) encoding: Recorder,
    /// Decoding times in nanoseconds, with `--measure-decode`.
    pub(super) decoding: Recorder,
    /// Round-trip times in nanoseconds, with `--rtt`.
    pub(super) round_trips: Recorder,
    pub(super) trends: Trends,
    /// Of the ended connections that sent for a second at least, the one with the smallest share of its due messages.
    pub(super) worst: Served,
}

impl Tally {
    pub(super) fn new(terms: Terms) -> Self {
        Self { kept: terms.keeps.then(Vec::new), trends: Trends::new(terms), ..Self::default() }
    }

    /// Clears the tally and retains the memory.
    pub(super) fn clear(&mut self) {
        self.phase = RunPhase::default();
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

    /// Adds another's counts and times; neither its trends nor its single times.
    pub(super) fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.updates.merge(&other.updates);
        self.posts.merge(&other.posts);
        self.generics.merge(&other.generics);
        merge(&mut self.encoding, &other.encoding);
        merge(&mut self.decoding, &other.decoding);
        merge(&mut self.round_trips, &other.round_trips);
        self.worst = self.worst.worse(other.worst);
        self.unkept += other.unkept;
    }

    /// A slice of this thread began `late_ns` nanoseconds after its due time. Call in each slice that sends.
    pub(super) fn slice(&mut self, late_ns: i64) {
        self.trends.begun(Nanos(monotonic_ns()), late_ns);
    }

    /// A message of the model was not sent; one that can no longer be parsed counts as the class `most`.
    pub(super) fn take_back(&mut self, message: Option<&[u8]>, most: MessageClass) {
        let view = message.and_then(|message| MessageView::parse(message).ok());
        // Login, directory, dictionaries and round trips are not counted.
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
            // Messages that roles send on their own are not counted as sent.
            _ => {}
        }
    }

    /// Records a decoded message that carries times.
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

/// Merges a recorder that has samples: most runs time no encodings and no decodings.
pub(super) fn merge(into: &mut Recorder, from: &Recorder) {
    if from.samples() + from.negatives() > 0 {
        into.merge(from);
    }
}

impl Timed {
    /// Times in a message in this unit, of which 0 is no due time, and the time of decoding in nanoseconds.
    pub(super) fn new(kind: Kind, unit: Unit, sent: u64, due: u64, received: u64) -> Self {
        Self { kind, sent: unit.ns_of(sent), due: (due > 0).then(|| unit.ns_of(due)), received }
    }
}

/// Events in a thread's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Milestone {
    /// The connection is up, the login accepted and the service up.
    Ready,
    /// The first request was sent.
    FirstRequest(Nanos),
    /// Every expected image has arrived: a consumer's steady state begins.
    AllImages(Nanos),
    /// A snapshot consumer has all its images and is done.
    Done(Nanos),
    /// Another server became the active one: its images follow.
    Switched,
    /// All its images have arrived; nanoseconds since the last message of the previous server.
    Resumed(u64),
    /// A connection ended; others may continue or follow.
    Parted,
    /// The connection or the service was lost: this thread's test is over.
    Lost(String),
}

//! Received images, updates, generic messages and states, and their counts.

use std::sync::Arc;

use tapeline_client::ema_config::StandbyMode;
use tapeline_console::log;
use tapeline_measure::{Nanos, figures, monotonic_ns};
use tapeline_omm::rwf::{
    DataState, DataType, Header, MessageClass, MessageView, PostUserInfo, StreamState, flags,
};
use tapeline_omm::{Dictionary, Fid, State};

use super::super::link::{Link, Word};
use super::super::tally::{Kind, Milestone, RunPhase, Timed};
use super::decoding::{Decoder, FoundTimes};
use super::plan::ConsumerPlan;
use super::renewal::Renewal;

/// Processes received messages.
pub(super) struct Taking {
    plan: Arc<ConsumerPlan>,
    thread: usize,
    pub(super) link: Link,
    decoder: Decoder,
    /// The identity in this connection's posts, by which reflected posts are recognized.
    pub(super) poster: PostUserInfo,
    /// Whether each item has had an image in open/ok state; the index is the item's closure.
    has_image: Vec<bool>,
    /// Items without an image.
    missing: usize,
    /// Items that are closed and will never have an image.
    closed: usize,
    /// The first closed item, and the reason.
    first_closed: Option<String>,
    has_said_malformed: bool,
    has_said_suspect: bool,
    /// Set after a failover until the new active server has sent all images.
    renewal: Option<Renewal>,
    has_said_eager: bool,
    /// The test is over: further item states result from this side's own shutdown.
    pub(super) is_over: bool,
}

impl Taking {
    pub(super) fn new(plan: &Arc<ConsumerPlan>, thread: usize, link: Link) -> Self {
        let items = plan.division.of(thread);
        Self {
            plan: Arc::clone(plan),
            thread,
            link,
            decoder: Decoder::new(Arc::clone(&plan.dictionary)),
            poster: poster(thread),
            has_image: vec![false; items],
            missing: items,
            closed: 0,
            first_closed: None,
            has_said_malformed: false,
            has_said_suspect: false,
            renewal: None,
            has_said_eager: false,
            is_over: false,
        }
    }

    pub(super) fn has_all(&self) -> bool {
        self.missing == 0
    }

    /// What prevents the steady state, if it is not reached.
    pub(super) fn what_is_missing(&self) -> Option<String> {
        if self.missing == 0 {
            return None;
        }
        let (all, missing) = (self.has_image.len(), self.missing);
        let mut what = format!("{missing} of {all} items have had no image in open/ok state");
        if let Some(first) = &self.first_closed {
            what.push_str(&format!("; {} of them are closed, {first}", self.closed));
        }
        Some(what)
    }

    /// Prints a note on this connection for the user.
    pub(super) fn note(&self, what: &str) {
        log::note(format_args!("connection {}: {what}", self.thread + 1));
    }

    /// Reports the first received field that the dictionary does not have, if any.
    pub(super) fn say_unknown(&mut self) {
        if let Some(Fid(fid)) = self.decoder.take_unknown() {
            let hint = "--dictionary names one that has it";
            self.note(&format!("field {fid} is not in the dictionary and is not decoded; {hint}"));
        }
    }

    /// Every item has its image: the steady state begins.
    pub(super) fn complete(&mut self) {
        let now = monotonic_ns();
        self.link.say(Word::Milestone(Milestone::AllImages(Nanos(now))));
        self.link.begin(RunPhase::Steady);
        if self.plan.args.snapshot {
            self.link.say(Word::Milestone(Milestone::Done(Nanos(now))));
        }
    }

    /// The standby mode, if there are several servers.
    pub(super) fn standby(&self) -> Option<StandbyMode> {
        self.plan.servers[self.thread].standby
    }

    pub(super) fn service(&self) -> &str {
        &self.plan.args.service_name
    }

    pub(super) fn set_dictionary(&mut self, dictionary: &Arc<Dictionary>) {
        self.decoder.dictionary = Arc::clone(dictionary);
    }

    /// Another server became active. `heard`: when the last message of the previous one was received.
    pub(super) fn switched(&mut self, heard: Nanos) {
        self.link.say(Word::Milestone(Milestone::Switched));
        self.renewal = Some(Renewal::new(heard, self.has_image.len(), self.renewal.as_ref()));
        self.look_at_renewal();
    }

    /// Closes items that the new active server had closed while it was a standby.
    pub(super) fn closed_before(&mut self, closures: &[u64]) {
        let (stream, data) = (StreamState::CLOSED, DataState::SUSPECT);
        let text = b"closed while its server stood by";
        let state = State { stream, data, text, ..State::OPEN_OK };
        closures.iter().for_each(|closure| self.close(*closure, &state));
    }

    /// Counts messages of a standby server separately: its images have no data, and it should send no updates.
    pub(super) fn of_standby(&mut self, message: &MessageView<'_>) {
        if message.class() == MessageClass::UPDATE {
            self.link.tally.counts.standby_updates += 1;
            if !std::mem::replace(&mut self.has_said_eager, true) {
                self.note("updates of a server come that stands by; they do not count");
            }
        }
    }

    /// Handles an item's state change that is not from a message of the item; ignored for a standby server.
    pub(super) fn state(&mut self, closure: u64, state: &State<'_>, is_final: bool, is_active: bool) {
        if self.is_over || !is_active {
            return;
        }
        self.link.tally.counts.statuses += 1;
        if is_final {
            self.close(closure, state);
        }
    }

    #[inline]
    pub(super) fn message(&mut self, closure: u64, message: &MessageView<'_>, is_final: bool) {
        match message.class() {
            MessageClass::UPDATE => self.update(message),
            MessageClass::REFRESH => self.refresh(closure, message, is_final),
            MessageClass::GENERIC => {
                self.link.tally.counts.generics_received += 1;
                let found = self.read(message);
                if found.generic != 0 {
                    self.time(Kind::Generic, found.generic, found.due, monotonic_ns());
                }
            }
            _ => {
                self.link.tally.counts.statuses += 1;
                let state = message.header().ok().and_then(|header| header.state());
                if let Some(state) = state.filter(|_| is_final) {
                    self.close(closure, &state);
                }
            }
        }
    }

    #[inline]
    fn update(&mut self, message: &MessageView<'_>) {
        self.link.tally.counts.updates += 1;
        let is_measured = self.plan.args.measure_decode;
        let begun = if is_measured { monotonic_ns() } else { 0 };
        let found = self.read(message);
        if is_measured {
            self.link.tally.decoding.record(monotonic_ns().wrapping_sub(begun).cast_signed());
        }
        if found.is_any() || message.flags().has(flags::update::HAS_POST_USER_INFO) {
            self.stamped_update(message, found);
        }
    }

    /// An update that carries times or was posted.
    fn stamped_update(&mut self, message: &MessageView<'_>, found: FoundTimes) {
        let now = monotonic_ns();
        let poster = message.header().ok().and_then(|header| header.post_user_info());
        // A post without a poster's identity counts as this connection's own, as in the public tools.
        let is_own =
            poster.map_or(found.post != 0 && self.plan.args.posting_rate > 0, |by| by == self.poster);
        if is_own {
            self.link.tally.counts.reflected_posts += 1;
        }
        if found.post != 0 && is_own {
            self.time(Kind::Post, found.post, found.due, now);
        }
        if found.update != 0 {
            self.time(Kind::Update, found.update, found.due, now);
        }
    }

    fn refresh(&mut self, closure: u64, message: &MessageView<'_>, is_final: bool) {
        self.read(message);
        let Ok(Header::Refresh(refresh)) = message.header() else { return };
        if !message.is_refresh_complete() {
            return;
        }
        let state = refresh.state;
        let is_open = matches!(state.stream, StreamState::OPEN | StreamState::NON_STREAMING);
        // The server was a standby when the item was requested: the image follows.
        if self.standby().is_some() && is_open && message.container() == DataType::NO_DATA {
            return;
        }
        match is_open && state.data == DataState::OK {
            true => self.image(closure),
            false if is_open => {
                self.link.tally.counts.suspect_images += 1;
                if !std::mem::replace(&mut self.has_said_suspect, true) {
                    let item = self.item(closure);
                    self.note(&format!("the image of {item} is suspect and does not count: {state}"));
                }
                if is_final {
                    self.close(closure, &state);
                }
            }
            false => {
                self.link.tally.counts.statuses += 1;
                self.close(closure, &state);
            }
        }
    }

    fn image(&mut self, closure: u64) {
        self.link.tally.counts.images += 1;
        let has_image = self.has_image.get_mut(index(closure));
        if let Some(has_image) = has_image
            && !std::mem::replace(has_image, true)
        {
            self.missing -= 1;
            if self.missing == 0 {
                self.complete();
            }
        }
        self.renew(closure);
    }

    /// An item has its image of the new active server, or will never have one.
    fn renew(&mut self, closure: u64) {
        if let Some(renewal) = &mut self.renewal {
            renewal.renew(closure);
            self.look_at_renewal();
        }
    }

    fn look_at_renewal(&mut self) {
        if let Some(still_ns) = self.renewal.as_ref().and_then(|renewal| renewal.over(Nanos(monotonic_ns())))
        {
            let switches = self.renewal.take().map_or(0, |renewal| renewal.switches);
            let still = figures::duration(still_ns);
            self.note(&format!("every item has its image again, {still} behind the last message before"));
            for _ in 0..switches {
                self.link.say(Word::Milestone(Milestone::Resumed(still_ns)));
            }
        }
    }

    /// An item was closed unexpectedly.
    fn close(&mut self, closure: u64, state: &State<'_>) {
        if self.has_image.get(index(closure)) == Some(&false) {
            self.closed += 1;
            if self.first_closed.is_none() {
                let first = format!("the first {}: {state}", self.item(closure));
                self.note(&format!("an item is closed that has had no image, {first}"));
                self.first_closed = Some(first);
            }
        }
        self.renew(closure);
    }

    fn item(&self, closure: u64) -> String {
        let item = self.plan.items_of(self.thread).nth(index(closure));
        item.map_or_else(String::new, |item| item.name.clone())
    }

    #[inline]
    fn read(&mut self, message: &MessageView<'_>) -> FoundTimes {
        match self.decoder.read(message.container(), message.payload()) {
            Ok(found) => found,
            Err(fault) => {
                self.malformed(&fault.to_string());
                FoundTimes::default()
            }
        }
    }

    #[cold]
    pub(super) fn malformed(&mut self, what: &str) {
        self.link.tally.counts.malformed += 1;
        if !std::mem::replace(&mut self.has_said_malformed, true) {
            self.note(&format!("a message cannot be read: {what}"));
        }
    }

    /// Records a message that carries a time and was decoded at `received`, rounded as times in messages are.
    fn time(&mut self, kind: Kind, sent: u64, due: u64, received: u64) {
        let unit = self.plan.unit;
        self.link.tally.time(Timed::new(kind, unit, sent, due, unit.ns_of(unit.wire_of(received))));
    }
}

/// The index of the item that has this closure.
fn index(closure: u64) -> usize {
    usize::try_from(closure).unwrap_or(usize::MAX)
}

/// The poster's identity: this machine, process and thread, so that own posts are distinguished from those of others.
fn poster(thread: usize) -> PostUserInfo {
    // Process IDs have at most 22 bits.
    let thread = u32::try_from(thread & 0x3FF).unwrap_or(0);
    PostUserInfo {
        address: std::net::Ipv4Addr::LOCALHOST.to_bits(),
        user_id: thread << 22 | std::process::id(),
    }
}

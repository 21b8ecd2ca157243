//! What comes on a connection: images, updates, generic messages and states, and what is counted of them.

use std::sync::Arc;

use tapeline_client::ema_config::StandbyMode;
use tapeline_measure::{Nanos, figures, monotonic_ns};
use tapeline_omm::rwf::{
    DataState, DataType, Header, MessageClass, MessageView, PostUserInfo, StreamState, flags,
};
use tapeline_omm::{Dictionary, State};

use super::super::link::{Link, Word};
use super::super::stamp::{self, Stamp};
use super::super::tally::{Kind, Milestone, Phase, Timed};
use super::decoding::{Decoder, Found};
use super::plan::Plan;
use super::renewal::Renewal;

/// Takes what comes.
pub(super) struct Taking {
    plan: Arc<Plan>,
    thread: usize,
    pub(super) link: Link,
    decoder: Decoder,
    /// What the posts of this connection carry, and come back with.
    pub(super) poster: PostUserInfo,
    /// Whether each item has had an image in open/ok state, by the number that is its closure.
    has_image: Vec<bool>,
    /// Items that have not.
    missing: usize,
    /// Items that are closed and will never have one.
    closed: usize,
    /// The first of the items that were closed, and why.
    first_closed: Option<String>,
    has_said_malformed: bool,
    has_said_suspect: bool,
    /// Another server is active than before, and has not sent all images yet.
    renewal: Option<Renewal>,
    has_said_eager: bool,
    /// The test is over: what is said of items now is this side's own doing.
    pub(super) is_over: bool,
}

impl Taking {
    pub(super) fn new(plan: &Arc<Plan>, thread: usize, link: Link) -> Self {
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

    /// Whether every item has had its image.
    pub(super) fn has_all(&self) -> bool {
        self.missing == 0
    }

    /// What keeps the steady state from being reached, if it is not.
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

    /// Something that people are to know of this connection.
    pub(super) fn note(&self, what: &str) {
        anstream::eprintln!("note: connection {}: {what}", self.thread + 1);
    }

    /// Says which field the dictionary does not have, if one came.
    pub(super) fn say_unknown(&mut self) {
        if let Some(fid) = self.decoder.take_unknown() {
            self.note(&format!(
                "field {} is not in the dictionary and is not decoded; --dictionary names one that has it",
                fid.0
            ));
        }
    }

    /// Every item has its image: from now on it is the steady state.
    pub(super) fn complete(&mut self) {
        let now = monotonic_ns();
        self.link.say(Word::Milestone(Milestone::AllImages(Nanos(now))));
        self.link.begin(Phase::Steady);
        if self.plan.is_snapshot {
            self.link.say(Word::Milestone(Milestone::Done(Nanos(now))));
        }
    }

    /// What a server is told by, if there are several.
    pub(super) fn standby(&self) -> Option<StandbyMode> {
        self.plan.servers(self.thread).standby
    }

    /// The service that is asked.
    pub(super) fn service(&self) -> &str {
        &self.plan.service
    }

    /// The dictionary is this one from now on.
    pub(super) fn set_dictionary(&mut self, dictionary: &Arc<Dictionary>) {
        self.decoder.set_dictionary(dictionary);
    }

    /// What comes is another server's from now on. `heard`: when the last message of the one before was taken.
    pub(super) fn switched(&mut self, heard: Nanos) {
        self.link.say(Word::Milestone(Milestone::Switched));
        self.renewal = Some(Renewal::new(heard, self.has_image.len(), self.renewal.as_ref()));
        self.look_at_renewal();
    }

    /// Items that a server closed while it stood by, which is the active one now.
    pub(super) fn closed_before(&mut self, closures: &[u64]) {
        let (stream, data) = (StreamState::CLOSED, DataState::SUSPECT);
        let text = b"closed while its server stood by";
        let state = State { stream, data, text, ..State::OPEN_OK };
        closures.iter().for_each(|closure| self.close(*closure, &state));
    }

    /// What a server sends that stands by counts for nothing: images have no data, and updates are not to come.
    pub(super) fn of_standby(&mut self, message: &MessageView<'_>) {
        if message.class() == MessageClass::UPDATE {
            self.link.tally.counts.standby_updates += 1;
            if !std::mem::replace(&mut self.has_said_eager, true) {
                self.note("updates of a server come that stands by; they do not count");
            }
        }
    }

    /// The state of an item changed, by no message of its own; at a server that stands by that is nobody's business.
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
                    self.time(Kind::Generic, stamp::GENERIC, found.generic, found.due, monotonic_ns());
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
        let found = match self.plan.measures_decode {
            false => self.read(message),
            true => {
                let begun = monotonic_ns();
                let found = self.read(message);
                self.link.tally.decoding.record(monotonic_ns().wrapping_sub(begun).cast_signed());
                found
            }
        };
        if found.is_any() || message.flags().has(flags::update::HAS_POST_USER_INFO) {
            self.stamped_update(message, found);
        }
    }

    /// An update with times, or one that somebody posted.
    fn stamped_update(&mut self, message: &MessageView<'_>, found: Found) {
        let now = monotonic_ns();
        let poster = message.header().ok().and_then(|header| header.post_user_info());
        // A post that says nobody's name is taken for one's own, as the public tools do.
        let is_own = poster.map_or(found.post != 0 && self.plan.posts.all > 0, |by| by == self.poster);
        if is_own {
            self.link.tally.counts.reflected_posts += 1;
        }
        if found.post != 0 && is_own {
            self.time(Kind::Post, stamp::POST, found.post, found.due, now);
        }
        if found.update != 0 {
            self.time(Kind::Update, stamp::UPDATE, found.update, found.due, now);
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
        // Of a server that still stood by when it was asked: the image follows.
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
        let has_image = usize::try_from(closure).ok().and_then(|item| self.has_image.get_mut(item));
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

    /// An item has its image of a server that took over, or will never have it.
    fn renew(&mut self, closure: u64) {
        if let Some(renewal) = &mut self.renewal {
            renewal.renew(closure);
            self.look_at_renewal();
        }
    }

    fn look_at_renewal(&mut self) {
        if let Some(still_ns) = self.renewal.as_ref().and_then(|renewal| renewal.over(Nanos(monotonic_ns())))
        {
            let switches = self.renewal.take().map_or(0, |renewal| renewal.switches());
            let still = figures::duration(still_ns);
            self.note(&format!("every item has its image again, {still} behind the last message before"));
            for _ in 0..switches {
                self.link.say(Word::Milestone(Milestone::Resumed(still_ns)));
            }
        }
    }

    /// An item is closed, and was not to be.
    fn close(&mut self, closure: u64, state: &State<'_>) {
        let had_image =
            usize::try_from(closure).ok().and_then(|item| self.has_image.get(item)).copied().unwrap_or(true);
        if !had_image {
            self.closed += 1;
            if self.first_closed.is_none() {
                let first = format!("the first {}: {state}", self.item(closure));
                self.note(&format!("an item is closed that has had no image, {first}"));
                self.first_closed = Some(first);
            }
        }
        self.renew(closure);
    }

    /// What an item is called.
    fn item(&self, closure: u64) -> String {
        let number = usize::try_from(closure).unwrap_or(usize::MAX);
        let item = self.plan.items_of(self.thread).nth(number);
        item.map_or_else(String::new, |item| item.name.clone())
    }

    #[inline]
    fn read(&mut self, message: &MessageView<'_>) -> Found {
        match self.decoder.read(message.container(), message.payload()) {
            Ok(found) => found,
            Err(fault) => {
                self.malformed(&fault.to_string());
                Found::default()
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

    /// A message with a time in it was decoded at `received`, which counts in the unit of the times in messages: what is lost of
    /// one is lost of the other.
    fn time(&mut self, kind: Kind, field: tapeline_omm::Fid, sent: u64, due: u64, received: u64) {
        let unit = self.plan.unit;
        let stamp = Stamp { field, sent: unit.ns_of(sent), due: (due != 0).then(|| unit.ns_of(due)) };
        self.link.tally.time(Timed::new(kind, stamp, unit.ns_of(unit.wire_of(received))));
    }
}

/// Who posts: this machine and process, and the thread, so that what comes back is known from what others post.
fn poster(thread: usize) -> PostUserInfo {
    // Numbers of processes have 22 bits at most.
    let thread = u32::try_from(thread & 0x3FF).unwrap_or(0);
    PostUserInfo {
        address: std::net::Ipv4Addr::LOCALHOST.to_bits(),
        user_id: thread << 22 | std::process::id(),
    }
}

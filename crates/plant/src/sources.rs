//! The plant's OMM sources: their messages enter the plant's one sequence, like those of feeds.
//!
//! Non-interactive (NI) providers connect to the plant and publish. The plant logs in to interactive providers and opens an item on demand
//! ([`Demand::Open`]). Each message of an item becomes a tick: the message unchanged, except for stream id 0 and, in its key, the plant's
//! number of the service. Everything that is not market data (receipts, private streams of one client, a status that an item does not exist)
//! comes back as an [`Answer`].
//!
//! A change of a service is a tick of [`Kind::Status`](crate::tick::Kind::Status) of item 0 with the service's number: an
//! RWF update of domain SOURCE with one entry, with the parts that changed. A service is down until a source is up.
//!
//! | event | the items | the service |
//! |---|---|---|
//! | the source disconnects, another is up | suspect, then images of the other | continues, with the other's data |
//! | a publisher of a [merged](Sharing::Merge) service disconnects | images of each item's next publisher, else suspect | up while any publisher is |
//! | the source disconnects, there is no other | suspect | down |
//! | a source connects or reconnects | images | up |
//! | an item's message exceeds the maximum of the ring | this item is suspect until its next image | – |
//!
//! [`Sources`] does no I/O: messages, time and capacity go in, messages go out through [`Outlets`], ticks through the
//! [`Sequencer`]. All other output is taken as data: [`Wish`], [`SourceNote`], [`Answer`]. Everything has a limit
//! ([`Settings`]). No message of a source can block the plant or harm another source.

mod demanded;
mod note;
mod numbers;
mod outlets;
mod passing;
mod posted;
mod posts;
mod private;
mod published;
mod requested;
mod seen;
mod services;
mod serving;
mod settings;

use std::collections::{BTreeMap, VecDeque};

use tapeline_measure::Nanos;
use tapeline_omm::domain::Directory;
use tapeline_omm::role::acceptor::Acceptor;
use tapeline_omm::role::consumer::{Consumer, ConsumerApplication, ConsumerEvent, Handle};
use tapeline_omm::role::{Outbox, Over};
use tapeline_omm::rwf::Domain;

use crate::demand::{Answer, Demand, ItemName};
use crate::publish::Refused;
use crate::{ItemId, Items, Publish, Sequencer, Time};
use numbers::Numbers;
use posted::PostedFields;
use posts::Awaited;
use private::Private;
use published::Publishing;
use requested::Requests;
use services::Service;
use serving::Serving;

pub use note::{Counters, SourceNote, Wish};
pub use outlets::{LinkId, Outlets};
pub use seen::{SeenSource, SourceRole, Standing};
pub use settings::{Policy, Posts, ProviderSettings, ServiceSettings, Settings, Sharing, Sourcing};

/// Maximum number of queued notes; further ones are dropped.
const MOST_NOTES: usize = 1_000;
/// Number of unreadable messages after which a source is cut: a correct one sends none.
const MOST_MALFORMED: u64 = 1_000;

/// Minimum time for the login of a non-interactive provider if too many have none, ns.
const STRANGE_NS: u64 = 1_000_000_000;

/// The sources of a plant. See the [module](self).
#[derive(Debug)]
pub struct Sources {
    links: BTreeMap<LinkId, Link>,
    next_link: u32,
    desk: Desk,
}

/// The state that all sources share.
#[derive(Debug)]
struct Desk {
    settings: Settings,
    services: Vec<Service>,
    requests: Requests,
    numbers: Numbers,
    serving: Serving,
    /// Items that their serving publisher has ended while others stand by: service, domain, number.
    handed_over: Vec<(usize, Domain, ItemId)>,
    private: Private,
    awaited: Awaited,
    posted: PostedFields,
    answers: VecDeque<Answer>,
    /// Bytes of the queued answers.
    answer_bytes: usize,
    wishes: VecDeque<Wish>,
    notes: VecDeque<SourceNote>,
    /// Open items to close at a source, each with its name if no client needs it at all.
    to_close: Vec<(LinkId, Handle, Option<ItemName>)>,
    counters: Counters,
    now: Nanos,
}

/// A source with its connection, present or future.
#[derive(Debug)]
struct Link {
    role: Role,
    state: LinkState,
    /// Time of its next step.
    due: Option<Nanos>,
}

#[derive(Debug)]
enum Role {
    Provider(Box<Consumer>),
    Publisher(Box<Acceptor>),
}

/// The state of a source without its role.
#[derive(Debug)]
struct LinkState {
    id: LinkId,
    /// Its name in notes.
    name: String,
    /// Time of the connection.
    since: Nanos,
    /// `true` if its services have changed.
    has_news: bool,
    /// For a provider that has refused the login: the time of the next attempt.
    again: Option<Nanos>,
    /// `true` if the failure to log in was reported.
    is_known_lost: bool,
    publishing: Publishing,
}

impl LinkState {
    fn new(id: LinkId, name: String, since: Nanos) -> Self {
        let publishing = Publishing::default();
        Self { id, name, since, has_news: false, again: None, is_known_lost: false, publishing }
    }
}

/// A source during the handling of one input.
struct Taking<'a, P, T> {
    desk: &'a mut Desk,
    link: &'a mut LinkState,
    to: &'a mut Sequencer<P>,
    time: &'a T,
    /// After a refusal further input is ignored.
    refused: Result<(), Refused>,
}

/// The sources during the handling of one input.
struct Handling<'a, P, T> {
    sources: &'a mut Sources,
    to: &'a mut Sequencer<P>,
    time: &'a T,
}

impl Sources {
    /// Creates the sources without connections; every service is down.
    ///
    /// # Errors
    /// A login that no message can hold.
    pub fn new(settings: Settings) -> Result<Self, tapeline_omm::Refused> {
        let mut links = BTreeMap::new();
        for (provider, number) in settings.providers.iter().zip(0..) {
            let consumer = Consumer::new(provider.consumer.clone(), &provider.login())?;
            let state = LinkState::new(LinkId(number), provider.name.clone(), Nanos(0));
            let role = Role::Provider(Box::new(consumer));
            links.insert(LinkId(number), Link { role, state, due: Some(Nanos(0)) });
        }
        let services = settings.services.iter().map(|service| Service::new(service, &settings)).collect();
        let next_link = links.len() as u32;
        let desk = Desk {
            requests: Requests::new(settings.max_items),
            numbers: Numbers::default(),
            serving: Serving::default(),
            handed_over: Vec::new(),
            private: Private::default(),
            awaited: Awaited::default(),
            posted: PostedFields::default(),
            settings,
            services,
            answers: VecDeque::new(),
            answer_bytes: 0,
            wishes: VecDeque::new(),
            notes: VecDeque::new(),
            to_close: Vec::new(),
            counters: Counters::default(),
            now: Nanos(0),
        };
        Ok(Self { links, next_link, desk })
    }

    /// Publishes each service as present, and down. Call it once, before everything else.
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn begin<P: Publish>(&mut self, to: &mut Sequencer<P>, time: &impl Time) -> Result<(), Refused> {
        self.desk.now = time.now();
        for service in 0..self.desk.services.len() {
            if self.desk.services.get(service).is_some_and(|service| !service.is_of_feeds()) {
                self.desk.tell_service(service, None, to, time)?;
            }
        }
        Ok(())
    }

    /// Opens a link for a non-interactive provider that has connected.
    pub fn open(&mut self, now: Nanos) -> LinkId {
        let id = LinkId(self.next_link);
        // No process lives for 2^32 connections.
        self.next_link = self.next_link.saturating_add(1);
        let acceptor = Acceptor::new(self.desk.settings.publishers.clone(), now);
        let state = LinkState::new(id, format!("publisher {}", id.0), now);
        self.links.insert(id, Link { role: Role::Publisher(Box::new(acceptor)), state, due: Some(now) });
        id
    }

    /// Handles a new connection to an interactive provider.
    pub fn connected(&mut self, now: Nanos, link: LinkId, out: &mut dyn Outbox) {
        self.desk.now = now;
        if let Some(Link { role: Role::Provider(consumer), due, .. }) = self.links.get_mut(&link) {
            consumer.connected(now, out);
            *due = Some(now);
        }
    }

    /// Handles one message of a source.
    ///
    /// # Errors
    /// [`Refused::Stopping`]: the plant is stopping. A message that exceeds the maximum of the ring is not an error.
    pub fn message<P: Publish>(
        &mut self,
        now: Nanos,
        link: LinkId,
        message: &[u8],
        out: &mut dyn Outbox,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        Handling { sources: self, to, time }.step(now, link, Some(message), out)
    }

    /// Handles a connection that has capacity again.
    pub fn room(&mut self, link: LinkId) {
        if let Some(link) = self.links.get_mut(&link) {
            link.due = Some(self.desk.now);
        }
    }

    /// Handles a connection that is closed, or that failed to open.
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn closed<P: Publish>(
        &mut self,
        now: Nanos,
        link: LinkId,
        why: &str,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        self.desk.now = now;
        let Some(there) = self.links.get_mut(&link) else { return Ok(()) };
        there.due = Some(now);
        let was_ready = match &mut there.role {
            Role::Publisher(_) => return Handling { sources: self, to, time }.publisher_gone(link, why),
            Role::Provider(consumer) => {
                let was_ready = consumer.is_ready();
                let mut taking = Taking {
                    desk: &mut self.desk,
                    link: &mut there.state,
                    to: &mut *to,
                    time,
                    refused: Ok(()),
                };
                consumer.disconnected(now, &mut taking);
                taking.refused?;
                was_ready
            }
        };
        let (source, why) = (there.state.name.clone(), why.to_owned());
        if was_ready {
            self.desk.note(SourceNote::Gone { source, why });
        } else if !std::mem::replace(&mut there.state.is_known_lost, true) {
            self.desk.note(SourceNote::NotReached { source, why });
        }
        Handling { sources: self, to, time }.review(link)
    }

    /// Carries out a demand on the sources.
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn demand<P: Publish>(
        &mut self,
        now: Nanos,
        demand: Demand,
        outlets: &mut impl Outlets,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        self.desk.now = now;
        Handling { sources: self, to, time }.meet(demand, outlets)
    }

    /// Closes all items that are open for clients, because the demanding side has gone and has no successor.
    pub fn nobody_demands(&mut self, now: Nanos, items: &Items) {
        self.desk.now = now;
        self.desk.let_go_all_published(items);
        for name in self.desk.requests.names() {
            self.desk.let_go(&name);
        }
        self.desk.end_all_private();
        self.desk.awaited = Awaited::default();
    }

    /// Logs out of the providers at the end of the plant. Close their connections when the output is sent.
    pub fn end(&mut self, outlets: &mut impl Outlets) {
        for (id, link) in &mut self.links {
            if let Role::Provider(consumer) = &mut link.role {
                outlets.with(*id, &mut |out| consumer.log_out(out, &mut Leaving));
            }
        }
    }

    /// Does due work, and sends queued output. Call it after messages and demands, and again at the time that it returns.
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn turn<P: Publish>(
        &mut self,
        now: Nanos,
        outlets: &mut impl Outlets,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<Option<Nanos>, Refused> {
        self.desk.now = now;
        let strangers_due = Handling { sources: self, to, time }.part_with_strangers(now)?;
        self.desk.refuse_late_posts();
        self.desk.end_private();
        for (link, handle, item) in std::mem::take(&mut self.desk.to_close) {
            self.close_at(link, handle);
            if let (Some(item), Some(link)) = (item, self.links.get_mut(&link)) {
                link.state.publishing.drop_image(&item);
            }
        }
        let due: Vec<LinkId> = self
            .links
            .iter()
            .filter(|(_, link)| link.due.is_some_and(|due| due <= now))
            .map(|(id, _)| *id)
            .collect();
        let mut done = Ok(());
        for link in due {
            outlets.with(link, &mut |out| {
                if done.is_ok() {
                    done = Handling { sources: self, to, time }.step(now, link, None, out);
                }
            });
        }
        done?;
        let posts = self.desk.awaited.due();
        Ok(self.links.values().filter_map(|link| link.due).chain(posts).chain(strangers_due).min())
    }

    /// Returns the next action on a connection. Call until it returns `None`, after every other call.
    pub fn next_wish(&mut self) -> Option<Wish> {
        self.desk.wishes.pop_front()
    }

    /// Returns the next answer for the demanding side. Call until it returns `None`, or until the caller's queue is full.
    pub fn next_answer(&mut self) -> Option<Answer> {
        let answer = self.desk.answers.pop_front()?;
        self.desk.answer_bytes -= answer.bytes();
        Some(answer)
    }

    /// Returns the next note to log. Call until it returns `None`.
    pub fn next_note(&mut self) -> Option<SourceNote> {
        self.desk.notes.pop_front()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.desk.counters
    }

    /// Returns the services of providers, each with `true` if a source is up.
    pub fn services(&self) -> impl Iterator<Item = (&str, bool)> {
        let services = self.desk.services.iter().filter(|service| !service.is_of_feeds());
        services.map(|service| (service.name(), service.is_up()))
    }

    /// Returns the published services, each with the number of its items without a source, because their publishers have disconnected.
    pub fn unserved(&self) -> impl Iterator<Item = (&str, usize)> {
        let services = self.desk.services.iter().enumerate().filter(|(_, service)| service.is_published());
        services.map(|(place, service)| (service.name(), self.desk.serving.unserved(place)))
    }

    /// Returns the directory of a source; `None` if the source is not connected.
    #[must_use]
    pub fn directory(&self, link: LinkId) -> Option<&Directory> {
        self.links.get(&link).map(Link::directory)
    }

    /// Returns the number of open items of interactive providers.
    #[must_use]
    pub fn open_items(&self) -> usize {
        self.desk.requests.len()
    }

    /// Retries the login at a provider that refused it, when it is due.
    fn log_in_again(&mut self, id: LinkId, now: Nanos) -> Result<(), Refused> {
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        if link.state.again.is_none_or(|again| again > now) {
            return Ok(());
        }
        link.state.again = None;
        let Some(settings) = self.desk.settings.providers.get(id.0 as usize) else { return Ok(()) };
        // The login was encoded successfully before.
        let Ok(consumer) = Consumer::new(settings.consumer.clone(), &settings.login()) else { return Ok(()) };
        (link.role, link.due) = (Role::Provider(Box::new(consumer)), Some(now));
        self.open_again(id);
        Ok(())
    }
}

impl<P: Publish, T: Time> Handling<'_, P, T> {
    /// Closes the oldest non-interactive providers without a login if there are too many; returns the time of the next check.
    fn part_with_strangers(&mut self, now: Nanos) -> Result<Option<Nanos>, Refused> {
        let most = self.sources.desk.settings.max_strangers;
        if self.sources.links.len() <= most {
            return Ok(None);
        }
        // Links are numbered in the order of connection.
        let strangers: Vec<(LinkId, Nanos)> = self
            .sources
            .links
            .iter()
            .filter(|(_, link)| matches!(&link.role, Role::Publisher(acceptor) if !acceptor.is_logged_in()))
            .map(|(id, link)| (*id, link.state.since + STRANGE_NS))
            .collect();
        for (id, until) in strangers.iter().take(strangers.len().saturating_sub(most)) {
            if now < *until {
                return Ok(Some(*until));
            }
            self.sources.desk.wishes.push_back(Wish::Disconnect(*id));
            self.publisher_gone(*id, "too many connections without a login")?;
        }
        Ok(None)
    }

    /// Runs a step of a source: a message, or due work.
    fn step(
        &mut self,
        now: Nanos,
        id: LinkId,
        message: Option<&[u8]>,
        out: &mut dyn Outbox,
    ) -> Result<(), Refused> {
        self.sources.desk.now = now;
        let Some(Link { role, state, due }) = self.sources.links.get_mut(&id) else { return Ok(()) };
        let mut taking = Taking {
            desk: &mut self.sources.desk,
            link: state,
            to: &mut *self.to,
            time: self.time,
            refused: Ok(()),
        };
        let mut over: Option<String> = None;
        match role {
            Role::Publisher(acceptor) => {
                let done = match message {
                    Some(message) => {
                        // Output is sent now; the rest at the next turn.
                        *due = Some(now);
                        acceptor.message(now, message, out, &mut taking)
                    }
                    None => acceptor.tick(now, out, &mut taking).map(|next| *due = next),
                };
                over = done.err().map(|over: Over| over.to_string());
                if acceptor.counters().malformed >= MOST_MALFORMED {
                    over = Some(format!("{MOST_MALFORMED} of its messages could not be read"));
                }
            }
            Role::Provider(consumer) => match message {
                Some(message) => {
                    consumer.message(now, message, out, &mut taking);
                    *due = Some(now);
                }
                None => *due = consumer.tick(now, out, &mut taking),
            },
        }
        taking.refused?;
        if let Some(again) = state.again {
            *due = Some(due.map_or(again, |due| due.min(again)));
        }
        let has_news = state.has_news;
        for (service, domain, item) in std::mem::take(&mut self.sources.desk.handed_over) {
            self.hand_over(service, (domain, item))?;
        }
        if let Some(why) = over {
            self.sources.desk.wishes.push_back(Wish::Disconnect(id));
            return self.publisher_gone(id, &why);
        }
        if has_news {
            self.review(id)?;
        }
        self.sources.log_in_again(id, now)
    }
}

/// The state of items no longer matters: the ring ends with the plant.
struct Leaving;

impl ConsumerApplication for Leaving {
    fn event(&mut self, _consumer: &mut Consumer, _out: &mut dyn Outbox, _event: ConsumerEvent<'_>) {}
}

impl Desk {
    fn note(&mut self, note: SourceNote) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push_back(note);
        }
    }

    /// Queues an answer whose number is bounded by the demands.
    fn answer(&mut self, answer: Answer) {
        self.answer_bytes += answer.bytes();
        self.answers.push_back(answer);
    }

    /// Returns `true` if an answer whose number is not bounded may be queued.
    fn has_room_to_answer(&self) -> bool {
        self.answers.len() < self.settings.max_answers && self.has_bytes_to_answer()
    }

    /// Returns `true` if a source's own text, which may have any length, may be queued.
    fn has_bytes_to_answer(&self) -> bool {
        self.answer_bytes < self.settings.answer_bytes
    }
}

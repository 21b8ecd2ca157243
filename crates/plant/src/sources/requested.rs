//! Items of interactive providers, open while a client needs them.

use std::collections::HashMap;

use tapeline_omm::State;
use tapeline_omm::role::Outbox;
use tapeline_omm::role::consumer::{
    Consumer, ConsumerApplication, ConsumerEvent, Handle, ItemRequest, Reissue, ServiceName,
};
use tapeline_omm::rwf::{Domain, Header, Priority, StateCode, StreamState};

use super::passing::{About, Passed, closed, is_final, is_suspect, suspect};
use super::services::Service;
use super::{Desk, Handling, Link, LinkId, Policy, Role, SourceNote, Sources, Taking, Wish};
use crate::cache::ItemKey;
use crate::demand::{Answer, ItemName};
use crate::publish::Refused;
use crate::{ItemId, Publish, Sequencer, Time};

/// A demanded item.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) name: ItemName,
    /// Index of its service.
    pub(super) service: usize,
    /// Its number, found with its first message or assigned to its first image.
    pub(super) item: ItemId,
    pub(super) priority: Priority,
    /// The source that serves it, now or in future.
    pub(super) from: LinkId,
    pub(super) is_suspect: bool,
    /// `true` if its source was asked to pause.
    is_paused: bool,
    holds: Vec<Hold>,
}

/// An item that is open at a provider.
#[derive(Debug, Clone, Copy)]
struct Hold {
    link: LinkId,
    handle: Handle,
}

impl Wanted {
    /// Returns its handle at a provider.
    pub(super) fn handle(&self, link: LinkId) -> Option<Handle> {
        self.holds.iter().find(|hold| hold.link == link).map(|hold| hold.handle)
    }

    /// Returns where it is open at the source that serves it.
    fn hold(&self) -> Option<Hold> {
        self.holds.iter().find(|hold| hold.link == self.from).copied()
    }
}

/// The demanded items, up to a limit.
#[derive(Debug)]
pub(super) struct Requests {
    places: Vec<Place>,
    free: Vec<u32>,
    names: HashMap<ItemName, u32>,
    /// Number of items of a service at each source.
    loads: HashMap<(usize, LinkId), usize>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Place {
    turn: u32,
    wanted: Option<Box<Wanted>>,
}

/// The number of an item in a provider's role consists of its place and the number of uses of the place. The top bit is reserved for [private
/// streams](super::private).
const TURNS: u32 = 0x7FFF_FFFF;

impl Requests {
    pub(super) fn new(limit: usize) -> Self {
        let (names, loads) = (HashMap::new(), HashMap::new());
        Self { places: Vec::new(), free: Vec::new(), names, loads, limit: limit.min(1 << 30) }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn find(&self, name: &ItemName) -> Option<&Wanted> {
        self.places.get(*self.names.get(name)? as usize)?.wanted.as_deref()
    }

    fn find_mut(&mut self, name: &ItemName) -> Option<&mut Wanted> {
        self.places.get_mut(*self.names.get(name)? as usize)?.wanted.as_deref_mut()
    }

    fn insert(&mut self, wanted: Wanted) -> Option<u64> {
        if self.names.len() >= self.limit {
            return None;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            // Lossless: the limit is lower.
            (self.places.len() - 1) as u32
        });
        self.names.insert(wanted.name.clone(), place);
        *self.loads.entry((wanted.service, wanted.from)).or_default() += 1;
        let entry = &mut self.places[place as usize];
        entry.wanted = Some(Box::new(wanted));
        Some(closure(entry.turn, place))
    }

    fn of(&mut self, number: u64) -> Option<&mut Wanted> {
        let entry = self.places.get_mut((number & u64::from(u32::MAX)) as usize)?;
        if u64::from(entry.turn) == number >> 32 { entry.wanted.as_deref_mut() } else { None }
    }

    pub(super) fn number(&self, name: &ItemName) -> Option<u64> {
        let place = *self.names.get(name)?;
        Some(closure(self.places.get(place as usize)?.turn, place))
    }

    /// Removes an item that is no longer demanded.
    fn remove(&mut self, name: &ItemName) -> Option<Box<Wanted>> {
        let place = self.names.remove(name)?;
        let entry = self.places.get_mut(place as usize)?;
        entry.turn = entry.turn.wrapping_add(1) & TURNS;
        self.free.push(place);
        let wanted = entry.wanted.take()?;
        self.unload(wanted.service, wanted.from);
        Some(wanted)
    }

    /// Moves an item to another source.
    fn change_source(&mut self, number: u64, next: LinkId) {
        let Some(wanted) = self.of(number) else { return };
        let (service, before) = (wanted.service, std::mem::replace(&mut wanted.from, next));
        self.unload(service, before);
        *self.loads.entry((service, next)).or_default() += 1;
    }

    fn unload(&mut self, service: usize, source: LinkId) {
        if let Some(load) = self.loads.get_mut(&(service, source)) {
            *load -= 1;
        }
    }

    /// Returns the names of all demanded items, sorted.
    pub(super) fn names(&self) -> Vec<ItemName> {
        let mut names: Vec<ItemName> = self.names.keys().cloned().collect();
        names
            .sort_unstable_by(|a, b| (a.service, a.domain.0, &a.name).cmp(&(b.service, b.domain.0, &b.name)));
        names
    }

    fn of_service(&self, service: usize) -> Vec<u64> {
        let numbered = self.places.iter().zip(0..);
        numbered
            .filter(|(place, _)| place.wanted.as_ref().is_some_and(|wanted| wanted.service == service))
            .map(|(place, number)| closure(place.turn, number))
            .collect()
    }

    /// Returns the number of a service's items at this source.
    pub(super) fn with(&self, service: usize, source: LinkId) -> usize {
        self.loads.get(&(service, source)).copied().unwrap_or(0)
    }
}

fn closure(turn: u32, place: u32) -> u64 {
    u64::from(turn) << 32 | u64::from(place)
}

impl<P: Publish, T: Time> ConsumerApplication for Taking<'_, P, T> {
    fn event(&mut self, consumer: &mut Consumer, _out: &mut dyn Outbox, event: ConsumerEvent<'_>) {
        if self.refused.is_err() {
            return;
        }
        let link = self.link.id;
        match event {
            ConsumerEvent::Connect { attempt } => self.desk.wishes.push_back(Wish::Connect { link, attempt }),
            ConsumerEvent::Disconnect => {
                self.link.has_news = true;
                self.desk.wishes.push_back(Wish::Disconnect(link));
            }
            ConsumerEvent::TimedOut(wait) => {
                let why = format!("{wait:?} was not answered in time").to_lowercase();
                self.desk.note(SourceNote::Gone { source: self.link.name.clone(), why });
            }
            ConsumerEvent::Ended { state } => {
                let why = String::from_utf8_lossy(state.text).escape_debug().to_string();
                self.desk.note(SourceNote::Denied { source: self.link.name.clone(), why });
                self.link.has_news = true;
                self.link.again = Some(self.desk.now + self.desk.settings.refused_pause_ms * 1_000_000);
            }
            ConsumerEvent::Ready => {
                self.link.has_news = true;
                self.link.is_known_lost = false;
                self.desk.note(SourceNote::LoggedIn(self.link.name.clone()));
            }
            ConsumerEvent::Directory(_) => self.link.has_news = true,
            ConsumerEvent::Message { closure, message, is_final, .. } => {
                let Ok(header) = message.header() else { return };
                self.take(closure, &Passed::new(header, message), is_final);
            }
            ConsumerEvent::State { closure, state, is_final, .. } => {
                // A state of all items, because the provider refuses the plant: they are lost there, but have not ended.
                if is_final && consumer.is_ended() {
                    self.lost(closure, state);
                } else {
                    let passed = Passed::status(self.desk.domain_of(closure), state);
                    self.take(closure, &passed, is_final);
                }
            }
            ConsumerEvent::Ack { item, ack } => {
                match item.and_then(|item| self.desk.private.number_at(link, item)) {
                    // The ids on a private stream are the client's own.
                    Some(number) => self.desk.pass_receipt(number, &ack),
                    None => self.desk.acknowledged(link, &ack),
                }
            }
            _ => {}
        }
    }
}

impl Desk {
    fn domain_of(&mut self, number: u64) -> Domain {
        let private = self.private.domain(number);
        private.or_else(|| self.requests.of(number).map(|wanted| wanted.name.domain)).unwrap_or_default()
    }
}

impl<P: Publish, T: Time> Taking<'_, P, T> {
    /// Handles a message of a provider, or of its role, about an item.
    fn take(&mut self, number: u64, passed: &Passed<'_>, is_over: bool) {
        if self.desk.pass_private(number, passed, is_over) {
            return;
        }
        let id = self.link.id;
        let limits = self.desk.standby_limits();
        let Some(wanted) = self.desk.requests.of(number) else { return };
        if is_over {
            wanted.holds.retain(|hold| hold.link != id);
        }
        let service = wanted.service;
        if wanted.from != id {
            // This source stands by.
            let ItemName { service, domain, name } = &wanted.name;
            let key = ItemKey { service: *service, domain: *domain, name: name.as_bytes() };
            return self.link.publishing.keep(&key, passed, limits);
        }
        let (mut item, was_suspect) = (wanted.item, wanted.is_suspect);
        if matches!(passed.header, Header::Generic(_)) {
            let name = wanted.name.clone();
            return self.desk.pass_generic(service, name.domain, name.name, passed);
        }
        let is_final = is_over || is_final(&passed.header);
        if item == ItemId(0) {
            let name = wanted.name.clone();
            match self.first_number(service, name, passed, is_final) {
                Some(number) => item = number,
                None => return,
            }
        }
        let is_suspect = is_suspect(&passed.header, was_suspect);
        // Borrowed while it is passed on: a copy would cost an allocation for each message.
        let Some(wanted) = self.desk.requests.of(number) else { return };
        let name = std::mem::take(&mut wanted.name.name);
        let went = self.pass(&About { service, item, name: &name, is_suspect }, passed);
        self.desk.has_number(number, item);
        let Some(wanted) = self.desk.requests.of(number) else { return };
        wanted.name.name = name;
        wanted.is_suspect = is_suspect || !went;
        if is_final {
            let name = wanted.name.clone();
            self.desk.let_go(&name);
        }
    }

    /// Returns the number of an item that has none so far; otherwise answers with the message and returns `None`.
    fn first_number(
        &mut self,
        service: usize,
        name: ItemName,
        passed: &Passed<'_>,
        is_final: bool,
    ) -> Option<ItemId> {
        // It was open before, or a client has posted its image: it has an image, which this message concerns.
        if let Some(item) = self.to.items().find(name.service, &name.name) {
            return Some(item);
        }
        if matches!(passed.header, Header::Refresh(_)) {
            let item = self.number(service, (name.domain, name.name.as_bytes()));
            if item != ItemId(0) {
                return Some(item);
            }
            self.desk.counters.no_place += 1;
            let text = "The plant has no place for it";
            let state = closed(StreamState::CLOSED, StateCode::TOO_MANY_ITEMS, text);
            self.finish(&name, &Passed::status(name.domain, state));
        } else if is_final {
            self.finish(&name, passed);
        } else if !self.desk.has_bytes_to_answer() {
            self.desk.counters.answers_dropped += 1;
        } else {
            let message = passed.of_service(name.service).bytes();
            self.desk.answer(Answer::Status { item: name, message });
        }
        None
    }

    /// Ends an item without an image.
    fn finish(&mut self, name: &ItemName, passed: &Passed<'_>) {
        self.desk.let_go(name);
        let message = self.desk.last_word(passed).of_service(name.service).bytes();
        self.desk.answer(Answer::Status { item: name.clone(), message });
    }

    /// Handles an item that the provider has lost while it is still demanded.
    fn lost(&mut self, number: u64, state: State<'_>) {
        let state = State { stream: StreamState::OPEN, ..state };
        let domain = self.desk.domain_of(number);
        if self.desk.private.domain(number).is_some() {
            let state = State { stream: StreamState::CLOSED_RECOVER, ..state };
            self.desk.pass_private(number, &Passed::status(domain, state), true);
            return;
        }
        let id = self.link.id;
        if let Some(wanted) = self.desk.requests.of(number) {
            wanted.holds.retain(|hold| hold.link != id);
            self.take(number, &Passed::status(domain, state), false);
        }
    }
}

impl Desk {
    /// Sets the number of a demanded item, and holds it while the item is demanded.
    pub(super) fn has_number(&mut self, number: u64, item: ItemId) {
        if let Some(wanted) = self.requests.of(number)
            && wanted.item != item
        {
            self.numbers.release(std::mem::replace(&mut wanted.item, item));
            self.numbers.hold(item);
        }
    }

    /// Returns the end of a stream unchanged, or only its state if too many bytes are queued: it must not be lost.
    pub(super) fn last_word<'a>(&self, passed: &Passed<'a>) -> Passed<'a> {
        match passed.header.state() {
            Some(state) if !self.has_bytes_to_answer() => {
                Passed::status(passed.header.domain(), State { text: b"", ..state })
            }
            _ => *passed,
        }
    }

    /// Removes an item that is no longer demanded, and closes it wherever it is open.
    pub(super) fn let_go(&mut self, name: &ItemName) {
        if let Some(wanted) = self.requests.remove(name) {
            self.numbers.release(wanted.item);
            let holds = wanted.holds.iter();
            self.to_close.extend(holds.map(|hold| (hold.link, hold.handle, Some(name.clone()))));
        }
    }

    /// Marks all items of a service at this source as suspect.
    pub(super) fn doubt_requested<P: Publish>(
        &mut self,
        service: usize,
        source: LinkId,
        state: State<'_>,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        for number in self.requests.of_service(service) {
            let Some(wanted) = self.requests.of(number) else { continue };
            if wanted.from != source || wanted.is_suspect || wanted.item == ItemId(0) {
                continue;
            }
            wanted.is_suspect = true;
            let (item, name) = (wanted.item, wanted.name.clone());
            let about = About { service, item, name: &name.name, is_suspect: true };
            self.pass(&about, &Passed::status(name.domain, state), to, time)?;
        }
        Ok(())
    }
}

impl Sources {
    /// Handles the demand for an item; returns the status if the limit is reached.
    pub(super) fn want(
        &mut self,
        service: usize,
        name: &ItemName,
        priority: Priority,
    ) -> Option<State<'static>> {
        if self.desk.requests.find(name).is_some() {
            return None;
        }
        let known = self.desk.services.get(service)?;
        let policy = known.policy().unwrap_or_default();
        let up = known.members.iter().filter(|member| member.is_up).map(|member| member.link);
        let first = known.members.first().map(|member| member.link);
        let from = match policy {
            Policy::Balance => up.min_by_key(|link| self.desk.requests.with(service, *link)),
            Policy::First | Policy::Warm => known.active,
        };
        // While no source is up, the item waits at the first one.
        let from = from.or(first)?;
        let at: Vec<LinkId> = match policy {
            Policy::Warm => known.members.iter().map(|member| member.link).collect(),
            Policy::First | Policy::Balance => vec![from],
        };
        let wanted = Wanted {
            name: name.clone(),
            service,
            item: ItemId(0),
            priority,
            from,
            is_suspect: false,
            is_paused: false,
            holds: Vec::new(),
        };
        let Some(number) = self.desk.requests.insert(wanted) else {
            return Some(closed(StreamState::CLOSED, StateCode::TOO_MANY_ITEMS, "Too many items are open"));
        };
        at.into_iter().for_each(|link| self.open_at(link, number));
        None
    }

    /// Opens an item at a provider, unless it is open there.
    fn open_at(&mut self, id: LinkId, number: u64) {
        let Some(Link { role: Role::Provider(consumer), due, .. }) = self.links.get_mut(&id) else { return };
        let Some(wanted) = self.desk.requests.of(number) else { return };
        let Some(service) = self.desk.services.get(wanted.service) else { return };
        if wanted.handle(id).is_some() {
            return;
        }
        let request = ItemRequest {
            domain: wanted.name.domain,
            priority: wanted.priority,
            // Any quality of service.
            qos: None,
            closure: number,
            ..ItemRequest::new(ServiceName::Name(service.name()), wanted.name.name.as_bytes())
        };
        // A provider that refuses the plant is asked when it accepts it.
        if let Ok(handle) = consumer.open(&request) {
            wanted.holds.push(Hold { link: id, handle });
            *due = Some(self.desk.now);
        }
    }

    /// Closes an item at a provider.
    pub(super) fn close_at(&mut self, id: LinkId, handle: Handle) {
        if let Some(Link { role: Role::Provider(consumer), due, .. }) = self.links.get_mut(&id) {
            consumer.close(handle);
            *due = Some(self.desk.now);
        }
    }

    /// Requests the demanded items from a provider that had refused the plant.
    pub(super) fn open_again(&mut self, id: LinkId) {
        for service in 0..self.desk.services.len() {
            let is_warm = self.desk.services.get(service).and_then(Service::policy) == Some(Policy::Warm);
            let is_member = |service: &Service| service.members.iter().any(|member| member.link == id);
            if !self.desk.services.get(service).is_some_and(is_member) {
                continue;
            }
            for number in self.desk.requests.of_service(service) {
                if self.desk.requests.of(number).is_some_and(|wanted| is_warm || wanted.from == id) {
                    self.open_at(id, number);
                }
            }
        }
    }

    /// Returns `true` if the source of an item has sent its image.
    pub(super) fn has_image(&self, name: &ItemName) -> bool {
        let hold = self.desk.requests.find(name).and_then(Wanted::hold);
        let link = hold.and_then(|hold| Some((self.links.get(&hold.link)?, hold.handle)));
        matches!(link, Some((Link { role: Role::Provider(consumer), .. }, handle)) if consumer.has_image(handle))
    }

    /// Changes the priority of an item, or requests its image again.
    pub(super) fn want_otherwise(&mut self, name: &ItemName, priority: Option<Priority>, wants_image: bool) {
        let Some(wanted) = self.desk.requests.find_mut(name) else { return };
        wanted.priority = priority.unwrap_or(wanted.priority);
        let (holds, from) = (wanted.holds.clone(), wanted.from);
        for hold in holds {
            let wants_image = wants_image && hold.link == from;
            self.reissue_at(hold, &Reissue { priority, wants_image, ..Reissue::default() });
        }
    }

    /// Asks an item's source to pause, if its login supports that.
    pub(super) fn pause(&mut self, name: &ItemName) {
        let wanted = self.desk.requests.find_mut(name);
        let Some(wanted) = wanted.filter(|wanted| !wanted.is_paused) else { return };
        let Some(hold) = wanted.hold() else { return };
        if let Some(Link { role: Role::Provider(consumer), .. }) = self.links.get(&hold.link)
            && consumer.can_pause()
        {
            wanted.is_paused = true;
            self.reissue_at(hold, &Reissue { is_paused: Some(true), ..Reissue::default() });
        }
    }

    /// Resumes a paused source, which sends an image.
    pub(super) fn resume(&mut self, name: &ItemName) {
        if let Some(number) = self.desk.requests.number(name) {
            self.end_pause(number);
        }
    }

    /// Ends the pause of an item that moves to another source, which is not asked to pause.
    fn end_pause(&mut self, number: u64) {
        let Some(wanted) = self.desk.requests.of(number) else { return };
        if std::mem::take(&mut wanted.is_paused)
            && let Some(hold) = wanted.hold()
        {
            self.reissue_at(hold, &Reissue { is_paused: Some(false), ..Reissue::default() });
        }
    }

    fn reissue_at(&mut self, hold: Hold, reissue: &Reissue<'_>) {
        if let Some(Link { role: Role::Provider(consumer), due, .. }) = self.links.get_mut(&hold.link) {
            consumer.reissue(hold.handle, reissue);
            *due = Some(self.desk.now);
        }
    }

    /// Moves all items of a service to another source: requests them there, and closes them at the previous one.
    pub(super) fn move_items(&mut self, service: usize, next: LinkId) {
        for number in self.desk.requests.of_service(service) {
            self.move_item(number, next);
        }
    }

    fn move_item(&mut self, number: u64, next: LinkId) {
        let Some(wanted) = self.desk.requests.of(number) else { return };
        if wanted.from == next {
            self.renew_item(number);
        } else {
            let holds = std::mem::take(&mut wanted.holds);
            wanted.is_paused = false;
            self.desk.requests.change_source(number, next);
            self.desk.to_close.extend(holds.iter().map(|hold| (hold.link, hold.handle, None)));
        }
        self.open_at(next, number);
    }

    /// Requests the images of suspect items that are open at a source which serves again.
    pub(super) fn renew_items(&mut self, service: usize) {
        for number in self.desk.requests.of_service(service) {
            self.renew_item(number);
        }
    }

    fn renew_item(&mut self, number: u64) {
        let Some(wanted) = self.desk.requests.of(number).filter(|wanted| wanted.is_suspect) else { return };
        // If its stream was never closed, its data meanwhile was not accepted.
        if let Some(hold) = wanted.hold()
            && let Some(Link { role: Role::Provider(consumer), .. }) = self.links.get(&hold.link)
            && consumer.has_image(hold.handle)
        {
            self.reissue_at(hold, &Reissue { wants_image: true, ..Reissue::default() });
        }
    }
}

impl<P: Publish, T: Time> Handling<'_, P, T> {
    /// Moves the items of sources that are down to sources that are up, each to the one with the fewest items.
    pub(super) fn spread_items(&mut self, service: usize) -> Result<(), Refused> {
        let Some(known) = self.sources.desk.services.get(service) else { return Ok(()) };
        let has_any =
            |member: &super::services::Member| self.sources.desk.requests.with(service, member.link) > 0;
        if !known.members.iter().any(|member| !member.is_up && has_any(member)) {
            return Ok(());
        }
        let members = known.members.clone();
        let is_up = |link: LinkId| members.iter().any(|member| member.link == link && member.is_up);
        let mut counts: Vec<(LinkId, usize)> = members
            .iter()
            .filter(|member| member.is_up)
            .map(|member| (member.link, self.sources.desk.requests.with(service, member.link)))
            .collect();
        for member in members.iter().filter(|member| !member.is_up) {
            let text = "Another source takes over";
            self.sources.desk.doubt_requested(service, member.link, suspect(text), self.to, self.time)?;
        }
        for number in self.sources.desk.requests.of_service(service) {
            let from = self.sources.desk.requests.of(number).map(|wanted| wanted.from);
            if from.is_none_or(is_up) {
                continue;
            }
            let Some((next, count)) = counts.iter_mut().min_by_key(|(_, count)| *count) else { break };
            *count += 1;
            let next = *next;
            self.sources.move_item(number, next);
        }
        Ok(())
    }

    /// Lets a source that stood by serve: its stored images become those of the items.
    pub(super) fn switch_items(&mut self, service: usize, next: LinkId) -> Result<(), Refused> {
        let Some(id) = self.sources.desk.services.get(service).map(Service::id) else { return Ok(()) };
        for number in self.sources.desk.requests.of_service(service) {
            self.sources.end_pause(number);
            self.sources.desk.requests.change_source(number, next);
            self.sources.open_at(next, number);
        }
        let images =
            self.sources.links.get(&next).map(|link| link.state.publishing.kept_of(id)).unwrap_or_default();
        for (domain, name) in images {
            let Some(link) = self.sources.links.get_mut(&next) else { continue };
            let key = ItemKey { service: id, domain, name: &name };
            let Some(parts) = link.state.publishing.take_image(&key) else { continue };
            let Ok(text) = std::str::from_utf8(&name) else { continue };
            let name = ItemName { service: id, domain, name: text.into() };
            let Some(number) = self.sources.desk.requests.number(&name) else { continue };
            let item = match self.sources.desk.requests.of(number).map(|wanted| wanted.item) {
                Some(ItemId(0)) => {
                    self.sources.desk.number(service, (domain, text.as_bytes()), self.to, self.time)?
                }
                Some(item) => item,
                None => continue,
            };
            if item == ItemId(0) {
                continue;
            }
            self.sources.desk.has_number(number, item);
            let is_suspect =
                self.sources.desk.pass_kept(service, (item, text), &parts, self.to, self.time)?;
            if let Some(wanted) = self.sources.desk.requests.of(number) {
                wanted.is_suspect = is_suspect;
            }
        }
        // A source that served before and stood by since has stored nothing from which an image could be made.
        self.sources.renew_items(service);
        Ok(())
    }
}

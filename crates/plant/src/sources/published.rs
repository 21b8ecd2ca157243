//! What non-interactive providers publish.

use std::collections::HashMap;

use tapeline_omm::State;
use tapeline_omm::domain::directory::ServiceState;
use tapeline_omm::domain::login::{LoginFeatures, ROLE_PROVIDER};
use tapeline_omm::domain::{LoginRequest, ServiceEntry};
use tapeline_omm::role::Outbox;
use tapeline_omm::role::acceptor::{Acceptor, Application, Event, Item};
use tapeline_omm::rwf::{Domain, Header, MessageView, StateCode, StreamState};

use super::numbers::Numbers;
use super::passing::{About, Passed, closed, is_final, is_suspect};
use super::services::{Member, states};
use super::{Desk, LinkId, Note, Role, Sources, Taking};
use crate::cache::{Answer as Give, Applied, Cache, ItemKey, Limits};
use crate::demand::{Answer, ItemName};
use crate::publish::Refused;
use crate::{ItemId, Items, Publish, Seq, Sequencer, Time};

/// Names of services that one provider is told of once each that they are not taken.
const MOST_REFUSALS: usize = 16;
/// The longest part of an image that is given out of what was kept; the cache makes more parts where it can.
const FIRST_ROOM: usize = 64 << 10;
const MOST_ROOM: usize = 16 << 20;

/// What is kept of an NI provider; of an interactive one, that it stands by.
#[derive(Debug, Default)]
pub(super) struct Publishing {
    pub(super) user: String,
    /// Its services: their numbers there, and their places here.
    services: Vec<(u16, usize)>,
    refusals: Vec<String>,
    /// Items by stream that are passed on, or were.
    items: HashMap<i32, Known>,
    /// Their streams: for what goes the other way.
    streams: HashMap<(Domain, ItemId), i32>,
    /// Images of what is not passed on.
    standby: Option<Box<Cache>>,
    /// Where a message for those is written.
    room: Vec<u8>,
}

/// An item that is passed on.
#[derive(Debug, Clone, Copy)]
struct Known {
    service: usize,
    domain: Domain,
    /// 0 where it has no place.
    item: ItemId,
    is_suspect: bool,
}

impl Publishing {
    /// The stream of an item.
    pub(super) fn stream(&self, domain: Domain, item: ItemId) -> Option<i32> {
        self.streams.get(&(domain, item)).copied()
    }

    /// What the provider calls a service.
    pub(super) fn their_id(&self, service: usize) -> Option<u16> {
        self.services.iter().find(|(_, place)| *place == service).map(|(id, _)| *id)
    }

    /// An item is on a stream from now on.
    fn enter(&mut self, stream: i32, known: Known, numbers: &mut Numbers) {
        self.forget(stream, numbers);
        numbers.hold(known.item);
        self.items.insert(stream, known);
        self.streams.insert((known.domain, known.item), stream);
    }

    fn forget(&mut self, stream: i32, numbers: &mut Numbers) {
        if let Some(known) = self.items.remove(&stream) {
            numbers.release(known.item);
            self.streams.remove(&(known.domain, known.item));
        }
    }

    /// Keeps what a source that stands by says of an item.
    pub(super) fn keep(&mut self, key: &ItemKey<'_>, passed: &Passed<'_>, limits: Limits) {
        let message = passed.of_service(key.service);
        if self.room.len() < message.most() {
            self.room.resize(message.most(), 0);
        }
        let len = message.write(&mut self.room);
        let message = self.room.get(..len).unwrap_or_default();
        let cache = self.standby.get_or_insert_with(|| Box::new(Cache::new(limits)));
        // What does not fit, or cannot be read, leaves the image incomplete, and it is suspect when it is given out.
        if let Ok(Applied::Status { is_open: false }) = cache.apply(key, Seq(0), message) {
            cache.remove(key);
        }
        if self.room.len() > FIRST_ROOM {
            self.room = Vec::new();
        }
    }

    /// An item is nobody's any more: an image of it that was kept is of no use.
    pub(super) fn drop_image(&mut self, item: &ItemName) {
        if let Some(cache) = &mut self.standby {
            let name = item.name.as_bytes();
            cache.remove(&ItemKey { service: item.service, domain: item.domain, name });
        }
    }

    /// The kept images of a service, which are no longer kept here.
    pub(super) fn take_images(&mut self, service: u16) -> Vec<Kept> {
        let Some(cache) = &mut self.standby else { return Vec::new() };
        let mut all = Vec::new();
        let mut room = vec![0; FIRST_ROOM];
        for (key, image) in cache.images().filter(|(key, _)| key.service == service) {
            let mut parts = image.parts(Give { is_solicited: false, ..Give::to(0) });
            let mut messages = Vec::new();
            loop {
                match parts.write(&mut room) {
                    Ok(Some(len)) => messages.push(room[..len].into()),
                    Err(tapeline_omm::Refused::Full) if room.len() < MOST_ROOM => {
                        room.resize(room.len() * 4, 0);
                    }
                    Ok(None) | Err(_) => break,
                }
            }
            all.push(Kept { domain: key.domain, name: key.name.into(), messages });
        }
        for kept in &all {
            cache.remove(&ItemKey { service, domain: kept.domain, name: &kept.name });
        }
        all
    }
}

/// An image that was kept, in parts.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) domain: Domain,
    pub(super) name: Box<[u8]>,
    pub(super) messages: Vec<Box<[u8]>>,
}

impl Desk {
    pub(super) fn standby_limits(&self) -> Limits {
        Limits {
            items: self.settings.publishers.most_items as usize,
            bytes: self.settings.standby_bytes,
            ..Limits::default()
        }
    }
}

impl<P: Publish, T: Time> Application for Taking<'_, P, T> {
    fn event(&mut self, acceptor: &mut Acceptor, out: &mut dyn Outbox, event: Event<'_>) {
        if self.refused.is_err() {
            return;
        }
        match event {
            Event::Login { request, is_reissue } => self.let_in(acceptor, out, &request, is_reissue),
            Event::Service(entry) => {
                self.link.has_news = true;
                self.states_of(entry);
            }
            Event::DirectoryCleared => self.link.has_news = true,
            Event::Image { item, header, message } => self.published(&item, header.into(), &message),
            Event::Update { item, header, message } => self.published(&item, header.into(), &message),
            Event::Status { item, header, message } => self.published(&item, header.into(), &message),
            Event::Withdrawn { item } => self.withdrawn(&item),
            Event::Dictionary(request) => {
                let _ = acceptor.dictionary(out, request.stream_id, &self.desk.settings.dictionary);
            }
            Event::Ack(ack) => self.desk.acknowledged(self.link.id, &ack),
            Event::Generic { header, message } => {
                let known = self.link.publishing.items.get(&header.stream_id);
                let Some(known) = known.copied() else { return };
                let Some(name) = self.to.items().name(known.item) else { return };
                let name = name.into();
                self.desk.pass_generic(
                    known.service,
                    known.domain,
                    name,
                    &Passed::new(header.into(), &message),
                );
            }
            _ => {}
        }
    }
}

impl<P: Publish, T: Time> Taking<'_, P, T> {
    fn let_in(
        &mut self,
        acceptor: &mut Acceptor,
        out: &mut dyn Outbox,
        request: &LoginRequest<'_>,
        is_reissue: bool,
    ) {
        let user = String::from_utf8_lossy(request.user).into_owned();
        let source = format!("publisher {}", user.escape_debug());
        let is_known = self.desk.settings.users.as_ref().is_none_or(|users| users.contains(&user));
        let refusal = if !is_known {
            Some("This user may not publish here")
        } else if request.attributes.role != Some(ROLE_PROVIDER) {
            Some("Providers alone are let in here: the login's role is another")
        } else if is_reissue && user != self.link.publishing.user {
            Some("A login is renewed by the user whose it is")
        } else {
            None
        };
        let refuse = |acceptor: &mut Acceptor, out: &mut dyn Outbox, code, text| {
            let _ = acceptor.login_status(out, closed(StreamState::CLOSED, code, text));
        };
        if let Some(why) = refusal {
            refuse(acceptor, out, StateCode::NOT_ENTITLED, why);
            self.desk.note(Note::Denied { source, why: why.to_owned() });
            return;
        }
        let features = LoginFeatures {
            application_id: request.attributes.application_id,
            application_name: Some(b"tapeline"),
            position: request.attributes.position,
            single_open: Some(1),
            support_omm_post: Some(1),
            support_provider_dictionary_download: Some(1),
            ..LoginFeatures::default()
        };
        if acceptor.accept_login(out, request, features).is_err() {
            refuse(acceptor, out, StateCode::USAGE_ERROR, "The login is too long to be answered");
            return;
        }
        if !is_reissue {
            self.link.name.clone_from(&source);
            self.link.publishing.user = user;
            self.desk.note(Note::LoggedIn { source });
        }
    }

    /// What a provider says of all items of a service or a group.
    fn states_of(&mut self, entry: &ServiceEntry) {
        let known = self.link.publishing.services.iter().find(|(id, _)| *id == entry.id);
        let Some(place) = known.map(|(_, place)| *place) else { return };
        let Some(service) = self.desk.services.get(place) else { return };
        if service.active != Some(self.link.id) {
            return;
        }
        if let Some(entry) = states(entry, service.id()) {
            self.refused = self.desk.tick_service(place, &entry, false, self.to, self.time);
        }
    }

    fn published(&mut self, item: &Item<'_>, header: Header<'_>, message: &MessageView<'_>) {
        let passed = Passed::new(header, message);
        let services = &self.link.publishing.services;
        let place = services.iter().find(|(id, _)| Some(*id) == item.service_id).map(|(_, place)| *place);
        let service = place.and_then(|place| Some((place, self.desk.services.get(place)?)));
        let Some((place, service)) = service else {
            self.desk.counters.passed_over += 1;
            return;
        };
        if service.active != Some(self.link.id) {
            let key = ItemKey { service: service.id(), domain: item.domain, name: item.name };
            let limits = self.desk.standby_limits();
            return self.link.publishing.keep(&key, &passed, limits);
        }
        let known = self.link.publishing.items.get(&item.stream_id).copied();
        let is_image = matches!(header, Header::Refresh(_));
        let known = match known {
            Some(known) if known.item != ItemId(0) || !is_image => known,
            // It may find the place that it did not find before.
            _ if is_image => {
                let number = self.number(place, (item.domain, item.name));
                let known = Known { service: place, domain: item.domain, item: number, is_suspect: false };
                self.link.publishing.enter(item.stream_id, known, &mut self.desk.numbers);
                known
            }
            _ => {
                self.desk.counters.passed_over += 1;
                return;
            }
        };
        // A name that is not text has no number.
        let name = std::str::from_utf8(item.name).unwrap_or_default();
        if known.item == ItemId(0) {
            self.desk.counters.no_place += 1;
        } else {
            let is_suspect = is_suspect(&header, known.is_suspect);
            let about = About { service: place, item: known.item, name, is_suspect };
            let went = self.pass(&about, &passed);
            if is_suspect || !went || known.is_suspect {
                let is_suspect = is_suspect || !went;
                self.link.publishing.items.insert(item.stream_id, Known { is_suspect, ..known });
            }
        }
        if is_final(&header) {
            self.link.publishing.forget(item.stream_id, &mut self.desk.numbers);
        }
    }

    /// The number of an item that has an image; 0 where it has no place.
    pub(super) fn number(&mut self, service: usize, item: (Domain, &[u8])) -> ItemId {
        self.desk.number(service, item, self.to, self.time).unwrap_or_else(|refused| {
            self.refused = Err(refused);
            ItemId(0)
        })
    }

    /// Its stream is another item's now: nobody publishes it.
    fn withdrawn(&mut self, item: &Item<'_>) {
        if let (Some(cache), Some(id)) = (&mut self.link.publishing.standby, item.service_id)
            && let Some((_, place)) = self.link.publishing.services.iter().find(|(theirs, _)| *theirs == id)
            && let Some(service) = self.desk.services.get(*place)
        {
            cache.remove(&ItemKey { service: service.id(), domain: item.domain, name: item.name });
        }
        let Some(known) = self.link.publishing.items.get(&item.stream_id).copied() else { return };
        self.link.publishing.forget(item.stream_id, &mut self.desk.numbers);
        let is_active = self.desk.services.get(known.service).is_some_and(|s| s.active == Some(self.link.id));
        let name = std::str::from_utf8(item.name).unwrap_or_default();
        if is_active && known.item != ItemId(0) {
            let about = About { service: known.service, item: known.item, name, is_suspect: true };
            let state = closed(StreamState::CLOSED, StateCode::NONE, "The item is no longer published");
            self.pass(&about, &Passed::status(known.domain, state));
        }
    }
}

impl Sources {
    /// What an NI provider offers now: the services that this is about.
    pub(super) fn review_publisher(&mut self, id: LinkId) -> Vec<usize> {
        let Some(link) = self.links.get_mut(&id) else { return Vec::new() };
        let Role::Publisher(acceptor) = &link.role else { return Vec::new() };
        let mut concerned: Vec<usize> = link.state.publishing.services.iter().map(|(_, p)| *p).collect();
        let mut taken: Vec<(u16, usize)> = Vec::new();
        for entry in acceptor.directory().services() {
            let Some(name) = entry.name() else { continue };
            let publishing = &mut link.state.publishing;
            let place = self.desk.services.iter().position(|service| service.name() == name);
            let place = place.filter(|place| {
                let service = self.desk.services.get(*place);
                service.is_some_and(|service| service.takes_from(&publishing.user))
                    && !taken.iter().any(|(_, other)| other == place)
            });
            let Some(place) = place else {
                if publishing.refusals.len() < MOST_REFUSALS && !publishing.refusals.iter().any(|n| n == name)
                {
                    publishing.refusals.push(name.to_owned());
                    let (source, service) = (link.state.name.clone(), name.escape_debug().to_string());
                    self.desk.note(Note::NotTaken { source, service });
                }
                continue;
            };
            taken.push((entry.id, place));
            let is_up = entry.state().is_none_or(ServiceState::is_up);
            let Some(service) = self.desk.services.get_mut(place) else { continue };
            match service.members.iter_mut().find(|member| member.link == id) {
                Some(member) => member.is_up = is_up,
                None => service.members.push(Member { link: id, is_up }),
            }
            if !concerned.contains(&place) {
                concerned.push(place);
            }
        }
        for place in &concerned {
            if !taken.iter().any(|(_, other)| other == place)
                && let Some(service) = self.desk.services.get_mut(*place)
            {
                service.members.retain(|member| member.link != id);
            }
        }
        link.state.publishing.services = taken;
        concerned
    }

    /// The connection of an NI provider is over.
    pub(super) fn publisher_gone<P: Publish>(
        &mut self,
        id: LinkId,
        why: &str,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Some(link) = self.links.get(&id) else { return Ok(()) };
        let source = link.state.name.clone();
        let concerned: Vec<usize> = link.state.publishing.services.iter().map(|(_, p)| *p).collect();
        self.desk.note(Note::Gone { source, why: why.to_owned() });
        for place in &concerned {
            if let Some(service) = self.desk.services.get_mut(*place) {
                service.members.retain(|member| member.link != id);
            }
        }
        // Its items are looked at once more: it goes afterwards. Those of a service may make place for what takes over.
        let done = concerned.iter().try_for_each(|service| {
            self.release_numbers(id, |known| known.service == *service);
            self.elect(*service, to, time)
        });
        self.release_numbers(id, |known| !concerned.contains(&known.service));
        self.links.remove(&id);
        done
    }

    /// An NI provider has some of its items no longer.
    fn release_numbers(&mut self, id: LinkId, are_concerned: impl Fn(&Known) -> bool) {
        let Some(link) = self.links.get(&id) else { return };
        let items = link.state.publishing.items.values().filter(|known| are_concerned(known));
        let mut numbers: Vec<ItemId> = items.map(|known| known.item).collect();
        // Whatever the table's order is: the same plant ends the same items.
        numbers.sort_unstable();
        numbers.into_iter().for_each(|number| self.desk.numbers.release(number));
    }

    /// All items of a service that an NI provider has published become suspect.
    pub(super) fn doubt_published<P: Publish>(
        &mut self,
        service: usize,
        source: LinkId,
        state: State<'_>,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Some(link) = self.links.get_mut(&source) else { return Ok(()) };
        let is_concerned =
            |known: &&mut Known| known.service == service && known.item != ItemId(0) && !known.is_suspect;
        let mut concerned: Vec<_> = link.state.publishing.items.values_mut().filter(is_concerned).collect();
        // Whatever the table's order is: the same plant says the same.
        concerned.sort_unstable_by_key(|known| (known.item, known.domain.0));
        for known in concerned {
            known.is_suspect = true;
            let Some(name) = to.items().name(known.item).map(str::to_owned) else { continue };
            let about = About { service, item: known.item, name: &name, is_suspect: true };
            self.desk.pass(&about, &Passed::status(known.domain, state), to, time)?;
        }
        Ok(())
    }

    /// An NI provider that stood by takes over, or the first comes: its images become those of the items.
    pub(super) fn take_over_published<P: Publish>(
        &mut self,
        place: usize,
        next: LinkId,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Some(service) = self.desk.services.get(place).map(super::services::Service::id) else {
            return Ok(());
        };
        let Some(link) = self.links.get_mut(&next) else { return Ok(()) };
        let Role::Publisher(acceptor) = &link.role else { return Ok(()) };
        let images = link.state.publishing.take_images(service);
        if images.is_empty() {
            return Ok(());
        }
        let their_id = link.state.publishing.their_id(place);
        let streams: HashMap<(Domain, Box<[u8]>), i32> = acceptor
            .items()
            .filter(|item| item.service_id == their_id)
            .map(|item| ((item.domain, item.name.into()), item.stream_id))
            .collect();
        for kept in images {
            let number = self.desk.number(place, (kept.domain, &kept.name), to, time)?;
            let Some(stream) = streams.get(&(kept.domain, kept.name.clone())) else { continue };
            let mut known = Known { service: place, domain: kept.domain, item: number, is_suspect: false };
            if number != ItemId(0) {
                known.is_suspect = self.desk.pass_kept(place, number, &kept, to, time)?;
            }
            link.state.publishing.enter(*stream, known, &mut self.desk.numbers);
        }
        Ok(())
    }
}

impl Desk {
    /// Publishes an image that was kept; whether it is suspect.
    pub(super) fn pass_kept<P: Publish>(
        &mut self,
        service: usize,
        item: ItemId,
        kept: &Kept,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<bool, Refused> {
        let name = std::str::from_utf8(&kept.name).unwrap_or_default();
        let mut suspect = true;
        for message in &kept.messages {
            let Ok(view) = MessageView::parse(message) else { continue };
            let Ok(header) = view.header() else { continue };
            suspect = is_suspect(&header, false);
            let about = About { service, item, name, is_suspect: suspect };
            suspect |= !self.pass(&about, &Passed::new(header, &view), to, time)?;
        }
        Ok(suspect)
    }

    /// A generic message of a source for all who have an item open.
    pub(super) fn pass_generic(
        &mut self,
        service: usize,
        domain: Domain,
        name: Box<str>,
        passed: &Passed<'_>,
    ) {
        let Some(service) = self.services.get(service).map(super::services::Service::id) else { return };
        if !self.has_room_to_answer() {
            self.counters.answers_dropped += 1;
            return;
        }
        let item = ItemName { service, domain, name };
        self.answer(Answer::Generic { item, message: passed.of_service(service).bytes() });
    }
}

impl Desk {
    /// A client has an item of NI providers open, and with it the number that it has or will have.
    pub(super) fn want_published(&mut self, service: usize, name: &str, number: Option<ItemId>) {
        let Some(service) = self.services.get_mut(service) else { return };
        *service.wanted.entry(name.into()).or_default() += 1;
        number.into_iter().for_each(|number| self.numbers.hold(number));
    }

    /// It has it no longer.
    pub(super) fn let_go_published(&mut self, service: usize, name: &str, number: Option<ItemId>) {
        let Some(service) = self.services.get_mut(service) else { return };
        let Some(wanted) = service.wanted.get_mut(name) else { return };
        *wanted -= 1;
        if *wanted == 0 {
            service.wanted.remove(name);
        }
        number.into_iter().for_each(|number| self.numbers.release(number));
    }

    /// Nobody has any of them any more.
    pub(super) fn let_go_all_published(&mut self, items: &Items) {
        for service in &mut self.services {
            let mut wanted: Vec<_> = std::mem::take(&mut service.wanted).into_iter().collect();
            wanted.sort_unstable();
            for (name, times) in wanted {
                let number = items.find(service.id(), &name);
                (0..times).flat_map(|_| number).for_each(|number| self.numbers.release(number));
            }
        }
    }
}

//! The data of non-interactive providers.

use std::collections::HashMap;

use tapeline_omm::State;
use tapeline_omm::domain::directory::{Group, ServiceState};
use tapeline_omm::domain::login::{LoginFeatures, ROLE_PROVIDER};
use tapeline_omm::domain::{LoginRequest, ServiceEntry, ServicePart};
use tapeline_omm::role::Outbox;
use tapeline_omm::role::acceptor::{Acceptor, AcceptorApplication, AcceptorEvent, PublishedItem};
use tapeline_omm::rwf::{DataType, Domain, Header, MessageView, StateCode, StreamState};

use super::passing::{About, Passed, closed, is_final, is_suspect, suspect};
use super::services::{Member, Service, states};
use super::serving::Left;
use super::{Desk, Handling, LinkId, Role, SourceNote, Sources, Taking};
use crate::cache::{AnswerParameters as Give, Cache, ItemKey, Limits};
use crate::demand::{Answer, ItemName};
use crate::publish::Refused;
use crate::{ItemId, Items, Publish, Seq, Sequencer, Time};

/// Number of items without a source that a note names.
const SHOWN_ITEMS: usize = 5;
/// Maximum number of service names of one provider whose refusal is reported, each once.
const MOST_REFUSALS: usize = 16;
/// Maximum number of item groups of one provider in merged services, not counting the group for the rest.
const MOST_GROUPS: usize = 256;
/// Initial buffer size for a part of a stored image; the cache makes more parts if it can.
const FIRST_ROOM: usize = 64 << 10;
const MOST_ROOM: usize = 16 << 20;

/// The state of an NI provider; for an interactive one, its stored images.
#[derive(Debug, Default)]
pub(super) struct Publishing {
    pub(super) user: String,
    /// Its services: their numbers at the provider, and their indexes here.
    services: Vec<(u16, usize)>,
    refusals: Vec<String>,
    /// Merged services in which it takes part.
    shares: Vec<usize>,
    /// Items by stream whose data is or was passed on; in merged services also those for which it stands by.
    items: HashMap<i32, Known>,
    /// The streams of items that it serves or stands by for: for messages to the provider.
    streams: HashMap<(Domain, ItemId), i32>,
    /// Item groups of merged services, in the form for clients.
    groups: Vec<Box<[u8]>>,
    /// Images of items that are not passed on.
    standby: Option<Box<Cache>>,
    /// Buffer for messages to those images.
    room: Vec<u8>,
}

/// An item of a publisher.
#[derive(Debug, Clone, Copy)]
struct Known {
    service: usize,
    domain: Domain,
    /// 0 without a place.
    item: ItemId,
    is_suspect: bool,
}

impl Publishing {
    pub(super) fn stream(&self, domain: Domain, item: ItemId) -> Option<i32> {
        self.streams.get(&(domain, item)).copied()
    }

    /// Returns the provider's number of a service.
    pub(super) fn their_id(&self, service: usize) -> Option<u16> {
        self.services.iter().find(|(_, place)| *place == service).map(|(id, _)| *id)
    }

    /// Returns the index of a service by the provider's number.
    fn place_of(&self, their_id: u16) -> Option<usize> {
        self.services.iter().find(|(id, _)| *id == their_id).map(|(_, place)| *place)
    }

    /// Returns the number of stored images.
    pub(super) fn kept(&self) -> usize {
        self.standby.as_ref().map_or(0, |cache| cache.memory().items)
    }

    /// Puts an item on a stream. The previous item of the stream is no longer published.
    fn enter(&mut self, id: LinkId, stream: i32, known: Known, desk: &mut Desk) {
        self.forget(id, stream, desk);
        desk.numbers.hold(known.item);
        self.items.insert(stream, known);
        self.rejoin(id, stream, known, desk);
    }

    /// Adds a publisher, with its stream, to those that serve or stand by for an item.
    fn rejoin(&mut self, id: LinkId, stream: i32, known: Known, desk: &mut Desk) {
        if known.item != ItemId(0) {
            self.streams.insert((known.domain, known.item), stream);
            desk.serving.join(known.service, (known.domain, known.item), id);
        }
    }

    /// Removes the item of a stream, unless it is on another stream as well.
    fn forget(&mut self, id: LinkId, stream: i32, desk: &mut Desk) -> Left {
        let Some(known) = self.items.remove(&stream) else { return Left::Unchanged };
        desk.numbers.release(known.item);
        let item = (known.domain, known.item);
        if self.streams.get(&item) != Some(&stream) {
            return Left::Unchanged;
        }
        self.streams.remove(&item);
        desk.serving.leave(known.service, item, id)
    }

    /// Stores the data of an item from a source that stands by.
    pub(super) fn keep(&mut self, key: &ItemKey<'_>, passed: &Passed<'_>, limits: Limits) {
        let message = passed.of_service(key.service);
        if self.room.len() < message.most() {
            self.room.resize(message.most(), 0);
        }
        let len = message.write(&mut self.room);
        let message = self.room.get(..len).unwrap_or_default();
        let cache = self.standby.get_or_insert_with(|| Box::new(Cache::new(limits)));
        if is_final(&passed.header) {
            cache.remove(key);
        } else {
            // Data that does not fit, or is malformed, leaves the image incomplete; it is suspect when it is passed on.
            let _ = cache.apply(key, Seq(0), message);
        }
        if self.room.len() > FIRST_ROOM {
            self.room = Vec::new();
        }
    }

    /// Drops the stored image of an unused item.
    pub(super) fn drop_image(&mut self, item: &ItemName) {
        if let Some(cache) = &mut self.standby {
            let name = item.name.as_bytes();
            cache.remove(&ItemKey { service: item.service, domain: item.domain, name });
        }
    }

    /// Returns the items of a service with stored images.
    pub(super) fn kept_of(&self, service: u16) -> Vec<(Domain, Box<[u8]>)> {
        let keys = self.standby.iter().flat_map(|cache| cache.images()).map(|(key, _)| key);
        keys.filter(|key| key.service == service).map(|key| (key.domain, key.name.into())).collect()
    }

    /// Returns the group of an item whose publisher shares the service: other publishers have groups of the same name. Groups beyond a limit are
    /// combined into one. `is_used`: items are in it from now on.
    fn shared_group(&mut self, id: LinkId, own: &[u8], is_used: bool) -> SharedGroup {
        // A message without a group belongs to the group of two zero bytes.
        let group = SharedGroup::new(id, if own.is_empty() { &[0, 0] } else { own });
        if self.groups.iter().any(|known| **known == *group.bytes()) {
            return group;
        }
        if self.groups.len() >= MOST_GROUPS {
            return SharedGroup::new(id, &[]);
        }
        if is_used {
            self.groups.push(group.bytes().into());
        }
        group
    }

    /// Returns `true` if the image of an item, or a part of it, is stored; an image over a limit is not.
    fn has_image(&self, key: &ItemKey<'_>) -> bool {
        let image = self.standby.as_ref().and_then(|cache| cache.image(key));
        image.is_some_and(|image| image.is_complete() || image.container() != DataType::NO_DATA)
    }

    /// Removes and returns the stored image of an item, in parts.
    pub(super) fn take_image(&mut self, key: &ItemKey<'_>) -> Option<Vec<Box<[u8]>>> {
        let cache = self.standby.as_mut()?;
        let mut parts = cache.image(key)?.parts(Give { is_solicited: false, ..Give::to(0) });
        self.room.resize(self.room.len().max(FIRST_ROOM), 0);
        let mut messages = Vec::new();
        loop {
            match parts.write(&mut self.room) {
                Ok(Some(len)) => messages.push(self.room[..len].into()),
                Err(tapeline_omm::Refused::Full) if self.room.len() < MOST_ROOM => {
                    self.room.resize(self.room.len() * 4, 0);
                }
                Ok(None) | Err(_) => break,
            }
        }
        cache.remove(key);
        if self.room.len() > FIRST_ROOM {
            self.room = Vec::new();
        }
        Some(messages)
    }
}

/// The name of an item group with its publisher's number before it.
struct SharedGroup {
    room: [u8; 255],
    len: usize,
}

impl SharedGroup {
    fn new(id: LinkId, own: &[u8]) -> Self {
        let mut room = [0; 255];
        let bytes = id.0.to_be_bytes().into_iter().chain(own.iter().copied());
        let len = room.iter_mut().zip(bytes).map(|(room, byte)| *room = byte).count();
        Self { room, len }
    }

    fn bytes(&self) -> &[u8] {
        self.room.get(..self.len).unwrap_or_default()
    }
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

impl<P: Publish, T: Time> AcceptorApplication for Taking<'_, P, T> {
    fn event(&mut self, acceptor: &mut Acceptor, out: &mut dyn Outbox, event: AcceptorEvent<'_>) {
        if self.refused.is_err() {
            return;
        }
        match event {
            AcceptorEvent::Login { request, is_reissue } => self.let_in(acceptor, out, &request, is_reissue),
            AcceptorEvent::Service(entry) => {
                self.link.has_news = true;
                self.states_of(entry);
            }
            AcceptorEvent::DirectoryCleared => self.link.has_news = true,
            AcceptorEvent::Image { item, header, message } => self.published(&item, header.into(), &message),
            AcceptorEvent::Update { item, header, message } => self.published(&item, header.into(), &message),
            AcceptorEvent::Status { item, header, message } => self.published(&item, header.into(), &message),
            AcceptorEvent::Withdrawn { item } => self.withdrawn(&item),
            AcceptorEvent::Dictionary(request) => {
                let _ = acceptor.dictionary(out, request.stream_id, &self.desk.settings.dictionary);
            }
            AcceptorEvent::Ack(ack) => self.desk.acknowledged(self.link.id, &ack),
            AcceptorEvent::Generic { header, message } => {
                let known = self.link.publishing.items.get(&header.stream_id);
                let Some(known) = known.copied() else { return };
                if self.desk.serving.server(known.domain, known.item) != Some(self.link.id) {
                    return;
                }
                let Some(name) = self.to.items().name(known.item).map(Into::into) else { return };
                let passed = Passed::new(header.into(), &message);
                self.desk.pass_generic(known.service, known.domain, name, &passed);
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
            self.desk.note(SourceNote::Denied { source, why: why.to_owned() });
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
            self.desk.note(SourceNote::LoggedIn(source));
        }
    }

    /// Publishes a provider's states for all items of a service or a group.
    fn states_of(&mut self, entry: &ServiceEntry) {
        let Some(place) = self.link.publishing.place_of(entry.id) else { return };
        let Some(service) = self.desk.services.get(place) else { return };
        if !service.hears(self.link.id) {
            return;
        }
        let is_merged = service.is_merged();
        let Some(mut entry) = states(entry, service.id()) else { return };
        if is_merged {
            self.share_states(&mut entry);
        }
        if !entry.parts.is_empty() {
            self.refused = self.desk.tick_service(place, &entry, false, self.to, self.time);
        }
    }

    /// Converts the states of a publisher that shares a service, for all items or a group, to its own groups.
    fn share_states(&mut self, entry: &mut ServiceEntry) {
        let (id, publishing) = (self.link.id, &mut self.link.publishing);
        for (action, part) in std::mem::take(&mut entry.parts) {
            match part {
                ServicePart::Group(Group { group: Some(group), merged_to_group, status }) => {
                    let mut shared =
                        |own: &[u8], is_used| publishing.shared_group(id, own, is_used).bytes().into();
                    let group = Some(shared(&group, false));
                    let merged_to_group = merged_to_group.map(|own| shared(&own, true));
                    let group = Group { group, merged_to_group, status };
                    entry.parts.push((action, ServicePart::Group(group)));
                }
                ServicePart::State(ServiceState { status: Some(status), .. }) => {
                    let rest = SharedGroup::new(id, &[]);
                    let groups = publishing.groups.iter().map(|group| &**group);
                    let groups = groups.chain((publishing.groups.len() >= MOST_GROUPS).then(|| rest.bytes()));
                    entry.parts.extend(groups.map(|group| {
                        let (group, status) = (Some(group.into()), Some(status.clone()));
                        (action, ServicePart::Group(Group { group, status, ..Group::default() }))
                    }));
                }
                _ => {}
            }
        }
    }

    fn published(&mut self, item: &PublishedItem<'_>, header: Header<'_>, message: &MessageView<'_>) {
        let mut passed = Passed::new(header, message);
        let place = item.service_id.and_then(|id| self.link.publishing.place_of(id));
        let service = place.and_then(|place| Some((place, self.desk.services.get(place)?)));
        let Some((place, service)) = service else {
            self.desk.counters.passed_over += 1;
            return;
        };
        let (id, is_merged, is_final) = (self.link.id, service.is_merged(), is_final(&header));
        let key = ItemKey { service: service.id(), domain: item.domain, name: item.name };
        let own_group = header.group_id().filter(|_| is_merged);
        let group = own_group.map(|own| self.link.publishing.shared_group(id, own, true));
        if let Some(group) = &group {
            passed = passed.in_group(group.bytes());
        }
        if !service.hears(id) {
            let limits = self.desk.standby_limits();
            self.link.publishing.keep(&key, &passed, limits);
            if is_final {
                self.link.publishing.forget(id, item.stream_id, self.desk);
            }
            return;
        }
        let known = self.link.publishing.items.get(&item.stream_id).copied();
        let is_image = matches!(header, Header::Refresh(_));
        let known = match known {
            Some(known) if known.item != ItemId(0) || !is_image => known,
            // It may get a place that it did not get before.
            _ if is_image => {
                let number = self.number(place, (item.domain, item.name));
                let known = Known { service: place, domain: item.domain, item: number, is_suspect: false };
                self.link.publishing.enter(id, item.stream_id, known, self.desk);
                known
            }
            _ => {
                self.desk.counters.passed_over += 1;
                return;
            }
        };
        let at = (known.domain, known.item);
        if is_image && self.link.publishing.stream(at.0, at.1).is_none() {
            self.link.publishing.rejoin(id, item.stream_id, known, self.desk);
        }
        // A name that is not UTF-8 has no number.
        let name = std::str::from_utf8(item.name).unwrap_or_default();
        if known.item == ItemId(0) {
            self.desk.counters.no_place += 1;
        } else if is_merged && self.desk.serving.server(at.0, at.1) != Some(id) {
            let limits = self.desk.standby_limits();
            self.link.publishing.keep(&key, &passed, limits);
        } else if is_final && self.desk.serving.has_standby(at.0, at.1) {
            // The item ends here, and continues with another publisher.
        } else {
            let is_suspect = is_suspect(&header, known.is_suspect);
            let about = About { service: place, item: known.item, name, is_suspect };
            let went = self.pass(&about, &passed);
            if is_suspect || !went || known.is_suspect {
                let is_suspect = is_suspect || !went;
                self.link.publishing.items.insert(item.stream_id, Known { is_suspect, ..known });
            }
        }
        if is_final {
            self.end(place, item.stream_id, at);
        }
    }

    /// Removes the item of a stream: a publisher that stands by takes it over after the message is handled.
    fn end(&mut self, service: usize, stream: i32, (domain, item): (Domain, ItemId)) -> Left {
        let left = self.link.publishing.forget(self.link.id, stream, self.desk);
        if matches!(left, Left::HandedOver(_)) {
            self.desk.handed_over.push((service, domain, item));
        }
        left
    }

    /// Returns the number of an item with an image; 0 without a place.
    pub(super) fn number(&mut self, service: usize, item: (Domain, &[u8])) -> ItemId {
        self.desk.number(service, item, self.to, self.time).unwrap_or_else(|refused| {
            self.refused = Err(refused);
            ItemId(0)
        })
    }

    /// Handles an item whose stream is reused for another: its publisher no longer publishes it.
    fn withdrawn(&mut self, item: &PublishedItem<'_>) {
        let place = item.service_id.and_then(|id| self.link.publishing.place_of(id));
        if let Some(cache) = &mut self.link.publishing.standby
            && let Some(service) = place.and_then(|place| self.desk.services.get(place))
        {
            cache.remove(&ItemKey { service: service.id(), domain: item.domain, name: item.name });
        }
        let Some(known) = self.link.publishing.items.get(&item.stream_id).copied() else { return };
        let left = self.end(known.service, item.stream_id, (known.domain, known.item));
        if left == Left::ToNobody {
            let name = std::str::from_utf8(item.name).unwrap_or_default();
            let about = About { service: known.service, item: known.item, name, is_suspect: true };
            let state = closed(StreamState::CLOSED, StateCode::NONE, "The item is no longer published");
            self.pass(&about, &Passed::status(known.domain, state));
        }
    }
}

impl Sources {
    /// Updates the services of an NI provider; returns the services concerned.
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
                    self.desk.note(SourceNote::NotTaken { source, service });
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

    /// Releases the numbers of some items of an NI provider.
    fn release_numbers(&mut self, id: LinkId, are_concerned: impl Fn(&Known) -> bool) {
        let Some(link) = self.links.get(&id) else { return };
        let items = link.state.publishing.items.values().filter(|known| are_concerned(known));
        let mut numbers: Vec<ItemId> = items.map(|known| known.item).collect();
        // Independent of the table's order: the same input ends the same items.
        numbers.sort_unstable();
        numbers.into_iter().for_each(|number| self.desk.numbers.release(number));
    }
}

impl<P: Publish, T: Time> Handling<'_, P, T> {
    /// Handles the end of an NI provider's connection.
    pub(super) fn publisher_gone(&mut self, id: LinkId, why: &str) -> Result<(), Refused> {
        let Some(link) = self.sources.links.get(&id) else { return Ok(()) };
        let source = link.state.name.clone();
        let concerned: Vec<usize> = link.state.publishing.services.iter().map(|(_, p)| *p).collect();
        self.sources.desk.note(SourceNote::Gone { source, why: why.to_owned() });
        for place in &concerned {
            if let Some(service) = self.sources.desk.services.get_mut(*place) {
                service.members.retain(|member| member.link != id);
            }
        }
        // Its items are needed until then, so it is removed afterwards. Those of a service may free places for the publishers that take over.
        let done = concerned.iter().try_for_each(|service| {
            self.leave_merged(*service, id)?;
            self.sources.release_numbers(id, |known| known.service == *service);
            self.elect(*service)
        });
        self.sources.release_numbers(id, |known| !concerned.contains(&known.service));
        self.sources.links.remove(&id);
        done
    }

    /// Adds a publisher of a merged service that is up: it serves items without a source, and stands by for the rest.
    pub(super) fn join_merged(&mut self, place: usize, id: LinkId) -> Result<(), Refused> {
        let known = self.sources.desk.services.get(place);
        let Some(service) = known.filter(|known| known.is_merged() && known.is_source_up(id)) else {
            return Ok(());
        };
        let service = service.name().to_owned();
        let Some(link) = self.sources.links.get_mut(&id) else { return Ok(()) };
        if link.state.publishing.shares.contains(&place) {
            return Ok(());
        }
        link.state.publishing.shares.push(place);
        self.sources.desk.note(SourceNote::Serves { service, source: Some(link.state.name.clone()) });
        self.take_up_published(place, id)
    }

    /// Removes a publisher of a merged service that has disconnected or is down: others take over the items that they have.
    pub(super) fn leave_merged(&mut self, place: usize, id: LinkId) -> Result<(), Refused> {
        let known = self.sources.desk.services.get(place);
        let Some(service) = known.filter(|known| known.is_merged() && !known.is_source_up(id)) else {
            return Ok(());
        };
        let service = service.name().to_owned();
        let Some(link) = self.sources.links.get_mut(&id) else { return Ok(()) };
        let shares = &mut link.state.publishing.shares;
        let Some(at) = shares.iter().position(|shared| *shared == place) else { return Ok(()) };
        shares.swap_remove(at);
        let source = link.state.name.clone();
        let (taken_over, lost) = self.doubt_published(place, id, suspect("The source is down"))?;
        let unserved = lost.len();
        self.sources.desk.counters.taken_over += u64::from(taken_over > 0);
        if taken_over + unserved > 0 {
            let names = lost.into_iter().filter_map(|item| self.to.items().name(item)).take(SHOWN_ITEMS);
            let mut such_as: Vec<String> = names.map(|name| name.escape_debug().to_string()).collect();
            // An item of two domains.
            such_as.dedup();
            self.sources.desk.note(SourceNote::Left { service, source, taken_over, unserved, such_as });
        }
        Ok(())
    }

    /// Removes a publisher's items of a service. Those that others publish are handed over, the rest become suspect; returns the number of the former, and
    /// the latter, once for each domain.
    pub(super) fn doubt_published(
        &mut self,
        service: usize,
        source: LinkId,
        state: State<'_>,
    ) -> Result<(usize, Vec<ItemId>), Refused> {
        let Some(link) = self.sources.links.get(&source) else { return Ok((0, Vec::new())) };
        let items = link.state.publishing.items.iter();
        let mut concerned: Vec<(ItemId, u8, i32)> = items
            .filter(|(_, known)| known.service == service && known.item != ItemId(0))
            .map(|(stream, known)| (known.item, known.domain.0, *stream))
            .collect();
        // Independent of the table's order: the same input gives the same ticks.
        concerned.sort_unstable();
        let (mut handed_over, mut lost) = (0, Vec::new());
        for (item, domain, stream) in concerned {
            let domain = Domain(domain);
            let Some(link) = self.sources.links.get_mut(&source) else { continue };
            let publishing = &mut link.state.publishing;
            publishing.streams.remove(&(domain, item));
            let Some(known) = publishing.items.get_mut(&stream) else { continue };
            let was_suspect = std::mem::replace(&mut known.is_suspect, true);
            match self.sources.desk.serving.leave(service, (domain, item), source) {
                Left::Unchanged => {}
                Left::HandedOver(_) => {
                    handed_over += 1;
                    self.hand_over(service, (domain, item))?;
                }
                Left::ToNobody => {
                    lost.push(item);
                    self.sources.desk.serving.lose(service, (domain, item));
                    let Some(name) = self.to.items().name(item).map(str::to_owned) else { continue };
                    if !was_suspect {
                        let about = About { service, item, name: &name, is_suspect: true };
                        self.sources.desk.pass(&about, &Passed::status(domain, state), self.to, self.time)?;
                    }
                }
            }
        }
        Ok((handed_over, lost))
    }

    /// Lets the next publisher serve an item: its stored image becomes that of the item, which is suspect without one.
    pub(super) fn hand_over(
        &mut self,
        place: usize,
        (domain, item): (Domain, ItemId),
    ) -> Result<(), Refused> {
        let Some(service) = self.sources.desk.services.get(place).map(Service::id) else { return Ok(()) };
        let Some(name) = self.to.items().name(item).map(str::to_owned) else { return Ok(()) };
        let next =
            self.sources.desk.serving.server(domain, item).and_then(|next| self.sources.links.get_mut(&next));
        let Some(publishing) = next.map(|link| &mut link.state.publishing) else { return Ok(()) };
        let Some(stream) = publishing.stream(domain, item) else { return Ok(()) };
        let key = ItemKey { service, domain, name: name.as_bytes() };
        let has_image = publishing.has_image(&key);
        let image = publishing.take_image(&key).filter(|_| has_image);
        let is_suspect = match image {
            Some(parts) => self.sources.desk.pass_kept(place, (item, &name), &parts, self.to, self.time)?,
            None => {
                let about = About { service: place, item, name: &name, is_suspect: true };
                let status = Passed::status(domain, suspect("Another source takes over"));
                self.sources.desk.pass(&about, &status, self.to, self.time)?;
                true
            }
        };
        if let Some(known) = publishing.items.get_mut(&stream) {
            known.is_suspect = is_suspect;
        }
        Ok(())
    }

    /// Lets a publisher that stood by, or was down, take part in a service: its stored images become those of the items that it serves.
    pub(super) fn take_up_published(&mut self, place: usize, next: LinkId) -> Result<(), Refused> {
        let Some(service) = self.sources.desk.services.get(place).map(Service::id) else { return Ok(()) };
        let Some(link) = self.sources.links.get_mut(&next) else { return Ok(()) };
        let Role::Publisher(acceptor) = &link.role else { return Ok(()) };
        let publishing = &mut link.state.publishing;
        let mut before: Vec<(i32, Known)> = (publishing.items.iter())
            .filter(|(_, known)| known.service == place)
            .map(|(stream, known)| (*stream, *known))
            .collect();
        // Independent of the table's order: the same input gives the same order of publishers.
        before.sort_unstable_by_key(|(stream, known)| (known.item, *stream));
        for (stream, known) in before {
            publishing.rejoin(next, stream, known, &mut self.sources.desk);
        }
        let images = publishing.kept_of(service);
        if images.is_empty() {
            return Ok(());
        }
        let their_id = publishing.their_id(place);
        let streams: HashMap<(Domain, Box<[u8]>), i32> = acceptor
            .items()
            .filter(|item| item.service_id == their_id)
            .map(|item| ((item.domain, item.name.into()), item.stream_id))
            .collect();
        for (domain, name) in images {
            let key = ItemKey { service, domain, name: &name };
            let number = self.sources.desk.number(place, (domain, &name), self.to, self.time)?;
            let stream = streams.get(&(domain, name.clone()));
            let Some(stream) = stream.filter(|_| number != ItemId(0)) else {
                publishing.take_image(&key);
                continue;
            };
            let known = Known { service: place, domain, item: number, is_suspect: true };
            publishing.enter(next, *stream, known, &mut self.sources.desk);
            if self.sources.desk.serving.server(domain, number) == Some(next) {
                let parts = publishing.take_image(&key).unwrap_or_default();
                let name = std::str::from_utf8(&name).unwrap_or_default();
                let is_suspect =
                    self.sources.desk.pass_kept(place, (number, name), &parts, self.to, self.time)?;
                publishing.items.insert(*stream, Known { is_suspect, ..known });
            }
        }
        Ok(())
    }
}

impl Desk {
    /// Publishes a stored image, in parts; returns `true` if it is suspect.
    pub(super) fn pass_kept<P: Publish>(
        &mut self,
        service: usize,
        (item, name): (ItemId, &str),
        parts: &[Box<[u8]>],
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<bool, Refused> {
        let mut suspect = true;
        for message in parts {
            let Ok(view) = MessageView::parse(message) else { continue };
            let Ok(header) = view.header() else { continue };
            suspect = is_suspect(&header, false);
            let about = About { service, item, name, is_suspect: suspect };
            suspect |= !self.pass(&about, &Passed::new(header, &view), to, time)?;
        }
        Ok(suspect)
    }

    /// Passes a generic message of a source to all clients with the item open.
    pub(super) fn pass_generic(
        &mut self,
        service: usize,
        domain: Domain,
        name: Box<str>,
        passed: &Passed<'_>,
    ) {
        let Some(service) = self.services.get(service).map(Service::id) else { return };
        if !self.has_room_to_answer() {
            self.counters.answers_dropped += 1;
            return;
        }
        let item = ItemName { service, domain, name };
        self.answer(Answer::Generic { item, message: passed.of_service(service).bytes() });
    }

    /// Records that a client has an item of NI providers open, and so uses its present or future number.
    pub(super) fn want_published(&mut self, service: usize, name: &str, number: Option<ItemId>) {
        let Some(service) = self.services.get_mut(service) else { return };
        *service.wanted.entry(name.into()).or_default() += 1;
        number.into_iter().for_each(|number| self.numbers.hold(number));
    }

    /// Records that the client no longer has it open.
    pub(super) fn let_go_published(&mut self, service: usize, name: &str, number: Option<ItemId>) {
        let Some(service) = self.services.get_mut(service) else { return };
        let Some(wanted) = service.wanted.get_mut(name) else { return };
        *wanted -= 1;
        if *wanted == 0 {
            service.wanted.remove(name);
        }
        number.into_iter().for_each(|number| self.numbers.release(number));
    }

    /// Records that no client has any item open.
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

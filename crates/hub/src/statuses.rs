//! States of items, groups of items, and services.

use tapeline_nanos::Nanos;
use tapeline_omm::State;
use tapeline_omm::domain::directory::{self, Group, ServiceState};
use tapeline_omm::domain::{OwnedState, ServiceEntry, ServicePart};
use tapeline_omm::rwf::{DataState, Domain, Header, MessageView, StateCode, StatusHeader, StreamState};
use tapeline_plant::Seq;
use tapeline_plant::cache::ItemKey;
use tapeline_plant::tick::Tick;

use crate::connections::{Behind, Connections, SessionId};
use crate::feeds;
use crate::hub::Hub;
use crate::interest::{Item, ItemSlot, MOST_PERMISSION, Open, StreamPhase};
use crate::request_handler::RequestHandler;
use crate::session::Session;
use crate::status_texts::SOURCE_UNREADABLE;

/// The items of a service that a change applies to.
#[derive(Debug, Clone, Copy)]
enum Of<'a> {
    All,
    /// All, without their images.
    AllForNow,
    Group(&'a [u8]),
}

impl Hub {
    /// Handles a tick of a provider's service without an item: the service's own entry.
    pub(crate) fn service_tick(&mut self, tick: &Tick<'_>, connections: &mut impl Connections) {
        let service = tick.header.service;
        let Ok(message) = MessageView::parse(tick.body) else {
            self.counters.unusable += 1;
            return;
        };
        if message.domain() != Domain::SOURCE
            && let Ok(Header::Status(header)) = message.header()
        {
            return self.plant_above(service, header.state, connections);
        }
        let is_directory = message.domain() == Domain::SOURCE
            && matches!(message.header(), Ok(Header::Update(_) | Header::Refresh(_)));
        let Some(Ok(entries)) = is_directory.then(|| directory::services(message.payload())) else {
            self.counters.unusable += 1;
            return;
        };
        let mut changes = Vec::new();
        for entry in entries {
            match entry.ok().and_then(|entry| self.shared.services.admit(service, entry)) {
                Some(change) => changes.push(change),
                None => self.counters.unusable += 1,
            }
        }
        self.announce(tick.header.seq, &changes, connections);
    }

    /// Handles what a plant below says of a provider's service: that the plant above is silent, or is heard of again. The images keep their own
    /// states, so that each item has it again afterwards.
    fn plant_above(&mut self, service: u16, said: Option<State<'_>>, connections: &mut impl Connections) {
        let Some(said) = said.filter(|said| said.data != DataState::NO_CHANGE) else { return };
        let is_silent = said.data == DataState::SUSPECT;
        if !self.shared.services.set_silent(service, is_silent) {
            return;
        }
        let status = OwnedState::from(said);
        let state = ServiceState { status: Some(status.clone()), ..ServiceState::default() };
        let change = ServiceEntry::change(service, ServicePart::State(state));
        self.inform(std::slice::from_ref(&change), connections);
        self.spread(Seq(0), &change, Of::AllForNow, &status, connections);
        if is_silent {
            return;
        }
        for place in self.items_of(service, Of::All) {
            let own = self.shared.state(place).filter(|own| own.data == DataState::SUSPECT);
            if let Some(own) = own.map(OwnedState::from) {
                self.say_to_all(place, &self::status(own.view()), |_, _| true, connections);
            }
        }
    }

    /// Sends a change of the feeds' service to every client.
    pub(crate) fn tell(
        &mut self,
        parts: impl IntoIterator<Item = ServicePart>,
        connections: &mut impl Connections,
    ) {
        let Some(service) = self.shared.services.feeds() else { return };
        let changes: Vec<_> = parts.into_iter().map(|part| ServiceEntry::change(service, part)).collect();
        self.announce(Seq(self.next_seq), &changes, connections);
    }

    /// Applies changes of services, sends them to every client, and applies their effects on items and streams.
    pub(crate) fn announce(
        &mut self,
        seq: Seq,
        changes: &[ServiceEntry],
        connections: &mut impl Connections,
    ) {
        self.inform(changes, connections);
        for change in changes {
            for (_, part) in &change.parts {
                match part {
                    ServicePart::State(state) => {
                        if let Some(status) = &state.status {
                            self.spread(seq, change, Of::All, status, connections);
                        }
                    }
                    ServicePart::Group(Group { group: Some(group), merged_to_group, status }) => {
                        if let Some(status) = status {
                            self.spread(seq, change, Of::Group(group), status, connections);
                        }
                        if let Some(merged) = merged_to_group {
                            self.merge(seq, change.id, group, merged);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Applies changes of services, and sends them to every client.
    fn inform(&mut self, changes: &[ServiceEntry], connections: &mut impl Connections) {
        for change in changes {
            self.shared.services.apply(change);
        }
        for (id, Session { provider, backlog, .. }) in self.sessions.live_mut() {
            // Without capacity the role owes the change, and cuts a client that does not take even that: see its next step.
            connections.with(id, |out| provider.directory_changed(&mut Behind::new(backlog, out), changes));
        }
    }

    /// Applies a state of many items that clients have got through the directory: images adopt it, and streams that it closed are removed.
    fn spread(
        &mut self,
        seq: Seq,
        change: &ServiceEntry,
        of: Of<'_>,
        said: &OwnedState,
        connections: &mut impl Connections,
    ) {
        let is_suspect = said.data == DataState::SUSPECT;
        let is_over = is_final(&said.view());
        let is_of_feeds = self.shared.services.is_of_feeds(change.id);
        let are_images_kept = is_of_feeds || matches!(of, Of::AllForNow);
        let is_refused =
            is_suspect && self.sessions.iter().any(|(_, there)| there.session_state.refuses_suspect);
        let is_restated =
            self.sessions.iter().any(|(_, there)| there.session_state.pass.peer.is_json && !is_over);
        if are_images_kept && !is_refused && !is_restated {
            return;
        }
        let mut bytes = vec![0; 512 + said.text.len()];
        let len = status(said.view()).encode(&mut bytes).unwrap_or(0);
        if is_over && !is_of_feeds && matches!(of, Of::Group(_)) {
            // The group of an item without an image is known only to the roles, which have closed its streams.
            let unkept = self.places(|item| item.service == change.id && !item.has_image);
            unkept.into_iter().for_each(|place| self.forget_closed(place));
        }
        for place in self.items_of(change.id, of) {
            let Some(item) = self.shared.interest.get_mut(place) else { continue };
            if !are_images_kept {
                self.shared.images.apply(item, seq, bytes.get(..len).unwrap_or_default());
                if is_over {
                    self.source_closed(place);
                    self.forget_closed(place);
                    continue;
                }
            }
            if is_refused {
                self.refuse_suspect(place, said, connections);
            }
            if is_restated {
                self.mark_restated(place);
            }
        }
    }

    /// Moves the items of a group to another group.
    fn merge(&mut self, seq: Seq, service: u16, group: &[u8], merged: &[u8]) {
        let header = StatusHeader { group_id: Some(merged), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
        let mut bytes = vec![0; 512];
        let Ok(len) = header.encode(&mut bytes) else { return };
        for place in self.items_of(service, Of::Group(group)) {
            if let Some(item) = self.shared.interest.get_mut(place) {
                self.shared.images.apply(item, seq, bytes.get(..len).unwrap_or_default());
            }
        }
    }

    /// Returns the items that a change applies to: rare, and costs a test of each item.
    fn items_of(&self, service: u16, of: Of<'_>) -> Vec<ItemSlot> {
        let is_meant = |item: &Item| match of {
            Of::All | Of::AllForNow => true,
            Of::Group(group) if item.is_of_feeds() => feeds::group(item.channel) == *group,
            Of::Group(group) => {
                item.has_image && self.shared.images.label(item).is_some_and(|label| label.group == group)
            }
        };
        self.places(|item| item.service == service && is_meant(item))
    }

    fn places(&self, is_meant: impl Fn(&Item) -> bool) -> Vec<ItemSlot> {
        self.shared.interest.iter().filter(|(_, item)| is_meant(item)).map(|(place, _)| place).collect()
    }

    /// Sends a status of one item to all its streams, and applies it to its image.
    pub(crate) fn item_status(
        &mut self,
        place: ItemSlot,
        seq: Seq,
        message: &[u8],
        connections: &mut impl Connections,
    ) {
        let header = MessageView::parse(message).and_then(|message| message.header());
        let Ok(Header::Status(header)) = header else {
            self.counters.unusable += 1;
            return;
        };
        if header.permission_data.is_some_and(|data| data.len() > MOST_PERMISSION) {
            self.counters.unusable += 1;
            return;
        }
        let Some(item) = self.shared.interest.get_mut(place) else { return };
        let is_over = header.state.is_some_and(|state| is_final(&state));
        if header.state.is_some() {
            for open in item.streams.iter_mut().filter(|open| open.phase == StreamPhase::NoImage) {
                open.is_told = true;
            }
        }
        if is_over || item.streams.iter().all(Open::has_heard) {
            item.set_due(Nanos(0));
        }
        self.shared.images.apply(item, seq, message);
        let other = header.permission_data.filter(|data| item.permission() != Some(*data));
        if let Some(permission) = other {
            item.set_permission(permission);
        }
        if header.flags.has(tapeline_omm::rwf::flags::status::CLEAR_CACHE) {
            item.has_image = false;
        }
        if other.is_some() && self.shared.gate.uses_codes {
            self.take_away_denied(place, connections);
        }
        if is_over {
            return self.last_word(place, &header, connections);
        }
        self.say_to_all(place, &header, |_, _| true, connections);
        if let Some(state) = header.state.filter(|state| state.data == DataState::SUSPECT)
            && self.sessions.iter().any(|(_, there)| there.session_state.refuses_suspect)
        {
            self.refuse_suspect(place, &OwnedState::from(state), connections);
        }
    }

    /// Closes an item for clients that have lost access by its present codes.
    pub(crate) fn take_away_denied(&mut self, place: ItemSlot, connections: &mut impl Connections) {
        let Some(item) = self.shared.interest.get(place) else { return };
        let streams: Vec<_> = item.streams.iter().map(|open| (open.session, open.stream)).collect();
        for (id, stream) in streams {
            let Some(Session { provider, session_state, .. }) = self.sessions.get_mut(id) else { continue };
            let mut desk =
                RequestHandler::new(id, self.now, &mut self.shared, session_state, &mut self.notes);
            if let Some(refusal) = desk.refusal_of(stream) {
                desk.take_away(provider, stream, refusal);
                connections.with(id, |out| self.room(self.now, id, out));
            }
        }
    }

    /// Sends a final status of one item.
    pub(crate) fn last_word(
        &mut self,
        place: ItemSlot,
        header: &StatusHeader<'_>,
        connections: &mut impl Connections,
    ) {
        self.say_to_all(place, header, |_, _| true, connections);
        self.source_closed(place);
    }

    /// Handles the end of an item's number, which is reassigned: the item had no publisher, and no demand when the plant was last informed.
    #[cold]
    pub(crate) fn number_ends(
        &mut self,
        tick: &Tick<'_>,
        message: &MessageView<'_>,
        connections: &mut impl Connections,
    ) {
        let mut places = self.shared.interest.end_number(tick.header.item);
        if places.is_empty() {
            // All numbers were removed, and the item has had no tick since.
            let (service, name) = (tick.header.service, tick.name.as_bytes());
            let named = |domain| ItemKey { service, domain: Domain(domain), name };
            places.extend((0..=u8::MAX).filter_map(|domain| self.shared.interest.find(&named(domain))));
        }
        for place in places {
            let Some(item) = self.shared.interest.get(place) else { continue };
            // A client that requested it meanwhile, and waits, is served by the plant's next answer.
            if item.streams.iter().all(|open| open.phase == StreamPhase::NoImage) {
                self.shared.forget_image(place);
                self.shared.interest.forget_if_idle(place);
            } else if let Ok(Header::Status(header)) = message.header() {
                self.last_word(place, &header, connections);
            }
        }
    }

    /// Handles an unreadable message of an item: it is not sent, and the clients' data may be wrong.
    #[cold]
    pub(crate) fn unreadable(&mut self, place: ItemSlot, connections: &mut impl Connections) {
        self.counters.unusable += 1;
        let state = suspect(StreamState::OPEN, StateCode::NONE, SOURCE_UNREADABLE);
        self.say_to_all(place, &status(state), |_, _| true, connections);
    }

    /// Handles an item that its source closed: its data is removed.
    fn source_closed(&mut self, place: ItemSlot) {
        self.shared.forget_image(place);
        if let Some(upstream) = self.shared.interest.get_mut(place).and_then(|item| item.upstream.as_mut()) {
            upstream.is_over = true;
        }
        self.shared.tell_source(place);
        self.shared.interest.forget_if_idle(place);
    }

    /// Removes streams of an item that the sessions' roles have closed.
    fn forget_closed(&mut self, place: ItemSlot) {
        let Some(item) = self.shared.interest.get(place) else { return };
        let is_closed = |session: SessionId, stream| {
            let there = self.sessions.get(session);
            there.is_none_or(|there| there.provider.stream_id(stream).is_none())
        };
        let streams = item.streams.iter().map(|open| (open.session, open.stream));
        let closed: Vec<_> = streams.filter(|(session, stream)| is_closed(*session, *stream)).collect();
        closed.into_iter().for_each(|(session, stream)| self.shared.close(session, stream));
    }

    /// Closes the streams of clients that prefer a retry to suspect data.
    fn refuse_suspect(&mut self, place: ItemSlot, said: &OwnedState, connections: &mut impl Connections) {
        let state = State { stream: StreamState::CLOSED_RECOVER, ..said.view() };
        let prefers = |session: &Session, _: &Open| session.session_state.refuses_suspect;
        self.say_to_all(place, &status(state), prefers, connections);
    }
}

/// Returns a state of suspect data.
pub(crate) const fn suspect(stream: StreamState, code: StateCode, text: &str) -> State<'_> {
    State { stream, data: DataState::SUSPECT, code, text: text.as_bytes() }
}

/// Returns a status with a state. Its stream determines the domain.
pub(crate) fn status(state: State<'_>) -> StatusHeader<'_> {
    StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) }
}

/// Returns `true` if a state ends its stream.
pub(crate) fn is_final(state: &State<'_>) -> bool {
    matches!(state.stream, StreamState::CLOSED | StreamState::CLOSED_RECOVER | StreamState::REDIRECTED)
}

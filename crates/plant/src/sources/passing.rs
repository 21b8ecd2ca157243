//! The messages of sources as ticks.

use tapeline_omm::State;
use tapeline_omm::domain::{ServiceEntry, directory};
use tapeline_omm::rwf::{DataState, Domain, Header, Key, PostUserInfo, StateCode, StatusHeader, StreamState};

use super::{Desk, SourceNote, Taking};
use crate::cache::copy;
use crate::publish::Refused;
use crate::tick::{Flags, Kind};
use crate::{ItemId, Origin, Publish, Sequencer, Stamps, Time};

/// Maximum growth of a header: the plant's number of a service takes two bytes instead of the source's one, the user information of a post nine,
/// and a publisher's number before an item group four.
const GROWTH: usize = 32;
/// Maximum size of a directory entry in bytes.
const MOST_DIRECTORY: usize = 66_000;

/// A decoded message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passed<'a> {
    pub(super) header: Header<'a>,
    pub(super) payload: &'a [u8],
    /// Bytes of the original header.
    pub(super) header_len: usize,
}

/// The item of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) service: usize,
    pub(super) item: ItemId,
    pub(super) name: &'a str,
    pub(super) is_suspect: bool,
}

impl<'a> Passed<'a> {
    pub(super) fn new(header: Header<'a>, message: &tapeline_omm::rwf::MessageView<'a>) -> Self {
        Self { header, payload: message.payload(), header_len: message.header_len() }
    }

    /// Creates a status of the plant itself.
    pub(super) fn status(domain: Domain, state: State<'a>) -> Self {
        let header = StatusHeader { state: Some(state), ..StatusHeader::new(domain, 0) };
        Self { header: header.into(), payload: &[], header_len: 64 + state.text.len() }
    }

    /// Returns the maximum size of the message in bytes.
    pub(super) const fn most(&self) -> usize {
        self.header_len + GROWTH + self.payload.len()
    }

    /// Sets stream id 0, and the plant's number of the service if its key contains one.
    pub(super) fn of_service(mut self, service: u16) -> Self {
        match &mut self.header {
            Header::Refresh(header) => (header.stream_id, header.key) = (0, own(header.key, service)),
            Header::Update(header) => (header.stream_id, header.key) = (0, own(header.key, service)),
            Header::Status(header) => (header.stream_id, header.key) = (0, own(header.key, service)),
            Header::Generic(header) => (header.stream_id, header.key) = (0, own(header.key, service)),
            Header::Ack(header) => (header.stream_id, header.key) = (0, own(header.key, service)),
            Header::Post(header) => (header.stream_id, header.key) = (0, own(header.key, service)),
            _ => {}
        }
        self
    }

    /// Sets the item group, if the message contains one.
    pub(super) fn in_group(mut self, group: &'a [u8]) -> Self {
        match &mut self.header {
            Header::Refresh(header) => header.group_id = group,
            Header::Status(header) => header.group_id = header.group_id.and(Some(group)),
            _ => {}
        }
        self
    }

    /// Sets the poster's user information.
    pub(super) fn posted_by(mut self, user: PostUserInfo) -> Self {
        match &mut self.header {
            Header::Refresh(header) => header.post_user_info = Some(user),
            Header::Update(header) => header.post_user_info = Some(user),
            Header::Status(header) => header.post_user_info = Some(user),
            _ => {}
        }
        self
    }

    /// Writes the message to the front of `room`, which has [`most`](Self::most) bytes; returns its length. A decoded message can be encoded; if it
    /// fails nevertheless, nothing is written.
    pub(super) fn write(&self, room: &mut [u8]) -> usize {
        self.header.encode_with(room, |room| copy(self.payload, room)).unwrap_or(0)
    }

    pub(super) fn bytes(&self) -> Box<[u8]> {
        let mut room = vec![0; self.most()];
        let len = self.write(&mut room);
        room.truncate(len);
        room.into()
    }
}

fn own(key: Option<Key<'_>>, service: u16) -> Option<Key<'_>> {
    key.map(|key| Key { service_id: key.service_id.map(|_| service), ..key })
}

/// Returns the state of an open stream with suspect data.
pub(super) const fn suspect(text: &str) -> State<'_> {
    State {
        stream: StreamState::OPEN,
        data: DataState::SUSPECT,
        code: StateCode::NONE,
        text: text.as_bytes(),
    }
}

/// Returns the state of a closed stream; `CLOSED_RECOVER` if a retry may help.
pub(super) const fn closed(stream: StreamState, code: StateCode, text: &str) -> State<'_> {
    State { stream, data: DataState::SUSPECT, code, text: text.as_bytes() }
}

impl Desk {
    /// Publishes a message of an item. Returns `false` for a message that exceeds the maximum of the ring: it is not published, and its item
    /// becomes suspect.
    pub(super) fn pass<P: Publish>(
        &mut self,
        about: &About<'_>,
        passed: &Passed<'_>,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<bool, Refused> {
        match self.tick(about, passed, to, time) {
            Ok(()) => Ok(true),
            Err(Refused::TooLong { len, max }) => {
                self.counters.too_long += 1;
                if let Some(service) = self.services.get_mut(about.service)
                    && !std::mem::replace(&mut service.has_said_too_long, true)
                {
                    let (service, item) = (service.name().to_owned(), about.name.to_owned());
                    self.note(SourceNote::TooLong { service, item, len, max });
                }
                let text = "A message of this item is too long for the plant";
                let status = Passed::status(passed.header.domain(), suspect(text));
                self.tick(&About { is_suspect: true, ..*about }, &status, to, time)?;
                Ok(false)
            }
            Err(stopping) => Err(stopping),
        }
    }

    /// Publishes the last tick of an unused item, whose number is free from then on.
    pub(super) fn pass_last<P: Publish>(
        &mut self,
        service: usize,
        (item, name): (ItemId, &str),
        passed: &Passed<'_>,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Some(known) = self.services.get(service) else { return Ok(()) };
        let origin = Origin { item, name, ..known.origin() };
        let write = |room: &mut [u8]| passed.write(room);
        to.end_item(passed.most(), Flags::SUSPECT, &origin, Stamps::at(self.now), time, write)?;
        self.counters.statuses += 1;
        Ok(())
    }

    fn tick<P: Publish>(
        &mut self,
        about: &About<'_>,
        passed: &Passed<'_>,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Some(service) = self.services.get(about.service) else { return Ok(()) };
        let (kind, count) = match passed.header {
            Header::Refresh(_) => (Kind::Refresh, &mut self.counters.refreshes),
            Header::Update(_) => (Kind::Update, &mut self.counters.updates),
            _ => (Kind::Status, &mut self.counters.statuses),
        };
        let origin = Origin { item: about.item, name: about.name, ..service.origin() };
        let flags = if about.is_suspect { Flags::SUSPECT } else { Flags::default() };
        let passed = passed.of_service(service.id());
        // The time of a source's message is its arrival time, the only known one.
        let stamps = Stamps::at(self.now);
        to.tick_up_to(passed.most(), (kind, flags), &origin, stamps, time, |room| passed.write(room))?;
        *count += 1;
        self.numbers.note_codes(about.item, &passed.header);
        Ok(())
    }

    /// Publishes a change of a service.
    pub(super) fn tick_service<P: Publish>(
        &mut self,
        service: usize,
        entry: &ServiceEntry,
        has_turned: bool,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Some(service) = self.services.get(service) else { return Ok(()) };
        let mut room = vec![0; MOST_DIRECTORY];
        let filter = directory::filter::ALL;
        // Longer than any message: such an entry is useless to all readers.
        let Ok(len) = directory::encode_update(0, filter, [entry], &mut room) else {
            self.counters.passed_over += 1;
            return Ok(());
        };
        let flags = if has_turned { Flags::STATE } else { Flags::default() };
        let flags = if service.is_up() { flags } else { flags | Flags::SUSPECT };
        let (stamps, body) = (Stamps::at(self.now), &room[..len]);
        let told = to.tick_up_to(len, (Kind::Status, flags), &service.origin(), stamps, time, |room| {
            room[..len].copy_from_slice(body);
            len
        });
        match told {
            Ok(_) => self.counters.statuses += 1,
            Err(Refused::TooLong { .. }) => self.counters.too_long += 1,
            Err(stopping) => return Err(stopping),
        }
        Ok(())
    }
}

impl<P: Publish, T: Time> Taking<'_, P, T> {
    /// Publishes a message of an item; after a refusal nothing.
    pub(super) fn pass(&mut self, about: &About<'_>, passed: &Passed<'_>) -> bool {
        let passed = self.refused.and_then(|()| self.desk.pass(about, passed, self.to, self.time));
        self.refused = passed.map(|_| ());
        passed.unwrap_or(false)
    }
}

/// Returns `true` if an item is suspect after a message; a message without a state does not change it.
pub(super) fn is_suspect(header: &Header<'_>, before: bool) -> bool {
    match header.state().map(|state| state.data) {
        Some(DataState::SUSPECT) => true,
        Some(DataState::OK) => false,
        _ => before,
    }
}

/// Returns `true` if a message ends its stream.
pub(super) fn is_final(header: &Header<'_>) -> bool {
    let state = header.state().map(|state| state.stream);
    matches!(state, Some(StreamState::CLOSED | StreamState::CLOSED_RECOVER | StreamState::REDIRECTED))
}

//! One item: the data in its messages apart from the payload, and its image.

use std::hash::{Hash, Hasher};
use std::num::NonZeroU16;

use tapeline_omm::role::Name;
use tapeline_omm::rwf::{
    DataState, DataType, Domain, Qos, RefreshHeader, State, StateCode, StatusHeader, StreamState,
};

use super::body::Body;
use crate::Seq;

/// The key of an image: one for each service, domain and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemKey<'k> {
    /// Number of the service.
    pub service: u16,
    /// The domain of the item.
    pub domain: Domain,
    /// The name of the item, as the bytes of a message key: at most 255.
    pub name: &'k [u8],
}

/// Writes two pieces instead of one for each member: the hash is most of the cost of a lookup.
impl Hash for ItemKey<'_> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.name);
        state.write_u32(u32::from(self.service) << 8 | u32::from(self.domain.0));
    }
}

#[derive(Debug)]
pub(super) struct Item {
    labels: Labels,
    /// Distinguishes successive items in the same place.
    pub(super) serial: u32,
    pub(super) body: Body,
    pub(super) seq: Seq,
    pub(super) sequence: Option<u32>,
    pub(super) qos: Option<Qos>,
    pub(super) service: u16,
    /// Number of the service's dictionary at the creation of the item, plus one.
    dictionary: Option<NonZeroU16>,
    pub(super) domain: Domain,
    pub(super) container: DataType,
    stream: StreamState,
    data: DataState,
    code: StateCode,
    pub(super) progress: Progress,
    /// `true` if some data was lost: it exceeded a limit, or was unreadable.
    pub(super) is_broken: bool,
}

const _: () = assert!(size_of::<Option<Item>>() == 112, "there may be a hundred thousand");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// No data, or all of it cleared.
    Empty,
    /// Some parts, but not the last.
    Begun,
    /// All parts.
    Complete,
}

/// The texts of an item, contiguous in memory: name, group, permission data, text of the state. Mostly so short that they are in place.
#[derive(Debug)]
struct Labels {
    bytes: Name,
    name: u8,
    group: u8,
    permission: u16,
    has_permission: bool,
}

/// The texts of an item that messages can change.
#[derive(Clone, Copy, Default, PartialEq)]
struct Texts<'a> {
    group: &'a [u8],
    permission: Option<&'a [u8]>,
    text: &'a [u8],
}

impl Labels {
    fn new(name: &[u8], Texts { group, permission, text }: Texts<'_>) -> Self {
        let data = permission.unwrap_or_default();
        Self {
            bytes: [name, group, data, text].concat().as_slice().into(),
            // Lossless: the lengths of a key, a header and permission data are u8, u8 and u15.
            name: name.len() as u8,
            group: group.len() as u8,
            permission: data.len() as u16,
            has_permission: permission.is_some(),
        }
    }

    fn texts(&self) -> Texts<'_> {
        let (_, rest) = self.bytes.split_at_checked(self.name.into()).unwrap_or_default();
        let (group, rest) = rest.split_at_checked(self.group.into()).unwrap_or_default();
        let (permission, text) = rest.split_at_checked(self.permission.into()).unwrap_or_default();
        Texts { group, permission: self.has_permission.then_some(permission), text }
    }

    #[inline]
    fn name(&self) -> &[u8] {
        self.bytes.get(..self.name.into()).unwrap_or_default()
    }
}

impl Item {
    /// Creates an item with only its key.
    pub(super) fn new(key: &ItemKey<'_>, serial: u32) -> Self {
        Self {
            labels: Labels::new(key.name, Texts::default()),
            serial,
            body: Body::None,
            seq: Seq(0),
            sequence: None,
            qos: None,
            service: key.service,
            dictionary: None,
            domain: key.domain,
            container: DataType::NO_DATA,
            stream: StreamState::OPEN,
            data: DataState::SUSPECT,
            code: StateCode::NONE,
            progress: Progress::Empty,
            is_broken: false,
        }
    }

    #[inline]
    pub(super) fn key(&self) -> ItemKey<'_> {
        ItemKey { service: self.service, domain: self.domain, name: self.labels.name() }
    }

    /// Returns the number of the dictionary by which the image was begun.
    #[inline]
    pub(super) fn dictionary(&self) -> Option<u16> {
        self.dictionary.map(|number| number.get() - 1)
    }

    pub(super) fn set_dictionary(&mut self, number: Option<u16>) {
        self.dictionary = number.and_then(|number| NonZeroU16::new(number.wrapping_add(1)));
    }

    pub(super) fn group(&self) -> &[u8] {
        self.labels.texts().group
    }

    pub(super) fn permission_data(&self) -> Option<&[u8]> {
        self.labels.texts().permission
    }

    /// Returns the state from the source, regardless of the image.
    pub(super) fn state(&self) -> State<'_> {
        State { stream: self.stream, data: self.data, code: self.code, text: self.labels.texts().text }
    }

    /// Stores the data of a refresh apart from its payload. Permission data and quality of service stay if it has none.
    pub(super) fn note_refresh(&mut self, header: &RefreshHeader<'_>) {
        self.note_state(&header.state);
        self.note_labels(Some(header.group_id), header.permission_data, Some(header.state.text));
        self.qos = header.qos.or(self.qos);
        self.sequence = header.sequence.or(self.sequence);
    }

    /// Stores the data of an update apart from its payload, and its sequence.
    #[inline]
    pub(super) fn note_update(&mut self, seq: Seq, sequence: Option<u32>) {
        self.seq = seq;
        self.sequence = sequence.or(self.sequence);
    }

    /// Stores the data of a status.
    pub(super) fn note_status(&mut self, header: &StatusHeader<'_>) {
        if let Some(state) = &header.state {
            self.note_state(state);
        }
        self.note_labels(header.group_id, header.permission_data, header.state.map(|state| state.text));
    }

    fn note_state(&mut self, state: &State<'_>) {
        self.stream = state.stream;
        // With NO_CHANGE only the stream state changes (RWF chapter 2).
        if state.data != DataState::NO_CHANGE {
            self.data = state.data;
        }
        self.code = state.code;
    }

    fn note_labels(&mut self, group: Option<&[u8]>, permission: Option<&[u8]>, text: Option<&[u8]>) {
        let old = self.labels.texts();
        let new = Texts {
            group: group.unwrap_or(old.group),
            permission: permission.or(old.permission),
            text: text.unwrap_or(old.text),
        };
        if new != old {
            self.labels = Labels::new(self.labels.name(), new);
        }
    }

    /// Returns the bytes of memory outside its place among the items.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.labels.bytes.allocated() + self.body.bytes()
    }
}

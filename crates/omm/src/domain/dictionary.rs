//! The dictionary domain (5): requests for field dictionaries, and their answers.
//!
//! [`Download`](crate::dictionary::Download) reads the payloads, and
//! [`Dictionary::encode_fields`](crate::Dictionary::encode_fields) writes them.

use crate::dictionary::{Part, Verbosity};
use crate::rwf::{DataType, Domain, Flags, Key, Priority, RefreshHeader, RequestHeader, StreamState, flags};
use crate::{Dictionary, Refused, State};

/// Name of the field dictionary.
pub const FIELDS: &str = "RWFFld";
/// Name of the enumerations.
pub const ENUMERATIONS: &str = "RWFEnum";

/// Kind of dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DictionaryKind {
    /// `RWFFld`.
    Fields,
    /// `RWFEnum`.
    Enumerations,
}

impl DictionaryKind {
    /// Returns the kind with this name; `None` for any other name.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        [Self::Fields, Self::Enumerations].into_iter().find(|kind| kind.name().as_bytes() == name)
    }

    /// Returns the name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fields => FIELDS,
            Self::Enumerations => ENUMERATIONS,
        }
    }
}

/// A dictionary request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionaryRequest<'a> {
    /// Stream to open.
    pub stream_id: i32,
    /// [`flags::request`]: STREAMING to receive new versions too.
    pub flags: Flags,
    /// Service that provides the dictionary.
    pub service_id: Option<u16>,
    /// Name of the dictionary.
    pub name: &'a [u8],
    /// Detail level.
    pub verbosity: Verbosity,
}

impl<'a> DictionaryRequest<'a> {
    /// Returns a streaming request for all that displaying values needs.
    #[must_use]
    pub const fn new(stream_id: i32, service_id: u16, kind: DictionaryKind) -> DictionaryRequest<'static> {
        DictionaryRequest {
            stream_id,
            flags: flags::request::STREAMING,
            service_id: Some(service_id),
            name: kind.name().as_bytes(),
            verbosity: Verbosity::NORMAL,
        }
    }

    /// Reads a request of the dictionary domain. Without a filter, the detail level is all that displaying values
    /// needs.
    #[must_use]
    pub fn read(header: &RequestHeader<'a>) -> Self {
        Self {
            stream_id: header.stream_id,
            flags: header.flags,
            service_id: header.key.service_id,
            name: header.key.name.unwrap_or_default(),
            verbosity: header.key.filter.map_or(Verbosity::NORMAL, Verbosity),
        }
    }

    /// Returns the request with the name of `kind`, to be kept.
    pub(crate) const fn kept(&self, kind: DictionaryKind) -> DictionaryRequest<'static> {
        let Self { stream_id, flags, service_id, verbosity, .. } = *self;
        DictionaryRequest { stream_id, flags, service_id, name: kind.name().as_bytes(), verbosity }
    }

    /// Returns `true` if the stream is to stay open.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.flags.has(flags::request::STREAMING)
    }

    /// Returns the key of the request and of its answers.
    #[must_use]
    pub const fn key(&self) -> Key<'a> {
        Key {
            service_id: self.service_id,
            name: Some(self.name),
            name_type: None,
            filter: Some(self.verbosity.0),
            identifier: None,
            attributes: None,
        }
    }

    /// Writes the message to the start of `out`; returns its length.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for a name of more than 255 bytes.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
        let header = RequestHeader::new(Domain::DICTIONARY, self.stream_id, self.key());
        let priority = Some(Priority { class: 1, count: 1 });
        RequestHeader { flags: self.flags, priority, ..header }.encode(out)
    }

    /// Writes one part of the answer to the start of `out`: a refresh with as many entries of the dictionary as fit,
    /// from index `from` on. [`Part::len`] is the length of the whole message. Continue with [`Part::next`] until
    /// [`Part::is_last`]. The first part clears the cache, the last part completes the refresh.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] if not even one entry fits; [`Refused::TooLong`] for an entry that can never fit.
    pub fn encode_part(
        &self,
        kind: DictionaryKind,
        dictionary: &Dictionary,
        from: usize,
        out: &mut [u8],
    ) -> Result<Part, Refused> {
        use flags::refresh as flag;
        let stream = if self.is_streaming() { StreamState::OPEN } else { StreamState::NON_STREAMING };
        let state = State { stream, ..State::OPEN_OK };
        let mut header = RefreshHeader {
            flags: flag::SOLICITED,
            key: Some(self.key()),
            ..RefreshHeader::new(Domain::DICTIONARY, self.stream_id, state, DataType::SERIES)
        };
        if from == 0 {
            header.flags |= flag::CLEAR_CACHE;
        }
        // The flag of the last part does not change the header's length: its bit is among the low seven.
        let len = header.encode(out)?;
        header.flags |= flag::REFRESH_COMPLETE;
        let room = out.get_mut(len..).ok_or(Refused::Full)?;
        let part = match kind {
            DictionaryKind::Fields => dictionary.encode_fields(from, self.verbosity, room)?,
            DictionaryKind::Enumerations => dictionary.encode_enumerations(from, self.verbosity, room)?,
        };
        if part.is_last {
            let complete = header.encode(out.get_mut(..len).unwrap_or_default())?;
            debug_assert_eq!(complete, len);
        }
        Ok(Part { len: len + part.len, ..part })
    }
}

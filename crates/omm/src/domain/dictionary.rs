//! The dictionary domain (5): how field dictionaries are asked for and sent.
//!
//! What a payload holds is read by [`Download`](crate::dictionary::Download) and written by
//! [`Dictionary::encode_fields`](crate::Dictionary::encode_fields).

use crate::dictionary::{Part, Verbosity};
use crate::rwf::{DataType, Domain, Flags, Key, Priority, RefreshHeader, RequestHeader, flags};
use crate::{Dictionary, Refused, State};

/// Name of the field dictionary.
pub const FIELDS: &str = "RWFFld";
/// Name of the enumerations.
pub const ENUMERATIONS: &str = "RWFEnum";

/// Which of the two dictionaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DictionaryKind {
    /// `RWFFld`.
    Fields,
    /// `RWFEnum`.
    Enumerations,
}

impl DictionaryKind {
    /// By its name; `None` for any other.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        [Self::Fields, Self::Enumerations].into_iter().find(|kind| kind.name().as_bytes() == name)
    }

    /// What it is called on the wire.
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
    /// Stream that is opened.
    pub stream_id: i32,
    /// [`flags::request`]: STREAMING to hear of a new version.
    pub flags: Flags,
    /// Which service's dictionary.
    pub service_id: Option<u16>,
    /// Name of the dictionary.
    pub name: &'a [u8],
    /// How much of it.
    pub verbosity: Verbosity,
}

impl<'a> DictionaryRequest<'a> {
    /// A streaming request for all that showing values needs.
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

    /// From a request of the dictionary domain. Without a filter, all that showing values needs is meant.
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

    /// Whether the stream is to stay open.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.flags.has(flags::request::STREAMING)
    }

    /// The request's key, and that of its answers.
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

    /// Writes the message to the front of `out`; returns its length.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for a name of more than 255 bytes.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
        let header = RequestHeader::new(Domain::DICTIONARY, self.stream_id, self.key());
        let priority = Some(Priority { class: 1, count: 1 });
        RequestHeader { flags: self.flags, priority, ..header }.encode(out)
    }

    /// Writes one part of the answer to the front of `out`: the refresh with as many entries of the dictionary from the
    /// `from`th on as have room. [`Part::len`] is that of the whole message; go on with [`Part::next`] until
    /// [`Part::is_last`]. The first part clears a cache, the last one completes.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] where not even one entry has room, [`Refused::TooLong`] for one that can have none.
    pub fn encode_part(
        &self,
        kind: DictionaryKind,
        dictionary: &Dictionary,
        from: usize,
        out: &mut [u8],
    ) -> Result<Part, Refused> {
        use flags::refresh as flag;
        let stream =
            if self.is_streaming() { State::OPEN_OK.stream } else { crate::rwf::StreamState::NON_STREAMING };
        let mut header = RefreshHeader {
            flags: flag::SOLICITED,
            key: Some(self.key()),
            ..RefreshHeader::new(
                Domain::DICTIONARY,
                self.stream_id,
                State { stream, ..State::OPEN_OK },
                DataType::SERIES,
            )
        };
        if from == 0 {
            header.flags |= flag::CLEAR_CACHE;
        }
        // The bit of the last part changes nothing in the header's length: it is among the low seven.
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

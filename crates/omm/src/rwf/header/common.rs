//! Members that several classes have, for a header of any class.

use super::super::{DataType, Domain, Flags, Key, Qos, State};
use super::{Header, PostUserInfo, with_payload};
use crate::Refused;

/// Evaluates an expression for the header of any class.
macro_rules! of_any {
    ($any:ident, $header:ident => $value:expr) => {
        match $any {
            Self::Request($header) => $value,
            Self::Refresh($header) => $value,
            Self::Status($header) => $value,
            Self::Update($header) => $value,
            Self::Close($header) => $value,
            Self::Ack($header) => $value,
            Self::Generic($header) => $value,
            Self::Post($header) => $value,
        }
    };
}

impl<'a> Header<'a> {
    /// Writes the header to the start of `out`; returns its length. The payload follows it.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for a member that its length field cannot express.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
        of_any!(self, header => header.encode(out))
    }

    /// Writes the whole message to the start of `out`: the header, then the payload, which `write` writes behind it;
    /// `write` returns the payload's length. Returns the length of both. Fails as `encode`, and with what `write`
    /// returns.
    pub fn encode_with(
        &self,
        out: &mut [u8],
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<usize, Refused> {
        let header = self.encode(out)?;
        with_payload(out, header, write)
    }

    /// Returns the domain.
    #[must_use]
    pub const fn domain(&self) -> Domain {
        of_any!(self, header => header.domain)
    }

    /// Returns the stream id.
    #[must_use]
    pub const fn stream_id(&self) -> i32 {
        of_any!(self, header => header.stream_id)
    }

    /// Returns the flags; their meaning depends on the class.
    #[must_use]
    pub const fn flags(&self) -> Flags {
        of_any!(self, header => header.flags)
    }

    /// Returns the type of the payload.
    #[must_use]
    pub const fn container(&self) -> DataType {
        of_any!(self, header => header.container)
    }

    /// Returns the extended header: opaque bytes.
    #[must_use]
    pub const fn extended_header(&self) -> Option<&'a [u8]> {
        of_any!(self, header => header.extended_header)
    }

    /// Returns the key, if the message has one.
    #[must_use]
    pub const fn key(&self) -> Option<&Key<'a>> {
        match self {
            Self::Request(header) => Some(&header.key),
            Self::Refresh(header) => header.key.as_ref(),
            Self::Status(header) => header.key.as_ref(),
            Self::Update(header) => header.key.as_ref(),
            Self::Close(_) => None,
            Self::Ack(header) => header.key.as_ref(),
            Self::Generic(header) => header.key.as_ref(),
            Self::Post(header) => header.key.as_ref(),
        }
    }
}

/// Members, the classes that may have each, and the class that always has it.
macro_rules! common {
    ($($(#[$doc:meta])* $member:ident: $type:ty { $($may:ident)* } $($always:ident)?;)*) => {
        impl<'a> Header<'a> {$(
            $(#[$doc])*
            #[must_use]
            pub const fn $member(&self) -> Option<$type> {
                match self {
                    $(Self::$may(header) => header.$member,)*
                    $(Self::$always(header) => Some(header.$member),)?
                    _ => None,
                }
            }
        )*}
    };
}

common! {
    /// Returns the state of stream and data: of a refresh, and of a status that has one.
    state: State<'a> { Status } Refresh;
    /// Returns the item group: of a refresh, and of a status that has one.
    group_id: &'a [u8] { Status } Refresh;
    /// Returns the quality of service, requested or given.
    qos: Qos { Request Refresh };
    /// Returns the sequence number.
    sequence: u32 { Refresh Update Ack Generic Post };
    /// Returns the part number, from 0.
    part: u16 { Refresh Generic Post };
    /// Returns the permission data.
    permission_data: &'a [u8] { Refresh Status Update Generic Post };
    /// Returns the poster of the message or its data.
    post_user_info: PostUserInfo { Refresh Status Update } Post;
}

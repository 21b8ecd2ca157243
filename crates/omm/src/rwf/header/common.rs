//! Members that several classes have, for a header of any class.

use super::super::{Flags, Key, Qos, State};
use super::{Header, PostUserInfo};

impl<'a> Header<'a> {
    /// Returns the flags; their meaning depends on the class.
    #[must_use]
    pub const fn flags(&self) -> Flags {
        match self {
            Self::Request(header) => header.flags,
            Self::Refresh(header) => header.flags,
            Self::Status(header) => header.flags,
            Self::Update(header) => header.flags,
            Self::Close(header) => header.flags,
            Self::Ack(header) => header.flags,
            Self::Generic(header) => header.flags,
            Self::Post(header) => header.flags,
        }
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

    /// Returns the state of stream and data: of a refresh, and of a status that has one.
    #[must_use]
    pub const fn state(&self) -> Option<State<'a>> {
        match self {
            Self::Refresh(header) => Some(header.state),
            Self::Status(header) => header.state,
            _ => None,
        }
    }

    /// Returns the item group: of a refresh, and of a status that has one.
    #[must_use]
    pub const fn group_id(&self) -> Option<&'a [u8]> {
        match self {
            Self::Refresh(header) => Some(header.group_id),
            Self::Status(header) => header.group_id,
            _ => None,
        }
    }

    /// Returns the quality of service, requested or given.
    #[must_use]
    pub const fn qos(&self) -> Option<Qos> {
        match self {
            Self::Request(header) => header.qos,
            Self::Refresh(header) => header.qos,
            _ => None,
        }
    }

    /// Returns the sequence number.
    #[must_use]
    pub const fn sequence(&self) -> Option<u32> {
        match self {
            Self::Refresh(header) => header.sequence,
            Self::Update(header) => header.sequence,
            Self::Ack(header) => header.sequence,
            Self::Generic(header) => header.sequence,
            Self::Post(header) => header.sequence,
            Self::Request(_) | Self::Status(_) | Self::Close(_) => None,
        }
    }

    /// Returns the part number, from 0.
    #[must_use]
    pub const fn part(&self) -> Option<u16> {
        match self {
            Self::Refresh(header) => header.part,
            Self::Generic(header) => header.part,
            Self::Post(header) => header.part,
            _ => None,
        }
    }

    /// Returns the permission data.
    #[must_use]
    pub const fn permission_data(&self) -> Option<&'a [u8]> {
        match self {
            Self::Refresh(header) => header.permission_data,
            Self::Status(header) => header.permission_data,
            Self::Update(header) => header.permission_data,
            Self::Generic(header) => header.permission_data,
            Self::Post(header) => header.permission_data,
            Self::Request(_) | Self::Close(_) | Self::Ack(_) => None,
        }
    }

    /// Returns the extended header: opaque bytes.
    #[must_use]
    pub const fn extended_header(&self) -> Option<&'a [u8]> {
        match self {
            Self::Request(header) => header.extended_header,
            Self::Refresh(header) => header.extended_header,
            Self::Status(header) => header.extended_header,
            Self::Update(header) => header.extended_header,
            Self::Close(header) => header.extended_header,
            Self::Ack(header) => header.extended_header,
            Self::Generic(header) => header.extended_header,
            Self::Post(header) => header.extended_header,
        }
    }

    /// Returns the poster of the message or its data.
    #[must_use]
    pub const fn post_user_info(&self) -> Option<PostUserInfo> {
        match self {
            Self::Refresh(header) => header.post_user_info,
            Self::Status(header) => header.post_user_info,
            Self::Update(header) => header.post_user_info,
            Self::Post(header) => Some(header.post_user_info),
            Self::Request(_) | Self::Close(_) | Self::Ack(_) | Self::Generic(_) => None,
        }
    }
}

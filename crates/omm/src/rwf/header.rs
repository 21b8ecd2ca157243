//! Message headers of all eight classes, read and written (RWF chapter 2).
//!
//! A header is a plain struct: optional members are `Option`s, and [`Flags`] hold the rest (see
//! [`flags`](super::flags)). The encoder sets the bits of members that are present; it ignores the caller's values of
//! these bits.

mod common;
mod members;

use super::{
    Cursor, DataType, Domain, Flags, Key, MessageClass, NakCode, Qos, State, UpdateType, Writer, flags,
};
use crate::{Malformed, Refused};

/// Identity of a poster: an IPv4 address as a number, and a user's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PostUserInfo {
    /// IPv4 address, first byte on top.
    pub address: u32,
    /// Number of the user or process.
    pub user_id: u32,
}

/// Priority of an item request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Priority {
    /// Class; a higher class goes first.
    pub class: u8,
    /// Weight within the class.
    pub count: u16,
}

/// Conflation: number of updates merged into one, and the time that they cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conflation {
    /// Number of merged updates; at most 32,767.
    pub count: u16,
    /// Time, milliseconds.
    pub time_ms: u16,
}

/// Common start of all classes, as input to the reader of a class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) class: MessageClass,
    pub(crate) domain: Domain,
    pub(crate) stream_id: i32,
    pub(crate) flags: Flags,
    pub(crate) container: DataType,
}

impl Start {
    /// Writes a whole header: this start, then the members that `members` writes, then the size of both.
    fn write(
        self,
        out: &mut [u8],
        members: impl FnOnce(&mut Writer<'_>) -> Result<(), Refused>,
    ) -> Result<usize, Refused> {
        let mut writer = Writer::new(out);
        let place = writer.reserve_u16()?;
        writer.bytes(&[self.class.0, self.domain.0])?;
        writer.i32(self.stream_id)?;
        writer.u15(usize::from(self.flags.0), "flags")?;
        writer.u8(self.container.container_byte())?;
        members(&mut writer)?;
        let len = writer.len();
        match u16::try_from(len - 2) {
            Ok(size) => {
                writer.fill_u16(place, size);
                Ok(len)
            }
            Err(_) => Err(Refused::TooLong { what: "message header", limit: 0xFFFF }),
        }
    }
}

/// Writes a payload after a header of `header` bytes; returns the length of both.
fn with_payload(
    out: &mut [u8],
    header: usize,
    write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
) -> Result<usize, Refused> {
    let room = out.get_mut(header..).ok_or(Refused::Full)?;
    let payload = write(room)?;
    if payload > room.len() { Err(Refused::Full) } else { Ok(header + payload) }
}

/// A header of any class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Header<'a> {
    /// Opens or changes a stream.
    Request(RequestHeader<'a>),
    /// An image.
    Refresh(RefreshHeader<'a>),
    /// A change of state.
    Status(StatusHeader<'a>),
    /// A change of data.
    Update(UpdateHeader<'a>),
    /// Ends a stream.
    Close(CloseHeader<'a>),
    /// The acknowledgement of a post or a close.
    Ack(AckHeader<'a>),
    /// A message of the application's own.
    Generic(GenericHeader<'a>),
    /// Data for the source.
    Post(PostHeader<'a>),
}

/// Value of a member in a new header.
macro_rules! initial {
    ($field:ident) => {
        $field
    };
    ($field:ident = $flag:ident) => {
        None
    };
}

/// Reads a member: always, or if its flag is set.
macro_rules! read_member {
    ($cursor:ident, $start:ident, $field:ident) => {
        $cursor.$field()?
    };
    ($cursor:ident, $start:ident, $field:ident = $flags:ident $flag:ident) => {
        if $start.flags.has(flags::$flags::$flag) { Some($cursor.$field()?) } else { None }
    };
}

/// Writes a member, if it is there, and if the other member is there with which alone it is written.
macro_rules! write_member {
    ($writer:ident, $header:ident, $field:ident) => {
        $writer.$field($header.$field)?
    };
    ($writer:ident, $header:ident, $field:ident as $form:ident) => {
        $writer.$form($header.$field)?
    };
    ($writer:ident, $header:ident, $field:ident = $flag:ident $(with $other:ident)?) => {
        if let Some(value) = $header.$field $(&& $header.$other.is_some())? {
            $writer.$field(value)?;
        }
    };
}

/// The members of each class, in wire order. A member with the name of a flag is present if the flag is set; every other
/// member is always present. The module `members` has the form of each.
macro_rules! headers {
    ($($(#[$doc:meta])* $name:ident: $variant:ident, $class:ident, $flags:ident {
        $(#[$new_doc:meta])* new($($given:ident: $given_type:ty),*) => $container:expr $(, $assumed:ident = $value:expr)?;
        $($(#[$field_doc:meta])* $field:ident: $type:ty $(as $form:ident)? $(= $flag:ident $(with $other:ident)?)?,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub struct $name<'a> {
                /// Domain: kind of item.
                pub domain: Domain,
                /// Stream id on the connection.
                pub stream_id: i32,
                #[doc = concat!("See [`flags::", stringify!($flags), "`](super::flags::", stringify!($flags), ").")]
                pub flags: Flags,
                /// Type of the payload.
                pub container: DataType,
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl<'a> $name<'a> {
                $(#[$new_doc])*
                #[must_use]
                pub const fn new(domain: Domain, stream_id: i32, $($given: $given_type),*) -> Self {
                    $(let $assumed = $value;)?
                    Self {
                        domain,
                        stream_id,
                        flags: Flags::NONE,
                        container: $container,
                        $($field: initial!($field $(= $flag)?),)*
                    }
                }

                /// Writes the header to the start of `out`; returns its length. The payload follows it.
                ///
                /// # Errors
                ///
                /// [`Refused::Full`]; [`Refused::TooLong`] for a member that its length field cannot express.
                pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
                    let start = Start {
                        class: MessageClass::$class,
                        domain: self.domain,
                        stream_id: self.stream_id,
                        flags: self.flags
                            $($(.with(flags::$flags::$flag, self.$field.is_some() $(&& self.$other.is_some())?))?)*,
                        container: self.container,
                    };
                    start.write(out, |writer| {
                        $(write_member!(writer, self, $field $(as $form)? $(= $flag $(with $other)?)?);)*
                        Ok(())
                    })
                }

                /// Writes the whole message to the start of `out`: the header, then the payload, which `write` writes
                /// behind it; `write` returns the payload's length. Returns the length of both. Fails as `encode`, and
                /// with what `write` returns.
                pub fn encode_with(
                    &self,
                    out: &mut [u8],
                    write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
                ) -> Result<usize, Refused> {
                    let header = self.encode(out)?;
                    with_payload(out, header, write)
                }

                fn read(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
                    Ok(Self {
                        domain: start.domain,
                        stream_id: start.stream_id,
                        flags: start.flags,
                        container: start.container,
                        $($field: read_member!(cursor, start, $field $(= $flags $flag)?),)*
                    })
                }
            }

            impl<'a> From<$name<'a>> for Header<'a> {
                fn from(header: $name<'a>) -> Self {
                    Self::$variant(header)
                }
            }
        )*

        impl<'a> Header<'a> {
            /// Reads the members after the container type.
            pub(crate) fn read(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
                match start.class {
                    $(MessageClass::$class => $name::read(start, cursor).map(Self::$variant),)*
                    _ => Err(Malformed::new(2, "message class")),
                }
            }

            /// Returns the message class.
            #[must_use]
            pub const fn class(&self) -> MessageClass {
                match self {
                    $(Self::$variant(_) => MessageClass::$class,)*
                }
            }
        }
    };
}

headers! {
    /// REQUEST: opens a stream, or changes an open one.
    RequestHeader: Request, REQUEST, request {
        /// Returns a request for `key`, without flags or optional members.
        new(key: Key<'a>) => DataType::NO_DATA;
        /// Priority.
        priority: Option<Priority> = HAS_PRIORITY,
        /// Requested quality of service.
        qos: Option<Qos> = HAS_QOS,
        /// Worst acceptable quality of service; written only together with `qos`.
        worst_qos: Option<Qos> = HAS_WORST_QOS with qos,
        /// Key of the requested stream.
        key: Key<'a>,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]> = HAS_EXTENDED_HEADER,
    }

    /// REFRESH: an image, or a part of one.
    RefreshHeader: Refresh, REFRESH, refresh {
        /// Returns an image in `container` in the state `state`, without flags or optional members.
        new(state: State<'a>, container: DataType) => container, group_id = &[0, 0];
        /// Sequence number of the source.
        sequence: Option<u32> = HAS_SEQ_NUM,
        /// State of stream and data.
        state: State<'a>,
        /// Item group, at most 255 bytes. An empty one is written as two zero bytes.
        group_id: &'a [u8] as group_of_image,
        /// Permission data.
        permission_data: Option<&'a [u8]> = HAS_PERM_DATA,
        /// Quality of service of the data.
        qos: Option<Qos> = HAS_QOS,
        /// Key of the stream.
        key: Option<Key<'a>> = HAS_MSG_KEY,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]> = HAS_EXTENDED_HEADER,
        /// Poster, if the data came from a post.
        post_user_info: Option<PostUserInfo> = HAS_POST_USER_INFO,
        /// Part number of the image, from 0; at most 32,767.
        part: Option<u16> = HAS_PART_NUM,
    }

    /// STATUS: a change of a stream's state, group or permission.
    StatusHeader: Status, STATUS, status {
        /// Returns a status without state, flags or optional members.
        new() => DataType::NO_DATA;
        /// New state of stream and data.
        state: Option<State<'a>> = HAS_STATE,
        /// Item group, at most 255 bytes.
        group_id: Option<&'a [u8]> = HAS_GROUP_ID,
        /// Permission data.
        permission_data: Option<&'a [u8]> = HAS_PERM_DATA,
        /// Key of the stream.
        key: Option<Key<'a>> = HAS_MSG_KEY,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]> = HAS_EXTENDED_HEADER,
        /// Poster, if the data came from a post.
        post_user_info: Option<PostUserInfo> = HAS_POST_USER_INFO,
    }

    /// UPDATE: a change of data.
    UpdateHeader: Update, UPDATE, update {
        /// Returns an update in `container`, without flags or optional members.
        new(update_type: UpdateType, container: DataType) => container;
        /// Update type.
        update_type: UpdateType,
        /// Sequence number of the source.
        sequence: Option<u32> = HAS_SEQ_NUM,
        /// Conflation information.
        conflation: Option<Conflation> = HAS_CONF_INFO,
        /// Permission data.
        permission_data: Option<&'a [u8]> = HAS_PERM_DATA,
        /// Key of the stream.
        key: Option<Key<'a>> = HAS_MSG_KEY,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]> = HAS_EXTENDED_HEADER,
        /// Poster, if the data came from a post.
        post_user_info: Option<PostUserInfo> = HAS_POST_USER_INFO,
    }

    /// CLOSE: ends a stream.
    CloseHeader: Close, CLOSE, close {
        /// Returns a close without flags or optional members.
        new() => DataType::NO_DATA;
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]> = HAS_EXTENDED_HEADER,
    }

    /// ACK: the positive or negative acknowledgement of a post or a close.
    AckHeader: Ack, ACK, ack {
        /// Returns a positive acknowledgement of `ack_id`, without flags or optional members.
        new(ack_id: u32) => DataType::NO_DATA;
        /// Id of the acknowledged message.
        ack_id: u32,
        /// Reason for a negative acknowledgement.
        nak_code: Option<NakCode> = HAS_NAK_CODE,
        /// Human-readable reason.
        text: Option<&'a [u8]> = HAS_TEXT,
        /// Sequence number of the acknowledged message.
        sequence: Option<u32> = HAS_SEQ_NUM,
        /// Key of the stream.
        key: Option<Key<'a>> = HAS_MSG_KEY,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]> = HAS_EXTENDED_HEADER,
    }

    /// GENERIC: a message of the application's own, in either direction, not cached.
    GenericHeader: Generic, GENERIC, generic {
        /// Returns a generic message in `container`, without flags or optional members.
        new(container: DataType) => container;
        /// Sequence number.
        sequence: Option<u32> = HAS_SEQ_NUM,
        /// Sequence number of the message that this one answers.
        secondary_sequence: Option<u32> = HAS_SECONDARY_SEQ_NUM,
        /// Permission data.
        permission_data: Option<&'a [u8]> = HAS_PERM_DATA,
        /// Key of the subject.
        key: Option<Key<'a>> = HAS_MSG_KEY,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]> = HAS_EXTENDED_HEADER,
        /// Part number of the message, from 0; at most 32,767.
        part: Option<u16> = HAS_PART_NUM,
    }

    /// POST: data from a consumer for the source.
    PostHeader: Post, POST, post {
        /// Returns a post in `container`, without flags or optional members.
        new(post_user_info: PostUserInfo, container: DataType) => container;
        /// Poster.
        post_user_info: PostUserInfo,
        /// Sequence number.
        sequence: Option<u32> = HAS_SEQ_NUM,
        /// Post id, which the acknowledgement repeats.
        post_id: Option<u32> = HAS_POST_ID,
        /// Permission data.
        permission_data: Option<&'a [u8]> = HAS_PERM_DATA,
        /// Key of the subject.
        key: Option<Key<'a>> = HAS_MSG_KEY,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]> = HAS_EXTENDED_HEADER,
        /// Part number of the post, from 0; at most 32,767.
        part: Option<u16> = HAS_PART_NUM,
        /// Rights of the user: 1 create, 2 delete, 4 change permission data; at most 32,767.
        post_user_rights: Option<u16> = HAS_POST_USER_RIGHTS,
    }
}

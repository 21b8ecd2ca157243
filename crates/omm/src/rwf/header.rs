//! Message headers of all eight classes, read and written (RWF chapter 2).
//!
//! A header is a plain struct: optional members are `Option`s, and [`Flags`] hold the rest (see [`flags`](super::flags)). The
//! bits that say which members are there are set by the encoder; what a caller puts into them is ignored.

mod common;
mod members;

use super::{Cursor, DataType, Domain, Flags, Key, MessageClass, NakCode, Qos, State, UpdateType, Writer};
use crate::{Malformed, Refused};

/// Who posted: an IPv4 address as a number, and a user's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PostUserInfo {
    /// IPv4 address, first byte on top.
    pub address: u32,
    /// Number of the user or process.
    pub user_id: u32,
}

/// How urgently an item is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Priority {
    /// Class; a higher one goes first.
    pub class: u8,
    /// Weight within the class.
    pub count: u16,
}

/// How many updates were merged into one, and over which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conflation {
    /// Updates merged; at most 32,767.
    pub count: u16,
    /// Milliseconds.
    pub time_ms: u16,
}

/// What all classes begin with, as the reader of a class gets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) class: MessageClass,
    pub(crate) domain: Domain,
    pub(crate) stream_id: i32,
    pub(crate) flags: Flags,
    pub(crate) container: DataType,
}

impl Start {
    /// Writes a whole header: this, then what `members` writes, then the size of both.
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

/// Puts a payload behind a header of so many bytes; returns the length of both.
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
    /// The receipt of a post.
    Ack(AckHeader<'a>),
    /// A message of the application's own.
    Generic(GenericHeader<'a>),
    /// Data for the source.
    Post(PostHeader<'a>),
}

macro_rules! headers {
    ($($(#[$doc:meta])* $name:ident: $variant:ident, $class:ident, $flags:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub struct $name<'a> {
                /// What kind of item.
                pub domain: Domain,
                /// Which stream of the connection.
                pub stream_id: i32,
                #[doc = concat!("See [`flags::", stringify!($flags), "`](super::flags::", stringify!($flags), ").")]
                pub flags: Flags,
                /// Type of the payload.
                pub container: DataType,
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl $name<'_> {
                /// Writes the header to the front of `out`; returns its length. The payload follows it.
                ///
                /// # Errors
                ///
                /// [`Refused::Full`]; [`Refused::TooLong`] for a member that its length cannot express.
                pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
                    let start = Start {
                        class: MessageClass::$class,
                        domain: self.domain,
                        stream_id: self.stream_id,
                        flags: self.all_flags(),
                        container: self.container,
                    };
                    start.write(out, |writer| self.write_members(writer))
                }

                /// Writes the whole message to the front of `out`: the header, then the payload that `write` puts
                /// into the room behind it, returning its length. Returns the length of both.
                ///
                /// # Errors
                ///
                /// As `encode`, and what `write` comes back with.
                pub fn encode_with(
                    &self,
                    out: &mut [u8],
                    write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
                ) -> Result<usize, Refused> {
                    let header = self.encode(out)?;
                    with_payload(out, header, write)
                }
            }

            impl<'a> From<$name<'a>> for Header<'a> {
                fn from(header: $name<'a>) -> Self {
                    Self::$variant(header)
                }
            }
        )*

        impl<'a> Header<'a> {
            /// From behind the container type on.
            pub(crate) fn read(start: &Start, cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
                match start.class {
                    $(MessageClass::$class => $name::read_members(start, cursor).map(Self::$variant),)*
                    _ => Err(Malformed::new(2, "message class")),
                }
            }

            /// Writes the header to the front of `out`; returns its length. The payload follows it.
            ///
            /// # Errors
            ///
            /// [`Refused::Full`]; [`Refused::TooLong`] for a member that its length cannot express.
            pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
                match self {
                    $(Self::$variant(header) => header.encode(out),)*
                }
            }

            /// Writes the whole message to the front of `out`: the header, then the payload that `write` puts into the
            /// room behind it, returning its length. Returns the length of both.
            ///
            /// # Errors
            ///
            /// As `encode`, and what `write` comes back with.
            pub fn encode_with(
                &self,
                out: &mut [u8],
                write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
            ) -> Result<usize, Refused> {
                let header = self.encode(out)?;
                with_payload(out, header, write)
            }

            /// The message class.
            #[must_use]
            pub const fn class(&self) -> MessageClass {
                match self {
                    $(Self::$variant(_) => MessageClass::$class,)*
                }
            }

            /// What kind of item.
            #[must_use]
            pub const fn domain(&self) -> Domain {
                match self {
                    $(Self::$variant(header) => header.domain,)*
                }
            }

            /// Which stream of the connection.
            #[must_use]
            pub const fn stream_id(&self) -> i32 {
                match self {
                    $(Self::$variant(header) => header.stream_id,)*
                }
            }

            /// Type of the payload.
            #[must_use]
            pub const fn container(&self) -> DataType {
                match self {
                    $(Self::$variant(header) => header.container,)*
                }
            }
        }
    };
}

headers! {
    /// REQUEST: opens a stream, or changes an open one.
    RequestHeader: Request, REQUEST, request {
        /// How urgently.
        priority: Option<Priority>,
        /// Wanted quality of service.
        qos: Option<Qos>,
        /// Worst quality of service that will do; written only together with `qos`.
        worst_qos: Option<Qos>,
        /// What is wanted.
        key: Key<'a>,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]>,
    }

    /// REFRESH: an image, or a part of one.
    RefreshHeader: Refresh, REFRESH, refresh {
        /// Sequence number of the source.
        sequence: Option<u32>,
        /// State of stream and data.
        state: State<'a>,
        /// Item group, at most 255 bytes. An empty one is written as two zero bytes.
        group_id: &'a [u8],
        /// Permission data.
        permission_data: Option<&'a [u8]>,
        /// Quality of service given.
        qos: Option<Qos>,
        /// What the stream is about.
        key: Option<Key<'a>>,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]>,
        /// Whose post it came from.
        post_user_info: Option<PostUserInfo>,
        /// Which part of the image, from 0; at most 32,767.
        part: Option<u16>,
    }

    /// STATUS: a change of a stream's state, group or permission.
    StatusHeader: Status, STATUS, status {
        /// New state of stream and data.
        state: Option<State<'a>>,
        /// Item group, at most 255 bytes.
        group_id: Option<&'a [u8]>,
        /// Permission data.
        permission_data: Option<&'a [u8]>,
        /// What the stream is about.
        key: Option<Key<'a>>,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]>,
        /// Whose post it came from.
        post_user_info: Option<PostUserInfo>,
    }

    /// UPDATE: a change of data.
    UpdateHeader: Update, UPDATE, update {
        /// What it reports.
        update_type: UpdateType,
        /// Sequence number of the source.
        sequence: Option<u32>,
        /// How many updates it stands for.
        conflation: Option<Conflation>,
        /// Permission data.
        permission_data: Option<&'a [u8]>,
        /// What the stream is about.
        key: Option<Key<'a>>,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]>,
        /// Whose post it came from.
        post_user_info: Option<PostUserInfo>,
    }

    /// CLOSE: ends a stream.
    CloseHeader: Close, CLOSE, close {
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]>,
    }

    /// ACK: the receipt of a post or a close, good or bad.
    AckHeader: Ack, ACK, ack {
        /// Id of what is received.
        ack_id: u32,
        /// Why it was not taken.
        nak_code: Option<NakCode>,
        /// Why, for people.
        text: Option<&'a [u8]>,
        /// Sequence number of what is received.
        sequence: Option<u32>,
        /// What the stream is about.
        key: Option<Key<'a>>,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]>,
    }

    /// GENERIC: a message of the application's own, either way, not cached.
    GenericHeader: Generic, GENERIC, generic {
        /// Sequence number.
        sequence: Option<u32>,
        /// Sequence number of the message that it answers.
        secondary_sequence: Option<u32>,
        /// Permission data.
        permission_data: Option<&'a [u8]>,
        /// What it is about.
        key: Option<Key<'a>>,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]>,
        /// Which part of the message, from 0; at most 32,767.
        part: Option<u16>,
    }

    /// POST: data from a consumer for the source.
    PostHeader: Post, POST, post {
        /// Who posts.
        post_user_info: PostUserInfo,
        /// Sequence number.
        sequence: Option<u32>,
        /// Id under which the receipt comes.
        post_id: Option<u32>,
        /// Permission data.
        permission_data: Option<&'a [u8]>,
        /// What it is about.
        key: Option<Key<'a>>,
        /// Opaque bytes, at most 255.
        extended_header: Option<&'a [u8]>,
        /// Which part of the post, from 0; at most 32,767.
        part: Option<u16>,
        /// What the user may do: 1 create, 2 delete, 4 change permission data; at most 32,767.
        post_user_rights: Option<u16>,
    }
}

//! The events of a consumer.

use std::fmt;

use tapeline_omm::domain::LoginRefresh;
use tapeline_omm::rwf::{Container, Header, MessageClass, MessageView, NakCode};
use tapeline_omm::{Dictionary, Fid, FieldList, Malformed, Real, State, Value};

use super::Item;

/// An event of a [`Consumer`](super::Consumer).
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The connection is open, and the consumer logs in.
    Connected {
        /// The server, as the user wrote it.
        server: &'a str,
    },
    /// There is no connection, or the connection is lost, or the server has ended the login. The consumer reconnects by itself, unless the server
    /// has forbidden it; items keep their last values, which may be stale.
    Disconnected {
        /// The server, as the user wrote it.
        server: &'a str,
        /// The reason.
        reason: &'a str,
    },
    /// A message on the stream of the login.
    Login(LoginMessage<'a>),
    /// The services have changed: [`Consumer::services`](super::Consumer::services).
    Services,
    /// The login is accepted and the services are known; the consumer requests its items.
    Ready,
    /// A message of an item: an image, an update, a status or a generic message.
    Message(ItemMessage<'a>),
    /// The state of an item changed without a message, for example because the connection was lost.
    State {
        /// The item.
        id: Item,
        /// The name of the item's service.
        service: &'a str,
        /// The item's name.
        item: &'a str,
        /// The new state, as text.
        state: &'a str,
        /// `true` if the item is closed.
        is_final: bool,
    },
    /// The answer to a post.
    Ack {
        /// The item to which it was posted; `None` if it was posted off-stream.
        id: Option<Item>,
        /// The number of the post.
        post: u32,
        /// The reason of a refusal; `None` if the post was accepted.
        refusal: Option<Refusal<'a>>,
    },
    /// Information for the user.
    Note(&'a str),
}

/// The refusal of a post.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// The code of the refusal.
    pub code: NakCode,
    /// The provider's text; may be empty.
    pub text: &'a str,
}

/// A message on the stream of the login.
#[derive(Clone, Copy)]
pub struct LoginMessage<'a> {
    /// The message.
    pub message: MessageView<'a>,
}

impl fmt::Debug for LoginMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message.class())?;
        self.state().map_or(Ok(()), |state| write!(f, " {state}"))
    }
}

impl<'a> LoginMessage<'a> {
    /// Returns the state of the login; `None` if the message has none.
    #[must_use]
    pub fn state(&self) -> Option<State<'a>> {
        self.message.header().ok()?.state()
    }

    /// Returns the time before which the token must be renewed, in seconds since 1970; `None` if it does not expire.
    #[must_use]
    pub fn renew_at(&self) -> Option<u64> {
        match self.message.header().ok()? {
            Header::Refresh(refresh) => LoginRefresh::read(&refresh).ok()?.features.authentication_tt_reissue,
            _ => None,
        }
    }
}

/// A message of an item.
#[derive(Clone, Copy, Debug)]
pub struct ItemMessage<'a> {
    /// The item.
    pub id: Item,
    /// The item's name.
    pub item: &'a str,
    /// The name of the item's service.
    pub service: &'a str,
    /// The message.
    pub message: MessageView<'a>,
    /// The whole message, as RWF.
    pub bytes: &'a [u8],
    /// `true` if the item is closed.
    pub is_final: bool,
    pub(super) dictionary: &'a Dictionary,
}

impl<'a> ItemMessage<'a> {
    /// Returns `true` if the message is an image: all fields, which replace earlier values.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.message.class() == MessageClass::REFRESH
    }

    /// Returns `true` if the message is an update: the fields that changed.
    #[must_use]
    pub fn is_update(&self) -> bool {
        self.message.class() == MessageClass::UPDATE
    }

    /// Returns `true` if the message is a generic message.
    #[must_use]
    pub fn is_generic(&self) -> bool {
        self.message.class() == MessageClass::GENERIC
    }

    /// Returns the state of an image or a status; `None` for other messages.
    #[must_use]
    pub fn state(&self) -> Option<State<'a>> {
        self.message.header().ok()?.state()
    }

    /// Returns the dictionary of the fields.
    #[must_use]
    pub const fn dictionary(&self) -> &'a Dictionary {
        self.dictionary
    }

    /// Returns the fields of the message; an empty list if the message has other contents.
    ///
    /// # Errors
    /// A field list that is malformed at its start.
    pub fn fields(&self) -> Result<FieldList<'a>, Malformed> {
        match self.message.open()? {
            Container::FieldList(list) => Ok(list),
            _ => FieldList::parse(&[]),
        }
    }

    /// Returns a field as a decimal number; `None` if the field is missing, blank or malformed.
    #[must_use]
    pub fn real(&self, fid: Fid) -> Option<Real> {
        self.fields().ok()?.find(fid).ok()??.real().ok()?
    }

    /// Returns the value of a field by its name in the dictionary; `None` if the message does not have the field.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value<'a>> {
        let field = self.dictionary.field_named(name)?;
        self.fields().ok()?.find(field.fid).ok()??.value(field.data_type).ok()
    }
}

/// Writes the item, the kind of message and its contents as readable text.
impl fmt::Display for ItemMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.item.escape_debug(), self.message.class())?;
        if let Some(state) = self.state() {
            write!(f, " {state}")?;
        }
        match self.message.open() {
            Ok(Container::NoData) => Ok(()),
            Ok(Container::FieldList(list)) => write!(f, " {}", list.render(self.dictionary)),
            Ok(container) => {
                write!(f, " {}", container.outline(self.dictionary).to_string().replace('\n', " "))
            }
            Err(fault) => write!(f, " <{fault}>"),
        }
    }
}

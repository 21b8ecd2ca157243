//! Domains of a connection: the content of their messages as values, read and written.
//!
//! [`login`] and [`directory`] come first on every connection, then [`dictionary`] if needed. [`item`] holds the
//! payload of item requests, [`post`] the acknowledgements of posts, [`round_trip`] the provider's clock on the login
//! stream, [`standby`] the choice of the active server among several, and [`symbol_list`] lists of names. The messages
//! themselves are those of [`rwf`](crate::rwf); this module reads and writes their keys and payloads.
//!
//! An element that a message does not have is `None`; a method of the same name, if there is one, returns the default
//! that then applies. An element of an unexpected type counts as absent. The amount of a peer's data that is stored is
//! limited; each limit is documented where it applies.
//!
//! Source of all names, numbers and defaults: the public documentation of the RDM (Refinitiv Domain Models) and messages
//! of the vendor's library; see the golden vectors.

pub mod dictionary;
pub mod directory;
mod elements;
pub mod item;
pub mod login;
pub mod post;
pub mod round_trip;
pub mod standby;
pub mod symbol_list;

pub use dictionary::{DictionaryKind, DictionaryRequest};
pub use directory::{Directory, ServiceEntry, ServicePart};
pub use elements::{Buffer, List, ListItem, OwnedState};
pub use item::{RequestPayload, View};
pub use login::{LoginAttributes, LoginFeatures, LoginRefresh, LoginRequest};
pub use round_trip::RoundTrip;

/// Stream of a consumer's login. Consumers of the vendor's library use no other, and answer round trips only there.
pub const LOGIN_STREAM: i32 = 1;

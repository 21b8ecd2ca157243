//! The domains through which a connection is run: what their messages say, as values, both ways.
//!
//! [`login`] and [`directory`] come first on every connection, then perhaps [`dictionary`]; [`item`] has what a request for
//! items carries beside its key, [`post`] the receipts of posts, [`round_trip`] the provider's clock on the login stream,
//! [`standby`] which of several servers is the active one, [`symbol_list`] lists of names. The messages themselves are those of [`rwf`](crate::rwf): what is here reads and writes
//! their keys and payloads.
//!
//! Elements that a message does not have are `None`; methods of the same name, where there are any, give the default that
//! then holds. An element of another type than its own counts as not there. What is kept of a peer's bytes has limits, said
//! where they hold.
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
pub use elements::{List, ListItem, OwnedState};
pub use item::{RequestPayload, View};
pub use login::{LoginAttributes, LoginFeatures, LoginRefresh, LoginRequest};
pub use round_trip::RoundTrip;

/// The stream of a consumer's login. Consumers of the vendor's library use no other, and answer round trips only there.
pub const LOGIN_STREAM: i32 = 1;

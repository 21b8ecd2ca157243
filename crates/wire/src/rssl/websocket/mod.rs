//! WebSocket around a session: the opening, frames both ways, compression of messages.
//!
//! | file | owns |
//! |---|---|
//! | `upgrade.rs` | the HTTP heads of the opening |
//! | `unwrap.rs` | received frames, read in place if a message is whole |
//! | `envelope.rs` | frames around the sent bytes |
//! | `deflate.rs` | permessage-deflate (RFC 7692) |
//! | `life.rs` | pings and pongs as JSON |
//!
//! The frame headers are tungstenite's. Its `WebSocket` would copy each message twice and does not support
//! compression.

mod deflate;
mod envelope;
mod life;
mod unwrap;
mod upgrade;

pub(super) use deflate::Deflated;
pub(super) use envelope::{Envelope, Framed, LONGEST_HEADER, MessageKind, Part, first_frame, whole_frames};
pub(super) use life::{Life, PING, PONG};
pub(super) use unwrap::{Unwrap, What};
pub use upgrade::{CookieLogin, SubProtocol};
pub(super) use upgrade::{Opening, head, new_key, refusal, request, response};

/// Close codes of RFC 6455, section 7.4.1.
pub(super) mod code {
    pub(crate) const NORMAL: u16 = 1000;
    pub(crate) const PROTOCOL_ERROR: u16 = 1002;
}

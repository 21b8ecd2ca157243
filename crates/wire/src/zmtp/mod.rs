//! The publishing end of ZeroMQ: ZMTP 3.1 over TCP, the NULL mechanism, socket type PUB.
//!
//! libzmq's SUB and XSUB sockets connect to a [`Publisher`] as to any other. It knows what they have subscribed to, so that
//! what nobody wants costs a look at a number; it keeps for each subscriber what the connection has no room for, up to a
//! high-water mark in bytes, drops whole messages beyond, and counts them. It never waits.
//!
//! | file | what |
//! |---|---|
//! | `frame.rs` | frames: their heads, commands, reading |
//! | `protocol.rs` | one subscriber's protocol, without its socket |
//! | `topics.rs` | who has subscribed to what |
//! | `publisher.rs` | the sockets |
//!
//! Sources: ZeroMQ RFC 37 (ZMTP 3.1), RFC 29 (publish and subscribe). A SUB of ZMTP 3.0 says what it wants in messages instead
//! of commands (RFC 23); both are taken. ZMTP 2 and older, CURVE and PLAIN are not: who needs to be kept out cannot be here.

mod frame;
mod protocol;
mod publisher;
mod topics;

pub use protocol::{Asked, Fault, Protocol};
pub use publisher::{Counters, Left, Publisher, Settings};
pub use topics::Route;

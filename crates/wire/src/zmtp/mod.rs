//! A ZeroMQ publisher: ZMTP 3.1 over TCP, the NULL mechanism, socket type PUB.
//!
//! libzmq's SUB and XSUB sockets connect to a [`Publisher`] as to any other. The publisher knows the
//! subscriptions, so a message without subscribers costs one comparison. For each subscriber, it queues bytes
//! that the connection does not accept at once, up to a high-water mark in bytes; beyond it, whole messages
//! are dropped and counted. It never waits.
//!
//! | file | what |
//! |---|---|
//! | `frame.rs` | frames: headers, commands, reading |
//! | `protocol.rs` | one subscriber's protocol, without its socket |
//! | `topics.rs` | the subscriptions |
//! | `publisher.rs` | the sockets |
//!
//! Sources: ZeroMQ RFC 37 (ZMTP 3.1), RFC 29 (publish and subscribe). A SUB of ZMTP 3.0 sends its subscriptions in
//! messages instead of commands (RFC 23); both are supported. ZMTP 2 and older, CURVE and PLAIN are not, so this
//! protocol has no access control.

mod frame;
mod protocol;
mod publisher;
mod topics;

pub use protocol::{Asked, Protocol, SubscriberFault};
pub use publisher::{Left, Publisher, PublisherCounters, PublisherSettings};
pub use topics::Route;

//! RSSL: the connections on which OMM messages travel.
//!
//! | file | owns |
//! |---|---|
//! | `session/` | one end of a connection without its socket: bytes in, events out; messages in, bytes out |
//! | `handshake.rs` | connect request, ack, nak and key as bytes |
//! | `frame.rs` | the header of a frame |
//! | `receiver.rs`, `assembly.rs` | frames taken apart; messages in fragments put together |
//! | `output.rs`, `outgoing.rs` | messages made into frames; what waits to be sent |
//! | `unsent.rs` | frames that wait, looked at again: which messages are in them |
//! | `compression.rs` | zlib and LZ4 |
//! | `websocket/` | the same inside a WebSocket, and JSON |
//! | `settings.rs` | what can be set, under the names of EMA and ETA |
//! | `fault.rs` | what a peer did wrong, and why a connection is over |
//! | `transport.rs`, `tls.rs` | what carries a session's bytes: a socket, with or without TLS |
//! | `connection.rs` | a session on that |
//! | `reactor.rs` | many connections on one thread |
//! | `acceptor_handle.rs` | connections that one reactor accepts, and others have |
//! | `alarm.rs` | waits that end at their moment |
//!
//! The protocol (RIPC on the wire) is spoken by LSEG's EMA and ETA. A [`Reactor`] opens connections, accepts them and hands
//! out their events:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use tapeline_measure::Clock;
//! use tapeline_wire::rssl::{Event, Reactor, Settings};
//!
//! let clock = Clock::calibrate();
//! let settings = Arc::new(Settings::default());
//! let mut reactor = Reactor::new(1000)?;
//! let address = reactor.listen("127.0.0.1:0".parse()?, &settings)?;
//! let client = reactor.connect(address, &settings, clock.now())?;
//! let mut answered = false;
//! while !answered {
//!     reactor.wait(Duration::from_secs(1))?;
//!     while let Some((id, event, mut sender)) = reactor.next(clock.now()) {
//!         match event {
//!             Event::Connected(_) if id == client => assert_eq!(sender.send(b"hello"), tapeline_wire::rssl::Sent::Queued),
//!             Event::Message(message) if id == client => answered = message == b"hello",
//!             Event::Message(message) => assert_eq!(sender.send(message), tapeline_wire::rssl::Sent::Queued),
//!             Event::Closed(reason) => panic!("{reason}"),
//!             _ => {}
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acceptor_handle;
mod alarm;
mod assembly;
mod compression;
mod connection;
mod fault;
mod frame;
mod handshake;
mod in_memory;
mod outgoing;
mod output;
mod reactor;
mod receiver;
mod session;
mod settings;
mod tls;
mod transport;
mod unsent;
mod websocket;

pub use crate::readiness::Readiness;
pub use acceptor_handle::AcceptorHandle;
pub use connection::Sender;
pub use fault::{Fault, Reason};
pub use handshake::Version;
pub use in_memory::FarEnd;
/// Wakes a thread that waits.
pub use mio::Waker;
pub use output::{Output, Sent};
pub use reactor::{ConnectionId, Reactor};
pub use session::{Event, Negotiated, Session};
pub use settings::{Compression, ConnectionType, Settings};
pub use tls::{Tls, TlsVersions};
pub use websocket::{CookieLogin, SubProtocol};

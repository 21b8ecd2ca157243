//! RSSL: the connections on which OMM messages travel.
//!
//! | file | owns |
//! |---|---|
//! | `session/` | one end of a connection without its socket: bytes in, events out; messages in, bytes out |
//! | `handshake.rs` | connect request, ack, nak and key as bytes |
//! | `frame.rs` | the header of a frame |
//! | `receiver.rs`, `assembly.rs` | received frames; messages assembled from fragments |
//! | `output.rs`, `outgoing.rs` | messages made into frames; bytes waiting to be sent |
//! | `unsent.rs` | the messages in frames that wait to be sent |
//! | `compression.rs` | zlib and LZ4 |
//! | `websocket/` | a session inside a WebSocket, and JSON |
//! | `settings.rs` | the settings, under the names of EMA and ETA |
//! | `fault.rs` | protocol violations of a peer, and why a connection is over |
//! | `transport.rs`, `tls.rs` | the carrier of a session's bytes: a socket, with or without TLS |
//! | `connection.rs` | a session on a transport |
//! | `reactor.rs` | many connections on one thread |
//! | `handler.rs` | the loop over the events of a reactor |
//! | `acceptor_handle.rs` | connections that one reactor accepts for another |
//! | `alarm.rs` | waits that end at an exact time |
//!
//! LSEG's EMA and ETA speak this protocol (RIPC on the wire). A [`Reactor`] opens and accepts connections and
//! returns their events:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use tapeline_measure::Clock;
//! use tapeline_wire::rssl::{ConnectionSettings, Event, Reactor};
//!
//! let clock = Clock::calibrate();
//! let settings = Arc::new(ConnectionSettings::default());
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
mod handler;
mod handshake;
mod in_memory;
mod outgoing;
mod output;
mod reactor;
mod receiver;
mod session;
mod settings;
mod transport;
mod unsent;
mod websocket;

pub use crate::polling::Readiness;
pub use acceptor_handle::AcceptorHandle;
pub use connection::Sender;
pub use fault::{Fault, Reason};
pub use handler::{Delivery, Handler};
pub use handshake::Version;
pub use in_memory::FarEnd;
/// Wakes a waiting thread.
pub use mio::Waker;
pub use output::{Output, Sent};
pub use reactor::{ConnectionId, Reactor};
pub use receiver::Following;
pub use session::{Event, Negotiated, Session};
pub use settings::{Compression, ConnectionSettings, ConnectionType};
pub use websocket::{CookieLogin, SubProtocol};

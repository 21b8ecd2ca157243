//! Socket input and output. No other crate of Tapeline opens a socket.
//!
//! [`udp`] receives datagrams from multicast groups (or a unicast address) in batches, with the kernel's
//! receive stamps and drop count, and sends datagrams in batches. [`pool`] receives datagrams on a thread of
//! its own, into slots that the decoder returns. [`tcp`] is non-blocking connections with bounded buffers, plain or with [`tls`].
//! [`rssl`] is RSSL and WebSocket connections over TCP, [`zmtp`] a ZeroMQ publisher. [`local`] is streams
//! between processes of one user on this machine. [`streams`] serves clients over TCP and such local streams
//! in one loop. [`http`] is a small server for metrics and a page. [`interface`] finds a network interface by
//! name or address. [`ServiceManager`] sends messages to systemd. [`web_client`] is a client of WebSockets and HTTPS.
//!
//! With the feature `aeron`, which is off by default and builds C, there are streams of Aeron too.
//!
//! `http`, `rssl`, `streams`, `web-client` and `zmtp` are features, all on by default. Without them the crate has no TLS, no HTTP and
//! no event loop.
//!
//! Expected network conditions are outcomes, not errors: no datagram yet is `0` datagrams, back pressure is
//! [`udp::UdpSent::blocked`], a lost datagram is a counter. An [`Error`] is an invalid request or a refusal by the
//! machine. It names the address and the option, and [`Error::hint`] tells the user what to do about it.
//!
//! ```
//! use std::time::Duration;
//! use tapeline_wire::udp::{Batch, ReceiveOptions, SendOptions, UdpReceiver, UdpSender};
//!
//! let mut receiver = UdpReceiver::open(&ReceiveOptions::new("127.0.0.1:0".parse()?))?;
//! let mut sender = UdpSender::open(&SendOptions::new(receiver.local_address()))?;
//! let mut batch = Batch::default();
//!
//! assert_eq!(sender.send(b"tape")?.count, 1);
//! assert!(receiver.wait(Duration::from_secs(10)));
//! assert_eq!(receiver.receive(&mut batch)?, 1);
//! assert!(batch.iter().all(|datagram| datagram.bytes == b"tape" && datagram.received.is_some()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]

#[cfg(feature = "aeron")]
pub mod aeron;
mod error;
#[cfg(feature = "http")]
pub mod http;
mod impls;
pub mod interface;
pub mod local;
#[cfg(any(feature = "http", feature = "rssl"))]
mod origin;
#[cfg(any(feature = "rssl", feature = "streams", feature = "zmtp"))]
mod polling;
pub mod pool;
#[cfg(feature = "rssl")]
pub mod rssl;
mod service_manager;
#[cfg(feature = "streams")]
pub mod streams;
pub mod tcp;
#[cfg(feature = "rssl")]
pub mod tls;
pub mod udp;
#[cfg(feature = "web-client")]
pub mod web_client;
#[cfg(feature = "zmtp")]
pub mod zmtp;

pub use error::Error;
pub use service_manager::ServiceManager;
pub use udp::wait_any;

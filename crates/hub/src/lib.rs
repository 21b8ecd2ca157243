//! The hub: one plant, every client. Each client gets the image of an item and then every update, in the plant's order. A slow or dead
//! client never delays another.
//!
//! The hub is one more subscriber of the plant's ring. Everything that a client sees comes from that ring: the hub sends the bytes of each
//! tick to every client that has the item open, and folds the tick into its own [cache](tapeline_plant::cache). The image of an item at N
//! and the updates from N+1 on therefore fit without a lock.
//!
//! In addition to the plant's feeds there can be services of OMM providers. Their market data also comes from the ring; the clients' demands
//! go out as data ([`Hub::next_demand`]), and answers to one client alone come in through [`Hub::answer`].
//!
//! The hub does no I/O, reads no clock, and is bounded. [`Hub`] takes one input at a time (the start or end of a session, a message of a
//! session, a tick, capacity on a connection, the time), sends through [`Connections`], and leaves its output as data ([`HubEvent`]s to log,
//! sessions that are [over](Hub::next_over)). [`Settings`] contains the limits and the behaviour at each limit.
//!
//! ```
//! use tapeline_hub::{Hub, Settings};
//! use tapeline_nanos::Nanos;
//! use tapeline_omm::domain::LoginRequest;
//! use tapeline_omm::role::Queue;
//! use tapeline_omm::rwf::{Domain, MessageView};
//!
//! let now = Nanos(1_000_000_000);
//! let mut hub = Hub::new(Settings::default());
//! let session = hub.open(now);
//!
//! // A client's login; what the hub answers goes where its connection would take it.
//! let mut login = [0; 500];
//! let len = LoginRequest::new(b"ada").encode(&mut login)?;
//! let mut connection = Queue::new(64 << 10);
//! hub.message(now, session, &login[..len], &mut connection);
//! let answer = connection.pop().expect("an answer");
//! assert_eq!(MessageView::parse(&answer)?.domain(), Domain::LOGIN);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod access;
mod answers;
mod backlog;
mod census;
mod connections;
mod demands;
mod event;
mod fan_out;
mod feeds;
mod hub;
mod images;
mod interest;
mod lagging_streams;
mod login;
mod memory;
mod notify;
mod overflow_budget;
mod parts;
mod posts;
mod prefetch;
mod private;
mod refusals;
mod request_handler;
mod restating;
mod resync;
mod services;
mod session;
mod sessions;
mod settings;
mod shared_state;
mod slow_clients;
mod status_texts;
mod statuses;
mod unfolded;
mod upstream;
mod views;

pub use access::{Access, Check, CheckNumber, Peer, Verdict};
pub use census::SessionSeen;
pub use connections::{Connections, SessionId};
pub use event::{AccessCounters, Counters, End, HubEvent, SessionCounters, TooMuch, Who};
pub use hub::Hub;
pub use memory::MemoryBound;
pub use prefetch::Coming;
pub use settings::{Late, Service, Settings, Unknown};
pub use slow_clients::{SLOW_BYTES, SLOW_MESSAGES, SLOW_TIME_MS, SlowPolicy};
pub use tapeline_plant::sources::Posts;

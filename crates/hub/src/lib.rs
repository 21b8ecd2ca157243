//! The hub: one plant, every client. Each gets the image of an item and then every update, in the plant's order, and nobody's
//! slowness or death costs the others anything.
//!
//! The hub is one more reader of the plant's ring. Everything that a client sees comes off that ring: the hub sends the
//! bytes of each tick to all who have its item open, and folds it into its own [cache](tapeline_plant::cache), so that the
//! image of an item at N and the updates from N+1 on fit without a lock.
//!
//! Beside the plant's feeds there may be services of OMM providers. What they publish comes off the ring as well; what clients
//! want of them goes out as data ([`Hub::next_demand`]), and what they say to one client alone comes in by
//! [`Hub::answer`].
//!
//! It does no I/O, reads no clock, and is bounded: [`Hub`] takes one thing at a time (a session begins or ends, a message of
//! a session, a tick, room to send again, time), sends through [`Connections`], and leaves as data what others are to do
//! ([`HubEvent`]s to be written down, sessions that are [over](Hub::next_over)). What is allowed and what happens at a limit is
//! in [`Settings`].
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
mod request_handler;
mod restating;
mod resync;
mod services;
mod session;
mod settings;
mod shared_state;
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
pub use settings::{Late, Service, Settings, SlowPolicy, Unknown};
pub use tapeline_plant::sources::Posts;

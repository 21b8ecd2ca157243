//! A ring buffer in shared memory: one publisher, up to 64 subscribers in any number of processes, no loss.
//!
//! A [`Publisher`] claims frames of any length, fills them in place and commits them. A [`Subscriber`] borrows each
//! frame in place. The publisher never overtakes a registered subscriber: when the ring is full, the claim is refused.
//! The kernel drops a subscriber's lock when its process dies, and a dead subscriber no longer blocks the publisher.
//! When a publisher dies, the next one continues the same ring, and the subscribers keep their positions.
//!
//! ```
//! use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber, Wait};
//! use std::time::Duration;
//!
//! let name = Name::new(&format!("doc-{}", std::process::id()))?;
//! let mut publisher = Publisher::open(&name, &Options::default())?;
//!
//! // As a rule in another process:
//! let mut subscriber = Subscriber::join(&name, Start::Oldest)?;
//!
//! publisher.publish(b"one")?;
//! publisher.publish(b"two")?;
//! publisher.close()?;
//!
//! let mut seen = Vec::new();
//! loop {
//!     match subscriber.next() {
//!         Poll::Frame(frame) => seen.push(frame.to_vec()),
//!         Poll::Empty => {
//!             subscriber.wait(Wait::Adaptive, Duration::from_secs(1));
//!         }
//!         _ => break,
//!     }
//! }
//! assert_eq!(seen, [b"one", b"two"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The design and the alternatives considered are in `docs/adr/0001-ring.md`.

#![deny(unsafe_code)]
#![cfg_attr(loom, allow(dead_code, reason = "the models leave out files, locks and waiting"))]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the ring rests on Linux's locks, futexes and shared memory, and on atomic words of 64 bits");

mod atomics;
mod batch;
pub mod broadcast;
mod claim;
mod clock;
mod copy;
mod discipline;
mod error;
mod frame;
mod gate;
mod layout;
mod lines;
#[cfg(not(loom))]
mod lock;
#[cfg_attr(loom, path = "models/memory.rs")]
mod memory;
#[cfg(loom)]
mod models;
mod name;
mod process;
mod publisher;
mod registry;
#[cfg_attr(loom, path = "models/segment.rs")]
mod segment;
pub mod spsc;
mod subscriber;
mod waiting;
mod words;

pub use batch::Batch;
pub use claim::Claim;
pub use discipline::{Broadcast, Discipline, Gated};
pub use error::{Error, Refused};
pub use frame::{Frame, Position};
pub use layout::{Framing, Policy};
pub use name::Name;
pub use publisher::{Options, PublisherOf};
pub use registry::{Entry, PublisherView, Snapshot, SubscriberView, inspect, list, remove};
pub use subscriber::{Poll, Start, SubscriberId, SubscriberOf};
#[cfg(not(loom))]
pub use waiting::Bell;
pub use waiting::Wait;

/// The single publisher of a gated ring.
///
/// ```
/// use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber};
///
/// let name = Name::new(&format!("doc-publisher-{}", std::process::id()))?;
/// let mut publisher = Publisher::open(&name, &Options::default())?;
/// let mut subscriber = Subscriber::join(&name, Start::Newest)?;
///
/// let mut claim = publisher.claim(5)?;
/// claim.copy_from_slice(b"hello");
/// claim.commit();
///
/// let Poll::Frame(frame) = subscriber.next() else { panic!("the frame is visible") };
/// assert_eq!(&*frame, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Publisher = PublisherOf<Gated>;

/// A subscriber of a gated ring. While it lives, the publisher does not overwrite frames that it has not released. A
/// subscriber that stops reading therefore stops the publisher, for ever or until the ring's stall limit expires.
///
/// Reading stores nothing except the position up to which frames are released, once per eighth of the ring and when the
/// ring is drained. A frame is released by the next call of [`next`](SubscriberOf::next).
///
/// On a ring with a stall limit ([`Options::stall_limit`]) the publisher may overwrite frames that a stalled subscriber
/// has not released. On such a ring the subscriber lends its own copy of a frame, which stays unchanged until the next
/// call (`docs/adr/0027-lent-frames.md`).
pub type Subscriber = SubscriberOf<Gated>;

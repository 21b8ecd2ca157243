//! A ring in shared memory: one publisher, up to 64 subscribers in any number of processes, nothing lost.
//!
//! A [`Publisher`] claims frames of any length, fills them in place and commits them. A [`Subscriber`] borrows each
//! frame where it lies. A registered subscriber is never passed: a full ring refuses the claim. A subscriber that dies
//! is noticed by a lock that the kernel drops, and no longer counts. A publisher that dies is followed by one that
//! continues the same ring, and the subscribers keep their places.
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
//! The design, with what it was chosen over, is in `docs/adr/0001-ring.md`.

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

/// The one publisher of a gated ring.
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

/// A subscriber of a gated ring. While it lives, the publisher does not write over what it has not released, so a
/// subscriber that stops reading stops the publisher: for ever, or until the ring's stall limit is over.
///
/// Reading writes nothing but, once in an eighth of the ring or when nothing is left, the position up to which frames
/// are released. A frame is released by the call of [`next`](SubscriberOf::next) that follows it.
///
/// On a ring with a stall limit ([`Options::stall_limit`]) the publisher may write over what a stalled subscriber has not
/// released. There a frame is lent as a copy of the subscriber's own, which stays as it is until the next call
/// (`docs/adr/0027-lent-frames.md`).
pub type Subscriber = SubscriberOf<Gated>;

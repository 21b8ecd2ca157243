//! The plant: one thread gives every message its place in one sequence and publishes it on the ring.
//!
//! * [`tick`] is the record that every consumer of the plant reads: a 64-byte header, the item's name, an RWF message.
//! * [`Items`] numbers the items of all services.
//! * [`Sequencer`] assigns the next [`Seq`], writes the tick in place, and passes it to a [`Publish`].
//! * [`cache`] keeps every item's image: the fold of its refreshes and updates.
//! * [`demand`] contains the clients' demands on the sources, and the answers of a source to one client alone.
//! * [`sources`] turns the messages of OMM providers into ticks.
//! * [`rows`] turns the rows of kdb+ clients into ticks.
//! * [`bridge`] carries the ticks of a plant to other plants.
//! * [`Channel`] is the complete path of one feed: lines, arbitration, decoding, books, ticks.
//!
//! Time is an argument ([`Time`]) and ticks go out through a trait, so that a plant can run on a simulated clock with a simulated
//! ring.
//!
//! ```
//! use tapeline_measure::Nanos;
//! use tapeline_plant::tick::{Flags, Header, Kind, Tick};
//! use tapeline_plant::{ItemId, Seq, State};
//!
//! let header = Header {
//!     seq: Seq(1),
//!     feed_seq: 7,
//!     event: Nanos(1_000),
//!     wire: Nanos(2_000),
//!     decoded: Nanos(2_500),
//!     sequenced: Nanos(2_600),
//!     item: ItemId(1),
//!     service: 1,
//!     channel: 1,
//!     kind: Kind::Update,
//!     flags: Flags::default(),
//!     source_type: 0,
//!     state: State::default(),
//! };
//! let mut frame = Vec::new();
//! Tick { header, name: "AAPL", body: b"an RWF message", source: &[] }.write(&mut frame);
//!
//! // A subscriber of the ring reads it where it lies.
//! let tick = Tick::parse(&frame)?;
//! assert_eq!((tick.name, tick.header.seq), ("AAPL", Seq(1)));
//! assert_eq!(tick.header.sequenced.since(tick.header.wire), 600);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/` has programs that read a plant's ring and its journal.

#![forbid(unsafe_code)]

mod body;
pub mod bridge;
pub mod cache;
mod channel;
mod consolidation;
pub mod demand;
mod gap_requests;
mod items;
mod note;
mod publish;
mod row_kind;
pub mod rows;
mod sequencer;
pub mod sources;
mod state;
pub mod tick;

pub use body::session_begun;
pub use channel::{
    Channel, ChannelCounters, ChannelSettings, MidnightBefore, PublishPolicy, VenueConnection,
};
pub use consolidation::{Consolidation, ConsolidationCounters, ConsolidationSettings, Participant};
pub use gap_requests::{GapRequests, Look};
pub use items::{ItemId, ItemSource, Items, TooManyItems};
pub use note::{ClockDifference, Note, StampedBy};
pub use publish::{OnStall, Publish, Refused, RingPublish};
pub use row_kind::RowKind;
pub use sequencer::{Origin, Seq, Sequencer, Stamps, Time};
pub use state::State;

//! The plant: one thread gives every message its place in one sequence and puts it on the ring.
//!
//! * [`tick`] is the record that every consumer of the plant reads: a 64-byte header, the item's name, an RWF message.
//! * [`Items`] numbers the items of all services.
//! * [`Sequencer`] gives the next [`Seq`], writes the tick in place, and hands it to a [`Publish`].
//! * [`cache`] keeps every item's image: the fold of its refreshes and updates.
//! * [`demand`] is what clients want of the sources, and what those answer one client alone.
//! * [`sources`] is what OMM providers publish, as ticks.
//! * [`rows`] are what kdb+ clients publish, as ticks.
//! * [`Channel`] is the whole path of one feed: lines, arbitration, decoding, books, ticks.
//!
//! Time comes in as an argument ([`Time`]) and ticks go out through a trait, so that a plant can run on a simulated
//! clock with a simulated ring.

#![forbid(unsafe_code)]

mod body;
pub mod cache;
mod channel;
mod consolidation;
pub mod demand;
mod items;
mod note;
mod publish;
pub mod rows;
mod sequencer;
pub mod sources;
mod state;
pub mod tick;

pub use body::session_begun;
pub use channel::{Channel, ChannelCounters, ChannelSettings, MidnightBefore, PublishPolicy};
pub use consolidation::{Consolidation, ConsolidationCounters, ConsolidationSettings, Participant};
pub use items::{ItemId, ItemSource, Items, TooManyItems};
pub use note::Note;
pub use publish::{OnStall, Publish, Refused, RingPublish};
pub use sequencer::{Origin, Seq, Sequencer, Stamps, Time};
pub use state::State;

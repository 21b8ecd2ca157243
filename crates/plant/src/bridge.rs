//! The bridge between plants: the ticks of one plant, with the same sequences, on the rings of others.
//!
//! The plant above sends its ticks as they stand on its ring: one tick is one message of MoldUDP64, and the tick's sequence is the message's.
//! A plant below joins its lines, requests what is missing on all of them, and takes the past from a catch-up server over TCP.
//! `docs/bridge.md` has the layout of everything that travels.
//!
//! * [`BridgeSession`] names one run of sequences: the plant's id and its epoch.
//! * [`Packer`] packs ticks into datagrams, and keeps them for re-requests.
//! * [`Follower`] joins the lines of one session into ticks in sequence, or says that they need the catch-up server.
//! * [`ChannelStates`] has what a plant below says of the channels while the plant above is silent.
//! * [`catch_up`] is the protocol of the catch-up server, [`tcp_line`] that of a line over TCP.
//! * [`demands`] is what a plant below wants of the sources of the plant above, and their answers.
//! * [`lease`] decides which of two plants under one id numbers.
//! * [`clocks`] is how far the clocks of both plants differ, and how that is found.
//!
//! All of it is without sockets and without a clock.

pub mod catch_up;
mod channel_states;
pub mod clocks;
pub mod demands;
mod follower;
pub mod lease;
mod packer;
mod recent;
mod session;
pub mod tcp_line;

pub use channel_states::ChannelStates;
pub use follower::{Delivery, Follower, FollowerSettings, Stranger, StrangerCounters, TickSource};
pub use packer::{LONGEST_MESSAGE, Packer, PackerSettings};
pub use session::{BridgeSession, Epoch, InvalidPlantId, PlantId};

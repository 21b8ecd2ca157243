//! The inputs of a plant: what becomes ticks.
//!
//! | file | owns |
//! |---|---|
//! | `inlet.rs` | a feed: its lines, file or stream, with its recovery and its log |
//! | `intake.rs` | a feed's lines: sockets, and the pool between two threads |
//! | `feed_log.rs` | a feed's changes of state and its losses, for the operator |
//! | `recovery.rs`, `recovery`, `soup.rs` | missing messages: requests over UDP and SoupBinTCP |
//! | `recorded.rs` | a file instead of lines |
//! | `venue.rs`, `venue` | the public stream of a crypto venue instead of lines |
//! | `sources.rs`, `sources` | OMM providers and publishers |
//! | `upstream.rs`, `upstream` | another plant, whose ticks are taken as they stand: lines, re-requests, catching up |
//! | `queue.rs` | demand of clients on its way to the sources, and rows of kdb+ clients |

pub(crate) mod feed_log;
pub(crate) mod inlet;
pub(crate) mod intake;
pub mod queue;
pub(crate) mod recorded;
pub(crate) mod recovery;
pub mod soup;
pub mod sources;
pub mod upstream;
pub(crate) mod venue;

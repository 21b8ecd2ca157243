//! `tapeline ring pub`, `sub` and `sweep`: shared-memory rings under load, and what they reached.
//!
//! | file | owns |
//! |---|---|
//! | `publish.rs`, `sender.rs` | the publishing command, and its loop |
//! | `subscribe.rs`, `reader.rs` | the reading command, and its loop |
//! | `message.rs`, `warm_up.rs` | what a message carries, and which messages do not count |
//! | `tally.rs` | the figures of a subscriber |
//! | `sweep` | all sizes, rates and receivers in one run, with a report |
//! | `view.rs`, `failures.rs` | a ring and its errors as all commands show them |

pub mod failures;
mod message;
mod publish;
mod reader;
mod sender;
mod source;
mod subscribe;
mod sweep;
mod talk;
mod tally;
pub mod view;
mod warm_up;

pub use publish::Publish;
pub use subscribe::Subscribe;
pub use sweep::Sweep;

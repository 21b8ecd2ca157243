//! The path of messages from a feed through a plant to a subscriber of its ring, hop by hop.
//!
//! | file | owns |
//! |---|---|
//! | `meter.rs` | the hops; what a subscriber checks and times |
//! | `relay.rs` | the floor under the path: the same sockets, ring and threads, without a plant between them |

mod meter;
mod relay;

use std::fmt;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

pub use self::meter::{ClockAbove, Hop, HopHistogram, Joined, Meter, PathReport, from_hex, to_hex};
pub use self::relay::{BareRelay, RelayReport};

/// Why a subscriber ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The feed's session is over.
    SessionOver,
    /// The plant ended, and everything it published has been read.
    PlantEnded,
    /// The plant died: it may have published more.
    PlantDied,
    /// The requested number of ticks was read.
    Ticks,
    /// The requested duration is over.
    Duration,
    /// A signal.
    Stopped,
}

impl Ending {
    /// The exit status of a reader that ended this way and lost this many ticks, or messages of a feed: 3 if there
    /// is or may be loss. Warns on standard error if the plant died.
    pub fn exit_code(self, lost: u64) -> ExitCode {
        if self == Self::PlantDied {
            anstream::eprintln!("warning: the plant died; its last ticks may not have been read");
        }
        if lost > 0 || self == Self::PlantDied { ExitCode::from(3) } else { ExitCode::SUCCESS }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::SessionOver => "the feed's session is over",
            Self::PlantEnded => "the plant ended",
            Self::PlantDied => "the plant died",
            Self::Ticks => "as many ticks as asked for",
            Self::Duration => "as long as asked for",
            Self::Stopped => "stopped",
        })
    }
}

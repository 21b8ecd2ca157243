//! Faults from a script and a seed: the faults of networks, switches and exchanges on a feed, at any rate.
//!
//! A [`FaultyLine`] is between the sender of a feed and one of its lines. It passes the resulting datagrams to an [`Outlet`], with an [`Entry`] for
//! every fault, so that a checker can account for every message. The same script, seed and datagrams give the same faults, at any speed: the faults
//! of each datagram are drawn from its number on the line, and heartbeats, whose number depends on time, have separate numbers.
//!
//! A [`Script`] is a list of faults, one on each line of a file or in each option; `#` begins a comment:
//!
//! | fault | effect on a datagram |
//! |---|---|
//! | `loss=1%`, `loss=1%,burst=5` | it is lost, in bursts of this many |
//! | `duplicate=1%`, `duplicate=1%,after=3` | it is sent again, after this many others |
//! | `reorder=1%`, `reorder=1%,by=4` | this many others overtake it |
//! | `delay=200us` | all are delayed by this time |
//! | `corrupt=1%`, `corrupt=1%,bytes=3,in=payload` | this many of its bytes change, in the packet's `header`, its `payload` or in `any` part |
//! | `truncate=1%` | its end is cut off |
//! | `silence=5000,messages=800` | datagrams that begin with one of these messages are not sent; without a number, the line is dead from there on |
//! | `reset=4000` | the exchange numbers from 1 again, in the same session, beginning with this message |
//! | `roll=4000` | the exchange ends the session, and begins another one with this message |
//!
//! Resets and rolls apply to packets of MoldUDP64 and segments of IEX-TP (which has no end of session); all other faults apply to any datagram.
//! Each fault except the last two can be limited to one line with `line=A`. They act in the order of this table's rows (`silence` first, `reset`
//! and `roll` before all): a lost datagram is not duplicated, and a second copy is undamaged.
//!
//! **Detectable faults.** A truncated datagram is always malformed, because it announces more bytes than it has. Changed bytes in the header and in
//! the messages' lengths are mostly detectable: a wrong count or length is malformed or leaves trailing bytes, and a wrong session or a sequence
//! far ahead needs confirmation by a second packet. A sequence with a small error, or a change within a message, is not detectable here. That is
//! the purpose of UDP's checksum; these faults act before it is computed, so they represent wrong data of the source. The entry in the ledger
//! contains the changed bytes.
//!
//! ```
//! use tapeline_feed::faults::{Entry, FaultyLine, Outlet, Script};
//! use tapeline_feed::line::Line;
//! use tapeline_feed::moldudp64::{MoldSession, heartbeat};
//! use tapeline_nanos::Nanos;
//!
//! #[derive(Default)]
//! struct Count { left: u32, noted: u32 }
//!
//! impl Outlet for Count {
//!     fn leave(&mut self, _datagram: &[u8]) {
//!         self.left += 1;
//!     }
//!     fn note(&mut self, _entry: &Entry) {
//!         self.noted += 1;
//!     }
//! }
//!
//! let script: Script = "loss=10%,line=A\n# and on both lines:\nduplicate=5%".parse()?;
//! let mut line = FaultyLine::new(&script, 7, Line::A);
//! let mut count = Count::default();
//! for next in 1..=1_000 {
//!     line.datagram(&heartbeat(MoldSession::new("DEMO"), next), Nanos(0), &mut count);
//! }
//! assert!((900..1_000).contains(&count.left) && count.noted > 100);
//! # Ok::<(), tapeline_feed::faults::NotAScript>(())
//! ```

mod fault;
mod faulty_line;
mod ledger;
mod numbering;
mod script;

pub use fault::{Chance, DatagramPart, Fault, FaultKind, NotAFault};
pub use faulty_line::FaultyLine;
pub use ledger::{Did, Entry, Numbers};
pub use script::{NotAScript, Problem, Script};

/// The destination of a line's datagrams and of the ledger entries.
pub trait Outlet {
    /// Sends a datagram now.
    fn leave(&mut self, datagram: &[u8]);

    /// Records a fault.
    fn note(&mut self, entry: &Entry);
}

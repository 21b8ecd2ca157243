//! Faults from a script and a seed: the faults of networks, switches and exchanges on a feed, at any rate.
//!
//! A [`FaultyLine`] stands between the sender of a feed and one of its lines: datagrams go in, and the resulting
//! datagrams come out through an [`Outlet`], with an [`Entry`] for every fault, so that a checker can
//! account for every message. The same script, seed and datagrams give the same faults, at any speed: each datagram's
//! fate is drawn from its number on the line, and heartbeats, whose number depends on time, have separate numbers.
//!
//! A [`Script`] is a list of faults, one a line of a file or one an option; `#` begins a comment:
//!
//! | fault | what becomes of a datagram |
//! |---|---|
//! | `loss=1%`, `loss=1%,burst=5` | it is lost, with so many in a row |
//! | `duplicate=1%`, `duplicate=1%,after=3` | it comes again, after so many others |
//! | `reorder=1%`, `reorder=1%,by=4` | so many others overtake it |
//! | `delay=200us` | all come so much later than on the other lines |
//! | `corrupt=1%`, `corrupt=1%,bytes=3,in=payload` | so many of its bytes change, of the packet's `header`, of its `payload` or of `any` |
//! | `truncate=1%` | its end is cut off |
//! | `silence=5000,messages=800` | none leaves that begins with one of these messages; without a number, the line is dead from there on |
//! | `reset=4000` | the exchange numbers from 1 again, in the same session, beginning with this message |
//! | `roll=4000` | the exchange says that the session is over, and begins another one with this message |
//!
//! Resets and rolls are written into packets of MoldUDP64 and segments of IEX-TP (which has no end of session to say); all
//! else happens to any datagram. Each but the last two can be kept to one line with `line=A`. They act in the order of this table's rows (`silence`
//! first, `reset` and `roll` before all): what is lost is not duplicated, and a second copy is whole.
//!
//! **What can be found out.** A datagram that is cut is always malformed, as it announces more than it has. Of changed
//! bytes those in the header and in the messages' lengths mostly show: a count or a length that no longer fits is malformed, or
//! leaves bytes over; a strange session or a sequence far ahead is not believed until a second packet says the same.
//! A sequence that is wrong by a little, and all that changes within a message, cannot be told from the truth. UDP's
//! checksum is there for that; a fault here acts before it is computed, so it stands for a lie of the source. The
//! entry in the ledger has the bytes that were changed.
//!
//! ```
//! use tapeline_feed::faults::{Entry, FaultyLine, Outlet, Script};
//! use tapeline_feed::line::Line;
//! use tapeline_feed::moldudp64::{Session, heartbeat};
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
//!     line.datagram(&heartbeat(Session::new("DEMO"), next), Nanos(0), &mut count);
//! }
//! assert!((900..1_000).contains(&count.left) && count.noted > 100);
//! # Ok::<(), tapeline_feed::faults::NotAScript>(())
//! ```

mod fault;
mod faulty_line;
mod ledger;
mod numbering;
mod script;

pub use fault::{Chance, Fault, Kind, NotAFault, Part};
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

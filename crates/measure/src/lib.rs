//! Time and evidence: the only reader of clocks in Tapeline, and everything that turns readings into a verdict.
//!
//! * [`Clock`] turns time-stamp-counter readings into [`Nanos`] since 1970 UTC, with a stated error.
//! * [`Pacer`] holds a sender to a fixed schedule; [`Lateness`] tells whether it, or what it drives, falls behind.
//! * [`Recorder`] keeps whole latency distributions, [`Percentiles`] prints the part that the samples support, and
//!   [`Series`] follows them through time in bounded memory.
//! * [`Jitter`] measures what the machine itself adds, [`Usage`] what a process costs, [`Environment`] where it ran.
//! * [`judge`] weighs all of it into one [`Verdict`].
//!
//! ```
//! use tapeline_measure::{Clock, Recorder, ticks, ticks_ordered};
//!
//! let clock = Clock::calibrate();
//! let mut latency = Recorder::new();
//! for _ in 0..1_000 {
//!     let sent = ticks();
//!     let received = ticks_ordered();
//!     latency.record(clock.ns_between(sent, received));
//! }
//! assert_eq!(latency.percentiles().samples, 1_000);
//! ```
#![deny(unsafe_code)]

mod affinity;
mod clock;
mod distribution;
mod environment;
mod error;
pub mod figures;
mod jitter;
mod lateness;
mod pacer;
mod percentiles;
mod recorder;
mod series;
mod system_files;
mod tsc;
mod usage;
mod verdict;

pub use affinity::{cores, pin, unpin};
pub use clock::{Calibration, Clock, Recalibration, instant, monotonic_ns, utc_now};
pub use distribution::{read_hlog, write_hgrm, write_hlog};
pub use environment::{Build, Environment};
pub use error::Error;
pub use jitter::{Jitter, floor_ns};
pub use lateness::{Lateness, Trend};
pub use pacer::{Pacer, Waiting};
pub use percentiles::{Percentiles, Rank};
pub use recorder::Recorder;
pub use series::{Series, Window};
pub use system_files::SystemFiles;
pub use tapeline_nanos::Nanos;
pub use tsc::{TickSource, Ticks, tick_source, ticks, ticks_ordered};
pub use usage::{Spent, Usage};
pub use verdict::{Evidence, Verdict, judge};

//! Time and measurement: the only crate of Tapeline that reads clocks, with everything that turns readings into a
//! verdict.
//!
//! * [`Clock`] turns time-stamp-counter readings into [`Nanos`] since 1970 UTC, with a stated error.
//! * [`Pacer`] keeps a sender on a fixed schedule; [`Lateness`] tells whether the sender, or the system it drives,
//!   falls behind.
//! * [`Recorder`] records whole latency distributions, [`Percentiles`] prints the rows that the samples support, and
//!   [`Series`] follows a distribution over time in bounded memory.
//! * [`Jitter`] measures the latency that the machine adds, [`Usage`] what a process costs, [`Environment`] the machine
//!   and build.
//! * [`judge`] turns the evidence of a run into one [`Verdict`].
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
pub use clock::{Calibration, Clock, Recalibration, boot_time, instant, monotonic_ns, utc_now};
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

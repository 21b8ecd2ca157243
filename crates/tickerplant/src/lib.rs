//! A tickerplant for kdb+ clients: the behaviour of `tick.q`, as a pure state machine.
//!
//! Publishers call `.u.upd` with rows of a table. Clients that have called `.u.sub` get the rows as `upd`, and an RDB
//! that asks ``(.u.sub[`;`];.u `i`L)`` gets what it needs to replay the log first. The machine does no I/O and reads no
//! clock: messages come in with the time, answers and updates leave through [`Outlets`], and the bytes for the log are
//! available to be written before the updates go out. Nothing is evaluated: a message outside the protocol is answered
//! with an error.
//!
//! Each update is added column by column to its table's batch and encoded once; the same bytes go to all subscribers of
//! the whole table. In steady state nothing is allocated (`tests/allocations.rs`).
//!
//! | file | owns |
//! |---|---|
//! | `schema.rs` | a table's columns |
//! | `batch.rs` | rows, taken and encoded |
//! | `query.rs` | queries that are known as text |
//! | `tickerplant.rs` | sessions, subscriptions, publication, days |
//! | `answers.rs` | answers and errors |
//!
//! ```
//! use tapeline_kdb::{Encoder, Message, MessageKind, Type};
//! use tapeline_tickerplant::{Column, Local, Outlets, Rights, Schema, SessionId, Settings, Tickerplant};
//!
//! /// Prints where a program would write to a socket.
//! struct Sockets(usize);
//! impl Outlets for Sockets {
//!     fn send(&mut self, to: SessionId, message: &[u8]) {
//!         println!("{} bytes to client {}", message.len(), to.0);
//!         self.0 += 1;
//!     }
//! }
//!
//! let column = |name: &str, kind| Column { name: name.into(), kind };
//! let columns = vec![column("time", Type::TIMESPAN), column("sym", Type::SYMBOL), column("price", Type::FLOAT)];
//! let now = Local(9_822 * 86_400_000_000_000);
//! let mut plant = Tickerplant::new(Settings::new(vec![Schema::new("trade", columns)?]), now.date());
//! plant.open(SessionId(0), Rights::all(1), false);
//!
//! // As q sends it: h ".u.sub[`trade;`]"
//! let mut bytes = [0; 100];
//! let mut message = Encoder::message(&mut bytes, MessageKind::Sync)?;
//! message.string(b".u.sub[`trade;`]")?;
//! let len = message.finish()?;
//! let mut sockets = Sockets(0);
//! plant.receive(SessionId(0), &Message::parse(&bytes[..len])?, now, &mut sockets);
//! assert_eq!((sockets.0, plant.counters().answered), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod answers;
mod batch;
mod query;
mod schema;
mod tickerplant;

pub use answers::Wrong;
pub use batch::{KeptRows, Passing, PassingRow};
pub use schema::{BadSchema, Column, Schema};
pub use tickerplant::{Counters, Outlets, Rights, SessionId, Settings, Tickerplant, is_update};

const DAY_NS: i64 = 86_400_000_000_000;

/// A time in the tickerplant's time zone: ns since 1 January 2000 in that zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Local(pub i64);

impl Local {
    /// Returns the day, in days since 2000.
    #[must_use]
    pub const fn date(self) -> i32 {
        // 2^63 ns are about a hundred thousand days.
        self.0.div_euclid(DAY_NS) as i32
    }

    /// Returns the time since midnight, in ns.
    #[must_use]
    pub const fn of_day_ns(self) -> i64 {
        self.0.rem_euclid(DAY_NS)
    }
}

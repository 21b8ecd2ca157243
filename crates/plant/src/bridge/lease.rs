//! The lease: which of two plants under one id numbers the ticks. It cannot be held twice.
//!
//! A few [`Witness`]es grant it; a plant that has the grants of a majority is the *leader* until the lease ends, and renews it before. The other
//! plant, the *standby*, follows the leader, and looks whether the lease is free. The epoch is the fencing token: a witness never grants one that
//! is not later than all that it granted before, and plants below leave out what is of an earlier epoch.
//!
//! | rule | without it |
//! |---|---|
//! | a holder counts the lease from the moment *before* it sent the request that was granted | an answer that is long on the way makes the lease longer than the witness knows |
//! | less a [margin](LeaseSettings::margin_ns) | a holder's clock that is slower than the witness's does so too |
//! | a witness that was started again grants no epoch until the lease that it granted last must have ended | it has forgotten when that is |
//! | a new grant is written down before it is answered | a witness that is killed grants an epoch twice |
//! | a standby looks before it asks | its attempts would take single witnesses from the leader |
//! | a journal that ends before what the leader [said](JournalEnd) is not granted the lease | a plant that was away numbers on from where it was |
//!
//! Times are those of one clock of each process, which must not be set and must count while the machine sleeps: CLOCK_BOOTTIME.

mod holder;
mod message;
mod witness;

pub use holder::{LeaseHolder, LeaseSettings, LeaseStanding, Outlook};
pub use message::{
    HolderName, InvalidHolderName, JournalEnd, LEASE_BYTES, LeaseAnswer, LeaseOutcome, LeaseRequest,
    LeaseRequestKind, MAGIC,
};
pub use witness::{LeaseRecord, Witness, WitnessSettings};

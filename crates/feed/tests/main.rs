//! All tests of this crate that need nothing but its public face, as one program: they run beside each other.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and says what it skips"
)]

mod account;
mod arbiter;
mod arbitration;
mod book_oracle;
mod books;
mod capture;
mod dbn_books;
mod dbn_damage;
mod dbn_files;
mod depth;
mod drafts;
mod faults;
mod golden;
mod hostile;
mod iex;
mod iex_messages;
mod invariants;
mod lines;
mod malformed;
mod mutations;
mod nbbo;
mod records;
mod recovery;
mod restarts;
mod sessions;
mod shared_data;
mod simulate;
mod simulate_books;
mod simulate_encode;
mod soupbintcp;
mod venues;

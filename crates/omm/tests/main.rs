//! All tests of this crate that need nothing but its public face, as one program: they run beside each other.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and says what it skips"
)]

mod clients;
mod dictionaries;
mod dictionary_files;
mod ends;
mod hostile;
mod json;
#[path = "../../feed/tests/mutations/mod.rs"]
mod mutations;
mod peers;
mod properties;
mod readers;
mod replay;
mod rmtes_values;
mod roles;
mod servers;
mod shared_data;
mod texts;
mod trees;
mod vectors;

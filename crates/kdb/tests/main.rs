//! All tests of this crate that need nothing but its public face, as one program: they run beside each other.

mod faults;
mod golden;
mod hostile;
mod interop;
mod invariants;
mod logs;
#[path = "../../feed/tests/mutations/mod.rs"]
mod mutations;
mod oracle;
mod properties;
mod shared_data;
mod updates;

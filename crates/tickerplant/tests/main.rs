//! All tests of this crate that need nothing but its public face, as one program: they run beside each other.

mod hostile;
mod invariants;
#[path = "../../feed/tests/mutations/mod.rs"]
mod mutations;
mod protocol;
mod support;

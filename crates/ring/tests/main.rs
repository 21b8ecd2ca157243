//! All tests of this crate that need nothing but its public face, as one program: they run beside each other.

mod attach;
mod losses;
mod oracle;
mod processes;
mod scene;
mod segments;
mod slow_readers;
mod spsc;
mod threads;

//! Simplified JSON: against what LSEG's converter makes of golden vectors, and against itself.
use crate::shared_data;
use crate::texts;

mod again;
mod conversations;
mod equal;
mod faults;
mod messages;
mod properties;
mod taken;
mod vectors;
mod written;

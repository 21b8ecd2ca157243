//! Simplified JSON: against what LSEG's converter makes of golden vectors, and against itself.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

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

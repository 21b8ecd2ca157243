//! `tapeline ring` through the real binary.

mod exchange;
mod options;
mod page;
mod running;
mod sweep;

use running::*;

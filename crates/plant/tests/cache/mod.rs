//! The cache against a simple model, on golden messages, on damaged ones, and at its limits.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use crate::mutations;
use crate::shared_data;

mod containers;
mod holds;
mod images;
mod lists;
mod messages;
mod model;
mod shifts;
mod vectors;

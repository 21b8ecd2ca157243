//! The cache against a simple model, and at its limits.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod images;
mod lists;
mod messages;

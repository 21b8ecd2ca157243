//! The examples against each other, and each driver against the role of the other end, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test")]

mod examples;
mod guide;
mod hub;

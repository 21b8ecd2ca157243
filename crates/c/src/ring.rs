//! Rings for C.

mod end;
mod options;
mod publisher;
mod subscriber;

pub use options::*;
pub use publisher::*;
pub use subscriber::*;

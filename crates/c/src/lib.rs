//! The ring for C and C++: `libtapeline` with `include/tapeline.h` (made by cbindgen from this crate) and
//! `include/tapeline.hpp` (a thin wrapper, written by hand). How to build and link it: `docs/c.md`.
//!
//! Names are C's, as in the header. The rules for callers are the same for all functions, and stated once, at the
//! top of the header.
//!
//! Nothing unwinds into C. Calls that may allocate, format or make system calls run under `catch_unwind` and turn
//! a panic into `TAPELINE_ERROR_PANIC`. Those of the hot path (claim, commit, publish, next, copy) have no code
//! of their own that can panic; if the ring's code ever panics, `extern "C"` ends the process instead of
//! unwinding.

#![deny(unsafe_code)]
#![allow(non_camel_case_types, reason = "the names are C's")]
#![allow(clippy::missing_safety_doc, reason = "the header says at its top what holds for every function")]

mod code;
mod consumer;
mod dictionary;
mod failure;
mod fields;
mod journal;
mod publisher;
mod ring;
mod session;
mod sized;
mod span;
mod tick;
mod to_wire;
mod value;

pub use code::*;
pub use consumer::*;
pub use dictionary::*;
pub use failure::*;
pub use fields::*;
pub use journal::*;
pub use publisher::*;
pub use ring::*;
pub use session::*;
pub use span::*;
pub use tick::*;
pub use value::*;

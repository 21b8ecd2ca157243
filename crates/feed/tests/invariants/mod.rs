//! What must hold whatever bytes a decoder is given: one function for each decoder, called with any bytes by
//! `tests/hostile.rs` in `cargo test` and by the targets of `fuzz` under `make fuzz`.
//!
//! What is consumed and what remains make up the input; what was understood, written again, is the input; an error
//! changes nothing; what is kept is bounded.

#![allow(dead_code, reason = "each fuzz target uses one of them, and none their seeds")]

pub(crate) mod arbiter;
pub(crate) mod capture;
pub(crate) mod dbn;
pub(crate) mod iex;
pub(crate) mod itch;
pub(crate) mod moldudp64;
pub(crate) mod recovery;
pub(crate) mod soupbintcp;
pub(crate) mod venues;

/// Pieces of an input, each behind its length of one byte: the last is cut where the input ends.
fn pieces(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first()?;
        let (piece, after) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = after;
        Some(piece)
    })
}

//! Acknowledgements of posts.

use crate::rwf::{AckHeader, NakCode, PostHeader, flags};

/// Refusal of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nak<'a> {
    /// Reason code.
    pub code: NakCode,
    /// Human-readable reason.
    pub text: &'a [u8],
}

/// Returns `true` if a post wants an acknowledgement: it has the ACK flag and a post id, and is the last part of the
/// post.
#[must_use]
pub fn wants_ack(post: &PostHeader<'_>) -> bool {
    post.flags.has(flags::post::ACK | flags::post::POST_COMPLETE) && post.post_id.is_some()
}

/// Returns the acknowledgement of a post, on its stream, in its domain, with its id and sequence number: positive, or
/// negative if `nak` is given.
#[must_use]
pub fn ack<'a>(post: &PostHeader<'_>, nak: Option<Nak<'a>>) -> AckHeader<'a> {
    AckHeader {
        nak_code: nak.map(|nak| nak.code),
        text: nak.map(|nak| nak.text).filter(|text| !text.is_empty()),
        sequence: post.sequence,
        ..AckHeader::new(post.domain, post.stream_id, post.post_id.unwrap_or(0))
    }
}

//! Receipts of posts, and how posts belong to streams.

use crate::rwf::{AckHeader, NakCode, PostHeader, flags};

/// Why a post is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nak<'a> {
    /// Why.
    pub code: NakCode,
    /// Why, for people.
    pub text: &'a [u8],
}

/// Whether a receipt is wanted: of a post that says ACK and has an id for it, and is the last part of the whole.
#[must_use]
pub fn wants_ack(post: &PostHeader<'_>) -> bool {
    post.flags.has(flags::post::ACK | flags::post::POST_COMPLETE) && post.post_id.is_some()
}

/// The receipt of a post: on its stream, in its domain, with its id and sequence number. The post is taken, or refused.
#[must_use]
pub fn ack<'a>(post: &PostHeader<'_>, nak: Option<Nak<'a>>) -> AckHeader<'a> {
    AckHeader {
        nak_code: nak.map(|nak| nak.code),
        text: nak.map(|nak| nak.text).filter(|text| !text.is_empty()),
        sequence: post.sequence,
        ..AckHeader::new(post.domain, post.stream_id, post.post_id.unwrap_or(0))
    }
}

//! Posts in several parts: stored until the last part has come, and passed on together.
//!
//! Otherwise the source would have to store the parts of clients that it does not know, and might get a post without its end. Stored parts count as
//! messages queued for the sources, and each session has a limited share.

use std::num::NonZeroUsize;

use tapeline_nanos::Nanos;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::rwf::{PostHeader, flags};

/// Maximum number of incomplete posts of one session.
const MOST_POSTS: usize = 16;
/// Time-out for the next part, ns: the time for which EMA waits for a receipt.
const PATIENCE_NS: u64 = 15_000_000_000;
/// Overhead of a part in bytes: its list entry and the allocator's.
const OVERHEAD: usize = 64;

/// The incomplete posts of one session.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    posts: Vec<Unfinished>,
    bytes: usize,
}

#[derive(Debug)]
struct Unfinished {
    /// The stream of the post; `None` for the login stream.
    stream: Option<StreamHandle>,
    id: Option<u32>,
    since: Nanos,
    parts: Vec<Box<[u8]>>,
}

/// The reason to refuse a part, and with it the whole post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The part is not the next one.
    OutOfOrder,
    /// The session's stored bytes exceed the limit.
    TooMuch,
}

impl Parts {
    /// Adds a part; a session may store `most` bytes. Returns all parts with the last one, nothing before. A post in one part is never stored.
    pub(crate) fn take(
        &mut self,
        now: Nanos,
        stream: Option<StreamHandle>,
        header: &PostHeader<'_>,
        part: Box<[u8]>,
        most: usize,
    ) -> Result<Vec<Box<[u8]>>, Refused> {
        let number = usize::from(header.part.unwrap_or(0));
        let is_last = header.flags.has(flags::post::POST_COMPLETE);
        let place = self.posts.iter().position(|post| (post.stream, post.id) == (stream, header.post_id));
        let Some(number) = NonZeroUsize::new(number) else {
            // A first part starts a new post, and replaces an incomplete one.
            place.into_iter().for_each(|place| self.drop_at(place));
            if is_last {
                return Ok(vec![part]);
            }
            return self.begin(now, stream, header.post_id, part, most);
        };
        let place = place.ok_or(Refused::OutOfOrder)?;
        let follows = self.posts.get(place).is_some_and(|post| post.parts.len() == number.get());
        let fits = self.bytes + bytes(&part) <= most;
        if !follows || !fits {
            self.drop_at(place);
            return Err(if follows { Refused::TooMuch } else { Refused::OutOfOrder });
        }
        let Some(post) = self.posts.get_mut(place) else { return Err(Refused::OutOfOrder) };
        self.bytes += bytes(&part);
        (post.since, _) = (now, post.parts.push(part));
        if !is_last {
            return Ok(Vec::new());
        }
        let post = self.posts.swap_remove(place);
        self.bytes -= post.parts.iter().map(|part| bytes(part)).sum::<usize>();
        Ok(post.parts)
    }

    fn begin(
        &mut self,
        now: Nanos,
        stream: Option<StreamHandle>,
        id: Option<u32>,
        part: Box<[u8]>,
        most: usize,
    ) -> Result<Vec<Box<[u8]>>, Refused> {
        if self.posts.len() >= MOST_POSTS || self.bytes + bytes(&part) > most {
            return Err(Refused::TooMuch);
        }
        self.bytes += bytes(&part);
        self.posts.push(Unfinished { stream, id, since: now, parts: vec![part] });
        Ok(Vec::new())
    }

    /// Drops posts whose next part has not come in time.
    pub(crate) fn drop_late(&mut self, now: Nanos) {
        let is_late = |post: &Unfinished| now.0.saturating_sub(post.since.0) >= PATIENCE_NS;
        while let Some(place) = self.posts.iter().position(is_late) {
            self.drop_at(place);
        }
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn drop_at(&mut self, place: usize) {
        let post = self.posts.swap_remove(place);
        self.bytes -= post.parts.iter().map(|part| bytes(part)).sum::<usize>();
    }
}

fn bytes(part: &[u8]) -> usize {
    part.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use tapeline_omm::rwf::{DataType, Domain, Flags, PostUserInfo};

    use super::*;

    fn take(parts: &mut Parts, now: u64, id: u32, number: u16, is_last: bool) -> Result<usize, Refused> {
        let flags = if is_last { flags::post::POST_COMPLETE } else { Flags(0) };
        let header = PostHeader {
            flags,
            post_id: Some(id),
            part: Some(number),
            ..PostHeader::new(Domain::MARKET_PRICE, 1, PostUserInfo::default(), DataType::FIELD_LIST)
        };
        parts.take(Nanos(now), None, &header, vec![0; 36].into(), 400).map(|whole| whole.len())
    }

    #[test]
    fn parts_come_in_order_up_to_a_limit_and_in_time() {
        let mut parts = Parts::default();
        assert_eq!(take(&mut parts, 0, 1, 0, true), Ok(1));
        assert_eq!([take(&mut parts, 0, 1, 0, false), take(&mut parts, 0, 2, 0, false)], [Ok(0), Ok(0)]);
        assert_eq!([take(&mut parts, 0, 1, 1, false), take(&mut parts, 0, 2, 1, true)], [Ok(0), Ok(2)]);
        assert_eq!(take(&mut parts, 0, 1, 3, true), Err(Refused::OutOfOrder));
        assert_eq!(take(&mut parts, 0, 1, 2, true), Err(Refused::OutOfOrder));
        assert_eq!(parts.bytes(), 0);
        (0..4).for_each(|id| assert_eq!(take(&mut parts, 9, id, 0, false), Ok(0)));
        assert_eq!(take(&mut parts, 9, 4, 0, false), Err(Refused::TooMuch));
        assert_eq!(take(&mut parts, 9, 3, 1, true), Err(Refused::TooMuch));
        assert_eq!(parts.bytes(), 300);
        parts.drop_late(Nanos(PATIENCE_NS));
        assert_eq!(take(&mut parts, PATIENCE_NS, 0, 1, false), Ok(0));
        parts.drop_late(Nanos(PATIENCE_NS + 9));
        assert_eq!(parts.bytes(), 200);
        assert_eq!(take(&mut parts, PATIENCE_NS, 0, 2, true), Ok(3));
        assert_eq!((take(&mut parts, 9, 5, 0, false), take(&mut parts, 9, 5, 0, true)), (Ok(0), Ok(1)));
        assert_eq!(parts.bytes(), 0);
    }
}

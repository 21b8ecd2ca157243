//! permessage-deflate (RFC 7692): compression of messages.

use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};

use super::super::fault::Fault;

/// The end of a sync flush; messages are sent without it.
pub(super) const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// Step in bytes by which a message's buffer grows.
const STEP: usize = 16 << 10;

/// The receiving direction. The context of the peer's earlier messages is retained, whether or not the peer
/// refers to it.
pub(in super::super) struct Inflated {
    stream: Decompress,
    /// Bytes inflated so far.
    pub(super) bytes: u64,
}

impl Inflated {
    pub(in super::super) fn new() -> Self {
        Self { stream: Decompress::new(false), bytes: 0 }
    }

    /// Inflates a message of at most `limit` bytes into `message`.
    pub(in super::super) fn inflate(
        &mut self,
        compressed: &[u8],
        limit: usize,
        message: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        message.clear();
        'message: for piece in [compressed, &TAIL] {
            let mut rest = piece;
            loop {
                if message.len() == message.capacity() {
                    if message.len() > limit {
                        let what = format!("message of {} bytes that inflates to more", compressed.len());
                        return Err(Fault::over_limit(what, limit));
                    }
                    message.reserve_exact(STEP.max(message.len()).min(limit + 1 - message.len()));
                }
                let (before, length) = (self.stream.total_in(), message.len());
                let status =
                    self.stream.decompress_vec(rest, message, FlushDecompress::Sync).map_err(|cause| {
                        let what = format!("compressed message of {} bytes: {cause}", compressed.len());
                        Fault::new(what, "raw deflate, without the end of its sync flush")
                    })?;
                let read = (self.stream.total_in() - before) as usize;
                rest = &rest[read..];
                if status == Status::StreamEnd {
                    // A final block may end a message, or a part of it (RFC 7692, 7.2.3.4): the following
                    // bytes start a new stream. If none follow, the message did not end with a flush, and
                    // nothing was left out.
                    self.stream.reset(false);
                    if rest.is_empty() {
                        break 'message;
                    }
                    continue;
                }
                let has_room = message.len() < message.capacity();
                if has_room && (rest.is_empty() || (read == 0 && message.len() == length)) {
                    break;
                }
            }
        }
        self.bytes += message.len() as u64;
        if message.len() > limit {
            let what = format!("message of {} bytes that inflates to {}", compressed.len(), message.len());
            return Err(Fault::over_limit(what, limit));
        }
        Ok(())
    }
}

/// The sending direction: each message is compressed by itself.
pub(in super::super) struct Deflated {
    stream: Compress,
    compressed: Vec<u8>,
}

impl Deflated {
    pub(in super::super) fn new(level: u8) -> Self {
        let level = flate2::Compression::new(u32::from(level.min(9)));
        Self { stream: Compress::new(level, false), compressed: Vec::new() }
    }

    /// Compresses the message; `None` if it should be sent uncompressed.
    pub(in super::super) fn deflate(&mut self, message: &[u8]) -> Option<&[u8]> {
        self.stream.reset();
        self.compressed.clear();
        // No more space than the message itself: if that is too little, the message is sent uncompressed.
        self.compressed.reserve(message.len() + TAIL.len());
        self.stream.compress_vec(message, &mut self.compressed, FlushCompress::Sync).ok()?;
        let complete = self.stream.total_in() == message.len() as u64;
        self.compressed.strip_suffix(&TAIL).filter(|compressed| complete && compressed.len() < message.len())
    }
}

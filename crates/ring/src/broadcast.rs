//! Rings whose publisher never waits.
//!
//! The publisher of a broadcast ring overwrites the oldest frames, read or not. A subscriber copies each frame, then
//! checks whether the publisher has overtaken it meanwhile. If so, it gets the number of lost frames and continues with
//! the oldest intact frame. Use a broadcast ring for subscribers that must not block each other and can recover lost
//! frames elsewhere.
//!
//! ```
//! use tapeline_ring::broadcast::{BroadcastPoll, Publisher, Subscriber};
//! use tapeline_ring::{Name, Options, Start};
//!
//! let name = Name::new(&format!("doc-broadcast-{}", std::process::id()))?;
//! let options = Options { capacity: 4096, ..Options::default() };
//! let mut publisher = Publisher::open(&name, &options)?;
//! let mut subscriber = Subscriber::join(&name, Start::Newest)?;
//!
//! for number in 0..1000u64 {
//!     publisher.publish(&number.to_le_bytes())?; // is never refused for want of room
//! }
//! publisher.close()?;
//!
//! let (mut received, mut lost) = (0, 0);
//! loop {
//!     match subscriber.next() {
//!         BroadcastPoll::Frame(frame) => {
//!             assert_eq!(*frame, (received + lost as u64).to_le_bytes());
//!             received += 1;
//!         }
//!         BroadcastPoll::Lost { frames, .. } => lost += frames,
//!         _ => break,
//!     }
//! }
//! assert!(lost > 0);
//! assert_eq!(received + lost, 1000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::atomics::Ordering;

use crate::discipline::Broadcast;
use crate::frame::{self, Frame, Position, committed_len};
use crate::lines::ENDED;
use crate::{Error, PublisherOf, Start, SubscriberOf};

/// The single publisher of a broadcast ring. It refuses a claim only for its length, or in a batch that is larger than
/// the ring.
pub type Publisher = PublisherOf<Broadcast>;

/// A subscriber of a broadcast ring. The publisher never waits for it.
pub type Subscriber = SubscriberOf<Broadcast>;

/// The result of [`next`](SubscriberOf::next) on a broadcast ring.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub enum BroadcastPoll<'a> {
    /// The next frame: the subscriber's own copy, whole, valid until the next call.
    Frame(Frame<'a>),
    /// The publisher has overtaken this subscriber. The next frame is the oldest intact one.
    Lost {
        /// Number of frames lost to this subscriber.
        frames: u64,
        /// Bytes of the ring that the lost frames took.
        bytes: u64,
    },
    /// No new frame. More may come, also from another publisher if this one has died.
    Empty,
    /// No new frame, and the publisher has ended the ring. (If the ring keeps its name, a publisher can continue
    /// it; then more frames follow.)
    Ended,
    /// Something other than a publisher has written into the ring. The subscriber cannot continue.
    Damaged {
        /// The position of the expected frame header.
        position: Position,
    },
}

impl<'a> BroadcastPoll<'a> {
    /// Returns the frame, if there is one.
    #[inline]
    #[must_use]
    pub fn frame(self) -> Option<Frame<'a>> {
        match self {
            Self::Frame(frame) => Some(frame),
            _ => None,
        }
    }
}

/// Retries because the publisher moved between two loads. Each retry needs it to move by an eighth of the ring.
const ROUNDS: usize = 1000;

impl SubscriberOf<Broadcast> {
    /// Returns the next frame, or why there is none.
    ///
    /// Costs a copy of the frame and two loads; no store except once per eighth of the ring, when the position is
    /// stored for observers.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "a frame borrows the subscriber, which an iterator cannot say"
    )]
    pub fn next(&mut self) -> BroadcastPoll<'_> {
        let start = self.position;
        if start >= self.publish_at {
            self.publish();
        }
        // Acquire pairs with the release store of the header: the frame's bytes are visible. If they or the header
        // were overwritten since, the gate shows it.
        let header = self.memory.header(start).load(Ordering::Acquire);
        let Some(len) = committed_len(header, self.max_frame) else {
            return self.nothing(header);
        };
        self.reading.copy.take(&self.memory, start, len);
        if self.is_passed() {
            return self.lost();
        }
        self.position = start + self.grain.frame_size(len) as u64;
        self.reading.frames = self.reading.frames.wrapping_add(1);
        let (position, epoch) = (Position(start), frame::epoch(header));
        BroadcastPoll::Frame(Frame { bytes: self.reading.copy.bytes(len), position, epoch })
    }

    /// The rare path of `next`: there is no frame at the position.
    #[inline]
    fn nothing(&mut self, header: u64) -> BroadcastPoll<'_> {
        if self.is_passed() {
            return self.lost();
        }
        if header != 0 {
            return BroadcastPoll::Damaged { position: Position(self.position) };
        }
        if self.published != self.position {
            self.publish();
        }
        #[cfg(test)]
        #[cfg(not(loom))]
        crate::subscriber::tests::between_looks();
        // Acquire pairs with the release store in the publisher's `end`: every frame before it is visible, so one
        // more look decides.
        let ended = self.memory.publisher().status.state.load(Ordering::Acquire) == ENDED;
        if ended && !self.has_frame() && !self.is_passed() {
            BroadcastPoll::Ended
        } else {
            BroadcastPoll::Empty
        }
    }

    /// Counts the lost frames and continues at the gate.
    #[cold]
    fn lost(&mut self) -> BroadcastPoll<'_> {
        let from = (self.position, self.reading.frames);
        match self.enter_oldest() {
            Ok(()) => BroadcastPoll::Lost {
                frames: self.reading.frames.wrapping_sub(from.1),
                bytes: self.position.wrapping_sub(from.0),
            },
            Err(_) => BroadcastPoll::Damaged { position: Position(self.position) },
        }
    }

    pub(crate) fn enter_at(&mut self, start: Start) -> Result<(), Error> {
        match start {
            Start::Newest => self.enter_newest()?,
            Start::Oldest => self.enter_oldest()?,
        }
        self.register();
        Ok(())
    }

    fn enter_oldest(&mut self) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            let gate = self.gate()?;
            if let Some(frames) = self.memory.publisher().gate.frames_at(gate) {
                self.reading.frames = frames;
                self.move_to(gate);
                return Ok(());
            }
        }
        Err(self.damaged("its gate does not come to rest".to_owned()))
    }

    /// Starts at the cursor and walks over the frames committed since it was stored. If the publisher overtakes the
    /// walk, the result is void.
    fn enter_newest(&mut self) -> Result<(), Error> {
        let most = self.capacity();
        for _ in 0..ROUNDS {
            let cursor = self.cursor()?;
            let Some(mut frames) = self.memory.publisher().cursor.frames_at(cursor) else { continue };
            let walked = frame::walk(&self.memory, cursor, (self.grain, self.max_frame), most, |_| {
                frames = frames.wrapping_add(1);
            });
            self.position = cursor;
            if self.is_passed() {
                continue;
            }
            let end = walked.map_err(|broken| self.broken(broken))?;
            self.reading.frames = frames;
            self.move_to(end);
            return Ok(());
        }
        // The publisher laps the ring within the time of a walk, so its oldest frame is new.
        self.enter_oldest()
    }
}

//! Shared parts of the models: tiny rings, numbered frames, readers that know the next number.

use std::time::Duration;

use crate::discipline::Discipline;
use crate::memory::{Access, Memory};
use crate::segment::Segment;
use crate::{Framing, Name, Options, Poll, Publisher, PublisherOf, Start, Subscriber};

pub(super) fn name() -> Name {
    Name::new("model").unwrap()
}

/// Three frames of 8 bytes, or two of 16, and the terminator. Each frame opens a part of its own, so nearly every
/// claim moves the gate.
pub(super) fn tiny() -> Options {
    Options { capacity: 64, wake_on_commit: false, stall_limit: Duration::ZERO, ..Options::default() }
}

/// Three frames on lines, and the terminator.
pub(super) fn lines() -> Options {
    Options { capacity: 256, framing: Framing::Lines, ..tiny() }
}

/// Bytes of the frame with this number: never as many as those of the frame in the same place a lap before, so that
/// the models notice when the old header is taken for the new one.
pub(super) fn len_of(number: u64) -> usize {
    8 - (number % 3) as usize
}

/// Publishes the next number, if it fits.
pub(super) fn send<D: Discipline>(publisher: &mut PublisherOf<D>) -> bool {
    let number = publisher.frames();
    publisher.publish(&number.to_le_bytes()[..len_of(number)]).is_ok()
}

/// Publishes the next number twice in one frame, if it fits.
pub(super) fn send_pair<D: Discipline>(publisher: &mut PublisherOf<D>) -> bool {
    let number = publisher.frames();
    let words = [number, number];
    publisher.publish(words.map(u64::to_ne_bytes).as_flattened()).is_ok()
}

/// The next frame's number, read while the frame is borrowed.
pub(super) fn take(subscriber: &mut Subscriber) -> Option<u64> {
    let (position, len) = match subscriber.next() {
        Poll::Frame(frame) => (frame.position().0, frame.len()),
        Poll::Empty | Poll::Ended => return None,
        other => panic!("{other:?}"),
    };
    let number = subscriber.memory.words(position, len)[0];
    assert_eq!(len, len_of(number), "of the frame that was sent");
    Some(number)
}

/// A subscriber of a model.
pub(super) struct Reader {
    pub(super) subscriber: Subscriber,
    /// The number of the next frame.
    pub(super) next: u64,
}

impl Reader {
    pub(super) fn join(next: u64) -> Self {
        Self { subscriber: Subscriber::join_as(&name(), Start::Newest, "").unwrap(), next }
    }

    /// Takes the next frame, if there is one.
    pub(super) fn look(&mut self) -> bool {
        let number = take(&mut self.subscriber);
        if let Some(number) = number {
            assert_eq!(number, self.next, "in order");
            self.next += 1;
        }
        number.is_some()
    }

    /// Takes all available frames, up to number `end`.
    pub(super) fn drain(&mut self, end: u64) {
        while self.next < end {
            assert!(self.look(), "frame {} of {end} is lost", self.next);
        }
        assert!(!self.look(), "no more than was sent");
    }
}

/// A ring in its second lap with space for one more frame, and its subscriber, which has two to read.
pub(super) fn nearly_full(options: &Options) -> (Publisher, Reader) {
    let mut publisher = Publisher::open(&name(), options).unwrap();
    let mut reader = Reader::join(0);
    for _ in 0..3 {
        assert!(send(&mut publisher) && reader.look());
    }
    assert!(!reader.look(), "all is released");
    assert!(send(&mut publisher) && send(&mut publisher));
    (publisher, reader)
}

/// Ends a subscriber as SIGKILL does: without any store, and the kernel drops its lock.
pub(super) fn kill(mut subscriber: Subscriber) {
    // The stores of its `drop` go to a segment that nobody uses.
    let elsewhere = Segment::create(&name(), subscriber.segment.shape, 0, None).unwrap();
    subscriber.memory = Memory::map(&elsewhere, Access::Subscriber).unwrap();
    subscriber.segment = elsewhere;
}

/// Ends a publisher likewise.
pub(super) fn kill_publisher(mut publisher: Publisher) {
    publisher.closed = true;
}

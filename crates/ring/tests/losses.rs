//! Lossy rings, checked against a queue that knows which frames may be lost: broadcast rings, and gated ones with a
//! stall limit.

use crate::scene;

use std::time::Duration;

use proptest::prelude::*;
use scene::{OwnName, small};
use tapeline_ring::{Framing, Options, Poll, Position, Publisher, Refused, Start, Subscriber, broadcast};

#[derive(Clone, Debug)]
enum Step {
    Publish(usize),
    Batch { lens: Vec<usize>, commit: bool },
    Abort(usize),
    Read { who: usize, frames: usize },
    Leave { who: usize },
    Join { start: Start },
}

fn steps(longest: usize) -> impl Strategy<Value = Vec<Step>> {
    let len = move || prop_oneof![3 => 0..40usize.min(longest), 1 => 0..longest];
    let step = prop_oneof![
        10 => len().prop_map(Step::Publish),
        3 => (proptest::collection::vec(len(), 0..9), any::<bool>())
            .prop_map(|(lens, commit)| Step::Batch { lens, commit }),
        2 => len().prop_map(Step::Abort),
        6 => (0usize..3, 1usize..40).prop_map(|(who, frames)| Step::Read { who, frames }),
        1 => (0usize..3).prop_map(|who| Step::Leave { who }),
        2 => prop_oneof![Just(Start::Newest), Just(Start::Oldest)].prop_map(|start| Step::Join { start }),
    ];
    proptest::collection::vec(step, 1..400)
}

/// All frames of a ring with their positions, and the farthest claim.
struct History {
    frames: Vec<(u64, Vec<u8>)>,
    align: u64,
    reached: u64,
}

impl History {
    fn new(framing: Framing) -> Self {
        Self { frames: Vec::new(), align: if framing == Framing::Lines { 64 } else { 8 }, reached: 0 }
    }

    fn fresh(&self, len: usize) -> Vec<u8> {
        (0..len).map(|at| (self.frames.len() as u8).wrapping_mul(31).wrapping_add(at as u8)).collect()
    }

    fn size(&self, len: usize) -> u64 {
        (len as u64 + 8).next_multiple_of(self.align)
    }

    fn end(&self) -> u64 {
        self.frames.last().map_or(0, |(at, bytes)| at + self.size(bytes.len()))
    }

    /// The first frame at or after a position.
    fn index_of(&self, position: Position) -> usize {
        self.frames.partition_point(|(at, _)| *at < position.0)
    }
}

/// A broadcast subscriber, and the index of the next frame.
struct Reader {
    ring: broadcast::Subscriber,
    next: usize,
}

impl Reader {
    /// Reads up to `frames` frames; returns whether the end came first. No frame within `spared` bytes of the
    /// farthest claim may be lost.
    fn read(&mut self, history: &History, frames: usize, spared: u64) -> Result<bool, TestCaseError> {
        for _ in 0..frames {
            match self.ring.next() {
                broadcast::BroadcastPoll::Frame(frame) => {
                    let (position, bytes) = &history.frames[self.next];
                    prop_assert_eq!((frame.position().0, frame.bytes()), (*position, &bytes[..]));
                    self.next += 1;
                }
                broadcast::BroadcastPoll::Lost { frames, bytes } => {
                    let from = history.frames[self.next].0;
                    let last = &history.frames[self.next + frames as usize - 1];
                    prop_assert!(
                        last.0 + spared <= history.reached,
                        "{} of {} lost",
                        last.0,
                        history.reached
                    );
                    self.next += frames as usize;
                    let to = history.frames.get(self.next).map_or(history.end(), |frame| frame.0);
                    prop_assert_eq!(bytes, to - from);
                }
                broadcast::BroadcastPoll::Empty | broadcast::BroadcastPoll::Ended => {
                    prop_assert_eq!(self.next, history.frames.len());
                    return Ok(true);
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        Ok(false)
    }
}

fn play_broadcast(steps: Vec<Step>, framing: Framing, longest: usize) -> Result<(), TestCaseError> {
    let name = OwnName::new(&format!("losses-{framing}"));
    let mut publisher = broadcast::Publisher::open(&name.0, &Options { framing, ..small() }).unwrap();
    let mut history = History::new(framing);
    let mut readers: Vec<Reader> = Vec::new();
    let eighth = publisher.capacity() as u64 / 8;
    // The gate moves by an eighth, to a boundary that may be another eighth and a frame later.
    let spared = (6 * eighth).saturating_sub(3 * history.size(longest));
    for step in steps {
        match step {
            Step::Publish(len) => {
                let bytes = history.fresh(len);
                let position = publisher.publish(&bytes).expect("a broadcast ring is never full");
                history.frames.push((position.0, bytes));
            }
            Step::Abort(len) => {
                publisher.claim(len).expect("a broadcast ring is never full").fill(0xee);
                history.reached = history.reached.max(history.end() + history.size(len));
            }
            Step::Batch { lens, commit } => {
                let mut new = Vec::new();
                let mut position = history.end();
                let mut batch = publisher.claim_batch();
                for len in lens {
                    let bytes = history.fresh(len);
                    // A batch that is larger than the ring is the only one that is refused.
                    let Ok(room) = batch.claim(len) else { break };
                    room.copy_from_slice(&bytes);
                    new.push((position, bytes));
                    position += history.size(len);
                }
                history.reached = history.reached.max(position);
                for reader in &mut readers {
                    reader.read(&history, usize::MAX, spared)?;
                }
                if commit {
                    batch.commit();
                    history.frames.extend(new);
                }
            }
            Step::Read { who, frames } => {
                if let Some(reader) = readers.get_mut(who) {
                    reader.read(&history, frames, spared)?;
                }
            }
            Step::Leave { who } => {
                if who < readers.len() {
                    readers.remove(who);
                }
            }
            Step::Join { start } => {
                if readers.len() < 3 {
                    let ring = broadcast::Subscriber::join(&name.0, start).unwrap();
                    let next = history.index_of(ring.position());
                    let at = history.frames.get(next).map_or(history.end(), |frame| frame.0);
                    prop_assert_eq!(ring.position().0, at, "a frame's start");
                    prop_assert!(start == Start::Oldest || next == history.frames.len());
                    readers.push(Reader { ring, next });
                }
            }
        }
        history.reached = history.reached.max(history.end());
        prop_assert_eq!(publisher.position().0, history.end());
    }
    publisher.close().unwrap();
    for reader in &mut readers {
        while !reader.read(&history, usize::MAX, spared)? {}
        prop_assert!(matches!(reader.ring.next(), broadcast::BroadcastPoll::Ended));
    }
    Ok(())
}

/// A publisher that insists: a subscriber that does not read is evicted, one that reads loses nothing.
fn play_evictions(steps: Vec<Step>, framing: Framing) -> Result<(), TestCaseError> {
    let name = OwnName::new(&format!("evictions-{framing}"));
    let options = Options { framing, stall_limit: Duration::from_micros(500), ..small() };
    let mut publisher = Publisher::open(&name.0, &options).unwrap();
    let capacity = publisher.capacity() as u64;
    let mut history = History::new(framing);
    let mut readers: Vec<(Subscriber, usize)> = Vec::new();
    let mut gone = 0;
    for step in steps {
        match step {
            Step::Publish(len) => {
                let bytes = history.fresh(len);
                let position = loop {
                    match publisher.publish(&bytes) {
                        Ok(position) => break position,
                        Err(Refused::Full) => std::hint::spin_loop(),
                        Err(refused) => panic!("{refused}"),
                    }
                };
                history.frames.push((position.0, bytes));
            }
            Step::Abort(len) => drop(publisher.claim(len)),
            Step::Batch { .. } => {}
            Step::Read { who, frames } => {
                let Some((ring, next)) = readers.get_mut(who) else { continue };
                let before = ring.position();
                for _ in 0..frames {
                    let evicted = ring.is_evicted();
                    match ring.next() {
                        Poll::Frame(frame) => {
                            let (position, bytes) = &history.frames[*next];
                            prop_assert!(!evicted);
                            prop_assert_eq!((frame.position().0, frame.bytes()), (*position, &bytes[..]));
                            *next += 1;
                        }
                        Poll::Evicted { position } => {
                            prop_assert!(evicted && position <= before);
                            // The evicted subscriber blocked the ring.
                            prop_assert!(
                                position.0 + capacity <= history.end() + capacity / 8 + history.size(1100)
                            );
                            break;
                        }
                        Poll::Empty => {
                            prop_assert_eq!(*next, history.frames.len());
                            break;
                        }
                        other => prop_assert!(false, "{other:?}"),
                    }
                }
            }
            Step::Leave { who } => {
                if who < readers.len() {
                    gone += u64::from(readers.remove(who).0.is_evicted());
                }
            }
            Step::Join { start } => {
                if readers.len() < 3 {
                    let ring = Subscriber::join(&name.0, start).unwrap();
                    prop_assert!(!ring.is_evicted());
                    let next = history.index_of(ring.position());
                    readers.push((ring, next));
                }
            }
        }
        let evicted = readers.iter().filter(|(ring, _)| ring.is_evicted()).count() as u64;
        prop_assert_eq!(publisher.evicted(), gone + evicted);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_broadcast_ring_loses_what_it_says(steps in steps(1000), lines: bool) {
        play_broadcast(steps, if lines { Framing::Lines } else { Framing::Packed }, 1000)?;
    }

    #[test]
    fn a_broadcast_ring_of_short_frames_keeps_most(steps in steps(60), lines: bool) {
        play_broadcast(steps, if lines { Framing::Lines } else { Framing::Packed }, 60)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn who_does_not_read_is_evicted_and_nobody_else(steps in steps(1000), lines: bool) {
        play_evictions(steps, if lines { Framing::Lines } else { Framing::Packed })?;
    }
}

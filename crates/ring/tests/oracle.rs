//! The ring against a plain queue, for any order of the operations of a publisher and its subscribers.

use crate::scene;

use std::collections::VecDeque;

use proptest::prelude::*;
use scene::{OwnName, small};
use tapeline_ring::{Framing, Options, Poll, Publisher, Refused, Start, Subscriber};

#[derive(Clone, Debug)]
enum Step {
    Publish(usize),
    Claim { len: usize, end: End },
    Batch { lens: Vec<usize>, commit: bool },
    Hide { len: usize, prefix: usize },
    Show,
    Read { who: usize, frames: usize },
    Drain { who: usize },
    Leave { who: usize },
    Join { start: Start },
    Flush,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Commit,
    Prefix(usize),
    Abort,
}

fn len() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0usize..40, 3 => 40usize..300, 1 => 300usize..1100]
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![
        4 => Just(End::Commit),
        1 => (0usize..1100).prop_map(End::Prefix),
        1 => Just(End::Abort),
    ];
    prop_oneof![
        6 => len().prop_map(Step::Publish),
        6 => (len(), end).prop_map(|(len, end)| Step::Claim { len, end }),
        3 => (proptest::collection::vec(len(), 0..9), any::<bool>())
            .prop_map(|(lens, commit)| Step::Batch { lens, commit }),
        6 => (len(), 0usize..1100).prop_map(|(len, prefix)| Step::Hide { len, prefix }),
        2 => Just(Step::Show),
        8 => (0usize..3, 1usize..12).prop_map(|(who, frames)| Step::Read { who, frames }),
        5 => (0usize..3).prop_map(|who| Step::Drain { who }),
        1 => (0usize..3).prop_map(|who| Step::Leave { who }),
        2 => prop_oneof![Just(Start::Newest), Just(Start::Oldest)].prop_map(|start| Step::Join { start }),
        1 => Just(Step::Flush),
    ]
}

/// A subscriber and the frames that it has not read yet.
struct Reader {
    ring: Subscriber,
    queue: VecDeque<(u64, Vec<u8>)>,
}

impl Reader {
    fn read(&mut self, frames: usize) -> Result<(), TestCaseError> {
        for _ in 0..frames {
            match (self.ring.next(), self.queue.pop_front()) {
                (Poll::Frame(frame), Some((position, bytes))) => {
                    prop_assert_eq!(frame.position().0, position);
                    prop_assert_eq!(&*frame, &bytes[..]);
                }
                (Poll::Empty, None) => break,
                (poll, expected) => prop_assert!(false, "{poll:?}, expected {expected:?}"),
            }
        }
        Ok(())
    }
}

fn play(steps: Vec<Step>, framing: Framing) -> Result<(), TestCaseError> {
    let name = OwnName::new(&format!("oracle-{framing}"));
    let align = if framing == Framing::Lines { 64 } else { 8 };
    let size = |len: usize| (len as u64 + 8).next_multiple_of(align);
    let mut publisher = Publisher::open(&name.0, &Options { framing, ..small() }).unwrap();
    let capacity = publisher.capacity();
    let mut history: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut readers: Vec<Reader> = Vec::new();
    // Frames that are not visible yet.
    let mut hidden: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut byte = 0u8;
    let mut fresh = |len: usize| {
        byte = byte.wrapping_add(1);
        (0..len).map(|at| byte.wrapping_add(at as u8)).collect::<Vec<u8>>()
    };
    for step in steps {
        let mut new: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut refused = None;
        let before = publisher.position().0;
        match step {
            Step::Publish(len) => {
                let bytes = fresh(len);
                match publisher.publish(&bytes) {
                    Ok(position) => new.push((position.0, bytes)),
                    Err(why) => refused = Some((why, len)),
                }
            }
            Step::Claim { len, end } => {
                let bytes = fresh(len);
                match publisher.claim(len) {
                    Ok(mut claim) => {
                        claim.copy_from_slice(&bytes);
                        match end {
                            End::Commit => new.push((claim.commit().0, bytes)),
                            End::Prefix(prefix) => match claim.commit_prefix(prefix) {
                                Ok(position) => new.push((position.0, bytes[..prefix].to_vec())),
                                Err(why) => prop_assert_eq!((why, prefix > len), (Refused::TooLong, true)),
                            },
                            End::Abort => {}
                        }
                    }
                    Err(why) => refused = Some((why, len)),
                }
            }
            Step::Hide { len, prefix } => {
                let bytes = fresh(len);
                match publisher.claim(len) {
                    Ok(mut claim) => {
                        claim.copy_from_slice(&bytes);
                        match claim.hide_prefix(prefix) {
                            Ok(position) => new.push((position.0, bytes[..prefix].to_vec())),
                            Err(why) => prop_assert_eq!((why, prefix > len), (Refused::TooLong, true)),
                        }
                    }
                    Err(why) => refused = Some((why, len)),
                }
            }
            Step::Show => publisher.show(),
            Step::Batch { lens, commit } => {
                // What a claim of the batch would show.
                publisher.show();
                for reader in &mut readers {
                    reader.queue.extend(hidden.iter().cloned());
                }
                history.append(&mut hidden);
                let mut batch = publisher.claim_batch();
                let mut position = before;
                for len in lens {
                    let bytes = fresh(len);
                    if let Ok(room) = batch.claim(len) {
                        room.copy_from_slice(&bytes);
                        new.push((position, bytes));
                        position += size(len);
                    }
                }
                prop_assert_eq!(batch.frames(), new.len() as u64);
                // No frame is visible before the commit.
                for reader in &mut readers {
                    let seen = reader.queue.len();
                    reader.read(seen)?;
                    prop_assert!(matches!(reader.ring.next(), Poll::Empty));
                }
                if commit {
                    prop_assert_eq!(batch.commit().0, before);
                } else {
                    drop(batch);
                    new.clear();
                }
            }
            Step::Read { who, frames } => {
                if let Some(reader) = readers.get_mut(who) {
                    reader.read(frames)?;
                }
            }
            Step::Drain { who } => {
                if let Some(reader) = readers.get_mut(who) {
                    reader.read(usize::MAX)?;
                }
            }
            Step::Leave { who } => {
                if who < readers.len() {
                    readers.remove(who);
                }
            }
            Step::Join { start } => {
                if readers.len() < 3 {
                    let ring = Subscriber::join(&name.0, start).unwrap();
                    let from = ring.position().0;
                    let visible = hidden.first().map_or(before, |frame| frame.0);
                    let queue: VecDeque<_> = history.iter().filter(|(at, _)| *at >= from).cloned().collect();
                    match start {
                        Start::Newest => prop_assert_eq!(from, visible),
                        // At a frame's start, and with all later frames (which the reads then show).
                        Start::Oldest => {
                            let is_first = queue.front().is_some_and(|frame| frame.0 == from);
                            prop_assert!(from == visible || is_first, "{from} is no frame's start");
                        }
                    }
                    readers.push(Reader { ring, queue });
                }
            }
            Step::Flush => publisher.flush(),
        }
        match refused {
            Some((Refused::TooLong, len)) => prop_assert!(len > publisher.max_frame()),
            Some((Refused::Full, len)) => {
                // Only for a reason: a subscriber has not read, or has read without storing its position yet (an
                // eighth at most).
                let slowest = readers.iter().map(|reader| reader.ring.position().0).min().unwrap_or(before);
                let used = before - slowest + size(len) + align;
                prop_assert!(used > (capacity - capacity / 8 - 1100) as u64, "full with {used} bytes in use");
            }
            None => {}
        }
        hidden.extend(new);
        let first_hidden = publisher.first_hidden().map_or(u64::MAX, |position| position.0);
        let visible = hidden.iter().take_while(|frame| frame.0 < first_hidden).count();
        let shown: Vec<_> = hidden.drain(..visible).collect();
        for reader in &mut readers {
            reader.queue.extend(shown.iter().cloned());
            if !hidden.is_empty() {
                let seen = reader.queue.len();
                reader.read(seen)?;
                prop_assert!(matches!(reader.ring.next(), Poll::Empty));
            }
        }
        history.extend(shown);
    }
    for reader in &mut readers {
        reader.queue.extend(hidden.iter().cloned());
    }
    history.append(&mut hidden);
    let frames = publisher.frames();
    prop_assert_eq!(frames, history.len() as u64);
    publisher.close().unwrap();
    for reader in &mut readers {
        let left = reader.queue.len();
        reader.read(left)?;
        prop_assert!(matches!(reader.ring.next(), Poll::Ended));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_ring_is_a_queue(steps in proptest::collection::vec(step(), 1..300)) {
        play(steps, Framing::Packed)?;
    }

    #[test]
    fn the_ring_is_a_queue_on_lines_too(steps in proptest::collection::vec(step(), 1..300)) {
        play(steps, Framing::Lines)?;
    }
}

#[test]
fn empty_frames_are_frames() {
    let name = OwnName::new("empty");
    let mut publisher = Publisher::open(&name.0, &small()).unwrap();
    let mut subscriber = Subscriber::join(&name.0, Start::Newest).unwrap();
    for _ in 0..10_000 {
        publisher.publish(b"").unwrap();
        assert_eq!(subscriber.next().frame().map(|frame| frame.len()), Some(0));
        assert!(matches!(subscriber.next(), Poll::Empty));
    }
}

/// A shortened claim ends inside bytes that its owner wrote. Where the claim reaches over the end of the ring, its
/// end is in the second mapping of the data area.
#[test]
fn a_shortened_claim_ends_in_zero_wherever_it_lies() {
    for framing in [Framing::Packed, Framing::Lines] {
        let name = OwnName::new(&format!("prefix-{framing}"));
        let mut publisher = Publisher::open(&name.0, &Options { framing, ..small() }).unwrap();
        let mut subscriber = Subscriber::join(&name.0, Start::Newest).unwrap();
        for round in 0..20_000usize {
            let mut claim = publisher.claim(64 + round % 512).unwrap();
            claim.fill(0xff);
            claim.commit_prefix(round % 64).unwrap();
            assert_eq!(subscriber.next().frame().map(|frame| frame.len()), Some(round % 64));
            assert!(matches!(subscriber.next(), Poll::Empty));
        }
    }
}

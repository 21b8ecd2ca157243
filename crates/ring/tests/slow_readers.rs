//! Live subscribers that do not read: evicted from a gated ring with a stall limit, overtaken in a broadcast ring,
//! with the number of lost frames.

use crate::scene;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use scene::{OwnName, counter_of, message, publish_all, small};
use tapeline_ring::{Framing, Options, Poll, Publisher, Start, Subscriber, Wait, broadcast, inspect};

const LIMIT: Duration = Duration::from_millis(40);
const LONG: Duration = Duration::from_secs(600);

fn limited(framing: Framing) -> Options {
    Options { stall_limit: LIMIT, framing, ..small() }
}

#[test]
fn a_stalled_subscriber_is_evicted_and_told() {
    for framing in [Framing::Packed, Framing::Lines] {
        let name = OwnName::new("evicted");
        let mut publisher = Publisher::open(&name.0, &limited(framing)).unwrap();
        let mut stalled = Subscriber::join_as(&name.0, Start::Newest, "stalled").unwrap();
        let mut reader = Subscriber::join_as(&name.0, Start::Newest, "reader").unwrap();
        assert_eq!(stalled.stall_limit(), LIMIT);
        let (mut sent, mut read) = (0, 0);
        let mut first_full = None;
        while publisher.evicted() == 0 {
            match publisher.publish(&message(sent)) {
                Ok(_) => sent += 1,
                Err(_) => _ = first_full.get_or_insert_with(Instant::now),
            }
            while let Poll::Frame(frame) = reader.next() {
                assert_eq!(counter_of(&frame), Some(read));
                read += 1;
            }
        }
        assert!(first_full.unwrap().elapsed() >= LIMIT, "not before its time");
        let view = inspect(&name.0).unwrap();
        assert_eq!(view.publisher.evicted, 1);
        let evicted: Vec<_> = view.subscribers.iter().map(|one| (&*one.label, one.evicted)).collect();
        assert_eq!(evicted, [("stalled", true), ("reader", false)]);
        // Far around the ring, so that the evicted subscriber would read arbitrary bytes.
        for _ in 0..1000 {
            publish_all(&mut publisher, &message(sent));
            sent += 1;
            while let Poll::Frame(frame) = reader.next() {
                assert_eq!(counter_of(&frame), Some(read));
                read += 1;
            }
        }
        assert_eq!(read, sent, "the other has lost nothing");
        assert!(stalled.is_evicted() && !reader.is_evicted());
        assert!(stalled.wait(Wait::Adaptive, LONG), "being evicted is worth waking for");
        for _ in 0..3 {
            let Poll::Evicted { position } = stalled.next() else { panic!("it is told, and told again") };
            assert_eq!(position.0, 0, "from where it lost");
        }
        // Its slot is free when it leaves, and the next holder has no stall yet.
        drop(stalled);
        let mut next = Subscriber::join(&name.0, Start::Newest).unwrap();
        publish_all(&mut publisher, &message(sent));
        assert_eq!(next.next().frame().as_deref().and_then(counter_of), Some(sent));
        assert_eq!(publisher.evicted(), 1);
    }
}

/// A lent frame stays unchanged although the publisher evicts its reader and laps the ring meanwhile.
#[test]
fn what_an_evicted_subscriber_was_lent_stays_whole() {
    for framing in [Framing::Packed, Framing::Lines] {
        let name = OwnName::new("lent");
        let mut publisher = Publisher::open(&name.0, &limited(framing)).unwrap();
        let mut stalled = Subscriber::join(&name.0, Start::Newest).unwrap();
        for sent in 0..4 {
            publish_all(&mut publisher, &message(sent));
        }
        assert_eq!(stalled.ahead(counter_of).collect::<Vec<_>>(), [0, 1, 2, 3].map(Some));
        let Poll::Frame(lent) = stalled.next() else { panic!("the first is there") };
        let mut sent = 4;
        while publisher.evicted() == 0 {
            sent += u64::from(publisher.publish(&message(sent)).is_ok());
        }
        for _ in 0..1000 {
            publish_all(&mut publisher, &message(sent));
            sent += 1;
        }
        assert_eq!(lent.bytes(), message(0), "as it was lent");
        assert!(stalled.is_evicted() && !stalled.has_next());
        assert_eq!(stalled.ahead(<[u8]>::len).next(), None, "nothing more can be whole");
    }
}

/// An exempt subscriber may block the ring without a limit; a later holder of its slot may not.
#[test]
fn an_exempt_subscriber_is_waited_for() {
    let name = OwnName::new("exempt");
    let mut publisher = Publisher::open(&name.0, &limited(Framing::Packed)).unwrap();
    let mut exempt = Subscriber::join_as(&name.0, Start::Newest, "exempt").unwrap();
    let other = Subscriber::join_as(&name.0, Start::Newest, "other").unwrap();
    publisher.exempt(exempt.seat());
    let mut sent = 0;
    // The other subscriber is checked as often, and reaches the limit at the same moment.
    while publisher.evicted() == 0 {
        sent += u64::from(publisher.publish(&message(sent)).is_ok());
    }
    assert!(other.is_evicted());
    drop(other);
    let begun = Instant::now();
    while begun.elapsed() < 3 * LIMIT {
        assert!(publisher.publish(&message(sent)).is_err(), "the ring stays full");
    }
    assert!(!exempt.is_evicted());
    for counter in 0..sent {
        assert_eq!(exempt.next().frame().as_deref().and_then(counter_of), Some(counter), "nothing is lost");
    }
    assert_eq!(publisher.evicted(), 1);
    drop(exempt);
    let next = Subscriber::join(&name.0, Start::Newest).unwrap();
    while publisher.evicted() == 1 {
        sent += u64::from(publisher.publish(&message(sent)).is_ok());
    }
    assert!(next.is_evicted());
}

/// A subscriber with an excuse is waited for while the excuse holds, and then no longer than any other.
#[test]
fn a_subscriber_is_waited_for_while_it_has_an_excuse() {
    let name = OwnName::new("excused");
    let mut publisher = Publisher::open(&name.0, &limited(Framing::Packed)).unwrap();
    let subscriber = Subscriber::join_as(&name.0, Start::Newest, "excused").unwrap();
    let is_excused = Arc::new(AtomicBool::new(true));
    let (so, its) = (Arc::clone(&is_excused), subscriber.seat());
    publisher.excuse_while(Box::new(move |seat| seat == its && so.load(Ordering::Relaxed)));
    let mut sent = 0;
    while publisher.publish(&message(sent)).is_ok() {
        sent += 1;
    }
    let begun = Instant::now();
    while begun.elapsed() < 3 * LIMIT {
        assert!(publisher.publish(&message(sent)).is_err(), "the ring stays full");
    }
    assert!(!subscriber.is_evicted());
    is_excused.store(false, Ordering::Relaxed);
    while publisher.publish(&message(sent)).is_err() {}
    assert!(subscriber.is_evicted());
    assert_eq!(publisher.evicted(), 1);
}

/// A subscriber that takes longer than the stall limit for an eighth of the ring is slow, not stalled: it is asked,
/// and stores its position with every frame.
#[test]
fn a_slow_subscriber_is_not_evicted() {
    let name = OwnName::new("slow");
    let mut publisher = Publisher::open(&name.0, &limited(Framing::Packed)).unwrap();
    let mut subscriber = Subscriber::join(&name.0, Start::Newest).unwrap();
    let (mut sent, mut read) = (0, 0);
    let begun = Instant::now();
    let mut due = LIMIT / 10;
    // A frame every tenth of the limit: an eighth of the ring takes several times the limit.
    while begun.elapsed() < 8 * LIMIT {
        if publisher.publish(&message(sent)).is_ok() {
            sent += 1;
        }
        if begun.elapsed() >= due {
            due += LIMIT / 10;
            assert_eq!(subscriber.next().frame().as_deref().and_then(counter_of), Some(read));
            read += 1;
        }
    }
    assert_eq!(publisher.evicted(), 0);
    while let Poll::Frame(frame) = subscriber.next() {
        assert_eq!(counter_of(&frame), Some(read));
        read += 1;
    }
    assert_eq!(read, sent);
}

#[test]
fn an_eviction_outlives_its_publisher() {
    let name = OwnName::new("outlives");
    let options = Options { keep: true, ..limited(Framing::Packed) };
    let mut publisher = Publisher::open(&name.0, &options).unwrap();
    let mut stalled = Subscriber::join(&name.0, Start::Newest).unwrap();
    while publisher.evicted() == 0 {
        let _ = publisher.publish(&message(0));
    }
    drop(publisher);
    let mut publisher = Publisher::open(&name.0, &options).unwrap();
    assert_eq!(publisher.evicted(), 1);
    // A subscriber that was evicted earlier does not block the successor.
    for counter in 0..1000 {
        publisher.publish(&message(counter)).unwrap();
    }
    assert!(matches!(stalled.next(), Poll::Evicted { .. }));
}

#[test]
fn a_broadcast_publisher_never_waits_and_losses_are_counted() {
    for framing in [Framing::Packed, Framing::Lines] {
        let name = OwnName::new("broadcast");
        let mut publisher = broadcast::Publisher::open(&name.0, &Options { framing, ..small() }).unwrap();
        let mut slow = broadcast::Subscriber::join(&name.0, Start::Newest).unwrap();
        let (mut expected, mut lost, mut sent) = (0, 0, 0);
        for round in 0..200 {
            for _ in 0..round {
                publisher.publish(&message(sent)).unwrap();
                sent += 1;
            }
            loop {
                match slow.next() {
                    broadcast::BroadcastPoll::Frame(frame) => {
                        assert_eq!(counter_of(&frame), Some(expected));
                        expected += 1;
                    }
                    broadcast::BroadcastPoll::Lost { frames, bytes } => {
                        assert!(frames > 0 && bytes >= 16 * frames);
                        expected += frames;
                        lost += frames;
                    }
                    broadcast::BroadcastPoll::Empty => break,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(expected, sent, "what was not received was counted as lost");
        }
        assert!(lost > 0 && lost < sent);
        let mut oldest = broadcast::Subscriber::join(&name.0, Start::Oldest).unwrap();
        let first = oldest.next().frame().as_deref().and_then(counter_of).unwrap();
        let mut rest = 1;
        while oldest.next().frame().is_some() {
            rest += 1;
        }
        assert_eq!(first + rest, sent, "from the oldest on nothing is missing");
        publisher.close().unwrap();
        assert!(matches!(slow.next(), broadcast::BroadcastPoll::Ended));
    }
}

/// At full speed around a small ring: every delivered frame is whole, and the counts agree.
#[test]
fn broadcast_frames_are_whole_under_load() {
    for framing in [Framing::Packed, Framing::Lines] {
        let name = OwnName::new("whole");
        let mut publisher = broadcast::Publisher::open(&name.0, &Options { framing, ..small() }).unwrap();
        thread::scope(|scope| {
            let readers: Vec<_> = [Wait::Spin, Wait::Yield, Wait::Adaptive]
                .into_iter()
                .map(|wait| {
                    let mut subscriber = broadcast::Subscriber::join(&name.0, Start::Newest).unwrap();
                    scope.spawn(move || {
                        let (mut next, mut received, mut lost) = (0, 0u64, 0u64);
                        loop {
                            match subscriber.next() {
                                broadcast::BroadcastPoll::Frame(frame) => {
                                    assert_eq!(counter_of(&frame), Some(next), "whole, and in its place");
                                    next += 1;
                                    received += 1;
                                }
                                broadcast::BroadcastPoll::Lost { frames, .. } => {
                                    next += frames;
                                    lost += frames;
                                }
                                broadcast::BroadcastPoll::Ended => return (received, lost),
                                broadcast::BroadcastPoll::Empty => _ = subscriber.wait(wait, LONG),
                                other => panic!("{other:?}"),
                            }
                        }
                    })
                })
                .collect();
            let begun = Instant::now();
            let mut sent = 0;
            while begun.elapsed() < Duration::from_millis(500) {
                publisher.publish(&message(sent)).unwrap();
                sent += 1;
            }
            publisher.close().unwrap();
            for reader in readers {
                let (received, lost) = reader.join().unwrap();
                assert_eq!(received + lost, sent);
                assert!(received > 0);
            }
        });
    }
}

/// A slow reader that gets the slot of one that was asked is asked itself. (A second one blocks the ring meanwhile,
/// so that the order is not withdrawn.)
#[test]
fn a_slow_heir_of_a_place_is_not_evicted() {
    const LIMIT: Duration = Duration::from_millis(200);
    let name = OwnName::new("heir");
    let mut publisher = Publisher::open(&name.0, &Options { stall_limit: LIMIT, ..small() }).unwrap();
    let asked = Subscriber::join(&name.0, Start::Newest).unwrap();
    let mut sent = 0;
    let mut publish_for = |time: Duration| {
        let begun = Instant::now();
        while begun.elapsed() < time {
            if publisher.publish(&message(sent)).is_ok() {
                sent += 1;
            }
        }
    };
    publish_for(LIMIT * 45 / 100);
    let _second = Subscriber::join(&name.0, Start::Oldest).unwrap();
    publish_for(LIMIT * 20 / 100);
    drop(asked);
    let mut looked = Instant::now();
    let mut heir = Subscriber::join(&name.0, Start::Oldest).unwrap();
    for _ in 0..48 {
        publish_for(LIMIT / 4);
        let now = Instant::now();
        if matches!(heir.next(), Poll::Evicted { .. }) {
            // On a busy machine this thread may not run for the whole limit.
            assert!(looked.elapsed() >= LIMIT, "slow is not stalled");
            break;
        }
        looked = now;
    }
}

/// A claim that succeeds because another subscriber was evicted does not count as refused; and the smallest limit
/// works.
#[test]
fn refusals_are_counted_once_and_any_limit_ends() {
    let name = OwnName::new("tiny");
    let options = Options { stall_limit: Duration::from_nanos(3), ..small() };
    let mut publisher = Publisher::open(&name.0, &options).unwrap();
    let _stalled = Subscriber::join(&name.0, Start::Newest).unwrap();
    let mut refused = 0;
    while publisher.evicted() == 0 {
        refused += u64::from(publisher.publish(b"x").is_err());
    }
    assert_eq!(publisher.full(), refused);
}

/// Frames claimed in a batch and not committed never existed: not for a reader that has caught up, nor for a
/// joiner, nor for an observer.
#[test]
fn an_aborted_batch_leaves_no_trace() {
    let name = OwnName::new("aborted");
    let options = Options { capacity: 1 << 16, ..Options::default() };
    let mut publisher = broadcast::Publisher::open(&name.0, &options).unwrap();
    let mut close = broadcast::Subscriber::join(&name.0, Start::Newest).unwrap();
    for _ in 0..5 {
        let mut batch = publisher.claim_batch();
        while batch.claim(100).is_ok() {}
        drop(batch);
        for count in 0..2000 {
            publisher.publish(&[7; 100]).unwrap();
            assert!(matches!(close.next(), broadcast::BroadcastPoll::Frame(_)));
            if count > 600 {
                let kept = publisher.position().0 - inspect(&name.0).unwrap().oldest.0;
                assert!(kept > 6 * 65_536 / 8, "{kept} of 65536 bytes can be joined");
            }
        }
    }
    let mut batch = publisher.claim_batch();
    while batch.claim(100).is_ok() {}
    batch.commit();
    let seen = inspect(&name.0).unwrap().publisher;
    assert_eq!((seen.frames, seen.position), (publisher.frames(), publisher.position()));
}

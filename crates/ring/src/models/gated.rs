//! Gated rings: nothing is lost, and nothing is overwritten while it is read.

use super::explore::{Model, spawn};
use super::scene::{Reader, kill, len_of, lines, name, nearly_full, send, take, tiny};
use crate::{Options, Poll, Publisher, Start, Subscriber};

/// Frames arrive in order over the end of a full ring.
fn over_the_end(options: &Options) {
    let (mut publisher, mut reader) = nearly_full(options);
    let reading = spawn(move || {
        for _ in 0..4 {
            reader.look();
        }
        reader
    });
    for _ in 0..4 {
        send(&mut publisher);
    }
    reading.join().unwrap().drain(publisher.frames());
}

pub(super) const WRAP: Model =
    Model { name: "wrap", preemptions: 2, least: 1500, run: || over_the_end(&tiny()) };
pub(super) const WRAP_ON_LINES: Model =
    Model { name: "wrap on lines", preemptions: 2, least: 1500, run: || over_the_end(&lines()) };

/// Each of two readers gates a full ring.
fn two_readers() {
    let (mut publisher, mut reader) = nearly_full(&tiny());
    let mut late = Reader::join(5);
    let reading = spawn(move || {
        reader.look();
        reader.look();
        reader.look();
        reader
    });
    let reading_late = spawn(move || {
        late.look();
        late.look();
        late
    });
    for _ in 0..2 {
        send(&mut publisher);
    }
    let (mut reader, mut late) = (reading.join().unwrap(), reading_late.join().unwrap());
    reader.drain(publisher.frames());
    late.drain(publisher.frames());
}

pub(super) const TWO_READERS: Model =
    Model { name: "two readers", preemptions: 2, least: 1500, run: two_readers };

/// One frame of the batch makes the other visible too. A batch that does not fit is aborted.
fn batch() {
    let (mut publisher, mut reader) = nearly_full(&tiny());
    let reading = spawn(move || {
        for _ in 0..4 {
            if reader.look() && reader.next == 6 {
                assert!(reader.look(), "both at once");
            }
        }
        reader
    });
    for _ in 0..2 {
        let first = publisher.frames();
        let mut batch = publisher.claim_batch();
        for number in first..first + 2 {
            let bytes = &number.to_le_bytes()[..len_of(number)];
            if let Ok(claim) = batch.claim(bytes.len()) {
                claim.copy_from_slice(bytes);
            }
        }
        if batch.frames() == 2 {
            batch.commit();
        }
    }
    reading.join().unwrap().drain(publisher.frames());
}

pub(super) const BATCH: Model = Model { name: "batch", preemptions: 2, least: 400, run: batch };

/// Hidden frames appear at once when they are shown.
fn hidden() {
    // Both fit in an eighth of the ring: a claim that opens another would show the first.
    let mut publisher = Publisher::open(&name(), &Options { capacity: 512, ..tiny() }).unwrap();
    let mut reader = Reader::join(0);
    let reading = spawn(move || {
        for _ in 0..3 {
            if reader.look() && reader.next == 1 {
                assert!(reader.look(), "both at once");
            }
        }
        reader
    });
    for number in 0..2 {
        let bytes = &u64::to_le_bytes(number)[..len_of(number)];
        let mut claim = publisher.claim(bytes.len()).unwrap();
        claim.copy_from_slice(bytes);
        claim.hide_prefix(bytes.len()).unwrap();
    }
    publisher.show();
    reading.join().unwrap().drain(publisher.frames());
}

pub(super) const HIDDEN: Model = Model { name: "hidden", preemptions: 2, least: 10, run: hidden };

/// The bytes of an aborted claim are where later lines start.
fn aborted() {
    let mut publisher = Publisher::open(&name(), &lines()).unwrap();
    let mut reader = Reader::join(0);
    for _ in 0..3 {
        assert!(send(&mut publisher) && reader.look());
    }
    assert!(!reader.look(), "all is released");
    let reading = spawn(move || {
        for _ in 0..3 {
            reader.look();
        }
        reader
    });
    publisher.claim(64).unwrap().fill(0xff);
    for _ in 0..2 {
        send(&mut publisher);
    }
    reading.join().unwrap().drain(publisher.frames());
}

pub(super) const ABORTED: Model = Model { name: "aborted claim", preemptions: 3, least: 30, run: aborted };

/// Who leaves no longer gates.
fn leave() {
    let (mut publisher, mut reader) = nearly_full(&tiny());
    let reading = spawn(move || {
        reader.look();
        drop(reader);
    });
    for _ in 0..3 {
        send(&mut publisher);
    }
    reading.join().unwrap();
    assert!(send(&mut publisher), "nobody is in the way");
}

pub(super) const LEAVE: Model = Model { name: "leave", preemptions: 2, least: 100, run: leave };

/// A reader dies while it borrows a frame, and another joins; the publisher reclaims the slot, or the joiner takes
/// it.
fn death() {
    let (mut publisher, mut reader) = nearly_full(&tiny());
    let dying = spawn(move || {
        reader.look();
        kill(reader.subscriber);
    });
    let joining = spawn(|| {
        let mut subscriber = Subscriber::join_as(&name(), Start::Newest, "").unwrap();
        let first = take(&mut subscriber);
        (subscriber, first)
    });
    for _ in 0..3 {
        send(&mut publisher);
    }
    dying.join().unwrap();
    let (subscriber, first) = joining.join().unwrap();
    let mut reader = Reader { subscriber, next: first.map_or(publisher.frames(), |first| first + 1) };
    if first.is_none()
        && let Some(first) = take(&mut reader.subscriber)
    {
        reader.next = first + 1;
    }
    reader.drain(publisher.frames());
    for _ in 0..3 {
        assert!(send(&mut publisher), "only who lives is in the way");
    }
    reader.drain(publisher.frames());
}

pub(super) const DEATH: Model = Model { name: "death", preemptions: 1, least: 500, run: death };

/// The end is seen after the last frame.
fn end() {
    let (mut publisher, mut reader) = nearly_full(&tiny());
    let reading = spawn(move || {
        for _ in 0..5 {
            let next = reader.next;
            match reader.subscriber.next() {
                Poll::Frame(_) => reader.next += 1,
                Poll::Ended => {
                    assert_eq!(next, 6, "nothing is left behind");
                    break;
                }
                _ => {}
            }
        }
    });
    assert!(send(&mut publisher));
    publisher.close().unwrap();
    reading.join().unwrap();
}

pub(super) const END: Model = Model { name: "end", preemptions: 3, least: 1500, run: end };

/// A note is whole.
fn note() {
    let mut publisher = Publisher::open(&name(), &tiny()).unwrap();
    let reader = Reader::join(0);
    publisher.set_note([1; 8]);
    let reading = spawn(move || {
        let note = reader.subscriber.note().unwrap();
        assert!((1..=3).contains(&note[0]) && note == [note[0]; 8], "torn: {note:?}");
    });
    publisher.set_note([2; 8]);
    publisher.set_note([3; 8]);
    reading.join().unwrap();
}

pub(super) const NOTE: Model = Model { name: "note", preemptions: 1, least: 1000, run: note };

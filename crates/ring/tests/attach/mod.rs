//! Any bytes in a segment, before and while it is mapped, give an error or a working ring.
//!
//! Random programs, in `cargo test`. `make fuzz` runs the same programs, guided by the code that they reach.

mod program;

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tapeline_ring::{Gated, Name, Options, Poll, PublisherOf, Start, Subscriber};

/// Generates each step together with its bytes, so that programs get far.
fn program() -> impl Strategy<Value = Vec<u8>> {
    let step = (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..5));
    let steps = proptest::collection::vec(step, 0..40);
    (any::<[u8; 2]>(), steps).prop_map(|(start, steps)| {
        let steps = steps.into_iter().flat_map(|(step, bytes)| std::iter::once(step).chain(bytes));
        start.into_iter().chain(steps).collect()
    })
}

static REFUSED: AtomicU64 = AtomicU64::new(0);
static WORKED: AtomicU64 = AtomicU64::new(0);
static FRAMES: AtomicU64 = AtomicU64::new(0);

proptest! {
    #![proptest_config(ProptestConfig { cases: 6_000, ..ProptestConfig::default() })]

    #[test]
    fn a_segment_is_refused_or_works(program in program()) {
        let outcome = program::run(&program);
        REFUSED.fetch_add(outcome.refused, Ordering::Relaxed);
        WORKED.fetch_add(outcome.worked, Ordering::Relaxed);
        let frames = FRAMES.fetch_add(outcome.frames, Ordering::Relaxed) + outcome.frames;
        // Random programs reach both outcomes, and frames too.
        let (refused, worked) = (REFUSED.load(Ordering::Relaxed), WORKED.load(Ordering::Relaxed));
        prop_assert!(refused + worked < 1_000 || (refused > 50 && worked > 50 && frames > 1_000));
    }
}

/// The seeds from which fuzzing starts, and a program for each kind of ring that does nothing: those rings work.
#[test]
fn a_ring_that_nobody_writes_to_works() {
    for kind in 0..8 {
        for frames in [0, 1, 40, 255] {
            let outcome = program::run(&[kind, frames]);
            assert_eq!((outcome.refused, outcome.worked), (0, 1));
            // Joins at the oldest, reads, continues, publishes, reads again.
            let outcome =
                program::run(&[kind, frames, 0x16, 0x08, 9, 0x0a, 0x0b, 9, 0, 0x08, 200, 0x0c, 0x0e]);
            assert_eq!((outcome.refused, outcome.worked), (0, 1));
            assert!(outcome.frames > 0);
        }
    }
}

/// The program knows the position of the header's checksum: a harmless change is accepted with a new checksum, and
/// refused without one.
#[test]
fn the_checksum_is_where_the_program_thinks() {
    // One byte of the maker's pid, which no code relies on: with a new checksum the ring works, without one it is
    // refused.
    let with = program::run(&[0, 1, 0x10, 104 - 8, 0, 1]);
    let without = program::run(&[0, 1, 0x00, 104 - 8, 0, 1]);
    assert_eq!((with.worked, with.refused, without.worked, without.refused), (1, 0, 0, 1));
}

/// Found by fuzzing: the counter of tickets is set back, and the next subscriber of a slot takes the order that
/// evicted an earlier one for its own.
#[test]
fn who_joins_where_another_was_evicted_is_not_evicted() {
    let name = Name::new(&format!("test-attach-ticket-{}", std::process::id())).unwrap();
    let stall_limit = Duration::from_nanos(1);
    let options = Options { capacity: 4096, stall_limit, keep: false, ..Options::default() };
    let mut publisher = PublisherOf::<Gated>::open(&name, &options).unwrap();
    let stalled = Subscriber::join(&name, Start::Newest).unwrap();
    while publisher.evicted() == 0 {
        let _ = publisher.publish(&[0; 500]);
    }
    drop(stalled);
    let file = std::fs::File::options().write(true).open(name.path()).unwrap();
    let tickets = rustix::param::page_size() + program::PUBLISHER_LINES + 8;
    file.write_all_at(&0_u64.to_le_bytes(), tickets as u64).unwrap();
    let mut subscriber = Subscriber::join(&name, Start::Newest).unwrap();
    publisher.publish(b"after").unwrap();
    let Poll::Frame(frame) = subscriber.next() else { panic!("no frame, though one was published") };
    assert_eq!(frame.bytes(), b"after");
}

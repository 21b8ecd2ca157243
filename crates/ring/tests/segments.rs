//! Segments: which are refused, kept and removed, and the effect of hostile bytes.

use crate::scene;

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::time::Duration;

use proptest::prelude::*;
use scene::{OwnName, counter_of, message, page, small};
use tapeline_ring::{
    Error, Framing, Options, Policy, Poll, Publisher, Refused, Start, Subscriber, Wait, broadcast, inspect,
    list, remove,
};

#[test]
fn a_ring_is_its_users_alone_and_wholly_allocated() {
    let name = OwnName::new("mode");
    let publisher = Publisher::open(&name.0, &Options::default()).unwrap();
    let file = fs::metadata(name.0.path()).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    assert!(file.blocks() * 512 >= file.len(), "no page is missing that a later touch would have to find");
    drop(publisher);
    let name = OwnName::new("mode");
    let _publisher = Publisher::open(&name.0, &Options { mode: 0o660, ..small() }).unwrap();
    assert_eq!(fs::metadata(name.0.path()).unwrap().permissions().mode() & 0o777, 0o660);
}

#[test]
fn the_name_goes_with_the_publisher_unless_kept() {
    let name = OwnName::new("keep");
    drop(Publisher::open(&name.0, &small()).unwrap());
    assert!(matches!(Subscriber::join(&name.0, Start::Oldest), Err(Error::NotFound { .. })));

    let mut publisher = Publisher::open(&name.0, &Options { keep: true, ..small() }).unwrap();
    publisher.publish(b"kept").unwrap();
    publisher.close().unwrap();
    let mut late = Subscriber::join(&name.0, Start::Oldest).unwrap();
    assert_eq!(late.next().frame().as_deref(), Some(&b"kept"[..]));
    assert!(matches!(late.next(), Poll::Ended));
    assert!(late.wait(Wait::Park, Duration::from_secs(600)), "an end is something to see");

    // Opened again, it continues where it was.
    let mut publisher = Publisher::open(&name.0, &small()).unwrap();
    assert_eq!((publisher.epoch(), publisher.frames()), (2, 1));
    assert!(matches!(late.next(), Poll::Empty));
    publisher.publish(b"more").unwrap();
    let frame = late.next().frame().unwrap();
    assert_eq!((&*frame, frame.epoch()), (&b"more"[..], 2));
}

#[test]
fn closing_leaves_another_ring_of_that_name_alone() {
    let name = OwnName::new("replaced");
    let first = Publisher::open(&name.0, &small()).unwrap();
    remove(&name.0, true).unwrap();
    let _second = Publisher::open(&name.0, &small()).unwrap();
    first.close().unwrap();
    assert!(inspect(&name.0).unwrap().publisher.alive);
}

#[test]
fn late_joiners_start_where_they_ask() {
    let name = OwnName::new("late");
    let mut publisher = Publisher::open(&name.0, &small()).unwrap();
    let mut sent = 0u64;
    let mut send = |publisher: &mut Publisher, frames: u64| {
        for _ in 0..frames {
            publisher.publish(&sent.to_le_bytes()).unwrap();
            sent += 1;
        }
    };
    let first = |subscriber: &mut Subscriber| {
        subscriber.next().frame().map(|frame| u64::from_le_bytes(*frame.first_chunk().unwrap()))
    };
    send(&mut publisher, 3);
    assert_eq!(first(&mut Subscriber::join(&name.0, Start::Oldest).unwrap()), Some(0));
    assert_eq!(first(&mut Subscriber::join(&name.0, Start::Newest).unwrap()), None);
    // Many laps.
    send(&mut publisher, 10_000);
    let mut oldest = Subscriber::join(&name.0, Start::Oldest).unwrap();
    let from = first(&mut oldest).unwrap();
    let held = (10_003 - from) * 16;
    let capacity = publisher.capacity() as u64;
    assert!(held >= capacity * 3 / 4 && held <= capacity, "{held} of {capacity} bytes were still there");
    let mut expected = from + 1;
    while let Some(counter) = first(&mut oldest) {
        assert_eq!(counter, expected);
        expected += 1;
    }
    assert_eq!(expected, 10_003);
    let mut newest = Subscriber::join(&name.0, Start::Newest).unwrap();
    assert_eq!(first(&mut newest), None);
    send(&mut publisher, 1);
    assert_eq!(first(&mut newest), Some(10_003));
}

#[test]
fn a_ring_takes_64_subscribers() {
    let name = OwnName::new("many");
    let mut publisher = Publisher::open(&name.0, &small()).unwrap();
    let mut subscribers: Vec<_> = (0..64)
        .map(|n| Subscriber::join_as(&name.0, Start::Newest, &format!("number {n}")).unwrap())
        .collect();
    assert!(matches!(Subscriber::join(&name.0, Start::Newest), Err(Error::NoSlot { slots: 64, .. })));
    publisher.publish(b"all").unwrap();
    for subscriber in &mut subscribers {
        assert_eq!(subscriber.next().frame().as_deref(), Some(&b"all"[..]));
    }
    let snapshot = inspect(&name.0).unwrap();
    let labels: Vec<_> = snapshot.subscribers.iter().map(|s| s.label.clone()).collect();
    assert_eq!(labels, (0..64).map(|n| format!("number {n}")).collect::<Vec<_>>());
    drop(subscribers.pop());
    Subscriber::join(&name.0, Start::Newest).unwrap();
}

#[test]
fn a_snapshot_tells_what_is() {
    let name = OwnName::new("snapshot");
    let mut publisher = Publisher::open(&name.0, &Options { max_frame: 100, ..small() }).unwrap();
    let label = "é".repeat(40);
    let mut subscriber = Subscriber::join_as(&name.0, Start::Newest, &label).unwrap();
    for _ in 0..3 {
        publisher.publish(&[7; 20]).unwrap();
    }
    assert_eq!(publisher.publish(&[7; 101]), Err(Refused::TooLong));
    let snapshot = inspect(&name.0).unwrap();
    assert_eq!((snapshot.capacity, snapshot.max_frame, snapshot.mode), (small().capacity, 100, 0o600));
    assert_eq!(snapshot.file_bytes, fs::metadata(name.0.path()).unwrap().len());
    assert!(snapshot.created_ns > 1_700_000_000_000_000_000);
    assert!(snapshot.publisher.alive && !snapshot.publisher.ended);
    assert_eq!(snapshot.publisher.pid, std::process::id());
    assert_eq!((snapshot.publisher.position.0, snapshot.publisher.frames), (3 * 32, 3));
    let view = &snapshot.subscribers[0];
    assert_eq!((view.pid, view.alive, view.lag_bytes), (std::process::id(), true, 96));
    assert_eq!(view.label, "é".repeat(24), "cut at a character");
    while subscriber.next().frame().is_some() {}
    assert_eq!(inspect(&name.0).unwrap().subscribers[0].lag_bytes, 0);
    assert!(list().unwrap().iter().any(|entry| entry.name == name.0 && entry.ring.is_ok()));
    drop(subscriber);
    publisher.close().unwrap();
    assert!(!list().unwrap().iter().any(|entry| entry.name == name.0));
}

#[test]
fn a_live_ring_is_removed_only_by_force() {
    let name = OwnName::new("remove");
    let publisher = Publisher::open(&name.0, &small()).unwrap();
    assert!(matches!(remove(&name.0, false), Err(Error::PublisherAlive { .. })));
    remove(&name.0, true).unwrap();
    assert!(matches!(remove(&name.0, true), Err(Error::NotFound { .. })));
    drop(publisher);
}

#[test]
fn impossible_options_are_refused_with_what_is_possible() {
    let name = OwnName::new("options");
    for options in [
        Options { capacity: 0, ..Options::default() },
        Options { capacity: 5000, ..Options::default() },
        Options { capacity: 2048, ..Options::default() },
        Options { capacity: 1 << 63, ..Options::default() },
        Options { capacity: 1 << 20, max_frame: (1 << 18) + 1, ..Options::default() },
        Options { capacity: 1 << 20, huge_pages: true, ..Options::default() },
    ] {
        assert!(matches!(Publisher::open(&name.0, &options), Err(Error::BadOptions { .. })), "{options:?}");
    }
    // More than any machine's shared memory: refused at creation, not at the first touch of a page.
    let error = Publisher::open(&name.0, &Options { capacity: 1 << 40, ..Options::default() }).unwrap_err();
    assert!(matches!(error, Error::NoRoom { wanted, total, .. } if wanted > 1 << 40 && total > 0), "{error}");
    assert!(!name.0.path().exists());
}

#[test]
fn a_ring_of_another_shape_is_refused() {
    let name = OwnName::new("shape");
    drop(Publisher::open(&name.0, &Options { keep: true, ..small() }).unwrap());
    for other in [
        Options { capacity: small().capacity * 2, ..small() },
        Options { max_frame: 100, ..small() },
        Options { framing: Framing::Lines, ..small() },
        Options { stall_limit: Duration::from_secs(1), ..small() },
    ] {
        assert!(matches!(Publisher::open(&name.0, &other), Err(Error::OtherShape { .. })), "{other:?}");
    }
    Publisher::open(&name.0, &small()).unwrap();
}

/// The policy is in the type; the segment must agree.
#[test]
fn a_ring_of_the_other_policy_is_refused() {
    let name = OwnName::new("policy");
    drop(Publisher::open(&name.0, &Options { keep: true, ..small() }).unwrap());
    let errors = [
        broadcast::Publisher::open(&name.0, &small()).unwrap_err(),
        broadcast::Subscriber::join(&name.0, Start::Newest).unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(text.contains("is a gated ring, and a broadcast one was asked for"), "{text}");
        assert!(error.hint().is_some());
    }
    remove(&name.0, false).unwrap();
    drop(broadcast::Publisher::open(&name.0, &Options { keep: true, ..small() }).unwrap());
    assert!(matches!(Publisher::open(&name.0, &small()), Err(Error::OtherPolicy { .. })));
    assert!(matches!(Subscriber::join(&name.0, Start::Oldest), Err(Error::OtherPolicy { .. })));
    assert_eq!(inspect(&name.0).unwrap().policy, Policy::Broadcast);
}

#[test]
fn the_group_is_set_on_request() {
    let name = OwnName::new("group");
    let own = rustix::process::getgid().as_raw();
    // Root can set any group; others only one of their own.
    let group = if rustix::process::geteuid().is_root() { own + 1 } else { own };
    let _publisher =
        Publisher::open(&name.0, &Options { group: Some(group), mode: 0o660, ..small() }).unwrap();
    let file = fs::metadata(name.0.path()).unwrap();
    assert_eq!((file.gid(), file.mode() & 0o777), (group, 0o660));
}

/// Anybody may create a file in the directory of rings: a publisher does not write its data into another user's
/// file.
#[test]
fn a_strangers_ring_is_not_continued() {
    let name = OwnName::new("stranger");
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can give a file away");
    }
    Publisher::open(&name.0, &Options { keep: true, ..small() }).unwrap().close().unwrap();
    std::os::unix::fs::chown(name.0.path(), Some(65_534), None).unwrap();
    let refused = Publisher::open(&name.0, &small()).unwrap_err();
    assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
    assert!(refused.to_string().contains("it belongs to user 65534"), "{refused}");
}

#[test]
fn memory_is_locked_on_request() {
    let name = OwnName::new("mlock");
    let publisher = Publisher::open(&name.0, &small()).unwrap();
    let subscriber = Subscriber::join(&name.0, Start::Newest).unwrap();
    let locked_kb = || {
        let status = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut of_ring = false;
        let mut sum = 0u64;
        for line in status.lines() {
            if line.contains("/dev/shm/") || line.contains("[anon") {
                of_ring = line.contains(name.0.as_str()) || line.contains("(deleted)");
            }
            if let Some(kb) = line.strip_prefix("Locked:").filter(|_| of_ring) {
                sum += kb.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
            }
        }
        sum
    };
    assert_eq!(locked_kb(), 0);
    publisher.lock_memory().unwrap();
    let once = locked_kb();
    assert!(once > 0);
    subscriber.lock_memory().unwrap();
    assert!(locked_kb() > once);
}

/// The kernel may not provide huge pages; then there is an error. Where it does, frames arrive as usual, also
/// around the end.
#[test]
fn huge_pages_carry_frames_or_are_refused_with_a_hint() {
    let name = OwnName::new("huge");
    let options = Options { capacity: 2 << 20, huge_pages: true, ..Options::default() };
    let mut publisher = match Publisher::open(&name.0, &options) {
        Ok(publisher) => publisher,
        Err(error @ Error::NoHugePages { .. }) => {
            assert!(error.hint().is_some());
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut subscriber = Subscriber::join(&name.0, Start::Newest).unwrap();
    for counter in 0..100_000 {
        publisher.publish(&message(counter)).unwrap();
        assert_eq!(subscriber.next().frame().as_deref().and_then(counter_of), Some(counter));
    }
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let huge = smaps.lines().filter_map(|line| line.strip_prefix("ShmemPmdMapped:"));
    assert!(huge.map(|kb| kb.trim().trim_end_matches(" kB").parse::<u64>().unwrap()).sum::<u64>() > 0);
}

#[test]
fn what_is_no_ring_is_refused() {
    let name = OwnName::new("foreign");
    let refused = |what: &str| {
        for error in [
            Publisher::open(&name.0, &small()).unwrap_err(),
            Subscriber::join(&name.0, Start::Oldest).unwrap_err(),
            inspect(&name.0).unwrap_err(),
            remove(&name.0, false).unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(text.contains(what) && text.contains("/dev/shm/tapeline-test-foreign"), "{text}");
            assert!(error.hint().is_some(), "{text}");
        }
    };
    fs::write(name.0.path(), b"").unwrap();
    refused("less than a ring's header");
    fs::write(name.0.path(), vec![7; 1 << 16]).unwrap();
    refused("magic");
    fs::remove_file(name.0.path()).unwrap();
    fs::create_dir(name.0.path()).unwrap();
    refused("not a plain file");
    fs::remove_dir(name.0.path()).unwrap();
    std::os::unix::fs::symlink("/dev/zero", name.0.path()).unwrap();
    refused("not a plain file");
    fs::remove_file(name.0.path()).unwrap();

    // A ring: truncated; of another version; with one bit of its header changed.
    drop(Publisher::open(&name.0, &Options { keep: true, ..small() }).unwrap());
    let file = fs::File::options().write(true).read(true).open(name.0.path()).unwrap();
    let whole = file.metadata().unwrap().len();
    file.set_len(whole - page() as u64).unwrap();
    refused("its header says");
    file.write_all_at(&vec![0; page()], whole - page() as u64).unwrap();
    file.write_all_at(&[9], 8).unwrap();
    refused("layout 9");
    file.write_all_at(&[2], 8).unwrap();
    file.write_all_at(&[1], 110).unwrap();
    refused("checksum");
    file.write_all_at(&[0], 110).unwrap();
    Publisher::open(&name.0, &small()).unwrap();
}

/// Touching a page without memory behind it is fatal, so an opener checks first.
#[test]
fn a_segment_with_holes_is_refused() {
    let name = OwnName::new("holes");
    drop(Publisher::open(&name.0, &Options { keep: true, ..small() }).unwrap());
    let header = fs::read(name.0.path()).unwrap();
    fs::remove_file(name.0.path()).unwrap();
    let file = fs::File::create(name.0.path()).unwrap();
    file.set_len(header.len() as u64).unwrap();
    file.write_all_at(&header[..page()], 0).unwrap();
    let error = Subscriber::join(&name.0, Start::Newest).unwrap_err();
    assert!(error.to_string().contains("are allocated"), "{error}");
}

/// A subscriber that stores a position where no frame can be blocks the ring like any that stalls, and does no
/// other harm.
#[test]
fn an_impossible_position_does_not_spoil_the_ring() {
    let name = OwnName::new("lie");
    let options = Options { keep: true, ..small() };
    let mut publisher = Publisher::open(&name.0, &options).unwrap();
    let liar = Subscriber::join(&name.0, Start::Newest).unwrap();
    for counter in 0..40 {
        publisher.publish(&message(counter)).unwrap();
    }
    let file = fs::File::options().write(true).open(name.0.path()).unwrap();
    // The position in its slot: behind the header, the publisher's page and the table's first lines.
    file.write_all_at(&1003u64.to_ne_bytes(), 2 * page() as u64 + 256).unwrap();
    for counter in 40..400 {
        let _ = publisher.publish(&message(counter));
    }
    Subscriber::join(&name.0, Start::Oldest).unwrap();
    drop(publisher);
    Publisher::open(&name.0, &options).unwrap();
    drop(liar);
}

/// Publishes and reads for a while; must return in any case.
fn use_ring(name: &OwnName) {
    let _ = inspect(&name.0).map(|snapshot| format!("{snapshot:?}"));
    for start in [Start::Newest, Start::Oldest] {
        if let Ok(mut subscriber) = Subscriber::join(&name.0, start) {
            for _ in 0..100 {
                match subscriber.next() {
                    Poll::Frame(frame) => assert!(frame.len() <= small().capacity / 4),
                    _ => break,
                }
            }
            let _ = (subscriber.note(), subscriber.lag_bytes(), subscriber.epoch());
            subscriber.wait(Wait::Park, Duration::from_micros(10));
        }
    }
    if let Ok(mut publisher) = Publisher::open(&name.0, &small()) {
        let mut subscriber = Subscriber::join(&name.0, Start::Newest);
        for _ in 0..100 {
            let _ = publisher.publish(&[1; 100]);
            if let Ok(subscriber) = &mut subscriber {
                let _ = subscriber.next();
            }
        }
        let _ = publisher.backlog_bytes();
    }
    let _ = inspect(&name.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Any bytes anywhere in the segment: an error or a ring, never a crash, never a frame longer than the longest.
    #[test]
    fn hostile_bytes_are_refused_or_harmless(
        frames in 0usize..200,
        places in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            any::<u64>(), Just(0), Just(u64::MAX), 0u64..20_000, (0u64..2000).prop_map(|len| 1 << 32 | len)
        ]), 1..12),
        region in 0usize..4,
    ) {
        let name = OwnName::new("hostile");
        let mut publisher = Publisher::open(&name.0, &Options { keep: true, ..small() }).unwrap();
        for _ in 0..frames {
            publisher.publish(&[9; 50]).unwrap();
        }
        drop(publisher);
        let file = fs::File::options().write(true).open(name.0.path()).unwrap();
        let whole = file.metadata().unwrap().len() as usize;
        // The header, the publisher's lines, the subscribers' lines, anywhere.
        let (from, to) = [(0, 160), (page(), page() + 1800), (2 * page(), 2 * page() + 1024), (0, whole - 8)][region];
        for (place, word) in places {
            let at = from + place.index((to - from) / 8) * 8;
            file.write_all_at(&word.to_le_bytes(), at as u64).unwrap();
        }
        use_ring(&name);
    }

    /// Files of random bytes only.
    #[test]
    fn noise_is_refused(noise in proptest::collection::vec(any::<u8>(), 0..20_000)) {
        let name = OwnName::new("noise");
        fs::write(name.0.path(), noise).unwrap();
        prop_assert!(Publisher::open(&name.0, &small()).is_err());
        prop_assert!(Subscriber::join(&name.0, Start::Oldest).is_err());
    }
}

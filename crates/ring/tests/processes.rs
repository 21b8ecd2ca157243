//! The effects of the death of a process: this test binary plays all roles, each in a process of its own.

use crate::scene;

use std::time::Duration;

use scene::{OwnName, Player, counter_of, message, publish_all, small};
use tapeline_ring::{Error, Name, Options, Poll, Publisher, Refused, Start, Subscriber, Wait, inspect};

const LONG: Duration = Duration::from_secs(600);

/// Until the test kills this process.
fn wait_to_be_ended() -> ! {
    loop {
        std::thread::park();
    }
}

/// Not a test: the roles of the other processes.
#[test]
#[ignore = "a role that the other tests start"]
fn player() {
    let (Ok(role), Ok(ring)) = (std::env::var("ROLE"), std::env::var("RING")) else { return };
    let name = Name::new(&ring).unwrap();
    let say = |what: String| println!("{what}");
    match role.as_str() {
        // Reads one frame, keeps it borrowed, and waits for its end.
        "hold" => {
            let mut subscriber = Subscriber::join_as(&name, Start::Newest, "holder").unwrap();
            say("joined".to_owned());
            assert!(subscriber.wait(Wait::Park, LONG));
            let frame = subscriber.next().frame().expect("a frame is there");
            say(format!("holds {}", counter_of(&frame).unwrap()));
            wait_to_be_ended();
        }
        // Joins and does not read.
        "sit" => {
            let _subscriber = Subscriber::join(&name, Start::Newest).unwrap();
            say("joined".to_owned());
            wait_to_be_ended();
        }
        // Counts upwards from the ring's frame count, as fast as the ring has space.
        "publish" => {
            let mut publisher = Publisher::open(&name, &small()).unwrap();
            say(format!("publishes {}", publisher.epoch()));
            // An open claim must not be seen when the process dies; a batch is open for as long as possible.
            let mut counter = publisher.frames();
            loop {
                let mut batch = publisher.claim_batch();
                let mut frames = 0;
                for next in counter..counter + 3 {
                    let bytes = message(next);
                    let Ok(room) = batch.claim(bytes.len()) else { break };
                    room.copy_from_slice(&bytes);
                    frames += 1;
                }
                batch.commit();
                counter += frames;
            }
        }
        // Publishes a few frames, then leaves a claim open after an aborted batch, and waits for its end.
        "stop half-way" => {
            // Large, so that the cursor is not stored meanwhile.
            let mut publisher = Publisher::open(&name, &Options::default()).unwrap();
            for counter in 0..5 {
                publish_all(&mut publisher, &message(counter));
            }
            // Hidden frames die with their publisher.
            for counter in 5..8 {
                let bytes = message(counter);
                let mut claim = publisher.claim(bytes.len()).unwrap();
                claim.copy_from_slice(&bytes);
                claim.hide_prefix(bytes.len()).unwrap();
            }
            let mut batch = publisher.claim_batch();
            for _ in 0..3 {
                batch.claim(64).unwrap().fill(0xee);
            }
            drop(batch);
            let mut claim = publisher.claim(100).unwrap();
            claim.fill(0xff);
            say("stands".to_owned());
            wait_to_be_ended();
        }
        // Reads to the end and reports what it saw.
        "read" => {
            let mut subscriber = Subscriber::join(&name, Start::Newest).unwrap();
            say("joined".to_owned());
            let mut seen = 0;
            loop {
                match subscriber.next() {
                    Poll::Frame(frame) => {
                        assert_eq!(counter_of(&frame), Some(seen));
                        seen += 1;
                    }
                    Poll::Empty => assert!(subscriber.wait(Wait::Adaptive, LONG)),
                    Poll::Ended => break,
                    other => panic!("{other:?}"),
                }
            }
            say(format!("saw {seen}"));
        }
        other => panic!("no role {other}"),
    }
}

fn start(role: &str, name: &OwnName) -> Player {
    Player::start("processes::player", role, &name.0)
}

#[test]
fn frames_cross_from_process_to_process() {
    const MESSAGES: u64 = 50_000;
    let name = OwnName::new("cross");
    let mut publisher = Publisher::open(&name.0, &small()).unwrap();
    let mut players = [start("read", &name), start("read", &name)];
    for player in &mut players {
        player.says("joined");
    }
    for counter in 0..MESSAGES {
        publish_all(&mut publisher, &message(counter));
    }
    // The name is removed at once; subscribers that have joined drain the ring.
    publisher.close().unwrap();
    assert!(!name.0.path().exists());
    for player in &mut players {
        assert_eq!(player.says("saw"), MESSAGES.to_string());
    }
}

/// A subscriber that blocks the full ring is killed, repeatedly; the publisher continues, and the subscriber that
/// reads loses nothing.
#[test]
fn a_killed_subscriber_stops_gating() {
    const KILLS: u64 = 20;
    let name = OwnName::new("killed");
    let mut publisher = Publisher::open(&name.0, &small()).unwrap();
    let mut reader = Subscriber::join(&name.0, Start::Newest).unwrap();
    let (mut sent, mut seen) = (0, 0);
    let mut drain = |reader: &mut Subscriber| {
        while let Some(frame) = reader.next().frame() {
            assert_eq!(counter_of(&frame), Some(seen));
            seen += 1;
        }
        seen
    };
    for kill in 1..=KILLS {
        let mut holder = start("hold", &name);
        holder.says("joined");
        let first = sent;
        publish_all(&mut publisher, &message(sent));
        sent += 1;
        assert_eq!(holder.says("holds"), first.to_string());
        // A live subscriber blocks the ring without a limit: claim often enough that its lock is tested as well.
        let mut refusals = 0;
        while refusals < 5_000 {
            match publisher.publish(&message(sent)) {
                Ok(_) => sent += 1,
                Err(Refused::Full) => refusals += 1,
                Err(refused) => panic!("{refused}"),
            }
            drain(&mut reader);
        }
        assert_eq!(publisher.reclaimed(), kill - 1);
        let looks = inspect(&name.0).unwrap();
        assert!(
            looks.subscribers.iter().any(|s| s.label == "holder" && s.alive && s.pid == holder.child.id())
        );

        holder.kill();
        let looks = inspect(&name.0).unwrap();
        assert!(looks.subscribers.iter().any(|s| s.label == "holder" && !s.alive));
        for _ in 0..1000 {
            while publisher.publish(&message(sent)).is_err() {
                std::thread::yield_now();
            }
            sent += 1;
            drain(&mut reader);
        }
        assert_eq!(publisher.reclaimed(), kill);
    }
    assert_eq!(drain(&mut reader), sent);
}

#[test]
fn a_joiner_frees_the_places_of_the_dead() {
    let name = OwnName::new("places");
    let publisher = Publisher::open(&name.0, &small()).unwrap();
    for _ in 0..3 {
        let mut players = [start("sit", &name), start("sit", &name)];
        for player in &mut players {
            player.says("joined");
        }
        assert_eq!(publisher.subscribers(), 2);
        for player in &mut players {
            player.kill();
        }
        assert_eq!(publisher.subscribers(), 2, "nobody has looked");
        let _joiner = Subscriber::join(&name.0, Start::Newest).unwrap();
        assert_eq!(publisher.subscribers(), 1);
    }
}

/// A publisher is killed at full speed and followed by another, many times. The subscriber that stays sees every
/// counter once, in order, and each change of publisher at its place.
#[test]
fn a_killed_publisher_is_followed() {
    const PUBLISHERS: u32 = 12;
    let name = OwnName::new("followed");
    // Creates the ring, so that the subscriber has joined before the first kill.
    let options = Options { keep: true, ..small() };
    Publisher::open(&name.0, &options).unwrap().close().unwrap();
    let mut reader = Subscriber::join(&name.0, Start::Newest).unwrap();
    assert!(matches!(reader.next(), Poll::Ended));
    assert!(!reader.publisher_alive().unwrap());
    let (mut seen, mut epoch) = (0, 1);
    for publisher in 2..=PUBLISHERS {
        let mut player = start("publish", &name);
        assert_eq!(player.says("publishes"), publisher.to_string());
        assert!(reader.publisher_alive().unwrap());
        let kill_at = seen + 3000 + u64::from(publisher) * 77;
        let mut killed = false;
        loop {
            match reader.next() {
                Poll::Frame(frame) => {
                    assert_eq!(counter_of(&frame), Some(seen), "no garbage, nothing lost, nothing twice");
                    assert!(frame.epoch() == epoch || frame.epoch() == epoch + 1);
                    epoch = frame.epoch();
                    seen += 1;
                }
                Poll::Empty if killed => break,
                Poll::Empty => assert!(reader.wait(Wait::Yield, LONG)),
                other => panic!("{other:?}"),
            }
            if seen == kill_at {
                player.kill();
                killed = true;
            }
        }
        assert_eq!(epoch, publisher);
        assert_eq!(reader.epoch(), publisher);
        assert!(!reader.publisher_alive().unwrap());
        assert!(!reader.wait(Wait::Park, Duration::from_millis(2)), "a death is not an end");
        // The successor counts from the frames that were seen.
        let looks = inspect(&name.0).unwrap();
        assert_eq!(
            (looks.publisher.frames, looks.publisher.alive, looks.publisher.ended),
            (seen, false, false)
        );
    }
}

/// The cursor is stored now and then: frames committed after it count, frames only claimed do not.
#[test]
fn a_successor_goes_on_behind_the_last_commit() {
    let name = OwnName::new("half");
    let mut player = start("stop half-way", &name);
    player.says("stands");
    player.kill();
    let mut reader = Subscriber::join(&name.0, Start::Oldest).unwrap();
    assert_eq!(inspect(&name.0).unwrap().publisher.frames, 5);
    let mut publisher = Publisher::open(&name.0, &Options::default()).unwrap();
    assert_eq!((publisher.frames(), publisher.epoch()), (5, 2));
    // The dead publisher never stored its cursor. The new one has, before its gate can pass it.
    assert_eq!(reader.lag_bytes(), publisher.position().0);
    for counter in 5..500 {
        publish_all(&mut publisher, &message(counter));
        if counter == 5 {
            for expected in 0..5 {
                assert_eq!(reader.next().frame().as_deref().and_then(counter_of), Some(expected));
            }
        }
        assert_eq!(reader.next().frame().as_deref().and_then(counter_of), Some(counter));
        assert!(matches!(reader.next(), Poll::Empty));
    }
}

#[test]
fn a_ring_has_one_publisher() {
    let name = OwnName::new("one");
    let mut player = start("publish", &name);
    player.says("publishes");
    match Publisher::open(&name.0, &small()) {
        Err(Error::PublisherAlive { pid, .. }) => assert_eq!(pid, player.child.id()),
        other => panic!("{other:?}"),
    }
    player.kill();
    let first = Publisher::open(&name.0, &small()).unwrap();
    assert_eq!(first.epoch(), 2);
    assert!(
        matches!(Publisher::open(&name.0, &small()), Err(Error::PublisherAlive { .. })),
        "nor two in a process"
    );
}

//! Aeron, with a real media driver: `make bridge-aeron`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use tapeline_measure::{Clock, Nanos};
use tapeline_wire::aeron::{
    AeronChange, AeronOptions, AeronReceiver, AeronSender, AeronSent, EmbeddedAeronDriver, check_channel,
};

/// The longest time for what should take milliseconds, or the driver's time-out.
const PATIENCE: Duration = Duration::from_secs(60);

fn options(folder: &Path) -> AeronOptions {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    AeronOptions {
        channel: format!("aeron:udp?endpoint=127.0.0.1:{port}|term-length=1m"),
        stream: 7,
        folder: Some(folder.to_owned()),
    }
}

fn ends(options: &AeronOptions) -> (AeronSender, AeronReceiver) {
    (AeronSender::new(options).unwrap(), AeronReceiver::new(options).unwrap())
}

/// Turns both ends until `is_done`; returns their changes.
fn turn(
    (sender, receiver): (&mut AeronSender, &mut AeronReceiver),
    mut is_done: impl FnMut(&mut AeronSender, &mut AeronReceiver) -> bool,
) -> Vec<AeronChange> {
    let (clock, start) = (Clock::calibrate(), Instant::now());
    let mut changes = Vec::new();
    while !is_done(sender, receiver) {
        assert!(start.elapsed() < PATIENCE, "{changes:?}");
        changes.extend(sender.turn(clock.now()));
        changes.extend(receiver.turn(clock.now()));
        std::thread::yield_now();
    }
    changes
}

fn are_connected(sender: &mut AeronSender, receiver: &mut AeronReceiver) -> bool {
    sender.is_heard() && receiver.is_connected()
}

#[test]
fn datagrams_of_every_length_arrive_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let driver = EmbeddedAeronDriver::start(Some(&folder.path().join("driver"))).unwrap();
    let (mut sender, mut receiver) = ends(&options(driver.folder()));
    let connected = turn((&mut sender, &mut receiver), are_connected);
    assert_eq!(connected, [AeronChange::Connected, AeronChange::Connected]);
    let datagrams: Vec<Vec<u8>> =
        [1, 20, 1_376, 1_377, 9_000, 65_507].iter().zip(1..).map(|(len, byte)| vec![byte; *len]).collect();
    let sent = sender.send_many(datagrams.iter().map(Vec::as_slice));
    assert_eq!(sent, AeronSent { count: datagrams.len(), ..AeronSent::default() });
    let mut arrived = Vec::new();
    turn((&mut sender, &mut receiver), |_, receiver| {
        receiver.receive(64, |datagram| arrived.push(datagram.to_vec()));
        arrived.len() == datagrams.len()
    });
    assert!(arrived == datagrams);
    // Neither end allocates for a datagram.
    let mut again = 0;
    let counted = allocation_counter::measure(|| {
        _ = sender.send_many(datagrams.iter().map(Vec::as_slice));
        while again < datagrams.len() {
            receiver.receive(64, |_| again += 1);
        }
    });
    assert_eq!(counted.count_total, 0);
    // Longer than an eighth of a term of 1 MiB: refused, and the next one is taken.
    let sent = sender.send_many([&[0; 200_000][..], &[1]].into_iter());
    assert_eq!(sent, AeronSent { count: 1, refused: 1, ..AeronSent::default() });
}

#[test]
fn a_receiver_that_does_not_read_stops_the_sender_and_nobody_waits() {
    let folder = tempfile::tempdir().unwrap();
    let driver = EmbeddedAeronDriver::start(Some(&folder.path().join("driver"))).unwrap();
    let (mut sender, mut receiver) = ends(&options(driver.folder()));
    turn((&mut sender, &mut receiver), are_connected);
    let datagram = [5; 1_000];
    let sent = sender.send_many((0..5_000).map(|_| &datagram[..]));
    assert!(sent.count > 100 && sent.back_pressured > 0 && sent.refused == 0, "{sent:?}");
    assert_eq!(sent.count + sent.back_pressured, 5_000);
    let mut arrived = 0;
    turn((&mut sender, &mut receiver), |_, receiver| {
        receiver.receive(64, |_| arrived += 1);
        arrived == sent.count
    });
}

#[test]
fn both_ends_move_to_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let driver = EmbeddedAeronDriver::start(Some(&folder.path().join("driver"))).unwrap();
    let (mut sender, mut receiver) = ends(&options(driver.folder()));
    turn((&mut sender, &mut receiver), are_connected);
    assert_eq!(sender.send_many([&b"one"[..]].into_iter()).count, 1);
    turn((&mut sender, &mut receiver), |_, receiver| {
        receiver.receive(1, |bytes| assert_eq!(bytes, b"one")) == 1
    });
    std::thread::spawn(move || {
        assert_eq!(sender.send_many([&b"two"[..]].into_iter()).count, 1);
        turn((&mut sender, &mut receiver), |_, receiver| {
            receiver.receive(1, |bytes| assert_eq!(bytes, b"two")) == 1
        });
    })
    .join()
    .unwrap();
}

#[test]
fn a_driver_that_comes_late_dies_and_comes_back_is_found_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("driver");
    let (mut sender, mut receiver) = ends(&options(&folder));
    let second = |seconds: u64| Nanos(seconds * 1_000_000_000);
    let waiting: Vec<_> =
        (1..9).flat_map(|time| [sender.turn(second(time)), receiver.turn(second(time))]).flatten().collect();
    let reason = format!("no media driver lives in {}", folder.display());
    assert_eq!(waiting, [AeronChange::Waiting(reason.clone()), AeronChange::Waiting(reason)]);
    assert_eq!(sender.send_many([&b"nobody"[..]].into_iter()).refused, 1);

    let driver = EmbeddedAeronDriver::start(Some(&folder)).unwrap();
    turn((&mut sender, &mut receiver), are_connected);
    drop(driver);
    let lost =
        turn((&mut sender, &mut receiver), |sender, receiver| sender.losses() + receiver.losses() == 2);
    assert!(lost.iter().all(|change| matches!(change, AeronChange::Lost(_))), "{lost:?}");

    let driver = EmbeddedAeronDriver::start(Some(&folder)).unwrap();
    turn((&mut sender, &mut receiver), are_connected);
    assert_eq!(sender.send_many([&b"again"[..]].into_iter()).count, 1);
    turn((&mut sender, &mut receiver), |_, receiver| {
        receiver.receive(1, |bytes| assert_eq!(bytes, b"again")) == 1
    });
    // One folder, one driver.
    let second = EmbeddedAeronDriver::start(Some(&folder)).unwrap_err().to_string();
    assert!(second.contains("another media driver lives there"), "{second}");
    drop(driver);
}

#[test]
fn a_folder_of_other_files_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "").unwrap();
    let refused = EmbeddedAeronDriver::start(Some(folder.path())).unwrap_err().to_string();
    assert!(refused.contains("not a driver's") && folder.path().join("mine").exists(), "{refused}");
}

#[test]
fn a_channel_that_the_driver_refuses_is_told_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let driver = EmbeddedAeronDriver::start(Some(&folder.path().join("driver"))).unwrap();
    let channel = "aeron:udp?endpoint=127.0.0.1:1|term-length=7".to_owned();
    let options = AeronOptions { channel, ..options(driver.folder()) };
    let (mut sender, mut receiver) = ends(&options);
    let changes =
        turn((&mut sender, &mut receiver), |sender, receiver| receiver.is_open() && !sender.is_open());
    let Some(AeronChange::Waiting(reason)) = changes.iter().find(|change| **change != AeronChange::Connected)
    else {
        panic!("{changes:?}")
    };
    assert!(reason.ends_with("term length less than min length of 65536: length=7"), "{reason}");
}

#[test]
fn a_channel_is_checked_without_a_driver() {
    for (channel, says) in [
        ("aeron:udp?endpoint=127.0.0.1:1", None),
        ("aeron:ipc", None),
        ("udp?endpoint=127.0.0.1:1", Some("it does not begin with \"aeron:\"")),
        ("aeron:tcp?endpoint=127.0.0.1:1", Some("the medium is \"tcp\"")),
        ("aeron:udp?endpoint", Some("\"endpoint\" is not a parameter")),
        ("aeron:udp?mtu=1408", Some("it has no endpoint")),
    ] {
        let checked = check_channel(channel);
        assert_eq!(checked.as_ref().err().map(|_| ()), says.map(|_| ()), "{channel}: {checked:?}");
        assert!(checked.err().unwrap_or_default().contains(says.unwrap_or_default()), "{channel}");
    }
}

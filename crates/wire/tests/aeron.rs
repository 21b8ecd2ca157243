//! Aeron, with a real media driver: `make bridge-aeron`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tapeline_measure::{Clock, Nanos};
use tapeline_wire::aeron::{
    AeronChange, AeronOptions, AeronReceiver, AeronSender, AeronSent, EmbeddedAeronDriver, check_channel,
};

/// The longest time for what should take milliseconds, or the driver's time-out.
const PATIENCE: Duration = Duration::from_secs(60);

fn options(folder: &Path) -> AeronOptions {
    AeronOptions {
        channel: format!("aeron:udp?endpoint=127.0.0.1:{}|term-length=1m", free_port()),
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
    // The driver here has a wider window than Aeron as shipped.
    turn((&mut sender, &mut receiver), |sender, _| {
        sender.figures().is_some_and(|figures| figures.window > 128 << 10)
    });
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

/// A datagram of which fewer than a hundred fit in a window of a term of 64 KiB.
const LONG: [u8; 1_000] = [7; 1_000];

/// Turns all ends until each is connected.
fn connect(sender: &mut AeronSender, receivers: &mut [AeronReceiver]) {
    for receiver in receivers {
        turn((&mut *sender, receiver), are_connected);
    }
}

/// Sends `count` datagrams until those of the receivers that read have all of them; `reads` names those.
fn send_to(sender: &mut AeronSender, receivers: &mut [AeronReceiver], reads: &[bool], count: usize) {
    let (clock, start) = (Clock::calibrate(), Instant::now());
    let (mut left, mut read) = (count, vec![0; reads.len()]);
    while left > 0 || reads.iter().zip(&read).any(|(reads, read)| *reads && *read < count) {
        assert!(start.elapsed() < PATIENCE, "{left} are not sent, {read:?} are read");
        left -= sender.send_many((0..left.min(16)).map(|_| &LONG[..])).count;
        _ = sender.turn(clock.now());
        for ((receiver, reads), read) in receivers.iter_mut().zip(reads).zip(&mut read) {
            _ = receiver.turn(clock.now());
            if *reads {
                *read += receiver.receive(64, |_| ());
            }
        }
        std::thread::yield_now();
    }
}

/// Returns a receiver of a channel with a driver of its own, as on a host of its own.
fn on_another_host(folder: &Path, channel: &str) -> (EmbeddedAeronDriver, AeronReceiver) {
    let driver = EmbeddedAeronDriver::start(Some(folder)).unwrap();
    let options = AeronOptions { channel: channel.to_owned(), ..options(driver.folder()) };
    let receiver = AeronReceiver::new(&options).unwrap();
    (driver, receiver)
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn two_hosts_without_multicast_hear_one_sender() {
    let folder = tempfile::tempdir().unwrap();
    let driver = EmbeddedAeronDriver::start(Some(&folder.path().join("above"))).unwrap();
    let control = format!("control=127.0.0.1:{}|control-mode=dynamic", free_port());
    let channel = format!("aeron:udp?{control}|fc=max|term-length=1m");
    let mut sender = AeronSender::new(&AeronOptions { channel, ..options(driver.folder()) }).unwrap();
    let below = ["first", "second"].map(|name| {
        on_another_host(
            &folder.path().join(name),
            &format!("aeron:udp?endpoint=127.0.0.1:{}|{control}", free_port()),
        )
    });
    let (_drivers, mut receivers): (Vec<_>, Vec<_>) = below.into_iter().unzip();
    connect(&mut sender, &mut receivers);
    send_to(&mut sender, &mut receivers, &[true, true], 300);
}

#[test]
fn a_tagged_host_is_waited_for_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let driver = EmbeddedAeronDriver::start(Some(&folder.path().join("above"))).unwrap();
    let address = format!("aeron:udp?endpoint=239.255.14.13:{}|interface=127.0.0.1|ttl=0", free_port());
    let channel = format!("{address}|fc=tagged,g:101|term-length=64k");
    let mut sender = AeronSender::new(&AeronOptions { channel, ..options(driver.folder()) }).unwrap();
    let below = [("tagged", "|gtag=101"), ("other", "")]
        .map(|(name, tag)| on_another_host(&folder.path().join(name), &format!("{address}{tag}")));
    let (_drivers, mut receivers): (Vec<_>, Vec<_>) = below.into_iter().unzip();
    connect(&mut sender, &mut receivers);
    send_to(&mut sender, &mut receivers, &[true, false], 2_000);
    let sent = sender.send_many((0..2_000).map(|_| &LONG[..]));
    assert!(sent.back_pressured > 1_000, "the tagged host does not read: {sent:?}");
}

#[test]
fn an_observer_that_is_not_tethered_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let driver = EmbeddedAeronDriver::start(Some(&folder.path().join("driver"))).unwrap();
    let address =
        format!("aeron:udp?endpoint=127.0.0.1:{}|untethered-window-limit-timeout=100ms", free_port());
    let of = |channel: String| AeronOptions { channel, ..options(driver.folder()) };
    let mut sender = AeronSender::new(&of(format!("{address}|term-length=64k"))).unwrap();
    let mut receivers = [of(address.clone()), of(format!("{address}|tether=false"))]
        .map(|options| AeronReceiver::new(&options).unwrap());
    connect(&mut sender, &mut receivers);
    send_to(&mut sender, &mut receivers, &[true, false], 2_000);
    // A tethered one beside it does.
    let mut idle = AeronReceiver::new(&of(address)).unwrap();
    turn((&mut sender, &mut idle), are_connected);
    let mut read = 0;
    let sent = turn_while_pressed(&mut sender, &mut receivers[0], &mut read);
    assert!(sent < 200 && read <= sent, "{sent} sent, {read} read beside a subscription that reads nothing");
}

/// Sends and reads until nothing more is taken for a second; returns how many were sent.
fn turn_while_pressed(sender: &mut AeronSender, receiver: &mut AeronReceiver, read: &mut usize) -> usize {
    let clock = Clock::calibrate();
    let (mut sent, mut last) = (0, Instant::now());
    while last.elapsed() < Duration::from_secs(1) && sent < 10_000 {
        let taken = sender.send_many([&LONG[..]].into_iter()).count;
        if taken > 0 {
            (sent, last) = (sent + taken, Instant::now());
        }
        _ = sender.turn(clock.now());
        _ = receiver.turn(clock.now());
        *read += receiver.receive(64, |_| ());
        std::thread::yield_now();
    }
    sent
}

/// `AERONMD` names Aeron's own program for a media driver, which `make bridge-aeron` builds.
#[test]
fn a_driver_that_is_a_program_of_its_own_is_used_and_found_again() {
    let Some(program) = std::env::var_os("AERONMD") else {
        eprintln!("skipped: AERONMD names no media driver; make bridge-aeron builds one");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("driver");
    let start = || {
        let mut command = Command::new(&program);
        command.env("AERON_DIR", &folder).env("AERON_DIR_DELETE_ON_START", "true").stdout(Stdio::null());
        Killed(command.spawn().unwrap())
    };
    let driver = start();
    let (mut sender, receiver) = ends(&options(&folder));
    let mut receivers = [receiver];
    connect(&mut sender, &mut receivers);
    send_to(&mut sender, &mut receivers, &[true], 500);
    drop(driver);
    let [receiver] = &mut receivers;
    turn((&mut sender, receiver), |sender, receiver| sender.losses() + receiver.losses() == 2);
    let _driver = start();
    connect(&mut sender, &mut receivers);
    send_to(&mut sender, &mut receivers, &[true], 500);
}

/// A program that is killed at the end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

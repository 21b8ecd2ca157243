//! The publishing end of ZeroMQ, with subscribers of another implementation and with hostile peers.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use tapeline_measure::Nanos;
use tapeline_wire::zmtp::{Left, Publisher, PublisherCounters, PublisherSettings, Route};
use zeromq::{Socket, SocketRecv, SubSocket};

/// Time limit of a test that waits for a publisher.
const GIVE_UP: Duration = Duration::from_secs(60);

/// A publisher with simulated time.
struct World {
    publisher: Publisher,
    now: Nanos,
    left: Vec<Left>,
}

impl World {
    fn new(settings: PublisherSettings) -> Self {
        let publisher = Publisher::bind("127.0.0.1:0".parse().unwrap(), settings).unwrap();
        Self { publisher, now: Nanos(1_000_000_000), left: Vec::new() }
    }

    fn address(&self) -> SocketAddr {
        self.publisher.local_address()
    }

    fn until(&mut self, is_so: impl Fn(&PublisherCounters, &[Left]) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.publisher.counters(), &self.left) {
            // An endless wait would not show which test it is.
            assert!(begun.elapsed() < GIVE_UP, "{:?} {:?}", self.publisher.counters(), self.left);
            self.publisher.turn(self.now, Duration::from_millis(1)).unwrap();
            self.left.extend(self.publisher.take_left());
        }
    }

    fn publish(&mut self, topic: &str, body: &[u8]) {
        let mut route = Route::default();
        if self.publisher.wants(&mut route, topic.as_bytes()) {
            self.publisher.publish(&route, &[topic.as_bytes(), body]);
        }
    }

    /// Waits for the next message of a subscriber and returns it.
    fn next(&mut self, subscriber: &Receiver<Vec<Vec<u8>>>) -> Vec<Vec<u8>> {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < GIVE_UP, "{:?} {:?}", self.publisher.counters(), self.left);
            self.publisher.turn(self.now, Duration::from_millis(1)).unwrap();
            match subscriber.try_recv() {
                Ok(message) => return message,
                Err(mpsc::TryRecvError::Empty) => {}
                Err(mpsc::TryRecvError::Disconnected) => panic!("the subscriber has ended"),
            }
        }
    }
}

/// The messages of a subscriber of the crate `zeromq`, on its own thread, until the channel is dropped.
fn subscriber(address: SocketAddr, prefixes: &'static [&'static str]) -> Receiver<Vec<Vec<u8>>> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut socket = SubSocket::new();
            socket.connect(&format!("tcp://{address}")).await.unwrap();
            for prefix in prefixes {
                socket.subscribe(prefix).await.unwrap();
            }
            while let Ok(message) = socket.recv().await {
                if tell.send(message.into_vec().iter().map(|part| part.to_vec()).collect()).is_err() {
                    return;
                }
            }
        });
    });
    told
}

/// Connects a raw subscriber that has sent its greeting, its handshake and these frames.
fn by_hand(address: SocketAddr, frames: &[&[u8]]) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    let mut greeting = [0; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xFF, 0x7F, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    socket.write_all(&greeting).unwrap();
    socket.write_all(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB").unwrap();
    for frame in frames {
        socket.write_all(frame).unwrap();
    }
    socket
}

#[test]
fn each_subscriber_gets_what_it_asked_for_in_order_and_once() {
    let mut world = World::new(PublisherSettings::default());
    let everything = subscriber(world.address(), &[""]);
    let some = subscriber(world.address(), &["T/A", "T/AAPL", "X"]);
    world.until(|counters, _| counters.subscriptions == 4);
    let long = vec![9; 100_000];
    for topic in ["T/AAPL", "T/MSFT", "T/A"] {
        world.publish(topic, &long);
    }
    let topics = |messages: Vec<Vec<Vec<u8>>>| {
        messages.into_iter().map(|message| {
            assert_eq!(message[1], long);
            String::from_utf8(message[0].clone()).unwrap()
        })
    };
    let all: Vec<_> = (0..3).map(|_| world.next(&everything)).collect();
    assert_eq!(topics(all).collect::<Vec<_>>(), ["T/AAPL", "T/MSFT", "T/A"]);
    let chosen: Vec<_> = (0..2).map(|_| world.next(&some)).collect();
    assert_eq!(topics(chosen).collect::<Vec<_>>(), ["T/AAPL", "T/A"]);
    assert_eq!((world.publisher.counters().queued, world.publisher.counters().dropped), (5, 0));
    // Its thread ends with the next message.
    drop(some);
    world.publish("T/A", b"");
    world.until(|counters, left| counters.subscribers == 1 && left.len() == 1);
    assert!(!world.left[0].is_let_go, "{:?}", world.left);
}

#[test]
fn hostile_peers_are_let_go_and_nobody_else_notices() {
    let mut world =
        World::new(PublisherSettings { max_subscriptions_each: 2, ..PublisherSettings::default() });
    let good = subscriber(world.address(), &["T"]);
    world.until(|counters, _| counters.subscriptions == 1);
    let mut http = TcpStream::connect(world.address()).unwrap();
    http.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    // The frame states a length of a petabyte.
    let _huge = by_hand(world.address(), &[b"\x02\0\x04\0\0\0\0\0\0"]);
    let _greedy = by_hand(world.address(), &[b"\0\x02\x01A", b"\0\x02\x01B", b"\0\x02\x01C"]);
    world.until(|counters, _| counters.let_go == 3);
    let said: Vec<&str> = world.left.iter().map(|left| &*left.why).collect();
    for why in ["this is not ZMTP", "a frame of 1125899906842624 bytes", "too many subscriptions"] {
        assert!(said.iter().any(|said| said.contains(why)), "{why}: {said:?}");
    }
    world.publish("T/A", b"here");
    assert_eq!(world.next(&good), [b"T/A".to_vec(), b"here".to_vec()]);
    // A peer that sends nothing at all.
    let mut silent = TcpStream::connect(world.address()).unwrap();
    world.until(|counters, _| counters.connected == 5);
    world.now = world.now + 60_000_000_000;
    world.until(|counters, _| counters.let_go == 4);
    let mut greeting = Vec::new();
    silent.read_to_end(&mut greeting).unwrap();
    assert_eq!((greeting.len(), greeting[0], greeting[10], greeting[11]), (64, 0xFF, 3, 1));
}

/// Messages beyond the high-water mark are dropped as a whole; a subscriber that reads again gets the next
/// ones, and one that never reads is disconnected.
#[test]
fn a_slow_subscriber_loses_whole_messages_and_nobody_else_any() {
    const MANY: u64 = 200;
    let mut world = World::new(PublisherSettings { queue_bytes: 1 << 20, ..PublisherSettings::default() });
    let quick = subscriber(world.address(), &["T"]);
    let mut slow = by_hand(world.address(), &[b"\0\x01\x01"]);
    world.until(|counters, _| counters.subscriptions == 2);
    let mut body = vec![0; 100_000];
    for number in 0..MANY {
        body[..8].copy_from_slice(&number.to_be_bytes());
        world.publish("T", &body);
        assert_eq!(world.next(&quick)[1][..8], number.to_be_bytes());
    }
    let dropped = world.publisher.counters().dropped;
    assert!(dropped > 0 && world.publisher.counters().queued + dropped == 2 * MANY);
    // It receives what was sent: greeting, handshake and messages, each whole.
    slow.set_nonblocking(true).unwrap();
    let mut got = Vec::new();
    let mut piece = vec![0; 1 << 20];
    while !world.publisher.is_flushed() {
        world.publisher.turn(world.now, Duration::ZERO).unwrap();
        match slow.read(&mut piece) {
            Ok(count) => got.extend_from_slice(&piece[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    world.publish("T", b"and on");
    assert_eq!(world.next(&quick)[1], b"and on");
    assert_eq!(world.publisher.counters().queued, 2 * MANY - dropped + 2);
    while !got.ends_with(b"and on") {
        world.publisher.turn(world.now, Duration::ZERO).unwrap();
        match slow.read(&mut piece) {
            Ok(count) => got.extend_from_slice(&piece[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    let mut rest = &got[64 + 27..];
    let mut numbers = Vec::new();
    while let Some(long) = rest.strip_prefix(b"\x01\x01T\x02") {
        let (len, body) = long.split_first_chunk::<8>().unwrap();
        assert_eq!(u64::from_be_bytes(*len), 100_000);
        numbers.push(u64::from_be_bytes(body[..8].try_into().unwrap()));
        rest = &body[100_000..];
    }
    assert_eq!(rest, b"\x01\x01T\0\x06and on");
    assert_eq!(numbers.len() as u64, MANY - dropped);
    assert!(numbers.is_sorted() && numbers[0] == 0, "{numbers:?}");
    // From here on it does not read.
    while world.publisher.counters().dropped == dropped {
        world.publish("T", &body);
        world.next(&quick);
    }
    world.publisher.turn(world.now, Duration::ZERO).unwrap();
    world.now = world.now + 59_000_000_000;
    world.publisher.turn(world.now, Duration::ZERO).unwrap();
    assert_eq!(world.publisher.counters().let_go, 0);
    // The kernel enlarges its buffers as it likes and may accept more of the waiting bytes meanwhile, or all of
    // them: the minute starts with the last of them, and a subscriber for which nothing waits is not stuck.
    while world.left.is_empty() {
        if world.publisher.is_flushed() {
            world.publish("T", &body);
            world.next(&quick);
        }
        world.now = world.now + 1_000_000_000;
        world.publisher.turn(world.now, Duration::ZERO).unwrap();
        world.left.extend(world.publisher.take_left());
    }
    assert_eq!((world.publisher.counters().let_go, world.left.len()), (1, 1));
    assert!(world.left[0].why.contains("taken nothing for 60000 ms"), "{:?}", world.left);
    assert!(world.left[0].dropped > dropped);
}

/// A silent peer can be replaced after a second; a subscriber that has completed the handshake stays.
#[test]
fn who_does_not_shake_hands_keeps_nobody_out() {
    let mut world = World::new(PublisherSettings { max_subscribers: 3, ..PublisherSettings::default() });
    let first = by_hand(world.address(), &[b"\0\x01\x01"]);
    world.until(|counters, _| counters.subscriptions == 1);
    let mut silent = Vec::new();
    for subscribers in 2..4 {
        silent.push(TcpStream::connect(world.address()).unwrap());
        world.until(|counters, _| counters.subscribers == subscribers);
    }
    let _early = TcpStream::connect(world.address()).unwrap();
    world.until(|counters, _| counters.refused == 1);
    world.now = world.now + 1_000_000_000;
    let second = by_hand(world.address(), &[b"\0\x01\x01"]);
    world.until(|counters, _| counters.subscriptions == 2);
    assert_eq!((world.publisher.counters().refused, world.left.len()), (1, 1));
    assert!(world.left[0].address == silent[0].local_addr().unwrap(), "{:?}", world.left);
    drop((first, second));
}

#[test]
fn there_are_no_more_subscribers_than_may_be() {
    let mut world = World::new(PublisherSettings { max_subscribers: 1, ..PublisherSettings::default() });
    let first = by_hand(world.address(), &[b"\0\x01\x01"]);
    world.until(|counters, _| counters.subscriptions == 1);
    let mut second = by_hand(world.address(), &[]);
    world.until(|counters, _| counters.refused == 1);
    assert!(matches!(second.read(&mut [0; 64]), Ok(0) | Err(_)));
    drop(first);
    world.until(|counters, _| counters.subscribers == 0);
    let _third = by_hand(world.address(), &[b"\0\x01\x01"]);
    world.until(|counters, _| counters.subscriptions == 1);
}

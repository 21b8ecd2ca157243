//! A bare relay: the rings, lines, threads and sleeps of a bridge, in one process, and nothing of what plants do: no re-requests, no arbitration, no
//! books. What is slower than this is the bridge's own.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tapeline_measure::{Clock, Pacer};
use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber, Wait};
#[cfg(feature = "aeron")]
use tapeline_wire::aeron::{AeronOptions, AeronReceiver, AeronSender, EmbeddedAeronDriver};
use tapeline_wire::udp::{Batch, ReceiveOptions, SendOptions, UdpReceiver, UdpSender, wait_any};

use crate::Turn;
use crate::bare::{MESSAGE_BYTES, PATIENCE, Received};

/// What both plants have: of the ring, of a file's messages, of the bridge's sender, of the sockets below.
const RING_BYTES: usize = 64 << 20;
const WAKE_EVERY: u64 = 32;
const MESSAGES: usize = 256;
const DATAGRAM_BYTES: usize = 1_400;
const SENDER_SLEEP: Duration = Duration::from_micros(500);
const RECEIVE_BUFFER: usize = 16 << 20;
const SLOTS: usize = 64;
const SLOT_BYTES: usize = 65_535;
/// A datagram begins with the number of its first message.
const NUMBER_BYTES: usize = 8;
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// Over Aeron: the bytes of a datagram, how long a plant below sleeps between two looks, and how long the two ends have to find each other.
#[cfg(feature = "aeron")]
const AERON_BYTES: usize = 1_376;
#[cfg(feature = "aeron")]
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);
#[cfg(feature = "aeron")]
const JOINING: Duration = Duration::from_secs(10);

/// The end of the lines above.
trait Sends: Send {
    /// Sends datagrams, which lie one behind the other in `bytes`.
    fn send(&mut self, bytes: &[u8], lengths: &[usize]);
}

/// The end of the lines below.
trait Receives: Send {
    /// Passes on what has arrived. Returns whether anything has.
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> bool;
    /// Sleeps as a plant below does.
    fn wait(&self);
}

impl Sends for [UdpSender; 2] {
    fn send(&mut self, bytes: &[u8], lengths: &[usize]) {
        for line in self {
            // What a full socket does not take counts as lost.
            let _ = line.send_contiguous(bytes, lengths);
        }
    }
}

impl Receives for ([UdpReceiver; 2], Batch) {
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> bool {
        let (lines, batch) = self;
        let mut has_come = false;
        for line in lines {
            has_come |= line.receive(batch).is_ok_and(|count| count > 0);
            batch.apart().for_each(|datagram| each(datagram.bytes));
        }
        has_come
    }

    fn wait(&self) {
        wait_any(&self.0, LONGEST_SLEEP);
    }
}

/// The relay over two lines of datagrams.
pub(crate) fn datagrams(rate: u64, seconds: u64) -> anyhow::Result<Turn> {
    let options = ReceiveOptions {
        joined: true,
        receive_buffer: RECEIVE_BUFFER,
        ..ReceiveOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
    };
    let receivers = [UdpReceiver::open(&options)?, UdpReceiver::open(&options)?];
    let open = |receiver: &UdpReceiver| UdpSender::open(&SendOptions::new(receiver.local_address()));
    let senders = [open(&receivers[0])?, open(&receivers[1])?];
    turn(rate, seconds, DATAGRAM_BYTES, senders, (receivers, Batch::new(SLOTS, SLOT_BYTES)))
}

/// An end of a line over Aeron. Each thread keeps its own connection, as those of a bridge do.
#[cfg(feature = "aeron")]
struct OverAeron<T>(T, Clock);

#[cfg(feature = "aeron")]
impl Sends for OverAeron<AeronSender> {
    fn send(&mut self, mut bytes: &[u8], lengths: &[usize]) {
        let _ = self.0.turn(self.1.now());
        for length in lengths {
            let (datagram, rest) = bytes.split_at(*length);
            bytes = rest;
            // Until flow control takes it: the rate received is what the line carries.
            while self.0.is_open() && self.0.send_many(std::iter::once(datagram)).count == 0 {
                std::thread::yield_now();
                let _ = self.0.turn(self.1.now());
            }
        }
    }
}

#[cfg(feature = "aeron")]
impl Receives for OverAeron<AeronReceiver> {
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> bool {
        let _ = self.0.turn(self.1.now());
        self.0.receive(SLOTS, each) > 0
    }

    fn wait(&self) {
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// The relay over one line of Aeron, with a media driver at each end.
#[cfg(feature = "aeron")]
pub(crate) fn aeron(rate: u64, seconds: u64) -> anyhow::Result<Turn> {
    let folder = crate::plants::drivers()?;
    let start = |end| EmbeddedAeronDriver::start(Some(&folder.path().join(end)));
    let (above, below) = (start("above")?, start("below")?);
    let channel = format!("aeron:udp?endpoint={}", crate::plants::unbound()?);
    let at = |driver: &EmbeddedAeronDriver| AeronOptions {
        channel: channel.clone(),
        stream: 14_040,
        folder: Some(driver.folder().to_owned()),
    };
    let (mut to, mut from) = (AeronSender::new(&at(&above))?, AeronReceiver::new(&at(&below))?);
    let (clock, begun) = (Clock::calibrate(), Instant::now());
    while !to.is_heard() || !from.is_connected() {
        anyhow::ensure!(begun.elapsed() < JOINING, "the ends of the line do not find each other");
        let _ = (to.turn(clock.now()), from.turn(clock.now()));
        std::thread::sleep(Duration::from_millis(1));
    }
    turn(rate, seconds, AERON_BYTES, OverAeron(to, clock), OverAeron(from, clock))
}

/// Writes the messages that are due to a ring, and sleeps; two threads pass them on to the lines and from there, and the caller reads the second ring.
fn turn(
    rate: u64,
    seconds: u64,
    datagram_bytes: usize,
    to: impl Sends,
    from: impl Receives,
) -> anyhow::Result<Turn> {
    let clock = Clock::calibrate();
    let [above, below] = ["above", "below"].map(|end| format!("bench-relay-{end}-{}", std::process::id()));
    let (above, below) = (Name::new(&above)?, Name::new(&below)?);
    let options = Options { capacity: RING_BYTES, wake_on_commit: false, ..Options::default() };
    let (above_ring, below_ring) = (Publisher::open(&above, &options)?, Publisher::open(&below, &options)?);
    let (source, mut ring) =
        (Subscriber::join(&above, Start::Newest)?, Subscriber::join(&below, Start::Newest)?);
    let count = rate * seconds;
    let is_sent = AtomicBool::new(false);
    let received = std::thread::scope(|scope| {
        scope.spawn(|| write(above_ring, rate, count, &clock));
        scope.spawn(|| {
            send(source, datagram_bytes, to);
            is_sent.store(true, Ordering::Release);
        });
        scope.spawn(|| receive(from, below_ring, &is_sent));
        let mut received = Received::new();
        loop {
            match ring.next() {
                Poll::Frame(frame) => received.take(frame.bytes(), clock.now()),
                Poll::Empty => _ = ring.wait(Wait::Park, LONGEST_SLEEP),
                _ => return received,
            }
        }
    });
    Ok(received.turn(count))
}

/// Publishes as a plant does: waits for capacity. The last to leave ends the ring.
fn publish(ring: &mut Publisher, message: &[u8]) {
    while ring.publish(message).is_err() {
        ring.flush();
        std::thread::yield_now();
    }
}

fn write(mut ring: Publisher, rate: u64, count: u64, clock: &Clock) {
    let pacer = Pacer::per_second(rate, clock.now());
    let mut message = [0; MESSAGE_BYTES];
    for number in 0..count {
        let mut now = clock.now();
        if now < pacer.due(number) {
            ring.flush();
            while now < pacer.due(number) {
                std::thread::park_timeout(Duration::from_nanos(pacer.due(number).0 - now.0));
                now = clock.now();
            }
        }
        message[..8].copy_from_slice(&now.0.to_le_bytes());
        publish(&mut ring, &message);
        if number % WAKE_EVERY == 0 {
            ring.flush();
        }
    }
}

fn send(mut ring: Subscriber, datagram_bytes: usize, mut lines: impl Sends) {
    let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
    let (mut number, mut is_over) = (0_u64, false);
    while !is_over {
        bytes.clear();
        lengths.clear();
        for _ in 0..MESSAGES {
            match ring.next() {
                Poll::Frame(frame) => {
                    if lengths.last().is_none_or(|length| length + frame.bytes().len() > datagram_bytes) {
                        bytes.extend_from_slice(&number.to_le_bytes());
                        lengths.push(NUMBER_BYTES);
                    }
                    bytes.extend_from_slice(frame.bytes());
                    if let Some(length) = lengths.last_mut() {
                        *length += frame.bytes().len();
                    }
                    number += 1;
                }
                Poll::Empty => break,
                _ => {
                    is_over = true;
                    break;
                }
            }
        }
        if lengths.is_empty() {
            ring.wait(Wait::Park, SENDER_SLEEP);
        }
        lines.send(&bytes, &lengths);
    }
}

fn receive(mut lines: impl Receives, mut ring: Publisher, is_sent: &AtomicBool) {
    let (mut next, mut came) = (0, Instant::now());
    loop {
        let has_come = lines.receive(&mut |datagram| {
            let Some((number, messages)) = datagram.split_first_chunk() else { return };
            let number = u64::from_le_bytes(*number);
            for (message, number) in messages.chunks(MESSAGE_BYTES).zip(number..) {
                if number >= next {
                    publish(&mut ring, message);
                    next = number + 1;
                }
            }
        });
        ring.flush();
        if has_come {
            came = Instant::now();
        } else if is_sent.load(Ordering::Acquire) && came.elapsed() >= PATIENCE {
            return;
        } else {
            lines.wait();
        }
    }
}

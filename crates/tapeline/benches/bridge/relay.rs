//! A bare relay: the rings, sockets, threads and sleeps of a bridge with two lines, in one process, and nothing of what plants do: no re-requests,
//! no arbitration, no books. What is slower than this is the bridge's own.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tapeline_measure::{Clock, Pacer};
use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber, Wait};
use tapeline_wire::udp::{Batch, ReceiveOptions, SendOptions, UdpReceiver, UdpSender, wait_any};

use crate::Turn;
use crate::bare::{MESSAGE_BYTES, Received};

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

/// Writes the messages that are due to a ring, and sleeps; two threads pass them on to sockets and from there, and the caller reads the second ring.
pub(crate) fn turn(rate: u64, seconds: u64) -> anyhow::Result<Turn> {
    let clock = Clock::calibrate();
    let [above, below] = ["above", "below"].map(|end| format!("bench-relay-{end}-{}", std::process::id()));
    let (above, below) = (Name::new(&above)?, Name::new(&below)?);
    let options = Options { capacity: RING_BYTES, wake_on_commit: false, ..Options::default() };
    let (above_ring, below_ring) = (Publisher::open(&above, &options)?, Publisher::open(&below, &options)?);
    let (source, mut ring) =
        (Subscriber::join(&above, Start::Newest)?, Subscriber::join(&below, Start::Newest)?);
    let options = ReceiveOptions {
        joined: true,
        receive_buffer: RECEIVE_BUFFER,
        ..ReceiveOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
    };
    let receivers = [UdpReceiver::open(&options)?, UdpReceiver::open(&options)?];
    let open = |receiver: &UdpReceiver| UdpSender::open(&SendOptions::new(receiver.local_address()));
    let senders = [open(&receivers[0])?, open(&receivers[1])?];
    let count = rate * seconds;
    let is_sent = AtomicBool::new(false);
    let received = std::thread::scope(|scope| {
        scope.spawn(|| write(above_ring, rate, count, &clock));
        scope.spawn(|| {
            send(source, senders);
            is_sent.store(true, Ordering::Release);
        });
        scope.spawn(|| receive(receivers, below_ring, &is_sent));
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

fn send(mut ring: Subscriber, mut lines: [UdpSender; 2]) {
    let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
    let (mut number, mut is_over) = (0_u64, false);
    while !is_over {
        bytes.clear();
        lengths.clear();
        for _ in 0..MESSAGES {
            match ring.next() {
                Poll::Frame(frame) => {
                    if lengths.last().is_none_or(|length| length + frame.bytes().len() > DATAGRAM_BYTES) {
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
        for line in &mut lines {
            // What a full socket does not take counts as lost.
            let _ = line.send_contiguous(&bytes, &lengths);
        }
    }
}

fn receive(mut lines: [UdpReceiver; 2], mut ring: Publisher, is_sent: &AtomicBool) {
    let (mut batch, mut next) = (Batch::new(SLOTS, SLOT_BYTES), 0);
    let mut is_over = false;
    while !is_over {
        let mut has_come = false;
        for line in &mut lines {
            has_come |= line.receive(&mut batch).is_ok_and(|count| count > 0);
            for datagram in batch.apart() {
                let Some((number, messages)) = datagram.bytes.split_first_chunk() else { continue };
                let number = u64::from_le_bytes(*number);
                for (message, number) in messages.chunks(MESSAGE_BYTES).zip(number..) {
                    if number >= next {
                        publish(&mut ring, message);
                        next = number + 1;
                    }
                }
            }
        }
        ring.flush();
        if !has_come {
            is_over = !wait_any(&lines, LONGEST_SLEEP) && is_sent.load(Ordering::Acquire);
        }
    }
}

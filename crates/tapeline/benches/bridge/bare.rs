//! Messages of a tick's length from thread to thread, without a plant: what the carrier itself costs.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use tapeline_measure::{Clock, Nanos, Pacer, Recorder, Waiting};
use tapeline_wire::udp::{Batch, ReceiveOptions, SendOptions, UdpReceiver, UdpSender};

use crate::{Turn, WARM_UP};

/// The length of a message: that of a tick of the simulated exchange with the feed's message in it.
pub(crate) const MESSAGE_BYTES: usize = 160;
/// How long the receiver waits for a message after the last.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);

/// Sends messages that have the time of their sending in front.
fn send(rate: u64, seconds: u64, clock: &Clock, mut each: impl FnMut(&[u8])) {
    let begun = clock.now();
    let pacer = Pacer::per_second(rate, begun);
    let mut message = [0; MESSAGE_BYTES];
    for number in 0..rate * seconds {
        let now = pacer.wait(clock, pacer.due(number), Waiting::Yield);
        message[..8].copy_from_slice(&now.0.to_le_bytes());
        each(&message);
    }
}

/// What the receiver has seen.
pub(crate) struct Received {
    latency: Recorder,
    begun: Option<Nanos>,
    last: Nanos,
    count: u64,
}

impl Received {
    pub(crate) fn new() -> Self {
        Self { latency: Recorder::new(), begun: None, last: Nanos(0), count: 0 }
    }

    pub(crate) fn take(&mut self, message: &[u8], now: Nanos) {
        let sent = message.first_chunk().map_or(now, |sent| Nanos(u64::from_le_bytes(*sent)));
        let begun = *self.begun.get_or_insert(now);
        (self.last, self.count) = (now, self.count + 1);
        if now.since(begun) >= WARM_UP.as_nanos() as i64 {
            self.latency.record(now.since(sent));
        }
    }

    pub(crate) fn turn(self, sent: u64) -> Turn {
        let elapsed = self.last.since(self.begun.unwrap_or(self.last)).max(1);
        let rate_hz = self.count as f64 * 1e9 / elapsed as f64;
        Turn { latency: self.latency, rate_hz, lost: sent - self.count, recovered: 0 }
    }
}

/// A datagram for each message over loopback; the receiver sleeps in the kernel.
pub(crate) fn datagrams(rate: u64, seconds: u64) -> anyhow::Result<Turn> {
    let clock = Clock::calibrate();
    let options = ReceiveOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
    let mut receiver = UdpReceiver::open(&options)?;
    let mut sender = UdpSender::open(&SendOptions::new(receiver.local_address()))?;
    let received = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let (mut batch, mut received) = (Batch::new(64, MESSAGE_BYTES), Received::new());
            while received.begun.is_none() || receiver.wait(PATIENCE) {
                receiver.receive(&mut batch)?;
                let now = clock.now();
                batch.iter().for_each(|datagram| received.take(datagram.bytes, now));
            }
            Ok::<_, tapeline_wire::Error>(received)
        });
        // What is not sent counts as lost.
        send(rate, seconds, &clock, |message| _ = sender.send(message));
        reader.join().expect("the reader has panicked")
    })?;
    Ok(received.turn(rate * seconds))
}

/// A publication and a subscription of Aeron, with a media driver of this process; the receiver polls, and yields its core in between.
#[cfg(feature = "aeron")]
pub(crate) fn aeron(rate: u64, seconds: u64) -> anyhow::Result<Turn> {
    use tapeline_wire::aeron::{AeronOptions, AeronReceiver, AeronSender, EmbeddedAeronDriver};

    let clock = Clock::calibrate();
    let folder = crate::plants::drivers()?;
    let driver = EmbeddedAeronDriver::start(Some(&folder.path().join("aeron-bare")))?;
    let free = UdpReceiver::open(&ReceiveOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)))?;
    let channel = format!("aeron:udp?endpoint={}", free.local_address());
    drop(free);
    let options = AeronOptions { channel, stream: 14_040, folder: Some(driver.folder().to_owned()) };
    let (mut sender, mut receiver) = (AeronSender::new(&options)?, AeronReceiver::new(&options)?);
    let received = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut received = Received::new();
            loop {
                let now = clock.now();
                let _ = receiver.turn(now);
                let count = receiver.receive(64, |message| received.take(message, clock.now()));
                let is_over =
                    received.begun.is_some() && now.since(received.last) > PATIENCE.as_nanos() as i64;
                if is_over {
                    return received;
                }
                if count == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let begun = clock.now();
        while clock.now().since(begun) < 1_000_000_000 {
            let _ = sender.turn(clock.now());
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut looked = clock.now();
        send(rate, seconds, &clock, |message| {
            let now = clock.now();
            if now.since(looked) > 100_000_000 {
                looked = now;
                let _ = sender.turn(now);
            }
            // Until flow control takes it.
            while sender.is_open() && sender.send_many(std::iter::once(message)).count == 0 {
                std::thread::yield_now();
            }
        });
        reader.join().expect("the reader has panicked")
    });
    drop(driver);
    Ok(received.turn(rate * seconds))
}
